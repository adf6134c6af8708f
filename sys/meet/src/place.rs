//! This process's rank in the job, and the rendezvous of the ranks.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::{BootstrapError, VariableError};
use crate::files::Bootstrap;
use crate::launcher::Launched;
use crate::variables::{Lookup, RANK, RENDEZVOUS, SIZE, number_of};

/// Largest number of ranks of a job: many more than exchanges through files can serve, and few enough to allocate
/// for.
const MAX_RANKS: usize = 1 << 20;

/// This process among the ranks of its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its rank.
    pub rank: usize,
    /// Number of ranks.
    pub size: usize,
    /// The launcher that set rank and size; `None` if hopbine's own variables did.
    pub launched: Option<Launched>,
}

impl Place {
    /// Returns whether hopbine's own variables set the rank or the size.
    pub fn is_set_by_hopbine(get: Lookup<'_>) -> bool {
        [&RANK, &SIZE].iter().any(|variable| variable.get(get).is_some())
    }

    /// Returns the number of ranks in the environment, regardless of this process's rank; 1 without any variable.
    ///
    /// # Errors
    /// [`VariableError`].
    pub fn size_from_env(get: Lookup<'_>) -> Result<usize, VariableError> {
        match launched(get)? {
            Some(launched) => Ok(launched.size),
            None => Ok(SIZE.number(get)?.unwrap_or(1)),
        }
    }

    /// Returns rank and size from the environment; rank 0 of 1 without any variable.
    ///
    /// # Errors
    /// [`VariableError`] names the variable that is missing or not valid. A process of a launcher that does not say
    /// the number of ranks is not taken for the only one.
    pub fn find(get: Lookup<'_>) -> Result<Place, VariableError> {
        if let Some(launched) = launched(get)? {
            let Launched { rank, size, .. } = launched;
            return Ok(Place { rank, size, launched: Some(launched) });
        }
        let size = SIZE.number(get)?;
        let rank = number_of(get, RANK.name, 0..=size.unwrap_or(MAX_RANKS) - 1)?;
        let is_one = matches!((rank, size), (None | Some(0), None | Some(1)));
        if is_one && (size.is_some() || RENDEZVOUS.get(get).is_none()) {
            if let Some((name, value)) =
                Launched::without_size(get).filter(|_| rank.or(size).is_none())
            {
                return Err(SIZE.unset(format!(
                    "set (1: each process is a world; more: together with {} and {}), or the ranks must meet \
                     through MPI (MPI_Init first, or a program linked to MPI: MESSAGES=yes) or \
                     hopbine_init_exchange: {name}={value} shows a launcher that does not say the number of ranks",
                    RANK.name, RENDEZVOUS.name
                )));
            }
            return Ok(Place { rank: 0, size: 1, launched: None });
        }
        let wanted = format!(
            "set by a launcher, together with {}, {} and {} ({})",
            RANK.name, SIZE.name, RENDEZVOUS.name, RENDEZVOUS.values
        );
        let size = size.ok_or_else(|| SIZE.unset(&wanted))?;
        let rank = rank.ok_or_else(|| RANK.unset(&wanted))?;
        Ok(Place { rank, size, launched: None })
    }

    /// Meets the other ranks. Each `purpose` (a suffix of the files' names) has a rendezvous of its own. `timeout`
    /// limits this and every later wait.
    ///
    /// # Errors
    /// [`BootstrapError`]; [`BootstrapError::Missing`] names the ranks that did not appear.
    pub fn meet(
        &self,
        get: Lookup<'_>,
        purpose: &str,
        timeout: Duration,
    ) -> Result<Bootstrap, BootstrapError> {
        let at = |path: PathBuf| {
            let mut path = path.into_os_string();
            path.push(purpose);
            PathBuf::from(path)
        };
        let Place { rank, size, .. } = *self;
        if let Some(said) = RENDEZVOUS.get(get) {
            // The path need not be valid UTF-8.
            let path = std::env::var_os(RENDEZVOUS.name).unwrap_or_else(|| said.into());
            return Bootstrap::join(&at(path.into()), (rank, size), timeout, false);
        }
        let Some(launched) = &self.launched else {
            let wanted = format!("the path of a file, the same for all {size} ranks");
            return Err(RENDEZVOUS.unset(wanted).into());
        };
        Bootstrap::join(&at(launched.rendezvous_path(get)?), (rank, size), timeout, true)
    }
}

/// Returns the settings of MPI's or Slurm's launcher, if hopbine's own variables are not set.
fn launched(get: Lookup<'_>) -> Result<Option<Launched>, VariableError> {
    if Place::is_set_by_hopbine(get) { Ok(None) } else { Launched::find(get) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(vars: &[(&str, &str)]) -> Result<(usize, usize), String> {
        let get = |name: &str| {
            let found = vars.iter().find(|(n, _)| *n == name);
            found.map(|(_, v)| (*v).to_owned())
        };
        Place::find(&get).map(|place| (place.rank, place.size)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_environment_says_who_this_is() {
        assert_eq!(with(&[]), Ok((0, 1)));
        assert_eq!(with(&[("HOPBINE_RANK", "0")]), Ok((0, 1)));
        assert_eq!(with(&[("HOPBINE_RANK", "2"), ("HOPBINE_SIZE", "4")]), Ok((2, 4)));
        let mpich = [("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "2")];
        assert_eq!(with(&mpich), Ok((1, 2)));
        // hopbine's own variables come first.
        assert_eq!(with(&[mpich[0], mpich[1], ("HOPBINE_SIZE", "1")]), Ok((0, 1)));
        // Open MPI and Slurm set PMIx's variable, too.
        let pmix = ("PMIX_RANK", "3");
        for [rank, size] in [
            ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
            ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"],
            ["HOPBINE_RANK", "HOPBINE_SIZE"],
        ] {
            assert_eq!(with(&[pmix, (rank, "3"), (size, "4")]), Ok((3, 4)));
        }
        assert_eq!(with(&[pmix, ("HOPBINE_SIZE", "1")]), Ok((0, 1)));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (vars, wanted) in [
            (&[("HOPBINE_RANK", "2")][..], "HOPBINE_SIZE is not set"),
            (&[("HOPBINE_SIZE", "2")], "HOPBINE_RANK is not set"),
            (&[("HOPBINE_RENDEZVOUS", "meet")], "HOPBINE_SIZE is not set"),
            (&[("HOPBINE_SIZE", "none")], "HOPBINE_SIZE=none"),
            (&[("HOPBINE_SIZE", "0")], "from 1 to 1048576"),
            (&[("HOPBINE_SIZE", "99999999999")], "from 1 to 1048576"),
            (&[("HOPBINE_SIZE", "2"), ("HOPBINE_RANK", "2")], "from 0 to 1"),
            (&[("PMI_RANK", "5"), ("PMI_SIZE", "4")], "PMI_RANK=5"),
            (&[("PMIX_RANK", "3")], "PMIX_RANK=3 shows a launcher"),
            (&[("PLE_RANK_ON_NODE", "0")], "PLE_RANK_ON_NODE=0 shows a launcher"),
        ] {
            let error = with(vars).unwrap_err();
            assert!(error.contains(wanted), "{error}");
            // What is missing besides is named at once.
            let names = ["HOPBINE_SIZE", "HOPBINE_RANK", "HOPBINE_RENDEZVOUS"];
            let is_whole = names.iter().all(|name| error.contains(name));
            assert!(is_whole || !error.contains("is not set"), "{error}");
        }
    }
}
