//! Threads without signals.

/// Runs `spawn` with all signals blocked but those of faults, which the new thread inherits. Otherwise the system could
/// deliver a signal of the process to that thread: one that the program blocks on its own threads to await it would end
/// the process, and a handler would run while the thread holds locks that the handler's calls wait for.
pub fn without_signals<T>(spawn: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are initialised before use, the first by sigfillset and the second by pthread_sigmask, and live
    // through the calls.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        // A handler of the program still sees a fault of the new thread.
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP] {
            libc::sigdelset(&mut all, fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = spawn();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether this thread blocks the signal.
    fn blocks(signal: i32) -> bool {
        // SAFETY: with no new set pthread_sigmask only writes the old one, which sigismember then reads.
        unsafe {
            let mut blocked = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &mut blocked);
            libc::sigismember(&blocked, signal) == 1
        }
    }

    #[test]
    fn the_new_thread_blocks_signals_but_not_faults() {
        let before = blocks(libc::SIGUSR1);
        let of_it = || [libc::SIGUSR1, libc::SIGTERM, libc::SIGSEGV].map(blocks);
        let thread = without_signals(|| std::thread::spawn(of_it));
        assert_eq!(thread.join().unwrap(), [true, true, false]);
        assert_eq!(blocks(libc::SIGUSR1), before);
    }
}
