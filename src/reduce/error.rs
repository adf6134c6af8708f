//! Errors in requests for a reduction.

use std::fmt::Display;
use std::str::FromStr;

use super::{Dtype, Op};

/// An element type or operator that does not exist, or a combination of both that is not defined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReduceError {
    /// The text is not the name of an element type.
    #[error("unknown element type {0:?}; valid are: {valid}", valid = list(Dtype::ALL))]
    UnknownDtype(String),
    /// The text is not the name of an operator.
    #[error("unknown operator {0:?}; valid are: {valid}", valid = list(Op::ALL))]
    UnknownOp(String),
    /// The operator is not defined for elements of this type.
    #[error(
        "operator {op} is not defined for elements of type {dtype}; defined are: {valid}",
        valid = list(Op::ALL.into_iter().chain(Op::LOCATIONS).filter(|op| op.defined_for(*dtype)))
    )]
    Undefined {
        /// The requested operator.
        op: Op,
        /// The element type of the request.
        dtype: Dtype,
    },
}

fn list(names: impl IntoIterator<Item = impl Display>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    names.join(" ")
}

impl FromStr for Dtype {
    type Err = ReduceError;

    /// Parses the [`name`](Dtype::name) of a number's type, exactly as written there.
    ///
    /// # Errors
    /// [`ReduceError::UnknownDtype`], which lists the valid names.
    fn from_str(text: &str) -> Result<Self, ReduceError> {
        let found = Dtype::ALL.into_iter().find(|dtype| dtype.name() == text);
        found.ok_or_else(|| ReduceError::UnknownDtype(text.to_owned()))
    }
}

impl FromStr for Op {
    type Err = ReduceError;

    /// Parses the [`name`](Op::name) of an operator on numbers, exactly as written there.
    ///
    /// # Errors
    /// [`ReduceError::UnknownOp`], which lists the valid names.
    fn from_str(text: &str) -> Result<Self, ReduceError> {
        let found = Op::ALL.into_iter().find(|op| op.name() == text);
        found.ok_or_else(|| ReduceError::UnknownOp(text.to_owned()))
    }
}
