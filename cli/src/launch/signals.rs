//! Signals that the launcher passes on to its ranks.

use std::io;
use std::mem::MaybeUninit;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// Signals that are passed on.
const FORWARDED: [libc::c_int; 7] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCONT,
];

/// The signals that are passed on, blocked in this thread and all that it starts.
pub(super) struct Watched(libc::sigset_t);

impl Watched {
    /// Blocks them.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn block() -> io::Result<Self> {
        let mut set = MaybeUninit::uninit();
        // SAFETY: the set is initialised by sigemptyset before anything else is done with it.
        let set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in FORWARDED.into_iter().filter(|&signal| !is_ignored(signal)) {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            set.assume_init()
        };
        // SAFETY: the set is initialised; the old one is not wanted.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) } {
            0 => Ok(Watched(set)),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// One that waits already, if there is one.
    pub(super) fn pending(&self) -> Option<libc::c_int> {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: set and time are initialised; what else is known of the signal is not wanted.
        let signal = unsafe { libc::sigtimedwait(&self.0, std::ptr::null_mut(), &at_once) };
        (signal > 0).then_some(signal)
    }

    /// Waits for the next one.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn wait(&self) -> io::Result<libc::c_int> {
        let mut signal = 0;
        // SAFETY: the set is initialised and `signal` a valid place for the result.
        match unsafe { libc::sigwait(&self.0, &mut signal) } {
            0 => Ok(signal),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// Whether whoever started this process wants it to ignore a signal, as `nohup` does: it would come all the
/// same to a thread that waits for it.
fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::uninit();
    // SAFETY: nothing is changed, and the action is read only if the system has written it.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Whether a signal asks for the end.
pub(super) fn is_end(signal: libc::c_int) -> bool {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT].contains(&signal)
}

/// In a child of `launcher` between fork and exec: no signal is blocked, and the child does not outlive the
/// launcher. Calls only what is safe there.
pub(super) fn prepare_child(launcher: u32) -> io::Result<()> {
    let mut none = MaybeUninit::uninit();
    // SAFETY: the set is initialised by sigemptyset; all functions may be called between fork and exec.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before.
    if getppid() != Pid::from_raw(launcher as i32) {
        // SAFETY: as above.
        unsafe { libc::_exit(1) };
    }
    Ok(())
}

/// The name of a signal.
pub(super) fn name(signal: libc::c_int) -> &'static str {
    match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGTERM => "SIGTERM",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGSYS => "SIGSYS",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        _ => "signal",
    }
}
