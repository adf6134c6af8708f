//! Calls with equal blocks: blocking, non-blocking and persistent. A call that a thread repeats, possibly with other
//! addresses, is found in a cache of the thread, without a lock and without checking it again.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::{Arc, Weak};

use hopbine::Communicator;
use hopbine::Short;

use crate::calls::Arguments;
use crate::failure::{Failure, entry};
use crate::handles::{COMMS, comm as find, hopbine_comm_t, hopbine_request_t};
use crate::report;
use crate::requests::{give, give_repeated, give_started, requesting};

/// A thread's set-associative cache of calls.
type Calls = [[Option<Known>; N_WAYS]; N_SETS];
const N_SETS: usize = 8;
const N_WAYS: usize = 4;

/// A call that the thread has made.
struct Known {
    handle: hopbine_comm_t,
    /// Value of [`Table::n_removed`](crate::handles::Table::n_removed) when the call was made.
    n_removed: u64,
    arguments: Arguments,
    /// Weak: the entry does not keep the communicator alive.
    comm: Weak<Communicator>,
    way: Way,
}

/// How the call is repeated.
enum Way {
    /// Undecided: the call has been made once. Programs whose lengths always change repeat few of their calls.
    Unknown,
    /// By the full path, since no short one exists.
    Long,
    Short(Short),
}

thread_local! {
    static KNOWN: RefCell<Calls> =
        const { RefCell::new([const { [const { None }; N_WAYS] }; N_SETS]) };
}

impl Known {
    #[inline]
    fn is_of(&self, handle: hopbine_comm_t, n_removed: u64, arguments: &Arguments) -> bool {
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
fn known_or_first(
    handle: hopbine_comm_t,
    arguments: &Arguments,
    mut make: impl FnMut(&Communicator, Option<&mut Short>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let n_removed = COMMS.n_removed();
    // The cache is not accessible on a thread that is ending, nor within another call.
    let outcome = KNOWN.try_with(|known| {
        let known = &mut *known.try_borrow_mut().ok()?;
        let mut set = known[set_of(arguments)].iter_mut().flatten();
        let known = set.find(|known| known.is_of(handle, n_removed, arguments))?;
        let short = match &mut known.way {
            Way::Unknown => return None,
            Way::Long => None,
            Way::Short(short) => Some(short),
        };
        Some(make(&*known.comm.upgrade()?, short))
    });
    match outcome {
        Ok(Some(outcome)) => outcome,
        _ => first(handle, n_removed, arguments, |comm| make(comm, None)),
    }
}

/// Makes a call that is not in the thread's cache by `make`, and caches it. The second time, also prepares the short
/// form.
#[cold]
fn first(
    handle: hopbine_comm_t,
    n_removed: u64,
    arguments: &Arguments,
    make: impl FnOnce(&Communicator) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let comm = find(handle)?;
    make(&comm)?;
    let remembered = KNOWN.try_with(|all| {
        let Ok(mut all) = all.try_borrow_mut() else { return Ok(()) };
        let set = &mut all[set_of(arguments)];
        let is_it = |known: &Known| known.is_of(handle, n_removed, arguments);
        let at = set.iter().position(|known| known.as_ref().is_some_and(is_it));
        let way = match at {
            Some(_) => {
                // A report must see every call.
                let is_free = !report::is_wanted();
                let short = if is_free { comm.short(&arguments.call(&comm)?) } else { None };
                short.map_or(Way::Long, Way::Short)
            }
            None => Way::Unknown,
        };
        // Replaces the entry of the same call, or else the oldest one.
        set[..=at.unwrap_or(N_WAYS - 1)].rotate_right(1);
        let (arguments, comm) = (*arguments, Arc::downgrade(&comm));
        set[0] = Some(Known { handle, n_removed, arguments, comm, way });
        Ok(())
    });
    remembered.unwrap_or(Ok(()))
}

/// Root and addresses of a call: the arguments that may differ from those of the cached call.
#[inline]
fn varying(arguments: &Arguments) -> (u32, (*const u8, *mut u8)) {
    (arguments.root.cast_unsigned(), (arguments.send.cast(), arguments.recv.cast()))
}

/// Performs a call.
///
/// # Safety
/// Each buffer is valid for the bytes that the collective accesses, and nothing else uses it during the call.
pub(crate) unsafe fn perform(handle: hopbine_comm_t, arguments: &Arguments) -> c_int {
    let make = |comm: &Communicator, short: Option<&mut Short>| {
        let (root, addresses) = varying(arguments);
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
    entry(|| known_or_first(handle, arguments, make))
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
        known_or_first(handle, arguments, |comm, short| {
            let (root, addresses) = varying(arguments);
            let again = short.and_then(|short| {
                // SAFETY: the caller's promise.
                unsafe { comm.started_again(short, root, addresses) }
            });
            if let Some(started) = again {
                give(started?, None, request);
                return Ok(());
            }
            // SAFETY: the caller's promise.
            unsafe { give_started(comm, &arguments.call(comm)?, request) }
        })
    };
    // SAFETY: the caller's promise.
    unsafe { requesting(request, body) }
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
        let comm = find(handle)?;
        // SAFETY: the caller's promise.
        unsafe { give_repeated(&comm, &arguments.call(&comm)?, request) }
    };
    // SAFETY: the caller's promise.
    unsafe { requesting(request, body) }
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
