//! The rank of this process and the number of ranks of the job, from the environment; whether all ranks have started.

use std::time::Duration;

use hopbine_meet::variables::{Lookup, from_environment};
use hopbine_meet::{BootstrapError, Exchange, LocalExchange, Place, Refusal};

use super::mpi::Session;
use crate::comm::communicator::Communicator;
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

/// The communicator that this rank has made of the world, if all ranks have made theirs. Else no rank joins the world,
/// and all get the reason of the first that could not. Collective over `exchange`.
///
/// # Errors
/// The error of this rank, or [`Error::Meeting`].
pub(super) fn joined_by_all(
    made: Result<Communicator, Error>,
    exchange: &mut dyn Exchange,
    session: Option<&Session>,
) -> Result<Communicator, Error> {
    let mine = made.as_ref().map(|_| [].as_slice()).map_err(ToString::to_string);
    let (error, none_joins) = match exchange.agree(mine) {
        Ok(Ok(_)) => return made,
        Ok(Err(Refusal { reason, .. })) => (Error::Meeting { rank: None, reason }, true),
        Err(error) => (
            meeting_error(exchange.rank() as u32, &error),
            session.is_some_and(Session::has_given_up),
        ),
    };
    let comm = made?;
    comm.end();
    if !none_joins {
        // Peers that have joined the world may write to this memory.
        std::mem::forget(comm);
    }
    Err(error)
}

/// The error of a failed exchange.
pub(super) fn meeting_error(rank: u32, error: &BootstrapError) -> Error {
    let rank = (!matches!(error, BootstrapError::Missing { .. })).then_some(rank);
    Error::Meeting { rank, reason: error.to_string() }
}
