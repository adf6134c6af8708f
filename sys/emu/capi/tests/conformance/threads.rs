//! Ranks as threads: a process that loads one copy of the suite for each of them.

use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libloading::Library;

/// Tells this program to be the rank holder: the shared object, then directory, size and case as
/// arguments.
const ROLE: &str = "HOPBINE_CONFORMANCE_SUITE";

/// A command that runs a case with ranks as threads; `dir` is for the copies.
pub fn rank_holder(suite: &Path, dir: &Path, size: usize, case: &str) -> Command {
    let mut c = Command::new(std::env::current_exe().expect("known"));
    c.env(ROLE, suite).arg(dir).arg(size.to_string()).arg(case);
    c
}

/// Runs the case if this process was started by [`rank_holder`]'s command.
pub fn as_rank_holder() -> Option<ExitCode> {
    let suite = PathBuf::from(std::env::var_os(ROLE)?);
    let arguments: Vec<_> = std::env::args().collect();
    let [_, dir, size, case] = arguments.as_slice() else {
        panic!("a rank holder has three arguments: {arguments:?}");
    };
    let size: usize = size.parse().expect("a number");
    let copies: Vec<_> =
        (0..size).map(|rank| Path::new(dir).join(format!("rank{rank}.so"))).collect();
    let status = std::thread::scope(|s| {
        let ranks: Vec<_> = copies
            .iter()
            .enumerate()
            .map(|(rank, copy)| {
                std::fs::copy(&suite, copy).expect("can be copied");
                s.spawn(move || rank_main(copy, rank as c_int, size as c_int, case))
            })
            .collect();
        ranks.into_iter().map(|r| r.join().expect("does not panic")).max()
    });
    Some(ExitCode::from(u8::try_from(status.unwrap_or(1)).unwrap_or(1)))
}

fn rank_main(copy: &Path, rank: c_int, size: c_int, case: &str) -> c_int {
    // SAFETY: the suite and the device have no initialisers that could go wrong.
    let suite = unsafe { Library::new(copy) }.expect("was built");
    let program = CString::new("conformance").expect("no zero");
    let case = CString::new(case).expect("no zero");
    let mut argv = [program.as_ptr().cast_mut(), case.as_ptr().cast_mut(), std::ptr::null_mut()];
    // SAFETY: these are the types in conformance.c and harness_threads.c; argv is what a main gets,
    // and outlives it. The copy's static state is this thread's alone.
    let status = unsafe {
        let is = suite.get::<unsafe extern "C" fn(c_int, c_int)>(b"hx_thread_is").expect("there");
        let main = suite
            .get::<unsafe extern "C" fn(c_int, *mut *mut c_char) -> c_int>(b"main")
            .expect("there");
        is(rank, size);
        main(2, argv.as_mut_ptr())
    };
    // The signal handlers that the suite installed point into the copy.
    std::mem::forget(suite);
    status
}
