use super::*;
use std::sync::Mutex;

/// Chunks on the heap; how many were ever made.
#[derive(Default)]
struct Heap(Mutex<Vec<&'static Chunk>>);

impl Chunks for Heap {
    fn create(&self) -> u64 {
        let mut all = self.0.lock().unwrap();
        all.push(Box::leak(Box::default()));
        all.len() as u64
    }

    fn at(&self, place: u64) -> &Chunk {
        self.0.lock().unwrap()[place as usize - 1]
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
    assert!(heap.0.lock().unwrap().len() <= 2);
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
