//! HyStart leaves slow start before a deep queue overflows, and costs nothing without a deep queue.

use crate::common::{limited, ms, tcp};
use plait_cc::HyStart;
use plait_core::Config;
use plait_link::QueueLimit;

#[test]
fn a_deep_queue_is_not_overrun() {
    let run = |hystart: HyStart| {
        let mut path = limited("lte", 20, ms(60));
        path.down.queue = QueueLimit::Bytes(400_000);
        let config = Config::default().with(|it| it.window.hystart = hystart);
        let outcome = tcp(path, "cubic", &config, "download:4MB");
        let measures = outcome.pairs[0][0].measures.clone();
        (outcome.links[0].0.dropped_queue, measures.completion_ms.unwrap_or(f64::INFINITY))
    };
    let (drops, time) = run(HyStart::Off);
    assert!(drops > 100, "{drops} dropped without HyStart");
    for hystart in [HyStart::PlusPlus, HyStart::Linux, HyStart::Linux3] {
        let (careful_drops, careful_time) = run(hystart);
        assert!(careful_drops < drops / 5, "{hystart:?}: {careful_drops} dropped, {drops} without");
        assert!(careful_time < 1.1 * time, "{hystart:?}: {careful_time} ms, {time} ms without");
    }
}
