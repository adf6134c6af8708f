//! Tests of `hopbine trace`, and of the files that it merges.

use std::collections::BTreeSet;
use std::path::Path;

use hopbine_testing::processes::OutputInTime;
use serde_json::Value;

use super::{command, text, well};

/// Runs a command with a timeline in `directory`, and returns its standard error.
fn traced(directory: &Path, variables: &[(&str, &str)], args: &str) -> String {
    let mut command = command(args);
    command.env("HOPBINE_TRACE", directory.join("trace.json"));
    command.envs(variables.iter().copied());
    let output = command.output_in_time();
    assert!(output.status.success(), "{args}: {}", text(&output.stderr));
    text(&output.stderr).to_owned()
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

fn events<'a>(json: &'a Value, key: &str, value: &str) -> Vec<&'a Value> {
    let all = json["traceEvents"].as_array().unwrap();
    all.iter().filter(|event| event[key] == value).collect()
}

const CALL: &str = "allreduce --torus 4 --bytes 4KiB --algorithm bine --ports 1 --iterations 3";

/// Bine's allreduce of a short vector: a rank sends one message in each of the log2(4) = 2 steps of its
/// reduce-scatter, and in each of the 2 steps of its allgather.
#[test]
fn ranks_write_what_they_do_whatever_carries_their_messages() {
    for backend in ["sim", "emu", "shm"] {
        let directory = tempfile::tempdir().unwrap();
        let said = traced(directory.path(), &[], &format!("run {CALL} --backend {backend}"));
        assert_eq!(said, "", "{backend}");
        for rank in 0..4 {
            let json = read(&directory.path().join(format!("trace.{rank}.json")));
            let about = &json["otherData"];
            assert_eq!((about["rank"].as_u64(), about["dropped"].as_u64()), (Some(rank), Some(0)));
            let clock = if backend == "sim" { "virtual" } else { "monotonic" };
            assert_eq!(about["clock"], clock);
            let calls = events(&json, "name", "allreduce");
            assert!(calls.len() >= 3, "{backend}: {calls:?}");
            for call in calls {
                assert!(call["args"]["by"].as_str().unwrap().starts_with("bine, 1 port"), "{call}");
                assert_eq!(call["args"]["bytes"], 4096);
                let op = call["args"]["op"].as_str().unwrap();
                let of_call = |cat| {
                    let all = events(&json, "cat", cat).into_iter();
                    all.filter(|event| event["args"]["op"] == op).collect::<Vec<_>>()
                };
                let (sends, recvs) = (of_call("send"), of_call("recv"));
                assert_eq!((sends.len(), recvs.len()), (4, 4), "{backend} {op}");
                assert_eq!(of_call("run").len(), 1);
                let steps: BTreeSet<u64> =
                    sends.iter().map(|send| send["args"]["step"].as_u64().unwrap()).collect();
                assert_eq!(steps.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
                assert!(of_call("fold").len() >= 2);
                let us = |event: &Value, key| event[key].as_f64().unwrap();
                let end = us(call, "ts") + us(call, "dur");
                for event in sends.into_iter().chain(recvs) {
                    assert!(us(event, "ts") >= us(call, "ts") - 0.001, "{event} {call}");
                    assert!(us(event, "ts") + us(event, "dur") <= end + 0.001, "{event} {call}");
                }
            }
        }
    }
}

#[test]
fn simulated_and_predicted_lie_beside_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    traced(directory.path(), &[], &format!("run {CALL} --backend sim"));
    let predicted = at("predicted.json");
    well(&format!(
        "simulate allreduce --torus 4 --bytes 4KiB --algorithm bine --ports 1 --show timeline --trace \
         {predicted}"
    ));
    assert_eq!(events(&read(Path::new(&predicted)), "cat", "call").len(), 4);
    let files = [0, 1, 2, 3].map(|rank| at(&format!("trace.{rank}.json"))).join(" ");
    let (merged, picture) = (at("merged.json"), at("both.svg"));
    let args = format!(
        "trace {files} {predicted} --call allreduce --last 1 --svg {picture} --output {merged}"
    );
    let output = command(&args).output_in_time();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let note = "its last allreduce of 4096 B begins with the first run's";
    assert!(text(&output.stderr).contains(note), "{}", text(&output.stderr));

    let json = read(Path::new(&merged));
    let processes = events(&json, "name", "process_name");
    let names: Vec<_> =
        processes.iter().map(|process| process["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 8);
    assert!(names.contains(&"rank 3, simulated") && names.contains(&"rank 3, predicted"));
    assert!(!events(&json, "cat", "wait").is_empty());
    // Every message that arrives was sent.
    let whole: Value = serde_json::from_str(&well(&format!("trace {files}"))).unwrap();
    let n_arrows = events(&whole, "ph", "f").len();
    assert_eq!(n_arrows, events(&whole, "cat", "recv").len());
    assert!(n_arrows >= 3 * 16, "{n_arrows}");
    // If events of one thread overlapped, viewers would show at most one of them.
    let mut threads: std::collections::BTreeMap<(u64, u64), Vec<[f64; 2]>> = Default::default();
    for event in events(&json, "ph", "X") {
        let number = |key| event[key].as_u64().unwrap();
        let us = |key| event[key].as_f64().unwrap();
        let times = threads.entry((number("pid"), number("tid"))).or_default();
        times.push([us("ts"), us("ts") + us("dur")]);
    }
    for (thread, mut times) in threads {
        times.sort_by(|a, b| a[0].total_cmp(&b[0]));
        assert!(times.windows(2).all(|pair| pair[0][1] <= pair[1][0] + 0.001), "{thread:?}");
    }
    let svg = std::fs::read_to_string(&picture).unwrap();
    let svg = roxmltree::Document::parse(&svg).unwrap();
    let words: Vec<&str> =
        svg.descendants().filter_map(|node| node.text()).map(str::trim).collect();
    assert!(words.contains(&"allreduce of 4 KiB: simulated above predicted"), "{words:?}");
    assert!(words.contains(&"rank 3, port 0") && words.contains(&"predicted"), "{words:?}");
}

/// The documented glob also finds what an earlier run of more ranks has left.
#[test]
fn files_of_another_run_are_told() {
    let directory = tempfile::tempdir().unwrap();
    for n in [3, 2] {
        let run = format!("run allreduce --torus {n} --bytes 8 --backend shm --iterations 1");
        traced(
            directory.path(),
            &[],
            &format!("launch -n {n} {} {run}", env!("CARGO_BIN_EXE_hopbine")),
        );
    }
    let files = [0, 1, 2].map(|rank| format!("trace.{rank}.json"));
    let files = files.map(|name| directory.path().join(name).display().to_string()).join(" ");
    let output = command(&format!("trace {files}")).output_in_time();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("run 2 (measured, rank 2): "),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn what_is_dropped_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let said = traced(
        directory.path(),
        &[("HOPBINE_TRACE_RECORDS", "8")],
        &format!("run {CALL} --backend sim"),
    );
    assert!(said.contains("HOPBINE_TRACE: the timeline of rank 0 lacks its first "), "{said}");
    let path = directory.path().join("trace.0.json");
    let n_dropped = read(&path)["otherData"]["dropped"].as_u64().unwrap();
    assert!(n_dropped > 8, "{n_dropped}");
    let output = command(&format!("trace {}", path.display())).output_in_time();
    let note = format!("the first {n_dropped} records were overwritten");
    assert!(text(&output.stderr).contains(&note), "{}", text(&output.stderr));
}

#[test]
fn what_is_no_timeline_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    traced(directory.path(), &[], &format!("run {CALL} --backend sim"));
    let (one, merged) = (at("trace.0.json"), at("merged.json"));
    well(&format!("trace {one} --output {merged}"));
    std::fs::write(at("other.json"), "[]").unwrap();
    let calls = [
        (format!("trace {merged}"), "cannot be merged again"),
        (format!("trace {}", at("other.json")), "not a timeline of hopbine"),
        (format!("trace {}", at("none.json")), "none.json"),
        (format!("trace {one} --call bcast"), "the timelines have no call of bcast; they have "),
        (format!("trace {one} --ranks 3 --svg {}", at("none.svg")), "1 to 96"),
        (
            format!("simulate allreduce --torus 4 --bytes 8 --trace {}", at("p.json")),
            "--trace needs --show timeline",
        ),
    ];
    for (args, why) in &calls {
        let output = command(args).output_in_time();
        assert!(!output.status.success(), "{args}");
        assert!(text(&output.stderr).contains(why), "{args}: {}", text(&output.stderr));
    }
}
