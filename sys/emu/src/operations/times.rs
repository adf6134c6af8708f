//! Times at which the parts of operations take place, with a latency model or in the late mode.

use crate::limits::ids::{VcqPlace, without_path};
use crate::operations::remote::length;
use crate::queues::desc::{Op, OpAction};
use crate::queues::targets;
use crate::queues::vcq::{OpOrder, Vcq};
use crate::timing::model::{MessageRoute, OpTimes};
use utofu_sys::*;

/// Latency model: returns the times at which the parts of an operation become visible. Without jitter, and for strongly
/// ordered operations, they follow the VCQ's earlier operations on the same target.
#[cold]
pub(crate) fn times(vcq: &Vcq, order: &mut OpOrder, op: &Op, len: u32) -> OpTimes {
    let mut times = unordered(vcq, order, op, len);
    let earlier = order.last.entry(without_path(op.vcq)).or_default();
    if vcq.context.job.model.keeps_order() || op.has(UTOFU_ONESIDED_FLAG_STRONG_ORDER) {
        times = times.after(*earlier);
    }
    *earlier = earlier.after(times);
    times
}

/// Latency model: returns the times of an operation, whatever was posted before it.
fn unordered(vcq: &Vcq, order: &mut OpOrder, op: &Op, len: u32) -> OpTimes {
    let job = &*vcq.context.job;
    let node = job.node_of(vcq.context.rank);
    let there = VcqPlace::of(op.vcq).ok().and_then(|place| job.tni_of(op.vcq, place));
    let Some((target, other)) = there else { return OpTimes::default() };
    let own = vcq.tni_record();
    let same_node = node == target;
    let is_get = matches!(op.action, OpAction::Get { .. });
    let len = u64::from(len);
    let mut route = MessageRoute {
        now: job.now(),
        same_node,
        hops: job.hops(node, target),
        processor: &vcq.busy_until,
        from: &own.busy_until,
        path: job.model.shares_links(len, same_node).then(|| match is_get {
            false => (&job.header().links, job.path(node, target, &other.arriving)),
            true => (&job.header().links, job.path(target, node, &own.arriving)),
        }),
    };
    let times = if is_get {
        route.from = &other.busy_until;
        job.model.get(len, &route)
    } else {
        job.model.put(len, &route)
    };
    job.model.jittered(times, &mut order.random)
}

/// Returns the times at which the late device executes the parts of an operation. The sends follow the order of the
/// posts; the other parts are ordered only for strongly ordered operations.
#[cold]
pub(crate) fn late_times(vcq: &Vcq, order: &mut OpOrder, op: &Op) -> OpTimes {
    let job = &vcq.context.job;
    let start = match targets::find(job, op.vcq) {
        Some(_) if job.model.has_latency() => unordered(vcq, order, op, length(op)),
        _ => OpTimes { sent: job.now(), remote: 0, local: 0 },
    };
    // The sends of the VCQ to all targets, under an id that no target has.
    let sends = order.last.entry(UTOFU_VBG_ID_NULL).or_default();
    let sent = (start.sent + order.random.late_delay()).max(sends.sent);
    sends.sent = sent;
    let earlier = order.last.entry(without_path(op.vcq)).or_default();
    let mut remote = start.remote.max(sent) + order.random.late_delay();
    if op.has(UTOFU_ONESIDED_FLAG_STRONG_ORDER) {
        remote = remote.max(earlier.remote);
    }
    let mut local = start.local.max(remote) + order.random.late_delay();
    if op.has(UTOFU_ONESIDED_FLAG_STRONG_ORDER) {
        local = local.max(earlier.local);
    }
    let times = OpTimes { sent, remote, local };
    *earlier = earlier.after(times);
    times
}
