//! Time in ns of one acknowledgement in congestion avoidance for each controller, with two and with
//! eight flows. As in the connection, all flows are described again for each acknowledgement. If
//! the controller does not couple, only its own flow is described.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use plait_base::{Span, Time};
use plait_cc::{Ack, CONTROLLERS, Congestion, Flow, Flows, HyStart, Settings, Spec};
use std::hint::black_box;
use std::time::Duration;

const SETTINGS: Settings = Settings {
    mss: 1448,
    initial_window: 10,
    ssthresh: None,
    slow_start_limit: 2,
    hystart: HyStart::Off,
};

/// Flow `nth`: 20 to 80 segments, 20 to 90 ms, in congestion avoidance.
fn flow(nth: usize) -> Flow {
    let nth = nth as u64;
    let cwnd = 1448 * (20 + 60 * (nth % 3) / 2);
    Flow {
        cwnd,
        ssthresh: Some(cwnd / 2),
        srtt: Some(Span::from_millis(20 + 10 * nth)),
        mss: 1448,
        in_recovery: false,
        live: true,
        loss_interval: 1_000_000 - 50_000 * nth,
    }
}

fn acks(c: &mut Criterion) {
    for count in [2, 8] {
        let mut group = c.benchmark_group(format!("ack, {count} flows"));
        group.warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(2));
        let start: Vec<Flow> = (0..count).map(flow).collect();
        for entry in CONTROLLERS {
            let spec = Spec::of(entry).with_bdp(40 * 1448);
            group.bench_function(BenchmarkId::from_parameter(entry.about.name), |b| {
                let resumed = |flow| Congestion::resumed(SETTINGS, spec.build(), flow);
                let mut windows: Vec<Congestion> = start.iter().map(resumed).collect();
                let srtt = Span::from_millis(20);
                let mut now = Time::ZERO;
                let mut since_round = 0_u32;
                b.iter(|| {
                    now += Span::from_micros(300);
                    since_round += 1;
                    let round = since_round == 40;
                    if round {
                        since_round = 0;
                        // Keeps the window in its range during the measurement.
                        windows[0].set_cwnd(40 * 1448);
                    }
                    let ack = Ack {
                        now,
                        bytes: 1448,
                        rtt: Some(srtt + Span::from_micros(u64::from(since_round))),
                        srtt,
                        min_rtt: srtt,
                        cwnd_limited: true,
                        round,
                        acked: 0,
                        sent: 0,
                    };
                    if windows[0].couples() {
                        let mut all = [start[0]; 8];
                        for (nth, (flow, window)) in all.iter_mut().zip(&windows).enumerate() {
                            *flow = window.flow(start[nth].srtt, true);
                        }
                        let flows = Flows { all: &all[..windows.len()], own: 0 };
                        windows[0].on_ack(black_box(&ack), flows);
                    } else {
                        let alone = [windows[0].flow(Some(srtt), true)];
                        windows[0].on_ack(black_box(&ack), Flows { all: &alone, own: 0 });
                    }
                    black_box(windows[0].cwnd())
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, acks);
criterion_main!(benches);
