//! The directory of a job's rendezvous. The launcher, or its guardian, holds a lock in it for as long as it lives.
//! Directories whose lock is free were left by a killed launcher and are removed.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use tempfile::TempDir;

const PREFIX: &str = "hopbine-launch-";
/// Name of the lock file.
const LOCK: &str = "lock";

/// The directory and its lock. Dropping it removes the directory with all files that ranks have left in it.
pub(super) struct Directory {
    directory: TempDir,
    _lock: File,
}

impl Directory {
    /// # Errors
    /// The system's error.
    pub(super) fn new() -> io::Result<Self> {
        let place = std::env::temp_dir();
        remove_stale(&place);
        // Only this user may access the directory, since the ranks map and remove files in it.
        let private = std::fs::Permissions::from_mode(0o700);
        let mut builder = tempfile::Builder::new();
        let directory = builder.prefix(PREFIX).permissions(private).tempdir_in(place)?;
        // The file gets its final name after it is locked, so that nobody sees it unlocked.
        let new = directory.path().join("lock.new");
        let lock = options().create_new(true).mode(0o600).open(&new)?;
        try_lock(&lock)?;
        std::fs::rename(new, directory.path().join(LOCK))?;
        Ok(Directory { directory, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn rendezvous(&self) -> PathBuf {
        self.path().join("rendezvous")
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.read(true).write(true).custom_flags(flags.bits() as i32);
    options
}

/// Takes the lock, unless another process holds it.
fn try_lock(lock: &File) -> io::Result<()> {
    Ok(flock(lock, FlockOperation::NonBlockingLockExclusive)?)
}

/// Removes the directories in `place` whose launchers, of this user, do not live any more.
fn remove_stale(place: &Path) {
    let Ok(entries) = std::fs::read_dir(place) else { return };
    let ours = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(PREFIX);
    for path in entries.flatten().filter(ours).map(|entry| entry.path()) {
        // The process that removes a directory holds its lock, so no two processes remove the same one.
        if let Some(_lock) = lock_if_stale(&path) {
            // A directory that cannot be removed stays for the next launcher.
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

/// The lock of an abandoned directory of this user; None if it is in use or just being created.
fn lock_if_stale(path: &Path) -> Option<File> {
    let about = std::fs::symlink_metadata(path).ok()?;
    let user = rustix::process::geteuid().as_raw();
    if !about.is_dir() || about.uid() != user || about.mode() & 0o077 != 0 {
        return None;
    }
    let lock = options().open(path.join(LOCK)).ok()?;
    try_lock(&lock).is_ok().then_some(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_behind_is_swept_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str, mode, has_lock| {
            let path = place.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            if has_lock {
                std::fs::write(path.join(LOCK), "").unwrap();
                std::fs::write(path.join("rendezvous"), "").unwrap();
            }
            path
        };
        let stale = make("hopbine-launch-stale", 0o700, true);
        let kept = [
            make("hopbine-launch-new", 0o700, false),
            make("hopbine-launch-open", 0o755, true),
            make("other", 0o700, true),
        ];
        let link = place.path().join("hopbine-launch-link");
        std::os::unix::fs::symlink(&kept[2], &link).unwrap();
        let alive = make("hopbine-launch-alive", 0o700, true);
        let lock = File::open(alive.join(LOCK)).unwrap();
        try_lock(&lock).unwrap();
        remove_stale(place.path());
        assert!(!stale.exists());
        assert!(kept.iter().all(|path| path.exists()) && alive.exists() && link.exists());
        drop(lock);
        remove_stale(place.path());
        assert!(!alive.exists());
    }
}
