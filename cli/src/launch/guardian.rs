//! A process that outlives a launcher that is killed, and then removes what the job leaves behind: ranks started by a
//! shell, which the system does not kill with the launcher, and the directory of the job.
//!
//! Processes of the job are recognised by the path of the rendezvous in their environment; no other job has this
//! path.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use hopbine_meet::variables::RENDEZVOUS;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, geteuid, kill_process, pidfd_open, pidfd_send_signal,
    setsid, waitpid,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

/// Maximum number of searches for processes of the job. The search repeats until it finds none, since the processes
/// found may have started others.
const MOST_SEARCHES: usize = 200;
const SEARCH_INTERVAL: Duration = Duration::from_millis(5);

/// The launcher's handle of the guardian. Dropping it tells the guardian that the launcher ends normally.
pub(super) struct Guardian {
    pid: Option<Pid>,
    /// The launcher's end of a pipe. The guardian waits until the launcher writes to it or dies.
    launcher: File,
}

impl Guardian {
    /// Starts the guardian of the job with this rendezvous and this directory.
    ///
    /// # Errors
    /// The system's error.
    ///
    /// # Safety
    /// No other thread may exist in this process.
    pub(super) unsafe fn start(directory: &Path, rendezvous: &Path) -> io::Result<Self> {
        let (reader, launcher) = pipe_with(PipeFlags::CLOEXEC)?;
        let (mut reader, launcher) = (File::from(reader), File::from(launcher));
        // SAFETY: by the caller's promise no other thread exists, so none holds a lock that the child may need.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(launcher);
                detach();
                // One byte means that the launcher ends normally; the end of the pipe without a byte means that it
                // was killed.
                if reader.read(&mut [0]).is_ok_and(|n| n == 0) {
                    kill_job(rendezvous);
                    // There is nowhere to report an error.
                    let _ = std::fs::remove_dir_all(directory);
                }
                // SAFETY: ends this process without running the launcher's exit handlers.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Guardian { pid: Pid::from_raw(pid), launcher }),
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // Fails if the guardian has been killed, which does not matter now.
        let _ = self.launcher.write_all(&[1]);
        // A guardian that cannot be waited for does not matter, either.
        let _ = waitpid(self.pid, WaitOptions::empty());
    }
}

/// Detaches the guardian: signals to the launcher's group do not reach it, and it keeps no output open.
fn detach() {
    // Errors leave the process as it is.
    let _ = setsid();
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&null).and(dup2_stdout(&null)).and(dup2_stderr(&null));
    }
}

/// Kills all processes of the job with this rendezvous, in whichever process group they are.
pub(super) fn kill_job(rendezvous: &Path) {
    let value = rendezvous.as_os_str().as_encoded_bytes();
    let mark = [RENDEZVOUS.name.as_bytes(), b"=", value].concat();
    for _ in 0..MOST_SEARCHES {
        let Ok(processes) = std::fs::read_dir("/proc") else { return };
        let numbers =
            processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let n_killed = numbers.filter(|&number| kill_marked(number, &mark)).count();
        if n_killed == 0 {
            return;
        }
        std::thread::sleep(SEARCH_INTERVAL);
    }
}

/// Kills a process of this user if its environment contains `mark`; returns whether it did.
fn kill_marked(process: u32, mark: &[u8]) -> bool {
    let user = geteuid().as_raw();
    let Some(number) = Pid::from_raw(process as i32) else { return false };
    let place = format!("/proc/{process}");
    if !std::fs::metadata(&place).is_ok_and(|about| about.uid() == user) {
        return false;
    }
    // The pidfd refers to the process whose environment is read, not to a later process with the same id.
    let handle = pidfd_open(number, PidfdFlags::empty());
    // The environment of a process that has ended is empty.
    let environment = std::fs::read(format!("{place}/environ")).unwrap_or_default();
    if !environment.split(|&byte| byte == 0).any(|variable| variable == mark) {
        return false;
    }
    let sent = match handle {
        Ok(handle) => pidfd_send_signal(handle, Signal::KILL),
        // Systems before Linux 5.3 have no pidfd.
        Err(_) => kill_process(number, Signal::KILL),
    };
    sent.is_ok()
}
