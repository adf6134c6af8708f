//! What every pattern promises, for many sizes.

use super::*;

const SIZES: [u32; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 23, 24, 27, 31, 32, 48, 64, 69];

const NAMES: [&str; 20] = [
    "bine",
    "ring",
    "doubling",
    "circulant",
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

/// The rules that give their own ways; all others follow the definition.
fn has_own_ways(name: &str) -> bool {
    name.starts_with("kring") || name.starts_with("knomial") || name.starts_with("bruck")
}

/// The hop of a block for `x` from `a`: step, and the coordinate that it leads to.
fn hop(toward: &Toward, a: u32, x: u32) -> Option<(u32, u32)> {
    let pattern = toward.pattern();
    let hop = toward.hop(pattern.normalise(a, x));
    hop.map(|hop| (hop.step, pattern.denormalise(hop.next, x)))
}

/// The same: step, and which target it is.
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

/// The trees of generalized radix, section III, by relative ranks: the lowest digit that is
/// not 0 is cleared; far first, the highest.
#[test]
fn knomial_trees_clear_one_digit_after_another() {
    for (radix, size) in [(2u32, 6u32), (2, 8), (2, 23), (3, 9), (3, 14), (4, 69), (7, 20)] {
        let plain = pattern(&format!("knomial:{radix}"), size);
        assert_eq!(plain.n_steps(), (size as f64).log(radix.into()).ceil() as u32);
        for (far_first, mirrored) in [(false, false), (true, false), (false, true), (true, true)] {
            let toward = Toward::new(plain.clone().far_first(far_first).mirrored(mirrored));
            for root in 0..size {
                for a in (0..size).filter(|&a| a != root) {
                    let up = if mirrored { root + size - a } else { a + size - root } % size;
                    let digits: Vec<u32> =
                        (0..plain.n_steps()).map(|t| up / radix.pow(t) % radix).collect();
                    let mut set = (0..plain.n_steps()).filter(|&t| digits[t as usize] > 0);
                    let t = if far_first { set.next_back() } else { set.next() }.unwrap();
                    let down = digits[t as usize] * radix.pow(t);
                    let parent = if mirrored { a + down } else { a + size - down } % size;
                    let step = if far_first { plain.n_steps() - 1 - t } else { t };
                    assert_eq!(hop(&toward, a, root), Some((step, parent)), "{radix} {size} {a}");
                }
            }
        }
    }
}

/// Generalized radix, Fig. 6, as the text of section V.C describes it: inside a group a block
/// that has arrived is passed on round the ring; between groups that which came from the last
/// group. Run here as an allgather: our steps backwards.
#[test]
fn kring_is_the_allgather_of_the_paper() {
    for (group, size) in [(3u32, 6u32), (2, 8), (4, 12), (8, 8), (3, 27), (2, 2)] {
        let pattern = pattern(&format!("kring:{group}"), size);
        let toward = Toward::new(pattern.clone());
        assert_eq!(pattern.n_steps(), size - 1);
        // What each rank passes on next: inside, and between groups.
        let mut inside: Vec<u32> = (0..size).collect();
        let mut between = inside.clone();
        let mut held: Vec<Vec<u32>> = (0..size).map(|rank| vec![rank]).collect();
        let (mut n_inside, mut n_between, mut crossing) = (0, 0, 0);
        for step in 0..size - 1 {
            let is_between = step % group == group - 1;
            let from = |rank: u32| {
                let (g, k) = (rank / group, rank % group);
                if is_between { (rank + group) % size } else { g * group + (k + 1) % group }
            };
            let arrived: Vec<u32> = (0..size)
                .map(|rank| if is_between { &between } else { &inside }[from(rank) as usize])
                .collect();
            for rank in 0..size {
                let block = arrived[rank as usize];
                let hop = hop(&toward, rank, block);
                assert_eq!(hop, Some((size - 2 - step, from(rank))), "{group} {size} {rank}");
                assert!(!held[rank as usize].contains(&block), "one new block per step");
                held[rank as usize].push(block);
                // Group 0 receives from outside; it sends as much.
                crossing += u32::from(is_between && rank < group);
            }
            if is_between {
                between = arrived.clone();
                n_between += 1;
            } else {
                n_inside += 1;
            }
            inside = arrived;
        }
        // Eq. 11 and 12; Eq. 13: 2n (p - k) / p, received and sent, n being p blocks.
        let groups = size / group;
        assert_eq!((n_inside, n_between), (groups * (group - 1), groups - 1));
        assert_eq!(n_inside + n_between, size - 1);
        assert_eq!(2 * crossing, 2 * (size - group));
    }
    // Eq. 14: between single ranks as groups the ring carries 2n (p - 1) / p.
    assert_eq!(volumes(&pattern("ring", 9)), [1; 8]);
}

/// Blocks that every coordinate sends at each step of a reduce-scatter.
fn volumes(pattern: &Pattern) -> Vec<u32> {
    let toward = Toward::new(pattern.clone());
    let mut volumes = vec![0; pattern.n_steps() as usize];
    for x in 1..pattern.size() {
        volumes[step(&toward, 0, x).unwrap().0 as usize] += 1;
    }
    volumes
}

#[test]
fn steps_and_volumes_are_those_of_the_generalized_radix_paper() {
    for (radix, n_steps) in [(2u32, 6u32), (3, 4), (4, 3), (5, 2), (8, 2)] {
        let size = radix.pow(n_steps);
        for name in ["multiplying", "knomial", "bruck"] {
            let Ok(pattern) = Pattern::new(format!("{name}:{radix}").parse().unwrap(), size) else {
                continue;
            };
            // Eq. 3 and 6: log_k p steps of k - 1 messages each.
            assert_eq!(pattern.n_steps(), n_steps);
            assert!((0..n_steps).all(|t| pattern.targets(t, 0).len() as u32 == radix - 1));
            // Eq. 7: an allgather's round i = 1, 2, ... (ours backwards) moves
            // (k - 1) k^(i - 1) / p of n; in sum (p - 1) / p, as Eq. 6 has it.
            let mut rounds = volumes(&pattern);
            rounds.reverse();
            let expected: Vec<u32> =
                (1..=n_steps).map(|i| (radix - 1) * radix.pow(i - 1)).collect();
            assert_eq!(rounds, expected, "{name}:{radix}");
            assert_eq!(rounds.iter().sum::<u32>(), size - 1);
        }
    }
    // Fig. 2: trinomial gather on 6 processes. 1 and 2 send to 0, 4 and 5 to 3, then 3 to 0.
    let toward = Toward::new(pattern("knomial:3", 6));
    let hops: Vec<_> = (1..6).map(|a| hop(&toward, a, 0).unwrap()).collect();
    assert_eq!(hops, [(0, 0), (0, 0), (1, 0), (0, 3), (0, 3)]);
    // Eq. 8 and 9: p - 1 rounds of n / p.
    for (name, size) in [("ring", 7), ("ring", 16), ("kring:4", 16)] {
        assert_eq!(volumes(&pattern(name, size)), vec![1; size as usize - 1]);
    }
}

/// Bruck with radix r: a block that must go x upwards goes z r^t at step t, z being digit t.
#[test]
fn bruck_sends_by_the_digits_of_the_distance() {
    for (radix, size) in [(2u32, 8u32), (2, 11), (3, 9), (4, 23), (5, 69)] {
        let pattern = pattern(&format!("bruck:{radix}"), size);
        let toward = Toward::new(pattern);
        for (a, x) in (0..size).flat_map(|a| (0..size).map(move |x| (a, x))) {
            let (mut at, far) = (a, (x + size - a) % size);
            for (step, _) in toward.path(a, x) {
                let next = hop(&toward, at, x).unwrap().1;
                let digit = far / radix.pow(step) % radix;
                assert_eq!((next + size - at) % size, digit * radix.pow(step));
                at = next;
            }
            assert_eq!(at, x);
        }
    }
}

/// What stands where, moved step by step, against the intervals of depth-first numbers.
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
                assert!(toward.held(b, done).eq(there), "{name}: {b} after {done} steps");
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

#[test]
fn offsets_of_the_papers() {
    let offsets = |name: &str, size: u32| -> Vec<i64> {
        let pattern = pattern(name, size);
        (0..pattern.n_steps())
            .map(|t| {
                let up = i64::from(pattern.targets(t, 0)[0]);
                if 2 * up <= i64::from(size) { up } else { up - i64::from(size) }
            })
            .collect()
    };
    assert_eq!(offsets("circulant", 7), [1, -2, 3]);
    assert_eq!(offsets("circulant", 23), [1, -2, 4, -8, 7]);
    assert_eq!(offsets("circulant", 69), [1, -2, 4, -8, 16, -32, 5]);
    assert_eq!(offsets("bine", 64), [1, -1, 3, -5, 11, -21]);
    assert_eq!(offsets("bruck:2", 23), [1, 2, 4, 8, -7]);
}

/// The latency form needs them; what has them is found, not declared.
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

/// What is folded onto a core meets there in groups that nest.
#[test]
fn cores_nest() {
    let names = ["bine", "doubling", "circulant", "multiplying:2", "multiplying:4"];
    for name in names.into_iter().chain(["multiplying:7", "knomial:3", "bruck:4"]) {
        for size in 1..300 {
            let core = name.parse::<Kind>().unwrap().core(size);
            assert!((1..=size).contains(&core) && size / core < 4, "{name} on {size}: {core}");
            assert!(pattern(name, core).far_first(true).groups_nest(), "{name} on {size}: {core}");
        }
    }
    let core = |name: &str, size| name.parse::<Kind>().unwrap().core(size);
    assert_eq!((core("multiplying:4", 69), core("multiplying:4", 48)), (64, 48));
    assert_eq!((core("multiplying:4", 7), core("multiplying:4", 23)), (7, 16));
    assert_eq!((core("multiplying:3,4", 12), core("multiplying:3,4", 19)), (12, 12));
    // What has no core stays as it is, and is refused.
    assert_eq!((core("ring", 6), core("kring:3", 6), core("multiplying:3,4", 30)), (6, 6, 30));
}

/// The blocks that reach a coordinate in a step, from every source: the same where folds are
/// said to be even, and not everywhere else.
#[test]
fn folds_are_even_where_they_are_said_to_be() {
    let mut n_uneven = 0;
    for (name, pattern) in all_forms() {
        let toward = Toward::new(pattern.clone());
        let mut is_even = true;
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
            is_even &= sets.windows(2).all(|pair| pair[0] == pair[1]);
        }
        assert_eq!(pattern.folds_evenly(), is_even, "{name} on {}", pattern.size());
        n_uneven += u32::from(!is_even);
    }
    assert!(n_uneven > 0);
}

#[test]
fn long_rings_cost_their_length() {
    // O(d^2) would be 10^10 hops here.
    for name in ["ring", "kring:16", "circulant", "knomial:4"] {
        let size = 1 << 17;
        let toward = Toward::new(pattern(name, size));
        assert_eq!(toward.path(5, 5).count(), 0);
        assert!(toward.path(size - 1, 0).count() > 0);
        assert!(name == "circulant" || name == "ring" || !toward.pattern().groups_nest());
    }
}

#[test]
fn sizes_that_are_not_served_say_what_is() {
    for (name, size, needs) in [
        ("bine", 5, "an even size"),
        ("doubling", 6, "a power of two"),
        ("direct", 65, "at most 64"),
        ("multiplying:4", 23, "prime factors of at most 16"),
        ("multiplying:4,4,2", 16, "a size of 32"),
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
        assert_eq!(text.parse::<Kind>().unwrap().to_string(), text);
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
        assert!(text.parse::<Kind>().is_err(), "{text}");
    }
}
