//! A simulated wire: all ranks of it run in one thread, one at a time, in a time of its own, and one
//! seed decides all that a real wire leaves open.
//!
//! Which rank runs next, how long a message takes and by which way it moves, what overtakes what, when
//! a post is put off, when credits come, who dies or is stopped and when: every decision comes from one
//! generator of random numbers, none from a clock, an address or another thread. So a seed repeats a run
//! exactly, on any machine. What is above the wire (engine, matching, diagnosis, failures) is what runs
//! above every other wire.
//!
//! | part | what it is |
//! | --- | --- |
//! | `net` | what ranks share: time, what is under way, which rank runs |
//! | `device` | what moves while no rank does anything |
//! | `params` | probabilities and limits that this seed has drawn |
//! | `inbound`, `outbound` | a port's two halves |
//! | `observer` | status words and news |
//! | `memory` | registrations, and the memory that nobody may touch |
//! | `heap`, `mapping` | memory of the ranks' programs, which comes and goes |
//! | `events` | how a rank's registration cache hears of that |
//! | `schedule` | ranks as coroutines |
//! | `exchange` | what ranks tell each other at the start |
//! | `tofu` | uTofu over the emulated device, instead of messages that are carried directly |
//! | `trace` | a hash of all that happens, and its story |
//!
//! # What it checks by itself
//! A message reads and writes registered memory only, if the seed has chosen that; never a user's buffer
//! that is in no call (see [`Simulated`]); views are overwritten as soon as they have ended; and when all
//! ranks have ended well, nothing is left on the wire.

mod clock;
mod device;
#[cfg(feature = "emu")]
mod events;
mod exchange;
mod heap;
mod inbound;
mod mapping;
mod memory;
mod net;
mod observer;
mod open;
mod outbound;
mod params;
mod schedule;
mod simulation;
#[cfg(feature = "emu")]
mod tofu;
#[cfg(not(feature = "emu"))]
#[path = "no_tofu.rs"]
mod tofu;
mod trace;

use std::sync::Arc;

use hopbine_torus::PortId;
use rustc_hash::FxHashMap;

use crate::Rank;
use crate::error::Blame;
use crate::slab::Slab;

use super::matcher::{Matcher, OtherCall, of_another_call};
use super::{
    Clock, Endpoint, Event, Matching, MemoryRange, Observer, Owner, Posted, RecvPost, Registry,
    SendPost, Slot, Status, Tag, WireError, WireRegion, given_up,
};
use clock::RankClock;
use inbound::{SimBody, SimCicoRecv, SimCmaRecv, SimOpenView};
use memory::Registrations;
use net::{Life, Net, NetState};
use open::OpenOperations;
use outbound::SimCicoSend;
use params::WireParams;

pub(crate) use exchange::Meeting;
pub use mapping::Mapping;
pub(crate) use net::Config;
pub use net::Fate;
pub(crate) use schedule::run;
pub(crate) use simulation::SimWire;
pub use simulation::Simulated;
pub use trace::Entry;

/// Calls that a port remembers: more than operations of one communicator can be under way.
const CALLS: usize = 128;

/// One port of a simulated rank.
#[derive(Debug)]
pub struct SimEndpoint {
    net: Arc<Net>,
    clock: Arc<RankClock>,
    rank: Rank,
    port: PortId,
    matcher: Matcher<SimBody>,
    /// Numbers of peers for the matcher.
    peers: FxHashMap<Rank, usize>,
    /// By number: the peer,
    ranks: Vec<Rank>,
    /// the eager messages that may be sent to it,
    credits: Vec<u32>,
    /// and the credits that are to be given back to it.
    credits_to_return: Vec<u32>,
    /// Rendezvous messages that arrive in pieces.
    rendezvous_recvs: Slab<SimCicoRecv>,
    /// Rendezvous messages that this rank reads.
    cma_recvs: Vec<SimCmaRecv>,
    /// Messages of this rank that receivers have asked for.
    cico_sends: Vec<SimCicoSend>,
    /// Views that the last poll has reported,
    views: Vec<SimOpenView>,
    /// and those that later ones will.
    next_views: Vec<(Slot, SimOpenView)>,
    /// To be reported by the next poll.
    events: Vec<Event>,
    registrations: Registrations,
    unfenced: Option<Rank>,
    /// Posts in a row that were deferred for want of a credit.
    n_deferred: u32,
    open: OpenOperations,
    answer: Option<Status>,
    /// The rank whose status is requested.
    asked: Option<Rank>,
    news: Option<Blame>,
    /// Whether the news have been.
    reported: bool,
    is_abandoned: bool,
}

impl SimEndpoint {
    fn new(net: Arc<Net>, clock: Arc<RankClock>, rank: Rank, port: PortId) -> Self {
        SimEndpoint {
            net,
            clock,
            rank,
            port,
            matcher: Matcher::new(CALLS),
            peers: FxHashMap::default(),
            ranks: Vec::new(),
            credits: Vec::new(),
            credits_to_return: Vec::new(),
            rendezvous_recvs: Slab::default(),
            cma_recvs: Vec::new(),
            cico_sends: Vec::new(),
            views: Vec::new(),
            next_views: Vec::new(),
            events: Vec::new(),
            registrations: Registrations::default(),
            unfenced: None,
            n_deferred: 0,
            open: OpenOperations::default(),
            answer: None,
            asked: None,
            news: None,
            reported: false,
            is_abandoned: false,
        }
    }

    fn check(&self, core: &NetState) -> Result<(), WireError> {
        if self.is_abandoned {
            return Err(given_up());
        }
        if core.is_over() {
            return Err(over());
        }
        Ok(())
    }

    /// The number of a peer.
    fn peer(&mut self, core: &NetState, rank: Rank) -> usize {
        if let Some(&peer) = self.peers.get(&rank) {
            return peer;
        }
        let peer = self.matcher.add_peer(0);
        self.peers.insert(rank, peer);
        self.ranks.push(rank);
        self.credits.push(core.params.credits);
        self.credits_to_return.push(0);
        let WireParams { credits, eager_bytes, .. } = core.params;
        self.matcher.bytes.add_window(credits as usize * (eager_bytes + inbound::RECORD_BYTES));
        peer
    }

    fn differs(&mut self, OtherCall { peer }: OtherCall) -> WireError {
        let rank = self.ranks[peer];
        // News to this rank too.
        let fault = crate::error::Fault::Elsewhere;
        self.news.get_or_insert(Blame { rank, fault, by: self.rank });
        of_another_call(rank)
    }

    /// Posts a message of this region: its memory is registered, if the wire wants that, and no operation is
    /// under way that the message's is too far from.
    fn post(
        &mut self,
        slot: Slot,
        tag: Tag,
        region: &WireRegion,
        post: impl FnOnce(&mut Self, &mut NetState) -> Posted,
    ) -> Result<Posted, WireError> {
        let net = self.net.clone();
        let mut core = self.clock.enter(&net);
        self.check(&core)?;
        self.matcher.enter(tag).map_err(|other| self.differs(other))?;
        let keyless = core.params.keyless_bytes.unwrap_or(u64::MAX);
        if region.len as u64 > keyless && !self.registrations.covers(region) {
            let (rank, port, len) = (self.rank, self.port, region.len);
            core.violated(format!(
                "rank {rank}: a message of {len} bytes is posted on port {port} in memory that is not \
                 registered there"
            ));
        }
        if let Some(other) = self.open.too_far(tag) {
            let (rank, operation, window) = (self.rank, tag.operation, Tag::WINDOW);
            core.violated(format!(
                "rank {rank}: operation {operation} posts while {other} of its communicator is under way, \
                 {window} or more apart"
            ));
        }
        let posted = post(self, &mut core);
        if posted == Posted::Accepted {
            self.open.begin(slot, tag);
        }
        Ok(posted)
    }
}

impl Endpoint for SimEndpoint {
    unsafe fn post_send(&mut self, to: Rank, send: SendPost) -> Result<Posted, WireError> {
        // SAFETY: the caller's promise.
        let post = |port: &mut Self, core: &mut NetState| unsafe { port.send(core, to, send) };
        self.post(send.slot, send.tag, &send.region, post)
    }

    unsafe fn post_recv(&mut self, from: Rank, recv: RecvPost) -> Result<Posted, WireError> {
        // SAFETY: the caller's promise.
        let post = |port: &mut Self, core: &mut NetState| unsafe { port.receive(core, from, recv) };
        self.post(recv.slot, recv.tag, &recv.region, post)
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        let net = self.net.clone();
        let mut core = self.clock.enter(&net);
        self.end_views(&mut core);
        if self.is_abandoned {
            return Ok(());
        }
        self.check(&core)?;
        self.poll_on(&mut core, events)
    }

    fn is_flushed(&self) -> bool {
        // The sender of a rendezvous message waits for the end of the view. A message in `cico_sends` belongs
        // to an operation that has not ended.
        self.credits_to_return.iter().all(|&credits| credits == 0)
            && !self.views.iter().any(SimOpenView::is_rendezvous)
    }

    fn abandon(&mut self) {
        if std::mem::replace(&mut self.is_abandoned, true) {
            return;
        }
        let net = self.net.clone();
        let mut core = net.lock();
        core.abandon(self.rank, self.port);
        self.matcher.clear();
        self.rendezvous_recvs = Slab::default();
        self.cma_recvs.clear();
        self.cico_sends.clear();
        self.events.clear();
        self.credits_to_return.fill(0);
        let due = std::mem::take(&mut self.next_views);
        self.views.extend(due.into_iter().map(|(_, view)| view));
        self.end_views(&mut core);
    }

    fn matching(&mut self) -> Option<&mut dyn Matching> {
        Some(&mut self.matcher)
    }

    fn registry(&mut self) -> Option<&mut dyn Registry> {
        let has_one = self.net.lock().params.keyless_bytes.is_some();
        has_one.then_some(self as &mut dyn Registry)
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn clock(&self) -> Option<Arc<dyn Clock>> {
        Some(self.clock.clone())
    }
}

impl Registry for SimEndpoint {
    unsafe fn register(&mut self, range: MemoryRange, _: Owner<'_>) -> Result<u64, WireError> {
        if self.net.lock().refuses(self.rank) {
            let reason = "there is no room for another registration".to_owned();
            return Err(WireError::new("register", reason));
        }
        Ok(self.registrations.add(range.ptr, range.len))
    }

    fn release(&mut self, key: u64) -> Result<(), WireError> {
        if self.registrations.remove(key) {
            return Ok(());
        }
        let reason = format!("the key {key:#x} is not registered");
        self.net.lock().violated(format!("rank {}: {reason}", self.rank));
        Err(WireError::new("release", reason))
    }

    fn keyless_bytes(&self) -> u64 {
        self.net.lock().params.keyless_bytes.unwrap_or(u64::MAX)
    }

    fn stage_bytes(&self) -> Option<u64> {
        Some(self.net.lock().params.stage_bytes).filter(|&bytes| bytes > 0)
    }

    fn fence(&mut self) -> Result<bool, WireError> {
        self.unfenced = self.net.lock().unfenced(self.rank, self.port);
        Ok(self.unfenced.is_none())
    }

    fn unfenced(&self) -> Option<Rank> {
        self.unfenced
    }
}

impl Drop for SimEndpoint {
    fn drop(&mut self) {
        let net = self.net.clone();
        let mut core = net.lock();
        self.end_views(&mut core);
        if self.is_abandoned {
            return;
        }
        let (rank, port) = (self.rank, self.port);
        let (unexpected, posted) = (self.matcher.n_unexpected(), self.matcher.n_posted());
        if unexpected + posted + self.registrations.len() > 0 && !core.may_leave_messages() {
            core.violated(format!(
                "rank {rank}, port {port}: at the end {unexpected} messages wait for their receives, {posted} \
                 receives for their messages, and {} registrations are left",
                self.registrations.len()
            ));
        }
        drop(core);
        self.abandon();
    }
}

/// The error of whoever goes on after all others have ended.
fn over() -> WireError {
    let reason = "all other ranks have ended".to_owned();
    WireError::new("the simulated wire", reason)
}
