//! Packets between barrier gates that take time, in a stepped job of the late mode. The owner's steps deliver the
//! packets to their gates one by one and in any order.

use crate::gates::table::Parcel;
use crate::job::core::Job;
use crate::job::device::{Flight, Writing};
use crate::job::stepping::{Stage, Stepped};
use crate::shared::registrations::StagTable;
use crate::timing::model::Random;
use std::sync::Arc;

/// A packet under way.
struct Flying {
    job: Arc<Job>,
    /// Rank of the gate that sent the packet.
    from: usize,
    parcel: Parcel,
}

/// Has the late device of a stepped job deliver packets of rank `from`; false if the job has no such device.
pub(crate) fn post(job: &Arc<Job>, from: usize, parcels: &mut Vec<Parcel>) -> bool {
    let (Some(device), Some(stepping)) = (&job.device, &job.stepping) else { return false };
    let seed = job.model.late.unwrap_or(0);
    for parcel in parcels.drain(..) {
        let late = stepping.state().gates.get_or_insert_with(|| Random::new(seed)).late();
        let flying = Flying { job: job.clone(), from, parcel };
        device.post(job.now() + late, Box::new(flying), |_, _| ());
    }
    true
}

impl Flight for Flying {
    fn rank(&self) -> usize {
        self.from
    }

    fn next_stage(&self, at: u64) -> Stepped {
        let to = self.parcel.concerns(&self.job);
        Stepped { at, stage: Stage::Packet, from: self.from, to, memory: None, writes: false }
    }

    fn go_on(self: Box<Self>) -> Option<(u64, Box<dyn Flight>)> {
        let Flying { job, parcel, .. } = *self;
        let mut parcels = Vec::new();
        let owner = parcel.arrive(&job, &mut parcels)?;
        post(&job, owner, &mut parcels);
        None
    }

    fn forget(&self) {}

    fn writing(&self) -> Option<&Writing> {
        None
    }

    fn needs(&self, _: &StagTable, _: u64) -> bool {
        false
    }
}
