//! A core of its own for a test.
//!
//! Ranks are more than cores in most tests, and wait by yielding. Two worlds that share two cores
//! take twice the time that they take with a core each.

use std::mem::{size_of, zeroed};
use std::sync::Mutex;

/// How many tests of this program are bound to each core.
static BOUND: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Until this is dropped, its thread and the threads and processes that are started meanwhile are
/// on one core.
pub struct OneCore {
    core: usize,
    before: libc::cpu_set_t,
}

/// Binds this thread to the core that fewest tests are bound to. For tests of what ranks compute:
/// ranks of tests about what happens at once need to run at once.
pub fn one_core() -> OneCore {
    let before = allowed();
    // SAFETY: `CPU_ISSET` looks at a set of this size.
    let is_allowed = |core: &usize| unsafe { libc::CPU_ISSET(*core, &before) };
    let mut bound = BOUND.lock().unwrap();
    bound.resize(libc::CPU_SETSIZE as usize, 0);
    let cores = (0..bound.len()).filter(is_allowed);
    let core = cores.min_by_key(|&core| bound[core]).expect("this runs on one");
    bound[core] += 1;
    // SAFETY: a set of cores is plain data, and `core` is in its bounds.
    let only = unsafe {
        let mut only: libc::cpu_set_t = zeroed();
        libc::CPU_SET(core, &mut only);
        only
    };
    bind(&only);
    OneCore { core, before }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        bind(&self.before);
        BOUND.lock().unwrap()[self.core] -= 1;
    }
}

/// The cores that this thread may run on.
fn allowed() -> libc::cpu_set_t {
    // SAFETY: a set of cores is plain data, of which the kernel fills as much as it is told.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set), 0);
        set
    }
}

fn bind(cores: &libc::cpu_set_t) {
    // SAFETY: the set is of the size that is given. Calls that fail change nothing but the time.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cores) };
}
