//! The latency model: how long operations take.
//!
//! It is off by default: an operation is over when its post returns (but for the late mode,
//! [`crate::operations::late`]). With a model the bytes still move at the post, and no poll shows a notice before
//! its time: the completion in the TCQ when the TNI has sent the bytes, the remote notice a delay and
//! the hops later, the local notice when the answer has come back. A program that waits for notices
//! meets the latencies; one that watches memory does not. Barrier gates are not delayed.
//!
//! Without jitter, operations on one target are seen in the order in which they were posted. With
//! jitter only those with STRONG_ORDER keep behind the earlier ones, which is all that hardware
//! promises: a program that leans on more fails.

use crate::shared::lock::SpinLock;
use crate::shared::watched::Watched;
use crate::sync::{AtomicU64, Ordering};
use crate::timing::links::{self, Calendar};

/// Delays of one-sided communication. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Delay of every operation from leaving the TNI to arriving, in ns (`HOPBINE_EMU_PUT_NS`).
    pub put_ns: u64,
    /// More delay for every hop, in ns (`HOPBINE_EMU_HOP_NS`).
    pub hop_ns: u64,
    /// More delay for every operation, random up to this many ns (`HOPBINE_EMU_JITTER_NS`).
    pub jitter_ns: u64,
    /// What one TNI sends, in 10^6 bytes per second (`HOPBINE_EMU_TNI_MBPS`); 0: no limit.
    pub tni_mbps: u64,
    /// What one link of the torus carries, and what one TNI takes in, in 10^6 bytes per second
    /// (`HOPBINE_EMU_LINK_MBPS`): a message of more than a packet occupies its whole route at once, and
    /// waits until all of it is free; 0: messages do not meet.
    pub link_mbps: u64,
    /// LogGP's o: what a message takes of its sender's processor and of its receiver's, in ns
    /// (`HOPBINE_EMU_OVERHEAD_NS`).
    pub overhead_ns: u64,
    /// LogGP's g: what a message takes of the TNIs at both ends besides its bytes, in ns
    /// (`HOPBINE_EMU_GAP_NS`).
    pub gap_ns: u64,
    /// The link between ranks of one node; None: as between nodes, without hops.
    pub node: Option<NodeLink>,
    /// The late mode, with this seed (`HOPBINE_EMU_LATE`): a thread moves the bytes, just before
    /// their notice can be seen; the source of a put is read just before its completion. Operations
    /// without STRONG_ORDER overtake each other.
    pub late: Option<u64>,
    /// Posts that are refused as if the TOQ were full, of 256 (`HOPBINE_EMU_BUSY`).
    pub busy: u8,
    /// Whether misuse ends the process with a message (`HOPBINE_EMU_CHECKED`): a CQ that threads
    /// share without THREAD_SAFE; in the late mode also puts that overlap, sources that change
    /// before they are read, and memory that is deregistered while it is needed.
    pub checked: bool,
    /// The end of a put that the ranks watch without a notice (`HOPBINE_EMU_WATCHED`).
    pub watched: Watched,
}

/// What a message costs between ranks of one node, which speak through its memory: no TNI is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeLink {
    /// Delay from leaving the sender to arriving, in ns (`HOPBINE_EMU_NODE_PUT_NS`).
    pub put_ns: u64,
    /// As [`Model::overhead_ns`] (`HOPBINE_EMU_NODE_OVERHEAD_NS`).
    pub overhead_ns: u64,
    /// What the sender's processor copies, in 10^6 bytes per second (`HOPBINE_EMU_NODE_MBPS`); 0: no
    /// limit.
    pub mbps: u64,
}

/// Where a message goes, and what is taken by it. The times say until when, in ns of the job's time.
pub(crate) struct Route<'a> {
    /// The time.
    pub(crate) now: u64,
    /// Whether both ranks are on one node.
    pub(crate) inside: bool,
    pub(crate) hops: u64,
    /// The processor of the rank that posts.
    pub(crate) processor: &'a AtomicU64,
    /// The TNI that sends the data, and the one where they arrive.
    pub(crate) from: &'a AtomicU64,
    pub(crate) to: &'a AtomicU64,
    /// The links that it occupies besides, and the lock of all links; `None` if messages do not meet.
    pub(crate) path: Option<(&'a SpinLock, Vec<&'a Calendar>)>,
}

/// When the parts of an operation may be seen, in ns of the job's time; 0: at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) sent: u64,
    pub(crate) remote: u64,
    pub(crate) local: u64,
}

impl Model {
    /// Whether there are latencies.
    pub(crate) fn takes_time(&self) -> bool {
        let between = self.put_ns | self.hop_ns | self.jitter_ns | self.tni_mbps | self.link_mbps;
        (between | self.overhead_ns | self.gap_ns) != 0 || self.node.is_some()
    }

    /// The link between ranks of one node, where it is another than that between nodes.
    fn inside(&self, inside: bool) -> Option<NodeLink> {
        self.node.filter(|_| inside)
    }

    /// Whether a message meets others on its way.
    pub(crate) fn meets(&self, bytes: u64, inside: bool) -> bool {
        self.link_mbps != 0 && bytes > links::PACKET && self.inside(inside).is_none()
    }

    /// What a message takes of the processor that receives it, in ns.
    pub(crate) fn receiving(&self, inside: bool) -> u64 {
        self.inside(inside).map_or(self.overhead_ns, |link| link.overhead_ns)
    }

    /// Times of one operation among others of a sender. `earlier` are the latest times of those
    /// that it posted before to the same target, and become those of all.
    pub(crate) fn queue(
        &self,
        mut times: Times,
        earlier: &mut Times,
        strong: bool,
        random: &mut Random,
    ) -> Times {
        if self.jitter_ns > 0 {
            let jitter = random.below(self.jitter_ns.saturating_add(1));
            times.remote += jitter;
            times.local += jitter;
        }
        if strong || self.jitter_ns == 0 {
            times.remote = times.remote.max(earlier.remote);
            times.local = times.local.max(earlier.local);
        }
        earlier.remote = earlier.remote.max(times.remote);
        earlier.local = earlier.local.max(times.local);
        times
    }

    /// Times of a put or an atomic operation.
    pub(crate) fn put(&self, bytes: u64, route: &Route<'_>) -> Times {
        if let Some((sent, arrived)) = self.stay(bytes, route) {
            return Times { sent, remote: arrived, local: arrived };
        }
        let posted = occupy(route.processor, route.now, self.overhead_ns);
        let (sent, remote) = self.cross(posted, bytes, route);
        Times { sent, remote, local: remote + route.hops * self.hop_ns }
    }

    /// Times of a get, whose data come from the target.
    pub(crate) fn get(&self, bytes: u64, route: &Route<'_>) -> Times {
        if let Some((sent, arrived)) = self.stay(bytes, route) {
            return Times { sent, remote: sent, local: arrived };
        }
        let sent = occupy(route.processor, route.now, self.overhead_ns);
        let asked = sent + self.put_ns + route.hops * self.hop_ns;
        let (remote, local) = self.cross(asked, bytes, route);
        Times { sent, remote, local }
    }

    /// When bytes have left their sender and come to their receiver by the link of a node; `None` if
    /// they go another way.
    fn stay(&self, bytes: u64, route: &Route<'_>) -> Option<(u64, u64)> {
        let link = self.inside(route.inside)?;
        let sent = occupy(route.processor, route.now, link.overhead_ns + wire(bytes, link.mbps));
        Some((sent, sent + link.put_ns))
    }

    /// When bytes that are there at a time have left the one TNI and come through the other.
    fn cross(&self, start: u64, bytes: u64, route: &Route<'_>) -> (u64, u64) {
        let takes = self.gap_ns + wire(bytes, self.tni_mbps);
        let sent = match &route.path {
            None => occupy(route.from, start, takes),
            Some((lock, path)) => {
                let takes = takes.max(wire(bytes, self.link_mbps));
                let _guard = lock.lock();
                // Relaxed: the lock orders these, and only the number matters to others.
                let start = start.max(route.from.load(Ordering::Relaxed));
                let sent = links::occupy(path, start, takes, route.now) + takes;
                route.from.fetch_max(sent, Ordering::Relaxed);
                sent
            }
        };
        let arrived = sent + self.put_ns + route.hops * self.hop_ns;
        match self.gap_ns {
            0 => (sent, arrived),
            gap => (sent, occupy(route.to, arrived, gap)),
        }
    }
}

/// What bytes take at 10^6 bytes per second, in ns; 0: no time.
fn wire(bytes: u64, mbps: u64) -> u64 {
    (bytes * 1000).checked_div(mbps).unwrap_or(0)
}

/// Random numbers by xorshift: the delays need no better ones.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A delay of the late mode in ns: mostly that of a few messages, now and then that of a rank
    /// that was kept from its processor.
    pub(crate) fn late(&mut self) -> u64 {
        let longest = if self.below(16) == 0 { 400_000 } else { 10_000 };
        self.below(longest)
    }

    /// Whether a post is refused although there is room.
    pub(crate) fn refuses(&mut self, busy: u8) -> bool {
        busy > 0 && self.below(256) < u64::from(busy)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// Occupies a link or a processor for a while, from when it is free; returns the end.
pub(crate) fn occupy(busy_until: &AtomicU64, from: u64, ns: u64) -> u64 {
    let mut busy = busy_until.load(Ordering::Relaxed);
    loop {
        let end = busy.max(from) + ns;
        // Relaxed: only the number matters.
        match busy_until.compare_exchange_weak(busy, end, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return end,
            Err(b) => busy = b,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a message takes; fresh in each test.
    #[derive(Default)]
    struct Taken {
        processor: AtomicU64,
        from: AtomicU64,
        to: AtomicU64,
    }

    impl Taken {
        fn route(&self, inside: bool, hops: u64) -> Route<'_> {
            let Taken { processor, from, to } = self;
            Route { now: 0, inside, hops, processor, from, to, path: None }
        }
    }

    #[test]
    fn a_link_sends_one_thing_after_the_other() {
        let model = Model { put_ns: 500, hop_ns: 100, tni_mbps: 1000, ..Model::default() };
        let taken = Taken::default();
        let first = model.put(1_000_000, &taken.route(false, 2));
        let second = model.put(1_000_000, &taken.route(false, 2));
        assert_eq!(first.remote - first.sent, 700);
        assert_eq!(first.local - first.remote, 200);
        assert_eq!(second.sent - first.sent, 1_000_000, "1 MB at 1000 MB/s takes 1 ms");
    }

    #[test]
    fn without_a_limit_only_the_way_takes_time() {
        let model = Model { put_ns: 10, ..Model::default() };
        let taken = Taken::default();
        let t = model.get(1 << 20, &taken.route(false, 3));
        assert_eq!((t.remote - t.sent, t.local - t.sent), (10, 20));
        assert!(!Model::default().takes_time() && model.takes_time());
    }

    /// Messages without bytes queue for the processor that sends them, for o, and for both TNIs, for g.
    #[test]
    fn every_message_costs_its_sender_and_its_tnis() {
        let second = 1_000_000_000;
        let model = Model { put_ns: 7, overhead_ns: second, ..Model::default() };
        let taken = Taken::default();
        let [a, b] = [(); 2].map(|()| model.put(0, &taken.route(false, 0)));
        assert_eq!((b.sent - a.sent, b.remote - b.sent), (second, 7));

        let model = Model { put_ns: 7, gap_ns: second, ..Model::default() };
        // Two senders to one receiver: the second waits at the end of the way, not at its start.
        let (near, far) = (Taken::default(), Taken::default());
        let a = model.put(0, &near.route(false, 0));
        let b = model.put(0, &Route { to: &near.to, ..far.route(false, 0) });
        assert_eq!(a.remote - a.sent, 7 + second);
        assert!(b.sent < a.sent + second && b.remote == a.remote + second);
    }

    /// A message that waits for a link keeps its sender's TNI from what comes behind it.
    #[test]
    fn a_busy_link_holds_what_is_behind() {
        let model = Model { put_ns: 7, link_mbps: 1, ..Model::default() };
        let (lock, [shared, other]) = (SpinLock::default(), [(); 2].map(|()| Calendar::default()));
        let (near, far) = (Taken::default(), Taken::default());
        let put = |taken: &Taken, link| {
            let path = Some((&lock, vec![link]));
            model.put(1_000_000, &Route { path, ..taken.route(false, 1) })
        };
        let second = 1_000_000_000;
        let first = put(&near, &shared);
        let waits = put(&far, &shared);
        let behind = put(&far, &other);
        assert_eq!((waits.sent - first.sent, behind.sent - waits.sent), (second, second));
        assert_eq!(behind.remote - behind.sent, 7);
        assert!(model.meets(1921, true) && !model.meets(1920, false));
        assert!(!Model { node: Some(NodeLink::default()), ..model }.meets(1921, true));
    }

    /// A node's own link takes processors, no TNI; without one its ranks are as far as two nodes.
    #[test]
    fn a_node_has_its_own_link() {
        let link = NodeLink { put_ns: 3, overhead_ns: 1_000_000_000, mbps: 1 };
        let model = Model { gap_ns: 1, overhead_ns: 5, node: Some(link), ..Model::default() };
        let taken = Taken::default();
        let [a, b] = [(); 2].map(|()| model.put(1_000_000, &taken.route(true, 0)));
        assert_eq!((b.sent - a.sent, b.remote - b.sent), (2_000_000_000, 3));
        // Relaxed: one thread.
        assert_eq!(taken.from.load(Ordering::Relaxed) + taken.to.load(Ordering::Relaxed), 0);
        assert_eq!((model.receiving(true), model.receiving(false)), (1_000_000_000, 5));
        assert_eq!(Model { node: None, ..model }.receiving(true), 5);
    }
}
