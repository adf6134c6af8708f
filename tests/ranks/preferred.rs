//! Algorithms that the user prefers for all calls (`HOPBINE_ALGORITHM`).

use crate::common::calls::config;
use hopbine::Call;
use hopbine::reduce::{Dtype, Op};
use hopbine::torus::Collective;
use hopbine::{Blocks, Drive, Wire, emulate};

#[test]
fn what_is_preferred_serves_where_it_can() {
    for wire in [Wire::Network, Wire::Memory] {
        let preferred = "allreduce=doubling,alltoall=bruck:2,scatter=linear".parse().unwrap();
        let config = config(&[4, 2], Drive::Inline).with(|config| {
            config.preferred = preferred;
            config.wire = wire;
        });
        emulate(&config, |comm| {
            let call = |collective: Collective| {
                let op = collective.is_reduction().then_some(Op::Sum);
                Call { op, ..Call::new(collective, 2, Dtype::U64) }
            };
            let by = |collective| comm.explain(&call(collective)).unwrap();
            let allreduce = comm.explain(&call(Collective::Allreduce)).unwrap();
            assert_eq!(allreduce.by, "doubling");
            assert_eq!(by(Collective::Alltoall).by, "bruck:2");
            assert!(by(Collective::Scatter).why.contains("HOPBINE_ALGORITHM"));
            assert!(!by(Collective::Gather).why.contains("HOPBINE_ALGORITHM"));

            let mut sum = [0u64; 2];
            comm.allreduce(&[u64::from(comm.rank()), 1], &mut sum, Op::Sum).unwrap();
            assert_eq!(sum, [28, 8]);
            let (sent, me) = ([1u64; 36], u64::from(comm.rank()));
            // Every rank sends x + 1 elements to rank x.
            let (to, from) = ([1, 2, 3, 4, 5, 6, 7, 8], [me + 1; 8]);
            let mut got = vec![0u64; 8 * (me as usize + 1)];
            comm.alltoallv(&sent, Blocks::new(&to), &mut got, Blocks::new(&from)).unwrap();
            assert!(got.iter().all(|&one| one == 1));

            // `doubling` does not support three ranks.
            let three = comm.split(Some(comm.rank() / 3), 0).unwrap().expect("a group");
            let by = three.explain(&call(Collective::Allreduce)).unwrap().by;
            let library = if wire == Wire::Memory { "flat buffer" } else { "gates" };
            assert_eq!(by, if three.size() == 2 { "doubling" } else { library });
            let mut sum = [0u64; 1];
            three.allreduce(&[1], &mut sum, Op::Sum).unwrap();
            assert_eq!(sum, [u64::from(three.size())]);
        })
        .unwrap();
    }
}
