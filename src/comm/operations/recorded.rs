//! Records calls in the rank's timeline, if there is one.

use hopbine_torus::Collective;

use crate::comm::call::Call;
use crate::comm::communicator::Communicator;
use crate::comm::forms::explain::Explanation;
use crate::comm::programs::key::Key;
use crate::comm::state::inner::Inner;
use crate::endpoint::Tag;
use crate::error::Error;
use crate::timeline::{Label, Procedure, Tracer};

/// The id of an operation in the timeline's records.
fn id((context, operation): (u64, u32)) -> u64 {
    Tag { context, operation, message: 0, call: 0 }.operation_id()
}

impl Call<'_> {
    /// Bytes of the vector, or of a rank's block. For an alltoall with a list of blocks: those of the largest block,
    /// on which its duration depends most.
    pub fn bytes(&self) -> u64 {
        let listed = match self.collective {
            Collective::Alltoall => self.send_blocks.as_ref().or(self.recv_blocks.as_ref()),
            _ => None,
        };
        let count =
            listed.map_or(self.count, |list| list.counts.iter().copied().max().unwrap_or(0));
        count.saturating_mul(self.dtype.size_bytes() as u64)
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
        let (start, operation) = (tracer.now(), self.inner.next_operation());
        let outcome = perform();
        let context = self.inner.context();
        let options = std::ptr::from_ref(&*self.options).addr();
        let (collective, bytes) = (call.collective, call.bytes());
        let label = Label { collective, bytes, context, procedure: Procedure::Blocking, options };
        tracer.call(start, label, id((context, operation)), || {
            self.explain(call).map_or_else(|error| error.to_string(), |by| by.to_string())
        });
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
        let bytes = key.mean_count().saturating_mul(key.dtype.size_bytes() as u64);
        let options = std::ptr::from_ref(&*key.options).addr();
        let (collective, context) = (key.collective, first.0);
        let label = Label { collective, bytes, context, procedure, options };
        let by = || by().map_or_else(|error| error.to_string(), |by| by.to_string());
        tracer.call(start, label, id(first), by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::call::blocks::Blocks;
    use crate::reduce::Dtype;

    #[test]
    fn an_alltoall_of_blocks_has_the_bytes_of_the_largest() {
        let counts = [0, 3, 5, 1];
        let mut call = Call::new(Collective::Alltoall, 0, Dtype::F64);
        call.send_blocks = Some(Blocks::new(&counts));
        assert_eq!(call.bytes(), 40);
        // In place they belong to the receive buffer.
        (call.recv_blocks, call.send_blocks) = (call.send_blocks.take(), None);
        assert_eq!(call.bytes(), 40);
        assert_eq!(Call::new(Collective::Alltoall, 7, Dtype::F64).bytes(), 56);
    }
}
