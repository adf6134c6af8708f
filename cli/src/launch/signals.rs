//! Signals that a command forwards to the processes that it has started.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use signal_hook::consts::*;
use signal_hook::iterator::Signals;

/// Handles the signals to forward; from now on the returned iterator receives them.
///
/// # Errors
/// The system's error.
pub fn forwarded() -> io::Result<Signals> {
    let all = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT];
    Signals::new(all.into_iter().filter(|&signal| !is_ignored(signal)))
}

/// Leaves ended children to be waited for by this process. A parent that ignores SIGCHLD hands that on, and the system
/// would discard how they ended, and reuse their ids.
pub fn keep_ended_children() {
    // SAFETY: no function of this process becomes a handler.
    unsafe { libc::signal(SIGCHLD, libc::SIG_DFL) };
}

/// Whether the parent process made this process ignore a signal, as `nohup` does.
fn is_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::uninit();
    // SAFETY: no action is changed, and the action is read only if the system has written it.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Whether a signal ends the job.
pub fn is_end(signal: c_int) -> bool {
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT].contains(&signal)
}

/// In a child of `launcher`, between fork and exec: ensures that the child does not outlive the launcher. Calls only
/// functions that are safe there.
pub(super) fn prepare_child(launcher: u32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The launcher may have died before.
    if getppid() != Pid::from_raw(launcher as i32) {
        // SAFETY: ends this process without running the launcher's exit handlers.
        unsafe { libc::_exit(1) };
    }
    Ok(())
}

/// The name of a signal.
pub(super) fn name(signal: c_int) -> &'static str {
    signal_hook::low_level::signal_name(signal).unwrap_or("signal")
}
