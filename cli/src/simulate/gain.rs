//! How much faster families of algorithms are than the best of the others, by size.

use serde_json::Value;

use super::families::{best_other, families};
use super::predict::Predicted;
use crate::cells::{Cell, Column, decimal};
use crate::error::CliError;
use crate::report::Report;
use crate::sizes;

/// The gains of all families; see [`Gain`].
pub struct Gains<'a> {
    /// By family: its name, and its gain at each size.
    pub of: Vec<(&'a str, Vec<Gain<'a>>)>,
}

/// A family at a size.
pub struct Gain<'a> {
    /// Bytes of the call.
    pub bytes: u64,
    /// The fastest schedule of the family: its algorithm, its ports, what it takes.
    pub algorithm: &'a str,
    pub ports: u32,
    pub ns: f64,
    /// The time of the best other family over that, and its algorithm; 1 where all take as long.
    pub gain: f64,
    pub other: Option<&'a str>,
}

impl<'a> Gains<'a> {
    /// Compares all families.
    ///
    /// # Errors
    /// As [`families`].
    pub fn of(predicted: &'a Predicted) -> Result<Self, CliError> {
        let all = families(predicted)?;
        let at = |own: usize, size: usize, bytes: u64| {
            let fastest = all[own].fastest[size];
            let other = best_other(&all, own, size);
            Gain {
                bytes,
                algorithm: &fastest.algorithm,
                ports: fastest.ports,
                ns: fastest.ns(size),
                gain: other.map_or(1.0, |(_, gain)| gain),
                other: other.map(|(other, _)| all[other].fastest[size].algorithm.as_str()),
            }
        };
        let sizes = predicted.sizes();
        let of_family = |own: usize| {
            let gains = sizes.iter().enumerate().map(|(size, &bytes)| at(own, size, bytes));
            (all[own].name, gains.collect())
        };
        Ok(Gains { of: (0..all.len()).map(of_family).collect() })
    }

    /// A row for each size and family, the fastest of each size first.
    pub fn report(&self, predicted: &Predicted) -> Report {
        let columns = vec![
            Column::number("bytes", "bytes"),
            Column::text("family", "family"),
            Column::text("algorithm", "algorithm"),
            Column::number("ports", "ports").yields(1),
            Column::number("predicted_us", "predicted us"),
            Column::number("gain", "gain"),
            Column::text("best_other", "best other"),
        ];
        let mut rows = Vec::new();
        for (size, bytes) in predicted.sizes().into_iter().enumerate() {
            let mut of_size: Vec<(&str, &Gain<'_>)> =
                self.of.iter().map(|(family, gains)| (*family, &gains[size])).collect();
            of_size.sort_by(|a, b| a.1.ns.total_cmp(&b.1.ns));
            rows.extend(of_size.into_iter().map(|(family, gain)| {
                vec![
                    Cell::new(bytes, sizes::show(bytes)),
                    Cell::text(family),
                    Cell::text(gain.algorithm),
                    Cell::count(gain.ports),
                    Cell::new(gain.ns / 1e3, decimal(gain.ns / 1e3, 2)),
                    Cell::new(gain.gain, format!("{:.2}", gain.gain)),
                    gain.other.map_or_else(Cell::none, Cell::text),
                ]
            }));
        }
        let mut notes = vec![
            "Predicted by the network model, not measured. Gain: the time of the best other family over \
             that of this one, of whose algorithms the fastest counts; families that take as long as \
             each other are not compared."
                .to_owned(),
        ];
        notes.extend_from_slice(&predicted.notes);
        Report {
            about: vec![
                ("predicted", Value::from(true)),
                ("collective", Value::from(predicted.collective.name())),
                ("torus", Value::from(predicted.shape.to_string())),
                ("machine", Value::from(predicted.machine.as_str())),
            ],
            heading: format!("{}: predicted gain over the best other family", predicted.subject()),
            columns,
            rows,
            notes,
        }
    }
}
