//! Shared links and competing flows.

use super::*;

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
        (&["cell"], "this link has no settings"),
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
    let it =
        with(&["poisson:rate=3mbit@cell*2", "pareto:rate=500kbit,shape=1.4,size=200B@a"]).unwrap();
    let said: Vec<String> = it.compete.iter().map(ToString::to_string).collect();
    let pareto = "pareto:rate=500kbit,on=500ms,off=500ms,shape=1.4,size=200B@a";
    assert_eq!(said, ["poisson:rate=3mbit@cell*2", pareto]);
    assert_eq!(with(&[pareto]).unwrap().compete[0], it.compete[1]);
    for (flows, part) in [
        (&["poisson@a"][..], "its rate is missing"),
        (&["poison:rate=3mbit@a"], "did you mean `poisson`?"),
        (&["poisson:rate=3@a"], "has no unit"),
        (&["poisson:rate=0mbit@a"], "above zero"),
        (&["poisson:rate=inf@a"], "above zero and finite"),
        (&["poisson:rate=1mbit,on=1s@a"], "`on`: unknown key"),
        (&["poisson:rate=1mbit,rate=2mbit@a"], "rate is given twice"),
        (&["poisson:rate=1mbit,size=20B@a"], "28B to 65535B"),
        (&["poisson:rate=1mbit,3@a"], "no KEY=VALUE"),
        (&["pareto:rate=1mbit,shape=1@a"], "1.001 to 10"),
        (&["pareto:rate=1mbit,on=0s@a"], "1ms to 600s"),
        (&["pareto:rate=1mbit,offf=1s@a"], "did you mean `off`?"),
        (&["poisson:rate=1mbit@a", "poisson:rate=1mbit@a*2"], "given twice"),
        (&["poisson:rate=1mbit@idle"], "no path goes through the link `idle`"),
    ] {
        let message = with(flows).unwrap_err().to_string();
        assert!(message.contains(part), "{flows:?}: {message}");
        assert!(message.lines().count() <= 3, "{message}");
    }
    assert!(with(&["none", "none"]).unwrap().compete.is_empty());
    let managed = [
        ("path", "a:rtt=20ms,rate=50mbit,aqm=codel"),
        ("workload", "download:1MB"),
        ("compete", "poisson:rate=1mbit@a"),
    ];
    assert!(build(&managed).unwrap_err().to_string().contains("only drop-tail queues"));
    let varied = build(&[&base[..], &[("vary", "compete=reno@a,reno@a*3")]].concat()).unwrap();
    let points = varied.points(&super::read).unwrap();
    assert_eq!(points[1].scenario.compete[0].flows, 3);
}
