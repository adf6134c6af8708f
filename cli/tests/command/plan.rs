//! `hopbine plan`.

use std::collections::BTreeSet;

use hopbine::torus::plan::Flow;
use hopbine::torus::{Collective, Request, registry};
use hopbine::torus::{Plan, Rank, RankMap, Schedule};

use super::{hopbine, json, text, well};

fn schedule(collective: &str, torus: &str, algorithm: &str, root: u32) -> Schedule {
    let collective: Collective = collective.parse().unwrap();
    let shape = torus.parse().unwrap();
    let request = Request { shape, map: RankMap::default(), root: Rank(root), ports: None };
    registry::find(collective, algorithm).unwrap().schedule(&request).unwrap()
}

/// Collective, shape, rank, algorithm, root.
const CASES: [(&str, &str, u32, &str, u32); 11] = [
    ("allreduce", "4x4", 5, "bine", 0),
    ("allreduce", "8x8", 0, "bine", 0),
    ("allreduce", "4x4x4", 21, "bine", 0),
    ("allreduce", "4x6x4", 0, "bucket", 0),
    ("allreduce", "16", 5, "bine", 0),
    ("allreduce", "2x3m", 4, "mixed", 0),
    ("alltoall", "3x5", 7, "pairwise", 0),
    ("alltoall", "4x4x4", 0, "pairwise", 0),
    ("bcast", "3x5", 14, "circulant-tree", 3),
    ("barrier", "2x1x7", 3, "circulant", 0),
    ("gather", "1", 0, "mixed", 0),
];

#[test]
fn the_text_reads_back_as_the_plan() {
    for (collective, torus, rank, algorithm, root) in CASES {
        let args =
            format!("plan {collective} --torus {torus} --rank {rank} --algorithm {algorithm}");
        let text = well(&format!("{args} --root {root}"));
        let plan: Plan = text.parse().unwrap();
        let schedule = schedule(collective, torus, algorithm, root);
        assert_eq!(plan, schedule.expand().unwrap().plan(Rank(rank)), "{args}");
        let n_steps: usize = plan.lanes.iter().map(|lane| lane.steps.len()).sum();
        let n_remarks = text.lines().filter(|line| line.starts_with("# step ")).count();
        assert_eq!(n_remarks, n_steps, "{args}");
    }
    let text = well("plan allreduce --torus 4x4 --rank 5 --algorithm bine");
    assert!(text.contains("# step 0: sends 8 blocks to, combines 8 blocks from 4 at (0,1), 1 hop"));
}

#[test]
fn the_schedule_reads_back() {
    let text = well("plan reduce --torus 3x5 --rank 1 --root 7 --format schedule");
    let found: Schedule = text.parse().unwrap();
    assert_eq!(found, schedule("reduce", "3x5", "mixed", 7));
}

#[test]
fn json_holds_every_transfer() {
    for (collective, torus, rank, algorithm, root) in CASES {
        let value = json(&format!(
            "plan {collective} --torus {torus} --rank {rank} --algorithm {algorithm} \
             --root {root} --format json"
        ));
        let plan = schedule(collective, torus, algorithm, root).expand().unwrap().plan(Rank(rank));
        assert_eq!(value["rank"], rank);
        assert_eq!(value["lanes"].as_array().unwrap().len(), plan.lanes.len());
        for (lane, shown) in plan.lanes.iter().zip(value["lanes"].as_array().unwrap()) {
            assert_eq!(shown["positions"], lane.space.n_positions);
            assert_eq!(shown["steps"].as_array().unwrap().len(), lane.steps.len());
            for (step, shown) in lane.steps.iter().zip(shown["steps"].as_array().unwrap()) {
                let peers: Vec<u64> = step.sends.iter().map(|send| send.peer.0.into()).collect();
                let sends = shown["sends"].as_array().unwrap();
                let found: Vec<u64> =
                    sends.iter().map(|send| send["to"].as_u64().unwrap()).collect();
                assert_eq!(found, peers);
                let recvs = shown["recvs"].as_array().unwrap();
                assert_eq!(recvs.len(), step.recvs.len());
                for (recv, shown) in step.recvs.iter().zip(recvs) {
                    assert_eq!(shown["from"], recv.peer.0);
                    let runs: Vec<[u32; 2]> =
                        recv.runs.iter().map(|run| [run.start, run.end()]).collect();
                    assert_eq!(shown["runs"], serde_json::json!(runs));
                }
            }
        }
    }
}

/// Arrows of a picture: port, step, peer, and whether data are sent and whether data are received.
type Seen = BTreeSet<(usize, usize, u32, bool, bool)>;

fn exchanges(plan: &Plan) -> Seen {
    let mut seen = Seen::new();
    for (q, lane) in plan.lanes.iter().enumerate() {
        for (number, step) in lane.steps.iter().enumerate() {
            let sends: BTreeSet<u32> = step.sends.iter().map(|send| send.peer.0).collect();
            let recvs: BTreeSet<u32> = step.recvs.iter().map(|recv| recv.peer.0).collect();
            for &peer in sends.union(&recvs) {
                seen.insert((q, number, peer, sends.contains(&peer), recvs.contains(&peer)));
            }
        }
    }
    seen
}

#[test]
fn the_picture_has_an_arrow_per_exchange() {
    for (collective, torus, rank, algorithm, root) in CASES {
        let args = format!(
            "plan {collective} --torus {torus} --rank {rank} --algorithm {algorithm} \
             --root {root} --format svg"
        );
        let svg = well(&args);
        let document = roxmltree::Document::parse(&svg).unwrap_or_else(|e| panic!("{args}: {e}"));
        let schedule = schedule(collective, torus, algorithm, root);
        let plan = schedule.expand().unwrap().plan(Rank(rank));
        let of_class = |class: &'static str| {
            document.descendants().filter(move |node| node.attribute("class") == Some(class))
        };
        let mut seen = Seen::new();
        for arrow in of_class("exchange") {
            let value = |name: &str| arrow.attribute(name).unwrap();
            let flow = value("data-flow");
            let (sends, recvs) = (flow != "recv", flow != "send");
            for step in value("data-steps").split(' ') {
                let (port, peer) = (value("data-lane"), value("data-peer"));
                let (port, step) = (port.parse().unwrap(), step.parse().unwrap());
                let exchange = (port, step, peer.parse().unwrap(), sends, recvs);
                assert!(seen.insert(exchange), "{args}: {exchange:?} is drawn twice");
            }
            let paths = arrow.descendants().filter(|node| node.has_tag_name("path"));
            // An arrow has a shaft and at least one head.
            assert!(paths.count() >= 2, "{args}: an arrow is drawn");
        }
        assert_eq!(seen, exchanges(&plan), "{args}");
        let nodes: Vec<_> = of_class("nodes").flat_map(|group| group.children()).collect();
        let nodes = nodes.iter().filter(|node| node.attribute("class") == Some("node"));
        assert_eq!(nodes.count(), plan.n_ranks as usize, "{args}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{args}");
    }
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plan.svg");
    let call = |format: &str, path: &std::path::Path| {
        let path = path.display();
        hopbine(&format!("plan barrier --torus 4x4 --rank 1 --format {format} -o {path}"))
    };
    let output = call("svg", &path);
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(std::fs::read_to_string(&path).unwrap().ends_with("</svg>\n"));
    let output = call("text", &path);
    assert!(output.status.success());
    assert!(std::fs::read_to_string(&path).unwrap().parse::<Plan>().is_ok());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left over");

    let output = call("text", &directory.path().join("nowhere").join("plan.txt"));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nowhere"), "{}", text(&output.stderr));
}

#[test]
fn rank_maps_are_used() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("map.txt");
    std::fs::write(&path, "(1,1)\n(1,0)\n(0,1)\n(0,0)\n").unwrap();
    let args = "plan allreduce --torus 2x2 --rank 0 --format json";
    let value = json(&format!("{args} --map {}", path.display()));
    assert_eq!(value["coord"], serde_json::json!([1, 1]));
    let value = json("plan allreduce --torus 2x3 --rank 1 --format json --map column-major");
    assert_eq!(value["coord"], serde_json::json!([1, 0]));
}
