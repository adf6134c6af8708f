//! Reports of the measurements: as text and as a table.

use std::fmt::Write as _;

use hopbine_torus::fit::quantile;
use hopbine_torus::{Collective, sizes as units};

use super::cell::CellCandidate;
use super::median::Median;
use super::state::MeasureState;
use crate::cells::{Cell as Entry, Column};
use crate::report::Report;
use crate::tune::merge::short;

/// The calls that are faster than with the reference table, with confidence intervals.
pub(super) fn compared(reference_table: &str, state: &MeasureState) -> String {
    let mut text = format!(
        "Measured time over that of table {reference_table}; in brackets the 99 % interval of the median, by order statistics:\n"
    );
    for collective in Collective::ALL {
        let own = || state.found().iter().filter(|found| found.collective == collective.name());
        let faster: Vec<_> =
            own().filter_map(|found| Some((found, found.faster.as_ref()?))).collect();
        if own().next().is_none() {
            continue;
        }
        let _ = writeln!(
            text,
            "  {:15} {:4} calls, {} of them faster",
            collective.name(),
            own().count(),
            faster.len()
        );
        for (found, (candidate, Median { value, low, high })) in faster {
            let reference_choice = &found.timed[0].candidate;
            let _ = writeln!(
                text,
                "    {:>8}: {} for {}: {value:.2} ({low:.2} to {high:.2})",
                units::show(found.bytes),
                shown(candidate),
                shown(reference_choice),
            );
        }
    }
    text
}

fn shown(CellCandidate { algorithm, ports, segment_bytes }: &CellCandidate) -> String {
    let plural = if *ports == 1 { "" } else { "s" };
    match *segment_bytes {
        u64::MAX => format!("{algorithm} ({ports} port{plural})"),
        most => format!("{algorithm} ({ports} port{plural}, {})", short(most)),
    }
}

/// All measurements, one row each.
pub(super) fn log(state: &MeasureState) -> Report {
    let rows = state.found().iter().flat_map(|found| {
        found.timed.iter().enumerate().filter(|(_, timed)| !timed.rounds.is_empty()).map(
            |(at, timed)| {
                let mut sorted = timed.rounds.clone();
                sorted.sort_by(f64::total_cmp);
                let CellCandidate { algorithm, ports, segment_bytes } = &timed.candidate;
                let interval = Median::of(&timed.rounds, 0.95);
                let us = |seconds: Option<f64>| {
                    seconds.map_or_else(Entry::none, |seconds| {
                        Entry::new(seconds * 1e6, seconds * 1e6)
                    })
                };
                let is_faster =
                    found.faster.as_ref().filter(|(other, _)| *other == timed.candidate);
                let ratio = is_faster
                    .map_or_else(Entry::none, |(_, ratio)| Entry::new(ratio.value, ratio.value));
                vec![
                    Entry::text(&*found.collective),
                    Entry::count(found.bytes),
                    Entry::text(&**algorithm),
                    if *ports == 0 { Entry::none() } else { Entry::count(*ports) },
                    if *segment_bytes == u64::MAX {
                        Entry::none()
                    } else {
                        Entry::count(*segment_bytes)
                    },
                    Entry::new(at == 0, at == 0),
                    Entry::count(timed.rounds.len() as u64),
                    us(Some(quantile(&sorted, 0.5))),
                    us(interval.map(|interval| interval.low)),
                    us(interval.map(|interval| interval.high)),
                    ratio,
                ]
            },
        )
    });
    let rows = rows.collect();
    Report {
        columns: vec![
            Column::text("collective", "collective"),
            Column::number("bytes", "bytes"),
            Column::text("algorithm", "algorithm"),
            Column::number("ports", "ports"),
            Column::number("segment_bytes", "segment"),
            Column::text("is_chosen_before", "before"),
            Column::number("rounds", "rounds"),
            Column::number("median_us", "median us"),
            Column::number("low_us", "low"),
            Column::number("high_us", "high"),
            Column::number("anew_over_before", "over before"),
        ],
        rows,
        ..Report::default()
    }
}
