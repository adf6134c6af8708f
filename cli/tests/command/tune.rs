//! `hopbine tune` and `hopbine explain`.

use hopbine::Tuning;
use hopbine::torus::Collective;
use hopbine_testing::processes::OutputInTime;

use super::{command, hopbine, json, refused, text, well};

const TUNE: &str =
    "tune allreduce bcast alltoall --torus 4x4x3,6x4+2,5x7x11 --bytes 8..8MiB:x8 --ports 1,2,6";

#[test]
fn a_table_of_predictions_is_one_and_always_the_same() {
    let once = hopbine(TUNE);
    assert!(once.status.success(), "{}", text(&once.stderr));
    let table = text(&once.stdout);
    assert_eq!(text(&hopbine(TUNE).stdout), table);
    let said = text(&once.stderr);
    assert!(said.contains("Predicted time over that of table tofu-d"), "{said}");
    assert!(said.contains("Not tuned: 5x7x11: shape 5x7x11 has no fold"), "{said}");
    for collective in ["allreduce", "bcast", "alltoall"] {
        let is_its = |line: &&str| line.contains(collective) && line.contains(" cells: median ");
        assert_eq!(said.lines().filter(is_its).count(), 1, "{said}");
    }
    assert!(said.contains("Not tuned: alltoall on 6x4+2: the model is not accurate"), "{said}");
    assert_eq!(
        said.matches("within 3 % of the best algorithm: 100.0 % of the cells").count(),
        3,
        "{said}"
    );
    assert!(table.contains("by `hopbine tune`: machine tofu-d of the network model"), "{table}");
    let tuning: Tuning = table.parse().unwrap();
    let shape = "4x4x3".parse().unwrap();
    let short = tuning.choose(Collective::Allreduce, &shape, 8, 6);
    let long = tuning.choose(Collective::Allreduce, &shape, 8 << 20, 6);
    assert_eq!((short.ports, long.ports), (1, 6), "{table}");
    assert_ne!(short.algorithm.name, long.algorithm.name);
    // Collectives that were not tuned use the built-in table.
    let network = Tuning::built_in(hopbine::Wire::Network);
    let other =
        |tuning: &Tuning| tuning.choose(Collective::Scan, &shape, 1 << 22, 6).algorithm.name;
    assert_eq!(other(&tuning), other(network));

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tuned.toml");
    std::fs::write(&path, table).unwrap();
    let run = "run allreduce --torus 4x4x3 --bytes 8 --iterations 1 --ports 6 --format json";
    let out = command(run).env("HOPBINE_TUNING", &path).output_in_time();
    assert!(text(&out.stdout).contains(&format!("\"algorithm\": \"{}\"", short.algorithm.name)));
    let explain = format!(
        "explain allreduce --torus 4x4x3 --bytes 8MiB --format json --table {}",
        path.display()
    );
    let value = json(&explain);
    assert_eq!(value["chosen"], &*long.algorithm.name);
    assert!(value["row"].as_str().unwrap().starts_with("table tofu-d, line "), "{value}");
}

/// A schedule that a search finds beyond the registry's rows is in tables by its name, and runs.
#[test]
fn a_table_has_what_a_search_finds() {
    let tune = "tune reduce-scatter --search --torus 4x4x3 --bytes 2KiB --ports 6 --quiet";
    let table = well(tune);
    assert_eq!(well(tune), table);
    let tuning: Tuning = table.parse().unwrap();
    let shape = "4x4x3".parse().unwrap();
    let found = tuning.choose(Collective::ReduceScatter, &shape, 2048 / 48, 6);
    assert!(found.algorithm.name.contains('/'), "{table}");
    // For shapes that the found schedule does not serve, the table chooses another algorithm.
    let other = "7x5".parse().unwrap();
    let behind = tuning.choose(Collective::ReduceScatter, &other, 2048 / 35, 6);
    assert!(behind.algorithm.serves(&other).is_ok() && !behind.algorithm.name.contains('/'));

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("found.toml");
    std::fs::write(&path, &table).unwrap();
    let program = env!("CARGO_BIN_EXE_hopbine");
    let run = format!(
        "{program} run reduce-scatter --torus 4x4x3 --bytes 2KiB --iterations 1 --ports 6 --format json"
    );
    for run in [run.strip_prefix(program).unwrap(), &format!("launch -n 48 -- {run}")] {
        let out = command(run).env("HOPBINE_TUNING", &path).output_in_time();
        let said = text(&out.stdout);
        let wanted = format!("\"algorithm\": \"{}\"", found.algorithm.name);
        assert!(out.status.success() && said.contains(&wanted), "{said}\n{}", text(&out.stderr));
    }

    let gains = json(&tune.replace("--quiet", "--judge --format json"));
    let row = &gains["rows"][0];
    assert_eq!((row["cells"].as_u64(), row["torus"].as_str()), (Some(1), Some("4x4x3")));
    let [gain, row_us, found_us] =
        ["gain", "row_us", "found_us"].map(|key| row[key].as_f64().unwrap());
    assert!(gain > 1.03 && (row_us / found_us - gain).abs() < 1e-9, "{row}");
}

/// A table is judged by the algorithms that it chooses, not by the times from which it was made.
#[test]
fn a_table_is_judged_by_the_best_algorithm() {
    let of = |against: &str| {
        json(&format!(
            "tune allreduce bcast --torus 4x4x3 --bytes 8..8MiB:x8 --ports 1,6 --judge --format json --against {against}"
        ))
    };
    let network = of("network");
    let rows = network["rows"].as_array().unwrap();
    let collectives: Vec<_> = rows.iter().map(|row| row["collective"].as_str().unwrap()).collect();
    assert_eq!(collectives, ["allreduce", "bcast"]);
    for row in rows {
        assert_eq!((row["cells"].as_u64(), row["torus"].as_str()), (Some(14), Some("4x4x3")));
        let [mean, worst, near] = ["mean_over_best", "worst_over_best", "near_percent"]
            .map(|key| row[key].as_f64().unwrap());
        assert!(1.0 <= mean && mean < worst && worst > 1.03 && near < 100.0, "{row}");
        assert!(row["short_over_bound"].as_f64().unwrap() > 1.0, "{row}");
    }
    // A table that was made for these calls is near the best in all of them.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tuned.toml");
    let tune = "tune allreduce bcast --torus 4x4x3 --bytes 8..8MiB:x8 --ports 1,6 --quiet -o";
    well(&format!("{tune} {}", path.display()));
    let tuned = of(&path.display().to_string());
    assert_eq!((tuned["near_percent"].as_f64(), tuned["cells"].as_u64()), (Some(100.0), Some(28)));
}

/// On a small shape without a class the model chooses among the rows of the nearest classes.
#[test]
fn the_model_chooses_well_for_shapes_without_a_class() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("without.toml");
    let (_, table) = Tuning::BUILT_IN[2];
    let without: Vec<&str> = table.lines().filter(|line| !line.starts_with("model = ")).collect();
    std::fs::write(&path, without.join("\n")).unwrap();
    let judge =
        "tune --judge --torus 12,3x4,2x2x4,2x3x4 --bytes 512..8MiB:x128 --format json --against";
    let near = |against: &str| {
        let value = json(&format!("{judge} {against}"));
        let rows = value["rows"].as_array().unwrap();
        let mean = rows.iter().map(|row| row["mean_over_best"].as_f64().unwrap()).sum::<f64>();
        (value["near_percent"].as_f64().unwrap(), mean / rows.len() as f64)
    };
    let (with, without) = (near("tofu-d"), near(path.to_str().unwrap()));
    assert!(with.0 > 90.0 && with.1 < 1.02, "{with:?}, without {without:?}");
    assert!(without.0 < 80.0 && without.1 > 1.04, "{with:?}, without {without:?}");
    let explained = well("explain gather --torus 2x2x6 --bytes 1MiB --wire tofu-d");
    let heading = explained.lines().next().unwrap();
    assert!(heading.contains("fastest by the model of tofu-d, of class "), "{heading}");
}

/// The command starts ranks as processes of this host, and they measure the candidates in turn.
#[test]
fn tables_are_measured_on_ranks_of_this_host() {
    let directory = tempfile::tempdir().unwrap();
    let [table, log] = ["mine.toml", "mine.csv"].map(|name| directory.path().join(name));
    let tune = |what: &str| {
        format!(
            "tune --measure {what} --torus 2 --bytes 8..512:x64 --ports 1 -o {} --log {}",
            table.display(),
            log.display()
        )
    };
    let part = directory.path().join("mine.toml.part");
    let out = command(&tune("bcast barrier --budget 60s")).output_in_time();
    let said = text(&out.stderr);
    assert!(out.status.success(), "{said}");
    assert!(
        said.contains("bcast              2 calls, ")
            && said.contains("barrier            1 calls, "),
        "{said}"
    );
    assert!(!part.exists());
    let rows = std::fs::read_to_string(&log).unwrap();
    assert!(
        rows.starts_with(
            "collective,bytes,algorithm,ports,segment_bytes,is_chosen_before,rounds,median_us,"
        ),
        "{rows}"
    );
    for row in ["bcast,8,direct-tree,1,", "bcast,512,auto,", "barrier,0,auto,"] {
        assert!(rows.contains(row), "{row}: {rows}");
    }
    let written = std::fs::read_to_string(&table).unwrap();
    assert!(written.contains("Measured by `hopbine tune --measure`: hopbine "), "{written}");
    if !written.contains("# No algorithm was faster") {
        let tuning: Tuning = written.parse().unwrap();
        assert_eq!(tuning.table().wire(), hopbine::Wire::Memory);
    }
    // Shared memory needs no registration.
    assert!(!written.contains("stage_bytes"), "{written}");
    std::fs::write(&part, "{\"of\":\"3 ranks\",\"found\":[]}").unwrap();
    let out = command(&tune("bcast --budget 1s")).output_in_time();
    let said = text(&out.stderr);
    assert!(
        !out.status.success() && said.contains("it was measured with 3 ranks, not with hopbine"),
        "{said}"
    );
}

#[test]
fn limits_of_shared_memory_stay_in_a_measured_table() {
    let directory = tempfile::tempdir().unwrap();
    let [own, table] = ["own.toml", "mine.toml"].map(|name| directory.path().join(name));
    let limits = "shm = { flat = \"4KiB\", flat_read = \"128KiB\", staged = \"32KiB\", staged_pair = \"2KiB\" }";
    let head = "version = 1\nname = \"own\"\nwire = \"memory\"\notherwise = \"memory\"\n";
    std::fs::write(&own, format!("{head}{limits}\n")).unwrap();
    let tune = "tune --measure barrier --torus 2 --ports 1 --budget 60s -o";
    let mut command = command(&format!("{tune} {}", table.display()));
    let out = command.env("HOPBINE_TUNING", &own).output_in_time();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let written = std::fs::read_to_string(&table).unwrap();
    assert!(written.contains(&format!("\n{limits}\n")), "{written}");
    assert!(written.parse::<Tuning>().is_ok(), "{written}");
}

/// If a registration takes 4 ms, copying 64 KiB is faster on any machine.
#[test]
#[ignore = "takes long: cargo test -p hopbine-cli --test command -- --ignored"]
fn what_is_copied_is_measured_where_no_registrations_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("mine.toml");
    let tune = format!(
        "tune --measure barrier --torus 2 --ports 1 --backend emu --budget 60s -o {}",
        table.display()
    );
    let mut command = command(&tune);
    command.env("HOPBINE_REG_CACHE", "off").env("HOPBINE_SHM", "off");
    let out = command.env("HOPBINE_EMU_REG_NS", "4000000").output_in_time();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let written = std::fs::read_to_string(&table).unwrap();
    let tuning: Tuning = written.parse().unwrap();
    let bytes = tuning.table().stage_bytes().unwrap();
    assert!((64 << 10..=16 << 20).contains(&bytes) && bytes.is_power_of_two(), "{written}");
    assert!(written.contains("#       64 KiB: 0."), "{written}");
    // The model has no registrations.
    let predicted = well("tune allreduce --torus 4 --bytes 8..64KiB:x64 --ports 1 --quiet");
    assert!(!predicted.contains("stage_bytes"), "{predicted}");
}

#[test]
fn a_table_may_have_any_name() {
    let table = well("tune allreduce --torus 4 --bytes 8 --ports 1 --quiet --name a\"b\\");
    assert_eq!(table.parse::<Tuning>().unwrap().table().name(), "a\"b\\");
}

#[test]
fn what_is_chosen_is_explained() {
    let table = well("explain allreduce --torus 4x3 --bytes 1MiB --wire network");
    let heading = table.lines().next().unwrap();
    assert!(
        heading.starts_with("allreduce of 1 MiB on 4x3: mixed, 4 ports, messages up to 65536 B: table network, line "),
        "{heading}"
    );
    for said in [
        "class any, above 8192 B",
        "does not serve: on shape 4x3, doubling does not serve a dimension of size 3",
        "Predicted for tofu-d",
        "Lower bound for any schedule",
    ] {
        // The table breaks lines, so words are compared.
        let words: Vec<&str> = said.split(' ').collect();
        assert!(words.iter().all(|word| table.contains(word)), "{said}: {table}");
    }
    let value = json("explain allreduce --torus 4x3 --bytes 1MiB --wire network --format json");
    let rows = value["rows"].as_array().unwrap();
    assert_eq!(
        (rows[0]["algorithm"].as_str(), rows[0]["is_chosen"].as_bool()),
        (Some("mixed"), Some(true))
    );
    assert!((rows[0]["over_chosen"].as_f64().unwrap() - 1.0).abs() < 1e-12);
    let bound = value["bound_us"].as_f64().unwrap();
    for row in rows.iter().filter(|row| row["predicted_us"].is_number()) {
        let (us, over) =
            (row["predicted_us"].as_f64().unwrap(), row["over_bound"].as_f64().unwrap());
        assert!(over >= 1.0 && (us / bound - over).abs() < 1e-9, "{row}");
    }
    let times: Vec<f64> = rows[1..].iter().map_while(|row| row["predicted_us"].as_f64()).collect();
    assert!(times.len() > 3 && times.is_sorted(), "{value}");
    assert!(
        rows[1 + times.len()..]
            .iter()
            .all(|row| row["why"].as_str().unwrap().starts_with("does not serve"))
    );
    let value = json("explain bcast --torus 4 --bytes 64KiB --wire memory --format json");
    assert_eq!(
        (value["chosen"].as_str(), value["predicted"].as_bool()),
        (Some("direct-tree"), Some(false))
    );
}

#[test]
fn what_cannot_be_tuned_or_explained_is_refused() {
    refused(&[
        ("tune allreduce --torus 5x7x11", "nothing was tuned; 5x7x11: shape 5x7x11 has no fold"),
        ("tune --measure --search --torus 4 -o t.toml", "cannot be used with"),
        (
            "tune allreduce --torus 4x8x8,8x8x4",
            "the same rules for 4x8x8 and 8x8x4; leave one of them out",
        ),
        ("tune allreduce --torus 4,8,4", "the same rules for 4 and 4; leave"),
        ("tune allreduce --torus 4 --ports 0", "a call has at least 1 port"),
        ("tune allreduce --torus 4 --budget 10", "such as 90s, 10min or 1h 30min"),
        ("tune allreduce --torus 4 --machine tofu-e", "neither a machine"),
        ("tune allreduce --torus 4 --against /nonexistent", "/nonexistent"),
        ("tune --measure -o t.toml", "--measure needs --torus with one shape"),
        ("tune --measure --torus 1 -o t.toml", "1 has one rank, which sends no messages"),
        ("tune --measure --torus 2", "--measure needs a file for the table"),
        ("tune --measure --torus 2 --machine tofu-d -o t.toml", "cannot be used with"),
        (
            "tune --measure --torus 2 --ports 1 --against network --budget 1s -o t.toml",
            "--against: the table is for wire network",
        ),
        ("explain allreduce --torus 4 --ports 3", "on 4 it must be 1 to 2"),
        ("explain allreduce --torus 4 --table /nonexistent", "/nonexistent"),
        ("explain allreduce --torus 4 --table t --wire memory", "cannot be used with"),
    ]);
}
