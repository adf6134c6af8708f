//! What `/proc` says of a process.

use std::io;

use rustix::io::Errno;

/// A process, as `/proc` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its state, a letter: `Z` if only its exit status is left of it.
    pub state: u8,
    /// Its parent's number.
    pub parent: u32,
    /// When it was started, in clock ticks since the host's start.
    pub started: u64,
}

impl Stat {
    /// Of the process with this number in `/proc`; `None` if there is no such process.
    ///
    /// # Errors
    /// What keeps this process from looking.
    pub fn of(pid: u32) -> io::Result<Option<Stat>> {
        // That of its first thread: qemu-user makes the process's own up, for every thread another.
        let text = match std::fs::read(format!("/proc/{pid}/task/{pid}/stat")) {
            Ok(text) => text,
            Err(error) => match Errno::from_io_error(&error) {
                // It may end between the opening and the reading.
                Some(Errno::NOENT | Errno::SRCH) => return Ok(None),
                _ => return Err(error),
            },
        };
        Ok(Stat::parse(&text))
    }

    fn parse(text: &[u8]) -> Option<Stat> {
        // The second field, the name in parentheses, may hold spaces and parentheses.
        let rest = &text[text.iter().rposition(|&byte| byte == b')')? + 1..];
        let mut fields = std::str::from_utf8(rest).ok()?.split_ascii_whitespace();
        Some(Stat {
            state: *fields.next()?.as_bytes().first()?,
            parent: fields.next()?.parse().ok()?,
            started: fields.nth(17)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_parent_and_a_beginning() {
        let text = b"7 (a) name (x) S 42 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 9911 1 2";
        assert_eq!(Stat::parse(text), Some(Stat { state: b'S', parent: 42, started: 9911 }));
        let own = Stat::of(std::process::id()).unwrap().expect("it lives");
        assert!(own.parent > 0 && own.started > 0);
        assert_eq!(Stat::of(u32::MAX).unwrap(), None);
    }
}
