//! Statements of the papers about their patterns.

use super::*;

/// The trees of generalized radix, section III, by relative ranks: a hop clears the lowest digit that is not 0; far
/// first, the highest.
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

/// Generalized radix, Fig. 6, as the text of section V.C describes it: within a group, a block that has arrived is
/// passed on around the ring; between groups, the block that came from the last group. The test runs it as an
/// allgather, with the pattern's steps in reverse order.
#[test]
fn kring_is_the_allgather_of_the_paper() {
    for (group, size) in [(3u32, 6u32), (2, 8), (4, 12), (8, 8), (3, 27), (2, 2)] {
        let pattern = pattern(&format!("kring:{group}"), size);
        let toward = Toward::new(pattern.clone());
        assert_eq!(pattern.n_steps(), size - 1);
        // The block that each rank passes on next: within its group, and between groups.
        let mut inside: Vec<u32> = (0..size).collect();
        let mut between = inside.clone();
        let mut resident: Vec<Vec<u32>> = (0..size).map(|rank| vec![rank]).collect();
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
                assert!(!resident[rank as usize].contains(&block), "one new block per step");
                resident[rank as usize].push(block);
                // Counts what group 0 receives from other groups; it sends as much.
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
        // Eq. 11 and 12; Eq. 13: 2n (p - k) / p, received and sent, where n is p blocks.
        let groups = size / group;
        assert_eq!((n_inside, n_between), (groups * (group - 1), groups - 1));
        assert_eq!(n_inside + n_between, size - 1);
        assert_eq!(2 * crossing, 2 * (size - group));
    }
    // Eq. 14: with single ranks as groups the ring carries 2n (p - 1) / p.
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
            // Eq. 7: round i = 1, 2, ... of an allgather (steps in reverse order) moves (k - 1) k^(i - 1) / p of n;
            // the sum is (p - 1) / p, as in Eq. 6.
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

/// Bruck with radix r: a block that must move x upwards moves z r^t at step t, where z is digit t of x.
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
