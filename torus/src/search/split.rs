//! Unequal parts of lanes: outside the search space, in which all parts are equal.
//!
//! Lanes with equal parts end at different times if dimensions differ. If the time of a lane with a part x of the
//! data were a + b x, independent of other lanes, all lanes would end at once with parts that follow from a and b.
//! They do not, as lanes share links: so the predicted ends correct a, and parts are computed again, a few times.
//! This is a heuristic: a result counts if its prediction gains, and proves nothing about other parts.

use super::request::{Best, Candidate, Prediction, SearchRequest};
use crate::bounds::Bounds;
use crate::plan::{Recipe, Schedule, Split};
use crate::sim::{CallForm, Machine, Network, Profile};

/// The number of times that parts are computed.
const ROUNDS: usize = 4;
/// The least gain of unequal parts (time with equal parts over time with unequal ones), and the least ratio of the last
/// lane's end to the first's for which unequal parts are tried.
const MIN_GAIN: f64 = 1.01;
/// The approximate sum of the parts' weights; smaller for whole blocks, which are dealt in turns.
const UNITS: f64 = 1000.0;
const TURNS: f64 = 48.0;
/// The smallest part, as a multiple of an equal part.
const MIN_PART: f64 = 0.05;

/// Returns variants of a schedule with unequal parts of lanes. Each follows from the prediction of the one before, so
/// that lanes end closer together; none if they end at once anyway. A variant may be slower than equal parts: see
/// [`better`].
pub fn splits<'a>(
    found: &'a Best,
    request: &SearchRequest,
    (network, machine): (&'a Network, &'a Machine),
) -> impl Iterator<Item = Best> + use<'a> {
    let parts = found.schedule.n_parts();
    let (_, bound_ns) =
        Bounds::new(request.collective, parts, &machine.limits(network)).call(request.bytes);
    let segments = vec![found.cost.segment_bytes];
    let request = SearchRequest { segments, ..request.clone() };
    let is_dealt = matches!(&found.schedule.recipe, Recipe::Walk(walk) if walk.is_dealt());
    let units = if is_dealt { TURNS } else { UNITS };
    let mut lanes = None;
    let mut known = vec![Split::default()];
    let next = move || {
        if parts < 2 || known.len() > ROUNDS {
            return None;
        }
        let predict = |schedule: &Schedule, best_ns| {
            let candidate = Candidate { bound_ns, ..Candidate::of_schedule(schedule.clone()) };
            candidate.predict(&request, (network, machine), best_ns)
        };
        let ends = |schedule: &Schedule, prediction: &Prediction, times: f64| {
            let bytes = times * request.bytes;
            ends(schedule, prediction, machine, bytes)
        };
        if lanes.is_none() {
            let prediction = predict(&found.schedule, f64::INFINITY);
            let once = ends(&found.schedule, &prediction, 1.0);
            let of = |least: fn(f64, f64) -> f64| once.iter().copied().reduce(least).unwrap_or(0.0);
            if of(f64::max) < MIN_GAIN * of(f64::min) {
                return None;
            }
            let twice = ends(&found.schedule, &prediction, 2.0);
            let lane = |(once, twice): (f64, f64)| LaneTime {
                fixed: 2.0 * once - twice,
                slope: (twice - once) * f64::from(parts),
            };
            lanes = Some(once.into_iter().zip(twice).map(lane).collect::<Vec<_>>());
        }
        let lanes = lanes.as_mut()?;
        let shares = at_once(lanes, MIN_PART / f64::from(parts))?;
        let weights: Vec<u32> =
            shares.into_iter().map(|share| (share * units).round().max(1.0) as u32).collect();
        let split = Split::new(&weights).ok().filter(|split| !known.contains(split))?;
        known.push(split.clone());
        let schedule = Schedule { split, ..found.schedule.clone() };
        schedule.validate().ok()?;
        let prediction = predict(&schedule, found.cost.ns);
        if known.len() <= ROUNDS {
            let all: u32 = weights.iter().sum();
            let ends = ends(&schedule, &prediction, 1.0);
            for ((lane, weight), end) in lanes.iter_mut().zip(weights).zip(ends) {
                lane.fixed = end - lane.slope * f64::from(weight) / f64::from(all);
            }
        }
        Some(Best { schedule, cost: prediction.cost })
    };
    std::iter::from_fn(next)
}

/// The fastest of some splits of a schedule, if its prediction is over 1 % faster than that of the best schedule with
/// equal parts, and as exact.
pub fn better(splits: impl IntoIterator<Item = Best>, best: &Best) -> Option<Best> {
    let counts = |split: &Best| {
        (split.cost.is_exact || !best.cost.is_exact) && MIN_GAIN * split.cost.ns < best.cost.ns
    };
    splits.into_iter().filter(counts).min_by(|a, b| a.cost.ns.total_cmp(&b.cost.ns))
}

/// The end of each lane of a schedule in a call of `bytes` bytes, ns.
fn ends(schedule: &Schedule, prediction: &Prediction, machine: &Machine, bytes: f64) -> Vec<f64> {
    let Prediction { cost, flow, routed } = prediction;
    let segment_bytes = cost.segment_bytes;
    let profile = Profile::Hopbine { segment_bytes, call: CallForm::Repeated };
    let played = profile.play(schedule, flow, routed, machine, bytes, true);
    let spans = played.expect("our own software performs all schedules").spans;
    let mut ends = vec![0.0f64; schedule.n_parts() as usize];
    for span in spans {
        let end = &mut ends[span.lane as usize];
        *end = end.max(span.end_ns);
    }
    ends
}

/// The time of a lane, ns: without data, and in addition for all data.
struct LaneTime {
    fixed: f64,
    slope: f64,
}

/// The parts of lanes, of 1, with which all end at once, each at least `least`; `None` if more data take no longer.
fn at_once(lanes: &[LaneTime], least: f64) -> Option<Vec<f64>> {
    if lanes.iter().any(|lane| lane.slope <= 0.0) {
        return None;
    }
    let per_part: f64 = lanes.iter().map(|lane| 1.0 / lane.slope).sum();
    let fixed: f64 = lanes.iter().map(|lane| lane.fixed / lane.slope).sum();
    let end = (1.0 + fixed) / per_part;
    Some(lanes.iter().map(|lane| ((end - lane.fixed) / lane.slope).max(least)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_at_once() {
        let lane = |fixed, slope| LaneTime { fixed, slope };
        let lanes = [lane(10.0, 100.0), lane(20.0, 100.0), lane(10.0, 200.0)];
        let shares = at_once(&lanes, 0.0).unwrap();
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let ends = lanes.iter().zip(&shares).map(|(lane, x)| lane.fixed + lane.slope * x);
        let ends: Vec<f64> = ends.collect();
        assert!(ends.iter().all(|end| (end - ends[0]).abs() < 1e-9), "{ends:?}");
        assert!(at_once(&[lane(1.0, 0.0)], 0.0).is_none());
    }
}
