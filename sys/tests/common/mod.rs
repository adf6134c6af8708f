//! Ranks as threads on the emulated device.

use std::time::Duration;

use hopbine_meet::LocalExchange;
use utofu_emu::Job;

/// Runs `body` as each of `n` ranks on nodes in a row.
pub fn ranks(n: usize, body: impl Fn(&mut LocalExchange) + Sync) {
    let job = Job::threads((0..n).map(|y| [0, y as u8, 0, 0, 0, 0]).collect());
    hopbine_testing::ranks::ranks(
        LocalExchange::group(n, Duration::from_secs(60)),
        |rank, mut exchange| {
            let _entered = job.enter(rank);
            body(&mut exchange);
        },
    );
}
