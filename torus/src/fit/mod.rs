//! Parameters of a model from measurements, and how far the model can be trusted.
//!
//! Times span six decades, so errors are logarithms: ln(predicted / measured). A [`Problem`] is what is
//! unknown and what was measured; [`Problem::fit`] finds the values, [`Problem::standard_errors`] how well
//! they are known, [`Problem::undetermined`] those that the measurements do not determine. [`Accuracy`],
//! [`Regrets`] and [`Intervals`] judge predictions. All of it is deterministic, and knows nothing of networks.

mod accuracy;
mod cholesky;
mod interval;
mod problem;
mod uncertainty;

pub use accuracy::{Accuracy, Regrets, quantile};
pub use interval::{ErrorClass, Intervals, SizeClass, Software};
pub use problem::{FitError, Fitted, Observation, Problem, Unknown, family_weights};
pub use uncertainty::Undetermined;
