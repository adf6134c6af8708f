//! Stepped jobs: their owner advances the device and the clock, and nothing happens between its steps.

mod common;

use common::*;
use std::alloc::Layout;
use std::sync::Arc;
use utofu_emu::{Job, Model, Stage, StepEvent, c};
use utofu_sys::*;

type Buffer = *mut u64;

/// Two end points with leaked buffers, in one thread.
fn pair(model: Model) -> (Arc<Job>, [(EndPoint, Buffer); 2]) {
    let job = Job::stepped(Job::coords_for_shape(&[1, 2]).unwrap(), model).unwrap();
    let ends = two_ends(&job, 64);
    (job, ends)
}

fn late(seed: u64) -> Model {
    Model { late: Some(seed), checked: true, ..Model::default() }
}

fn all(job: &Job) -> Vec<StepEvent> {
    std::iter::from_fn(|| job.due().and_then(|due| job.step(due))).collect()
}

#[test]
fn each_stage_is_done_by_a_step_when_it_is_due() {
    let (job, [(a, from), (b, to)]) = pair(late(3));
    set(from, 0, 5);
    assert_eq!((job.due(), job.step(1000)), (None, None));
    assert_eq!(a.put(b.id, a.stadd, b.stadd, 8, 9, TCQ | LCL | RMT), 0);
    let nothing = || a.poll_tcq().is_err() && a.poll_mrq().0 != 0 && b.poll_mrq().0 != 0;
    let sent = job.due().unwrap();
    assert!(sent >= 1000 && job.step(sent - 1).is_none() && nothing());

    let stepped = job.step(sent).unwrap();
    assert_eq!((stepped.at, stepped.stage, stepped.affected_rank()), (sent, Stage::Send, Some(0)));
    assert!(!stepped.writes);
    assert_eq!(stepped.memory, Some(from.addr()..from.addr() + 8));
    assert_eq!((a.poll_tcq(), word(to, 0)), (Ok(7), 0));

    let stepped = job.step(u64::MAX).unwrap();
    assert_eq!((stepped.stage, stepped.from, stepped.affected_rank()), (Stage::Arrive, 0, Some(1)));
    assert!(stepped.writes);
    assert_eq!(stepped.memory, Some(to.addr()..to.addr() + 8));
    assert_eq!((b.poll_mrq().1.edata, word(to, 0)), (9, 5));
    assert!(nothing());

    let stepped = job.step(u64::MAX).unwrap();
    assert_eq!((stepped.stage, stepped.affected_rank()), (Stage::Finish, Some(0)));
    assert_eq!(a.poll_mrq().1.notice_type, UTOFU_MRQ_TYPE_LCL_PUT as u8);
    assert_eq!(job.due(), None);
}

#[test]
fn a_seed_decides_when_everything_happens() {
    let run = |seed| {
        let model =
            Model { put_ns: 300, jitter_ns: 2000, post_ns: 100, poll_ns: 100, ..late(seed) };
        let (job, [(a, _), (b, _)]) = pair(model);
        for at in 0..20 {
            assert_eq!(a.put(b.id, a.stadd + at * 8, b.stadd + at * 8, 8, 0, TCQ | RMT), 0);
            // Some operations are in flight at the same time.
            job.step(at * 3000);
        }
        assert_eq!(a.get(b.id, a.stadd, b.stadd, 8, 0, LCL), 0);
        let stages = all(&job).into_iter();
        stages.map(|StepEvent { at, stage, from, .. }| (at, stage, from)).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn latencies_pass_as_the_owner_says() {
    let (job, [(a, from), (b, to)]) = pair(Model { put_ns: 500, ..Model::default() });
    set(from, 0, 5);
    assert_eq!(a.put(b.id, a.stadd, b.stadd, 8, 0, RMT), 0);
    assert_eq!((job.due(), word(to, 0)), (None, 5));
    job.step(499);
    assert!(b.poll_mrq().0 != 0);
    job.step(500);
    // Time does not run backwards.
    job.step(0);
    assert!(b.poll_mrq().0 == 0);
}

#[test]
fn operations_of_a_rank_end_with_it_and_those_that_reach_it_fail() {
    let (job, [(a, from), (b, to)]) = pair(late(5));
    set(from, 0, 5);
    let put = |flags| assert_eq!(a.put(b.id, a.stadd, b.stadd, 8, 0, flags), 0);
    put(TCQ | RMT);
    job.cancel_pending(0);
    assert_eq!((all(&job), word(to, 0)), (Vec::new(), 0));
    assert!(b.poll_mrq().0 != 0);

    put(RMT | LCL);
    job.fail_rank(1);
    all(&job);
    assert_eq!((a.poll_mrq().0, word(to, 0)), (UTOFU_ERR_MRQ_PEER, 0));
    // No operation of the rank is in flight, so nothing waits for the device.
    b.piggyback8(a.id, 1, a.stadd, 0, 0);
    job.fail_rank(1);
    b.close();
}

#[test]
fn misuse_is_told_to_the_owner_and_does_not_end_the_job() {
    let (job, [(a, from), (b, to)]) = pair(late(6));
    let put = |at: u64| assert_eq!(a.put(b.id, a.stadd, b.stadd + at, 8, 0, 0), 0);
    let told = |what: &str| {
        let misuse = job.take_misuse();
        assert!(misuse.len() == 1 && misuse[0].contains(what), "{what}: {misuse:?}");
    };
    put(0);
    set(from, 0, 1);
    all(&job);
    told("has changed the source");
    put(0);
    set(from, 0, 2);
    put(4);
    told("overlap");
    job.exempt_from_checks(0);
    all(&job);
    assert_eq!((job.take_misuse(), word(to, 0) as u32), (Vec::new(), 2));

    put(0);
    // SAFETY: the buffer is never freed.
    unsafe { assert_eq!(c::utofu_dereg_mem(b.handle, b.stadd, 0), 0) };
    told("deregisters");
    all(&job);
    assert_eq!(a.poll_mrq().0, UTOFU_ERR_MRQ_RMT_STADD);
}

#[test]
fn a_vcq_that_is_freed_steps_what_it_has_under_way() {
    let (job, [(a, from), (b, to)]) = pair(late(8));
    set(from, 0, 5);
    b.piggyback8(a.id, 1, a.stadd + 8, 0, 0);
    assert_eq!(a.put(b.id, a.stadd, b.stadd, 8, 0, 0), 0);
    // SAFETY: used by this thread only.
    unsafe { assert_eq!(c::utofu_free_vcq(a.handle), 0) };
    assert_eq!(word(to, 0), 5);
    all(&job);
    assert_eq!(job.due(), None);
}

#[test]
fn posts_are_refused_as_if_the_queue_were_full() {
    let refused = |busy| {
        let (job, [(a, _), (b, _)]) = pair(Model { busy, ..late(9) });
        let put = || a.put(b.id, a.stadd, b.stadd, 8, 0, RMT);
        let refused = (0..400).filter(|_| put() == UTOFU_ERR_BUSY).count();
        all(&job);
        let arrived = std::iter::from_fn(|| (b.poll_mrq().0 == 0).then_some(())).count();
        assert_eq!(refused + arrived, 400);
        refused
    };
    assert_eq!(refused(0), 0);
    assert!((100..300).contains(&refused(128)));
}

/// A registration from before the pages were unmapped leads to the old pages, a later registration to the new
/// pages.
#[test]
fn memory_that_was_unmapped_is_not_used_by_older_registrations() {
    const PAGE: usize = 1 << 16;
    let (job, [(a, _), (b, _)]) = pair(late(10));
    // SAFETY: the layout's size is not 0.
    let memory = unsafe { std::alloc::alloc_zeroed(Layout::from_size_align(PAGE, PAGE).unwrap()) };
    let register = || {
        let mut stadd = 0;
        // SAFETY: the memory is never freed.
        let code = unsafe { c::utofu_reg_mem(b.handle, memory.cast(), 64, 0, &raw mut stadd) };
        (code, stadd)
    };
    let put = |stadd| {
        assert_eq!(a.put(b.id, a.stadd, stadd, 8, 0, RMT), 0);
        all(&job);
        assert_eq!(b.poll_mrq().0, 0);
        job.take_misuse().len()
    };
    let (_, old) = register();
    assert_eq!(put(old), 0);
    job.unmap(0, memory.addr()..memory.addr() + PAGE);
    assert_eq!(put(old), 0, "that was another rank's");
    job.unmap(1, memory.addr()..memory.addr() + PAGE);
    assert_eq!(put(old), 1);
    assert_eq!(put(b.stadd), 0);
    // Another registration shares the pages of the old one; a registration after the old one's end has new pages.
    assert_eq!(register(), (0, old));
    assert_eq!(put(old), 1);
    // SAFETY: the memory was registered twice.
    (0..2).for_each(|_| assert_eq!(unsafe { c::utofu_dereg_mem(b.handle, old, 0) }, 0));
    job.refuse_registrations(1, 1);
    assert_eq!((register().0, job.take_refusal(1)), (UTOFU_ERR_FULL, true));
    let (code, new) = register();
    assert_eq!((code, put(new), job.take_refusal(1)), (0, 0, false));
}

/// Gates of two ranks, connected with each other, advanced by the owner's steps.
#[test]
fn packets_of_gates_take_steps_and_wake_whoever_waits() {
    let job = Job::stepped(Job::coords_for_shape(&[1, 2]).unwrap(), late(11)).unwrap();
    let gates: Vec<u64> = (0..2)
        .map(|rank| {
            let _me = job.enter(rank);
            let mut id = 0;
            // SAFETY: room for one id.
            assert_eq!(unsafe { c::utofu_alloc_vbg(0, 1, 0, &raw mut id) }, 0);
            id
        })
        .collect();
    for (mine, other) in [(0, 1), (1, 0)] {
        let mut setting = utofu_vbg_setting {
            vbg_id: gates[mine],
            src_lcl_vbg_id: gates[mine],
            src_rmt_vbg_id: gates[other],
            dst_lcl_vbg_id: gates[mine],
            dst_rmt_vbg_id: gates[other],
            dst_path_coords: [UTOFU_PATH_COORD_NULL; 3],
        };
        // SAFETY: one setting.
        assert_eq!(unsafe { c::utofu_set_vbg(&raw mut setting, 1) }, 0);
    }
    // SAFETY: the gates exist.
    let start = |rank: usize| unsafe { c::utofu_barrier(gates[rank], 0) };
    // SAFETY: the gates exist.
    let poll = |rank: usize| unsafe { c::utofu_poll_barrier(gates[rank], 0) };
    assert_eq!((job.n_gates(), job.due()), (2, None));
    for _ in 0..20 {
        assert_eq!((start(0), start(1)), (0, 0));
        assert_eq!([poll(0), poll(1)], [UTOFU_ERR_NOT_COMPLETED; 2]);
        let steps = all(&job);
        assert!(steps.iter().all(|step| step.stage == Stage::Packet));
        for rank in 0..2 {
            let of_rank = steps.iter().filter(|step| step.affected_rank() == Some(rank));
            assert_eq!((of_rank.count(), poll(rank)), (2, 0));
        }
    }
    // Packets from a failed rank do not arrive, and packets to it are lost.
    assert_eq!((start(0), start(1)), (0, 0));
    job.fail_rank(1);
    assert_eq!((all(&job).len(), poll(0)), (2, UTOFU_ERR_NOT_COMPLETED));
}
