//! Sessions over streams in memory. The one-way delay is 10 ms without a rate limit, so a chunk
//! takes one round trip.

use super::*;
use crate::workload::fake::{Outcome, Setting, run};
use crate::{AppEvent, Role, Workload};
use plait_base::Time;
use proptest::prelude::*;

fn parse(text: &str) -> Workload {
    Workload::parse(text).unwrap()
}

fn play(text: &str) -> Outcome {
    run(&parse(text), &Setting::default(), Time::ZERO)
}

/// Returns the time and the size in bytes of each chunk request.
fn asked(outcome: &Outcome) -> Vec<(Time, u64)> {
    let due = |(at, _, event): &(Time, Role, AppEvent)| match event {
        AppEvent::MessageDue { data, .. } => Some((*at, data.len())),
        _ => None,
    };
    outcome.log.iter().filter_map(due).collect()
}

fn ms(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

#[test]
fn no_chunk_is_asked_for_while_the_buffer_is_full() {
    // Claim ecf-u9, the client's part. The connection is open at 20 ms, and a chunk of 5 s takes 20
    // ms. Playback starts with the second chunk, at 60 ms. The buffer reaches 60 s at the twelfth
    // or thirteenth chunk.
    let outcome = play("video:paper");
    assert!(outcome.done && outcome.measures.complete);
    let times: Vec<Time> = asked(&outcome).into_iter().map(|(at, _)| at).collect();
    assert_eq!(times.len(), 267);
    let quick: Vec<Time> = (0..13).map(|chunk| ms(20 + 20 * chunk)).collect();
    // After twelve chunks the buffer has 60 s less the 200 ms played, which is below the limit.
    assert_eq!(times[..13], quick);
    // Then it has 65 s less the time played since 60 ms. It is at 60 s after 5 s of playback, and
    // below it a nanosecond later. From then on one chunk is requested every 5 s.
    for (after, at) in (1..=3).zip(&times[13..]) {
        assert_eq!(*at, ms(60 + after * 5_000) + Span::from_nanos(1));
    }
    // No request while 60 s or more were buffered.
    for (chunk, at) in (0u64..).zip(&times) {
        let shown = at.since(ms(60));
        assert!(Span::from_secs(5 * chunk).minus(shown) < Span::from_secs(60), "{chunk}");
    }
    assert_eq!(outcome.measures.playback.unwrap().rebuffer_s, Some(0.0));
    assert_eq!(outcome.measures.playback.unwrap().startup_ms, Some(60.0));
}

#[test]
fn sizes_are_those_of_the_encodings() {
    // Chunks of 162, 400, 625, 1000, 2588 and 5294 kB, by their bit rates and 5 s (ECF, CoNEXT 2017).
    // The last chunk plays for 2 s.
    let clip = match parse("video:paper") {
        Workload::Video(video) => match &*video {
            Video::Adaptive(session) => session.clip.clone(),
            Video::Pattern { .. } => unreachable!(),
        },
        _ => unreachable!(),
    };
    let sizes: Vec<u64> = clip.rungs().iter().map(|rung| rung.size(0)).collect();
    assert_eq!(sizes, [162_500, 400_000, 625_000, 1_000_000, 2_587_500, 5_293_750]);
    assert_eq!((clip.chunks(), clip.rungs()[2].size(266)), (267, 250_000));
    let outcome = play("video:paper,for=10s");
    assert_eq!(asked(&outcome)[0].1, 162_500);
}

#[test]
fn a_session_ends_when_it_is_told_to() {
    let outcome = play("video:paper,for=30s");
    assert!(outcome.done && outcome.measures.complete);
    assert_eq!(outcome.end, ms(30_010));
    assert_eq!(outcome.when(Role::Client, AppEvent::Complete), Some(ms(30_000)));
    // 13 chunks at once, then one after 5, 10, 15, 20 and 25 s of playback.
    assert_eq!(asked(&outcome).len(), 18);
}

#[test]
fn a_buffer_that_runs_dry_stops_the_picture_until_the_next_chunk() {
    // The round trip is 8 s and a chunk has 5 s, so 3 s of every 8 s are missing.
    let setting = Setting { delay: Span::from_secs(4), ..Setting::default() };
    let outcome = run(&parse("video:paper,start=5s,for=100s"), &setting, Time::ZERO);
    let when = |wanted: AppEvent| {
        let client = outcome.log.iter().filter(|it| it.1 == Role::Client && it.2 == wanted);
        client.map(|it| it.0.as_nanos() / 1_000_000_000).collect::<Vec<u64>>()
    };
    // The connection is open at 8 s, and the first chunk arrives at 16 s.
    assert_eq!(when(AppEvent::Playing)[..3], [16, 24, 32]);
    assert_eq!(when(AppEvent::Stalled)[..3], [21, 29, 37]);
    let stalled = outcome.measures.playback.unwrap();
    // From 16 s to 100 s: ten stalls of 3 s. Another would start at 101 s, after the end.
    assert_eq!((stalled.rebuffer_s, stalled.startup_ms), (Some(30.0), Some(16_000.0)));
    assert_eq!(stalled.bit_rate_mbps, Some(0.26));
}

#[test]
fn the_bit_rate_is_that_of_the_chunks_that_came() {
    let setting = Setting::default();
    for (abr, least) in [("bba", 8.0), ("throughput", 8.4), ("bola", 8.0), ("mpc", 8.4)] {
        let outcome = run(&parse(&format!("video:paper,abr={abr}")), &setting, Time::ZERO);
        let rate = outcome.measures.playback.unwrap().bit_rate_mbps.unwrap();
        // Only the start limits the mean bit rate.
        assert!((least..=8.47).contains(&rate), "{abr}: {rate}");
    }
}

#[test]
fn a_pattern_asks_on_time() {
    let outcome = play("video:netflix-ipad,for=1min");
    assert!(outcome.done && outcome.measures.complete);
    let due = [0, 10_200, 20_400, 30_600, 40_800, 51_000].map(|at| ms(20 + at));
    let sizes = [15_000_000, 1_800_000, 1_800_000, 1_800_000, 1_800_000, 1_800_000];
    assert_eq!(asked(&outcome), due.into_iter().zip(sizes).collect::<Vec<_>>());
    assert_eq!(outcome.measures.message_delay_ms.map(|it| (it.mean, it.n)), Some((20.0, 6)));
    assert_eq!(outcome.measures.playback.unwrap().bit_rate_mbps, None);
}

#[test]
fn texts_read_back() {
    for text in [
        "video:paper",
        "video:paper,abr=bola,buffer=120s,start=4s,for=1200s,chunk=2s",
        "video:paper,buffer=4s",
        "video:netflix-android",
        "video:youtube-64k,for=60s,spread=7",
        "maps:90s",
        "maps:90s,median=20kB,seed=2",
    ] {
        let workload = parse(text);
        assert_eq!(workload.to_string(), text);
        assert_eq!(parse(&workload.to_string()), workload);
    }
    assert_eq!(parse("video:paper,abr=bba,start=10s").to_string(), "video:paper");
}

#[test]
fn errors_name_what_is_possible() {
    let message = |text: &str| Workload::parse(text).unwrap_err().to_string();
    assert_eq!(
        message("video:papr"),
        "unknown video `papr`, did you mean `paper`? known: paper, netflix-android, netflix-ipad, \
         youtube-64k, youtube-512k, or the file of a DASH manifest or size list"
    );
    assert!(message("video:nosuch").starts_with("unknown video `nosuch`; known: paper,"));
    assert_eq!(
        message("video:paper,abr=mcp"),
        "unknown abr `mcp`, did you mean `mpc`? known: bba, throughput, bola, mpc"
    );
    assert_eq!(message("video:paper,start=90s"), "start is above buffer");
    assert!(message("video:paper,buffer=60").starts_with("buffer: `60` has no unit"));
    assert_eq!(message("video:paper,for=0s"), "for must be above zero");
    assert!(message("video:paper,bufer=60s").contains("does not have the form `video:NAME"));
    assert!(message("video:netflix-ipad,abr=bba").contains("does not have the form"));
    assert!(message("video:paper,chunk=1ms").contains("too large"));
    assert!(message("video:youtube-64k,for=99999999s").contains("too large"));
    let missing = message("video:no/such.mpd");
    assert!(missing.starts_with("no/such.mpd: "), "{missing}");
    assert!(missing.ends_with("; name a DASH manifest (.mpd) or a size list (.json)"));
    assert!(message("maps:90").starts_with("DURATION: `90` has no unit"));
    assert!(message("maps:90s,mean=9kB").contains("does not have the form `maps:DURATION"));
    assert!(message("maps:99999999s").contains("too large"));
}

#[test]
fn what_is_neither_manifest_nor_list_is_refused_as_what_its_name_says() {
    let message = |name: &str, text: &str| {
        let read = |_: &str| Ok(text.to_owned());
        let error = Workload::parse_with(&format!("video:{name}"), &read).unwrap_err();
        error.to_string()
    };
    for (name, text) in [("a.mpd", ""), ("a.json", " \n"), ("a.mpd", "\u{feff}")] {
        assert_eq!(
            message(name, text),
            format!(
                "{name}: the file is empty; name a DASH manifest (.mpd) or a size list (.json)"
            )
        );
    }
    assert!(message("a.MPD", "Not Found").starts_with("a.MPD:1:1: no XML: "));
    assert!(message("a.json", "Not Found").contains("; a size list is an object"));
    // The first character selects the format, whatever the extension of the name.
    assert!(message("a.json", "<a/>").contains("not <MPD>"));
    assert!(message("a.mpd", "{}").contains("; a size list is an object"));
}

#[test]
fn a_broken_connection_ends_both_ends() {
    for text in ["video:paper", "video:netflix-ipad", "maps:90s"] {
        for at in [1, 25, 35, 45, 5_000] {
            let setting = Setting { fails_at: ms(at), ..Setting::default() };
            let outcome = run(&parse(text), &setting, Time::ZERO);
            assert!(outcome.done && !outcome.measures.complete, "{text} at {at}");
            for host in [Role::Client, Role::Server] {
                assert_eq!(outcome.when(host, AppEvent::Failed), Some(ms(at)), "{text}");
            }
        }
    }
}

proptest! {
    #[test]
    fn polls_that_nobody_asked_for_change_nothing(tick in 1u64..30, sndbuf in 20_000u64..500_000) {
        let tick = Span::from_millis(tick);
        for text in ["video:paper,for=20s", "video:youtube-64k,for=3s", "maps:9s"] {
            let plain = Setting { sndbuf, ..Setting::default() };
            let often = Setting { tick, ..plain };
            let (plain, often) =
                (run(&parse(text), &plain, ms(3)), run(&parse(text), &often, ms(3)));
            prop_assert_eq!(plain.log, often.log);
            prop_assert_eq!(plain.measures, often.measures);
        }
    }
}
