//! `hopbine list`.

use hopbine::torus::Shape;
use hopbine::torus::{Collective, registry};

use super::{json, refused, well};

#[test]
fn everything_is_listed() {
    let rows = json("list --format json")["rows"].as_array().unwrap().clone();
    let all = registry::all();
    assert_eq!(rows.len(), all.len());
    for (row, algorithm) in rows.iter().zip(&all) {
        assert_eq!(row["collective"], algorithm.collective.name());
        assert_eq!(row["algorithm"], *algorithm.name);
        assert_eq!(row["form"], algorithm.form());
        assert_eq!(row["summary"], algorithm.summary());
        assert_eq!(row["source"], algorithm.source());
        assert_eq!(row["baseline_of"].as_str(), algorithm.baseline_of());
    }
    let table = well("list");
    assert!(all.iter().all(|algorithm| table.contains(&algorithm.summary())), "{table}");
}

#[test]
fn a_shape_says_which_and_why_not() {
    let rows = json("list allreduce --torus 3x5 --format json")["rows"].clone();
    let shape: Shape = "3x5".parse().unwrap();
    for (row, algorithm) in
        rows.as_array().unwrap().iter().zip(registry::algorithms(Collective::Allreduce))
    {
        match algorithm.serves(&shape) {
            Ok(()) => assert!(row["serves"] == true && row["why_not"].is_null(), "{row}"),
            Err(error) => {
                assert_eq!(row["serves"], false);
                assert_eq!(row["why_not"], error.to_string());
            }
        }
    }
    let table = well("list allreduce --torus 3x5");
    assert!(table.contains("needs an even size"), "{table}");
}

/// Two names may mean the same schedule on a shape: the list refers to the first of them.
#[test]
fn a_shape_says_what_is_the_same() {
    let same = |torus: &str| {
        let rows = json(&format!("list alltoall --torus {torus} --format json"))["rows"].clone();
        let rows = rows.as_array().unwrap().iter();
        let same = rows.filter(|row| !row["same_as"].is_null());
        let said = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        same.map(|row| (said(&row["algorithm"]), said(&row["same_as"]))).collect::<Vec<_>>()
    };
    let is_said =
        |torus, row: &str, other: &str| same(torus).contains(&(row.to_owned(), other.to_owned()));
    assert!(is_said("8x8", "bine", "mixed"));
    assert!(is_said("5x7", "circulant", "mixed") && !is_said("8x8", "circulant", "mixed"));
    let table = well("list alltoall --torus 8x8");
    assert!(table.contains("serves it, the same as mixed") && table.contains("a baseline of Bine"));
}

#[test]
fn csv_has_a_header_and_a_line_per_algorithm() {
    let csv = well("list gather --format csv");
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("collective,algorithm,form,summary,source,baseline_of"));
    assert_eq!(lines.count(), registry::algorithms(Collective::Gather).len());
}

#[test]
fn a_shape_that_fits_in_no_memory_is_refused() {
    refused(&[("list allreduce --torus 4294967295", "use a smaller torus")]);
}

#[test]
fn tables_have_no_colours_when_nobody_watches() {
    assert!(!well("list").contains('\u{1b}'));
}
