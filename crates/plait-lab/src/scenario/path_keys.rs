//! The keys of a path, one entry each. Flags and their help, scenario files, sweeps, the schema of
//! experiments and the names in errors all read [`PATH_KEYS`]. To add a key, add an entry here and
//! use the value.

use super::delay::Delay;
use super::impairment::{
    aqm, aqm_text, loss, loss_text, mtu, mtu_text, reorder, reorder_text, strip, strip_text,
};
use super::path::{Offset, Path, Speed};
use super::path_parse::{
    Reader, bounded, chance, offset, outage, positive_rate, recording, span_text, steps,
};
use super::placed_text::PlacedText;
use crate::error::{Fault, ScenarioError};
use plait_app::quantity::{self, Percent};
use plait_base::Rate;

type Result<T> = core::result::Result<T, ScenarioError>;

/// A key of a path, such as `rtt`.
#[derive(Debug)]
pub struct PathKey {
    /// Name.
    pub name: &'static str,
    /// Form of its value, such as `TIME`; empty if it needs no value.
    pub form: &'static str,
    /// An example value.
    pub example: &'static str,
    /// Its effect: lines of at most 53 characters.
    pub help: &'static str,
    /// Its source: a standard, paper or kernel file; empty for the laboratory's own keys.
    pub clause: &'static str,
    /// Whether shared links have it, too.
    pub of_links: bool,
    /// Whether it may be given more than once.
    pub repeats: bool,
    /// Whether its value may contain a span of time, `1s..3s`.
    pub spans: bool,
    /// Keys that a sweep removes when it sets this one, because this one excludes or replaces them.
    pub(crate) displaces: &'static [&'static str],
    field: Field,
}

/// Accessors of a key in a path.
#[derive(Debug)]
struct Field {
    /// Returns the texts that turn the second path into the first. The second is a profile, or
    /// blank.
    get: fn(&Path, &Path) -> Vec<String>,
    /// Reads a text into the path. The reader gives the files that it names.
    set: fn(&mut Path, &PlacedText, Reader<'_>) -> Result<()>,
}

/// The key is a field of the path. `$read` reads it and `$text` writes it.
macro_rules! kept {
    ($read:expr, $text:expr, $($at:ident).+) => {
        Field {
            get: |path, base| match path.$($at).+ == base.$($at).+ {
                true => Vec::new(),
                false => vec![$text(&path.$($at).+)],
            },
            set: |path, given, _| {
                path.$($at).+ = $read(given)?;
                Ok(())
            },
        }
    };
}

/// As `kept`, for a part of both ways of the field `$both`. A path has the same value each way.
macro_rules! kept_each_way {
    ($read:expr, $text:expr, $both:ident, $($at:ident).+) => {
        Field {
            get: |path, base| match path.$both.down.$($at).+ == base.$both.down.$($at).+ {
                true => Vec::new(),
                false => vec![$text(&path.$both.down.$($at).+)],
            },
            set: |path, given, _| {
                let value = $read(given)?;
                path.$both.down.$($at).+ = value;
                path.$both.up.$($at).+ = value;
                Ok(())
            },
        }
    };
}

/// As `kept`, for a field that may be `None`.
macro_rules! may_keep {
    ($read:expr, $text:expr, $($at:ident).+) => {
        Field {
            get: |path, base| match path.$($at).+ == base.$($at).+ {
                true => Vec::new(),
                false => path.$($at).+.iter().map($text).collect(),
            },
            set: |path, given, _| {
                path.$($at).+ = Some($read(given)?);
                Ok(())
            },
        }
    };
}

const fn key(
    name: &'static str,
    form: &'static str,
    example: &'static str,
    help: &'static str,
    clause: &'static str,
    field: Field,
) -> PathKey {
    let (of_links, repeats, spans) = (true, false, false);
    PathKey { name, form, example, help, clause, of_links, repeats, spans, displaces: &[], field }
}

/// Every key, in the order in which a path is written and read.
#[rustfmt::skip]
pub const PATH_KEYS: &[PathKey] = &[
    key("profile", "NAME", "wifi-home", "start from a profile", "",
        Field { get: |path, _| path.profile.iter().map(|profile| profile.name.to_owned()).collect(), set: |_, _, _| Ok(()) }).of_paths(),
    key("rtt", "TIME", "25ms@0s/80ms@10s", "propagation, half each way; steps 25ms@0s/80ms@10s", "",
        Field { get: round_trip, set: |path, given, _| { path.delay = Delay::parse(given)?.split(); Ok(()) } }).displacing(&["owd_down", "owd_up"]),
    key("owd_down", "TIME", "15ms", "propagation down, in place of rtt", "",
        Field { get: |path, base| one_way(path, base, &path.delay.down), set: |path, given, _| { path.delay.down = Delay::parse(given)?; Ok(()) } }).displacing(&["rtt"]),
    key("owd_up", "TIME", "10ms", "propagation up, in place of rtt", "",
        Field { get: |path, base| one_way(path, base, &path.delay.up), set: |path, given, _| { path.delay.up = Delay::parse(given)?; Ok(()) } }).displacing(&["rtt"]),
    key("rate", "RATE", "10mbit@0s/4mbit@20s", "both ways; inf; steps 10mbit@0s/4mbit@20s;\n1mbit/4mbit~40s draws a new rate about every 40 s", "",
        Field { get: both_rates, set: |path, given, _| { let speed = Some(steps(given)?); path.speed.down.clone_from(&speed); path.speed.up = speed; Ok(()) } }).displacing(&["rate_down", "rate_up", "trace", "trace_up", "offset"]),
    key("rate_down", "RATE", "8mbit", "the rate down, in place of rate", "",
        Field { get: |path, base| rate_down(path, base, false), set: |path, given, _| { path.speed.down = Some(steps(given)?); Ok(()) } }).displacing(&["trace"]),
    key("trace", "FILE", "a.down", "a recording (Mahimahi, CSV) in place of the rate down", "",
        Field { get: |path, base| rate_down(path, base, true), set: trace_down }).displacing(&["rate", "rate_down"]),
    key("rate_up", "RATE", "2mbit", "the rate up, in place of rate", "",
        Field { get: |path, base| rate_up(path, base, false), set: |path, given, _| { path.speed.up = Some(steps(given)?); Ok(()) } }).displacing(&["trace_up"]),
    key("trace_up", "FILE", "b.csv", "a recording in place of the rate up", "",
        Field { get: |path, base| rate_up(path, base, true), set: |path, given, read| { path.speed.up = Some(Speed::Trace(recording(given, read)?)); Ok(()) } }).displacing(&["rate_up"]),
    key("offset", "TIME", "random", "start position in a trace, or random", "", kept!(offset, offset_text, offset)),
    key("queue", "LIMIT", "50ms", "50ms, 64KiB, 100pkt or inf; by default 100 ms at the\nrate", "",
        may_keep!(|given: &PlacedText| given.quantity(quantity::limit), ToString::to_string, queue)),
    key("aqm", "NAME", "codel", "codel[:target=5ms,interval=100ms]; default: droptail", "RFC 8289", kept!(aqm, |it: &_| aqm_text(*it), aqm)),
    key("loss", "P%", "1%", "loses packets down; ge:p=1%,r=30%,bad=50% for bursts", "Gilbert 1960, Elliott 1963", kept!(loss, |it: &_| loss_text(*it), impairments.down.loss.model)),
    key("loss_up", "P%", "ge:p=1%,r=30%,bad=50%", "loses packets up", "", kept!(loss, |it: &_| loss_text(*it), impairments.up.loss.model)),
    key("jitter", "TIME", "3ms", "delays each packet at random, but keeps the order", "", kept_each_way!(|given: &PlacedText| bounded(given, &given.text), ToString::to_string, impairments, jitter)),
    key("reorder", "P%:TIME", "1%:5ms", "delays a share of the packets, which may reorder them", "", kept_each_way!(reorder, |it: &_| reorder_text(*it), impairments, reorder)),
    key("duplicate", "P%", "0.5%", "duplicates some packets", "", kept_each_way!(chance, |it: &_| Percent(*it).to_string(), impairments, duplicate)),
    key("corrupt", "P%", "2%", "damages some packets, which the host drops", "", kept_each_way!(chance, |it: &_| Percent(*it).to_string(), impairments, corrupt)),
    key("edit", "P%", "0.1%", "a middlebox changes a byte and repairs the checksum", "RFC 8684 section 3.7", kept!(chance, |it: &_| Percent(*it).to_string(), middlebox.edit)).of_paths(),
    key("strip", "WHAT", "data@2s..3s", "a middlebox removes MPTCP options: syn, synack, ack\n(the third), first (data), data or all; WHAT@TIME\nfrom then on, WHAT@FROM..TO for a while", "RFC 8684 section 3.7",
        may_keep!(strip, |it: &_| strip_text(*it), middlebox.strip)).of_paths().spanning(),
    key("mtu", "BYTES", "1500@0s/1280@2s", "drops longer packets; steps 1500@0s/1280@2s", "RFC 8899", kept!(mtu, |it: &Vec<_>| mtu_text(it), mtu)),
    key("down", "FROM..TO", "1s..3s", "an outage; down=1s.. has no end; repeatable", "",
        Field { get: |path, _| path.outages.iter().map(span_text).collect(), set: |path, given, _| { path.outages.push(outage(given)?); Ok(()) } }).spanning().repeated(),
    key("gone", "FROM..TO", "1s..3s", "the client loses the address, sends REMOVE_ADDR, and\ngets the address back; repeatable", "RFC 8684 section 3.4.2",
        Field { get: |path, _| path.gone.iter().map(span_text).collect(), set: gone }).of_paths().spanning().repeated(),
    key("nic", "RATE", "1gbit", "the sending host\u{2019}s own link; default: 1gbit", "",
        may_keep!(|given: &PlacedText| positive_rate(given, &given.text), ToString::to_string, nic)).of_paths(),
    key("via", "LINK", "cell", "a link that paths share (--link)", "",
        may_keep!(|given: &PlacedText| Result::Ok(given.text.trim().to_owned()), ToString::to_string, via)).of_paths(),
    key("backup", "", "on", "used only if no other path works", "RFC 8684 section 3.3.8", kept!(PlacedText::switch, |_: &bool| "on".to_owned(), backup)).of_paths(),
];

impl PathKey {
    const fn of_paths(mut self) -> PathKey {
        self.of_links = false;
        self
    }

    const fn spanning(mut self) -> PathKey {
        self.spans = true;
        self
    }

    const fn repeated(mut self) -> PathKey {
        self.repeats = true;
        self
    }

    const fn displacing(mut self, keys: &'static [&'static str]) -> PathKey {
        self.displaces = keys;
        self
    }

    /// Returns the key of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static PathKey> {
        PATH_KEYS.iter().find(|key| key.name == name)
    }

    /// Returns the names of all keys.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        PATH_KEYS.iter().map(|key| key.name)
    }

    /// Returns true if it needs no value: alone it means `on`.
    #[must_use]
    pub const fn is_switch(&self) -> bool {
        self.form.is_empty()
    }

    /// Returns the texts that turn `base` into this path.
    pub(super) fn texts(&self, path: &Path, base: &Path) -> Vec<String> {
        (self.field.get)(path, base)
    }

    /// Reads a text of the key into the path.
    pub(super) fn read(&self, path: &mut Path, given: &PlacedText, read: Reader<'_>) -> Result<()> {
        (self.field.set)(path, given, read)
    }
}

/// Returns true if the delay differs from that of the profile.
fn has_own_delay(path: &Path, base: &Path) -> bool {
    path.profile.is_none() || path.delay != base.delay
}

fn round_trip(path: &Path, base: &Path) -> Vec<String> {
    let whole = path.delay.whole().filter(|_| has_own_delay(path, base));
    whole.iter().map(ToString::to_string).collect()
}

fn one_way(path: &Path, base: &Path, delay: &Delay) -> Vec<String> {
    let split = has_own_delay(path, base) && path.delay.whole().is_none();
    if split { vec![delay.to_string()] } else { Vec::new() }
}

/// Returns the rate if it is the same both ways.
fn both_rates(path: &Path, base: &Path) -> Vec<String> {
    match &path.speed.down {
        Some(down @ (Speed::Fixed(_) | Speed::Steps(_) | Speed::Redraw(_)))
            if path.speed.up.as_ref() == Some(down) && path.speed != base.speed =>
        {
            vec![down.text()]
        }
        _ => Vec::new(),
    }
}

/// Returns the rate down if it has a text of its own. `traced` selects the key for traces.
fn rate_down(path: &Path, base: &Path, traced: bool) -> Vec<String> {
    let down = path.speed.down.iter().filter(|down| down.is_trace() == traced);
    let own = path.speed.down != base.speed.down && both_rates(path, base).is_empty();
    down.filter(|_| own).map(Speed::text).collect()
}

/// Returns the rate up, as [`rate_down`] does for the way down.
fn rate_up(path: &Path, base: &Path, traced: bool) -> Vec<String> {
    // A trace down leaves the way up unlimited by default.
    let free = path.speed.down.as_ref().is_some_and(Speed::is_trace);
    let free = free.then_some(Speed::Fixed(Rate::INFINITE));
    let up = path.speed.up.iter().filter(|up| up.is_trace() == traced);
    let implied = if free.is_some() { &free } else { &base.speed.up };
    let own =
        path.speed.up != *implied && path.speed != base.speed && both_rates(path, base).is_empty();
    up.filter(|_| own).map(Speed::text).collect()
}

/// Reads a trace down. The way up becomes unlimited, unless a later key sets it.
fn trace_down(path: &mut Path, given: &PlacedText, read: Reader<'_>) -> Result<()> {
    path.speed.down = Some(Speed::Trace(recording(given, read)?));
    path.speed.up = Some(Speed::Fixed(Rate::INFINITE));
    Ok(())
}

fn offset_text(offset: &Offset) -> String {
    match offset {
        Offset::At(span) => span.to_string(),
        Offset::Random => "random".to_owned(),
    }
}

fn gone(path: &mut Path, given: &PlacedText, _: Reader<'_>) -> Result<()> {
    let (from, to) = outage(given)?;
    if path.gone.iter().any(|other| from <= other.1 && other.0 <= to) {
        let problem = "the address is gone already at that time";
        return Err(given.error(Fault::Conflict, problem).allow("spans that do not overlap"));
    }
    path.gone.push((from, to));
    Ok(())
}

impl Path {
    /// Returns the fields that differ from the profile, in the order of the documentation. Reading
    /// them again gives the same path.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let base = match self.profile {
            Some(profile) => Path::from_profile(&self.name, profile),
            None => Path::blank(&self.name),
        };
        let texts = |key: &'static PathKey| {
            key.texts(self, &base).into_iter().map(move |text| (key.name, text))
        };
        PATH_KEYS.iter().flat_map(texts).collect()
    }

    /// Returns the fields as written in a path.
    pub(super) fn written(&self) -> Vec<String> {
        self.fields().iter().map(|(key, text)| written(key, text)).collect()
    }
}

/// Writes a field of a path: `rtt=25ms`, `backup`.
pub(super) fn written(key: &str, text: &str) -> String {
    match text {
        "on" if PathKey::named(key).is_some_and(PathKey::is_switch) => key.to_owned(),
        _ => format!("{key}={text}"),
    }
}
