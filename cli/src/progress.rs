//! How far a command is, on standard error: a bar where someone watches; elsewhere nothing, or a line
//! now and then.

use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a line says how far it is.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A bar over `total` items of `what`, hidden unless standard error is a terminal.
///
/// It appears with the first item and vanishes when dropped, so that no trace is left
/// between the lines of output.
pub fn bar(total: u64, what: &str) -> Bar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(8));
    let template = "{prefix} [{wide_bar}] {pos}/{len} {msg} ({elapsed}, {eta} left)";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    Bar { bar, lines: None }
}

/// A [`bar`] of what takes minutes and prints nothing meanwhile: where the bar is hidden, a line every ten
/// seconds stands for it, so that a log shows that it goes on.
pub fn bar_or_lines(total: u64, what: &str) -> Bar {
    let mut bar = bar(total, what);
    if bar.bar.is_hidden() {
        bar.lines = Some(Lines::start(&bar.bar, LINE_EVERY, std::io::stderr()));
    }
    bar
}

/// A bar that clears itself.
pub struct Bar {
    bar: ProgressBar,
    lines: Option<Lines>,
}

impl Bar {
    /// Says what is being worked on.
    pub fn say(&self, message: &str) {
        self.bar.set_message(message.to_owned());
    }

    /// Adds `n` items to those that are to be done.
    pub fn expect(&self, n: u64) {
        self.bar.inc_length(n);
    }

    /// Hides the bar while `f` writes to the terminal.
    pub fn aside<R>(&self, f: impl FnOnce() -> R) -> R {
        self.bar.suspend(f)
    }

    /// Counts `n` items as done.
    pub fn advance(&self, n: u64) {
        self.bar.inc(n);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.lines.take();
        self.bar.finish_and_clear();
    }
}

/// A thread that writes a line now and then until this is dropped; nothing is written after that.
struct Lines {
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    fn start(bar: &ProgressBar, every: Duration, out: impl Write + Send + 'static) -> Lines {
        let (over, is_over) = channel();
        let bar = bar.clone();
        let thread = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || write_lines(&bar, every, &is_over, out));
        // Without a thread nothing is said.
        Lines { over: Some(over), thread: thread.ok() }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            // It has not panicked: writing cannot.
            let _ = thread.join();
        }
    }
}

/// A line after each time `every`, until the other end of `is_over` has gone or `out` takes no more.
fn write_lines(bar: &ProgressBar, every: Duration, is_over: &Receiver<()>, mut out: impl Write) {
    while is_over.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        let (done, total) = (bar.position(), bar.length().unwrap_or(0));
        if writeln!(out, "{}", line(&bar.prefix(), done, total, bar.elapsed())).is_err() {
            return;
        }
    }
}

/// `chaos: 40 of 100 after 20 s, about 30 s left`. What is left is unknown until something is done.
fn line(what: &str, done: u64, total: u64, elapsed: Duration) -> String {
    let so_far = format!("{what}: {done} of {total} after {:.0} s", elapsed.as_secs_f64());
    if done == 0 {
        return so_far;
    }
    let left = elapsed.as_secs_f64() * total.saturating_sub(done) as f64 / done as f64;
    format!("{so_far}, about {left:.0} s left")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands over whatever is written.
    struct Handed(Sender<Vec<u8>>);

    impl Write for Handed {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let gone = std::io::ErrorKind::BrokenPipe;
            self.0.send(bytes.to_vec()).map_err(|_| gone)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn hidden(total: u64) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        bar.with_prefix("chaos")
    }

    /// The next whole line.
    fn next(written: &Receiver<Vec<u8>>) -> String {
        let mut text = String::new();
        while !text.ends_with('\n') {
            let bytes = written.recv().expect("more is written");
            text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
        text
    }

    #[test]
    fn a_line_says_how_much_is_done_and_how_long_the_rest_may_take() {
        let after = Duration::from_secs;
        assert_eq!(line("chaos", 0, 100, after(10)), "chaos: 0 of 100 after 10 s");
        assert_eq!(
            line("chaos", 40, 100, after(20)),
            "chaos: 40 of 100 after 20 s, about 30 s left"
        );
        assert_eq!(line("chaos", 3, 2, after(1)), "chaos: 3 of 2 after 1 s, about 0 s left");
    }

    #[test]
    fn lines_come_while_work_goes_on_and_none_after_it() {
        let (send, written) = channel();
        let bar = hidden(8);
        let lines = Lines::start(&bar, Duration::from_millis(1), Handed(send));
        assert!(next(&written).starts_with("chaos: 0 of 8 after "));
        bar.inc(3);
        while !next(&written).starts_with("chaos: 3 of 8 after ") {}
        drop(lines);
        while written.try_recv().is_ok() {}
        assert!(written.recv().is_err(), "the thread still writes");
    }

    #[test]
    fn whoever_cannot_be_written_to_is_left_alone() {
        let (send, written) = channel();
        drop(written);
        let (_over, is_over) = channel();
        // It returns, though nobody has said that the work is over.
        write_lines(&hidden(1), Duration::from_millis(1), &is_over, Handed(send));
    }
}
