//! Finds the vendor's library at run time, so that one binary runs with and without Tofu.

use std::error::Error as _;
use std::ffi::OsString;
use std::ptr::NonNull;
use std::sync::OnceLock;

use hopbine_meet::variables::UTOFU_LIB;
use libloading::Library;

use crate::{Api, Functions, Version};

/// Candidates without `HOPBINE_UTOFU_LIB`: the dynamic linker's search path, then the library's place on compute
/// nodes of Fugaku (the one that UCX's build for uTofu probes).
const DEFAULT_PATHS: [&str; 2] = ["libtofucom.so", "/lib64/libtofucom.so"];

/// Why no vendor library can be used.
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
        /// Names of the missing functions.
        missing: Vec<&'static str>,
    },
    /// The library implements another major version of the interface, or an older minor version.
    #[error(
        "{library} implements uTofu {found}, but this program needs {wanted} or a later minor version"
    )]
    WrongVersion {
        /// The library.
        library: String,
        /// Version of the interface that the library implements.
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
    /// Opens Fujitsu's library. Later calls return the outcome of the first one. The library stays loaded for the
    /// life of the process, since its threads and memory cannot be reclaimed.
    ///
    /// # Errors
    /// [`LoadError`] lists the candidates that failed, or what the library lacks.
    pub fn vendor() -> Result<Api, LoadError> {
        static VENDOR: OnceLock<Result<Api, LoadError>> = OnceLock::new();
        VENDOR
            .get_or_init(|| {
                let chosen = std::env::var_os(UTOFU_LIB.name).filter(|_| !has_more_rights());
                load(candidates(chosen))
            })
            .clone()
    }

    /// Opens the uTofu library at `path`, of any vendor.
    ///
    /// # Errors
    /// As [`Api::vendor`].
    pub fn open(path: impl Into<OsString>) -> Result<Api, LoadError> {
        load(vec![path.into()])
    }
}

/// Whether this process has more rights than the user who has started it (a setuid program), so that this user may not
/// choose its code.
fn has_more_rights() -> bool {
    // SAFETY: only reads what the system has passed to this process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

fn candidates(chosen: Option<OsString>) -> Vec<OsString> {
    match chosen {
        Some(path) if !path.is_empty() => vec![path],
        _ => DEFAULT_PATHS.iter().map(OsString::from).collect(),
    }
}

fn load(candidates: Vec<OsString>) -> Result<Api, LoadError> {
    let mut tried = Vec::new();
    for candidate in candidates {
        let name = candidate.to_string_lossy().into_owned();
        // SAFETY: opening runs the library's initialisers. The user or the system installed this library as uTofu,
        // and it cannot be used without running them.
        match unsafe { Library::new(&candidate) } {
            Ok(library) => return load_functions(library, name),
            // The dynamic linker's message is the error's source; the error itself only names the call.
            Err(e) => {
                let reason = e.source().map_or_else(|| e.to_string(), ToString::to_string);
                tried.push((name, reason));
            }
        }
    }
    Err(LoadError::NotFound { tried })
}

fn load_functions(library: Library, name: String) -> Result<Api, LoadError> {
    let find = |symbol: &str| {
        // SAFETY: the address is not called here, only kept as an untyped pointer.
        let address = unsafe { library.get::<*mut core::ffi::c_void>(symbol.as_bytes()) };
        address.ok().and_then(|s| NonNull::new(*s))
    };
    // SAFETY: a library that exports uTofu's names is assumed to define them with uTofu's types; the version is
    // checked below before any other function is called.
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
    // The table keeps the library's addresses, so the library must never be closed.
    std::mem::forget(library);
    Ok(Api::new(Box::leak(Box::new(functions)), name.leak()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_library_is_the_only_candidate() {
        assert_eq!(candidates(Some("/x/y.so".into())), [OsString::from("/x/y.so")]);
        assert_eq!(candidates(None).len(), DEFAULT_PATHS.len());
        assert_eq!(candidates(Some(OsString::new())).len(), DEFAULT_PATHS.len());
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
        // libc is always present and lacks all functions of uTofu.
        let Err(LoadError::MissingSymbols { library, missing }) = Api::open("libc.so.6") else {
            panic!("libc must lack uTofu's functions");
        };
        assert_eq!(library, "libc.so.6");
        assert_eq!(missing, Functions::REQUIRED);
    }
}
