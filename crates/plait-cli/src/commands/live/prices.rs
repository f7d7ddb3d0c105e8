//! Prices of paths and goals: `--cost` and `--goal`.

use crate::failure::Failure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use plait_lab::scenario::HIGHEST_COST;
use plait_live::{Origin, Prefix};
use plait_report::names::unknown;
use plait_sched::Goal;
use std::net::IpAddr;

/// Flags of `get` and `proxy`, which dial.
#[derive(clap::Args, Debug)]
pub(crate) struct DialPrices {
    /// Price of a byte sent from an own address or device, relative to the others; may be repeated
    ///
    /// The price is a whole number. The others are free (0).
    #[arg(long, value_name = "ADDR|DEVICE=N")]
    cost: Vec<String>,
    /// Use of paths with a cost
    ///
    /// aggregate: if the cheaper ones do not suffice; interactive: also if data arrives notably sooner
    /// there; handover: only if they are down; thrifty: as handover, and never for copies.
    #[arg(long, value_name = "GOAL", default_value = "aggregate", value_parser = goals())]
    goal: Goal,
}

/// Flags of `serve`.
#[derive(clap::Args, Debug)]
pub(crate) struct ServePrices {
    /// Price of a byte to clients' addresses with a prefix, relative to others; may be repeated
    ///
    /// The price is a whole number. The first prefix that contains an address counts, and other addresses
    /// are free (0).
    #[arg(long, hide_short_help = true, value_name = "ADDR[/BITS]=N")]
    cost: Vec<String>,
    /// Use of paths with a cost, also for one port; may be repeated
    ///
    /// aggregate: if the cheaper ones do not suffice; interactive: also if data arrives notably sooner
    /// there; handover: only if they are down; thrifty: as handover, and never for copies. The default is
    /// aggregate.
    #[arg(long, hide_short_help = true, value_name = "[PORT=]GOAL")]
    goal: Vec<String>,
}

fn goals() -> impl TypedValueParser<Value = Goal> {
    let words = PossibleValuesParser::new(Goal::ALL.iter().map(|(word, _)| *word));
    words.map(|word| Goal::named(&word).unwrap_or_default())
}

/// Reads a goal.
pub(crate) fn goal(text: &str) -> Result<Goal, String> {
    let words = Goal::ALL.iter().map(|(word, _)| *word);
    Goal::named(text).ok_or_else(|| unknown("goal", &text.escape_debug().to_string(), words))
}

/// Splits `KEY=N` and reads the price; `form` is the form of the text.
fn priced<'a>(text: &'a str, form: &str) -> Result<(&'a str, u32), Failure> {
    let refuse = |problem: &str, allowed: &str| {
        let given = text.escape_debug();
        Failure::Usage(format!("--cost: `{given}`: {problem}\n  allowed: {allowed}"))
    };
    let Some((key, price)) = text.rsplit_once('=') else {
        return Err(refuse("it has no price", form));
    };
    let plain = !price.is_empty() && price.bytes().all(|it| it.is_ascii_digit());
    match price.parse::<u32>().ok().filter(|cost| plain && u64::from(*cost) <= HIGHEST_COST) {
        Some(cost) => Ok((key, cost)),
        None => {
            let allowed = format!("{form}, with a whole number from 0 to {HIGHEST_COST}");
            Err(refuse("the price is not such a number", &allowed))
        }
    }
}

impl DialPrices {
    /// Sets the prices of the addresses of `flag`. Returns the goal that the scheduler keeps to; `None` if
    /// no price or goal is given.
    pub(crate) fn set(&self, flag: &str, from: &mut [Origin]) -> Result<Option<Goal>, Failure> {
        let mut known: Vec<&str> = Vec::new();
        for text in &self.cost {
            let (key, cost) = priced(text, "ADDR=N or DEVICE=N, such as wlan0=1")?;
            let address = key.parse::<IpAddr>().ok();
            let is_meant = |origin: &&mut Origin| {
                Some(origin.address) == address || origin.device.as_deref() == Some(key)
            };
            let problem = if known.contains(&key) {
                "it has a price already\n  give one price for each".to_owned()
            } else if from.iter_mut().filter(is_meant).map(|it| it.cost = cost).count() == 0 {
                format!("no {flag} has this address or device\n  name one of {flag}")
            } else {
                known.push(key);
                continue;
            };
            return Err(Failure::Usage(format!("--cost: `{}`: {problem}", text.escape_debug())));
        }
        let acts = !self.cost.is_empty() || self.goal != Goal::default();
        Ok(acts.then_some(self.goal))
    }
}

/// The prices of a server, and its goals.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ServerPrices {
    pub(crate) costs: Vec<(Prefix, u32)>,
    /// The goal of ports without one of their own.
    goal: Option<Goal>,
    ports: Vec<(u16, Goal)>,
}

impl ServePrices {
    /// Reads the prices and goals of a server. `v4` is its family, `ports` are its ports.
    pub(crate) fn read(&self, v4: bool, ports: &[u16]) -> Result<ServerPrices, Failure> {
        let costs = self.cost.iter().map(|text| prefix(text, v4)).collect::<Result<_, _>>()?;
        let mut prices = ServerPrices { costs, goal: None, ports: Vec::new() };
        for text in &self.goal {
            let refuse = |problem: &str| {
                let given = text.escape_debug();
                Failure::Usage(format!("--goal: `{given}`: {problem}"))
            };
            let twice =
                || refuse("there is a goal for this already\n  give one goal for each port");
            let (port, word) = match text.split_once('=') {
                Some((port, word)) => (Some(port), word),
                None => (None, text.as_str()),
            };
            let goal =
                goal(word).map_err(|problem| Failure::Usage(format!("--goal: {problem}")))?;
            let Some(port) = port else {
                if prices.goal.replace(goal).is_some() {
                    return Err(twice());
                }
                continue;
            };
            let number = port.parse::<u16>().ok().filter(|port| ports.contains(port));
            let number = number.ok_or_else(|| {
                refuse("the server does not listen on this port\n  listen on it with --port PORT=SCHEDULER")
            })?;
            if prices.ports.iter().any(|(known, _)| *known == number) {
                return Err(twice());
            }
            prices.ports.push((number, goal));
        }
        Ok(prices)
    }
}

fn prefix(text: &str, v4: bool) -> Result<(Prefix, u32), Failure> {
    let form = "ADDR=N or ADDR/BITS=N, such as 100.64.0.0/10=1";
    let (key, cost) = priced(text, form)?;
    let refuse =
        |problem: &str| Failure::Usage(format!("--cost: `{}`: {problem}", text.escape_debug()));
    let prefix: Prefix =
        key.parse().map_err(|problem| refuse(&format!("{problem}\n  allowed: {form}")))?;
    if prefix.is_ipv4() != v4 {
        return Err(refuse("it is of another family than --listen\n  give one of the same family"));
    }
    Ok((prefix, cost))
}

impl ServerPrices {
    /// Returns the goal that a scheduler keeps to: `own`, that of its port, or that of all ports. Returns
    /// `None` if no price or goal is given.
    pub(crate) fn goal(&self, own: Option<Goal>, port: Option<u16>) -> Option<Goal> {
        let of_port = port.and_then(|port| self.ports.iter().find(|(known, _)| *known == port));
        let given = own.or(of_port.map(|(_, goal)| *goal)).or(self.goal).unwrap_or_default();
        (!self.costs.is_empty() || given != Goal::default()).then_some(given)
    }
}

/// Returns the text of a scheduler that keeps to a goal.
pub(crate) fn named(scheduler: &str, goal: Option<Goal>) -> String {
    match (goal, plait_sched::Spec::parse(scheduler)) {
        (Some(goal), Ok(spec)) => spec.with_goal(goal).to_string(),
        _ => scheduler.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins() -> Vec<Origin> {
        let own = |last, device: Option<&str>| Origin {
            address: IpAddr::from([10, 98, last, 77]),
            device: device.map(str::to_owned),
            cost: 0,
        };
        vec![own(1, None), own(2, Some("wwan0")), own(3, Some("wwan0"))]
    }

    fn dial(costs: &[&str], goal: Goal) -> Result<(Option<Goal>, Vec<u32>), String> {
        let cost = costs.iter().map(ToString::to_string).collect();
        let mut from = origins();
        let set = DialPrices { cost, goal }.set("--from", &mut from);
        match set {
            Ok(goal) => Ok((goal, from.iter().map(|it| it.cost).collect())),
            Err(Failure::Usage(problem)) => Err(problem),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn an_address_or_a_device_gets_its_price() {
        let aggregate = Some(Goal::Aggregate);
        assert_eq!(dial(&[], Goal::Aggregate), Ok((None, vec![0, 0, 0])));
        assert_eq!(dial(&[], Goal::Handover), Ok((Some(Goal::Handover), vec![0, 0, 0])));
        assert_eq!(dial(&["10.98.1.77=2"], Goal::Aggregate), Ok((aggregate, vec![2, 0, 0])));
        let both = ["wwan0=3", "10.98.1.77=1000000"];
        assert_eq!(dial(&both, Goal::Thrifty), Ok((Some(Goal::Thrifty), vec![1_000_000, 3, 3])));
        for (costs, part) in [
            (&["wlan0=1"][..], "no --from has this address or device"),
            (&["wwan0"], "it has no price\n  allowed: ADDR=N or DEVICE=N"),
            (&["wwan0=1000001"], "a whole number from 0 to 1000000"),
            (&["wwan0=+1"], "a whole number"),
            (&["wwan0=1", "wwan0=2"], "it has a price already"),
        ] {
            let problem = dial(costs, Goal::Aggregate).unwrap_err();
            assert!(problem.starts_with("--cost: `") && problem.contains(part), "{problem}");
        }
    }

    fn serve(costs: &[&str], goals: &[&str]) -> Result<ServerPrices, String> {
        let list = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        let flags = ServePrices { cost: list(costs), goal: list(goals) };
        flags.read(true, &[80, 443]).map_err(|failure| match failure {
            Failure::Usage(problem) => problem,
            other => format!("{other:?}"),
        })
    }

    #[test]
    fn a_rule_has_its_goal_or_that_of_its_port_or_that_of_all() {
        let free = serve(&[], &[]).unwrap();
        assert_eq!(free.goal(None, Some(80)), None);
        assert_eq!(free.goal(Some(Goal::Thrifty), None), Some(Goal::Thrifty));
        let prices = serve(&["100.64.0.0/10=2", "10.0.0.1=1"], &["443=thrifty"]).unwrap();
        assert_eq!(prices.costs[1], ("10.0.0.1".parse().unwrap(), 1));
        assert_eq!(prices.goal(None, Some(80)), Some(Goal::Aggregate));
        assert_eq!(prices.goal(None, Some(443)), Some(Goal::Thrifty));
        assert_eq!(prices.goal(Some(Goal::Handover), Some(443)), Some(Goal::Handover));
        let prices = serve(&[], &["interactive", "80=aggregate"]).unwrap();
        assert_eq!(prices.goal(None, None), Some(Goal::Interactive));
        assert_eq!(prices.goal(None, Some(80)), None);
    }

    #[test]
    fn errors_of_a_server_have_place_and_remedy() {
        for (costs, goals, part) in [
            (&["10.0.0.0/8"][..], &[][..], "--cost: `10.0.0.0/8`: it has no price"),
            (&["10.1.0.0/8=1"], &[], "bits are set behind the prefix"),
            (&["fd00::/8=1"], &[], "another family than --listen"),
            (&["lte=1"], &[], "no IP address\n  allowed: ADDR=N or ADDR/BITS=N"),
            (&["10.0.0.0/8=-1"], &[], "a whole number from 0"),
            (&[], &["thriftty"], "did you mean `thrifty`?"),
            (&[], &["80=fast"], "allowed: aggregate interactive handover thrifty"),
            (&[], &["81=thrifty"], "listen on it with --port"),
            (&[], &["x=thrifty"], "the server does not listen on this port"),
            (&[], &["thrifty", "handover"], "--goal: `handover`: there is a goal for this"),
            (&[], &["80=thrifty", "80=handover"], "give one goal for each port"),
        ] {
            let problem = serve(costs, goals).unwrap_err();
            assert!(problem.contains(part), "{problem}");
        }
        assert_eq!(named("slot", Some(Goal::Thrifty)), "slot+price:goal=thrifty");
        assert_eq!(named("slot+price:wait=1", Some(Goal::Thrifty)), "slot+price:wait=1");
        assert_eq!(named("ecf", None), "ecf");
    }
}
