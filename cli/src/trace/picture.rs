//! Picture: timelines with a row for each port.

use std::collections::BTreeSet;
use std::path::Path;

use plotters::prelude::*;

use super::event::{EventKind, TraceEvent};
use super::merged::tracks;
use super::sources::TraceSource;
use crate::error::CliError;
use crate::picture::between;
use crate::rows::{RowBar, Rows, step_colour};

/// Maximum number of rows on a page.
pub const MOST_ROWS: usize = 96;
/// The unlimited time interval, in ns.
pub const ALWAYS: [i64; 2] = [i64::MIN, i64::MAX];
const BUSY: RGBColor = RGBColor(70, 78, 88);

/// Draws the activities of ports in a time interval. The upper half of a row shows the port's sends, the lower half
/// the activities of its thread.
///
/// # Errors
/// [`CliError::Write`]; or [`CliError::Usage`], with the advice `fewer`, if there are too many ports.
pub fn draw(
    title: String,
    sources: &[TraceSource],
    window: [i64; 2],
    fewer: &str,
    path: &Path,
) -> Result<(), CliError> {
    let keys: BTreeSet<(u32, u32, usize)> = (0..)
        .zip(sources)
        .flat_map(|(number, source)| {
            let ports = source.events.iter().filter_map(|event| Some((event.rank, event.port?)));
            ports.map(move |(rank, port)| (rank, port, number))
        })
        .collect();
    let keys: Vec<(u32, u32, usize)> = keys.into_iter().collect();
    if keys.is_empty() || keys.len() > MOST_ROWS {
        return Err(CliError::Usage(format!(
            "a timeline of {} ports is not legible: a picture has 1 to {MOST_ROWS}; {fewer}",
            keys.len()
        )));
    }
    let all = || sources.iter().flat_map(|source| &source.events);
    let has_ranks = keys.iter().any(|&(rank, ..)| rank != keys[0].0);
    let label = |&(rank, port, number): &(u32, u32, usize)| match number {
        0 if has_ranks => format!("rank {rank}, port {port}"),
        0 => format!("port {port}"),
        number => sources[number].clock.name().to_owned(),
    };
    let start = all().map(|event| event.ns[0]).min().unwrap_or(0).max(window[0]);
    let end = all().map(|event| event.ns[1]).max().unwrap_or(0).min(window[1]);
    let last_step = all().filter_map(|event| event.number("step")).max();
    let rows = Rows {
        title,
        labels: keys.iter().map(label).collect(),
        until_ns: (end - start).max(1) as f64,
        n_steps: last_step.map_or(0, |step| step as u32 + 1),
        meaning: "upper half: messages sent; lower half: the thread waits (pale) or computes (grey)",
    };
    let mut bars = Vec::new();
    for (row, &(rank, port, number)) in keys.iter().enumerate() {
        let of_port = |event: &&TraceEvent| (event.rank, event.port) == (rank, Some(port));
        let events = || sources[number].events.iter().filter(of_port);
        let sends = || events().filter(|event| event.kind == EventKind::Send);
        let tracks: Vec<u64> = tracks(sends().map(|event| event.ns)).collect();
        let n_tracks = tracks.iter().max().map_or(1, |most| most + 1) as f64;
        let ns = |event: &TraceEvent| event.ns.map(|ns| (ns.clamp(start, end) - start) as f64);
        let of_step = |event: &TraceEvent| {
            event.number("step").map_or(BUSY, |step| step_colour(step as u32, rows.n_steps))
        };
        for (event, track) in sends().zip(tracks) {
            let at = |track: f64| track / n_tracks / 2.0;
            let part = at(track as f64)..at(track as f64 + 1.0);
            bars.push(RowBar { row, ns: ns(event), part, colour: of_step(event) });
        }
        for event in events().filter(|event| event.kind.is_of_thread()) {
            let colour = match event.kind {
                EventKind::Wait => between(of_step(event), WHITE, 0.7),
                _ => BUSY,
            };
            bars.push(RowBar { row, ns: ns(event), part: 0.5..1.0, colour });
        }
    }
    rows.draw(&bars, path)
}
