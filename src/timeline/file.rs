//! Writes a rank's timeline as Chrome trace JSON, one event per line.
//!
//! `pid` is the rank; `tid` is 0 for calls and the port's number plus one otherwise; times are microseconds. `cat` is
//! the kind of an event: `call`, `run`, `send`, `recv`, `copy`, `fold` or `poll`. `otherData` holds the properties of
//! the whole file.

use std::fmt::{self, Display, Write as _};
use std::fs::{self, File};
use std::hash::{BuildHasher, BuildHasherDefault};
use std::io::{self, BufWriter, Write};

use rustc_hash::{FxHashMap, FxHasher};

use super::ring::RecordRing;
use super::ticks::Scale;
use super::{Label, Record, RecordKind};
use crate::Rank;
use crate::endpoint::Tag;

/// Contents of a file.
pub(super) struct Timeline<'a> {
    pub(super) rank: Rank,
    /// The number of the rank's world.
    pub(super) world: u64,
    /// Whether the time is that of a simulated wire.
    pub(super) is_virtual: bool,
    pub(super) scale: Scale,
    pub(super) rounds: &'a [[u64; 2]],
    pub(super) calls: &'a RecordRing,
    pub(super) labels: &'a [Label],
    pub(super) ports: &'a [RecordRing],
}

/// The name of a rank's file.
pub(super) fn path(wanted: &str, rank: Rank) -> String {
    let wanted = wanted.replace("%j", &hopbine_meet::variables::job());
    if wanted.contains("%r") {
        return wanted.replace("%r", &rank.to_string());
    }
    let name_at = wanted.rfind('/').map_or(0, |slash| slash + 1);
    match wanted[name_at..].rfind('.').filter(|&dot| dot > 0) {
        Some(dot) => {
            let (name, end) = wanted.split_at(name_at + dot);
            format!("{name}.{rank}{end}")
        }
        None => format!("{wanted}.{rank}"),
    }
}

/// A JSON string with quotes and escapes.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for letter in self.0.chars() {
            match letter {
                '"' | '\\' => write!(f, "\\{letter}")?,
                letter if letter.is_control() => write!(f, "\\u{:04x}", u32::from(letter))?,
                letter => f.write_char(letter)?,
            }
        }
        f.write_char('"')
    }
}

/// Nanoseconds printed as microseconds, with three decimals.
struct Us(u64);

impl Display for Us {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// An operation identifier, printed as context and number.
struct Operation(u64);

impl Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tag { context, operation, .. } = Tag::of_operation(self.0, 0, 0);
        write!(f, "\"{context:x}.{operation}\"")
    }
}

/// An identifier of the kernel and its time namespace: processes with equal values share `CLOCK_MONOTONIC`.
fn clock_number() -> u64 {
    let namespace = std::fs::read_link("/proc/self/ns/time").ok();
    BuildHasherDefault::<FxHasher>::default().hash_one((hopbine_meet::kernel(), namespace))
}

impl Timeline<'_> {
    /// Number of overwritten records.
    pub(super) fn n_dropped(&self) -> u64 {
        self.calls.n_dropped() + self.ports.iter().map(RecordRing::n_dropped).sum::<u64>()
    }

    /// Writes the file under another name, and renames it when it is complete: an older file stays until then.
    pub(super) fn write(&self, path: &str) -> io::Result<()> {
        let part = format!("{path}.part");
        // Never opened where it exists: in a shared directory it can be a link or a pipe that another user has made.
        let _ = fs::remove_file(&part);
        let written = File::create_new(&part).and_then(|file| {
            let mut out = BufWriter::with_capacity(1 << 16, file);
            self.write_to(&mut out)?;
            out.flush()?;
            fs::rename(&part, path)
        });
        written.inspect_err(|_| _ = fs::remove_file(&part))
    }

    fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let Timeline { rank, world, is_virtual, scale, .. } = self;
        let clock = if *is_virtual { "virtual" } else { "monotonic" };
        let host = clock_number();
        let n_dropped = self.n_dropped();
        write!(
            out,
            "{{\"displayTimeUnit\": \"ns\",\n\"otherData\": {{\"hopbine\": {}, \"rank\": {rank}, \"world\": \
             \"{world:016x}\", \"host\": \"{host:016x}\", \"clock\": \"{clock}\", \"dropped\": {n_dropped}, \"rounds\": [",
            Quoted(crate::VERSION)
        )?;
        for (number, &[came, left]) in self.rounds.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(out, "{comma}[{}, {}]", Us(scale.ns(came)), Us(scale.ns(left)))?;
        }
        write!(
            out,
            "]}},\n\"traceEvents\": [\n{{\"ph\": \"M\", \"pid\": {rank}, \"name\": \"process_name\", \"args\": \
             {{\"name\": \"rank {rank}\"}}}}"
        )?;
        for tid in 0..=self.ports.len() {
            let name = match tid {
                0 => "calls".to_owned(),
                tid => format!("port {}", tid - 1),
            };
            write!(
                out,
                ",\n{{\"ph\": \"M\", \"pid\": {rank}, \"tid\": {tid}, \"name\": \"thread_name\", \"args\": \
                 {{\"name\": \"{name}\"}}}}"
            )?;
        }
        for record in self.calls.iter() {
            let Label { collective, procedure, served_by } = &self.labels[record.step as usize];
            let Record { bytes, id, .. } = record;
            let prefix = procedure.prefix();
            self.event(out, 0, record, record.end, "call", &format_args!("{prefix}{collective}"))?;
            let (op, by) = (Operation(*id), Quoted(served_by));
            write!(out, ", \"args\": {{\"bytes\": {bytes}, \"op\": {op}, \"by\": {by}}}}}")?;
        }
        for (tid, port) in (1..).zip(self.ports) {
            self.port(out, tid, port)?;
        }
        out.write_all(b"\n]}\n")
    }

    /// Writes the start of an event; the caller appends the arguments and the closing brace.
    fn event(
        &self,
        out: &mut impl Write,
        tid: u32,
        record: &Record,
        end: u64,
        cat: &str,
        name: &dyn Display,
    ) -> io::Result<()> {
        let (rank, start) = (self.rank, self.scale.ns(record.start));
        let (ts, dur) = (Us(start), Us(self.scale.ns(end).saturating_sub(start)));
        write!(
            out,
            ",\n{{\"ph\": \"X\", \"pid\": {rank}, \"tid\": {tid}, \"ts\": {ts}, \"dur\": {dur}, \"cat\": \"{cat}\", \
             \"name\": \"{name}\""
        )
    }

    /// Writes the events of a port. The start or end of an event is left out if its counterpart is missing: either
    /// the ring has overwritten it, or the event had not ended at tear-down.
    fn port(&self, out: &mut impl Write, tid: u32, port: &RecordRing) -> io::Result<()> {
        let mut runs: FxHashMap<u32, &Record> = FxHashMap::default();
        let mut messages: FxHashMap<(u32, u32), &Record> = FxHashMap::default();
        for record in port.iter() {
            let &Record { run, task, bytes, step, id, end, kind, .. } = record;
            match kind {
                RecordKind::Run => _ = runs.insert(run, record),
                RecordKind::Ended => {
                    if let Some(begun) = runs.remove(&run) {
                        self.event(out, tid, begun, record.start, "run", &"operation")?;
                        write!(out, ", \"args\": {{\"op\": {}}}}}", Operation(begun.id))?;
                    }
                }
                RecordKind::Send | RecordKind::Recv if end != 0 => {
                    self.message(out, tid, record, end)?
                }
                RecordKind::Send | RecordKind::Recv => _ = messages.insert((run, task), record),
                RecordKind::Done => {
                    if let Some(begun) = messages.remove(&(run, task)) {
                        self.message(out, tid, begun, record.start)?;
                    }
                }
                RecordKind::Copy | RecordKind::Fold => {
                    let name = if kind == RecordKind::Copy { "copy" } else { "fold" };
                    self.event(out, tid, record, end, name, &name)?;
                    let op = Operation(id);
                    write!(
                        out,
                        ", \"args\": {{\"bytes\": {bytes}, \"step\": {step}, \"op\": {op}}}}}"
                    )?;
                }
                RecordKind::Poll => {
                    self.event(out, tid, record, end, "poll", &"poll")?;
                    out.write_all(b"}")?;
                }
                RecordKind::Call => {}
            }
        }
        Ok(())
    }

    fn message(&self, out: &mut impl Write, tid: u32, record: &Record, end: u64) -> io::Result<()> {
        let &Record { kind, peer, bytes, step, message, id, start, posted, .. } = record;
        let [cat, way] = if kind == RecordKind::Send { ["send", "to"] } else { ["recv", "from"] };
        self.event(out, tid, record, end, cat, &format_args!("{way} {peer}"))?;
        let message = message & !Tag::LATE;
        let post = Us(self.scale.ns(posted).saturating_sub(self.scale.ns(start)));
        write!(
            out,
            ", \"args\": {{\"{way}\": {peer}, \"bytes\": {bytes}, \"step\": {step}, \"message\": {message}, \"op\": \
             {}, \"post_us\": {post}}}}}",
            Operation(id)
        )
    }
}

#[cfg(test)]
mod tests {
    use hopbine_torus::Collective;
    use serde_json::Value;

    use super::super::Procedure;
    use super::super::ticks::Ticks;
    use super::*;

    #[test]
    fn each_rank_has_a_file_of_its_own() {
        for (wanted, name) in [
            ("trace.json", "trace.3.json"),
            ("out/trace", "out/trace.3"),
            ("out.d/trace", "out.d/trace.3"),
            ("out/.trace", "out/.trace.3"),
            ("of-%r-a.json", "of-3-a.json"),
        ] {
            assert_eq!(path(wanted, 3), name);
        }
        assert!(!path("%j.json", 0).contains("%j"));
    }

    #[test]
    fn a_file_stays_if_it_cannot_be_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.5.json");
        let timeline = Timeline {
            rank: 5,
            world: 7,
            is_virtual: false,
            scale: Ticks::Nanoseconds.scale(),
            rounds: &[],
            calls: &RecordRing::new(Ticks::Nanoseconds, 4),
            labels: &[],
            ports: &[],
        };
        let write = || timeline.write(path.to_str().unwrap());
        write().unwrap();
        let before = fs::read(&path).unwrap();
        let part = directory.path().join("trace.5.json.part");
        fs::create_dir(&part).unwrap();
        assert_eq!(write().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), before);
        fs::remove_dir(&part).unwrap();
        // What another user has put there is not written to.
        let target = directory.path().join("target");
        fs::write(&target, "before").unwrap();
        std::os::unix::fs::symlink(&target, &part).unwrap();
        write().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"before");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        // A file that cannot take its name is not left over.
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(write().is_err() && fs::symlink_metadata(&part).is_err());
    }

    #[test]
    fn halves_become_events_and_the_text_is_json() {
        let label = Label {
            collective: Collective::Allreduce,
            procedure: Procedure::Nonblocking,
            served_by: "a \"b\"\n\\".to_owned(),
        };
        let mut calls = RecordRing::new(Ticks::Nanoseconds, 4);
        calls.push(Record { start: 500, end: 9_000, kind: RecordKind::Call, ..Record::default() });
        let mut port = RecordRing::new(Ticks::Nanoseconds, 8);
        let record = Record { run: 1, id: 1 << 24 | 7, ..Record::default() };
        let note = |port: &mut RecordRing, kind, start, end, task| {
            let posted = start + 10;
            let message = task | Tag::LATE;
            port.push(Record { start, posted, end, task, kind, message, peer: 2, ..record });
        };
        // Its start has been overwritten.
        note(&mut port, RecordKind::Done, 900, 0, 9);
        note(&mut port, RecordKind::Run, 1_000, 0, 0);
        note(&mut port, RecordKind::Recv, 1_100, 0, 3);
        note(&mut port, RecordKind::Send, 1_200, 1_900, 4);
        note(&mut port, RecordKind::Done, 2_500, 0, 3);
        note(&mut port, RecordKind::Fold, 2_600, 3_600, 5);
        note(&mut port, RecordKind::Ended, 4_000, 0, 0);
        let timeline = Timeline {
            rank: 5,
            world: 9,
            is_virtual: false,
            scale: Ticks::Nanoseconds.scale(),
            rounds: &[[1, 1_001]],
            calls: &calls,
            labels: &[label],
            ports: &[port],
        };
        let mut text = Vec::new();
        timeline.write_to(&mut text).unwrap();
        let json: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(json["otherData"]["world"], "0000000000000009");
        assert_eq!(json["otherData"]["rounds"], serde_json::json!([[0.001, 1.001]]));
        let events = json["traceEvents"].as_array().unwrap();
        let of = |cat: &str| events.iter().find(|event| event["cat"] == cat).unwrap();
        assert_eq!(of("call")["args"]["by"], "a \"b\"\n\\");
        assert_eq!(of("call")["name"], "iallreduce");
        for (cat, ts, dur) in
            [("call", 0.5, 8.5), ("run", 1.0, 3.0), ("send", 1.2, 0.7), ("recv", 1.1, 1.4)]
        {
            let event = of(cat);
            assert_eq!(
                (event["ts"].as_f64(), event["dur"].as_f64()),
                (Some(ts), Some(dur)),
                "{cat}"
            );
            assert_eq!(event["pid"], 5);
        }
        assert_eq!(of("recv")["args"]["from"], 2);
        assert_eq!(of("recv")["args"]["message"], 3);
        assert_eq!(of("send")["args"]["op"], "1.7");
        assert_eq!(of("send")["args"]["post_us"], 0.01);
        assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 5);
    }
}
