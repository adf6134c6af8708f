//! An end point for tests: one VCQ and one registered buffer, with the calls unwrapped.
// Every test program uses a part of this.
#![allow(dead_code)]

use std::ffi::{c_ulong, c_void};
use std::sync::{Barrier, Mutex};
use utofu_emu::c;
use utofu_sys::*;

pub const TCQ: c_ulong = UTOFU_ONESIDED_FLAG_TCQ_NOTICE;
pub const LCL: c_ulong = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
pub const RMT: c_ulong = UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;

pub struct EndPoint {
    pub handle: utofu_vcq_hdl_t,
    pub id: utofu_vcq_id_t,
    pub stadd: utofu_stadd_t,
}

impl EndPoint {
    /// A VCQ on TNI 0 for the rank that the thread has entered. The buffer must outlive it.
    pub fn open(buf: &mut [u64]) -> EndPoint {
        EndPoint::open_on(0, buf)
    }

    pub fn open_on(tni: u16, buf: &mut [u64]) -> EndPoint {
        let (mut handle, mut id, mut stadd) = (0, 0, 0);
        // SAFETY: valid places for the results; the buffer outlives the end point.
        unsafe {
            assert_eq!(c::utofu_create_vcq(tni, 0, &mut handle), 0);
            assert_eq!(c::utofu_query_vcq_id(handle, &mut id), 0);
            let (p, n) = (buf.as_mut_ptr().cast(), size_of_val(buf));
            assert_eq!(c::utofu_reg_mem(handle, p, n, 0, &mut stadd), 0);
        }
        EndPoint { handle, id, stadd }
    }

    pub fn close(self) {
        // SAFETY: used by this thread only.
        unsafe {
            assert_eq!(c::utofu_dereg_mem(self.handle, self.stadd, 0), 0);
            assert_eq!(c::utofu_free_vcq(self.handle), 0);
        }
    }

    /// Puts eight bytes; polls the TCQ when the queue is full.
    pub fn piggyback8(&self, to: u64, value: u64, stadd: u64, edata: u64, flags: c_ulong) {
        loop {
            // SAFETY: the target's buffer outlives the operation.
            let rc = unsafe {
                c::utofu_put_piggyback8(
                    self.handle,
                    to,
                    value,
                    stadd,
                    8,
                    edata,
                    flags,
                    std::ptr::null_mut(),
                )
            };
            match rc {
                UTOFU_ERR_BUSY => assert_eq!(self.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND)),
                rc => return assert_eq!(rc, 0, "{}", last_error()),
            }
        }
    }

    pub fn put(
        &self,
        to: u64,
        from: u64,
        stadd: u64,
        len: usize,
        edata: u64,
        flags: c_ulong,
    ) -> i32 {
        // SAFETY: the buffers outlive the operation.
        unsafe {
            let h = self.handle;
            c::utofu_put(h, to, from, stadd, len, edata, flags, 7 as *mut c_void)
        }
    }

    pub fn get(
        &self,
        to: u64,
        into: u64,
        stadd: u64,
        len: usize,
        edata: u64,
        flags: c_ulong,
    ) -> i32 {
        // SAFETY: the buffers outlive the operation.
        unsafe {
            let h = self.handle;
            c::utofu_get(h, to, into, stadd, len, edata, flags, 8 as *mut c_void)
        }
    }

    pub fn poll_tcq(&self) -> Result<usize, i32> {
        let mut cb = std::ptr::null_mut();
        // SAFETY: a valid place for the result.
        match unsafe { c::utofu_poll_tcq(self.handle, 0, &mut cb) } {
            0 => Ok(cb as usize),
            rc => Err(rc),
        }
    }

    /// The return code and the notice.
    pub fn poll_mrq(&self) -> (i32, utofu_mrq_notice) {
        let mut notice = utofu_mrq_notice::default();
        // SAFETY: a valid place for the result.
        let rc = unsafe { c::utofu_poll_mrq(self.handle, 0, &mut notice) };
        (rc, notice)
    }

    pub fn wait_notice(&self) -> utofu_mrq_notice {
        loop {
            match self.poll_mrq() {
                (UTOFU_ERR_NOT_FOUND, _) => std::thread::yield_now(),
                (rc, notice) => {
                    assert_eq!(rc, 0, "{}", last_error());
                    return notice;
                }
            }
        }
    }
}

pub fn last_error() -> String {
    let mut text = [0u8; 1024];
    // SAFETY: 1024 bytes of room.
    unsafe { c::utofu_get_last_error(text.as_mut_ptr().cast_const().cast()) };
    let end = text.iter().position(|b| *b == 0).unwrap();
    String::from_utf8_lossy(&text[..end]).into_owned()
}

/// All threads give a value and get everyone's; also a barrier.
pub struct Exchange<T> {
    values: Mutex<Vec<Option<T>>>,
    barrier: Barrier,
}

impl<T: Copy> Exchange<T> {
    pub fn new(n: usize) -> Self {
        Exchange { values: Mutex::new(vec![None; n]), barrier: Barrier::new(n) }
    }

    pub fn gather(&self, rank: usize, value: T) -> Vec<T> {
        self.values.lock().unwrap()[rank] = Some(value);
        self.barrier.wait();
        let all = self.values.lock().unwrap().iter().map(|v| v.unwrap()).collect();
        self.barrier.wait();
        all
    }
}
