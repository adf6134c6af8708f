//! Which algorithm performs a call: the choice of the decision tables ([`tuning`]), unless the user prefers another
//! algorithm or the call names one ([`wanted`]).

mod predicted;
pub(crate) mod preferred;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
mod text;
pub(crate) mod tuning;
mod values;
pub(crate) mod wanted;
