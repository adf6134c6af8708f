//! Plays scripts on a routed plan, event by event.

mod flows;
mod ops;
mod pieces;
mod state;
mod waits;

use std::cmp::Reverse;

use self::state::{Blocked, EPSILON, Player};
use super::outcome::Outcome;
use super::routed::RoutedPlan;
use super::script::Script;
use super::speeds::Speeds;

/// Performs a script on all agents of a routed plan, `n` bytes in all.
///
/// # Panics
/// If the script does not end because it waits for a message that no rank sends.
pub fn play(
    routed: &RoutedPlan,
    script: &Script,
    speeds: &Speeds,
    n: f64,
    with_spans: bool,
) -> Outcome {
    Player::new(routed, script, speeds, n, with_spans).run()
}
impl Player<'_> {
    fn run(mut self) -> Outcome {
        loop {
            let thread = self.due.peek().map_or(f64::INFINITY, |Reverse((time, _))| time.0);
            if self.is_stale && thread > self.since + EPSILON {
                self.update_rates();
            }
            let now = thread.min(self.next_mark);
            if now == f64::INFINITY && !self.is_stale {
                break;
            }
            if self.next_mark < thread {
                self.pass_marks();
                continue;
            }
            self.since = self.since.max(thread);
            let Some(Reverse((_, id))) = self.due.pop() else { continue };
            self.step(id);
        }
        let last = (0..self.threads.len())
            .max_by(|&a, &b| self.threads[a].at.total_cmp(&self.threads[b].at));
        assert!(
            self.threads.iter().all(|thread| thread.blocked == Blocked::Done),
            "a script waits for what nobody sends: {:?}",
            self.threads.iter().find(|thread| thread.blocked != Blocked::Done)
        );
        let (ns, breakdown) = last.map_or_else(Default::default, |last| {
            (self.threads[last].at, self.threads[last].breakdown)
        });
        Outcome { ns, breakdown, spans: self.spans.unwrap_or_default() }
    }
}
