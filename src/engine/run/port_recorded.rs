//! Drives a port that records a timeline.

use std::sync::{Arc, MutexGuard};

use super::port::{Completion, LaunchMode, Port, State};
use super::port_run::PortRun;

impl Port {
    /// [`launch`](Port::launch) with records; not inlined, so that the version without records is.
    #[cold]
    #[inline(never)]
    pub(super) fn launch_recorded(
        &self,
        state: MutexGuard<'_, State>,
        run: Box<PortRun>,
        owner: Arc<dyn Completion>,
        mode: LaunchMode,
    ) {
        self.launch_in::<true>(state, run, owner, mode);
    }

    /// [`drive_locked`](Port::drive_locked) with records.
    #[cold]
    #[inline(never)]
    pub(super) fn drive_recorded(&self, state: MutexGuard<'_, State>) -> bool {
        self.drive_in::<true>(state)
    }
}
