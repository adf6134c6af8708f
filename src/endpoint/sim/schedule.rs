//! Ranks as coroutines of one thread, which hand over to each other where they would wait.

use corosensei::Coroutine;
use corosensei::Yielder;
use corosensei::stack::DefaultStack;

use super::{SimWire, Simulated};
use crate::Rank;
use crate::endpoint::WireError;

/// Runs a program on every rank, until all have ended. `stack_bytes` is the most that a program needs
/// of stack; only what it uses is taken.
///
/// # Errors
/// [`WireError`] with the rank as its peer, if there is no room for a rank's stack.
pub(crate) fn run(
    wire: &SimWire,
    ranks: &[Simulated],
    stack_bytes: usize,
    program: &dyn Fn(Rank),
) -> Result<(), WireError> {
    let coroutine = |rank: &Simulated| -> Result<Coroutine<(), (), ()>, WireError> {
        let stack = DefaultStack::new(stack_bytes)
            .map_err(|error| WireError::new("mapping a rank's stack", error).at(rank.rank))?;
        let (clock, number) = (rank.clock.clone(), rank.rank);
        let body = move |yielder: &Yielder<(), ()>, ()| {
            clock.within(yielder, || program(number));
        };
        // SAFETY: the coroutine is dropped before this function returns, so before `program` goes.
        Ok(unsafe { Coroutine::with_stack_unchecked(stack, body) })
    };
    let mut coroutines = ranks.iter().map(coroutine).collect::<Result<Vec<_>, _>>()?;
    loop {
        let next = wire.0.lock().next();
        let Some(rank) = next else { return Ok(()) };
        let _entered = wire.enter(rank);
        ranks[rank as usize].clock.runs_in(|| _ = coroutines[rank as usize].resume(()));
    }
}
