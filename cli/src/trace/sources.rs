//! Combines files: the files of one run on one clock, and several runs aligned with each other.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{EventKind, File, FileClock, TraceEvent};

/// The ranks of one run.
pub struct TraceSource {
    pub clock: FileClock,
    /// Events, ordered by time.
    pub events: Vec<TraceEvent>,
}

/// All runs, with notes on their clocks.
pub struct Together {
    pub sources: Vec<TraceSource>,
    pub notes: Vec<String>,
}

/// Combines files. A file joins the latest run of its world with the same kind of clock that has none of its ranks.
/// Times of the first run start at 0. Each later run is shifted so that its last call starts together with the first
/// run's last call of the same name and size.
pub fn together(files: Vec<File>) -> Together {
    let mut notes = Vec::new();
    let n_dropped: u64 = files.iter().map(|file| file.n_dropped).sum();
    if n_dropped > 0 {
        notes.push(format!(
            "the first {n_dropped} records were overwritten; HOPBINE_TRACE_RECORDS sets how many are kept"
        ));
    }
    let mut runs: Vec<Vec<File>> = Vec::new();
    for file in files {
        let ranks = file.ranks();
        let fits = |run: &&mut Vec<File>| {
            (run[0].clock, &run[0].world) == (file.clock, &file.world)
                && run.iter().all(|other| other.ranks().iter().all(|rank| !ranks.contains(rank)))
        };
        match runs.iter_mut().rev().find(fits) {
            Some(run) => run.push(file),
            None => runs.push(vec![file]),
        }
    }
    let one = |run| source(run, &mut notes);
    let mut sources: Vec<TraceSource> = runs.into_iter().map(one).collect();
    if let Some((first, others)) = sources.split_first_mut() {
        let origin = first.events.first().map_or(0, |event| event.ns[0]);
        first.shift(-origin);
        for (number, other) in (2..).zip(others) {
            let (shift, note) = beside(first, other);
            other.shift(shift);
            notes.push(format!("run {number} ({}, {}): {note}", other.clock.name(), other.ranks()));
        }
    }
    Together { sources, notes }
}

/// Combines the files of one run on one clock.
fn source(files: Vec<File>, notes: &mut Vec<String>) -> TraceSource {
    let clock = files[0].clock;
    let offsets = match clock {
        FileClock::Measured => offsets(&files, notes),
        FileClock::Simulated | FileClock::Predicted => BTreeMap::new(),
    };
    let mut events: Vec<TraceEvent> = Vec::new();
    for file in files {
        let offset = offsets.get(&file.host).copied().unwrap_or(0);
        let shifted =
            |event: TraceEvent| TraceEvent { ns: event.ns.map(|ns| ns - offset), ..event };
        events.extend(file.events.into_iter().map(shifted));
    }
    events.sort_by_key(|event| event.ns[0]);
    TraceSource { clock, events }
}

/// How far the hosts' clocks are ahead of the first host's, in ns. No rank leaves a round before all have entered it.
/// So a clock is ahead by at least (last entry here - first exit there) and by at most (first exit here - last entry
/// there).
fn offsets(files: &[File], notes: &mut Vec<String>) -> BTreeMap<String, i64> {
    // By host and round: the last entry and the first exit.
    let mut hosts: BTreeMap<&str, Vec<[i64; 2]>> = BTreeMap::new();
    for file in files {
        let rounds = hosts.entry(&file.host).or_insert_with(|| file.rounds.clone());
        rounds.truncate(file.rounds.len());
        for (all, &[came, left]) in rounds.iter_mut().zip(&file.rounds) {
            *all = [all[0].max(came), all[1].min(left)];
        }
    }
    let first = &files[0].host;
    let of_first = hosts[first.as_str()].clone();
    let mut offsets = BTreeMap::new();
    for (host, rounds) in hosts.into_iter().filter(|(host, _)| host != first) {
        let both = rounds.iter().zip(&of_first);
        let ends = both.fold([i64::MIN, i64::MAX], |[least, most], (here, there)| {
            [least.max(here[0] - there[1]), most.min(here[1] - there[0])]
        });
        let [least, most] = ends;
        if least == i64::MIN {
            notes
                .push(format!("host {host}: its clock was not compared with that of host {first}"));
            continue;
        }
        let offset = least + (most - least) / 2;
        let us = |ns: i64| ns as f64 / 1e3;
        notes.push(format!(
            "host {host}: its clock is {:.3} us ahead of that of host {first}, give or take {:.3} us",
            us(offset),
            us((most - least).abs() / 2)
        ));
        offsets.insert(host.to_owned(), offset);
    }
    offsets
}

impl TraceSource {
    fn shift(&mut self, by: i64) {
        self.events.iter_mut().for_each(|event| event.ns = event.ns.map(|ns| ns + by));
    }

    /// Its ranks, in words.
    fn ranks(&self) -> String {
        let ranks: BTreeSet<u32> = self.events.iter().map(|event| event.rank).collect();
        match (ranks.first(), ranks.last()) {
            (Some(first), Some(last)) if first < last => format!("ranks {first} to {last}"),
            (first, _) => format!("rank {}", first.unwrap_or(&0)),
        }
    }

    /// The calls of all ranks.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = &TraceEvent> {
        self.events.iter().filter(|event| event.kind == EventKind::Call)
    }

    /// The time in ns at which the first rank started the last call with this name and size.
    fn last(&self, name: &str, bytes: Option<u64>) -> Option<i64> {
        let mut last: BTreeMap<u32, i64> = BTreeMap::new();
        for call in self.calls().filter(|call| call.name == name && call.number("bytes") == bytes) {
            last.insert(call.rank, call.ns[0]);
        }
        last.into_values().min()
    }
}

/// The shift that aligns a run with the first one, and the reason.
fn beside(first: &TraceSource, other: &TraceSource) -> (i64, String) {
    for call in other.calls().rev() {
        let bytes = call.number("bytes");
        if let (Some(there), Some(here)) =
            (first.last(&call.name, bytes), other.last(&call.name, bytes))
        {
            let of = bytes.map_or(String::new(), |bytes| format!(" of {bytes} B"));
            return (
                there - here,
                format!("its last {}{of} begins with the first run's", call.name),
            );
        }
    }
    let start = other.events.first().map_or(0, |event| event.ns[0]);
    (-start, "it has no call in common with the first run, and begins with it".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn call(rank: u32, name: &str, bytes: u64, start: i64) -> TraceEvent {
        let args = Map::from_iter([("bytes".to_owned(), bytes.into())]);
        let name = name.to_owned();
        TraceEvent { rank, port: None, kind: EventKind::Call, name, ns: [start, start + 10], args }
    }

    fn file(clock: FileClock, host: &str, rounds: &[[i64; 2]], events: Vec<TraceEvent>) -> File {
        let (host, rounds) = (host.to_owned(), rounds.to_vec());
        File { clock, world: "a".to_owned(), host, rounds, n_dropped: 0, events }
    }

    #[test]
    fn clocks_of_hosts_are_compared_by_rounds() {
        // The clock of host b is 1000 ns ahead. The second round gives a tighter interval than the first.
        let a = [[0, 900], [1000, 1100]];
        let b = [[1500, 1950], [2020, 2090]];
        let files = vec![
            file(FileClock::Measured, "a", &a, vec![call(0, "barrier", 0, 5000)]),
            file(FileClock::Measured, "b", &b, vec![call(1, "barrier", 0, 6000)]),
        ];
        let Together { sources, notes } = together(files);
        let starts: Vec<i64> = sources[0].events.iter().map(|event| event.ns[0]).collect();
        // Between 2020 - 1100 and 2090 - 1000: 1005 +- 85.
        assert_eq!(starts, [0, 5]);
        assert!(notes[0].contains("1.005 us ahead") && notes[0].contains("0.085 us"), "{notes:?}");
    }

    #[test]
    fn ranks_that_an_older_run_left_are_a_run_of_their_own() {
        let of = |rank, world: &str| {
            let one = file(FileClock::Measured, "a", &[], vec![call(rank, "barrier", 0, 5000)]);
            File { world: world.to_owned(), ..one }
        };
        let files = vec![of(0, "new"), of(1, "new"), of(2, "old"), of(3, "old")];
        let Together { sources, notes } = together(files);
        assert_eq!(sources.iter().map(|run| run.events.len()).collect::<Vec<_>>(), [2, 2]);
        assert!(notes[0].starts_with("run 2 (measured, ranks 2 to 3): "), "{notes:?}");
    }

    #[test]
    fn a_later_run_lies_beside_the_last_call_of_its_kind() {
        let measured = vec![
            call(0, "allreduce", 8, 100),
            call(0, "allreduce", 8, 200),
            call(0, "barrier", 0, 300),
        ];
        let other = vec![call(1, "allreduce", 8, 205)];
        let files = vec![
            file(FileClock::Measured, "a", &[], measured),
            file(FileClock::Measured, "a", &[], other),
            file(FileClock::Predicted, "", &[], vec![call(0, "allreduce", 8, 0)]),
            file(FileClock::Predicted, "", &[], vec![call(0, "bcast", 8, 50)]),
        ];
        let Together { sources, notes } = together(files);
        assert_eq!(sources.len(), 3);
        assert_eq!(sources[0].events.len(), 4);
        assert_eq!(sources[1].events[0].ns, [100, 110]);
        assert_eq!(sources[2].events[0].ns, [0, 10]);
        assert!(notes[1].contains("no call in common"), "{notes:?}");
    }
}
