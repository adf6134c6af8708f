//! Question: the time to look up a call in a decision table, once for each kind of call of a communicator, and to
//! read the table, once per process. Goal: below 1 ms on all of Fugaku (48x69x48).
//!
//! `cargo bench -p hopbine-benches --bench choose` prints the median and the longest time.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hopbine::Tuning;
use hopbine::torus::{Collective, Shape};

fn timed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort();
    println!(
        "{what:40} {:10.1?} (median), {:10.1?} (longest)",
        times[times.len() / 2],
        times[times.len() - 1]
    );
}

fn main() {
    for (name, text) in Tuning::BUILT_IN {
        let read = || timed(|| drop(black_box(text.parse::<Tuning>().expect("a table"))));
        show(&format!("{name}: read, and tried on its classes"), (0..9).map(|_| read()).collect());
        let tuning = Tuning::named(name).expect("it is built in");
        for shape in ["2", "8x8x8", "48x69x48"] {
            let shape: Shape = shape.parse().expect("a shape");
            let choose = |collective: Collective, power: u32| {
                timed(|| drop(black_box(tuning.choose(collective, &shape, 1 << power, 6))))
            };
            let all = Collective::ALL.into_iter();
            let times =
                all.flat_map(|collective| (0..30).map(move |power| choose(collective, power)));
            show(&format!("{name}: a choice on {shape}"), times.collect());
        }
    }
}
