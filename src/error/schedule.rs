//! Errors in a schedule that a call names.

use hopbine_torus::collectives::Collective;
use hopbine_torus::plan::{ScheduleError, TextError};

/// Why a schedule does not perform a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleProblem {
    /// The text cannot be parsed as a schedule.
    #[error("it cannot be read: {0}")]
    Text(TextError),
    /// The schedule performs another collective.
    #[error("it performs {found}; name one that performs the collective called")]
    Collective {
        /// The collective that the schedule performs.
        found: Collective,
    },
    /// The schedule is for another torus.
    #[error("it is for a torus of {found}, but the communicator's is {here}")]
    Shape {
        /// Shape of the schedule's torus.
        found: String,
        /// Shape of the communicator's torus.
        here: String,
    },
    /// The schedule uses more ports than exist, or another number of ports than the call asks for.
    #[error("it uses {found} ports, but the call has {valid}")]
    Ports {
        /// Ports of the schedule.
        found: u32,
        /// The valid numbers of ports.
        valid: String,
    },
    /// The schedule does not support the call's root.
    #[error("{0}")]
    Refused(ScheduleError),
    /// The schedule's plans do not perform the collective, according to the check of `hopbine check`.
    #[error("its plans are wrong: {0}")]
    Wrong(String),
}
