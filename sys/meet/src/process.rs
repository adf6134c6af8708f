//! A process's state in `/proc`.

use std::io;

use rustix::io::Errno;

/// A process, as `/proc` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The state of its first thread, a letter: `Z` for one that has ended.
    pub state: u8,
    /// Its parent's process id.
    pub parent: u32,
    /// Its threads, of which the first counts until the process is reaped.
    pub threads: u32,
    /// Time of its start, in clock ticks since the host's start.
    pub started: u64,
}

impl Stat {
    /// Reads the state of the process with this number in `/proc`; `None` if there is no such process.
    ///
    /// # Errors
    /// The system's error, if this process cannot read the state.
    pub fn of(pid: u32) -> io::Result<Option<Stat>> {
        // The file of the first thread: qemu-user fabricates the process's file, differently in every thread.
        let text = match std::fs::read(format!("/proc/{pid}/task/{pid}/stat")) {
            Ok(text) => text,
            Err(error) => match Errno::from_io_error(&error) {
                // The process may end between the opening and the reading.
                Some(Errno::NOENT | Errno::SRCH) => return Ok(None),
                _ => return Err(error),
            },
        };
        Ok(Stat::parse(&text))
    }

    fn parse(text: &[u8]) -> Option<Stat> {
        // The second field, the name in parentheses, may contain spaces and parentheses.
        let rest = &text[text.iter().rposition(|&byte| byte == b')')? + 1..];
        let mut fields = std::str::from_utf8(rest).ok()?.split_ascii_whitespace();
        Some(Stat {
            state: *fields.next()?.as_bytes().first()?,
            parent: fields.next()?.parse().ok()?,
            threads: fields.nth(15)?.parse().ok()?,
            started: fields.nth(1)?.parse().ok()?,
        })
    }

    /// Whether the process has ended, and at most remains to be reaped. Its first thread may end before the others.
    pub fn has_ended(&self) -> bool {
        match self.state {
            b'Z' => self.threads <= 1,
            state => matches!(state, b'X' | b'x'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_parent_and_a_beginning() {
        let text = b"7 (a) name (x) S 42 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 3 0 9911 1 2";
        let stat = Stat { state: b'S', parent: 42, threads: 3, started: 9911 };
        assert_eq!(Stat::parse(text), Some(stat));
        assert!(!stat.has_ended() && !Stat { state: b'Z', ..stat }.has_ended());
        assert!(Stat { state: b'Z', threads: 1, ..stat }.has_ended());
        let own = Stat::of(std::process::id()).unwrap().expect("it lives");
        assert!(own.parent > 0 && own.started > 0);
        assert_eq!(Stat::of(u32::MAX).unwrap(), None);
    }
}
