use super::*;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

/// Chunks on the heap. Without a lock, which would order what the queue must order by itself.
struct Heap {
    chunks: [OnceLock<Box<Chunk>>; FREE_WORDS * 64],
    made: AtomicUsize,
}

impl Default for Heap {
    fn default() -> Self {
        Heap { chunks: [const { OnceLock::new() }; FREE_WORDS * 64], made: AtomicUsize::new(0) }
    }
}

impl Heap {
    /// How many chunks were ever made.
    fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }
}

impl Chunks for Heap {
    fn create(&self) -> u64 {
        // Relaxed: every place is handed out once; the queue publishes it.
        let n = self.made.fetch_add(1, Ordering::Relaxed);
        assert!(self.chunks[n].set(Box::default()).is_ok(), "made once");
        n as u64 + 1
    }

    fn at(&self, place: u64) -> &Chunk {
        self.chunks[place as usize - 1].get().expect("was created")
    }
}

fn notice(sender: u64, n: u64) -> Notice {
    Notice { vcq: sender, rmt: n, lcl: n ^ 0xff, ready_at: 3, ..Notice::default() }
}

#[test]
fn a_queue_in_normal_use_stays_small() {
    let (ring, heap) = (Box::<Ring>::default(), Heap::default());
    let mut reader = ring.reader();
    for i in 0..20 * CAPACITY {
        ring.push(&heap, &notice(0, i)).unwrap();
        assert_eq!(reader.pop(&ring, &heap), Some(notice(0, i)));
        assert_eq!(reader.pop(&ring, &heap), None);
    }
    assert!(heap.made() <= 2);
}

#[test]
fn a_full_queue_keeps_everything_and_then_overflows() {
    let (ring, heap) = (Box::<Ring>::default(), Heap::default());
    let mut reader = ring.reader();
    // Start anywhere in the window, also across its end.
    for i in 0..SLOTS as u64 * CHUNK - 1000 {
        ring.push(&heap, &notice(1, i)).unwrap();
        assert!(reader.pop(&ring, &heap).is_some());
    }
    for i in 0..CAPACITY {
        ring.push(&heap, &notice(2, i)).unwrap();
    }
    let more = (0..2 * CHUNK).take_while(|i| ring.push(&heap, &notice(3, *i)).is_ok()).count();
    assert!((more as u64) < 3 * CHUNK, "overflow is found");
    for i in 0..CAPACITY {
        assert_eq!(reader.pop(&ring, &heap), Some(notice(2, i)));
    }
}

#[test]
fn what_an_earlier_owner_left_is_drained() {
    let (ring, heap) = (Box::<Ring>::default(), Heap::default());
    for i in 0..CHUNK + 7 {
        ring.push(&heap, &notice(1, i)).unwrap();
    }
    let mut reader = ring.reader();
    assert_eq!(reader.pop(&ring, &heap), Some(notice(1, 0)));
    let mut second = ring.reader();
    ring.drain(&heap, &mut second);
    assert_eq!(second.pop(&ring, &heap), None);
    ring.push(&heap, &notice(2, 5)).unwrap();
    assert_eq!(second.pop(&ring, &heap), Some(notice(2, 5)));
}

#[test]
fn senders_keep_their_order() {
    const EACH: u64 = 60_000;
    let (ring, heap) = (Box::<Ring>::default(), Heap::default());
    std::thread::scope(|s| {
        for sender in 0..4 {
            let (ring, heap) = (&ring, &heap);
            s.spawn(move || {
                for n in 0..EACH {
                    ring.push(heap, &notice(sender, n)).unwrap();
                    // Far enough from the capacity however slow the reader is.
                    while ring.tail.load(Ordering::Relaxed) - ring.head.load(Ordering::Relaxed)
                        > CAPACITY / 2
                    {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let mut reader = ring.reader();
        let mut next = [0; 4];
        while next != [EACH; 4] {
            let Some(n) = reader.pop(&ring, &heap) else {
                std::thread::yield_now();
                continue;
            };
            assert_eq!(n, notice(n.vcq, next[n.vcq as usize]));
            next[n.vcq as usize] += 1;
        }
        assert_eq!(reader.pop(&ring, &heap), None);
    });
}
