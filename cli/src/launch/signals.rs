//! Signals that the launcher passes on to its ranks.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use signal_hook::consts::*;
use signal_hook::iterator::Signals;

/// The signals that are passed on, from now on to whoever takes them from the result.
///
/// # Errors
/// What the system says.
pub(super) fn forwarded() -> io::Result<Signals> {
    let all = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT];
    Signals::new(all.into_iter().filter(|&signal| !is_ignored(signal)))
}

/// Whether whoever started this process wants it to ignore a signal, as `nohup` does.
fn is_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::uninit();
    // SAFETY: nothing is changed, and the action is read only if the system has written it.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Whether a signal asks for the end.
pub(super) fn is_end(signal: c_int) -> bool {
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT].contains(&signal)
}

/// In a child of `launcher` between fork and exec: the child does not outlive the launcher. Calls only
/// what is safe there.
pub(super) fn prepare_child(launcher: u32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before.
    if getppid() != Pid::from_raw(launcher as i32) {
        // SAFETY: ends this process, without what the launcher does at its end.
        unsafe { libc::_exit(1) };
    }
    Ok(())
}

/// The name of a signal.
pub(super) fn name(signal: c_int) -> &'static str {
    signal_hook::low_level::signal_name(signal).unwrap_or("signal")
}
