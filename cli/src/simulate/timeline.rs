//! What ports do in one call, and when.

use hopbine_torus::sim::{Machine, Part, Span, SpanKind};

use super::one::OneCall;
use super::predict::APPROXIMATE;
use crate::cells::{Cell, Column, decimal};
use crate::report::Report;

/// The name of what a port does.
fn doing(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Busy(part) => part.name(),
        SpanKind::Waits => "waits",
        SpanKind::Sends { .. } => "sends",
    }
}

/// The times of all ports in the order of ranks, lanes and time.
pub fn spans<'a>(call: &'a OneCall<'_>) -> Vec<&'a Span> {
    let mut spans: Vec<&Span> = call.played.spans.iter().collect();
    spans.sort_by(|a, b| {
        (a.rank, a.lane).cmp(&(b.rank, b.lane)).then(a.start_ns.total_cmp(&b.start_ns))
    });
    spans
}

/// A row for each time of a port.
pub fn report(call: &OneCall<'_>, machine: &Machine) -> Report {
    let columns = vec![
        Column::number("rank", "rank").only_if(call.call.score.n_agents() > 1),
        Column::number("lane", "lane"),
        Column::number("port", "port").yields(1),
        Column::number("step", "step"),
        Column::text("doing", "doing"),
        Column::number("start_us", "from us"),
        Column::number("end_us", "to us"),
    ];
    use hopbine_torus::plan::Flow;
    let lanes = call.call.flow.lanes();
    let us = |ns: f64| Cell::new(ns / 1e3, decimal(ns / 1e3, 3));
    let rows = spans(call).into_iter().map(|span| {
        vec![
            Cell::count(span.rank),
            Cell::count(span.lane),
            Cell::count(lanes[span.lane as usize].port.0),
            span.step.map_or_else(Cell::none, Cell::count),
            Cell::text(doing(span.kind)),
            us(span.start_ns),
            us(span.end_ns),
        ]
    });
    let mut notes = vec![format!(
        "Sends: the port's interface has a message under way. Waits: its thread, for messages or locks. \
         Else what its thread does: {}.",
        [Part::Setup, Part::Threads, Part::Software, Part::Fold, Part::Copy]
            .map(Part::name)
            .join(", ")
    )];
    if call.call.score.n_agents() == 1 {
        notes.push(match call.call.score.is_exact() {
            true => "One rank stands for all, which do the same; --exact follows all.".to_owned(),
            false => format!("Not all {APPROXIMATE}"),
        });
    }
    Report {
        about: call.about(machine),
        heading: call.title("timeline"),
        columns,
        rows: rows.collect(),
        notes,
    }
}
