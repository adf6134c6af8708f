//! Functions of other libraries that may be in this process, found by name; and whose code is where.

use std::ffi::{CStr, CString, c_void};

/// The address of a symbol of this process.
pub(crate) fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a string; the default handle means all libraries that are loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The file of the object that has this address, as the loader calls it.
pub(crate) fn file_of(address: *const c_void) -> Option<CString> {
    // SAFETY: a structure of pointers, for which zeros are valid; filled by dladdr.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr follows no address; its answer's name, if there is one, is a string that stays as long as the
    // object is loaded.
    unsafe {
        let is_known = libc::dladdr(address, &mut info) != 0 && !info.dli_fname.is_null();
        is_known.then(|| CStr::from_ptr(info.dli_fname).to_owned())
    }
}
