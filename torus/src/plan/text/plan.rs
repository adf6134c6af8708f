//! The text form of plans.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;

use super::{TextError, TextLines, by_name};
use crate::collectives::{Action, Payload};
use crate::names::{Block, PortId, Position, Rank};
use crate::plan::ir::runs::Run;
use crate::plan::ir::space::{BlockOrder, BlockPermutation, Space};
use crate::plan::ir::types::{Lane, Plan, Step, Transfer, Transfers};

/// Prefix of the number of positions that hold none of a rank's blocks.
const NONE: &str = "none*";

/// Prefix of the port of a message, if it is not the lane's port.
const BY_PORT: &str = " by port ";

/// Prefix of the window of a lane, if it has one.
const WINDOW: &str = ", window ";

/// Writes runs of consecutive values, half-open.
fn write_runs(f: &mut fmt::Formatter<'_>, runs: impl IntoIterator<Item = Run>) -> fmt::Result {
    runs.into_iter().try_for_each(|run| write!(f, " {}..{}", run.start, run.end()))
}

fn parse_runs(lines: &TextLines<'_>, text: &str) -> Result<Vec<Run>, TextError> {
    let run = |word: &str| {
        let (start, end) = word.split_once("..")?;
        let (start, end): (u32, u32) = (start.parse().ok()?, end.parse().ok()?);
        (start < end).then(|| Run::new(start, end - start))
    };
    text.split_whitespace()
        .map(|word| run(word).ok_or_else(|| lines.expected("runs such as 0..4 6..7, none empty")))
        .collect()
}

/// Writes blocks by position. Consecutive blocks in consecutive positions become one run, and so do consecutive
/// positions without a block.
fn write_blocks(f: &mut fmt::Formatter<'_>, blocks: &[Option<Block>]) -> fmt::Result {
    let goes_on = |a: &Option<Block>, b: &Option<Block>| match (a, b) {
        (Some(a), Some(b)) => a.0.checked_add(1) == Some(b.0),
        (None, None) => true,
        _ => false,
    };
    blocks.chunk_by(goes_on).try_for_each(|chunk| match chunk[0] {
        Some(Block(first)) => write_runs(f, [Run::new(first, chunk.len() as u32)]),
        None => write!(f, " {NONE}{}", chunk.len()),
    })
}

/// Most blocks in all lists of a plan together: a few characters of text may describe four billion blocks.
const MOST_LISTED: u64 = 1 << 27;

/// Parses a list of `count` blocks. A list of another length, or one that exceeds [`MOST_LISTED`], is refused
/// before memory is allocated.
fn parse_blocks(
    lines: &mut TextLines<'_>,
    text: &str,
    count: u32,
) -> Result<Vec<Option<Block>>, TextError> {
    let mut runs: Vec<(Option<u32>, u32)> = Vec::new();
    for word in text.split_whitespace() {
        match word.strip_prefix(NONE) {
            Some(len) => runs.push((None, lines.number(len)?)),
            None => {
                let parsed = parse_runs(lines, word)?;
                runs.extend(parsed.into_iter().map(|run| (Some(run.start), run.len)));
            }
        }
    }
    if runs.iter().map(|(_, len)| u64::from(*len)).sum::<u64>() != u64::from(count) {
        return Err(lines.expected(format_args!("{count} blocks, one for each position")));
    }
    lines.listed += u64::from(count);
    if lines.listed > MOST_LISTED {
        return Err(
            lines.expected(format_args!("{MOST_LISTED} blocks at most in all lists of a plan"))
        );
    }
    let block = |start: Option<u32>, at: u32| start.map(|start| Block(start + at));
    Ok(runs.into_iter().flat_map(|(start, len)| (0..len).map(move |at| block(start, at))).collect())
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan {}", self.collective)?;
        writeln!(f, "rank {} of {}", self.rank, self.n_ranks)?;
        writeln!(f, "root {}", self.root)?;
        for lane in &self.lanes {
            let Lane { port, part, space, window, steps } = lane;
            let Space { payload, n_positions, .. } = &**space;
            write!(f, "lane port {port}, part {part}, {n_positions} positions of {payload}")?;
            window.map_or(Ok(()), |window| write!(f, "{WINDOW}{window}"))?;
            writeln!(f)?;
            if !space.is_identity() {
                let all = || Position::first(*n_positions);
                let start: Vec<_> = all().map(|at| space.block_at_start(self.rank, at)).collect();
                if *payload == Payload::Pairs {
                    let end: Vec<_> = all().map(|at| space.block_at_end(self.rank, at)).collect();
                    f.write_str("start")?;
                    write_blocks(f, &start)?;
                    f.write_str("\nend")?;
                    write_blocks(f, &end)?;
                    let room = space.room_for_others(self.rank);
                    if !room.is_empty() {
                        f.write_str("\nroom")?;
                        write_runs(f, room)?;
                    }
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
                    for Transfer { peer, port: by, runs } in transfers {
                        write!(f, "  {what} {peer}")?;
                        if by != port {
                            write!(f, "{BY_PORT}{by}")?;
                        }
                        write!(f, ":")?;
                        write_runs(f, runs.iter().copied())?;
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
        let (mut lines, collective) = TextLines::of("plan", text)?;
        let ranks = lines.need("rank")?;
        let (rank, n_ranks) =
            ranks.split_once(" of ").ok_or_else(|| lines.expected("`rank R of N`"))?;
        let (rank, n_ranks) = (Rank(lines.number(rank)?), lines.number(n_ranks)?);
        let root = lines.need("root")?;
        let root = Rank(lines.number(root)?);
        let mut lanes = Vec::new();
        while let Some(text) = lines.take("lane port") {
            lanes.push(parse_lane(&mut lines, text)?);
        }
        lines.end(", or `lane port`, `step`, `send to`, `recv from` in their places")?;
        Ok(Plan { collective, rank, n_ranks, root, lanes })
    }
}

fn parse_lane(lines: &mut TextLines<'_>, text: &str) -> Result<Lane, TextError> {
    let form = "`lane port P, part Q of N, K positions of WHAT`, perhaps `, window W`";
    let (text, window) = match text.split_once(WINDOW) {
        Some((text, window)) => (text, Some(window)),
        None => (text, None),
    };
    let window = window.map(|window| {
        let window = NonZeroU32::new(lines.number(window)?);
        window.ok_or_else(|| lines.expected("a window of 1 or more"))
    });
    let window = window.transpose()?;
    let split = || {
        let (port, rest) = text.split_once(", part ")?;
        let (part, rest) = rest.split_once(", ")?;
        let (positions, payload) = rest.split_once(" positions of ")?;
        Some((port, part, positions, payload))
    };
    let (port, part, n_positions, payload) = split().ok_or_else(|| lines.expected(form))?;
    let port = parse_port(lines, port)?;
    let part = part.parse().map_err(|()| {
        lines.expected(
            "a part such as `2 of 6`, or units of the data such as `1..4 of 6`, 1 or more",
        )
    })?;
    let n_positions = lines.number(n_positions)?;
    let payload = by_name(&Payload::ALL, "what positions are", payload)
        .map_err(|expected| lines.expected(expected))?;
    let order = if let Some(order) = lines.take("order") {
        let blocks = parse_blocks(lines, order, n_positions)?;
        let permutation = blocks.into_iter().collect::<Option<_>>().and_then(BlockPermutation::new);
        let permutation = permutation.ok_or_else(|| lines.expected("every block once"))?;
        BlockOrder::Listed(Arc::new(permutation))
    } else if let Some(start) = lines.take("start") {
        let start = parse_blocks(lines, start, n_positions)?.into();
        let end = lines.need("end")?;
        let end = parse_blocks(lines, end, n_positions)?.into();
        let room = lines.take("room").map(|room| parse_runs(lines, room)).transpose()?;
        BlockOrder::Own { start, end, room: room.unwrap_or_default().into() }
    } else {
        BlockOrder::Identity
    };
    let mut steps = Vec::new();
    while let Some(text) = lines.take("step") {
        let (action, own) = text.split_once(" own ").unwrap_or((text, "0"));
        let action = by_name(&Action::ALL, "an action", action)
            .map_err(|expected| lines.expected(expected))?;
        let own_at = lines.number(own)?;
        let sends = parse_transfers(lines, "send to", port)?;
        let recvs = parse_transfers(lines, "recv from", port)?;
        steps.push(Step { sends, recvs, action, own_at });
    }
    let space = Arc::new(Space { payload, n_positions, order });
    Ok(Lane { port, part, space, window, steps })
}

fn parse_port(lines: &TextLines<'_>, text: &str) -> Result<PortId, TextError> {
    text.parse().map(PortId).map_err(|_| lines.expected("a port of at most 65535"))
}

/// The transfers of a lane that is driven by port `own`.
fn parse_transfers(
    lines: &mut TextLines<'_>,
    keyword: &str,
    own: PortId,
) -> Result<Transfers, TextError> {
    let mut transfers = Transfers::new();
    while let Some(text) = lines.take(keyword) {
        let form = "`RANK: RUNS` or `RANK by port P: RUNS`";
        let (peer, runs) = text.split_once(':').ok_or_else(|| lines.expected(form))?;
        let (peer, port) = match peer.split_once(BY_PORT) {
            Some((peer, port)) => (peer, parse_port(lines, port)?),
            None => (peer, own),
        };
        let runs = parse_runs(lines, runs)?.into();
        transfers.push(Transfer { peer: Rank(lines.number(peer)?), port, runs });
    }
    Ok(transfers)
}
