//! Every entry of the table of settings is read, printed and varied.

use super::*;
use crate::experiment::file_schema;

/// A scenario in which every example of a setting has a place.
const BASE: [(&str, &str); 5] = [
    ("link", "cell:rate=8mbit"),
    ("path", "a:rtt=10ms,rate=5mbit"),
    ("path", "b:rtt=30ms,rate=3mbit,via=cell"),
    ("workload", "download:1MB"),
    ("seed", "7"),
];

/// The base with a setting in place of its own.
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

#[test]
fn every_setting_is_read_and_printed_and_read_again() {
    for setting in SETTINGS {
        let default = [setting.default.to_owned()].into_iter().filter(|it| !it.is_empty());
        for text in setting.examples().into_iter().chain(default) {
            let scenario = built(&with(setting.name, &text));
            let told = setting.texts(&scenario);
            let always = ["runs", "seed"].contains(&setting.name);
            let is_told = always || text != setting.default;
            assert_eq!(told, if is_told { vec![text] } else { vec![] }, "{}", setting.name);
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
            let told = setting.texts(&point.scenario);
            assert!(told == [text] || told.is_empty(), "{}: {told:?}", setting.name);
        }
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
    // A parameter goes on with the value before it.
    let loss = points("a.loss=0%,ge:p=1%,r=30%,bad=50%,2%");
    assert_eq!(loss.len(), 3);
    assert!(matches!(
        loss[1].scenario.paths[0].loss.down,
        plait_link::LossModel::GilbertElliott(_)
    ));
}

#[test]
fn the_schema_of_experiments_has_every_setting() {
    let schema = file_schema();
    // An experiment says these in another way, or not.
    let other = ["vary", "expect", "jobs", "kernel"];
    for setting in SETTINGS.iter().filter(|it| !other.contains(&it.name)) {
        let said = schema["properties"][setting.name]["description"].as_str().unwrap();
        assert!(said.contains(setting.help) && said.contains(&setting.values()), "{said}");
    }
}
