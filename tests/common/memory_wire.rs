//! A wire in memory, stricter than any real one: a send finishes only when its receive has
//! been posted, and events come in random order and late. What cannot deadlock here cannot
//! deadlock over an endpoint that buffers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hopbine::WireError;
use hopbine::endpoint::{Endpoint, Event, Owner, Posted, Slot, Tag, WireRegion};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

type End = (u32, usize);

#[derive(Default)]
struct Net {
    /// By port, sender, receiver and tag.
    sends: HashMap<(usize, u32, u32, Tag), (Slot, WireRegion)>,
    recvs: HashMap<(usize, u32, u32, Tag), (Slot, WireRegion)>,
    events: HashMap<End, Vec<Event>>,
}

/// All ranks' wires.
#[derive(Clone, Default)]
pub struct MemoryWire(Arc<Mutex<Net>>);

impl MemoryWire {
    pub fn endpoint(&self, rank: u32, port: usize, seed: u64) -> MemoryEndpoint {
        let rng = SmallRng::seed_from_u64(seed ^ u64::from(rank) << 8 ^ port as u64);
        MemoryEndpoint { wire: self.clone(), rank, port, rng }
    }

    /// True if every message has met its receive.
    pub fn is_empty(&self) -> bool {
        let net = self.0.lock().unwrap();
        net.sends.is_empty() && net.recvs.is_empty()
    }

    fn matched(net: &mut Net, port: usize, from: u32, to: u32, tag: Tag) {
        let key = (port, from, to, tag);
        if !(net.sends.contains_key(&key) && net.recvs.contains_key(&key)) {
            return;
        }
        let (sent, source) = net.sends.remove(&key).unwrap();
        let (received, target) = net.recvs.remove(&key).unwrap();
        assert_eq!(source.len, target.len, "{from} -> {to}: both sides cut messages alike");
        if source.len > 0 {
            // SAFETY: both are posted, so the engine keeps them valid and leaves them alone.
            unsafe { target.ptr.copy_from_nonoverlapping(source.ptr, source.len) };
        }
        net.events.entry((from, port)).or_default().push(Event::Sent(sent));
        net.events.entry((to, port)).or_default().push(Event::Received(received));
    }
}

pub struct MemoryEndpoint {
    wire: MemoryWire,
    rank: u32,
    port: usize,
    rng: SmallRng,
}

impl Endpoint for MemoryEndpoint {
    unsafe fn register(&mut self, _: *mut u8, _: usize, _: Owner<'_>) -> Result<u64, WireError> {
        Ok(0)
    }

    fn release(&mut self, _: u64) -> Result<(), WireError> {
        Ok(())
    }

    fn needs_key(&self, _: u64) -> bool {
        false
    }

    unsafe fn post_recv(
        &mut self,
        slot: Slot,
        from: u32,
        tag: Tag,
        region: WireRegion,
    ) -> Result<Posted, WireError> {
        if self.rng.random_bool(0.1) {
            return Ok(Posted::Later);
        }
        let net = &mut *self.wire.0.lock().unwrap();
        assert!(net.recvs.insert((self.port, from, self.rank, tag), (slot, region)).is_none());
        MemoryWire::matched(net, self.port, from, self.rank, tag);
        Ok(Posted::Accepted)
    }

    unsafe fn post_send(
        &mut self,
        slot: Slot,
        to: u32,
        tag: Tag,
        region: WireRegion,
    ) -> Result<Posted, WireError> {
        if self.rng.random_bool(0.1) {
            return Ok(Posted::Later);
        }
        let net = &mut *self.wire.0.lock().unwrap();
        assert!(net.sends.insert((self.port, self.rank, to, tag), (slot, region)).is_none());
        MemoryWire::matched(net, self.port, self.rank, to, tag);
        Ok(Posted::Accepted)
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        let net = &mut *self.wire.0.lock().unwrap();
        let waiting = net.events.entry((self.rank, self.port)).or_default();
        while !waiting.is_empty() && self.rng.random_bool(0.7) {
            let which = self.rng.random_range(0..waiting.len());
            events.push(waiting.swap_remove(which));
        }
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        true
    }
}
