//! Start-up: VCQs, mailboxes, and their exchange.

use std::collections::VecDeque;

use utofu_sys::bootstrap::{BootstrapError, Exchange};
use utofu_sys::handles::{Access, Registration, Vcq, VcqFlags};
use utofu_sys::{Api, Stadd, VcqId};

use super::calls::Calls;
use super::channels::Channels;
use super::registrar::Registrar;
use super::trouble::TROUBLE_WORDS;
use super::wire::EAGER_BYTES;
use super::{Address, NOBODY, SPARE_BUFFERS, USUAL_PUTS, UtofuEndpoint, failed};
use crate::endpoint::WireError;
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

/// Opens `n_ports` ports and makes them known to all ranks; collective over `exchange`. Port
/// q uses the (q mod number of TNIs)-th TNI. `registrar` makes each port's registrar.
///
/// # Errors
/// [`WireError`] if uTofu or the exchange fails, or if ranks do not open equally many ports.
pub fn connect(
    api: Api,
    exchange: &mut dyn Exchange,
    n_ports: usize,
    registrar: impl Fn() -> Box<dyn Registrar>,
) -> Result<Vec<UtofuEndpoint>, WireError> {
    let tnis = api.onesided_tnis().map_err(|error| failed(error, None))?;
    if tnis.is_empty() {
        return Err(WireError {
            call: "utofu_get_onesided_tnis",
            reason: "there is no TNI".to_owned(),
            peer: None,
        });
    }
    let mut halves = Vec::with_capacity(n_ports);
    let mut mine = Vec::with_capacity(n_ports * RECORD_BYTES);
    for port in 0..n_ports {
        let half = half(api, tnis[port % tnis.len()], exchange.size())?;
        mine.extend_from_slice(&half.vcq.id().raw().to_le_bytes());
        mine.extend_from_slice(&half.mailbox_registration.stadd().0.to_le_bytes());
        halves.push(half);
    }
    let all = exchange.allgather(&mine).map_err(|error| lost(&error))?;
    let rank = exchange.rank();
    halves
        .into_iter()
        .enumerate()
        .map(|(port, half)| {
            let addresses = all.iter().enumerate().map(|(peer, records)| {
                let record = records.get(port * RECORD_BYTES..(port + 1) * RECORD_BYTES);
                let record = record.ok_or_else(|| WireError {
                    call: "exchange of addresses",
                    reason: format!("that rank has no port {port}, this one has {n_ports} ports"),
                    peer: Some(peer as u32),
                })?;
                let (id, mailbox) = record.split_at(RECORD_BYTES / 2);
                let id = VcqId::from_raw(&api, number(id))
                    .and_then(|id| id.with_default_path(&api))
                    .map_err(|error| failed(error, Some(peer as u32)))?;
                Ok(Address { vcq: id, mailbox: Stadd(number(mailbox)) })
            });
            let addresses = addresses.collect::<Result<Vec<_>, WireError>>()?;
            Ok(finish(half, rank as u32, addresses, registrar()))
        })
        .collect()
}

fn half(api: Api, tni: utofu_sys::Tni, n_ranks: usize) -> Result<Half, WireError> {
    let mut vcq = Vcq::create(api, tni, VcqFlags::NONE).map_err(|error| failed(error, None))?;
    let mailbox = Pages::new(8 * (n_ranks + TROUBLE_WORDS) as u64);
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
        leavings: Vec::with_capacity(USUAL_PUTS),
        puts: VecDeque::with_capacity(USUAL_PUTS),
        events: Vec::with_capacity(USUAL_PUTS),
        spare: (0..SPARE_BUFFERS).map(|_| Vec::with_capacity(EAGER_BYTES)).collect(),
        longest_put: (longest - longest % PUT_ALIGN).max(1),
        calls: Calls::new(),
        has_posted: false,
        is_asking: false,
        vcq,
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn lost(error: &BootstrapError) -> WireError {
    WireError { call: "exchange of addresses", reason: error.to_string(), peer: None }
}
