//! Files and directories that only this user may write to.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// This process's user.
pub(crate) fn user() -> u32 {
    // SAFETY: has no preconditions.
    unsafe { libc::geteuid() }
}

/// Opens the rendezvous file, or makes it. A link, or anything that is not a regular file of this
/// user's which nobody else may write to and which has one name, is refused.
pub(crate) fn open_file(path: &Path) -> Result<File, String> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        // Without NONBLOCK the opening of a pipe would wait for its other end.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(|e| match e.raw_os_error() {
            Some(libc::ELOOP) => "is a symbolic link: name a file itself".to_owned(),
            _ => format!("cannot be opened: {e}"),
        })?;
    let about = file.metadata().map_err(|e| format!("cannot be looked at: {e}"))?;
    if !about.is_file() {
        return Err("is no regular file: name a new one".into());
    }
    if about.uid() != user() {
        return Err("belongs to another user: name a file of your own".into());
    }
    if about.mode() & 0o022 != 0 {
        return Err("may be written by others: it needs mode 0600".into());
    }
    if about.nlink() != 1 {
        return Err("has further names (hard links): name a new file".into());
    }
    Ok(file)
}

/// A path for the ranks that one launcher has started, in a directory of this user's alone.
pub(crate) fn path_for(launcher: &str) -> io::Result<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = runtime.into_iter().chain([PathBuf::from("/dev/shm"), std::env::temp_dir()]);
    let mut last = io::Error::other("there is no place for it");
    for place in places.filter(|place| place.is_dir()) {
        match private_dir(&place) {
            Ok(dir) => return Ok(dir.join(launcher)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// `hopbine-USER` in `place`, made if it is not there; a link, or a directory of or for others, is
/// refused.
pub(crate) fn private_dir(place: &Path) -> io::Result<PathBuf> {
    let dir = place.join(format!("hopbine-{}", user()));
    match std::fs::DirBuilder::new().mode(0o700).create(&dir) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let about = std::fs::symlink_metadata(&dir)?;
    if about.is_dir() && about.uid() == user() && about.mode() & 0o077 == 0 {
        return Ok(dir);
    }
    Err(io::Error::other(format!(
        "{} is not a directory of this user's alone (mode 0700)",
        dir.display()
    )))
}
