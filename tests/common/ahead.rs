//! Tests with a root that runs far ahead of the other ranks.

use std::time::Duration;

use hopbine::reduce::Op;
use hopbine::{CallOptions, Communicator};

/// How long the other ranks stay behind. They poll during this time.
const BEHIND: Duration = Duration::from_millis(200);

/// The root makes `calls` broadcasts, one after the other, while the other ranks first wait for each other. No rank
/// stores more unexpected messages than its bound allows.
pub fn far_ahead(comm: &Communicator, calls: u64) {
    let plain = comm.with(CallOptions::new().algorithm("knomial-tree"));
    let others = comm.split(Some(u32::from(comm.rank() == 0)), 0).unwrap().unwrap();
    if comm.rank() == 1 {
        std::thread::sleep(BEHIND);
    }
    // Rank 0 is alone in its part of the split, so it does not wait.
    let mut sum = [0];
    others
        .with(CallOptions::new().algorithm("direct"))
        .allreduce(&[1u64], &mut sum, Op::Sum)
        .unwrap();
    assert_eq!(sum[0], u64::from(others.size()));
    for call in 0..calls {
        let mut buffer = [if comm.rank() == 0 { call * call } else { 7 }];
        plain.bcast(&mut buffer, 0).unwrap();
        assert_eq!(buffer, [call * call]);
    }
    let bytes = comm.unexpected();
    assert!(bytes.most_bytes <= bytes.bound_bytes, "{bytes:?}");
    // At least one rank has stored many unexpected bytes while other ranks were behind.
    let mut most = [0];
    comm.allreduce(&[bytes.most_bytes as u64], &mut most, Op::Max).unwrap();
    assert!(most[0] > 1000, "{most:?}");
}

/// The root starts more broadcasts on one communicator than receivers have room for, and then one broadcast on a
/// second communicator. The other ranks wait for the broadcast on the second communicator first.
pub fn ahead_in_another(comm: &Communicator, calls: usize) {
    let algorithm = CallOptions::new().algorithm("knomial-tree");
    let (second, comm) = (comm.duplicate().unwrap().with(algorithm.clone()), comm.with(algorithm));
    for len in [1, 2, 20, 250] {
        let value = |call: usize| vec![if comm.rank() == 0 { call as u64 } else { 0 }; len];
        let mut buffers: Vec<Vec<u64>> = (0..calls).map(value).collect();
        let mut last = value(calls);
        let done = comm.scope(|many| {
            second.scope(|one| {
                if comm.rank() == 0 {
                    let started: Result<Vec<_>, _> =
                        buffers.iter_mut().map(|buffer| many.bcast(buffer, 0)).collect();
                    one.bcast(&mut last, 0)?.wait()?;
                    return started?.into_iter().try_for_each(|request| request.wait().map(drop));
                }
                assert_eq!(one.bcast(&mut last, 0)?.wait()?, vec![calls as u64; len]);
                for (call, buffer) in buffers.iter_mut().enumerate() {
                    assert_eq!(many.bcast(buffer, 0)?.wait()?, vec![call as u64; len]);
                }
                Ok(())
            })
        });
        done.unwrap();
    }
    let bytes = comm.unexpected();
    assert!(bytes.most_bytes <= bytes.bound_bytes, "{bytes:?}");
}
