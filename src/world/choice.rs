//! Which device a world is on.

use super::backend::Backend;
use super::shm::Shm;
use super::tofu::Tofu;
use crate::error::Error;
use crate::memory::CacheConfig;

/// Things passed over, with the reason.
pub(super) type Tried = Vec<(String, String)>;

/// The backend of that name, or the best one; with what was tried before it. `cache` configures
/// registration cache.
///
/// # Errors
/// [`Error::Backend`], [`Error::Setting`] for a name that does not exist.
pub(super) fn choose(
    name: Option<&str>,
    cache: CacheConfig,
) -> Result<(Box<dyn Backend>, Tried), Error> {
    match name {
        None | Some("auto") => Ok(match Tofu::vendor(cache) {
            Ok(device) => (Box::new(device), Vec::new()),
            Err(reason) => (Box::new(Shm::from_env()?), vec![("tofu".to_owned(), reason)]),
        }),
        Some("tofu") => match Tofu::vendor(cache) {
            Ok(device) => Ok((Box::new(device), Vec::new())),
            Err(reason) => Err(unusable("tofu", reason)),
        },
        Some("shm") => Ok((Box::new(Shm::from_env()?), Vec::new())),
        Some("emu") => Ok((Box::new(Tofu::emulated(Some(cache))), Vec::new())),
        Some("mpi") => {
            Err(unusable("mpi", "this build has no MPI backend; use tofu, shm or emu".to_owned()))
        }
        Some(other) => Err(Error::Setting {
            setting: "HOPBINE_BACKEND",
            found: other.to_owned(),
            valid: "tofu, shm, emu, mpi or auto".to_owned(),
        }),
    }
}

fn unusable(name: &str, reason: String) -> Error {
    Error::Backend { wanted: name.to_owned(), tried: vec![(name.to_owned(), reason)] }
}
