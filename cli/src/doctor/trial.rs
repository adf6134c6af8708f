//! A verified allreduce of three sizes, made by `hopbine run`, and an assessment of its times by the model.

use std::ffi::OsStr;
use std::path::Path;

use clap::Parser;
use hopbine::World;

use super::findings::{Finding, well, wrong};
use crate::error::{CliError, Outcome};
use crate::{Cli, Command, args, run, validate};

/// Shape of the emulated torus that a job of one rank uses.
const EMULATED: &str = "2x2";

/// Results of the allreduces.
pub struct Trial {
    outcome: Outcome,
    /// The rows of `hopbine run`, as CSV.
    pub timings: String,
    /// The output of `hopbine validate`, or why there is none, if the times are from Tofu.
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
        let timings = file("timings.csv");
        let Command::Run(args) = command(&line, &[("-o", &timings)])? else {
            unreachable!("it is run")
        };
        let (outcome, world) = match is_emulated {
            true => (run::run(args)?, world),
            false => run::run_in(args, world)?,
        };
        let has_times = is_tofu && !is_emulated && timings.exists();
        let judgement = has_times.then(|| judgement(&timings, &file("judgement")));
        let timings = std::fs::read_to_string(timings).unwrap_or_default();
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

/// What `hopbine validate` says of the times in a file, or why it refuses them: the model does not have all shapes, and
/// wrong results have no time. `output` is a file for its output.
fn judgement(timings: &Path, output: &Path) -> String {
    let judged = || {
        let Command::Validate(args) =
            command("validate", &[("--measured", timings), ("-o", output)])?
        else {
            unreachable!("it is validate")
        };
        validate::run(args)?;
        args::read(output)
    };
    judged().unwrap_or_else(|error| format!("The times are not compared with the model: {error}\n"))
}

/// Parses a command line of `hopbine`, with files for some options.
fn command(line: &str, files: &[(&str, &Path)]) -> Result<Command, CliError> {
    let words = std::iter::once("hopbine").chain(line.split_whitespace()).map(OsStr::new);
    let files = files.iter().flat_map(|(option, path)| [OsStr::new(option), path.as_os_str()]);
    let parsed = Cli::try_parse_from(words.chain(files));
    Ok(parsed.map_err(|error| CliError::Usage(error.to_string()))?.command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_cannot_be_judged_are_no_error() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        let timings = file("with a space.csv");
        for (rows, expected) in [
            ("8,4x4x4,1048576,mixed-l,6,0.00001,true", "predicted for tofu-d"),
            ("8,4x4x4,1048576,mixed-l,6,0.00001,false", "not compared with the model"),
            ("8,5,1048576,mixed-l,2,0.00001,true", "no row can be predicted"),
        ] {
            let head = "bytes,torus,segment_bytes,algorithm,ports,median_s,verified,collective\n";
            std::fs::write(&timings, format!("{head}{rows},allreduce\n")).unwrap();
            let said = judgement(&timings, &file("judgement"));
            assert!(said.contains(expected), "{rows}: {said}");
        }
    }
}
