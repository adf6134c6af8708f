//! The load of each link in one call.

use std::collections::HashMap;

use hopbine_torus::geometry::Vertex;
use hopbine_torus::sim::{Machine, Network, NetworkLink, Resource};
use hopbine_torus::{LinkId, Shape};

use super::one::OneCall;
use crate::cells::{Cell, Column, decimal};
use crate::report::Report;

/// A link that carries messages.
pub struct LinkLoad {
    /// Its name.
    pub name: String,
    /// The vertex at which the link starts, its dimension, and its direction.
    pub from: Vertex,
    pub dim: usize,
    pub direction: String,
    /// Number of messages on the link.
    pub n_messages: u64,
    /// Bytes on the link, as a multiple of n.
    pub load: f64,
}

/// All links that carry messages, the most loaded first.
pub struct Loads {
    pub links: Vec<LinkLoad>,
    /// The shape of the vertices at which links start.
    pub vertices: Shape,
}

impl Loads {
    /// The loads of a call for which all ranks were simulated.
    pub fn of(call: &OneCall<'_>, network: &Network) -> Self {
        let routed = &call.call.routed;
        let mut found: HashMap<LinkId, (u64, f64)> = HashMap::new();
        for message in routed.messages() {
            for (number, _) in message.crossed {
                let Resource::Link(link) = routed.resource(*number) else { continue };
                let (n_messages, load) = found.entry(link).or_default();
                *n_messages += 1;
                *load += message.share;
            }
        }
        let mut found: Vec<(LinkId, (u64, f64))> = found.into_iter().collect();
        found.sort_by(|(a, (_, a_load)), (b, (_, b_load))| b_load.total_cmp(a_load).then(a.cmp(b)));
        let vertices = network.vertices().clone();
        let links = found.into_iter().map(|(link, (n_messages, load))| {
            let name = network.whole().link_name(link);
            let NetworkLink { from, dim, direction } = network.link(link);
            LinkLoad { name, from: vertices.vertex(from), dim, direction, n_messages, load }
        });
        Loads { links: links.collect(), vertices }
    }

    /// A row for each link that carries messages, the most loaded first.
    pub fn report(&self, call: &OneCall<'_>, machine: &Machine) -> Report {
        let columns = vec![
            Column::text("link", "link"),
            Column::text("from", "from").yields(2),
            Column::text("way", "way").yields(1),
            Column::number("messages", "messages"),
            Column::number("bytes", "bytes"),
            Column::number("load", "load"),
            Column::number("busy", "busy"),
        ];
        let rows = self.links.iter().map(|link| {
            let bytes = link.load * call.bytes as f64;
            let busy = bytes / machine.link / call.played.ns;
            vec![
                Cell::text(&*link.name),
                Cell::text(self.vertices.coord(link.from).to_string()),
                Cell::text(&*link.direction),
                Cell::count(link.n_messages),
                Cell::new(bytes, decimal(bytes, 1)),
                Cell::new(link.load, decimal(link.load, 4)),
                Cell::new(busy, format!("{:.0}%", 100.0 * busy)),
            ]
        });
        Report {
            about: call.about(machine),
            heading: call.title("link loads"),
            columns,
            rows: rows.collect(),
            notes: vec![
                "Load: bytes as a multiple of n, the bytes of a rank's vector or of all its blocks. \
                 Busy: the part of the call's time that they take at the link's speed."
                    .to_owned(),
            ],
        }
    }
}
