//! The built-in tables make the recorded choices: on many shapes, for many sizes, on any number of ports.
//!
//! `recorded.txt` first held the choices of the rule that preceded the tables. After an intended change of a table,
//! write the file again with `BLESS=1`; its diff shows which choices have changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hopbine_meet::fnv;
use hopbine_torus::choose::{Choice, Knowledge};
use hopbine_torus::{Collective, Shape};

use super::tuning::Tuning;

#[rustfmt::skip]
const SHAPES: &[&str] = &[
    "1", "2", "3", "4", "5", "7", "8", "11", "13", "16", "17", "23", "24", "64", "65", "128", "1000", "1024",
    "1025", "2x1", "1x2", "2x2", "2x3", "3x3", "3x4", "2x2x2", "4x4", "5x7", "6x6", "8x8", "9x27", "13x4",
    "13x23", "4x6x4m", "5x7x11", "8x8x8", "16x16x4", "16x16x5", "64x64", "32x256", "65x2", "24x24x24",
    "48x69x48", "1+2", "1+4", "2+2", "2+4", "1x2+2", "3+4", "4x4+4", "7+4", "13+2", "23+2", "8x8x8+4",
    "24x24x24+4", "2+65", "2+1000", "16x16+4", "16x16+5",
];
const PORTS: &[u32] = &[1, 2, 3, 4, 6];

/// Shapes and ports on which a table's choices are recorded: some of the shapes for the table of Tofu-D, which a
/// program writes and which has no rule for several shapes; the shapes of its own rules and two others for the table
/// of MPI.
fn places(table: &str) -> (Vec<&'static str>, &'static [u32]) {
    match table {
        "tofu-d" => (SHAPES.iter().copied().step_by(5).collect(), &[1, 6]),
        "mpi" => (vec!["2", "3", "7", "8", "11", "2x2", "2x3", "2+2", "1x2+2", "3+4"], &[1, 4]),
        _ => (SHAPES.to_vec(), PORTS),
    }
}

#[rustfmt::skip]
const SIZES: &[u64] = &[
    0, 1, 8, 64, 256, 512, 513, 1 << 10, 2 << 10, 4 << 10, (4 << 10) + 1, 8 << 10, (8 << 10) + 1, 16 << 10,
    32 << 10, (32 << 10) + 1, 64 << 10, (64 << 10) + 1, 128 << 10, 256 << 10, (256 << 10) + 1, 512 << 10,
    (512 << 10) + 1, 1 << 20, (1 << 20) + 1, 2 << 20, (2 << 20) + 1, 3 << 20, 4 << 20, 16 << 20, 64 << 20,
    1 << 30, 1 << 40,
];

/// The choice by size, listed only where it differs from that of the previous size.
fn over_sizes(sizes: &[u64], choose: impl Fn(u64) -> String) -> String {
    let mut text = String::new();
    let mut last = String::new();
    for &bytes in sizes {
        let chosen = choose(bytes);
        if chosen != last {
            let _ = write!(text, "; {bytes}: {chosen}");
            last = chosen;
        }
    }
    text.split_off(2)
}

/// Appends all choices of a kind; shapes and ports with the same choices share a line. One hash records the longest
/// messages.
fn group(
    text: &mut String,
    title: &str,
    (shapes, ports): (&[&str], &[u32]),
    sizes: &[u64],
    choose: impl Fn(&Shape, u64, u32) -> Choice,
) {
    let mut alike: BTreeMap<String, Vec<(String, Vec<u32>)>> = BTreeMap::new();
    let mut segments = fnv::START;
    for name in shapes {
        let shape: Shape = name.parse().unwrap();
        for &ports in ports {
            let all = sizes.iter().map(|&bytes| choose(&shape, bytes, ports).segment_bytes);
            segments = all.fold(segments, |hash, bytes| fnv::mix(hash, bytes).rotate_left(32));
            let chosen = over_sizes(sizes, |bytes| {
                let choice = choose(&shape, bytes, ports);
                format!("{} {}", choice.algorithm.name, choice.ports)
            });
            let places = alike.entry(chosen).or_default();
            match places.last_mut() {
                Some((last, ports_of)) if last == name => ports_of.push(ports),
                _ => places.push(((*name).to_owned(), vec![ports])),
            }
        }
    }
    let _ = writeln!(text, "{title}, longest messages {segments:016x}");
    for (chosen, places) in alike {
        let _ = writeln!(text, "  {chosen}");
        let mut by_ports: BTreeMap<Vec<u32>, Vec<String>> = BTreeMap::new();
        for (shape, ports) in places {
            by_ports.entry(ports).or_default().push(shape);
        }
        for (ports, shapes) in by_ports {
            let _ = writeln!(text, "    {ports:?} {}", shapes.join(" "));
        }
    }
}

fn all() -> String {
    let mut text = String::new();
    for (name, _) in Tuning::BUILT_IN {
        let tuning = Tuning::named(name).unwrap();
        let (shapes, ports) = places(name);
        let at = (&shapes[..], ports);
        for collective in Collective::ALL {
            let sizes = if collective == Collective::Barrier { &SIZES[..1] } else { SIZES };
            group(&mut text, &format!("{name} {collective}"), at, sizes, |shape, bytes, ports| {
                tuning.choose(collective, shape, bytes, ports)
            });
        }
        for collective in Collective::ALL {
            if Knowledge::Unknown.is_of(collective) {
                let title = format!("{name} {collective} of unknown sizes");
                group(&mut text, &title, at, &SIZES[..1], |shape, _, ports| {
                    tuning.choose_unknown(collective, shape, ports)
                });
            }
        }
        let title = format!("{name} alltoall of sizes that have been learnt");
        group(&mut text, &title, at, SIZES, |shape, longest, ports| {
            tuning.choose_learnt(shape, longest, ports)
        });
    }
    text
}

#[test]
fn tables_choose_what_is_recorded() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/comm/choice/recorded.txt");
    let now = all();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, now).unwrap();
        return;
    }
    let recorded = std::fs::read_to_string(path).unwrap();
    for (at, (now, recorded)) in now.lines().zip(recorded.lines()).enumerate() {
        assert_eq!(now, recorded, "line {}", at + 1);
    }
    assert_eq!(now.lines().count(), recorded.lines().count());
}
