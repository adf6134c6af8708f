//! What the papers state about traffic, computed from the plans of all ranks and written to
//! `docs/reproduction.md`; every statement is asserted here as well.
//!
//! `HOPBINE_BLESS=1 cargo test -p hopbine-torus --test reproduction` rewrites the page.

use std::fmt::Write;
use std::path::Path;

use hopbine_torus::Collective::{
    self, Allgather, Allreduce, Alltoall, Bcast, Gather, Reduce, ReduceScatter, Scatter,
};
use hopbine_torus::geometry::{Groups, RankMap, Shape, Topology};
use hopbine_torus::plan::{
    Flow, Recipe, Schedule, StepOrder, Traffic, for_each_message, n_positions, traffic,
};
use hopbine_torus::{Request, registry};

fn schedule(collective: Collective, name: &str, shape: &str, ports: Option<u32>) -> Schedule {
    let shape: Shape = shape.parse().unwrap();
    let request = Request { shape, map: RankMap::RowMajor, root: 0, ports };
    registry::find(collective, name).unwrap().schedule(&request).unwrap()
}

fn count(schedule: &Schedule, topology: &dyn Topology) -> Traffic {
    let expansion = schedule.expand().unwrap();
    traffic(&expansion, topology, |rank| schedule.map.node_of(&schedule.shape, rank.0))
}

/// A message: from, to, and its volume as a multiple of n.
type Volume = (u32, u32, f64);

fn volumes(schedule: &Schedule) -> Vec<Volume> {
    let expansion = schedule.expand().unwrap();
    let mut volumes = Vec::new();
    for_each_message(&expansion, |lane, _, message| {
        let volume = n_positions(message.runs) as f64 * expansion.lanes()[lane].position_share();
        volumes.push((message.from.0, message.to.0, volume));
    });
    volumes
}

/// Groups of random sizes, of consecutive ranks, as a scheduler hands out what is free.
fn random_groups(n_ranks: u32, n_groups: u32, state: &mut u64) -> Vec<u32> {
    let mut cuts = std::collections::BTreeSet::new();
    while cuts.len() + 1 < n_groups as usize {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        cuts.insert(1 + (*state >> 33) as u32 % (n_ranks - 1));
    }
    (0..n_ranks).map(|rank| cuts.range(..=rank).count() as u32).collect()
}

fn crossing(volumes: &[Volume], group_of: &[u32]) -> f64 {
    let group = |rank: u32| group_of[rank as usize];
    volumes.iter().filter(|(from, to, _)| group(*from) != group(*to)).map(|v| v.2).sum()
}

/// By how many percent fewer bytes cross groups, for 60 random allocations, ascending.
fn reductions(n_groups: u32, n_ranks: u32, ours: &[Volume], theirs: &[Volume]) -> Vec<f64> {
    let mut state = 7;
    let mut all: Vec<f64> = (0..60)
        .map(|_| {
            let groups = random_groups(n_ranks, n_groups, &mut state);
            100.0 * (1.0 - crossing(ours, &groups) / crossing(theirs, &groups))
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

struct Page(String);

impl Page {
    fn say(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn table(&mut self, header: &str) {
        let columns = header.matches('|').count() + 1;
        self.say(&format!("\n| {header} |\n|{}", " --- |".repeat(columns)));
    }

    fn row(&mut self, cells: &[String]) {
        self.say(&format!("| {} |", cells.join(" | ")));
    }

    fn statement(&mut self, statement: &str, paper: &str, ours: &str, agrees: &str) {
        self.row(&[statement, paper, ours, agrees].map(str::to_owned));
    }
}

const STATEMENT: &str = "statement | paper | from our plans | agreement";

/// Bine trees, Fig. 1, Eq. 2, section 2.4 and Table 3.
fn bine(page: &mut Page) {
    page.say("\n## Bine trees: bytes that cross groups\n");
    page.say(
        "One port, ranks in order, groups of consecutive ranks; n is the vector. `doubling` is the \
         binomial tree\nor butterfly, near or far first.",
    );
    page.table(STATEMENT);
    let pairs = Groups::consecutive(8, 2);
    for (name, paper, what) in
        [("doubling-tree-near", 6.0, "doubling"), ("doubling-tree", 3.0, "halving")]
    {
        let crossed = count(&schedule(Bcast, name, "8", Some(1)), &pairs).crossed();
        assert!((crossed - paper).abs() < 1e-9, "{name}: {crossed}");
        page.statement(
            &format!("Fig. 1: broadcast on 8 nodes, 2 per switch, distance-{what} binomial tree"),
            &format!("{paper}n"),
            &format!("{crossed}n (`{name}`)"),
            "yes",
        );
    }
    distances(page);
    by_size(page);
    by_collective(page);
    aligned(page);
}

/// Eq. 2: hops round the ring at each step of the trees, far first.
fn distances(page: &mut Page) {
    let ring: Shape = "1024".parse().unwrap();
    let by_step = |name: &str| -> Vec<u32> {
        let schedule = schedule(Bcast, name, "1024", Some(1));
        let mut hops = vec![0; 10];
        for_each_message(&schedule.expand().unwrap(), |_, step, message| {
            let [from, to] =
                [message.from, message.to].map(|rank| schedule.map.node_of(&ring, rank.0));
            hops[step] = ring.distance(from, to).max(hops[step]);
        });
        hops
    };
    let (bine, binomial) = (by_step("bine-tree"), by_step("doubling-tree"));
    let expected: Vec<u32> =
        (0..10).map(|i| ((1 - (-2i32).pow(10 - i)) / 3).unsigned_abs()).collect();
    assert_eq!(bine, expected);
    assert_eq!(binomial, (0..10).map(|i| 1 << (9 - i)).collect::<Vec<_>>());
    let ratios: Vec<f64> =
        bine.iter().zip(&binomial).map(|(&a, &b)| f64::from(a) / f64::from(b)).collect();
    assert!(ratios[..6].iter().all(|ratio| (ratio - 2.0 / 3.0).abs() < 0.03));
    let shown: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.3}")).collect();
    page.statement(
        "Eq. 2: distance at step i, bine over binomial, 1024 ranks",
        "2/3",
        &shown.join(" "),
        "yes; the last steps are 3/4, 1/2, 1/1 as distances are whole",
    );
}

/// Section 2.4.2 and Fig. 5: allreduce on random allocations.
fn by_size(page: &mut Page) {
    let mut most = f64::MIN;
    let mut more_with_few = Vec::new();
    let mut medians = Vec::new();
    let mut more_with_many = 0;
    for n_ranks in [16u32, 64, 256, 1024] {
        let [ours, theirs] = ["bine", "doubling"]
            .map(|name| volumes(&schedule(Allreduce, name, &n_ranks.to_string(), Some(1))));
        for n_groups in [2, 4, 8, 12, 21] {
            if n_groups * 4 > n_ranks {
                continue;
            }
            let all = reductions(n_groups, n_ranks, &ours, &theirs);
            let n_more = all.iter().filter(|reduction| **reduction < -1e-9).count();
            most = most.max(all[all.len() - 1]);
            match n_groups {
                2 => more_with_few.push(format!("{n_more} ({n_ranks})")),
                8.. if n_ranks >= 256 => more_with_many += n_more,
                _ => {}
            }
            // Larger jobs span more groups; LUMI's of 1024 nodes spanned 21.
            if n_groups == [2, 4, 8, 21][n_ranks.ilog2() as usize / 2 - 2] {
                medians.push((n_ranks, n_groups, median(&all)));
            }
        }
    }
    assert!(most < 100.0 / 3.0, "{most}");
    assert_eq!(more_with_many, 0);
    assert!(medians.is_sorted_by_key(|(.., median)| *median), "{medians:?}");
    page.statement(
        "section 2.4: an allreduce's reduction is 33% at most (60 random allocations each of 16 \
         to 1024 ranks to 2 to 21 groups)",
        "33%, no outlier above",
        &format!("{most:.1}% at most"),
        "yes",
    );
    let shown: Vec<String> = medians
        .iter()
        .map(|(ranks, groups, median)| format!("{median:.1}% ({ranks} in {groups})"))
        .collect();
    page.statement(
        "Fig. 5: the reduction grows with the size of the job",
        "rising medians",
        &format!("medians {}", shown.join(", ")),
        "yes",
    );
    page.statement(
        "Fig. 5: in a few cases, all on less than 64 nodes, Bine crosses more",
        "few, small",
        &format!(
            "with 2 groups, of 60 allocations: {}; with 8 groups or more on 256 ranks or more: none",
            more_with_few.join(", ")
        ),
        "partly: it is the number of groups that decides, not that of nodes",
    );
}

/// Table 3 (LUMI): 1024 nodes in 21 groups.
fn by_collective(page: &mut Page) {
    let far_first = |collective, name| {
        let mut schedule = schedule(collective, name, "1024", Some(1));
        if let Recipe::Walk(walk) = &mut schedule.recipe {
            walk.order = StepOrder::FarFirst;
        }
        volumes(&schedule)
    };
    let plain = |collective, name| volumes(&schedule(collective, name, "1024", Some(1)));
    // Names of ours and theirs; the paper's average and most.
    let rows: [(Collective, &str, &str, [f64; 2]); 8] = [
        (Allreduce, "bine", "doubling", [11.0, 20.0]),
        (Allgather, "bine", "doubling", [11.0, 20.0]),
        (ReduceScatter, "bine", "doubling", [11.0, 20.0]),
        (Alltoall, "bine", "doubling", [15.0, 20.0]),
        (Bcast, "bine", "", [88.0, 94.0]),
        (Reduce, "bine-tree", "doubling-tree", [10.0, 19.0]),
        (Gather, "bine", "doubling", [9.0, 25.0]),
        (Scatter, "bine", "doubling", [9.0, 25.0]),
    ];
    for (collective, ours, theirs, [average, top]) in rows {
        let theirs_volumes = match theirs {
            // MPICH's large broadcast: scatter far first, allgather near first.
            "" => far_first(collective, "doubling"),
            name => plain(collective, name),
        };
        let all = reductions(21, 1024, &plain(collective, ours), &theirs_volumes);
        let (middle, most) = (median(&all), all[all.len() - 1]);
        assert!(middle > 0.5 * average && most <= 95.0, "{collective}: {middle} {most}");
        let against =
            if theirs.is_empty() { "scatter far first, allgather near first" } else { theirs };
        let near = (middle - average).abs() <= 0.5 * average;
        page.statement(
            &format!("Table 3 (LUMI): {collective}, average / most, {ours} against {against}"),
            &format!("{average}% / {top}%"),
            &format!("{middle:.1}% / {most:.1}% (1024 in 21)"),
            if near {
                "yes"
            } else {
                "same sign; ours is all large jobs, the paper's 16 to 1024 nodes"
            },
        );
    }
}

/// What the papers do not say: groups whose size is a power of two, met exactly.
fn aligned(page: &mut Page) {
    page.say(
        "\nRandom allocations are groups of consecutive ranks with random borders (60, from one \
         seed). On groups\nthat are aligned powers of two the binomial butterfly wins, as its sets are the \
         groups; the papers do not\nsay so. Bytes that cross groups, as multiples of n, on 1024 ranks:",
    );
    let algorithms = [
        (Allreduce, "bine"),
        (Allreduce, "swing"),
        (Allreduce, "doubling"),
        (Allreduce, "bucket"),
        (Bcast, "bine-tree"),
        (Bcast, "doubling-tree"),
        (Bcast, "doubling-tree-near"),
    ];
    let header = algorithms.map(|(collective, name)| format!("{collective} `{name}`"));
    page.table(&format!("groups | {}", header.join(" | ")));
    let volumes =
        algorithms.map(|(collective, name)| volumes(&schedule(collective, name, "1024", Some(1))));
    let consecutive = |size: u32| (0..1024).map(|rank| rank / size).collect::<Vec<u32>>();
    let cases = [
        ("21 random", random_groups(1024, 21, &mut 7)),
        ("124 each", consecutive(124)),
        ("64 each", consecutive(64)),
        ("16 each", consecutive(16)),
    ];
    for (name, groups) in cases {
        let crossed: Vec<f64> = volumes.iter().map(|volumes| crossing(volumes, &groups)).collect();
        match name {
            "21 random" => assert!(crossed[0] < crossed[2] && crossed[4] < crossed[5]),
            "64 each" | "16 each" => assert!(crossed[0] > crossed[2] && crossed[4] > crossed[5]),
            _ => {}
        }
        assert!((crossed[0] - crossed[1]).abs() < 1e-6, "swing is bine in another order of blocks");
        let cells = crossed.iter().map(|crossed| format!("{crossed:.1}"));
        page.row(&std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>());
    }
}

/// Swing, Table 2: deficiencies on square tori of 4096 nodes.
fn swing(page: &mut Page) {
    page.say("\n## Swing: deficiencies of allreduce on tori (Table 2)\n");
    page.say(
        "4096 nodes: 64x64, 16x16x16, 8x8x8x8. With all ranks in step, latency deficiency = steps / \
         log2 p,\nbandwidth deficiency = D times what the busiest rank sends per port, congestion \
         deficiency = D times\nthe sum over the steps of the busiest link's load, over the bandwidth \
         deficiency; for the latency-optimal\nforms, as in the paper, the sum over the steps of messages \
         on the busiest link. Recursive doubling has one\nport, the others 2D.",
    );
    page.table("algorithm | deficiency | paper | from our plans (D = 2, 3, 4) | agreement");
    let tori = ["64x64", "16x16x16", "8x8x8x8"];
    let log_p = 12.0;
    type Statement = (&'static str, fn(f64, f64) -> f64, &'static str);
    let exact: fn(f64, f64) -> bool = |ours, paper| (ours - paper).abs() <= 0.01 * paper;
    let below: fn(f64, f64) -> bool = |ours, paper| ours <= paper;
    // Latency, bandwidth and congestion: the text of the paper, D and d to its value.
    type Row = (&'static str, &'static str, Option<u32>, [Statement; 3]);
    let one: fn(f64, f64) -> f64 = |_, _| 1.0;
    let two: fn(f64, f64) -> f64 = |_, _| 2.0;
    let rows: [Row; 5] = [
        (
            "recursive doubling (L)",
            "doubling-l",
            Some(1),
            [
                ("1", one, ""),
                ("D log2 p", |dims, _| dims * 12.0, ""),
                ("at most 2D p^(1/D)", |dims, size| 2.0 * dims * size, "at most"),
            ],
        ),
        (
            "recursive doubling (B)",
            "doubling",
            Some(1),
            [
                ("2", two, ""),
                ("2D", |dims, _| 2.0 * dims, ""),
                (
                    "(2^D - 1) / (2^D - 2)",
                    |dims, _| (dims.exp2() - 1.0) / (dims.exp2() - 2.0),
                    "limit",
                ),
            ],
        ),
        (
            "bucket",
            "bucket",
            None,
            [
                ("2D p^(1/D) / log2 p", |dims, size| 2.0 * dims * size / 12.0, "limit"),
                ("1", one, ""),
                ("1", one, ""),
            ],
        ),
        (
            "swing (L)",
            "bine-l",
            None,
            [
                ("1", one, ""),
                ("D log2 p", |dims, _| dims * 12.0, "one port"),
                ("at most 4/3 D p^(1/D)", |dims, size| 4.0 / 3.0 * dims * size, "at most"),
            ],
        ),
        (
            "swing (B)",
            "swing",
            None,
            [
                ("2", two, ""),
                ("1", one, ""),
                ("1.19, 1.03, 1.008", |dims, _| [1.19, 1.03, 1.008][dims as usize - 2], ""),
            ],
        ),
    ];
    for (title, name, ports, statements) in rows {
        let all = tori.map(|torus| {
            let shape: Shape = torus.parse().unwrap();
            let dims = shape.n_dims() as f64;
            let schedule = schedule(Allreduce, name, torus, ports);
            let found = count(&schedule, &shape);
            let n_ports = f64::from(schedule.ports);
            let bandwidth = dims * found.max_sent / n_ports;
            let congestion = match name {
                "doubling-l" | "bine-l" => found.step_load * n_ports,
                _ => dims * found.step_load / bandwidth,
            };
            [found.n_steps as f64 / log_p, bandwidth, congestion]
        });
        for (index, (paper, value, kind)) in statements.into_iter().enumerate() {
            let what = ["latency", "bandwidth", "congestion"][index];
            let ours = all.map(|deficiencies| deficiencies[index]);
            let holds = |at: usize, by: fn(f64, f64) -> bool| {
                let dims = (at + 2) as f64;
                by(ours[at], value(dims, [64.0, 16.0, 8.0][at]))
            };
            let agreement = match kind {
                "at most" => {
                    assert!((0..3).all(|at| holds(at, below)), "{title} {what}: {ours:?}");
                    "yes"
                }
                "limit" => {
                    assert!((0..3).all(|at| holds(at, below)), "{title} {what}: {ours:?}");
                    match name {
                        "doubling" => {
                            "yes, from below (for p to infinity); our copy of the table prints 2^(D-2) \
                             below the line, the sum of its terms is this"
                        }
                        _ => "yes, from below (the paper's is for p to infinity)",
                    }
                }
                "one port" => {
                    assert!(ours.iter().zip(2..).all(|(ours, dims)| {
                        exact(ours * 2.0 * f64::from(dims), f64::from(dims) * 12.0)
                    }));
                    "better: the paper's has one port, ours 2D, so 1/2D of it"
                }
                _ => {
                    assert!((0..3).all(|at| holds(at, exact)), "{title} {what}: {ours:?}");
                    "yes"
                }
            };
            let shown: Vec<String> = ours.iter().map(|ours| format!("{ours:.3}")).collect();
            page.row(&[title, what, paper, &shown.join(", "), agreement].map(str::to_owned));
        }
    }
}

/// What a rank does in an alltoall: messages, and blocks in them, inside its node and to others;
/// positions in which blocks stand that others are to get.
struct Exchanged {
    messages: [u64; 2],
    blocks: [u64; 2],
    passing: usize,
}

fn alltoall(name: &str, shape: &str) -> Exchanged {
    let schedule = schedule(Alltoall, name, shape, Some(1));
    let per_node = schedule.shape.ranks_per_node();
    let plan = schedule.expand().unwrap().plan(hopbine_torus::Rank(0));
    let mut found = Exchanged { messages: [0; 2], blocks: [0; 2], passing: 0 };
    let mut received = std::collections::HashSet::new();
    let mut passing = std::collections::HashSet::new();
    for step in plan.lanes.iter().flat_map(|lane| &lane.steps) {
        for send in &step.sends {
            let way = usize::from(send.peer.0 >= per_node);
            found.messages[way] += 1;
            found.blocks[way] += n_positions(&send.blocks);
            let positions = send.blocks.iter().flat_map(|run| run.start..run.end());
            passing.extend(positions.filter(|position| received.contains(position)));
        }
        let recvs = step.recvs.iter().flat_map(|recv| &recv.blocks);
        received.extend(recvs.flat_map(|run| run.start..run.end()));
    }
    found.passing = passing.len();
    found
}

fn fan(page: &mut Page) {
    page.say("\n## ParLogNa and ParLinNa: rounds, volumes, buffers (Fan et al. 2025)\n");
    page.say(
        "ParLogNa is `bruck:r` on a ring of P ranks, ParLinNa `parlinna:r` (coalesced) and \
         `parlinna-staggered:r` on\nN nodes of Q ranks; one port. K are the messages that a rank \
         sends (the paper's rounds; ours are sent\ntogether for all values of a digit, so that \
         there are w = ceil(log_r P) steps), D the blocks in them, B\nthe blocks for which a rank \
         needs room on their way. Where sizes are to be learnt, as many short messages\ncome \
         before those with data, along the same plan: first all of them, not one before each round. \
         The trends\nthat were measured are in [performance.md](performance.md).\n",
    );
    page.row(&["statement", "paper", "from our plans", "agreement"].map(str::to_owned));
    page.row(&["---"; 4].map(str::to_owned));
    let mut row = |statement: &str, paper: &str, ours: String, agreement: &str| {
        page.row(&[statement, paper, &ours, agreement].map(str::to_owned));
    };
    let ring = |p: u64, r: u64| alltoall(&format!("bruck:{r}"), &p.to_string());
    let all = || (2..=48u64).flat_map(|p| (2..=p).map(move |r| (p, r)));
    for (p, r) in all() {
        let found = ring(p, r);
        let (k, d) = (found.messages[1], found.blocks[1]);
        let w = (0..).take_while(|&w| r.pow(w) < p).count() as u32;
        assert!(k <= u64::from(w) * (r - 1) && d <= u64::from(w) * (r - 1) * r.pow(w - 1));
        assert_eq!(found.passing as u64, p - (k + 1), "p = {p}, r = {r}");
    }
    let shown: Vec<String> = [2, 4, 8, 32, 64]
        .map(|r| {
            let found = ring(64, r);
            format!("{}, {} (r = {r})", found.messages[1], found.blocks[1])
        })
        .into();
    row(
        "section 3.1: K <= w (r - 1), D <= w (r - 1) r^(w - 1); here K, D of P = 64",
        "more r, more rounds and fewer blocks",
        shown.join("; "),
        "yes, for all P to 48 and r to P",
    );
    row(
        "Table 1: D",
        "P <= D",
        format!("{} (P = 64, r = 64)", ring(64, 64).blocks[1]),
        "no: with r = P it is P - 1, as a rank sends itself nothing",
    );
    let rooms = [2, 3, 4].map(|r| ring(8, r).passing);
    assert_eq!(rooms, [4, 3, 3]);
    row("Fig. 2: B for P = 8 and r = 2, 3, 4", "4, 3, 3", format!("{rooms:?}"), "yes");
    row(
        "section 3.3: B = P - (K + 1)",
        "every P and r",
        "the same, and no more bytes than pass: what is long has room, not as many times S".into(),
        "yes, for all P to 48 and r to P (`src/engine/passing.rs` tests the room itself)",
    );
    assert!(all().filter(|&(p, r)| r + 1 >= p).all(|(p, r)| ring(p, r).passing == 0));
    row("section 3.3: no buffer if r > P - 2", "B = 0", "0 for r = P - 1 and r = P".into(), "yes");
    row(
        "section 3.3: block o has place o - 1 - dx (r - 1) - dz, dx = ceil(log_r o)",
        "index map",
        "with dx = floor(log_r o), the place of o's first digit; all P < 40, r <= P".into(),
        "yes, but for the rounding: the ceiling is right for r = 2 only (r = 3 puts o = 4 in place -1)",
    );
    for (n, q) in [(4u64, 3u64), (3, 8), (8, 4)] {
        for r in [2, q] {
            let shape = format!("{n}+{q}");
            let inside = if q > 1 { ring(q, r).messages[1] } else { 0 };
            let coalesced = alltoall(&format!("parlinna:{r}"), &shape);
            let staggered = alltoall(&format!("parlinna-staggered:{r}"), &shape);
            assert_eq!(coalesced.messages, [inside, n - 1], "{shape}, {r}");
            assert_eq!(staggered.messages, [inside, q * (n - 1)], "{shape}, {r}");
            assert_eq!(coalesced.blocks, staggered.blocks, "{shape}, {r}");
            assert_eq!(coalesced.blocks, [n * ring(q, r).blocks[1], q * (n - 1)], "{shape}, {r}");
        }
    }
    let messages = |name: &str| format!("{:?}", alltoall(name, "8+4").messages);
    row(
        "section 4.2: rounds between nodes, coalesced and staggered; here messages inside and between \
         of N = 8, Q = 4, r = 2",
        "N - 1 = 7, Q (N - 1) = 28",
        format!("{}, {}", messages("parlinna:2"), messages("parlinna-staggered:2")),
        "yes; batches have at most one message for a rank, so N - 1 at most (the paper: Q (N - 1))",
    );
}

#[test]
fn the_papers_figures_follow_from_the_plans() {
    let mut page = Page(String::new());
    page.say("# What the papers state, and what our plans give\n");
    page.say(
        "Written by `torus/tests/reproduction.rs`, which computes every figure from the messages of all \
         ranks and\nfails if one no longer holds or this page differs (`HOPBINE_BLESS=1` rewrites it). \
         `hopbine traffic` counts\nthe same for any schedule. The papers are named in \
         [algorithms.md](algorithms.md).",
    );
    bine(&mut page);
    swing(&mut page);
    fan(&mut page);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reproduction.md");
    if std::env::var_os("HOPBINE_BLESS").is_some() {
        std::fs::write(&file, &page.0).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap();
    let mut difference = String::new();
    for (old, new) in written.lines().zip(page.0.lines()).filter(|(old, new)| old != new) {
        writeln!(difference, "- {old}\n+ {new}").unwrap();
    }
    assert_eq!(written, page.0, "HOPBINE_BLESS=1 rewrites docs/reproduction.md\n{difference}");
}
