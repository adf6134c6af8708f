//! Data that are split over lanes in parts of different sizes.

use hopbine_torus::geometry::{RankMap, Vertex};
use hopbine_torus::plan::{
    Flow, Part, Placement, Recipe, Schedule, ScheduleError, Split, for_each_message, n_positions,
    traffic,
};
use hopbine_torus::{Algorithm, Collective, Rank, Request, Shape, registry};

fn schedule(collective: Collective, name: &str, shape: &str) -> Result<Schedule, ScheduleError> {
    let shape: Shape = shape.parse().unwrap();
    let request = Request { shape, map: RankMap::RowMajor, root: Rank(0), ports: None };
    registry::find(collective, name).unwrap().schedule(&request)
}

#[test]
fn a_split_is_a_line_and_an_end_of_a_name() {
    let equal = schedule(Collective::Allreduce, "mixed", "4x3").unwrap();
    let split = schedule(Collective::Allreduce, "mixed-split:4,2,2,6", "4x3").unwrap();
    assert_eq!(split.to_string(), format!("{equal}split 2,1,1,3\n"));
    assert_eq!(split.to_string().parse(), Ok(split.clone()));
    assert_eq!(registry::name_of(&split).as_deref(), Some("mixed-split:2,1,1,3"));
    // A schedule without a name.
    let latency = "bine/direct@sequential-l-split:2,1,1,3";
    let latency = schedule(Collective::Allreduce, latency, "4x3").unwrap();
    let text = latency.to_string().replace("far-first", "near-first");
    let unnamed: Schedule = text.parse().unwrap();
    let name = Algorithm::of_schedule(&unnamed).name;
    assert!(name.starts_with("schedule:") && name.ends_with("-split:2,1,1,3"), "{name}");
    let parts: Vec<Part> = split.expand().unwrap().lanes().iter().map(|lane| lane.part).collect();
    let part = |start, end| Part { start, end, units: 7 };
    assert_eq!(parts, [part(0, 2), part(2, 3), part(3, 4), part(4, 7)]);
}

/// A name of any length is refused without a call of `find` for each of its ends.
#[test]
fn a_name_has_one_split() {
    for times in [2, 100_000] {
        let name = "mixed".to_owned() + &"-split:1,2".repeat(times);
        assert!(registry::find(Collective::Allreduce, &name).is_err());
    }
}

#[test]
fn a_split_is_left_out_on_other_ports() {
    let algorithm = registry::find(Collective::Allreduce, "mixed-split:2,1,1,3").unwrap();
    assert!(algorithm.is_for(4) && !algorithm.is_for(2));
    assert_eq!(algorithm.clone().on_ports(4).name, "mixed-split:2,1,1,3");
    let equal = algorithm.on_ports(2);
    assert_eq!((&*equal.name, equal.ports()), ("mixed", None));
}

#[test]
fn a_split_has_a_weight_for_each_part() {
    let refused =
        |collective, name: &str, shape| schedule(collective, name, shape).unwrap_err().to_string();
    let said = refused(Collective::Allreduce, "mixed-split:1,2,3,4,5", "4x3");
    assert!(said.contains("5 ports on shape 4x3: use 1 to 4"), "{said}");
    for (collective, name, shape, expected) in [
        (Collective::Gather, "linear-split:1,2", "4x3", "has 1;"),
        (Collective::Alltoall, "pairwise-split:1,2", "4x3", "has 1;"),
        // In a dimension of size 2 both directions are the same.
        (Collective::Bcast, "trees-split:1,2,3,4", "4x2", "has 3;"),
    ] {
        let said = refused(collective, name, shape);
        assert!(said.contains(expected), "{name}: {said}");
    }
    for (collective, name) in [
        (Collective::Alltoall, "dimensions-split:3,1,1,2"),
        (Collective::Scan, "chain-split:3,1,1,2"),
        (Collective::Bcast, "trees-split:3,1,1,2"),
        (Collective::Gather, "mixed-split:3,1,1,2"),
    ] {
        assert!(schedule(collective, name, "4x3").is_ok(), "{name}");
    }
    let said = refused(Collective::Allgather, "mixed-dealt-split:60,1,1,5", "4x3");
    assert!(said.contains("in 67 turns; weights of the split may add up to 64"), "{said}");
    for name in ["mixed-split:1,0", "mixed-split:2,2", "mixed-split:", "mixed-split:1,2-split:3,1"]
    {
        let said = registry::find(Collective::Allreduce, name).unwrap_err().to_string();
        assert!(said.contains("weights of a split 1 to 65536 and not all equal"), "{said}");
    }
}

/// Whole blocks are distributed to lanes by weight.
#[test]
fn blocks_are_dealt_by_weight() {
    for name in ["bucket-dealt-split:3,1,1,2", "mixed-dealt-split:5,1,2,1"] {
        let schedule = schedule(Collective::Allgather, name, "9x7").unwrap();
        let flow = schedule.expand().unwrap();
        assert!(
            matches!(&schedule.recipe, Recipe::Walk(walk) if walk.positions == Placement::Dealt)
        );
        let mut sent = [0u64; 4];
        for_each_message(&flow, |lane, _, message| sent[lane.0] += n_positions(message.runs));
        let all: u64 = sent.iter().sum();
        assert_eq!(all, 63 * 62);
        for (index, &sent) in (0..).zip(&sent) {
            let share = sent as f64 / all as f64;
            let weights = schedule.split.weights();
            let wanted = f64::from(weights[index]) / f64::from(weights.iter().sum::<u32>());
            assert!((share - wanted).abs() < 0.04, "{name}: lane {index} has {share} for {wanted}");
        }
    }
}

/// The load of a link follows from the weights of its lanes.
#[test]
fn traffic_goes_by_weight() {
    let schedule = schedule(Collective::Allgather, "bucket-split:3,1", "8").unwrap();
    let shape: Shape = "8".parse().unwrap();
    let found = traffic(&schedule.expand().unwrap(), &shape, |rank| Vertex(rank.0));
    assert!((found.max_link_load - 0.75 * 7.0 / 8.0).abs() < 1e-9, "{found:?}");
    assert!((found.max_sent - 7.0 / 8.0).abs() < 1e-9, "{found:?}");
    assert_eq!(Split::default(), "1,1".parse().unwrap_or_default());
}
