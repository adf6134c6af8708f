//! Blocking calls that a thread makes again, with other addresses at most: they are found without a lock
//! and not checked anew.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::{Arc, Weak};

use hopbine::Communicator;
use hopbine::torus::collectives::Collective;
use hopbine::world::Short;

use crate::calls::Arguments;
use crate::failure::Failure;
use crate::handles::{COMMS, comm as find, hopbine_comm_t};
use crate::report;

/// Calls that a thread knows.
const N_KNOWN: usize = 8;

/// A call that a thread has made.
struct Known {
    handle: hopbine_comm_t,
    /// What [`Table::n_removed`](crate::handles::Table::n_removed) was then.
    n_removed: u64,
    collective: Collective,
    count: i64,
    dtype: c_int,
    op: Option<c_int>,
    is_in_place: bool,
    /// It does not keep the communicator.
    comm: Weak<Communicator>,
    /// `None` if there is no short way.
    short: Option<Short>,
}

thread_local! {
    static KNOWN: RefCell<[Option<Known>; N_KNOWN]> = const { RefCell::new([const { None }; N_KNOWN]) };
}

impl Known {
    #[inline]
    fn is_of(&self, handle: hopbine_comm_t, n_removed: u64, arguments: &Arguments) -> bool {
        self.handle == handle
            && self.n_removed == n_removed
            && self.collective == arguments.collective
            && self.count == arguments.count
            && self.dtype == arguments.dtype
            && self.op == arguments.op
            && self.is_in_place == arguments.is_in_place()
    }
}

/// Where a thread looks for a call: those that a program makes in turn mostly have different places.
#[inline]
fn place(arguments: &Arguments) -> usize {
    let Arguments { collective, count, root, .. } = *arguments;
    (count as usize ^ root as usize ^ (3 * collective as usize)) % N_KNOWN
}

/// Performs a call.
///
/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it meanwhile.
pub(crate) unsafe fn perform(handle: hopbine_comm_t, arguments: &Arguments) -> Result<(), Failure> {
    let n_removed = COMMS.n_removed();
    // A thread that is ending remembers nothing; nor does a call that is made within another.
    let outcome = KNOWN.try_with(|known| {
        let known = &mut *known.try_borrow_mut().ok()?;
        let known = known[place(arguments)].as_mut()?;
        if !known.is_of(handle, n_removed, arguments) {
            return None;
        }
        let comm = known.comm.upgrade()?;
        if let Some(short) = &mut known.short {
            let root = arguments.root.cast_unsigned();
            let addresses = (arguments.send.cast(), arguments.recv.cast());
            // SAFETY: the caller's promise.
            if let Some(outcome) = unsafe { comm.again(short, root, addresses) } {
                return Some(outcome.map_err(Failure::from));
            }
        }
        // SAFETY: the caller's promise.
        Some(unsafe { checked(&comm, arguments) })
    });
    match outcome {
        Ok(Some(outcome)) => outcome,
        // SAFETY: the caller's promise.
        _ => unsafe { first(handle, n_removed, arguments) },
    }
}

/// Performs a call on this communicator.
///
/// # Safety
/// As [`perform`].
unsafe fn checked(comm: &Communicator, arguments: &Arguments) -> Result<(), Failure> {
    let call = arguments.call(comm)?;
    // SAFETY: the caller's promise.
    report::timed(comm, &call, || unsafe { comm.call(&call) })?;
    Ok(())
}

/// Performs a call that the thread does not know, and remembers it.
///
/// # Safety
/// As [`perform`].
#[cold]
unsafe fn first(
    handle: hopbine_comm_t,
    n_removed: u64,
    arguments: &Arguments,
) -> Result<(), Failure> {
    let comm = find(handle)?;
    // SAFETY: the caller's promise.
    unsafe { checked(&comm, arguments) }?;
    // A report wants to know of each call.
    let short = if report::is_wanted() { None } else { comm.short(&arguments.call(&comm)?) };
    let Arguments { collective, count, dtype, op, .. } = *arguments;
    let (is_in_place, comm) = (arguments.is_in_place(), Arc::downgrade(&comm));
    let known = Known { handle, n_removed, collective, count, dtype, op, is_in_place, comm, short };
    let _ = KNOWN.try_with(|all| {
        if let Ok(mut all) = all.try_borrow_mut() {
            all[place(arguments)] = Some(known);
        }
    });
    Ok(())
}
