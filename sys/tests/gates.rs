//! Barrier gates on the emulated device, with ranks as threads.

mod common;

use std::thread;

use common::ranks;
use hopbine_meet::{Exchange, LocalExchange};
use utofu::Api;
use utofu::handles::*;

/// Two ranks: one gate each, which waits for itself and the other.
fn pair_of_gates(x: &mut LocalExchange) -> GateSet {
    let api = Api::emulated();
    let mut gates = GateSet::alloc(api, 0, 1).expect("is free");
    let mine = gates.ids()[0];
    let all = x.allgather(&mine.0.to_le_bytes()).expect("both");
    let other = &all[1 - x.rank()];
    let other = Some(GateId(u64::from_le_bytes(other.try_into().expect("8 bytes"))));
    let link = GateLink {
        from_local: Some(mine),
        from_remote: other,
        to_local: Some(mine),
        to_remote: other,
        path: None,
    };
    gates.connect(&[link]).expect("are gates");
    x.barrier().expect("both");
    gates
}

fn wait(mut poll: impl FnMut() -> Result<bool, GateError>) -> Result<(), GateError> {
    while !poll()? {
        thread::yield_now();
    }
    Ok(())
}

#[test]
fn gates_synchronise_and_reduce() {
    ranks(2, |x| {
        let mut g = pair_of_gates(x);
        g.barrier().expect("idle");
        wait(|| g.poll_barrier()).expect("same operation");

        g.reduce_u64(ReduceOp::Sum, &[1, 10 + x.rank() as u64]).expect("idle");
        let mut sum = [0; 3];
        wait(|| g.poll_reduce_u64(&mut sum)).expect("same operation");
        assert_eq!(sum, [2, 21, 0]);

        g.sum_f64(&[0.5, x.rank() as f64]).expect("idle");
        let mut sum = [0.0; 2];
        wait(|| g.poll_sum_f64(&mut sum)).expect("same operation");
        assert_eq!(sum, [1.0, 1.0]);
        x.barrier().expect("both");
    });
}

#[test]
fn gates_say_what_they_are_busy_with_and_what_does_not_fit() {
    ranks(2, |x| {
        let mut g = pair_of_gates(x);
        let idle = GateError::NotRunning { polled: Operation::Barrier, running: None };
        assert_eq!(g.poll_barrier(), Err(idle));
        let operation = Operation::Uint64(7);
        assert_eq!(
            g.reduce_u64(ReduceOp::Max, &[0; 7]),
            Err(GateError::TooMany { operation, max: 6 })
        );
        g.reduce_u64(ReduceOp::Max, &[x.rank() as u64; 2]).expect("idle");
        let running = Operation::Uint64(2);
        assert_eq!(g.barrier(), Err(GateError::Busy(running)));
        let wrong = GateError::NotRunning { polled: Operation::Barrier, running: Some(running) };
        assert_eq!(g.poll_barrier(), Err(wrong));
        assert_eq!(g.poll_reduce_u64(&mut [0]), Err(GateError::ShortResult { running, room: 1 }));
        let mut max = [9; 2];
        wait(|| g.poll_reduce_u64(&mut max)).expect("same operation");
        assert_eq!(max, [1, 1]);

        // Different operations: both sides are told, and the gates can be used again.
        if x.rank() == 0 {
            g.reduce_u64(ReduceOp::Max, &[1]).expect("idle");
            assert_eq!(wait(|| g.poll_reduce_u64(&mut max)), Err(GateError::Mismatch));
        } else {
            g.reduce_u64(ReduceOp::Sum, &[1]).expect("idle");
            assert_eq!(wait(|| g.poll_reduce_u64(&mut max)), Err(GateError::Mismatch));
        }
        x.barrier().expect("both");
        g.barrier().expect("idle");
        wait(|| g.poll_barrier()).expect("same operation");
        x.barrier().expect("both");
    });
}

/// Signals for them may still come, and must not reach whoever has them next.
#[test]
fn gates_with_an_operation_in_flight_are_not_freed() {
    ranks(2, |x| {
        let mut gates = pair_of_gates(x);
        if x.rank() == 0 {
            gates.barrier().expect("idle");
        }
        drop(gates);
        let next = || GateSet::alloc(Api::emulated(), 0, 1).ok();
        let left: Vec<GateSet> = std::iter::from_fn(next).collect();
        assert_eq!(left.len(), if x.rank() == 0 { 15 } else { 16 });
        x.barrier().expect("both");
    });
}
