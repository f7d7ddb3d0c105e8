//! Paths: keys, defaults, profiles, and refused values.

use super::*;

#[test]
fn a_plain_path_has_its_defaults() {
    let wifi = path("wifi:rtt=25ms,rate=25mbit");
    let links = wifi.links(false, 1);
    assert_eq!(links.link.down.delay, Span::from_micros(12_500));
    assert_eq!(links.link.up.delay, Span::from_micros(12_500));
    assert!(matches!(links.link.up.rate, RateSource::Fixed(rate) if rate.as_bps() == 25_000_000));
    // 100 ms at 25 Mbit/s.
    assert_eq!(links.link.down.queue, QueueLimit::Bytes(312_500));
    assert_eq!(links.nic.as_bps(), 1_000_000_000);
    assert!(!links.usage.backup && !wifi.is_random(false));
    let slow = path("slow:rtt=25ms,rate=1mbit").links(false, 1);
    assert_eq!(slow.link.down.queue, QueueLimit::Bytes(15_000));
}

#[test]
fn an_odd_round_trip_is_split_without_loss() {
    let odd = path("a:rtt=3ns,rate=1mbit");
    assert_eq!((odd.delay.down.start.as_nanos(), odd.delay.up.start.as_nanos()), (1, 2));
    let uneven = path("a:owd_down=10ms,owd_up=30ms,rate=1mbit");
    assert_eq!(uneven.report(false).delays.rtt_us, 40_000);
}

#[test]
fn every_key_is_understood() {
    let it = path(
        "a:rtt=40ms,rate_down=10mbit@0s/4mbit@20s,rate_up=2mbit,queue=100pkt,loss=1%,loss_up=0.5%,\
         jitter=2ms,down=1s..3s,down=9s..,gone=4s..5s,gone=6s..,nic=inf,backup,aqm=droptail,\
         mtu=1500@0s/1280@2s",
    );
    let links = it.links(false, 1);
    assert!(matches!(&links.link.down.rate, RateSource::Steps(steps) if steps.len() == 2));
    assert_eq!(links.link.down.queue, QueueLimit::Packets(100));
    assert_eq!(links.link.down.impairments.loss.mean().as_ppb(), 10_000_000);
    assert_eq!(links.link.up.impairments.loss.mean().as_ppb(), 5_000_000);
    assert_eq!(links.link.up.impairments.jitter, Span::from_millis(2));
    let second = |n| Time::ZERO + Span::from_secs(n);
    assert_eq!(links.link.up.outages, [(second(1), second(3)), (second(9), Time::NEVER)]);
    assert_eq!(links.link.up.mtu, [(second(0), 1_500), (second(2), 1_280)]);
    assert_eq!(
        path("a:rtt=1ms,rate=1mbit,mtu=600").links(true, 1).link.down.mtu,
        [(second(0), 600)]
    );
    assert_eq!(it.gone, [(second(4), second(5)), (second(6), Time::NEVER)]);
    assert!(links.nic.is_infinite() && links.usage.backup && it.is_random(false));
}

#[test]
fn a_rate_may_be_drawn_anew() {
    let it = path("a:rtt=40ms,rate=1mbit/4mbit/7mbit~40s");
    assert!(it.is_random(false) && !it.is_random(true));
    assert_eq!(it.report(false).rates.rate_down_bps, Some(4_000_000));
    let links = it.links(false, 3);
    let text = |rate: &RateSource| format!("{rate:?}");
    assert_eq!(text(&links.link.down.rate), text(&links.link.up.rate));
    assert_ne!(text(&links.link.down.rate), text(&it.links(false, 4).link.down.rate));
    assert_eq!(it.fields()[1], ("rate", "1mbit/4mbit/7mbit~40s".to_owned()));
    for text in ["1mbit~40s", "1mbit/0mbit~40s", "1mbit/inf~40s", "1mbit/2mbit~1ms", "1mbit/2mbit~"]
    {
        let error = build(&[("path", &format!("a:rtt=1ms,rate={text}")), ("workload", "bulk:1s")]);
        assert!(error.is_err(), "{text}");
    }
}

#[test]
fn a_trace_replaces_the_rate_and_frees_the_way_up() {
    let it = path("a:rtt=40ms,trace=a.down");
    let links = it.links(false, 1);
    // 1500 bytes per millisecond are 12 Mbit/s. The queue is 100 ms at this rate.
    assert_eq!(it.report(false).rates.rate_down_bps, Some(12_000_000));
    assert_eq!(links.link.down.queue, QueueLimit::Bytes(150_000));
    assert!(matches!(links.link.up.rate, RateSource::Fixed(Rate::INFINITE)));
    assert_eq!(links.link.up.queue, QueueLimit::Infinite);
    assert!(!it.is_random(false));
    let random = path("a:rtt=40ms,trace=a.down,trace_up=b.csv,offset=random");
    let offset = |seed| match random.links(false, seed).link.up.rate {
        RateSource::Trace { offset, .. } => offset,
        _ => Span::MAX,
    };
    assert!(random.is_random(false) && offset(1) == offset(1) && offset(1) != offset(2));
}

#[test]
fn profiles_are_paths_that_can_be_changed() {
    let home = path("wifi-home");
    assert_eq!(home.report(false).rates.rate_down_bps, Some(20_000_000));
    assert_eq!(home.links(false, 1).link.down.queue, QueueLimit::Bytes(60_000));
    let mine = path("mine:profile=wifi-home,loss=2%");
    assert_eq!((mine.impairments.down.loss.mean().as_ppb(), mine.delay), (20_000_000, home.delay));
    let cafe = path("wifi-cafe");
    assert!(cafe.is_random(false));
    assert!(!path("lte-verizon").is_random(false) && path("lte-att").is_random(true));
    let steps = |seed| match cafe.links(false, seed).link.down.rate {
        RateSource::Steps(steps) => steps,
        _ => Vec::new(),
    };
    assert!(steps(1) == steps(1) && steps(1) != steps(2) && !steps(1).is_empty());
}

#[test]
fn an_ideal_path_needs_no_rate_and_has_no_queue() {
    assert_eq!(refused("a:rtt=10ms").fault, Fault::Missing);
    let ideal = build(&[("path", "a:rtt=10ms"), ("workload", "burst:15seg"), ("ideal", "on")]);
    let ideal = ideal.unwrap();
    let links = ideal.links(1).remove(0);
    assert!(matches!(links.link.down.rate, RateSource::Fixed(Rate::INFINITE)));
    assert!(links.nic.is_infinite() && links.link.down.queue == QueueLimit::Infinite);
    assert!(!ideal.connection(true).delayed_ack);
    assert_eq!(ideal.effective_runs(), 1);
    assert_eq!(ideal.paths[0].report(true).rates.rate_down_bps, None);
}

#[test]
fn a_refusal_says_what_is_wrong() {
    for (text, part) in [
        ("", "unknown profile"),
        ("wifi-hom", "did you mean `wifi-home`?"),
        (":rtt=1ms,rate=1mbit", "the path has no name"),
        ("a b:rtt=1ms,rate=1mbit", "not a path's name"),
        ("a:", "the path has no rtt"),
        ("a:rtt=1ms", "the path has no rate"),
        ("a:rtt=1ms,rate_down=1mbit", "the path has no rate_up"),
        ("a:rtt=1ms,rate=25", "no unit"),
        ("a:rtt=1ms,rate=25mbti", "did you mean `mbit`?"),
        ("a:rtt=1ms,rate=20M", "write `20mbit` or `160mbit`"),
        ("a:rtt=1ms,rate=20MB/s", "`20MB/s` counts bytes: write `160mbit`"),
        ("a:delay=1ms,rate=1mbit", "rtt=TIME for both ways together, or owd_down=TIME and"),
        ("a:latency=1ms,rate=1mbit", "owd_down=TIME and owd_up=TIME for each"),
        ("a:rtt=1ms,speed=1mbit", "did you mean `rate`?"),
        ("a:rtt=1ms,rate=1mbit,buffer=50ms", "did you mean `queue`?"),
        ("a:rtt=1ms,rate=1mbit,bw=1mbit", "`rate` is given twice"),
        ("a:rtt=1ms,rate=0mbit", "a rate of zero"),
        ("a:rtt=25,rate=1mbit", "no unit"),
        ("a:rtt=1ms,rate_dwn=1mbit", "did you mean `rate_down`?"),
        ("a:rtt=1ms,rate=1mbit,loss=101%", "allowed: from 0% to 100%"),
        ("a:rtt=1ms,rtt=2ms,rate=1mbit", "`rtt` is given twice"),
        ("a:rtt=1ms,owd_up=2ms,rate=1mbit", "rtt is given as well"),
        ("a:owd_up=2ms,rate=1mbit", "the other direction's delay is missing"),
        ("a:rtt=1h,rate=1mbit", "unknown unit"),
        ("a:rtt=11min,rate=1mbit", "too long"),
        ("a:rtt=1ms,rate=1mbit@1s", "the first step is not at 0s"),
        ("a:rtt=1ms,rate=1mbit@0s/2mbit@0s", "do not ascend"),
        ("a:rtt=1ms,rate=1mbit@0s/0mbit@5s", "the last step is zero"),
        ("a:rtt=1ms,rate=1mbit,trace=a.down", "trace is given as well"),
        ("a:rtt=1ms,trace=none.down", "there is no such file"),
        ("a:rtt=1ms,trace=bad.down", "3"),
        ("a:rtt=1ms,rate=1mbit,offset=random", "no trace"),
        ("a:rtt=1ms,rate=1mbit,queue=50", "no unit"),
        ("a:rtt=1ms,rate=1mbit,mtu=67", "from 68 to 65535"),
        ("a:rtt=1ms,rate=1mbit,mtu=1500B", "from 68 to 65535"),
        ("a:rtt=1ms,rate=1mbit,mtu=1500@1s/1280@2s", "the first step is not at 0s"),
        ("a:rtt=1ms,rate=1mbit,down=3s..1s", "ends before it begins"),
        ("a:rtt=1ms,rate=1mbit,down=3s", "not a span of time"),
        ("a:rtt=1ms,rate=1mbit,gone=1s..3s,gone=2s..4s", "gone already at that time"),
        ("a:rtt=1ms,rate=1mbit,backup=maybe", "on, off"),
        ("a:rtt=1ms,rate=1mbit,aqm=red", "unknown queue discipline"),
        ("a:rtt=1ms,rate=1mbit,aqm=codel:target=0s", "above 0s"),
        ("a:rtt=1ms,rate=1mbit,aqm=codel:tarket=1ms", "did you mean `target`?"),
        ("a:rtt=1ms,rate=1mbit,loss=ge:p=1%,r=30%", "p, r or bad is missing"),
        ("a:rtt=1ms,rate=1mbit,loss=ge:p=1%,p=30%", "`p` is given twice"),
        ("a:rtt=1ms,rate=1mbit,loss=ge:p=1,r=1%,bad=1%", "no unit"),
        ("a:rtt=1ms,rate=1mbit,loss=ge:p=1%,r=30%,bid=1%", "unknown key of a path"),
        ("a:rtt=1ms,rate=1mbit,bad=1%", "unknown key of a path"),
        ("a:rtt=1ms,rate=1mbit,reorder=1%", "not a share and a time"),
        ("a:rtt=1ms,rate=1mbit,reorder=1%:2", "no unit"),
        ("a:rtt=1ms,rate=1mbit,corrupt=101%", "from 0% to 100%"),
        ("a:rtt=1ms,rate=1mbit,edit=101%", "from 0% to 100%"),
        ("a:rtt=1ms,rate=1mbit,strip=data@2", "data@2s"),
        ("a:rtt=1ms,rate=1mbit,strip=data@2s..1s", "FROM..TO"),
        ("a:rtt=1ms,rate=1mbit,strip=rst", "synack"),
        ("a:rtt=1ms,rate=1mbit,via=cell", "--link NAME:rate=20mbit"),
        ("a:profile=wifi", "unknown profile"),
    ] {
        let message = refused(text).to_string();
        assert!(message.contains(part), "{text}: {message}");
        assert!(message.starts_with("--path") && message.lines().count() <= 3, "{message}");
    }
}

#[test]
fn rates_and_keys_of_other_tools_are_read_if_they_mean_one_thing() {
    let plain = path("a:rtt=1ms,rate=20mbit");
    for text in ["rate=20mbps", "rate=20Mbit/s", "bw=20Mbps", "bandwidth=20Mb/s"] {
        assert_eq!(path(&format!("a:rtt=1ms,{text}")), plain, "{text}");
    }
    assert_eq!(
        path("a:rtt=1ms,rate=10Mbit/s@0s/4Mbit/s@20s"),
        path("a:rtt=1ms,rate=10mbit@0s/4mbit@20s")
    );
    assert_eq!(path("a:rtt=1ms,bw=1Mbit/s/4Mbit/s~40s"), path("a:rtt=1ms,rate=1mbit/4mbit~40s"));
    // Errors quote the text as typed.
    for (rate, quoted) in [
        ("2.5MB/s", "`2.5MB/s` counts bytes"),
        ("20Mbit/s/4Mbit/s@2s", "`20Mbit/s/4Mbit/s@2s`: a step has no time"),
        ("1Mbit/s@0s/2MB/s@2s", "`2MB/s` counts bytes"),
    ] {
        let error = refused(&format!("a:rtt=1ms,rate={rate}")).to_string();
        assert!(error.contains(quoted) && !error.contains("ps`"), "{error}");
    }
}

#[test]
fn what_goes_wrong_on_a_path_is_understood() {
    let percent = |n: u32| Chance::from_ppb(n * 10_000_000);
    let it = path(
        "a:rtt=40ms,rate=10mbit,aqm=codel:interval=50ms,loss=ge:p=1%,r=30%,bad=50%,\
         loss_up=ge:p=2%,good=1%,r=3%,bad=4%,reorder=1%:5ms,duplicate=2%,corrupt=3%",
    );
    let links = it.links(false, 1);
    let interval = Span::from_millis(50);
    for link in [&links.link.down, &links.link.up] {
        assert_eq!(link.aqm, Aqm::Codel { target: Span::from_millis(5), interval });
        let Impairments { reorder, duplicate, corrupt, .. } = link.impairments;
        assert_eq!(reorder, Reorder { chance: percent(1), by: Span::from_millis(5) });
        assert_eq!((duplicate, corrupt), (percent(2), percent(3)));
    }
    let (p, r, bad, good) = (percent(1), percent(30), percent(50), Chance::NEVER);
    let burst = |p, r, bad, good| LossModel::GilbertElliott(GilbertElliott { p, r, bad, good });
    assert_eq!(links.link.down.impairments.loss.model, burst(p, r, bad, good));
    let up = burst(percent(2), percent(3), percent(4), percent(1));
    assert_eq!(links.link.up.impairments.loss.model, up);
    let report = it.report(false);
    assert!((report.losses.loss - 0.5 / 31.0).abs() < 1e-6, "{}", report.losses.loss);
    assert_eq!(report.aqm.as_deref(), Some("codel:target=5ms,interval=50ms"));
    assert_eq!((report.reorder.as_deref(), report.duplicate), (Some("1%:5ms"), 0.02));
    assert_eq!(it.links(true, 1).link.down.aqm, Aqm::DropTail);
    for key in ["reorder=1%:5ms", "duplicate=1%", "corrupt=1%", "loss=ge:p=1%,r=1%,bad=1%"] {
        assert!(path(&format!("a:rtt=1ms,rate=1mbit,{key}")).is_random(false), "{key}");
    }
    for key in ["reorder=100%:5ms", "reorder=1%:0s", "duplicate=100%", "aqm=codel"] {
        assert!(!path(&format!("a:rtt=1ms,rate=1mbit,{key}")).is_random(false), "{key}");
    }
}

#[test]
fn a_delay_in_steps_is_split_like_any_other() {
    let second = |n| Time::ZERO + Span::from_secs(n);
    let it = path("a:rtt=20ms@0s/90ms@5s/30ms@6s,rate=1mbit");
    let links = it.links(false, 1).link;
    let half = Span::from_millis(10);
    assert_eq!((links.down.delay, links.up.delay), (half, half));
    let steps = [(second(5), Span::from_millis(45)), (second(6), Span::from_millis(15))];
    assert_eq!(links.down.delay_steps, steps);
    assert_eq!(links.up.delay_steps, steps);
    assert_eq!((it.report(false).delays.rtt_us, it.is_random(false)), (20_000, false));
    let it = path("a:owd_down=20ms@0s/90ms@5s,owd_up=20ms,rate=1mbit");
    assert_eq!(it.links(false, 1).link.up.delay_steps, []);
    assert!(it.report(false).settings.contains(&"owd_down=20ms@0s/90ms@5s".to_owned()));
}

#[test]
fn middleboxes_are_understood() {
    let at = |secs| Time::ZERO + Span::from_secs(secs);
    let table = [
        ("strip=syn", StripAt::Syn, Time::ZERO, Time::NEVER),
        ("strip=synack", StripAt::SynAck, Time::ZERO, Time::NEVER),
        ("strip=ack", StripAt::ThirdAck, Time::ZERO, Time::NEVER),
        ("strip=first", StripAt::FirstData, Time::ZERO, Time::NEVER),
        ("strip=data@2s", StripAt::Data, at(2), Time::NEVER),
        ("strip=all@2s..3s", StripAt::All, at(2), at(3)),
        ("strip=all@2s..", StripAt::All, at(2), Time::NEVER),
    ];
    for (text, what, from, until) in table {
        let it = path(&format!("a:rtt=1ms,rate=1mbit,{text}"));
        assert_eq!(it.middlebox.strip, Some(Strip { at: what, from, until }), "{text}");
        assert!(!it.is_random(false), "{text}");
    }
    let it = path("a:rtt=1ms,rate=1mbit,edit=1%");
    assert_eq!(it.middlebox.edit, Chance::from_ppb(10_000_000));
    assert!(it.is_random(false));
}
