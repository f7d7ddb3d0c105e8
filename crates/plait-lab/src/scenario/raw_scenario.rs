//! A scenario as it was written: texts with their places, not yet understood. Flags, files and
//! sweeps all become raw scenarios, so each is read by the same code and refused with the same words.

use super::impairment;
use super::other_keys::canonical;
use crate::error::{Fault, Place, ScenarioError};
use plait_app::name::nearest;
use plait_app::quantity::QuantityError;
use std::collections::BTreeMap;
use std::fmt;

/// A text and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacedText {
    /// Where it stands.
    pub place: Place,
    /// The text.
    pub text: String,
}

/// A setting of a scenario: a flag without its dashes, and a key of a scenario file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Name; a file may also write `_` for `-`.
    pub name: &'static str,
    /// What it takes.
    pub values: &'static str,
    /// Value where nothing is said; empty for none.
    pub default: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// A flag without a value; `on` or `off` in a file.
    pub switch: bool,
    /// Whether it may be given more than once.
    pub repeats: bool,
}

const fn setting(
    name: &'static str,
    values: &'static str,
    default: &'static str,
    help: &'static str,
) -> Setting {
    Setting { name, values, default, help, switch: false, repeats: false }
}

/// Every setting except the paths, in the order in which a command line gives them.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    Setting { repeats: true, ..setting("link", "NAME:KEY=VALUE,... with the keys of a path except profile, edit, strip, nic, via and backup; no rtt is none", "", "a link that paths share after their own, by via=NAME") },
    Setting { repeats: true, ..setting("compete", "CC@PATH_OR_LINK or CC@PATH_OR_LINK*N, such as reno@wifi*2; UDP for CC: poisson:rate=3mbit, or pareto:rate=1mbit,on=500ms,off=500ms,shape=1.5", "", "N plain TCP flows that send to clients of their own all the time, or UDP cross traffic, over a path or shared link") },
    setting("workload", "download:SIZE, upload:SIZE, bulk:DURATION, burst:SIZE, stream:SIZE@INTERVAL,for=DURATION, blocks:SIZE@RATE|inf,for=DURATION, video:NAME_OR_FILE, maps:DURATION or web:NAME_OR_FILE; plait list workloads has the whole of each", "", "what the connection carries"),
    setting("schedulers", "all, or a list such as minrtt,ecf:beta=0.5,blest+rp; all may stand in a list", "all", "the schedulers to compare"),
    setting("cc", "a list such as cubic,lia", "cubic", "congestion controllers"),
    setting("runs", "a whole number from 1", "30", "runs of each row; one where nothing is random"),
    setting("seed", "a whole number", "1", "seed of the first run"),
    setting("subflows", "1 to 8, at most 8 in all, or mesh4", "1", "subflows a path; mesh4: from both paths to both addresses of the server"),
    setting("join", "after-data, after-synack or simultaneous", "after-data", "when further subflows start"),
    setting("dial", "any or primary", "any", "where the first SYN goes when nobody answers it: to the next path, or again to the first one, as from a kernel"),
    setting("checksum", "on or off", "off", "DSS checksums: data that was changed on its way is noticed"),
    setting("ssthresh", "inf, or a size such as 64KiB or 45seg", "inf", "initial slow start threshold"),
    setting("earlier", "a whole number from 0 to 1000", "0", "downloads or uploads of the same kind that were done before, one after another, to the same peer: of each path it remembers a slow start threshold, as Linux does"),
    setting("initial-window", "segments, from 1 to 1000", "10", "initial congestion window"),
    setting("slow-start", "rfc3465, rfc5681 or linux", "rfc3465", "growth for each ACK, at most: two segments (one after a timeout), one, or all it covers"),
    setting("tsq", "on or off", "off", "TCP small queues: hold data back while the host's own link has enough"),
    setting("send-cost", "a time such as 7.5us, at most 1ms", "0s", "how long a host works on each segment that it sends, before it sends the next one"),
    setting("pacing", "on or off", "off", "spread the segments of a window over the round trip"),
    setting("hystart", "off, on, linux, linux3 or linux6", "off", "end slow start before a loss: HyStart++ (on), or as CUBIC in Linux from 4.0 on, before it, and in 6.18"),
    setting("kernel", "none, 6.18, or the kernel of a paper: 3.5, 3.11, 3.14, 4.1 or 4.4", "none", "both ends do as this Linux does. 6.18: buffers that it sizes itself, HyStart, slow start, no probes; set rcvbuf is SO_RCVBUF. Older ones: the settings of experiments/kernels.toml, but for those that are given"),
    setting("undo", "on or off", "on", "take a reduction of the window back when what counted as lost proves late"),
    setting("probes", "on or off", "on", "probe silent paths each second, so that a healed one is used soon"),
    setting("delayed-ack", "on or off", "on", "delayed acknowledgements"),
    setting("idle-restart", "linux, rfc5681 or off", "linux", "congestion window after an idle time"),
    setting("prr", "rfc9937 or rfc6937", "rfc9937", "fast recovery below its threshold: a segment more than was delivered where nothing new is lost (as Linux), or always"),
    setting("loss-detection", "rack, sack-probe or sack", "rack", "before the timeout: by time with a tail probe (RFC 8985, Linux since 4.4), or by three SACKed segments (RFC 6675) with a tail probe (Linux 3.10 to 4.3) or without (before)"),
    setting("rto", "linux, rfc or rfc200", "linux", "retransmission timeout"),
    setting("mtu", "bytes, from 576 to 65535", "1500", "largest IP packet"),
    setting("rcvbuf", "a size such as 6MiB, or auto[:MAX]", "6MiB", "receive buffer of the connection; auto: its window begins at 64 KiB and follows what is read, up to MAX (6MiB)"),
    setting("sndbuf", "a size such as 4MiB", "4MiB", "send buffer of the connection"),
    Setting { repeats: true, ..setting("until", "a time, at most 60min of virtual time, or ci=PERCENT", "", "end of a run that has not finished; ci=2%: add runs until each scheduler's 95 % interval against the best row is within 2 %, up to 1000 runs") },
    Setting { switch: true, ..setting("ideal", "on or off", "off", "the textbook model: no rate, no queue, an ACK a segment") },
    Setting { switch: true, ..setting("exact", "on or off", "off", "no jitter of hosts: a comparison in which nothing is random makes one run") },
    setting("host-jitter", "auto, or a time such as 200us, at most 10ms", "auto", "random timing of hosts: the phase of each path, a delay of each packet and the start; auto: 200us in a comparison in which nothing else is random"),
    Setting { switch: true, ..setting("check", "on or off", "off", "check the invariants after every event") },
    Setting { switch: true, ..setting("wire", "on or off", "off", "encode and parse every segment: it must come out as it went in") },
    setting("jobs", "a whole number from 1", "", "runs at a time; by default one a core"),
    Setting { repeats: true, ..setting("vary", "PATH.KEY=FROM..TO:POINTS or PATH.KEY=A,B,C, or a setting for PATH.KEY", "", "repeat it over values of one setting; twice for a grid of two settings") },
    Setting { repeats: true, ..setting("expect", "ROW.MEASURE.STATISTIC OP ROW.MEASURE.STATISTIC or a number", "", "a statement that must hold") },
];

/// Settings that are known, but arrive in a later version.
pub const LATER_SETTINGS: &[&str] = &[];

/// A path as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawPath {
    /// Its name.
    pub name: PlacedText,
    /// Its fields in the order of writing.
    pub fields: Vec<(String, PlacedText)>,
}

/// A scenario as it was written.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RawScenario {
    /// Settings by name.
    pub(crate) settings: BTreeMap<&'static str, Vec<PlacedText>>,
    /// Paths, the primary first.
    pub(crate) paths: Vec<RawPath>,
    /// The file that it comes from.
    pub(crate) file: Option<String>,
}

impl PlacedText {
    pub(crate) fn new(place: &Place, text: &str) -> PlacedText {
        PlacedText { place: place.clone(), text: text.to_owned() }
    }

    pub(crate) fn error(&self, fault: Fault, problem: &str) -> ScenarioError {
        ScenarioError::new(&self.place, fault, &self.text, problem)
    }

    pub(crate) fn unknown<'a, I>(&self, what: &str, names: I) -> ScenarioError
    where
        I: IntoIterator<Item = &'a str>,
    {
        ScenarioError::unknown(&self.place, what, self.text.trim(), names)
    }

    pub(crate) fn quantity<T>(
        &self,
        read: fn(&str) -> Result<T, QuantityError>,
    ) -> Result<T, ScenarioError> {
        read(&self.text).map_err(|error| self.error(Fault::Invalid, &error.to_string()))
    }

    /// `on` or `off`; nothing, as in `--path a:backup`, is `on`.
    pub(crate) fn switch(&self) -> Result<bool, ScenarioError> {
        match self.text.trim() {
            "on" | "true" | "" => Ok(true),
            "off" | "false" => Ok(false),
            _ => Err(self.unknown("value", ["on", "off"])),
        }
    }

    /// A bare whole number from `min` to `max`.
    pub(crate) fn count(&self, min: u64, max: u64) -> Result<u64, ScenarioError> {
        whole(&self.text, min, max)
            .map_err(|misfit| self.error(Fault::Invalid, Misfit::PROBLEM).allow(&misfit.allowed()))
    }
}

/// A text that is no whole number, or none of those that are allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misfit {
    min: u64,
    max: u64,
}

impl Misfit {
    const PROBLEM: &str = "not a number that fits";

    fn allowed(self) -> String {
        let Misfit { min, max } = self;
        match max {
            u64::MAX => format!("a whole number from {min}"),
            _ => format!("a whole number from {min} to {max}"),
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  allowed: {}", Misfit::PROBLEM, self.allowed())
    }
}

impl std::error::Error for Misfit {}

/// Reads a bare whole number from `min` to `max`: digits, with blanks around them at most.
///
/// # Errors
/// For every other text.
pub fn whole(text: &str, min: u64, max: u64) -> Result<u64, Misfit> {
    let text = text.trim();
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse::<u64>() {
        Ok(number) if plain && (min..=max).contains(&number) => Ok(number),
        _ => Err(Misfit { min, max }),
    }
}

impl RawPath {
    pub(crate) fn field(&self, key: &str) -> Option<&PlacedText> {
        self.fields.iter().find(|(name, _)| name == key).map(|(_, given)| given)
    }

    pub(crate) fn fields<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a PlacedText> {
        self.fields.iter().filter(move |(name, _)| name == key).map(|(_, given)| given)
    }

    /// Reads `NAME:key=value,...` or the name of a profile.
    pub(super) fn parse(text: &str, place: &Place) -> RawPath {
        let Some((name, fields)) = text.split_once(':') else {
            let name = PlacedText::new(place, text.trim());
            let profile = name.clone();
            return RawPath { name, fields: vec![("profile".to_owned(), profile)] };
        };
        let name = name.trim();
        // What is left out between two commas is refused where the keys are looked at.
        let pieces = fields.split(',').map(str::trim).filter(|_| !fields.trim().is_empty());
        let mut list: Vec<(String, PlacedText)> = Vec::new();
        for piece in pieces {
            let (key, value) = piece.split_once('=').unwrap_or((piece, ""));
            // A parameter of the value before, as in loss=ge:p=1%,r=30%.
            if let Some((before, given)) = list.last_mut()
                && impairment::goes_on(before, &given.text, key.trim())
            {
                given.text = format!("{},{piece}", given.text);
                continue;
            }
            let place = match place {
                Place::Argument(argument) => {
                    Place::Argument(format!("{argument} {}:{}", shown(name), shown(key)))
                }
                Place::File { .. } => place.clone(),
            };
            list.push((canonical(key.trim()).to_owned(), PlacedText::new(&place, value.trim())));
        }
        RawPath { name: PlacedText::new(place, name), fields: list }
    }
}

/// A part of a place: it is repeated in messages and must not flood them.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(32).collect()
}

impl RawScenario {
    /// A scenario that says nothing.
    #[must_use]
    pub fn new() -> RawScenario {
        RawScenario::default()
    }

    /// Whether a setting has been given.
    #[must_use]
    pub fn says(&self, name: &str) -> bool {
        self.settings.contains_key(name)
    }

    /// Forgets what was said of a setting.
    pub fn forget(&mut self, name: &str) {
        self.settings.remove(name);
    }

    /// Takes the argument `--name text`. A later value replaces that of a file; the second on one
    /// command line is an error. A switch takes `on`.
    ///
    /// # Errors
    /// For an unknown name, or one that was given before.
    pub fn argument(&mut self, name: &str, text: &str) -> Result<(), ScenarioError> {
        let place = Place::Argument(format!("--{}", shown(name)));
        if name == "path" {
            // Paths on the command line replace those of a file.
            self.paths.retain(|path| matches!(path.name.place, Place::Argument(_)));
            self.paths.push(RawPath::parse(text, &place));
            return Ok(());
        }
        self.set(name, PlacedText::new(&place, text))
    }

    pub(crate) fn set(&mut self, name: &str, given: PlacedText) -> Result<(), ScenarioError> {
        let spelled = name.replace('_', "-");
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == spelled) else {
            return Err(unknown_setting(name, &given));
        };
        let in_file = |given: &PlacedText| matches!(given.place, Place::File { .. });
        let list = self.settings.entry(setting.name).or_default();
        if !in_file(&given) {
            list.retain(|earlier| !in_file(earlier));
        }
        if !setting.repeats && !list.is_empty() {
            return Err(given.error(Fault::Conflict, "given twice"));
        }
        list.push(given);
        Ok(())
    }

    /// What was said of a setting, or its default.
    pub(crate) fn value(&self, name: &'static str) -> Option<PlacedText> {
        let said = self.settings.get(name).and_then(|list| list.first()).cloned();
        said.or_else(|| {
            let default = SETTINGS.iter().find(|setting| setting.name == name)?.default;
            let place = Place::Argument(format!("--{name}"));
            (!default.is_empty()).then(|| PlacedText::new(&place, default))
        })
    }

    pub(crate) fn values(&self, name: &'static str) -> &[PlacedText] {
        self.settings.get(name).map_or(&[], Vec::as_slice)
    }

    /// Puts `text` in the place of whatever was said of a setting.
    pub(crate) fn replace(&mut self, name: &'static str, given: PlacedText) {
        self.settings.insert(name, vec![given]);
    }

    /// The line that runs it: `plait compare --path ... --workload ...`, quoted for a POSIX shell.
    #[must_use]
    pub fn command_line(&self) -> String {
        let mut words = vec!["plait compare".to_owned()];
        for path in &self.paths {
            words.push(format!("--path {}", quoted(&path.to_string())));
        }
        for setting in SETTINGS {
            for given in self.values(setting.name) {
                if setting.switch {
                    words.push(format!("--{}", setting.name));
                } else {
                    words.push(format!("--{} {}", setting.name, quoted(&given.text)));
                }
            }
        }
        words.join(" ")
    }
}

/// `NAME:key=value,...`; the bare name of a profile that is unchanged and not renamed.
impl fmt::Display for RawPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name.text)?;
        if let [(key, profile)] = self.fields.as_slice()
            && key == "profile"
            && profile.text == self.name.text
        {
            return Ok(());
        }
        for (at, (key, given)) in self.fields.iter().enumerate() {
            f.write_str(if at == 0 { ":" } else { "," })?;
            match (key.as_str(), given.text.as_str()) {
                ("backup", "on") => f.write_str("backup")?,
                (key, text) => write!(f, "{key}={text}")?,
            }
        }
        Ok(())
    }
}

fn unknown_setting(name: &str, given: &PlacedText) -> ScenarioError {
    if LATER_SETTINGS.contains(&name) {
        return given.error(Fault::NotYet, &format!("{name} is not available yet"));
    }
    let names = || SETTINGS.iter().map(|setting| setting.name).chain(["path"]);
    let mut error = given.unknown("setting", names());
    name.clone_into(&mut error.given);
    error.nearest = nearest(&name.replace('_', "-"), names()).map(str::to_owned);
    error
}

/// A word for a POSIX shell: in single quotes if a character in it is special.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:=/@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them() {
        assert_eq!(quoted("a:rtt=10ms,loss=1%"), "a:rtt=10ms,loss=1%");
        assert_eq!(quoted("a < b"), "'a < b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn an_argument_replaces_a_file_and_conflicts_with_itself() {
        let mut raw = RawScenario::new();
        let place = Place::File { file: "f".into(), line: 1, column: 1, field: "runs".into() };
        raw.set("runs", PlacedText::new(&place, "5")).unwrap();
        raw.argument("runs", "7").unwrap();
        assert_eq!(raw.value("runs").unwrap().text, "7");
        assert_eq!(raw.argument("runs", "8").unwrap_err().fault, Fault::Conflict);
        assert_eq!(raw.argument("ruins", "8").unwrap_err().nearest.as_deref(), Some("runs"));
        raw.argument("expect", "a < 1").unwrap();
        raw.argument("expect", "b < 1").unwrap();
    }
}
