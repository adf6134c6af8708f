//! What ports do in one call, or what links carry: a row for each.

use std::path::Path;

use hopbine_torus::plan::Flow;
use hopbine_torus::sim::SpanKind;
use plotters::prelude::*;

use super::rows::{Bar, Rows, step_colour};
use crate::error::CliError;
use crate::picture::between;
use crate::simulate::link_times::LinkTimes;
use crate::simulate::one::OneCall;
use crate::simulate::timeline::spans;

/// Rows that fit a page.
const MOST_ROWS: usize = 96;
const BUSY: RGBColor = RGBColor(70, 78, 88);

/// Draws what ports do. The upper half of a row is the port's interface, the lower its thread.
///
/// # Errors
/// [`CliError::Write`], or [`CliError::Usage`] if there are too many ports.
pub fn draw(call: &OneCall<'_>, path: &Path) -> Result<(), CliError> {
    let lanes = call.call.flow.lanes();
    let n_agents = call.call.score.n_agents() as usize;
    let n_rows = n_agents * lanes.len();
    if n_rows > MOST_ROWS {
        return Err(CliError::Usage(format!(
            "a timeline of {n_rows} ports is not legible: --plot draws {MOST_ROWS} at most; give fewer \
             --ports, a smaller --torus, or leave out --exact"
        )));
    }
    let label = |row: usize| {
        let port = lanes[row % lanes.len()].port;
        match n_agents {
            1 => format!("port {port}"),
            _ => format!("rank {}, port {port}", row / lanes.len()),
        }
    };
    let rows = Rows {
        title: call.title("timeline"),
        labels: (0..n_rows).map(label).collect(),
        until_ns: call.played.ns,
        n_steps: n_steps(call),
        meaning: "above: its interface sends; below: its thread waits (pale) or computes (grey)",
    };
    let bars = spans(call).into_iter().map(|span| {
        let of_step = span.step.map_or(BUSY, |step| step_colour(step, rows.n_steps));
        let (colour, part) = match span.kind {
            SpanKind::Sends { .. } => (of_step, 0.0..0.5),
            SpanKind::Waits => (between(of_step, WHITE, 0.7), 0.5..1.0),
            SpanKind::Busy(_) => (BUSY, 0.5..1.0),
        };
        let row = span.rank as usize * lanes.len() + span.lane as usize;
        Bar { row, ns: [span.start_ns, span.end_ns], part, colour }
    });
    let bars: Vec<Bar> = bars.collect();
    rows.draw(&bars, path)
}

/// Draws what links carry. Messages that are on a link at the same time stand one below the other.
///
/// # Errors
/// [`CliError::Write`], or [`CliError::Usage`] if there are too many links, or none carries anything.
pub fn draw_links(call: &OneCall<'_>, times: &LinkTimes<'_>, path: &Path) -> Result<(), CliError> {
    let n_rows = times.links.len();
    if n_rows == 0 || n_rows > MOST_ROWS {
        return Err(CliError::Usage(format!(
            "a timeline of {n_rows} links is not legible: --plot draws 1 to {MOST_ROWS}; give fewer --ports or a \
             smaller --torus, or leave out --plot"
        )));
    }
    let rows = Rows {
        title: call.title("timeline of links"),
        labels: times.links.iter().map(|link| link.name.clone()).collect(),
        until_ns: call.played.ns,
        n_steps: n_steps(call),
        meaning: "a message on a link, from when its first byte has left its sender until the last one has",
    };
    let mut bars = Vec::new();
    for (row, link) in times.links.iter().enumerate() {
        let rooms = link.rooms();
        let n_rooms = rooms.iter().max().map_or(1, |most| most + 1) as f64;
        for (carried, room) in link.carried.iter().zip(rooms) {
            let room = room as f64;
            let (ns, colour) =
                (carried.ns, step_colour(carried.message.step.index() as u32, rows.n_steps));
            bars.push(Bar { row, ns, part: room / n_rooms..(room + 1.0) / n_rooms, colour });
        }
    }
    rows.draw(&bars, path)
}

fn n_steps(call: &OneCall<'_>) -> u32 {
    call.call.flow.lanes().iter().map(|lane| lane.n_steps).max().unwrap_or(0) as u32
}
