//! The latency model: durations of operations.
//!
//! By default there are no latencies: an operation is over when its post returns (except in the late mode,
//! [`crate::operations::late`]). With a model the bytes still move at the post, and no poll returns a notice before
//! its time: the completion in the TCQ when the TNI has sent the bytes, the remote notice after a further delay and
//! the hops, the local notice when the answer has come back. A program that waits for notices experiences the
//! latencies; one that watches memory does not. Barrier gates are delayed only in the late mode of a stepped job. The
//! numbers are those of a machine of the network model ([`Model::of_machine`]); tests use others.
//!
//! Without jitter, operations on one target become visible in the order of their posts. With jitter only operations
//! with STRONG_ORDER stay behind earlier ones, which is all that hardware promises: a program that relies on more
//! fails.

use crate::shared::lock::SpinLock;
use crate::shared::watched::Watched;
use crate::sync::{AtomicU64, Ordering};
use crate::timing::links::{self, Calendar};
use hopbine_torus::sim::Machine;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// Longest delay: a thousand seconds.
const MAX_DELAY_NS: f64 = 1e12;

/// Delays of one-sided communication. The default has no delays; [`Model::of_machine`] has those of a machine of the
/// network model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Delay of every operation from leaving the TNI to arriving, without hops, in ns.
    pub put_ns: u64,
    /// Further delay per hop, in ns.
    pub hop_ns: u64,
    /// Largest further delay of an operation, which is random, in ns (`HOPBINE_EMU_JITTER_NS`).
    pub jitter_ns: u64,
    /// Bandwidth of a sending TNI, in 10^6 bytes per second; 0 for no limit.
    pub tni_mbps: u64,
    /// Bandwidth of a link of the torus, and of a receiving TNI, in 10^6 bytes per second. A message longer than a
    /// packet occupies its whole route at once, and waits until all of the route is free. 0: messages do not share
    /// links.
    pub link_mbps: u64,
    /// Time of the sender's processor per message, in ns.
    pub post_ns: u64,
    /// Time of the receiver's processor per message, in ns.
    pub poll_ns: u64,
    /// Least time between two messages of one TNI, in ns.
    pub gap_ns: u64,
    /// The link between ranks of one node; `None`: as between nodes, without hops.
    pub node: Option<NodeLink>,
    /// Time of the caller's processor for registering memory, in ns (`HOPBINE_EMU_REG_NS`).
    pub reg_ns: u64,
    /// Time of the caller's processor for deregistering memory, in ns (`HOPBINE_EMU_DEREG_NS`).
    pub dereg_ns: u64,
    /// Seed of the late mode (`HOPBINE_EMU_LATE`): a thread moves the bytes just before their notice becomes visible,
    /// and reads the source of a put just before its completion. Operations without STRONG_ORDER overtake each other.
    pub late: Option<u64>,
    /// Posts out of 256 that are refused as if the TOQ were full (`HOPBINE_EMU_BUSY`).
    pub busy: u8,
    /// Whether misuse ends the process with a message (`HOPBINE_EMU_CHECKED`): threads that share a CQ without
    /// THREAD_SAFE; in the late mode also puts that overlap, sources that change before they are read, and
    /// deregistration of memory in use.
    pub checked: bool,
    /// The end of a put that the ranks watch without a notice (`HOPBINE_EMU_WATCHED`).
    pub watched: Watched,
}

/// Costs of a message between ranks of one node, which communicate through its memory and use no TNI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeLink {
    /// Delay from the end of sending to the arrival, in ns.
    pub put_ns: u64,
    /// Time of the sender's and of the receiver's processor per message, in ns.
    pub overhead_ns: u64,
    /// Bandwidth of the copy by the sender's processor, in 10^6 bytes per second; 0 for no limit.
    pub mbps: u64,
}

/// Route of a message, and the resources that it occupies. Their values are times until which they are busy, in ns of
/// the job's time.
pub(crate) struct MessageRoute<'a> {
    /// The current time.
    pub(crate) now: u64,
    /// Whether both ranks are on one node.
    pub(crate) same_node: bool,
    pub(crate) hops: u64,
    /// The processor of the posting rank.
    pub(crate) processor: &'a AtomicU64,
    /// The TNI that sends the data.
    pub(crate) from: &'a AtomicU64,
    /// The links that the message also occupies, and the lock of all links; `None` if messages do not share links.
    pub(crate) path: Option<(&'a SpinLock, Vec<&'a Calendar>)>,
}

/// Times at which the parts of an operation become visible, in ns of the job's time; 0 for at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpTimes {
    pub(crate) sent: u64,
    pub(crate) remote: u64,
    pub(crate) local: u64,
}

impl OpTimes {
    /// Delays an operation's effects on its target and its completion behind those of an earlier operation.
    pub(crate) fn after(self, earlier: OpTimes) -> OpTimes {
        OpTimes {
            remote: self.remote.max(earlier.remote),
            local: self.local.max(earlier.local),
            ..self
        }
    }
}

impl Model {
    /// Returns the delays of a machine of the network model, multiplied by `slowdown` so that the host's own execution
    /// time matters little.
    pub fn of_machine(machine: &Machine, slowdown: u32) -> Self {
        // The limit keeps sums of many delays below 2^64 ns.
        let ns = |ns: f64| (ns * f64::from(slowdown)).round().min(MAX_DELAY_NS) as u64;
        // Unlimited bandwidth: 0, no time per byte.
        let mbps = |bytes_per_ns: f64| match bytes_per_ns.is_finite() {
            true => (bytes_per_ns * 1000.0 / f64::from(slowdown)).round().max(1.0) as u64,
            false => 0,
        };
        Model {
            // The machine's latency is that between neighbours, which includes the first hop.
            put_ns: ns((machine.latency_ns - machine.hop_ns).max(0.0)),
            hop_ns: ns(machine.hop_ns),
            tni_mbps: mbps(machine.interface),
            link_mbps: mbps(machine.link),
            post_ns: ns(machine.post_ns),
            poll_ns: ns(machine.poll_ns),
            gap_ns: ns(machine.gap_ns),
            node: Some(NodeLink {
                put_ns: ns(machine.shm_latency_ns),
                overhead_ns: ns(machine.shm_overhead_ns),
                mbps: mbps(machine.copy),
            }),
            ..Model::default()
        }
    }

    /// Returns whether there are latencies.
    pub(crate) fn has_latency(&self) -> bool {
        let between = self.put_ns | self.hop_ns | self.jitter_ns | self.tni_mbps | self.link_mbps;
        (between | self.post_ns | self.poll_ns | self.gap_ns) != 0 || self.node.is_some()
    }

    /// Returns the link between ranks of one node, if it differs from the link between nodes.
    fn node_link(&self, same_node: bool) -> Option<NodeLink> {
        self.node.filter(|_| same_node)
    }

    /// Returns whether a message shares links with other messages.
    pub(crate) fn shares_links(&self, bytes: u64, same_node: bool) -> bool {
        self.link_mbps != 0 && bytes > links::PACKET_BYTES && self.node_link(same_node).is_none()
    }

    /// Returns the time of the receiver's processor per message, in ns.
    pub(crate) fn receive_overhead(&self, same_node: bool) -> u64 {
        self.node_link(same_node).map_or(self.poll_ns, |link| link.overhead_ns)
    }

    /// Returns whether operations on one target become visible in the order of their posts, also without STRONG_ORDER.
    pub(crate) fn keeps_order(&self) -> bool {
        self.jitter_ns == 0
    }

    /// Adds jitter to one operation's times.
    pub(crate) fn jittered(&self, times: OpTimes, random: &mut Random) -> OpTimes {
        if self.jitter_ns == 0 {
            return times;
        }
        let jitter = random.below(self.jitter_ns.saturating_add(1));
        OpTimes { remote: times.remote + jitter, local: times.local + jitter, ..times }
    }

    /// Returns the times of a put or an atomic operation.
    pub(crate) fn put(&self, bytes: u64, route: &MessageRoute<'_>) -> OpTimes {
        if let Some((sent, arrived)) = self.intra_node(bytes, route) {
            return OpTimes { sent, remote: arrived, local: arrived };
        }
        let posted = occupy(route.processor, route.now, self.post_ns);
        let (sent, remote) = self.inter_node(posted, bytes, route);
        OpTimes { sent, remote, local: remote + route.hops * self.hop_ns }
    }

    /// Returns the times of a get, whose data come from the target.
    pub(crate) fn get(&self, bytes: u64, route: &MessageRoute<'_>) -> OpTimes {
        if let Some((sent, arrived)) = self.intra_node(bytes, route) {
            return OpTimes { sent, remote: sent, local: arrived };
        }
        let sent = occupy(route.processor, route.now, self.post_ns);
        let asked = sent + self.put_ns + route.hops * self.hop_ns;
        let (remote, local) = self.inter_node(asked, bytes, route);
        OpTimes { sent, remote, local }
    }

    /// Returns the times at which bytes have left their sender and arrived at their receiver over the link of a node;
    /// `None` if they go over the torus.
    fn intra_node(&self, bytes: u64, route: &MessageRoute<'_>) -> Option<(u64, u64)> {
        let link = self.node_link(route.same_node)?;
        let sent =
            occupy(route.processor, route.now, link.overhead_ns + transfer_ns(bytes, link.mbps));
        Some((sent, sent + link.put_ns))
    }

    /// Returns the times at which bytes that are ready at `start` have left their sender's TNI and passed the
    /// receiver's.
    fn inter_node(&self, start: u64, bytes: u64, route: &MessageRoute<'_>) -> (u64, u64) {
        let tni_ns = transfer_ns(bytes, self.tni_mbps);
        // The next message leaves after the gap, or after the last byte if that is later.
        let (takes, sent) = match &route.path {
            None => (tni_ns, occupy(route.from, start, tni_ns.max(self.gap_ns))),
            Some((lock, path)) => {
                let takes = tni_ns.max(transfer_ns(bytes, self.link_mbps));
                let held = takes.max(self.gap_ns);
                let _guard = lock.lock();
                // Relaxed: the lock orders these accesses, and other accesses use only the number.
                let start = start.max(route.from.load(Ordering::Relaxed));
                let free = links::occupy(path, start, held, route.now) + held;
                route.from.fetch_max(free, Ordering::Relaxed);
                (takes, free)
            }
        };
        let sent = sent - takes.max(self.gap_ns) + takes;
        (sent, sent + self.put_ns + route.hops * self.hop_ns)
    }
}

/// Returns the time of a transfer in ns at `mbps` times 10^6 bytes per second; 0 if `mbps` is 0.
fn transfer_ns(bytes: u64, mbps: u64) -> u64 {
    (bytes * 1000).checked_div(mbps).unwrap_or(0)
}

/// Random delays and refusals.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns a delay of the late mode in ns: mostly that of a few messages, sometimes that of a rank that was
    /// descheduled.
    pub(crate) fn late_delay(&mut self) -> u64 {
        let longest = if self.below(16) == 0 { 400_000 } else { 10_000 };
        self.below(longest)
    }

    /// Returns whether a post is refused although there is room.
    pub(crate) fn refuses(&mut self, busy: u8) -> bool {
        busy > 0 && self.below(256) < u64::from(busy)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }
}

/// Occupies a link or a processor for `ns`, from the time when it is free but not before `from`; returns the end.
pub(crate) fn occupy(busy_until: &AtomicU64, from: u64, ns: u64) -> u64 {
    let mut busy = busy_until.load(Ordering::Relaxed);
    loop {
        let end = busy.max(from) + ns;
        // Relaxed: the number orders no other memory access.
        match busy_until.compare_exchange_weak(busy, end, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return end,
            Err(b) => busy = b,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_the_network_model_says_all_delays() {
        let line =
            "tofu-d,network.latency=1000,network.hop=100,node.post=7,node.copy=24,network.link=inf";
        let machine: Machine = line.parse().unwrap();
        let model = Model::of_machine(&machine, 100);
        assert_eq!((model.put_ns, model.hop_ns, model.post_ns), (90_000, 10_000, 700));
        assert_eq!(
            (model.link_mbps, model.tni_mbps),
            (0, 63),
            "6.335 GB/s, a hundred times as slow"
        );
        let node = model.node.unwrap();
        assert_eq!((node.put_ns, node.mbps), (20_000, 240));
        // A put to a neighbour takes the machine's latency, and the time of its bytes.
        let taken = Taken::default();
        let times = Model::of_machine(&machine, 1).put(63_350, &taken.route(false, 1));
        assert_eq!((times.sent, times.remote - times.sent), (7 + 10_000, 1000));
    }

    /// Resources that a message occupies; fresh in each test.
    #[derive(Default)]
    struct Taken {
        processor: AtomicU64,
        from: AtomicU64,
    }

    impl Taken {
        fn route(&self, same_node: bool, hops: u64) -> MessageRoute<'_> {
            let Taken { processor, from } = self;
            MessageRoute { now: 0, same_node, hops, processor, from, path: None }
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
        assert!(!Model::default().has_latency() && model.has_latency());
    }

    /// Messages without bytes wait for the sending processor (o), and for its TNI (g).
    #[test]
    fn every_message_costs_its_sender_and_its_tni() {
        let second = 1_000_000_000;
        let model = Model { put_ns: 7, post_ns: second, ..Model::default() };
        let taken = Taken::default();
        let [a, b] = [(); 2].map(|()| model.put(0, &taken.route(false, 0)));
        assert_eq!((b.sent - a.sent, b.remote - b.sent), (second, 7));

        let model = Model { put_ns: 7, gap_ns: second, ..Model::default() };
        let taken = Taken::default();
        let [a, b] = [(); 2].map(|()| model.put(0, &taken.route(false, 0)));
        assert_eq!((a.sent, b.sent, b.remote), (0, second, second + 7));
    }

    /// A message that waits for a link keeps the messages behind it from their sender's TNI.
    #[test]
    fn a_busy_link_holds_what_is_behind() {
        let model = Model { put_ns: 7, link_mbps: 1, ..Model::default() };
        let (lock, [shared, other]) = (SpinLock::default(), [(); 2].map(|()| Calendar::default()));
        let (near, far) = (Taken::default(), Taken::default());
        let put = |taken: &Taken, link| {
            let path = Some((&lock, vec![link]));
            model.put(1_000_000, &MessageRoute { path, ..taken.route(false, 1) })
        };
        let second = 1_000_000_000;
        let first = put(&near, &shared);
        let waits = put(&far, &shared);
        let behind = put(&far, &other);
        assert_eq!((waits.sent - first.sent, behind.sent - waits.sent), (second, second));
        assert_eq!(behind.remote - behind.sent, 7);
        assert!(model.shares_links(1921, true) && !model.shares_links(1920, false));
        assert!(!Model { node: Some(NodeLink::default()), ..model }.shares_links(1921, true));
    }

    /// A node's own link occupies processors, no TNI; without such a link its ranks are as far apart as two nodes.
    #[test]
    fn a_node_has_its_own_link() {
        let link = NodeLink { put_ns: 3, overhead_ns: 1_000_000_000, mbps: 1 };
        let model = Model { gap_ns: 1, poll_ns: 5, node: Some(link), ..Model::default() };
        let taken = Taken::default();
        let [a, b] = [(); 2].map(|()| model.put(1_000_000, &taken.route(true, 0)));
        assert_eq!((b.sent - a.sent, b.remote - b.sent), (2_000_000_000, 3));
        // Relaxed: one thread.
        assert_eq!(taken.from.load(Ordering::Relaxed), 0);
        assert_eq!(
            (model.receive_overhead(true), model.receive_overhead(false)),
            (1_000_000_000, 5)
        );
        assert_eq!(Model { node: None, ..model }.receive_overhead(true), 5);
    }
}
