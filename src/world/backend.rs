//! Which device the world is on.

use utofu_sys::Api;

use crate::error::Error;

/// The device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backend {
    /// Fujitsu's library.
    Tofu,
    /// The device in software.
    Emulated,
}

impl Backend {
    /// Its name, as `HOPBINE_BACKEND` gives it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Backend::Tofu => "tofu",
            Backend::Emulated => "emu",
        }
    }
}

/// Things passed over, with the reason.
pub(super) type Tried = Vec<(String, String)>;

/// The backend of that name, or the best one; with what was tried before it.
///
/// # Errors
/// [`Error::Backend`], [`Error::Setting`] for a name that does not exist.
pub(super) fn choose(name: Option<&str>) -> Result<(Backend, Api, Tried), Error> {
    match name {
        None | Some("auto") => Ok(match tofu() {
            Ok(api) => (Backend::Tofu, api, Vec::new()),
            Err(reason) => (Backend::Emulated, Api::emulated(), vec![("tofu".to_owned(), reason)]),
        }),
        Some("tofu") => match tofu() {
            Ok(api) => Ok((Backend::Tofu, api, Vec::new())),
            Err(reason) => Err(unusable("tofu", reason)),
        },
        Some("emu") => Ok((Backend::Emulated, Api::emulated(), Vec::new())),
        Some("mpi") => {
            Err(unusable("mpi", "this build has no MPI backend; use tofu or emu".to_owned()))
        }
        Some(other) => Err(Error::Setting {
            setting: "HOPBINE_BACKEND",
            found: other.to_owned(),
            valid: "tofu, emu, mpi or auto".to_owned(),
        }),
    }
}

fn unusable(name: &str, reason: String) -> Error {
    Error::Backend { wanted: name.to_owned(), tried: vec![(name.to_owned(), reason)] }
}

/// The vendor's library, if it can be opened and has TNIs to offer.
fn tofu() -> Result<Api, String> {
    let api = Api::vendor().map_err(|error| error.to_string())?;
    match api.onesided_tnis() {
        Ok(tnis) if !tnis.is_empty() => Ok(api),
        Ok(_) => Err(format!("{} reports no TNI", api.origin())),
        Err(error) => Err(format!("{}: {error}", api.origin())),
    }
}
