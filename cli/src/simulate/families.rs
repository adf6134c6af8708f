//! Comparison of families of algorithms. The time of a family is that of its fastest schedule.

use hopbine_torus::registry;

use super::predict::{Predicted, Series};
use crate::cells::{Cell, Column, decimal};
use crate::error::CliError;

/// Times that differ by less than this fraction count as equal.
pub const EQUAL: f64 = 1e-3;

/// A family with its fastest schedule at each size.
pub struct Family<'a> {
    pub name: &'a str,
    pub fastest: Vec<&'a Series>,
}

impl Family<'_> {
    /// Time in ns of a call, by the index of its size.
    pub fn ns(&self, size: usize) -> f64 {
        self.fastest[size].ns(size)
    }
}

/// All families of a prediction, in the order of their first schedules.
///
/// # Errors
/// [`CliError::Usage`] for calls of 0 bytes, or if there is only one family.
pub fn families(predicted: &Predicted) -> Result<Vec<Family<'_>>, CliError> {
    let refuse = |message: String| Err(CliError::Usage(message));
    if predicted.sizes.contains(&0) {
        return refuse("a call of 0 bytes moves nothing: give --bytes above 0".into());
    }
    let mut found: Vec<Family<'_>> = Vec::new();
    for series in &predicted.series {
        let name = registry::family_of(&series.algorithm);
        match found.iter_mut().find(|family| family.name == name) {
            None => found.push(Family { name, fastest: vec![series; series.played.len()] }),
            Some(family) => {
                for (size, fastest) in family.fastest.iter_mut().enumerate() {
                    if series.ns(size) < fastest.ns(size) {
                        *fastest = series;
                    }
                }
            }
        }
    }
    match &found[..] {
        [] | [_] => refuse(format!(
            "there is nothing to compare: the only family of algorithms on {} is {}",
            predicted.shape,
            found.first().map_or("none", |family| family.name)
        )),
        [..] => Ok(found),
    }
}

/// A family at one size, compared with the other families.
pub struct Gain<'a> {
    /// The fastest schedule of the family: its algorithm, ports and time.
    pub algorithm: &'a str,
    pub ports: u32,
    pub ns: f64,
    /// The time of the best other family divided by `ns`, and its algorithm; 1 if all families take the same time.
    pub gain: f64,
    pub other: Option<&'a str>,
}

impl<'a> Gain<'a> {
    /// Compares a family at a size, both given by their indices.
    pub fn of(families: &[Family<'a>], own: usize, size: usize) -> Self {
        let fastest = families[own].fastest[size];
        let other = best_other(families, own, size);
        Gain {
            algorithm: &fastest.algorithm,
            ports: fastest.ports,
            ns: fastest.ns(size),
            gain: other.map_or(1.0, |(_, gain)| gain),
            other: other.map(|(other, _)| families[other].fastest[size].algorithm.as_str()),
        }
    }

    /// The columns for [`Gain::cells`].
    pub fn columns() -> [Column; 5] {
        [
            Column::text("algorithm", "algorithm"),
            Column::number("ports", "ports").yields(1),
            Column::number("predicted_us", "predicted us"),
            Column::number("gain", "gain"),
            Column::text("best_other", "best other"),
        ]
    }

    /// The comparison, as cells of a row.
    pub fn cells(&self) -> [Cell; 5] {
        [
            Cell::text(self.algorithm),
            Cell::count(self.ports),
            Cell::new(self.ns / 1e3, decimal(self.ns / 1e3, 2)),
            Cell::new(self.gain, format!("{:.2}", self.gain)),
            self.other.map_or_else(Cell::none, Cell::text),
        ]
    }
}

/// Among the families whose time differs from this family's, the index of the fastest and the ratio of its time to
/// this family's; `None` if all times are equal.
fn best_other(families: &[Family<'_>], own: usize, size: usize) -> Option<(usize, f64)> {
    let ns = families[own].ns(size);
    let others = families.iter().map(|other| other.ns(size) / ns).enumerate();
    others.filter(|(_, gain)| (gain - 1.0).abs() > EQUAL).min_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
pub mod tests {
    use hopbine_torus::Collective;
    use hopbine_torus::sim::{Outcome, TimeBreakdown};

    use super::*;

    /// Predictions with these times.
    pub fn predicted(shape: &str, sizes: &[u64], times: &[(&str, &[f64])]) -> Predicted {
        let series = times.iter().map(|(algorithm, times)| Series {
            algorithm: (*algorithm).to_owned(),
            ports: 1,
            is_exact: true,
            bounds: None,
            played: times
                .iter()
                .map(|&ns| Outcome { ns, breakdown: TimeBreakdown::default(), spans: vec![] })
                .collect(),
        });
        Predicted {
            collective: Collective::Allreduce,
            shape: shape.parse().unwrap(),
            machine: "ideal-torus".to_owned(),
            sizes: sizes.to_vec(),
            series: series.collect(),
            notes: vec![],
        }
    }

    #[test]
    fn a_family_is_as_fast_as_its_fastest() {
        let times: [(&str, &[f64]); 4] = [
            ("bine", &[9.0, 4.0]),
            ("bine-l", &[2.0, 8.0]),
            ("swing", &[2.0001, 5.0]),
            ("bucket", &[6.0, 2.0]),
        ];
        let predicted = predicted("4x4", &[8, 64], &times);
        let found = families(&predicted).unwrap();
        assert_eq!(
            found.iter().map(|family| family.name).collect::<Vec<_>>(),
            ["bine", "swing", "bucket"]
        );
        assert_eq!([found[0].ns(0), found[0].ns(1)], [2.0, 4.0]);
        assert_eq!(found[0].fastest[0].algorithm, "bine-l");
        // Families with equal times are not compared.
        let other = |own, size| {
            best_other(&found, own, size).map(|(other, gain)| (found[other].name, gain))
        };
        assert_eq!(other(0, 0), Some(("bucket", 3.0)));
        assert_eq!(other(0, 1), Some(("bucket", 0.5)));
        assert_eq!(other(2, 1), Some(("bine", 2.0)));
    }

    #[test]
    fn one_family_is_not_compared() {
        let times: [(&str, &[f64]); 2] = [("bine", &[9.0]), ("bine-l", &[2.0])];
        let message = families(&predicted("4x4", &[8], &times)).err().unwrap().to_string();
        assert!(message.contains("the only family of algorithms on 4x4 is bine"), "{message}");
        let times: [(&str, &[f64]); 2] = [("bine", &[9.0]), ("bucket", &[2.0])];
        let message = families(&predicted("4x4", &[0], &times)).err().unwrap().to_string();
        assert!(message.contains("above 0"), "{message}");
    }
}
