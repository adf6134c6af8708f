//! Calls with equal blocks: blocking, non-blocking and persistent. A call that a thread repeats, possibly with other
//! addresses, is found in a cache of the thread, without a lock and without checking it again.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::{Arc, Weak};

use hopbine::Communicator;
use hopbine::Short;

use crate::calls::Arguments;
use crate::failure::{Failure, entry};
use crate::handles::{COMMS, find_comm, hopbine_comm_t, hopbine_request_t};
use crate::report;
use crate::requests::{request_entry, store_persistent, store_request, store_started};

/// A thread's set-associative cache of calls.
type CallCache = [[Option<CachedCall>; N_WAYS]; N_SETS];
const N_SETS: usize = 8;
const N_WAYS: usize = 4;

/// A call that the thread has made.
struct CachedCall {
    handle: hopbine_comm_t,
    /// Value of [`Table::n_removed`](crate::handles::Table::n_removed) when the call was made.
    n_removed: u64,
    arguments: Arguments,
    /// Weak: the entry does not keep the communicator alive.
    comm: Weak<Communicator>,
    path: Path,
}

/// How the call is repeated.
enum Path {
    /// Undecided: the call has been made once. Programs whose lengths always change repeat few of their calls.
    Undecided,
    /// By the full path, since no short one exists.
    Full,
    Short(Short),
}

thread_local! {
    static CACHE: RefCell<CallCache> =
        const { RefCell::new([const { [const { None }; N_WAYS] }; N_SETS]) };
}

impl CachedCall {
    #[inline]
    fn matches(&self, handle: hopbine_comm_t, n_removed: u64, arguments: &Arguments) -> bool {
        self.handle == handle && self.n_removed == n_removed && self.arguments.is_like(arguments)
    }
}

/// The set of the cache for a call.
#[inline]
fn set_of(arguments: &Arguments) -> usize {
    let Arguments { collective, count, root, .. } = *arguments;
    let kind = (collective as u64) << 32 | u64::from(root.cast_unsigned());
    let mixed = (count as u64).wrapping_add(kind.wrapping_mul(0xff51_afd7_ed55_8ccd));
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as usize
}

/// Makes a call by `make`, with its cached short form if there is one.
#[inline]
fn cached_or_first(
    handle: hopbine_comm_t,
    arguments: &Arguments,
    mut make: impl FnMut(&Communicator, Option<&mut Short>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let n_removed = COMMS.n_removed();
    // The cache is not accessible on a thread that is ending, nor within another call.
    let outcome = CACHE.try_with(|cached| {
        let cached = &mut *cached.try_borrow_mut().ok()?;
        let mut set = cached[set_of(arguments)].iter_mut().flatten();
        let cached = set.find(|cached| cached.matches(handle, n_removed, arguments))?;
        let short = match &mut cached.path {
            Path::Undecided => return None,
            Path::Full => None,
            Path::Short(short) => Some(short),
        };
        Some(make(&*cached.comm.upgrade()?, short))
    });
    match outcome {
        Ok(Some(outcome)) => outcome,
        _ => first_call(handle, n_removed, arguments, |comm| make(comm, None)),
    }
}

/// Makes a call that is not in the thread's cache by `make`, and caches it. The second time, also prepares the short
/// form.
#[cold]
fn first_call(
    handle: hopbine_comm_t,
    n_removed: u64,
    arguments: &Arguments,
    make: impl FnOnce(&Communicator) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let comm = find_comm(handle)?;
    make(&comm)?;
    let remembered = CACHE.try_with(|all| {
        let Ok(mut all) = all.try_borrow_mut() else { return Ok(()) };
        let set = &mut all[set_of(arguments)];
        let is_it = |cached: &CachedCall| cached.matches(handle, n_removed, arguments);
        let at = set.iter().position(|cached| cached.as_ref().is_some_and(is_it));
        let path = match at {
            Some(_) => {
                // A report must see every call.
                let is_free = !report::is_wanted();
                let short = if is_free { comm.short(&arguments.call(&comm)?) } else { None };
                short.map_or(Path::Full, Path::Short)
            }
            None => Path::Undecided,
        };
        // Replaces the entry of the same call, or else the oldest one.
        set[..=at.unwrap_or(N_WAYS - 1)].rotate_right(1);
        let (arguments, comm) = (*arguments, Arc::downgrade(&comm));
        set[0] = Some(CachedCall { handle, n_removed, arguments, comm, path });
        Ok(())
    });
    remembered.unwrap_or(Ok(()))
}

/// Root and addresses of a call: the arguments that may differ from those of the cached call.
#[inline]
fn root_and_addresses(arguments: &Arguments) -> (u32, (*const u8, *mut u8)) {
    (arguments.root.cast_unsigned(), (arguments.send.cast(), arguments.recv.cast()))
}

/// Performs a call.
///
/// # Safety
/// Each buffer is valid for the bytes that the collective accesses, and nothing else uses it during the call.
pub(crate) unsafe fn perform(handle: hopbine_comm_t, arguments: &Arguments) -> c_int {
    let make = |comm: &Communicator, short: Option<&mut Short>| {
        let (root, addresses) = root_and_addresses(arguments);
        // SAFETY: the caller's promise.
        let again = short.and_then(|short| unsafe { comm.again(short, root, addresses) });
        if let Some(outcome) = again {
            return outcome.map_err(Failure::from);
        }
        let call = arguments.call(comm)?;
        // SAFETY: the caller's promise.
        report::timed(comm, &call, || unsafe { comm.call(&call) })?;
        Ok(())
    };
    entry(|| cached_or_first(handle, arguments, make))
}

/// Starts a call and stores its request.
///
/// # Safety
/// As for [`perform`], until the request is done; `request` is null or writable.
pub(crate) unsafe fn start(
    handle: hopbine_comm_t,
    arguments: &Arguments,
    request: *mut hopbine_request_t,
) -> c_int {
    let body = |request: &mut hopbine_request_t| {
        cached_or_first(handle, arguments, |comm, short| {
            let (root, addresses) = root_and_addresses(arguments);
            let again = short.and_then(|short| {
                // SAFETY: the caller's promise.
                unsafe { comm.started_again(short, root, addresses) }
            });
            if let Some(started) = again {
                store_request(started?, None, request);
                return Ok(());
            }
            // SAFETY: the caller's promise.
            unsafe { store_started(comm, &arguments.call(comm)?, request) }
        })
    };
    // SAFETY: the caller's promise.
    unsafe { request_entry(request, body) }
}

/// Prepares a persistent call and stores its request.
///
/// # Safety
/// As for [`perform`], whenever the request is active. The buffers are valid until the request is freed. `request` is
/// null or writable.
pub(crate) unsafe fn prepare(
    handle: hopbine_comm_t,
    arguments: &Arguments,
    request: *mut hopbine_request_t,
) -> c_int {
    let body = |request: &mut hopbine_request_t| {
        let comm = find_comm(handle)?;
        // SAFETY: the caller's promise.
        unsafe { store_persistent(&comm, &arguments.call(&comm)?, request) }
    };
    // SAFETY: the caller's promise.
    unsafe { request_entry(request, body) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopbine::torus::Collective;

    /// Benchmarks call a barrier, a collective with rotating roots, and a reduction of one number in turn.
    #[test]
    fn calls_in_turn_find_room_in_their_sets() {
        let of = |collective, count, root| {
            set_of(&Arguments { count, root, ..Arguments::new(collective) })
        };
        for collective in Collective::ALL {
            for count in (0..24).map(|log| 1 << log) {
                let mut n_in_set = [0; N_SETS];
                n_in_set[of(Collective::Barrier, 0, 0)] += 1;
                n_in_set[of(Collective::Allreduce, 1, 0)] += 1;
                // Calls that differ in their root match each other, but fall into different sets.
                (0..4).for_each(|root| n_in_set[of(collective, count, root)] += 1);
                assert!(n_in_set.iter().all(|&n| n <= N_WAYS), "{collective} of {count}");
            }
        }
    }
}
