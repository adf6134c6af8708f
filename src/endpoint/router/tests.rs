//! Tests the router with endpoints that only record their calls.

use std::sync::{Arc, Mutex};

use super::*;
use crate::endpoint::{Arrival, MemoryRange, Owner, Slot, Tag, WireRegion};
use crate::error::Fault;
use crate::sync::lock;

/// Calls of the endpoints, in order.
type Log = Arc<Mutex<Vec<String>>>;

struct Fake {
    name: &'static str,
    log: Log,
    is_flushed: bool,
    keys: Option<u64>,
    answers: Option<Status>,
}

impl Fake {
    fn new(name: &'static str, log: &Log) -> Self {
        Fake { name, log: log.clone(), is_flushed: true, keys: None, answers: None }
    }

    fn note(&self, what: impl std::fmt::Display) {
        lock(&self.log).push(format!("{} {what}", self.name));
    }
}

impl Endpoint for Fake {
    unsafe fn post_send(&mut self, to: Rank, _: SendPost) -> Result<Posted, WireError> {
        self.note(format_args!("send {to}"));
        Ok(Posted::Later)
    }

    unsafe fn post_recv(&mut self, from: Rank, _: RecvPost) -> Result<Posted, WireError> {
        self.note(format_args!("recv {from}"));
        Ok(Posted::Accepted)
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        self.note("poll");
        events.push(Event::Sent(Slot { run: 0, task: self.name.len() as u32 }));
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        self.is_flushed
    }

    fn abandon(&mut self) {
        self.note("abandon");
    }

    fn registry(&mut self) -> Option<&mut dyn Registry> {
        self.keys.is_some().then_some(self)
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        self.answers.is_some().then_some(self)
    }
}

impl Registry for Fake {
    unsafe fn register(&mut self, _: MemoryRange, _: Owner<'_>) -> Result<u64, WireError> {
        unreachable!()
    }

    fn release(&mut self, _: u64) -> Result<(), WireError> {
        unreachable!()
    }

    fn keyless_bytes(&self) -> u64 {
        self.keys.unwrap_or(0)
    }

    fn fence(&mut self) -> Result<bool, WireError> {
        unreachable!()
    }

    fn unfenced(&self) -> Option<Rank> {
        None
    }
}

impl Observer for Fake {
    fn publish(&mut self, _: Status) {
        self.note("show");
    }

    fn request_status(&mut self, rank: Rank) -> Result<bool, WireError> {
        self.note(format_args!("ask {rank}"));
        Ok(true)
    }

    fn answer(&mut self) -> Option<Status> {
        self.answers
    }

    fn send_news(&mut self, _: Blame) {
        self.note("tell");
    }

    fn received_news(&mut self) -> Option<Blame> {
        (self.name == "far").then_some(Blame { rank: 3, fault: Fault::Failed, by: 4 })
    }
}

fn router(log: &Log, change: impl Fn(&mut Fake)) -> Router<Fake, Fake> {
    let (mut near, mut far) = (Fake::new("near", log), Fake::new("far", log));
    change(&mut near);
    change(&mut far);
    Router::new(near, [9, 4, 5, 2], far)
}

#[test]
fn posts_go_to_the_peers_wire() {
    let log = Log::default();
    let mut router = router(&log, |_| {});
    let (slot, tag) =
        (Slot { run: 0, task: 0 }, Tag { context: 0, operation: 0, message: 0, call: 0 });
    let region = WireRegion { ptr: std::ptr::null_mut(), len: 0, key: 0 };
    for rank in 0..11 {
        // SAFETY: the region is empty.
        let sent = unsafe { router.post_send(rank, SendPost { slot, tag, region }) };
        assert_eq!(sent.unwrap(), Posted::Later);
        // SAFETY: as above.
        let posted = unsafe {
            router.post_recv(rank, RecvPost { slot, tag, region, arrival: Arrival::InRegion })
        };
        assert_eq!(posted.unwrap(), Posted::Accepted);
        let wire = if [2, 4, 5, 9].contains(&rank) { "near" } else { "far" };
        let took = std::mem::take(&mut *lock(&log));
        assert_eq!(took, [format!("{wire} send {rank}"), format!("{wire} recv {rank}")]);
    }
    let nobody = Router::new(Fake::new("near", &log), [], Fake::new("far", &log));
    assert!(!nobody.is_near(0));
}

#[test]
fn all_wires_are_polled_flushed_and_abandoned() {
    let log = Log::default();
    let mut router = router(&log, |_| {});
    let mut events = Vec::new();
    router.poll(&mut events).unwrap();
    router.abandon();
    assert_eq!(*lock(&log), ["near poll", "far poll", "near abandon", "far abandon"]);
    assert_eq!(events.len(), 2);
    assert!(router.is_flushed());
    router.near.is_flushed = false;
    assert!(!router.is_flushed());
    (router.near.is_flushed, router.far.is_flushed) = (true, false);
    assert!(!router.is_flushed());
}

#[test]
fn keys_are_those_of_the_wire_that_has_some() {
    let log = Log::default();
    let mut router = router(&log, |_| {});
    assert!(router.registry().is_none());
    router.far.keys = Some(16);
    assert_eq!(router.registry().map(|registry| registry.keyless_bytes()), Some(16));
    (router.far.keys, router.near.keys) = (None, Some(8));
    assert_eq!(router.registry().map(|registry| registry.keyless_bytes()), Some(8));
}

#[test]
fn questions_go_to_the_ranks_wire_and_news_everywhere() {
    let log = Log::default();
    assert!(router(&log, |_| {}).observer().is_none());
    let waits = |fake: &mut Fake| fake.answers = Some(Status::WaitsFor(fake.name.len() as Rank, 1));
    let mut router = router(&log, waits);
    let observer = router.observer().unwrap();
    observer.publish(Status::Busy);
    assert!(observer.request_status(5).unwrap());
    assert_eq!(observer.answer(), Some(Status::WaitsFor(4, 1)));
    assert!(observer.request_status(6).unwrap());
    assert_eq!(observer.answer(), Some(Status::WaitsFor(3, 1)));
    let told = observer.received_news();
    observer.send_news(told.unwrap());
    let notes = ["near show", "far show", "near ask 5", "far ask 6", "near tell", "far tell"];
    assert_eq!(*lock(&log), notes);
    // A wire without an observer leaves questions unanswered.
    router.far.answers = None;
    assert!(!router.observer().unwrap().request_status(6).unwrap());
    assert_eq!(router.observer().unwrap().answer(), None);
}

/// Messages of a collective within a node use shared memory; only one rank of each node exchanges messages with
/// other nodes.
#[test]
fn of_a_node_first_plan_only_leaders_reach_other_nodes() {
    use hopbine_torus::plan::Flow;
    use hopbine_torus::{Collective, RankMap, Request, registry};
    let (shape, map) = ("2x2+4".parse().unwrap(), RankMap::ColumnMajor);
    let request = Request { shape, map, root: hopbine_torus::Rank(0), ports: Some(1) };
    let algorithm = registry::find(Collective::Allreduce, "mixed-leader-l").unwrap();
    let expansion = algorithm.schedule(&request).unwrap().expand().unwrap();
    let (slot, tag) =
        (Slot { run: 0, task: 0 }, Tag { context: 0, operation: 0, message: 0, call: 0 });
    let region = WireRegion { ptr: std::ptr::null_mut(), len: 0, key: 0 };
    for rank in 0..16 {
        let log = Log::default();
        let node = rank / 4 * 4..rank / 4 * 4 + 4;
        let near = node.filter(|&other| other != rank);
        let mut router = Router::new(Fake::new("near", &log), near, Fake::new("far", &log));
        let plan = expansion.plan(hopbine_torus::Rank(rank));
        for send in plan.lanes[0].steps.iter().flat_map(|step| &step.sends) {
            // SAFETY: the region is empty.
            let posted = unsafe { router.post_send(send.peer.0, SendPost { slot, tag, region }) };
            assert_eq!(posted.unwrap(), Posted::Later);
        }
        let count = |wire| lock(&log).iter().filter(|line| line.starts_with(wire)).count();
        // The leader sends results to three ranks, and a vector to another node in each of two steps.
        let expected = if rank % 4 == 0 { (3, 2) } else { (1, 0) };
        assert_eq!((count("near"), count("far")), expected, "rank {rank}");
    }
}
