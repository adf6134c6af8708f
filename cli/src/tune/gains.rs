//! Calls for which a search finds a schedule that is faster than all algorithms of the registry.

use hopbine_torus::sim::Machine;
use hopbine_torus::sizes;
use serde_json::Value;

use super::compare::{Compared, SizedCall};
use crate::cells::{Cell, Column, decimal};
use crate::report::Report;

/// Ratio of times from which on a gain counts as large.
const LARGE: f64 = 1.1;

/// A row for each collective and shape: the number of gains over 10 %, and the largest gain.
pub fn report(machine: &Machine, compared: &[Compared]) -> Report {
    let gain = |call: &SizedCall| call.row.0 / call.best;
    let ratio = |value: f64| Cell::new(value, format!("{value:.2}"));
    let us = |ns: f64| Cell::new(ns / 1e3, decimal(ns / 1e3, 1));
    let all = || compared.iter().flat_map(|of| &of.calls);
    let large = |calls: &mut dyn Iterator<Item = &SizedCall>| {
        calls.filter(|call| gain(call) > LARGE).count()
    };
    let rows = compared.iter().filter_map(|Compared { collective, shape, calls }| {
        let most = calls.iter().max_by(|a, b| gain(a).total_cmp(&gain(b)))?;
        let (row_ns, row) = &most.row;
        let is_row = gain(most) <= 1.0;
        Some(vec![
            Cell::text(collective.name()),
            Cell::text(shape.to_string()),
            Cell::count(calls.len() as u64),
            Cell::count(large(&mut calls.iter()) as u64),
            ratio(gain(most)),
            if is_row { Cell::none() } else { Cell::new(most.bytes, sizes::show(most.bytes)) },
            if is_row { Cell::none() } else { Cell::count(most.ports) },
            if is_row { Cell::none() } else { Cell::text(row) },
            if is_row { Cell::none() } else { us(*row_ns) },
            if is_row { Cell::none() } else { Cell::text(&most.names[1]) },
            if is_row { Cell::none() } else { us(most.best) },
        ])
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    let (n, n_large) = (all().count(), large(&mut all()));
    Report {
        about: vec![
            ("predicted", Value::from(true)),
            ("machine", Value::from(&*machine.name)),
            ("cells", Value::from(n)),
            ("large", Value::from(n_large)),
        ],
        heading: format!(
            "Predicted on {}: the best schedule of a search, and the best algorithm of the registry",
            machine.name
        ),
        columns: vec![
            Column::text("collective", "collective"),
            Column::text("torus", "torus"),
            Column::number("cells", "cells"),
            Column::number("large", "over 10 %"),
            Column::number("gain", "most"),
            Column::number("bytes", "bytes"),
            Column::number("ports", "ports"),
            Column::text("row", "best row").wraps(),
            Column::number("row_us", "us"),
            Column::text("found", "found").wraps(),
            Column::number("found_us", "us "),
        ],
        rows,
        notes: vec![format!(
            "{n} cells (collective, shape, ports, size); in {n_large} the best row of the registry takes over 10 % longer \
             than the schedule found. Most: the largest ratio of these times. Only exact predictions count."
        )],
    }
}
