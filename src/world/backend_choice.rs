//! Which device a world is on.

use std::sync::Arc;

use hopbine_meet::variables::{BACKEND, REG_CACHE, from_environment};
use hopbine_meet::{Exchange, Place};

use super::backend::Backend;
use super::mpi::Session;
use super::shm::{self, Shm};
use super::tofu::{Tofu, of_environment};
use crate::error::Error;
use crate::memory::{CacheConfig, KeepRule};

/// Backends that cannot be used, each with the reason.
pub(super) type Tried = Vec<(String, String)>;

/// The backend of that name, or the best one; with the backends that were tried before. `cache` configures the
/// registration cache. With a session of MPI, `exchange` connects its ranks.
///
/// # Errors
/// [`Error::Backend`], [`Error::Setting`] for a name that does not exist, [`Error::Meeting`].
pub(super) fn choose(
    name: Option<&str>,
    cache: CacheConfig,
    session: Option<&Arc<Session>>,
    exchange: &mut dyn Exchange,
) -> Result<(Box<dyn Backend>, Tried), Error> {
    match name {
        None | Some("auto") => {
            let reason = match Tofu::vendor(cache) {
                Ok(device) => return Ok((checked_device(device, cache)?, Vec::new())),
                Err(reason) => reason,
            };
            let mut tried = vec![("tofu".to_owned(), reason)];
            if let Some(session) = session
                && !shm::is_one_host(exchange)?
            {
                tried.push(("shm".to_owned(), "the ranks are on several hosts".to_owned()));
                return Ok((session.backend(), tried));
            }
            Ok((Box::new(Shm::from_env()?), tried))
        }
        Some("tofu") => match Tofu::vendor(cache) {
            Ok(device) => Ok((checked_device(device, cache)?, Vec::new())),
            Err(reason) => Err(unusable("tofu", reason)),
        },
        Some("shm") => Ok((Box::new(Shm::from_env()?), Vec::new())),
        Some("emu") => {
            if let Some(session) = session {
                check_same_ranks(session)?;
            }
            let device = of_environment(cache).map_err(|reason| unusable("emu", reason))?;
            Ok((checked_device(device, cache)?, Vec::new()))
        }
        Some("mpi") => match session {
            Some(session) => Ok((session.backend(), Vec::new())),
            None => Err(unusable(
                "mpi",
                "this job was not started over MPI: start hopbine from an MPI communicator, or by mpirun and without an exchange function"
                    .to_owned(),
            )),
        },
        Some(other) => {
            Err(BACKEND.wrong_here(other, "tofu, shm, emu, mpi or auto, for ranks that are processes").into())
        }
    }
}

/// The device, if it can cache registrations as `cache` demands.
///
/// # Errors
/// [`Error::Setting`] if memory would have to be trusted that the allocator may give back to the system.
fn checked_device(device: Tofu, cache: CacheConfig) -> Result<Box<dyn Backend>, Error> {
    if cache.keep == KeepRule::Trust {
        let source = cache.keep.source();
        source
            .map_err(|reason| REG_CACHE.wrong_here("trust", format!("on or off here: {reason}")))?;
    }
    Ok(Box::new(device))
}

/// Checks that MPI and the environment give this process the same rank: the emulated device uses the environment's.
fn check_same_ranks(session: &Session) -> Result<(), Error> {
    let (rank, size) = session.place();
    match Place::find(&from_environment) {
        Ok(place) if (place.rank, place.size) == (rank, size) => Ok(()),
        Ok(Place { rank: other, size: of, .. }) => Err(unusable(
            "emu",
            format!(
                "the environment says rank {other} of {of}, MPI says rank {rank} of {size}: the emulated device needs all ranks of the job, in their order"
            ),
        )),
        Err(error) => Err(unusable("emu", error.to_string())),
    }
}

fn unusable(name: &str, reason: String) -> Error {
    Error::Backend { wanted: name.to_owned(), tried: vec![(name.to_owned(), reason)] }
}
