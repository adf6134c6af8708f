//! Compares predictions with measured times, individually and in groups.

use std::collections::BTreeMap;

use hopbine_torus::fit::{Accuracy, Intervals, Regrets};

use crate::measured::cases::MeasuredCase;

/// A measured time and its prediction.
pub struct Judged<'a> {
    pub case: &'a MeasuredCase,
    /// The predicted time in microseconds.
    pub us: f64,
    /// Whether the measured time is in the predicted interval.
    is_covered: bool,
}

impl<'a> Judged<'a> {
    /// Compares a prediction with its measured time.
    pub fn new(case: &'a MeasuredCase, us: f64, intervals: &Intervals) -> Self {
        let [low, high] = intervals.around(case.class(), case.row.shape.n_ranks(), us);
        Judged { case, us, is_covered: (low..=high).contains(&case.row.us) }
    }

    /// ln(predicted / measured).
    pub fn error(&self) -> f64 {
        (self.us / self.case.row.us).ln()
    }
}

/// A group of measured times.
pub struct Group {
    /// Collective, algorithm, shape and size class; `all` for each that is not fixed.
    pub key: [String; 4],
    pub accuracy: Accuracy,
    /// Fraction of the measured times that are in the predicted intervals.
    pub coverage: f64,
    pub regrets: Option<Regrets>,
}

/// The groupings: whether each fixes collective, algorithm, shape and size class.
const LEVELS: [[bool; 4]; 6] = [
    [false, false, false, false],
    [false, false, true, false],
    [true, false, false, false],
    [false, false, false, true],
    [true, true, false, false],
    [true, true, true, true],
];

/// The groups: all times; the times of each shape, collective, size class and algorithm; with `details` also of each
/// algorithm by shape and size class.
pub fn groups(judged: &[Judged<'_>], details: bool) -> Vec<Group> {
    let n_levels = LEVELS.len() - usize::from(!details);
    LEVELS[..n_levels].iter().flat_map(|level| groups_of(judged, *level)).collect()
}

fn groups_of(judged: &[Judged<'_>], level: [bool; 4]) -> Vec<Group> {
    // Sorted by the collective's name, the algorithm's name, the shape's ranks and the size class.
    let mut groups: BTreeMap<_, Vec<&Judged<'_>>> = BTreeMap::new();
    for one in judged {
        let row = &one.case.row;
        let key = (
            level[0].then(|| row.collective.name()),
            level[1].then(|| row.family()),
            level[2].then(|| (row.shape.n_ranks(), row.shape.to_string())),
            level[3].then(|| one.case.class().size),
        );
        groups.entry(key).or_default().push(one);
    }
    let group = |((collective, family, shape, sizes), of): (_, Vec<&Judged<'_>>)| {
        let all = || "all".to_owned();
        let collective: Option<&str> = collective;
        let shape: Option<(u32, String)> = shape;
        let sizes: Option<hopbine_torus::fit::SizeClass> = sizes;
        let family: Option<String> = family;
        let errors: Vec<f64> = of.iter().map(|one| one.error()).collect();
        let n_covered = of.iter().filter(|one| one.is_covered).count();
        Group {
            key: [
                collective.map_or_else(all, str::to_owned),
                family.unwrap_or_else(all),
                shape.map_or_else(all, |(_, shape)| shape),
                sizes.map_or_else(all, |sizes| sizes.name().to_owned()),
            ],
            accuracy: Accuracy::of(&errors).expect("a group has a time"),
            coverage: n_covered as f64 / of.len() as f64,
            regrets: Regrets::of(&regrets(&of)),
        }
    };
    groups.into_iter().map(group).collect()
}

/// The regret of each cell (shape, collective, bytes) with a choice of algorithms.
fn regrets(judged: &[&Judged<'_>]) -> Vec<f64> {
    let mut cells: BTreeMap<_, Vec<(f64, f64)>> = BTreeMap::new();
    for one in judged {
        let row = &one.case.row;
        let cell = (row.shape.to_string(), row.collective.name(), row.bytes);
        cells.entry(cell).or_default().push((one.us, row.us));
    }
    cells.values().filter_map(|pairs| Regrets::of_cell(pairs)).collect()
}
