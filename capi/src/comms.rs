//! Communicators.

use std::ffi::{CStr, c_char, c_int, c_void};

use hopbine::{CallOptions, Communicator};

use crate::failure::{Failure, HOPBINE_ERR_ARG, HOPBINE_ERR_COMM, entry, out};
use crate::handles::{COMMS, find_comm, hopbine_comm_t, no_comm};

/// The null communicator.
pub const HOPBINE_COMM_NULL: hopbine_comm_t = 0;
/// The colour of a rank that is to be in no new communicator.
pub const HOPBINE_UNDEFINED: c_int = -1;

/// Copies a list of numbers that C passes.
///
/// # Safety
/// `list` is null or points to `n` numbers.
unsafe fn numbers(n: c_int, list: *const c_int) -> Result<Vec<u32>, Failure> {
    let wrong = |what: String| Failure::new(HOPBINE_ERR_ARG, what);
    let n = usize::try_from(n).map_err(|_| wrong(format!("a list of {n} numbers")))?;
    if n > 0 && list.is_null() {
        return Err(wrong("the list is null".to_owned()));
    }
    if n == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the caller's promise.
    let list = unsafe { std::slice::from_raw_parts(list, n) };
    let number = |&at: &c_int| u32::try_from(at).map_err(|_| wrong(format!("{at} is negative")));
    list.iter().map(number).collect()
}

/// Stores the handle of a new communicator at `address`, or HOPBINE_COMM_NULL.
fn store_comm(address: &mut hopbine_comm_t, made: Option<Communicator>) {
    *address = made.map_or(HOPBINE_COMM_NULL, |made| COMMS.insert(made));
}

/// Derives a communicator from another one, for C.
///
/// # Safety
/// `made` is null or writable.
unsafe fn derive_comm(
    comm: hopbine_comm_t,
    made: *mut hopbine_comm_t,
    how: impl FnOnce(&Communicator) -> Result<Option<Communicator>, Failure>,
) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let made = unsafe { out(made, "communicator") }?;
        let comm = find_comm(comm)?;
        *made = HOPBINE_COMM_NULL;
        store_comm(made, how(&comm)?);
        Ok(())
    })
}

/// Sets `*rank` to the calling rank, from 0.
///
/// # Safety
/// `rank` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_comm_rank(comm: hopbine_comm_t, rank: *mut c_int) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        *unsafe { out(rank, "rank") }? = find_comm(comm)?.rank() as c_int;
        Ok(())
    })
}

/// Sets `*size` to the number of ranks.
///
/// # Safety
/// `size` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_comm_size(comm: hopbine_comm_t, size: *mut c_int) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        *unsafe { out(size, "size") }? = find_comm(comm)?.size() as c_int;
        Ok(())
    })
}

/// Describes the torus of the communicator. Sets `*n_dims` to the number of dimensions, at most 7. Sets the first
/// `room` elements of `sizes` to the sizes of the dimensions and those of `coordinates` to the calling rank's
/// coordinates; either list may be null.
///
/// # Safety
/// `n_dims` is null or writable; `sizes` and `coordinates` are null or have `room` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_comm_torus(
    comm: hopbine_comm_t,
    room: c_int,
    n_dims: *mut c_int,
    sizes: *mut c_int,
    coordinates: *mut c_int,
) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let n_dims = unsafe { out(n_dims, "number of dimensions") }?;
        let comm = find_comm(comm)?;
        let (shape, at) = (comm.shape(), comm.coordinates());
        *n_dims = shape.n_dims() as c_int;
        for dim in 0..shape.n_dims().min(usize::try_from(room).unwrap_or(0)) {
            for (list, number) in [(sizes, shape.size(dim)), (coordinates, at[dim])] {
                if !list.is_null() {
                    // SAFETY: the caller's promise: `dim` is below `room`.
                    unsafe { list.add(dim).write(number as c_int) };
                }
            }
        }
        Ok(())
    })
}

/// Duplicates a communicator. Calls on one of the two do not affect calls on the other. Collective: all ranks must
/// call it.
///
/// # Safety
/// `made` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_comm_duplicate(
    comm: hopbine_comm_t,
    made: *mut hopbine_comm_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { derive_comm(comm, made, |comm| Ok(Some(comm.duplicate()?))) }
}

/// As hopbine_comm_duplicate(), for calls that are not blocking: it leaves barrier gates, which serve blocking calls
/// only, to other communicators.
///
/// # Safety
/// `made` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_comm_duplicate_for_requests(
    comm: hopbine_comm_t,
    made: *mut hopbine_comm_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { derive_comm(comm, made, |comm| Ok(Some(comm.duplicate_for_requests()?))) }
}

/// Splits a communicator: one new communicator for each colour, with the ranks that pass this colour, ordered by key,
/// and by rank at equal keys. A rank that passes HOPBINE_UNDEFINED gets HOPBINE_COMM_NULL. Collective: all ranks must
/// call it.
///
/// # Safety
/// `made` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_comm_split(
    comm: hopbine_comm_t,
    colour: c_int,
    key: i64,
    made: *mut hopbine_comm_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        derive_comm(comm, made, |comm| {
            let colour = match colour {
                HOPBINE_UNDEFINED => None,
                colour => Some(u32::try_from(colour).map_err(|_| {
                    let what = format!("colour {colour} is negative and not HOPBINE_UNDEFINED");
                    Failure::new(HOPBINE_ERR_ARG, what)
                })?),
            };
            Ok(comm.split(colour, key)?)
        })
    }
}

/// Makes a communicator of the `n` ranks in the list `ranks` of `comm`, in the order of the list. Collective: all
/// ranks of `comm` must call it. All ranks of a list pass the same list; every other rank passes a list of its own
/// group, or an empty list. A rank that is not in its list gets HOPBINE_COMM_NULL.
///
/// # Safety
/// `ranks` is null or points to `n` numbers; `made` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_comm_group(
    comm: hopbine_comm_t,
    n: c_int,
    ranks: *const c_int,
    made: *mut hopbine_comm_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { derive_comm(comm, made, |comm| Ok(comm.group(&numbers(n, ranks)?)?)) }
}

/// Makes a communicator of the ranks whose torus coordinates differ from the caller's at most in the `n` dimensions
/// `dims`: rows, columns, planes. Collective: all ranks must call it.
///
/// # Safety
/// `dims` is null or points to `n` numbers; `made` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_comm_sub_box(
    comm: hopbine_comm_t,
    n: c_int,
    dims: *const c_int,
    made: *mut hopbine_comm_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        derive_comm(comm, made, |comm| {
            let dims: Vec<usize> = numbers(n, dims)?.into_iter().map(|dim| dim as usize).collect();
            Ok(Some(comm.sub_box(&dims)?))
        })
    }
}

/// Makes a communicator of the `n` ranks in the list `ranks` of `comm`, in the order of the list. Unlike for
/// hopbine_comm_group(), only these ranks call it. `agree` must broadcast among them: on each rank it returns the
/// `number` that it gets on the first rank of the list. `argument` is passed to `agree`.
///
/// # Safety
/// `ranks` is null or points to `n` numbers; `agree` can be called with `argument`; `made` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_comm_join(
    comm: hopbine_comm_t,
    n: c_int,
    ranks: *const c_int,
    agree: Option<unsafe extern "C" fn(number: u64, argument: *mut c_void) -> u64>,
    argument: *mut c_void,
    made: *mut hopbine_comm_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        derive_comm(comm, made, |comm| {
            let agree = agree.ok_or_else(|| {
                Failure::new(HOPBINE_ERR_ARG, "the pointer to the function is null")
            })?;
            Ok(Some(comm.join(&numbers(n, ranks)?, |number| agree(number, argument))?))
        })
    }
}

/// Makes a handle of the same communicator with options for its calls: the algorithm, the number of ports, and the
/// largest length of a message in bytes. The algorithm is a name of `hopbine list`, the text of a schedule, or
/// `search` for the best schedule under the network model. Null or 0 leaves the choice to hopbine. All ranks must
/// pass the same options. The call is local.
///
/// # Safety
/// `algorithm` is null or a string; `made` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_comm_with(
    comm: hopbine_comm_t,
    algorithm: *const c_char,
    ports: c_int,
    segment_bytes: i64,
    made: *mut hopbine_comm_t,
) -> c_int {
    let how = |comm: &Communicator| {
        let mut options = CallOptions::new();
        if !algorithm.is_null() {
            // SAFETY: the caller's promise.
            options = options.algorithm(&unsafe { CStr::from_ptr(algorithm) }.to_string_lossy());
        }
        let wrong = |what: &str| Failure::new(HOPBINE_ERR_ARG, format!("negative {what}"));
        match u32::try_from(ports).map_err(|_| wrong("number of ports"))? {
            0 => {}
            ports => options = options.ports(ports),
        }
        match u64::try_from(segment_bytes).map_err(|_| wrong("length of messages"))? {
            0 => {}
            bytes => options = options.segment_bytes(bytes),
        }
        Ok(Some(comm.with(options)))
    };
    // SAFETY: the caller's promise.
    unsafe { derive_comm(comm, made, how) }
}

/// Frees the handle and sets `*comm` to HOPBINE_COMM_NULL. Requests on the communicator continue. Only
/// hopbine_finalize() frees the world's communicator.
///
/// # Safety
/// `comm` is null, or readable and writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_comm_free(comm: *mut hopbine_comm_t) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { out(comm, "communicator") }?;
        if *handle != HOPBINE_COMM_NULL && *handle == crate::start::hopbine_comm_world() {
            let what = "only hopbine_finalize frees the world's communicator";
            return Err(Failure::new(HOPBINE_ERR_COMM, what));
        }
        drop(COMMS.remove(*handle).ok_or_else(|| no_comm(*handle))?);
        *handle = HOPBINE_COMM_NULL;
        Ok(())
    })
}
