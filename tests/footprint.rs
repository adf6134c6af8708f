//! Memory and messages of a rank grow with the number of its peers, not with the size of the world.
//!
//! The worlds have up to 2,048 emulated ranks, most of which are never driven. Rank 0 opens its port and sends a
//! message to each of its partners in recursive doubling. With `--nocapture`, the last line extrapolates to all nodes
//! of Fugaku.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hopbine::endpoint::Time;
use hopbine::endpoint::utofu::{OnNode, Registrar, UtofuEndpoint, connect};
use hopbine::endpoint::{
    Arrival, Endpoint, Event, Posted, RecvPost, SendPost, Slot, Tag, WireRegion,
};
use hopbine_meet::{BootstrapError, Exchange, Records};
use utofu::Api;
use utofu_emu::{Job, Model};

struct Counting;

/// Lock that makes the tests run one at a time, because they count the allocations of all threads.
static TURN: Mutex<()> = Mutex::new(());

/// Bytes allocated and not freed.
static BYTES: AtomicUsize = AtomicUsize::new(0);
/// Largest value of [`BYTES`].
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards every call to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let before = BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        MOST.fetch_max(before + layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's guarantee.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's guarantee.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// An exchange that answers for all ranks. Another rank's record is a copy of this rank's record, with the coordinates
/// of that rank's node and, in the first record, with its own host.
struct Everybody {
    rank: usize,
    nodes: Arc<[[u8; 6]]>,
    told: usize,
}

/// Offsets in bytes of the host's hash and of the coordinates in the first record that ranks exchange.
const HOST_AT: usize = 14;
const IN_FIRST: usize = 26;
/// Offset in bytes of the coordinates in the record of a rank's ports, after the result, the magic number and the
/// protocol version.
const IN_PORTS: usize = 9;
/// Bytes of the first record.
const FIRST_BYTES: usize = 38;

impl Exchange for Everybody {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.nodes.len()
    }

    fn set_timeout(&mut self, _: Duration) {}

    fn allgather(&mut self, mine: &[u8]) -> Result<Records, BootstrapError> {
        self.told += mine.len();
        let at = if mine.len() == FIRST_BYTES { IN_FIRST } else { IN_PORTS };
        let of = |(rank, coords): (u64, &[u8; 6])| {
            let mut record = mine.to_vec();
            if let Some(place) = record.get_mut(at..at + 6) {
                place.copy_from_slice(coords);
            }
            if at == IN_FIRST {
                record[HOST_AT..][..6].copy_from_slice(&rank.to_le_bytes()[..6]);
            }
            record
        };
        Ok((0..).zip(&self.nodes[..]).map(of).collect())
    }
}

/// Memory, peers and start-up data of one rank.
#[derive(Clone, Copy, Debug)]
struct Footprint {
    /// Bytes allocated and bytes registered, after start-up and after the messages.
    opened: usize,
    met: usize,
    peers: usize,
    /// Bytes sent to all other ranks at start-up.
    told: usize,
}

fn poll(endpoint: &mut UtofuEndpoint) -> usize {
    let mut events = Vec::new();
    endpoint.poll(&mut events).unwrap();
    events.iter().filter(|event| matches!(event, Event::Received(_))).count()
}

fn footprint(n_ranks: u32) -> Footprint {
    let side = 1 << (n_ranks.ilog2() / 2);
    let coords = Job::coords_for_shape(&[side, n_ranks / side]).unwrap();
    let nodes: Arc<[[u8; 6]]> = coords.clone().into();
    let job = Job::with_model(coords, Model::default()).unwrap();
    let open = |rank: usize| {
        let mut exchange = Everybody { rank, nodes: nodes.clone(), told: 0 };
        let _entered = job.enter(rank);
        let ports = connect(
            Api::emulated(),
            &mut exchange,
            OnNode::ALONE,
            vec![Registrar::default()],
            &Time::default(),
        );
        (ports.unwrap().pop().unwrap(), exchange.told)
    };
    let before = BYTES.load(Ordering::Relaxed);
    let (mut endpoint, told) = open(0);
    let mut heap = BYTES.load(Ordering::Relaxed) - before;
    let opened = heap + endpoint.footprint().0;

    // `heap` excludes the allocations of the other endpoints.
    let partners: Vec<u32> = (0..n_ranks.ilog2()).map(|bit| 1 << bit).collect();
    let mut others: Vec<_> = partners.iter().map(|&rank| open(rank as usize).0).collect();
    let mut data = [1u8; 8];
    let region = WireRegion { ptr: data.as_mut_ptr(), len: data.len(), key: 0 };
    let tag = Tag { context: 1, operation: 1, message: 0, call: 7 };
    let slot = Slot { run: 0, task: 0 };
    let start = BYTES.load(Ordering::Relaxed);
    for &rank in &partners {
        // SAFETY: the buffer outlives the endpoints, and all messages have the same bytes.
        let posted = unsafe { endpoint.post_send(rank, SendPost { slot, tag, region }) };
        assert_eq!(posted, Ok(Posted::Accepted));
    }
    heap += BYTES.load(Ordering::Relaxed) - start;
    let peers = endpoint.footprint().1;
    let mut into = vec![[0u8; 8]; others.len()];
    for (other, into) in others.iter_mut().zip(&mut into) {
        let region = WireRegion { ptr: into.as_mut_ptr(), len: into.len(), key: 0 };
        // SAFETY: as above.
        let posted = unsafe {
            other.post_recv(0, RecvPost { slot, tag, region, arrival: Arrival::InRegion })
        };
        assert_eq!(posted, Ok(Posted::Accepted));
    }
    let mut received = 0;
    for _ in 0..100_000 {
        let start = BYTES.load(Ordering::Relaxed);
        poll(&mut endpoint);
        heap = heap + BYTES.load(Ordering::Relaxed) - start;
        received += others.iter_mut().map(poll).sum::<usize>();
        if received == others.len() {
            break;
        }
    }
    assert_eq!((received, into), (others.len(), vec![data; others.len()]));
    let met = heap + endpoint.footprint().0;
    Footprint { opened, met, peers, told }
}

#[test]
fn memory_grows_with_peers_and_not_with_the_world() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let sizes = [64, 256, 1024, 2048];
    let all: Vec<Footprint> = sizes.iter().map(|&n| footprint(n)).collect();
    for (n, at) in sizes.iter().zip(&all) {
        println!("{n:6} ranks: {at:?}, {} hellos", 2 * at.peers);
        assert_eq!((at.peers as u32, at.told), (n.ilog2(), 18), "{n} ranks");
    }
    let (small, large) = (all[0], all[3]);
    // Tables of coordinates grow with the sides of the torus, not with the number of ranks.
    let per_rank = (large.opened as f64 - small.opened as f64) / (2048 - 64) as f64;
    assert!(per_rank.abs() < 1.0, "{per_rank} bytes for each rank of the world");
    let per_peer = (large.met - large.opened) as f64 / large.peers as f64;
    assert!(per_peer < 60_000.0, "{per_peer} bytes for each peer");
    println!(
        "158976 ranks, {} peers: about {:.0} KiB for each port, {} bytes told, {} hellos",
        158_976u32.ilog2() + 2,
        (large.opened as f64 + per_peer * 19.0) / 1024.0,
        large.told,
        2 * 19,
    );
}

/// Rank 0 of a job on all nodes of Fugaku opens its six ports.
#[test]
fn the_largest_job_needs_little_while_it_starts() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let sizes: [u8; 6] = [24, 23, 24, 2, 3, 2];
    let n_ranks: usize = sizes.iter().map(|&size| usize::from(size)).product();
    let coords = |rank: usize| {
        let mut rest = rank;
        sizes.map(|size| {
            let at = rest % usize::from(size);
            rest /= usize::from(size);
            at as u8
        })
    };
    let nodes: Arc<[[u8; 6]]> = (0..n_ranks).map(coords).collect();
    // The emulated job has the first two nodes only, because no rank communicates with the others.
    let job = Job::with_model(nodes[..2].to_vec(), Model::default()).unwrap();
    let mut exchange = Everybody { rank: 0, nodes: nodes.clone(), told: 0 };
    let _entered = job.enter(0);
    let before = BYTES.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let began = Instant::now();
    let (shape, map) = hopbine::torus_of_nodes(&mut exchange, nodes[0]).unwrap().expect("a torus");
    let met = MOST.load(Ordering::Relaxed) - before;
    assert_eq!((shape.n_ranks() as usize, shape.to_string().as_str()), (n_ranks, "48x69x48"));
    let registrars = (0..6).map(|_| Registrar::default()).collect();
    let ports =
        connect(Api::emulated(), &mut exchange, OnNode::ALONE, registrars, &Time::default())
            .unwrap();
    let (most, kept) = (MOST.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
    let (most, kept) = (most - before, kept.saturating_sub(before));
    drop(map);
    println!(
        "{n_ranks} ranks: {} ports, {:.1} MiB at most ({:.1} until the torus is known), {:.1} bytes of each rank kept, {:.2?}",
        ports.len(),
        most as f64 / f64::from(1 << 20),
        met as f64 / f64::from(1 << 20),
        kept as f64 / n_ranks as f64,
        began.elapsed()
    );
    // Records of 38 bytes, later of 27, besides the rank map with its inverse, VCQ places of 8 bytes and the decision
    // table.
    assert!(most < 8 << 20, "{most} bytes while it starts");
    assert!(kept < 24 * n_ranks, "{kept} bytes afterwards");
}
