//! Ranks as threads on the emulated device.

use std::thread;
use std::time::Duration;

use hopbine_meet::{Exchange, LocalExchange};
use utofu_emu::Job;

/// Runs `body` as each of `n` ranks on nodes in a row.
pub fn ranks(n: usize, body: impl Fn(&mut LocalExchange) + Sync) {
    let job = Job::threads((0..n).map(|y| [0, y as u8, 0, 0, 0, 0]).collect());
    thread::scope(|s| {
        for mut x in LocalExchange::group(n, Duration::from_secs(60)) {
            let (job, body) = (&job, &body);
            s.spawn(move || {
                let _entered = job.enter(x.rank());
                body(&mut x);
            });
        }
    });
}
