//! Binds a test to one core.
//!
//! Most tests have more ranks than the machine has cores, and waiting ranks yield. Two worlds that share two cores
//! take twice as long as with one core each.

use std::mem::{size_of, zeroed};
use std::sync::Mutex;

/// Number of tests of this program that are bound to each core.
static BOUND: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Until this is dropped, its thread, and the threads and processes that are started in the meantime, run on one
/// core.
pub struct OneCore {
    core: usize,
    before: libc::cpu_set_t,
}

/// Binds this thread to the core with the fewest bound tests. For tests of the results that ranks compute; tests of
/// concurrent behaviour need ranks that run at the same time.
pub fn one_core() -> OneCore {
    let before = allowed();
    // SAFETY: `CPU_ISSET` reads a set of this size.
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
    // SAFETY: a set of cores is plain data, and the kernel writes at most the stated size.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set), 0);
        set
    }
}

fn bind(cores: &libc::cpu_set_t) {
    // SAFETY: the set has the stated size. If the call fails, only the test's duration changes.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cores) };
}
