//! Forwards the ranks' output line by line, so that lines of two ranks never mix.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

use super::threads::thread;

/// Length in bytes above which a line is forwarded in pieces.
const LONGEST_LINE: usize = 64 * 1024;

/// Forwards a line.
pub(super) type Writer = fn(&[u8]) -> io::Result<()>;

/// A thread that forwards a pipe until its end.
pub(super) struct Forwarder {
    thread: JoinHandle<()>,
    writer: Writer,
    /// Open as long as this value: if it were closed when the output is lost, the rank would end by SIGPIPE, as if it
    /// had failed by itself.
    pipe: Arc<File>,
    /// A line whose end is not there yet. The thread reads and writes with the lock, so that whenever the lock is free,
    /// all that has left the pipe is written, but for this line.
    held: Arc<Mutex<Vec<u8>>>,
}

impl Forwarder {
    /// Starts the thread, which calls `lost` if the output cannot be written.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn start(
        pipe: OwnedFd,
        tag: String,
        writer: Writer,
        lost: impl FnOnce(io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let pipe = Arc::new(File::from(pipe));
        let held = Arc::new(Mutex::new(Vec::new()));
        let (from, line) = (pipe.clone(), held.clone());
        let thread = thread(move || {
            let wait = || _ = is_readable(&*from, None);
            lines(&*from, &tag, &line, wait, writer).unwrap_or_else(lost);
        })?;
        Ok(Forwarder { thread, writer, pipe, held })
    }

    /// Whether the thread has come to the end of its pipe, or its output is lost.
    pub(super) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Writes a line whose end does not come, since a process left behind keeps the pipe open.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn flush(&self) -> io::Result<()> {
        // A thread that has the lock writes by itself.
        let Ok(mut line) = self.held.try_lock() else { return Ok(()) };
        (self.writer)(&std::mem::take(&mut *line))
    }

    /// Whether the thread still has whole lines to write, which the reader of the output has not taken.
    pub(super) fn has_lines(&self) -> bool {
        self.has_more(|_| false)
    }

    /// Whether the thread still has something to write, be it a line whose end is not there yet.
    pub(super) fn has_rest(&self) -> bool {
        self.has_more(|line| !line.is_empty())
    }

    /// Whether something is in the pipe, or is being written; otherwise what `held` says of the line without an end.
    fn has_more(&self, held: impl Fn(&[u8]) -> bool) -> bool {
        // The pipe first: the thread has the lock before it takes something from the pipe.
        !self.is_finished()
            && (is_readable(&*self.pipe, Some(&Timespec::default()))
                || self.held.try_lock().map_or(true, |line| held(&line)))
    }
}

/// Waits until a pipe has bytes or is closed, at most for `limit`; returns whether it has bytes.
fn is_readable(pipe: impl AsFd, limit: Option<&Timespec>) -> bool {
    let mut pipe = [PollFd::new(&pipe, PollFlags::IN)];
    // After an error the next read waits, or fails.
    let _ = retry_on_intr(|| poll(&mut pipe, limit));
    pipe[0].revents().contains(PollFlags::IN)
}

/// Copies `from` to `to` until its end, each line in one write with `tag` before it. With a tag, a last line without
/// a newline gets one; without a tag, the rank's output is unchanged. `wait` waits for more, without the lock.
///
/// # Errors
/// If `to` cannot be written. A failure to read counts as the end of the input.
fn lines(
    mut from: impl Read,
    tag: &str,
    held: &Mutex<Vec<u8>>,
    wait: impl Fn(),
    mut to: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut bytes = [0; 8192];
    let mut is_begun = false;
    loop {
        wait();
        let mut line = held.lock().unwrap_or_else(PoisonError::into_inner);
        let more = match from.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            n => &bytes[..n.unwrap_or(0)],
        };
        if more.is_empty() {
            if !line.is_empty() {
                to(&std::mem::take(&mut *line))?;
            }
            return if is_begun && !tag.is_empty() { to(b"\n") } else { Ok(()) };
        }
        for piece in more.split_inclusive(|&byte| byte == b'\n') {
            if !is_begun {
                line.extend_from_slice(tag.as_bytes());
            }
            line.extend_from_slice(piece);
            is_begun = !piece.ends_with(b"\n");
            if !is_begun || line.len() >= LONGEST_LINE {
                to(&std::mem::take(&mut *line))?;
            }
        }
    }
}

/// Writes to standard output and flushes it.
pub(super) fn to_stdout(line: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(line)?;
    out.flush()
}

/// Writes to standard error, which is not buffered.
pub(super) fn to_stderr(line: &[u8]) -> io::Result<()> {
    io::stderr().lock().write_all(line)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn lines_stay_whole_and_get_their_tag() {
        let passed_on = |text: &[u8], tag| {
            let mut seen = Vec::new();
            let keep = |line: &[u8]| {
                seen.push(String::from_utf8_lossy(line).into_owned());
                Ok(())
            };
            lines(text, tag, &Mutex::default(), || (), keep).unwrap();
            seen
        };
        let seen = passed_on(b"one\ntwo\n\nlast", "[3] ");
        assert_eq!(seen, ["[3] one\n", "[3] two\n", "[3] \n", "[3] last", "\n"]);
        assert_eq!(passed_on(b"one\nlast", ""), ["one\n", "last"]);
        let long = "x".repeat(LONGEST_LINE + 7) + "\nlast\n";
        assert_eq!(passed_on(long.as_bytes(), "").concat(), long);
        assert_eq!(
            passed_on(long.as_bytes(), "[3] ").concat(),
            format!("[3] {}[3] last\n", &long[..long.len() - 5])
        );
    }

    #[test]
    fn a_closed_output_ends_it() {
        let closed = |_: &[u8]| Err(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(lines(&b"one\n"[..], "", &Mutex::default(), || (), closed).is_err());
    }

    /// Also between two writes of the thread.
    #[test]
    fn what_is_not_written_is_known() {
        static WRITTEN: AtomicUsize = AtomicUsize::new(0);
        let count = |line: &[u8]| {
            WRITTEN.fetch_add(line.len(), Ordering::Relaxed);
            Ok(())
        };
        let (pipe, rank) = rustix::pipe::pipe().unwrap();
        let mut rank = File::from(rank);
        let forwarder = Forwarder::start(pipe, String::new(), count, |_| ()).unwrap();
        for round in 1..=100 {
            rank.write_all(&b"line\n".repeat(2000)).unwrap();
            while forwarder.has_rest() {}
            assert_eq!(WRITTEN.load(Ordering::Relaxed), round * 10_000);
        }
        rank.write_all(b"no end").unwrap();
        while forwarder.has_lines() {}
        assert!(forwarder.has_rest());
        forwarder.flush().unwrap();
        assert!(!forwarder.has_rest());
        assert_eq!(WRITTEN.load(Ordering::Relaxed), 1_000_006);
    }
}
