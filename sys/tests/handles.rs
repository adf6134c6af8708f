//! VCQs, registrations and ids on the emulated device, with ranks as threads.

mod common;

use std::sync::Mutex;
use std::thread;

use common::ranks;
use hopbine_meet::{Exchange, LocalExchange};
use utofu::abi::*;
use utofu::handles::*;
use utofu::{Api, Cookie, Stadd, UtofuError, VcqId};

/// Memory that peers may write: never behind a reference while they can.
struct Memory(*mut u64, usize);

impl Memory {
    fn new(words: usize) -> Memory {
        /// Where all of it is, so that a search for leaks finds it in use.
        static ALL: Mutex<Vec<usize>> = Mutex::new(Vec::new());
        let memory = Box::leak(vec![0u64; words].into_boxed_slice()).as_mut_ptr();
        ALL.lock().expect("no panic").push(memory.addr());
        Memory(memory, words)
    }
    fn bytes(&self) -> (*mut u8, usize) {
        (self.0.cast(), self.1 * 8)
    }
    fn get(&self, i: usize) -> u64 {
        assert!(i < self.1);
        // SAFETY: within the allocation, which is never freed; the notice has come.
        unsafe { self.0.add(i).read_volatile() }
    }
    fn set(&self, i: usize, v: u64) {
        assert!(i < self.1);
        // SAFETY: within the allocation, which is never freed; no operation is in flight.
        unsafe { self.0.add(i).write_volatile(v) }
    }
}

/// A VCQ with registered memory, and those of the other ranks.
struct Port {
    memory: Memory,
    registration: Registration,
    vcq: Vcq,
    peers: Vec<(VcqId, Stadd)>,
    /// The peers' ids as notices name them: as they query themselves.
    names: Vec<u64>,
}

impl Port {
    fn open(x: &mut LocalExchange) -> Port {
        let mut vcq = Vcq::create(Api::emulated(), 0, VcqFlags::NONE).expect("there is room");
        let memory = Memory::new(64);
        let (address, len) = memory.bytes();
        // SAFETY: the memory is never freed and only accessed through raw pointers; the
        // registration stays with the VCQ in this thread.
        let registration =
            unsafe { vcq.register(address, len, Access::ReadWrite) }.expect("is memory");
        let mut mine = vcq.id().raw().to_le_bytes().to_vec();
        mine.extend(registration.stadd().0.to_le_bytes());
        let word = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("8 bytes"));
        let all = x.allgather(&mine).expect("everyone comes");
        let names = all.iter().map(|m| word(&m[..8])).collect();
        let peers = all
            .iter()
            .map(|m| {
                let id = VcqId::from_raw(&vcq.api(), word(&m[..8])).expect("a queried id");
                (id.with_default_path(&vcq.api()).expect("has one"), Stadd(word(&m[8..])))
            })
            .collect();
        Port { memory, registration, vcq, peers, names }
    }

    /// One of two, and where the other is, and its id.
    fn of_two(x: &mut LocalExchange) -> (Port, (VcqId, Stadd), u64) {
        let (port, other) = (Port::open(x), 1 - x.rank());
        let (peer, name) = (port.peers[other], port.names[other]);
        (port, peer, name)
    }

    fn notice(&mut self) -> Notice {
        loop {
            if let Some(n) = self.vcq.poll_mrq().expect("no error") {
                return n;
            }
            thread::yield_now();
        }
    }

    fn completion(&mut self) -> Cookie {
        loop {
            if let Some(c) = self.vcq.poll_tcq().expect("no error") {
                return c;
            }
            thread::yield_now();
        }
    }
}

fn options(edata: u8, flags: PostFlags, cookie: usize) -> PostOptions {
    PostOptions { edata, flags, cookie: Cookie(cookie) }
}

#[test]
fn a_put_moves_bytes_and_gives_the_notices_asked_for() {
    ranks(2, |x| {
        let (mut p, (peer, there), name) = Port::of_two(x);
        if x.rank() == 0 {
            p.memory.set(3, 0x1234_5678);
            let what = Transfer { local: p.registration.at(24), remote: there + 16, length: 8 };
            let flags = PostFlags::TCQ | PostFlags::LOCAL | PostFlags::REMOTE;
            // SAFETY: both ranges are registered, and nobody else touches them now.
            unsafe { p.vcq.put(peer, what, options(7, flags, 99)) }.expect("there is room");
            assert_eq!(p.completion(), Cookie(99));
            assert_eq!(
                p.notice(),
                Notice::LocalPut { peer: name, edata: 7, remote_end: there + 24 }
            );
        } else {
            let remote_end = p.registration.at(24);
            assert_eq!(p.notice(), Notice::RemotePut { peer: name, edata: 7, remote_end });
            assert_eq!(p.memory.get(2), 0x1234_5678);
        }
        x.barrier().expect("both");
        assert_eq!(p.vcq.poll_mrq(), Ok(None));
        assert_eq!(p.vcq.poll_tcq(), Ok(None));
    });
}

#[test]
fn get_piggyback_and_atomics_do_what_they_say() {
    ranks(2, |x| {
        let (mut p, (peer, there), name) = Port::of_two(x);
        p.memory.set(0, 1000 + x.rank() as u64);
        x.barrier().expect("both");
        if x.rank() == 0 {
            let get = Transfer { local: p.registration.at(64), remote: there, length: 8 };
            // SAFETY: all ranges are registered; the other rank only waits meanwhile.
            unsafe {
                p.vcq.get(peer, get, options(1, PostFlags::LOCAL, 0)).expect("room");
                assert_eq!(p.notice(), Notice::LocalGet { peer: name, edata: 1 });
                assert_eq!(p.memory.get(8), 1001);

                let armw = options(2, PostFlags::LOCAL, 0);
                p.vcq.armw8(peer, ArmwOp::Add, 5, there, armw).expect("room");
                let want = Notice::LocalArmw { peer: name, edata: 2, remote: there, old: 1001 };
                assert_eq!(p.notice(), want);
                p.vcq.armw4(peer, ArmwOp::Xor, 1, there, armw).expect("room");
                let want = Notice::LocalArmw { peer: name, edata: 2, remote: there, old: 1006 };
                assert_eq!(p.notice(), want);
                p.vcq.cswap8(peer, 1007, 42, there, armw).expect("room");
                let want = Notice::LocalArmw { peer: name, edata: 2, remote: there, old: 1007 };
                assert_eq!(p.notice(), want);
                p.vcq.cswap4(peer, 42, 43, there, armw).expect("room");
                let want = Notice::LocalArmw { peer: name, edata: 2, remote: there, old: 42 };
                assert_eq!(p.notice(), want);

                p.vcq
                    .put_piggyback(peer, &[1; 32], there + 8, options(3, PostFlags::NONE, 0))
                    .expect("room");
                p.vcq
                    .put_piggyback8(peer, 77, there + 40, options(4, PostFlags::REMOTE, 0))
                    .expect("room");
            }
        } else {
            let remote_end = p.registration.at(48);
            assert_eq!(p.notice(), Notice::RemotePut { peer: name, edata: 4, remote_end });
            let got: Vec<_> = (0..6).map(|i| p.memory.get(i)).collect();
            let ones = u64::from_ne_bytes([1; 8]);
            assert_eq!(got, [43, ones, ones, ones, ones, 77]);
        }
        x.barrier().expect("both");
    });
}

#[test]
fn a_full_queue_is_busy_until_it_is_polled() {
    ranks(1, |x| {
        let mut p = Port::open(x);
        let mut posted = 0;
        let refusal = loop {
            match p.vcq.nop(PostFlags::NONE, Cookie(0)) {
                Ok(()) => posted += 1,
                Err(e) => break e,
            }
            assert!(posted < 1_000_000, "the queue is never full");
        };
        assert_eq!(refusal, PostError::Busy);
        assert_eq!(p.vcq.unread_tcq(), Ok(posted));
        assert_eq!(p.vcq.poll_tcq(), Ok(None));
        assert_eq!(p.vcq.unread_tcq(), Ok(0));
        assert_eq!(p.vcq.nop(PostFlags::TCQ, Cookie(5)), Ok(()));
        assert_eq!(p.completion(), Cookie(5));
    });
}

#[test]
fn puts_posted_together_arrive_each_with_its_notices() {
    ranks(2, |x| {
        let mut p = Port::open(x);
        let (to, there) = p.peers[1 - x.rank()];
        if x.rank() == 0 {
            p.memory.set(0, 11);
            let mut bytes = [0; 32];
            bytes[..3].copy_from_slice(&[22, 33, 44]);
            let sources = [
                (Source::Registered(p.registration.at(0)), 8),
                (Source::Inline(bytes), 3),
                (Source::Word(55), 8),
            ];
            let puts = sources.iter().enumerate().map(|(i, &(source, length))| Put {
                to,
                source,
                remote: there + 64 + 8 * i as u64,
                length,
                options: options(i as u8, PostFlags::REMOTE | PostFlags::TCQ, 6),
            });
            let puts: Vec<_> = puts.collect();
            // SAFETY: the registrations live in both threads until the last barrier, and nobody
            // touches the words meanwhile.
            unsafe { p.vcq.put_batch(&puts) }.expect("there is room");
            assert_eq!(p.vcq.unread_tcq(), Ok(3));
            assert_eq!([(); 3].map(|()| p.completion()), [Cookie(6); 3]);

            let long = Put { length: 33, ..puts[1] };
            // SAFETY: as above; this one is not posted, nor is the one before it.
            let refused = unsafe { p.vcq.put_batch(&[puts[0], long]) };
            assert_eq!(refused, Err(PostError::TooLong { length: 33, max: 32 }));
            assert_eq!(p.vcq.unread_tcq(), Ok(0));
            while p.vcq.nop(PostFlags::NONE, Cookie(0)).is_ok() {}
            // SAFETY: as above.
            let refused = unsafe { p.vcq.put_batch(&puts) };
            assert_eq!(refused, Err(PostError::Busy));
        } else {
            for i in 0..3 {
                let Notice::RemotePut { edata, .. } = p.notice() else { panic!("a put") };
                assert_eq!(edata, i);
            }
            assert_eq!([8, 9, 10].map(|i| p.memory.get(i)), [11, 0x2c_2116, 55]);
        }
        x.allgather(&[]).expect("everyone comes");
        assert_eq!(p.vcq.poll_mrq(), Ok(None), "a put that was refused came");
    });
}

#[test]
fn what_is_too_long_is_refused_before_it_does_harm() {
    ranks(1, |x| {
        let mut p = Port::open(x);
        let (me, here) = p.peers[0];
        let max = p.vcq.caps().max_putget_size;
        let what = Transfer { local: here, remote: here, length: max + 1 };
        // SAFETY: neither is posted.
        unsafe {
            let e = p.vcq.put(me, what, options(0, PostFlags::NONE, 0)).unwrap_err();
            assert_eq!(e, PostError::TooLong { length: max + 1, max });
            let e = p
                .vcq
                .put_piggyback(me, &[0; 33], here, options(0, PostFlags::NONE, 0))
                .unwrap_err();
            assert_eq!(e, PostError::TooLong { length: 33, max: 32 });
        }
        assert_eq!(p.vcq.unread_tcq(), Ok(0));
    });
}

#[test]
fn a_put_to_memory_that_is_not_registered_is_an_error_with_its_name() {
    ranks(1, |x| {
        let mut p = Port::open(x);
        let (me, _) = p.peers[0];
        let nowhere = Stadd(5000 << 40);
        let what = Transfer { local: p.registration.at(0), remote: nowhere, length: 8 };
        // SAFETY: the local range is registered and the remote one does not exist.
        unsafe { p.vcq.put(me, what, options(0, PostFlags::LOCAL, 0)) }
            .expect("posts are not checked");
        let e = loop {
            match p.vcq.poll_mrq() {
                Ok(None) => thread::yield_now(),
                Ok(Some(n)) => panic!("{n:?}"),
                Err(e) => break e,
            }
        };
        let NoticeError::Failed { ref error, peer } = e else { panic!("{e}") };
        assert_eq!((error.code, peer), (UTOFU_ERR_MRQ_RMT_STADD, Some(me)));
        assert!(e.to_string().contains("UTOFU_ERR_MRQ_RMT_STADD"), "{e}");
    });
}

#[test]
fn a_vcq_lives_until_its_last_registration_is_gone() {
    ranks(1, |_| {
        let api = Api::emulated();
        let create = || Vcq::create_with_cmp_id(api, 1, 2, VcqFlags::NONE);
        let mut vcq = create().expect("is free");
        let memory = Memory::new(8);
        let (address, len) = memory.bytes();
        // SAFETY: the memory is never freed; all is in one thread.
        let registration = unsafe { vcq.register_with_stag(address, len, 9, Access::ReadWrite) };
        let registration = registration.expect("is free");
        assert_eq!(vcq.id().stadd_of_stag(&api, 9), Ok(registration.stadd()));
        assert_eq!(registration.at(64), registration.stadd() + 64);
        drop(vcq);
        assert_eq!(create().unwrap_err().code, UTOFU_ERR_USED);
        assert_eq!(registration.release(), Ok(()));
        let mut vcq = create().expect("is free again");
        // SAFETY: as above; and this tag is refused.
        let refused = unsafe { vcq.register_with_stag(address, len, 256, Access::ReadWrite) };
        assert_eq!(refused.unwrap_err().code, UTOFU_ERR_INVALID_STAG);
    });
}

#[test]
fn ids_can_be_computed_and_compare_without_their_path() {
    ranks(2, |x| {
        let api = Api::emulated();
        let vcq = Vcq::create_with_cmp_id(api, 3, 5, VcqFlags::NONE).expect("is free");
        let id = vcq.id();
        assert_eq!(id.info().coords, api.my_coords().expect("known"));
        let made = VcqId::construct(&api, id.info().coords, 3, id.info().cq, 5).expect("in range");
        assert_eq!((made, made.raw()), (id, id.raw()));
        let along = id.with_path(&api, [1, 2, 1]).expect("in range");
        assert_ne!(along.raw(), id.raw());
        assert_eq!(along, id);
        let code = id.with_path(&api, [2, 0, 0]).unwrap_err().code;
        assert_eq!(code, UTOFU_ERR_INVALID_PATH);
        let taken = Vcq::create_with_cmp_id(api, 3, 5, VcqFlags::NONE).unwrap_err();
        let call = "utofu_create_vcq_with_cmp_id";
        assert_eq!(taken, UtofuError::new(call, UTOFU_ERR_USED));
        x.barrier().expect("both");
    });
}

#[test]
fn the_device_reports_its_capabilities() {
    ranks(1, |_| {
        let api = Api::emulated();
        assert_eq!(api.onesided_tnis().expect("listed"), [0, 1, 2, 3, 4, 5]);
        assert_eq!(api.barrier_tnis().expect("listed"), [0, 1, 2, 3, 4, 5]);
        let caps = api.onesided_caps(5).expect("exists");
        assert_eq!((caps.max_putget_size, caps.max_piggyback_size), (16_777_215, 32));
        assert_eq!(api.onesided_caps(6).unwrap_err().code, UTOFU_ERR_INVALID_TNI_ID);
        let caps = api.barrier_caps(0).expect("exists");
        assert_eq!((caps.max_uint64_reduction, caps.max_double_reduction), (6, 3));
        assert_eq!(api.utofu_version().to_string(), "1.0");
        assert_eq!(api.tofu_version().to_string(), "3.0");
    });
}
