//! Algorithms by name: rows, and rows with other numbers or patterns in them.

use std::borrow::Cow;

use super::numbers::with_numbers;
use super::rows::ROWS;
use super::{Algorithm, FUSED, Patterns, fewest, rows_of};
use crate::collectives::Collective;
use crate::patterns::PatternKind;

/// The algorithm of a collective by name: a row's, or a row's with other numbers or patterns in it.
///
/// # Errors
/// [`UnknownAlgorithm`] listing the names that exist.
pub fn find(collective: Collective, name: &str) -> Result<Algorithm, UnknownAlgorithm> {
    let plain = || rows_of(&ROWS, collective).find(|row| row.name == name).cloned();
    plain()
        .or_else(|| with_numbers(&ROWS, collective, name))
        .or_else(|| with_patterns(collective, name))
        .ok_or_else(|| UnknownAlgorithm {
            collective,
            name: name.to_owned(),
            known: rows_of(&ROWS, collective).map(|row| &*row.name).collect::<Vec<_>>().join(", "),
        })
}

/// A family with another parameter, or one pattern for each dimension: `multiplying:4,4,2-l`,
/// `fused:4-l`, `bine/ring/direct-tree`.
fn with_patterns(collective: Collective, name: &str) -> Option<Algorithm> {
    let (patterns, suffix) = name.split_at(name.find('-').unwrap_or(name.len()));
    let (family, patterns) = match patterns.strip_prefix(FUSED).and_then(|it| it.strip_prefix(':'))
    {
        Some(messages) => {
            let messages = messages.parse().ok();
            let messages =
                messages.filter(|messages| (1..=fewest::MOST_MESSAGES).contains(messages));
            (FUSED, Patterns::Fewest { messages: messages? })
        }
        None => {
            let kinds = patterns.split('/').map(|kind| kind.parse().ok());
            let kinds: Vec<PatternKind> = kinds.collect::<Option<_>>()?;
            match &kinds[..] {
                [kind] => (patterns.split(':').next()?, Patterns::Only(kind.clone())),
                _ => ("mixed", Patterns::Each(kinds)),
            }
        }
    };
    let mut rows = rows_of(&ROWS, collective);
    let row = rows.find(|row| row.name.strip_prefix(family) == Some(suffix))?;
    Some(Algorithm { name: Cow::Owned(name.to_owned()), patterns, ..row.clone() })
}

/// A name that no algorithm of the collective has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not an algorithm for {collective}; known are {known}{hint}", hint = hint(.name))]
pub struct UnknownAlgorithm {
    /// The collective.
    pub collective: Collective,
    /// The name asked for.
    pub name: String,
    /// The names that exist.
    pub known: String,
}

/// What names with parameters may hold.
fn hint(name: &str) -> &'static str {
    if name.contains([':', '/']) {
        ". Radices and groups behind a `:` are 2 or more, leaders and messages at a time 1 or more, \
         messages of fused steps 1 to 12; patterns with `/` between them are one for each dimension"
    } else {
        ""
    }
}
