//! The fastest of several rows, predicted by the network model.

use super::case::Case;
use super::feature::Feature;
use super::model::Model;
use super::table::{Choice, Found, Query};
use crate::collectives::Collective;
use crate::geometry::Shape;
use crate::sim::Machine;

/// The most algorithms that are predicted for a choice, times ranks: the time of a choice grows with both.
const PREDICTED_TIMES_RANKS: u32 = 128;
/// The most algorithms that are predicted for a choice.
const MOST_PREDICTED: u32 = 16;
/// A longer call is predicted at this size, in bytes: this takes less time, and the same algorithm is fastest.
const MOST_BYTES: u64 = 8 << 20;
/// The same limit for a prefix reduction, in bytes: each of its messages is a whole vector.
const MOST_BYTES_OF_PREFIXES: u64 = 1 << 20;
/// How many times as long as another row the nearest class's row must take for the other to be taken.
const MIN_GAIN: f64 = 1.02;

/// Returns the index of the row that is predicted to be fastest on a shape. The nearest row comes first; of rows with
/// the same messages only the first is predicted. There is no time limit: equal queries have equal results on all
/// ranks whose arithmetic is the same.
pub fn fastest(rows: &[Found<'_>], query: &Query<'_>, model: &Model, shape: &Shape) -> usize {
    let Some(machine) = Machine::built_in(&model.machine) else { return 0 };
    let Ok(network) = machine.network_or_rings(shape) else { return 0 };
    let most = match query.collective {
        Collective::Scan | Collective::Exscan => MOST_BYTES_OF_PREFIXES,
        _ => MOST_BYTES,
    };
    let bytes = query.all_bytes();
    let most_predicted = PREDICTED_TIMES_RANKS / query.shape.get(Feature::Ranks);
    let most_predicted = most_predicted.clamp(1, MOST_PREDICTED) as usize;
    let mut predicted: Vec<Choice> = Vec::new();
    let mut best: Option<(f64, usize)> = None;
    for (at, row) in rows.iter().enumerate() {
        let choice = row.on(query.collective, shape, query.shape);
        if predicted.iter().any(|other| other.has_same_messages(&choice, bytes)) {
            continue;
        }
        if let Ok(case) = Case::new(&network, shape, &choice.algorithm, choice.ports) {
            let ns = case.ns(&machine, bytes.min(most), choice.segment_bytes);
            let ns = if at == 0 { ns / MIN_GAIN } else { ns };
            if best.is_none_or(|(least, _)| ns < least) {
                best = Some((ns, at));
            }
        }
        predicted.push(choice);
        if predicted.len() == most_predicted {
            break;
        }
    }
    best.map_or(0, |(_, at)| at)
}

impl Choice {
    /// Whether two choices have the same messages in a call with `bytes` bytes on a rank.
    fn has_same_messages(&self, other: &Choice, bytes: u64) -> bool {
        let (segment, others) = (self.segment_bytes, other.segment_bytes);
        self.algorithm.name == other.algorithm.name
            && self.ports == other.ports
            && (segment == others || segment.min(others) >= bytes)
    }
}
