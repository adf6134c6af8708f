//! Forks of this process.
//!
//! After a fork, parent and child share the pages of private memory until one of them writes; the process that writes
//! first gets new pages. If that is the parent, an earlier registration leads to pages that only the child has
//! (before Linux 5.19 even if they are pinned). So every fork ends all kept registrations, persistent
//! collectives register anew at their next start, and [`Pages`](super::Pages) are not inherited at all. `vfork` and
//! `posix_spawn` do not share pages in this way, and are not detected here.

use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of forks so far, and a bit ([`CHILD`]) that is set in a child process.
static FORKS: AtomicUsize = AtomicUsize::new(0);
const CHILD: usize = 1 << (usize::BITS - 1);

/// Starts counting forks.
pub(super) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: both handlers only write an atomic, which is allowed between fork and exec. If there is no memory
        // for the handlers, forks are not detected, as without this call.
        unsafe { libc::pthread_atfork(None, Some(parent), Some(child)) };
    });
}

extern "C" fn parent() {
    // Release: pairs with the acquire in `generation`. In the forking thread this precedes the return of the fork
    // anyway.
    FORKS.fetch_add(1, Ordering::Release);
}

extern "C" fn child() {
    FORKS.fetch_or(CHILD, Ordering::Release);
    parent();
}

/// A number that changes with every fork.
pub(crate) fn generation() -> usize {
    FORKS.load(Ordering::Acquire)
}

/// True in a child process that was forked after the first cache was made: it inherits no memory events, so it keeps
/// no registrations.
pub(super) fn is_child() -> bool {
    generation() & CHILD != 0
}
