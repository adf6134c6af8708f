//! Repeats one call between two or more ranks and prints its time. `benches/in-turn.sh` compares two commits with it,
//! and counts the instructions of a call.
//!
//! ```sh
//! cargo build --release --example calls
//! ./target/release/examples/calls utofu allreduce blocking 8 20000
//! ```
//!
//! The arguments are a wire (`utofu` and `shm`: two ranks as threads; `sim`: two simulated ranks; `processes`: ranks
//! that `hopbine launch` starts; `mpi`: ranks that mpirun starts), a collective, a form (`blocking`; `request`: start
//! and wait; `persistent`), the bytes of a rank's vector or of each block, and the number of calls. Rank 0 prints
//! nanoseconds per call: the minimum and the median of nine parts.

use std::time::Instant;

use hopbine::reduce::Op;
use hopbine::torus::geometry::Shape;
use hopbine::{
    CallOptions, Communicator, EmulationConfig, Error, Hardware, Persistent, SimulationConfig,
    Wire, emulate, simulate,
};

const PARTS: usize = 9;
const WARM_UP: usize = 200;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The repeated call.
struct Repeated {
    collective: String,
    form: String,
    bytes: usize,
    n: usize,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [wire, collective, form, bytes, n] = &arguments[..] else {
        return Err("usage: calls WIRE COLLECTIVE FORM BYTES CALLS".into());
    };
    let (collective, form) = (collective.clone(), form.clone());
    let what = Repeated { collective, form, bytes: bytes.parse()?, n: n.parse()? };
    match &wire[..] {
        "utofu" => threads(&what, Wire::Network),
        "shm" => threads(&what, Wire::Memory),
        "sim" => {
            let mut config = SimulationConfig::new(Shape::torus(&[2])?, 0);
            config.is_calm = true;
            let results = simulate(&config, |comm, _| what.run(comm))?.results;
            Ok(results.into_iter().collect::<Result<(), Error>>()?)
        }
        "processes" => {
            let world = hopbine::init()?;
            what.run(world.communicator())?;
            Ok(world.finish()?)
        }
        "mpi" => by_mpi(&what),
        _ => Err(format!("no wire is called {wire}").into()),
    }
}

fn threads(what: &Repeated, wire: Wire) -> Outcome<()> {
    // `EmulationConfig::with` would not compile with older releases, with which this example is also built.
    let mut config = EmulationConfig::new(Shape::torus(&[2])?);
    config.wire = wire;
    emulate(&config, |comm| what.run(comm))?.into_iter().collect::<Result<(), Error>>()?;
    Ok(())
}

#[cfg(feature = "linked")]
fn by_mpi(what: &Repeated) -> Outcome<()> {
    use hopbine::mpi::ffi;
    hopbine_mpi::provide();
    let (mut provided, none, nothing) = (0, std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the program calls this once, at its start.
    unsafe { ffi::PMPI_Init_thread(none, nothing, ffi::thread_funneled(), &mut provided) };
    // SAFETY: all ranks of the program make this call.
    let world = unsafe { hopbine::init_mpi(ffi::comm_world()) }?;
    what.run(world.communicator())?;
    world.finish()?;
    // SAFETY: the program calls this once, at its end.
    unsafe { ffi::PMPI_Finalize() };
    Ok(())
}

#[cfg(not(feature = "linked"))]
fn by_mpi(_: &Repeated) -> Outcome<()> {
    Err("built without an MPI: cargo build -p hopbine-mpi --features linked --example calls-mpi"
        .into())
}

impl Repeated {
    fn run(&self, comm: &Communicator) -> Result<(), Error> {
        let comm = &comm.with(CallOptions::new().hardware(Hardware::Never));
        let numbers = self.bytes / 8;
        let n_ranks = comm.size() as usize;
        let (out, mut into) = (vec![1.0; numbers * n_ranks], vec![0.0; numbers * n_ranks]);
        let mut again = self.persistent(comm, &out)?;
        for _ in 0..WARM_UP {
            self.once(comm, &out, &mut into, again.as_mut())?;
        }
        comm.barrier()?;
        let mut times = [0.0; PARTS];
        for time in &mut times {
            let start = Instant::now();
            self.counted(comm, &out, &mut into, again.as_mut())?;
            *time = start.elapsed().as_secs_f64() / self.part() as f64 * 1e9;
        }
        times.sort_by(f64::total_cmp);
        if comm.rank() == 0 {
            println!("{:.1} {:.1}", times[0], times[PARTS / 2]);
        }
        Ok(())
    }

    fn part(&self) -> usize {
        self.n.div_ceil(PARTS)
    }

    /// Runs one part of the calls. Not inlined, so that its instructions can be counted by name.
    #[inline(never)]
    fn counted(
        &self,
        comm: &Communicator,
        out: &[f64],
        into: &mut [f64],
        mut again: Option<&mut Persistent<f64>>,
    ) -> Result<(), Error> {
        (0..self.part()).try_for_each(|_| self.once(comm, out, into, again.as_deref_mut()))
    }

    fn persistent(
        &self,
        comm: &Communicator,
        out: &[f64],
    ) -> Result<Option<Persistent<f64>>, Error> {
        if self.form != "persistent" {
            return Ok(None);
        }
        let numbers = self.bytes / 8;
        match &self.collective[..] {
            "allreduce" => comm.allreduce_init(out[..numbers].to_vec(), Op::Sum),
            "bcast" => comm.bcast_init(out[..numbers].to_vec(), 0),
            "alltoall" => comm.alltoall_init(out.to_vec()),
            other => unreachable!("{other}, persistent"),
        }
        .map(Some)
    }

    fn once(
        &self,
        comm: &Communicator,
        out: &[f64],
        into: &mut [f64],
        again: Option<&mut Persistent<f64>>,
    ) -> Result<(), Error> {
        if let Some(again) = again {
            again.start()?;
            return again.wait();
        }
        let numbers = self.bytes / 8;
        match (&self.collective[..], &self.form[..]) {
            ("barrier", "blocking") => comm.barrier(),
            ("allreduce", "blocking") => {
                comm.allreduce(&out[..numbers], &mut into[..numbers], Op::Sum)
            }
            ("bcast", "blocking") => comm.bcast(&mut into[..numbers], 0),
            ("alltoall", "blocking") => comm.alltoall(out, into),
            ("barrier", "request") => comm.scope(|scope| scope.barrier()?.wait().map(drop)),
            ("allreduce", "request") => comm.scope(|scope| {
                scope.allreduce(&out[..numbers], &mut into[..numbers], Op::Sum)?.wait().map(drop)
            }),
            ("bcast", "request") => {
                comm.scope(|scope| scope.bcast(&mut into[..numbers], 0)?.wait().map(drop))
            }
            ("alltoall", "request") => {
                comm.scope(|scope| scope.alltoall(out, into)?.wait().map(drop))
            }
            (collective, form) => unreachable!("{collective}, {form}"),
        }
    }
}
