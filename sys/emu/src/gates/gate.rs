//! Calls on barrier gates: allocating, connecting, starting and polling them.

use crate::gates::late;
use crate::gates::reduce::{Kind, Packet};
use crate::gates::table::{GATES, Gate, GateTable, RoutedPacket, START_GATES, find};
use crate::job::core::Job;
use crate::job::current::{Context, job_by_serial};
use crate::limits::error::{Code, Result, fail};
use crate::limits::ids::{ABC, GatePlace, TniPlace};
use crate::shared::arena::ArenaRef;
use crate::sync::Ordering;
use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;
use utofu_sys::*;

fn invalid<T>(id: utofu_vbg_id_t, why: &str) -> Result<T> {
    fail(UTOFU_ERR_INVALID_VBG_ID, format!("gate {id:#x}: {why}"))
}

/// An allocated gate of the calling process.
struct OwnGate {
    job: Arc<Job>,
    gate: ArenaRef<Gate>,
    /// Whether operations start and end at the gate.
    is_start: bool,
}

impl Deref for OwnGate {
    type Target = Gate;

    fn deref(&self) -> &Gate {
        // SAFETY: the gate was found in the arena of the job, which `job` keeps.
        unsafe { self.gate.get() }
    }
}

fn own_gate(id: utofu_vbg_id_t) -> Result<OwnGate> {
    let place = GatePlace::of(id)?;
    let Some(job) = job_by_serial(place.serial) else {
        return invalid(id, "belongs to no job of this process");
    };
    match find(&job, place) {
        Some(gate) if job.me.is_some_and(|me| gate.owner() != me) => {
            invalid(id, "belongs to another rank")
        }
        Some(gate) => {
            let (gate, is_start) = (gate.into(), usize::from(place.gate) < START_GATES);
            Ok(OwnGate { job, gate, is_start })
        }
        None => invalid(id, "is not allocated"),
    }
}

/// Delivers packets of rank `from`, and the packets that result, until none is left; in the late mode the device
/// delivers them.
fn deliver_all(job: &Arc<Job>, from: usize, outgoing: &mut Vec<RoutedPacket>) {
    if late::post(job, from, outgoing) {
        return;
    }
    while let Some(routed) = outgoing.pop() {
        routed.deliver(job, outgoing);
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
            format!("the TNI has no start gate left, or fewer than {} relay gates", n - 1),
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

/// `utofu_free_vbg`: frees all of the gates, or none if one of them is not allocated.
pub(crate) fn free(ids: &[utofu_vbg_id_t]) -> Result<()> {
    if ids.is_empty() {
        return fail(UTOFU_ERR_INVALID_NUMBER, "0 gates: must be at least 1");
    }
    let gates = ids.iter().map(|id| own_gate(*id)).collect::<Result<Vec<_>>>()?;
    gates.iter().for_each(|gate| gate.alive.store(0, Ordering::Release));
    Ok(())
}

/// `utofu_set_vbg`: connects gates. Reconnecting a gate discards the packets that it has received.
pub(crate) fn set(settings: &[utofu_vbg_setting]) -> Result<()> {
    if settings.is_empty() {
        return fail(UTOFU_ERR_INVALID_NUMBER, "0 settings: must be at least 1");
    }
    let mut gates = Vec::with_capacity(settings.len());
    for s in settings {
        gates.push(own_gate(s.vbg_id)?);
        let others = [s.src_lcl_vbg_id, s.src_rmt_vbg_id, s.dst_lcl_vbg_id, s.dst_rmt_vbg_id];
        for id in others.into_iter().filter(|id| *id != UTOFU_VBG_ID_NULL) {
            GatePlace::of(id)?;
        }
        let path = s.dst_path_coords;
        // Fujitsu's library takes the first coordinate 255 for "no path", whatever the other two are.
        if path[0] != UTOFU_PATH_COORD_NULL && (0..3).any(|i| path[i] >= ABC[i]) {
            return fail(
                UTOFU_ERR_INVALID_PATH,
                format!("path coordinates {path:?}: must be below 2, 3, 2, or the first 255"),
            );
        }
    }
    for (gate, s) in gates.iter().zip(settings) {
        let mut outgoing = Vec::new();
        gate.with(|state| {
            if state.connected != 0 {
                gate.reset(state);
            }
            state.connected = 1;
            state.sources = [s.src_lcl_vbg_id, s.src_rmt_vbg_id];
            state.destinations = [s.dst_lcl_vbg_id, s.dst_rmt_vbg_id];
            gate.fire(state, gate.is_start, &mut outgoing);
        });
        deliver_all(&gate.job, gate.owner(), &mut outgoing);
    }
    Ok(())
}

fn own_start_gate(id: utofu_vbg_id_t) -> Result<OwnGate> {
    let gate = own_gate(id)?;
    if !gate.is_start {
        return invalid(id, "is a relay gate: operations start at the first gate of an allocation");
    }
    Ok(gate)
}

thread_local! {
    /// Packets that a start of this thread has under way; empty between starts.
    static OUTGOING: Cell<Vec<RoutedPacket>> = const { Cell::new(Vec::new()) };
}

/// Starts an operation. BUSY until the gate's last operation has been polled to its end.
pub(crate) fn start(id: utofu_vbg_id_t, packet: Packet) -> Result<()> {
    let gate = own_start_gate(id)?;
    // The vector keeps its capacity, so that an operation allocates nothing. A thread that is ending has none.
    let mut outgoing = OUTGOING.try_with(Cell::take).unwrap_or_default();
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
        state.send(number, packet, &mut outgoing);
        Ok(())
    });
    deliver_all(&gate.job, gate.owner(), &mut outgoing);
    let _ = OUTGOING.try_with(|kept| kept.set(outgoing));
    started
}

/// Returns the result of an operation of this kind. NOT_COMPLETED while it runs, BUSY if none runs.
pub(crate) fn poll(id: utofu_vbg_id_t, kind: Kind) -> Result<Packet> {
    let gate = own_start_gate(id)?;
    let polled = gate.polled.load(Ordering::Relaxed);
    if gate.starts.load(Ordering::Relaxed) == polled {
        return Err(Code(UTOFU_ERR_BUSY));
    }
    // Acquire pairs with the Release in fire.
    let is_over = gate.ends.load(Ordering::Acquire) != polled;
    gate.job.count_poll(is_over);
    if !is_over {
        return Err(Code(UTOFU_ERR_NOT_COMPLETED));
    }
    gate.with(|state| {
        // The kind that this rank started decides: the result may be any other rank's.
        if state.started.kind() != kind {
            return fail(
                UTOFU_ERR_INVALID_OP,
                format!("a {:?} operation is in flight, not {kind:?}", state.started.kind()),
            );
        }
        gate.polled.store(polled + 1, Ordering::Relaxed);
        // A result of another length would not fit into the caller's memory.
        Ok(state.result.compared(&state.started))
    })
}
