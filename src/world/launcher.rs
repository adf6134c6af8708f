//! The rank of this process and the number of ranks of the job, from the environment.

use std::time::Duration;

use hopbine_meet::variables::{Lookup, from_environment};
use hopbine_meet::{BootstrapError, Exchange, LocalExchange, Place};

use crate::error::Error;

/// Number of ranks by the environment: `HOPBINE_SIZE`, or the variables of an MPI launcher or of Slurm; 1 if none is
/// set.
///
/// # Errors
/// [`Error::Setting`] if a value is invalid.
pub fn n_ranks_said() -> Result<u32, Error> {
    Ok(Place::size_from_env(&from_environment)? as u32)
}

/// The exchange of the ranks that the environment names, or of this process alone.
///
/// # Errors
/// [`Error::Meeting`].
pub(super) fn connect_ranks(
    get: Lookup<'_>,
    timeout: Duration,
) -> Result<Box<dyn Exchange>, Error> {
    let place = Place::find(get)
        .map_err(|error| Error::Meeting { rank: None, reason: error.to_string() })?;
    if place.size == 1
        && let Some(exchange) = LocalExchange::group(1, timeout).pop()
    {
        return Ok(Box::new(exchange));
    }
    let met = place.meet(get, ".ranks", timeout);
    let met = met.map_err(|error| meeting_error(place.rank as u32, &error))?;
    Ok(Box::new(met))
}

/// The error of a failed exchange.
pub(super) fn meeting_error(rank: u32, error: &BootstrapError) -> Error {
    let rank = (!matches!(error, BootstrapError::Missing { .. })).then_some(rank);
    Error::Meeting { rank, reason: error.to_string() }
}
