//! Calls with blocks of one size, in their three forms. Those that a thread makes again, with other
//! addresses at most, are found without a lock and not checked anew.

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

/// The calls that a thread knows: each is in one of the ways of its set.
type Calls = [[Option<Known>; N_WAYS]; N_SETS];
const N_SETS: usize = 8;
const N_WAYS: usize = 4;

/// A call that a thread has made.
struct Known {
    handle: hopbine_comm_t,
    /// What [`Table::n_removed`](crate::handles::Table::n_removed) was then.
    n_removed: u64,
    arguments: Arguments,
    /// It does not keep the communicator.
    comm: Weak<Communicator>,
    way: Way,
}

/// How a call is made again.
enum Way {
    /// It has been made once: where lengths change all the time, few come again.
    Unknown,
    /// There is no short way.
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

/// In which set a thread looks for a call.
#[inline]
fn set_of(arguments: &Arguments) -> usize {
    let Arguments { collective, count, root, .. } = *arguments;
    let kind = (collective as u64) << 32 | u64::from(root.cast_unsigned());
    let mixed = (count as u64).wrapping_add(kind.wrapping_mul(0xff51_afd7_ed55_8ccd));
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as usize
}

/// Has `make` make a call: with what is known of it, or without.
#[inline]
fn known_or_first(
    handle: hopbine_comm_t,
    arguments: &Arguments,
    mut make: impl FnMut(&Communicator, Option<&mut Short>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let n_removed = COMMS.n_removed();
    // A thread that is ending remembers nothing; nor does a call that is made within another.
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

/// Has `make` make a call that the thread does not know, and remembers it; the second time also how it is
/// made again.
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
                // A report wants to know of each call.
                let is_free = !report::is_wanted();
                let short = if is_free { comm.short(&arguments.call(&comm)?) } else { None };
                short.map_or(Way::Long, Way::Short)
            }
            None => Way::Unknown,
        };
        // In the place of the same call, or of the one known longest.
        set[..=at.unwrap_or(N_WAYS - 1)].rotate_right(1);
        let (arguments, comm) = (*arguments, Arc::downgrade(&comm));
        set[0] = Some(Known { handle, n_removed, arguments, comm, way });
        Ok(())
    });
    remembered.unwrap_or(Ok(()))
}

/// A call's root and addresses, as they are compared with those of a call that is known.
#[inline]
fn varying(arguments: &Arguments) -> (u32, (*const u8, *mut u8)) {
    (arguments.root.cast_unsigned(), (arguments.send.cast(), arguments.recv.cast()))
}

/// Performs a call.
///
/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it meanwhile.
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

/// Starts a call, and hands its request out.
///
/// # Safety
/// As [`perform`], until the request is done; `request` is null or an address to write to.
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

/// Prepares a call that can be started again and again, and hands its request out.
///
/// # Safety
/// As [`perform`], whenever the request is under way; the buffers are there until it is freed. `request`
/// is null or an address to write to.
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

    /// Programs that measure make a barrier, a call with rotating roots, and a reduction of one number in turn.
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
                // Other ranks as roots are alike to each of them but for the set.
                (0..4).for_each(|root| n_in_set[of(collective, count, root)] += 1);
                assert!(n_in_set.iter().all(|&n| n <= N_WAYS), "{collective} of {count}");
            }
        }
    }
}
