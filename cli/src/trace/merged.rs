//! Merges runs into one Chrome trace file: a process for each rank of each run, threads for its calls and ports.

use std::collections::BTreeMap;

use serde_json::json;

use super::event::{EventKind, TraceEvent, named, text};
use super::sources::TraceSource;

/// Thread ids of one port: a group each for its thread, its operations, and its messages.
const OF_PORT: u64 = 3000;
const OF_GROUP: u64 = 1000;

/// The first thread id of the group that shows an event. Overlapping events of a group are on different threads, see
/// [`tracks`].
fn group(event: &TraceEvent) -> u64 {
    let Some(port) = event.port else { return 0 };
    let group = match event.kind {
        EventKind::Send => 1,
        EventKind::Recv => 2,
        EventKind::Run => return 1 + u64::from(port) * OF_PORT + OF_GROUP / 2,
        _ => 0,
    };
    1 + u64::from(port) * OF_PORT + group * OF_GROUP
}

/// The name of a thread: its group, and its number within the group.
fn name(event: &TraceEvent, track: u64) -> String {
    let name = match (event.port, event.kind) {
        (None, _) => "calls".to_owned(),
        (Some(port), EventKind::Send) => format!("port {port} sends"),
        (Some(port), EventKind::Recv) => format!("port {port} receives"),
        (Some(port), EventKind::Run) => format!("port {port} operations"),
        (Some(port), _) => format!("port {port}"),
    };
    if track == 0 { name } else { format!("{name} ({})", track + 1) }
}

/// For each interval, in the order of starts, the lowest number that no overlapping interval has.
pub fn tracks(times: impl Iterator<Item = [i64; 2]>) -> impl Iterator<Item = u64> {
    let mut until: Vec<i64> = Vec::new();
    times.map(move |[start, end]| {
        let free = until.iter().position(|until| *until <= start).unwrap_or(until.len());
        until.resize(until.len().max(free + 1), 0);
        until[free] = end;
        free as u64
    })
}

/// The key by which the two sides of a message are matched within a run.
fn message(event: &TraceEvent) -> Option<(u32, u32, u32, String, u64)> {
    let (from, to) = match event.kind {
        EventKind::Send => (event.rank, event.number("to")? as u32),
        EventKind::Recv => (event.number("from")? as u32, event.rank),
        _ => return None,
    };
    let op = event.args.get("op")?.as_str()?.to_owned();
    Some((event.port?, from, to, op, event.number("message")?))
}

/// The merged file. The processes of a rank are adjacent. Arrows lead from the sending of a message to its arrival.
pub fn json(sources: &[TraceSource], notes: &[String]) -> String {
    let mut lines = Vec::new();
    let mut n_arrows = 0;
    for (number, source) in sources.iter().enumerate() {
        let pid = |rank: u32| u64::from(rank) * sources.len() as u64 + number as u64;
        let mut threads: BTreeMap<(u32, u64), Vec<&TraceEvent>> = BTreeMap::new();
        for event in &source.events {
            threads.entry((event.rank, group(event))).or_default().push(event);
        }
        let mut sent = BTreeMap::new();
        let mut received = Vec::new();
        let mut last = None;
        for ((rank, group), events) in threads {
            let pid = pid(rank);
            if last.replace(rank) != Some(rank) {
                lines.extend(named(
                    "process",
                    pid,
                    0,
                    &format!("rank {rank}, {}", source.clock.name()),
                ));
            }
            let mut n_tracks = 0;
            for (event, track) in events.iter().zip(tracks(events.iter().map(|event| event.ns))) {
                let tid = group + track;
                if track >= n_tracks {
                    lines.extend(named("thread", pid, tid, &name(event, track)));
                    n_tracks = track + 1;
                }
                lines.push(event.json(pid, tid));
                match (message(event), event.kind) {
                    (Some(message), EventKind::Send) => {
                        _ = sent.insert(message, (pid, tid, event.ns[0]))
                    }
                    (Some(message), _) => received.push((message, (pid, tid, event.ns[1]))),
                    (None, _) => {}
                }
            }
        }
        for (message, end) in received {
            let Some(start) = sent.remove(&message) else { continue };
            let arrow = |ph: &str, (pid, tid, ns): (u64, u64, i64)| {
                json!({
                    "ph": ph, "bp": "e", "id": n_arrows, "cat": "message", "name": "message",
                    "pid": pid, "tid": tid, "ts": ns as f64 / 1e3,
                })
            };
            // An arrow ends at the event that is active at its time; an event is not active at its own end.
            let end = (end.0, end.1, end.2 - 1);
            lines.extend([arrow("s", start), arrow("f", end)]);
            n_arrows += 1;
        }
    }
    let about = json!({ "hopbine": hopbine::VERSION, "merged": true, "notes": notes });
    text(&about, &lines)
}

/// Keeps only the events within a time interval, of the ranks wanted.
pub fn part(source: &mut TraceSource, ns: [i64; 2], is_wanted: impl Fn(u32) -> bool) {
    let overlaps =
        |event: &TraceEvent| event.ns[0] < ns[1] && ns[0] < event.ns[1].max(event.ns[0] + 1);
    source.events.retain(|event| is_wanted(event.rank) && overlaps(event));
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;
    use crate::trace::event::FileClock;

    /// The events of this phase.
    fn all<'a>(json: &'a Value, ph: &str) -> Vec<&'a Value> {
        let events = json["traceEvents"].as_array().unwrap();
        events.iter().filter(|event| event["ph"] == ph).collect()
    }

    #[test]
    fn what_overlaps_has_threads_of_its_own() {
        let times = [[0, 40], [10, 20], [20, 30], [35, 50], [40, 50]];
        assert_eq!(tracks(times.into_iter()).collect::<Vec<_>>(), [0, 1, 1, 1, 0]);
    }

    #[test]
    fn a_message_is_an_arrow_and_ranks_of_two_runs_stand_together() {
        let args = |key: &str, peer: u32| {
            let value = json!({key: peer, "op": "0.7", "message": 2});
            value.as_object().cloned().unwrap_or_else(Map::new)
        };
        let event = |rank, kind, ns, args| TraceEvent {
            rank,
            port: Some(1),
            kind,
            name: "m".to_owned(),
            ns,
            args,
        };
        let run = |clock| TraceSource {
            clock,
            events: vec![
                event(0, EventKind::Send, [0, 5000], args("to", 1)),
                event(1, EventKind::Recv, [1000, 9000], args("from", 0)),
                event(1, EventKind::Recv, [2000, 9000], args("from", 3)),
            ],
        };
        let sources = [run(FileClock::Measured), run(FileClock::Predicted)];
        let json: Value = serde_json::from_str(&super::json(&sources, &[])).unwrap();
        let (starts, ends) = (all(&json, "s"), all(&json, "f"));
        assert_eq!((starts.len(), ends.len()), (2, 2));
        assert_eq!((starts[0]["pid"].as_u64(), ends[0]["pid"].as_u64()), (Some(0), Some(2)));
        assert_eq!(starts[0]["id"], ends[0]["id"]);
        assert_eq!(ends[0]["ts"], 8.999);
        let names: Vec<_> = all(&json, "M")
            .into_iter()
            .filter(|line| line["name"] == "process_name")
            .map(|line| (line["pid"].as_u64().unwrap(), line["args"]["name"].as_str().unwrap()))
            .collect();
        assert!(
            names.contains(&(2, "rank 1, measured")) && names.contains(&(3, "rank 1, predicted"))
        );
        // The two receives of one rank overlap.
        let of_rank: Vec<_> = all(&json, "X").into_iter().filter(|line| line["pid"] == 2).collect();
        assert_ne!(of_rank[0]["tid"], of_rank[1]["tid"]);
    }
}
