//! Ranks as threads of a C program.

use core::cell::Cell;
use core::ffi::c_int;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex, PoisonError};

use utofu_emu::Job;
use utofu_sys::{UTOFU_ERR_FATAL, UTOFU_ERR_INVALID_NUMBER, UTOFU_ERR_USED, UTOFU_SUCCESS};

/// The process's job of threads, and for each rank whether a thread has entered it.
static JOB: Mutex<Option<(Arc<Job>, Vec<bool>)>> = Mutex::new(None);

thread_local! {
    static ENTERED: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread rank `rank` of the process's job of `size` threads, one per node along y. The first call
/// creates the job. Returns `INVALID_NUMBER` if `rank` is not below `size`, `size` is above 255 or `size` differs
/// from that of earlier calls; `USED` if the rank is taken or the thread is a rank already; `FATAL` if the job cannot
/// be created.
#[unsafe(no_mangle)]
pub extern "C" fn utofu_emu_enter_as_thread(rank: c_int, size: c_int) -> c_int {
    catch_unwind(|| enter(rank, size).err().unwrap_or(UTOFU_SUCCESS)).unwrap_or(UTOFU_ERR_FATAL)
}

fn enter(rank: c_int, size: c_int) -> Result<(), c_int> {
    // Coordinates are bytes.
    const MOST: usize = 255;
    let number = |n: c_int| usize::try_from(n).map_err(|_| UTOFU_ERR_INVALID_NUMBER);
    let (rank, size) = (number(rank)?, number(size)?);
    if rank >= size || size > MOST {
        return Err(UTOFU_ERR_INVALID_NUMBER);
    }
    if ENTERED.get() {
        return Err(UTOFU_ERR_USED);
    }
    let mut job = JOB.lock().unwrap_or_else(PoisonError::into_inner);
    let (job, taken) = job.get_or_insert_with(|| {
        let row = (0..size).map(|y| [0, y as u8, 0, 0, 0, 0]).collect();
        (Job::threads(row), vec![false; size])
    });
    if taken.len() != size {
        return Err(UTOFU_ERR_INVALID_NUMBER);
    }
    if std::mem::replace(&mut taken[rank], true) {
        return Err(UTOFU_ERR_USED);
    }
    // The thread stays a rank until it ends.
    std::mem::forget(job.enter(rank));
    ENTERED.set(true);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, since the process has only one job of threads.
    #[test]
    fn every_rank_comes_once_and_all_agree_on_their_number() {
        let enter = |rank, size| {
            std::thread::spawn(move || utofu_emu_enter_as_thread(rank, size))
                .join()
                .expect("no panic")
        };
        assert_eq!(enter(2, 2), UTOFU_ERR_INVALID_NUMBER);
        assert_eq!(enter(-1, 2), UTOFU_ERR_INVALID_NUMBER);
        assert_eq!(enter(0, 256), UTOFU_ERR_INVALID_NUMBER);
        assert_eq!(enter(1, 2), UTOFU_SUCCESS);
        assert_eq!(enter(1, 2), UTOFU_ERR_USED);
        assert_eq!(enter(0, 3), UTOFU_ERR_INVALID_NUMBER);
        let twice = || (utofu_emu_enter_as_thread(0, 2), utofu_emu_enter_as_thread(0, 2));
        let twice = std::thread::spawn(twice).join().expect("no panic");
        assert_eq!(twice, (UTOFU_SUCCESS, UTOFU_ERR_USED));
    }
}
