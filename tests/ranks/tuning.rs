//! A decision table that the user provides.

use crate::common::calls::config;
use hopbine::reduce::{Dtype, Op};
use hopbine::torus::Collective;
use hopbine::{Call, CallOptions, Drive, Error, Hardware, Tuning, Wire, emulate};

const TABLE: &str = r#"version = 1
name = "mine"
wire = "WIRE"
otherwise = "WIRE"
nearest = false
[class.eight]
ranks = 8
[[rule]]
collective = "allreduce"
class = "eight"
rows = [
    { bytes = "0..8", algorithm = "bucket", ports = 1, segment = "whole" },
    { bytes = "8..", algorithm = "circulant", ports = 1, segment = "4KiB" },
]
"#;

fn table(wire: Wire) -> Tuning {
    TABLE.replace("WIRE", wire.name()).parse().unwrap()
}

#[test]
fn what_a_table_says_serves() {
    for wire in Wire::ALL {
        let config = config(&[4, 2], Drive::Inline).with(|config| {
            config.tuning = Some(table(wire));
            config.wire = wire;
        });
        emulate(&config, |comm| {
            assert_eq!(comm.tuning(), &table(wire));
            let call = |n| Call { op: Some(Op::Sum), ..Call::new(Collective::Allreduce, n, Dtype::U64) };
            let by_plan = comm.with(CallOptions::new().hardware(Hardware::Never));
            let plan = |n| by_plan.explain_started(&call(n)).unwrap().to_string();
            assert_eq!(plan(1), "bucket, 1 port, whole messages: table mine, line 12: class eight, up to 8 B, on 4x2");
            let longer = plan(2);
            assert!(longer.starts_with("circulant, 1 port, messages up to 4096 B: table mine, line 13"), "{longer}");
            for n in [1, 2000] {
                let mut sums = vec![0u64; n];
                comm.allreduce(&vec![u64::from(comm.rank()); n], &mut sums, Op::Sum).unwrap();
                assert_eq!(sums, vec![28; n]);
            }
            // For other shapes the user's table refers to another table, which then decides.
            let two = comm.split(Some(comm.rank() / 2), 0).unwrap().expect("a group");
            let two = two.with(CallOptions::new().hardware(Hardware::Never));
            let by = two.explain_started(&call(1)).unwrap().why;
            assert!(by.starts_with(&format!("table {}, line ", wire.name())), "{by}");
        })
        .unwrap();
    }
}

/// Limits of shared memory decide which calls the flat buffer performs.
#[test]
fn what_a_table_says_of_shared_memory_holds() {
    let with = |shm: &str| {
        let head = "version = 1\nname = \"mine\"\nwire = \"memory\"\notherwise = \"memory\"\n";
        let table: Tuning = format!("{head}{shm}").parse().unwrap();
        let config = config(&[4], Drive::Inline).with(|config| {
            config.tuning = Some(table.clone());
            config.wire = Wire::Memory;
        });
        let longest = emulate(&config, |comm| {
            // Also a communicator that is not the world.
            let other = comm.duplicate().unwrap();
            [comm, &other].map(|comm| {
                [Collective::Allreduce, Collective::ReduceScatter].map(|collective| {
                    let op = Some(Op::Sum);
                    let is_flat = |log: &u32| {
                        let call = Call { op, ..Call::new(collective, 1 << log, Dtype::U8) };
                        comm.uses_gates(&call)
                    };
                    (0..20).take_while(is_flat).count()
                })
            })
        });
        let longest = longest.unwrap();
        assert!(longest.iter().flatten().all(|one| *one == longest[0][0]), "{longest:?}");
        longest[0][0]
    };
    // An allreduce of 32 KiB; a reduce-scatter of four blocks of 8 KiB, which are 32 of the 40 KiB of a place.
    assert_eq!(with(""), [16, 14]);
    assert_eq!(with("shm = { flat = \"4KiB\" }"), [13, 14]);
    assert_eq!(with("shm = { flat_read = \"16KiB\" }"), [13, 13]);
    assert_eq!(with("shm = { flat = 0 }"), [0, 14]);
}

/// A row whose algorithm has a part for each of four ports also serves calls on fewer ports.
#[test]
fn a_split_is_for_its_ports() {
    let row =
        "{ bytes = \"0..\", algorithm = \"mixed-split:2,1,1,1\", ports = 4, segment = \"whole\" }";
    let (head, _) = TABLE.split_once("rows").unwrap();
    let head = head.replace("WIRE", "network").replace("nearest = false\n", "");
    let head = head.replace("ranks = 8", "like = [\"4x2\"]");
    let table: Tuning = format!("{head}ports = 4\nrows = [{row}]\n").parse().unwrap();
    let plan = |ports: u32, options: CallOptions| {
        let config = config(&[4, 2], Drive::Inline).with(|config| {
            config.tuning = Some(table.clone());
            config.ports = Some(ports);
        });
        let of_rank = emulate(&config, |comm| {
            let comm = comm.with(options.clone().hardware(Hardware::Never));
            let mut sums = [0u64; 100];
            comm.allreduce(&[1; 100], &mut sums, Op::Sum).unwrap();
            assert_eq!(sums, [8; 100]);
            let call =
                Call { op: Some(Op::Sum), ..Call::new(Collective::Allreduce, 100, Dtype::U64) };
            comm.explain_started(&call).unwrap().by
        });
        of_rank.unwrap().swap_remove(0)
    };
    assert_eq!(plan(4, CallOptions::new()), "mixed-split:2,1,1,1");
    assert_eq!(plan(2, CallOptions::new()), "mixed");
    assert_eq!(plan(4, CallOptions::new().ports(2)), "mixed");
}

#[test]
fn a_table_is_for_its_wire() {
    let config =
        config(&[2], Drive::Inline).with(|config| config.tuning = Some(table(Wire::Memory)));
    let refused = Error::Setting {
        setting: "HOPBINE_TUNING",
        found: "mine, a table for wire memory".to_owned(),
        valid: "a table for wire network, the wire of the ranks".to_owned(),
    };
    assert_eq!(emulate(&config, |_| ()), Err(refused));
}
