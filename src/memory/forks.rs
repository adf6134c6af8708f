//! Forks of this process.
//!
//! A fork shares the pages of private memory between parent and child until one of them writes;
//! whoever writes first gets new pages. If that is the parent, a registration from before leads to
//! pages that only the child has (Linux before 5.19 also when they are pinned). So every fork ends
//! all kept registrations; [`Pages`](super::Pages) are not inherited at all. `vfork` and
//! `posix_spawn` share no pages in this way, and are not seen here.

use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Forks so far, and whether this process is a child.
static FORKS: AtomicUsize = AtomicUsize::new(0);
const CHILD: usize = 1 << (usize::BITS - 1);

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
    // Release: partner is the acquire in `state`. In the forking thread this comes before the return
    // of the fork anyway.
    FORKS.fetch_add(1, Ordering::Release);
}

extern "C" fn child() {
    FORKS.fetch_or(CHILD, Ordering::Release);
    parent();
}

/// Changes with every fork.
pub(super) fn state() -> usize {
    FORKS.load(Ordering::Acquire)
}

/// True in a process that was made by a fork after the first cache: it inherits no memory events,
/// so it keeps no registrations.
pub(super) fn is_child() -> bool {
    state() & CHILD != 0
}
