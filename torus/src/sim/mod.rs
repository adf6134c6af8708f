//! The network model: it predicts the time of a plan on a machine.
//!
//! A [`Network`] knows which links a message crosses, a [`Machine`] has the speeds of links and the costs of
//! software. A [`RoutedPlan`] has a plan's messages on a network: those of all ranks or, if all ranks do the same,
//! those of one rank that stands for all ([`RoutedPlan::of_one`]), which shares a link with equal messages of the other
//! ranks. A [`Script`] lists the operations of each port of a rank in order, as its [`Profile`] performs them. [`play`]
//! runs scripts on a routed plan, event by event: ports are threads, an interface sends one message after the other,
//! links and interfaces are shared max-min fair.
//!
//! The model makes predictions. It does not include routers' buffers, retries, other jobs and noise.

mod busiest;
mod changes;
mod classes;
mod compose;
mod conditions;
mod counts;
mod engine;
mod error;
mod fitted;
mod limits;
mod loads;
mod machine;
mod mpi;
mod network;
mod outcome;
mod paper;
mod player;
mod profile;
mod rates;
mod routed;
mod script;
mod speeds;
mod subtrees;
mod timed;
mod trees;
mod whole;
mod work;

pub use changes::ChangesError;
pub use conditions::{Conditions, Fault};
pub use engine::CallForm;
pub use error::{FaultyPart, RoutingError};
pub use fitted::{Origin, QUANTITIES, Quantity, tofu_d_intervals};
pub use machine::{Machine, MachineError, Parameter};
pub use network::{Network, NetworkError, NetworkKind, NetworkLink};
pub use outcome::{Outcome, Span, SpanKind, TimeBreakdown, TimeCategory};
pub use paper::PaperCall;
pub use player::play;
pub use profile::Profile;
pub use routed::{Resource, RoutedMessage, RoutedPlan};
pub use script::{NotModelled, Op, Script, Threads};
pub use speeds::Speeds;
pub use timed::{Api, Preparation, PrepareError, Prepared, Timed, UnknownApi};
pub use work::{Copies, LaneWork, Moved, StepWork};
