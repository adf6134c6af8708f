//! Records calls in the rank's timeline, if there is one.

use crate::comm::call::Call;
use crate::comm::communicator::Communicator;
use crate::comm::operations::explain::Explanation;
use crate::comm::programs::key::Key;
use crate::comm::programs::ready::PROGRAM_LIMIT;
use crate::comm::state::inner::Inner;
use crate::endpoint::Tag;
use crate::error::Error;
use crate::sync::lock;
use crate::timeline::{Label, Procedure, Tracer};

/// The id of an operation in the timeline's records.
fn id((context, operation): (u64, u32)) -> u64 {
    Tag { context, operation, message: 0, call: 0 }.operation_id()
}

impl Call<'_> {
    /// Bytes of the vector, or of a rank's block. With lists of blocks: those of the largest block in them, on which the
    /// call's duration depends most, also on a rank whose own block is empty.
    pub fn bytes(&self) -> u64 {
        let lists = [&self.send_blocks, &self.recv_blocks].into_iter().flatten();
        let largest = lists.flat_map(|list| list.counts.iter().copied()).max();
        largest.unwrap_or(self.count).saturating_mul(self.dtype.size_bytes() as u64)
    }
}

impl Communicator {
    /// Performs a normalized call and records it. A function of its own, so that calls without a timeline are
    /// inlined.
    #[cold]
    #[inline(never)]
    pub(super) fn trace_call(
        &self,
        tracer: &Tracer,
        call: &Call,
        perform: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (start, first) = (tracer.now(), (self.inner.context(), self.inner.next_operation()));
        let outcome = perform();
        let times = [start, tracer.now()];
        let key = Key::new(call, &self.options);
        let label = self.inner.label(tracer, &key, Procedure::Blocking, || self.explain(call));
        tracer.call(times, label, call.bytes(), id(first));
        outcome
    }
}

impl Inner {
    /// The current time in ticks, if a timeline is recorded: the start of a call.
    #[inline]
    pub(crate) fn start_ticks(&self) -> Option<u64> {
        self.world.engine.tracer().map(Tracer::now)
    }

    /// Records a call that was started at `start` and whose end its owner has seen; `first` is the context and the
    /// number of its first operation.
    #[cold]
    pub(crate) fn record_started(
        &self,
        key: &Key,
        procedure: Procedure,
        start: u64,
        first: (u64, u32),
        by: impl FnOnce() -> Result<Explanation, Error>,
    ) {
        let Some(tracer) = self.world.engine.tracer() else { return };
        let times = [start, tracer.now()];
        let bytes = key.mean_count().saturating_mul(key.dtype.size_bytes() as u64);
        tracer.call(times, self.label(tracer, key, procedure, by), bytes, id(first));
    }

    /// The number of a call's label. `by` explains what performs the call.
    fn label(
        &self,
        tracer: &Tracer,
        key: &Key,
        procedure: Procedure,
        by: impl FnOnce() -> Result<Explanation, Error>,
    ) -> u32 {
        if let Some(&label) = lock(&self.labels)[procedure as usize].get(key) {
            return label;
        }
        let served_by = by().map_or_else(|error| error.to_string(), |by| by.to_string());
        let label = tracer.label(Label { collective: key.collective, procedure, served_by });
        let labels = &mut lock(&self.labels)[procedure as usize];
        if labels.len() == PROGRAM_LIMIT {
            labels.clear();
        }
        labels.insert(key.clone(), label);
        label
    }
}

#[cfg(test)]
mod tests {
    use hopbine_torus::{Collective, Shape};

    use super::*;
    use crate::comm::call::blocks::Blocks;
    use crate::comm::call::options::CallOptions;
    use crate::reduce::{Dtype, Op};
    use crate::timeline::TraceConfig;
    use crate::world::{EmulationConfig, emulate};

    #[test]
    fn a_call_with_lists_has_the_bytes_of_the_largest_block() {
        let counts = [0, 3, 5, 1];
        // A rank that sends nothing may receive, and the root of a gather may have an empty block.
        for collective in [Collective::Alltoall, Collective::Gather] {
            let mut call = Call::new(collective, 0, Dtype::F64);
            call.recv_blocks = Some(Blocks::new(&counts));
            assert_eq!(call.bytes(), 40);
            call.send_blocks = Some(Blocks::new(&[0; 4]));
            assert_eq!(call.bytes(), 40);
        }
        assert_eq!(Call::new(Collective::Alltoall, 7, Dtype::F64).bytes(), 56);
    }

    /// Calls that differ in the operator or the options only are performed by different means.
    #[test]
    fn a_timeline_says_what_performs_each_call() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("trace.json");
        let config = EmulationConfig::new(Shape::torus(&[4]).unwrap())
            .with(|config| config.trace = Some(TraceConfig::new(file.to_str().unwrap())));
        emulate(&config, |comm| {
            for op in [Op::Sum, Op::Product] {
                comm.allreduce_in_place(&mut [1i64], op).unwrap();
            }
            for name in ["mixed", "doubling"] {
                comm.with(CallOptions::new().algorithm(name)).barrier().unwrap();
            }
            for count in 1..2 * PROGRAM_LIMIT {
                comm.bcast(&mut vec![0u8; count], 0).unwrap();
            }
            assert!(lock(&comm.inner.labels)[0].len() <= PROGRAM_LIMIT);
        })
        .unwrap();
        let text = std::fs::read_to_string(dir.path().join("trace.0.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let of = |name: &str| {
            let events = json["traceEvents"].as_array().unwrap().iter();
            let calls = events.filter(|event| event["cat"] == "call" && event["name"] == name);
            let by = calls.map(|call| call["args"]["by"].as_str().unwrap());
            by.map(|by| by.split([',', ':']).next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of("barrier"), ["mixed", "doubling"]);
        let [sum, product] = &of("allreduce")[..] else { panic!("{text}") };
        assert!(sum == "gates" && product != "gates", "{sum}, {product}");
    }
}
