//! Lookup of algorithms by name: rows, and rows with other numbers or patterns in their names.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::numbers::with_numbers;
use super::rows::ROWS;
use super::{Algorithm, FUSED, IN_ORDER, Patterns, Request, SPLIT, fewest, rows_of};
use crate::collectives::Collective;
use crate::patterns::PatternKind;
use crate::plan::{Interleave, Recipe, Schedule, Split, WalkRecipe};

/// The family whose names have a pattern for each dimension.
const MIXED: &str = "mixed";

/// Returns the algorithm of a collective with this name: a row, or a row with other numbers or patterns in its name.
///
/// # Errors
/// [`UnknownAlgorithm`] listing the names that exist.
pub fn find(collective: Collective, name: &str) -> Result<Algorithm, UnknownAlgorithm> {
    let plain = || rows_of(&ROWS, collective).find(|row| row.name == name).cloned();
    plain()
        .or_else(|| with_split(collective, name))
        .or_else(|| with_numbers(&ROWS, collective, name))
        .or_else(|| with_patterns(collective, name))
        .ok_or_else(|| UnknownAlgorithm {
            collective,
            name: name.to_owned(),
            known: rows_of(&ROWS, collective).map(|row| &*row.name).collect::<Vec<_>>().join(", "),
        })
}

/// Returns the name of a schedule, if it has one: the name of a row, or a name with a pattern for each dimension and,
/// unless it is that of `mixed`, the order of the dimensions.
pub fn name_of(schedule: &Schedule) -> Option<String> {
    if !schedule.split.is_equal() {
        let equal = Schedule { split: Split::default(), ..schedule.clone() };
        return name_of(&equal).map(|name| format!("{name}{SPLIT}{}", schedule.split));
    }
    let request = Request {
        shape: schedule.shape.clone(),
        map: schedule.map.clone(),
        root: schedule.root,
        ports: Some(schedule.ports),
    };
    let is_it = |algorithm: &Algorithm| algorithm.schedule(&request).as_ref() == Ok(schedule);
    let collective = schedule.collective;
    if let Some(row) = rows_of(&ROWS, collective).find(|row| is_it(row)) {
        return Some(row.name.to_string());
    }
    let names: Vec<String> = match &schedule.recipe {
        Recipe::Walk(WalkRecipe { patterns, interleave, .. }) => {
            let kinds: Vec<String> = patterns.iter().map(PatternKind::to_string).collect();
            let kinds = kinds.join("/");
            let ends: BTreeSet<&str> = rows_of(&ROWS, collective).filter_map(end).collect();
            let fused = match interleave {
                Interleave::Fused { messages } => Some(format!("{FUSED}:{messages}")),
                _ => None,
            };
            let begins =
                fused.into_iter().chain([kinds.clone(), format!("{kinds}{IN_ORDER}{interleave}")]);
            begins.flat_map(|begin| ends.iter().map(move |end| begin.clone() + end)).collect()
        }
        _ => Vec::new(),
    };
    names.into_iter().find(|name| find(collective, name).is_ok_and(|algorithm| is_it(&algorithm)))
}

/// An algorithm whose lanes have parts of different sizes: `mixed-split:3,2,2,3`.
fn with_split(collective: Collective, name: &str) -> Option<Algorithm> {
    // A name has one split: `find` of the rest comes back here at most once.
    let (of, weights) = name.rsplit_once(SPLIT).filter(|(of, _)| !of.contains(SPLIT))?;
    Some(find(collective, of).ok()?.with_split(weights.parse().ok()?))
}

/// The end of a row's name, after the patterns, if the row is over walks.
fn end(row: &Algorithm) -> Option<&str> {
    matches!(row.recipe, Recipe::Walk(_))
        .then(|| &row.name[row.name.find('-').unwrap_or(row.name.len())..])
}

/// A family with another parameter, or with one pattern for each dimension: `multiplying:4,4,2-l`, `fused:4-l`,
/// `bine/ring/direct-tree`, `bine/ring/direct@sequential-tree`.
fn with_patterns(collective: Collective, name: &str) -> Option<Algorithm> {
    let (patterns, interleave, suffix) = match name.split_once(IN_ORDER) {
        Some((patterns, order)) => {
            let (interleave, suffix) = Interleave::leading(order)?;
            (patterns, Some(interleave), suffix)
        }
        None => {
            let (patterns, suffix) = name.split_at(name.find('-').unwrap_or(name.len()));
            (patterns, None, suffix)
        }
    };
    let kinds = || patterns.split('/').map(|kind| kind.parse().ok()).collect::<Option<Vec<_>>>();
    let fused = patterns.strip_prefix(FUSED).and_then(|it| it.strip_prefix(':'));
    let (family, patterns) = match (interleave, fused) {
        (Some(interleave), _) => (MIXED, Patterns::Each(kinds()?, interleave)),
        (None, Some(messages)) => {
            let messages = messages.parse().ok();
            let messages =
                messages.filter(|messages| (1..=fewest::MOST_MESSAGES).contains(messages));
            (FUSED, Patterns::Fewest { messages: messages? })
        }
        (None, None) => match &kinds()?[..] {
            [kind] => (patterns.split(':').next()?, Patterns::Only(kind.clone())),
            kinds => (MIXED, Patterns::Each(kinds.to_vec(), Interleave::RoundRobin)),
        },
    };
    let is_each = matches!(patterns, Patterns::Each(..));
    let rows = || rows_of(&ROWS, collective);
    let row = rows().find(|row| row.name.strip_prefix(family) == Some(suffix));
    // If no `mixed` row has this end, take the first row that has it.
    let row = row.or_else(|| rows().find(|row| is_each && end(row) == Some(suffix)))?;
    Some(Algorithm { name: Cow::Owned(name.to_owned()), patterns, ..row.clone() })
}

/// Error: no algorithm of the collective has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not an algorithm for {collective}; known are {known}{hint}", hint = hint(.name))]
#[non_exhaustive]
pub struct UnknownAlgorithm {
    /// The collective.
    pub collective: Collective,
    /// The name asked for.
    pub name: String,
    /// The names that exist.
    pub known: String,
}

/// Returns the rules for the parameters in names.
fn hint(name: &str) -> &'static str {
    if name.contains([':', '/', IN_ORDER]) {
        ". Radices and groups behind a `:` are 2 or more, leaders and messages at a time 1 or more, \
         messages of fused steps 1 to 12, weights of a split 1 to 65536 and not all equal; patterns with `/` between them are one for each dimension, and \
         behind an `@` stands the order of their steps, such as `@sequential`"
    } else {
        ""
    }
}
