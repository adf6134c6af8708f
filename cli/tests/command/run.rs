//! `hopbine run`.

use hopbine::reduce::{Dtype, Op};
use hopbine::torus::Collective;
use hopbine_testing::processes::{OutputInTime, send_signal, wait_until};

use super::{command, hopbine, json, n_serving, text, well};

#[test]
fn every_collective_and_algorithm_is_verified() {
    for collective in Collective::ALL {
        let bytes = if collective == Collective::Barrier { "" } else { "--bytes 1200" };
        let value = json(&format!(
            "run {collective} --torus 3x4 {bytes} --type i32 --root 7 --algorithm all \
             --iterations 2 --format json"
        ));
        assert_eq!(value["verified"], true, "{collective}");
        let rows = value["rows"].as_array().unwrap();
        assert_eq!(rows.len(), n_serving(collective, "3x4"), "{collective}");
        for row in rows {
            assert!(row["iterations"] == 2 && row["median_s"].as_f64().unwrap() > 0.0, "{row}");
            assert!(row["p10_s"].as_f64() <= row["median_s"].as_f64());
            assert!(row["median_s"].as_f64() <= row["p90_s"].as_f64());
        }
    }
}

#[test]
fn every_type_and_operator_is_verified() {
    for dtype in Dtype::ALL {
        for op in Op::ALL.into_iter().filter(|op| op.defined_for(dtype)) {
            let csv = well(&format!(
                "run allreduce --torus 2x3 --bytes 480 --type {dtype} --op {op} --iterations 1 \
                 --format csv"
            ));
            assert!(csv.lines().nth(1).unwrap().ends_with(",true,[]"), "{dtype} {op}: {csv}");
        }
    }
}

/// A run that a batch system ends leaves the rows that it has measured.
#[test]
fn a_run_that_is_ended_leaves_its_rows() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("rows.csv");
    let args = format!("run allreduce --torus 2 --bytes 8..1MiB --format csv -o {}", out.display());
    well(&format!("{args} --iterations 2"));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    std::fs::remove_file(&out).unwrap();
    let (mut run, _limit) = command(&args).spawn_in_time();
    let part = directory.path().join("rows.csv.part");
    let rows = || std::fs::read_to_string(&part).unwrap_or_default();
    wait_until("two rows", || rows().lines().count() >= 3);
    send_signal(&mut run, libc::SIGTERM);
    assert!(!run.wait().unwrap().success() && !out.exists());
    let rows = rows();
    assert!(rows.starts_with("collective,torus") && rows.ends_with('\n'), "{rows}");
}

#[test]
fn ranges_give_a_row_per_size() {
    let value = json("run bcast --torus 5 --bytes 8..2KiB:x16 --iterations 1 --format json");
    let rows = value["rows"].as_array().unwrap();
    let bytes: Vec<u64> = rows.iter().map(|row| row["bytes"].as_u64().unwrap()).collect();
    assert_eq!(bytes, [8, 128, 2048]);
    // Blocks are not split: 5 ranks x 8 bytes.
    let value = json("run allgather --torus 5 --bytes 8..64 --iterations 1 --format json");
    let rows = value["rows"].as_array().unwrap();
    let bytes: Vec<u64> = rows.iter().map(|row| row["bytes"].as_u64().unwrap()).collect();
    assert_eq!(bytes, [40, 80]);
    assert!(value["notes"][0].as_str().unwrap().contains("rounded up"), "{value}");
}

#[test]
fn options_reach_the_library() {
    let args = "run allreduce --torus 2x4 --bytes 64KiB --iterations 1 --format json";
    let value = json(&format!(
        "{args} --algorithm bine --ports 3 --segment 4KiB --drive workers --map column-major \
         --seed 9"
    ));
    let row = &value["rows"][0];
    assert_eq!((row["ports"].as_u64(), row["steps"].as_u64()), (Some(3), Some(6)));
    assert!(value["notes"].to_string().contains("worker threads"), "{value}");
    let value = json(&format!("{args} --drive inline"));
    assert!(value["notes"].to_string().contains("the calling threads"), "{value}");
    let shape = "2x4".parse().unwrap();
    let choice = hopbine::Tuning::tofu_d().choose(Collective::Allreduce, &shape, 64 << 10, 4);
    assert_eq!(value["rows"][0]["algorithm"], &*choice.algorithm.name, "what `auto` chose");
    let output = command(args).env("HOPBINE_ALGORITHM", "allreduce=bucket").output_in_time();
    let out = text(&output.stdout);
    assert!(
        out.contains("\"algorithm\": \"bucket\"") && !out.contains(&*choice.algorithm.name),
        "{out}"
    );
}

/// The file of --schedule may be a pipe, which can be read once.
#[test]
fn a_schedule_is_read_from_a_pipe() {
    use std::io::Write;
    let schedule = well("plan allreduce --torus 2x2 --rank 0 --format schedule");
    let mut run = command(
        "run allreduce --torus 2x2 --bytes 64 --iterations 1 --schedule /dev/stdin --format json",
    );
    let run = run.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let (mut run, _limit) = run.spawn_in_time();
    run.stdin.take().unwrap().write_all(schedule.as_bytes()).unwrap();
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    assert!(text(&output.stdout).contains("\"verified\": true"));
}

#[test]
fn tables_say_where_the_times_are_from() {
    let table = well("run reduce --torus 4 --bytes 1KiB --type f32 --root 3 --iterations 3");
    assert!(table.starts_with("reduce on 4, f32 sum, root 3\n"), "{table}");
    assert!(table.contains("1 KiB") && table.contains("yes"), "{table}");
    assert!(table.contains("say nothing about a network"), "{table}");
}

#[test]
fn settings_that_threads_do_not_read_are_named() {
    let args = "run barrier --torus 2 --iterations 1";
    let said = |value: &str| {
        let output = command(args)
            .env("HOPBINE_EMU_JITTER_NS", value)
            .env("HOPBINE_PORTS", value)
            .output_in_time();
        text(&output.stdout).to_owned()
    };
    let remark = "HOPBINE_PORTS, HOPBINE_EMU_JITTER_NS: only ranks that are processes read this";
    let table = said("1");
    assert!(table.contains(remark), "{table}");
    assert!(!said("").contains("do not read"));
}

#[test]
fn one_rank_and_no_bytes() {
    let value = json("run allreduce --torus 1 --bytes 64 --iterations 1 --format json");
    assert_eq!(value["verified"], true);
    let value = json("run allreduce --torus 2x2 --bytes 0 --iterations 1 --format json");
    assert_eq!(value["verified"], true);
    assert!(value["rows"][0]["bandwidth_bytes_per_s"].is_null());
}

/// Only builds with debug assertions can corrupt a result.
#[cfg(debug_assertions)]
#[test]
fn a_wrong_result_is_shown_and_fails() {
    let spoilt =
        |args: &str, place: &str| command(args).env("HOPBINE_TEST_CORRUPT", place).output_in_time();
    for collective in Collective::ALL {
        if collective == Collective::Barrier {
            continue;
        }
        let args = format!("run {collective} --torus 2x3 --bytes 240 --type i32 --root 4");
        // The eighth element of each rank, or of the root, which has at least ten.
        let output = spoilt(&format!("{args} --iterations 1"), "4:28");
        assert_eq!(output.status.code(), Some(1), "{collective}");
        let table = text(&output.stdout);
        assert!(table.contains("WRONG on 1 rank"), "{table}");
        assert!(table.contains("rank 4, index 7: expected "), "{table}");
    }
    let args = "run allreduce --torus 2x3 --bytes 240 --iterations 1 --format json";
    let output = spoilt(args, "0:100");
    assert_eq!(output.status.code(), Some(1));
    let value: serde_json::Value = serde_json::from_str(text(&output.stdout)).unwrap();
    assert_eq!(value["verified"], false);
    // The corrupted rank and all ranks that differ from it: other ranks are compared with rank 0.
    let wrong = value["rows"][0]["wrong"].as_array().unwrap();
    assert_eq!((&wrong[0]["rank"], &wrong[0]["index"]), (&0.into(), &12.into()));
}

#[test]
fn a_failure_of_the_library_is_an_error() {
    let output = command("run allreduce --torus 2x2 --bytes 8")
        .env("HOPBINE_TIMEOUT", "never")
        .output_in_time();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("HOPBINE_TIMEOUT"), "{}", text(&output.stderr));
    let output = hopbine("run allreduce --torus 2x2 --bytes 8 --algorithm all --ports 5");
    assert!(text(&output.stderr).contains("use 1 to 4"), "{}", text(&output.stderr));
}

#[test]
fn blocks_of_different_sizes_are_verified() {
    for (collective, counts) in [
        ("alltoall", "zipf:2"),
        ("allgather", "uniform"),
        ("gather", "power"),
        ("scatter", "sparse:0.5"),
        ("reduce-scatter", "normal"),
    ] {
        let args = format!(
            "run {collective} --torus 2x3 --bytes 6KiB --counts {counts} --seed 3 --iterations 1 \
             --algorithm all --root 0 --format json"
        );
        let value = json(&args);
        assert_eq!(value["verified"], true, "{args}");
        assert!(!value["rows"].as_array().unwrap().is_empty(), "{args}");
    }
    for collective in ["gather", "scatter"] {
        let args = format!(
            "run {collective} --torus 2x3 --bytes 6KiB --counts zipf --known-to root --root 4 \
             --iterations 1 --format json --algorithm"
        );
        assert_eq!(json(&format!("{args} all"))["verified"], true, "{args}");
        let chosen = json(&format!("{args} auto"));
        assert_eq!(
            (&chosen["verified"], &chosen["rows"][0]["algorithm"]),
            (&true.into(), &"linear".into())
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("counts");
    std::fs::write(&file, "3 0 1000 7 0 1").unwrap();
    let listed = format!("run allgather --torus 2x3 --counts {} --format json", file.display());
    let value = json(&listed);
    assert_eq!((&value["verified"], &value["rows"][0]["bytes"]), (&true.into(), &8088.into()));
    let twice = text(&hopbine(&format!("{listed} --bytes 64")).stderr).to_owned();
    assert!(twice.contains("leave out --bytes"), "{twice}");
    let proved = json("check allgather --torus 2x3 --counts zipf:2 --format json");
    assert_eq!(proved["proved"], true);
    let refused = |args: &str| text(&hopbine(args).stderr).to_owned();
    let vector = refused("run allreduce --torus 3 --bytes 64 --counts uniform");
    assert!(vector.contains("no blocks"), "{vector}");
    let everybody = refused("run allgather --torus 3 --bytes 64 --counts zipf --known-to root");
    assert!(everybody.contains("gather or scatter"), "{everybody}");
    let unknown = refused("run alltoall --torus 3 --bytes 64 --counts gauss");
    assert!(unknown.contains("not a distribution"), "{unknown}");
}
