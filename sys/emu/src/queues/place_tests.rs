use super::*;
use crate::limits::error::Code;

/// Returns the CQs of a rank that has a node to itself.
fn alone() -> CqRoles {
    CqRoles::of(0..CQS)
}

/// Creates VCQs on a TNI until one is refused.
fn fill(used: &mut [u32; CQS], cmp_id: Option<u16>, flags: c_ulong) -> (Vec<(usize, usize)>, i32) {
    let mut places = Vec::new();
    loop {
        match choose(used, &alone(), cmp_id, flags) {
            Ok((cq, n, marks)) => {
                assert_eq!(used[cq] & marks, 0, "a place is given once");
                used[cq] |= marks;
                places.push((cq, n));
            }
            Err(code) => return (places, code.0),
        }
    }
}

#[test]
fn ordinary_vcqs_fill_the_cqs_in_turn() {
    let mut used = [0; CQS];
    let (places, code) = fill(&mut used, None, UTOFU_VCQ_FLAG_THREAD_SAFE);
    let expect: Vec<_> = alone().ordinary().flat_map(|cq| (0..8).map(move |n| (cq, n))).collect();
    assert_eq!((places, code), (expect, UTOFU_ERR_FULL));
    used[5] &= !(1 << 3);
    assert_eq!(choose(&used, &alone(), None, 0), Ok((5, 3, 1 << 3)), "a freed place is used first");
    assert_eq!(choose(&used, &alone(), Some(0), 0), Err(Code(UTOFU_ERR_USED)));
}

#[test]
fn component_ids_have_one_place_each() {
    let mut used = [0; CQS];
    assert_eq!(choose(&used, &alone(), Some(3), 0), Ok((0, 3, 1 << 3)));
    used[0] |= 1 << 3 | 1;
    assert_eq!(choose(&used, &alone(), Some(3), 0), Err(Code(UTOFU_ERR_USED)));
    assert_eq!(
        choose(&used, &alone(), None, 0),
        Ok((0, 1, 2)),
        "default VCQs step over taken places"
    );
    assert_eq!(choose(&used, &alone(), Some(8), 0), Err(Code(UTOFU_ERR_INVALID_CMP_ID)));
    for flag in [UTOFU_VCQ_FLAG_EXCLUSIVE, UTOFU_VCQ_FLAG_SESSION_MODE] {
        assert_eq!(choose(&used, &alone(), Some(5), flag), Err(Code(UTOFU_ERR_NOT_SUPPORTED)));
    }
}

#[test]
fn sessions_have_three_cqs() {
    let mut used = [0; CQS];
    let (places, code) = fill(&mut used, None, UTOFU_VCQ_FLAG_SESSION_MODE);
    assert_eq!((places, code), (vec![(1, 0), (2, 0), (3, 0)], UTOFU_ERR_FULL));
}

#[test]
fn with_few_cqs_a_session_takes_one_to_itself() {
    let few = CqRoles::of(2..4);
    let mut used = [0; CQS];
    used[2] = 1;
    let (cq, n, marks) = choose(&used, &few, None, UTOFU_VCQ_FLAG_SESSION_MODE).unwrap();
    assert_eq!((cq, n), (3, 0));
    used[cq] |= marks;
    assert_eq!(choose(&used, &few, None, UTOFU_VCQ_FLAG_SESSION_MODE), Err(Code(UTOFU_ERR_FULL)));
    used[2] = ALL_VCQS;
    assert_eq!(choose(&used, &few, None, 0), Err(Code(UTOFU_ERR_FULL)));
}

#[test]
fn an_exclusive_cq_is_left_alone() {
    let mut used = [0; CQS];
    used[0] = 1;
    let (cq, n, marks) = choose(&used, &alone(), None, UTOFU_VCQ_FLAG_EXCLUSIVE).unwrap();
    assert_eq!((cq, n), (4, 0));
    used[cq] |= marks;
    let (places, _) = fill(&mut used, None, 0);
    assert_eq!(places.len(), 7 + 6 * 8);
    assert!(places.iter().all(|(cq, _)| *cq != 4));
    assert_eq!(choose(&used, &alone(), None, UTOFU_VCQ_FLAG_EXCLUSIVE), Err(Code(UTOFU_ERR_FULL)));
}
