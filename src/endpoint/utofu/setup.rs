//! Start-up: creates VCQs and mailboxes, and exchanges the ranks' addresses.

use std::collections::VecDeque;
use std::sync::Arc;

use hopbine_meet::{Exchange, Records};
use hopbine_torus::PortId;
use utofu::abi::UTOFU_ERR_FULL;
use utofu::handles::{Access, MAX_BATCH, Registration, Vcq, VcqFlags};
use utofu::{Api, UtofuError, VcqInfo};

use super::addresses::{Addresses, QueuePlaces};
use super::channel::EAGER_BYTES;
use super::channels::{Channels, MAILBOX_STAG};
use super::peer_table::PeerTable;
use super::registrar::Registrar;
use super::state::{Fence, MAILBOX_BYTES};
use super::{POOL_BUFFERS, USUAL_PUTS, USUAL_VIEWS, UtofuEndpoint, failed};
use crate::endpoint::calls::CALLS;
use crate::endpoint::matcher::Matcher;
use crate::endpoint::meeting::{agree, check_protocol, with_protocol};
use crate::endpoint::{Rank, Time, WireError};
use crate::memory::Pages;
use crate::slab::Slab;

/// Sizes in a rank's record of addresses. Behind the protocol's number it has the coordinates of the node and for
/// each port's VCQ its TNI and CQ in four bits each, and its extra value in one byte. From these all ranks construct
/// the VCQ's id, which has 8 bytes; the STADDs of its memory follow from the id.
const COORDS_BYTES: usize = 6;
const QUEUE_BYTES: usize = 2;
/// Puts are split at multiples of this, so that the pieces start at cache lines.
const PUT_ALIGN: usize = 256;

/// The most CQs of a TNI that the ranks of a node take for themselves: half of the ordinary ones. The rest is for
/// other software, MPI for example.
const MOST_OWN_CQS: usize = 4;

/// The call that an error names if opening fails on another rank.
const CALL: &str = "opening the ports";

/// The part of an endpoint that exists before the addresses are exchanged.
struct LocalPort {
    // Dropped in this order: see `UtofuEndpoint`.
    mailbox_registration: Registration,
    mailbox: Pages,
    vcq: Vcq,
}

/// This rank among the ranks of its node, which share the node's TNIs.
#[derive(Clone, Copy, Debug)]
pub struct OnNode {
    /// This rank's number, below `n_ranks`.
    pub place: usize,
    /// How many ranks the node has.
    pub n_ranks: usize,
}

impl OnNode {
    /// The only rank of its node.
    pub const ALONE: OnNode = OnNode { place: 0, n_ranks: 1 };
}

/// Opens a port for each of `registrars`, which the port then owns, and exchanges the ports' addresses; collective
/// over `exchange`. The ports of the ranks of a node take the TNIs in turn. `time` is the clock for all waits.
///
/// # Errors
/// [`WireError`] if the exchange fails; if uTofu fails on some rank, or if ranks do not open equally many ports. In
/// the last two cases all ranks get the same error, whose peer is the first rank that failed.
pub fn connect(
    api: Api,
    exchange: &mut dyn Exchange,
    on_node: OnNode,
    registrars: Vec<Registrar>,
    time: &Time,
) -> Result<Vec<UtofuEndpoint>, WireError> {
    let n_ports = registrars.len();
    let opened = open_ports(api, n_ports, on_node);
    let mine = opened.as_ref().map_err(ToString::to_string).and_then(|ports| {
        let infos: Vec<VcqInfo> = ports.iter().map(|port| port.vcq.id().info()).collect();
        encode_addresses(&infos)
    });
    let all = agree(exchange, CALL, mine.as_deref().map_err(Clone::clone))?;
    let rank = exchange.rank() as Rank;
    let places = places(&all, rank, n_ports).map(Arc::new);
    drop(all);
    let ports = opened.and_then(|opened| {
        let places = places?;
        let ports = (0..).map(PortId).zip(opened.into_iter().zip(registrars));
        ports
            .map(|(port, (local, registrar))| {
                let addresses = Addresses::new(api, places.clone(), port);
                let computed = addresses.vcq(rank).map_err(|error| failed(error, Some(rank)))?;
                if computed != local.vcq.id() {
                    return Err(WireError::new(
                        "utofu_construct_vcq_id",
                        format!("{computed}, but it is {}", local.vcq.id()),
                    )
                    .at(rank));
                }
                Ok(finish(local, rank, addresses, registrar, time.clone()))
            })
            .collect()
    });
    // This step may fail on some ranks only: agree on the result.
    agree(
        exchange,
        CALL,
        ports.as_ref().map(|_: &Vec<_>| [].as_slice()).map_err(ToString::to_string),
    )?;
    ports
}

/// Encodes what a rank publishes about its ports' VCQs.
///
/// # Errors
/// VCQs of several nodes, or with a TNI, CQ or extra value that no device has.
fn encode_addresses(vcqs: &[VcqInfo]) -> Result<Vec<u8>, String> {
    let coords = vcqs.first().map_or([0; COORDS_BYTES], |vcq| vcq.coords);
    let mut bytes = coords.to_vec();
    for vcq in vcqs {
        if vcq.coords != coords || vcq.tni > 15 || vcq.cq > 15 || vcq.extra > 255 {
            return Err(format!("a VCQ of a rank on {coords:?} that no Tofu device has: {vcq:?}"));
        }
        bytes.extend([(vcq.tni << 4 | vcq.cq) as u8, vcq.extra as u8]);
    }
    Ok(with_protocol(&bytes))
}

/// Decodes the bytes of [`encode_addresses`]; `None` if the length is invalid.
fn decode_addresses(bytes: &[u8]) -> Option<Vec<VcqInfo>> {
    let (&coords, queues) = bytes.split_first_chunk::<COORDS_BYTES>()?;
    let (queues, []) = queues.as_chunks::<QUEUE_BYTES>() else { return None };
    let vcq = |queue: &[u8; QUEUE_BYTES]| {
        let [place, extra] = queue.map(u16::from);
        VcqInfo { coords, tni: place >> 4, cq: place & 15, extra }
    };
    Some(queues.iter().map(vcq).collect())
}

/// Computes all ranks' addresses from their records.
fn places(all: &Records, rank: Rank, n_ports: usize) -> Result<QueuePlaces, WireError> {
    let ids = all.iter().enumerate().map(|(peer, record)| {
        let peer = peer as Rank;
        let refused = |reason| WireError::new(CALL, reason).at(peer);
        let bytes = check_protocol(record, peer, rank).map_err(refused)?;
        let wrong = || refused(format!("rank {peer} sent a record of {} bytes", bytes.len()));
        decode_addresses(bytes).ok_or_else(wrong)
    });
    QueuePlaces::new(ids, rank, n_ports)
}

fn open_ports(api: Api, n_ports: usize, on_node: OnNode) -> Result<Vec<LocalPort>, WireError> {
    let tnis = api.onesided_tnis().map_err(|error| failed(error, None))?;
    if tnis.is_empty() {
        return Err(WireError::new("utofu_get_onesided_tnis", "there is no TNI"));
    }
    let tni = |port: PortId| tnis[(on_node.place * n_ports + port.index()) % tnis.len()];
    let own_cqs = (on_node.n_ranks * n_ports).div_ceil(tnis.len()) <= MOST_OWN_CQS;
    PortId::first(n_ports as u16).map(|port| open_port(api, tni(port), own_cqs)).collect()
}

/// Creates the VCQ of a port, on a CQ of its own if `own_cq` and one is left.
///
/// Other software of the process, such as MPI, may post to its VCQs without a lock while a thread of hopbine
/// posts, so a shared CQ is safe only if one thread does both. The first CQ never becomes a port's own: its VCQs are
/// the only ones with component ids, which other software may need.
pub(super) fn create_vcq(api: Api, tni: utofu::Tni, own_cq: bool) -> Result<Vcq, UtofuError> {
    // Threads may post to VCQs of one CQ at once, and without the flag uTofu takes no lock.
    // Also keeps the first CQ from being the lowest unused one below.
    let shared = Vcq::create(api, tni, VcqFlags::THREAD_SAFE)?;
    if own_cq {
        // One thread at a time uses a VCQ, as its methods need it exclusively: nobody contends for a CQ of its own.
        match Vcq::create(api, tni, VcqFlags::EXCLUSIVE) {
            Err(error) if error.code == UTOFU_ERR_FULL => {}
            result => return result,
        }
    }
    Ok(shared)
}

fn open_port(api: Api, tni: utofu::Tni, own_cq: bool) -> Result<LocalPort, WireError> {
    let mut vcq = create_vcq(api, tni, own_cq).map_err(|error| failed(error, None))?;
    let mailbox = Pages::new(MAILBOX_BYTES as u64)?;
    let (ptr, len) = (mailbox.ptr(), mailbox.len());
    // SAFETY: the pages outlive the registration. `observer` accesses the words at their start atomically; the hellos
    // behind these words are never read.
    let registration = unsafe { vcq.register_with_stag(ptr, len, MAILBOX_STAG, Access::ReadWrite) };
    let mailbox_registration = registration.map_err(|error| failed(error, None))?;
    Ok(LocalPort { mailbox_registration, mailbox, vcq })
}

fn finish(
    local: LocalPort,
    rank: Rank,
    addresses: Addresses,
    registrar: Registrar,
    time: Time,
) -> UtofuEndpoint {
    let LocalPort { mailbox_registration, mailbox, vcq } = local;
    let longest = vcq.caps().max_putget_size;
    UtofuEndpoint {
        rank,
        registrar,
        mailbox_registration,
        mailbox,
        peers: Vec::new(),
        memory: Channels::default(),
        peer_of_rank: PeerTable::new(),
        addresses,
        channels: Vec::new(),
        pending: Vec::new(),
        waiting: Vec::new(),
        rendezvous_recvs: Vec::with_capacity(USUAL_PUTS),
        n_announced: 0,
        rendezvous_sends: Slab::with_capacity(USUAL_PUTS),
        puts: VecDeque::with_capacity(USUAL_PUTS),
        batch: Vec::with_capacity(MAX_BATCH),
        n_posted: (0, 0),
        events: Vec::with_capacity(USUAL_PUTS),
        fence: Fence::default(),
        buffer_pool: (0..POOL_BUFFERS).map(|_| Vec::with_capacity(EAGER_BYTES)).collect(),
        longest_put: (longest - longest % PUT_ALIGN).max(1),
        matcher: Matcher::new(CALLS),
        void_announcements: Vec::new(),
        has_posted: false,
        asked: None,
        answer: None,
        views: Vec::with_capacity(USUAL_VIEWS),
        next_views: Vec::with_capacity(USUAL_VIEWS),
        n_open: 0,
        is_abandoned: false,
        n_polls: 0,
        last_check: time.now(),
        time,
        vcq,
    }
}
