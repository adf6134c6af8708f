//! The launcher's own messages on standard error. A separate thread writes them, so that a blocked reader does not
//! keep the launcher from ending the ranks.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::forward;
use super::threads::{in_time, thread};

/// Sender of messages to the thread that writes them.
pub(super) struct Messages {
    sender: Option<Sender<String>>,
    writer: JoinHandle<()>,
}

impl Messages {
    pub(super) fn start() -> io::Result<Self> {
        let (sender, messages) = channel::<String>();
        let writer = thread(move || {
            for message in messages {
                // An error on standard error cannot be reported anywhere else.
                let _ = forward::to_stderr(format!("hopbine launch: {message}\n").as_bytes());
            }
        })?;
        Ok(Messages { sender: Some(sender), writer })
    }

    pub(super) fn say(&self, message: String) {
        // The thread lives until the sender is dropped.
        let _ = self.sender.as_ref().map(|sender| sender.send(message));
    }

    /// Waits until the remaining messages are written, at most for `wait`.
    pub(super) fn finish(&mut self, wait: Duration) {
        self.sender = None;
        in_time(|| self.writer.is_finished(), wait);
    }
}
