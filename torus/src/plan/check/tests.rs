//! One broken plan for each kind of violation: the checker must see it, and say where.

use std::sync::Arc;

use super::*;
use crate::collectives::Collective;
use crate::collectives::{Request, registry};
use crate::geometry::RankMap;
use crate::plan::types::{Action, Placement, Run};
use crate::plan::{Expect, Space};

fn plans(collective: Collective, algorithm: &str, shape: &str) -> Vec<Plan> {
    let request =
        Request { shape: shape.parse().unwrap(), map: RankMap::RowMajor, root: 0, ports: Some(1) };
    let schedule = registry::find(collective, algorithm).unwrap().schedule(&request).unwrap();
    let plans: Vec<Plan> =
        (0..schedule.shape.n_nodes()).map(|rank| schedule.plan(rank).unwrap()).collect();
    assert_eq!(check(&plans, Expect::default()), []);
    plans
}

fn allreduce() -> Vec<Plan> {
    plans(Collective::Allreduce, "bine", "8")
}

fn runs(runs: &[(u32, u32)]) -> Arc<[Run]> {
    runs.iter().map(|&(start, len)| Run::new(start, len)).collect()
}

/// The faults found after a change, as (rank, step, fault).
fn faults(
    mut plans: Vec<Plan>,
    change: impl FnOnce(&mut Vec<Plan>),
) -> Vec<(Rank, Option<usize>, Fault)> {
    change(&mut plans);
    check(&plans, Expect::default()).into_iter().map(|v| (v.rank, v.step, v.kind)).collect()
}

#[test]
fn plans_that_do_not_belong_together() {
    let found = faults(allreduce(), |plans| {
        plans.swap(0, 1);
        plans[5].collective = Collective::Reduce;
        plans[6].ports[0].steps.pop();
    });
    let whats: Vec<_> = found
        .iter()
        .map(|(rank, _, fault)| match fault {
            Fault::Inconsistent { what } => (*rank, *what),
            other => panic!("{other}"),
        })
        .collect();
    let expected = [
        (0, "their ranks"),
        (1, "their ranks"),
        (5, "collective or root"),
        (6, "ports, parts, positions or number of steps"),
    ];
    assert_eq!(whats, expected);
}

#[test]
fn peers_that_do_not_exist() {
    let found = faults(allreduce(), |plans| plans[2].ports[0].steps[0].sends[0].to = 8);
    assert!(found.contains(&(2, Some(0), Fault::BadPeer { peer: 8 })), "{found:?}");
    let found = faults(allreduce(), |plans| plans[2].ports[0].steps[1].recvs[0].from = 2);
    assert!(found.contains(&(2, Some(1), Fault::BadPeer { peer: 2 })), "{found:?}");
}

#[test]
fn messages_that_nobody_awaits_or_sends() {
    let peer = allreduce()[3].ports[0].steps[1].sends[0].to;
    let found = faults(allreduce(), |plans| {
        plans[peer as usize].ports[0].steps[1].recvs.clear();
    });
    assert!(found.contains(&(3, Some(1), Fault::UnmatchedSend { to: peer })), "{found:?}");
    let found = faults(allreduce(), |plans| plans[3].ports[0].steps[1].sends.clear());
    assert!(found.contains(&(peer, Some(1), Fault::UnmatchedRecv { from: 3 })), "{found:?}");
    // Two messages to one peer in one step could not be told apart.
    let found = faults(allreduce(), |plans| {
        let step = &mut plans[3].ports[0].steps[1];
        step.sends.push(step.sends[0].clone());
    });
    assert!(found.contains(&(3, Some(1), Fault::UnmatchedSend { to: peer })), "{found:?}");
}

#[test]
fn lengths_that_differ() {
    let from = allreduce()[3].ports[0].steps[0].recvs[0].from;
    let found = faults(allreduce(), |plans| {
        let recv = &mut plans[3].ports[0].steps[0].recvs[0];
        recv.blocks = runs(&[(recv.blocks[0].start, 3)]);
    });
    let fault = Fault::LengthMismatch { from, sent: 4, awaited: 3 };
    assert!(found.contains(&(3, Some(0), fault)), "{found:?}");
}

#[test]
fn runs_outside_the_space_or_empty_or_overlapping() {
    for (bad, is_bounds) in [
        (runs(&[(6, 3)]), true),
        (runs(&[(u32::MAX, 1)]), true),
        (runs(&[(0, 0)]), true),
        (runs(&[(0, 2), (1, 2)]), false),
    ] {
        let found = faults(allreduce(), |plans| {
            plans[1].ports[0].steps[0].sends[0].blocks = bad.clone();
        });
        assert!(
            found.iter().any(|(rank, step, fault)| (*rank, *step) == (1, Some(0))
                && if is_bounds {
                    matches!(fault, Fault::OutOfBounds { .. })
                } else {
                    matches!(fault, Fault::OverlappingRuns { .. })
                }),
            "{bad:?}: {found:?}"
        );
    }
}

#[test]
fn sending_what_is_not_there() {
    let found = faults(plans(Collective::Allgather, "bine", "8"), |plans| {
        plans[4].ports[0].input = Placement::One { position: 7 };
    });
    assert!(found.contains(&(4, Some(0), Fault::SentEmpty)), "{found:?}");
}

#[test]
fn combining_blocks_of_different_owners() {
    let found = faults(allreduce(), |plans| {
        let recv = &mut plans[0].ports[0].steps[0].recvs[0];
        recv.blocks = runs(&[((recv.blocks[0].start + 4) % 8, 4)]);
    });
    assert!(
        found.iter().any(|(rank, step, fault)| (*rank, *step) == (0, Some(0))
            && matches!(fault, Fault::MixedBlocks { held: Some(_), .. })),
        "{found:?}"
    );
    let found = faults(plans(Collective::Allgather, "bine", "8"), |plans| {
        plans[0].ports[0].steps[0].recvs[0].action = Action::Reduce;
    });
    assert!(
        found.iter().any(|(.., fault)| matches!(fault, Fault::MixedBlocks { held: None, .. })),
        "{found:?}"
    );
}

#[test]
fn counting_twice() {
    let found = faults(allreduce(), |plans| {
        // The first exchange again, at the end of the reduce-scatter.
        for plan in plans.iter_mut() {
            let again = plan.ports[0].steps[0].clone();
            plan.ports[0].steps.insert(3, again);
        }
    });
    assert!(
        found.iter().any(|(_, step, fault)| *step == Some(3)
            && matches!(fault, Fault::CountedTwice { .. })),
        "{found:?}"
    );
}

#[test]
fn overwriting_what_is_still_to_be_sent() {
    let found = faults(plans(Collective::Alltoall, "doubling", "4"), |plans| {
        // What arrives in the first step lands on blocks that are sent in the second.
        for plan in plans.iter_mut() {
            let recv = &mut plan.ports[0].steps[0].recvs[0];
            recv.blocks = runs(&[(1, 2)]);
        }
    });
    assert!(
        found
            .iter()
            .any(|(_, step, fault)| *step == Some(0) && matches!(fault, Fault::Overwritten { .. })),
        "{found:?}"
    );
}

#[test]
fn missing_and_misplaced_results() {
    // A last step left out: contributions are missing, or blocks have not arrived.
    let found = faults(plans(Collective::ReduceScatter, "bine", "8"), |plans| {
        plans.iter_mut().for_each(|plan| plan.ports[0].steps[2] = Default::default());
    });
    let incomplete =
        |fault: &Fault| matches!(fault, Fault::WrongResult { found: Found::Incomplete, .. });
    assert_eq!(found.iter().filter(|(.., fault)| incomplete(fault)).count(), 8, "{found:?}");
    let found = faults(plans(Collective::Bcast, "bine-tree", "8"), |plans| {
        plans.iter_mut().for_each(|plan| plan.ports[0].steps[2] = Default::default());
    });
    let nothing = |fault: &Fault| matches!(fault, Fault::WrongResult { found: Found::Nothing, .. });
    assert!(found.iter().any(|(.., fault)| nothing(fault)), "{found:?}");
    let found = faults(plans(Collective::Allgather, "bine", "8"), |plans| {
        plans[3].ports[0].output = Placement::Identity;
    });
    let misplaced =
        |fault: &Fault| matches!(fault, Fault::WrongResult { found: Found::Block(_), .. });
    assert!(found.iter().any(|(r, _, fault)| *r == 3 && misplaced(fault)), "{found:?}");
}

#[test]
fn placements_that_cannot_be() {
    let own = Placement::One { position: 8 };
    let twice = Placement::Permuted(Arc::from([0, 1, 2, 3, 4, 5, 6, 6]));
    for bad in [own, twice, Placement::Nothing] {
        let found = faults(plans(Collective::ReduceScatter, "bine", "8"), |plans| {
            plans[2].ports[0].input = bad.clone();
        });
        assert!(
            found
                .iter()
                .any(|(rank, _, fault)| *rank == 2 && matches!(fault, Fault::BadPlacement { .. })),
            "{bad:?}: {found:?}"
        );
    }
}

#[test]
fn another_order_of_operands() {
    let found = faults(plans(Collective::Allreduce, "doubling-l", "8"), |plans| {
        let step = &mut plans[5].ports[0].steps[1];
        step.own_at = 1 - step.own_at;
    });
    assert!(found.iter().any(|(.., fault)| *fault == Fault::DifferentOrder), "{found:?}");
    // Distance doubling with bine: windows, not nested groups (algorithms.md section 5).
    let request =
        Request { shape: "64".parse().unwrap(), map: RankMap::RowMajor, root: 0, ports: Some(1) };
    let mut schedule =
        registry::find(Collective::Allreduce, "bine-l").unwrap().schedule(&request).unwrap();
    assert!(schedule.validate().is_ok());
    schedule.order = crate::plan::StepOrder::NearFirst;
    let message = schedule.validate().unwrap_err().to_string();
    assert!(message.contains("groups that nest"), "{message}");
}

#[test]
fn more_volume_than_promised() {
    let plans = plans(Collective::ReduceScatter, "bine-send", "8");
    let found = check(&plans, Expect { sent_per_rank: Some(7) });
    assert!(found.iter().any(|v| v.kind == Fault::Volume { sent: 8, expected: 7 }), "{found:?}");
}

#[test]
fn fingerprints_tell_what_exact_sets_tell() {
    // The same broken plans through the representation for large sets.
    let mut plans = allreduce();
    for plan in &mut plans {
        let again = plan.ports[0].steps[0].clone();
        plan.ports[0].steps.insert(3, again);
    }
    for set in [SetKind::Exact { words: 1 }, SetKind::Fingerprint] {
        let mut found = Vec::new();
        Check { plans: &plans, ports: vec![0], set, found: &mut found }.run();
        assert!(
            found
                .iter()
                .any(|v| matches!(v.kind, Fault::WrongResult { .. } | Fault::CountedTwice { .. })),
            "{found:?}"
        );
        let mut found = Vec::new();
        Check { plans: &allreduce(), ports: vec![0], set, found: &mut found }.run();
        assert_eq!(found, []);
    }
}

#[test]
fn a_barrier_hears_from_everyone() {
    let found = faults(plans(Collective::Barrier, "circulant", "7"), |plans| {
        plans.iter_mut().for_each(|plan| plan.ports[0].steps[1] = Default::default());
    });
    assert_eq!(found.len(), 7, "{found:?}");
    assert_eq!(plans(Collective::Barrier, "mixed", "3")[0].ports[0].space, Space::Token);
}

#[test]
fn violations_read_well() {
    let violation = Violation {
        rank: 3,
        port: 1,
        step: Some(2),
        position: Some(9),
        kind: Fault::CountedTwice { block: 9, from: 4 },
    };
    assert_eq!(
        violation.to_string(),
        "rank 3 port 1 step 2 position 9: rank 4 repeats a contribution to block 9"
    );
}
