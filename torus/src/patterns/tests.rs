//! The guarantees of every pattern, for many sizes.

mod papers;

use super::*;

const SIZES: [u32; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 23, 24, 27, 31, 32, 48, 64, 69];

const NAMES: [&str; 21] = [
    "bine",
    "ring",
    "doubling",
    "circulant",
    "balanced",
    "direct",
    "multiplying:2",
    "multiplying:4",
    "multiplying:3,4",
    "multiplying:4,4,2",
    "multiplying:2,8,4",
    "knomial:2",
    "knomial:3",
    "knomial:4",
    "knomial:64",
    "bruck:2",
    "bruck:3",
    "bruck:5",
    "kring:2",
    "kring:3",
    "kring:8",
];

fn pattern(name: &str, size: u32) -> Pattern {
    Pattern::new(name.parse().unwrap(), size).unwrap()
}

fn all_forms() -> Vec<(&'static str, Pattern)> {
    let mut forms = Vec::new();
    for (size, name) in SIZES.into_iter().flat_map(|size| NAMES.map(|name| (size, name))) {
        let Ok(pattern) = Pattern::new(name.parse().unwrap(), size) else { continue };
        for mirrored in [false, true] {
            for far_first in [false, true] {
                forms.push((name, pattern.clone().mirrored(mirrored).far_first(far_first)));
            }
        }
    }
    for name in NAMES {
        assert!(forms.iter().any(|form| form.0 == name), "{name} serves none of the sizes");
    }
    forms
}

#[test]
fn sources_invert_targets() {
    for (name, pattern) in all_forms() {
        for t in 0..pattern.n_steps() {
            for a in 0..pattern.size() {
                for (index, &b) in pattern.targets(t, a).iter().enumerate() {
                    assert_ne!(a, b, "{name} {pattern:?}");
                    assert_eq!(pattern.sources(t, b)[index], a, "{name} {pattern:?} step {t}");
                }
            }
        }
    }
}

#[test]
fn renumbering_maps_the_pattern_onto_itself() {
    for (name, pattern) in all_forms() {
        for x in 0..pattern.size() {
            assert_eq!(pattern.normalise(x, x), 0);
            for a in 0..pattern.size() {
                let image = pattern.normalise(a, x);
                assert_eq!(pattern.denormalise(image, x), a, "{name} {pattern:?}");
                assert_eq!(pattern.solve(a, image), x, "{name} {pattern:?}");
                for t in 0..pattern.n_steps() {
                    let images: Peers =
                        pattern.targets(t, a).iter().map(|&b| pattern.normalise(b, x)).collect();
                    assert_eq!(images, pattern.targets(t, image), "{name} x={x} a={a}");
                }
            }
        }
    }
}

/// Messages on the busiest directed link of a ring in step `t` of some forms together; the shorter way, upwards if
/// both are equally long.
fn busiest_link(forms: &[&Pattern], t: u32) -> u32 {
    let size = forms[0].size();
    let mut loads = vec![[0; 2]; size as usize];
    for (form, a) in forms.iter().flat_map(|form| (0..size).map(move |a| (form, a))) {
        for b in form.targets(t, a) {
            let up = (b + size - a) % size;
            let is_down = 2 * up > size;
            let (first, hops) = if is_down { (b, size - up) } else { (a, up) };
            (first..first + hops).for_each(|at| loads[(at % size) as usize][is_down as usize] += 1);
        }
    }
    loads.into_iter().flatten().max().unwrap()
}

/// Opposed doubling (Swing, section 5.1) loads the links that the plain form leaves idle, except in the last step,
/// in which the peers are half a ring away. The mirror image loads most links twice.
#[test]
fn opposed_doubling_leaves_in_the_opposite_direction() {
    for size in [8, 16, 32, 64] {
        let (plain, opposed) = (pattern("doubling", size), pattern("doubling", size).opposed());
        for t in 0..plain.n_steps() {
            for a in 0..size {
                let peer = (2 * a + size - (a ^ (1 << t))) % size;
                assert_eq!(opposed.targets(t, a)[..], [peer], "{a} at step {t} of {size}");
                assert_eq!(opposed.sources(t, a)[..], [peer], "{a} at step {t} of {size}");
            }
            let is_last = t + 1 == plain.n_steps();
            let mirrored = plain.clone().mirrored(true);
            let both = [&opposed, &mirrored].map(|other| busiest_link(&[&plain, other], t));
            let expected = if is_last { [size; 2] } else { [1 << t, (2 << t) - 1] };
            assert_eq!(both, expected, "step {t} of {size}");
        }
    }
}

/// In opposed forms every contribution arrives exactly once at every coordinate if step t forwards the blocks of
/// coordinates that differ in digit t, as the toward table of the plain form says.
#[test]
fn opposed_forms_deliver_all_blocks() {
    for (size, name) in SIZES.into_iter().flat_map(|size| NAMES.map(|name| (size, name))) {
        let Ok(plain) = Pattern::new(name.parse().unwrap(), size) else { continue };
        for pattern in [plain.clone().opposed(), plain.far_first(true).opposed()] {
            let toward = Toward::new(pattern.clone());
            for (a, x) in (0..size).flat_map(|a| (0..size).map(move |x| (a, x))) {
                let mut at = a;
                for t in 0..pattern.n_steps() {
                    if let Some((_, target)) = step(&toward, at, x).filter(|hop| hop.0 == t) {
                        let next = pattern.targets(t, at)[target as usize];
                        assert_eq!(pattern.sources(t, next)[target as usize], at, "{name} {size}");
                        at = next;
                    }
                }
                assert_eq!(at, x, "{name} on {size}: from {a}");
            }
        }
    }
}

/// The definition in algorithms.md section 2, implemented literally, for every x.
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

/// Whether a rule defines its own hops; all others follow the definition.
fn has_own_ways(name: &str) -> bool {
    name.starts_with("kring") || name.starts_with("knomial") || name.starts_with("bruck")
}

/// The hop from `a` of a block for `x`: step, and the coordinate that it leads to.
fn hop(toward: &Toward, a: u32, x: u32) -> Option<(u32, u32)> {
    let pattern = toward.pattern();
    let hop = toward.hop(pattern.normalise(a, x));
    hop.map(|hop| (hop.step, pattern.denormalise(hop.next, x)))
}

/// The hop from `a` of a block for `x`: step, and the index of the target.
fn step(toward: &Toward, a: u32, x: u32) -> Option<(u32, u32)> {
    toward.hop(toward.pattern().normalise(a, x)).map(|hop| (hop.step, hop.target))
}

#[test]
fn toward_table_follows_its_definition() {
    for (name, pattern) in all_forms() {
        let toward = Toward::new(pattern.clone());
        for x in 0..pattern.size() {
            let expected = toward_by_definition(&pattern, x);
            for a in 0..pattern.size() {
                if !has_own_ways(name) {
                    assert_eq!(hop(&toward, a, x), expected[a as usize], "{name} {a} -> {x}");
                }
                let mut at = a;
                let mut before = None;
                for (step, target) in toward.path(a, x) {
                    assert!(before < Some(step), "{name}: steps ascend along a path");
                    before = Some(step);
                    at = pattern.targets(step, at)[target as usize];
                }
                assert_eq!(at, x, "{name} on {}", pattern.size());
            }
        }
    }
}

/// Compares the blocks at each coordinate, moved step by step, with the intervals of depth-first numbers.
#[test]
fn held_intervals_are_what_has_arrived() {
    for (name, pattern) in all_forms() {
        let toward = Toward::new(pattern.clone());
        let mut now: Vec<u32> = (0..pattern.size()).collect();
        for done in 0..=pattern.n_steps() {
            for b in 0..pattern.size() {
                let there = (0..pattern.size()).filter(|&y| now[y as usize] == b);
                let mut there: Vec<u32> = there.map(|y| toward.number(y)).collect();
                there.sort_unstable();
                assert!(toward.resident(b, done).eq(there), "{name}: {b} after {done} steps");
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
        for name in ["circulant", "knomial:2", "bruck:2"] {
            assert_eq!(pattern(name, size).n_steps(), bound, "{size}");
        }
        if size % 2 == 0 {
            assert_eq!(pattern("bine", size).n_steps(), bound);
        }
    }
}

/// Balanced steps, for every size d: there are ceil(log3 d), each with at most one message in each direction. Every
/// coordinate reaches every other along ascending steps. Near first, the window grows so that the distances of all
/// steps together reach exactly the far end. Far first, groups nest for powers of three.
#[test]
fn balanced_steps_serve_every_size() {
    let offsets = |size: u32| -> Vec<Vec<i64>> {
        let plain = pattern("balanced", size);
        let signed = |&b: &u32| {
            let (up, size) = (i64::from(b), i64::from(size));
            if 2 * up > size { up - size } else { up }
        };
        (0..plain.n_steps()).map(|t| plain.targets(t, 0).iter().map(signed).collect()).collect()
    };
    assert_eq!(offsets(8), [vec![1, -1], vec![3, -2]]);
    assert_eq!(offsets(69), [vec![1, -1], vec![3, -3], vec![9, -9], vec![21, -21]]);
    assert_eq!(offsets(4), [vec![1, -1], vec![1]]);
    for size in 2..600u32 {
        let plain = pattern("balanced", size);
        let n_steps = (0..).find(|&steps| 3u32.pow(steps) >= size).unwrap();
        assert_eq!(plain.n_steps(), n_steps, "{size}");
        let reach: i64 = offsets(size).iter().flatten().map(|offset| offset.abs()).sum();
        assert_eq!(reach, i64::from(size) - 1, "{size}");
        for (far_first, mirrored) in [(false, false), (true, false), (false, true), (true, true)] {
            let toward = Toward::new(plain.clone().far_first(far_first).mirrored(mirrored));
            for a in 0..size {
                let (mut at, mut before) = (a, None);
                for (step, target) in toward.path(a, 0) {
                    assert!(before < Some(step), "{size}: {a}");
                    before = Some(step);
                    at = toward.pattern().targets(step, at)[target as usize];
                }
                assert_eq!(at, 0, "{size}: {a}");
            }
            let is_power = 3u32.pow(n_steps) == size;
            let nests = toward.pattern().groups_nest();
            assert_eq!(nests, size <= 3 || (is_power && far_first), "{size}");
        }
    }
}

/// Nesting groups, which the latency form needs, are found by computation, not declared.
#[test]
fn groups_nest_where_they_should() {
    let nests =
        |name: &str, size, far_first| pattern(name, size).far_first(far_first).groups_nest();
    for size in [2, 4, 8, 32] {
        assert!(nests("bine", size, true));
        assert_eq!(nests("bine", size, false), size <= 4, "{size}");
        assert!(nests("doubling", size, false) && nests("doubling", size, true));
        assert!(nests("knomial:2", size, true));
        assert!(nests("circulant", size, true));
        assert_eq!(nests("circulant", size, false), size == 2, "{size}");
        assert_eq!(nests("ring", size, false), size == 2);
    }
    for (name, size) in [("multiplying:4", 24), ("multiplying:2,3", 6), ("direct", 7)] {
        assert!(nests(name, size, false) && nests(name, size, true), "{name}");
    }
    assert!(nests("knomial:3", 27, true) && !nests("knomial:3", 27, false));
    assert!(!nests("knomial:3", 25, true) && !nests("bine", 12, true));
    assert!(!nests("kring:4", 8, false) && !nests("circulant", 12, true));
}

/// Data folded onto a core meet there in groups that nest.
#[test]
fn cores_nest() {
    let names = ["bine", "doubling", "circulant", "multiplying:2", "multiplying:4"];
    for name in names.into_iter().chain(["multiplying:7", "knomial:3", "bruck:4"]) {
        for size in 1..300 {
            let core = name.parse::<PatternKind>().unwrap().core(size);
            assert!((1..=size).contains(&core) && size / core < 4, "{name} on {size}: {core}");
            assert!(pattern(name, core).far_first(true).groups_nest(), "{name} on {size}: {core}");
        }
    }
    let core = |name: &str, size| name.parse::<PatternKind>().unwrap().core(size);
    assert_eq!((core("multiplying:4", 69), core("multiplying:4", 48)), (64, 48));
    assert_eq!((core("multiplying:4", 7), core("multiplying:4", 23)), (7, 16));
    assert_eq!((core("multiplying:3,4", 12), core("multiplying:3,4", 19)), (12, 12));
    // A pattern without a core keeps its size, and is refused.
    assert_eq!((core("ring", 6), core("kring:3", 6), core("multiplying:3,4", 30)), (6, 6, 30));
    assert_eq!(core(OVER_ALL_SIZES, 8), 8);
}

/// The blocks that reach a coordinate in a step are the same from every source if and only if the pattern says that
/// the step folds evenly.
#[test]
fn folds_are_even_where_they_are_said_to_be() {
    let mut n_uneven = 0;
    for (name, pattern) in all_forms() {
        let toward = Toward::new(pattern.clone());
        for t in 0..pattern.n_steps() {
            let sets: Vec<Vec<u32>> = pattern
                .sources(t, 0)
                .iter()
                .map(|&source| {
                    let goes = |&x: &u32| {
                        let hop = toward.hop(pattern.normalise(source, x));
                        hop.is_some_and(|hop| {
                            hop.step == t && pattern.denormalise(hop.next, x) == 0
                        })
                    };
                    (0..pattern.size()).filter(goes).collect()
                })
                .collect();
            let is_even = sets.windows(2).all(|pair| pair[0] == pair[1]);
            assert_eq!(toward.folds_evenly(t), is_even, "{name} on {}, step {t}", pattern.size());
            n_uneven += u32::from(!is_even);
        }
    }
    assert!(n_uneven > 0);
}

#[test]
fn long_rings_cost_their_length() {
    // An algorithm of O(d^2) would compute 10^10 hops here.
    for name in ["ring", "kring:16", "circulant", "balanced", "knomial:4"] {
        let size = 1 << 17;
        let toward = Toward::new(pattern(name, size));
        assert_eq!(toward.path(5, 5).count(), 0);
        assert!(toward.path(size - 1, 0).count() > 0);
        assert!(name == "circulant" || name == "ring" || !toward.pattern().groups_nest());
    }
}

/// Radices whose product no integer type holds.
const OVER_ALL_SIZES: &str = "multiplying:3,11,131,2731,409891,7623851,8";

#[test]
fn sizes_that_are_not_served_say_what_is() {
    for (name, size, needs) in [
        ("bine", 5, "an even size"),
        ("doubling", 6, "a power of two"),
        ("direct", 65, "at most 64"),
        ("multiplying:4", 23, "prime factors of at most 16"),
        ("multiplying:4,4,2", 16, "a size of 32"),
        // The product is 8 modulo 2^64.
        (OVER_ALL_SIZES, 8, "radices whose product is a size"),
        ("ring", 200_000, "at most 131072"),
        ("kring:4", 6, "a multiple of 4"),
    ] {
        let message = Pattern::new(name.parse().unwrap(), size).unwrap_err().to_string();
        assert!(message.contains(needs), "{message}");
    }
}

#[test]
fn names_round_trip() {
    for text in NAMES {
        assert_eq!(text.parse::<PatternKind>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "swing",
        "multiplying",
        "multiplying:1",
        "multiplying:4,",
        "multiplying:4,1",
        "multiplying:+4",
        "bine:2",
        "knomial",
        "knomial:2,2",
        "kring:0",
    ] {
        assert!(text.parse::<PatternKind>().is_err(), "{text}");
    }
}
