//! Prices of paths and goals: `--cost`, `--quota` and `--goal`.

use crate::failure::Failure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use plait_core::Quota;
use plait_lab::scenario::{HIGHEST_COST, goal_of};
use plait_live::{Origin, Prefix};
use plait_report::names::unknown;
use plait_sched::Goal;
use std::net::IpAddr;

/// Flags of `get` and `proxy`, which dial.
#[derive(clap::Args, Debug)]
pub(crate) struct DialPrices {
    /// Price of a byte sent from an address or device; may be repeated
    ///
    /// The price is a whole number, relative to the other addresses and devices of this host. The others are
    /// free (0).
    #[arg(long, value_name = "ADDR|DEVICE=N")]
    cost: Vec<String>,
    /// Maximum payload to send from an address or device; may be repeated
    ///
    /// The payload of all connections counts, from the start of the command and without TCP retransmissions.
    /// The addresses of a device share the quota. When it is used up, data is sent there only if all other
    /// paths are down; with thrifty, never.
    #[arg(long, value_name = "ADDR|DEVICE=SIZE")]
    quota: Vec<String>,
    /// When to use a path with a cost
    ///
    /// aggregate: if the cheaper paths do not suffice; interactive: also if data arrives notably sooner
    /// there; handover: only if the cheaper paths are down; thrifty: as handover, and never for copies. The
    /// default is aggregate. A scheduler with `+price` has its goal there.
    #[arg(long, value_name = "GOAL", value_parser = goals())]
    goal: Option<Goal>,
}

/// Flags of `serve`.
#[derive(clap::Args, Debug)]
pub(crate) struct ServePrices {
    /// Price of a byte to clients in a prefix; may be repeated
    ///
    /// The price is a whole number, relative to other clients. The first prefix that contains an address
    /// applies, so give a longer prefix before a shorter one. Other addresses are free (0).
    #[arg(long, hide_short_help = true, value_name = "ADDR[/BITS]=N")]
    cost: Vec<String>,
    /// Maximum payload to send to all clients in a prefix; may be repeated
    ///
    /// The payload of all connections counts, from the start of the command and without TCP retransmissions.
    /// The first prefix that contains an address applies, so give a longer prefix before a shorter one. When
    /// its quota is used up, data is sent there only if all other paths are down; with thrifty, never.
    #[arg(long, hide_short_help = true, value_name = "ADDR[/BITS]=SIZE")]
    quota: Vec<String>,
    /// When to use a path with a cost, also for one port; may be repeated
    ///
    /// aggregate: if the cheaper paths do not suffice; interactive: also if data arrives notably sooner
    /// there; handover: only if the cheaper paths are down; thrifty: as handover, and never for copies. The
    /// default is aggregate. A scheduler with `+price` has its goal there.
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

/// Explains why a goal, written as `given`, cannot be combined with a scheduler that has `+price`; `None` if it
/// can.
pub(crate) fn goal_problem(given: &str, goal: Goal, scheduler: &str) -> Option<String> {
    let own = goal_of(&plait_sched::Spec::parse(scheduler).ok()?)?;
    let (scheduler, given) = (scheduler.escape_debug(), given.escape_debug());
    let goal = goal.as_str();
    let remedy = format!("leave out one of them, or write the goal there: +price:goal={goal}");
    Some(format!("`{given}`: `{scheduler}` has the goal {own} by its `+price`\n  {remedy}"))
}

/// A flag of prices.
struct Flag<T> {
    name: &'static str,
    /// The part that a text without `=` lacks.
    missing: &'static str,
    /// The form of a text.
    form: &'static str,
    /// Reads the price. The error has the problem and what is allowed.
    read: fn(&str) -> Result<T, (String, String)>,
}

/// Reads a cost.
fn cost(text: &str) -> Result<u32, (String, String)> {
    let plain = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let cost = text.parse::<u32>().ok().filter(|cost| plain && u64::from(*cost) <= HIGHEST_COST);
    let allowed = || format!(", with a whole number from 0 to {HIGHEST_COST}");
    cost.ok_or_else(|| ("the price is not such a number".to_owned(), allowed()))
}

/// Reads a quota.
fn quota(text: &str) -> Result<Quota, (String, String)> {
    let bytes = plait_app::quantity::bytes(text);
    bytes.map(Quota::new).map_err(|error| (error.to_string(), String::new()))
}

impl<T> Flag<T> {
    fn refuse(&self, text: &str, problem: &str) -> Failure {
        Failure::Usage(format!("--{}: `{}`: {problem}", self.name, text.escape_debug()))
    }

    /// Splits `KEY=PRICE`, and reads the price.
    fn priced<'a>(&self, text: &'a str) -> Result<(&'a str, T), Failure> {
        let form = self.form;
        let Some((key, price)) = text.rsplit_once('=') else {
            let problem = format!("it has no {}\n  allowed: {form}", self.missing);
            return Err(self.refuse(text, &problem));
        };
        let price = (self.read)(price).map_err(|(problem, allowed)| {
            self.refuse(text, &format!("{problem}\n  allowed: {form}{allowed}"))
        })?;
        Ok((key, price))
    }

    /// Reads the prices of the addresses of `flag`, and gives each its own by `set`.
    fn set_all(
        &self,
        texts: &[String],
        flag: &str,
        from: &mut [Origin],
        set: impl Fn(&mut Origin, &T),
    ) -> Result<(), Failure> {
        let mut known: Vec<&str> = Vec::new();
        for text in texts {
            let (key, price) = self.priced(text)?;
            let address = key.parse::<IpAddr>().ok();
            let is_meant = |origin: &&mut Origin| {
                Some(origin.address) == address || origin.device.as_deref() == Some(key)
            };
            if known.contains(&key) {
                let problem =
                    format!("it has a {0} already\n  give one {0} for each", self.missing);
                return Err(self.refuse(text, &problem));
            }
            if from.iter_mut().filter(is_meant).map(|it| set(it, &price)).count() == 0 {
                let problem = format!("no {flag} has this address or device\n  name one of {flag}");
                return Err(self.refuse(text, &problem));
            }
            known.push(key);
        }
        Ok(())
    }

    /// Reads the prices of prefixes. `v4` is the family of the server.
    fn of_prefixes(&self, texts: &[String], v4: bool) -> Result<Vec<(Prefix, T)>, Failure> {
        let mut all: Vec<(Prefix, T)> = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            let (prefix, price) = self.of_prefix(text, v4)?;
            // The first prefix applies, so this one would have no effect.
            if let Some(earlier) = all.iter().position(|(known, _)| known.covers(&prefix)) {
                let remedy = match all[earlier].0 == prefix {
                    true => "give each prefix once",
                    false => "give the longer prefix first",
                };
                let before = texts[..at][earlier].escape_debug();
                let problem = format!(
                    "it never applies, because `{before}` comes first and contains it\n  {remedy}"
                );
                return Err(self.refuse(text, &problem));
            }
            all.push((prefix, price));
        }
        Ok(all)
    }

    /// Reads the price of a prefix. `v4` is the family of the server.
    fn of_prefix(&self, text: &str, v4: bool) -> Result<(Prefix, T), Failure> {
        let (key, price) = self.priced(text)?;
        let prefix: Prefix = key.parse().map_err(|problem| {
            self.refuse(text, &format!("{problem}\n  allowed: {}", self.form))
        })?;
        if prefix.is_ipv4() != v4 {
            let problem = "it is of another family than --listen\n  give one of the same family";
            return Err(self.refuse(text, problem));
        }
        Ok((prefix, price))
    }
}

impl DialPrices {
    /// Sets the prices of the addresses of `flag`. Returns the goal that `scheduler` keeps to; `None` if
    /// no price or goal is given.
    pub(crate) fn set(
        &self,
        flag: &str,
        from: &mut [Origin],
        scheduler: &str,
    ) -> Result<Option<Goal>, Failure> {
        let conflict = self.goal.and_then(|goal| goal_problem(goal.as_str(), goal, scheduler));
        if let Some(problem) = conflict {
            return Err(Failure::Usage(format!("--goal: {problem}")));
        }
        let form = "ADDR=N or DEVICE=N, such as wlan0=1";
        let costs = Flag { name: "cost", missing: "price", form, read: cost };
        costs.set_all(&self.cost, flag, from, |origin, cost| origin.cost = *cost)?;
        let form = "ADDR=SIZE or DEVICE=SIZE, such as wwan0=1GB";
        let quotas = Flag { name: "quota", missing: "size", form, read: quota };
        quotas.set_all(&self.quota, flag, from, |it, quota| it.quota = Some(quota.clone()))?;
        let goal = self.goal.unwrap_or_default();
        let acts = !self.cost.is_empty() || !self.quota.is_empty() || goal != Goal::default();
        Ok(acts.then_some(goal))
    }
}

/// The prices of a server, and its goals.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ServerPrices {
    pub(crate) costs: Vec<(Prefix, u32)>,
    pub(crate) quotas: Vec<(Prefix, Quota)>,
    /// The goal of ports without one of their own.
    goal: Option<Goal>,
    ports: Vec<(u16, Goal)>,
}

impl ServePrices {
    /// Reads the prices and goals of a server. `v4` is its family. `ports` are its ports with their
    /// schedulers, first that of --scheduler.
    pub(crate) fn read(&self, v4: bool, ports: &[(u16, &str)]) -> Result<ServerPrices, Failure> {
        let form = "ADDR=N or ADDR/BITS=N, such as 100.64.0.0/10=1";
        let costs = Flag { name: "cost", missing: "price", form, read: cost };
        let costs = costs.of_prefixes(&self.cost, v4)?;
        let form = "ADDR=SIZE or ADDR/BITS=SIZE, such as 100.64.0.0/10=1GB";
        let quotas = Flag { name: "quota", missing: "size", form, read: quota };
        let quotas = quotas.of_prefixes(&self.quota, v4)?;
        let mut prices = ServerPrices { costs, quotas, goal: None, ports: Vec::new() };
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
            let fits = |scheduler: &str| match goal_problem(text, goal, scheduler) {
                Some(problem) => Err(Failure::Usage(format!("--goal: {problem}"))),
                None => Ok(()),
            };
            let Some(port) = port else {
                ports.first().map_or(Ok(()), |(_, scheduler)| fits(scheduler))?;
                if prices.goal.replace(goal).is_some() {
                    return Err(twice());
                }
                continue;
            };
            let number = port.parse::<u16>().ok();
            let known = number.and_then(|number| ports.iter().find(|(port, _)| *port == number));
            let (number, scheduler) = *known.ok_or_else(|| {
                refuse("the server does not listen on this port\n  listen on it with --port PORT=SCHEDULER")
            })?;
            fits(scheduler)?;
            if prices.ports.iter().any(|(known, _)| *known == number) {
                return Err(twice());
            }
            prices.ports.push((number, goal));
        }
        Ok(prices)
    }
}

impl ServerPrices {
    /// Returns the lines about the quotas, one for each.
    pub(crate) fn rests(&self) -> Vec<String> {
        self.quotas.iter().map(|(prefix, quota)| rest(&prefix.to_string(), quota)).collect()
    }

    /// Returns the goal that a scheduler keeps to: `own`, that of its port, or that of all ports. Returns
    /// `None` if no price or goal is given.
    pub(crate) fn goal(&self, own: Option<Goal>, port: Option<u16>) -> Option<Goal> {
        let of_port = port.and_then(|port| self.ports.iter().find(|(known, _)| *known == port));
        let given = own.or(of_port.map(|(_, goal)| *goal)).or(self.goal).unwrap_or_default();
        let acts = !self.costs.is_empty() || !self.quotas.is_empty() || given != Goal::default();
        acts.then_some(given)
    }
}

/// Returns the line about a quota when the command ends.
fn rest(of: &str, quota: &Quota) -> String {
    let (bytes, left, over) = (quota.bytes(), quota.left(), quota.over());
    format!("event=quota of={of} bytes={bytes} left={left} over={over}")
}

/// Returns the lines about the quotas of a client, one for each.
pub(crate) fn rests(from: &[Origin]) -> Vec<String> {
    let mut told: Vec<&Quota> = Vec::new();
    let mut lines = Vec::new();
    for Origin { address, device, quota, .. } in from {
        if let Some(quota) = quota.as_ref().filter(|quota| !told.contains(quota)) {
            told.push(quota);
            lines.push(rest(&device.clone().unwrap_or_else(|| address.to_string()), quota));
        }
    }
    lines
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
            quota: None,
        };
        vec![own(1, None), own(2, Some("wwan0")), own(3, Some("wwan0"))]
    }

    fn dial(costs: &[&str], goal: Goal) -> Result<(Option<Goal>, Vec<u32>), String> {
        dial_with(costs, Some(goal), "slot")
    }

    fn dial_with(
        costs: &[&str],
        goal: Option<Goal>,
        scheduler: &str,
    ) -> Result<(Option<Goal>, Vec<u32>), String> {
        let cost = costs.iter().map(ToString::to_string).collect();
        let mut from = origins();
        let flags = DialPrices { cost, quota: Vec::new(), goal };
        let set = flags.set("--from", &mut from, scheduler);
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

    /// A scheduler with `+price` keeps its own goal.
    #[test]
    fn a_goal_beside_a_scheduler_with_price_is_refused() {
        for scheduler in ["slot+price:goal=handover", "minrtt+price:wait=1,goal=handover"] {
            let problem = dial_with(&[], Some(Goal::Thrifty), scheduler).unwrap_err();
            let expected = format!(
                "--goal: `thrifty`: `{scheduler}` has the goal handover by its `+price`\n  \
                 leave out one of them, or write the goal there: +price:goal=thrifty"
            );
            assert_eq!(problem, expected);
            assert!(dial_with(&["wwan0=1"], None, scheduler).is_ok());
        }
        let own = "slot+price:goal=handover";
        for (goals, ports) in [
            (["thrifty"], [(80, own), (443, "slot")]),
            (["443=thrifty"], [(80, "slot"), (443, own)]),
        ] {
            let problem = serve_with(&[], &goals, &ports).unwrap_err();
            let expected = format!("--goal: `{}`: `{own}` has the goal handover", goals[0]);
            assert!(problem.starts_with(&expected), "{problem}");
        }
        // A port may differ from the goal of all ports, as a rule may.
        assert!(serve_with(&[], &["thrifty"], &[(80, "slot"), (443, own)]).is_ok());
    }

    fn limited(quotas: &[&str]) -> Result<(Option<Goal>, Vec<Origin>), String> {
        let quota = quotas.iter().map(ToString::to_string).collect();
        let mut from = origins();
        let flags = DialPrices { cost: Vec::new(), quota, goal: None };
        match flags.set("--from", &mut from, "slot") {
            Ok(goal) => Ok((goal, from)),
            Err(Failure::Usage(problem)) => Err(problem),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn the_addresses_of_a_device_share_its_quota() {
        let (goal, from) = limited(&["wwan0=1GB", "10.98.1.77=500kB"]).unwrap();
        assert_eq!(goal, Some(Goal::Aggregate));
        let bytes: Vec<u64> = from.iter().map(|it| it.quota.as_ref().unwrap().bytes()).collect();
        assert_eq!(bytes, [500_000, 1_000_000_000, 1_000_000_000]);
        assert_eq!(from[1].quota, from[2].quota);
        assert_ne!(from[0].quota, from[1].quota);
        assert_eq!(
            rests(&from),
            [
                "event=quota of=10.98.1.77 bytes=500000 left=500000 over=0",
                "event=quota of=wwan0 bytes=1000000000 left=1000000000 over=0",
            ]
        );
        for (quotas, part) in [
            (&["wlan0=1MB"][..], "no --from has this address or device"),
            (&["wwan0"], "it has no size\n  allowed: ADDR=SIZE or DEVICE=SIZE"),
            (&["wwan0=1000"], "1000"),
            (&["wwan0=1mbit"], "allowed: ADDR=SIZE or DEVICE=SIZE, such as wwan0=1GB"),
            (&["wwan0=1MB", "wwan0=2MB"], "it has a size already"),
        ] {
            let problem = limited(quotas).unwrap_err();
            assert!(problem.starts_with("--quota: `") && problem.contains(part), "{problem}");
        }
    }

    fn serve(costs: &[&str], goals: &[&str]) -> Result<ServerPrices, String> {
        serve_with(costs, goals, &[(80, "slot"), (443, "slot")])
    }

    fn serve_with(
        costs: &[&str],
        goals: &[&str],
        ports: &[(u16, &str)],
    ) -> Result<ServerPrices, String> {
        let list = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        let flags = ServePrices { cost: list(costs), quota: Vec::new(), goal: list(goals) };
        flags.read(true, ports).map_err(|failure| match failure {
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
    fn a_prefix_has_a_quota() {
        let read = |text: &str| {
            let quota = vec![text.to_owned()];
            let flags = ServePrices { cost: Vec::new(), quota, goal: Vec::new() };
            flags.read(true, &[(80, "slot")]).map_err(|failure| format!("{failure:?}"))
        };
        let prices = read("100.64.0.0/10=2GB").unwrap();
        assert_eq!(prices.quotas[0].0, "100.64.0.0/10".parse().unwrap());
        assert_eq!(prices.quotas[0].1.left(), 2_000_000_000);
        assert_eq!(prices.goal(None, None), Some(Goal::Aggregate));
        for (text, part) in [
            ("fd00::/8=1MB", "another family than --listen"),
            ("10.0.0.0/8", "it has no size"),
            ("10.0.0.0/8=1", "--quota"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(part), "{problem}");
        }
    }

    /// The first prefix applies, so a prefix within an earlier one has no effect.
    #[test]
    fn a_prefix_that_never_applies_is_refused() {
        let read = |cost: &[&str], quota: &[&str]| {
            let list = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
            let flags = ServePrices { cost: list(cost), quota: list(quota), goal: Vec::new() };
            flags.read(true, &[(80, "slot")]).map_err(|failure| match failure {
                Failure::Usage(problem) => problem,
                other => format!("{other:?}"),
            })
        };
        let first = |before: &str| format!("it never applies, because `{before}` comes first");
        for (list, remedy) in [
            (["10.0.0.0/8=1", "10.0.0.0/8=2"], "give each prefix once"),
            (["10.0.0.0/8=1", "10.1.0.0/16=0"], "give the longer prefix first"),
            (["10.0.0.0/8=1", "10.1.2.3=0"], "give the longer prefix first"),
        ] {
            let problem = read(&list, &[]).unwrap_err();
            assert!(problem.starts_with(&format!("--cost: `{}`: ", list[1])), "{problem}");
            assert!(problem.contains(&first(list[0])) && problem.ends_with(remedy), "{problem}");
        }
        let problem = read(&[], &["10.0.0.0/8=1MB", "10.0.0.0/8=2MB"]).unwrap_err();
        assert!(problem.starts_with("--quota: `10.0.0.0/8=2MB`: "), "{problem}");
        assert!(problem.contains(&first("10.0.0.0/8=1MB")), "{problem}");
        // An exception before the rule, and a cost beside a quota.
        let prices = read(&["10.1.0.0/16=0", "10.0.0.0/8=1"], &["10.0.0.0/8=1MB"]).unwrap();
        assert_eq!(prices.costs.len(), 2);
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
