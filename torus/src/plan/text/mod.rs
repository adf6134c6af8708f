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
//! Runs are half-open, `start..end`, separated by spaces. A part of several units of the data is such a run, too:
//! `part 1..4 of 6`. A lane of which few steps are under way
//! at a time says `, window W` at the end of its line. Where blocks do not stand in the
//! positions of their own numbers, `order` lists them; an alltoall's lane lists the blocks that
//! this rank has at the `start` and in the `end`, `none*K` for K positions that hold none of its own.
//! Where blocks of others pass through such positions, `room` lists the runs of all that have room.
//! `own K` says that K of the operands received for each position stand before the rank's own value.
//! A schedule has one `name value` pair per line, see [`Schedule`](super::Schedule)'s implementation
//! of `Display`. Lines that begin with `#` and empty lines are passed over.

mod plan;
mod schedule;

use std::fmt;
use std::str::FromStr;

use super::derive::walk::Interleave;
use crate::collectives::Collective;

/// Where a text stops being a plan or schedule, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, `{text}`: {problem}")]
pub struct TextError {
    /// Line number, from 1; one past the last if the text ends too early.
    pub line: usize,
    /// The line.
    pub text: String,
    /// What should stand there, or what is wrong with what does.
    pub problem: String,
}

/// The value of a name; without one, `what` is expected.
fn by_name<T: Copy + fmt::Display>(all: &[T], what: &str, name: &str) -> Result<T, String> {
    let found = all.iter().copied().find(|one| one.to_string() == name);
    found.ok_or_else(|| {
        let names: Vec<String> = all.iter().map(T::to_string).collect();
        format!("{what}: one of {}", names.join(" "))
    })
}

const ROUND_ROBIN: &str = "round-robin";
const BACKWARDS: &str = "round-robin-backwards";
const SEQUENTIAL: &str = "sequential";
/// Before the number of messages.
const FUSED: &str = "fused:";

impl fmt::Display for Interleave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Interleave::RoundRobin => f.pad(ROUND_ROBIN),
            Interleave::RoundRobinBackwards => f.pad(BACKWARDS),
            Interleave::Sequential => f.pad(SEQUENTIAL),
            Interleave::Fused { messages } => f.pad(&format!("{FUSED}{messages}")),
        }
    }
}

impl Interleave {
    /// An interleaving at the beginning of a text, and what is behind it: nothing, or what begins with `-`.
    pub(crate) fn leading(text: &str) -> Option<(Self, &str)> {
        let ends = text.match_indices('-').map(|(at, _)| at).chain([text.len()]);
        // The longest: one of the names begins with another.
        let mut found =
            ends.filter_map(|end| Some((Interleave::from_name(&text[..end]).ok()?, &text[end..])));
        found.next_back()
    }

    fn from_name(name: &str) -> Result<Self, String> {
        let fused = || name.strip_prefix(FUSED)?.parse().ok().filter(|&messages| messages >= 1);
        match name {
            ROUND_ROBIN => Ok(Interleave::RoundRobin),
            BACKWARDS => Ok(Interleave::RoundRobinBackwards),
            SEQUENTIAL => Ok(Interleave::Sequential),
            _ => fused().map(|messages| Interleave::Fused { messages }).ok_or_else(|| {
                format!(
                    "an interleaving: one of {ROUND_ROBIN} {BACKWARDS} {SEQUENTIAL} {FUSED}P with \
                     P messages of a rank in a step, 1 or more"
                )
            }),
        }
    }
}

/// Lines of a text that say something.
struct TextLines<'a> {
    rest: std::iter::Peekable<std::iter::Enumerate<std::str::Lines<'a>>>,
    line: usize,
    text: &'a str,
    /// Blocks in lists so far.
    listed: u64,
}

impl<'a> TextLines<'a> {
    fn new(text: &'a str) -> Self {
        TextLines { rest: text.lines().enumerate().peekable(), line: 0, text: "", listed: 0 }
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
            let problem = format!("expected `{keyword} ...`");
            TextError { line, text: text.to_owned(), problem }
        })
    }

    /// The lines of a text that begins with this keyword and a collective.
    fn of(keyword: &str, text: &'a str) -> Result<(Self, Collective), TextError> {
        let mut lines = TextLines::new(text);
        let name = lines.need(keyword)?;
        let collective = Collective::from_str(name).map_err(|error| lines.refused(error))?;
        Ok((lines, collective))
    }

    /// An error on the line taken last, which should say something else.
    fn wrong(&self, expected: impl fmt::Display) -> TextError {
        self.refused(format_args!("expected {expected}"))
    }

    /// An error on the line taken last, which says what cannot be.
    fn refused(&self, problem: impl fmt::Display) -> TextError {
        let (line, text) = (self.line, self.text.trim().to_owned());
        TextError { line, text, problem: problem.to_string() }
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
                problem:
                    "expected the end, or `port`, `step`, `send to`, `recv from` in their places"
                        .to_owned(),
            }),
        }
    }
}

fn is_silent(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}
