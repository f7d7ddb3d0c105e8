use super::*;
use crate::error::{Fault, ScenarioError};
use plait_base::{Chance, Rate, Time};
use plait_link::{Aqm, GilbertElliott, LossModel, QueueLimit, RateSource, Reorder};
use plait_sim::{Strip, StripAt};
use proptest::prelude::*;

/// Traces that exist in these tests: 1500 bytes a millisecond, and a CSV.
fn read(file: &str) -> std::io::Result<String> {
    match file {
        "a.down" => Ok("1\n2\n3\n4\n".to_owned()),
        "b.csv" => Ok("1,500000\n2,0\n3,250000\n".to_owned()),
        "bad.down" => Ok("1\n2\nx\n".to_owned()),
        _ => Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
    }
}

fn draft(arguments: &[(&str, &str)]) -> Result<Draft, ScenarioError> {
    let mut draft = Draft::new();
    for (name, text) in arguments {
        draft.argument(name, text)?;
    }
    Ok(draft)
}

fn build(arguments: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    draft(arguments)?.build_with(&read)
}

fn with_path(path: &str) -> Result<Scenario, ScenarioError> {
    build(&[("path", path), ("workload", "download:512kB")])
}

fn path(text: &str) -> Path {
    with_path(text).unwrap().paths.remove(0)
}

fn refused(path: &str) -> ScenarioError {
    with_path(path).unwrap_err()
}

/// Arguments of a command line as a POSIX shell would hand them over.
fn arguments(line: &str) -> Vec<(String, String)> {
    let mut words = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let Some(word) = words.last_mut() else { continue };
        match c {
            ' ' => words.push(String::new()),
            '\\' => word.extend(chars.next()),
            '\'' => word.extend(chars.by_ref().take_while(|c| *c != '\'')),
            _ => word.push(c),
        }
    }
    assert_eq!(words[..2], ["plait", "compare"]);
    let mut words = words.into_iter().skip(2).peekable();
    let mut list = Vec::new();
    while let Some(name) = words.next() {
        let name = name.strip_prefix("--").unwrap().to_owned();
        let switch = SETTINGS.iter().any(|setting| setting.switch && setting.name == name);
        let text = if switch { "on".to_owned() } else { words.next().unwrap() };
        list.push((name, text));
    }
    list
}

fn from_line(line: &str) -> Scenario {
    let list = arguments(line);
    let list: Vec<(&str, &str)> = list.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    build(&list).unwrap()
}

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
    assert!(!links.backup && !wifi.is_random(false));
    let slow = path("slow:rtt=25ms,rate=1mbit").links(false, 1);
    assert_eq!(slow.link.down.queue, QueueLimit::Bytes(15_000));
}

#[test]
fn an_odd_round_trip_is_split_without_loss() {
    let odd = path("a:rtt=3ns,rate=1mbit");
    assert_eq!((odd.delay.down.start.as_nanos(), odd.delay.up.start.as_nanos()), (1, 2));
    let uneven = path("a:owd_down=10ms,owd_up=30ms,rate=1mbit");
    assert_eq!(uneven.report(false).rtt_us, 40_000);
}

#[test]
fn every_key_is_understood() {
    let it = path(
        "a:rtt=40ms,rate_down=10mbit@0s/4mbit@20s,rate_up=2mbit,queue=100pkt,loss=1%,loss_up=0.5%,\
         jitter=2ms,down=1s..3s,down=9s..,nic=inf,backup,aqm=droptail",
    );
    let links = it.links(false, 1);
    assert!(matches!(&links.link.down.rate, RateSource::Steps(steps) if steps.len() == 2));
    assert_eq!(links.link.down.queue, QueueLimit::Packets(100));
    assert_eq!(links.link.down.loss.mean().as_ppb(), 10_000_000);
    assert_eq!(links.link.up.loss.mean().as_ppb(), 5_000_000);
    assert_eq!(links.link.up.jitter, Span::from_millis(2));
    let second = |n| Time::ZERO + Span::from_secs(n);
    assert_eq!(links.link.up.outages, [(second(1), second(3)), (second(9), Time::NEVER)]);
    assert!(links.nic.is_infinite() && links.backup && it.is_random(false));
}

#[test]
fn a_trace_replaces_the_rate_and_frees_the_way_up() {
    let it = path("a:rtt=40ms,trace=a.down");
    let links = it.links(false, 1);
    // 1500 bytes a millisecond are 12 Mbit/s; the queue is 100 ms of it.
    assert_eq!(it.report(false).rate_down_bps, Some(12_000_000));
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
    assert_eq!(home.report(false).rate_down_bps, Some(20_000_000));
    assert_eq!(home.links(false, 1).link.down.queue, QueueLimit::Bytes(60_000));
    let mine = path("mine:profile=wifi-home,loss=2%");
    assert_eq!((mine.loss.down.mean().as_ppb(), mine.delay), (20_000_000, home.delay));
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
    assert_eq!(ideal.paths[0].report(true).rate_down_bps, None);
}

#[test]
fn settings_become_a_connection() {
    let it = build(&[
        ("path", "a:rtt=10ms,rate=1mbit,loss=1%"),
        ("workload", "download:1MB"),
        ("ssthresh", "45seg"),
        ("rcvbuf", "6seg"),
        ("sndbuf", "64KiB"),
        ("initial-window", "4"),
        ("join", "simultaneous"),
        ("rto", "rfc"),
        ("idle-restart", "off"),
        ("delayed-ack", "off"),
        ("runs", "7"),
    ])
    .unwrap();
    let multipath = it.connection(true);
    assert_eq!((multipath.rcvbuf, multipath.sndbuf), (6 * 1428, 65_536));
    assert_eq!(it.connection(false).ssthresh, Some(65_160));
    assert_eq!((multipath.join, multipath.rto), (JoinTiming::Simultaneous, RtoMode::Rfc));
    assert!(!multipath.delayed_ack && multipath.initial_window == 4);
    assert_eq!((it.effective_runs(), it.deadline()), (7, Span::from_secs(3_600)));
}

#[test]
fn subflows_are_counted() {
    let with = |paths: usize, subflows: &str| {
        let names = ["a:rtt=9ms,rate=1mbit", "b:rtt=9ms,rate=1mbit", "c:rtt=9ms,rate=1mbit"];
        let mut list: Vec<(&str, &str)> = names[..paths].iter().map(|it| ("path", *it)).collect();
        list.extend([("workload", "download:1MB"), ("subflows", subflows)]);
        build(&list)
    };
    assert_eq!(with(2, "4").unwrap().connection(true).subflows, 4);
    let mesh = with(2, "mesh4").unwrap();
    assert_eq!((mesh.connection(true).subflows, mesh.transport.subflows.count(2)), (1, 4));
    assert!(mesh.command_line().contains("--subflows mesh4"), "{}", mesh.command_line());
    for (paths, text, part) in [
        (3, "mesh4", "mesh4 takes two paths, 3 given"),
        (2, "5", "10 subflows in all"),
        (2, "0", "1 to 8, or mesh4"),
        (2, "mesh", "1 to 8, or mesh4"),
    ] {
        let message = with(paths, text).unwrap_err().to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
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
        ("a:rtt=1ms,rate=25mbits", "did you mean `mbit`?"),
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
        ("a:rtt=1ms,rate=1mbit,down=3s..1s", "ends before it begins"),
        ("a:rtt=1ms,rate=1mbit,down=3s", "not an outage"),
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
fn known_words_of_later_versions_are_told_apart() {
    let error = refused("a:rtt=1ms,rate=1mbit,cost=2");
    assert_eq!(error.fault, Fault::NotYet, "{error}");
    assert!(error.to_string().contains("not available yet"));
    for (name, text) in [
        ("schedulers", "minrtt,daps"),
        ("schedulers", "minrtt+bm"),
        ("cc", "balia"),
        ("workload", "web:amazon"),
    ] {
        let mut list = vec![("path", "a:rtt=1ms,rate=1mbit"), (name, text)];
        if name != "workload" {
            list.push(("workload", "burst:1seg"));
        }
        let error = build(&list).unwrap_err();
        assert_eq!(error.fault, Fault::NotYet, "{name} {text}: {error}");
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
        assert_eq!(link.reorder, Reorder { chance: percent(1), by: Span::from_millis(5) });
        assert_eq!((link.duplicate, link.corrupt), (percent(2), percent(3)));
    }
    let (p, r, bad, good) = (percent(1), percent(30), percent(50), Chance::NEVER);
    let burst = |p, r, bad, good| LossModel::GilbertElliott(GilbertElliott { p, r, bad, good });
    assert_eq!(links.link.down.loss, burst(p, r, bad, good));
    assert_eq!(links.link.up.loss, burst(percent(2), percent(3), percent(4), percent(1)));
    let report = it.report(false);
    assert!((report.loss - 0.5 / 31.0).abs() < 1e-6, "{}", report.loss);
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

#[test]
fn paths_share_links_by_name() {
    let base = [
        ("path", "a:rtt=20ms,rate=50mbit,via=cell"),
        ("path", "b:rtt=40ms,rate=50mbit"),
        ("workload", "download:1MB"),
    ];
    let with = |links: &[&str]| {
        let links = links.iter().map(|text| ("link", *text));
        build(&base.iter().copied().chain(links).collect::<Vec<_>>())
    };
    let it = with(&["other:rate=1mbit", "cell:rate=10mbit,queue=50ms,loss=1%"]).unwrap();
    assert_eq!(it.paths.iter().map(|path| it.via(path)).collect::<Vec<_>>(), [Some(1), None]);
    let cell = it.shared[1].links(false, 1).link;
    assert_eq!(cell.down.delay, Span::ZERO);
    assert_eq!(cell.up.queue, QueueLimit::Delay(Span::from_millis(50)));
    assert!(it.is_random() && it.paths[0].report(false).via.as_deref() == Some("cell"));
    assert!(it.command_line().contains("--link cell:rtt=0s,rate=10mbit,queue=50ms,loss=1%"));
    assert!(!with(&["cell:rate=10mbit"]).unwrap().is_random());
    for (links, part) in [
        (&["sell:rate=1mbit"][..], "did you mean `sell`?"),
        (&["cell:queue=50ms"], "the link has no rate"),
        (&["cell"], "nothing is said of this link"),
        (&["cell:rate=1mbit,via=x"], "unknown key of a link"),
        (&["cell:rate=1mbit,nic=1gbit"], "unknown key of a link"),
        (&["cell:rate=1mbit", "cell:rate=2mbit"], "two links have this name"),
        (&["cell:rate=1mbit", "a:rate=2mbit"], "a link has this name"),
        (&[":rate=1mbit"], "the link has no name"),
    ] {
        let message = with(links).unwrap_err().to_string();
        assert!(message.contains(part), "{links:?}: {message}");
        assert!(message.lines().count() <= 3, "{message}");
    }
}

#[test]
fn competing_flows_are_named_by_controller_and_way() {
    let base = [
        ("path", "a:rtt=20ms,rate=50mbit,via=cell"),
        ("path", "b:rtt=40ms,rate=50mbit"),
        ("link", "cell:rate=10mbit"),
        ("link", "idle:rate=10mbit"),
        ("workload", "download:1MB"),
    ];
    let with = |flows: &[&str]| {
        let flows = flows.iter().map(|text| ("compete", *text));
        build(&base.iter().copied().chain(flows).collect::<Vec<_>>())
    };
    let it = with(&["reno@cell*2", "fixed:cwnd=9seg@b", "cubic@a*1"]).unwrap();
    let said: Vec<String> = it.compete.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["reno@cell*2", "fixed:cwnd=9seg@b", "cubic@a"]);
    assert!(it.is_random() && !with(&[]).unwrap().is_random());
    let line = "--compete 'reno@cell*2' --compete fixed:cwnd=9seg@b --compete cubic@a --workload";
    assert!(it.command_line().contains(line), "{}", it.command_line());
    for (flows, part) in [
        (&["reno"][..], "CC@PATH_OR_LINK*N"),
        (&["@a"], "name is missing"),
        (&["rino@a"], "did you mean `reno`?"),
        (&["reno@sell"], "did you mean `cell`?"),
        (&["reno@idle"], "no path goes through the link `idle`"),
        (&["reno@a*0"], "from 1 to 64"),
        (&["reno@a*65"], "from 1 to 64"),
        (&["reno@a*"], "from 1 to 64"),
        (&["reno,cubic@a"], "--compete once for each"),
        (&["fixed:cwnd=BDP@a"], "in bytes or segments"),
        (&["reno@a", "newreno@a*2"], "given twice"),
    ] {
        let message = with(flows).unwrap_err().to_string();
        assert!(message.contains(part), "{flows:?}: {message}");
        assert!(message.lines().count() <= 3, "{message}");
    }
    let varied = build(&[&base[..], &[("vary", "compete=reno@a,reno@a*3")]].concat()).unwrap();
    let points = varied.points().unwrap();
    assert_eq!(points[1].scenario.compete[0].flows, 3);
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
    assert_eq!((it.report(false).rtt_us, it.is_random(false)), (20_000, false));
    let it = path("a:owd_down=20ms@0s/90ms@5s,owd_up=20ms,rate=1mbit");
    assert_eq!(it.links(false, 1).link.up.delay_steps, []);
    assert!(it.report(false).settings.contains(&"owd_down=20ms@0s/90ms@5s".to_owned()));
}

#[test]
fn settings_are_refused_with_what_is_allowed() {
    for (name, text, part) in [
        ("runs", "0", "a whole number from 1"),
        ("runs", "many", "a whole number from 1"),
        ("seed", "-1", "a whole number from 0"),
        ("schedulers", "blst", "did you mean `blest`?"),
        ("schedulers", "minrtt,lrf", "given twice"),
        ("schedulers", "", "name is missing"),
        ("schedulers", "ecf:bta=1", "did you mean `beta`?"),
        ("schedulers", "minrtt+rq", "did you mean `rp`?"),
        ("cc", "cubik", "did you mean `cubic`?"),
        ("mtu", "575", "576"),
        ("mtu", "70000", "65535"),
        ("rcvbuf", "0B", "above zero"),
        ("rcvbuf", "2GB", "a TCP window"),
        ("rcvbuf", "65536", "no unit"),
        ("ssthresh", "0seg", "above zero"),
        ("join", "before", "after-data"),
        ("rto", "linus", "did you mean `linux`?"),
        ("until", "2s2", "--until"),
        ("until", "0s", "above 0s"),
        ("jobs", "0", "from 1"),
        ("initial-window", "0", "from 1"),
        ("subflows", "9", "1 to 8, or mesh4"),
        ("expect", "minrt.completion_ms < 1", "did you mean `minrtt`?"),
        ("vary", "a.rt=1ms,2ms", "did you mean `rtt`?"),
        ("vary", "b.rtt=1ms,2ms", "unknown path"),
        ("vary", "a.rtt=1ms..2ms", "the number of points is missing"),
        ("vary", "a.rtt=1ms,2", "no unit"),
        ("vary", "runs=1,2", "unknown setting for a sweep"),
    ] {
        let list = [("path", "a:rtt=1ms,rate=1mbit"), ("workload", "download:1MB"), (name, text)];
        let message = build(&list).unwrap_err().to_string();
        assert!(message.contains(part), "{name} {text}: {message}");
        assert!(message.lines().count() <= 3, "{message}");
    }
    assert_eq!(build(&[]).unwrap_err().fault, Fault::Missing);
    let nine: Vec<String> = (0..9).map(|n| format!("p{n}:rtt=1ms,rate=1mbit")).collect();
    let nine: Vec<(&str, &str)> = nine.iter().map(|path| ("path", path.as_str())).collect();
    assert!(build(&nine).unwrap_err().to_string().contains("at most 8 paths"));
    let twice = build(&[("path", "wifi-home"), ("path", "wifi-home")]).unwrap_err();
    assert_eq!(twice.fault, Fault::Conflict);
    let none = build(&[("path", "wifi-home")]).unwrap_err().to_string();
    assert!(none.contains("no workload"), "{none}");
}

#[test]
fn the_command_line_says_what_differs() {
    let it = build(&[
        ("path", "wifi-home"),
        ("path", "lte:owd_down=20ms,owd_up=30ms,rate_down=8mbit,rate_up=2mbit,backup"),
        ("workload", "stream:10kB@20ms,for=2s"),
        ("schedulers", "lrf,ecf:beta=0.5,blest+rp"),
        ("cc", "coupled,cubic"),
        ("rcvbuf", "6291456B"),
        ("expect", "ecf:beta=0.5/lia.message_delay_ms.p95 < 1"),
        ("vary", "lte.rate_up=1mbit..2mbit:3"),
    ])
    .unwrap();
    let line = it.command_line();
    assert_eq!(
        line,
        "plait compare --path wifi-home --path \
         lte:owd_down=20ms,owd_up=30ms,rate_down=8mbit,rate_up=2mbit,backup --workload \
         stream:10kB@20ms,for=2s --schedulers minrtt,ecf:beta=0.5,blest+rp --cc lia,cubic --runs \
         30 --seed 1 --vary lte.rate_up=1mbit..2mbit:3 --expect \
         'ecf:beta=0.5/lia.message_delay_ms.p95 < 1'"
    );
    assert_eq!(from_line(&line), it);
}

#[test]
fn a_sweep_replaces_one_setting() {
    let it = build(&[
        ("path", "wifi-home"),
        ("path", "lte:rtt=40ms,rate=8mbit,loss=1%"),
        ("workload", "download:1MB"),
        ("vary", "lte.rtt=40ms..400ms:10"),
    ])
    .unwrap();
    let points = it.points_with(&read).unwrap();
    assert_eq!(points.len(), 10);
    assert_eq!((points[9].name.as_str(), points[9].value.as_str()), ("lte.rtt", "400ms"));
    assert_eq!(points[9].scenario.paths[1].report(false).rtt_us, 400_000);
    assert_eq!(points[9].scenario.paths[0], it.paths[0]);
    assert_eq!(points[1].scenario.vary, None);
    assert_eq!(from_line(&points[1].scenario.command_line()), points[1].scenario);
    let buffers = build(&[
        ("path", "a:rtt=40ms,trace=a.down"),
        ("workload", "download:1MB"),
        ("vary", "rcvbuf=64KiB,1MiB"),
    ]);
    let buffers = buffers.unwrap().points_with(&read).unwrap();
    assert_eq!(buffers[1].scenario.connection(true).rcvbuf, 1 << 20);
    let owd = build(&[
        ("path", "a:rtt=40ms,rate=1mbit"),
        ("workload", "download:1MB"),
        ("vary", "a.owd_up=10ms,20ms,30ms"),
    ]);
    let owd = owd.unwrap().points_with(&read).unwrap();
    assert_eq!(owd[2].scenario.paths[0].report(false).rtt_us, 50_000);
}

const TOML: &str = r#"
workload = "download:512kB"
schedulers = ["minrtt", "ecf:beta=0.5,floor=off"]
cc = "cubic"
runs = 3
delayed_ack = false
check = true
expect = ["minrtt.completion_ms.p95 < 1"]

[[path]]
name = "wifi"
rtt = "25ms"
rate = "25mbit"
down = ["1s..3s", "8s..9s"]

[[path]]
name = "lte-att"
profile = "lte-att"
backup = true
"#;

#[test]
fn a_file_says_the_same_as_arguments() {
    let file = Draft::from_toml("home.toml", TOML).unwrap();
    let scenario = file.build_with(&read).unwrap();
    let same = build(&[
        ("path", "wifi:rtt=25ms,rate=25mbit,down=1s..3s,down=8s..9s"),
        ("path", "lte-att:profile=lte-att,backup"),
        ("workload", "download:512kB"),
        ("schedulers", "minrtt,ecf:beta=0.5,floor=off"),
        ("runs", "3"),
        ("delayed-ack", "off"),
        ("check", "on"),
        ("expect", "minrtt.completion_ms.p95 < 1"),
    ]);
    assert_eq!(scenario, same.unwrap());
    let mut changed = file;
    changed.argument("runs", "5").unwrap();
    changed.argument("path", "wifi-home").unwrap();
    let changed = changed.build_with(&read).unwrap();
    assert_eq!((changed.runs, changed.paths.len()), (5, 1));
}

#[test]
fn a_mistake_in_a_file_has_its_line_and_column() {
    for (from, to, message) in [
        ("runs = 3", "ruins = 3", "home.toml:5:1: ruins: `ruins`: unknown setting"),
        ("runs = 3", "runs = 0", "home.toml:5:8: runs: `0`: not a number that fits"),
        ("runs = 3", "runs = [[1]]", "home.toml:5:9: runs: this array does not fit here"),
        ("\"25ms\"", "25", "home.toml:12:7: path[0].rtt: `25` has no unit"),
        ("rate = ", "rat = ", "home.toml:13:1: path[0].rat: `rat`: unknown key of a path"),
        ("\"lte-att\"\nprofile", "\"x\"\nprofil", "home.toml:18:1: path[1].profil"),
        ("name = \"wifi\"\n", "", "home.toml:10:1: path[0]: the path has no name"),
        ("rate = \"25mbit\"", "rate = ", "home.toml:13:"),
        ("runs = 3", "runs = 3\nruns = 4", "home.toml:6:1"),
    ] {
        let text = TOML.replacen(from, to, 1);
        assert_ne!(text, TOML);
        let built = Draft::from_toml("home.toml", &text).and_then(|it| it.build_with(&read));
        let error = built.unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
        assert!(error.lines().count() <= 3, "{error}");
    }
}

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
            "down=1s..2s,down=3s..",
            "loss=0%",
        ],
        0..15,
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
            ("rto", "rfc200"),
            ("mtu", "1280"),
            ("rcvbuf", "6seg"),
            ("sndbuf", "1.5MB"),
            ("until", "90s"),
            ("ideal", "on"),
            ("check", "on"),
            ("jobs", "2"),
            ("compete", "olia:quality=l2/r@p0*3"),
            ("vary", "p0.loss=0%..1%:3"),
            ("expect", "tcp:p0/lia.completion_ms.p95 < 1e3 * 1.05"),
        ],
        0..20,
    )
    .prop_map(|mut list| {
        if list.iter().any(|(name, _)| *name == "ideal") {
            list.retain(|(name, _)| *name != "compete");
        }
        // The expectation names one of two controllers.
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
        let file = Draft::from_toml("x", &toml).and_then(|draft| draft.build_with(&read));
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
        let read = Draft::from_toml("x", &toml).and_then(|draft| draft.build_with(&read));
        if let Err(error) = read {
            prop_assert!(error.to_string().lines().count() <= 3);
        }
    }
}
