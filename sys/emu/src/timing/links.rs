//! Links of the torus in the latency model: the links of a message's route, and the times at which links are free.
//!
//! A message that is longer than a packet occupies its sender's TNI, every link of its route and the TNI where it
//! arrives at the same time, like packets that no switch can store. While one of these is busy the message waits, and
//! so do the messages that its sender has posted behind it. Routes go along the axes x, y, z, a, b, c in order, the
//! shorter way round (of two equal ways the positive), as in the simulation of the library's schedules. Messages of
//! one packet pass between the packets of longer messages.

use crate::limits::coords::Extent;
use crate::limits::ids::Coords;
use crate::shared::arena::Shared;
use crate::sync::{AtomicU64, Ordering};

/// Largest payload of one packet, in bytes.
pub(crate) const PACKET_BYTES: u64 = crate::limits::MAX_MTU as u64;

/// Links that leave a node: for each axis one upwards, then one downwards.
pub(crate) const LINKS_PER_NODE: usize = 12;

/// Returns the number, below [`LINKS_PER_NODE`], of the link along an axis.
fn link_index(axis: usize, up: bool) -> usize {
    2 * axis + usize::from(!up)
}

/// Returns the links from one node to another: the coordinates that each link leaves, and its number below
/// [`LINKS_PER_NODE`].
pub(crate) fn route(
    from: Coords,
    to: Coords,
    extent: Extent,
) -> impl Iterator<Item = (Coords, usize)> {
    let mut at = from;
    std::iter::from_fn(move || {
        let axis = (0..6).find(|&axis| at[axis] != to[axis])?;
        let (here, there) = (u16::from(at[axis]), u16::from(to[axis]));
        let size = extent[axis].max(here + 1).max(there + 1);
        let ahead = (there + size - here) % size;
        // a and c are not rings.
        let is_ring = axis != 3 && axis != 5;
        let up = if is_ring { 2 * ahead <= size } else { there > here };
        let link = (at, link_index(axis, up));
        at[axis] = ((here + if up { 1 } else { size - 1 }) % size) as u8;
        Some(link)
    })
}

/// Spans of time that a calendar can keep separate.
const SPANS: usize = 31;

/// Times at which a link is occupied: spans in order, by start and end in ns. The lock of all links guards it.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Calendar {
    n: AtomicU64,
    spans: [[AtomicU64; 2]; SPANS],
}

// SAFETY: repr(C) of atomics.
unsafe impl Shared for Calendar {}

impl Calendar {
    // Relaxed here and below: the lock orders all accesses.
    fn spans(&self) -> impl Iterator<Item = [u64; 2]> + '_ {
        let n = (self.n.load(Ordering::Relaxed) as usize).min(SPANS);
        let load = |at: &AtomicU64| at.load(Ordering::Relaxed);
        self.spans[..n].iter().map(move |[start, end]| [load(start), load(end)])
    }

    /// Returns the earliest time from `from` on at which the link is free for `ns`.
    fn free(&self, from: u64, ns: u64) -> u64 {
        let mut start = from;
        for [taken, end] in self.spans() {
            if start + ns <= taken {
                break;
            }
            start = start.max(end);
        }
        start
    }

    /// Adds a span that is free, and removes the spans that have ended by `now`.
    fn take(&self, start: u64, end: u64, now: u64) {
        let mut all: Vec<[u64; 2]> = self.spans().filter(|span| span[1] > now).collect();
        let at = all.partition_point(|span| span[0] < start);
        all.insert(at, [start, end]);
        all.dedup_by(|next, last| {
            let touches = last[1] >= next[0];
            if touches {
                last[1] = last[1].max(next[1]);
            }
            touches
        });
        // Without room the first two spans are merged: the free time between them is lost.
        if all.len() > SPANS {
            let second = all.remove(1);
            all[0][1] = second[1];
        }
        for (place, span) in self.spans.iter().zip(&all) {
            place[0].store(span[0], Ordering::Relaxed);
            place[1].store(span[1], Ordering::Relaxed);
        }
        self.n.store(all.len() as u64, Ordering::Relaxed);
    }
}

/// Occupies all of `path` for `ns` at the first time from `from` on at which all of it is free, and returns that
/// time. The caller holds the lock of all links.
pub(crate) fn occupy(path: &[&Calendar], from: u64, ns: u64, now: u64) -> u64 {
    let mut start = from;
    loop {
        let free = path.iter().fold(start, |at, calendar| calendar.free(at, ns));
        if free == start {
            break;
        }
        start = free;
    }
    path.iter().for_each(|calendar| calendar.take(start, start + ns, now));
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendars<const N: usize>() -> [Calendar; N] {
        std::array::from_fn(|_| Calendar::default())
    }

    #[test]
    fn a_route_takes_the_shorter_way() {
        let extent = [5, 1, 1, 2, 3, 2];
        let links = |from, to| route(from, to, extent).map(|(_, out)| out).collect::<Vec<_>>();
        assert_eq!(links([0; 6], [4, 0, 0, 0, 0, 0]), [1]);
        assert_eq!(links([0; 6], [2, 0, 0, 1, 2, 1]), [0, 0, 6, 9, 10]);
        assert_eq!(links([1, 0, 0, 1, 0, 1], [1, 0, 0, 0, 0, 0]), [7, 11]);
    }

    #[test]
    fn messages_that_share_a_link_follow_each_other() {
        let [a, b, c] = calendars();
        assert_eq!(occupy(&[&a, &b], 10, 100, 0), 10);
        assert_eq!(occupy(&[&b, &c], 10, 100, 0), 110, "waits for b, and takes c with it");
        assert_eq!(occupy(&[&c], 10, 100, 0), 10, "c is free until then");
        assert_eq!(occupy(&[&c], 10, 1, 0), 210);
        assert_eq!(occupy(&[&a], 10, 1, 0), 110);
    }

    #[test]
    fn a_calendar_that_is_full_stays_right() {
        let [a] = calendars();
        for number in 0..100 {
            assert_eq!(occupy(&[&a], 10 * number, 5, 0), 10 * number);
        }
        // The gaps between the first spans are lost, those between the last are not.
        assert_eq!(occupy(&[&a], 0, 5, 0), 695);
        // Spans that have ended are removed.
        assert_eq!(occupy(&[&a], 2000, 5, 1500), 2000);
        assert_eq!(a.spans().count(), 1);
    }
}
