//! The names of the state of a slot scheduler.

use super::flights::{Copied, Flights};
use super::memory::{Lane, Memory};
use super::rate::{MAX_STEPS, RateFilter, RateSource, Step};
use super::spare::{Ahead, Spare};
use alloc::string::String;
use core::fmt::{self, Write};
use plait_base::{DataRange, Dsn, Span, SubflowId, Time};

pub(super) const NAMES: &[(&str, &str)] = &[
    ("rate.ID.now", "largest rate of this interval, in bytes a second"),
    ("rate.ID.before", "largest rate of the interval before, in bytes a second"),
    ("rate.ID.began_ns", "start of this interval"),
    (
        "rate.ID.sampled",
        "1 if the rate was ever sampled, 2 if an earlier connection has measured it",
    ),
    ("rate.ID.doubted", "a sample of more than twice the rate, which waits for a second one"),
    ("rate.ID.doubted_at_ns", "when it was taken"),
    ("round.ID.began_ns", "start of this round trip"),
    ("round.ID.bytes", "bytes acknowledged since then"),
    ("round.ID.queued", "1 if all of them waited in a queue"),
    ("remembered.ID.min_rtt_ns", "minimum RTT that an earlier connection has measured"),
    ("proven.ID", "1 if the path has carried the connection alone"),
    ("loss.ID.lost", "bytes that the path lost"),
    ("loss.ID.acked", "bytes that the path delivered"),
    (
        "loss.ID.repaired_ns",
        "time before which a loss is repaired together with one that has counted",
    ),
    ("progress.ID_ns", "latest progress of the path"),
    ("expects.ID_ns", "when the next acknowledgement should come"),
    ("started.ID_ns", "when the path was last idle"),
    ("held.ID_ns", "time for which the receiver may have held the latest acknowledgement back"),
    ("backlog.ID.began_ns", "when the path was last empty"),
    ("backlog.ID.bytes", "bytes sent since then"),
    ("copies.ID.latest", "the latest period of 10 s in which the path has carried a copy"),
    (
        "copied.ID.N.bytes",
        "bytes of copies in the last period whose number leaves the remainder N if divided by 7",
    ),
    ("spare.ID.saved_ns", "time by which these copies came before the originals"),
    ("spare.ID.sent", "bytes that the path has sent"),
    (
        "ahead.ID.since_ns",
        "since when all data up to the end below is acknowledged, although the path has not delivered its part",
    ),
    ("ahead.ID.copy", "the subflow that carried the first of these copies"),
    ("ahead.ID.end", "the end of the data that was sent before that copy"),
    ("ahead.ID.position", "bytes that the path had sent with the last of this data"),
    ("ahead.ID.due_ns", "when the path should have delivered the first of this data"),
    ("busy.time_ns", "time with unacknowledged data"),
    ("busy.until_ns", "time up to which that counts"),
    ("step.ID.N.at_ns", "arrival of the Nth of the latest acknowledgements"),
    ("step.ID.N.sent_ns", "when the newest segment that it covers was sent"),
    ("step.ID.N.bytes", "bytes that it covers"),
    ("step.ID.N.queued", "1 if that segment waited in a queue"),
    ("flight.N.start", "first byte of the Nth unacknowledged segment"),
    ("flight.N.end", "its end"),
    ("flight.N.subflow", "its first carrier"),
    ("flight.N.arrives_ns", "its predicted arrival"),
    ("flight.N.lost", "1 if its carrier counts it as lost"),
    ("flight.N.order", "segments that were noted before it"),
    ("flight.N.position", "bytes that its carrier had sent with it"),
    ("flight.N.copies", "1 if a subflow has carried a copy"),
    ("flight.N.copy", "the first such subflow"),
    ("flight.N.copy_end", "the end of the data that was sent before that copy"),
    ("flights.noted", "segments noted so far"),
    ("way.ID.passed", "order of the first segment of the subflow that was not passed on"),
    ("way.ID.waits", "order of the first segment that waits for the repair of a loss"),
    ("way.ID.repair_ns", "when the repair should arrive"),
    ("burst.start", "first byte of the latest decision for more than one segment"),
    ("burst.end", "its end"),
    ("burst.subflow", "its carrier"),
];

/// Writes the state. Zeroes are left out.
pub(super) fn save(memory: &Memory, write: &mut dyn FnMut(&str, f64)) {
    let Memory { lanes, flights, busy, .. } = memory;
    let mut names = Names { name: String::new(), prefix: 0, write };
    for (id, lane) in lanes.iter().enumerate() {
        save_lane(&mut names, id, lane);
    }
    for (id, way) in flights.ways.iter().enumerate() {
        names.begin(format_args!("way.{id}"));
        names.write(".passed", way.passed);
        names.write(".waits", way.waits);
        names.write(".repair_ns", way.repair.as_nanos());
    }
    names.begin(format_args!("busy"));
    names.write(".time_ns", busy.time.as_nanos());
    names.write(".until_ns", busy.until.as_nanos());
    names.begin(format_args!("flights"));
    names.write(".noted", flights.noted);
    for (at, flight) in flights.iter().enumerate() {
        names.begin(format_args!("flight.{at}"));
        names.write(".start", flight.range.start.get());
        names.write(".end", flight.range.end.get());
        names.write(".subflow", u64::from(flight.subflow.0));
        names.write(".arrives_ns", flight.arrives.as_nanos());
        names.write(".lost", u64::from(flight.lost));
        names.write(".order", flight.order);
        names.write(".position", flight.position);
        if let Some(copy) = flight.copy {
            names.write(".copies", 1);
            names.write(".copy", u64::from(copy.by.0));
            names.write(".copy_end", copy.end.get());
        }
    }
}

fn save_lane(names: &mut Names<'_>, id: usize, lane: &Lane) {
    let Lane { rate, losses, progress, expects, min_rtt, proven, backlog, started, held, spare } =
        lane;
    names.begin(format_args!("rate.{id}"));
    names.write(".now", rate.now);
    names.write(".before", rate.before);
    names.write(".began_ns", rate.began.as_nanos());
    names.write(".sampled", source_number(rate.source));
    names.write(".doubted", rate.doubted);
    names.write(".doubted_at_ns", rate.doubted_at.as_nanos());
    names.begin(format_args!("round.{id}"));
    names.write(".began_ns", rate.round.began.as_nanos());
    names.write(".bytes", rate.round.bytes);
    names.write(".queued", u64::from(rate.round.queued));
    names.begin(format_args!("remembered.{id}"));
    names.write(".min_rtt_ns", min_rtt.as_nanos());
    names.begin(format_args!("proven.{id}"));
    names.write("", u64::from(*proven));
    names.begin(format_args!("loss.{id}"));
    names.write(".lost", losses.lost);
    names.write(".acked", losses.acked);
    names.write(".repaired_ns", losses.repaired.as_nanos());
    names.begin(format_args!("progress.{id}"));
    names.write("_ns", progress.as_nanos());
    names.begin(format_args!("expects.{id}"));
    names.write("_ns", expects.as_nanos());
    names.begin(format_args!("started.{id}"));
    names.write("_ns", started.as_nanos());
    names.begin(format_args!("held.{id}"));
    names.write("_ns", held.as_nanos());
    names.begin(format_args!("backlog.{id}"));
    names.write(".began_ns", backlog.began.as_nanos());
    names.write(".bytes", backlog.bytes);
    names.begin(format_args!("copies.{id}"));
    names.write(".latest", spare.copies.latest);
    for (at, bytes) in spare.copies.copied.into_iter().enumerate() {
        names.begin(format_args!("copied.{id}.{at}"));
        names.write(".bytes", bytes);
    }
    names.begin(format_args!("spare.{id}"));
    names.write(".saved_ns", spare.saved.as_nanos());
    names.write(".sent", spare.sent);
    if let Some(Ahead { since, copy, position, due }) = spare.ahead {
        names.begin(format_args!("ahead.{id}"));
        if since < Time::NEVER {
            names.write(".since_ns", since.as_nanos());
        }
        names.write(".copy", u64::from(copy.by.0));
        names.write(".end", copy.end.get());
        names.write(".position", position);
        names.write(".due_ns", due.as_nanos());
    }
    for (at, step) in rate.steps[..rate.used].iter().enumerate() {
        names.begin(format_args!("step.{id}.{at}"));
        names.write(".at_ns", step.at.as_nanos());
        names.write(".sent_ns", step.sent.as_nanos());
        names.write(".bytes", step.bytes);
        names.write(".queued", u64::from(step.queued));
    }
}

const fn source_number(source: RateSource) -> u64 {
    match source {
        RateSource::None => 0,
        RateSource::Own => 1,
        RateSource::Earlier => 2,
    }
}

const fn source_of(number: u64) -> RateSource {
    match number {
        1 => RateSource::Own,
        2 => RateSource::Earlier,
        _ => RateSource::None,
    }
}

/// Writes values whose names share a prefix, with one buffer for all names.
struct Names<'a> {
    name: String,
    prefix: usize,
    write: &'a mut dyn FnMut(&str, f64),
}

impl Names<'_> {
    fn begin(&mut self, prefix: fmt::Arguments<'_>) {
        self.name.clear();
        self.name.write_fmt(prefix).ok();
        self.prefix = self.name.len();
    }

    fn write(&mut self, suffix: &str, value: u64) {
        if value > 0 {
            self.name.truncate(self.prefix);
            self.name.push_str(suffix);
            (self.write)(&self.name, value as f64);
        }
    }
}

/// Restores a value. Returns `None` if the name is unknown.
pub(super) fn load(memory: &mut Memory, name: &str, value: f64) -> Option<()> {
    let Memory { lanes, flights, busy, .. } = memory;
    let whole = value as u64;
    let mut parts = name.split('.');
    match (parts.next()?, parts.next()?) {
        ("flight", at) => load_flight(flights, at.parse().ok()?, parts.next()?, whole)?,
        ("flights", "noted") => flights.noted = whole,
        ("way", id) => load_way(flights, id.parse().ok()?, parts.next()?, whole)?,
        ("busy", "time_ns") => busy.time = Span::from_nanos(whole),
        ("busy", "until_ns") => busy.until = Time::from_nanos(whole),
        ("spare" | "ahead", id) => {
            let spare = &mut lanes.get_mut(id.parse::<usize>().ok()?)?.spare;
            load_spare(spare, parts.next()?, whole)?;
        }
        ("copies", id) if parts.next()? == "latest" => {
            lanes.get_mut(id.parse::<usize>().ok()?)?.spare.copies.latest = whole;
        }
        ("copied", id) => {
            let copied = &mut lanes.get_mut(id.parse::<usize>().ok()?)?.spare.copies.copied;
            let place = copied.get_mut(parts.next()?.parse::<usize>().ok()?)?;
            (parts.next()? == "bytes").then(|| *place = whole)?;
        }
        ("step", id) => {
            let lane = lanes.get_mut(id.parse::<usize>().ok()?)?;
            load_step(&mut lane.rate, parts.next()?.parse().ok()?, parts.next()?, whole)?;
        }
        ("rate", id) => {
            let rate = &mut lanes.get_mut(id.parse::<usize>().ok()?)?.rate;
            load_rate(rate, parts.next()?, whole)?;
        }
        ("round", id) => {
            let round = &mut lanes.get_mut(id.parse::<usize>().ok()?)?.rate.round;
            match parts.next()? {
                "began_ns" => round.began = Time::from_nanos(whole),
                "bytes" => round.bytes = whole,
                "queued" => round.queued = whole == 1,
                _ => return None,
            }
        }
        ("proven", id) => lanes.get_mut(id.parse::<usize>().ok()?)?.proven = whole == 1,
        ("loss", id) => {
            let losses = &mut lanes.get_mut(id.parse::<usize>().ok()?)?.losses;
            match parts.next()? {
                "lost" => losses.lost = whole,
                "acked" => losses.acked = whole,
                "repaired_ns" => losses.repaired = Time::from_nanos(whole),
                _ => return None,
            }
        }
        ("backlog", id) => {
            let backlog = &mut lanes.get_mut(id.parse::<usize>().ok()?)?.backlog;
            match parts.next()? {
                "began_ns" => backlog.began = Time::from_nanos(whole),
                "bytes" => backlog.bytes = whole,
                _ => return None,
            }
        }
        ("remembered", id) if parts.next()? == "min_rtt_ns" => {
            lanes.get_mut(id.parse::<usize>().ok()?)?.min_rtt = Span::from_nanos(whole);
        }
        (name, id) => {
            let id: usize = id.strip_suffix("_ns")?.parse().ok()?;
            load_time(lanes.get_mut(id)?, name, whole)?;
        }
    }
    parts.next().is_none().then_some(())
}

fn load_time(lane: &mut Lane, name: &str, whole: u64) -> Option<()> {
    match name {
        "started" => lane.started = Time::from_nanos(whole),
        "held" => lane.held = Span::from_nanos(whole),
        "expects" => lane.expects = Time::from_nanos(whole),
        "progress" => lane.progress = Time::from_nanos(whole),
        _ => return None,
    }
    Some(())
}

fn load_rate(rate: &mut RateFilter, name: &str, whole: u64) -> Option<()> {
    match name {
        "now" => rate.now = whole,
        "before" => rate.before = whole,
        "began_ns" => rate.began = Time::from_nanos(whole),
        "sampled" => rate.source = source_of(whole),
        "doubted" => rate.doubted = whole,
        "doubted_at_ns" => rate.doubted_at = Time::from_nanos(whole),
        _ => return None,
    }
    Some(())
}

fn load_step(rate: &mut RateFilter, at: usize, name: &str, whole: u64) -> Option<()> {
    if at >= MAX_STEPS {
        return None;
    }
    let step: &mut Step = rate.steps.get_mut(at)?;
    match name {
        "at_ns" => step.at = Time::from_nanos(whole),
        "sent_ns" => step.sent = Time::from_nanos(whole),
        "bytes" => step.bytes = whole,
        "queued" => step.queued = whole == 1,
        _ => return None,
    }
    rate.used = rate.used.max(at + 1);
    Some(())
}

/// A copy before its values are restored.
const NO_COPY: Copied = Copied { by: SubflowId(0), end: Dsn::ZERO };

fn load_spare(spare: &mut Spare, name: &str, whole: u64) -> Option<()> {
    let ahead = || Ahead { since: Time::NEVER, copy: NO_COPY, position: 0, due: Time::ZERO };
    match name {
        "saved_ns" => spare.saved = Span::from_nanos(whole),
        "sent" => spare.sent = whole,
        "since_ns" => spare.ahead.get_or_insert_with(ahead).since = Time::from_nanos(whole),
        "copy" => {
            spare.ahead.get_or_insert_with(ahead).copy.by = SubflowId(u8::try_from(whole).ok()?);
        }
        "end" => spare.ahead.get_or_insert_with(ahead).copy.end = Dsn::new(whole),
        "position" => spare.ahead.get_or_insert_with(ahead).position = whole,
        "due_ns" => spare.ahead.get_or_insert_with(ahead).due = Time::from_nanos(whole),
        _ => return None,
    }
    Some(())
}

fn load_way(flights: &mut Flights, id: usize, name: &str, whole: u64) -> Option<()> {
    let way = flights.ways.get_mut(id)?;
    match name {
        "passed" => way.passed = whole,
        "waits" => way.waits = whole,
        "repair_ns" => way.repair = Time::from_nanos(whole),
        _ => return None,
    }
    Some(())
}

fn load_flight(flights: &mut Flights, at: usize, name: &str, whole: u64) -> Option<()> {
    let flight = flights.saved(at)?;
    match name {
        "start" => flight.range = DataRange::new(Dsn::new(whole), Dsn::new(whole)),
        "end" => flight.range = DataRange::new(flight.range.start, Dsn::new(whole)),
        "subflow" => flight.subflow = SubflowId(u8::try_from(whole).ok()?),
        "arrives_ns" => flight.arrives = Time::from_nanos(whole),
        "lost" => flight.lost = whole == 1,
        "order" => flight.order = whole,
        "position" => flight.position = whole,
        "copies" => flight.copy = flight.copy.or((whole > 0).then_some(NO_COPY)),
        "copy" => flight.copy.get_or_insert(NO_COPY).by = SubflowId(u8::try_from(whole).ok()?),
        "copy_end" => flight.copy.get_or_insert(NO_COPY).end = Dsn::new(whole),
        _ => return None,
    }
    Some(())
}
