use super::*;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

/// Chunks on the heap. No lock here: it would order accesses that the queue must order by itself.
struct Heap {
    chunks: [OnceLock<Box<Chunk>>; FREE],
    made: AtomicUsize,
}

impl Default for Heap {
    fn default() -> Self {
        Heap { chunks: [const { OnceLock::new() }; FREE], made: AtomicUsize::new(0) }
    }
}

impl Heap {
    /// Returns the number of chunks created so far.
    fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }
}

impl Chunks for Heap {
    fn create(&self) -> Option<u64> {
        // Relaxed: every slot is used once; the queue publishes it.
        let n = self.made.fetch_add(1, Ordering::Relaxed);
        assert!(self.chunks[n].set(Box::default()).is_ok(), "made once");
        Some(n as u64 + 1)
    }

    fn at(&self, chunk: u64) -> &Chunk {
        self.chunks[chunk as usize - 1].get().expect("was created")
    }
}

fn notice(sender: u64, n: u64) -> MrqNotice {
    MrqNotice { vcq: sender, rmt: n, value: n ^ 0xff, ready_at: 3, ..MrqNotice::default() }
}

#[test]
fn a_queue_in_normal_use_stays_small() {
    let (ring, heap) = (Box::<NoticeRing>::default(), Heap::default());
    let mut reader = ring.reader();
    for i in 0..20 * CAPACITY {
        ring.push(&heap, &mut RecentChunk::default(), &notice(0, i)).unwrap();
        assert_eq!(reader.pop(&ring, &heap), Some(notice(0, i)));
        assert_eq!(reader.pop(&ring, &heap), None);
    }
    assert!(heap.made() <= 2);
}

#[test]
fn a_full_queue_keeps_everything_and_then_overflows() {
    let (ring, heap) = (Box::<NoticeRing>::default(), Heap::default());
    let mut reader = ring.reader();
    // The test starts near the end of the window and continues across it.
    for i in 0..SLOTS as u64 * CHUNK - 1000 {
        ring.push(&heap, &mut RecentChunk::default(), &notice(1, i)).unwrap();
        assert!(reader.pop(&ring, &heap).is_some());
    }
    for i in 0..CAPACITY {
        ring.push(&heap, &mut RecentChunk::default(), &notice(2, i)).unwrap();
    }
    let more = (0..2 * CHUNK)
        .take_while(|i| ring.push(&heap, &mut RecentChunk::default(), &notice(3, *i)).is_ok())
        .count();
    assert!((more as u64) < 3 * CHUNK, "overflow is found");
    for i in 0..CAPACITY {
        assert_eq!(reader.pop(&ring, &heap), Some(notice(2, i)));
    }
}

#[test]
fn what_an_earlier_owner_left_is_drained() {
    let (ring, heap) = (Box::<NoticeRing>::default(), Heap::default());
    for i in 0..CHUNK + 7 {
        ring.push(&heap, &mut RecentChunk::default(), &notice(1, i)).unwrap();
    }
    let mut reader = ring.reader();
    assert_eq!(reader.pop(&ring, &heap), Some(notice(1, 0)));
    let mut second = ring.reader();
    ring.drain(&heap, &mut second, || true);
    assert_eq!(second.pop(&ring, &heap), None);
    ring.push(&heap, &mut RecentChunk::default(), &notice(2, 5)).unwrap();
    assert_eq!(second.pop(&ring, &heap), Some(notice(2, 5)));
}

/// A sender that has died between taking an index and writing its notice blocks no rank, and a sender that was only
/// slow does no harm.
#[test]
fn a_notice_that_never_comes_is_given_up() {
    let (ring, heap) = (Box::<NoticeRing>::default(), Heap::default());
    ring.push(&heap, &mut RecentChunk::default(), &notice(1, 0)).unwrap();
    let dead = ring.tail.fetch_add(1, Ordering::Relaxed);
    ring.push(&heap, &mut RecentChunk::default(), &notice(1, 2)).unwrap();
    // Indices of senders that have not looked up their chunk yet.
    ring.tail.fetch_add(2 * CHUNK, Ordering::Relaxed);
    let mut asked = 0;
    let mut reader = ring.reader();
    ring.drain(&heap, &mut reader, || {
        asked += 1;
        asked < 10
    });
    assert!(asked >= 10);
    let made = heap.made();
    for i in 0..4 * CHUNK {
        ring.push(&heap, &mut RecentChunk::default(), &notice(2, i)).unwrap();
        // The slow sender writes its notice after all.
        heap.at(1).entries[dead as usize].seq.store(dead + 1, Ordering::Relaxed);
        assert_eq!(reader.pop(&ring, &heap), Some(notice(2, i)));
    }
    assert!(heap.made() <= made + 2, "only the chunk with the hole is lost");
}

/// The owner that gave up a notice is gone before its reader has passed the chunk.
#[test]
fn a_given_up_notice_is_remembered_for_the_next_owner() {
    let (ring, heap) = (Box::<NoticeRing>::default(), Heap::default());
    ring.push(&heap, &mut RecentChunk::default(), &notice(1, 0)).unwrap();
    let dead = ring.tail.fetch_add(1, Ordering::Relaxed);
    ring.drain(&heap, &mut ring.reader(), || false);
    let mut reader = ring.reader();
    ring.drain(&heap, &mut reader, || true);
    for i in 0..4 * CHUNK {
        ring.push(&heap, &mut RecentChunk::default(), &notice(2, i)).unwrap();
        // The slow sender writes its notice after all.
        heap.at(1).entries[dead as usize].seq.store(dead + 1, Ordering::Relaxed);
        assert_eq!(reader.pop(&ring, &heap), Some(notice(2, i)));
    }
    assert!(heap.made() <= 3, "only the chunk with the hole is lost");
}

#[test]
fn a_queue_without_memory_overflows() {
    struct Nothing;
    impl Chunks for Nothing {
        fn create(&self) -> Option<u64> {
            None
        }
        fn at(&self, _: u64) -> &Chunk {
            unreachable!("there is none")
        }
    }
    let ring = Box::<NoticeRing>::default();
    assert_eq!(
        ring.push(&Nothing, &mut RecentChunk::default(), &notice(0, 0)),
        Err(PushError::Overflow)
    );
    assert_eq!(ring.table[0].load(Ordering::Relaxed), 0);
}

#[test]
fn senders_keep_their_order() {
    const EACH: u64 = 60_000;
    let (ring, heap) = (Box::<NoticeRing>::default(), Heap::default());
    std::thread::scope(|s| {
        let send = |sender| {
            let (ring, heap) = (&ring, &heap);
            s.spawn(move || {
                let mut recent = RecentChunk::default();
                for n in 0..EACH {
                    ring.push(heap, &mut recent, &notice(sender, n)).unwrap();
                    // Keeps a distance from the capacity, however slow the reader is. Other threads move `tail` and
                    // `head` between the two loads.
                    let unread = || {
                        let tail = ring.tail.load(Ordering::Relaxed);
                        tail.saturating_sub(ring.head.load(Ordering::Relaxed))
                    };
                    while unread() > CAPACITY / 2 {
                        std::thread::yield_now();
                    }
                }
            })
        };
        let senders = [0, 1, 2, 3].map(send);
        let mut reader = ring.reader();
        let mut next = [0; 4];
        while next != [EACH; 4] {
            let are_gone = senders.iter().all(|sender| sender.is_finished());
            let Some(n) = reader.pop(&ring, &heap) else {
                assert!(!are_gone, "senders ended after {next:?} notices");
                std::thread::yield_now();
                continue;
            };
            assert_eq!(n, notice(n.vcq, next[n.vcq as usize]));
            next[n.vcq as usize] += 1;
        }
        assert_eq!(reader.pop(&ring, &heap), None);
    });
}
