//! Measured times with their predictions.

use std::collections::{BTreeMap, BTreeSet};

use hopbine_torus::fit::{ErrorClass, SizeClass, Software};
use hopbine_torus::sim::{Api, Machine, Preparation, PrepareError, Prepared};
use rayon::prelude::*;

use super::MeasuredTime;
use crate::error::CliError;
use crate::progress;

/// A measured time, prepared for its prediction.
pub struct MeasuredCase {
    pub row: MeasuredTime,
    prepared: Prepared,
}

impl MeasuredCase {
    /// The class of prediction errors that the time belongs to.
    pub fn class(&self) -> ErrorClass {
        let software = match (self.row.api, self.row.ports) {
            (Api::Mpi | Api::FujitsuMpi, _) => Software::Mpi,
            (_, 1) => Software::OnePort,
            _ => Software::Ports,
        };
        ErrorClass { size: SizeClass::of(self.row.bytes), software }
    }
}

/// The times that the model covers, and the reasons for leaving out others.
pub struct MeasuredCases {
    pub modelled: Vec<MeasuredCase>,
    left_out: BTreeMap<String, LeftOut>,
}

/// Times that are left out for the same reason.
#[derive(Default)]
struct LeftOut {
    n: usize,
    first_line: u64,
    families: BTreeSet<String>,
}

impl MeasuredCases {
    /// Prepares the prediction of each time on the network of a machine.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the model covers none of the times.
    pub fn new(rows: Vec<MeasuredTime>, machine: &Machine) -> Result<Self, CliError> {
        let bar = progress::bar(rows.len() as u64, "preparing");
        let mut preparation = Preparation::new(machine);
        let mut cases = MeasuredCases { modelled: Vec::new(), left_out: BTreeMap::new() };
        for row in rows {
            match preparation.prepare(&row.timed()) {
                Ok(prepared) => cases.modelled.push(MeasuredCase { row, prepared }),
                Err(error) => {
                    let why = match error {
                        PrepareError::NotModelled { api, why, .. } => {
                            format!("{}: {why}", api.name())
                        }
                        error => error.to_string(),
                    };
                    let out = cases.left_out.entry(why).or_default();
                    out.first_line = if out.n == 0 { row.line } else { out.first_line };
                    out.n += 1;
                    out.families.insert(format!("{} {}", row.collective, row.algorithm));
                }
            }
            bar.advance(1);
        }
        match (cases.modelled.is_empty(), cases.notes().first()) {
            (true, Some(why)) => Err(CliError::Usage(format!("no row can be predicted. {why}"))),
            _ => Ok(cases),
        }
    }

    /// Number of rows that the model does not cover.
    pub fn n_left_out(&self) -> usize {
        self.left_out.values().map(|out| out.n).sum()
    }

    /// Notes on the rows that are left out, with the reasons.
    pub fn notes(&self) -> Vec<String> {
        let note = |(why, out): (&String, &LeftOut)| {
            let LeftOut { n, first_line, families } = out;
            let named: Vec<&str> = families.iter().take(NAMED).map(String::as_str).collect();
            let more = match families.len() - named.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "Not modelled: {n} rows, the first in line {first_line}, {why} ({}{more}).",
                named.join(", ")
            )
        };
        self.left_out.iter().map(note).collect()
    }
}

/// Maximum number of algorithms that a note names.
const NAMED: usize = 8;

/// The model's predictions in microseconds.
pub fn predicted(cases: &[&MeasuredCase], machine: &Machine) -> Vec<f64> {
    cases.par_iter().map(|case| case.prepared.time(machine) / 1e3).collect()
}
