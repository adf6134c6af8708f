//! Bine on Fugaku (section 5.4), predicted by the network model.

use std::cell::RefCell;
use std::collections::HashMap;

use hopbine_torus::Collective::{self, Allreduce, Bcast, Reduce, ReduceScatter, Scatter};
use hopbine_torus::Rank;
use hopbine_torus::sim::{CallForm, Machine, Network, Profile, RoutedPlan};

use super::{Page, schedule};

/// Shapes of the paper's jobs.
const SHAPES: [&str; 5] = ["2x2x2", "4x4x4", "8x8x8", "64x64", "32x256"];
/// The paper's sizes in bytes, up to the size with its largest gains.
const SIZES: [u64; 8] = [32, 256, 2048, 16_384, 131_072, 1 << 20, 8 << 20, 64 << 20];

/// Candidates for the longest message, in bytes; each call uses the fastest.
const SEGMENTS: [u64; 3] = [16 << 10, 64 << 10, 1 << 20];

/// An algorithm on a shape, with a number of ports.
type Which = (Collective, String, String, Option<u32>);

/// Predicted times of an algorithm, ns, by size. Several statements need the same ones, which are computed once.
fn times(collective: Collective, name: &str, shape: &str, ports: Option<u32>) -> Vec<f64> {
    thread_local! {
        static KNOWN: RefCell<HashMap<Which, Vec<f64>>> = RefCell::default();
    }
    let which = (collective, name.to_owned(), shape.to_owned(), ports);
    KNOWN.with_borrow_mut(|known| {
        known.entry(which).or_insert_with(|| predicted(collective, name, shape, ports)).clone()
    })
}

fn predicted(collective: Collective, name: &str, shape: &str, ports: Option<u32>) -> Vec<f64> {
    let machine = Machine::built_in("tofu-d").unwrap();
    let schedule = schedule(collective, name, shape, ports);
    let network = Network::new(machine.network, &schedule.shape, machine.fold).unwrap();
    let flow = schedule.expand().unwrap();
    let place = |rank: Rank| schedule.map.vertex_of(&schedule.shape, rank);
    let routed = RoutedPlan::of_one(&flow, &network, place);
    let played = |bytes: u64, segment_bytes| {
        let profile = Profile::Hopbine { segment_bytes, call: CallForm::Repeated };
        profile.play(&schedule, &flow, &routed, &machine, bytes as f64, false).unwrap().ns
    };
    best(SEGMENTS.map(|segment| SIZES.map(|bytes| played(bytes, segment)).to_vec()))
}

/// The least of several times, by size.
fn best(all: impl IntoIterator<Item = Vec<f64>>) -> Vec<f64> {
    let least = |a: Vec<f64>, b: Vec<f64>| a.into_iter().zip(b).map(|(a, b)| a.min(b)).collect();
    all.into_iter().reduce(least).expect("there is one")
}

/// For each shape and size, the time of the best other algorithm over that of the best with Bine trees.
struct Gains(Vec<(&'static str, u64, f64)>);

impl Gains {
    fn of(collective: Collective, bine: &[&str], others: &[&str]) -> Self {
        Self::over(collective, bine, others, |_| Vec::new())
    }

    /// As `of`, with further times of other algorithms, which `more` gives for a shape.
    fn over(
        collective: Collective,
        bine: &[&str],
        others: &[&str],
        more: impl Fn(&str) -> Vec<Vec<f64>>,
    ) -> Self {
        let of_shape = |shape: &'static str| {
            let of = |names: &[&str], ports| {
                names.iter().map(|name| times(collective, name, shape, ports)).collect::<Vec<_>>()
            };
            let bine = best(of(bine, None));
            let other = best(of(others, Some(1)).into_iter().chain(more(shape)));
            let gains = bine.into_iter().zip(other).zip(SIZES);
            gains.map(move |((bine, other), bytes)| (shape, bytes, other / bine))
        };
        Gains(SHAPES.into_iter().flat_map(of_shape).collect())
    }

    /// The fraction of the wanted cells in which Bine trees are the fastest.
    fn wins(&self, is_wanted: impl Fn(&str, u64) -> bool) -> f64 {
        let wanted = || self.0.iter().filter(|(shape, bytes, _)| is_wanted(shape, *bytes));
        wanted().filter(|(_, _, gain)| *gain > 1.0).count() as f64 / wanted().count() as f64
    }

    fn most(&self) -> (&'static str, u64, f64) {
        *self.0.iter().max_by(|a, b| a.2.total_cmp(&b.2)).expect("there are cells")
    }
}

fn show(bytes: u64) -> String {
    match bytes {
        1_048_576.. => format!("{} MiB", bytes >> 20),
        1024.. => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// Bine, section 5.4.
pub(super) fn write(page: &mut Page) {
    page.say("\n## Bine on Fugaku (section 5.4), measured and predicted\n");
    page.say(
        "*Measured* is counted in the public times of the paper's authors (repository HLC-Lab/pico, results/fugaku), which \
         have\n2x2x2, 4x4x4 and 8x8x8 nodes only. For each shape and size the fastest median of Bine's uTofu code \
         is compared with the\nfastest of Fujitsu MPI's algorithms. `hopbine validate --measured FILE` \
         compares the same times with the model.\n\n\
         *Predicted* are the paper's five jobs (2x2x2, 4x4x4, 8x8x8, 64x64, 32x256) from 32 B to 64 MiB, for \
         hopbine's software\non the machine `tofu-d` of the [network model](model.md), with \
         messages of up to 16 KiB,\n64 KiB or 1 MiB, whichever are the fastest. Bine trees use six ports \
         (four on two dimensions). The other side has binomial\ntrees and the bucket algorithm on one port, \
         since most of Fujitsu's algorithms use one; Fujitsu MPI itself is not modelled.\nIn bcast and reduce \
         it also has hopbine's spanning trees (`trees`) for Fujitsu's (Trinaryx).",
    );
    page.table(
        "statement | paper | measured, three shapes | predicted, five jobs | prediction agrees",
    );
    let mut row = |statement: &str, paper: &str, measured: &str, ours: String, agrees: bool| {
        let agrees = if agrees { "yes" } else { "no" };
        page.row(&[statement, paper, measured, &ours, agrees].map(str::to_owned));
    };
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let gain =
        |(shape, bytes, gain): (&str, u64, f64)| format!("{gain:.2} on {shape} at {}", show(bytes));

    let allreduce =
        Gains::of(Allreduce, &["bine", "bine-l"], &["doubling", "doubling-l", "bucket"]);
    let all = allreduce.wins(|_, _| true);
    row("allreduce: Bine is the fastest in", "62 % of cases", "53 %", percent(all), all > 0.5);
    let [short, long] =
        [allreduce.wins(|_, bytes| bytes <= 2048), allreduce.wins(|_, bytes| bytes > 2048)];
    row(
        "up to 2 KiB, and above",
        "above more often",
        "33 %, 67 %",
        format!("{}, {}", percent(short), percent(long)),
        long > short,
    );
    let most = allreduce.most();
    row(
        "largest gain",
        "4.12 on 32x256, for 128 KiB to 64 MiB",
        "1.62 on 2x2x2 at 512 MiB",
        gain(most),
        most.0 == "32x256" && most.1 >= 128 << 10,
    );
    let others = ["doubling", "doubling-send", "doubling-two", "bucket"];
    let reduce_scatter = Gains::of(ReduceScatter, &["bine", "bine-send", "bine-two"], &others);
    let wins = reduce_scatter.wins(|_, _| true);
    row("reduce-scatter: fastest in", "over 60 %", "50 %", percent(wins), wins > 0.6);
    let most = reduce_scatter.most();
    row(
        "largest gain",
        "up to 5",
        "4.92 on 8x8x8 at 512 MiB",
        gain(most),
        (3.0..=6.0).contains(&most.2),
    );
    let scatter = Gains::of(
        Scatter,
        &["bine", "bine-near"],
        &["doubling", "doubling-near", "bucket", "linear"],
    );
    let wins = scatter.wins(|_, _| true);
    row("scatter: fastest in", "over 60 %", "62 %", percent(wins), wins > 0.6);
    let most = Gains::of(Allreduce, &["bine", "bine-l"], &["doubling-l"]).most();
    row(
        "gain over binomial algorithms that are not made for a torus",
        "up to 40",
        "48.9 (allreduce, 8x8x8, 512 MiB)",
        gain(most),
        most.2 > 20.0,
    );
    let trees = |collective| move |shape: &str| vec![times(collective, "trees", shape, None)];
    let bcast = Gains::over(Bcast, &["bine", "bine-tree"], &["doubling-tree"], trees(Bcast));
    let reduce = Gains::over(Reduce, &["bine", "bine-tree"], &["doubling-tree"], trees(Reduce));
    let [bcast_wins, reduce_wins] = [&bcast, &reduce].map(|gains| gains.wins(|_, _| true));
    row(
        "bcast, reduce: fastest in",
        "few, as Fujitsu's spanning trees are near the optimum",
        "17 %, 8 %",
        format!("{}, {}", percent(bcast_wins), percent(reduce_wins)),
        bcast_wins < 0.5 && reduce_wins < 0.5,
    );
    // Compares with the time that six interfaces need to send the data from a root.
    let machine = Machine::built_in("tofu-d").unwrap();
    let bytes = *SIZES.last().unwrap();
    let over_bound = |names: &[&str]| {
        let found = best(names.iter().map(|name| times(Bcast, name, "8x8x8", None)));
        found[SIZES.len() - 1] / (bytes as f64 / (6.0 * machine.link))
    };
    let [of_bine, of_trees] = [over_bound(&["bine", "bine-tree"]), over_bound(&["trees"])];
    row(
        "bcast of 64 MiB on 8x8x8: time, as a multiple of what six links from the root need",
        "spanning trees near 1",
        "-",
        format!("{of_bine:.2} (Bine), {of_trees:.2} (`trees`)"),
        of_trees < 1.5,
    );
    let both = |shape: &str| {
        let [up, down] = [Reduce, Bcast].map(|collective| times(collective, "trees", shape, None));
        vec![up.into_iter().zip(down).map(|(up, down)| up + down).collect()]
    };
    let others = ["doubling", "doubling-l", "bucket"];
    let allreduce = Gains::over(Allreduce, &["bine", "bine-l"], &others, both);
    let most = allreduce.most();
    row(
        "allreduce: largest gain if the other side also has a reduce and a bcast along spanning trees",
        "4.12 on 32x256",
        "1.62",
        gain(most),
        most.0 == "32x256",
    );
    page.say(
        "\nMost predictions that do not agree have one cause: in the model the other side is faster than Fujitsu MPI. It \
         has hopbine's\nsoftware, which costs less than MPI's, and its steps follow the dimensions of the torus.",
    );
}
