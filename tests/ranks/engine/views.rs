//! Messages that arrive in the wire's memory (views) are read there, and what that makes ready is posted before the
//! next poll.

use super::{Rank, plans, reducer};
use hopbine::WireError;
use hopbine::endpoint::{Endpoint, Event, Posted, RecvPost, SendPost, Slot, View};
use hopbine::engine::{Buffer, Geometry, PortFlags, PortRun, Sizes, StartOrder, compile};
use hopbine_torus::geometry::Shape;
use hopbine_torus::{Collective, PortId, registry};
use std::sync::Arc;

/// Accepts all posts and reports no events.
#[derive(Default)]
struct Posts {
    sends: Vec<Slot>,
    recvs: Vec<Slot>,
}

impl Endpoint for Posts {
    unsafe fn post_recv(&mut self, _: u32, recv: RecvPost) -> Result<Posted, WireError> {
        self.recvs.push(recv.slot);
        Ok(Posted::Accepted)
    }

    unsafe fn post_send(&mut self, _: u32, send: SendPost) -> Result<Posted, WireError> {
        self.sends.push(send.slot);
        Ok(Posted::Accepted)
    }

    fn poll(&mut self, _: &mut Vec<Event>) -> Result<(), WireError> {
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        true
    }

    fn abandon(&mut self) {}
}

/// Each of two ranks folds half of a vector and sends the result. All messages of the other rank's contribution are
/// there at once.
#[test]
fn all_views_are_folded_and_the_results_sent_before_the_next_poll() {
    const SEGMENTS: usize = 4;
    const SEGMENT_BYTES: u64 = 64 * 1024;
    let half = SEGMENTS * SEGMENT_BYTES as usize / 8;
    let algorithm = registry::find(Collective::Allreduce, "direct").unwrap();
    let plans = plans(&algorithm, &Shape::torus(&[2]).unwrap(), 0, Some(1));
    let geometry = Geometry {
        sizes: Sizes::Equal(2 * half as u64),
        elem_bytes: 8,
        in_place: false,
        segment_bytes: Some(SEGMENT_BYTES),
        staged: None,
    };
    let program = compile(&plans[0], &geometry).unwrap();
    let mut rank = Rank::new(program, vec![1; 2 * half], vec![0; 2 * half]);
    let port_flags = Arc::new(PortFlags::of(&rank.program));
    let mut run = PortRun::new(rank.program.clone(), PortId(0), Some(reducer()), port_flags);
    let memories = rank.memories(0);
    // SAFETY: the buffers outlive the run and are not accessed before it has been dropped.
    unsafe { run.start((0, 1), StartOrder::InOrder, memories) };
    let mut wire = Posts::default();
    run.advance(&mut wire, 0, u32::MAX, &mut ()).unwrap();
    assert_eq!(wire.sends.len(), SEGMENTS, "contributions");

    let message = vec![2u64; SEGMENT_BYTES as usize / 8];
    for &Slot { task, .. } in wire.recvs.iter().take(SEGMENTS) {
        assert_eq!(run.step_of(task), 0);
        run.viewed(task, View { ptr: message.as_ptr().cast(), len: SEGMENT_BYTES as usize });
    }
    run.advance(&mut wire, 0, u32::MAX, &mut ()).unwrap();
    assert_eq!(wire.sends.len(), 2 * SEGMENTS, "contributions and results");
    drop(run);
    let folded = rank.buffers[Buffer::Recv as usize].iter().filter(|&&sum| sum == 3).count();
    assert_eq!(folded, half);
}
