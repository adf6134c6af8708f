//! Compares hopbine over MPI messages with hand-written loops of `MPI_Isend` and `MPI_Irecv` that have the same
//! schedules, alternately in one run. benches/against-loop.sh builds and starts it.
//!
//! Rank 0 prints a table with the medians over the rounds: times in microseconds, and the ratio loop / hopbine (above
//! 1, hopbine is faster).

use std::ffi::c_int;
use std::time::Instant;

use hopbine::mpi::ffi;
use hopbine::reduce::Op;
use hopbine::{CallOptions, Communicator, Hardware, init_mpi};

const ROUNDS: usize = 9;
/// Duration of a round, in seconds.
const BUDGET: f64 = 0.006;
const SIZES: [usize; 8] = [8, 256, 2048, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// One side of a comparison.
type Call<'a> = Box<dyn FnMut(&mut Buffers) + 'a>;

struct Buffers {
    data: Vec<f64>,
    temporary: Vec<f64>,
}

fn main() {
    hopbine_mpi::provide();
    let mut provided = 0;
    // SAFETY: the program calls this once, at its start.
    unsafe {
        let (none, nothing) = (std::ptr::null_mut(), std::ptr::null_mut());
        ffi::PMPI_Init_thread(none, nothing, ffi::thread_funneled(), &mut provided);
    }
    // SAFETY: all ranks of the program make this call.
    let world = unsafe { init_mpi(ffi::comm_world()) }.expect("a world");
    let comm = world.communicator();
    let mut loops = Loops { rank: comm.rank() as usize, n: comm.size() as usize };
    if loops.rank == 0 {
        println!(
            "{} ranks over {}\n{:<28} {:>8} {:>10} {:>10} {:>6}",
            loops.n,
            world.info().device.library,
            "schedule",
            "bytes",
            "loop us",
            "hopbine us",
            "ratio"
        );
    }
    let mut logs = 0.0;
    let mut n = 0;
    // The arguments may list sizes in bytes.
    let wanted: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    for bytes in if wanted.is_empty() { SIZES.to_vec() } else { wanted } {
        let elements = (bytes / 8).max(loops.n).next_multiple_of(loops.n);
        let mut schedules = vec![("allreduce, ring", "bucket")];
        if bytes == 8 {
            schedules.clear();
        }
        if loops.n.is_power_of_two() {
            schedules.push(("allreduce, doubling", "doubling-l"));
        }
        schedules.push(("alltoall, pairwise", "pairwise"));
        for (name, algorithm) in schedules {
            let elements = if algorithm == "doubling-l" { bytes / 8 } else { elements };
            let by = ours(comm, algorithm);
            let hopbine: Call<'_> = Box::new(|buffers| match algorithm {
                "pairwise" => by
                    .alltoall(&buffers.data[..elements], &mut buffers.temporary[..elements])
                    .expect("an alltoall"),
                _ => by
                    .allreduce_in_place(&mut buffers.data[..elements], Op::Sum)
                    .expect("an allreduce"),
            });
            let own = &mut loops;
            let by_hand: Call<'_> = Box::new(|buffers| match algorithm {
                "pairwise" => own.pairwise(buffers, elements),
                "bucket" => own.ring(buffers, elements),
                _ => own.doubling(buffers, elements),
            });
            let (loop_us, ours_us, ratio) = compare(by_hand, hopbine, elements);
            (logs, n) = (logs + ratio.ln(), n + 1);
            if loops.rank == 0 {
                println!(
                    "{name:<28} {:>8} {loop_us:>10.2} {ours_us:>10.2} {ratio:>6.2}",
                    elements * 8
                );
            }
        }
    }
    if loops.rank == 0 {
        println!("geometric mean of the ratios: {:.2}", (logs / f64::from(n)).exp());
    }
    world.finish().expect("an orderly end");
    // SAFETY: the program calls this once, at its end.
    unsafe { ffi::PMPI_Finalize() };
}

fn ours(comm: &Communicator, algorithm: &str) -> Communicator {
    // One port, and messages as long as those of the loops.
    let options = CallOptions::new().algorithm(algorithm).ports(1).segment_bytes(1 << 40);
    comm.with(options.hardware(Hardware::Never))
}

/// Medians of the loop's time and of hopbine's time, in microseconds, and of their ratio.
fn compare(mut by_hand: Call<'_>, mut hopbine: Call<'_>, elements: usize) -> (f64, f64, f64) {
    let mut buffers = Buffers { data: vec![1.0; elements], temporary: vec![0.0; elements] };
    let once = slowest(time(&mut by_hand, &mut buffers, 3)).max(1e-7);
    slowest(time(&mut hopbine, &mut buffers, 3));
    let times = ((BUDGET / once) as usize).clamp(3, 2000);
    let (mut loops, mut ours, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (loop_s, ours_s) = if round % 2 == 0 {
            let first = slowest(time(&mut by_hand, &mut buffers, times));
            (first, slowest(time(&mut hopbine, &mut buffers, times)))
        } else {
            let first = slowest(time(&mut hopbine, &mut buffers, times));
            (slowest(time(&mut by_hand, &mut buffers, times)), first)
        };
        loops.push(loop_s * 1e6);
        ours.push(ours_s * 1e6);
        ratios.push(loop_s / ours_s);
    }
    (median(loops), median(ours), median(ratios))
}

fn time(call: &mut Call<'_>, buffers: &mut Buffers, times: usize) -> f64 {
    // SAFETY: all ranks make this call.
    unsafe { ffi::PMPI_Barrier(ffi::comm_world()) };
    let start = Instant::now();
    (0..times).for_each(|_| call(buffers));
    start.elapsed().as_secs_f64() / times as f64
}

/// The longest time of all ranks, in seconds.
fn slowest(mut seconds: f64) -> f64 {
    let own = seconds;
    // SAFETY: all ranks make this call, with one number each.
    unsafe {
        ffi::PMPI_Allreduce(
            (&raw const own).cast(),
            (&raw mut seconds).cast(),
            1,
            ffi::double(),
            ffi::max(),
            ffi::comm_world(),
        );
    }
    seconds
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The hand-written loops on one rank.
struct Loops {
    rank: usize,
    n: usize,
}

impl Loops {
    /// Sends and receives at the same time.
    fn exchange(&self, to: usize, out: &[f64], from: usize, into: &mut [f64]) {
        let mut requests = [self.receive(from, into), self.send(to, out)];
        wait(&mut requests);
    }

    fn send(&self, to: usize, out: &[f64]) -> ffi::MPI_Request {
        // SAFETY: the datatype is a constant, and the slice lives until the request is complete.
        unsafe {
            let mut request = ffi::request_null();
            let (len, what) = (out.len() as c_int, ffi::double());
            let all = ffi::comm_world();
            ffi::PMPI_Isend(out.as_ptr().cast(), len, what, to as c_int, 7, all, &mut request);
            request
        }
    }

    fn receive(&self, from: usize, into: &mut [f64]) -> ffi::MPI_Request {
        // SAFETY: as above.
        unsafe {
            let mut request = ffi::request_null();
            let (len, what) = (into.len() as c_int, ffi::double());
            let all = ffi::comm_world();
            ffi::PMPI_Irecv(
                into.as_mut_ptr().cast(),
                len,
                what,
                from as c_int,
                7,
                all,
                &mut request,
            );
            request
        }
    }

    fn doubling(&self, buffers: &mut Buffers, elements: usize) {
        let (data, temporary) = (&mut buffers.data[..elements], &mut buffers.temporary[..elements]);
        let mut distance = 1;
        while distance < self.n {
            let other = self.rank ^ distance;
            self.exchange(other, data, other, temporary);
            fold(data, temporary);
            distance *= 2;
        }
    }

    fn ring(&self, buffers: &mut Buffers, elements: usize) {
        let (n, rank) = (self.n, self.rank);
        let block = elements / n;
        let (to, from) = ((rank + 1) % n, (rank + n - 1) % n);
        let temporary = &mut buffers.temporary[..block];
        for step in 0..n - 1 {
            let out = (rank + n - step) % n * block;
            let into = (rank + n - step + n - 1) % n * block;
            self.exchange(to, &buffers.data[out..out + block], from, temporary);
            fold(&mut buffers.data[into..into + block], temporary);
        }
        for step in 0..n - 1 {
            let out = (rank + 1 + n - step) % n * block;
            let into = (rank + n - step) % n * block;
            let mut requests = {
                // The two blocks are disjoint parts of one vector.
                let receive = self.receive(from, &mut buffers.data[into..into + block]);
                [receive, self.send(to, &buffers.data[out..out + block])]
            };
            wait(&mut requests);
        }
    }

    fn pairwise(&mut self, buffers: &mut Buffers, elements: usize) {
        let (n, rank) = (self.n, self.rank);
        let block = elements / n;
        let at = |rank: usize| rank * block..(rank + 1) * block;
        buffers.temporary[at(rank)].copy_from_slice(&buffers.data[at(rank)]);
        let mut requests = Vec::with_capacity(2 * n);
        for step in 1..n {
            let from = (rank + n - step) % n;
            requests.push(self.receive(from, &mut buffers.temporary[at(from)]));
        }
        for step in 1..n {
            let to = (rank + step) % n;
            requests.push(self.send(to, &buffers.data[at(to)]));
        }
        wait(&mut requests);
    }
}

fn wait(requests: &mut [ffi::MPI_Request]) {
    // SAFETY: the requests are active.
    unsafe {
        let n = requests.len() as c_int;
        ffi::PMPI_Waitall(n, requests.as_mut_ptr());
    }
}

fn fold(into: &mut [f64], from: &[f64]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into += *from;
    }
}
