//! All interleavings of a few pushes and pops. Chunks hold two notices, so that senders race for the installation of
//! a chunk while the reader frees chunks.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p utofu-emu --release loom_`

use super::*;
use loom::sync::Arc;
use loom::thread;

/// A ring whose chunks are created beforehand, because loom's atomics cannot be created from zeros.
struct Model {
    ring: NoticeRing,
    chunks: Vec<Chunk>,
    made: loom::sync::atomic::AtomicU64,
}

impl Chunks for Model {
    fn create(&self) -> Option<u64> {
        Some(self.made.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn at(&self, chunk: u64) -> &Chunk {
        &self.chunks[chunk as usize - 1]
    }
}

fn model() -> Arc<Model> {
    Arc::new(Model {
        ring: NoticeRing::default(),
        chunks: (0..4).map(|_| Chunk::default()).collect(),
        made: loom::sync::atomic::AtomicU64::new(0),
    })
}

/// No word is 0, so that a word that is read too early is detected.
fn notice(sender: u64, n: u64) -> MrqNotice {
    let v = sender * 16 + n + 1;
    MrqNotice {
        meta: v,
        vcq: sender + 1,
        rmt: v << 8,
        value: v << 16,
        order: v << 24,
        ready_at: v << 32,
    }
}

fn run(each: [u64; 2]) {
    let mut limits = loom::model::Builder::new();
    limits.preemption_bound = Some(3);
    limits.check(move || {
        let m = model();
        let senders: Vec<_> = [0, 1]
            .map(|sender| {
                let m = m.clone();
                thread::spawn(move || {
                    let mut recent = RecentChunk::default();
                    for n in 0..each[sender as usize] {
                        m.ring.push(&*m, &mut recent, &notice(sender, n)).unwrap();
                    }
                })
            })
            .into();
        let mut reader = m.ring.reader();
        let mut next = [0u64; 2];
        while next != each {
            let Some(n) = reader.pop(&m.ring, &*m) else {
                thread::yield_now();
                continue;
            };
            let sender = n.vcq.checked_sub(1).expect("the words are there");
            assert_eq!(n, notice(sender, next[sender as usize]));
            next[sender as usize] += 1;
        }
        for s in senders {
            s.join().unwrap();
        }
        assert_eq!(reader.pop(&m.ring, &*m), None, "nothing comes twice");
    });
}

#[test]
fn loom_two_senders_race_for_a_chunk() {
    run([1, 1]);
}

#[test]
fn loom_a_chunk_goes_back_while_others_push() {
    run([3, 1]);
}
