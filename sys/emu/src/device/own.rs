//! This user's files and directories, which nobody else may write to, and this process's number.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// This process's user.
pub(crate) fn user() -> u32 {
    // SAFETY: has no preconditions.
    unsafe { libc::geteuid() }
}

/// What is said of pipes and the like.
const NO_FILE: &str = "is no regular file: name a new one";

/// Opens a file of this user's. Refuses a link, anything but a regular file, and a file that belongs
/// to another user, that others may write to, or that has further names.
///
/// # Errors
/// What the system says, or what is wrong with the file as the end of a sentence about it, of kind
/// [`io::ErrorKind::Other`].
pub fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Without NONBLOCK the opening of a pipe would wait for its other end.
    let file =
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = file.map_err(|e| match e.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("is a symbolic link: name a file itself"),
        // A pipe without a reader, or a socket.
        Some(libc::ENXIO) => io::Error::other(NO_FILE),
        _ => e,
    })?;
    let about = file.metadata()?;
    let trouble = if !about.is_file() {
        NO_FILE
    } else if about.uid() != user() {
        "belongs to another user: name a file of your own"
    } else if about.mode() & 0o022 != 0 {
        "may be written by others: it needs mode 0600"
    } else if about.nlink() != 1 {
        "has further names (hard links): name a new file"
    } else {
        return Ok(file);
    };
    Err(io::Error::other(trouble))
}

/// Gives new shared memory its length. Where this process's files may not be so long, the system would end
/// it with a signal; this is an error in place of that.
///
/// # Errors
/// What the system says.
pub fn lengthen(memory: &File, len: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit lives through the call.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    let most = limit.rlim_cur;
    if is_known && most < len {
        let kind = io::ErrorKind::FileTooLarge;
        return Err(io::Error::new(kind, format!("files may have {most} bytes only (ulimit -f)")));
    }
    memory.set_len(len)
}

/// Seals of shared memory: it can neither shrink nor grow, and keeps its seals.
pub const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Opens the sealed memory without a name that a process has as descriptor `fd`, by its number in `/proc`.
/// A descriptor that is something else is not opened for writing.
///
/// # Errors
/// What the system says, or of kind [`io::ErrorKind::InvalidData`] what it is instead.
pub fn open_memory(pid: u32, fd: u32) -> io::Result<File> {
    let path = format!("/proc/{pid}/fd/{fd}");
    let wrong = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    let about = std::fs::metadata(&path)?;
    if !about.is_file() || about.nlink() != 0 {
        return wrong("it is no memory without a name");
    }
    if about.uid() != user() || about.mode() & 0o077 != 0 {
        return wrong("it is not this user's alone");
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let memory = options.open(&path)?;
    // SAFETY: asks about an open descriptor.
    if unsafe { libc::fcntl(memory.as_raw_fd(), libc::F_GET_SEALS) } != SEALS {
        return wrong("it is not sealed");
    }
    Ok(memory)
}

/// Opens the rendezvous file, or makes it, as [`open_own`].
pub(crate) fn open_file(path: &Path) -> Result<File, String> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    open_own(path, &mut options).map_err(|e| match e.raw_os_error() {
        Some(_) => format!("cannot be opened: {e}"),
        None => e.to_string(),
    })
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

/// `hopbine-USER` in `place`, made if it is not there. Refuses a link, and a directory of or for
/// others.
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

/// This process's number in `/proc`, which may be that of another PID namespace.
pub(crate) fn number() -> u32 {
    let shown = std::fs::read_link("/proc/self").ok();
    let number = shown.and_then(|path| path.to_str()?.parse().ok());
    number.unwrap_or_else(std::process::id)
}
