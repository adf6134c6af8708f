use super::*;
use crate::limits::error::Code;
use proptest::prelude::*;

prop_compose! {
    fn any_coords()(x: u8, y: u8, z: u8, a in 0u8..2, b in 0u8..3, c in 0u8..2) -> Coords {
        [x, y, z, a, b, c]
    }
}

prop_compose! {
    fn any_place()(coords in any_coords(), tni in 0u8..6, cq in 0u8..11, extra in 8u8..16) -> VcqPlace {
        VcqPlace { tni: TniPlace { coords, number: tni }, cq, extra }
    }
}

proptest! {
    #[test]
    fn an_id_names_one_place(p in any_place(), q in any_place()) {
        prop_assert_eq!(VcqPlace::of(p.id()), Ok(p));
        prop_assert_eq!(p == q, p.id() == q.id());
    }

    #[test]
    fn a_path_does_not_change_the_place(p in any_place(), path in (0u8..2, 0u8..3, 0u8..2)) {
        let path = [path.0, path.1, path.2];
        let n = path_id(p.tni.coords, path).unwrap();
        prop_assert_eq!(path_coords(p.tni.coords, n), path);
        let id = with_path(p.id(), n);
        prop_assert_eq!((path_in(id), VcqPlace::of(id)), (n, Ok(p)));
        prop_assert_eq!(without_path(id), p.id());
        let chosen = with_default_path(id);
        prop_assert_eq!((path_in(chosen), VcqPlace::of(chosen)), (0, Ok(p)));
        prop_assert_ne!(chosen, p.id());
        prop_assert_eq!(node_key(id), pack_coords(p.tni.coords));
    }

    #[test]
    fn numbers_that_are_no_ids_are_refused(id: u64) {
        if let Ok(p) = VcqPlace::of(id) {
            prop_assert_eq!(without_path(id), p.id());
        }
        if let Ok(p) = GatePlace::of(id) {
            prop_assert_eq!(id, p.id());
        }
    }

    #[test]
    fn gate_ids_come_back(coords in any_coords(), tni in 0u8..6, gate in 0u8..48, serial: u16) {
        let p = GatePlace { tni: TniPlace { coords, number: tni }, gate, serial };
        prop_assert_eq!(GatePlace::of(p.id()), Ok(p));
        prop_assert_ne!(p.id(), UTOFU_VBG_ID_NULL);
    }

    #[test]
    fn user_stags_of_different_vcqs_differ(e in 8u8..16, f in 8u8..16, s in 0u32..256, t in 0u32..256) {
        let (a, b) = (user_stadd(e, s).unwrap(), user_stadd(f, t).unwrap());
        prop_assert_eq!((e, s) == (f, t), a == b);
        prop_assert!(a >> STAG_AT < FIRST_DYNAMIC && a & OFFSET_MASK == 0);
    }
}

/// Programs split ids into their parts, and construct the ids of other ranks.
#[test]
fn ids_are_encoded_as_fujitsus() {
    let coords = [0x12, 0x34, 0x56, 1, 2, 1];
    let place = (0x12 << 32) | (0x34 << 40) | (0x56 << 48) | (1 << 56) | (2 << 57) | (1 << 59);
    let tni = TniPlace { coords, number: 5 };
    let vcq = VcqPlace { tni, cq: 10, extra: 8 + 7 };
    assert_eq!(vcq.id(), 10 | 7 << 24 | place | 5 << 61);
    assert_eq!(with_path(vcq.id(), 0xb), vcq.id() | 0xb << 28);
    let gate = GatePlace { tni, gate: 47, serial: 0 };
    assert_eq!(gate.id(), 47 | place | 5 << 61);
}

#[test]
fn what_is_out_of_range_is_refused() {
    assert!(VcqPlace::of(11).is_err(), "CQ 11");
    assert!(VcqPlace::of(6 << 61).is_err(), "TNI 6");
    assert!(VcqPlace::of(3 << 57).is_err(), "b is 3");
    assert!(VcqPlace::of(1 << 60).is_err(), "c is 2");
    assert!(VcqPlace::of(1 << 10).is_err(), "an unknown bit");
    assert!(GatePlace::of(1 << 30).is_err(), "an unknown bit");
    assert!(GatePlace::of(UTOFU_VBG_ID_NULL).is_err());
    assert_eq!(path_id([0; 6], [0, 3, 0]), Err(Code(UTOFU_ERR_INVALID_PATH)));
    assert_eq!(user_stadd(8, 256), Err(Code(UTOFU_ERR_INVALID_STAG)));
    assert!(!coords_ok([0, 0, 0, 2, 0, 0]) && coords_ok([255, 255, 255, 1, 2, 1]));
}
