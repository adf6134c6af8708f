//! Contents of the rows of a run.

use std::path::Path;

use hopbine::Wire;
use hopbine_torus::Collective;
use hopbine_torus::sizes;
use serde_json::{Value, json};

use super::Args;
use super::measure::Measured;
use super::ranks::Ranks;
use super::reference::CollectiveCase;
use super::stats::{self, RowTimes};
use super::tasks::Chosen;
use crate::cells::{Cell, Column};
use crate::curves::{self, Chart, Curve};
use crate::error::CliError;
use crate::report::ReportHead;

/// The note on where the times were measured.
pub fn where_measured(ranks: &Ranks, has_workers: bool) -> String {
    let config = &ranks.config;
    let n_ranks = config.shape.n_ranks();
    if let Some(world) = &ranks.world {
        let who = if has_workers { "worker threads" } else { "the calling threads" };
        let info = world.info();
        return format!(
            "{} ({}): {n_ranks} ranks are processes; {who} drive the ports.",
            info.backend, info.device.library
        );
    }
    if let Some(simulation) = &ranks.simulation {
        return format!(
            "Simulated: {n_ranks} ranks in one thread, seed {}. Simulated time says nothing about a network.",
            simulation.seed
        );
    }
    let wire = match config.wire {
        Wire::Network => "Emulated",
        Wire::Memory => "Shared memory",
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let who = if has_workers { "worker threads" } else { "the calling threads" };
    format!(
        "{wire}: {} on {} of this host; {who} drive the ports. These times say nothing about a \
         network.",
        if n_ranks == 1 {
            "1 rank is a thread".to_owned()
        } else {
            format!("{n_ranks} ranks are threads")
        },
        if cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") },
    )
}

/// The cells of a row.
pub fn row(args: &Args, case: &CollectiveCase, chosen: &Chosen, measured: &Measured) -> Vec<Cell> {
    let bytes = case.total_bytes();
    let is_well = measured.wrong.is_empty();
    let mut cells = vec![
        Cell::text(args.collective.name()),
        Cell::text(args.place.torus.to_string()),
        args.segment.map_or_else(Cell::none, Cell::count),
        Cell::new(bytes, sizes::show(bytes)),
        Cell::text(&chosen.algorithm),
        Cell::count(chosen.ports),
        Cell::count(chosen.steps as u64),
    ];
    match &chosen.traffic {
        None => cells.extend((0..3).map(|_| Cell::none())),
        Some(traffic) => {
            let sent = |multiple: f64| {
                let sent = (multiple * bytes as f64).round() as u64;
                Cell::new(sent, sizes::show(sent))
            };
            cells.push(Cell::count(traffic.max_messages as u64));
            cells.extend([traffic.between_nodes, traffic.inside_nodes].map(sent));
        }
    }
    match RowTimes::of(measured.seconds.clone()) {
        None => cells.extend((0..5).map(|_| Cell::none())),
        Some(times) => {
            let time = |seconds: f64| Cell::new(seconds, stats::show(seconds));
            cells.push(Cell::count(times.n as u64));
            cells.extend([times.median, times.p10, times.p90].map(time));
            let bandwidth = bytes as f64 / times.median;
            cells.push(match bytes {
                0 => Cell::none(),
                _ => Cell::new(bandwidth, stats::show_rate(bandwidth)),
            });
        }
    }
    let wrong: Value = measured
        .wrong
        .iter()
        .map(|wrong| {
            json!({
                "rank": wrong.rank,
                "index": wrong.index,
                "expected": wrong.expected,
                "found": wrong.found,
                "n_wrong": wrong.n_wrong,
            })
        })
        .collect();
    let verdict = match measured.wrong.len() {
        0 => "yes".to_owned(),
        1 => "WRONG on 1 rank".to_owned(),
        n => format!("WRONG on {n} ranks"),
    };
    cells.extend([Cell::new(is_well, verdict), Cell::new(wrong, "")]);
    cells
}

/// The parts of the report that precede the rows.
pub fn head(args: &Args, ranks: &Ranks, chosen: &[Chosen]) -> ReportHead {
    let has_nodes = args.place.torus.node_dim().is_some();
    let shape = args.place.torus.to_string();
    let collective = args.collective;
    let longest_name = chosen.iter().map(|chosen| chosen.algorithm.len()).max().unwrap_or(0);
    ReportHead {
        about: vec![
            ("collective", Value::from(collective.name())),
            ("torus", Value::from(shape)),
            ("type", Value::from(args.dtype.name())),
            ("op", collective.is_reduction().then_some(args.op.name()).into()),
            ("root", collective.is_rooted().then_some(args.root).into()),
            ("seed", Value::from(args.seed)),
            ("backend", Value::from(ranks.backend())),
        ],
        heading: heading(args),
        columns: vec![
            // `hopbine validate` reads files of rows, which therefore contain their collective and torus.
            Column::hidden("collective"),
            Column::hidden("torus"),
            Column::hidden("segment_bytes"),
            Column::number("bytes", "bytes").expects(8),
            Column::text("algorithm", "algorithm").expects(longest_name),
            Column::number("ports", "ports").yields(1),
            Column::number("steps", "steps").yields(2),
            Column::number("messages", "messages").yields(5).only_if(has_nodes),
            Column::number("between_nodes_bytes", "between").yields(6).only_if(has_nodes),
            Column::number("inside_nodes_bytes", "inside").yields(6).only_if(has_nodes),
            Column::number("iterations", "iterations").yields(4),
            Column::number("median_s", "median").expects(7),
            Column::number("p10_s", "p10").expects(7).yields(3),
            Column::number("p90_s", "p90").expects(7),
            Column::number("bandwidth_bytes_per_s", "bandwidth").expects(9),
            Column::text("verified", "verified"),
            Column::hidden("wrong"),
        ],
    }
}

/// The heading: collective, torus, type, operator and root.
fn heading(args: &Args) -> String {
    let collective = args.collective;
    let mut heading = format!("{collective} on {}", args.place.torus);
    if collective != Collective::Barrier {
        heading = format!("{heading}, {}", args.dtype);
    }
    if collective.is_reduction() {
        heading = format!("{heading} {}", args.op);
    }
    if collective.is_rooted() {
        heading = format!("{heading}, root {}", args.root);
    }
    heading
}

/// Draws the times of all algorithms.
///
/// # Errors
/// As [`curves::draw`].
pub fn draw(
    args: &Args,
    mut curves: Vec<Curve>,
    where_measured: &str,
    path: &Path,
) -> Result<(), CliError> {
    let part = curves::smallest(&mut curves)
        .map_or(String::new(), |all| format!(": the {} fastest of {all} algorithms", curves.len()));
    let title = format!("{}{part}. {where_measured}", heading(args));
    let chart = Chart { of: args.collective.name().to_owned(), curves };
    curves::draw(&title, "time, us", &[chart], None, path)
}
