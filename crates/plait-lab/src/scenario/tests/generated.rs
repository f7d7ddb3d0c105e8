//! Random scenarios are written and read back.

use super::*;
use proptest::prelude::*;

fn any_path() -> impl Strategy<Value = String> {
    let delay = prop_oneof![
        (1u64..600_000_000).prop_map(|n| format!("rtt={n}us")),
        (0u64..1_000_000_000, 0u64..1_000_000)
            .prop_map(|(a, b)| format!("owd_up={a}ns,owd_down={b}us")),
        (0u64..9, 1u64..9).prop_map(|(a, b)| format!("rtt={a}ns@0s/{b}ms@{b}s/1us@9s")),
        (0u64..9, 1u64..9).prop_map(|(a, b)| format!("owd_up={a}ns@0s/{b}ms@1s,owd_down={b}s@0s")),
    ];
    let rate = prop_oneof![
        (1u64..1_000_000_000).prop_map(|n| format!("rate={n}bit")),
        (1u64..9_999).prop_map(|n| format!("rate_up={n}kbit,rate_down=inf")),
        (1u64..99, 1u64..99)
            .prop_map(|(a, b)| format!("rate={a}mbit@0s/{b}.5mbit@{b}ms,rate_up=1mbit")),
        Just("trace=a.down".to_owned()),
        Just("trace=a.down,rate_up=3mbit,offset=random".to_owned()),
        Just("rate=1mbit,trace_up=b.csv,offset=1.5s".to_owned()),
        (1u64..99, 1u64..99).prop_map(|(a, b)| format!("rate={a}mbit/{b}kbit~{b}s")),
    ];
    let more = prop::sample::subsequence(
        vec![
            "loss=1.25%",
            "jitter=3ms",
            "queue=50ms",
            "backup",
            "nic=1gbit",
            "aqm=codel",
            "reorder=1%:5ms",
            "duplicate=0.5%",
            "corrupt=2%",
            "edit=0.1%",
            "strip=data@2s..3s",
            "via=cell",
            "loss_up=ge:p=1%,r=30%,bad=50%,good=0.1%",
            "mtu=1500@0s/1280@2s",
            "down=1s..2s,down=3s..",
            "gone=1s..2s,gone=3s..",
            "loss=0%",
        ],
        0..16,
    );
    let profile = prop::sample::select(PROFILES.iter().map(|it| it.name).collect::<Vec<_>>());
    prop_oneof![
        4 => (delay, rate, more.clone()).prop_map(|(delay, rate, more)| {
            let mut fields = vec![delay, rate];
            let both = more.contains(&"loss=1.25%");
            fields.extend(more.iter().filter(|it| !both || **it != "loss=0%").map(|it| (*it).to_owned()));
            format!("NAME:{}", fields.join(","))
        }),
        1 => (profile.clone(), more).prop_map(|(profile, more)| {
            let both = more.contains(&"loss=1.25%");
            let more = more.iter().filter(|it| !both || **it != "loss=0%");
            let more: String = more.map(|it| format!(",{it}")).collect();
            format!("NAME:profile={profile}{more}")
        }),
        1 => profile.prop_map(|profile| format!("NAME:profile={profile},rate_up=1mbit,jitter=0s")),
    ]
}

fn any_settings() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    prop::sample::subsequence(
        vec![
            ("schedulers", "ecf:beta=0.5,floor=off,minrtt+rp:mode=retransmit"),
            ("cc", "lia,olia:quality=l2/r"),
            ("runs", "7"),
            ("seed", "18446744073709551615"),
            ("join", "after-synack"),
            ("ssthresh", "64KiB"),
            ("initial-window", "3"),
            ("delayed-ack", "off"),
            ("idle-restart", "rfc5681"),
            ("slow-start", "linux"),
            ("prr", "rfc6937"),
            ("loss-detection", "sack-probe"),
            ("rto", "rfc200"),
            ("mtu", "1280"),
            ("rcvbuf", "auto:6seg"),
            ("sndbuf", "1.5MB"),
            ("until", "90s"),
            ("ideal", "on"),
            ("check", "on"),
            ("wire", "on"),
            ("jobs", "2"),
            ("compete", "olia:quality=l2/r@p0*3"),
            ("vary", "p0.loss=0%..1%:3"),
            ("expect", "tcp:p0/lia.completion_ms.p95 < 1e3 * 1.05"),
        ],
        0..21,
    )
    .prop_map(|mut list| {
        if list.iter().any(|(name, _)| *name == "ideal") {
            list.retain(|(name, _)| *name != "compete");
        }
        // The expectation names one of two controllers, so it needs `cc`.
        if !list.iter().any(|(name, _)| *name == "cc") {
            list.retain(|(name, _)| *name != "expect");
        }
        list
    })
}

fn any_arguments() -> impl Strategy<Value = Vec<(String, String)>> {
    (prop::collection::vec(any_path(), 1..5), any_settings()).prop_map(|(paths, settings)| {
        let named = paths.iter().enumerate();
        let mut list: Vec<(String, String)> = named
            .map(|(at, path)| ("path".to_owned(), path.replacen("NAME", &format!("p{at}"), 1)))
            .collect();
        list.push(("workload".to_owned(), "download:15seg".to_owned()));
        list.push(("link".to_owned(), "cell:rate=9mbit,aqm=codel:target=1ms,rtt=2ms".to_owned()));
        list.extend(settings.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())));
        list
    })
}

fn refs(list: &[(String, String)]) -> Vec<(&str, &str)> {
    list.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect()
}

proptest! {
    #[test]
    fn every_scenario_reads_back_from_its_line_and_its_file(list in any_arguments()) {
        let scenario = build(&refs(&list)).unwrap();
        let line = scenario.command_line();
        let again = from_line(&line);
        prop_assert_eq!(&again, &scenario);
        prop_assert_eq!(again.command_line(), line);
        let toml = scenario.to_toml();
        let file = RawScenario::from_toml("x", &toml).and_then(|raw| raw.build_point(&read));
        prop_assert_eq!(file.unwrap(), scenario);
    }

    #[test]
    fn no_text_panics(
        path in "\\PC{0,40}",
        fields in "([a-z_]{1,8}|rtt|rate|down|trace|[:=,./@%]|[0-9]{1,22}|ms|mbit|a\\.down){0,16}",
        setting in prop::sample::select(SETTINGS.iter().map(|it| it.name).collect::<Vec<_>>()),
        text in "\\PC{0,20}",
    ) {
        let _ = with_path(&path);
        if let Err(error) = with_path(&format!("a:{fields}")) {
            prop_assert!(error.to_string().lines().count() <= 3);
        }
        let base = [("path", "wifi-home"), ("workload", "download:1MB"), (setting, text.as_str())];
        if let Err(error) = build(&base) {
            prop_assert!(error.to_string().lines().count() <= 3);
        }
    }

    #[test]
    fn no_mutated_scenario_panics(
        list in any_arguments(),
        at in any::<prop::sample::Index>(),
        byte in any::<prop::sample::Index>(),
        with in "\\PC{0,3}",
        cut in 0usize..4,
    ) {
        let mut mutated = list.clone();
        let (_, text) = &mut mutated[at.index(list.len())];
        let chars: Vec<char> = text.chars().collect();
        let from = byte.index(chars.len() + 1);
        let to = (from + cut).min(chars.len());
        *text = chars[..from].iter().copied().chain(with.chars()).chain(chars[to..].iter().copied()).collect();
        if let Err(error) = build(&refs(&mutated)) {
            prop_assert!(error.to_string().lines().count() <= 3);
        }
        let toml = build(&refs(&list)).unwrap().to_toml();
        let chars: Vec<char> = toml.chars().collect();
        let from = byte.index(chars.len() + 1);
        let to = (from + cut).min(chars.len());
        let toml: String =
            chars[..from].iter().copied().chain(with.chars()).chain(chars[to..].iter().copied()).collect();
        let read = RawScenario::from_toml("x", &toml).and_then(|raw| raw.build_point(&read));
        if let Err(error) = read {
            prop_assert!(error.to_string().lines().count() <= 3);
        }
    }
}
