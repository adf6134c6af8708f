//! Files that only this user may write to: opening, reading and writing.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::error::BootstrapError;
pub(super) use crate::user_files::open_user_file;

pub(super) fn file_error(path: &Path, source: io::Error) -> BootstrapError {
    BootstrapError::File { path: path.to_path_buf(), source }
}

/// Writes to a file, which is created if it does not exist and `creates` is true. The file is not truncated, since it
/// holds records of other ranks.
pub(super) fn write_at(
    path: &Path,
    creates: bool,
    bytes: &[u8],
    at: u64,
) -> Result<(), BootstrapError> {
    let mut options = OpenOptions::new();
    options.write(true).create(creates).truncate(false).mode(0o600);
    let mut write = || {
        let file = open_user_file(path, &mut options)?;
        file.write_all_at(bytes, at)?;
        // A network file system reports failed writes here.
        // SAFETY: the descriptor is closed once: `into_raw_fd` has given up its owner.
        unsafe { rustix::io::try_close(file.into_raw_fd()) }.map_err(io::Error::from)
    };
    write().map_err(|e| file_error(path, e))
}

/// Reads `bytes.len()` bytes at `at`. Returns false if the file is not that long yet.
pub(super) fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<bool> {
    match file.read_exact_at(bytes, at) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}
