//! Barrier gates: 48 per TNI, of which the first 16 can start and end an operation.
//!
//! A gate waits for a packet from each of its sources, combines the packets and signals its destinations. A start/end
//! gate signals its destinations when its rank starts an operation, and ends the operation when the packets of its
//! sources have arrived. There is no device thread: the thread that delivers a gate's last packet also delivers the
//! gate's own packet, and so on through all gates that this completes. In a stepped job of the late mode each packet
//! takes time ([`late`](crate::gates::late)).
//!
//! A packet carries the number of its operation, counted from the allocation of the gates, and waits in the slot of
//! that number. Two packets that different ranks deliver may therefore overtake each other, and a packet may arrive
//! before its gate is connected.

use crate::gates::reduce::Packet;
use crate::job::core::Job;
use crate::limits::TNIS;
use crate::limits::ids::GatePlace;
use crate::shared::arena::Shared;
use crate::shared::lock::SpinLock;
use crate::sync::{AtomicU64, Ordering};
use std::cell::UnsafeCell;
use std::sync::atomic::AtomicU32;
use utofu_sys::*;

/// Gates of a TNI.
pub(crate) const GATES: usize = 48;
/// Start/end gates: the first of a TNI. The other gates are relays.
pub(crate) const START_GATES: usize = 16;
/// Operations whose packets can wait at a gate at one time. Connected gates need two: no rank starts operation n + 2
/// before every rank has started n + 1.
const DEPTH: usize = 4;

/// The gates of a TNI. Valid when zeroed.
#[repr(C)]
pub(crate) struct GateTable {
    pub(crate) gates: [Gate; GATES],
}

// SAFETY: an array of gates.
unsafe impl Shared for GateTable {}
// SAFETY: repr(C) of atomics, and a cell that the lock guards.
unsafe impl Shared for Gate {}

#[repr(C, align(64))]
pub(crate) struct Gate {
    lock: SpinLock,
    /// 1 while allocated.
    pub(crate) alive: AtomicU32,
    pub(crate) owner: AtomicU32,
    /// Numbers of operations started, ended, and polled to their end since the allocation. Start gates only.
    pub(crate) starts: AtomicU64,
    pub(crate) ends: AtomicU64,
    pub(crate) polled: AtomicU64,
    /// Guarded by `lock`.
    state: UnsafeCell<GateState>,
}

// SAFETY: `state` is accessed only with the lock held.
unsafe impl Sync for Gate {}

#[repr(C)]
pub(crate) struct GateState {
    /// Not 0 after `set_vbg` was called.
    pub(crate) connected: u32,
    /// Local and remote source; `UTOFU_VBG_ID_NULL` for no source.
    pub(crate) sources: [utofu_vbg_id_t; 2],
    /// Local and remote destination.
    pub(crate) destinations: [utofu_vbg_id_t; 2],
    /// Packets passed on, each after all sources had delivered theirs.
    fired: u64,
    waiting: [[GateSlot; DEPTH]; 2],
    /// Start gates: the result of the last operation, and the packet with which this rank started its last one.
    pub(crate) result: Packet,
    pub(crate) started: Packet,
}

/// A packet at a gate.
#[repr(C)]
#[derive(Clone, Copy)]
struct GateSlot {
    /// Number of the packet's operation plus one; 0 for an empty slot.
    number: u64,
    packet: Packet,
}

/// A packet under way to a gate.
pub(crate) struct RoutedPacket {
    to: utofu_vbg_id_t,
    /// 0 if the packet comes from the gate's local source, 1 if from the remote one.
    port: usize,
    number: u64,
    packet: Packet,
}

impl Gate {
    /// Calls `f` with the guarded state.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut GateState) -> R) -> R {
        let _guard = self.lock.lock();
        // SAFETY: the lock is held, and `f` cannot reach this gate again.
        f(unsafe { &mut *self.state.get() })
    }

    /// Clears everything but the ownership.
    pub(crate) fn reset(&self, state: &mut GateState) {
        state.fired = 0;
        for port in &mut state.waiting {
            for w in port {
                w.number = 0;
            }
        }
        for count in [&self.starts, &self.ends, &self.polled] {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Passes complete packets on to the destinations; a start gate ends its operation instead.
    pub(crate) fn fire(
        &self,
        state: &mut GateState,
        start_gate: bool,
        out: &mut Vec<RoutedPacket>,
    ) {
        while let Some(packet) = state.complete() {
            let number = state.fired;
            state.fired += 1;
            if start_gate {
                state.result = packet;
                // Release pairs with the Acquire in poll: a thread that sees the end of the operation also sees what
                // the other ranks wrote before they started it.
                self.ends.store(number + 1, Ordering::Release);
            } else {
                state.send(number, packet, out);
            }
        }
    }
}

impl GateState {
    /// Returns the combined packets of the next operation if all sources have delivered theirs.
    fn complete(&self) -> Option<Packet> {
        if self.connected == 0 {
            return None;
        }
        let mut all: Option<Packet> = None;
        for (source, waiting) in self.sources.iter().zip(&self.waiting) {
            if *source == UTOFU_VBG_ID_NULL {
                continue;
            }
            let w = &waiting[self.fired as usize % DEPTH];
            if w.number != self.fired + 1 {
                return None;
            }
            all = Some(match all {
                None => w.packet,
                Some(p) => p.merge(&w.packet),
            });
        }
        all
    }

    pub(crate) fn send(&self, number: u64, packet: Packet, out: &mut Vec<RoutedPacket>) {
        for (port, &to) in self.destinations.iter().enumerate() {
            if to != UTOFU_VBG_ID_NULL {
                out.push(RoutedPacket { to, port, number, packet });
            }
        }
    }
}

impl Gate {
    pub(crate) fn owner(&self) -> usize {
        self.owner.load(Ordering::Relaxed) as usize
    }
}

/// Returns an allocated gate.
pub(crate) fn find(job: &Job, place: GatePlace) -> Option<&Gate> {
    let node = job.placement.node_at(place.tni.coords)?;
    let table = table(job, node, place.tni.number)?;
    let gate = table.gates.get(usize::from(place.gate))?;
    // Acquire pairs with the Release in alloc: the gate is reset.
    (gate.alive.load(Ordering::Acquire) != 0).then_some(gate)
}

/// Returns the gates of a TNI if one of them has ever been allocated.
pub(crate) fn table(job: &Job, node: usize, tni: u8) -> Option<&GateTable> {
    let record = &job.node(node).tnis[usize::from(tni)];
    // Acquire pairs with the Release in Job::lazy.
    let off = record.gates.load(Ordering::Acquire);
    (off != 0).then(|| job.arena.at(crate::shared::arena::Offset::new(off)))
}

impl RoutedPacket {
    /// Returns the destination gate, and whether it is a start gate.
    fn gate<'a>(&self, job: &'a Job) -> Option<(&'a Gate, bool)> {
        let place = GatePlace::of(self.to).ok()?;
        let gate = find(job, place)?;
        (!job.is_failed(gate.owner() as u32))
            .then_some((gate, usize::from(place.gate) < START_GATES))
    }

    /// Returns the rank whose start gate is the destination.
    pub(crate) fn target_rank(&self, job: &Job) -> Option<usize> {
        self.gate(job).and_then(|(gate, starts)| starts.then(|| gate.owner()))
    }

    /// Delivers the packet to its gate and returns the gate's owner. Packets that the gate passes on are added to
    /// `outgoing`.
    pub(crate) fn deliver(self, job: &Job, outgoing: &mut Vec<RoutedPacket>) -> Option<usize> {
        // As on the real machine, a packet to a gate that does not exist is lost.
        let (gate, starts) = self.gate(job)?;
        gate.with(|state| {
            state.waiting[self.port][self.number as usize % DEPTH] =
                GateSlot { number: self.number + 1, packet: self.packet };
            gate.fire(state, starts, outgoing);
        });
        Some(gate.owner())
    }
}

impl Job {
    /// Returns the number of allocated barrier gates.
    #[must_use]
    pub fn n_gates(&self) -> usize {
        let tables = (0..self.nodes().len())
            .flat_map(|node| (0..TNIS as u8).filter_map(move |tni| table(self, node, tni)));
        // Relaxed: a snapshot for statistics.
        let is_taken = |gate: &&Gate| gate.alive.load(Ordering::Relaxed) != 0;
        tables.map(|table| table.gates.iter().filter(is_taken).count()).sum()
    }
}
