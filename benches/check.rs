//! Question: time and memory of a proof on all cores. Goals on two cores, allreduce with six ports: 16x16x16 in 2 s
//! and 200 MB, 32x32x16 in 30 s, 48x69x48 in 15 min and 8 GB.
//!
//! `cargo bench -p hopbine-benches --bench check -- [SHAPE [ALGORITHM [COLLECTIVE]]]`; without a shape, the first
//! two. Each proof runs once: it takes long, and it verifies its own result.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use hopbine_torus::geometry::RankMap;
use hopbine_torus::plan::Checker;
use hopbine_torus::{Rank, Request, registry};

fn prove(shape: &str, algorithm: &str, collective: &str) {
    let collective = collective.parse().expect("a collective");
    let algorithm = registry::find(collective, algorithm).expect("an algorithm");
    let request = Request {
        shape: shape.parse().expect("a shape"),
        map: RankMap::RowMajor,
        root: Rank(0),
        ports: None,
    };
    let schedule = algorithm.schedule(&request).expect("it serves the shape");
    let expect = algorithm.promises(&schedule.shape);
    let start = Instant::now();
    let expansion = schedule.expand().expect("a valid schedule");
    let checker = Checker::new(&expansion, expect);
    let next = AtomicUsize::new(0);
    let findings = Mutex::new(Vec::new());
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                loop {
                    let unit = next.fetch_add(1, Ordering::Relaxed);
                    if unit >= checker.n_units() {
                        return;
                    }
                    let found = checker.run(unit);
                    findings.lock().expect("no unit panics").push(found);
                }
            });
        }
    });
    let violations = checker.conclude(findings.into_inner().expect("no unit panics"));
    assert!(violations.is_empty(), "{shape}: {}", violations[0]);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown");
    println!(
        "{collective} {} on {shape}: proved in {:.2} s by {n_threads} threads, {} units, peak {}",
        algorithm.name,
        start.elapsed().as_secs_f64(),
        checker.n_units(),
        peak.trim()
    );
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let arg = |index: usize, default: &'static str| args.get(index).map_or(default, String::as_str);
    let (algorithm, collective) = (arg(1, "mixed"), arg(2, "allreduce"));
    match args.first() {
        Some(shape) => prove(shape, algorithm, collective),
        None => ["16x16x16", "32x32x16"]
            .map(|shape| prove(shape, algorithm, collective))
            .into_iter()
            .collect(),
    }
}
