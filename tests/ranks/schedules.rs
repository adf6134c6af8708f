//! Schedules that a call names: as text, or as the result of a search.

use crate::common::calls::config;
use hopbine::reduce::{Dtype, Op};
use hopbine::torus::plan::{Schedule, max_ports};
use hopbine::torus::{Collective, RankMap, Request, Shape, registry};
use hopbine::{
    Blocks, Call, CallOptions, Communicator, Drive, Error, Hardware, ScheduleProblem, Wire, emulate,
};

fn schedule(collective: Collective, name: &str, comm: &Communicator, ports: u32) -> String {
    on(comm.shape(), collective, name, ports)
}

fn on(shape: &Shape, collective: Collective, name: &str, ports: u32) -> String {
    let shape = shape.clone();
    let request = Request {
        shape,
        map: RankMap::RowMajor,
        root: hopbine::torus::Rank(0),
        ports: Some(ports),
    };
    registry::find(collective, name).unwrap().schedule(&request).unwrap().to_string()
}

/// Options without hardware, so that calls need a plan.
fn by(text: &str) -> CallOptions {
    CallOptions::new().algorithm(text).hardware(Hardware::Never)
}

/// Makes allreduces and broadcasts of several lengths and compares the results.
fn sums_are_right(comm: &Communicator, allreduce: &str, bcast: &str) {
    let n = u64::from(comm.size());
    for len in [1, 100, 3000] {
        let mut sum = vec![0u64; len];
        let own = vec![u64::from(comm.rank()) + 1; len];
        comm.with(by(allreduce)).allreduce(&own, &mut sum, Op::Sum).unwrap();
        assert_eq!(sum, vec![n * (n + 1) / 2; len]);
        let mut data = vec![u64::from(comm.rank()); len];
        comm.with(by(bcast)).bcast(&mut data, 3).unwrap();
        assert_eq!(data, vec![3; len]);
    }
}

#[test]
fn a_written_schedule_performs_calls() {
    for wire in Wire::ALL {
        let config = config(&[4, 3], Drive::Inline).with(|config| config.wire = wire);
        emulate(&config, |comm| {
            let ports = max_ports(comm.shape()).min(comm.n_ports());
            let sums = schedule(Collective::Allreduce, "bine/direct@sequential", comm, ports);
            sums_are_right(
                comm,
                &sums,
                &schedule(Collective::Bcast, "bine/circulant-tree", comm, ports),
            );
            // A schedule without a name in the registry: its steps are in reverse order.
            let odd = schedule(Collective::Allreduce, "bine/direct@sequential-l", comm, ports)
                .replace("far-first", "near-first");
            assert_eq!(registry::name_of(&odd.parse::<Schedule>().unwrap()), None);
            sums_are_right(comm, &odd, "search");
            let call =
                Call { op: Some(Op::Sum), ..Call::new(Collective::Allreduce, 9, Dtype::U64) };
            let said = comm.with(by(&odd)).explain_started(&call).unwrap();
            assert!(said.by.starts_with("schedule:"), "{said}");
            assert_eq!(said.why, "the schedule that the call names");
            let said = comm.with(by("search")).explain_started(&call).unwrap();
            assert_eq!(said.why, "found by the search that the call names");
            // It fixes the number of ports, as what a search finds does.
            let split = comm.with(by("circulant-split:2,1")).explain_started(&call).unwrap();
            assert_eq!(split.why, "the call names it");
        })
        .unwrap();
    }
}

#[test]
fn where_no_rank_knows_all_sizes_nothing_is_searched() {
    emulate(&config(&[3, 2], Drive::Inline), |comm| {
        let (sent, mut got) = ([1u8; 6], [0u8; 6]);
        let blocks = || Blocks::new(&[1; 6]);
        let error =
            comm.with(by("search")).alltoallv(&sent, blocks(), &mut got, blocks()).unwrap_err();
        assert!(error.to_string().contains("in which all ranks know all sizes"), "{error}");
        comm.with(by("mixed")).alltoallv(&sent, blocks(), &mut got, blocks()).unwrap();
        assert_eq!(got, sent);
    })
    .unwrap();
}

/// Every rank gets the error at once, and the communicator stays usable.
#[test]
fn a_schedule_of_something_else_is_an_error_on_every_rank() {
    let config = config(&[4, 3], Drive::Inline);
    let errors = emulate(&config, |comm| {
        let text = schedule(Collective::Allreduce, "mixed", comm, 2);
        let problem = |options: CallOptions| {
            let comm = comm.with(options.hardware(Hardware::Never));
            match comm.allreduce(&[1u64], &mut [0], Op::Sum).unwrap_err() {
                Error::Schedule { rank, collective, problem } => {
                    assert_eq!((rank, collective), (comm.rank(), Collective::Allreduce));
                    *problem
                }
                error => panic!("{error}"),
            }
        };
        let part = comm.split(Some(comm.rank() / 2), 0).unwrap().expect("a colour");
        let of_part = part.with(by(&schedule(Collective::Allreduce, "mixed", comm, 2)));
        let error = of_part.allreduce(&[1u64], &mut [0], Op::Sum).unwrap_err();
        assert!(error.to_string().starts_with(&format!("rank {}, ", comm.rank())), "{error}");
        let shape = ScheduleProblem::Shape { found: "3x4".into(), here: "4x3".into() };
        let turned = on(&Shape::torus(&[3, 4]).unwrap(), Collective::Allreduce, "mixed", 2);
        assert_eq!(problem(by(&turned)), shape);
        let other = schedule(Collective::Allgather, "mixed", comm, 2);
        let found = Collective::Allgather;
        assert_eq!(problem(by(&other)), ScheduleProblem::Collective { found });
        let ports = ScheduleProblem::Ports { found: 2, valid: "3".into() };
        assert_eq!(problem(by(&text).ports(3)), ports);
        assert!(matches!(problem(by("schedule of mine")), ScheduleProblem::Text(_)));
        // A pattern that does not support the size.
        let unserved = text.replace("patterns bine direct", "patterns doubling kring:2");
        assert!(matches!(problem(by(&unserved)), ScheduleProblem::Text(_)));
        sums_are_right(comm, &text, "mixed");
    });
    errors.unwrap();
}
