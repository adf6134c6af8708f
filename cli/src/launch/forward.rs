//! Forwards the ranks' output line by line, so that lines of two ranks never mix.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::threads::thread;

/// Length in bytes above which a line is forwarded in pieces.
const LONGEST_LINE: usize = 64 * 1024;

/// Forwards a line.
pub(super) type Writer = fn(&[u8]) -> io::Result<()>;

/// A thread that forwards a stream until its end.
pub(super) struct Forwarder {
    thread: JoinHandle<()>,
    writer: Writer,
    /// A line whose end is not there yet.
    held: Arc<Mutex<Vec<u8>>>,
    is_writing: Arc<AtomicBool>,
}

impl Forwarder {
    /// Starts the thread, which calls `lost` if the output cannot be written.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn start(
        mut stream: impl Read + Send + 'static,
        tag: String,
        writer: Writer,
        lost: impl FnOnce(io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let is_writing = Arc::new(AtomicBool::new(false));
        let flag = is_writing.clone();
        let held = Arc::new(Mutex::new(Vec::new()));
        let line = held.clone();
        let thread = thread(move || {
            // Relaxed: the flag orders no other data.
            let write = |line: &[u8]| {
                flag.store(true, Ordering::Relaxed);
                let written = writer(line);
                flag.store(false, Ordering::Relaxed);
                written
            };
            if let Err(error) = lines(&mut stream, &tag, &line, write) {
                lost(error);
                // A closed stream would end the rank by SIGPIPE: as if it had failed by itself.
                std::mem::forget(stream);
            }
        })?;
        Ok(Forwarder { thread, writer, held, is_writing })
    }

    /// Whether the thread has come to the end of its stream, or its output is lost.
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

    /// Whether the thread writes, and so has something that the reader of the output has not taken.
    pub(super) fn is_writing(&self) -> bool {
        self.is_writing.load(Ordering::Relaxed)
    }
}

/// Copies `from` to `to` until its end, each line in one write with `tag` before it. With a tag, a last line without
/// a newline gets one; without a tag, the rank's output is unchanged.
///
/// # Errors
/// If `to` cannot be written. A failure to read counts as the end of the input.
fn lines(
    from: impl Read,
    tag: &str,
    held: &Mutex<Vec<u8>>,
    mut to: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut is_begun = false;
    loop {
        // The line is not locked while this waits for more of it.
        let more = match from.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            more => more.unwrap_or_default(),
        };
        let mut line = held.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_begun && !more.is_empty() {
            line.extend_from_slice(tag.as_bytes());
        }
        is_begun |= !more.is_empty();
        let is_over = more.is_empty();
        let end = more.iter().position(|&byte| byte == b'\n').map_or(more.len(), |at| at + 1);
        line.extend_from_slice(&more[..end]);
        from.consume(end);
        let is_whole = line.last() == Some(&b'\n');
        if is_whole || (is_over && !line.is_empty()) || line.len() >= LONGEST_LINE {
            to(&std::mem::take(&mut *line))?;
        }
        is_begun &= !is_whole;
        if is_over {
            return if is_begun && !tag.is_empty() { to(b"\n") } else { Ok(()) };
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
    use super::*;

    #[test]
    fn lines_stay_whole_and_get_their_tag() {
        let passed_on = |text: &[u8], tag| {
            let mut seen = Vec::new();
            let keep = |line: &[u8]| {
                seen.push(String::from_utf8_lossy(line).into_owned());
                Ok(())
            };
            lines(text, tag, &Mutex::default(), keep).unwrap();
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
        assert!(lines(&b"one\n"[..], "", &Mutex::default(), closed).is_err());
    }
}
