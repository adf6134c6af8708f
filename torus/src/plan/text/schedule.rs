//! Schedules as text.

use std::fmt;
use std::str::FromStr;

use super::{Lines, TextError};
use crate::collectives::{Collective, Form};
use crate::geometry::{RankMap, Shape, Vertex};
use crate::patterns::Kind;
use crate::plan::derive::schedule::{
    Placement, PrefixSteps, Recipe, Schedule, StepOrder, WalkRecipe,
};
use crate::plan::derive::walk::Interleave;
use crate::plan::exchange::parlinna::ParLinNa;
use crate::plan::exchange::{Exchange, Stages};
use crate::plan::ir::grid::NodeGroups;

/// The names of the recipes that have no walk.
const EXCHANGE: &str = "exchange";
const PARLINNA: &str = "parlinna";
const LINEAR: &str = "linear";
const CHAIN: &str = "chain";
const SWEEPS: &str = "sweeps";
const TREES: &str = "trees";

const OF: &str = "of";
const LED: &str = "led";
/// A batch of as many messages as there are.
const ALL: &str = "all";

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "schedule {}", self.collective)?;
        match &self.recipe {
            Recipe::Walk(recipe) => writeln!(f, "form {}", recipe.form)?,
            Recipe::Exchange(_) => writeln!(f, "form {EXCHANGE}")?,
            Recipe::ParLinNa(_) => writeln!(f, "form {PARLINNA}")?,
            Recipe::Linear => writeln!(f, "form {LINEAR}")?,
            Recipe::Prefix(PrefixSteps::Chain) => writeln!(f, "form {CHAIN}")?,
            Recipe::Prefix(PrefixSteps::Sweeps) => writeln!(f, "form {SWEEPS}")?,
            Recipe::Trees => writeln!(f, "form {TREES}")?,
        }
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
        if let Recipe::Exchange(Exchange { groups, stages, batch }) = self.recipe {
            match groups {
                NodeGroups::OfSize(size) => writeln!(f, "groups {OF} {size}")?,
                NodeGroups::WithLeaders(leaders) => writeln!(f, "groups {LED} {leaders}")?,
            }
            writeln!(f, "stages {stages}")?;
            match batch {
                Some(batch) => writeln!(f, "batch {batch}")?,
                None => writeln!(f, "batch {ALL}")?,
            }
        }
        if let Recipe::ParLinNa(ParLinNa { radix, batch, staggered }) = self.recipe {
            let batch = batch.map_or(ALL.to_owned(), |batch| batch.to_string());
            let messages = if staggered { STAGGERED } else { COALESCED };
            writeln!(f, "radix {radix}\nbatch {batch}\nmessages {messages}")?;
        }
        writeln!(f, "ports {}", self.ports)
    }
}

impl FromStr for Schedule {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let mut lines = Lines::new(text);
        let name = lines.need("schedule")?;
        let collective = Collective::from_str(name).map_err(|error| lines.refused(error))?;
        let form = lines.need("form")?;
        let walk_form = match form {
            EXCHANGE | PARLINNA | LINEAR | CHAIN | SWEEPS | TREES => None,
            name => {
                let form = Form::from_name(name);
                let known = |known| {
                    format!("{known} {EXCHANGE} {PARLINNA} {LINEAR} {CHAIN} {SWEEPS} {TREES}")
                };
                Some(form.map_err(|forms| lines.wrong(known(forms)))?)
            }
        };
        let shape = lines.need("shape")?;
        let shape = Shape::from_str(shape).map_err(|error| lines.refused(error))?;
        let map = match lines.need("map")? {
            "row-major" => RankMap::RowMajor,
            "column-major" => RankMap::ColumnMajor,
            list => {
                let nodes = list
                    .strip_prefix("nodes")
                    .ok_or_else(|| lines.wrong("row-major, column-major or nodes N0 N1 ..."))?;
                let nodes = nodes.split_whitespace().map(|word| lines.number(word).map(Vertex));
                let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
                RankMap::from_vertices(&shape, nodes).map_err(|error| lines.refused(error))?
            }
        };
        let root = lines.need("root")?;
        let root = lines.number(root)?;
        let recipe = match walk_form {
            Some(form) => Recipe::Walk(parse_walk(&mut lines, form)?),
            None if form == TREES => Recipe::Trees,
            None if form == PARLINNA => Recipe::ParLinNa(parse_parlinna(&mut lines)?),
            None if form == LINEAR => Recipe::Linear,
            None if form == CHAIN => Recipe::Prefix(PrefixSteps::Chain),
            None if form == SWEEPS => Recipe::Prefix(PrefixSteps::Sweeps),
            None => Recipe::Exchange(parse_exchange(&mut lines)?),
        };
        let ports = lines.need("ports")?;
        let ports = lines.number(ports)?;
        lines.end()?;
        let schedule = Schedule { collective, shape, map, root, ports, recipe };
        schedule.validate().map_err(|error| lines.refused(error))?;
        Ok(schedule)
    }
}

/// How ParLinNa's messages between nodes are cut.
const COALESCED: &str = "coalesced";
const STAGGERED: &str = "staggered";

fn parse_parlinna(lines: &mut Lines<'_>) -> Result<ParLinNa, TextError> {
    let radix = lines.need("radix")?;
    let radix: u32 = lines.number(radix)?;
    let batch = parse_batch(lines)?;
    if radix < 2 {
        return Err(lines.wrong("a radix of 2 or more"));
    }
    let staggered = match lines.need("messages")? {
        COALESCED => false,
        STAGGERED => true,
        _ => return Err(lines.wrong(format_args!("{COALESCED} or {STAGGERED}"))),
    };
    Ok(ParLinNa { radix, batch, staggered })
}

fn parse_batch(lines: &mut Lines<'_>) -> Result<Option<u32>, TextError> {
    match lines.need("batch")? {
        ALL => Ok(None),
        batch => match lines.number(batch)? {
            0 => Err(lines.wrong("batches of 1 or more")),
            batch => Ok(Some(batch)),
        },
    }
}

fn parse_walk(lines: &mut Lines<'_>, form: Form) -> Result<WalkRecipe, TextError> {
    let patterns = lines.need("patterns")?;
    let patterns = patterns.split_whitespace().map(Kind::from_str);
    let patterns = patterns.collect::<Result<_, _>>().map_err(|error| lines.refused(error))?;
    let order = lines.need("order")?;
    let order = StepOrder::from_name(order).map_err(|expected| lines.wrong(expected))?;
    let interleave = lines.need("interleave")?;
    let interleave = Interleave::from_name(interleave).map_err(|expected| lines.wrong(expected))?;
    let positions = lines.need("positions")?;
    let positions = Placement::from_name(positions).map_err(|expected| lines.wrong(expected))?;
    Ok(WalkRecipe { form, patterns, order, interleave, positions })
}

fn parse_exchange(lines: &mut Lines<'_>) -> Result<Exchange, TextError> {
    let groups = match lines.need("groups")?.split_once(' ') {
        Some((OF, size)) => NodeGroups::OfSize(lines.number(size)?),
        Some((LED, leaders)) => NodeGroups::WithLeaders(lines.number(leaders)?),
        _ => return Err(lines.wrong(format_args!("`{OF} SIZE` or `{LED} LEADERS`"))),
    };
    let stages = lines.need("stages")?;
    let stages = Stages::from_name(stages).map_err(|expected| lines.wrong(expected))?;
    let batch = parse_batch(lines)?;
    Ok(Exchange { groups, stages, batch })
}
