use super::*;
use crate::limits::error::Code;
use proptest::prelude::*;

fn any_update(width: u8) -> impl Strategy<Value = Update> {
    let most = if width == 4 { u64::from(u32::MAX) } else { u64::MAX };
    prop_oneof![
        (1u32..=5, 0..=most).prop_map(|(op, v)| Update::of(op, v).unwrap()),
        (0..=most, 0..=most).prop_map(|(old, new)| Update::Compare { old, new }),
    ]
}

fn any_action() -> impl Strategy<Value = OpAction> {
    let long = 0..=MAX_LENGTH as u32;
    prop_oneof![
        Just(OpAction::Nop),
        (any::<u64>(), long.clone()).prop_map(|(lcl, len)| OpAction::Put { lcl, len }),
        (any::<u64>(), long).prop_map(|(lcl, len)| OpAction::Get { lcl, len }),
        (any::<u64>(), 0u32..=8).prop_map(|(d, len)| OpAction::Piggyback {
            data: [d, 0, 0, 0],
            len,
            entries: 1
        }),
        (any::<[u64; 4]>(), 0u32..=32).prop_map(|(data, len)| OpAction::Piggyback {
            data,
            len,
            entries: 2
        }),
        any_update(4).prop_map(|update| OpAction::Atomic { width: 4, update }),
        any_update(8).prop_map(|update| OpAction::Atomic { width: 8, update }),
    ]
}

proptest! {
    /// A decoded descriptor equals the prepared operation, also with another descriptor behind it.
    #[test]
    fn descriptors_come_back(action in any_action(), vcq: u64, rmt: u64, edata: u8, flags: u16, steps in 0u8..16) {
        let op = Op { action, vcq, rmt, edata, flags, steps };
        let packed = op.pack();
        let own = op.entries();
        prop_assert_eq!(Op::unpack(&packed[..own]), Ok(op));
        prop_assert_eq!(Op::unpack(&packed), Ok(op));
        prop_assert_eq!(Op::unpack(&packed[..own - 1]), Err(Code(UTOFU_ERR_INVALID_DESC)));
    }

    #[test]
    fn other_words_do_no_harm(words: [[u64; 4]; 2]) {
        if let Ok(op) = Op::unpack(&words.map(bytes)) {
            prop_assert!(op.entries() <= 2);
        }
    }
}

#[test]
fn entries_are_those_that_were_counted() {
    let op = |action| Op { action, vcq: 0, rmt: 0, edata: 0, flags: 0, steps: 0 };
    let data = [0; 4];
    let atomic = |width, update| OpAction::Atomic { width, update };
    let compare = Update::Compare { old: 0, new: 0 };
    for (action, entries) in [
        (OpAction::Nop, 1),
        (OpAction::Put { lcl: 0, len: 1 }, 1),
        (OpAction::Get { lcl: 0, len: 1 }, 1),
        (OpAction::Piggyback { data, len: 1, entries: 2 }, 2),
        (OpAction::Piggyback { data, len: 1, entries: 1 }, 1),
        (atomic(4, compare), 1),
        (atomic(8, compare), 2),
        (atomic(8, Update::Fetch { op: UTOFU_ARMW_OP_ADD, value: 1 }), 1),
    ] {
        assert_eq!(op(action).entries(), entries, "{action:?}");
    }
    assert!(Op::unpack(&[[0; ENTRY]]).is_err(), "zeros are no descriptor");
}
