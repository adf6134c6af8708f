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
//! Runs are half-open, `start..end`, separated by spaces. A part of several units of the data is also written as a
//! run: `part 1..4 of 6`. A lane with a window has `, window W` at the end of its line. If blocks are not in the
//! positions of their own numbers, `order` lists them. A lane of an alltoall lists the blocks that this rank has at
//! the `start` and at the `end`; `none*K` stands for K positions without a block of this rank. If blocks of other
//! ranks pass through such positions, `room` lists the runs of all positions that have room. `own K` means that K
//! of the operands received for each position precede the rank's own value. A schedule has one `name value` pair
//! per line, see the implementation of `Display` for [`Schedule`](super::Schedule). Empty lines and lines that
//! begin with `#` are ignored.

mod plan;
mod schedule;

use std::fmt;
use std::str::FromStr;

use super::derive::walk::Interleave;
use crate::collectives::Collective;

/// A syntax error in the text of a plan or schedule, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, `{text}`: {problem}")]
#[non_exhaustive]
pub struct TextError {
    /// Line number, counted from 1; one past the last line if the text ends too early.
    pub line: usize,
    /// The text of the line.
    pub text: String,
    /// What is expected on the line, or why the line is wrong.
    pub problem: String,
}

/// The value with the given name; if there is none, an error that lists all names as an expected `what`.
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
/// Prefix of the number of messages.
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
    /// Splits a text into an interleaving at its start and the rest, which is empty or begins with `-`.
    pub(crate) fn leading(text: &str) -> Option<(Self, &str)> {
        let ends = text.match_indices('-').map(|(at, _)| at).chain([text.len()]);
        // The last match is the longest: one name is a prefix of another.
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

/// The lines of a text, without empty lines and comments.
struct TextLines<'a> {
    rest: std::iter::Peekable<std::iter::Enumerate<std::str::Lines<'a>>>,
    line: usize,
    text: &'a str,
    /// Number of blocks in all lists so far.
    listed: u64,
}

impl<'a> TextLines<'a> {
    fn new(text: &'a str) -> Self {
        TextLines { rest: text.lines().enumerate().peekable(), line: 0, text: "", listed: 0 }
    }

    fn skip_silent(&mut self) {
        while self.rest.next_if(|(_, line)| is_silent(line)).is_some() {}
    }

    /// Takes the next line if it begins with `keyword`, and returns the rest of the line.
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

    /// The lines of a text whose first line is this keyword and a collective.
    fn of(keyword: &str, text: &'a str) -> Result<(Self, Collective), TextError> {
        let mut lines = TextLines::new(text);
        let name = lines.need(keyword)?;
        let collective = Collective::from_str(name).map_err(|error| lines.error(error))?;
        Ok((lines, collective))
    }

    /// An error on the line taken last, which says what was expected.
    fn expected(&self, expected: impl fmt::Display) -> TextError {
        self.error(format_args!("expected {expected}"))
    }

    /// An error on the line taken last, with the reason.
    fn error(&self, problem: impl fmt::Display) -> TextError {
        let (line, text) = (self.line, self.text.trim().to_owned());
        TextError { line, text, problem: problem.to_string() }
    }

    fn number(&self, word: &str) -> Result<u32, TextError> {
        word.trim().parse().map_err(|_| self.expected("a number"))
    }

    /// An error if a line is left; it says what else than the end may stand there.
    fn end(&mut self, or: &str) -> Result<(), TextError> {
        self.skip_silent();
        match self.rest.next() {
            None => Ok(()),
            Some((index, line)) => Err(TextError {
                line: index + 1,
                text: line.trim().to_owned(),
                problem: format!("expected the end{or}"),
            }),
        }
    }
}

fn is_silent(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}
