//! Every entry of the tables of settings and of path keys is read, printed and varied.

use super::*;
use crate::experiment::file_schema;

/// A scenario that accepts every example of a setting.
const BASE: [(&str, &str); 5] = [
    ("link", "cell:rate=8mbit"),
    ("path", "a:rtt=10ms,rate=5mbit"),
    ("path", "b:rtt=30ms,rate=3mbit,via=cell"),
    ("workload", "download:1MB"),
    ("seed", "7"),
];

/// Returns the base with one setting replaced.
fn with(name: &str, text: &str) -> Vec<(&'static str, String)> {
    let name = Setting::named(name).unwrap().name;
    let base = BASE.iter().filter(|(own, _)| *own != name);
    let base = base.map(|(own, text)| (*own, (*text).to_owned()));
    base.chain([(name, text.to_owned())]).collect()
}

fn built(list: &[(&'static str, String)]) -> Scenario {
    let list: Vec<(&str, &str)> = list.iter().map(|(name, text)| (*name, text.as_str())).collect();
    build(&list).unwrap_or_else(|error| panic!("{list:?}: {error}"))
}

/// Returns the texts that a scenario writes for a setting with this value.
fn told(setting: &Setting, text: &str) -> Vec<String> {
    let always = ["runs", "seed"].contains(&setting.name);
    let is_told = always || text != setting.default;
    is_told.then(|| text.to_owned()).into_iter().collect()
}

#[test]
fn every_setting_is_read_and_printed_and_read_again() {
    for setting in SETTINGS {
        let default = [setting.default.to_owned()].into_iter().filter(|it| !it.is_empty());
        for text in setting.examples().into_iter().chain(default) {
            let scenario = built(&with(setting.name, &text));
            assert_eq!(setting.texts(&scenario), told(setting, &text), "{}", setting.name);
            let again = from_line(&scenario.command_line());
            assert_eq!((again.command_line(), &again), (scenario.command_line(), &scenario));
            let file = RawScenario::from_toml("x", &scenario.to_toml()).unwrap();
            assert_eq!(file.build_with(&read).unwrap(), scenario, "{}", setting.name);
        }
    }
}

#[test]
fn every_setting_of_a_run_can_be_varied() {
    for setting in SETTINGS {
        let examples = setting.examples().join(",");
        let vary = format!("{}={examples}", setting.name);
        let mut list = with(setting.name, &setting.examples()[0]);
        if !setting.repeats() {
            list.retain(|(name, _)| *name != setting.name || *name == "workload");
        }
        list.push(("vary", vary));
        let list: Vec<(&str, &str)> = list.iter().map(|(name, it)| (*name, it.as_str())).collect();
        let scenario = build(&list);
        if !setting.varies {
            let error = scenario.unwrap_err().to_string();
            assert!(error.contains("unknown setting for a sweep"), "{error}");
            continue;
        }
        let points = scenario.unwrap_or_else(|error| panic!("{error}")).points(&read).unwrap();
        assert_eq!(points.len(), setting.examples().len(), "{}", setting.name);
        for (point, text) in points.iter().zip(setting.examples()) {
            let texts = setting.texts(&point.scenario);
            assert_eq!(texts, told(setting, &text), "{}", setting.name);
        }
    }
}

#[test]
fn a_setting_that_cannot_be_varied_is_one_of_the_comparison_as_a_whole() {
    let fixed = SETTINGS.iter().filter(|setting| !setting.varies).map(|setting| setting.name);
    let of_the_comparison = ["schedulers", "cc", "runs", "until", "jobs", "vary", "expect"];
    assert!(fixed.eq(of_the_comparison));
}

#[test]
fn the_error_of_a_varied_value_names_what_is_varied() {
    let settings = SETTINGS.iter().filter(|it| it.varies).map(|it| it.name.to_owned());
    let keys = PATH_KEYS.iter().map(|key| format!("a.{}", key.name));
    for name in settings.chain(keys) {
        let vary = format!("{name}=?");
        let error = build(&[&BASE[..], &[("vary", &vary)]].concat()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("--vary {name}")), "{error}");
    }
}

#[test]
fn a_sweep_takes_what_a_host_does_to_segments_and_how_many_subflows_there_are() {
    let points = |vary: &str| {
        let list = [&BASE[..], &[("vary", vary)]].concat();
        build(&list).unwrap().points(&read).unwrap()
    };
    let costs = points("send-cost=0s,10us");
    assert_eq!(costs[1].scenario.transport.send_cost, Span::from_micros(10));
    assert_eq!(points("earlier=0..4:3")[2].scenario.transport.earlier_transfers, 4);
    assert_eq!(points("subflows=1,mesh4")[1].scenario.transport.subflows, Subflows::Mesh4);
    // A parameter belongs to the value before it.
    let loss = points("a.loss=0%,ge:p=1%,r=30%,bad=50%,2%");
    assert_eq!(loss.len(), 3);
    assert!(matches!(
        loss[1].scenario.paths[0].impairments.down.loss.model,
        plait_link::LossModel::GilbertElliott(_)
    ));
}

#[test]
fn the_schema_of_experiments_has_every_setting() {
    let schema = file_schema();
    // An experiment gives these in another form, or not at all.
    let other = ["vary", "expect", "jobs", "kernel"];
    for setting in SETTINGS.iter().filter(|it| !other.contains(&it.name)) {
        let said = schema["properties"][setting.name]["description"].as_str().unwrap();
        assert!(said.contains(setting.help) && said.contains(&setting.values()), "{said}");
    }
    let of = |name: &str| schema["properties"][name]["anyOf"][0].clone();
    assert_eq!(of("prr"), serde_json::json!({ "enum": ["rfc9937", "rfc6937"] }));
    assert_eq!(of("tsq")["enum"][0], "on");
    assert_eq!(
        (of("mtu")["minimum"].as_u64(), of("mtu")["maximum"].as_u64()),
        (Some(576), Some(65_535))
    );
    for (name, kind) in [("workload", "string"), ("rcvbuf", "string")] {
        assert_eq!(of(name)["type"][0], kind, "{name}: any text");
    }
}

/// Sweeps a key of path `a` over its example. Returns the scenario of this point.
fn swept(key: &PathKey) -> Scenario {
    let vary = format!("a.{}={}", key.name, key.example);
    let base = |path| [("link", "cell:rate=8mbit"), ("path", path), ("workload", "download:1MB")];
    // Some keys need a path with a trace.
    let bases = [base("a:rtt=10ms,rate=5mbit"), base("a:rtt=10ms,trace=a.down,rate_up=5mbit")];
    let scenario = bases.map(|base| build(&[&base[..], &[("vary", vary.as_str())]].concat()));
    let [plain, traced] = scenario;
    let swept = plain.or(traced).unwrap_or_else(|error| panic!("{vary}: {error}"));
    let mut points = swept.points(&read).unwrap();
    assert_eq!(points.len(), 1, "{vary}");
    points.remove(0).scenario
}

#[test]
fn every_path_key_is_varied_and_printed_and_read_again() {
    for key in PATH_KEYS {
        let scenario = swept(key);
        let fields = scenario.paths[0].fields();
        assert!(!BASE[1].1.contains(&format!("{}={}", key.name, key.example)), "{}", key.name);
        assert!(fields.contains(&(key.name, key.example.to_owned())), "{}: {fields:?}", key.name);
        assert_eq!(from_line(&scenario.command_line()), scenario, "{}", key.name);
        let file = RawScenario::from_toml("x", &scenario.to_toml()).unwrap();
        // A point of a sweep may leave a link unused.
        assert_eq!(file.build_point(&read).unwrap(), scenario, "{}", key.name);
    }
}

#[test]
fn a_varied_key_takes_the_place_of_those_that_exclude_it() {
    let point = |path: &str, vary: &str| {
        let vary = format!("a.{vary}");
        let list = [("path", path), ("workload", "download:1MB"), ("vary", vary.as_str())];
        let points = build(&list).unwrap().points(&read).unwrap();
        points[0].scenario.paths[0].fields()
    };
    let field = |(key, text): &(&'static str, String)| format!("{key}={text}");
    for (path, vary, told) in [
        ("a:rtt=10ms,rate=5mbit", "owd_up=9ms", "owd_down=5ms owd_up=9ms rate=5mbit"),
        ("a:owd_down=1ms,owd_up=9ms,rate=5mbit", "rtt=4ms", "rtt=4ms rate=5mbit"),
        // The way up keeps the rate that `rate` gave to both ways.
        ("a:rtt=2ms,rate=5mbit", "trace=a.down", "rtt=2ms trace=a.down rate_up=5mbit"),
        ("a:rtt=2ms,rate_down=5mbit,rate_up=1mbit", "rate=3mbit", "rtt=2ms rate=3mbit"),
        ("a:rtt=2ms,rate=5mbit,down=1s..2s,down=3s..", "down=4s..", "rtt=2ms rate=5mbit down=4s.."),
        ("a:rtt=2ms,rate=5mbit", "strip=data@2s..3s,syn", "rtt=2ms rate=5mbit strip=data@2s..3s"),
    ] {
        let fields: Vec<String> = point(path, vary).iter().map(field).collect();
        assert_eq!(fields.join(" "), told);
    }
}

#[test]
fn a_link_has_the_keys_that_say_what_happens_on_the_way() {
    for key in PATH_KEYS.iter().filter(|key| !["rtt", "rate"].contains(&key.name)) {
        let link = format!("cell:rtt=1ms,rate=8mbit,{}={}", key.name, key.example);
        let path = ("path", "a:rtt=10ms,rate=5mbit,via=cell");
        let made = build(&[path, ("workload", "download:1MB"), ("link", &link)]);
        let unknown = made.is_err_and(|error| error.problem == "unknown key of a link");
        assert_eq!(unknown, !key.of_links, "{}", key.name);
    }
}

#[test]
fn the_schema_of_experiments_says_what_every_path_key_is() {
    let schema = file_schema();
    let paths = &schema["properties"]["path"]["items"]["anyOf"][1]["properties"];
    for key in PATH_KEYS {
        let said = paths[key.name]["description"].as_str().unwrap();
        assert!(said.contains(key.form) && !said.is_empty(), "{}", key.name);
        let widest = key.help.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= 53, "{}: the help is wider than a terminal", key.name);
    }
}
