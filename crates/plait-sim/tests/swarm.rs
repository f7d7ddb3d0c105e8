//! Random networks against the invariants. Each seed draws paths, faults, buffers, a scheduler, a
//! controller, a join timing and a workload; faults heal; everything must be done, in order and
//! once, and both ends must have taken leave.
//!
//! `PLAIT_SEEDS=N` runs N seeds, `PLAIT_SEED=S` starts at S (and a failure names the line that runs
//! its seed alone).

mod common;

use common::{limited, ms, spec};
use plait_app::Workload;
use plait_base::{Chance, Span, Stream, Time};
use plait_cc::IdleRestart;
use plait_core::{Config, ConnectionStats, JoinTiming, RtoMode};
use plait_link::{Aqm, GilbertElliott, LinkConfig, LossModel, Reorder};
use plait_sim::{ConnectionSetup, PairSetup, PathSetup, Setup, SharedLink, run};

/// Everything has healed by then.
const HEALED: Span = Span::from_secs(20);
/// And must be done by then.
const DEADLINE: Span = Span::from_secs(120);
/// A burst's warm-up sends 200 segments on each path, one a round trip on a lossy one.
const BURST_DEADLINE: Span = Span::from_secs(600);

fn pick<'a, T>(stream: &mut Stream, from: &'a [T]) -> &'a T {
    &from[stream.below(from.len() as u64) as usize]
}

fn draw_path(stream: &mut Stream, index: usize) -> PathSetup {
    let mbit = stream.within(1, 40);
    let rtt = ms(*pick(stream, &[2, 10, 25, 60, 150, 400]));
    let mut path = limited(&format!("p{index}"), mbit, rtt);
    if stream.below(2) == 0 {
        // Loss heals by a lossless, if slow, future: random loss up to 5 % each way stays.
        let loss = Chance::from_ppb(stream.within(1, 50_000_000) as u32);
        path.down.loss = loss.into();
        path.up.loss = if stream.below(2) == 0 { loss } else { Chance::NEVER }.into();
    }
    if stream.below(3) == 0 {
        path.down.jitter = ms(stream.within(1, 30));
        path.up.jitter = ms(stream.within(1, 30));
    }
    if stream.below(3) == 0 {
        let from = Time::ZERO + ms(stream.below(3_000));
        let to = from + ms(stream.within(50, 8_000));
        path.down.outages.push((from, to.min(Time::ZERO + HEALED)));
        if stream.below(4) != 0 {
            path.up.outages.push((from, to.min(Time::ZERO + HEALED)));
        }
    }
    path
}

/// What may go wrong with packets on their way. It does not heal, but it lets enough through.
fn draw_mishaps(stream: &mut Stream, link: &mut LinkConfig) {
    let chance = |stream: &mut Stream| Chance::from_ppb(stream.within(1, 30_000_000) as u32);
    match stream.below(4) {
        0 => {
            let by = ms(stream.within(1, 60));
            link.reorder = Reorder { chance: chance(stream), by };
        }
        1 => link.duplicate = chance(stream),
        2 => link.corrupt = chance(stream),
        _ => {
            let burst = GilbertElliott {
                p: chance(stream),
                r: Chance::from_ppb(stream.within(200_000_000, 900_000_000) as u32),
                bad: Chance::from_ppb(stream.within(100_000_000, 800_000_000) as u32),
                good: Chance::NEVER,
            };
            link.loss = LossModel::GilbertElliott(burst);
        }
    }
    if stream.below(4) == 0 {
        link.aqm = Aqm::CODEL;
    }
}

/// A link that paths may go through together.
fn draw_shared(stream: &mut Stream, paths: &mut [PathSetup]) -> Vec<SharedLink> {
    if stream.below(4) != 0 {
        return Vec::new();
    }
    for path in paths {
        path.via = (stream.below(3) != 0).then_some(0);
    }
    let mut both = limited("shared", stream.within(2, 40), ms(stream.within(0, 20)));
    if stream.below(2) == 0 {
        draw_mishaps(stream, &mut both.down);
    }
    vec![SharedLink { name: both.name, down: both.down, up: both.up }]
}

fn draw(seed: u64) -> Setup {
    let mut stream = Stream::new(seed, &["swarm"]);
    let mut paths: Vec<PathSetup> =
        (0..stream.within(2, 4)).map(|index| draw_path(&mut stream, index as usize)).collect();
    let mut mishaps = Stream::new(seed, &["swarm", "mishaps"]);
    for link in paths.iter_mut().flat_map(|path| [&mut path.down, &mut path.up]) {
        if mishaps.below(3) == 0 {
            draw_mishaps(&mut mishaps, link);
        }
    }
    let shared = draw_shared(&mut mishaps, &mut paths);
    let names: Vec<&str> = plait_sched::SCHEDULERS.iter().map(|entry| entry.name).collect();
    let mut scheduler = (*pick(&mut stream, &names)).to_owned();
    if stream.below(3) == 0 {
        scheduler.push_str("+rp");
    }
    let controller = *pick(&mut stream, &["reno", "cubic", "lia", "olia"]);
    let config = Config {
        multipath: stream.below(8) != 0,
        rcvbuf: *pick(&mut stream, &[1_500, 8_000, 65_536, 300_000, 6 << 20]),
        sndbuf: *pick(&mut stream, &[3_000, 65_536, 400_000, 4 << 20]),
        join: *pick(
            &mut stream,
            &[JoinTiming::AfterData, JoinTiming::AfterSynAck, JoinTiming::Simultaneous],
        ),
        rto: *pick(&mut stream, &[RtoMode::Linux, RtoMode::Rfc, RtoMode::Rfc200]),
        idle_restart: *pick(
            &mut stream,
            &[IdleRestart::Linux, IdleRestart::Rfc5681, IdleRestart::Off],
        ),
        delayed_ack: stream.below(4) != 0,
        ssthresh: (stream.below(2) == 0).then_some(64 << 10),
        ..Config::default()
    };
    // A window takes a round trip: what a small one carries must be done in time.
    let window = config.rcvbuf.min(config.sndbuf);
    let size = stream.within(1_000, 1_000_000.min(60 * window));
    let workload = match stream.below(5) {
        3 | 4 if window < 65_536 => format!("download:{size}B"),
        0 | 1 => format!("download:{size}B"),
        2 => format!("upload:{size}B"),
        3 => "burst:15seg".to_owned(),
        _ => "stream:5kB@50ms,for=2s".to_owned(),
    };
    let deadline = if workload.starts_with("burst") { BURST_DEADLINE } else { DEADLINE };
    let mut spec = spec(&scheduler, controller, paths.len(), config);
    if stream.below(5) == 0 {
        let last = spec.paths.len() - 1;
        spec.paths[last].backup = true;
    }
    let connections = (0..stream.within(1, 2))
        .map(|index| ConnectionSetup {
            client: spec.clone(),
            server: spec.clone(),
            workload: Workload::parse(&workload).expect("workload"),
            start: Time::ZERO + ms(100 * index),
        })
        .collect();
    let pairs = vec![PairSetup { connections, background: false }; stream.within(1, 2) as usize];
    Setup { seed, paths, shared, pairs, until: Time::ZERO + deadline, check: true, linger: true }
}

fn verdict(seed: u64) -> Result<u64, String> {
    let setup = draw(seed);
    let outcome = run(&setup);
    if let Some(violation) = outcome.violation {
        return Err(violation);
    }
    if !outcome.complete() {
        let open = outcome.pairs.iter().flatten().filter(|connection| !connection.complete);
        let ends = open.map(|connection| {
            let state = |end: &Option<ConnectionStats>| {
                end.as_ref().map_or_else(
                    || "none".into(),
                    |end| {
                        let flows = end.subflows.iter().map(|s| {
                            format!(
                                " [{} on {:?}{}{} cwnd {} inflight {}]",
                                s.subflow,
                                s.path,
                                if s.up { " up" } else { "" },
                                if s.potentially_failed { " pf" } else { "" },
                                s.cwnd,
                                s.inflight
                            )
                        });
                        format!(
                            "{:?} {} unacked{}",
                            end.state,
                            end.unacked,
                            flows.collect::<String>()
                        )
                    },
                )
            };
            format!(
                "\n  server {}\n  client {}",
                state(&connection.server),
                state(&connection.client)
            )
        });
        return Err(format!("not done at {:?}:{}", outcome.ended, ends.collect::<String>()));
    }
    Ok(outcome.digest.value())
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_networks_break_nothing() {
    let first = number("PLAIT_SEED", 1);
    let alone = std::env::var("PLAIT_SEED").is_ok() && std::env::var("PLAIT_SEEDS").is_err();
    let seeds = if alone { 1 } else { number("PLAIT_SEEDS", 200) };
    let mut failures = Vec::new();
    for seed in first..first + seeds {
        if let Err(why) = verdict(seed) {
            let setup = draw(seed);
            let config = &setup.pairs[0].connections[0];
            failures.push(format!(
                "seed {seed}: {why}\n  {} {:?}\n  replay: PLAIT_SEED={seed} cargo test -p plait-sim --test swarm",
                config.workload, config.client.config
            ));
        }
    }
    assert!(failures.is_empty(), "{} of {seeds}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_seed_replays_bit_for_bit() {
    for seed in 1_000..1_010 {
        assert_eq!(verdict(seed), verdict(seed), "seed {seed}");
    }
}
