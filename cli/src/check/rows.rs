//! The table of verdicts.

use hopbine_torus::geometry::Topology;
use hopbine_torus::plan::Traffic;
use hopbine_torus::{Collective, LaneId, Shape, StepId};
use serde_json::{Value, json};

use super::judge::AlgorithmVerdict;
use crate::cells::{Cell, Column, IN_FLIGHT, decimal};
use crate::report::Report;

/// One row of the table.
pub struct CheckRow {
    /// The collective.
    pub collective: Collective,
    /// Name of the algorithm, or of the file of a schedule or of plans.
    pub algorithm: String,
    /// Number of ports.
    pub ports: usize,
    /// The roots that were checked, as requested.
    pub root: String,
    /// The result.
    pub verdict: AlgorithmVerdict,
}

/// The table of all rows. Up to `n_listed` violations of each row are listed below it.
pub fn report(shape: &Shape, rows: &[CheckRow], mut notes: Vec<String>, n_listed: usize) -> Report {
    let collective = rows.first().map(|row| row.collective);
    let is_rooted = collective.is_some_and(Collective::is_rooted);
    let has_nodes = shape.node_dim().is_some();
    let in_flight = |row: &CheckRow| row.verdict.traffic.as_ref().and_then(|found| found.in_flight);
    let has_windows = rows.iter().any(|row| in_flight(row).is_some());
    let mut columns =
        vec![Column::text("algorithm", "algorithm"), Column::number("ports", "ports")];
    if is_rooted {
        columns.push(Column::text("root", "root"));
    }
    columns.extend([
        Column::number("ranks", "ranks").yields(8),
        Column::number("steps", "steps").yields(1),
        Column::number("minimal_steps", "fewest").yields(4),
        Column::number("volume", "volume"),
        Column::number("minimal_volume", "minimum").yields(3),
        Column::number("hop_bytes", "hop-bytes").yields(2),
        Column::number("link_load", "link load"),
        Column::number("least_link_load", "least").yields(5),
        Column::number("link_gap", "gap").yields(5),
        Column::text("link", "busiest link").yields(6),
        Column::number("messages", "messages").yields(5),
        Column::number("in_flight", "in flight").yields(4).only_if(has_windows),
        Column::number("runs", "runs").yields(7),
        Column::number("between_nodes", "between").yields(4).only_if(has_nodes),
        Column::number("inside_nodes", "inside").yields(4).only_if(has_nodes),
        Column::hidden("n_violations"),
        Column::hidden("violations"),
        Column::text("verdict", "verdict"),
    ]);
    let mut cells = Vec::new();
    let mut listed = Vec::new();
    for row in rows {
        cells.push(row_cells(shape, row, is_rooted));
        let violations = &row.verdict.violations;
        for (root, violation) in violations.iter().take(n_listed) {
            let root = if is_rooted { format!(" root {root}") } else { String::new() };
            listed.push(format!("{} {} ports{root}: {violation}", row.algorithm, row.ports));
        }
        if violations.len() > n_listed {
            listed.push(format!("... and {} more", violations.len() - n_listed));
        }
    }
    if collective != Some(Collective::Barrier) {
        notes.insert(
            0,
            "Volume (sent by the busiest rank), hop-bytes (per rank) and link load are multiples \
             of n, the bytes of a rank's vector or of all its blocks. Lower bounds: minimum, of the \
             volume of any algorithm; fewest, of the steps of any with as many messages in a step; \
             least, of the link load of any algorithm. Gap: link load over least."
                .to_owned(),
        );
        if has_nodes {
            notes.push(
                "Per rank, between: sent to other nodes; inside: sent on its own node.".to_owned(),
            );
        }
    }
    if has_windows {
        notes.push(IN_FLIGHT.to_owned());
    }
    notes.extend(listed);
    let name = collective.map_or("", Collective::name);
    let n_wrong = rows.iter().filter(|row| !row.verdict.violations.is_empty()).count();
    let heading = match (rows.len(), n_wrong) {
        (1, 0) => format!("{name} on {shape}: proved"),
        (n, 0) => format!("{name} on {shape}: all {n} proved"),
        (n, wrong) => format!("{name} on {shape}: {wrong} of {n} WRONG"),
    };
    Report {
        about: vec![
            ("collective", Value::from(name)),
            ("torus", Value::from(shape.to_string())),
            ("proved", Value::from(n_wrong == 0)),
        ],
        heading,
        columns,
        rows: cells,
        notes,
    }
}

fn row_cells(shape: &Shape, row: &CheckRow, is_rooted: bool) -> Vec<Cell> {
    // The messages of a barrier are empty, so only their number is meaningful.
    let has_data = row.collective != Collective::Barrier;
    let traffic = row.verdict.traffic.as_ref();
    let count = |figure: fn(&Traffic) -> u64| match traffic {
        Some(traffic) => Cell::count(figure(traffic)),
        None => Cell::none(),
    };
    let multiple = |figure: fn(&Traffic) -> f64| match traffic {
        Some(traffic) if has_data => {
            let value = figure(traffic);
            Cell::new(value, decimal(value, 4))
        }
        _ => Cell::none(),
    };
    let minimum = row.verdict.minimum;
    let least_load = row.verdict.least_load.filter(|least| has_data && *least > 0.0);
    let gap = least_load.zip(traffic).map(|(least, traffic)| traffic.max_link_load / least);
    let rounded = |value: Option<f64>, digits| match value {
        Some(value) => Cell::new(value, decimal(value, digits)),
        None => Cell::none(),
    };
    let link = match traffic.and_then(|traffic| traffic.max_link).filter(|_| has_data) {
        None => Cell::none(),
        Some(link) => Cell::text(shape.link_name(link)),
    };
    let violations = &row.verdict.violations;
    let in_full: Value = violations
        .iter()
        .map(|(root, violation)| {
            json!({
                "root": root.0,
                "rank": violation.rank.0,
                "lane": violation.lane.map(LaneId::index),
                "step": violation.step.map(StepId::index),
                "position": violation.position.map(|position| position.0),
                "what": violation.fault.to_string(),
            })
        })
        .collect();
    let verdict = match violations.len() {
        0 => "proved".to_owned(),
        1 => "1 violation".to_owned(),
        n => format!("{n} violations"),
    };
    let mut cells = vec![Cell::text(&row.algorithm), Cell::count(row.ports as u64)];
    if is_rooted {
        cells.push(Cell::text(&row.root));
    }
    cells.extend([
        count(|traffic| u64::from(traffic.n_ranks)),
        count(|traffic| traffic.n_steps as u64),
        count(|traffic| u64::from(traffic.min_steps)),
        multiple(|traffic| traffic.max_sent),
        rounded(minimum.filter(|_| has_data), 4),
        multiple(|traffic| traffic.hop_bytes),
        multiple(|traffic| traffic.max_link_load),
        rounded(least_load, 4),
        rounded(gap, 2),
        link,
        count(|traffic| traffic.max_messages as u64),
        traffic.and_then(|traffic| traffic.in_flight).map_or_else(Cell::none, Cell::count),
        count(|traffic| traffic.max_runs as u64),
        multiple(|traffic| traffic.between_nodes),
        multiple(|traffic| traffic.inside_nodes),
        Cell::count(violations.len() as u64),
        Cell::new(in_full, ""),
        Cell::text(verdict),
    ]);
    cells
}
