//! Tests of `hopbine bench`, and of its pictures of measured times.

use std::path::Path;
use std::process::Command;

use hopbine_testing::processes::{OutputInTime, send_signal, wait_until, write_program};

use super::{command, copy_of_hopbine, json, refused, text, well};

/// The texts of a picture.
fn words(path: &Path) -> Vec<String> {
    let svg = std::fs::read_to_string(path).unwrap();
    let svg = roxmltree::Document::parse(&svg).unwrap();
    svg.descendants().filter_map(|node| node.text()).map(|text| text.trim().to_owned()).collect()
}

#[test]
fn sides_are_measured_in_turn_and_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let picture = directory.path().join("times.svg");
    let value = json(&format!(
        "bench allreduce,barrier --ranks 2 --bytes 8..512:x8 --rounds 3 --budget 1 --mpicc none --algorithms \
         direct,mixed --format json --plot {}",
        picture.display()
    ));
    let rows = value["rows"].as_array().unwrap();
    // Three sizes and the barrier, for each of three sides.
    assert_eq!(rows.len(), 4 * 3, "{value}");
    for row in rows {
        let number = |key: &str| row[key].as_f64().unwrap();
        let [least, median, largest] = ["least_us", "median_us", "largest_us"].map(number);
        assert!(0.0 < least && least <= median && median <= largest, "{row}");
        // The first side is the reference.
        assert!(number("ratio") > 0.0 && (row["side"] != "hopbine" || number("ratio") == 1.0));
        if row["collective"] == "barrier" {
            assert!(row["bandwidth_bytes_per_s"].is_null());
        }
    }
    let words = words(&picture);
    for name in ["allreduce, barrier on 2 ranks of one host", "hopbine direct", "time, us"] {
        assert!(words.iter().any(|word| word == name), "{name}: {words:?}");
    }
}

#[test]
fn the_csv_of_the_script_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let [table, picture] = ["times.csv", "times.svg"].map(|name| directory.path().join(name));
    let head = "ranks,collective,bytes,mpich_us,mpich_low,mpich_high,mpich+_us,mpich+_low,mpich+_high,best_mpi,best_us";
    let rows = "2,bcast,8,1.5,1,2,0.5,0.4,1,mpich,1.5\n2,bcast,64,3,3,3,1,1,1,mpich,3\n";
    std::fs::write(&table, format!("{head}\n{rows}")).unwrap();
    let (from, to) = (table.display(), picture.display());
    assert_eq!(well(&format!("bench --from {from} --plot {to} --show ratio")), "");
    let words = words(&picture);
    for name in ["mpich", "mpich+", "time of the best MPI / time"] {
        assert!(words.iter().any(|word| word == name), "{name}: {words:?}");
    }
    refused(&[
        (&format!("bench --from {from}"), "--plot <FILE>"),
        (&format!("bench bcast --from {from} --plot {to}"), "cannot be used with"),
        (&format!("bench --from {to} --plot {to}"), "there is no column ranks"),
    ]);
}

#[test]
fn a_size_need_not_be_a_multiple_of_eight() {
    let value = json(
        "bench bcast,allgather --ranks 2 --bytes 12 --rounds 1 --budget 1 --mpicc none --format json",
    );
    assert_eq!(value["rows"].as_array().unwrap().len(), 2, "{value}");
}

/// An MPI made of scripts: its programs print times of calls, shorter ones if a library is preloaded.
fn mpi(directory: &Path) -> [String; 2] {
    let times = "[ -n \"$LD_PRELOAD\" ] && us=2 || us=8\n\
                 for bytes in $(echo \"$2\" | tr , ' '); do echo \"$1 $bytes $us\"; done\n";
    mpi_of(directory, times)
}

/// An MPI made of scripts, whose programs do this.
fn mpi_of(directory: &Path, program: &str) -> [String; 2] {
    let program = format!("#!/bin/sh\n{program}");
    let compiler = format!(
        "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\ngrep -q MPI_Init \"$3\" || exit 1\n\
         cat >\"$2\" <<'END'\n{program}END\nchmod +x \"$2\"\n"
    );
    let launcher = "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'MPI of scripts 1.0'; exit; }\nshift 2\nexec \"$@\"\n";
    [("mpicc", &compiler[..]), ("mpiexec", launcher)].map(|(name, script)| {
        let path = directory.join(name);
        write_program(&path, script.as_bytes());
        path.display().to_string()
    })
}

#[test]
fn an_mpi_is_the_reference_without_and_with_hopbine_preloaded() {
    let directory = tempfile::tempdir().unwrap();
    let [mpicc, mpiexec] = mpi(directory.path());
    // The loader reports that the file is no library, and continues.
    let library = directory.path().join("libhopbine_preload.so");
    std::fs::write(&library, "").unwrap();
    let picture = directory.path().join("ratio.svg");
    let value = json(&format!(
        "bench bcast --ranks 2 --bytes 8..64:x8 --rounds 2 --budget 1 --mpicc {mpicc} --mpiexec {mpiexec} \
         --preload {} --format json --show ratio --plot {}",
        library.display(),
        picture.display()
    ));
    assert_eq!(value["reference"], "MPI");
    assert!(value["notes"].to_string().contains("MPI of scripts 1.0"), "{value}");
    let rows = value["rows"].as_array().unwrap();
    let of = |side: &str| {
        let all = rows.iter().filter(|row| row["side"] == side);
        all.map(|row| (row["median_us"].as_f64().unwrap(), row["ratio"].as_f64().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("MPI"), [(8.0, 1.0); 2]);
    assert_eq!(of("MPI, hopbine preloaded"), [(2.0, 4.0); 2]);
    assert_eq!(of("hopbine").len(), 2);
    assert!(words(&picture).iter().any(|word| word == "time of MPI / time"));
}

/// `hopbine-preload`, a script installed beside the command, prints the path of the library to preload.
#[test]
fn the_installed_library_is_preloaded() {
    let directory = tempfile::tempdir().unwrap();
    let [mpicc, mpiexec] = mpi(directory.path());
    let installed = directory.path().join("hopbine");
    copy_of_hopbine(&installed);
    let sides = || {
        let args = format!(
            "bench bcast --ranks 2 --bytes 8 --rounds 1 --budget 1 --mpicc {mpicc} --mpiexec {mpiexec} --format json"
        );
        let output = Command::new(&installed).args(args.split(' ')).output_in_time();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).matches("MPI, hopbine preloaded").count()
    };
    assert_eq!(sides(), 0);
    let library = directory.path().join("libhopbine_preload.so");
    let script = "#!/bin/sh\n[ \"$1\" = --path ] && echo \"${0%/*}/libhopbine_preload.so\"\n";
    std::fs::write(&library, "").unwrap();
    write_program(&directory.path().join("hopbine-preload"), script.as_bytes());
    assert!(sides() > 0);
}

/// The C interface of an installed hopbine.
#[test]
fn the_c_interface_is_a_side() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    for name in ["bin", "lib/architecture"] {
        std::fs::create_dir_all(place(name)).unwrap();
    }
    let installed = place("bin/hopbine");
    copy_of_hopbine(&installed);
    let bench = |more: &str| {
        let args =
            format!("bench allreduce --bytes 8 --rounds 1 --budget 1 --mpicc none --cc {more}");
        Command::new(&installed).args(args.split(' ')).output_in_time()
    };
    let output = bench("cc");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no libhopbine.so below"), "{}", text(&output.stderr));
    // A compiler that is a script: its programs print a time.
    std::fs::write(place("lib/architecture/libhopbine.so"), "").unwrap();
    let compiler = "#!/bin/sh\nfor word; do [ \"$last\" = -o ] && into=$word; last=$word; done\n\
                    case \"$*\" in *-DINTERFACE*include*/lib/architecture*-lhopbine*) ;; *) exit 1 ;; esac\n\
                    printf '#!/bin/sh\\necho allreduce 8 3\\n' >\"$into\"\nchmod +x \"$into\"\n";
    write_program(&place("cc"), compiler.as_bytes());
    let output = bench(&format!("{} --format json", place("cc").display()));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = value["rows"].as_array().unwrap();
    assert!(
        rows.iter().any(|row| row["side"] == "hopbine in C" && row["median_us"] == 3.0),
        "{value}"
    );
}

/// An end by a signal ends the MPI's program too, and removes the files of both.
#[test]
fn a_signal_ends_the_program_that_is_measured() {
    let directory = tempfile::tempdir().unwrap();
    let [tmp, started] = ["tmp", "started"].map(|name| directory.path().join(name));
    std::fs::create_dir(&tmp).unwrap();
    let program = format!("echo $$ >{0}.new; mv {0}.new {0}; exec sleep 600\n", started.display());
    let [mpicc, mpiexec] = mpi_of(directory.path(), &program);
    let args = format!(
        "bench bcast --ranks 2 --bytes 8 --rounds 1 --budget 1 --mpicc {mpicc} --mpiexec {mpiexec}"
    );
    let (mut bench, _limit) = command(&args).env("TMPDIR", &tmp).spawn_in_time();
    wait_until("the program", || started.exists());
    send_signal(&mut bench, libc::SIGTERM);
    assert_eq!(bench.wait().unwrap().code(), Some(128 + libc::SIGTERM));
    assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 0);
    let program = std::fs::read_to_string(&started).unwrap();
    let command = std::fs::read_to_string(format!("/proc/{}/cmdline", program.trim()));
    assert!(!command.is_ok_and(|command| command.starts_with("sleep")), "{program}");
}

/// The results of a bcast and of a reduce are verified, too: the last of two ranks, for which this MPI does nothing,
/// finds that.
#[test]
fn a_wrong_result_of_an_mpi_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let [_, mpiexec] = mpi(directory.path());
    let nothing: String = [
        "Iallreduce",
        "Ibcast",
        "Ireduce",
        "Iallgather",
        "Ialltoall",
        "Igather",
        "Iscatter",
        "Ibarrier",
        "Wait",
        "Gather",
        "Scatter",
    ]
    .into_iter()
    .chain([
        "Gatherv",
        "Scatterv",
        "Allgatherv",
        "Reduce_scatter_block",
        "Allgather",
        "Bcast",
        "Reduce",
    ])
    .chain(["Alltoall", "Alltoallv", "Barrier", "Init", "Finalize"])
    .map(|name| format!("#define MPI_{name}(...) 0\n"))
    .collect();
    let header = nothing
        + "#include <stdlib.h>\ntypedef int MPI_Request;\n\
           #define MPI_Comm_rank(comm, rank) (*(rank) = 1)\n#define MPI_Comm_size(comm, size) (*(size) = 2)\n\
           #define MPI_Allreduce(from, to, ...) (*(to) = *(from), 0)\n\
           #define MPI_Abort(comm, code) exit(code)\n#define MPI_Wtime() 0.0\n";
    std::fs::write(directory.path().join("mpi.h"), header).unwrap();
    for collective in ["bcast", "reduce"] {
        let include = directory.path().display();
        let mut bench = command(&format!(
            "bench {collective} --ranks 2 --bytes 8 --rounds 1 --budget 1 --mpiexec {mpiexec} --mpicc"
        ));
        let output = bench.arg(format!("cc -w -I{include}")).output_in_time();
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{collective}: {err}");
        assert!(err.contains(&format!("rank 1: {collective} of 8 bytes is wrong")), "{err}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let output = command("bench --mpicc no-such-mpicc").output_in_time();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no-such-mpicc"), "{}", text(&output.stderr));
    let args = "bench allreduce --mpicc none --algorithms no-such --rounds 1 --budget 1";
    let output = command(args).output_in_time();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no-such"), "{}", text(&output.stderr));
    refused(&[
        ("bench allgather,scan --mpicc none", "it must be one of allreduce"),
        ("bench bcast --bytes 1024TiB --mpicc no-such", "use smaller --bytes or fewer --ranks"),
        (
            "tune bcast --measure --torus 2 --bytes 1024TiB -o /dev/null",
            "use smaller --bytes or a smaller --torus",
        ),
        (
            "bench allreduce --mpicc none --bytes 8 --rounds 1 --budget 1 --plot none.svg",
            "--plot needs a range of sizes",
        ),
        // Before anything is measured, or an MPI is found missing.
        ("bench barrier --mpicc no-such --plot none.svg", "--plot needs a range of sizes"),
        (
            "bench allgather,barrier --ranks 3 --bytes 8..64 --mpicc no-such --plot none.svg",
            "--plot needs a range of sizes",
        ),
        ("run allreduce --torus 2 --bytes 8 --plot none.svg", "--plot needs a range of sizes"),
        (
            "run allreduce --torus 2 --bytes 8..64 --backend sim --plot none.svg",
            "simulated ranks have no times",
        ),
    ]);
}

#[test]
fn runs_are_drawn_a_curve_for_each_algorithm() {
    let directory = tempfile::tempdir().unwrap();
    let picture = directory.path().join("run.svg");
    let args = "run allreduce --torus 4 --bytes 8..512:x8 --iterations 3";
    well(&format!("{args} --algorithm bine --plot {}", picture.display()));
    let one = words(&picture);
    assert!(one.iter().any(|word| word == "bine") && one.iter().any(|word| word == "512 B"));
    assert!(one.concat().contains("say nothing about a network"), "{one:?}");
    well(&format!("{args} --algorithm all --plot {}", picture.display()));
    assert!(words(&picture).concat().contains("the 12 fastest of"));
}
