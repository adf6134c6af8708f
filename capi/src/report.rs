//! HOPBINE_REPORT: which algorithms served which calls, and how long the calls took.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int};
use std::fs::File;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hopbine::{CacheStats, Call, Explanation};
use hopbine::{Communicator, Error, World};
use hopbine_meet::print_remark;
use hopbine_meet::variables::{REPORT, from_environment, job};

use crate::calls::dtype;
use crate::failure::{Failure, HOPBINE_ERR_ARG, entry, out};
use crate::handles::{find_comm, hopbine_comm_t};

/// Whether a report was requested, and its file; no file means standard error.
static WANTED: LazyLock<(bool, Option<String>)> = LazyLock::new(|| {
    REPORT.switch_or_path(&from_environment, false).unwrap_or_else(|error| {
        print_remark(format_args!("hopbine: {error}"));
        (true, None)
    })
});

/// Whether a report was requested.
pub(crate) fn is_wanted() -> bool {
    WANTED.0
}

/// Statistics of the calls of one kind and size class.
#[derive(Clone, Debug, Default)]
struct Line {
    calls: u64,
    time: Duration,
    longest: Duration,
}

/// Lines by call, size class, and the algorithm with the reason for its choice.
static LINES: Mutex<BTreeMap<(String, u32, String), Line>> = Mutex::new(BTreeMap::new());

/// The class of a size: 0 for 0 bytes, else 1 + the logarithm of the size to base 2, rounded up.
fn class_of(bytes: u64) -> u32 {
    if bytes == 0 { 0 } else { bytes.next_power_of_two().trailing_zeros() + 1 }
}

fn class_name(class: u32) -> String {
    match class {
        0 => "0 B".to_owned(),
        1..=10 => format!("<= {} B", 1u64 << (class - 1)),
        11..=20 => format!("<= {} KiB", 1u64 << (class - 11)),
        21..=30 => format!("<= {} MiB", 1u64 << (class - 21)),
        _ => format!("<= {} GiB", 1u64 << (class - 31)),
    }
}

fn record_call(call: String, bytes: u64, served_by: String, time: Duration) {
    let lines = &mut *LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let line = lines.entry((call, class_of(bytes), served_by)).or_default();
    line.calls += 1;
    line.time += time;
    line.longest = line.longest.max(time);
}

/// The algorithm that serves a call, and why; or why none does.
fn served_by(found: Result<Explanation, Error>) -> String {
    found.map_or_else(|error| error.to_string(), |explanation| explanation.to_string())
}

/// Makes a call, and records it if a report was requested and the call succeeds.
pub(crate) fn timed(
    comm: &Communicator,
    call: &Call,
    make: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    if !is_wanted() {
        return make();
    }
    let start = Instant::now();
    let outcome = make();
    let time = start.elapsed();
    if outcome.is_ok() {
        record_call(call.collective.to_string(), call.bytes(), served_by(comm.explain(call)), time);
    }
    outcome
}

/// A call with a request, recorded from its start to its end, if it succeeds.
pub(crate) struct CallRecord {
    call: String,
    bytes: u64,
    served_by: String,
    start: Instant,
}

impl CallRecord {
    /// A call that has just been started or prepared; None if no report was requested.
    pub(crate) fn new(comm: &Communicator, call: &Call, is_persistent: bool) -> Option<Box<Self>> {
        if !is_wanted() {
            return None;
        }
        let collective = call.collective;
        Some(Box::new(CallRecord {
            call: if is_persistent {
                format!("{collective}_init")
            } else {
                format!("i{collective}")
            },
            bytes: call.bytes(),
            served_by: served_by(comm.explain_started(call)),
            start: Instant::now(),
        }))
    }

    /// Records the start of a persistent call.
    pub(crate) fn begin(&mut self) {
        self.start = Instant::now();
    }

    /// Records the end of the call, at the time when its owner detects it.
    pub(crate) fn end(&self) {
        record_call(self.call.clone(), self.bytes, self.served_by.clone(), self.start.elapsed());
    }
}

/// Clears the records of this rank. Prints them if a report was requested and this is rank 0.
pub(crate) fn print(world: &World) {
    let comm = world.communicator();
    let lines = std::mem::take(&mut *LINES.lock().unwrap_or_else(PoisonError::into_inner));
    if !is_wanted() || comm.rank() != 0 {
        return;
    }
    let info = world.info();
    let long_waits = match info.long_waits {
        0 => String::new(),
        n => format!("waits longer than HOPBINE_TIMEOUT: {n}\n"),
    };
    let mut text = format!(
        "hopbine report: rank 0 of {} on {}; messages: {}\nports: {}, driven by {}\n{long_waits}{}{:<24} {:>10} {:>9} {:>12} {:>12}  served by\n",
        comm.size(),
        comm.shape(),
        info.wires(),
        info.ports,
        info.driven_by,
        info.registration_cache.as_ref().map_or_else(String::new, registrations),
        "call",
        "size",
        "calls",
        "mean us",
        "longest us"
    );
    for ((call, class, served_by), Line { calls, time, longest }) in lines {
        let mean = time.as_secs_f64() * 1e6 / calls as f64;
        let longest = longest.as_secs_f64() * 1e6;
        let size = class_name(class);
        text += &format!(
            "{call:<24} {size:>10} {calls:>9} {mean:>12.2} {longest:>12.2}  {served_by}\n"
        );
    }
    match &WANTED.1 {
        Some(name) => append(&name.replace("%j", &job()), &text),
        None => print_remark(text.trim_end()),
    }
}

/// Statistics of registrations, on a wire that has registrations.
fn registrations(cache: &CacheStats) -> String {
    let CacheStats { registrations, deregistrations, hits, staged_bytes, .. } = cache;
    format!(
        "registrations: {registrations} made, {deregistrations} ended, {hits} found; {staged_bytes} bytes copied \
         instead; {}\n",
        cache.policy()
    )
}

/// Appends a report to a file in one write, since several programs of a job may use the same file; writes it to
/// standard error if the file cannot be written.
fn append(path: &str, text: &str) {
    let open = File::options().append(true).create(true).open(path);
    if let Err(error) = open.and_then(|mut file| file.write_all(text.as_bytes())) {
        print_remark(format_args!(
            "hopbine: HOPBINE_REPORT: {path} cannot be written: {error}\n{}",
            text.trim_end()
        ));
    }
}

/// Returns 1 if HOPBINE_REPORT requests a report, which hopbine_finalize() prints; else 0.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_report_wanted() -> c_int {
    c_int::from(is_wanted())
}

/// Adds a call that another library has performed to the report: its name, the bytes of its vector or block, what
/// served it and why, and its duration in seconds.
///
/// # Safety
/// Each string is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_report_add(
    call: *const c_char,
    bytes: u64,
    served_by: *const c_char,
    seconds: f64,
) -> c_int {
    entry(|| {
        if !is_wanted() {
            return Ok(());
        }
        let text = |string: *const c_char| {
            if string.is_null() {
                return Err(Failure::new(HOPBINE_ERR_ARG, "a string is null"));
            }
            // SAFETY: the caller's promise.
            Ok(unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned())
        };
        let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        record_call(text(call)?, bytes, text(served_by)?, time);
        Ok(())
    })
}

/// Writes to `text` which algorithm serves a blocking collective of `count` elements, and why. The text is cut to
/// `room` bytes, including the terminating zero. `collective` is a name of `hopbine list`, such as "allreduce". `op`
/// matters for reductions only.
///
/// # Safety
/// `collective` is null or a string; `text` is null or has `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_explain(
    comm: hopbine_comm_t,
    collective: *const c_char,
    count: i64,
    datatype: c_int,
    op: c_int,
    text: *mut c_char,
    room: usize,
) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        unsafe { out(text, "text") }?;
        let wrong = |what: &str| Failure::new(HOPBINE_ERR_ARG, what);
        if collective.is_null() || room == 0 {
            return Err(wrong("the collective's name is null, or there is no room for the text"));
        }
        // SAFETY: the caller's promise.
        let name = unsafe { CStr::from_ptr(collective) }.to_string_lossy();
        let collective = name.parse().map_err(|_| wrong("there is no collective of that name"))?;
        let count = u64::try_from(count).map_err(|_| wrong("a negative count"))?;
        let mut call = Call::new(collective, count, dtype(datatype)?);
        if collective.is_reduction() {
            call.op = Some(crate::calls::operator(op)?);
        }
        let line = find_comm(comm)?.explain(&call)?.to_string();
        let len = line.len().min(room - 1);
        // SAFETY: the caller's promise: the text and its terminating zero fit in `room` bytes.
        unsafe {
            text.copy_from_nonoverlapping(line.as_ptr().cast(), len);
            text.add(len).write(0);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_into_classes() {
        for (bytes, name) in [
            (0, "0 B"),
            (1, "<= 1 B"),
            (8, "<= 8 B"),
            (9, "<= 16 B"),
            (512, "<= 512 B"),
            (1024, "<= 1 KiB"),
            (1 << 20, "<= 1 MiB"),
            ((1 << 20) + 1, "<= 2 MiB"),
            (1 << 31, "<= 2 GiB"),
        ] {
            assert_eq!(class_name(class_of(bytes)), name, "{bytes}");
        }
    }
}
