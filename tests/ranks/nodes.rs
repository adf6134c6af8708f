//! Alltoalls with leaders, groups and nodes, with parameters that the registry's rows leave at their defaults.
//! Executes each algorithm and compares the result element by element.

use crate::common::calls::{check, config_on};
use crate::common::reference::Case;
use hopbine::torus::{Collective, registry};
use hopbine::{CallOptions, Drive, emulate};

#[test]
fn leaders_and_groups_of_any_number() {
    let names = [
        "multi-leader:4",
        "multi-leader:8",
        "multi-leader:2-batched:3",
        "multi-leader:3",
        "multi-leader:5-batched:2",
        "multi-leader-node-aware:3-nonblocking",
        "multi-leader-node-aware:4",
        "multi-leader-node-aware:8-nonblocking",
        "locality-aware:4",
        "locality-aware:1",
        "locality-aware:8-batched:2",
        "hierarchical-batched:2",
        "node-aware-batched:3",
        "dimensions-nonblocking",
        "pairwise-batched:5",
    ];
    for text in ["3+8", "2x2+4"] {
        let config = config_on(text.parse().unwrap(), Drive::Inline);
        emulate(&config, |comm| {
            let mut n_run = 0;
            for (index, name) in names.into_iter().enumerate() {
                let algorithm = registry::find(Collective::Alltoall, name).unwrap();
                if algorithm.serves(comm.shape()).is_err() {
                    continue;
                }
                let (collective, n_ranks) = (Collective::Alltoall, comm.size());
                let case = Case { collective, n_ranks, count: [1, 5, 0][index % 3], root: 0 };
                let ports = 1 + index as u32 % comm.n_ports();
                let options = CallOptions::new().algorithm(name).ports(ports).segment_bytes(100);
                check(&comm.with(options), &case, name);
                n_run += 1;
            }
            assert!(n_run >= 8, "{n_run} of them serve {text}");
        })
        .unwrap();
    }
}
