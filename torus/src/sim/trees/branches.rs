//! The branches below a rank of a tree, by port and by step.

use crate::sim::subtrees::Branch;

/// The number of messages for each piece on the port of `branch`.
pub(super) fn n_sharing(branches: &[Branch], branch: &Branch) -> usize {
    branches.iter().filter(|other| other.port == branch.port).count()
}

/// The most messages for each piece on one port.
pub(super) fn busiest(branches: &[Branch]) -> usize {
    branches.iter().map(|branch| n_sharing(branches, branch)).max().unwrap_or(0)
}

/// By port, until when its interface sends or receives pieces, ns; initially minus infinity.
pub(super) fn interfaces(branches: &[Branch]) -> Vec<f64> {
    let n_ports = branches.iter().map(|branch| branch.port.index() + 1).max().unwrap_or(0);
    vec![f64::NEG_INFINITY; n_ports]
}

/// The branches of each step, with the index of the first.
pub(super) fn by_step(branches: &[Branch]) -> Vec<(usize, &[Branch])> {
    let mut first = 0;
    let of_steps = branches.chunk_by(|a, b| a.step == b.step);
    let numbered = of_steps.map(|of_step| {
        first += of_step.len();
        (first - of_step.len(), of_step)
    });
    numbered.collect()
}
