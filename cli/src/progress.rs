//! Progress of a command on standard error: a bar on a terminal, otherwise nothing or a line from time to time.

use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Interval between two lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A progress bar over `total` items of the task `what`, hidden unless standard error is a terminal.
///
/// The bar appears with the first item and vanishes when dropped, so that it leaves no trace between lines of output.
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

/// A [`bar`] for a task that takes minutes without output. If the bar is hidden, a line every ten seconds replaces
/// it, so that a log shows progress.
pub fn bar_or_lines(total: u64, what: &str) -> Bar {
    let mut bar = bar(total, what);
    if bar.bar.is_hidden() {
        bar.lines = Some(Lines::start(&bar.bar, LINE_EVERY, std::io::stderr()));
    }
    bar
}

/// A progress bar that clears itself when dropped.
pub struct Bar {
    bar: ProgressBar,
    lines: Option<Lines>,
}

impl Bar {
    /// Sets the message about the current item.
    pub fn say(&self, message: &str) {
        self.bar.set_message(message.to_owned());
    }

    /// Adds `n` items to the total.
    pub fn expect(&self, n: u64) {
        self.bar.inc_length(n);
    }

    /// Hides the bar while `f` writes to the terminal.
    pub fn aside<R>(&self, f: impl FnOnce() -> R) -> R {
        self.bar.suspend(f)
    }

    /// Marks `n` items as done.
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

/// A thread that writes a progress line from time to time. After this is dropped, nothing more is written.
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
        // If the thread cannot be started, no lines are written.
        Lines { over: Some(over), thread: thread.ok() }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            // The thread has not panicked, since writing cannot.
            let _ = thread.join();
        }
    }
}

/// Writes a line after each interval `every`, until the sender of `is_over` is dropped or `out` fails.
fn write_lines(bar: &ProgressBar, every: Duration, is_over: &Receiver<()>, mut out: impl Write) {
    while is_over.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        let (done, total) = (bar.position(), bar.length().unwrap_or(0));
        if writeln!(out, "{}", line(&bar.prefix(), done, total, bar.elapsed())).is_err() {
            return;
        }
    }
}

/// Formats `chaos: 40 of 100 after 20 s, about 30 s left`. The remaining time is omitted while no item is done.
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

    /// Sends all written bytes to a channel.
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

    /// The next complete line.
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
        // Returns although the sender of `is_over` still exists.
        write_lines(&hidden(1), Duration::from_millis(1), &is_over, Handed(send));
    }
}
