//! How the program that calls hopbine uses its cores, as far as that can be seen.

use std::ffi::{c_int, c_void};

use hopbine_meet::variables::Lookup;

use super::config::core_range;
use crate::symbols::symbol;

/// Threads that the program computes with, its main thread among them: those of the OpenMP runtime if it is in the
/// process, else those of the variables of OpenMP and of Fujitsu's automatic parallelisation.
pub(super) fn n_threads(get: Lookup<'_>) -> usize {
    let omp = symbol(c"omp_get_max_threads").map(|found| {
        // SAFETY: OpenMP 5.2, section 18.2.3: `int omp_get_max_threads(void)`, which may be called at any
        // time.
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(found)() }
    });
    omp.and_then(|n| usize::try_from(n).ok())
        .unwrap_or_else(|| threads_from_environment(get))
        .max(1)
}

/// Cores of the places to which the OpenMP runtime binds threads; `None` without such a runtime. Empty if it binds
/// none.
pub(super) fn openmp_cores() -> Option<Vec<usize>> {
    let places = symbol(c"omp_get_num_places")?;
    let sizes = symbol(c"omp_get_place_num_procs")?;
    let lists = symbol(c"omp_get_place_proc_ids")?;
    // SAFETY: OpenMP 5.2, sections 18.3.2 to 18.3.4: `int omp_get_num_places(void)`, `int
    // omp_get_place_num_procs(int)` and `void omp_get_place_proc_ids(int, int *)`, which writes as many numbers as the
    // second one says. They may be called at any time.
    unsafe {
        let n_places = std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(places)();
        let size = std::mem::transmute::<*mut c_void, extern "C" fn(c_int) -> c_int>(sizes);
        let list =
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int, *mut c_int)>(lists);
        let of_place = |place| {
            let mut cores = vec![0; usize::try_from(size(place)).unwrap_or(0)];
            list(place, cores.as_mut_ptr());
            cores.into_iter().filter_map(|core| usize::try_from(core).ok())
        };
        Some((0..n_places).flat_map(of_place).collect())
    }
}

/// The larger of `PARALLEL` and `OMP_NUM_THREADS` (the first number, if it lists one for each level); 1 without
/// them.
fn threads_from_environment(get: Lookup<'_>) -> usize {
    let first = |name: &str| get(name)?.split(',').next()?.trim().parse().ok();
    ["OMP_NUM_THREADS", "PARALLEL"].into_iter().filter_map(first).max().unwrap_or(1)
}

/// The cores of the program's threads, one by one, if `FLIB_CPU_AFFINITY` of Fujitsu's runtime or
/// `GOMP_CPU_AFFINITY` of GCC's names them, as in `0 3 12-59:4`, where 4 is the step in a range. Empty if the list
/// cannot be read.
pub(super) fn bound_to(get: Lookup<'_>) -> Vec<usize> {
    let part = |text: &str| {
        let (range, step) = text.split_once(':').unwrap_or((text, "1"));
        let step: usize = step.parse().ok().filter(|&step| step > 0)?;
        Some(core_range(range)?.step_by(step))
    };
    let text = ["FLIB_CPU_AFFINITY", "GOMP_CPU_AFFINITY"].into_iter().find_map(get);
    let text = text.unwrap_or_default();
    let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
    let parts: Option<Vec<_>> = parts.map(part).collect();
    parts.into_iter().flatten().flatten().collect()
}

/// Whether the program was not built for hopbine: `libhopbine_preload.so` is loaded before its MPI.
pub(super) fn is_preloaded() -> bool {
    symbol(c"hopbine_is_preloaded").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_openmp_count() {
        let with = |name: &'static str, text: &'static str| {
            threads_from_environment(&move |asked: &str| (asked == name).then(|| text.to_owned()))
        };
        assert_eq!(with("OMP_NUM_THREADS", "12"), 12);
        assert_eq!(with("OMP_NUM_THREADS", " 4,2"), 4);
        assert_eq!(with("PARALLEL", "11"), 11);
        assert_eq!(with("OMP_NUM_THREADS", "many"), 1);
        assert_eq!(with("OTHER", "3"), 1);
    }

    #[test]
    fn lists_of_cores_are_read() {
        let of = |name: &'static str, text: &'static str| {
            bound_to(&move |asked: &str| (asked == name).then(|| text.to_owned()))
        };
        assert_eq!(of("FLIB_CPU_AFFINITY", "12-59:1"), (12..60).collect::<Vec<_>>());
        assert_eq!(of("GOMP_CPU_AFFINITY", "0 3 1-2 4-15:2"), [0, 3, 1, 2, 4, 6, 8, 10, 12, 14]);
        assert_eq!(of("FLIB_CPU_AFFINITY", "12,24"), [12, 24]);
        for text in ["", "12-", "59-12", "0-3:0", "all", "0 99999999"] {
            assert!(of("FLIB_CPU_AFFINITY", text).is_empty(), "{text}");
        }
        assert!(of("FLIB_BARRIER", "1").is_empty());
    }
}
