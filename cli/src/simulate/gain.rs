//! Speed-up of families of algorithms over the best other family, by size.

use super::families::{Gain, families};
use super::predict::Predicted;
use crate::cells::{Cell, Column};
use crate::error::CliError;
use crate::report::Report;
use hopbine_torus::sizes;

/// The gains of all families; see [`Gain`].
pub struct Gains<'a> {
    /// For each family: its name, and its gain at each size.
    pub of: Vec<(&'a str, Vec<Gain<'a>>)>,
}

impl<'a> Gains<'a> {
    /// Compares all families.
    ///
    /// # Errors
    /// As [`families`].
    pub fn of(predicted: &'a Predicted) -> Result<Self, CliError> {
        let all = families(predicted)?;
        let of_family = |own: usize| {
            let gains = (0..predicted.sizes.len()).map(|size| Gain::of(&all, own, size));
            (all[own].name, gains.collect())
        };
        Ok(Gains { of: (0..all.len()).map(of_family).collect() })
    }

    /// A row for each size and family, the fastest family of each size first.
    pub fn report(&self, predicted: &Predicted) -> Report {
        let mut columns = vec![Column::number("bytes", "bytes"), Column::text("family", "family")];
        columns.extend(Gain::columns());
        let mut rows = Vec::new();
        for (size, &bytes) in predicted.sizes.iter().enumerate() {
            let mut of_size: Vec<(&str, &Gain<'_>)> =
                self.of.iter().map(|(family, gains)| (*family, &gains[size])).collect();
            of_size.sort_by(|a, b| a.1.ns.total_cmp(&b.1.ns));
            rows.extend(of_size.into_iter().map(|(family, gain)| {
                let mut cells = vec![Cell::new(bytes, sizes::show(bytes)), Cell::text(family)];
                cells.extend(gain.cells());
                cells
            }));
        }
        let mut notes = vec![
            "Predicted by the network model, not measured. Gain: the time of the best other family over \
             that of this one. The fastest algorithm of a family counts; families with equal times are \
             not compared."
                .to_owned(),
        ];
        notes.extend_from_slice(&predicted.notes);
        Report {
            about: predicted.about(),
            heading: format!("{}: predicted gain over the best other family", predicted.subject()),
            columns,
            rows,
            notes,
        }
    }
}
