//! Tests of tables for terminals of 80 and of 160 columns, and of rows that are printed one by one.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use super::{command, text};
use hopbine_testing::processes::OutputInTime;

/// Standard output for this width.
fn on_page(columns: usize, args: &str) -> String {
    let output = command(args).env("COLUMNS", columns.to_string()).output_in_time();
    assert!(output.status.success(), "{args}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// The tables as they were reviewed. After an intended change: `HOPBINE_TEST_BLESS=1 cargo test --test cli tables`.
#[test]
fn tables_look_as_they_did() {
    for (name, args) in [
        ("list", "list barrier --torus 3x5"),
        ("check", "check allreduce --torus 4x6 --algorithm mixed --ports all"),
        (
            "check-nodes",
            "check alltoall --torus 3 --per-node 4 --ports 1 --algorithm multi-leader --leaders 2",
        ),
        ("check-rooted", "check bcast --torus 5 --algorithm mixed --root all"),
        ("traffic", "traffic alltoall --torus 4x4+4 --algorithm multi-leader:2-batched:4"),
        ("traffic-groups", "traffic alltoall --torus 8 --groups 2 --algorithm mixed"),
    ] {
        for columns in [80, 160] {
            let shown = on_page(columns, args);
            let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/command/golden")
                .join(format!("{name}-{columns}.txt"));
            if std::env::var_os("HOPBINE_TEST_BLESS").is_some() {
                std::fs::write(&golden, &shown).unwrap();
            }
            let before = std::fs::read_to_string(&golden).unwrap();
            assert_eq!(shown, before, "{args} on {columns} characters, {}", golden.display());
        }
    }
}

/// Tables that change between runs, so that no golden file can hold them: their width, and that numbers are not
/// cut.
#[test]
fn every_table_fits_its_page() {
    for args in [
        "list",
        "list --torus 5x7",
        "check allreduce --torus 4x4",
        "check scatter --torus 2x3x2 --root all",
        "traffic alltoall --torus 4x4+4",
        "traffic allreduce --torus 4x6x4 --tofu",
        "run allreduce --torus 2x2 --bytes 8..1MiB:x1024 --iterations 1 --algorithm all",
        "run barrier --torus 3 --iterations 3",
        "run alltoall --torus 2x2 --bytes 64KiB --iterations 2 --algorithm mixed",
    ] {
        for columns in [80, 100, 160] {
            let shown = on_page(columns, args);
            for line in shown.lines() {
                assert!(line.chars().count() <= columns, "{args} on {columns}: {line}\n{shown}");
            }
            if !args.starts_with("run") {
                continue;
            }
            // A time is a number and its unit, next to each other, in every row.
            let rows = shown.lines().skip(3).take_while(|line| line.ends_with("yes"));
            let mut n_rows = 0;
            for row in rows {
                let has_time = ["us", "ms", "s"].iter().any(|unit| {
                    let mut words = row.split_whitespace();
                    let is_number = |word: &str| word.parse::<f64>().is_ok();
                    words
                        .by_ref()
                        .zip(row.split_whitespace().skip(1))
                        .any(|(value, after)| is_number(value) && after == *unit)
                });
                assert!(has_time, "{args} on {columns}: {row}");
                n_rows += 1;
            }
            assert!(n_rows > 0, "{shown}");
        }
    }
}

/// The table names the columns that it leaves out; CSV and JSON have all columns.
#[test]
fn what_is_left_out_is_named() {
    let args = "check allreduce --torus 4x4 --algorithm mixed";
    let narrow = on_page(60, args);
    assert!(narrow.contains("Columns left out to fit the width: ranks, runs"), "{narrow}");
    assert!(!on_page(300, args).contains("Columns left out"), "all fits");
    let csv = on_page(60, &format!("{args} --format csv"));
    assert!(csv.starts_with("algorithm,ports,ranks,steps,"), "{csv}");
}

/// A row is printed before the next one is measured, so that an interrupted sweep leaves its rows.
#[test]
fn rows_come_one_by_one() {
    for (format, first_row) in
        [("table", "     8 B"), ("csv", "allreduce,2,,8,"), ("json", "    {")]
    {
        let args = format!("run allreduce --torus 2 --bytes 8..1GiB --format {format}");
        let (mut child, _limit) =
            command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn_in_time();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let found = lines.by_ref().map(Result::unwrap).any(|line| line.starts_with(first_row));
        assert!(found, "{format}");
        let has_ended = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!has_ended, "{format}: the first row came with the last");
    }
}

/// Every command that prints something can write it to a file; it follows a link, and does not replace a device.
#[test]
fn every_command_writes_to_files() {
    let directory = tempfile::tempdir().unwrap();
    for args in [
        "list barrier",
        "plan barrier --torus 2 --rank 0",
        "check barrier --torus 2",
        "traffic bcast --torus 2",
        "run barrier --torus 2 --iterations 1",
        "info",
    ] {
        let output =
            command(&format!("{args} -o out.txt")).current_dir(directory.path()).output_in_time();
        assert!(output.status.success(), "{args}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{args}");
        let written = std::fs::read_to_string(directory.path().join("out.txt")).unwrap();
        assert!(written.lines().count() >= 2, "{args}: {written}");
        assert!(command(&format!("{args} -o /dev/null")).output_in_time().status.success());
        let output = command(&format!("{args} -o nowhere/out.txt")).output_in_time();
        assert_eq!(output.status.code(), Some(1), "{args}");
        assert!(text(&output.stderr).contains("nowhere is not a directory"), "{args}");
    }
    use std::os::unix::fs::FileTypeExt;
    assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}
