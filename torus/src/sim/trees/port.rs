//! The work of a port on pieces that pass through its rank.

/// The pieces that arrive in a step; those of all senders are combined together.
#[derive(Clone)]
pub struct Received {
    /// By piece, when it has arrived from the last sender, ns.
    pub arrivals: Vec<f64>,
    /// Time to poll for a piece of each sender, and to combine or copy these, ns.
    pub ns: f64,
}

impl Received {
    /// Whether none of these pieces arrives before the same one of `other`, or takes less time. What a port does with
    /// them alone then ends no earlier.
    pub fn is_never_before(&self, other: &Received) -> bool {
        let mut pairs = self.arrivals.iter().zip(&other.arrivals);
        self.ns >= other.ns && pairs.all(|(late, early)| late >= early)
    }
}

/// The pieces that leave in a step.
#[derive(Clone, Copy)]
pub struct Sent {
    /// Messages for each piece.
    pub n: usize,
    /// Time to post a message, ns.
    pub post_ns: f64,
    /// Time to copy a message before the post, ns.
    pub copy_ns: f64,
    /// Time before the first piece, ns.
    pub first_ns: f64,
    /// Time of other work after the posts of a piece, ns.
    pub after_ns: f64,
}

/// The post of a piece's messages in a step.
#[derive(Clone, Copy, Debug)]
pub struct Post {
    /// The index of the step.
    pub of: usize,
    /// When the messages are posted, ns.
    pub at_ns: f64,
}

/// Performs a port's work from a time on: a piece is received step after step, then sent step after step. Of the
/// possible actions the port takes posts first, then the lowest step and piece. Returns its posts in order, and when
/// all is done.
pub fn drive(
    received: &[Received],
    sent: &[Sent],
    from_ns: f64,
    pieces: usize,
) -> (Vec<Post>, f64) {
    let mut t = from_ns;
    let (mut n_received, mut n_sent) = (vec![0; received.len()], vec![0; sent.len()]);
    let mut posts = Vec::with_capacity(pieces * sent.len());
    loop {
        let all_here = n_received.last().copied().unwrap_or(pieces);
        let ready = |of: usize| if of == 0 { all_here } else { n_sent[of - 1] };
        if let Some(of) = (0..sent.len()).find(|&of| n_sent[of] < ready(of)) {
            let Sent { n, post_ns, copy_ns, first_ns, after_ns } = sent[of];
            let first_ns = if n_sent[of] == 0 { first_ns } else { 0.0 };
            t += first_ns + n as f64 * copy_ns + post_ns;
            posts.push(Post { of, at_ns: t });
            t += (n as f64 - 1.0) * post_ns + after_ns;
            n_sent[of] += 1;
            continue;
        }
        let open = |of: usize| {
            let before = if of == 0 { pieces } else { n_received[of - 1] };
            (n_received[of] < before).then(|| received[of].arrivals[n_received[of]])
        };
        let is_here = |&of: &usize| open(of).is_some_and(|arrival| arrival <= t);
        if let Some(of) = (0..received.len()).find(is_here) {
            t += received[of].ns;
            n_received[of] += 1;
            continue;
        }
        match (0..received.len()).filter_map(open).min_by(f64::total_cmp) {
            Some(arrival) => t = arrival,
            None => return (posts, t),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn posts_come_first_and_pieces_in_order() {
        let received = [
            Received { arrivals: vec![10.0, 11.0], ns: 5.0 },
            Received { arrivals: vec![30.0, 12.0], ns: 5.0 },
        ];
        let sent = [Sent { n: 2, post_ns: 1.0, copy_ns: 0.0, first_ns: 100.0, after_ns: 7.0 }];
        let (posts, end) = drive(&received, &sent, 0.0, 2);
        // The second step's first piece comes at 30; then two posts; the other piece has waited.
        let at: Vec<f64> = posts.iter().map(|post| post.at_ns).collect();
        assert_eq!(at, [30.0 + 5.0 + 101.0, 30.0 + 5.0 + 102.0 + 7.0 + 5.0 + 1.0]);
        assert_eq!(end, at[1] + 1.0 + 7.0);
    }

    proptest! {
        #[test]
        fn what_is_never_before_ends_no_earlier(
            pieces in proptest::collection::vec((0.0..100.0, 0.0..50.0), 1..20),
            ns in [0.0..9.0, 0.0..9.0],
            n_steps in 0usize..4,
        ) {
            let (early, late) = pieces.iter().map(|&(at, delay)| (at, at + delay)).unzip();
            let early = Received { arrivals: early, ns: ns[0] };
            let late = Received { arrivals: late, ns: ns[0] + ns[1] };
            prop_assert!(late.is_never_before(&early));
            let sent = Sent { n: 2, post_ns: 3.0, copy_ns: 1.0, first_ns: 9.0, after_ns: 2.0 };
            let run = |received| drive(&[received], &vec![sent; n_steps], 5.0, pieces.len());
            let ((early, early_end), (late, late_end)) = (run(early), run(late));
            prop_assert!(late_end >= early_end);
            for (late, early) in late.iter().zip(&early) {
                prop_assert!(late.of == early.of && late.at_ns >= early.at_ns);
            }
        }
    }

    /// A root has all pieces from the start: it sends one step's, then the next's.
    #[test]
    fn a_root_sends_step_after_step() {
        let step = || Sent { n: 1, post_ns: 1.0, copy_ns: 0.0, first_ns: 0.0, after_ns: 0.0 };
        let (posts, end) = drive(&[], &[step(), step()], 0.0, 3);
        let order: Vec<_> = posts.iter().map(|post| post.of).collect();
        assert_eq!(order, [0, 0, 0, 1, 1, 1]);
        assert_eq!(end, 6.0);
    }
}
