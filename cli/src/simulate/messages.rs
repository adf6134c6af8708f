//! The messages of one call with the resources that they cross, for other simulators.

use hopbine_torus::plan::{DependsOn, Flow};
use hopbine_torus::sim::{Machine, Network, Resource};
use hopbine_torus::{LaneId, StepId};
use serde_json::{Value, json};

use super::one::OneCall;
use crate::cells::{Cell, Column, decimal};
use crate::report::Report;

/// A row for each message; JSON also has the links and interfaces.
pub fn report(call: &OneCall<'_>, machine: &Machine, network: &Network) -> Report {
    let columns = vec![
        Column::number("lane", "lane"),
        Column::number("port", "port"),
        Column::number("step", "step"),
        Column::number("awaits", "awaits"),
        Column::number("from", "from"),
        Column::number("to", "to"),
        Column::number("bytes", "bytes"),
        Column::text("crosses", "crosses").wraps(),
    ];
    let routed = &call.call.routed;
    // The links and interfaces that are used, in order.
    let mut used: Vec<u32> = routed
        .messages()
        .flat_map(|message| message.crossed.iter().map(|(resource, _)| *resource))
        .collect();
    used.sort_unstable();
    used.dedup();
    let name = |number: u32| match routed.resource(number) {
        Resource::Link(link) => network.whole().link_name(link),
        Resource::In { node, port } => format!("node {node} in {}", port.0),
        Resource::Memory { node } => format!("node {node} memory"),
        Resource::Out { node, port } => format!("node {node} out {}", port.0),
    };
    let resource = |&number: &u32| {
        let (kind, gb_per_s, ns) = match routed.resource(number) {
            Resource::Link(link) if network.is_on_board(link) => {
                ("board", machine.link, machine.board_hop_ns)
            }
            Resource::Link(_) => ("cable", machine.link, machine.hop_ns),
            Resource::In { .. } | Resource::Out { .. } => ("interface", machine.interface, 0.0),
            Resource::Memory { .. } => ("memory", machine.copy_all, 0.0),
        };
        json!({ "name": name(number), "kind": kind, "gb_per_s": gb_per_s, "ns": ns })
    };
    let resources: Vec<Value> = used.iter().map(resource).collect();
    let rows = routed.messages().map(|message| {
        let number = |resource: u32| used.binary_search(&resource).expect("a resource in use");
        let crossed: Vec<usize> =
            message.crossed.iter().map(|(resource, _)| number(*resource)).collect();
        let names: Vec<String> =
            message.crossed.iter().map(|(resource, _)| name(*resource)).collect();
        let bytes = message.share * call.bytes as f64;
        vec![
            Cell::count(message.lane.index() as u64),
            Cell::count(message.port.0),
            Cell::count(message.step.index() as u64),
            Cell::count(awaits(&call.call.flow, message.lane, message.step)),
            Cell::count(message.from.0),
            Cell::count(message.to.0),
            Cell::new(bytes, decimal(bytes, 1)),
            Cell::new(crossed, names.join(", ")),
        ]
    });
    let mut about = call.about(machine);
    about.extend([
        // The latency to a neighbour; each further link adds its own.
        ("latency_ns", Value::from(machine.latency_ns)),
        ("resources", Value::from(resources)),
    ]);
    Report {
        about,
        heading: call.title("messages"),
        columns,
        rows: rows.collect(),
        notes: vec![
            "Awaits: in how many steps of the lane all messages to a rank must have arrived before it posts \
             this step's messages, in order. A rank's messages leave each port one after the other."
                .to_owned(),
        ],
    }
}

/// Number of steps of the lane from which a rank must have received all messages before it posts `step`.
fn awaits(flow: &dyn Flow, lane: LaneId, step: StepId) -> u64 {
    let carried = match flow.depends_on(lane, step) {
        DependsOn::Nothing => 0,
        DependsOn::Step(before) => before.index() + 1,
    };
    let window =
        flow.lanes()[lane.index()].window.map_or(usize::MAX, |window| window.get() as usize);
    carried.max((step.index() + 1).saturating_sub(window)) as u64
}
