//! How a port handles descriptors that a peer writes to its channel, in any order.

use std::time::Duration;

use hopbine_meet::LocalExchange;
use utofu::handles::{PostFlags, PostOptions, Vcq, VcqFlags};
use utofu::{Api, Cookie};
use utofu_emu::{Job, Model};

use super::channel::{ChannelRing, DESCRIPTOR_BYTES, TINY_BYTES};
use super::setup::create_vcq;
use super::wire::{CreditKind, UtofuDescriptor};
use super::{OnNode, Registrar, UtofuEndpoint, connect};
use crate::endpoint::{
    Arrival, Endpoint, Event, Posted, RecvPost, Slot, Tag, Time, WireError, WireRegion,
};

const TAG: Tag = Tag { context: 1, operation: 7, message: 3, call: 9 };
const LEN: usize = 8;

/// Rank 1 of two, with a receive posted for message [`TAG`] from rank 0. Rank 0 has not answered its hello, so rank
/// 1 cannot write to rank 0's channel.
struct Port {
    endpoint: UtofuEndpoint,
    _other: UtofuEndpoint,
    /// Index of rank 0 in `endpoint.peers`.
    index: u32,
    region: Box<[u8; LEN]>,
    n_written: u32,
}

impl Port {
    fn open() -> Self {
        let job = Job::with_model(Job::coords_for_shape(&[2]).unwrap(), Model::default()).unwrap();
        let exchanges = LocalExchange::group(2, Duration::from_secs(60));
        let opened = hopbine_testing::ranks::ranks(exchanges, |rank, mut exchange| {
            let _entered = job.enter(rank);
            let (registrars, time) = (vec![Registrar::default()], Time::default());
            connect(Api::emulated(), &mut exchange, OnNode::ALONE, registrars, &time).unwrap()
        });
        let mut endpoints: Vec<_> = opened.into_iter().flatten().collect();
        let (mut endpoint, _other) = (endpoints.pop().unwrap(), endpoints.pop().unwrap());
        let mut region = Box::new([0; LEN]);
        let into = WireRegion { ptr: region.as_mut_ptr(), len: LEN, key: 0 };
        let slot = Slot { run: 0, task: 5 };
        // SAFETY: the region lives as long as the port, and is read only after its message has arrived.
        let posted = unsafe {
            endpoint
                .post_recv(0, RecvPost { slot, tag: TAG, region: into, arrival: Arrival::InRegion })
        };
        assert_eq!(posted.unwrap(), Posted::Accepted);
        let index = endpoint.peer(0).unwrap();
        Port { endpoint, _other, index, region, n_written: 0 }
    }

    /// Writes `bytes` to the next slot, in place of rank 0.
    fn written(&mut self, bytes: &[u8; DESCRIPTOR_BYTES]) -> Result<(), WireError> {
        let peer = &self.endpoint.peers[self.index as usize];
        // SAFETY: a slot of the channel; rank 0 does not write to it.
        unsafe {
            let slot = peer.local_channel.slot(ChannelRing::Descriptors, self.n_written);
            slot.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        };
        self.n_written += 1;
        self.endpoint.arrived(self.index, ChannelRing::Descriptors, self.n_written - 1)
    }

    fn hears(&mut self, descriptor: UtofuDescriptor) -> Result<(), WireError> {
        self.written(&descriptor.encode().0)
    }

    /// Number of writes, other than messages, that wait for room in rank 0's channel.
    fn n_urgent(&self) -> usize {
        self.endpoint.peers[self.index as usize].urgent.len()
    }
}

const ANNOUNCEMENT: UtofuDescriptor = UtofuDescriptor::RequestToSend { tag: TAG, len: LEN as u64 };

fn message(credit_kind: CreditKind) -> UtofuDescriptor {
    let mut data = [0; TINY_BYTES];
    data[..LEN].copy_from_slice(b"message.");
    UtofuDescriptor::Tiny { tag: TAG, credit_kind, len: LEN as u8, data }
}

#[test]
fn a_second_announcement_of_a_message_is_refused() {
    let mut port = Port::open();
    port.hears(ANNOUNCEMENT).unwrap();
    let error = port.hears(ANNOUNCEMENT).unwrap_err();
    assert!(error.reason.contains("rank 0 announced a message twice"), "{error}");
}

#[test]
fn a_grant_is_dropped_with_the_message_that_came_without_it() {
    let mut port = Port::open();
    port.hears(ANNOUNCEMENT).unwrap();
    assert_eq!(port.n_urgent(), 1, "a grant for the announced message");
    port.hears(message(CreditKind::Announced)).unwrap();
    assert_eq!(port.n_urgent(), 0, "it would be written after the end of its operation");
    let mut events = Vec::new();
    port.endpoint.poll(&mut events).unwrap();
    assert_eq!(events, [Event::Received(Slot { run: 0, task: 5 })]);
    assert_eq!(&*port.region, b"message.");
}

#[test]
fn a_garbled_descriptor_is_named_with_its_rank_and_field() {
    let mut port = Port::open();
    let mut bytes = message(CreditKind::Ordinary).encode().0;
    bytes[0] = 77;
    let error = port.written(&bytes).unwrap_err();
    let said = "rank 0 sent a garbled message: a descriptor's kind is 77, it must be from 1 to 5";
    assert_eq!(error.reason, said);
}

/// A post's entry in the MRQ stays until the MRQ has been read up to it, so only then may another one replace it.
#[test]
fn posts_get_no_room_before_the_notices_have_been_taken() {
    const N: usize = 100;
    let mut port = Port::open();
    let endpoint = &mut port.endpoint;
    let (peer, flags) = (&endpoint.peers[port.index as usize], PostFlags::LOCAL);
    let options = PostOptions { edata: 0, flags, cookie: Cookie(0) };
    endpoint.fence.open = N;
    for _ in 0..N {
        // SAFETY: the peer's mailbox, whose hellos are never read.
        unsafe { endpoint.vcq.put_piggyback(peer.vcq, &[0], peer.hello_at(), options) }.unwrap();
    }
    endpoint.has_posted = true;
    let mut unread = || {
        endpoint.poll(&mut Vec::new()).unwrap();
        endpoint.vcq.unread_tcq().unwrap()
    };
    assert!(unread() >= N, "not all notices have been taken");
    assert_eq!(unread(), 0);
}

/// Another library of the process, such as MPI, has a VCQ on the first CQ and does not lock it.
#[test]
fn a_port_shares_a_cq_only_if_none_is_left() {
    let job = Job::with_model(Job::coords_for_shape(&[1]).unwrap(), Model::default()).unwrap();
    let _entered = job.enter(0);
    let (api, tni) = (Api::emulated(), 0);
    let cq = |vcq: &Vcq| vcq.id().info().cq;
    let others = Vcq::create(api, tni, VcqFlags::NONE).unwrap();
    let shared = create_vcq(api, tni, false).unwrap();
    assert_eq!(cq(&shared), cq(&others));
    let own: Vec<Vcq> = (0..7).map(|_| create_vcq(api, tni, true).unwrap()).collect();
    assert!(own.iter().all(|vcq| cq(vcq) != cq(&others)), "seven further CQs");
    assert_eq!(cq(&create_vcq(api, tni, true).unwrap()), cq(&others), "no CQ is left");
}

/// Component ids are places of a TNI's first CQ, and other software cannot choose another one.
#[test]
fn ports_that_come_first_leave_all_component_ids_of_their_tnis() {
    let job = Job::with_model(Job::coords_for_shape(&[1]).unwrap(), Model::default()).unwrap();
    let _entered = job.enter(0);
    let api = Api::emulated();
    for tni in api.onesided_tnis().unwrap() {
        let _port = create_vcq(api, tni, true).unwrap();
        let of_others = (0..8).map(|id| Vcq::create_with_cmp_id(api, tni, id, VcqFlags::NONE));
        of_others.collect::<Result<Vec<_>, _>>().unwrap();
    }
}
