//! A verified allreduce of three sizes, made by `hopbine run`, and an assessment of its times by the model.

use std::path::PathBuf;

use clap::Parser;
use hopbine::World;

use super::findings::{Finding, well, wrong};
use crate::error::{CliError, Outcome};
use crate::{Cli, Command, run, validate};

/// Shape of the emulated torus that a job of one rank uses.
const EMULATED: &str = "2x2";

/// Results of the allreduces.
pub struct Trial {
    outcome: Outcome,
    /// The rows of `hopbine run`, as CSV.
    pub timings: String,
    /// The output of `hopbine validate`, if the times are from Tofu.
    pub judgement: Option<String>,
    is_emulated: bool,
}

impl Trial {
    /// Makes the calls on the ranks of a world, or on an emulated torus if the world has one rank.
    ///
    /// # Errors
    /// The errors of the calls.
    pub fn run(world: World) -> Result<(Self, World), CliError> {
        let directory = tempfile::tempdir().map_err(CliError::Output)?;
        let file = |name: &str| directory.path().join(name);
        let is_emulated = world.communicator().size() == 1;
        let shape = match is_emulated {
            true => EMULATED.to_owned(),
            false => world.communicator().shape().to_string(),
        };
        let is_tofu = world.info().backend == "tofu";
        let line = format!("run allreduce --torus {shape} --bytes 8..4MiB:x724 --format csv");
        let Command::Run(args) = command(&line, file("timings.csv"))? else {
            unreachable!("it is run")
        };
        let (outcome, world) = match is_emulated {
            true => (run::run(args)?, world),
            false => run::run_in(args, world)?,
        };
        let read = |name| std::fs::read_to_string(file(name)).unwrap_or_default();
        let timings = read("timings.csv");
        let mut judgement = None;
        if is_tofu && !timings.is_empty() && !is_emulated {
            let line = format!("validate --measured {}", file("timings.csv").display());
            let Command::Validate(args) = command(&line, file("judgement"))? else {
                unreachable!("it is validate")
            };
            validate::run(args)?;
            judgement = Some(read("judgement"));
        }
        Ok((Trial { outcome, timings, judgement, is_emulated }, world))
    }

    /// One finding for each size.
    pub fn findings(&self) -> Vec<Finding> {
        let what = "allreduce";
        let mut reader = csv::Reader::from_reader(self.timings.as_bytes());
        let columns = reader.headers().cloned().unwrap_or_default();
        let rows = reader.records().flatten().map(|record| {
            let field = |name| {
                let at = columns.iter().position(|column| column == name);
                at.and_then(|at| record.get(at)).unwrap_or_default().to_owned()
            };
            let us = field("median_s").parse::<f64>().map_or(f64::NAN, |seconds| seconds * 1e6);
            let found = format!(
                "{} bytes, {}, ports {}: {us:.1} us (median)",
                field("bytes"),
                field("algorithm"),
                field("ports")
            );
            match field("verified").as_str() {
                "true" => well(what, found + ", every element correct"),
                _ => wrong(
                    what,
                    found + ", WRONG elements",
                    "please report it with the archive of -o FILE.tar.gz",
                ),
            }
        });
        let mut all: Vec<Finding> = rows.collect();
        if all.is_empty()
            || (self.outcome == Outcome::Well) != all.iter().all(|one| one.advice.is_empty())
        {
            all.push(wrong(
                what,
                "not all sizes were measured",
                "see the error of hopbine run allreduce",
            ));
        }
        all
    }

    /// Remarks below the page.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_emulated {
            notes.push(format!(
                "One rank: the allreduce ran on an emulated torus {EMULATED} in this process; its times say nothing about a \
                 network."
            ));
        }
        if let Some(judgement) = &self.judgement {
            notes.extend(judgement.lines().map(str::to_owned));
        }
        notes
    }
}

/// Parses a command line of `hopbine` whose output goes to a file.
fn command(line: &str, output: PathBuf) -> Result<Command, CliError> {
    let words = line.split_whitespace().map(Into::into);
    let output: [std::ffi::OsString; 2] = ["-o".into(), output.into()];
    let all = std::iter::once("hopbine".into()).chain(words).chain(output);
    Ok(Cli::try_parse_from(all).map_err(|error| CliError::Usage(error.to_string()))?.command)
}
