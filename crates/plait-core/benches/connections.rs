//! Cost of a request and its answer beside idle connections: two endpoints back to back with 1,
//! 1,000 and 10,000 connections of two subflows, one of them in use. One element is one segment.
#![allow(clippy::unwrap_used)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{endpoint, spec};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use plait_base::{ConnId, Span, Time};
use plait_core::Endpoint;

const PORT: u16 = 80;

struct Pair {
    now: Time,
    client: Endpoint,
    server: Endpoint,
    segments: u64,
}

impl Pair {
    fn new() -> Pair {
        let (client, mut server) = (endpoint(1, "client"), endpoint(1, "server"));
        server.listen(PORT, spec("minrtt", "cubic", 0..2));
        Pair { now: Time::ZERO, client, server, segments: 0 }
    }

    /// Passes segments between the endpoints, like a driver, until there are no more.
    fn carry(&mut self) {
        let before = self.segments;
        loop {
            let sent = self.segments;
            while let Some(transmit) = self.client.poll_transmit(self.now) {
                self.server.handle(self.now, transmit.path, &transmit.segment);
                self.client.recycle(transmit.segment);
                self.segments += 1;
                while self.server.poll_news().is_some() {}
            }
            while let Some(transmit) = self.server.poll_transmit(self.now) {
                self.client.handle(self.now, transmit.path, &transmit.segment);
                self.server.recycle(transmit.segment);
                self.segments += 1;
                while self.client.poll_news().is_some() {}
            }
            let due = self.client.poll_timeout().min(self.server.poll_timeout());
            if due <= self.now {
                self.client.handle_timeout(self.now);
                self.server.handle_timeout(self.now);
            } else if self.segments == sent {
                break;
            }
        }
        self.now += Span::from_micros(1 + self.segments - before);
    }

    /// Returns both ends of a new connection of two subflows.
    fn connect(&mut self, first: u32) -> (ConnId, ConnId) {
        // The rate of joins of all connections is limited.
        self.now += Span::from_millis(2);
        let client =
            self.client.connect(self.now, PORT, spec("minrtt", "cubic", first..first + 2)).unwrap();
        self.carry();
        let server = self.server.poll_accept().expect("an accepted connection");
        self.exchange((client, server));
        assert_eq!(self.client.ports(client).map(|it| it.len()), Some(2));
        (client, server)
    }

    /// Exchanges a request and an answer of 100 bytes.
    fn exchange(&mut self, (client, server): (ConnId, ConnId)) {
        self.client.write(self.now, client, 100).unwrap();
        self.carry();
        assert_eq!(self.server.skip(self.now, server, 1_000).unwrap(), 100);
        self.server.write(self.now, server, 100).unwrap();
        self.carry();
        assert_eq!(self.client.skip(self.now, client, 1_000).unwrap(), 100);
        self.carry();
    }
}

fn connections(c: &mut Criterion) {
    let mut group = c.benchmark_group("a request beside idle connections");
    group.sample_size(20);
    for many in [1_u32, 1_000, 10_000] {
        let mut pair = Pair::new();
        let used = pair.connect(0);
        // Ports repeat. Paths make the conversations of one port different.
        for n in 1..many {
            pair.connect(2 * n);
        }
        let before = pair.segments;
        pair.exchange(used);
        group.throughput(Throughput::Elements(pair.segments - before));
        group.bench_function(BenchmarkId::from_parameter(many), |b| b.iter(|| pair.exchange(used)));
    }
    group.finish();
}

criterion_group!(benches, connections);
criterion_main!(benches);
