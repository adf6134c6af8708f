//! Processes of this host: their identity, and whether they are alive.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use hopbine_meet::Stat;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};

/// A process; its start time distinguishes it from a later process with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// The process's number in `/proc`, which may belong to another PID namespace; 0 if no `/proc` shows the process.
    pub(super) proc_pid: u32,
    /// Start time in clock ticks since the host's start; 0 if unknown.
    pub(super) started: u64,
}

impl Process {
    /// This process.
    pub(super) fn own() -> Self {
        let proc_pid = hopbine_meet::proc_pid().unwrap_or(0);
        let started = Stat::of(proc_pid).ok().flatten().map_or(0, |stat| stat.started);
        Process { pid: std::process::id(), proc_pid, started }
    }

    /// The process that has the number `pid` now, in the PID namespace of `/proc`.
    #[cfg(test)]
    pub(super) fn of(pid: u32) -> Self {
        let Stat { started, .. } = Stat::of(pid).expect("there is a /proc").expect("it lives");
        Process { pid, proc_pid: pid, started }
    }

    /// Whether the process is alive; a zombie is not.
    pub(super) fn is_alive(self) -> bool {
        let exists = || number(self.pid).is_some_and(|pid| test_kill_process(pid).is_ok());
        match Stat::of(self.proc_pid) {
            Ok(Some(stat)) => {
                !stat.has_ended() && (self.started == 0 || stat.started == self.started)
            }
            // Without /proc nothing more can be found out.
            Ok(None) => self.started == 0 && exists(),
            // Nor without a free descriptor to open /proc.
            Err(_) => exists(),
        }
    }

    /// The numbers of its threads; none if `/proc` belongs to another PID namespace.
    pub(super) fn threads(self) -> impl Iterator<Item = u32> {
        let listed = std::fs::read_dir(format!("/proc/{}/task", self.proc_pid)).ok();
        let numbers = listed.filter(|_| self.proc_pid == self.pid).into_iter().flatten();
        numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
    }
}

/// A process whose liveness is checked repeatedly.
#[derive(Debug)]
pub(super) struct Watch {
    process: Process,
    /// A pidfd, opened by the first check; `None` if the process had ended by then, or the kernel has no pidfds
    /// (Linux before 5.3).
    pidfd: OnceLock<Option<OwnedFd>>,
}

impl Watch {
    pub(super) fn new(process: Process) -> Self {
        Watch { process, pidfd: OnceLock::new() }
    }

    pub(super) fn process(&self) -> Process {
        self.process
    }

    /// Whether the process is alive. If so, its number has denoted it all the time, since the kernel does not reuse
    /// the number of a living process.
    pub(super) fn is_alive(&self) -> bool {
        let open = || open_pidfd(self.process.pid).filter(|_| self.process.is_alive());
        // The number denotes the process after the pidfd was opened, and so it did before.
        let Some(pidfd) = self.pidfd.get_or_init(open) else { return self.process.is_alive() };
        match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&Timespec::default())) {
            // The pidfd becomes readable when the process ends.
            Ok(n) => n == 0,
            // For instance, a signal has interrupted the call.
            Err(_) => self.process.is_alive(),
        }
    }
}

/// A pidfd of the process that has this number now.
fn open_pidfd(pid: u32) -> Option<OwnedFd> {
    pidfd_open(number(pid)?, PidfdFlags::empty()).ok()
}

/// Converts to the type of the system calls.
fn number(pid: u32) -> Option<Pid> {
    Pid::from_raw(pid.try_into().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_until_it_ends() {
        let own = Process::own();
        assert!(own.started > 0 && own.is_alive());
        assert!(!Process { started: own.started + 1, ..own }.is_alive(), "a later one");
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let other = Process::of(child.id());
        // One with a pidfd from now on, one that is first checked later, and one without a pidfd.
        let watches = [other; 3].map(Watch::new);
        watches[2].pidfd.set(None).unwrap();
        assert!(other.is_alive() && watches[0].is_alive() && watches[2].is_alive());
        child.kill().unwrap();
        // The kernel need not show the end in all places at the same time.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while other.is_alive() || watches.iter().any(Watch::is_alive) {
            assert!(std::time::Instant::now() < end, "it never ends");
            std::thread::yield_now();
        }
        // Until here the process was a zombie.
        child.wait().unwrap();
        assert!(!other.is_alive() && !watches.iter().any(Watch::is_alive));
    }

    #[test]
    fn a_watch_is_of_the_process_and_not_of_its_number() {
        let own = Process::own();
        let watch = Watch::new(own);
        assert!(watch.is_alive() && watch.is_alive());
        let earlier = Watch::new(Process { started: own.started - 1, ..own });
        assert!(!earlier.is_alive() && !earlier.is_alive(), "another one has its number");
    }
}
