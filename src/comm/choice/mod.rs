//! Which algorithm performs a call: what decision tables say ([`tuning`]), unless the user prefers another.

pub(crate) mod preferred;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
mod text;
pub(crate) mod tuning;
