//! Refuses emulated or simulated ranks for which the machine lacks threads or memory, before anything starts.

use std::ops::Range;

use hopbine::{Drive, EmulationConfig};
use hopbine_torus::sizes;

use super::super::args::DEFAULT_PORTS;
use super::super::counts::MOST_ELEMENTS;
use super::super::error::CliError;
use super::super::host;
use super::reference::CollectiveCase;

/// Memory in bytes of an emulated rank and of each of its ports, as measured on 1024 ranks.
const RANK_BYTES: u64 = 128 << 10;
const PORT_BYTES: u64 = 400 << 10;

/// Memory in bytes of a simulated rank and of each of its ports, as measured on 4096 ranks.
const SIMULATED_RANK_BYTES: u64 = 128 << 10;
const SIMULATED_PORT_BYTES: u64 = 48 << 10;

/// Refuses more simulated ranks than fit in memory.
pub(super) fn check_simulated(config: &EmulationConfig) -> Result<(), CliError> {
    let ranks = u64::from(config.shape.n_ranks());
    let ports = u64::from(config.ports.unwrap_or(DEFAULT_PORTS));
    let needed = ranks * (SIMULATED_RANK_BYTES + ports * SIMULATED_PORT_BYTES);
    host::check_memory(format!("{ranks} simulated ranks"), needed, "use a smaller --torus")
}

/// Refuses more ranks than the host allows threads, or than fit in memory with their ports.
pub(super) fn check_threads(config: &EmulationConfig) -> Result<(), CliError> {
    #[cfg(feature = "emu")]
    {
        let sizes: Vec<u32> = config.shape.sizes().into_iter().rev().collect();
        utofu_emu::Job::coords_for_shape(&sizes)
            .map_err(|error| CliError::Usage(format!("the emulated device: {error}")))?;
    }
    let ranks = u64::from(config.shape.n_ranks());
    let ports = u64::from(config.ports.unwrap_or(DEFAULT_PORTS));
    let per_rank = match config.drive {
        Drive::Workers => 1 + ports,
        Drive::Worker => 2,
        // The caller, at least.
        _ => 1,
    };
    let what = format!("{ranks} emulated ranks");
    let instead = "use a smaller --torus, or `hopbine check`, which needs no ranks";
    host::check_threads(&what, ranks * per_rank, instead)?;
    host::check_memory(what, ranks * (RANK_BYTES + ports * PORT_BYTES), instead)
}

/// Refuses numbers of elements for which the bytes of all ranks exceed 64 bits.
pub(super) fn check_counts(counts: &[u64], n_ranks: u32, is_vector: bool) -> Result<(), CliError> {
    // Each rank has one vector, or up to one block for each rank.
    let n = u64::from(n_ranks);
    let of_one = if is_vector { n } else { n.saturating_mul(n) };
    match counts.iter().find(|count| count.saturating_mul(of_one) > MOST_ELEMENTS) {
        None => Ok(()),
        Some(count) => {
            let what = if is_vector { "vectors" } else { "blocks" };
            Err(CliError::Usage(format!(
                "{what} of {count} elements on {n} ranks are more than 2^64 bytes; use smaller --bytes"
            )))
        }
    }
}

/// Refuses data of the ranks on this host that exceed its memory.
pub(in super::super) fn check_memory(
    case: &CollectiveCase,
    here: Range<u32>,
) -> Result<(), CliError> {
    let whose = match here.len() {
        1 => "one rank".to_owned(),
        n => format!("{n} ranks"),
    };
    let elements: u64 = here
        .map(|rank| case.input_len(rank) as u64 + case.result_len(rank) as u64)
        .fold(0, u64::saturating_add);
    // Staging takes up to as much memory as the results.
    let needed = (elements / 2).saturating_mul(3 * case.data.dtype.size_bytes() as u64);
    let what = format!("{} on {whose}", sizes::show(case.total_bytes()));
    host::check_memory(what, needed, "use smaller --bytes or a smaller --torus")
}
