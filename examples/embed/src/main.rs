//! Embeds the protocol core: two endpoints, two paths in virtual time, and a transfer of 1 MB.
use plait_base::{PathId, RandomStream, Span, Time};
use plait_core::{Config, ConnectionSpec, Endpoint, Entropy, PathConfig};
use plait_wire::Segment;
use std::{collections::VecDeque, error::Error, sync::Arc};

/// Payload bytes of the transfer.
const BYTES: u64 = 1_000_000;
/// One-way delay of each path.
const DELAYS: [Span; 2] = [Span::from_millis(10), Span::from_millis(30)];

/// One direction of a path: when each segment arrives, and the segment.
type Queue = VecDeque<(Time, Box<Segment>)>;

/// Keys and initial sequence numbers. A live program draws them from the operating system.
struct Seeded(RandomStream);

impl Entropy for Seeded {
    fn bits(&mut self) -> u64 {
        self.0.bits()
    }
}

fn endpoint(name: &str) -> Endpoint {
    Endpoint::new(Box::new(Seeded(RandomStream::new(1, &[name]))))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (scheduler, controller) =
        (plait_sched::Spec::parse("minrtt")?, plait_cc::Spec::parse("lia")?);
    let path = |id| PathConfig::new(PathId(id));
    let spec = Arc::new(ConnectionSpec {
        config: Config::default(),
        paths: vec![path(0), path(1)],
        addresses: Vec::new(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |_| controller.build()),
    });
    let mut ends = [endpoint("client"), endpoint("server")];
    ends[1].listen(80, Arc::clone(&spec));
    let client = ends[0].connect(Time::ZERO, 80, spec)?;
    let mut queues: [[Queue; 2]; 2] = Default::default();
    let (mut now, mut server, mut written, mut received) = (Time::ZERO, None, 0, 0);
    while received < BYTES {
        written += ends[0].write(now, client, BYTES - written)?;
        for (end, queues) in ends.iter_mut().zip(&mut queues) {
            while end.poll_news().is_some() {}
            while let Some(sent) = end.poll_transmit(now) {
                let path = sent.path.0 as usize;
                queues[path].push_back((now + DELAYS[path], sent.segment));
            }
        }
        let arrivals = queues.iter().flatten().filter_map(|queue| Some(queue.front()?.0));
        now = arrivals.chain(ends.iter().map(Endpoint::poll_timeout)).min().ok_or("stalled")?;
        for from in 0..2 {
            for (path, queue) in queues[from].iter_mut().enumerate() {
                while let Some((_, segment)) = queue.pop_front_if(|(at, _)| *at <= now) {
                    ends[1 - from].handle(now, PathId(path as u32), &segment);
                }
            }
            ends[from].handle_timeout(now);
        }
        server = server.or_else(|| ends[1].poll_accept());
        if let Some(server) = server {
            received += ends[1].skip(now, server, BYTES)?;
        }
    }
    println!("{received} bytes in {} ms", now.as_nanos() / 1_000_000);
    for subflow in ends[0].stats(client).ok_or("no connection")?.subflows {
        println!("path {}: {} bytes", subflow.path.0, subflow.carried.sent);
    }
    Ok(())
}
