//! A process that outlives the launcher if that is killed, and then ends what it leaves behind: ranks
//! behind a shell, which the system does not end with the launcher, and the directory of the job.
//!
//! What belongs to the job has its rendezvous in the environment, which no other job has.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Searches for processes of the job, until one finds none: those that are found may have started others.
const SEARCHES: usize = 200;
const BETWEEN: Duration = Duration::from_millis(5);

/// Dropping it says that the launcher ends in an orderly way.
pub(super) struct Guardian {
    pid: libc::pid_t,
    /// The process waits for its end.
    launcher: File,
}

impl Guardian {
    /// Guards the job whose processes have this rendezvous, in this directory.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Safety
    /// No other thread may exist.
    pub(super) unsafe fn start(directory: &Path, rendezvous: &Path) -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: new descriptors, nobody else's.
        let [mut told, launcher] = ends.map(|end| unsafe { File::from_raw_fd(end) });
        // SAFETY: by the caller's promise nothing is locked that the child may need.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(launcher);
                let_go();
                // A byte says that the launcher needs nobody; without any it has been killed.
                if told.read(&mut [0]).is_ok_and(|n| n == 0) {
                    end_all(rendezvous);
                    // Nobody is left whom an error could be told.
                    let _ = std::fs::remove_dir_all(directory);
                }
                // SAFETY: ends this process, without what the launcher does at its end.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Guardian { pid, launcher }),
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // If it has been killed there is nothing to say.
        let _ = self.launcher.write_all(&[1]);
        // SAFETY: a child of this process, which ends now.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// In the guardian: signals to the launcher's group do not reach it, and it keeps no output open.
fn let_go() {
    // SAFETY: changes this process only; the descriptors are not used here.
    unsafe {
        libc::setsid();
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        (0..3).for_each(|fd| _ = libc::dup2(null, fd));
    }
}

/// Kills the processes of the job with this rendezvous, wherever they have gone.
pub(super) fn end_all(rendezvous: &Path) {
    let mark = [b"HOPBINE_RENDEZVOUS=", rendezvous.as_os_str().as_encoded_bytes()].concat();
    for _ in 0..SEARCHES {
        let Ok(processes) = std::fs::read_dir("/proc") else { return };
        let numbers =
            processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let n_killed = numbers.filter(|&number| kill_marked(number, &mark)).count();
        if n_killed == 0 {
            return;
        }
        std::thread::sleep(BETWEEN);
    }
}

/// Kills a process of this user's with this in its environment; whether there was one.
fn kill_marked(process: u32, mark: &[u8]) -> bool {
    // SAFETY: has no preconditions.
    let user = unsafe { libc::geteuid() };
    let place = format!("/proc/{process}");
    if !std::fs::metadata(&place).is_ok_and(|about| about.uid() == user) {
        return false;
    }
    // The descriptor is that of the process whose environment is read: it is none of another one which may
    // get the number meanwhile.
    // SAFETY: no memory is involved.
    let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    // SAFETY: a new descriptor, nobody else's.
    let handle = (handle >= 0).then(|| unsafe { File::from_raw_fd(handle as libc::c_int) });
    // That of one that has ended is empty.
    let environment = std::fs::read(format!("{place}/environ")).unwrap_or_default();
    if !environment.split(|&byte| byte == 0).any(|variable| variable == mark) {
        return false;
    }
    let none = std::ptr::null::<libc::siginfo_t>();
    let send = libc::SYS_pidfd_send_signal;
    let code = match &handle {
        // SAFETY: an open descriptor; without a siginfo_t the signal is as kill's.
        Some(handle) => unsafe { libc::syscall(send, handle.as_raw_fd(), libc::SIGKILL, none, 0) },
        // Systems before Linux 5.3.
        // SAFETY: no memory is involved.
        None => unsafe { libc::kill(process as libc::pid_t, libc::SIGKILL).into() },
    };
    code == 0
}
