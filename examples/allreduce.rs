//! Repeats an allreduce of the given size on all ranks of the job, and prints the time per call.
//!
//! ```sh
//! cargo build --release --workspace --examples
//! ./target/release/hopbine launch -n 8 --torus 2x2x2 ./target/release/examples/allreduce 1048576 100
//! ```

use std::time::Instant;

use hopbine::reduce::Op;

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let bytes: usize = arguments.next().map_or(Ok(1 << 20), |text| text.parse())?;
    let calls: u32 = arguments.next().map_or(Ok(100), |text| text.parse())?;

    let world = hopbine::init()?;
    let comm = world.communicator();
    let mine = vec![f64::from(comm.rank()); bytes / 8];
    let mut sum = vec![0.0; bytes / 8];
    comm.allreduce(&mine, &mut sum, Op::Sum)?;
    comm.barrier()?;
    let start = Instant::now();
    for _ in 0..calls {
        comm.allreduce(&mine, &mut sum, Op::Sum)?;
    }
    let each = start.elapsed() / calls.max(1);

    let n = f64::from(comm.size());
    if let Some(wrong) = sum.iter().position(|&sum| sum != n * (n - 1.0) / 2.0) {
        return Err(format!("rank {}: element {wrong} is {}", comm.rank(), sum[wrong]).into());
    }
    if comm.rank() == 0 {
        println!("{} ranks on {}: {bytes} bytes in {each:?}", comm.size(), comm.shape());
    }
    world.finish()?;
    Ok(())
}
