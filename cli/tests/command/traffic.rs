//! `hopbine traffic`.

use super::{json, refused, well};

#[test]
fn the_torus_itself_is_what_check_counts_on() {
    let ours = json("traffic allreduce --torus 4x6 --algorithm bine --format json");
    let check = json("check allreduce --torus 4x6 --algorithm bine --format json");
    for key in ["steps", "messages", "volume", "hop_bytes", "link_load", "link"] {
        assert_eq!(ours["rows"][0][key], check["rows"][0][key], "{key}");
    }
    assert_eq!(ours["network"], "the torus itself");
}

#[test]
fn groups_of_ranks_are_left_as_the_bine_paper_says() {
    // Fig. 1: 8 nodes, two on each switch.
    let crossing = |algorithm: &str, groups: &str| {
        let value = json(&format!(
            "traffic bcast --torus 8 --ports 1 --algorithm {algorithm} --groups {groups} --format json"
        ));
        value["rows"][0]["crossing"].as_f64().unwrap()
    };
    assert_eq!(crossing("doubling-tree-near", "2"), 6.0);
    assert_eq!(crossing("doubling-tree", "2"), 3.0);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("groups.txt");
    std::fs::write(&path, "# leaf switches\na\na\nb\nb\n\nc\nc\nd # the last\nd\n").unwrap();
    assert_eq!(crossing("doubling-tree", &path.display().to_string()), 3.0);
    std::fs::write(&path, "a\nb\n").unwrap();
    let args = format!("traffic bcast --torus 8 --groups {}", path.display());
    refused(&[(&args, "2 groups for the 8 ranks of 8")]);
}

#[test]
fn networks_hold_the_torus() {
    let figure = |args: &str, key: &str| {
        let value = json(&format!("traffic allgather --algorithm bucket --format json {args}"));
        value["rows"][0][key].as_f64().unwrap()
    };
    let is = |args: &str, hops: f64| (figure(args, "hops") - hops).abs() < 1e-9;
    // Neighbours on the logical torus are neighbours on Tofu; a message between two ranks of a node crosses no
    // link.
    assert!(is("--torus 8x6x4 --tofu", 1.0));
    assert!(is("--torus 8x6x4 --tofu=24x23x24 --at 3,22,23", 1.0));
    assert!(figure("--torus 4x3x2+2 --tofu", "hops") < 1.0);
    // In a mesh, which has no wrap-around link, the message back takes the long way.
    assert!(is("--torus 5 --network 5", 1.0));
    assert!(is("--torus 5 --network 9m --at 3", 8.0 / 5.0));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("places.txt");
    std::fs::write(&path, "(0,0)\n(0,1)\n(1,1)\n(1,0)\n").unwrap();
    let places = format!("--torus 4 --network 2mx2m --places {}", path.display());
    assert!(is(&places, 1.0));
    let table = well("traffic allgather --torus 4x3x2 --tofu --algorithm mixed");
    assert!(table.contains("Tofu, 2mx1mx1m units, from (0,0,0)"), "{table}");
}

#[test]
fn what_cannot_be_counted_says_why() {
    refused(&[
        ("traffic allreduce --torus 5x7 --tofu", "is not a box of Tofu units"),
        ("traffic allreduce --torus 8x6x4 --tofu=3x3x3 --at 1", "is not inside the network"),
        ("traffic allreduce --torus 8x6x4 --tofu=2mx2x2", "is not inside the network 2mx2x2"),
        ("traffic allreduce --torus 4x4 --network 5x5m --at 0,2", "is not inside the network"),
        ("traffic allreduce --torus 4x4 --at 0,2", "--at needs --network or --tofu"),
        ("traffic allreduce --torus 4x4 --groups 0", "at least one rank"),
        ("traffic barrier --torus 4x4", "there are no bytes to count"),
        ("traffic allreduce", "--torus <SHAPE>"),
        ("traffic allreduce --torus 4 --network 4 --at a", "is not a coordinate"),
    ]);
}
