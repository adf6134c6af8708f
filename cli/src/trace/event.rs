//! Events of timelines, and their files in Chrome trace JSON, as the library and `hopbine simulate --trace` write
//! them.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::args;
use crate::error::CliError;

hopbine_torus::named! {
    /// The kind of an event: `cat` in the file.
    pub enum EventKind {
        /// A call, as its caller sees it.
        Call = "call",
        /// An operation in progress on a port.
        Run = "run",
        /// A message in flight from this rank.
        Send = "send",
        /// A message to this rank, from the posting of its receive to its arrival.
        Recv = "recv",
        /// The port's thread posts a message.
        Post = "post",
        /// The port's thread polls and finds an event.
        Poll = "poll",
        /// The port's thread copies.
        Copy = "copy",
        /// The port's thread reduces.
        Fold = "fold",
        /// The port's thread does other work.
        Work = "work",
        /// The port's thread waits.
        Wait = "wait",
    }
}

impl EventKind {
    /// Whether the event takes time of the port's thread.
    pub fn is_of_thread(self) -> bool {
        self >= EventKind::Post
    }
}

/// An activity of a rank.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    pub rank: u32,
    /// The port; `None` for calls.
    pub port: Option<u32>,
    pub kind: EventKind,
    pub name: String,
    /// Start and end in ns.
    pub ns: [i64; 2],
    /// Further data: `step`, `bytes`, `to` or `from`, `message`, `op`, `by`.
    pub args: Map<String, Value>,
}

impl TraceEvent {
    /// A numeric argument.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.args.get(name)?.as_u64()
    }

    /// The event in the file's format, with these process and thread ids.
    pub fn json(&self, pid: u64, tid: u64) -> Value {
        let us = |ns: i64| ns as f64 / 1e3;
        json!({
            "ph": "X",
            "pid": pid,
            "tid": tid,
            "ts": us(self.ns[0]),
            "dur": us(self.ns[1] - self.ns[0]),
            "cat": self.kind.name(),
            "name": self.name,
            "args": self.args,
        })
    }
}

/// The clock of a file's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileClock {
    /// The machine's clock.
    Measured,
    /// The clock of a simulated wire.
    Simulated,
    /// The time of the network model.
    Predicted,
}

impl FileClock {
    /// Each clock with its name in files and its name for people.
    const ALL: [(FileClock, &'static str, &'static str); 3] = [
        (FileClock::Measured, "monotonic", "measured"),
        (FileClock::Simulated, "virtual", "simulated"),
        (FileClock::Predicted, "predicted", "predicted"),
    ];

    /// The clock's name for people.
    pub fn name(self) -> &'static str {
        FileClock::ALL[self as usize].2
    }
}

/// A file with the timeline of one rank, or of several ranks with one clock.
#[derive(Clone, Debug)]
pub struct File {
    pub clock: FileClock,
    /// What only files of one run have in common; empty in predicted ones.
    pub world: String,
    /// The host whose clock measured the events.
    pub host: String,
    /// Times in ns at which the rank entered and left each synchronisation round. No rank leaves a round before all
    /// ranks have entered it.
    pub rounds: Vec<[i64; 2]>,
    /// Number of records that later ones have overwritten.
    pub n_dropped: u64,
    pub events: Vec<TraceEvent>,
}

fn ns(us: &Value) -> Option<i64> {
    Some((us.as_f64()? * 1e3).round() as i64)
}

impl File {
    /// Reads a file.
    ///
    /// # Errors
    /// [`CliError::Read`], or [`CliError::Text`] if the file is not a timeline of hopbine.
    pub fn read(path: &Path) -> Result<Self, CliError> {
        let text = args::read(path)?;
        let json: Value = serde_json::from_str(&text)
            .map_err(|error| CliError::text(path, format!("no JSON: {error}")))?;
        File::parse(&json).ok_or_else(|| {
            CliError::text(
                path,
                "not a timeline of hopbine: HOPBINE_TRACE and `hopbine simulate --trace` write them; files that \
                 `hopbine trace` has merged cannot be merged again",
            )
        })
    }

    fn parse(json: &Value) -> Option<Self> {
        let about = &json["otherData"];
        let clock = about["clock"].as_str()?;
        let &(clock, ..) = FileClock::ALL.iter().find(|(_, name, _)| *name == clock)?;
        let round = |round: &Value| Some([ns(&round[0])?, ns(&round[1])?]);
        let events = json["traceEvents"].as_array()?.iter().filter(|event| event["ph"] == "X");
        Some(File {
            clock,
            world: about["world"].as_str().unwrap_or_default().to_owned(),
            host: about["host"].as_str().unwrap_or_default().to_owned(),
            rounds: about["rounds"].as_array()?.iter().map(round).collect::<Option<_>>()?,
            n_dropped: about["dropped"].as_u64().unwrap_or(0),
            events: events.map(event).collect::<Option<_>>()?,
        })
    }

    /// The ranks with events in the file.
    pub fn ranks(&self) -> Vec<u32> {
        let mut ranks: Vec<u32> = self.events.iter().map(|event| event.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }
}

fn event(json: &Value) -> Option<TraceEvent> {
    let cat = json["cat"].as_str()?;
    let kind = EventKind::ALL.into_iter().find(|kind| kind.name() == cat)?;
    let start = ns(&json["ts"])?;
    Some(TraceEvent {
        rank: json["pid"].as_u64()?.try_into().ok()?,
        port: json["tid"].as_u64()?.checked_sub(1).map(|port| port as u32),
        kind,
        name: json["name"].as_str()?.to_owned(),
        ns: [start, start + ns(&json["dur"])?],
        args: json["args"].as_object().cloned().unwrap_or_default(),
    })
}

/// The text of a Chrome trace file, with one event per line.
pub fn text(about: &Value, events: &[Value]) -> String {
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    format!(
        "{{\"displayTimeUnit\": \"ns\",\n\"otherData\": {about},\n\"traceEvents\": [\n{}\n]}}\n",
        lines.join(",\n")
    )
}

/// The metadata of a process or thread: its name and its sort order.
pub fn named(what: &str, pid: u64, tid: u64, name: &str) -> [Value; 2] {
    let of = |key: &str, args: Value| json!({"ph": "M", "pid": pid, "tid": tid, "name": key, "args": args});
    let place = if what == "process" { pid } else { tid };
    [
        of(&format!("{what}_name"), json!({ "name": name })),
        of(&format!("{what}_sort_index"), json!({ "sort_index": place })),
    ]
}

/// A file of predicted events, which [`File::read`] can read.
pub fn predicted(events: &[TraceEvent]) -> String {
    let about = json!({
        "hopbine": hopbine::VERSION,
        "clock": "predicted",
        "dropped": 0,
        "rounds": [],
    });
    let tid = |event: &TraceEvent| event.port.map_or(0, |port| u64::from(port) + 1);
    let events: Vec<Value> =
        events.iter().map(|event| event.json(u64::from(event.rank), tid(event))).collect();
    text(&about, &events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_is_where_its_number_says() {
        for (number, (clock, _, name)) in FileClock::ALL.into_iter().enumerate() {
            assert_eq!((clock as usize, clock.name()), (number, name));
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut args = Map::new();
        args.insert("bytes".to_owned(), Value::from(8));
        let event = |kind, port, ns| TraceEvent {
            rank: 3,
            port,
            kind,
            name: "a \"name\"".to_owned(),
            ns,
            args: args.clone(),
        };
        let events = [
            event(EventKind::Call, None, [0, 1_234_567]),
            event(EventKind::Wait, Some(2), [1, 1_000_001]),
        ];
        let json = serde_json::from_str(&predicted(&events)).unwrap();
        let file = File::parse(&json).unwrap();
        assert_eq!((file.clock, file.ranks()), (FileClock::Predicted, vec![3]));
        assert_eq!(file.events, events);
        assert!(File::parse(&json!({"traceEvents": []})).is_none());
    }
}
