//! Random subflows for the schedulers that assign ahead.

use super::{MSS, subflow};
use plait_base::{Span, SubflowId};
use plait_sched::SubflowView;
use proptest::prelude::*;

/// Random windows, loads and RTTs, in whole segments.
pub(crate) fn any_path() -> impl Strategy<Value = SubflowView> {
    let window = (1..80_u64, 0..100_u64, 0..60_u64, prop::option::of(1..120_u64));
    (window, 1..400_000_u64, 1..400_000_u64).prop_map(
        |((cwnd, inflight, queued, ssthresh), srtt_us, last_us)| SubflowView {
            inflight: inflight * MSS,
            queued: queued * MSS,
            ssthresh: ssthresh.map(|segments| segments * MSS),
            last_rtt: Some(Span::from_micros(last_us)),
            ..subflow(0, Span::from_micros(srtt_us), cwnd * MSS)
        },
    )
}

/// Two to five random subflows.
pub(crate) fn any_paths() -> impl Strategy<Value = Vec<SubflowView>> {
    prop::collection::vec(any_path(), 2..6).prop_map(|mut paths| {
        for (path, id) in paths.iter_mut().zip(0..) {
            path.id = SubflowId(id);
        }
        paths
    })
}
