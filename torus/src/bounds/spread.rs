//! The shortest time in which one node's data reach all nodes: the best tree if messages are sent one by one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Returns the earliest time at which `n_nodes` nodes can have one node's data. A node that has the data sends
/// `messages` messages at once, and as many again every `gap_ns`. Each message takes `delay_ns`.
///
/// If the gap is as long as the delay, the time is that of the ceil(log_{messages + 1} n) rounds of Bruck et al. 1997
/// (section 2). With a shorter gap it is that of the optimal tree of the postal and LogP models (Bar-Noy and Kipnis
/// 1992; Karp et al. 1993).
pub(super) fn spread_ns(n_nodes: u64, messages: u64, gap_ns: f64, delay_ns: f64) -> f64 {
    if n_nodes < 2 {
        return 0.0;
    }
    if gap_ns <= 0.0 {
        return delay_ns;
    }
    // Nodes that received the data at the same time: (arrival of their next messages, number of nodes). Times are not
    // negative, so their bits have the order of their values.
    let mut next = BinaryHeap::from([Reverse((delay_ns.to_bits(), 1u64))]);
    let mut heard = 1u64;
    while let Some(Reverse((at, senders))) = next.pop() {
        let now = f64::from_bits(at);
        let new = senders.saturating_mul(messages);
        heard = heard.saturating_add(new);
        if heard >= n_nodes {
            return now;
        }
        next.push(Reverse(((now + gap_ns).to_bits(), senders)));
        next.push(Reverse(((now + delay_ns).to_bits(), new)));
    }
    delay_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::ceil_log;

    #[test]
    fn rounds_and_postal_trees() {
        for n in [1u32, 2, 3, 7, 8, 9, 64, 69, 512, 158_976] {
            for messages in 1..7 {
                let rounds = spread_ns(u64::from(n), u64::from(messages), 10.0, 10.0);
                assert_eq!(rounds, f64::from(10 * ceil_log(n, messages + 1)), "{n} {messages}");
            }
        }
        // Delay 3, gap 1: at times 0, 1, 2, ... 1, 1, 1, 2, 3, 4, 6, 9, 13 nodes have the data (Bar-Noy and Kipnis).
        let times =
            [(2, 3.0), (3, 4.0), (4, 5.0), (5, 6.0), (6, 6.0), (9, 7.0), (10, 8.0), (13, 8.0)];
        for (n, time) in times {
            assert_eq!(spread_ns(n, 1, 1.0, 3.0), time, "{n}");
        }
        assert_eq!(spread_ns(1000, 1, 0.0, 5.0), 5.0);
    }
}
