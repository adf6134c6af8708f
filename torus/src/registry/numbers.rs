//! Alltoalls with other numbers in their names than the rows have.

use std::borrow::Cow;

use super::{Algorithm, BATCHED, NONBLOCKING, rows_of};
use crate::collectives::Collective;
use crate::plan::{ExchangeRecipe, ExchangeStages, NodeGroups, Recipe};

/// Aliases of alltoalls with certain numbers.
static ALIASES: [(&str, &str); 2] =
    [("hierarchical", "multi-leader:1"), ("node-aware", "locality-aware:node")];

/// Returns an alltoall whose name has a number of leaders or of ranks in a group, or a radix, and a number of
/// messages at a time: `multi-leader:4-batched:8`.
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
    // A row with a number in its name is not the base of other names.
    let mut rows = rows_of(all, collective);
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

/// Returns an exchange with another number of leaders, of ranks in a group, or another radix; `None` if it has no
/// such number. The number `node` stands for all ranks of a node.
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
