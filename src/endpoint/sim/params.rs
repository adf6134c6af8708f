//! Parameters of a simulated wire, drawn from the seed: each seed has its own probabilities and limits, so that
//! rare ones come together (swarm testing).

#[cfg(feature = "emu")]
use std::num::NonZeroU32;

use rand::seq::IndexedRandom;
use rand::{Rng, RngCore};

#[cfg(feature = "emu")]
use crate::memory::{CacheConfig, KeepRule};

pub(super) fn one<T: Copy>(rng: &mut impl RngCore, of: &[T]) -> T {
    *of.choose(rng).expect("some to choose from")
}

/// Pieces of a message: more take longer than anybody waits.
const MOST_PIECES: usize = 16;

/// See the module documentation. Probabilities are of 256.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireParams {
    /// A post is deferred without a reason.
    pub(super) defers_posts: u8,
    /// Messages up to this length are eager: copied out of their region before their receive is posted.
    pub(super) eager_bytes: usize,
    /// Of them, those that are copied within the post.
    pub(super) copies_at_once: u8,
    /// A message that is done when its post returns is reported so, and not by an event.
    pub(super) completes_at_once: u8,
    /// Eager messages that a rank may send another through one port before it gets credits back.
    pub(super) credits: u32,
    /// An eager message without a credit is sent by rendezvous; otherwise its post is deferred.
    pub(super) rendezvous_without_credit: bool,
    /// Messages up to this length need no registered memory; `None`: no message does.
    pub(super) keyless_bytes: Option<u64>,
    /// As [`Registry::stage_bytes`](crate::endpoint::Registry::stage_bytes), where messages need registered memory.
    pub(super) stage_bytes: u64,
    /// A message that may be read anywhere is reported as a view.
    pub(super) gives_views: u8,
    /// An event or a packet is kept for a later poll.
    pub(super) delays_events: u8,
    /// Credits are kept for a later poll.
    pub(super) delays_credits: u8,
    /// Weights of the ways in which a rendezvous message moves: read by its receiver, written by the device,
    /// sent in pieces by its sender.
    pub(super) rendezvous_weights: [u8; 3],
    /// The longest piece of a rendezvous message, unless these would be many.
    pub(super) piece_bytes: usize,
    /// What most messages take, in ns.
    pub(super) latency_ns: u64,
    /// A message takes up to a thousand times as long.
    pub(super) is_slow: u8,
    /// A rank hears that a peer is dead by an error of a message to it.
    pub(super) notices_dead: u8,
}

impl WireParams {
    /// `later` are numbers for parameters that have been added since: with those of `rng` all seeds would get other
    /// runs.
    pub(super) fn draw(rng: &mut impl RngCore, later: &mut impl RngCore) -> Self {
        let often = [0, 8, 64, 192];
        WireParams {
            defers_posts: one(rng, &[0, 0, 8, 64]),
            eager_bytes: one(rng, &[0, 8, 64, 2048, 1 << 20]),
            copies_at_once: one(rng, &[0, 128, 255]),
            completes_at_once: one(rng, &[0, 128, 255]),
            credits: one(rng, &[1, 2, 3, 16, 1 << 20]),
            rendezvous_without_credit: rng.random(),
            keyless_bytes: one(rng, &[None, Some(0), Some(64), Some(2048)]),
            stage_bytes: one(later, &[0, 0, 1024, 1 << 20]),
            gives_views: one(rng, &often),
            delays_events: one(rng, &often[..3]),
            delays_credits: one(rng, &often),
            rendezvous_weights: one(rng, &[[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]),
            piece_bytes: one(rng, &[16, 256, 4096, 1 << 20]),
            latency_ns: one(rng, &[100, 1_000, 10_000, 100_000]),
            is_slow: one(rng, &[0, 1, 8, 32]),
            notices_dead: one(rng, &[0, 128, 255]),
        }
    }

    /// The longest piece of a rendezvous message of so many bytes.
    pub(super) fn piece(&self, len: usize) -> usize {
        self.piece_bytes.max(len / MOST_PIECES)
    }

    /// What messages take in many places at once: parameters of a large torus, which is to be simulated
    /// quickly.
    pub(super) fn calm() -> Self {
        WireParams {
            defers_posts: 0,
            eager_bytes: 2048,
            copies_at_once: 255,
            completes_at_once: 255,
            credits: 64,
            rendezvous_without_credit: true,
            keyless_bytes: None,
            stage_bytes: 0,
            gives_views: 128,
            delays_events: 0,
            delays_credits: 0,
            rendezvous_weights: [1, 0, 0],
            piece_bytes: 1 << 20,
            latency_ns: 1_000,
            is_slow: 1,
            notices_dead: 128,
        }
    }
}

/// Parameters of the emulated device of this seed, beside its delays.
#[cfg(feature = "emu")]
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceParams {
    /// How often a rank loses its processor, of 256 operations: others run while it holds views, or is in the midst
    /// of a poll's events.
    pub(super) preempts: u8,
    /// Ranks have barrier gates.
    pub(super) has_gates: bool,
    pub(super) memory: MemoryParams,
}

/// What becomes of registrations.
#[cfg(feature = "emu")]
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryParams {
    /// How ranks keep them; `None`: there is no cache.
    pub(super) cache: Option<CacheConfig>,
    /// What is unmapped is announced so late at most, in ns.
    pub(super) late_ns: u64,
    /// Events that may wait for the cache.
    pub(super) n_latest: usize,
    /// Memory that cannot be watched, of 256.
    pub(super) refuses_watch: u8,
    /// Memory that is announced although it stays, of 256.
    pub(super) announces_more: u8,
    /// Of the choice which.
    pub(super) seed: u64,
}

#[cfg(feature = "emu")]
impl DeviceParams {
    pub(super) fn draw(rng: &mut impl RngCore) -> Self {
        DeviceParams {
            preempts: one(rng, &[0, 0, 8, 64]),
            has_gates: rng.random(),
            memory: MemoryParams::draw(rng),
        }
    }

    /// Those of a large torus.
    pub(super) fn calm() -> Self {
        let cache = Some(CacheConfig::default());
        let memory = MemoryParams {
            cache,
            late_ns: 0,
            n_latest: 64,
            refuses_watch: 0,
            announces_more: 0,
            seed: 0,
        };
        DeviceParams { preempts: 0, has_gates: true, memory }
    }
}

#[cfg(feature = "emu")]
impl MemoryParams {
    fn draw(rng: &mut impl RngCore) -> Self {
        let rare = [0, 0, 32];
        let keep = one(rng, &[KeepRule::Off, KeepRule::Events, KeepRule::Events]);
        let max_regions = one(rng, &[1, 2, 5, 1024]);
        let config = CacheConfig {
            keep,
            max_bytes: one(rng, &[None, None, Some(64 << 10)]),
            max_regions: NonZeroU32::new(max_regions).expect("not zero"),
            stage_bytes: one(rng, &[0, 1 << 10, 512 << 10]),
        };
        MemoryParams {
            cache: one(rng, &[None, Some(config), Some(config), Some(config)]),
            late_ns: one(rng, &[0, 1_000, 100_000, 10_000_000, 1_000_000_000]),
            n_latest: one(rng, &[1, 4, 1024]),
            refuses_watch: one(rng, &rare),
            announces_more: one(rng, &rare),
            seed: rng.random(),
        }
    }
}
