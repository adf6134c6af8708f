//! The activities of ports in one call, with their times.

use hopbine_torus::plan::Flow;
use hopbine_torus::sim::{Machine, Span, SpanKind, TimeCategory};
use hopbine_torus::{LaneId, StepId};
use serde_json::{Map, Value};

use super::one::OneCall;
use super::predict::APPROXIMATE;
use crate::cells::{Cell, Column, decimal};
use crate::report::Report;
use crate::trace::event::{EventKind, TraceEvent};

/// The name of an activity.
fn doing(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Busy(category) => category.name(),
        SpanKind::Waits => "waits",
        SpanKind::Sends { .. } => "sends",
    }
}

/// The activities of all ports, ordered by rank, lane and time.
pub fn spans<'a>(call: &'a OneCall<'_>) -> Vec<&'a Span> {
    let mut spans: Vec<&Span> = call.played.spans.iter().collect();
    spans.sort_by(|a, b| {
        (a.rank, a.lane).cmp(&(b.rank, b.lane)).then(a.start_ns.total_cmp(&b.start_ns))
    });
    spans
}

/// The activities as events, with an event for the call itself on every simulated rank.
pub fn events(call: &OneCall<'_>) -> Vec<TraceEvent> {
    let lanes = call.call.flow.lanes();
    let routed = &call.call.routed;
    let ns = |ns: f64| ns.round() as i64;
    let event = |rank, port, kind, name: String, [start, end]: [f64; 2], args| TraceEvent {
        rank,
        port,
        kind,
        name,
        ns: [ns(start), ns(end)],
        args,
    };
    let whole = |rank| {
        let by = format!("{}, {} ports: predicted", call.call.name, call.call.schedule.ports);
        let args = [("bytes", Value::from(call.bytes)), ("by", Value::from(by))];
        let args = args.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
        event(rank, None, EventKind::Call, call.collective.to_string(), [0.0, call.played.ns], args)
    };
    let mut events: Vec<TraceEvent> = (0..routed.n_agents()).map(whole).collect();
    events.extend(spans(call).into_iter().map(|span| {
        let mut args = Map::new();
        if let Some(step) = span.step {
            args.insert("step".to_owned(), Value::from(step));
        }
        let (kind, mut name) = match span.kind {
            SpanKind::Busy(TimeCategory::Fold) => (EventKind::Fold, doing(span.kind).to_owned()),
            SpanKind::Busy(TimeCategory::Copy) => (EventKind::Copy, doing(span.kind).to_owned()),
            SpanKind::Busy(_) => (EventKind::Work, doing(span.kind).to_owned()),
            SpanKind::Waits => (EventKind::Wait, doing(span.kind).to_owned()),
            SpanKind::Sends { .. } => (EventKind::Send, doing(span.kind).to_owned()),
        };
        if let (SpanKind::Sends { message }, Some(step)) = (span.kind, span.step) {
            let (lane, step) = (LaneId(span.lane as usize), StepId(step as usize));
            let message = routed.message(lane, step, message);
            let bytes = (message.share * call.bytes as f64).round() as u64;
            args.insert("bytes".to_owned(), Value::from(bytes));
            if routed.n_agents() > 1 {
                name = format!("to {}", message.to.0);
                args.insert("to".to_owned(), Value::from(message.to.0));
            }
        }
        let port = u32::from(lanes[span.lane as usize].port.0);
        event(span.rank, Some(port), kind, name, [span.start_ns, span.end_ns], args)
    }));
    events.sort_by_key(|event| event.ns[0]);
    events
}

/// A row for each activity of a port.
pub fn report(call: &OneCall<'_>, machine: &Machine) -> Report {
    let columns = vec![
        Column::number("rank", "rank").only_if(call.call.routed.n_agents() > 1),
        Column::number("lane", "lane"),
        Column::number("port", "port").yields(1),
        Column::number("step", "step"),
        Column::text("doing", "doing"),
        Column::number("start_us", "from us"),
        Column::number("end_us", "to us"),
    ];
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
        "Sends: the port's interface sends a message. Waits: the port's thread waits for messages or locks. \
         Other rows are what the thread does: {}.",
        [
            TimeCategory::Setup,
            TimeCategory::Threads,
            TimeCategory::Software,
            TimeCategory::Fold,
            TimeCategory::Copy
        ]
        .map(TimeCategory::name)
        .join(", ")
    )];
    if call.call.routed.n_agents() == 1 {
        notes.push(match call.call.routed.is_exact() {
            true => {
                "All ranks do the same, and one is simulated; --exact simulates all.".to_owned()
            }
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
