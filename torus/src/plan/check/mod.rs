//! The checker: executes all ranks' plans symbolically and proves that they do what the
//! collective promises. It knows no algorithm.
//!
//! Proved, all violations returned:
//! 1. every send meets one receive of the same step, with runs of the same lengths;
//! 2. runs lie inside the working space and do not overlap within a transfer;
//! 3. nothing is sent that is not there, and blocks of different owners are never combined;
//! 4. no contribution is counted twice, and at the end none is missing: the collective's
//!    post-condition holds on every rank;
//! 5. no block is overwritten while it is still to be sent;
//! 6. all ranks of an allreduce combine operands in the same order and grouping, so that
//!    floating-point results have identical bits (algorithms.md section 5);
//! 7. with [`Expect::sent_per_rank`], the volume is exactly that.
//!
//! Not proved here: that ports use different links (see [`super::traffic()`]) and anything
//! about time.
//!
//! Contributor sets are exact as long as all of them fit [`EXACT_BYTES`]: about a thousand
//! ranks for vectors cut into blocks, [`MAX_RANKS`] for whole vectors and barriers. Beyond, a
//! set is the sum of 128-bit pseudo-random numbers, one per rank: two different multisets
//! agree with a probability of about 2^-128.

mod contents;
mod execute;
mod fault;
#[cfg(test)]
mod tests;

use super::types::{Plan, PortPlan, Rank, n_positions};
use contents::SetKind;
use execute::Check;
pub use fault::{Fault, Found, Violation};

/// Up to this many bytes in all, contributor sets are bit sets.
pub const EXACT_BYTES: u64 = 256 << 20;

/// Most ranks that the checker takes: its state is 28 bytes per rank and position.
pub const MAX_RANKS: u32 = 16_384;

/// What is expected beyond correctness.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expect {
    /// Positions that every rank sends on every port in all, if that is fixed: p - 1 for a
    /// reduce-scatter or allgather of minimal volume, twice that for an allreduce.
    pub sent_per_rank: Option<u64>,
}

/// Checks the plans of all ranks, `plans[r]` being rank r's.
///
/// Returns every violation found; none means that the plans are proved.
///
/// # Panics
/// With more than [`MAX_RANKS`] plans.
pub fn check(plans: &[Plan], expect: Expect) -> Vec<Violation> {
    let mut found = Vec::new();
    if are_consistent(plans, &mut found) {
        found.extend(parts(plans).into_iter().flat_map(|part| check_part(plans, part, expect)));
    }
    found
}

/// The parts into which the data is cut: what [`check_part`] can check independently, for
/// instance in threads of the caller's.
pub fn parts(plans: &[Plan]) -> Vec<u32> {
    let ports = plans.first().map(|plan| plan.ports.as_slice()).unwrap_or_default();
    let mut parts: Vec<u32> = ports.iter().map(|port| port.part).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// Checks the ports that move one part of the data; [`check`] does so for all parts.
///
/// # Panics
/// With more than [`MAX_RANKS`] plans.
pub fn check_part(plans: &[Plan], part: u32, expect: Expect) -> Vec<Violation> {
    let n_ranks = plans.len() as u32;
    assert!(n_ranks <= MAX_RANKS, "the checker takes {MAX_RANKS} ranks at most");
    let mut found = Vec::new();
    if !are_consistent(plans, &mut found) {
        return found;
    }
    // Ports that share a part share a working space.
    let has_part = |port: &PortPlan| port.part == part;
    let Some(first) = plans.first() else { return found };
    let ports: Vec<usize> =
        (0..first.ports.len()).filter(|&port| has_part(&first.ports[port])).collect();
    let Some(&port) = ports.first() else { return found };
    let words = u64::from(n_ranks.div_ceil(64));
    let slots = u64::from(n_ranks) * u64::from(first.ports[port].positions);
    let set = if slots * words * 8 <= EXACT_BYTES {
        SetKind::Exact { words: words as usize }
    } else {
        SetKind::Fingerprint
    };
    Check { plans, ports: ports.clone(), set, found: &mut found }.run();
    if let Some(expected) = expect.sent_per_rank {
        for (rank, plan) in plans.iter().enumerate() {
            for &port in &ports {
                let sends = plan.ports[port].steps.iter().flat_map(|step| &step.sends);
                let sent = sends.map(|send| n_positions(&send.blocks)).sum();
                if sent != expected {
                    let kind = Fault::Volume { sent, expected };
                    let rank = rank as Rank;
                    found.push(Violation { rank, port, step: None, position: None, kind });
                }
            }
        }
    }
    found
}

/// The plans must be those of one collective; otherwise nothing else can be checked.
fn are_consistent(plans: &[Plan], found: &mut Vec<Violation>) -> bool {
    let Some(first) = plans.first() else { return true };
    for (rank, plan) in plans.iter().enumerate() {
        let ports_agree = plan.ports.len() == first.ports.len()
            && plan.ports.iter().zip(&first.ports).all(|(a, b)| {
                (a.part, a.parts, a.positions, a.space) == (b.part, b.parts, b.positions, b.space)
                    && a.steps.len() == b.steps.len()
            });
        let what = if plan.rank as usize != rank || plan.n_ranks as usize != plans.len() {
            "their ranks"
        } else if (plan.collective, plan.root) != (first.collective, first.root) {
            "collective or root"
        } else if !ports_agree {
            "ports, parts, positions or number of steps"
        } else {
            continue;
        };
        let kind = Fault::Inconsistent { what };
        found.push(Violation { rank: rank as Rank, port: 0, step: None, position: None, kind });
    }
    found.is_empty()
}
