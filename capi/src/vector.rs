//! The vector variants, whose blocks may differ in size: converts C's lists of counts and displacements to blocking,
//! non-blocking and persistent calls.

use std::borrow::Cow;
use std::ffi::c_int;

use hopbine::Communicator;
use hopbine::torus::collectives::Collective;
use hopbine::{Blocks, Call, Form};

use crate::calls::{Arguments, Lists};
use crate::failure::{Failure, HOPBINE_ERR_ARG, HOPBINE_ERR_COUNT, entry};
use crate::handles::{self, hopbine_comm_t, hopbine_request_t};
use crate::report;
use crate::requests::{request_entry, store_persistent, store_started};

/// Lists of counts and displacements, checked.
struct Sizes<'a> {
    counts: &'a [u64],
    displacements: Option<Cow<'a, [u64]>>,
}

impl<'a> Sizes<'a> {
    /// # Safety
    /// The lists are null or have `n` elements, for as long as the result lives.
    unsafe fn new(n: usize, lists: Option<Lists>) -> Result<Option<Self>, Failure> {
        let Some(Lists { counts, displacements }) = lists else { return Ok(None) };
        // SAFETY: the caller's promise.
        let Some(counts) = (unsafe { list(n, counts) }) else {
            return Err(Failure::new(HOPBINE_ERR_ARG, "the list of counts is null"));
        };
        let counts = unsigned(counts).map_err(negative)?;
        // SAFETY: the caller's promise.
        let displacements = unsafe { list(n, displacements) }.map(|starts| {
            if let Ok(starts) = unsigned(starts) {
                return Ok(Cow::Borrowed(starts));
            }
            // The displacement of a block without elements does not matter.
            let start = |(&start, &count)| match u64::try_from(start) {
                Ok(start) => Ok(start),
                Err(_) if count == 0 => Ok(0),
                Err(_) => Err(negative(start)),
            };
            starts.iter().zip(counts).map(start).collect::<Result<_, _>>().map(Cow::Owned)
        });
        Ok(Some(Sizes { displacements: displacements.transpose()?, counts }))
    }

    fn blocks(&self) -> Blocks<'_> {
        let blocks = Blocks::new(self.counts);
        self.displacements.as_deref().map_or(blocks, |list| blocks.at(list))
    }
}

/// # Safety
/// `list` is null or has `n` elements, for as long as the result lives.
unsafe fn list<'a>(n: usize, list: *const i64) -> Option<&'a [i64]> {
    // SAFETY: the caller's promise.
    (!list.is_null()).then(|| unsafe { std::slice::from_raw_parts(list, n) })
}

/// Reinterprets signed numbers as unsigned.
///
/// # Errors
/// The first negative number.
fn unsigned(list: &[i64]) -> Result<&[u64], i64> {
    match list.iter().find(|&&number| number < 0) {
        Some(&number) => Err(number),
        // SAFETY: the same memory; a number that is not negative has the same bits in both types.
        None => Ok(unsafe { std::slice::from_raw_parts(list.as_ptr().cast(), list.len()) }),
    }
}

fn negative(number: i64) -> Failure {
    Failure::new(HOPBINE_ERR_COUNT, format!("{number} is negative"))
}

/// Looks up the communicator, converts the lists, and passes the call to `with`.
///
/// # Safety
/// The lists are null or have one element for each rank.
unsafe fn with_call(
    comm: hopbine_comm_t,
    arguments: &Arguments,
    with: impl FnOnce(&Communicator, &Call<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let comm = handles::find_comm(comm)?;
    let rank = comm.rank();
    let Arguments { collective, root, lists: [send, recv], .. } = *arguments;
    let is_root = usize::try_from(root).is_ok_and(|root| root == rank as usize);
    let has_lists = !collective.is_rooted() || is_root;
    let sends = collective != Collective::Alltoall || !arguments.is_in_place();
    let n = comm.size() as usize;
    // SAFETY: the caller's promise.
    let send = unsafe { Sizes::new(n, send.filter(|_| has_lists && sends)) }?;
    // SAFETY: the caller's promise.
    let recv = unsafe { Sizes::new(n, recv.filter(|_| has_lists)) }?;
    let count = match &send {
        Some(send) if collective == Collective::ReduceScatter => send.counts[rank as usize] as i64,
        _ => arguments.count,
    };
    let blocks = [&send, &recv].map(|sizes| sizes.as_ref().map(Sizes::blocks));
    let call = arguments.vector(&comm, Form::Vector, count, blocks)?;
    with(&comm, &call)
}

/// # Safety
/// The lists have one element for each rank. Each buffer is valid for the bytes that the lists describe, and nothing
/// else uses it during the call.
pub(crate) unsafe fn perform(comm: hopbine_comm_t, arguments: &Arguments) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        unsafe {
            with_call(comm, arguments, |comm, call| {
                Ok(report::timed(comm, call, || comm.call(call))?)
            })
        }
    })
}

/// # Safety
/// As for [`perform`], until the request is done; `request` is null or writable.
pub(crate) unsafe fn start(
    comm: hopbine_comm_t,
    arguments: &Arguments,
    request: *mut hopbine_request_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { make_request(comm, arguments, request, store_started) }
}

/// # Safety
/// As for [`perform`], whenever the request is active. The buffers are valid until the request is freed. `request` is
/// null or writable.
pub(crate) unsafe fn prepare(
    comm: hopbine_comm_t,
    arguments: &Arguments,
    request: *mut hopbine_request_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { make_request(comm, arguments, request, store_persistent) }
}

/// Stores the request that `store` makes of a call.
///
/// # Safety
/// As for [`start`] or [`prepare`].
unsafe fn make_request(
    comm: hopbine_comm_t,
    arguments: &Arguments,
    request: *mut hopbine_request_t,
    store: unsafe fn(&Communicator, &Call<'_>, &mut hopbine_request_t) -> Result<(), Failure>,
) -> c_int {
    // SAFETY: the caller's promise, for the closures as well.
    unsafe {
        request_entry(request, |request| {
            with_call(comm, arguments, |comm, call| store(comm, call, request))
        })
    }
}
