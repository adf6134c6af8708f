//! The statements of the generalized-radix and the many-core alltoall papers about steps, messages and volumes,
//! computed from the plans and written to `docs/reproduction-nodes.md`.
//!
//! `HOPBINE_BLESS=1 cargo test -p hopbine-torus --test torus reproduction_nodes` rewrites the page.

use std::fmt::Write;
use std::path::Path;

use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::plan::{Expansion, Flow, Step, n_positions};
use hopbine_torus::{Collective, Plan, Rank, Request, registry};

fn expand(collective: Collective, name: &str, shape: &Shape) -> Expansion {
    let request =
        Request { shape: shape.clone(), map: RankMap::RowMajor, root: Rank(0), ports: Some(1) };
    registry::find(collective, name).unwrap().schedule(&request).unwrap().expand().unwrap()
}

fn steps(plan: &Plan) -> &[Step] {
    &plan.lanes[0].steps
}

/// The text of the page, built row by row.
struct Page(String);

impl Page {
    fn say(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    /// Writes a row: a statement, the paper's and hopbine's values, and whether they agree.
    fn row(&mut self, statement: &str, paper: &str, ours: &str, agreement: &str) {
        writeln!(self.0, "| {statement} | {paper} | {ours} | {agreement} |").unwrap();
    }

    fn head(&mut self) {
        self.say("| statement | paper | hopbine | agreement |\n| --- | --- | --- | --- |");
    }
}

/// Messages of a rank to other nodes and within its node, by number of blocks: `31 of 112`.
fn sends(plan: &Plan, per_node: u32) -> [Vec<(usize, u64)>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    for send in steps(plan).iter().flat_map(|step| &step.sends) {
        let is_near = send.peer.0 / per_node == plan.rank.0 / per_node;
        let list: &mut Vec<(usize, u64)> = &mut found[usize::from(is_near)];
        let blocks = n_positions(&send.runs);
        match list.iter_mut().find(|(_, each)| *each == blocks) {
            Some((count, _)) => *count += 1,
            None => list.push((1, blocks)),
        }
    }
    found
}

fn told(list: &[(usize, u64)]) -> String {
    let each = |(count, blocks): &(usize, u64)| format!("{count} of {blocks}");
    if list.is_empty() {
        "none".to_owned()
    } else {
        list.iter().map(each).collect::<Vec<_>>().join(", ")
    }
}

/// The largest runs of the paper: 32 nodes of 112 ranks.
fn many_core(page: &mut Page) {
    let (nodes, q) = (32u64, 112u64);
    let shape: Shape = format!("{nodes}+{q}").parse().unwrap();
    let p = nodes * q;
    let leader_and_member = |name: &str, member: u32| {
        let expansion = expand(Collective::Alltoall, name, &shape);
        let positions = expansion.lanes()[0].space.n_positions;
        let plans = [0, member].map(|rank| expansion.plan(Rank(rank)));
        let n_steps = steps(&plans[0]).len();
        (plans.map(|plan| sends(&plan, q as u32)), u64::from(positions), n_steps)
    };
    page.say("\n## Alltoall on many-core nodes\n");
    page.say(
        "As in the paper's figures 7 to 10 there are 32 nodes of 112 ranks. *N of B* means that one rank sends N messages of B\n\
         blocks. s is the size of a block, n = 3584 the number of ranks, ppn = 112 the ranks on a node, ppl the ranks of a\n\
         leader. MPI_Gather and MPI_Scatter, which the paper uses, also move a rank's block for itself; hopbine does not.\n",
    );
    page.head();
    for ppl in [q, 4] {
        let leaders = q / ppl;
        let name = if leaders == 1 {
            "hierarchical".to_owned()
        } else {
            format!("multi-leader:{leaders}")
        };
        let ([leader, member], positions, n_steps) = leader_and_member(&name, 1);
        assert_eq!(leader[0], [(((nodes - 1) * leaders) as usize, ppl * ppl)]);
        let mut inside = vec![];
        if leaders > 1 {
            inside.push(((leaders - 1) as usize, ppl * ppl));
        }
        inside.push(((ppl - 1) as usize, p - 1));
        assert_eq!(leader[1], inside);
        assert_eq!((&member[0][..], &member[1][..]), (&[][..], &[(1, p - 1)][..]));
        assert_eq!(positions, p * ppl);
        assert_eq!(n_steps as u64, 2 + nodes * leaders - 1);
        let (paper, what) = match leaders {
            1 => (format!("{} of ppn² = {}", nodes - 1, q * q), "algorithm 3, between leaders"),
            _ => (
                format!("{} of ppl² = {}", nodes * leaders - 1, ppl * ppl),
                "section 3.1, 28 leaders: between leaders",
            ),
        };
        let ours =
            format!("{} between nodes, {} inside (`{name}`)", told(&leader[0]), told(&leader[1]));
        page.row(
            what,
            &paper,
            &ours,
            "yes; where the listing has ppn², ppl² is meant (several leaders)",
        );
        page.row(
            "its gather: a member to its leader",
            &format!("1 of n = {p}"),
            &told(&member[1]),
            "yes, except for the own block",
        );
        page.row(
            "its leader's buffers",
            &format!("2 of s n ppl = {} blocks", p * ppl),
            &format!("1 of {positions} blocks; other ranks store {}", 2 * p - 1),
            "half: blocks are exchanged in place",
        );
    }
    let ([rank, _], _, n_steps) = leader_and_member("node-aware", 1);
    assert_eq!(rank, [vec![(31, 112)], vec![(111, 32)]]);
    page.row("algorithm 4, node-aware, between nodes", "31 of ppn = 112", &told(&rank[0]), "yes");
    page.row(
        "algorithm 4, node-aware, inside",
        "111 of ppn = 112",
        &format!("{}; {n_steps} steps pairwise", told(&rank[1])),
        "no: the listing must mean n / ppn = 32, the number of nodes, or the messages would not add up \
         to its buffer of n blocks",
    );
    let ([rank, _], ..) = leader_and_member("locality-aware:4", 1);
    assert_eq!(rank, [vec![(868, 4)], vec![(27, 4), (3, 896)]]);
    page.row(
        "section 3.2, locality-aware, groups of 4: between groups",
        "895 of 4, \"a slight increase in steps of inter-node communication\"",
        &format!("{} between nodes, {} inside", told(&rank[0]), told(&rank[1])),
        "yes; 28 times the messages between nodes",
    );
    let ([leader, _], _, n_steps) = leader_and_member("multi-leader-node-aware:28", 1);
    assert_eq!(leader, [vec![(31, 448)], vec![(27, 512), (3, 3583)]]);
    page.row(
        "algorithm 5, 28 leaders, between nodes",
        "31 of ppn ppl = 448",
        &told(&leader[0]),
        "yes",
    );
    page.row(
        "algorithm 5, inside, and to the members",
        "27 of n_nodes ppl² = 512; 3 of n = 3584",
        &format!("{}; {n_steps} steps pairwise", told(&leader[1])),
        "yes, except for the own block",
    );
    let small: Shape = "5+8".parse().unwrap();
    let all = |name: &str| {
        let expansion = expand(Collective::Alltoall, name, &small);
        Rank::first(40).map(|rank| sends(&expansion.plan(rank), 8)).collect::<Vec<_>>()
    };
    assert_eq!(all("multi-leader-node-aware:8"), all("node-aware"));
    assert_eq!(all("multi-leader:1"), all("hierarchical"));
    page.row(
        "section 4: with all ranks as leaders algorithm 5 is the node-aware one",
        "the same",
        "the same messages of all ranks (5 nodes of 8)",
        "yes",
    );
    let bruck = expand(Collective::Alltoall, "bruck:2", &"1024".parse().unwrap()).plan(Rank(0));
    let halves = steps(&bruck)
        .iter()
        .all(|step| step.sends.len() == 1 && n_positions(&step.sends[0].runs) == 512);
    assert!(halves && steps(&bruck).len() == 10);
    page.row(
        "section 2: Bruck takes log2 p steps of s p / 2 bytes",
        "10 of 512 (p = 1024)",
        "10 of 512 (`bruck:2`)",
        "yes",
    );
}

/// ceil(log_k p).
fn rounds(k: u32, p: u32) -> usize {
    std::iter::successors(Some(1u64), |power| Some(power * u64::from(k)))
        .position(|power| power >= u64::from(p))
        .unwrap()
}

fn radices(page: &mut Page) {
    page.say("\n## Generalized radix\n");
    page.say("There are vectors of n bytes on p ranks. The alpha terms of the paper's equations are compared with numbers of steps, the beta\nterms with what one rank sends or receives.\n");
    page.head();
    let sizes = [2u32, 3, 6, 7, 9, 16, 27, 64, 100, 128];
    let radices = [2u32, 3, 4, 5, 8, 16, 128];
    for (collective, name) in [
        (Collective::Reduce, "k-nomial reduce"),
        (Collective::Bcast, "k-nomial bcast"),
        (Collective::Gather, "k-nomial gather"),
    ] {
        for (p, k) in sizes.iter().flat_map(|&p| radices.map(|k| (p, k))) {
            let suffix = if collective == Collective::Gather { "" } else { "-tree" };
            let expansion = expand(
                collective,
                &format!("knomial:{k}{suffix}"),
                &p.to_string().parse().unwrap(),
            );
            let root = expansion.plan(Rank(0));
            assert_eq!(steps(&root).len(), rounds(k, p), "{name} {k} {p}");
            let messages: usize =
                steps(&root).iter().map(|step| step.sends.len() + step.recvs.len()).sum();
            assert!(messages <= (k as usize - 1) * rounds(k, p), "{name} {k} {p}");
            if u64::from(k).pow(rounds(k, p) as u32) == u64::from(p) {
                assert_eq!(messages, (k as usize - 1) * rounds(k, p), "{name} {k} {p}");
            }
        }
        page.row(
            &format!("Eq. 3: {name}, p = 2 to 128, k = 2 to 128"),
            "log_k p steps, (k - 1) log_k p messages of the root",
            "ceil(log_k p) steps; as many messages if p is a power of k, otherwise fewer",
            "yes",
        );
    }
    for (collective, name) in
        [(Collective::Allgather, "allgather"), (Collective::Allreduce, "allreduce")]
    {
        for (p, k) in [(9u32, 3u32), (16, 4), (64, 8), (7, 3), (100, 5)] {
            let plan =
                expand(collective, &format!("knomial:{k}-tree"), &p.to_string().parse().unwrap())
                    .plan(Rank(0));
            assert_eq!(steps(&plan).len(), 2 * rounds(k, p), "{name} {k} {p}");
        }
        page.row(
            &format!("Eq. 3: k-nomial {name}, a tree to one rank and a tree back"),
            "log_k p steps",
            "2 ceil(log_k p) (`knomial:K-tree`)",
            "no: the paper's equation counts the latency of one of its two trees; section III-B describes both",
        );
    }
    for (p, k) in [(8u32, 2u32), (9, 3), (64, 4), (64, 8), (81, 3), (125, 5), (256, 16)] {
        let shape: Shape = p.to_string().parse().unwrap();
        let latency =
            expand(Collective::Allreduce, &format!("multiplying:{k}-l"), &shape).plan(Rank(1));
        assert_eq!(steps(&latency).len(), rounds(k, p));
        assert!(steps(&latency).iter().all(|step| step.sends.len() == k as usize - 1));
        let gather =
            expand(Collective::Allgather, &format!("multiplying:{k}"), &shape).plan(Rank(1));
        assert_eq!(steps(&gather).len(), rounds(k, p));
        let mut volumes: Vec<u64> = steps(&gather)
            .iter()
            .map(|step| step.recvs.iter().map(|recv| n_positions(&recv.runs)).sum())
            .collect();
        volumes.sort_unstable();
        let expected: Vec<u64> =
            (0..rounds(k, p) as u32).map(|i| u64::from(k - 1) * u64::from(k).pow(i)).collect();
        assert_eq!(volumes, expected, "{k} {p}");
    }
    page.row(
        "Eq. 6: recursive multiplying allreduce (k^m ranks, k = 2 to 16)",
        "log_k p steps of k - 1 messages of n",
        "the same (`multiplying:K-l`)",
        "yes",
    );
    page.row(
        "Eq. 7: recursive multiplying allgather, step i",
        "n (k - 1) k^(i - 1) / p",
        "the same (`multiplying:K`)",
        "yes",
    );
    let crossing = |p: u32, name: &str, k: u32| {
        let expansion = expand(Collective::Allgather, name, &p.to_string().parse().unwrap());
        let (mut blocks, mut inside) = (0, 0);
        for rank in Rank::first(p) {
            for send in steps(&expansion.plan(rank)).iter().flat_map(|step| &step.sends) {
                let ends = [rank.0 / k, send.peer.0 / k];
                // Blocks between group 0 and other groups, in both directions.
                if ends[0] != ends[1] && ends.contains(&0) {
                    blocks += n_positions(&send.runs);
                }
                if rank.0 == 0 {
                    inside += u64::from(ends[0] == ends[1]);
                }
            }
        }
        (blocks, inside, steps(&expansion.plan(Rank(0))).len())
    };
    assert_eq!((crossing(6, "kring:3", 3).0, crossing(6, "bucket", 3).0), (6, 10));
    page.row(
        "section V-D: blocks between groups of 3 of 6 ranks, k-ring and ring",
        "6 and 10",
        "6 and 10 (`kring:3`, `bucket`)",
        "yes",
    );
    for (p, k) in [(12u32, 3u32), (16, 4), (24, 8), (64, 8), (6, 2)] {
        let (blocks, inside, n_steps) = crossing(p, &format!("kring:{k}"), k);
        let g = p / k;
        assert_eq!((n_steps as u32, inside as u32), (p - 1, g * (k - 1)), "{k} {p}");
        assert_eq!(blocks, u64::from(2 * (p - k)), "{k} {p}");
        assert_eq!(crossing(p, "bucket", k).0, u64::from(2 * (p - 1)));
    }
    page.row(
        "Eq. 11: k-ring, steps inside and between groups",
        "g (k - 1) and g - 1",
        "the same, p = 6 to 64",
        "yes",
    );
    page.row(
        "Eq. 13 and 14: sent and received by a group, k-ring and ring",
        "2 n (p - k) / p and 2 n (p - 1) / p",
        "the same",
        "yes",
    );
}

#[test]
fn the_papers_formulas_follow_from_the_plans() {
    let mut page = Page(String::new());
    page.say(
        "# Nodes and radices: what the papers state, and what comes out here\n\n\
         The test `torus/tests/reproduction_nodes.rs` writes this page. It reads every figure from hopbine's plans, and fails if a\n\
         statement no longer holds or the page differs (`HOPBINE_BLESS=1` rewrites it). [One page](reproduction-trends.md) has\n\
         measured trends, [another](reproduction.md) the other papers.",
    );
    many_core(&mut page);
    radices(&mut page);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reproduction-nodes.md");
    if std::env::var_os("HOPBINE_BLESS").is_some() {
        std::fs::write(&file, &page.0).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(written == page.0, "{} differs: HOPBINE_BLESS=1 rewrites it", file.display());
}
