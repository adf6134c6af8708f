//! The messages on each link in one call, with their times.

use std::collections::BTreeMap;

use hopbine_torus::sim::{Machine, Network, Resource, RoutedMessage, Span, SpanKind};
use hopbine_torus::{LaneId, LinkId, StepId};

use super::one::OneCall;
use crate::cells::{Cell, Column, decimal};
use crate::report::Report;

/// A message on a link.
pub struct Carried<'a> {
    pub message: RoutedMessage<'a>,
    /// Start and end of its transmission by the sender, in ns.
    pub ns: [f64; 2],
}

/// A link with its messages, ordered by time.
pub struct BusyLink<'a> {
    pub name: String,
    pub carried: Vec<Carried<'a>>,
}

impl BusyLink<'_> {
    /// For each message the lowest number that no other message on the link has at the same time.
    pub fn tracks(&self) -> Vec<usize> {
        let mut until: Vec<f64> = Vec::new();
        let track = |carried: &Carried<'_>| {
            let [start, end] = carried.ns;
            let free = until.iter().position(|until| *until <= start);
            let track = free.unwrap_or(until.len());
            until.resize(until.len().max(track + 1), 0.0);
            until[track] = end;
            track
        };
        self.carried.iter().map(track).collect()
    }
}

/// All links that carry messages.
pub struct LinkTimes<'a> {
    pub links: Vec<BusyLink<'a>>,
}

impl<'a> LinkTimes<'a> {
    /// The links of a call for which all ranks were simulated with times.
    pub fn of(call: &'a OneCall<'_>, network: &Network) -> Self {
        let routed = &call.call.routed;
        let mut by_link: BTreeMap<LinkId, Vec<Carried<'_>>> = BTreeMap::new();
        for &Span { lane, step, kind, start_ns, end_ns, .. } in &call.played.spans {
            let (SpanKind::Sends { message }, Some(step)) = (kind, step) else { continue };
            let message = routed.message(LaneId(lane as usize), StepId(step as usize), message);
            for &(number, _) in message.crossed {
                let Resource::Link(link) = routed.resource(number) else { continue };
                let carried = Carried { message, ns: [start_ns, end_ns] };
                by_link.entry(link).or_default().push(carried);
            }
        }
        let links = by_link.into_iter().map(|(link, mut carried)| {
            carried.sort_by(|a, b| a.ns[0].total_cmp(&b.ns[0]));
            BusyLink { name: network.whole().link_name(link), carried }
        });
        LinkTimes { links: links.collect() }
    }

    /// A row for each message on each link.
    pub fn report(&self, call: &OneCall<'_>, machine: &Machine) -> Report {
        let columns = vec![
            Column::text("link", "link"),
            Column::number("lane", "lane"),
            Column::number("port", "port").yields(1),
            Column::number("step", "step"),
            Column::number("from", "from"),
            Column::number("to", "to"),
            Column::number("start_us", "from us"),
            Column::number("end_us", "to us"),
        ];
        let us = |ns: f64| Cell::new(ns / 1e3, decimal(ns / 1e3, 3));
        let rows = self.links.iter().flat_map(|link| {
            link.carried.iter().map(|Carried { message, ns }| {
                vec![
                    Cell::text(&*link.name),
                    Cell::count(message.lane.index() as u64),
                    Cell::count(message.port.0),
                    Cell::count(message.step.index() as u64),
                    Cell::count(message.from.0),
                    Cell::count(message.to.0),
                    us(ns[0]),
                    us(ns[1]),
                ]
            })
        });
        Report {
            about: call.about(machine),
            heading: call.title("timeline of links"),
            columns,
            rows: rows.collect(),
            notes: vec![
                "A message is on all links of its route while it leaves its sender. It arrives later, by the \
                 latency of the route."
                    .to_owned(),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use hopbine_torus::{PortId, Rank};

    use super::*;

    #[test]
    fn messages_at_the_same_time_have_rooms_of_their_own() {
        let message = RoutedMessage {
            lane: LaneId(0),
            port: PortId(0),
            step: StepId(0),
            from: Rank(0),
            to: Rank(1),
            share: 1.0,
            crossed: &[],
        };
        let times = [[0.0, 4.0], [1.0, 2.0], [2.0, 3.0], [3.5, 5.0], [4.0, 5.0]];
        let carried = times.map(|ns| Carried { message, ns }).into();
        let link = BusyLink { name: "0 x+".to_owned(), carried };
        assert_eq!(link.tracks(), [0, 1, 1, 1, 0]);
    }
}
