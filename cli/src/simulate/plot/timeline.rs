//! Pictures: timelines of ports or links in one call, a row for each.

use std::path::Path;

use hopbine_torus::plan::Flow;

use crate::error::CliError;
use crate::rows::{RowBar, Rows, step_colour};
use crate::simulate::link_times::LinkTimes;
use crate::simulate::one::OneCall;
use crate::simulate::timeline::events;
use crate::trace::event::FileClock;
use crate::trace::picture::{self, ALWAYS, MOST_ROWS};
use crate::trace::sources::TraceSource;

/// Draws the activities of ports.
///
/// # Errors
/// As [`picture::draw`].
pub fn draw(call: &OneCall<'_>, path: &Path) -> Result<(), CliError> {
    let source = TraceSource { clock: FileClock::Predicted, events: events(call) };
    let fewer = "give fewer --ports, a smaller --torus, or leave out --exact";
    picture::draw(call.title("timeline"), &[source], ALWAYS, fewer, path)
}

/// Draws the messages on links. Messages that are on a link at the same time are drawn one below the other.
///
/// # Errors
/// [`CliError::Write`], or [`CliError::Usage`] if no link carries anything or there are too many links.
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
        meaning: "a message on a link, while it leaves its sender",
    };
    let mut bars = Vec::new();
    for (row, link) in times.links.iter().enumerate() {
        let tracks = link.tracks();
        let n_tracks = tracks.iter().max().map_or(1, |most| most + 1) as f64;
        for (carried, track) in link.carried.iter().zip(tracks) {
            let track = track as f64;
            let (ns, colour) =
                (carried.ns, step_colour(carried.message.step.index() as u32, rows.n_steps));
            bars.push(RowBar { row, ns, part: track / n_tracks..(track + 1.0) / n_tracks, colour });
        }
    }
    rows.draw(&bars, path)
}

fn n_steps(call: &OneCall<'_>) -> u32 {
    call.call.flow.lanes().iter().map(|lane| lane.n_steps).max().unwrap_or(0) as u32
}
