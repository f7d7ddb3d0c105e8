//! The samples are written by hand, in the form that each tool documents.
use super::*;

fn input<'a>(file: &'a str, text: &'a str) -> Input<'a> {
    Input { file, text, changed_s: 1_795_815_132, direction: Direction::Down }
}

fn read_text(text: &str) -> Finding {
    read(&input("sample", text)).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the value of a key, its range, and its day.
fn of(finding: &Finding, key: &str) -> (String, String, String) {
    let link = join("a", std::slice::from_ref(finding)).link;
    let known = link.value(key).unwrap_or_else(|| panic!("no {key}"));
    let range = known.range.clone().map(|(low, high)| format!("{low}..{high}"));
    let value = known.value.clone().unwrap_or_else(|| "unknown".to_owned());
    (value, range.unwrap_or_default(), known.date.clone())
}

const PING: &str = "PING far (192.0.2.7) 56(84) bytes of data.\n\
    64 bytes from 192.0.2.7: icmp_seq=1 ttl=57 time=22.4 ms\n\
    64 bytes from 192.0.2.7: icmp_seq=2 ttl=57 time=22.0 ms\n\
    64 bytes from 192.0.2.7: icmp_seq=3 ttl=57 time=24.8 ms\n\
    64 bytes from 192.0.2.7: icmp_seq=3 ttl=57 time=90.1 ms (DUP!)\n\
    64 bytes from 192.0.2.7: icmp_seq=5 ttl=57 time=26.8 ms\n\n\
    --- far ping statistics ---\n5 packets transmitted, 4 received, 20% packet loss, time 4006ms\n\
    rtt min/avg/max/mdev = 22.000/24.000/26.800/1.900 ms\n";

#[test]
fn a_ping_has_an_rtt_and_no_rate() {
    let found = read_text(PING);
    assert_eq!(found.form, "ping output");
    assert_eq!(of(&found, "rtt").0, "22.000ms");
    // The mean of the four answers is 24 ms, 2 ms above the least.
    assert_eq!(of(&found, "jitter").0, "2.000ms");
    // One of five says nothing about the loss.
    assert_eq!(
        (of(&found, "loss").0, of(&found, "loss_up").0),
        ("unknown".into(), "unknown".into())
    );
    assert!(found.remark.as_ref().unwrap().contains("; unknown loss: 5 pings are too few"));
    for rate in ["rate_down", "rate_up"] {
        assert_eq!(of(&found, rate).0, "unknown");
    }
    assert!(found.remark.unwrap().starts_with("unknown rate: a ping does not show it"));
}

#[test]
fn other_pings_are_read() {
    let mac = "64 bytes from 192.0.2.7: icmp_seq=0 ttl=57 time=31.250 ms\n\
        3 packets transmitted, 3 packets received, 0.0% packet loss\n\
        round-trip min/avg/max/stddev = 31.250/32.000/33.000/0.500 ms\n";
    assert_eq!(of(&read_text(mac), "rtt").0, "31.250ms");
    let quiet = "10 packets transmitted, 10 packets received, 0% packet loss\n\
        round-trip min/avg/max = 8.100/8.500/9.900 ms\n";
    let found = read_text(quiet);
    assert_eq!((of(&found, "rtt").0, of(&found, "loss").0), ("8.100ms".into(), "unknown".into()));
    let long =
        quiet.replace("10 packets t", "100 packets t").replace("10 packets r", "80 packets r");
    // One of five is lost on either way: 1 - sqrt(0.8).
    assert_eq!(of(&read_text(&long), "loss").0, "10.55728%");
    let lost = "PING far\n\n3 packets transmitted, 0 received, 100% packet loss, time 2044ms\n";
    let error = read(&input("lost.txt", lost)).unwrap_err().to_string();
    assert!(error.contains("`lost.txt`: the ping has no answer\n  ping a host"), "{error}");
}

/// Returns a test of so many seconds at these rates.
fn iperf(setup: &str, seconds: &[f64], end: &str) -> String {
    let interval = |(at, mbps): (usize, &f64)| {
        format!(r#"{{"sum":{{"start":{at},"bits_per_second":{},"omitted":false}}}}"#, mbps * 1e6)
    };
    let all: Vec<String> = seconds.iter().enumerate().map(interval).collect();
    format!(
        r#"{{"start":{{"version":"iperf 3.12","timestamp":{{"timesecs":1795815132}},
        "tcp_mss_default":1448,"test_start":{{{setup}}}}},"intervals":[{}],"end":{{{end}}}}}"#,
        all.join(",")
    )
}

#[test]
fn iperf3_gives_the_rate_of_its_direction() {
    let end = r#""streams":[{"sender":{"min_rtt":24000,"max_rtt":84000,"retransmits":12}}],
        "sum_received":{"bits_per_second":18000000}"#;
    let text = iperf(r#""protocol":"TCP","reverse":1"#, &[9.0, 18.0, 17.0, 19.0, 18.0], end);
    let found = read_text(&text);
    // 18 Mbit/s x 1500 / 1448.
    let (rate, range, day) = of(&found, "rate_down");
    assert_eq!((rate.as_str(), day.as_str()), ("18.646mbit", "2026-11-27"));
    // The first second is not counted: 17.3 to 18.7 in the middle eight tenths.
    assert_eq!(range, "17.921mbit..19.372mbit");
    assert_eq!(of(&found, "rate_up").0, "unknown");
    assert_eq!(
        (of(&found, "rtt").1, of(&found, "queue").0),
        ("12.000ms..24.000ms".into(), "60.000ms".into())
    );
    let remark = found.remark.unwrap();
    assert!(remark.ends_with("the other direction (iperf3 -c HOST -J)"), "{remark}");
    let both = end.to_owned() + r#","sum_received_bidir_reverse":{"bits_per_second":5000000}"#;
    let text = iperf(r#""protocol":"TCP","reverse":0"#, &[9.0, 18.0, 17.0, 19.0, 18.0], &both);
    let found = read_text(&text);
    assert_eq!(of(&found, "rate_up").0, "18.646mbit");
    assert_eq!(of(&found, "rate_down").0, "5.180mbit");
}

#[test]
fn datagrams_show_a_rate_only_if_some_are_lost() {
    let setup = r#""protocol":"UDP","blksize":1448,"reverse":1"#;
    let end = |lost: &str| format!(r#""sum":{{"bits_per_second":20000000,"lost_percent":{lost}}}"#);
    let free = read_text(&iperf(setup, &[20.0], &end("0")));
    assert_eq!(of(&free, "rate_down").0, "unknown");
    // 20 Mbit/s x 75 % x 1476 / 1448.
    let full = read_text(&iperf(setup, &[20.0], &end("25")));
    assert_eq!(of(&full, "rate_down").0, "15.290mbit");
}

#[test]
fn a_failed_test_is_an_error() {
    for text in [
        r#"{"start":{},"intervals":[],"end":{},"error":"unable to connect"}"#,
        r#"{"error":"unable to connect"}"#,
    ] {
        let error = read(&input("a.json", text)).unwrap_err().to_string();
        assert!(error.contains("`a.json`: the test failed: unable to connect\n"), "{error}");
    }
    let text = r#"{"start":{},"intervals":[],"end":{}}"#;
    let error = read(&input("a.json", text)).unwrap_err().to_string();
    assert!(error.contains("has no result\n  let iperf3 run to its end"), "{error}");
}

#[test]
fn speed_tests_are_read() {
    let ookla = r#"{"type":"result","timestamp":"2026-11-20T10:00:00Z",
        "ping":{"jitter":0.4,"latency":12.5,"low":12.0,"high":13.0},
        "download":{"bandwidth":2500000,"bytes":30000000,"elapsed":12000,
            "latency":{"iqm":60.0,"low":12.0,"high":112.5,"jitter":9.0}},
        "upload":{"bandwidth":500000,"bytes":6000000,"elapsed":12000},"packetLoss":0.5}"#;
    let found = read_text(ookla);
    // 2.5 MB/s are 20 Mbit/s of payload.
    assert_eq!((found.form, of(&found, "rate_down").0.as_str()), ("Ookla JSON", "20.718mbit"));
    assert_eq!(of(&found, "rate_up").0, "4.144mbit");
    assert_eq!(
        of(&found, "rtt"),
        ("12.000ms".into(), "11.765ms..12.500ms".into(), "2026-11-20".into())
    );
    assert_eq!(
        (of(&found, "queue").0, of(&found, "loss").0),
        ("100.000ms".into(), "0.50000%".into())
    );
    // One line for each step, as --format=jsonl writes.
    let lines = format!("{{\"type\":\"ping\",\"ping\":{{}}}}\n{}\n", ookla.replace('\n', " "));
    assert_eq!(of(&read_text(&lines), "rate_up").0, "4.144mbit");
    let libre = r#"[{"timestamp":"2026-11-21T10:00:00.5Z","server":{"name":"a","url":"b"},
        "bytes_sent":1,"bytes_received":1,"ping":18.0,"jitter":2.0,"upload":8.0,"download":30.0}]"#;
    let found = read_text(libre);
    assert_eq!((found.form, of(&found, "rate_down").0.as_str()), ("LibreSpeed JSON", "31.077mbit"));
    assert_eq!(
        (of(&found, "rtt").0, of(&found, "jitter").0),
        ("18.000ms".into(), "3.000ms".into())
    );
    // It writes bits per second, and no jitter.
    let old = r#"{"timestamp":"2026-11-21T10:00:00Z","ping":18.0,"upload":8000000.0,"download":30000000.0}"#;
    assert_eq!(of(&read_text(old), "rate_down").0, "31.077mbit");
    let none = r#"{"timestamp":"2026-11-21T10:00:00Z","ping":18.0,"upload":0,"download":0}"#;
    assert!(read(&input("a", none)).unwrap_err().to_string().contains("no rate"));
}

const SS: &str = "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n\
    ESTAB 0 0 10.0.0.1:22 10.0.0.9:5000\n\t cubic rto:204 rtt:1.0/0.5 mss:1448 cwnd:10 bytes_sent:300 \
    delivery_rate 900Mbps app_limited minrtt:0.9\n\
    ESTAB 0 900000 10.0.0.1:80 10.0.0.9:5001\n\t cubic wscale:7,7 rto:320 rtt:95.2/3.1 mss:1448 pmtu:1500 \
    cwnd:140 bytes_sent:12000000 bytes_retrans:24000 bytes_acked:11800000 send 17038655bps \
    pacing_rate 20446000bps delivery_rate 16200000bps busy:6000ms minrtt:21.5\n";

#[test]
fn the_kernels_view_of_the_largest_connection_counts() {
    let found = read_text(SS);
    // 16.2 Mbit/s x 1500 / 1448.
    assert_eq!(of(&found, "rate_down").0, "16.782mbit");
    assert_eq!(
        (of(&found, "rtt").0, of(&found, "rate_up").0),
        ("21.500ms".into(), "unknown".into())
    );
    assert_eq!(of(&found, "loss").1, "0.00000%..0.20000%");
    let up = Input { direction: Direction::Up, ..input("ss.txt", SS) };
    assert_eq!(of(&read(&up).unwrap(), "rate_up").0, "16.782mbit");
    let idle = SS.split("ESTAB 0 900000").next().unwrap();
    let found = read_text(idle);
    assert_eq!(of(&found, "rate_down").0, "unknown");
    assert!(found.remark.unwrap().contains("did not limit the connection"));
}

#[test]
fn a_log_of_cake_autorate_has_rates_under_load() {
    let mut log = "SYSLOG; 2026-11-20-10:00:00; 1; Starting cake-autorate\nDATA_HEADER; LOG_DATETIME; \
        LOG_TIMESTAMP; PROC_TIME_US; DL_ACHIEVED_RATE_KBPS; UL_ACHIEVED_RATE_KBPS; DL_OWD_US; UL_OWD_US; \
        DL_LOAD_CONDITION; UL_LOAD_CONDITION\n"
        .to_owned();
    for at in 0..40 {
        let (rate, load) = if at % 2 == 0 { (20_000, "dl_high_bb") } else { (500, "dl_low") };
        log += &format!(
            "DATA; 2026-11-20-10:00:{at:02}; {at}; {at}; {rate}; 300; {}; 15000; {load}; ul_low\n",
            15_000 + at * 10
        );
    }
    let found = read_text(&log);
    assert_eq!(
        (found.form, of(&found, "rate_down").0.as_str()),
        ("cake-autorate log", "20.000mbit")
    );
    assert_eq!(of(&found, "rate_up").0, "unknown");
    let remark = found.remark.clone().unwrap();
    assert!(remark.starts_with("unknown rate_up: the log has no time under high load"), "{remark}");
    let short: Vec<&str> = log.lines().take(18).collect();
    let remark = read_text(&short.join("\n")).remark.unwrap();
    assert!(
        remark.contains("unknown rate_down: the log has 8 samples under high load"),
        "{remark}"
    );
    assert_eq!(
        of(&found, "rtt"),
        ("30.004ms".into(), "28.575ms..31.504ms".into(), "2026-11-20".into())
    );
    let empty = log.lines().take(2).collect::<Vec<_>>().join("\n");
    assert!(read(&input("log", &empty)).unwrap_err().to_string().contains("no line DATA"));
}

#[test]
fn a_trace_stays_a_trace() {
    let found = read(&input("lte.down", "0\n5\n5\n10\n")).unwrap();
    assert_eq!((found.form, of(&found, "trace").0.as_str()), ("Mahimahi trace", "lte.down"));
    // Four packets of 12 kbit in 10 ms.
    assert!(found.remark.as_deref().unwrap().contains("4.80 Mbit/s"), "{found:?}");
    let ping = read_text(PING);
    let Joined { link, remarks } = join("lte", &[found.clone(), ping]);
    assert!(link.value("rate_down").is_none() && link.value("rtt").is_some(), "{link:?}");
    assert!(remarks.is_empty(), "{remarks:?}");
    // A measured rate beside it is left out, with a remark.
    let libre = r#"{"ping":18.0,"jitter":2.0,"upload":8.0,"download":30.0}"#;
    let Joined { link, remarks } = join("lte", &[found, read_text(libre)]);
    assert!(link.value("rate_down").is_none() && link.value("rate_up").is_some(), "{link:?}");
    assert_eq!(
        remarks,
        ["rate_down: the trace counts (Mahimahi trace: lte.down), and the mean rate is left out \
          (LibreSpeed: sample)"]
    );
    for (text, problem) in [
        ("7\n5\n", "line 2: the times fall"),
        ("0\n", "no time"),
        ("1\n99999999999999999999\n", "line 2"),
    ] {
        let error = read(&input("a", text)).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn what_a_tool_measures_for_its_own_sake_counts() {
    let end = r#""streams":[{"sender":{"min_rtt":24000,"max_rtt":84000,"retransmits":12}}],
        "sum_received":{"bits_per_second":18000000}"#;
    let iperf = read_text(&iperf(r#""protocol":"TCP","reverse":1"#, &[18.0; 5], end));
    let ping = read_text(PING);
    for order in [[ping.clone(), iperf.clone()], [iperf, ping]] {
        let link = join("wifi", &order).link;
        assert_eq!(link.value("rtt").unwrap().value.as_deref(), Some("22.000ms"));
        assert_eq!(link.value("rate_down").unwrap().value.as_deref(), Some("18.646mbit"));
        assert_eq!(link.value("queue").unwrap().value.as_deref(), Some("60.000ms"));
    }
}

/// Two tests of one rate: the mean, and a range that holds both. A remark says so if they disagree.
#[test]
fn tests_that_disagree_give_a_wide_range_and_a_remark() {
    let test = |file: &str, mbit: f64| {
        let text = format!(
            r#"{{"timestamp":"2026-11-21T10:00:00Z","ping":18.0,"jitter":2.0,"upload":8.0,"download":{mbit}}}"#
        );
        read(&input(file, &text)).unwrap()
    };
    let (slow, fast) = (test("slow", 20.0), test("fast", 80.0));
    let joined = join("a", &[slow.clone(), fast.clone()]);
    assert_eq!(joined, join("a", &[fast, slow.clone()]));
    let rate = joined.link.value("rate_down").unwrap();
    // Payload to IP bytes: 1500 / 1448. The mean of 20 and 80 is 40 by logarithms.
    assert_eq!(rate.value.as_deref(), Some("41.436mbit"));
    assert_eq!(rate.range, Some(("18.016mbit".to_owned(), "95.304mbit".to_owned())));
    assert_eq!(rate.source, "LibreSpeed: fast, LibreSpeed: slow");
    assert_eq!(
        joined.remarks,
        [
            "rate_down: the files disagree: 20.718mbit (LibreSpeed: slow) and 82.873mbit (LibreSpeed: fast); \
          the range holds all"
        ]
    );
    // Close results need no remark.
    assert!(join("a", &[slow, test("other", 22.0)]).remarks.is_empty());
}

/// A speed test measures the loss; ss shows a limit of it only.
#[test]
fn a_measured_loss_counts_more_than_a_limit() {
    let ookla = r#"{"ping":{"latency":12.5,"low":12.0},"download":{"bandwidth":2500000},
        "upload":{"bandwidth":500000},"packetLoss":0.5}"#;
    for all in [[read_text(ookla), read_text(SS)], [read_text(SS), read_text(ookla)]] {
        let link = join("a", &all).link;
        assert_eq!(link.value("loss").unwrap().value.as_deref(), Some("0.50000%"));
    }
}

#[test]
fn connections_over_another_device_are_named() {
    let line = |sent: u64| {
        format!(
            "\t cubic rto:231 rtt:30.5/1.2 mss:1428 cwnd:120 bytes_sent:{sent} delivery_rate 20.5Mbps minrtt:22.1\n"
        )
    };
    let two = |second: u64| {
        format!(
            "tcp ESTAB 0 0 10.0.0.2%wlan0:5000 10.0.0.1:443\n{}tcp ESTAB 0 0 [fd00::2]%wwan0:5001 [fd00::1]:443\n{}",
            line(50_000_000),
            line(second)
        )
    };
    let remark = read_text(&two(30_000_000)).remark.unwrap();
    assert!(remark.contains("only the connections of 10.0.0.2%wlan0 count"), "{remark}");
    assert!(remark.contains("those of [fd00::2]%wwan0 may use another link"), "{remark}");
    // A few bytes are no transfer.
    assert_eq!(read_text(&two(300)).remark, None);
}

#[test]
fn an_unknown_form_names_the_forms() {
    for text in ["", "hello", "{\"a\":1}", "1.5\n2.5\n", "[1,2]"] {
        let error = read(&input("a.txt", text)).unwrap_err().to_string();
        assert!(error.starts_with("`a.txt`: ") && error.contains("iperf3 JSON"), "{text}: {error}");
    }
}

#[test]
fn impossible_values_are_unknown_and_have_a_remark() {
    let ping = "1 packets transmitted, 1 received\nrtt min/avg/max/mdev = nan/nan/nan/nan ms\n";
    let slow = "64 bytes from 10.0.0.1: icmp_seq=1 time=700000 ms\n";
    let fast =
        r#"{"download":{"bandwidth":1e300},"upload":{"bandwidth":1e6},"ping":{"latency":12.5}}"#;
    for (text, key) in [(ping, "rtt"), (slow, "rtt"), (fast, "rate_down")] {
        let found = read_text(text);
        let remark = found.remark.clone().unwrap();
        assert!(remark.contains(&format!("unknown {key}: ")), "{remark}");
        assert!(remark.contains("no link has "), "{remark}");
        let link = join("a", &[found]).link;
        assert_eq!(link.value(key).unwrap().value, None, "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(at in 0_usize..6, cut in 0.0..1.0_f64, with in ".{0,40}") {
        let samples = [PING, SS, "DATA_HEADER; A\nDATA; 1\n", "1\n2\n", "{\"download\":{}}",
            "{\"start\":{},\"end\":{\"sum_received\":{\"bits_per_second\":1e300}}}"];
        let text = samples[at];
        let mut middle = (text.len() as f64 * cut) as usize;
        while !text.is_char_boundary(middle) { middle -= 1; }
        let text = format!("{}{with}{}", &text[..middle], &text[middle..]);
        let _ = read(&input("a", &text)).map(|found| join("a", &[found]));
    }
}
