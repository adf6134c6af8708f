//! The timeline records of a port, separate from the port so that its code without a timeline stays short.

use crate::endpoint::{Endpoint, Event, Slot, WireError};
use crate::timeline::{Record, RecordKind, RecordRing, Sink};

use super::port_run::PortRun;

/// Records that a run is under way.
#[cold]
pub(super) fn begun(ring: &mut RecordRing, number: u32, run: &PortRun) {
    let id = run.id();
    ring.note(|start| Record { start, id, run: number, ..Record::default() });
}

/// Polls the endpoint, and records the poll if it brings events.
#[cold]
pub(super) fn polled(
    ring: &mut RecordRing,
    endpoint: &mut dyn Endpoint,
    events: &mut Vec<Event>,
) -> Result<(), WireError> {
    let start = ring.since();
    let polled = endpoint.poll(events);
    match events.is_empty() {
        true => ring.waited(),
        false => {
            ring.note(|end| Record { start, end, kind: RecordKind::Poll, ..Record::default() })
        }
    }
    polled
}

/// Records that a run has ended.
#[cold]
pub(super) fn ended(ring: &mut RecordRing, run: u32) {
    let start = ring.since();
    ring.push(Record { start, run, kind: RecordKind::Ended, ..Record::default() });
}

/// Records the events of a poll.
#[cold]
pub(super) fn done(ring: &mut RecordRing, events: &[Event]) {
    let start = ring.since();
    for event in events {
        let (Event::Sent(slot) | Event::Received(slot) | Event::Viewed(slot, _)) = event else {
            continue;
        };
        let &Slot { run, task } = slot;
        ring.push(Record { start, run, task, kind: RecordKind::Done, ..Record::default() });
    }
}
