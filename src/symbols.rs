//! Looks up functions of other libraries in this process, and the object file that contains an address.

use std::ffi::{CStr, CString, c_void};

/// The address of a symbol in this process, if a loaded library defines it.
pub(crate) fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `name` is a C string; the default handle means all libraries that are loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The file name of the loaded object that contains this address, in the loader's spelling.
pub(crate) fn file_of(address: *const c_void) -> Option<CString> {
    // SAFETY: a structure of pointers, for which zeros are valid; filled by dladdr.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr does not dereference the address. The name that it returns, if not null, is a C string that is
    // valid while the object is loaded.
    unsafe {
        let is_known = libc::dladdr(address, &mut info) != 0 && !info.dli_fname.is_null();
        is_known.then(|| CStr::from_ptr(info.dli_fname).to_owned())
    }
}
