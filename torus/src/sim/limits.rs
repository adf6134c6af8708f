//! Limits of machines, for lower bounds.

use super::machine::Machine;
use super::network::Network;
use crate::bounds::{Limits, Links};

impl Machine {
    /// The limits of a network of this machine with hopbine's software.
    pub fn limits(&self, network: &Network) -> Limits {
        let speeds = self.speeds();
        Limits {
            links: network.links(),
            link: speeds.link,
            interface: speeds.interface,
            reduce: self.reduce_all,
            call_ns: self.call_ns,
            post_ns: self.post_ns,
            latency_ns: self.latency_ns,
            hop_ns: match network.has_axes_of_links() {
                true => self.hop_ns,
                false => self.hop_ns.min(self.board_hop_ns),
            },
            poll_ns: self.poll_ns,
            // The simulation lets the messages of a step leave together: `gap` separates the pieces of one message.
            gap_ns: 0.0,
        }
    }
}

impl Network {
    /// The properties of its links that the bounds need.
    pub fn links(&self) -> Links {
        let mut links = Links::of(self.vertices());
        if !self.has_axes_of_links() {
            // Every node of a line has two outgoing links: to a neighbour on its board or up to a switch.
            for line in links.lines.iter_mut().filter(|line| line.size > 1) {
                (line.least, line.most, line.mean) = (2.0, 2.0, 2.0);
                (line.all_pairs, line.reach) = (0.0, 1);
            }
        }
        links.per_node = self.per_node();
        links
    }
}
