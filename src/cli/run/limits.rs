//! Emulated ranks that the machine has no threads or memory for are refused before anything starts.

use hopbine::{Drive, EmulationConfig};

use super::super::error::CliError;
use super::super::{host, sizes};
use super::DEFAULT_PORTS;
use super::reference::Case;
use super::rows::total_bytes;

/// Memory of an emulated rank and of each of its ports, as measured on 1024 ranks.
const RANK_BYTES: u64 = 128 << 10;
const PORT_BYTES: u64 = 400 << 10;

/// Refuses more ranks than there can be threads, or memory for their ports.
pub(super) fn check_threads(config: &EmulationConfig) -> Result<(), CliError> {
    let sizes: Vec<u32> = config.shape.sizes().into_iter().rev().collect();
    utofu_emu::Job::coords_for_shape(&sizes)
        .map_err(|error| CliError::Usage(format!("the emulated device: {error}")))?;
    let ranks = u64::from(config.shape.n_nodes());
    let ports = u64::from(config.ports.unwrap_or(DEFAULT_PORTS));
    let per_rank = if config.drive == Drive::Workers { 1 + ports } else { 1 };
    let what = format!("{ranks} emulated ranks");
    let instead = "use a smaller --torus, or `hopbine check`, which needs no ranks";
    host::check_threads(&what, ranks * per_rank, instead)?;
    host::check_memory(what, ranks * (RANK_BYTES + ports * PORT_BYTES), instead)
}

/// Refuses data that are more than the machine's memory.
pub(super) fn check_memory(case: &Case) -> Result<(), CliError> {
    let n_ranks = u64::from(case.data.n_ranks);
    let all_ranks = |len: fn(&Case, u32) -> usize| {
        (0..case.data.n_ranks).map(|rank| len(case, rank) as u64).sum::<u64>()
    };
    let elements = all_ranks(Case::input_len) + all_ranks(Case::result_len);
    // Staging takes up to as much as the results again.
    let needed = elements.saturating_mul(case.data.dtype.size_bytes() as u64) / 2 * 3;
    let what = format!("{} on {n_ranks} ranks", sizes::show(total_bytes(case)));
    host::check_memory(what, needed, "use smaller --bytes or a smaller --torus")
}
