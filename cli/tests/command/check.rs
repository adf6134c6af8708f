//! `hopbine check`.

use hopbine::torus::Collective;
use serde_json::Value;

use super::{hopbine, json, n_serving, text, well};

#[test]
fn every_collective_is_proved() {
    for collective in Collective::ALL {
        let value = json(&format!("check {collective} --torus 3x4 --format json"));
        assert_eq!(value["proved"], true, "{collective}");
        let rows = value["rows"].as_array().unwrap();
        assert_eq!(rows.len(), n_serving(collective, "3x4"), "{collective}");
        assert!(rows.iter().all(|row| row["n_violations"] == 0 && row["ranks"] == 12));
    }
}

#[test]
fn figures_are_multiples_of_the_vector() {
    let value = json("check allreduce --torus 4x4x4 --algorithm bine --format json");
    let row = &value["rows"][0];
    let share = 2.0 * 63.0 / 64.0;
    assert!((row["volume"].as_f64().unwrap() - share).abs() < 1e-9, "{row}");
    assert!((row["minimal_volume"].as_f64().unwrap() - share).abs() < 1e-9, "{row}");
    assert_eq!((&row["ports"], &row["steps"]), (&Value::from(6), &Value::from(12)));
    let table = well("check allreduce --torus 4x4x4 --algorithm bine");
    assert!(table.contains("1.9688") && table.contains("proved"), "{table}");
}

#[test]
fn steps_have_a_minimum_and_messages_a_limit() {
    let row = |args: &str| json(&format!("check {args} --format json"))["rows"][0].clone();
    let tree = row("gather --torus 4x5 --algorithm knomial --ports 1");
    assert_eq!((&tree["steps"], &tree["minimal_steps"]), (&3.into(), &3.into()));
    assert_eq!(tree["in_flight"], Value::Null);
    let pairwise = row("alltoall --torus 7 --algorithm pairwise-batched:2 --ports 1");
    assert_eq!((&pairwise["steps"], &pairwise["minimal_steps"]), (&6.into(), &3.into()));
    assert_eq!(pairwise["in_flight"], 2);
    let args = "alltoall --torus 3 --per-node 4 --ports 1 --algorithm";
    let batches = row(&format!("{args} node-aware-batched:2"));
    assert_eq!(batches["in_flight"], 2);
    let counted = json(&format!("traffic {args} node-aware-batched:2 --format json"));
    assert_eq!(counted["rows"][0]["in_flight"], 2);
    let table = well(&format!("traffic {args} node-aware-batched:2"));
    assert!(table.contains("in flight") && table.contains("no limit but the data"), "{table}");
}

#[test]
fn all_ports_and_all_roots() {
    let value =
        json("check reduce --torus 2x5 --algorithm mixed --ports all --root all --format json");
    let rows = value["rows"].as_array().unwrap();
    let ports: Vec<u64> = rows.iter().map(|row| row["ports"].as_u64().unwrap()).collect();
    assert_eq!(ports, [1, 2, 3, 4]);
    assert!(rows.iter().all(|row| row["root"] == "all 10" && row["verdict"] == "proved"));
    let csv = well("check reduce --torus 2x5 --algorithm mixed --root 7 --format csv");
    assert!(csv.lines().nth(1).unwrap().starts_with("mixed,4,7,10,"), "{csv}");
}

#[test]
fn schedules_are_read_from_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("schedule.txt");
    let schedule = well("plan scatter --torus 6 --rank 0 --root 5 --format schedule");
    std::fs::write(&path, schedule).unwrap();
    let table = well(&format!("check --schedule {}", path.display()));
    assert!(table.starts_with("scatter on 6: proved"), "{table}");

    std::fs::write(&path, "schedule scatter\nform loop\n").unwrap();
    let output = hopbine(&format!("check --schedule {}", path.display()));
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains("schedule.txt: line 2") && error.contains("butterfly"), "{error}");

    // A shape that fits in no memory is refused before the schedule is checked.
    let schedule = well("plan allreduce --torus 4 --rank 0 --algorithm bine-l --format schedule");
    std::fs::write(&path, schedule.replace("shape 4", "shape 4294967295")).unwrap();
    for command in ["check", "traffic"] {
        let output = hopbine(&format!("{command} --schedule {}", path.display()));
        assert_eq!(output.status.code(), Some(2));
        let error = text(&output.stderr);
        assert!(error.contains("use a smaller torus"), "{error}");
    }
}

/// Writes the plans of all ranks of an allreduce on 2x2 and returns the arguments to check them.
fn plans(directory: &std::path::Path, change: impl Fn(u32, String) -> String) -> String {
    let mut paths = vec![];
    for rank in 0..4 {
        let plan = well(&format!("plan allreduce --torus 2x2 --rank {rank} --algorithm bine"));
        let path = directory.join(format!("{rank}.txt"));
        std::fs::write(&path, change(rank, plan)).unwrap();
        paths.push(path.display().to_string());
    }
    format!("check --torus 2x2 --plans {}", paths.join(" "))
}

#[test]
fn plans_from_files_are_proved_or_their_faults_named() {
    let directory = tempfile::tempdir().unwrap();
    let args = plans(directory.path(), |_, plan| plan);
    assert!(well(&args).starts_with("allreduce on 2x2: proved"));

    // Rank 2 copies where it should reduce.
    let change = |rank, plan: String| {
        if rank == 2 { plan.replace("step reduce", "step copy") } else { plan }
    };
    let args = plans(directory.path(), change);
    let output = hopbine(&args);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("1 of 1 WRONG"), "{table}");
    assert!(table.contains("rank 2 lane 0 position") || table.contains("rank 2 lane 0 step"));
    let listed = table.lines().filter(|line| line.contains(" ports: rank ")).count();
    assert_eq!(listed, 10, "{table}");
    assert!(table.contains("... and "), "{table}");

    let output = hopbine(&format!("{args} --violations 2"));
    let listed = text(&output.stdout).lines().filter(|line| line.contains(" ports: rank "));
    assert_eq!(listed.count(), 2);

    let output = hopbine(&format!("{args} --format json"));
    assert_eq!(output.status.code(), Some(1));
    let value: Value = serde_json::from_str(text(&output.stdout)).unwrap();
    assert_eq!(value["proved"], false);
    let row = &value["rows"][0];
    let violations = row["violations"].as_array().unwrap();
    assert_eq!(row["n_violations"], violations.len());
    assert!(violations.len() > 10 && violations.iter().any(|found| found["rank"] == 2));
}

#[test]
fn foreign_plans_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let args = plans(directory.path(), |_, plan| plan.replace("send to 3", "send to 17"));
    let output = hopbine(&args);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("17 is not another rank"));
    let args = plans(directory.path(), |_, plan| plan.replace("rank 3 of 4", "rank 9 of 10"));
    let output = hopbine(&args);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("the plans differ in the ranks they name"));
    let few = args.rsplit_once(' ').unwrap().0;
    let output = hopbine(few);
    assert!(text(&output.stderr).contains("3 plans for the 4 ranks"), "{}", text(&output.stderr));
}
