//! This user's files and directories, to which no other user may write.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Returns this process's effective user id.
pub(crate) fn euid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Message about pipes, sockets and the like.
const NO_FILE: &str = "is not a regular file: name a new file";

/// Opens a file of this user. Refuses symbolic links, anything but regular files, and files that belong to another
/// user, to which others may write, or that have further names.
///
/// # Errors
/// The system's error, or an error of kind [`io::ErrorKind::Other`] whose text is the end of a sentence about the
/// file. A file that is removed while it is being opened is one that does not exist.
pub(crate) fn open_user_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Without NONBLOCK, opening a pipe would wait for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options.custom_flags(flags.bits() as i32).open(path);
    let file = file.map_err(|e| match Errno::from_io_error(&e) {
        Some(Errno::LOOP) => io::Error::other("is a symbolic link: name the file itself"),
        // A pipe without a reader, or a socket.
        Some(Errno::NXIO) => io::Error::other(NO_FILE),
        _ => e,
    })?;
    let about = file.metadata()?;
    let trouble = if !about.is_file() {
        NO_FILE
    } else if about.uid() != euid() {
        "belongs to another user: name a file of your own"
    } else if about.mode() & 0o022 != 0 {
        "may be written by others: it needs mode 0600"
    } else if about.nlink() == 0 {
        return Err(io::ErrorKind::NotFound.into());
    } else if about.nlink() > 1 {
        "has further names (hard links): name a new file"
    } else {
        return Ok(file);
    };
    Err(io::Error::other(trouble))
}

/// Returns a path for the ranks that one launcher has started, in a directory that only this user can access.
pub(crate) fn runtime_path(launcher: &str) -> io::Result<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = runtime.into_iter().chain([PathBuf::from("/dev/shm"), std::env::temp_dir()]);
    let mut last = io::Error::other("no directory can hold it");
    for place in places.filter(|place| place.is_dir()) {
        match private_dir(&place) {
            Ok(dir) => return Ok(dir.join(launcher)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Returns `hopbine-USER` in `place`, and creates it if necessary. Refuses symbolic links, and directories that
/// belong to other users or that they can access.
fn private_dir(place: &Path) -> io::Result<PathBuf> {
    let dir = place.join(format!("hopbine-{}", euid()));
    match std::fs::DirBuilder::new().mode(0o700).create(&dir) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let about = std::fs::symlink_metadata(&dir)?;
    if about.is_dir() && about.uid() == euid() && about.mode() & 0o077 == 0 {
        return Ok(dir);
    }
    Err(io::Error::other(format!(
        "{} must be a directory that only this user can access (mode 0700)",
        dir.display()
    )))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn the_directory_for_launched_ranks_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let made = private_dir(dir.path()).unwrap();
        assert_eq!(std::fs::metadata(&made).unwrap().mode() & 0o777, 0o700);
        assert_eq!(private_dir(dir.path()).unwrap(), made);
        std::fs::set_permissions(&made, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(private_dir(dir.path()).is_err());
        std::fs::remove_dir(&made).unwrap();
        symlink(dir.path(), &made).unwrap();
        assert!(private_dir(dir.path()).is_err(), "a link that somebody has prepared");
    }

    /// Rank 0 removes a file that other ranks are about to open.
    #[test]
    fn a_file_that_is_being_removed_does_not_exist() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for _ in 0..20_000 {
                    std::fs::write(&path, "").unwrap();
                    std::fs::remove_file(&path).unwrap();
                }
                is_over.store(true, Ordering::Relaxed);
            });
            while !is_over.load(Ordering::Relaxed) {
                if let Err(error) = open_user_file(&path, OpenOptions::new().read(true)) {
                    assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
                }
            }
        });
    }

    /// Only root can create a file of another user; if the tests run as root, this one does so.
    #[test]
    fn another_users_file_is_refused() {
        let refused = |path: &Path| {
            open_user_file(path, OpenOptions::new().read(true).write(true)).unwrap_err().to_string()
        };
        if euid() == 0 {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::set_permissions(file.path(), PermissionsExt::from_mode(0o644)).unwrap();
            std::os::unix::fs::chown(file.path(), Some(65534), None).unwrap();
            let text = refused(file.path());
            assert!(text.contains("another user"), "{text}");
        } else {
            // The system's own files belong to another user.
            let text = refused(Path::new("/etc/passwd"));
            assert!(text.contains("another user") || text.contains("denied"), "{text}");
        }
    }
}
