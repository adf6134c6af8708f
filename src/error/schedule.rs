//! What can be wrong with a schedule that a call names.

use hopbine_torus::collectives::Collective;
use hopbine_torus::plan::{ScheduleError, TextError};

/// Why a schedule does not perform a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleProblem {
    /// The text is no schedule.
    #[error("it cannot be read: {0}")]
    Text(TextError),
    /// It is of another collective.
    #[error("it performs {found}; name one that performs the collective called")]
    Collective {
        /// What it performs.
        found: Collective,
    },
    /// It is for ranks on another torus.
    #[error("it is for a torus of {found}, but the communicator's is {here}")]
    Shape {
        /// Its shape.
        found: String,
        /// The communicator's.
        here: String,
    },
    /// It is on more ports than there are, or not on as many as the call asks for.
    #[error("it uses {found} ports, but the call has {valid}")]
    Ports {
        /// Its ports.
        found: u32,
        /// What it may have.
        valid: String,
    },
    /// It does not serve the call's root.
    #[error("{0}")]
    Refused(ScheduleError),
    /// Its plans do not perform the collective, as `hopbine check` finds.
    #[error("its plans are wrong: {0}")]
    Wrong(String),
}
