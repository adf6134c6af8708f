//! `hopbine search`.

use hopbine::torus::Schedule;

use super::{hopbine, json, refused, text, well};

/// On a small shape all of the space is searched, and what is found is proved, is read again, and is no worse than a row of
/// the registry.
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

/// A table says what is known, also of a search that had no time, of ranks on nodes and of a barrier.
#[test]
fn a_search_says_how_good_it_is() {
    for (args, said) in [
        ("alltoall --torus 4x4x3 --bytes 1MiB --budget 1s", "proved"),
        ("barrier --torus 2x2+2 --machine ideal-torus", "nothing in it is better"),
        ("reduce --torus 2x4 --root 4 --bytes 1KiB --ports 2 --machine hx2mesh", "Bound of any"),
    ] {
        let table = well(&format!("search {args}"));
        assert!(table.contains(said) && table.contains("not measured"), "{table}");
        assert!(table.lines().next().unwrap().ends_with("times the bound"), "{table}");
    }
    let csv = well("search bcast --torus 5 --machine ideal-torus --bytes 1MiB --format csv");
    assert!(csv.starts_with("what,algorithm,form,patterns,"), "{csv}");
}

#[test]
fn what_cannot_be_searched_is_refused() {
    refused(&[
        ("search allreduce --torus 4 --ports 3", "3 ports on shape 4: use 1 to 2"),
        ("search allreduce --torus 4 --ports 0", "use 1 to 2"),
        ("search bcast --torus 4 --root 4", "the shape 4 has ranks 0 to 3"),
        ("search allreduce --torus 4 --budget soon", "such as 90s or 10min"),
        ("search allreduce --torus 4 --machine tofu-e", "neither a machine"),
        ("search allreduce --torus 5x7x11", "shape 5x7x11 has no fold"),
    ]);
}
