//! `hopbine search`.

use std::path::Path;
use std::process::Output;

use hopbine::torus::{Collective, Schedule};
use hopbine_testing::processes::OutputInTime;

use super::{command, hopbine, json, refused, text, well};

/// On a small shape the search covers the whole space. The schedule that it finds is proved, can be read again, and
/// is no worse than any row of the registry.
#[test]
fn what_is_found_is_a_schedule() {
    let search = "search allreduce --torus 6 --bytes 64KiB --machine ideal-torus --budget 1h";
    let value = json(&format!("{search} --format json"));
    let number = |name: &str| value[name].as_f64().unwrap();
    assert!(value["is_exhaustive"].as_bool().unwrap() && value["is_proved"].as_bool().unwrap());
    assert!(number("bound_us") <= number("predicted_us"));
    assert_eq!(number("space_bound_us"), number("predicted_us"));
    assert!(number("visited") >= number("predictions") && number("predictions") > 0.0);
    let rows = value["rows"].as_array().unwrap();
    let predicted = |row: usize| rows[row]["predicted_us"].as_f64().unwrap();
    assert_eq!(
        (rows[0]["what"].as_str(), rows[1]["what"].as_str()),
        (Some("found"), Some("registry"))
    );
    assert!(predicted(0) == number("predicted_us") && predicted(0) <= predicted(1), "{value}");

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("found.txt");
    let written = format!("{search} --format schedule -o {}", path.display());
    assert_eq!(well(&written), "");
    let schedule = std::fs::read_to_string(&path).unwrap();
    assert_eq!(schedule.parse::<Schedule>().unwrap().to_string(), schedule);
    assert_eq!(value["schedule"], schedule);
    for command in ["check", "traffic"] {
        let output = hopbine(&format!("{command} --schedule {}", path.display()));
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
    }
}

/// The table says what the search knows, also for a search without time, for several ranks per node and for a
/// barrier.
#[test]
fn a_search_says_how_good_it_is() {
    for (args, said) in [
        ("alltoall --torus 4x4x3 --bytes 1MiB --budget 1s", "proved"),
        ("barrier --torus 2x2+2 --machine ideal-torus", "it has no better schedule"),
        (
            "reduce --torus 2x4 --root 4 --bytes 1KiB --ports 2 --machine hx2mesh",
            "Lower bound for any",
        ),
    ] {
        let table = well(&format!("search {args}"));
        assert!(table.contains(said) && table.contains("not measured"), "{table}");
        assert!(table.lines().next().unwrap().ends_with("times the bound"), "{table}");
    }
    let csv = well("search bcast --torus 5 --machine ideal-torus --bytes 1MiB --format csv");
    assert!(csv.starts_with("what,algorithm,form,patterns,"), "{csv}");
}

fn found(search: &str, directory: &Path, name: &str) -> String {
    let path = directory.join(name).display().to_string();
    assert_eq!(well(&format!("search {search} --budget 2s --format schedule -o {path}")), "");
    path
}

/// Runs a schedule with real data, over every kind of endpoint.
#[test]
fn a_found_schedule_runs() {
    let directory = tempfile::tempdir().unwrap();
    let path = found("reduce --torus 3x4 --bytes 2KiB --root 3", directory.path(), "found.txt");
    let written: Schedule = std::fs::read_to_string(&path).unwrap().parse().unwrap();
    let run = format!(
        "run reduce --torus 3x4 --bytes 2KiB..4KiB --root 5 --iterations 2 --format json --schedule {path}"
    );
    for backend in ["emu", "shm", "sim", "sim-utofu"] {
        let value = json(&format!("{run} --backend {backend}"));
        assert_eq!(value["verified"], true, "{backend}");
        let row = &value["rows"][1];
        assert_eq!(row["ports"], written.ports, "{row}");
        assert_ne!(row["algorithm"], "auto", "{row}");
    }
    for backend in ["emu", "shm"] {
        let program = env!("CARGO_BIN_EXE_hopbine");
        let value = json(&format!("launch -n 12 -- {program} {run} --backend {backend}"));
        assert_eq!((&value["verified"], &value["backend"]), (&true.into(), &backend.into()));
    }
}

#[test]
fn every_collective_is_searched_for() {
    for collective in Collective::ALL {
        let bytes = if collective == Collective::Barrier { "" } else { "--bytes 1200" };
        let run = format!(
            "run {collective} --torus 3x4 {bytes} --type i32 --root 7 --iterations 1 --format json"
        );
        for (machine, backend) in [("", "sim"), (":ideal-torus", "shm")] {
            let run = format!("{run} --algorithm search{machine} --backend {backend}");
            assert_eq!(json(&run)["verified"], true, "{run}");
        }
    }
}

/// Ranks that are processes, each reading the file named after its rank.
fn on_ranks(run: &str, directory: &Path) -> Output {
    let run = format!(
        "{} {run} --schedule {}/$HOPBINE_RANK.txt",
        env!("CARGO_BIN_EXE_hopbine"),
        directory.display()
    );
    let mut job = command("launch -n 4 -- sh -c");
    job.arg(run).output_in_time()
}

#[test]
fn a_schedule_of_something_else_is_refused_on_every_rank() {
    let directory = tempfile::tempdir().unwrap();
    let run = "run allreduce --torus 4 --bytes 2KiB --iterations 1";
    let write = |rank: usize, text: &str| {
        std::fs::write(directory.path().join(format!("{rank}.txt")), text).unwrap();
    };
    let plan = |what: &str| well(&format!("plan {what} --rank 0 --format schedule"));
    let own = plan("allreduce --torus 4 --algorithm bine --ports 2");
    for (text, said) in [
        (plan("allreduce --torus 5 --ports 1"), "for a torus of 5, but the communicator's is 4"),
        (plan("bcast --torus 4 --ports 1"), "it performs bcast"),
        (own.replace("ports 2", "ports 7"), "7 ports on shape 4: use 1 to 2"),
        (own.replace("bine", "binary"), "line 6, `patterns binary`"),
    ] {
        (0..4).for_each(|rank| write(rank, &text));
        let output = on_ranks(run, directory.path());
        let errors = text_of(&output);
        assert_eq!(errors.matches(said).count(), 4, "{said}: {errors}");
    }
    (0..4).for_each(|rank| write(rank, &own));
    assert!(on_ranks(run, directory.path()).status.success());
    // A schedule that is as good, but not the same.
    write(2, &own.replace("bine", "doubling"));
    let errors = text_of(&on_ranks(run, directory.path()));
    assert_eq!(errors.matches("all ranks need the same").count(), 4, "{errors}");
    assert!(
        errors.contains("rank 0: the schedule in ") && errors.contains("is not that of rank 2"),
        "{errors}"
    );
    std::fs::remove_file(directory.path().join("1.txt")).unwrap();
    let errors = text_of(&on_ranks(run, directory.path()));
    assert!(errors.contains("1.txt: No such file") && errors.contains("rank 3: "), "{errors}");
}

/// Standard error of a job that fails.
fn text_of(output: &Output) -> String {
    assert!(!output.status.success(), "{}", text(&output.stdout));
    text(&output.stderr).to_owned()
}

/// A call that sends nothing takes no time, and has no bound.
#[test]
fn a_search_for_one_rank_has_no_gap() {
    let table = well("search allreduce --torus 1 --machine ideal-torus");
    assert!(table.starts_with("allreduce of 0 B on 1: 0 us\n"), "{table}");
}

#[test]
fn what_cannot_be_searched_is_refused() {
    refused(&[
        ("search allreduce --torus 4 --ports 3", "3 ports on shape 4: use 1 to 2"),
        ("search allreduce --torus 4 --ports 0", "use 1 to 2"),
        ("search bcast --torus 4 --root 4", "the shape 4 has ranks 0 to 3"),
        ("search allreduce --torus 4 --budget soon", "such as 90s, 10min or 1h 30min"),
        ("search allreduce --torus 4 --machine tofu-e", "neither a machine"),
        ("search allreduce --torus 5x7x11", "shape 5x7x11 has no fold"),
        (
            "run allreduce --torus 4 --bytes 8 --algorithm search:k",
            "`k` is not a machine; known are tofu-d,",
        ),
        (
            "run alltoall --torus 4 --counts zipf --bytes 1KiB --algorithm search",
            "a call in which all ranks know all sizes",
        ),
        ("run allreduce --torus 4 --bytes 8 --schedule /nonexistent", "/nonexistent"),
        ("run allreduce --torus 4 --bytes 8 --schedule f --algorithm bine", "cannot be used with"),
    ]);
}
