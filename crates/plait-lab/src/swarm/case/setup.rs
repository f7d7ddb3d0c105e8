//! Builds the run of a case.

use super::{Case, CaseError, End, EndCase, PathCase};
use crate::swarm::fault::Reading;
use crate::swarm::swarm_app::{Content, Plan};
use plait_base::{PathId, Rate, Span, Time};
use plait_core::{Config, ConnectionSpec, KernelBuffers, KernelRules, Pacing, PathConfig};
use plait_link::{Aqm, Impairments, LinkConfig, QueueLimit, RateSource};
use plait_sim::{ConnectionSetup, MiddleboxConfig, PairSetup, PathSetup, Setup, SharedLink};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// The server's second address.
const SECOND_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

impl Case {
    /// Returns the set-up of the run.
    ///
    /// # Errors
    /// If the scheduler or controller is unknown. In parsed and drawn cases both are known.
    pub(in crate::swarm) fn setup(&self) -> Result<Setup, CaseError> {
        let heals = self.heals();
        let mut paths: Vec<PathSetup> =
            self.paths.iter().enumerate().map(|(index, path)| path.setup(index, heals)).collect();
        for fault in &self.faults {
            fault.apply(heals, &mut paths);
        }
        let shared = self.paths.iter().any(|path| path.shared).then(|| {
            let link = || LinkConfig::new(rate(self.shared_kbps), Span::from_millis(1));
            SharedLink { name: "shared".to_owned(), down: link(), up: link() }
        });
        let connection = |index: u32| -> Result<ConnectionSetup, CaseError> {
            Ok(ConnectionSetup {
                client: self.spec(&self.client)?,
                server: self.spec(&self.server)?,
                // The applications of the swarm do the work; this workload only disables further measures.
                workload: plait_app::Workload::Bulk { duration: Span::from_nanos(1) },
                start: Time::ZERO + Span::from_millis(100 * u64::from(index)),
            })
        };
        let connections = (0..self.connections).map(connection).collect::<Result<_, _>>()?;
        Ok(Setup {
            seed: self.seed,
            paths,
            shared: shared.into_iter().collect(),
            pairs: vec![
                PairSetup { connections, background: false, memory: self.pair_memory() };
                self.pairs as usize
            ],
            until: heals + self.grace(),
            check: true,
            wire: self.settings.wire,
            linger: true,
            send_cost: Span::from_nanos(self.settings.send_cost_ns),
        })
    }

    fn spec(&self, end: &EndCase) -> Result<ConnectionSpec, CaseError> {
        let scheduler =
            plait_sched::Spec::parse(&self.scheduler).map_err(|error| CaseError::new(&error))?;
        let controller =
            plait_cc::Spec::parse(&self.controller).map_err(|error| CaseError::new(&error))?;
        let path = |(index, path): (usize, &PathCase)| PathConfig {
            backup: path.backup,
            cost: path.cost,
            quota: (path.quota_bytes > 0).then_some(path.quota_bytes),
            ..PathConfig::new(PathId(index as u32))
        };
        Ok(ConnectionSpec {
            config: self.config(end),
            paths: self.paths.iter().enumerate().map(path).collect(),
            addresses: self.settings.second_address.then_some(SECOND_ADDRESS).into_iter().collect(),
            scheduler: Arc::new(move || scheduler.build()),
            controller: Arc::new(move |_| controller.build()),
        })
    }

    fn config(&self, end: &EndCase) -> Config {
        let settings = &self.settings;
        // The kernel doubles the value of SO_RCVBUF.
        let set = 2 * end.rcvbuf_bytes;
        let kernel =
            KernelBuffers { first_rcvbuf: set, most_rcvbuf: set, ..KernelBuffers::LINUX_6_18 };
        let rules = if settings.kernel { KernelRules::LINUX_6_18 } else { KernelRules::default() };
        Config::default().with(|it| {
            it.buffers.kernel = settings.kernel.then_some(kernel);
            it.kernel_rules = rules;
            it.multipath = end.multipath;
            it.packets.mtu = end.mtu_bytes;
            let times = if end.grows { 8 } else { 1 };
            it.buffers.rcvbuf = end.rcvbuf_bytes.saturating_mul(times);
            it.buffers.sndbuf = end.sndbuf_bytes.saturating_mul(times);
            it.buffers.rcvbuf_first = Some(end.rcvbuf_bytes);
            it.buffers.sndbuf_first = Some(end.sndbuf_bytes);
            it.window.initial = settings.initial_window;
            it.window.ssthresh = (settings.ssthresh_bytes > 0).then_some(settings.ssthresh_bytes);
            it.window.hystart = settings.hystart;
            it.joins.timing = settings.join;
            it.recovery.rto = settings.rto;
            it.window.idle_restart = settings.idle_restart;
            it.delayed_ack = end.delayed_ack;
            it.checksum = end.checksum;
            it.tsq = settings.tsq;
            it.window.reduce_from = settings.reduce_from; // A wait that begins after the faults have healed has to end within the grace.
            it.timeouts.fin = super::GRACE.over(2);
            it.joins.probe = settings.probes.then_some(Config::PROBE);
            it.joins.per_pair = settings.subflows;
            it.window.pacing = settings.pacing.then(Pacing::default);
            it.recovery.undo = settings.undo;
            it.recovery.prr = settings.prr;
        })
    }

    /// Returns the plan of the application at `end`.
    pub(in crate::swarm) fn plan(&self, end: End) -> Plan {
        let (own, peer) = (self.end(end), self.end(end.other()));
        let mut reading = Reading { heals: self.heals(), ..Reading::default() };
        for fault in &self.faults {
            fault.hold_reader(end, &mut reading);
        }
        let content = |sender: End| {
            let salt = self.seed ^ u64::from(sender == End::Server);
            self.end(sender).real_bytes.then(|| Content::new(salt))
        };
        Plan {
            send: own.send_bytes,
            expect: peer.send_bytes,
            finish: own.finish,
            write: own.write_bytes,
            every: Span::from_millis(own.write_every_ms),
            reading,
            own: content(end),
            peer: content(end.other()),
        }
    }
}

fn rate(kbps: u64) -> RateSource {
    RateSource::Fixed(Rate::from_bps(kbps * 1_000))
}

impl PathCase {
    fn setup(&self, index: usize, heals: Time) -> PathSetup {
        let rtt = Span::from_micros(self.rtt_us);
        let link = |delay| {
            let plain = LinkConfig::new(rate(self.rate_kbps), delay);
            LinkConfig {
                queue: match self.queue_packets {
                    0 => plain.queue,
                    packets => QueueLimit::Packets(packets),
                },
                aqm: if self.codel { Aqm::CODEL } else { Aqm::DropTail },
                impairments: Impairments {
                    jitter: Span::from_micros(self.jitter_us),
                    heals,
                    ..plain.impairments
                },
                ..plain
            }
        };
        PathSetup {
            name: format!("p{index}"),
            down: link(rtt.over(2)),
            up: link(rtt.minus(rtt.over(2))),
            nic_down: Rate::from_bps(1_000_000_000),
            nic_up: Rate::from_bps(1_000_000_000),
            via: self.shared.then_some(0),
            middlebox: MiddleboxConfig::default(),
            removed: Vec::new(),
            resting: Vec::new(),
        }
    }
}
