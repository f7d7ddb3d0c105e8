//! Prints a case as JSON on one line, without default values, and parses it.

use super::{Case, Finish, LATEST_MS, MemoryCase, PathCase};
use crate::scenario::HIGHEST_COST;
use serde_json::Value;
use std::fmt;

/// An invalid case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaseError {
    /// The invalid member; empty if the error is not in a member.
    pub member: String,
    /// Description of the error, for a JSON error as the JSON reader words it.
    pub problem: String,
}

impl CaseError {
    pub(in crate::swarm) fn new(error: &impl fmt::Display) -> CaseError {
        CaseError { member: String::new(), problem: error.to_string() }
    }
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.member.as_str() {
            "" => f.write_str(&self.problem),
            member => write!(f, "{member}: {}", self.problem),
        }
    }
}

impl std::error::Error for CaseError {}

/// Limit of bytes, for a buffer and for sent data.
const MOST_BYTES: u64 = 1 << 30;
impl Case {
    /// Parses the JSON that [`Case`] prints.
    ///
    /// # Errors
    /// If the text is not JSON, a member is unknown, or a value is out of range; the error names the member.
    pub fn parse(text: &str) -> Result<Case, CaseError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let case: Case = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            // The error is before the first member, or in a member without a name.
            let member = if path == "." || path == "?" { String::new() } else { path };
            CaseError { member, problem: error.inner().to_string() }
        })?;
        reader.end().map_err(|error| CaseError::new(&error))?;
        case.verify().map_err(|problem| CaseError::new(&problem))?;
        Ok(case)
    }

    /// Checks that the case can be run.
    fn verify(&self) -> Result<(), String> {
        within("paths", self.paths.len() as u64, 1, 8)?;
        for (index, path) in self.paths.iter().enumerate() {
            within(&format!("paths[{index}].rate_kbps"), path.rate_kbps, 1, 100_000_000)?;
            within(&format!("paths[{index}].rtt_us"), path.rtt_us, 0, 60_000_000)?;
            within(&format!("paths[{index}].jitter_us"), path.jitter_us, 0, 60_000_000)?;
            within(&format!("paths[{index}].cost"), path.cost.into(), 0, HIGHEST_COST)?;
            within(&format!("paths[{index}].quota_bytes"), path.quota_bytes, 0, MOST_BYTES)?;
        }
        within("pairs", u64::from(self.pairs), 1, 8)?;
        within("connections", u64::from(self.connections), 1, 8)?;
        within("shared_kbps", self.shared_kbps, 1, 100_000_000)?;
        plait_sched::Spec::parse(&self.scheduler).map_err(|error| format!("scheduler: {error}"))?;
        let controller = plait_cc::Spec::parse(&self.controller)
            .map_err(|error| format!("controller: {error}"))?;
        if controller.needs_bdp() {
            return Err(
                "controller: `fixed:cwnd=BDP` has no rate here; allowed: fixed:cwnd=20seg".into()
            );
        }
        within("settings.ssthresh_bytes", self.settings.ssthresh_bytes, 0, MOST_BYTES)?;
        within("settings.initial_window", u64::from(self.settings.initial_window), 1, 1_000)?;
        within("settings.send_cost_ns", self.settings.send_cost_ns, 0, 1_000_000)?;
        within("settings.subflows", u64::from(self.settings.subflows), 1, 8)?;
        for (name, end) in [("client", &self.client), ("server", &self.server)] {
            within(&format!("{name}.send_bytes"), end.send_bytes, 0, MOST_BYTES)?;
            within(&format!("{name}.write_bytes"), end.write_bytes, 0, MOST_BYTES)?;
            within(&format!("{name}.write_every_ms"), end.write_every_ms, 0, LATEST_MS)?;
            within(&format!("{name}.rcvbuf_bytes"), end.rcvbuf_bytes, 1, MOST_BYTES)?;
            within(&format!("{name}.sndbuf_bytes"), end.sndbuf_bytes, 1, MOST_BYTES)?;
            within(&format!("{name}.mtu_bytes"), u64::from(end.mtu_bytes), 128, 65_535)?;
        }
        if self.client.finish == Finish::AfterPeer && self.server.finish == Finish::AfterPeer {
            return Err("server.finish: `after-peer` at both ends never ends".into());
        }
        for (index, it) in self.memory.iter().enumerate() {
            it.verify(self.paths.len()).map_err(|error| format!("memory[{index}].{error}"))?;
        }
        within("heals_ms", self.heals_ms, 0, LATEST_MS)?;
        for (index, fault) in self.faults.iter().enumerate() {
            fault.verify(self.paths.len()).map_err(|error| format!("faults[{index}].{error}"))?;
        }
        Ok(())
    }
}

pub(super) fn within(field: &str, value: u64, low: u64, high: u64) -> Result<(), String> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(format!("{field}: {value} is out of range; allowed: {low} to {high}"))
}

/// Prints JSON on one line, without members that have their default value.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The seed is always printed.
        let plain = Case { seed: !self.seed, ..Case::default() };
        let value = |case: &Case| serde_json::to_value(case).map_err(|_| fmt::Error);
        let mut own = value(self)?;
        shorten(&mut own, &value(&plain)?);
        let path = serde_json::to_value(PathCase::default()).map_err(|_| fmt::Error)?;
        let memory = serde_json::to_value(MemoryCase::default()).map_err(|_| fmt::Error)?;
        for (name, plain) in [("paths", path), ("memory", memory)] {
            for own in own.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten() {
                shorten(own, &plain);
            }
        }
        for fault in own.get_mut("faults").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(members) = fault.as_object_mut() {
                members.retain(|name, value| name != "way" || value != "both");
            }
        }
        write!(f, "{own}")
    }
}

/// Removes the members that are equal in `plain`.
pub(in crate::swarm) fn shorten(own: &mut Value, plain: &Value) {
    let (Value::Object(own), Value::Object(plain)) = (own, plain) else { return };
    for (name, usual) in plain {
        if own.get(name) == Some(usual) {
            own.remove(name);
        } else if let Some(value) = own.get_mut(name) {
            shorten(value, usual);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::draw;

    #[test]
    fn what_is_printed_reads_back() {
        for seed in 0..500 {
            let case = draw(seed);
            assert_eq!(Case::parse(&case.to_string()), Ok(case));
        }
    }

    #[test]
    fn a_case_has_the_words_of_the_settings_of_a_scenario() {
        let members = ["join", "rto", "idle_restart", "prr", "hystart"];
        for member in members {
            let words = crate::scenario::Setting::named(member).unwrap().examples();
            // `linux6` belongs to the `kernel` setting.
            for word in words.iter().filter(|word| *word != "linux6") {
                let text = format!(r#"{{"paths":[{{}}],"settings":{{"{member}":"{word}"}}}}"#);
                let case = Case::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                assert_eq!(Case::parse(&case.to_string()), Ok(case), "{text}");
            }
        }
    }

    #[test]
    fn a_plain_case_is_short() {
        let case = Case { seed: 7, paths: vec![PathCase::default(); 2], ..Case::default() };
        assert_eq!(case.to_string(), r#"{"seed":7,"paths":[{},{}]}"#);
    }

    #[test]
    fn errors_name_the_member() {
        let error = |text: &str| Case::parse(text).unwrap_err().to_string();
        assert!(error("{").contains("EOF"), "{}", error("{"));
        assert!(error(r#"{"pahts":[{}]}"#).contains("unknown field `pahts`"));
        assert_eq!(error(r#"{"paths":[]}"#), "paths: 0 is out of range; allowed: 1 to 8");
        let text = r#"{"paths":[{"rate_kbps":"x"}]}"#;
        assert!(error(text).starts_with("paths[0].rate_kbps: invalid type"), "{}", error(text));
        let text = r#"{"paths":[{}],"faults":[{"kind":"loss","path":1,"ppm":5}]}"#;
        assert_eq!(error(text), "faults[0].path: 1 is out of range; allowed: 0 to 0");
        let text = r#"{"paths":[{}],"memory":[{"path":1}]}"#;
        assert_eq!(error(text), "memory[0].path: 1 is out of range; allowed: 0 to 0");
        assert!(error(r#"{"paths":[{}],"scheduler":"blast"}"#).starts_with("scheduler: "));
        assert!(error(r#"{"paths":[{}],"controller":"fixed:cwnd=BDP"}"#).contains("20seg"));
        let both =
            r#"{"paths":[{}],"client":{"finish":"after-peer"},"server":{"finish":"after-peer"}}"#;
        assert!(error(both).contains("never ends"));
        assert!(error(r#"{"paths":[{}]} x"#).contains("trailing"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,80}", cut in 0..400_usize, put in proptest::prelude::any::<char>()) {
            let _ = Case::parse(&text);
            let mut whole: Vec<char> = draw(3).to_string().chars().collect();
            let at = cut.min(whole.len() - 1);
            whole[at] = put;
            let _ = Case::parse(&whole.into_iter().collect::<String>());
        }
    }
}
