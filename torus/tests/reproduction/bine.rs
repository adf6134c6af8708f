//! Bine trees: bytes that cross groups.

use hopbine_torus::Collective::{
    self, Allgather, Allreduce, Alltoall, Bcast, Gather, Reduce, ReduceScatter, Scatter,
};
use hopbine_torus::geometry::{Shape, VertexGroups};
use hopbine_torus::plan::{Flow, Recipe, Schedule, StepOrder, for_each_message, n_positions};

use super::{Page, STATEMENT, count, schedule};

/// A message: sender, receiver, and its volume as a multiple of n.
type Volume = (u32, u32, f64);

fn volumes(schedule: &Schedule) -> Vec<Volume> {
    let expansion = schedule.expand().unwrap();
    let mut volumes = Vec::new();
    for_each_message(&expansion, |lane, _, message| {
        let volume =
            n_positions(message.runs) as f64 * expansion.lanes()[lane.index()].position_share();
        volumes.push((message.from.0, message.to.0, volume));
    });
    volumes
}

/// Groups of random sizes, of consecutive ranks, as a scheduler allocates free nodes.
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

/// Reductions of the bytes that cross groups, in percent, for 60 random allocations, ascending.
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

/// Bine trees, Fig. 1, Eq. 2, section 2.4 and Table 3.
pub(super) fn write(page: &mut Page) {
    page.say("\n## Bine trees: bytes that cross groups\n");
    page.say(
        "Each rank has one port. Groups contain consecutive ranks, as the nodes below a switch do. n is the \
         length of the vector.\n`doubling` is the butterfly, `doubling-tree` the binomial tree whose \
         first message goes farthest, `doubling-tree-near`\nthe one whose first message goes to the \
         neighbour. Table 3 has the mean and the largest reduction of bytes between\ngroups on LUMI; \
         for hopbine it has the median and the largest of 60 random allocations of 1024 ranks to 21 \
         groups.",
    );
    page.table(STATEMENT);
    let pairs = VertexGroups::consecutive(8, 2);
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

/// Eq. 2: hops around the ring at each step of the trees, far first.
fn distances(page: &mut Page) {
    let ring: Shape = "1024".parse().unwrap();
    let by_step = |name: &str| -> Vec<u32> {
        let schedule = schedule(Bcast, name, "1024", Some(1));
        let mut hops = vec![0; 10];
        for_each_message(&schedule.expand().unwrap(), |_, step, message| {
            let [from, to] =
                [message.from, message.to].map(|rank| schedule.map.vertex_of(&ring, rank));
            hops[step.index()] = ring.distance(from, to).max(hops[step.index()]);
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
        "yes; in the last steps it is 3/4, 1/2 and 1/1, because distances are whole numbers",
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
                2 => more_with_few.push(format!("{n_more} ({n_ranks} ranks)")),
                8.. if n_ranks >= 256 => more_with_many += n_more,
                _ => {}
            }
            // Larger jobs span more groups; LUMI's jobs of 1024 nodes spanned 21.
            if n_groups == [2, 4, 8, 21][n_ranks.ilog2() as usize / 2 - 2] {
                medians.push((n_ranks, n_groups, median(&all)));
            }
        }
    }
    assert!(most < 100.0 / 3.0, "{most}");
    assert_eq!(more_with_many, 0);
    assert!(medians.is_sorted_by_key(|(.., median)| *median), "{medians:?}");
    page.statement(
        "section 2.4: an allreduce sends at most 33% fewer bytes between groups (60 random allocations \
         each, 16 to 1024 ranks in 2 to 21 groups)",
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
        "Fig. 5: in a few cases, all with fewer than 64 nodes, Bine sends more bytes between groups",
        "few, small",
        &format!(
            "of 60 allocations to 2 groups: {}; to 8 groups or more, from 256 ranks on: none",
            more_with_few.join(", ")
        ),
        "partly: the number of groups decides, not the number of nodes",
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
    // Names of Bine's algorithm and of the other one; the paper's average and maximum.
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
                "same sign; all allocations here are of 1024 ranks, the paper's of 16 to 1024 nodes"
            },
        );
    }
}

/// Not in the papers: allocations that exactly match groups whose size is a power of two.
fn aligned(page: &mut Page) {
    page.say(
        "\nIn a random allocation the borders between groups are random; one seed gives all 60. If the size of all groups is\n\
         a power of two, the butterfly sends fewer bytes between them than Bine, because some of its \
         steps stay inside the groups.\nThe papers do not mention this. The table has the bytes \
         between groups on 1024 ranks, as multiples of n:",
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
