//! Cache of the network model's choices, shared by all ranks of this process.

use std::collections::HashMap;
use std::sync::Mutex;

use hopbine_torus::choose::{Found, Model, Query, fastest};
use hopbine_torus::{Collective, Shape};

use crate::sync::lock;

/// Choices that the cache keeps.
const KEPT: usize = 1024;

/// By call, the index of the fastest row.
#[derive(Debug, Default)]
pub(super) struct PredictionCache(Mutex<HashMap<(Collective, Shape, u64, u32), usize>>);

/// Tables are compared without their caches.
impl PartialEq for PredictionCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for PredictionCache {}

impl PredictionCache {
    /// Index of the fastest of these rows under the model.
    pub(super) fn fastest_row(
        &self,
        rows: &[Found<'_>],
        query: &Query<'_>,
        model: &Model,
        shape: &Shape,
    ) -> usize {
        // Predicts under the lock: other ranks of this process ask the same question.
        let kept = &mut *lock(&self.0);
        if kept.len() == KEPT {
            kept.clear();
        }
        let key = (query.collective, shape.clone(), query.bytes, query.ports);
        *kept.entry(key).or_insert_with(|| fastest(rows, query, model, shape))
    }
}

#[cfg(test)]
mod tests {
    use hopbine_torus::choose::{Features, Fit, Knowledge};

    use super::*;
    use crate::comm::choice::tuning::Tuning;

    const TEXT: &str = Tuning::BUILT_IN[2].1;
    const KEY: &str = "model = { machine = \"tofu-d\", ranks = \"2..24\" }";

    fn with(key: &str) -> String {
        TEXT.replacen(KEY, key, 1)
    }

    /// How a table's row was found; the text of the row and of the choice.
    fn found(table: &Tuning, collective: Collective, shape: &str, bytes: u64) -> (Fit, String) {
        let shape: Shape = shape.parse().unwrap();
        let of = Features::of(&shape);
        let found = table.find((collective, Knowledge::Known), (&shape, &of), bytes, 6);
        let choice = found.on(collective, &shape, &of);
        (found.fit, format!("{}, {}: {found}", choice.algorithm.name, choice.how()))
    }

    /// Ranks have separate caches, filled by different earlier calls.
    #[test]
    fn all_ranks_choose_alike() {
        let own: Vec<Tuning> = (0..3).map(|_| TEXT.parse().unwrap()).collect();
        let of = |collective| {
            let shapes = ["5", "3x4", "2x2x4", "2x3+2"];
            shapes.into_iter().flat_map(move |shape| {
                [100u64, 40_000, 3_000_000].map(|bytes| (collective, shape, bytes))
            })
        };
        let all = [Collective::Allreduce, Collective::Gather, Collective::Scan];
        let calls: Vec<_> = all.into_iter().flat_map(of).collect();
        let backwards = || calls.iter().rev();
        for &(collective, shape, bytes) in backwards() {
            found(&own[1], collective, shape, bytes);
        }
        for &(collective, shape, bytes) in &calls {
            let [first, second, third] = [0, 1, 2].map(|table: usize| {
                // All sizes up to a power of two have the same choice.
                let bytes = if table == 2 { bytes.next_power_of_two() } else { bytes };
                found(&own[table], collective, shape, bytes)
            });
            assert_eq!(first.0, Fit::Fastest, "{collective} on {shape}");
            assert!(first.1.contains("fastest by the model of tofu-d, of class "), "{}", first.1);
            assert_eq!([&first, &first], [&second, &third], "{collective} of {bytes} on {shape}");
        }
    }

    #[test]
    fn the_model_is_asked_where_it_is_fast_and_no_class_is() {
        let table: Tuning = TEXT.parse().unwrap();
        let fit = |collective, shape| found(&table, collective, shape, 64).0;
        use Collective::{Allreduce, Alltoall};
        for (collective, shape, expected) in [
            (Allreduce, "4x4", Fit::Own),
            (Allreduce, "2x2x6", Fit::Fastest),
            (Allreduce, "25", Fit::Nearest),
            (Allreduce, "2x3+4", Fit::Fastest),
            (Alltoall, "2x3", Fit::Fastest),
            // The model is not used where it does not predict well.
            (Alltoall, "2x3+4", Fit::Nearest),
        ] {
            assert_eq!(fit(collective, shape), expected, "{collective} on {shape}");
        }
        let without: Tuning = with("").parse().unwrap();
        assert_eq!(found(&without, Allreduce, "2x2x6", 64).0, Fit::Nearest);
        // The hash of the head differs, so that ranks without the model are detected.
        assert_ne!(without.table().marks()[0], table.table().marks()[0]);
        let shorter: Tuning = with(&KEY.replace("24", "8")).parse().unwrap();
        assert_ne!(shorter.table().marks()[0], table.table().marks()[0]);
        assert_eq!(
            found(&shorter, Allreduce, "2x2x6", 64),
            found(&without, Allreduce, "2x2x6", 64)
        );
    }

    #[test]
    fn a_wrong_model_is_refused_by_line() {
        let line = 1 + TEXT[..TEXT.find(KEY).unwrap()].matches('\n').count();
        for (key, said) in [
            ("model = 24", "`model` is 24; it must be a machine and numbers of ranks, such as { m"),
            ("model = {}", "`machine` is missing; it must be a machine and numbers of ranks"),
            ("model = { machine = \"tofu-d\" }", "`ranks` is missing; it must be a machine and"),
            (
                "model = { machine = \"tofu-e\", ranks = 8 }",
                "`machine` is `tofu-e`; it must be \"tofu-d\" or \"ideal-torus\"",
            ),
            (
                "model = { machine = \"tofu-d\", ranks = \"2..\" }",
                "`ranks` is `2..`; it must be numbers up to 64, such as \"2..24\"",
            ),
            (
                "model = { machine = \"tofu-d\", ranks = \"2..65\" }",
                "`ranks` is `2..65`; it must be numbers up to 64",
            ),
            (
                "model = { machine = \"tofu-d\", ranks = \"8..2\" }",
                "`ranks` is `8..2`; it must be a number such as 4, or numbers",
            ),
            (
                "model = { machine = \"tofu-d\", nodes = 8, ranks = 8 }",
                "there is no key `nodes` here; known are machine, ranks",
            ),
        ] {
            let error = with(key).parse::<Tuning>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("line {line}: {said}")), "{key}: {error}");
        }
        let memory = Tuning::BUILT_IN[1].1;
        let memory = memory.replacen("version = 1", &format!("version = 1\n{KEY}"), 1);
        let error = memory.parse::<Tuning>().unwrap_err().to_string();
        assert!(error.contains("it must be left out of a table for wire memory"), "{error}");
    }
}
