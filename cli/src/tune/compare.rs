//! Predicted times of calls with a table, with the reference table and with the best algorithm, and their lower
//! bounds.

use std::collections::HashMap;
use std::fmt::Write as _;

use hopbine::Tuning;
use hopbine_torus::bounds::Bounds;
use hopbine_torus::choose::Case;
use hopbine_torus::sim::{Machine, Network};
use hopbine_torus::{Collective, Shape, sizes};
use serde_json::Value;

use super::cases::{SimulatedCases, case};
use super::{SizeInterval, segment};
use crate::cells::{Cell as Entry, Column, decimal};
use crate::error::CliError;
use crate::report::Report;

/// A choice is near the best if its time is at most this multiple of the best time.
const NEAR: f64 = 1.03;
/// Size in bytes from which on calls count as long: bandwidth limits them.
const LONG: u64 = 64 << 20;

/// The calls of a collective on a shape.
pub struct Compared {
    pub collective: Collective,
    pub shape: Shape,
    pub(super) calls: Vec<SizedCall>,
}

/// A call with a number of ports and a size.
pub(super) struct SizedCall {
    pub(super) ports: u32,
    pub(super) bytes: u64,
    /// Time with the tuned table, if there is one. This and the other times are in ns.
    new: Option<f64>,
    reference: f64,
    pub(super) best: f64,
    /// Time of the registry's best algorithm, and its name.
    pub(super) row: (f64, String),
    /// Lower bound of the time for any algorithm.
    bound: f64,
    /// The choice of the reference table, and the best algorithm.
    pub(super) names: [String; 2],
}

impl Compared {
    /// Predicts calls with the tuned table, with `reference_table` and with all algorithms, for the given numbers of
    /// ports.
    ///
    /// # Errors
    /// [`CliError`] if a table chooses an algorithm that does not support the shape.
    pub fn new(
        (machine, network): (&Machine, &Network),
        (collective, shape): (Collective, &Shape),
        cases: &SimulatedCases<'_>,
        by_ports: &[(u32, Option<&[SizeInterval]>)],
        reference_table: &Tuning,
    ) -> Result<Self, CliError> {
        let mut others: HashMap<(String, u32), Case> = HashMap::new();
        let blocks = u64::from(collective.n_blocks(shape.n_ranks()));
        let limits = machine.limits(network);
        let mut calls = Vec::new();
        for &(ports, intervals) in by_ports {
            let bounds = Bounds::new(collective, ports, &limits);
            for (size, &bytes) in cases.sizes.iter().enumerate() {
                let is_its =
                    |interval: &&SizeInterval| interval.up_to.is_none_or(|up_to| bytes <= up_to);
                let by = |interval: &SizeInterval| {
                    let case = cases
                        .find(&interval.algorithm, interval.ports)
                        .expect("it was chosen of these");
                    cases.ns(case, size, segment(interval))
                };
                let choice = reference_table.choose(collective, shape, bytes / blocks, ports);
                let name = &*choice.algorithm.name;
                let reference = match cases.find(name, choice.ports) {
                    Some(case) => cases.ns(case, size, choice.segment_bytes),
                    None => {
                        let key = (name.to_owned(), choice.ports);
                        if !others.contains_key(&key) {
                            let other = case(network, shape, &choice.algorithm, choice.ports)?;
                            others.insert(key.clone(), other);
                        }
                        others[&key].ns(machine, bytes, choice.segment_bytes)
                    }
                };
                let (best, best_ns) = cases.best(size, ports);
                let (row, row_ns) = cases.best_row(size, ports);
                calls.push(SizedCall {
                    ports,
                    bytes,
                    new: intervals.and_then(|intervals| intervals.iter().find(is_its)).map(by),
                    reference,
                    best: best_ns,
                    row: (row_ns, row.algorithm.name.to_string()),
                    bound: bounds.call(bytes as f64).1,
                    names: [name.to_owned(), best.algorithm.name.to_string()],
                });
            }
        }
        Ok(Compared { collective, shape: shape.clone(), calls })
    }
}

/// Sorts values in ascending order.
fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Percentage of ratios that are near the best.
fn near(over_best: &[f64]) -> f64 {
    let near = over_best.iter().filter(|&&ratio| ratio <= NEAR).count();
    100.0 * near as f64 / over_best.len() as f64
}

/// Two lines for each collective: the tuned table compared with the reference table, and both compared with the best.
pub fn summary(reference_table: &str, compared: &[Compared]) -> String {
    let mut text = format!(
        "Predicted time over that of table {reference_table}, by cells (shape, ports, size):\n"
    );
    for collective in Collective::ALL {
        let own = || compared.iter().filter(|all| all.collective == collective);
        let calls = || own().flat_map(|all| &all.calls);
        let ratios = sorted(calls().filter_map(|call| Some(call.new? / call.reference)));
        if ratios.is_empty() {
            continue;
        }
        let at = |part: usize| ratios[(ratios.len() - 1) * part / 2];
        let [least, median, most] = [0, 1, 2].map(at);
        let faster = ratios.iter().filter(|&&ratio| ratio < 1.0 / NEAR).count();
        let new = sorted(calls().filter_map(|call| Some(call.new? / call.best)));
        let old = sorted(calls().map(|call| call.reference / call.best));
        let _ = writeln!(
            text,
            "  {:15} {:4} cells: median {median:.2}, {least:.2} to {most:.2}; {faster} are more than 3 % faster;\n  \
             {:15} within 3 % of the best algorithm: {:.1} % of the cells, with {reference_table} {:.1} %",
            collective.name(),
            ratios.len(),
            "",
            near(&new),
            near(&old),
        );
    }
    text
}

/// A row for each collective and shape: the table compared with the best algorithm, and this with its lower bound.
pub fn report(machine: &Machine, table: &str, compared: &[Compared]) -> Report {
    let all =
        sorted(compared.iter().flat_map(|all| &all.calls).map(|call| call.reference / call.best));
    let mean = |ratios: &[f64]| ratios.iter().sum::<f64>() / ratios.len() as f64;
    let ratio = |value: f64| Entry::new(value, format!("{value:.3}"));
    let rows = compared.iter().map(|Compared { collective, shape, calls }| {
        let over_best = sorted(calls.iter().map(|call| call.reference / call.best));
        let worst =
            calls.iter().max_by(|a, b| (a.reference / a.best).total_cmp(&(b.reference / b.best)));
        let worst = worst.expect("there are sizes");
        let most = calls.iter().map(|call| call.ports).max().unwrap_or(1);
        let with_all = || calls.iter().filter(|call| call.ports == most);
        let gaps = |is_its: &dyn Fn(&SizedCall) -> bool| {
            sorted(
                with_all()
                    .filter(|call| is_its(call) && call.bound > 0.0)
                    .map(|call| call.best / call.bound),
            )
        };
        let (short, long) = (gaps(&|call| call.bytes < LONG), gaps(&|call| call.bytes >= LONG));
        let middle =
            |gaps: &[f64]| gaps.get(gaps.len() / 2).copied().map_or_else(Entry::none, ratio);
        let [name, best] = &worst.names;
        vec![
            Entry::text(collective.name()),
            Entry::text(shape.to_string()),
            Entry::count(calls.len() as u64),
            Entry::new(near(&over_best), format!("{} %", decimal(near(&over_best), 1))),
            ratio(mean(&over_best)),
            ratio(worst.reference / worst.best),
            Entry::text(format!(
                "{name} for {best}, {}, ports {}",
                sizes::show(worst.bytes),
                worst.ports
            )),
            middle(&short),
            long.last().copied().map_or_else(Entry::none, ratio),
        ]
    });
    let rows: Vec<Vec<Entry>> = rows.collect();
    Report {
        about: vec![
            ("predicted", Value::from(true)),
            ("machine", Value::from(&*machine.name)),
            ("table", Value::from(table)),
            ("cells", Value::from(all.len())),
            ("near_percent", Value::from(near(&all))),
        ],
        heading: format!("Table {table} on {}, predicted: time of its choice over that of the best algorithm", machine.name),
        columns: vec![
            Column::text("collective", "collective"),
            Column::text("torus", "torus"),
            Column::number("cells", "cells"),
            Column::number("near_percent", "within 3 %"),
            Column::number("mean_over_best", "mean"),
            Column::number("worst_over_best", "worst"),
            Column::text("worst", "where").wraps(),
            Column::number("short_over_bound", "best over bound"),
            Column::number("long_over_bound", "from 64 MiB"),
        ],
        rows,
        notes: vec![
            format!(
                "{} cells (collective, shape, ports, size): {:.2} % within 3 % of the best, mean {:.4}, worst {:.3}.",
                all.len(),
                near(&all),
                mean(&all),
                all.last().copied().unwrap_or(1.0),
            ),
            "Best over bound, with all ports: the median for sizes below 64 MiB, and the largest from 64 MiB on."
                .to_owned(),
        ],
    }
}
