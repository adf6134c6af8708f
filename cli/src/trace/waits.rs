//! Completes recorded events: waits of a port's thread, and the posts within messages.

use std::collections::BTreeMap;

use serde_json::Map;

use super::event::{EventKind, TraceEvent};

/// Adds posts and waits of ports to the events of one run, if it has no waits. While an operation is in progress on a
/// port, its thread counts as waiting when it does nothing else. (In fact it may drive another port, or not run at
/// all.)
pub fn complete(events: &mut Vec<TraceEvent>) {
    if events.iter().any(|event| event.kind == EventKind::Wait) {
        return;
    }
    let posts: Vec<TraceEvent> = events.iter().filter_map(post).collect();
    events.extend(posts);
    let mut ports: BTreeMap<(u32, u32), Vec<&TraceEvent>> = BTreeMap::new();
    for event in &*events {
        if let Some(port) = event.port {
            ports.entry((event.rank, port)).or_default().push(event);
        }
    }
    let mut waits = Vec::new();
    ports.into_iter().for_each(|(port, events)| waits.extend(waits_of(port, events)));
    events.extend(waits);
    events.sort_by_key(|event| event.ns[0]);
}

/// The post of a message.
fn post(message: &TraceEvent) -> Option<TraceEvent> {
    let us = message.args.get("post_us")?.as_f64()?;
    let name = match message.kind {
        EventKind::Send => format!("post send {}", message.name),
        _ => format!("post receive {}", message.name),
    };
    let ns = [message.ns[0], message.ns[0] + (us * 1e3).round() as i64];
    let step = message.args.get("step").map(|step| ("step".to_owned(), step.clone()));
    let args = Map::from_iter(step);
    Some(TraceEvent { kind: EventKind::Post, name, ns, args, ..message.clone() })
}

fn waits_of((rank, port): (u32, u32), events: Vec<&TraceEvent>) -> Vec<TraceEvent> {
    let of = |wanted: fn(EventKind) -> bool| {
        let mut spans: Vec<[i64; 2]> =
            events.iter().filter(|event| wanted(event.kind)).map(|event| event.ns).collect();
        spans.sort_unstable();
        spans
    };
    let (runs, busy) = (of(|kind| kind == EventKind::Run), of(EventKind::is_of_thread));
    let mut messages: Vec<&TraceEvent> = events
        .into_iter()
        .filter(|event| matches!(event.kind, EventKind::Send | EventKind::Recv))
        .collect();
    messages.sort_by_key(|message| message.ns[1]);
    // A wait ends with the first message that ends after the wait has begun.
    let ended_by = |start: i64| {
        let next = messages.partition_point(|message| message.ns[1] <= start);
        messages.get(next).and_then(|message| message.args.get("step"))
    };
    let mut waits = Vec::new();
    let (mut at, mut next) = (i64::MIN, 0);
    let mut wait = |from: i64, to: i64| {
        if from < to {
            let args = Map::from_iter(ended_by(from).map(|step| ("step".to_owned(), step.clone())));
            let (kind, name) = (EventKind::Wait, "waits".to_owned());
            waits.push(TraceEvent { rank, port: Some(port), kind, name, ns: [from, to], args });
        }
    };
    for [start, end] in runs {
        at = at.max(start);
        while let Some(&[from, to]) = busy.get(next).filter(|[from, _]| *from < end) {
            wait(at, from);
            at = at.max(to);
            next += 1;
        }
        wait(at, end);
        at = at.max(end);
    }
    waits
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_port_waits_when_its_run_is_under_way_and_it_does_nothing() {
        let event = |kind, ns, args: serde_json::Value| TraceEvent {
            rank: 1,
            port: Some(0),
            kind,
            name: String::new(),
            ns,
            args: args.as_object().cloned().unwrap_or_default(),
        };
        let mut events = vec![
            event(EventKind::Run, [0, 100], json!({})),
            event(EventKind::Send, [5, 40], json!({"step": 0, "post_us": 0.010})),
            event(EventKind::Poll, [40, 42], json!({})),
            event(EventKind::Recv, [20, 42], json!({"step": 3, "post_us": 0.001})),
            event(EventKind::Fold, [42, 60], json!({})),
            // Two operations in progress at a time.
            event(EventKind::Run, [90, 120], json!({})),
            event(EventKind::Poll, [130, 140], json!({})),
        ];
        complete(&mut events);
        let of = |kind| {
            let these = events.iter().filter(move |event| event.kind == kind);
            these.map(|event| (event.ns, event.number("step"))).collect::<Vec<_>>()
        };
        assert_eq!(of(EventKind::Post), [([5, 15], Some(0)), ([20, 21], Some(3))]);
        assert_eq!(
            of(EventKind::Wait),
            [
                ([0, 5], Some(0)),
                ([15, 20], Some(0)),
                ([21, 40], Some(0)),
                ([60, 100], None),
                ([100, 120], None)
            ]
        );
        let n = events.len();
        complete(&mut events);
        assert_eq!(events.len(), n, "nothing is said twice");
    }
}
