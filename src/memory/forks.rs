//! Forks of this process.
//!
//! A fork shares the pages of private memory between parent and child until one of them writes;
//! whoever writes first gets new pages. If that is the parent, a registration from before leads to
//! pages that only the child has (Linux before 5.19 also when they are pinned). So every fork ends
//! all kept registrations; [`Pages`](super::Pages) are not inherited at all. `vfork` and
//! `posix_spawn` share no pages in this way, and are not seen here.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static FORKS: AtomicUsize = AtomicUsize::new(0);
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Counts forks from now on.
pub(super) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: both handlers only write an atomic, which is allowed between fork and exec. Where
        // there is no memory for them, forks go unseen, as without this call.
        unsafe { libc::pthread_atfork(None, Some(parent), Some(child)) };
    });
}

extern "C" fn parent() {
    // Release: partner is the acquire in `count`. In the forking thread it comes before the return
    // of the fork anyway.
    FORKS.fetch_add(1, Ordering::Release);
}

extern "C" fn child() {
    IS_CHILD.store(true, Ordering::Relaxed);
    FORKS.fetch_add(1, Ordering::Release);
}

/// Forks so far.
pub(super) fn count() -> usize {
    FORKS.load(Ordering::Acquire)
}

/// True in a process that was made by a fork after the first cache: it inherits no memory events,
/// so it keeps no registrations.
pub(super) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}
