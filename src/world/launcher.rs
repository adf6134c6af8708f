//! Who this process is among the ranks of a job, as far as the environment says.

use std::time::Duration;

use utofu::bootstrap::{
    Bootstrap, BootstrapError, ENV_RANK, ENV_RENDEZVOUS, ENV_SIZE, Exchange, LocalExchange,
};
use utofu_emu::Launched;

use super::config::{Lookup, from_environment};
use crate::error::Error;

/// Whether variables of our own say it.
pub(super) fn is_said(get: Lookup<'_>) -> bool {
    [ENV_RANK, ENV_SIZE].iter().any(|name| get(name).is_some())
}

/// Rank and size as a launcher of MPI's or Slurm's gives them; `None` if our own variables are set.
///
/// # Errors
/// [`Error::Meeting`] if it makes no sense.
pub(super) fn find(get: Lookup<'_>) -> Result<Option<Launched>, Error> {
    if is_said(get) {
        return Ok(None);
    }
    Launched::find(get).map_err(|error| Error::Meeting { rank: None, reason: error.to_string() })
}

/// Number of ranks by the environment: that of `HOPBINE_SIZE`, or of a launcher of MPI's or Slurm's;
/// one if neither gives it.
///
/// # Errors
/// [`Error::Meeting`] if that makes no sense.
pub fn n_ranks_said() -> Result<u32, Error> {
    if let Some(launched) = find(&from_environment)? {
        return Ok(launched.size as u32);
    }
    let Some(text) = from_environment(ENV_SIZE) else { return Ok(1) };
    text.trim().parse().map_err(|_| Error::Setting {
        setting: ENV_SIZE,
        found: text,
        valid: "the number of ranks".to_owned(),
    })
}

/// The exchange of the ranks that the environment names, or of this process alone.
///
/// # Errors
/// [`Error::Meeting`].
pub(super) fn meet(get: Lookup<'_>, timeout: Duration) -> Result<Box<dyn Exchange>, Error> {
    let launched = find(get)?.filter(|launched| launched.size > 1);
    if let Some(launched) = &launched {
        let Launched { rank, size, .. } = *launched;
        let refused = |reason: String| Error::Meeting { rank: Some(rank as u32), reason };
        let met = match get(ENV_RENDEZVOUS) {
            Some(path) => Bootstrap::beside(path.as_ref(), rank, size, timeout),
            None => {
                let path = launched.meeting_place().map_err(|error| refused(error.to_string()))?;
                Bootstrap::beside(&path, rank, size, timeout).map(Bootstrap::temporary)
            }
        };
        return met
            .map(|met| Box::new(met) as Box<dyn Exchange>)
            .map_err(|error| meeting(rank as u32, &error));
    }
    let alone = get(ENV_SIZE).is_none_or(|size| size.trim() == "1")
        && get(ENV_RENDEZVOUS).is_none()
        && get(ENV_RANK).is_none_or(|rank| rank.trim() == "0");
    if alone && let Some(exchange) = LocalExchange::group(1, timeout).pop() {
        return Ok(Box::new(exchange));
    }
    match Bootstrap::from_env(timeout) {
        Ok(bootstrap) => Ok(Box::new(bootstrap)),
        Err(error) => {
            let rank = get(ENV_RANK).and_then(|rank| rank.trim().parse().ok());
            // A missing rank's error says who waits.
            let rank = rank.filter(|_| !matches!(error, BootstrapError::Missing { .. }));
            Err(Error::Meeting { rank, reason: error.to_string() })
        }
    }
}

/// A failure of an exchange.
pub(super) fn meeting(rank: u32, error: &BootstrapError) -> Error {
    let rank = (!matches!(error, BootstrapError::Missing { .. })).then_some(rank);
    Error::Meeting { rank, reason: error.to_string() }
}
