//! The text form of schedules.

use std::fmt;
use std::str::FromStr;

use super::{TextError, TextLines, by_name};
use crate::collectives::WalkForm;
use crate::geometry::{RankMap, Shape, Vertex};
use crate::names::Rank;
use crate::patterns::PatternKind;
use crate::plan::derive::schedule::{
    CHAIN, CYCLES, EXCHANGE, LINEAR, PARLINNA, Placement, PrefixSteps, Recipe, SWEEPS, Schedule,
    StepOrder, TREES, TreeWays, WalkRecipe,
};
use crate::plan::derive::walk::Interleave;
use crate::plan::exchange::{ExchangeRecipe, ExchangeStages};
use crate::plan::ir::grid::NodeGroups;
use crate::plan::ir::split::Split;

const OF: &str = "of";
const LED: &str = "led";
/// Groups of all ranks of a node.
const NODE: &str = "node";
/// A batch of all messages.
const ALL: &str = "all";
/// The stages of an exchange.
const STAGES: [(&str, ExchangeStages); 3] = [
    ("together", ExchangeStages::Together),
    ("nodes-first", ExchangeStages::NodesFirst),
    ("dimensions", ExchangeStages::Dimensions),
];
/// How ParLinNa's messages between nodes are formed.
const COALESCED: &str = "coalesced";
const STAGGERED: &str = "staggered";

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "schedule {}", self.collective)?;
        writeln!(f, "form {}", self.recipe.form())?;
        writeln!(f, "shape {}", self.shape)?;
        match (&self.map, self.map.as_list()) {
            (RankMap::RowMajor, _) => writeln!(f, "map row-major")?,
            (RankMap::ColumnMajor, _) => writeln!(f, "map column-major")?,
            (RankMap::List(_), list) => {
                f.write_str("map nodes")?;
                for node in list.unwrap_or_default() {
                    write!(f, " {node}")?;
                }
                writeln!(f)?;
            }
        }
        writeln!(f, "root {}", self.root)?;
        if let Recipe::Walk(WalkRecipe { patterns, order, interleave, positions, .. }) =
            &self.recipe
        {
            f.write_str("patterns")?;
            for kind in patterns {
                write!(f, " {kind}")?;
            }
            writeln!(f)?;
            writeln!(f, "order {order}")?;
            writeln!(f, "interleave {interleave}")?;
            writeln!(f, "positions {positions}")?;
        }
        if let Recipe::Exchange(ExchangeRecipe { groups, stages, batch }) = self.recipe {
            let batch = batch.map_or(ALL.to_owned(), |batch| batch.to_string());
            if let ExchangeStages::InsideFirst { radix, staggered } = stages {
                let messages = if staggered { STAGGERED } else { COALESCED };
                writeln!(f, "radix {radix}\nbatch {batch}\nmessages {messages}")?;
            } else {
                match groups {
                    NodeGroups::OfSize(size) => writeln!(f, "groups {OF} {size}")?,
                    NodeGroups::WholeNode => writeln!(f, "groups {OF} {NODE}")?,
                    NodeGroups::WithLeaders(leaders) => writeln!(f, "groups {LED} {leaders}")?,
                }
                let name = STAGES.iter().find(|(_, known)| *known == stages);
                writeln!(f, "stages {}\nbatch {batch}", name.map_or("", |(name, _)| name))?;
            }
        }
        writeln!(f, "ports {}", self.ports)?;
        if !self.split.is_equal() {
            writeln!(f, "split {}", self.split)?;
        }
        Ok(())
    }
}

impl FromStr for Schedule {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let (mut lines, collective) = TextLines::of("schedule", text)?;
        let form = lines.need("form")?;
        let walk_form = match form {
            EXCHANGE | PARLINNA | LINEAR | CHAIN | SWEEPS | TREES | CYCLES => None,
            name => {
                let form = by_name(&WalkForm::ALL, "a form", name);
                let known = |known| {
                    format!(
                        "{known} {EXCHANGE} {PARLINNA} {LINEAR} {CHAIN} {SWEEPS} {TREES} {CYCLES}"
                    )
                };
                Some(form.map_err(|forms| lines.expected(known(forms)))?)
            }
        };
        let shape = lines.need("shape")?;
        let shape = Shape::from_str(shape).map_err(|error| lines.error(error))?;
        let map = match lines.need("map")? {
            "row-major" => RankMap::RowMajor,
            "column-major" => RankMap::ColumnMajor,
            list => {
                let nodes = list
                    .strip_prefix("nodes")
                    .ok_or_else(|| lines.expected("row-major, column-major or nodes N0 N1 ..."))?;
                let nodes = nodes.split_whitespace().map(|word| lines.number(word).map(Vertex));
                let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
                RankMap::from_vertices(&shape, nodes).map_err(|error| lines.error(error))?
            }
        };
        let root = lines.need("root")?;
        let root = Rank(lines.number(root)?);
        let recipe = match walk_form {
            Some(form) => Recipe::Walk(parse_walk(&mut lines, form)?),
            None if form == TREES => Recipe::Trees(TreeWays::Lines),
            None if form == CYCLES => Recipe::Trees(TreeWays::Cycles),
            None if form == PARLINNA => Recipe::Exchange(parse_parlinna(&mut lines)?),
            None if form == LINEAR => Recipe::Linear,
            None if form == CHAIN => Recipe::Prefix(PrefixSteps::Chain),
            None if form == SWEEPS => Recipe::Prefix(PrefixSteps::Sweeps),
            None => Recipe::Exchange(parse_exchange(&mut lines)?),
        };
        let ports = lines.need("ports")?;
        let ports = lines.number(ports)?;
        let split = match lines.take("split") {
            Some(weights) => weights.parse::<Split>().map_err(|error| lines.error(error))?,
            None => Split::default(),
        };
        lines.end("")?;
        let schedule = Schedule { collective, shape, map, root, ports, split, recipe };
        schedule.validate().map_err(|error| lines.error(error))?;
        Ok(schedule)
    }
}

fn parse_parlinna(lines: &mut TextLines<'_>) -> Result<ExchangeRecipe, TextError> {
    let radix = lines.need("radix")?;
    let radix: u32 = lines.number(radix)?;
    let batch = parse_batch(lines)?;
    if radix < 2 {
        return Err(lines.expected("a radix of 2 or more"));
    }
    let staggered = match lines.need("messages")? {
        COALESCED => false,
        STAGGERED => true,
        _ => return Err(lines.expected(format_args!("{COALESCED} or {STAGGERED}"))),
    };
    let stages = ExchangeStages::InsideFirst { radix, staggered };
    Ok(ExchangeRecipe { groups: NodeGroups::WholeNode, stages, batch })
}

fn parse_batch(lines: &mut TextLines<'_>) -> Result<Option<u32>, TextError> {
    match lines.need("batch")? {
        ALL => Ok(None),
        batch => match lines.number(batch)? {
            0 => Err(lines.expected("batches of 1 or more")),
            batch => Ok(Some(batch)),
        },
    }
}

fn parse_walk(lines: &mut TextLines<'_>, form: WalkForm) -> Result<WalkRecipe, TextError> {
    let patterns = lines.need("patterns")?;
    let patterns = patterns.split_whitespace().map(PatternKind::from_str);
    let patterns = patterns.collect::<Result<_, _>>().map_err(|error| lines.error(error))?;
    let order = lines.need("order")?;
    let order = by_name(&StepOrder::ALL, "an order of steps", order)
        .map_err(|expected| lines.expected(expected))?;
    let interleave = lines.need("interleave")?;
    let interleave =
        Interleave::from_name(interleave).map_err(|expected| lines.expected(expected))?;
    let positions = lines.need("positions")?;
    let positions = by_name(&Placement::ALL, "an order of positions", positions)
        .map_err(|expected| lines.expected(expected))?;
    Ok(WalkRecipe { form, patterns, order, interleave, positions })
}

fn parse_exchange(lines: &mut TextLines<'_>) -> Result<ExchangeRecipe, TextError> {
    let groups = match lines.need("groups")?.split_once(' ') {
        Some((OF, NODE)) => NodeGroups::WholeNode,
        Some((OF, size)) => NodeGroups::OfSize(lines.number(size)?),
        Some((LED, leaders)) => NodeGroups::WithLeaders(lines.number(leaders)?),
        _ => {
            return Err(
                lines.expected(format_args!("`{OF} SIZE`, `{OF} {NODE}` or `{LED} LEADERS`"))
            );
        }
    };
    let name = lines.need("stages")?;
    let (_, stages) = STAGES.iter().find(|(known, _)| *known == name).ok_or_else(|| {
        let known = STAGES.map(|(name, _)| name).join(" ");
        lines.expected(format_args!("the stages of an exchange: one of {known}"))
    })?;
    let batch = parse_batch(lines)?;
    Ok(ExchangeRecipe { groups, stages: *stages, batch })
}
