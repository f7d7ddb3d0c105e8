//! Time in ns of one decision of each scheduler, with two and with eight subflows.
//!
//! Every window is full except two: the slowest subflow has room, and the fastest has room for one
//! segment in every other decision. So schedulers compare these two. For schedulers that assign
//! ahead, two windows are assigned to the fastest subflow. A second series adds the cost of an
//! acknowledgement: the view with new numbers of one subflow, the decision, and the notice for
//! schedulers that need it.

#![allow(clippy::panic, reason = "the model is that of the tests")]

#[path = "../tests/model/mod.rs"]
mod model;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use model::{MSS, Model, subflow};
use plait_base::{DataRange, Dsn, Span, SubflowId};
use plait_sched::{LeftEdge, Notice, Outcome, SCHEDULERS, Spec, SubflowView};
use std::hint::black_box;
use std::time::Duration;

const WINDOW: u64 = 40 * MSS;

/// Creates a connection in the middle of a transfer. The fastest subflow has `room` bytes of room.
fn connection(count: u8, ahead: bool, room: u64) -> Model {
    let subflows = (0..count).map(|id| {
        let mut it = subflow(id, Span::from_millis(25 + 50 * u64::from(id)), WINDOW);
        it.ssthresh = Some(20 * MSS);
        it.rttvar = Span::from_millis(3);
        it.inflight = if id + 1 < count { WINDOW } else { 0 };
        it
    });
    let mut model = Model::new(subflows.collect(), 2_000 * MSS);
    for at in 0..u64::from(count - 1) {
        let range = DataRange::with_len(Dsn::new(at * WINDOW), WINDOW);
        model.queue.record(range, SubflowId(at as u8));
    }
    model.connection.snd_nxt = Dsn::new(u64::from(count - 1) * WINDOW);
    if ahead {
        let planned = DataRange::with_len(model.connection.snd_nxt, 2 * WINDOW);
        model.assign(&[(planned, SubflowId(0))]);
    }
    model.subflows[0].inflight -= room;
    model.connection.unsent = model.queue.unsent.len();
    model.connection.wnd_end = Dsn::new(6 << 20);
    model
}

fn decisions(c: &mut Criterion) {
    for count in [2, 8] {
        let mut group = c.benchmark_group(format!("decision, {count} subflows"));
        group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(1));
        for entry in SCHEDULERS {
            let models = [0, MSS].map(|room| connection(count, entry.queues_ahead, room));
            group.bench_function(BenchmarkId::from_parameter(entry.about.name), |b| {
                let (mut scheduler, mut out) = (Spec::of(entry).build(), Outcome::default());
                let views = [models[0].view(), models[1].view()];
                let mut turn = 0;
                b.iter(|| {
                    turn ^= 1;
                    out.clear();
                    scheduler.schedule(black_box(&views[turn]), &mut out)
                });
            });
        }
        group.finish();
    }
}

fn acknowledgements(c: &mut Criterion) {
    for count in [2, 8] {
        let mut group = c.benchmark_group(format!("view + decision + event, {count} subflows"));
        group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(1));
        for entry in SCHEDULERS {
            let mut models = [0, MSS].map(|room| connection(count, entry.queues_ahead, room));
            let fresh: Vec<Vec<SubflowView>> =
                models.iter().map(|it| it.subflows.clone()).collect();
            group.bench_function(BenchmarkId::from_parameter(entry.about.name), |b| {
                let (mut scheduler, mut out) = (Spec::of(entry).build(), Outcome::default());
                let edge = Some(LeftEdge { first: SubflowId(0), again: false });
                let (mut turn, mut at) = (0, 0);
                b.iter(|| {
                    turn ^= 1;
                    at = (at + 1) % usize::from(count);
                    let model = &mut models[turn];
                    model.subflows[at] = black_box(&fresh)[turn][at];
                    let view = model.view();
                    out.clear();
                    let decision = scheduler.schedule(black_box(&view), &mut out);
                    if scheduler.needs().data_acks {
                        scheduler.on_notice(
                            &view,
                            Notice::DataAck { old: Dsn::ZERO, new: Dsn::new(MSS), edge },
                        );
                    }
                    decision
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, decisions, acknowledgements);
criterion_main!(benches);
