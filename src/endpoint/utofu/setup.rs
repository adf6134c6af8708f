//! Start-up: VCQs, mailboxes, and their exchange.

use std::collections::VecDeque;

use utofu::bootstrap::{BootstrapError, Exchange};
use utofu::handles::{Access, Registration, Vcq, VcqFlags};
use utofu::{Api, Stadd, VcqId};

use super::channels::Channels;
use super::registrar::Registrar;
use super::state::{Address, Fence, TROUBLE_WORDS};
use super::wire::EAGER_BYTES;
use super::{NOBODY, SPARE_BUFFERS, USUAL_PUTS, USUAL_VIEWS, UtofuEndpoint, failed};
use crate::endpoint::WireError;
use crate::endpoint::calls::Calls;
use crate::memory::Pages;

/// Bytes that a rank tells about one port: its VCQ id and its mailbox's STADD.
const RECORD_BYTES: usize = 16;
/// Puts are cut at a multiple of this, so that pieces start at cache lines.
const PUT_ALIGN: usize = 256;

/// The part of an endpoint that exists before the others are known.
struct Half {
    // Dropped in this order: see `UtofuEndpoint`.
    mailbox_registration: Registration,
    mailbox: Pages,
    vcq: Vcq,
}

/// Opens a port for each of `registrars` and makes them known to all ranks; collective over `exchange`. The ports
/// of the ranks of a node, among which this one is number `place`, take the TNIs in turn.
/// `registrars` are the ports'.
///
/// # Errors
/// [`WireError`] if the exchange fails; if uTofu fails on some rank, or if ranks do not open
/// equally many ports. In the latter cases all ranks get the same error, whose peer is the first
/// rank that failed.
pub fn connect(
    api: Api,
    exchange: &mut dyn Exchange,
    place: usize,
    registrars: Vec<Box<dyn Registrar>>,
) -> Result<Vec<UtofuEndpoint>, WireError> {
    let n_ports = registrars.len();
    let halves = halves(api, exchange.size(), n_ports, place);
    let mine = halves.as_ref().map(|halves| {
        let records = halves.iter().flat_map(|half| {
            [half.vcq.id().raw(), half.mailbox_registration.stadd().0].map(u64::to_le_bytes)
        });
        records.flatten().collect::<Vec<u8>>()
    });
    let all = agree(exchange, mine.as_deref().map_err(ToString::to_string))?;
    let rank = exchange.rank();
    let addresses = |port: usize| {
        let addresses = all.iter().enumerate().map(|(peer, records)| {
            let record = records.get(port * RECORD_BYTES..(port + 1) * RECORD_BYTES);
            let record = record.ok_or_else(|| WireError {
                call: "exchange of addresses",
                reason: format!("rank {peer} has no port {port}, rank {rank} has {n_ports} ports"),
                peer: Some(peer as u32),
            })?;
            let (id, mailbox) = record.split_at(RECORD_BYTES / 2);
            let id = VcqId::from_raw(&api, number(id))
                .and_then(|id| id.with_default_path(&api))
                .map_err(|error| failed(error, Some(peer as u32)))?;
            Ok(Address { vcq: id, mailbox: Stadd(number(mailbox)) })
        });
        addresses.collect::<Result<Vec<_>, WireError>>()
    };
    let ports = halves.and_then(|halves| {
        let ports = halves.into_iter().zip(registrars).enumerate();
        ports
            .map(|(port, (half, of_port))| Ok(finish(half, rank as u32, addresses(port)?, of_port)))
            .collect()
    });
    // A rank that fails here has peers that have not.
    agree(exchange, ports.as_ref().map(|_: &Vec<_>| [].as_slice()).map_err(ToString::to_string))?;
    ports
}

/// Everyone's bytes, if all ranks have come to this point without a failure.
fn agree(
    exchange: &mut dyn Exchange,
    mine: Result<&[u8], String>,
) -> Result<Vec<Vec<u8>>, WireError> {
    let agreed = exchange.agree(mine).map_err(|error| lost(&error))?;
    agreed.map_err(|refusal| WireError {
        call: "opening the ports",
        reason: refusal.to_string(),
        peer: Some(refusal.rank as u32),
    })
}

fn halves(api: Api, n_ranks: usize, n_ports: usize, place: usize) -> Result<Vec<Half>, WireError> {
    let tnis = api.onesided_tnis().map_err(|error| failed(error, None))?;
    if tnis.is_empty() {
        return Err(WireError {
            call: "utofu_get_onesided_tnis",
            reason: "there is no TNI".to_owned(),
            peer: None,
        });
    }
    let tni = |port: usize| tnis[(place * n_ports + port) % tnis.len()];
    (0..n_ports).map(|port| half(api, tni(port), n_ranks)).collect()
}

fn half(api: Api, tni: utofu::Tni, n_ranks: usize) -> Result<Half, WireError> {
    // Each VCQ is used by one thread at a time, but not always the same, and beside VCQs of other
    // communicators on the same CQ. Without the flag uTofu posts to the CQ without a lock.
    let vcq = Vcq::create(api, tni, VcqFlags::THREAD_SAFE);
    let mut vcq = vcq.map_err(|error| failed(error, None))?;
    let mailbox = Pages::new(8 * (n_ranks + TROUBLE_WORDS) as u64)?;
    // SAFETY: the pages outlive the registration. Peers write their places once; this rank
    // reads them through raw pointers after the notice. For the words behind them see there.
    let registration = unsafe { vcq.register(mailbox.ptr(), mailbox.len(), Access::ReadWrite) };
    let mailbox_registration = registration.map_err(|error| failed(error, None))?;
    Ok(Half { mailbox_registration, mailbox, vcq })
}

fn finish(
    half: Half,
    rank: u32,
    addresses: Vec<Address>,
    registrar: Box<dyn Registrar>,
) -> UtofuEndpoint {
    let Half { mailbox_registration, mailbox, vcq } = half;
    let longest = vcq.caps().max_putget_size;
    UtofuEndpoint {
        rank,
        registrar,
        mailbox_registration,
        mailbox,
        peers: Vec::new(),
        memory: Channels::default(),
        peer_of_rank: vec![NOBODY; addresses.len()],
        addresses,
        channels: Vec::new(),
        listed: Vec::new(),
        landings: Vec::with_capacity(USUAL_PUTS),
        n_announced: 0,
        leavings: Vec::with_capacity(USUAL_PUTS),
        puts: VecDeque::with_capacity(USUAL_PUTS),
        events: Vec::with_capacity(USUAL_PUTS),
        fence: Fence::default(),
        spare: (0..SPARE_BUFFERS).map(|_| Vec::with_capacity(EAGER_BYTES)).collect(),
        longest_put: (longest - longest % PUT_ALIGN).max(1),
        calls: Calls::new(),
        n_early: 0,
        has_posted: false,
        asked: None,
        answer: None,
        lent: Vec::with_capacity(USUAL_VIEWS),
        lending: Vec::with_capacity(USUAL_VIEWS),
        n_open: 0,
        is_abandoned: false,
        n_polls: 0,
        looked: std::time::Instant::now(),
        vcq,
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn lost(error: &BootstrapError) -> WireError {
    WireError { call: "exchange of addresses", reason: error.to_string(), peer: None }
}
