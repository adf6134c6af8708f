//! Processes of this host: who they are, and whether they live.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use hopbine_meet::Stat;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};

/// A process, told apart from a later one of the same number by its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Its number in `/proc`, which may be that of another PID namespace; 0:
    /// there is no `/proc` that shows it.
    pub(super) shown: u32,
    /// In clock ticks since the host's start; 0: not known.
    pub(super) started: u64,
}

impl Process {
    /// This process.
    pub(super) fn own() -> Self {
        let shown = hopbine_meet::number().unwrap_or(0);
        let started = Stat::of(shown).ok().flatten().map_or(0, |stat| stat.started);
        Process { pid: std::process::id(), shown, started }
    }

    /// The process that has this number now, in a PID namespace of which `/proc` is.
    #[cfg(test)]
    pub(super) fn of(pid: u32) -> Self {
        let Stat { started, .. } = Stat::of(pid).expect("there is a /proc").expect("it lives");
        Process { pid, shown: pid, started }
    }

    /// False if it has ended, or only its exit status is left of it.
    pub(super) fn is_alive(self) -> bool {
        let exists = || number(self.pid).is_some_and(|pid| test_kill_process(pid).is_ok());
        match Stat::of(self.shown) {
            Ok(Some(Stat { state, started, .. })) => {
                !matches!(state, b'Z' | b'X' | b'x')
                    && (self.started == 0 || started == self.started)
            }
            // Without /proc that is all that can be known.
            Ok(None) => self.started == 0 && exists(),
            // Nor can more be known in a process that has no descriptor left to look with.
            Err(_) => exists(),
        }
    }
}

/// A process of which is asked again and again whether it still lives.
#[derive(Debug)]
pub(super) struct Watch {
    process: Process,
    /// A pidfd, from the first question on; `None`: the process had ended by then, or the kernel has no
    /// pidfds (Linux before 5.3).
    pidfd: OnceLock<Option<OwnedFd>>,
}

impl Watch {
    pub(super) fn new(process: Process) -> Self {
        Watch { process, pidfd: OnceLock::new() }
    }

    pub(super) fn process(&self) -> Process {
        self.process
    }

    /// False if it has ended. If not, its number has been its own all the time, for the kernel gives no
    /// number of a process that lives to another one.
    pub(super) fn is_alive(&self) -> bool {
        let open = || open_pidfd(self.process.pid).filter(|_| self.process.is_alive());
        // The number is the process's after it has been opened, and so it was before.
        let Some(pidfd) = self.pidfd.get_or_init(open) else { return self.process.is_alive() };
        match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&Timespec::default())) {
            // The descriptor becomes readable when the process ends.
            Ok(n) => n == 0,
            // A signal has come between, for instance.
            Err(_) => self.process.is_alive(),
        }
    }
}

/// A descriptor that stands for the process that has this number now.
fn open_pidfd(pid: u32) -> Option<OwnedFd> {
    pidfd_open(number(pid)?, PidfdFlags::empty()).ok()
}

/// As the system's calls take it.
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
        // One that is watched from now on, one that is asked about only later, and one without a pidfd.
        let watches = [other; 3].map(Watch::new);
        watches[2].pidfd.set(None).unwrap();
        assert!(other.is_alive() && watches[0].is_alive() && watches[2].is_alive());
        child.kill().unwrap();
        // What the kernel shows of an end in different places need not change at once.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while other.is_alive() || watches.iter().any(Watch::is_alive) {
            assert!(std::time::Instant::now() < end, "it never ends");
            std::thread::yield_now();
        }
        // It was a zombie until now.
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
