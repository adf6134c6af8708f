//! Functions of other libraries that may be in this process, found by name.

use std::ffi::{CStr, c_void};

/// The address of a symbol of this process.
pub(super) fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a string; the default handle means all libraries that are loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}
