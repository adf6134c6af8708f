//! ParLogNa and ParLinNa: rounds, volumes, buffers.

use hopbine_torus::Collective::Alltoall;
use hopbine_torus::plan::{Flow, n_positions};

use super::{Page, schedule};

/// Traffic of a rank in an alltoall: messages, and blocks in them, within its node and to other nodes; and the
/// number of positions that hold blocks for other ranks on their way.
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
            found.blocks[way] += n_positions(&send.runs);
            let positions = send.runs.iter().flat_map(|run| run.start..run.end());
            passing.extend(positions.filter(|position| received.contains(position)));
        }
        let recvs = step.recvs.iter().flat_map(|recv| &recv.runs);
        received.extend(recvs.flat_map(|run| run.start..run.end()));
    }
    found.passing = passing.len();
    found
}

pub(super) fn write(page: &mut Page) {
    page.say("\n## ParLogNa and ParLinNa: rounds, volumes, buffers (Fan et al. 2025)\n");
    page.say(
        "ParLogNa is `bruck:r` on a ring of P ranks. ParLinNa is `parlinna:r` (coalesced) and \
         `parlinna-staggered:r` on N nodes of Q\nranks. Each rank has one port.\n\n\
         - K is the number of messages that a rank sends. The paper sends them in K rounds. hopbine sends those for all values\n  of \
         a digit together, in w = ceil(log_r P) steps.\n\
         - D is the number of blocks in these messages.\n\
         - B is the number of blocks that a rank stores on their way to other ranks.\n\n\
         If ranks do not know the sizes, hopbine sends them first, in as many short messages; the paper sends sizes before each\n\
         round. The staggered form sends sizes as the coalesced form does. [Another page](reproduction-trends.md) has measured\ntrends.\n",
    );
    page.row(&["statement", "paper", "hopbine", "agreement"].map(str::to_owned));
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
        "the same; the room is as long as the longest block that passes in each position, not B times the longest of all".into(),
        "yes, for all P to 48 and r to P (`src/engine/compile/passing.rs` tests the bytes)",
    );
    assert!(all().filter(|&(p, r)| r + 1 >= p).all(|(p, r)| ring(p, r).passing == 0));
    row("section 3.3: no buffer if r > P - 2", "B = 0", "0 for r = P - 1 and r = P".into(), "yes");
    row(
        "section 3.3: block o has place o - 1 - dx (r - 1) - dz, dx = ceil(log_r o)",
        "index map",
        "with dx = floor(log_r o), the place of o's first digit; all P < 40, r <= P".into(),
        "yes, except for the rounding: the ceiling is right for r = 2 only (with r = 3 it gives o = 4 the place -1)",
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
        "yes; a batch has at most one message for each rank, so at most N - 1 (the paper allows Q (N - 1))",
    );
}
