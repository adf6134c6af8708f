//! Waits asleep, for tests.

use std::time::Duration;
use utofu_emu::Bell;

/// The bell of the rank that the thread acts for.
pub struct Naps {
    bell: Bell,
    /// One missed bell takes as long by itself; without barriers in the system it may be missed.
    longest: Duration,
}

impl Naps {
    pub const LONGEST: Duration = Duration::from_secs(20);

    pub fn new() -> Naps {
        // SAFETY: no memory is involved; the command only asks.
        let commands = unsafe { libc::syscall(libc::SYS_membarrier, 0, 0, 0) };
        let has_barriers = commands > 0 && commands & 2 != 0;
        let longest = if has_barriers { Naps::LONGEST } else { Duration::from_millis(1) };
        Naps { bell: Bell::of_this_rank().expect("a plain device has bells"), longest }
    }

    /// Sleeps until `comes`.
    pub fn until(&mut self, mut comes: impl FnMut() -> bool) {
        let mut number = self.bell.arm();
        while !comes() {
            self.bell.sleep(number, self.longest);
            number = self.bell.number();
        }
        self.bell.disarm();
    }
}
