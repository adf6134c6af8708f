//! Swing: goodput of allreduce on simulated networks (section 5), predicted by the network model.

use hopbine_torus::Collective::Allreduce;
use hopbine_torus::Rank;
use hopbine_torus::sim::{CallForm, Machine, Network, Profile, RoutedPlan};

use super::{Page, schedule};

/// Bytes from 32 B to 512 MiB, all powers of two.
fn sizes() -> impl Iterator<Item = u64> {
    (5..=29).map(|exponent| 1 << exponent)
}

/// Predicted times of an algorithm, ns, by size.
fn times(machine: &Machine, torus: &str, name: &str, ports: Option<u32>) -> Vec<f64> {
    let schedule = schedule(Allreduce, name, torus, ports);
    let network = Network::new(machine.network, &schedule.shape, 0).unwrap();
    let flow = schedule.expand().unwrap();
    let place = |rank: Rank| schedule.map.vertex_of(&schedule.shape, rank);
    let routed = RoutedPlan::of_one(&flow, &network, place);
    let profile = Profile::Hopbine { segment_bytes: u64::MAX, call: CallForm::Repeated };
    let played = sizes().map(|bytes| {
        profile.play(&schedule, &flow, &routed, machine, bytes as f64, false).unwrap().ns
    });
    played.collect()
}

/// Times of Swing and of the best other algorithm, by size: for each, the better of the latency and the two-phase
/// form.
struct Compared {
    swing: Vec<f64>,
    others: Vec<(f64, &'static str)>,
}

impl Compared {
    fn on(machine: &str, torus: &str) -> Self {
        let machine = Machine::built_in(machine).unwrap();
        let of = |name, ports| times(&machine, torus, name, ports);
        let better = |a: Vec<f64>, b: Vec<f64>| {
            a.into_iter().zip(b).map(|(a, b)| a.min(b)).collect::<Vec<_>>()
        };
        let swing = better(of("bine-l", None), of("swing", None));
        // As in the paper, recursive doubling has one port, and the bucket algorithm is included.
        let doubling = better(of("doubling-l", Some(1)), of("doubling", Some(1)));
        let sizes = torus.split('x').map(|size| size.parse::<f64>().unwrap());
        let (longest, sum, dims) = sizes.fold((0.0f64, 0.0, 0.0), |(most, sum, dims), size| {
            (most.max(size), sum + size, dims + 1.0)
        });
        let waits = 2.0 * (dims * longest - sum) * machine.latency_ns;
        let bucket = of("bucket", None).into_iter().map(|ns| ns + waits);
        let others =
            doubling.into_iter().zip(bucket).map(|(doubling, bucket)| match doubling < bucket {
                true => (doubling, "recursive doubling"),
                false => (bucket, "bucket"),
            });
        Compared { swing, others: others.collect() }
    }

    /// The largest size up to which Swing is the fastest; 0 if Swing is not the fastest at the smallest size.
    fn best_up_to(&self) -> u64 {
        let wins = self
            .swing
            .iter()
            .zip(&self.others)
            .take_while(|(swing, (other, _))| *swing < other)
            .count();
        sizes().take(wins).last().unwrap_or(0)
    }

    /// The largest ratio of the best other algorithm's time to Swing's, and the size at which it occurs.
    fn most(&self) -> (f64, u64) {
        let gains = self.swing.iter().zip(&self.others).map(|(swing, (other, _))| other / swing);
        gains.zip(sizes()).max_by(|a, b| a.0.total_cmp(&b.0)).expect("there are sizes")
    }

    fn at(&self, bytes: u64) -> (f64, f64, &'static str) {
        let index = sizes().position(|size| size == bytes).expect("a size");
        let (other, name) = self.others[index];
        (self.swing[index], other, name)
    }
}

const MIB: u64 = 1 << 20;

fn show(bytes: u64) -> String {
    if bytes >= MIB { format!("{} MiB", bytes / MIB) } else { format!("{bytes} B") }
}

/// Swing, figures 6 and 10 to 14.
pub(super) fn write(page: &mut Page) {
    page.say("\n## Swing: goodput on simulated networks (section 5), predicted\n");
    page.say(
        "The paper has a packet simulator; here the [network model](model.md) predicts the times. A link has 400 Gb/s. \
         A message takes\n100 ns for each link, and 300 ns for each node on its way with both ends. Software costs \
         nothing. *Swing* is the faster of its\ntwo forms. Recursive doubling is the faster of its two forms on one \
         port. After each dimension the bucket algorithm waits\nuntil the longest dimension is done, as in \
         section 5.2. hopbine does not have the ring on a Hamiltonian cycle.",
    );
    page.table("network | statement | paper | predicted | agreement");
    let mut row = |network: &str, statement: &str, paper: &str, ours: String, agrees: bool| {
        let agrees = if agrees { "yes" } else { "no" };
        page.row(&[network, statement, paper, &ours, agrees].map(str::to_owned));
    };
    let gain = |(gain, bytes): (f64, u64)| format!("{gain:.2} at {}", show(bytes));
    let all = 512 * MIB;

    let torus = Compared::on("ideal-torus", "64x64");
    let best = torus.best_up_to();
    row("torus 64x64 (Fig. 6)", "fastest up to", "32 MiB", show(best), best == 32 * MIB);
    let (swing, other, _) = torus.at(2 * MIB);
    let ratio = other / swing;
    row("", "gain at 2 MiB", "over 2", format!("{ratio:.2}"), ratio > 1.95);
    let (swing, other, name) = torus.at(128 * MIB);
    let ours = format!("{name}, {:.2} of Swing's time", other / swing);
    row("", "fastest at 128 MiB", "bucket", ours, name == "bucket" && other < swing);
    let peak = 512.0 * MIB as f64 / torus.at(512 * MIB).0 / 100.0;
    let ours = format!("{:.0} %", 100.0 * peak);
    row("", "of the peak at 512 MiB", "77 %, at most 81 %", ours, (0.74..=0.84).contains(&peak));

    for torus in ["64x16", "128x8", "256x4"] {
        let compared = Compared::on("ideal-torus", torus);
        let best = compared.best_up_to();
        row(
            &format!("torus {torus} (Fig. 10)"),
            "fastest up to",
            "at least 32 MiB",
            show(best),
            best >= 32 * MIB,
        );
        if torus != "64x16" {
            let most = compared.most();
            row("", "largest gain", "up to 3", gain(most), (2.4..3.3).contains(&most.0));
        }
    }
    for (torus, up_to) in [("8x8", 32 * MIB), ("8x8x8", all), ("8x8x8x8", all)] {
        let compared = Compared::on("ideal-torus", torus);
        let best = compared.best_up_to();
        let paper = if up_to == all { "all sizes".to_owned() } else { show(up_to) };
        row(
            &format!("torus {torus} (Fig. 11)"),
            "fastest up to",
            &paper,
            show(best),
            best == up_to,
        );
        if up_to == all {
            let (swing, other, _) = compared.at(all);
            let ours = format!("{:.3}", other / swing);
            row("", "best other's time over Swing's, 512 MiB", "over 1", ours, other > swing);
            let most = compared.most();
            row("", "largest gain", "up to 2", gain(most), (1.7..2.3).contains(&most.0));
        }
    }
    let meshes = ["hx2mesh", "hx4mesh"].map(|machine| Compared::on(machine, "64x64"));
    let best = meshes[0].best_up_to();
    row("Hx2Mesh 64x64 (Fig. 12)", "fastest up to", "all sizes", show(best), best == all);
    let (swing, other, _) = meshes[0].at(2 * MIB);
    row(
        "",
        "gain at 2 MiB",
        "up to 2.5",
        format!("{:.2}", other / swing),
        (2.0..2.8).contains(&(other / swing)),
    );
    let [two, four] = meshes.each_ref().map(|mesh| mesh.at(128 * MIB).0);
    let ours = format!("{:.2} of Hx2Mesh's time", four / two);
    row("Hx4Mesh 64x64 (Fig. 13)", "Swing at 128 MiB", "slower than on Hx2Mesh", ours, four > two);
    let hyperx = Compared::on("hyperx", "64x64");
    let best = hyperx.best_up_to();
    row("HyperX 64x64 (Fig. 14)", "fastest up to", "all sizes", show(best), best == all);
    let most = hyperx.most();
    row("", "largest gain", "up to 3", gain(most), (2.6..3.4).contains(&most.0));
    page.say(
        "\nWhere the agreement is \"no\", the bucket algorithm is faster in the model than in the paper. If the paper's statement is for\n\
         all sizes, the difference is 2 % or less: congestion costs Swing 3 % on 8x8x8 and 0.8 % on 8x8x8x8 (Table 2). At the\nlargest \
         sizes the steps of the bucket algorithm cost less than that, since only links and nodes cost time here.\nThe paper does not \
         state the latency of links on a board; the model has 300 ns.",
    );
}
