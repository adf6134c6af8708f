//! The launcher's own messages on standard error. A thread writes them: a reader who has stopped keeps no rank
//! from being ended.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::forward;
use super::threads::{all_finish, thread};

/// See the module documentation.
pub(super) struct Messages {
    sender: Option<Sender<String>>,
    writer: JoinHandle<()>,
}

impl Messages {
    pub(super) fn start() -> io::Result<Self> {
        let (sender, messages) = channel::<String>();
        let writer = thread(move || {
            for message in messages {
                // There is no other place to say that nobody can read it.
                let _ = forward::to_stderr(format!("hopbine launch: {message}\n").as_bytes());
            }
        })?;
        Ok(Messages { sender: Some(sender), writer })
    }

    pub(super) fn say(&self, message: String) {
        // The thread ends after the sender.
        let _ = self.sender.as_ref().map(|sender| sender.send(message));
    }

    /// Waits for what is still to be written, but not for ever.
    pub(super) fn finish(&mut self, wait: Duration) {
        self.sender = None;
        all_finish(std::slice::from_ref(&self.writer), wait);
    }
}
