//! Progress bars on standard error: only where someone watches.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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
    Bar(bar)
}

/// A bar that clears itself.
pub struct Bar(ProgressBar);

impl Bar {
    /// Says what is being worked on.
    pub fn say(&self, message: &str) {
        self.0.set_message(message.to_owned());
    }

    /// Adds `n` items to those that are to be done.
    pub fn expect(&self, n: u64) {
        self.0.inc_length(n);
    }

    /// Hides the bar while `f` writes to the terminal.
    pub fn aside<R>(&self, f: impl FnOnce() -> R) -> R {
        self.0.suspend(f)
    }

    /// Counts `n` items as done.
    pub fn advance(&self, n: u64) {
        self.0.inc(n);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
