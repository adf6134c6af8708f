//! The text form of plans and schedules: readable, one item per line, and round-tripping.
//!
//! A plan:
//!
//! ```text
//! plan allreduce
//! rank 1 of 4
//! root 0
//! lane port 0, part 0 of 1, 4 positions of vector
//! step reduce
//!   send to 0: 0..2
//!   recv from 0: 2..4
//! step reduce own 1
//! step copy
//! ```
//!
//! Runs are half-open, `start..end`, separated by spaces. Where blocks do not stand in the
//! positions of their own numbers, `order` lists them; an alltoall's lane lists the blocks that
//! this rank has at the `start` and in the `end`. A schedule has one `name value`
//! pair per line, see [`Schedule`]'s implementation of `Display`. Lines that begin with `#`
//! and empty lines are passed over.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::parlinna::ParLinNa;
use super::schedule::{Positions, PrefixSteps, Recipe, Schedule, StepOrder, WalkRecipe};
use super::space::{BlockOrder, Listing, Space};
use super::types::{Lane, Plan, Run, Step, Transfer, Transfers};
use super::walk::Interleave;
use crate::collectives::{Action, Collective, Cut, Form};
use crate::geometry::{Node, RankMap, Shape};
use crate::names::{Block, Position, Rank};
use crate::patterns::Kind;

/// Where a text stops being a plan or schedule, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, `{text}`: expected {expected}")]
pub struct TextError {
    /// Line number, from 1; one past the last if the text ends too early.
    pub line: usize,
    /// The line.
    pub text: String,
    /// What should stand there.
    pub expected: String,
}

/// Gives the variants of an enumeration their names in text forms.
macro_rules! names {
    ($type:ty, $what:literal: $($variant:path => $name:literal),+ $(,)?) => {
        impl $type {
            /// The name used in text forms.
            pub const fn name(self) -> &'static str {
                match self { $($variant => $name),+ }
            }

            fn from_name(name: &str) -> Result<Self, String> {
                match name {
                    $($name => Ok($variant),)+
                    _ => Err([concat!($what, ": one of"), $($name),+].join(" ")),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

names!(Form, "a form":
    Form::Butterfly => "butterfly",
    Form::Tree => "tree",
    Form::TwoPhase => "two-phase",
    Form::Latency => "latency",
);
names!(Positions, "an order of positions":
    Positions::Path => "path",
    Positions::Rank => "rank",
    Positions::Resend => "resend",
);
names!(StepOrder, "an order of steps":
    StepOrder::NearFirst => "near-first",
    StepOrder::FarFirst => "far-first",
);
names!(Interleave, "an interleaving":
    Interleave::RoundRobin => "round-robin",
    Interleave::Sequential => "sequential",
);
names!(Cut, "what positions are":
    Cut::Vector => "vector",
    Cut::Blocks => "blocks",
    Cut::Pairs => "pairs",
    Cut::Token => "token",
);
names!(Action, "an action":
    Action::Copy => "copy",
    Action::Reduce => "reduce",
);

/// Lines of a text that say something.
struct Lines<'a> {
    rest: std::iter::Peekable<std::iter::Enumerate<std::str::Lines<'a>>>,
    line: usize,
    text: &'a str,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        Lines { rest: text.lines().enumerate().peekable(), line: 0, text: "" }
    }

    fn skip_silent(&mut self) {
        while self.rest.next_if(|(_, line)| is_silent(line)).is_some() {}
    }

    /// The next line's words behind `keyword`, if it begins with that.
    fn take(&mut self, keyword: &str) -> Option<&'a str> {
        self.skip_silent();
        let (_, line) = self.rest.peek()?;
        let rest = line.trim().strip_prefix(keyword)?;
        if !rest.is_empty() && !rest.starts_with(' ') {
            return None;
        }
        let (index, line) = self.rest.next()?;
        (self.line, self.text) = (index + 1, line);
        Some(rest.trim())
    }

    fn need(&mut self, keyword: &str) -> Result<&'a str, TextError> {
        self.take(keyword).ok_or_else(|| {
            let (line, text) = match self.rest.peek() {
                Some((index, line)) => (index + 1, *line),
                None => (self.line + 1, ""),
            };
            TextError { line, text: text.to_owned(), expected: format!("`{keyword} ...`") }
        })
    }

    /// An error on the line taken last.
    fn wrong(&self, expected: impl fmt::Display) -> TextError {
        let expected = expected.to_string();
        TextError { line: self.line, text: self.text.trim().to_owned(), expected }
    }

    fn number(&self, word: &str) -> Result<u32, TextError> {
        word.trim().parse().map_err(|_| self.wrong("a number"))
    }

    fn end(&mut self) -> Result<(), TextError> {
        self.skip_silent();
        match self.rest.next() {
            None => Ok(()),
            Some((index, line)) => Err(TextError {
                line: index + 1,
                text: line.trim().to_owned(),
                expected: "the end, or `port`, `step`, `send to`, `recv from` in their places"
                    .to_owned(),
            }),
        }
    }
}

fn is_silent(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// Runs of consecutive values, half-open.
fn write_runs(f: &mut fmt::Formatter<'_>, runs: impl IntoIterator<Item = Run>) -> fmt::Result {
    runs.into_iter().try_for_each(|run| write!(f, " {}..{}", run.start, run.end()))
}

fn parse_runs(lines: &Lines<'_>, text: &str) -> Result<Vec<Run>, TextError> {
    let run = |word: &str| {
        let (start, end) = word.split_once("..")?;
        let (start, end): (u32, u32) = (start.parse().ok()?, end.parse().ok()?);
        (start < end).then(|| Run::new(start, end - start))
    };
    text.split_whitespace()
        .map(|word| run(word).ok_or_else(|| lines.wrong("runs such as 0..4 6..7, none empty")))
        .collect()
}

/// Blocks by position; neighbouring blocks in neighbouring positions become one run.
fn write_blocks(f: &mut fmt::Formatter<'_>, blocks: &[Block]) -> fmt::Result {
    let ascending = blocks.chunk_by(|a, b| a.0.checked_add(1) == Some(b.0));
    write_runs(f, ascending.map(|chunk| Run::new(chunk[0].0, chunk.len() as u32)))
}

/// A list of `count` blocks, refused before it is made if it is longer.
fn parse_blocks(lines: &Lines<'_>, text: &str, count: u32) -> Result<Vec<Block>, TextError> {
    let runs = parse_runs(lines, text)?;
    if runs.iter().map(|run| u64::from(run.len)).sum::<u64>() != u64::from(count) {
        return Err(lines.wrong(format_args!("{count} blocks, one for each position")));
    }
    Ok(runs.iter().flat_map(|run| run.start..run.end()).map(Block).collect())
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan {}", self.collective)?;
        writeln!(f, "rank {} of {}", self.rank, self.n_ranks)?;
        writeln!(f, "root {}", self.root)?;
        for lane in &self.lanes {
            let Lane { port, part, parts, space, steps } = lane;
            let Space { cut, n_positions, .. } = &**space;
            writeln!(
                f,
                "lane port {port}, part {part} of {parts}, {n_positions} positions of {cut}"
            )?;
            if !space.is_identity() {
                let all = || Position::first(*n_positions);
                let start: Vec<_> = all().map(|at| space.block_at_start(self.rank, at)).collect();
                if *cut == Cut::Pairs {
                    let end: Vec<_> = all().map(|at| space.block_at_end(self.rank, at)).collect();
                    f.write_str("start")?;
                    write_blocks(f, &start)?;
                    f.write_str("\nend")?;
                    write_blocks(f, &end)?;
                } else {
                    f.write_str("order")?;
                    write_blocks(f, &start)?;
                }
                writeln!(f)?;
            }
            for step in steps {
                write!(f, "step {}", step.action)?;
                if step.own_at > 0 {
                    write!(f, " own {}", step.own_at)?;
                }
                writeln!(f)?;
                for (what, transfers) in [("send to", &step.sends), ("recv from", &step.recvs)] {
                    for Transfer { peer, blocks } in transfers {
                        write!(f, "  {what} {peer}:")?;
                        write_runs(f, blocks.iter().copied())?;
                        writeln!(f)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl FromStr for Plan {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let mut lines = Lines::new(text);
        let name = lines.need("plan")?;
        let collective = Collective::from_str(name).map_err(|error| lines.wrong(error))?;
        let ranks = lines.need("rank")?;
        let (rank, n_ranks) =
            ranks.split_once(" of ").ok_or_else(|| lines.wrong("`rank R of N`"))?;
        let (rank, n_ranks) = (Rank(lines.number(rank)?), lines.number(n_ranks)?);
        let root = lines.need("root")?;
        let root = Rank(lines.number(root)?);
        let mut lanes = Vec::new();
        while let Some(text) = lines.take("lane port") {
            lanes.push(parse_lane(&mut lines, text)?);
        }
        lines.end()?;
        Ok(Plan { collective, rank, n_ranks, root, lanes })
    }
}

fn parse_lane(lines: &mut Lines<'_>, text: &str) -> Result<Lane, TextError> {
    let form = "`lane port P, part Q of N, K positions of WHAT`";
    let split = || {
        let (port, rest) = text.split_once(", part ")?;
        let (part, rest) = rest.split_once(" of ")?;
        let (parts, rest) = rest.split_once(", ")?;
        let (positions, cut) = rest.split_once(" positions of ")?;
        Some((port, part, parts, positions, cut))
    };
    let (port, part, parts, n_positions, cut) = split().ok_or_else(|| lines.wrong(form))?;
    let port = port.parse().map_err(|_| lines.wrong("a port of at most 65535"))?;
    let (part, parts) = (lines.number(part)?, lines.number(parts)?);
    let n_positions = lines.number(n_positions)?;
    let cut = Cut::from_name(cut).map_err(|expected| lines.wrong(expected))?;
    let order = if let Some(order) = lines.take("order") {
        let listing = Listing::new(parse_blocks(lines, order, n_positions)?);
        let listing = listing.ok_or_else(|| lines.wrong("every block once"))?;
        BlockOrder::Listed(Arc::new(listing))
    } else if let Some(start) = lines.take("start") {
        let start = parse_blocks(lines, start, n_positions)?.into();
        let end = lines.need("end")?;
        BlockOrder::Own { start, end: parse_blocks(lines, end, n_positions)?.into() }
    } else {
        BlockOrder::Identity
    };
    let mut steps = Vec::new();
    while let Some(text) = lines.take("step") {
        let (action, own) = text.split_once(" own ").unwrap_or((text, "0"));
        let action = Action::from_name(action).map_err(|expected| lines.wrong(expected))?;
        let own_at = lines.number(own)?;
        let sends = parse_transfers(lines, "send to")?;
        let recvs = parse_transfers(lines, "recv from")?;
        steps.push(Step { sends, recvs, action, own_at });
    }
    let space = Arc::new(Space { cut, n_positions, order });
    Ok(Lane { port, part, parts, space, steps })
}

fn parse_transfers(lines: &mut Lines<'_>, keyword: &str) -> Result<Transfers, TextError> {
    let mut transfers = Transfers::new();
    while let Some(text) = lines.take(keyword) {
        let (peer, runs) = text.split_once(':').ok_or_else(|| lines.wrong("`RANK: RUNS`"))?;
        let blocks = parse_runs(lines, runs)?.into();
        transfers.push(Transfer { peer: Rank(lines.number(peer)?), blocks });
    }
    Ok(transfers)
}

/// The names of the recipes that have no walk.
const PAIRWISE: &str = "pairwise";
const PARLINNA: &str = "parlinna";
const LINEAR: &str = "linear";
const CHAIN: &str = "chain";
const SWEEPS: &str = "sweeps";
const TREES: &str = "trees";

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "schedule {}", self.collective)?;
        match &self.recipe {
            Recipe::Walk(recipe) => writeln!(f, "form {}", recipe.form)?,
            Recipe::Pairwise => writeln!(f, "form {PAIRWISE}")?,
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
        if let Recipe::ParLinNa(ParLinNa { radix, batch, staggered }) = self.recipe {
            let batch = batch.map_or("all".to_owned(), |batch| batch.to_string());
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
        let collective = Collective::from_str(name).map_err(|error| lines.wrong(error))?;
        let form = lines.need("form")?;
        let walk_form = match form {
            PAIRWISE | PARLINNA | LINEAR | CHAIN | SWEEPS | TREES => None,
            name => {
                let form = Form::from_name(name);
                let known = |known| {
                    format!("{known} {PAIRWISE} {PARLINNA} {LINEAR} {CHAIN} {SWEEPS} {TREES}")
                };
                Some(form.map_err(|forms| lines.wrong(known(forms)))?)
            }
        };
        let shape = lines.need("shape")?;
        let shape = Shape::from_str(shape).map_err(|error| lines.wrong(error))?;
        let map = match lines.need("map")? {
            "row-major" => RankMap::RowMajor,
            "column-major" => RankMap::ColumnMajor,
            list => {
                let nodes = list
                    .strip_prefix("nodes")
                    .ok_or_else(|| lines.wrong("row-major, column-major or nodes N0 N1 ..."))?;
                let nodes = nodes.split_whitespace().map(|word| lines.number(word).map(Node));
                let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
                RankMap::from_nodes(&shape, nodes).map_err(|error| lines.wrong(error))?
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
            None => Recipe::Pairwise,
        };
        let ports = lines.need("ports")?;
        let ports = lines.number(ports)?;
        lines.end()?;
        let schedule = Schedule { collective, shape, map, root, ports, recipe };
        schedule.validate().map_err(|error| lines.wrong(error))?;
        Ok(schedule)
    }
}

/// How ParLinNa's messages between nodes are cut.
const COALESCED: &str = "coalesced";
const STAGGERED: &str = "staggered";

fn parse_parlinna(lines: &mut Lines<'_>) -> Result<ParLinNa, TextError> {
    let radix = lines.need("radix")?;
    let radix: u32 = lines.number(radix)?;
    let batch = match lines.need("batch")? {
        "all" => None,
        number => Some(lines.number(number)?),
    };
    if radix < 2 || batch == Some(0) {
        return Err(lines.wrong("a radix of 2 or more and batches of 1 or more"));
    }
    let staggered = match lines.need("messages")? {
        COALESCED => false,
        STAGGERED => true,
        _ => return Err(lines.wrong("coalesced or staggered")),
    };
    Ok(ParLinNa { radix, batch, staggered })
}

fn parse_walk(lines: &mut Lines<'_>, form: Form) -> Result<WalkRecipe, TextError> {
    let patterns = lines.need("patterns")?;
    let patterns = patterns.split_whitespace().map(Kind::from_str);
    let patterns = patterns.collect::<Result<_, _>>().map_err(|error| lines.wrong(error))?;
    let order = lines.need("order")?;
    let order = StepOrder::from_name(order).map_err(|expected| lines.wrong(expected))?;
    let interleave = lines.need("interleave")?;
    let interleave = Interleave::from_name(interleave).map_err(|expected| lines.wrong(expected))?;
    let positions = lines.need("positions")?;
    let positions = Positions::from_name(positions).map_err(|expected| lines.wrong(expected))?;
    Ok(WalkRecipe { form, patterns, order, interleave, positions })
}
