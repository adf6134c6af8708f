//! Hand-made plans, for cases that no algorithm produces.

use std::sync::Arc;

use super::{Rank, execute, reducer, run_case};
use crate::common::reference::Case;
use hopbine::engine::{Buffer, CheckedPlan, CompileError, Geometry, Sizes, compile};
use hopbine::reduce::{Dtype, Op, Reducer};
use hopbine_torus::collectives::{Action, Payload};
use hopbine_torus::plan::{BlockOrder, Defect, Lane, Part, Plan, Run, Runs, Space, Step, Transfer};
use hopbine_torus::{Collective, PortId};

fn transfer(peer: u32, start: u32, len: u32) -> Transfer {
    let runs = Runs::from_slice(&[Run::new(start, len)]);
    Transfer { peer: hopbine_torus::Rank(peer), port: PortId(0), runs }
}

/// A plan of one step on one lane, over a vector of `n_positions` pieces.
fn one_step(rank: u32, n_ranks: u32, n_positions: u32, step: Step) -> Plan {
    let space = Space { payload: Payload::Vector, n_positions, order: BlockOrder::Identity };
    let lane = Lane {
        port: PortId(0),
        part: Part::WHOLE,
        space: Arc::new(space),
        window: None,
        steps: vec![step],
    };
    let (rank, root) = (hopbine_torus::Rank(rank), hopbine_torus::Rank(0));
    Plan { collective: Collective::Allreduce, rank, n_ranks, root, lanes: vec![lane] }
}

/// Every rank sends its whole vector to every other rank and folds all vectors in rank order.
fn fold_plan(rank: u32, n_ranks: u32, positions: u32) -> Plan {
    let others = || (0..n_ranks).filter(move |&other| other != rank);
    let step = Step {
        sends: others().map(|to| transfer(to, 0, positions)).collect(),
        recvs: others().map(|from| transfer(from, 0, positions)).collect(),
        action: Action::Reduce,
        own_at: rank,
    };
    one_step(rank, n_ranks, positions, step)
}

#[test]
fn folds_take_many_operands_in_order() {
    for n_ranks in [2, 3, 12] {
        for (count, segment) in [(1, None), (100, Some(64)), (1000, Some(8))] {
            for in_place in [false, true] {
                let case = Case { collective: Collective::Allreduce, n_ranks, count, root: 0 };
                let plans: Vec<_> = (0..n_ranks)
                    .map(|rank| CheckedPlan::new(fold_plan(rank, n_ranks, 1)).unwrap())
                    .collect();
                run_case(case, in_place, segment, &plans);
            }
        }
    }
}

#[test]
fn folds_give_identical_bits() {
    let n_ranks = 7;
    let geometry = |in_place| Geometry {
        sizes: Sizes::Equal(50),
        elem_bytes: 8,
        in_place,
        segment_bytes: Some(64),
        staged: None,
    };
    // Only the quotient is rounded. This avoids `powi`, whose rounding may differ between the places where it is
    // compiled.
    let value = |rank: u32, index: usize| f64::from((10 * rank + 1).pow(5)) / (index as f64 + 0.3);
    let bits = |rank| (0..50).map(|index| value(rank, index).to_bits()).collect::<Vec<u64>>();
    let want: Vec<u64> = (0..50)
        .map(|index| {
            (1..n_ranks).fold(value(0, index), |sum, rank| sum + value(rank, index)).to_bits()
        })
        .collect();
    for in_place in [false, true] {
        let mut ranks: Vec<Rank> = (0..n_ranks)
            .map(|rank| {
                let plan = CheckedPlan::new(fold_plan(rank, n_ranks, 1)).unwrap();
                let program = compile(&plan, &geometry(in_place)).unwrap();
                let (send, recv) =
                    if in_place { (vec![], bits(rank)) } else { (bits(rank), vec![0; 50]) };
                Rank::new(program, send, recv)
            })
            .collect();
        assert!(execute(&mut ranks, Reducer::new(Dtype::F64, Op::Sum).unwrap(), 3));
        for rank in &ranks {
            assert_eq!(rank.buffers[Buffer::Recv as usize], want);
        }
    }
}

/// Several folds in one step: in each fold one operand precedes the rank's own value.
#[test]
fn the_own_place_is_counted_in_every_fold() {
    let step = Step {
        recvs: [(1, 0), (2, 1), (3, 2)]
            .map(|(from, at)| transfer(from, at, 1))
            .into_iter()
            .collect(),
        action: Action::Reduce,
        own_at: 1,
        ..Step::default()
    };
    let plan = CheckedPlan::new(one_step(0, 4, 3, step.clone())).unwrap();
    for in_place in [false, true] {
        let geometry = Geometry {
            sizes: Sizes::Equal(30),
            elem_bytes: 8,
            in_place,
            segment_bytes: None,
            staged: None,
        };
        let program = compile(&plan, &geometry).unwrap();
        let port = &program.ports[0];
        assert_eq!(port.folds.len(), 3);
        for fold in &port.folds {
            let operands =
                fold.operands.start as usize..(fold.operands.start + fold.operands.len) as usize;
            let mut order: Vec<Buffer> =
                port.operands[operands].iter().map(|operand| operand.buffer).collect();
            if let Some(at) = fold.own_at {
                order.insert(at as usize, fold.into.buffer);
            }
            // The message may be received directly into the place of the result; then the rank's own value is the
            // other operand.
            let own = if in_place { Buffer::Recv } else { Buffer::Send };
            assert_eq!(order.len(), 2, "{fold:?}");
            assert!(order[0] != own && order[1] == own, "{fold:?}: {order:?}");
        }
    }
    let beyond = Step { own_at: 2, ..step };
    let refused = CheckedPlan::new(one_step(0, 4, 3, beyond)).unwrap_err();
    let own_at = Defect::OwnAt { own_at: 2, n_recvs: 1 };
    assert_eq!(refused.error, CompileError::Invalid(own_at));
}

/// Two receives with an uneven overlap: rank 0 gets positions 0..2 and 1..3. No single order of the operands serves
/// all positions.
#[test]
fn uneven_overlaps_are_refused() {
    let step = Step {
        recvs: [(1, 0), (2, 1)].into_iter().map(|(from, start)| transfer(from, start, 2)).collect(),
        action: Action::Reduce,
        ..Step::default()
    };
    let refused = CheckedPlan::new(one_step(0, 3, 3, step)).unwrap_err();
    let overlap = Defect::Overlap { run: Run::new(1, 2) };
    assert_eq!(refused.error, CompileError::Invalid(overlap));
}

/// Runs one step of `plan` on `n_ranks` ranks, in place, and returns each rank's buffer. At the start every element
/// of a piece is r * 1000 + the piece's number on rank r.
fn run_in_place(
    n_ranks: u32,
    piece: usize,
    segment_bytes: Option<u64>,
    plan: impl Fn(u32) -> Plan,
) -> Vec<Vec<u64>> {
    let count = n_ranks as usize * piece;
    let geometry = Geometry {
        sizes: Sizes::Equal(count as u64),
        elem_bytes: 8,
        in_place: true,
        segment_bytes,
        staged: None,
    };
    let mut ranks: Vec<Rank> = (0..n_ranks)
        .map(|rank| {
            let program = compile(&CheckedPlan::new(plan(rank)).unwrap(), &geometry).unwrap();
            let data = (0..count).map(|at| u64::from(rank) * 1000 + (at / piece) as u64).collect();
            Rank::new(program, vec![], data)
        })
        .collect();
    assert!(execute(&mut ranks, reducer(), 5), "stuck");
    ranks.into_iter().map(|rank| rank.buffers[Buffer::Recv as usize].clone()).collect()
}

/// An exchange in place: blocks are received into places from which other blocks of the same step are sent, in an
/// order in which a naive engine would wait for itself.
#[test]
fn exchanges_in_place_do_not_wait_for_each_other() {
    let n_ranks = 5;
    let plan = |rank: u32| {
        let mut step = Step::default();
        for by in 1..n_ranks {
            let (to, from) = ((rank + by) % n_ranks, (rank + n_ranks - by) % n_ranks);
            step.sends.push(transfer(to, to, 1));
            step.recvs.push(transfer(from, from, 1));
        }
        one_step(rank, n_ranks, n_ranks, step)
    };
    for (piece, segment) in [(1, None), (100, Some(64)), (3, Some(8))] {
        for (rank, got) in run_in_place(n_ranks, piece, segment, plan).iter().enumerate() {
            let from = |at: usize| (at / piece) as u64 * 1000 + rank as u64;
            let want: Vec<u64> = (0..got.len()).map(from).collect();
            assert_eq!(*got, want);
        }
    }
}

/// Ranks move their blocks by different amounts within one transfer, so that a message is received at a place from
/// which messages with other piece numbers are sent.
#[test]
fn landing_waits_never_form_a_cycle() {
    let n_ranks = 4;
    let plan = |rank: u32| {
        let (next, previous) = ((rank + 1) % n_ranks, (rank + n_ranks - 1) % n_ranks);
        // Position i goes to position n - 1 - i of the next rank.
        let reversed: Runs = (0..n_ranks).rev().map(|at| Run::new(at, 1)).collect();
        let previous =
            Transfer { peer: hopbine_torus::Rank(previous), port: PortId(0), runs: reversed };
        let step = Step {
            sends: std::iter::once(transfer(next, 0, 4)).collect(),
            recvs: std::iter::once(previous).collect(),
            ..Step::default()
        };
        one_step(rank, n_ranks, n_ranks, step)
    };
    for (rank, got) in run_in_place(n_ranks, 64, Some(8), plan).iter().enumerate() {
        let from = (rank as u64 + 3) % 4;
        let want: Vec<u64> = (0..256).map(|at| from * 1000 + 3 - at / 64).collect();
        assert_eq!(*got, want);
    }
}
