//! A channel whose sender writes arbitrary bytes: for fuzzing.

use super::channel::{
    ChannelRing, ChannelWindow, DESCRIPTOR_BYTES, EAGER_BYTES, EAGER_HEADER_BYTES, TINY_BYTES,
    Written,
};
use super::credits::OutgoingRing;
use super::wire::{self, UtofuDescriptor};

/// Takes from `bytes` the ends of writes and the content of the channel, and handles each write as a port would.
pub(crate) fn play(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let window = if first & 1 == 0 { ChannelWindow::Wide } else { ChannelWindow::Narrow };
    let (ends, content) = bytes.split_at(bytes.len() / 4 / 2 * 2);
    let mut channel = vec![0; window.channel_bytes()];
    channel.iter_mut().zip(content.iter().cycle()).for_each(|(into, byte)| *into = *byte);
    let mut outgoing = [ChannelRing::Descriptors, ChannelRing::Eager].map(OutgoingRing::new);
    outgoing.iter_mut().for_each(|ring| ring.open(window));
    for end in ends.as_chunks().0 {
        let end = usize::from(u16::from_le_bytes(*end)) % (window.channel_bytes() + 1);
        match window.written(end) {
            Err(_) => {}
            Ok(Written::Credit(ring)) => _ = outgoing[ring as usize].credited(),
            Ok(Written::Slot(ring, slot)) => {
                let rings = &mut outgoing[ring as usize];
                if let Some(next) = rings.slot() {
                    assert!(next < window.slots(ring));
                    rings.used();
                }
                read(ring, &channel[window.offset(ring, slot)..]);
            }
        }
    }
}

/// Decodes the slot at the start of `rest`.
fn read(ring: ChannelRing, rest: &[u8]) {
    match ring {
        ChannelRing::Descriptors => {
            let bytes = rest.first_chunk::<DESCRIPTOR_BYTES>().expect("a descriptor");
            let read = UtofuDescriptor::decode(bytes);
            if let Ok(UtofuDescriptor::Tiny { len, .. }) = read {
                assert!(usize::from(len) <= TINY_BYTES);
            }
        }
        ChannelRing::Eager => {
            let header = rest.first_chunk::<EAGER_HEADER_BYTES>().expect("a header");
            if let Ok((_, _, len)) = wire::eager_message(header) {
                assert!(len <= EAGER_BYTES && EAGER_HEADER_BYTES + len <= rest.len());
            }
        }
    }
}
