//! The vector forms, whose blocks may differ in size: lists of counts and displacements, from C to a call in
//! its three forms.

use std::borrow::Cow;
use std::ffi::c_int;

use hopbine::Communicator;
use hopbine::torus::collectives::Collective;
use hopbine::{Blocks, Call, Form};

use crate::calls::{Arguments, Lists};
use crate::failure::{Failure, HOPBINE_ERR_ARG, HOPBINE_ERR_COUNT, entry};
use crate::handles::{self, hopbine_comm_t, hopbine_request_t};
use crate::report;
use crate::requests::{give_repeated, give_started, requesting};

/// Lists of counts and displacements, checked.
struct Sizes<'a> {
    counts: &'a [u64],
    displacements: Option<Cow<'a, [u64]>>,
}

impl<'a> Sizes<'a> {
    /// # Safety
    /// The lists are null or have `n` places, for as long as the result lives.
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
            // Where a block without elements starts does not matter.
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
/// `list` is null or has `n` places, for as long as the result lives.
unsafe fn list<'a>(n: usize, list: *const i64) -> Option<&'a [i64]> {
    // SAFETY: the caller's promise.
    (!list.is_null()).then(|| unsafe { std::slice::from_raw_parts(list, n) })
}

/// The same numbers.
///
/// # Errors
/// The first that is negative.
fn unsigned(list: &[i64]) -> Result<&[u64], i64> {
    match list.iter().find(|&&number| number < 0) {
        Some(&number) => Err(number),
        // SAFETY: the same memory, in which every number that is not negative is the same.
        None => Ok(unsafe { std::slice::from_raw_parts(list.as_ptr().cast(), list.len()) }),
    }
}

fn negative(number: i64) -> Failure {
    Failure::new(HOPBINE_ERR_COUNT, format!("{number} is negative"))
}

/// Looks everything up and does `with` the call.
///
/// # Safety
/// The lists are null or have a place for each rank.
unsafe fn with_call(
    comm: hopbine_comm_t,
    arguments: &Arguments,
    with: impl FnOnce(&Communicator, &Call<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let comm = handles::comm(comm)?;
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
/// The lists have a place for each rank; each buffer holds what they say, and nobody else uses it
/// meanwhile.
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
/// As [`perform`], until the request is done; `request` is null or an address to write to.
pub(crate) unsafe fn start(
    comm: hopbine_comm_t,
    arguments: &Arguments,
    request: *mut hopbine_request_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { hand_out(comm, arguments, request, give_started) }
}

/// # Safety
/// As [`perform`], whenever the request is under way; the buffers are there until it is freed. `request` is
/// null or an address to write to.
pub(crate) unsafe fn prepare(
    comm: hopbine_comm_t,
    arguments: &Arguments,
    request: *mut hopbine_request_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { hand_out(comm, arguments, request, give_repeated) }
}

/// Hands out the request that `give` makes of a call.
///
/// # Safety
/// As [`start`] or [`prepare`].
unsafe fn hand_out(
    comm: hopbine_comm_t,
    arguments: &Arguments,
    request: *mut hopbine_request_t,
    give: unsafe fn(&Communicator, &Call<'_>, &mut hopbine_request_t) -> Result<(), Failure>,
) -> c_int {
    // SAFETY: the caller's promise, also within.
    unsafe {
        requesting(request, |request| {
            with_call(comm, arguments, |comm, call| give(comm, call, request))
        })
    }
}
