//! What every pattern promises, for many sizes.

use super::*;

const SIZES: [u32; 18] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 23, 24, 31, 32, 48, 64, 69];

fn all_forms() -> Vec<Pattern> {
    let kinds = [
        Kind::Bine,
        Kind::Ring,
        Kind::Doubling,
        Kind::Circulant,
        Kind::Direct,
        Kind::Multiplying { max_radix: 2 },
        Kind::Multiplying { max_radix: 4 },
    ];
    let mut forms = Vec::new();
    for size in SIZES {
        for pattern in kinds.iter().filter_map(|&kind| Pattern::new(kind, size).ok()) {
            for mirrored in [false, true] {
                for far_first in [false, true] {
                    forms.push(pattern.clone().mirrored(mirrored).far_first(far_first));
                }
            }
        }
    }
    forms
}

#[test]
fn sources_invert_targets() {
    for pattern in all_forms() {
        for t in 0..pattern.n_steps() {
            for a in 0..pattern.size() {
                for (index, &b) in pattern.targets(t, a).iter().enumerate() {
                    assert_ne!(a, b, "{pattern:?}");
                    assert_eq!(pattern.sources(t, b)[index], a, "{pattern:?} step {t}");
                }
            }
        }
    }
}

#[test]
fn renumbering_maps_the_pattern_onto_itself() {
    for pattern in all_forms() {
        for x in 0..pattern.size() {
            assert_eq!(pattern.normalise(x, x), 0);
            for a in 0..pattern.size() {
                let image = pattern.normalise(a, x);
                assert_eq!(pattern.denormalise(image, x), a, "{pattern:?}");
                assert_eq!(pattern.solve(a, image), x, "{pattern:?}");
                for t in 0..pattern.n_steps() {
                    let images: Peers =
                        pattern.targets(t, a).iter().map(|&b| pattern.normalise(b, x)).collect();
                    assert_eq!(images, pattern.targets(t, image), "{pattern:?} x={x} a={a}");
                }
            }
        }
    }
}

/// The definition in algorithms.md section 2, taken literally, for every x.
fn toward_by_definition(pattern: &Pattern, x: u32) -> Vec<Option<(u32, u32)>> {
    let mut table = vec![None; pattern.size() as usize];
    let mut reached = vec![x];
    for t in (0..pattern.n_steps()).rev() {
        let mut joined = Vec::new();
        for a in (0..pattern.size()).filter(|a| !reached.contains(a)) {
            if let Some(&peer) = pattern.targets(t, a).iter().find(|b| reached.contains(b)) {
                table[a as usize] = Some((t, peer));
                joined.push(a);
            }
        }
        reached.extend(joined);
    }
    assert_eq!(reached.len(), pattern.size() as usize, "{pattern:?} does not reach {x}");
    table
}

#[test]
fn toward_table_follows_its_definition() {
    for pattern in all_forms() {
        let toward = Toward::new(pattern.clone());
        for x in 0..pattern.size() {
            let expected = toward_by_definition(&pattern, x);
            for a in 0..pattern.size() {
                let hop = toward.hop(pattern.normalise(a, x));
                let found = hop.map(|hop| (hop.step, pattern.denormalise(hop.next, x)));
                assert_eq!(found, expected[a as usize], "{pattern:?} {a} -> {x}");
                let mut at = a;
                let mut before = None;
                for (step, target) in toward.path(a, x) {
                    assert!(before < Some(step), "{pattern:?}: steps ascend along a path");
                    before = Some(step);
                    at = pattern.targets(step, at)[target as usize];
                }
                assert_eq!(at, x);
            }
        }
    }
}

/// What stands where, moved step by step, against the intervals of depth-first numbers.
#[test]
fn held_intervals_are_what_has_arrived() {
    for pattern in all_forms() {
        let toward = Toward::new(pattern.clone());
        let mut now: Vec<u32> = (0..pattern.size()).collect();
        for done in 0..=pattern.n_steps() {
            for b in 0..pattern.size() {
                let mut there: Vec<u32> = (0..pattern.size())
                    .filter(|&y| now[y as usize] == b)
                    .map(|y| toward.number(y))
                    .collect();
                there.sort_unstable();
                assert!(toward.held(b, done).eq(there), "{pattern:?}: {b} after {done} steps");
            }
            if done < pattern.n_steps() {
                let hopping = toward.hopping(done);
                for place in now.iter_mut().filter(|place| hopping.contains(place)) {
                    *place = toward.hop(*place).unwrap().next;
                }
            }
        }
    }
}

#[test]
fn steps_are_logarithmic_where_promised() {
    for size in 2..200u32 {
        let bound = size.next_power_of_two().trailing_zeros();
        assert_eq!(Pattern::new(Kind::Circulant, size).unwrap().n_steps(), bound, "{size}");
        if size % 2 == 0 {
            assert_eq!(Pattern::new(Kind::Bine, size).unwrap().n_steps(), bound);
        }
    }
}

#[test]
fn offsets_of_the_papers() {
    let offsets = |kind, size: u32| -> Vec<i64> {
        let pattern = Pattern::new(kind, size).unwrap();
        (0..pattern.n_steps())
            .map(|t| {
                let up = i64::from(pattern.targets(t, 0)[0]);
                if 2 * up <= i64::from(size) { up } else { up - i64::from(size) }
            })
            .collect()
    };
    assert_eq!(offsets(Kind::Circulant, 7), [1, -2, 3]);
    assert_eq!(offsets(Kind::Circulant, 23), [1, -2, 4, -8, 7]);
    assert_eq!(offsets(Kind::Circulant, 69), [1, -2, 4, -8, 16, -32, 5]);
    assert_eq!(offsets(Kind::Bine, 64), [1, -1, 3, -5, 11, -21]);
}

#[test]
fn sizes_that_are_not_served_say_what_is() {
    for (kind, size, needs) in [
        (Kind::Bine, 5, "an even size"),
        (Kind::Doubling, 6, "a power of two"),
        (Kind::Direct, 65, "at most 64"),
        (Kind::Multiplying { max_radix: 4 }, 23, "prime factors of at most 16"),
        (Kind::Ring, 20_000, "at most 4096"),
    ] {
        let message = Pattern::new(kind, size).unwrap_err().to_string();
        assert!(message.contains(needs), "{message}");
    }
}

#[test]
fn names_round_trip() {
    for text in ["bine", "ring", "doubling", "circulant", "direct", "multiplying:3"] {
        assert_eq!(text.parse::<Kind>().unwrap().to_string(), text);
    }
    for text in ["", "swing", "multiplying", "multiplying:1"] {
        assert!(text.parse::<Kind>().is_err(), "{text}");
    }
}
