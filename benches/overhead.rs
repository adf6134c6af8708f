//! Question: hopbine's own time for a repeated call, from call to return, and for a request, from its start to the
//! end of its wait. Measured with a single rank, by plan, so that no message is sent and no rank waits for another;
//! and with two ranks on the emulated device.
//!
//! `cargo bench -p hopbine-benches --bench overhead` prints nanoseconds and, where valgrind is installed,
//! instructions per call, which do not depend on how busy the machine is.

use std::process::Command;
use std::time::Instant;

use hopbine::reduce::Op;
use hopbine::torus::geometry::Shape;
use hopbine::{CallOptions, Communicator, Drive, EmulationConfig, Error, Hardware, emulate};

/// Calls before the measurement.
const WARM_UP: usize = 100;

/// Seconds that `n` calls take, on rank 0.
fn time(ranks: u32, what: &str, n: usize) -> f64 {
    let shape = Shape::torus(&[ranks]).expect("a shape");
    let config = EmulationConfig::new(shape).with(|config| config.drive = Drive::Inline);
    let times = emulate(&config, |comm| {
        let by_plan = comm.with(CallOptions::new().hardware(Hardware::Never));
        calls(&by_plan, what, WARM_UP);
        let start = Instant::now();
        calls(&by_plan, what, n);
        start.elapsed().as_secs_f64()
    });
    times.expect("no rank fails")[0]
}

/// The measured calls.
const ALL: [&str; 5] =
    ["barrier", "allreduce 8 B", "allreduce 1 KiB", "a request of 8 B", "eight of 8 B"];

/// Starts `n` allreduces of 8 bytes, and waits for all of them.
fn requests(comm: &Communicator, send: &[f64], recv: &mut [f64], n: usize) -> Result<(), Error> {
    comm.scope(|scope| {
        let start = |recv| scope.allreduce(&send[..1], recv, Op::Sum);
        recv[..n].chunks_mut(1).try_for_each(|recv| start(recv).map(drop))
    })
}

fn calls(comm: &Communicator, what: &str, n: usize) {
    let (send, mut recv) = ([1.0; 128], [0.0; 128]);
    for i in 0..n {
        match what {
            "a request of 8 B" => requests(comm, &send, &mut recv, 1),
            "eight of 8 B" if i % 8 == 0 => requests(comm, &send, &mut recv, 8),
            "eight of 8 B" => Ok(()),
            "barrier" => comm.barrier(),
            "allreduce 8 B" => comm.allreduce(&send[..1], &mut recv[..1], Op::Sum),
            "allreduce 1 KiB" => comm.allreduce(&send, &mut recv, Op::Sum),
            _ => unreachable!("there is no call {what}"),
        }
        .expect("no failure");
    }
}

/// Instructions of this program for `n` calls; `None` without valgrind.
fn instructions(what: &str, n: usize) -> Option<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .args(["--calls", what, &n.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--calls") {
        time(1, &args[at + 1], args[at + 2].parse().expect("a number"));
        return;
    }
    for what in ALL {
        let n = 200_000;
        let mut times: Vec<f64> = (0..9).map(|_| time(1, what, n) / n as f64 * 1e9).collect();
        times.sort_by(f64::total_cmp);
        let per_call =
            |n: usize| Some((instructions(what, 2 * n)? - instructions(what, n)?) / n as f64);
        let counted =
            per_call(5000).map_or("no valgrind".to_owned(), |n| format!("{n:.0} instructions"));
        println!("{what:16} 1 rank   {:7.1} ns (median of 9), {counted}", times[4]);
    }
    for what in ALL {
        let n = 20_000;
        let mut times: Vec<f64> = (0..9).map(|_| time(2, what, n) / n as f64 * 1e9).collect();
        times.sort_by(f64::total_cmp);
        println!("{what:16} 2 ranks  {:7.1} ns (median of 9)", times[4]);
    }
}
