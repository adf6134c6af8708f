//! A wire in memory, stricter than any real wire. A send finishes only when its receive has been posted. Events come
//! late and in random order; an event is omitted if the post itself completes the message and returns `Done`. A
//! program that cannot deadlock here cannot deadlock over an endpoint that buffers. If a receive allows it, some
//! messages are delivered as views, which end with the next poll.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hopbine::WireError;
use hopbine::endpoint::{
    Arrival, Endpoint, Event, Posted, RecvPost, SendPost, Slot, Tag, View, WireRegion,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

type End = (u32, usize);
/// Port, sender, receiver and tag.
type Key = (usize, u32, u32, Tag);
type PostedSend = (Slot, WireRegion);
type PostedRecv = (Slot, WireRegion, Arrival);

#[derive(Default)]
struct Network {
    /// Posted sends without their receives.
    sends: BTreeMap<Key, PostedSend>,
    recvs: BTreeMap<Key, PostedRecv>,
    events: BTreeMap<End, Vec<Event>>,
    n_views: u64,
}

/// The wires of all ranks.
#[derive(Clone, Default)]
pub struct MemoryWire(Arc<Mutex<Network>>);

impl MemoryWire {
    pub fn endpoint(&self, rank: u32, port: usize, seed: u64) -> MemoryEndpoint {
        let rng = SmallRng::seed_from_u64(seed ^ u64::from(rank) << 8 ^ port as u64);
        MemoryEndpoint { wire: self.clone(), rank, port, rng, live_views: Vec::new() }
    }

    /// The operations (context and number) with a send or receive that has not been matched.
    pub fn operations(&self) -> Vec<(u64, u32)> {
        let net = self.0.lock().unwrap();
        let of = |(.., tag): &Key| (tag.context, tag.operation);
        let mut found: Vec<_> = net.sends.keys().chain(net.recvs.keys()).map(of).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether every message has been matched with its receive.
    pub fn is_empty(&self) -> bool {
        let net = self.0.lock().unwrap();
        net.sends.is_empty() && net.recvs.is_empty()
    }
}

impl Network {
    /// Moves a message whose send and receive are both posted, and queues both events.
    fn deliver(
        &mut self,
        key: Key,
        (sent, source): PostedSend,
        (received, target, arrival): PostedRecv,
    ) {
        let (port, from, to, _) = key;
        assert_eq!(source.len, target.len, "{from} -> {to}: both sides cut messages alike");
        let (sender, receiver) = ((from, port), (to, port));
        self.n_views += 1;
        // Every second message that may be delivered anywhere is delivered as a view of a copy.
        let event = if arrival == Arrival::Anywhere && self.n_views.is_multiple_of(2) {
            // SAFETY: the memory is posted, so the engine keeps it valid and does not write to it.
            let data = unsafe { std::slice::from_raw_parts(source.ptr, source.len) };
            let copy = Box::leak(Box::<[u8]>::from(data));
            let view = View { ptr: copy.as_ptr(), len: copy.len() };
            Event::Viewed(received, view)
        } else {
            if source.len > 0 {
                // SAFETY: both buffers are posted, so the engine keeps them valid and does not access them.
                unsafe { target.ptr.copy_from_nonoverlapping(source.ptr, source.len) };
            }
            Event::Received(received)
        };
        self.events.entry(sender).or_default().push(Event::Sent(sent));
        self.events.entry(receiver).or_default().push(event);
    }
}

/// Overwrites and frees the copies behind the views that have ended.
fn end_views(live_views: &mut Vec<View>) {
    for view in live_views.drain(..) {
        // SAFETY: `deliver` leaked the copy for this view alone, and the view has ended.
        let mut copy = unsafe {
            Box::from_raw(std::ptr::slice_from_raw_parts_mut(view.ptr.cast_mut(), view.len))
        };
        copy.fill(0xdd);
    }
}

/// Returns the answer to a post: sometimes `Done` in place of a queued event.
fn post_result(net: &mut Network, end: End, event: Event, rng: &mut SmallRng) -> Posted {
    let events = net.events.entry(end).or_default();
    match events.last() {
        Some(last) if *last == event && rng.random_bool(0.5) => {
            events.pop();
            Posted::Done
        }
        _ => Posted::Accepted,
    }
}

pub struct MemoryEndpoint {
    wire: MemoryWire,
    rank: u32,
    port: usize,
    rng: SmallRng,
    /// Views that end with the next poll.
    live_views: Vec<View>,
}

impl Endpoint for MemoryEndpoint {
    unsafe fn post_recv(&mut self, from: u32, recv: RecvPost) -> Result<Posted, WireError> {
        let RecvPost { slot, tag, region, arrival } = recv;
        if self.rng.random_bool(0.1) {
            return Ok(Posted::Later);
        }
        let net = &mut *self.wire.0.lock().unwrap();
        let key = (self.port, from, self.rank, tag);
        let recv = (slot, region, arrival);
        match net.sends.remove(&key) {
            Some(send) => net.deliver(key, send, recv),
            None => assert!(net.recvs.insert(key, recv).is_none()),
        }
        Ok(post_result(net, (self.rank, self.port), Event::Received(slot), &mut self.rng))
    }

    unsafe fn post_send(&mut self, to: u32, send: SendPost) -> Result<Posted, WireError> {
        let SendPost { slot, tag, region } = send;
        if self.rng.random_bool(0.1) {
            return Ok(Posted::Later);
        }
        let net = &mut *self.wire.0.lock().unwrap();
        let key = (self.port, self.rank, to, tag);
        match net.recvs.remove(&key) {
            Some(recv) => net.deliver(key, (slot, region), recv),
            None => assert!(net.sends.insert(key, (slot, region)).is_none()),
        }
        Ok(post_result(net, (self.rank, self.port), Event::Sent(slot), &mut self.rng))
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        end_views(&mut self.live_views);
        let net = &mut *self.wire.0.lock().unwrap();
        let waiting = net.events.entry((self.rank, self.port)).or_default();
        while !waiting.is_empty() && self.rng.random_bool(0.7) {
            let which = self.rng.random_range(0..waiting.len());
            let event = waiting.swap_remove(which);
            if let Event::Viewed(_, view) = event {
                self.live_views.push(view);
            }
            events.push(event);
        }
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        true
    }

    fn abandon(&mut self) {
        let net = &mut *self.wire.0.lock().unwrap();
        net.sends.retain(|&(port, from, ..), _| (from, port) != (self.rank, self.port));
        net.recvs.retain(|&(port, _, to, _), _| (to, port) != (self.rank, self.port));
        net.events.remove(&(self.rank, self.port));
    }
}

impl Drop for MemoryEndpoint {
    fn drop(&mut self) {
        end_views(&mut self.live_views);
    }
}
