//! Finds the vendor's library at run time, so that one binary runs with and without Tofu.

use std::error::Error as _;
use std::ffi::OsString;
use std::ptr::NonNull;
use std::sync::OnceLock;

use hopbine_meet::variables::UTOFU_LIB;
use libloading::Library;

use crate::{Api, Functions, Version};

/// What is tried without `HOPBINE_UTOFU_LIB`: first wherever the dynamic linker looks, then the
/// place where compute nodes of Fugaku have it (the one that UCX's build for uTofu probes).
const PLACES: [&str; 2] = ["libtofucom.so", "/lib64/libtofucom.so"];

/// Why there is no vendor library to work with.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// No candidate could be opened.
    #[error(
        "no uTofu library could be opened; set {} to the path of one. Tried: {}",
        UTOFU_LIB.name,
        attempts(tried)
    )]
    NotFound {
        /// Each file tried, with the dynamic linker's reason.
        tried: Vec<(String, String)>,
    },
    /// The library opened but lacks functions.
    #[error("{library} lacks {} function(s) of uTofu 1.0: {}", missing.len(), missing.join(", "))]
    MissingSymbols {
        /// The library.
        library: String,
        /// Names of the functions it lacks.
        missing: Vec<&'static str>,
    },
    /// The library speaks another major version of the interface.
    #[error(
        "{library} implements uTofu {found}, but this program needs {wanted} or a later minor version"
    )]
    WrongVersion {
        /// The library.
        library: String,
        /// Its version of the interface.
        found: Version,
        /// The version of the header that this crate was built from.
        wanted: Version,
    },
}

fn attempts(tried: &[(String, String)]) -> String {
    let each: Vec<String> = tried.iter().map(|(place, why)| format!("{place} ({why})")).collect();
    each.join("; ")
}

impl Api {
    /// Opens Fujitsu's library. The outcome of the first call is kept: the library stays loaded for
    /// the life of the process, since its threads and memory cannot be taken back.
    ///
    /// # Errors
    /// [`LoadError`] lists what was tried or what the library lacks.
    pub fn vendor() -> Result<Api, LoadError> {
        static VENDOR: OnceLock<Result<Api, LoadError>> = OnceLock::new();
        VENDOR.get_or_init(|| load(candidates(std::env::var_os(UTOFU_LIB.name)))).clone()
    }

    /// Opens the uTofu library at `path`, whoever made it.
    ///
    /// # Errors
    /// As [`Api::vendor`].
    pub fn open(path: impl Into<OsString>) -> Result<Api, LoadError> {
        load(vec![path.into()])
    }
}

fn candidates(chosen: Option<OsString>) -> Vec<OsString> {
    match chosen {
        Some(path) if !path.is_empty() => vec![path],
        _ => PLACES.iter().map(OsString::from).collect(),
    }
}

fn load(candidates: Vec<OsString>) -> Result<Api, LoadError> {
    let mut tried = Vec::new();
    for candidate in candidates {
        let name = candidate.to_string_lossy().into_owned();
        // SAFETY: opening runs the library's initialisers. It is the library that the user or the
        // system installed as uTofu; there is no way to use it without running them.
        match unsafe { Library::new(&candidate) } {
            Ok(library) => return take(library, name),
            // What the dynamic linker said is the source; the error itself only names the call.
            Err(e) => {
                let reason = e.source().map_or_else(|| e.to_string(), ToString::to_string);
                tried.push((name, reason));
            }
        }
    }
    Err(LoadError::NotFound { tried })
}

fn take(library: Library, name: String) -> Result<Api, LoadError> {
    let find = |symbol: &str| {
        // SAFETY: the address is not called here, only kept as an untyped pointer.
        let address = unsafe { library.get::<*mut core::ffi::c_void>(symbol.as_bytes()) };
        address.ok().and_then(|s| NonNull::new(*s))
    };
    // SAFETY: a library that exports uTofu's names is taken to define them with uTofu's types;
    // the version is checked below before anything else is called.
    let functions = match unsafe { Functions::from_symbols(find) } {
        Ok(f) => f,
        Err(missing) => {
            return Err(LoadError::MissingSymbols { library: name, missing });
        }
    };
    let mut found = Version { major: 0, minor: 0 };
    // SAFETY: both pointers are valid for the call.
    unsafe { (functions.utofu_query_utofu_version)(&mut found.major, &mut found.minor) };
    let wanted = Version::DECLARED;
    if found.major != wanted.major || found.minor < wanted.minor {
        return Err(LoadError::WrongVersion { library: name, found, wanted });
    }
    // Its functions are reachable from now on, so it must never be closed.
    std::mem::forget(library);
    Ok(Api::new(Box::leak(Box::new(functions)), name.leak()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_library_is_the_only_candidate() {
        assert_eq!(candidates(Some("/x/y.so".into())), [OsString::from("/x/y.so")]);
        assert_eq!(candidates(None).len(), PLACES.len());
        assert_eq!(candidates(Some(OsString::new())).len(), PLACES.len());
    }

    #[test]
    fn the_error_names_everything_that_was_tried() {
        let e = load(vec!["/nowhere/a.so".into(), "/nowhere/b.so".into()]).unwrap_err();
        let text = e.to_string();
        assert!(text.contains("/nowhere/a.so") && text.contains("/nowhere/b.so"), "{text}");
        assert!(text.contains(UTOFU_LIB.name), "{text}");
    }

    #[test]
    fn a_library_without_the_functions_is_named_with_them() {
        // The C library certainly is one, and is always there.
        let Err(LoadError::MissingSymbols { library, missing }) = Api::open("libc.so.6") else {
            panic!("libc must lack uTofu's functions");
        };
        assert_eq!(library, "libc.so.6");
        assert_eq!(missing, Functions::REQUIRED);
    }
}
