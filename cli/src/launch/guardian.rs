//! A process that outlives the launcher if that is killed, and then ends what it leaves behind: ranks
//! behind a shell, which the system does not end with the launcher, and the directory of the job.
//!
//! What belongs to the job has its rendezvous in the environment, which no other job has.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, geteuid, kill_process, pidfd_open, pidfd_send_signal,
    setsid, waitpid,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

/// Searches for processes of the job, until one finds none: those that are found may have started others.
const SEARCHES: usize = 200;
const BETWEEN: Duration = Duration::from_millis(5);

/// Dropping it says that the launcher ends in an orderly way.
pub(super) struct Guardian {
    pid: Option<Pid>,
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
        let (told, launcher) = pipe_with(PipeFlags::CLOEXEC)?;
        let (mut told, launcher) = (File::from(told), File::from(launcher));
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
            pid => Ok(Guardian { pid: Pid::from_raw(pid), launcher }),
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // If it has been killed there is nothing to say.
        let _ = self.launcher.write_all(&[1]);
        // Nor if it cannot be waited for.
        let _ = waitpid(self.pid, WaitOptions::empty());
    }
}

/// In the guardian: signals to the launcher's group do not reach it, and it keeps no output open.
fn let_go() {
    // What fails stays as it is.
    let _ = setsid();
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&null).and(dup2_stdout(&null)).and(dup2_stderr(&null));
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
    let user = geteuid().as_raw();
    let Some(number) = Pid::from_raw(process as i32) else { return false };
    let place = format!("/proc/{process}");
    if !std::fs::metadata(&place).is_ok_and(|about| about.uid() == user) {
        return false;
    }
    // The descriptor is that of the process whose environment is read: it is none of another one which may
    // get the number meanwhile.
    let handle = pidfd_open(number, PidfdFlags::empty());
    // That of one that has ended is empty.
    let environment = std::fs::read(format!("{place}/environ")).unwrap_or_default();
    if !environment.split(|&byte| byte == 0).any(|variable| variable == mark) {
        return false;
    }
    let sent = match handle {
        Ok(handle) => pidfd_send_signal(handle, Signal::KILL),
        // Systems before Linux 5.3.
        Err(_) => kill_process(number, Signal::KILL),
    };
    sent.is_ok()
}
