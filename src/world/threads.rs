//! What the program that calls hopbine does with its cores, as far as that can be seen.

use std::ffi::c_int;

use hopbine_meet::variables::Lookup;

use crate::symbols::symbol;

/// Threads that the program computes with, its main thread among them: those of OpenMP's runtime where it
/// is in the process, else what the variables of OpenMP and of Fujitsu's automatic parallelisation say.
pub(super) fn n_threads(get: Lookup<'_>) -> usize {
    let omp = symbol(c"omp_get_max_threads").map(|found| {
        // SAFETY: OpenMP 5.2, section 18.2.3: `int omp_get_max_threads(void)`, which may be called at any
        // time.
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, extern "C" fn() -> c_int>(found)() }
    });
    omp.and_then(|n| usize::try_from(n).ok()).unwrap_or_else(|| said(get)).max(1)
}

/// What `OMP_NUM_THREADS` (a list: one number for each level) and `PARALLEL` say; 1 without them.
fn said(get: Lookup<'_>) -> usize {
    let first = |name: &str| get(name)?.split(',').next()?.trim().parse().ok();
    ["OMP_NUM_THREADS", "PARALLEL"].into_iter().filter_map(first).max().unwrap_or(1)
}

/// Whether the program was not built for hopbine: `libhopbine_preload.so` stands before its MPI.
pub(super) fn is_preloaded() -> bool {
    symbol(c"hopbine_is_preloaded").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_openmp_count() {
        let with = |name: &'static str, text: &'static str| {
            said(&move |asked: &str| (asked == name).then(|| text.to_owned()))
        };
        assert_eq!(with("OMP_NUM_THREADS", "12"), 12);
        assert_eq!(with("OMP_NUM_THREADS", " 4,2"), 4);
        assert_eq!(with("PARALLEL", "11"), 11);
        assert_eq!(with("OMP_NUM_THREADS", "many"), 1);
        assert_eq!(with("OTHER", "3"), 1);
    }
}
