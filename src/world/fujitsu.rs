//! Fujitsu MPI's extensions, if the program runs with that MPI. They are looked up by name at run time, so that
//! hopbine is built without Fujitsu MPI.
//!
//! `FJMPI_Topology_get_dimension(int *)`, `FJMPI_Topology_get_shape(int *, int *, int *)` and
//! `FJMPI_Topology_get_coords(MPI_Comm, int rank, int view, int most, int *)` are from Fujitsu's MPI user's guide.
//! Fujitsu MPI is an Open MPI: a communicator is an address, and `MPI_COMM_WORLD` that of the variable
//! `ompi_mpi_comm_world`.

use std::ffi::{c_int, c_void};

use super::placement::Logical;
use crate::symbols::symbol;

type Comm = *mut c_void;
type OneIntFn = unsafe extern "C" fn(*mut c_int) -> c_int;
type ThreeIntsFn = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int) -> c_int;
type RankFn = unsafe extern "C" fn(Comm, *mut c_int) -> c_int;
type CoordsFn = unsafe extern "C" fn(Comm, c_int, c_int, c_int, *mut c_int) -> c_int;

/// `FJMPI_SUCCESS` and `MPI_SUCCESS`.
const SUCCESS: c_int = 0;
/// `FJMPI_LOGICAL`.
const LOGICAL: c_int = 0;

macro_rules! function {
    ($name:literal, $kind:ty) => {
        // SAFETY: the function has this type: see the module documentation.
        unsafe { std::mem::transmute::<*mut c_void, $kind>(symbol($name)?) }
    };
}

/// The torus of the job, and the place of this rank's node in it; `None` without Fujitsu MPI, while that does not
/// run, and for jobs whose nodes have no such place.
pub(super) fn coordinates() -> Option<Logical> {
    let get_dimension = function!(c"FJMPI_Topology_get_dimension", OneIntFn);
    let get_shape = function!(c"FJMPI_Topology_get_shape", ThreeIntsFn);
    let get_coords = function!(c"FJMPI_Topology_get_coords", CoordsFn);
    let is_initialized = function!(c"PMPI_Initialized", OneIntFn);
    let is_finalized = function!(c"PMPI_Finalized", OneIntFn);
    let get_rank = function!(c"PMPI_Comm_rank", RankFn);
    let world: Comm = symbol(c"ompi_mpi_comm_world")?;
    let (mut begun, mut ended, mut rank, mut n_dims) = (0, 0, 0, 0);
    let (mut sizes, mut at) = ([0 as c_int; 3], [0 as c_int; 3]);
    // SAFETY: the first two may be called at any time, the others while MPI runs. All write to the
    // numbers that they are given; there are not more than three dimensions.
    let codes = unsafe {
        if (is_initialized(&mut begun), is_finalized(&mut ended)) != (SUCCESS, SUCCESS)
            || begun == 0
            || ended != 0
        {
            return None;
        }
        let [x, y, z] = &mut sizes;
        [get_rank(world, &mut rank), get_dimension(&mut n_dims), get_shape(x, y, z)]
    };
    let n_dims = usize::try_from(n_dims).ok().filter(|n_dims| (1..=3).contains(n_dims))?;
    if codes != [SUCCESS; 3] {
        return None;
    }
    // SAFETY: as above.
    let code = unsafe { get_coords(world, rank, LOGICAL, n_dims as c_int, at.as_mut_ptr()) };
    let known = |list: [c_int; 3]| {
        let mut numbers = [0; 3];
        for (number, &found) in numbers.iter_mut().zip(&list[..n_dims]) {
            *number = u32::try_from(found).ok()?;
        }
        Some(numbers)
    };
    if code != SUCCESS {
        return None;
    }
    Some(Logical { sizes: known(sizes)?, at: known(at)? })
}
