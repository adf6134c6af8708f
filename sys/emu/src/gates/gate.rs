//! Barrier gates: 48 per TNI, of which the first 16 can start and end an operation.
//!
//! A gate waits for a packet from each of its sources, combines them and signals its destinations.
//! A start/end gate signals its destinations when its rank starts an operation, and ends the
//! operation when its sources have arrived. There is no device thread: whoever makes a gate
//! complete carries its packet on, through as many gates as that completes in turn.
//!
//! Packets carry the number of their operation, counted from the allocation of the gates, and wait
//! in the place of that number. So two packets may overtake each other, carried by different ranks,
//! and a packet may come before its gate is connected.

use crate::gates::reduce::{Kind, Packet};
use crate::job::core::Job;
use crate::job::current::{Context, by_serial};
use crate::limits::error::{Code, Result, fail};
use crate::limits::ids::{ABC, GatePlace, TniPlace};
use crate::shared::arena::Shared;
use crate::shared::lock::SpinLock;
use crate::sync::{AtomicU64, Ordering};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use utofu_sys::*;

/// Gates of a TNI.
const GATES: usize = 48;
/// Start/end gates: the first of a TNI; the others relay.
const START_GATES: usize = 16;
/// Operations whose packets may wait at a gate. Two are enough for connected gates: nobody starts
/// operation n + 2 before everybody has started n + 1.
const DEPTH: usize = 4;

/// The gates of a TNI. Valid when zeroed.
#[repr(C)]
pub(crate) struct GateTable {
    gates: [Gate; GATES],
}

// SAFETY: atomics, and cells that the gates' locks guard.
unsafe impl Shared for GateTable {}

#[repr(C, align(64))]
struct Gate {
    lock: SpinLock,
    /// 1 while allocated.
    alive: AtomicU32,
    owner: AtomicU32,
    /// Operations started, ended, and polled to their end, since the allocation. Start gates only.
    starts: AtomicU64,
    ends: AtomicU64,
    polled: AtomicU64,
    /// Guarded by `lock`.
    state: UnsafeCell<State>,
}

// SAFETY: `state` is touched with the lock held only.
unsafe impl Sync for Gate {}

#[repr(C)]
struct State {
    /// Whether `set_vbg` was called.
    connected: u32,
    /// Local and remote source; NULL: none.
    sources: [utofu_vbg_id_t; 2],
    /// Local and remote destination.
    destinations: [utofu_vbg_id_t; 2],
    /// Packets passed on: both sources had delivered them.
    fired: u64,
    waiting: [[Waiting; DEPTH]; 2],
    /// Start gates: the result of the last operation, and what was started.
    result: Packet,
    started: Packet,
}

/// A packet at a gate.
#[repr(C)]
#[derive(Clone, Copy)]
struct Waiting {
    /// Number of its operation plus one.
    number: u64,
    packet: Packet,
}

/// A packet on its way to a gate.
struct Parcel {
    to: utofu_vbg_id_t,
    /// 0: from the gate's local source, 1: from the remote one.
    port: usize,
    number: u64,
    packet: Packet,
}

impl Gate {
    /// Calls `f` with the guarded state.
    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let _guard = self.lock.lock();
        // SAFETY: the lock is held, and `f` cannot reach this gate again.
        f(unsafe { &mut *self.state.get() })
    }

    /// Clears everything but the ownership.
    fn reset(&self, state: &mut State) {
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

    /// Passes complete packets on; a start gate ends its operation instead.
    fn fire(&self, state: &mut State, start_gate: bool, out: &mut Vec<Parcel>) {
        while let Some(packet) = state.complete() {
            let number = state.fired;
            state.fired += 1;
            if start_gate {
                state.result = packet;
                // Release pairs with the Acquire in poll: what the other ranks did before they
                // started the operation is visible to who sees its end.
                self.ends.store(number + 1, Ordering::Release);
            } else {
                state.send(number, packet, out);
            }
        }
    }
}

impl State {
    /// The next operation's packets combined, if all sources have delivered.
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

    fn send(&self, number: u64, packet: Packet, out: &mut Vec<Parcel>) {
        for (port, &to) in self.destinations.iter().enumerate() {
            if to != UTOFU_VBG_ID_NULL {
                out.push(Parcel { to, port, number, packet });
            }
        }
    }
}

fn invalid<T>(id: utofu_vbg_id_t, why: &str) -> Result<T> {
    fail(UTOFU_ERR_INVALID_VBG_ID, format!("gate {id:#x}: {why}"))
}

/// The job and the place of an allocated gate of the calling process.
fn own(id: utofu_vbg_id_t) -> Result<(Arc<Job>, GatePlace)> {
    let place = GatePlace::of(id)?;
    let Some(job) = by_serial(place.serial) else {
        return invalid(id, "belongs to no job of this process");
    };
    match find(&job, place) {
        Some(gate) if job.me.is_some_and(|me| gate.owner() != me) => {
            invalid(id, "belongs to another rank")
        }
        Some(_) => Ok((job, place)),
        None => invalid(id, "is not allocated"),
    }
}

impl Gate {
    fn owner(&self) -> usize {
        self.owner.load(Ordering::Relaxed) as usize
    }
}

/// An allocated gate.
fn find(job: &Job, place: GatePlace) -> Option<&Gate> {
    let node = job.placement.node_at(place.tni.coords)?;
    let table = table(job, node, place.tni.number)?;
    let gate = table.gates.get(usize::from(place.gate))?;
    // Acquire pairs with the Release in alloc: the gate is reset.
    (gate.alive.load(Ordering::Acquire) != 0).then_some(gate)
}

/// The gates of a TNI, once one was ever allocated.
fn table(job: &Job, node: usize, tni: u8) -> Option<&GateTable> {
    let record = &job.node(node).tnis[usize::from(tni)];
    // Acquire pairs with the Release in Job::lazy.
    let off = record.gates.load(Ordering::Acquire);
    (off != 0).then(|| job.arena.at(crate::shared::arena::Off::new(off)))
}

/// Carries packets until nothing moves any more.
fn carry(job: &Job, parcels: &mut Vec<Parcel>) {
    while let Some(p) = parcels.pop() {
        let Some((place, gate)) =
            GatePlace::of(p.to).ok().and_then(|place| Some((place, find(job, place)?)))
        else {
            // As on the real machine a packet to a gate that is not there is lost.
            continue;
        };
        gate.with(|state| {
            state.waiting[p.port][p.number as usize % DEPTH] =
                Waiting { number: p.number + 1, packet: p.packet };
            let start_gate = usize::from(place.gate) < START_GATES;
            gate.fire(state, start_gate, parcels);
        });
    }
}

/// `utofu_alloc_vbg`: one start/end gate and n - 1 relay gates.
pub(crate) fn alloc(context: &Context, tni: u16, n: usize) -> Result<Vec<utofu_vbg_id_t>> {
    let job = &context.job;
    let record = job.tni(job.node_of(context.rank), tni)?;
    if n == 0 {
        return fail(UTOFU_ERR_INVALID_NUMBER, "0 gates: must be at least 1");
    }
    let _guard = record.lock.lock();
    let table: &GateTable = job.arena.at(job.lazy(&record.gates)?);
    let free = |range: std::ops::Range<usize>| {
        range.filter(|g| table.gates[*g].alive.load(Ordering::Relaxed) == 0)
    };
    let chosen: Vec<usize> =
        free(0..START_GATES).take(1).chain(free(START_GATES..GATES).take(n - 1)).collect();
    if chosen.len() < n || chosen[0] >= START_GATES {
        return fail(
            UTOFU_ERR_FULL,
            format!("the TNI has no start gate and {} relay gates left", n - 1),
        );
    }
    let tni = TniPlace { coords: job.coords_of(context.rank), number: tni as u8 };
    let ids = chosen.into_iter().map(|g| {
        let gate = &table.gates[g];
        gate.with(|state| {
            gate.reset(state);
            state.connected = 0;
        });
        gate.owner.store(context.rank as u32, Ordering::Relaxed);
        // Release pairs with the Acquire in find.
        gate.alive.store(1, Ordering::Release);
        GatePlace { tni, gate: g as u8, serial: job.serial }.id()
    });
    Ok(ids.collect())
}

/// `utofu_free_vbg`: all of them, or none if one is not allocated.
pub(crate) fn free(ids: &[utofu_vbg_id_t]) -> Result<()> {
    if ids.is_empty() {
        return fail(UTOFU_ERR_INVALID_NUMBER, "0 gates: must be at least 1");
    }
    for id in ids {
        own(*id)?;
    }
    for id in ids {
        let (job, place) = own(*id)?;
        if let Some(gate) = find(&job, place) {
            gate.alive.store(0, Ordering::Release);
        }
    }
    Ok(())
}

/// `utofu_set_vbg`: connects gates. Connecting a gate again forgets what went through it.
pub(crate) fn set(settings: &[utofu_vbg_setting]) -> Result<()> {
    if settings.is_empty() {
        return fail(UTOFU_ERR_INVALID_NUMBER, "0 settings: must be at least 1");
    }
    for s in settings {
        own(s.vbg_id)?;
        let others = [s.src_lcl_vbg_id, s.src_rmt_vbg_id, s.dst_lcl_vbg_id, s.dst_rmt_vbg_id];
        for id in others.into_iter().filter(|id| *id != UTOFU_VBG_ID_NULL) {
            GatePlace::of(id)?;
        }
        let path = s.dst_path_coords;
        // Fujitsu's library looks at the first coordinate only to see whether there is a path.
        if path[0] != UTOFU_PATH_COORD_NULL && (0..3).any(|i| path[i] >= ABC[i]) {
            return fail(
                UTOFU_ERR_INVALID_PATH,
                format!("path coordinates {path:?}: must be below 2, 3, 2, or the first 255"),
            );
        }
    }
    for s in settings {
        let (job, place) = own(s.vbg_id)?;
        let Some(gate) = find(&job, place) else {
            return invalid(s.vbg_id, "was freed meanwhile");
        };
        let mut parcels = Vec::new();
        gate.with(|state| {
            if state.connected != 0 {
                gate.reset(state);
            }
            state.connected = 1;
            state.sources = [s.src_lcl_vbg_id, s.src_rmt_vbg_id];
            state.destinations = [s.dst_lcl_vbg_id, s.dst_rmt_vbg_id];
            let start_gate = usize::from(place.gate) < START_GATES;
            gate.fire(state, start_gate, &mut parcels);
        });
        carry(&job, &mut parcels);
    }
    Ok(())
}

/// A start gate of the calling process.
fn starter(id: utofu_vbg_id_t) -> Result<(Arc<Job>, GatePlace)> {
    let (job, place) = own(id)?;
    if usize::from(place.gate) >= START_GATES {
        return invalid(id, "is a relay gate: operations start at the first gate of an allocation");
    }
    Ok((job, place))
}

thread_local! {
    /// The packets that a start of this thread has under way; empty between starts.
    static PARCELS: std::cell::Cell<Vec<Parcel>> = const { std::cell::Cell::new(Vec::new()) };
}

/// Starts an operation. BUSY while the last one was not polled to its end.
pub(crate) fn start(id: utofu_vbg_id_t, packet: Packet) -> Result<()> {
    let (job, place) = starter(id)?;
    let Some(gate) = find(&job, place) else {
        return invalid(id, "was freed meanwhile");
    };
    // The vector keeps its capacity: an operation allocates nothing.
    let mut parcels = PARCELS.take();
    let started = gate.with(|state| {
        if state.connected == 0 {
            return invalid(id, "is not connected: call utofu_set_vbg first");
        }
        let number = gate.starts.load(Ordering::Relaxed);
        if number != gate.polled.load(Ordering::Relaxed) {
            return Err(Code(UTOFU_ERR_BUSY));
        }
        gate.starts.store(number + 1, Ordering::Relaxed);
        state.started = packet;
        state.send(number, packet, &mut parcels);
        Ok(())
    });
    carry(&job, &mut parcels);
    PARCELS.set(parcels);
    started
}

/// The result of an operation of this kind. NOT_COMPLETED while it runs, BUSY if none does.
pub(crate) fn poll(id: utofu_vbg_id_t, kind: Kind) -> Result<Packet> {
    let (job, place) = starter(id)?;
    let Some(gate) = find(&job, place) else {
        return invalid(id, "was freed meanwhile");
    };
    let polled = gate.polled.load(Ordering::Relaxed);
    if gate.starts.load(Ordering::Relaxed) == polled {
        return Err(Code(UTOFU_ERR_BUSY));
    }
    // Acquire pairs with the Release in fire.
    let is_over = gate.ends.load(Ordering::Acquire) != polled;
    job.polled(is_over);
    if !is_over {
        return Err(Code(UTOFU_ERR_NOT_COMPLETED));
    }
    gate.with(|state| {
        // A result of another kind would not fit where the caller wants it. What was started
        // decides: after a mismatch the result may be of anyone's kind.
        if state.started.kind() != kind {
            return fail(
                UTOFU_ERR_INVALID_OP,
                format!("a {:?} operation is in flight, not {kind:?}", state.started.kind()),
            );
        }
        gate.polled.store(polled + 1, Ordering::Relaxed);
        Ok(state.result)
    })
}
