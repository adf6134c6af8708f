//! Packets between barrier gates that take time, in a stepped job of the late mode. The owner's steps deliver the
//! packets to their gates one by one and in any order.

use crate::gates::table::RoutedPacket;
use crate::job::core::Job;
use crate::job::device::{PendingOp, PendingWrite};
use crate::job::stepping::{Stage, StepEvent};
use crate::shared::registrations::StagTable;
use crate::timing::model::Random;
use std::sync::Arc;

/// A packet under way.
struct PendingPacket {
    job: Arc<Job>,
    /// Rank of the gate that sent the packet.
    from: usize,
    routed: RoutedPacket,
}

/// Has the late device of a stepped job deliver packets of rank `from`; false if the job has no such device.
pub(crate) fn post(job: &Arc<Job>, from: usize, outgoing: &mut Vec<RoutedPacket>) -> bool {
    let (Some(device), Some(stepping)) = (&job.device, &job.stepping) else { return false };
    let seed = job.model.late.unwrap_or(0);
    for routed in outgoing.drain(..) {
        let late = stepping.state().gates.get_or_insert_with(|| Random::new(seed)).late_delay();
        let pending = PendingPacket { job: job.clone(), from, routed };
        device.post(job.now() + late, Box::new(pending), |_, _| ());
    }
    true
}

impl PendingOp for PendingPacket {
    fn rank(&self) -> usize {
        self.from
    }

    fn next_stage(&self, at: u64) -> StepEvent {
        let to = self.routed.target_rank(&self.job);
        StepEvent { at, stage: Stage::Packet, from: self.from, to, memory: None, writes: false }
    }

    fn advance(self: Box<Self>) -> Option<(u64, Box<dyn PendingOp>)> {
        let PendingPacket { job, routed, .. } = *self;
        let mut outgoing = Vec::new();
        let owner = routed.deliver(&job, &mut outgoing)?;
        post(&job, owner, &mut outgoing);
        None
    }

    fn retire(&self) {}

    fn pending_write(&self) -> Option<&PendingWrite> {
        None
    }

    fn needs(&self, _: &StagTable, _: u64) -> bool {
        false
    }
}
