//! The times of all schedules by size, the fastest first.

use hopbine_torus::Collective;
use hopbine_torus::sim::{Outcome as Played, TimeCategory};
use hopbine_torus::sizes;

use super::predict::{Predicted, Series};
use crate::cells::{Cell, Column, decimal};
use crate::report::Report;

/// A row for each size and schedule. `explains` adds the time by category.
pub fn report(predicted: &Predicted, explains: bool) -> Report {
    let Predicted { collective, shape, machine, sizes: all_sizes, series: all, notes } = predicted;
    let is_barrier = *collective == Collective::Barrier;
    let has_bounds = all.iter().any(|series| series.bounds.is_some());
    let mut columns = vec![
        Column::text("algorithm", "algorithm"),
        Column::number("ports", "ports").yields(1),
        Column::number("bytes", "bytes").only_if(!is_barrier),
        Column::number("predicted_us", "predicted us"),
        Column::number("goodput_gb_per_s", "GB/s").yields(2).only_if(!is_barrier),
        Column::number("over_best", "over best"),
        Column::text("symmetry", "").yields(4),
        Column::number("bound_us", "bound us").only_if(has_bounds && !explains).yields(3),
        Column::number("gap", "gap").only_if(has_bounds && !explains).yields(3),
        Column::text("decided_by", "by").only_if(has_bounds && !explains).yields(3),
    ];
    columns.extend(TimeCategory::ALL.map(|category| {
        Column::number(category.name(), category.name()).only_if(explains).yields(3)
    }));
    let mut rows = Vec::new();
    for (index, &bytes) in all_sizes.iter().enumerate() {
        let mut of_size: Vec<(&Series, &Played)> =
            all.iter().map(|series| (series, &series.played[index])).collect();
        of_size.sort_by(|a, b| a.1.ns.total_cmp(&b.1.ns));
        let best = of_size.first().map_or(1.0, |(_, played)| played.ns);
        for (series, played) in of_size {
            let goodput = bytes as f64 / played.ns;
            let mut cells = vec![
                Cell::text(&series.algorithm),
                Cell::count(series.ports),
                Cell::new(bytes, sizes::show(bytes)),
                Cell::new(played.ns / 1e3, decimal(played.ns / 1e3, 2)),
                Cell::new(goodput, decimal(goodput, 3)),
                Cell::new(played.ns / best, format!("{:.2}", played.ns / best)),
                Cell::new(
                    if series.is_exact { "exact" } else { "approximate" },
                    if series.is_exact { "" } else { "~" },
                ),
            ];
            let bound = series.bounds.map(|bounds| bounds.call(bytes as f64));
            cells.extend(match bound.filter(|(_, ns)| *ns > 0.0) {
                Some((kind, ns)) => [
                    Cell::new(ns / 1e3, decimal(ns / 1e3, 2)),
                    Cell::new(played.ns / ns, format!("{:.2}", played.ns / ns)),
                    Cell::text(kind.name()),
                ],
                None => [Cell::none(), Cell::none(), Cell::none()],
            });
            cells.extend(TimeCategory::ALL.map(|category| {
                let share = played.breakdown.of(category) / played.ns;
                Cell::new(played.breakdown.of(category) / 1e3, format!("{:.0}%", 100.0 * share))
            }));
            rows.push(cells);
        }
    }
    let mut all_notes = vec![
        "Predicted by the network model, not measured; the fastest of each size first.".to_owned(),
    ];
    if has_bounds && !explains {
        all_notes.push(
            "Bound: lower bound for any schedule with as many ports, and what limits it. Gap: predicted time \
             over bound."
                .to_owned(),
        );
    }
    all_notes.extend_from_slice(notes);
    Report {
        about: predicted.about(),
        heading: format!("{collective} on {shape}, predicted for {machine}"),
        columns,
        rows,
        notes: all_notes,
    }
}
