use super::*;
use crate::scenario::RawScenario;

const HOME: &str = "schema = 'plait.links/1'\nlink = ['street:rate=50mbit']\n\
    [[path]]\nname = 'wifi'\nvia = 'street'\nbackup = true\ndown = ['1s..3s', '8s..9s']\n\
    rtt = { value = '22ms', low = '21ms', high = '24ms', source = 'ping', date = '2026-11-27' }\n\
    rate_down = { low = '16mbit', high = '25mbit', source = 'iperf3' }\n\
    rate_up = '8mbit'\nloss = { value = '0%', low = '0%', high = '0.01%' }\nqueue = 'unknown'\n\
    [[path]]\nname = 'lte'\nrtt = '60ms'\nrate = { value = 'unknown', source = 'ping shows no rate' }\n";

fn file(text: &str) -> Result<LinkFile, crate::ScenarioError> {
    LinkFile::from_toml("links.toml", text)
}

/// Returns the arguments of a scenario with the paths of a file.
fn arguments(raw: &RawScenario) -> Vec<String> {
    raw.arguments().iter().map(|(name, text)| format!("--{name} {text}")).collect()
}

#[test]
fn a_file_is_written_as_it_was_read() {
    let home = file(HOME).unwrap();
    let again = LinkFile::from_toml("links.toml", &home.to_toml()).unwrap();
    assert_eq!(again.to_toml(), home.to_toml());
    assert_eq!(again.shared, ["street:rate=50mbit"]);
    assert!(super::check_name("--name", "wifi-2").is_ok());
    assert!(super::check_name("--name", "a b").is_err());
    let rtt = again.links[0].value("rtt").unwrap();
    assert_eq!(rtt.range, Some(("21ms".to_owned(), "24ms".to_owned())));
    assert_eq!((rtt.source.as_str(), rtt.date.as_str()), ("ping", "2026-11-27"));
    assert!(again.links[0].value("queue").unwrap().is_unknown());
}

#[test]
fn a_comparison_takes_the_best_estimates_and_refuses_an_unknown_rate() {
    let mut home = file(HOME).unwrap();
    let error = home.scenario(Values::Middle).unwrap_err().to_string();
    assert!(error.starts_with("links.toml:16:8: path[1].rate: the rate of path lte is"), "{error}");
    assert!(error.contains("unknown (ping shows no rate)"), "{error}");
    assert!(error.contains("plait measure HOST --from DEVICE"), "{error}");
    home.links[1].set("rate", Known::exact("8mbit", "", ""));
    let raw = home.scenario(Values::Middle).unwrap();
    // The middle of a range is its geometric mean: sqrt(16 x 25) = 20.
    assert_eq!(
        arguments(&raw),
        [
            "--path wifi:via=street,backup,down=1s..3s,down=8s..9s,rtt=22ms,\
             rate_down=20000000bit,rate_up=8mbit,loss=0%"
                .to_owned(),
            "--path lte:rtt=60ms,rate=8mbit".to_owned(),
            "--link street:rate=50mbit".to_owned(),
        ]
    );
}

#[test]
fn an_advice_gets_the_ranges() {
    let raw = file(HOME).unwrap().scenario(Values::Ranges).unwrap();
    let texts = arguments(&raw).join("\n");
    assert!(texts.contains("rtt=21ms..24ms,rate_down=16mbit..25mbit,"), "{texts}");
    assert!(texts.contains("loss=0%..0.01%"), "{texts}");
    assert!(texts.contains("--path lte:rtt=60ms\n"), "{texts}");
    // The known direction stays.
    let one_way = "[[path]]\nname = 'a'\nrtt = '9ms'\nrate_down = '5mbit'\nrate_up = 'unknown'";
    let raw = file(one_way).unwrap().scenario(Values::Ranges).unwrap();
    assert_eq!(arguments(&raw), ["--path a:rtt=9ms,rate_down=5mbit"]);
}

#[test]
fn errors_name_the_place_and_the_remedy() {
    for (text, place, problem) in [
        ("", "1:1", "no link"),
        ("schema = 'plait.links/2'", "1:10", "plait.links/1"),
        ("[[path]]\nrtt = '9ms'", "1:1", "the link has no name"),
        ("[[path]]\nname = 'a'\nlatency = '9ms'", "3:1", "rtt=TIME"),
        ("[[path]]\nname = 'a'\nrtt = { vaule = '9ms' }", "3:9", "did you mean `value`?"),
        ("[[path]]\nname = 'a'\nrtt = { value = '9ms', low = '8ms' }", "3:7", "one end"),
        ("[[path]]\nname = 'a'\nrtt = { source = 'ping' }", "3:7", "no value"),
        ("[[path]]\nname = 'a'\nmtu = { low = '1', high = '2' }", "3:7", "`mtu` has no range"),
        ("path = 7", "1:8", "list of paths"),
        ("path = [7]", "1:9", "not a link"),
        ("[[path]]\nname = 7", "2:8", "does not fit"),
        ("runz = 3", "1:1", "did you mean `runs`?"),
    ] {
        let error = file(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("links.toml:{place}:")), "{text}: {error}");
        assert!(error.contains(problem), "{text}: {error}");
    }
    for (value, problem) in [
        ("{ low = '20mbit', high = '10mbit' }", "lower end"),
        ("{ value = '30mbit', low = '10mbit', high = '20mbit' }", "outside its range"),
        ("{ low = '20', high = '30mbit' }", "no unit"),
    ] {
        let text = format!("[[path]]\nname = 'a'\nrtt = '9ms'\nrate = {value}");
        let error = file(&text).unwrap().scenario(Values::Middle).unwrap_err().to_string();
        assert!(error.starts_with("links.toml:4:8: path[0].rate: "), "{error}");
        assert!(error.contains(problem), "{value}: {error}");
    }
}

#[test]
fn new_values_replace_old_ones_and_unknown_ones_do_not() {
    let mut home = file("[[path]]\nname = 'a'\nrtt = '9ms'\nrate = '8mbit'").unwrap();
    let mut more = Link::new("a");
    more.set("rtt", Known::unknown("no ping", ""));
    more.set("rate_down", Known::exact("20mbit", "iperf3", "2026-11-27"));
    more.set("queue", Known::unknown("not measured", ""));
    home.merge(more);
    home.merge(Link::new("b"));
    let a = &home.links[0];
    let text = |key: &str| a.value(key).and_then(|it| it.value.clone()).unwrap_or_default();
    // The old rate of both directions is now that of the other direction.
    assert_eq!((text("rate_down"), text("rate_up")), ("20mbit".to_owned(), "8mbit".to_owned()));
    assert_eq!((text("rtt"), a.value("rate")), ("9ms".to_owned(), None));
    assert!(a.value("queue").unwrap().is_unknown() && home.links[1].name == "b");
}
