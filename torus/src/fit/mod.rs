//! Parameters of a model from measurements, and how far the model can be trusted.
//!
//! Times span six decades, so errors are logarithms: ln(predicted / measured). A [`Problem`] has unknowns and
//! observations. [`Problem::fit`] finds the values of the unknowns, [`Problem::standard_errors`] computes their
//! standard errors, and [`Problem::undetermined`] lists the unknowns that the observations do not determine.
//! [`Accuracy`], [`Regrets`] and [`Intervals`] judge predictions. Everything is deterministic and independent of
//! networks.

mod accuracy;
mod cholesky;
mod interval;
mod problem;
mod uncertainty;

pub use accuracy::{Accuracy, Regrets, quantile};
pub use interval::{ErrorClass, Intervals, SizeClass, Software};
pub use problem::{FitError, Fitted, Observation, Problem, Unknown, family_weights};
pub use uncertainty::Undetermined;
