//! Algorithms by name: rows, and rows with other numbers or patterns in them.

use std::borrow::Cow;

use super::rows::{ALIASES, ROWS};
use super::{Algorithm, BATCHED, FUSED, NONBLOCKING, Patterns, fewest, rows};
use crate::collectives::Collective;
use crate::patterns::PatternKind;
use crate::plan::{ExchangeRecipe, ExchangeStages, NodeGroups, Recipe};

/// The algorithm of a collective by name: a row's, or a row's with other numbers or patterns in it.
///
/// # Errors
/// [`UnknownAlgorithm`] listing the names that exist.
pub fn find(collective: Collective, name: &str) -> Result<Algorithm, UnknownAlgorithm> {
    let plain = || rows(&ROWS, collective).find(|row| row.name == name).cloned();
    plain()
        .or_else(|| with_numbers(&ROWS, collective, name))
        .or_else(|| with_patterns(collective, name))
        .ok_or_else(|| UnknownAlgorithm {
            collective,
            name: name.to_owned(),
            known: rows(&ROWS, collective).map(|row| &*row.name).collect::<Vec<_>>().join(", "),
        })
}

/// An alltoall with a number of leaders or ranks, or a radix, and a number of messages at a time:
/// `multi-leader:4-batched:8`.
pub(super) fn with_numbers(
    all: &[Algorithm],
    collective: Collective,
    name: &str,
) -> Option<Algorithm> {
    let (rest, batch) = match (name.strip_suffix(NONBLOCKING), name.rsplit_once(BATCHED)) {
        (Some(rest), _) => (rest, None),
        (None, Some((rest, batch))) => (rest, Some(batch.parse().ok().filter(|&b| b > 0)?)),
        (None, None) => (name, Some(1)),
    };
    let alias = ALIASES.iter().find(|(alias, _)| *alias == rest);
    let meant = alias.map_or(rest, |(_, meant)| *meant);
    let (base, number) = match meant.split_once(':') {
        Some((base, number)) => (base, Some(number)),
        None => (meant, None),
    };
    // Rows with numbers in their names are no base for others.
    let mut rows = rows(all, collective);
    let row = rows.find(|row| row.name == base && row.recipe == row.variant.recipe)?;
    let Recipe::Exchange(mut exchange) = row.recipe else { return None };
    exchange.batch = batch;
    if let Some(number) = number {
        exchange = with_number(exchange, number)?;
    }
    Some(Algorithm {
        name: Cow::Owned(name.to_owned()),
        alias_of: alias.map(|_| format!("{meant}{}", &name[rest.len()..])),
        recipe: Recipe::Exchange(exchange),
        ..row.clone()
    })
}

/// An exchange with another number of leaders or of ranks in a group, or another radix, if it has
/// such a number; `node` are all ranks of a node.
fn with_number(exchange: ExchangeRecipe, number: &str) -> Option<ExchangeRecipe> {
    let parsed = number.parse();
    let (groups, stages) = match (exchange.groups, exchange.stages) {
        (NodeGroups::WithLeaders(_), stages) => (NodeGroups::WithLeaders(parsed.ok()?), stages),
        (groups, ExchangeStages::InsideFirst { staggered, .. }) => {
            let radix = parsed.ok().filter(|&radix| radix >= 2)?;
            (groups, ExchangeStages::InsideFirst { radix, staggered })
        }
        (_, ExchangeStages::NodesFirst) if number == "node" => {
            (NodeGroups::WholeNode, ExchangeStages::NodesFirst)
        }
        (_, ExchangeStages::NodesFirst) => {
            (NodeGroups::OfSize(parsed.ok()?), ExchangeStages::NodesFirst)
        }
        _ => return None,
    };
    Some(ExchangeRecipe { groups, stages, ..exchange })
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
    let mut rows = rows(&ROWS, collective);
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
