//! uTofu under the simulation: the endpoint of [`utofu`](crate::endpoint::utofu) as it is, over the
//! emulated device, which does what is due when the simulation says so.
//!
//! All that the device leaves open (when it reads a source, when the bytes arrive, what overtakes what)
//! comes from the seed, by its late mode. Its checked mode finds overlapping puts, sources that change
//! too early, and memory that is deregistered while it is needed.

use std::sync::{Arc, OnceLock};

use hopbine_meet::Exchange;
use rand::{Rng, RngCore};
use utofu::Api;
use utofu_emu::{Job, Model, RankGuard, Stage, StepEvent};

use super::events::Events;
use super::net::{Device, NetState, SimAction};
use super::params::{DeviceParams, one};
use super::simulation::{SimWire, Simulated};
use super::trace::TraceStep;
use crate::Rank;
use crate::endpoint::utofu::{CacheView, OnNode, Registrar, UtofuEndpoint, connect};
use crate::endpoint::{
    Clock, Endpoint, Event, Matching, Observer, Posted, RecvPost, Registry, SendPost, Status, Time,
    WireError,
};
use crate::error::Blame;
use crate::memory::Cache;

/// How an emulated device behaves: late and checked always, with more delays unless it is calm.
fn model(rng: &mut impl RngCore, is_calm: bool) -> Model {
    let late = Model { late: Some(rng.random()), checked: true, ..Model::default() };
    if is_calm {
        return late;
    }
    Model {
        put_ns: one(rng, &[0, 0, 500, 20_000]),
        hop_ns: one(rng, &[0, 100, 10_000]),
        jitter_ns: one(rng, &[0, 1_000, 1_000_000]),
        tni_mbps: one(rng, &[0, 0, 10, 6_800]),
        link_mbps: one(rng, &[0, 0, 10, 6_800]),
        post_ns: one(rng, &[0, 0, 200]),
        poll_ns: one(rng, &[0, 0, 200]),
        gap_ns: one(rng, &[0, 0, 100]),
        busy: one(rng, &[0, 0, 16, 128]),
        ..late
    }
}

/// The longest that a rank is without a processor, in ns.
const LONGEST_PREEMPTION: u64 = 100_000;
/// Stays reachable for so long, at most, after its death, in ns.
const LONGEST_REACH: u64 = 5_000_000;

impl SimWire {
    /// Puts a device under the simulation: a stepped job.
    pub(crate) fn attach(&self, job: Arc<Job>) {
        let mut core = self.0.lock();
        let drawn = DeviceParams::draw(&mut core.rng);
        let params = if core.is_calm { DeviceParams::calm() } else { drawn };
        let listeners = (0..job.size()).map(|_| OnceLock::new()).collect();
        core.device = Some(Device { job, params, listeners });
    }

    /// How the device of this seed behaves.
    pub(crate) fn model(&self) -> Model {
        let mut core = self.0.lock();
        let is_calm = core.is_calm;
        model(&mut core.rng, is_calm)
    }

    /// Makes the thread act as a rank of the device, if there is one.
    pub(super) fn enter(&self, rank: Rank) -> Option<RankGuard> {
        let device = self.0.lock().device.clone();
        device.map(|device| device.job.enter(rank as usize))
    }
}

impl NetState {
    /// Does the next thing that the device has to do, if it is due by `until`; whether there was one.
    pub(super) fn step_device(&mut self, until: u64) -> bool {
        let Some(Device { job, .. }) = &self.device else { return false };
        let Some(stepped) = job.step(until) else { return false };
        self.take_misuse();
        self.stepped(&stepped);
        true
    }

    fn stepped(&mut self, stepped: &StepEvent) {
        let &StepEvent { stage, from, writes, ref memory, .. } = stepped;
        let concerned = stepped.affected_rank().unwrap_or(from) as Rank;
        let what = match stage {
            Stage::Send => "leaves",
            Stage::Arrive => "arrives",
            Stage::Finish => "is acknowledged",
            Stage::Packet => "comes to a gate",
        };
        let bytes = memory.as_ref().map_or(0, ExactSizeIterator::len);
        self.note(concerned, TraceStep::Device { from: from as Rank, what, bytes });
        if let Some(memory) = memory {
            let verb = if writes { "writes" } else { "reads" };
            self.touches(concerned, verb, std::ptr::without_provenance(memory.start), bytes);
        }
        if stepped.affected_rank().is_some() {
            self.wake(concerned);
        }
    }

    fn take_misuse(&mut self) {
        let Some(Device { job, .. }) = &self.device else { return };
        job.take_misuse().into_iter().for_each(|what| self.violated(what));
    }

    /// For how long a rank that begins an operation has no processor, in ns, if it loses it.
    pub(super) fn preempted(&mut self) -> Option<u64> {
        let preempts = self.device.as_ref()?.params.preempts;
        self.chance(preempts).then(|| self.rng.random_range(0..LONGEST_PREEMPTION))
    }

    /// A rank has died: it posts nothing any more, but its memory can be reached for a while.
    pub(super) fn lose_on_device(&mut self, rank: Rank) {
        let Some(Device { job, .. }) = &self.device else { return };
        job.cancel_pending(rank as usize);
        let reach = self.rng.random_range(0..LONGEST_REACH);
        self.after(reach, SimAction::Unreachable(rank));
    }

    /// A rank has given up: nothing is checked of it any more.
    fn excuse_on_device(&self, rank: Rank) {
        if let Some(Device { job, .. }) = &self.device {
            job.exempt_from_checks(rank as usize);
        }
    }

    /// A rank that has died cannot be reached any more.
    pub(super) fn unreachable_on_device(&mut self, rank: Rank) {
        if let Some(Device { job, .. }) = &self.device {
            job.fail_rank(rank as usize);
        }
    }

    /// All ranks have ended: what the device still has to do is left undone. If all have ended well, no
    /// bytes may be on their way.
    pub(super) fn end_device(&mut self, all_ended_well: bool) {
        let Some(Device { job, .. }) = self.device.clone() else { return };
        while all_ended_well && let Some(stepped) = job.due().and_then(|due| job.step(due)) {
            let from = stepped.from;
            if stepped.stage == Stage::Arrive && stepped.writes {
                self.violated(format!("bytes of rank {from} arrive after the end of all ranks"));
            }
            if stepped.stage == Stage::Packet {
                self.violated(format!("a packet of rank {from} comes to a gate after the end"));
            }
        }
        self.take_misuse();
        (0..job.size()).for_each(|rank| job.fail_rank(rank));
    }

    /// The ranks' ports are closed: nothing of them may be left on the device.
    pub(super) fn left_on_device(&mut self, all_ended_well: bool) {
        self.take_misuse();
        let n = self.device.as_ref().map_or(0, |device| device.job.n_gates());
        if all_ended_well && n > 0 {
            self.violated(format!("{n} barrier gates are left after the end"));
        }
    }

    pub(super) fn refuse_on_device(&self, rank: Rank, n: u32) {
        if let Some(Device { job, .. }) = &self.device {
            job.refuse_registrations(rank as usize, n);
        }
    }

    pub(super) fn has_refused_on_device(&self, rank: Rank) -> bool {
        self.device.as_ref().is_some_and(|device| device.job.take_refusal(rank as usize))
    }
}

/// A rank's ports, and the figures of their registration cache.
type Ports = (Vec<Box<dyn Endpoint>>, Option<CacheView>);

impl Simulated {
    /// Whether the ranks of this seed have barrier gates.
    pub(crate) fn has_gates(&self) -> bool {
        self.net.lock().device.as_ref().is_some_and(|device| device.params.has_gates)
    }

    /// The ports of this rank on the device, and the figures of their registration cache if they have one; collective
    /// over `exchange`.
    ///
    /// # Errors
    /// As [`connect`].
    pub(crate) fn utofu_ports(
        &self,
        exchange: &mut dyn Exchange,
        n_ports: usize,
    ) -> Result<Ports, WireError> {
        let params = self.net.lock().device.as_ref().map(|device| device.params.memory);
        let (registrars, view) = match params.and_then(|params| Some((params.cache?, params))) {
            None => ((0..n_ports).map(|_| Registrar::default()).collect(), None),
            Some((config, params)) => {
                let source = Arc::new(Events::new(self, params));
                let cache = Cache::new(config, n_ports, Ok(source));
                let (registrars, view) = Registrar::sharing(cache, n_ports);
                (registrars, Some(view))
            }
        };
        let time = Time::of(Some(self.clock.clone()));
        let ports = connect(Api::emulated(), exchange, OnNode::ALONE, registrars, &time)?;
        let port = |inner| Box::new(SimulatedUtofu { inner, rank: self.clone() }) as _;
        Ok((ports.into_iter().map(port).collect(), view))
    }
}

/// A port of a simulated rank over uTofu: some time passes with every operation.
struct SimulatedUtofu {
    inner: UtofuEndpoint,
    rank: Simulated,
}

impl SimulatedUtofu {
    /// An operation of this rank begins; see `RankClock::enter`.
    fn enter(&self) -> Result<(), WireError> {
        let core = self.rank.clock.enter(&self.rank.net);
        if core.is_over() { Err(super::over()) } else { Ok(()) }
    }

    /// This rank gives up. Then several ranks may write their news to one word, of which any will do, and
    /// others may still write to what this one deregisters.
    fn excuse(&self) {
        self.rank.net.lock().excuse_on_device(self.rank.rank);
    }
}

impl Endpoint for SimulatedUtofu {
    unsafe fn post_send(&mut self, to: Rank, send: SendPost) -> Result<Posted, WireError> {
        self.enter()?;
        // SAFETY: the caller's promise.
        unsafe { self.inner.post_send(to, send) }
    }

    unsafe fn post_recv(&mut self, from: Rank, recv: RecvPost) -> Result<Posted, WireError> {
        self.enter()?;
        // SAFETY: the caller's promise.
        unsafe { self.inner.post_recv(from, recv) }
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        self.enter()?;
        self.inner.poll(events)
    }

    fn flush(&mut self) -> Result<(), WireError> {
        self.enter()?;
        self.inner.flush()
    }

    fn matching(&mut self) -> Option<&mut dyn Matching> {
        self.inner.matching()
    }

    fn is_flushed(&self) -> bool {
        self.inner.is_flushed()
    }

    fn abandon(&mut self) {
        self.excuse();
        self.inner.abandon();
    }

    fn end(&mut self) {
        self.inner.end();
    }

    fn registry(&mut self) -> Option<&mut dyn Registry> {
        self.inner.registry()
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn clock(&self) -> Option<Arc<dyn Clock>> {
        self.inner.clock()
    }
}

impl Observer for SimulatedUtofu {
    fn publish(&mut self, status: Status) {
        self.inner.publish(status);
    }

    fn request_status(&mut self, rank: Rank) -> Result<bool, WireError> {
        self.inner.request_status(rank)
    }

    fn answer(&mut self) -> Option<Status> {
        self.inner.answer()
    }

    fn send_news(&mut self, blame: Blame) {
        self.excuse();
        self.inner.send_news(blame);
    }

    fn received_news(&mut self) -> Option<Blame> {
        self.inner.received_news()
    }
}
