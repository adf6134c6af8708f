//! The text form of plans and schedules: readable, one item per line, and round-tripping.
//!
//! A plan:
//!
//! ```text
//! plan allreduce
//! rank 1 of 4
//! root 0
//! port part 0 of 1, 4 positions of vector
//! input identity
//! output identity
//! step
//!   send to 0: 0..2
//!   recv from 0: reduce 2..4
//! step own 1
//! ```
//!
//! Runs are half-open, `start..end`, separated by spaces. A schedule has one `name value`
//! pair per line, see [`Schedule`]'s implementation of `Display`. Lines that begin with `#`
//! and empty lines are passed over.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::schedule::{Form, Positions, Schedule, StepOrder};
use super::types::{Action, Placement, Plan, PortPlan, Recv, Run, Send, Space, Step};
use super::walk::Interleave;
use crate::collectives::Collective;
use crate::geometry::{Node, RankMap, Shape};
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
    Form::Direct => "direct",
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
names!(Space, "a space":
    Space::Vector => "vector",
    Space::Blocks => "blocks",
    Space::Token => "token",
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

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::Nothing => f.write_str("nothing"),
            Placement::Identity => f.write_str("identity"),
            Placement::One { position } => write!(f, "own {position}"),
            Placement::Permuted(list) => {
                f.write_str("blocks")?;
                // Neighbouring blocks in neighbouring positions become one run.
                let ascending = list.chunk_by(|a, b| a.checked_add(1) == Some(*b));
                write_runs(f, ascending.map(|chunk| Run::new(chunk[0], chunk.len() as u32)))
            }
        }
    }
}

fn parse_placement(lines: &Lines<'_>, text: &str) -> Result<Placement, TextError> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    match word {
        "nothing" if rest.is_empty() => Ok(Placement::Nothing),
        "identity" if rest.is_empty() => Ok(Placement::Identity),
        "own" => Ok(Placement::One { position: lines.number(rest)? }),
        "blocks" => {
            let runs = parse_runs(lines, rest)?;
            Ok(Placement::Permuted(runs.iter().flat_map(|run| run.start..run.end()).collect()))
        }
        _ => Err(lines.wrong("nothing, identity, own POSITION or blocks RUNS")),
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan {}", self.collective)?;
        writeln!(f, "rank {} of {}", self.rank, self.n_ranks)?;
        writeln!(f, "root {}", self.root)?;
        for port in &self.ports {
            let PortPlan { part, parts, positions, space, .. } = port;
            writeln!(f, "port part {part} of {parts}, {positions} positions of {space}")?;
            writeln!(f, "input {}", port.input)?;
            writeln!(f, "output {}", port.output)?;
            for step in &port.steps {
                match step.own_at {
                    0 => writeln!(f, "step")?,
                    own_at => writeln!(f, "step own {own_at}")?,
                }
                for send in &step.sends {
                    write!(f, "  send to {}:", send.to)?;
                    write_runs(f, send.blocks.iter().copied())?;
                    writeln!(f)?;
                }
                for recv in &step.recvs {
                    let action = match recv.action {
                        Action::Copy => "copy",
                        Action::Reduce => "reduce",
                    };
                    write!(f, "  recv from {}: {action}", recv.from)?;
                    write_runs(f, recv.blocks.iter().copied())?;
                    writeln!(f)?;
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
        let (rank, n_ranks) = (lines.number(rank)?, lines.number(n_ranks)?);
        let root = lines.need("root")?;
        let root = lines.number(root)?;
        let mut ports = Vec::new();
        while let Some(text) = lines.take("port part") {
            ports.push(parse_port(&mut lines, text)?);
        }
        lines.end()?;
        Ok(Plan { collective, rank, n_ranks, root, ports })
    }
}

fn parse_port(lines: &mut Lines<'_>, text: &str) -> Result<PortPlan, TextError> {
    let form = "`port part Q of P, N positions of SPACE`";
    let split = || {
        let (part, rest) = text.split_once(" of ")?;
        let (parts, rest) = rest.split_once(", ")?;
        let (positions, space) = rest.split_once(" positions of ")?;
        Some((part, parts, positions, space))
    };
    let (part, parts, positions, space) = split().ok_or_else(|| lines.wrong(form))?;
    let (part, parts) = (lines.number(part)?, lines.number(parts)?);
    let positions = lines.number(positions)?;
    let space = Space::from_name(space).map_err(|expected| lines.wrong(expected))?;
    let input = lines.need("input")?;
    let input = parse_placement(lines, input)?;
    let output = lines.need("output")?;
    let output = parse_placement(lines, output)?;
    let mut steps = Vec::new();
    while let Some(own) = lines.take("step") {
        let own_at = match own.strip_prefix("own") {
            Some(own) => lines.number(own)?,
            None if own.is_empty() => 0,
            None => return Err(lines.wrong("`step` or `step own N`")),
        };
        let mut step = Step { own_at, ..Step::default() };
        while let Some(text) = lines.take("send to") {
            let (to, runs) = text.split_once(':').ok_or_else(|| lines.wrong("`RANK: RUNS`"))?;
            let blocks = Arc::from(parse_runs(lines, runs)?);
            step.sends.push(Send { to: lines.number(to)?, blocks });
        }
        while let Some(text) = lines.take("recv from") {
            let form = "`RANK: copy RUNS` or `RANK: reduce RUNS`";
            let (from, rest) = text.split_once(": ").ok_or_else(|| lines.wrong(form))?;
            let (action, runs) = rest.split_once(' ').unwrap_or((rest, ""));
            let action = match action {
                "copy" => Action::Copy,
                "reduce" => Action::Reduce,
                _ => return Err(lines.wrong(form)),
            };
            let blocks = Arc::from(parse_runs(lines, runs)?);
            step.recvs.push(Recv { from: lines.number(from)?, blocks, action });
        }
        steps.push(step);
    }
    Ok(PortPlan { part, parts, positions, space, input, output, steps })
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "schedule {}", self.collective)?;
        writeln!(f, "form {}", self.form)?;
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
        f.write_str("patterns")?;
        for kind in &self.patterns {
            write!(f, " {kind}")?;
        }
        writeln!(f)?;
        writeln!(f, "order {}", self.order)?;
        writeln!(f, "interleave {}", self.interleave)?;
        writeln!(f, "positions {}", self.positions)?;
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
        let form = Form::from_name(form).map_err(|expected| lines.wrong(expected))?;
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
        let patterns = lines.need("patterns")?;
        let patterns = patterns.split_whitespace().map(Kind::from_str);
        let patterns = patterns.collect::<Result<_, _>>().map_err(|error| lines.wrong(error))?;
        let order = lines.need("order")?;
        let order = StepOrder::from_name(order).map_err(|expected| lines.wrong(expected))?;
        let interleave = lines.need("interleave")?;
        let interleave =
            Interleave::from_name(interleave).map_err(|expected| lines.wrong(expected))?;
        let positions = lines.need("positions")?;
        let positions =
            Positions::from_name(positions).map_err(|expected| lines.wrong(expected))?;
        let ports = lines.need("ports")?;
        let ports = lines.number(ports)?;
        lines.end()?;
        let schedule = Schedule {
            collective,
            form,
            shape,
            map,
            root,
            patterns,
            order,
            interleave,
            positions,
            ports,
        };
        schedule.validate().map_err(|error| lines.wrong(error))?;
        Ok(schedule)
    }
}
