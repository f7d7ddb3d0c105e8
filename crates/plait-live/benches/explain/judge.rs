//! Compares the first cause of each capture with the planted one.

use super::Options;
use super::net::dump;
use super::planted::{Kind, Planted, draw};
use plait_capture::{CauseReport, ConnectionReport};
use plait_live::emulate::Lateness;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// The captures of a kind at a host.
#[derive(Clone, Default, Debug)]
struct Count {
    captures: u64,
    /// The first cause and its path are the planted ones.
    right: u64,
    /// What was first instead.
    instead: BTreeMap<String, u64>,
}

impl Count {
    fn add(&mut self, other: &Count) {
        self.captures += other.captures;
        self.right += other.right;
        for (name, times) in &other.instead {
            *self.instead.entry(name.clone()).or_default() += times;
        }
    }
}

/// Judges all captures that are there.
pub fn judge(options: &Options) -> io::Result<()> {
    let late = late(options);
    let mut counts: BTreeMap<(Kind, &'static str), Count> = BTreeMap::new();
    let mut timely = Count::default();
    for number in options.numbers.0..options.numbers.1 {
        for host in ["server", "client"] {
            let file = options.file(number, host);
            if file.exists() {
                let kind = draw(options.seed, number).kind;
                let mut count = Count::default();
                judge_one(options, number, &file, &mut count)?;
                if late.get(&number).is_some_and(|us| *us <= Lateness::LIMIT.as_micros()) {
                    timely.add(&count);
                }
                counts.entry((kind, host)).or_default().add(&count);
            }
        }
    }
    let tries = fs::read_to_string(options.lateness()).unwrap_or_default().lines().count();
    print!("{}", table(&counts));
    println!(
        "\nThe emulator was never more than 5 ms late during {} captures, and {} of them are right. {} recordings were \
         dropped.",
        timely.captures,
        timely.right,
        tries.saturating_sub(late.len())
    );
    Ok(())
}

/// Returns the lateness of the recording that was kept of each transfer, in microseconds.
fn late(options: &Options) -> BTreeMap<u64, u64> {
    let text = fs::read_to_string(options.lateness()).unwrap_or_default();
    let pair = |line: &str| {
        let (number, us) = line.split_once(' ')?;
        Some((number.parse().ok()?, us.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

fn judge_one(options: &Options, number: u64, file: &Path, count: &mut Count) -> io::Result<()> {
    let planted = draw(options.seed, number);
    let (cause, path) = planted.kind.cause();
    let explained = dump::explain(file)?;
    let Some(connection) = explained.connections.first() else {
        return Err(io::Error::other(format!("{}: no connection", file.display())));
    };
    let first = first(connection);
    let (is_cause, is_path) = match first {
        Some(first) => {
            let found = number_of(connection, first.path.as_deref());
            (first.cause == cause, found == path || planted.kind.is_of_both())
        }
        None => (false, false),
    };
    count.captures += 1;
    count.right += u64::from(is_cause && is_path);
    if !is_cause || !is_path {
        let name = first.map_or("none", |first| first.cause.name());
        let name = if is_cause { format!("{name}, other path") } else { name.to_owned() };
        *count.instead.entry(name).or_default() += 1;
        println!("{}: {:?}, not {cause:?} {path:?}", file.display(), explained.sentence);
        if options.verbose {
            tell(connection, &planted);
        }
    }
    Ok(())
}

/// Returns the main cause, as the first sentence names it.
fn first(connection: &ConnectionReport) -> Option<&CauseReport> {
    let first = connection.lost_time.first()?;
    let counts = first.cost_ms.is_none_or(|cost| cost >= connection.duration_ms * 0.03);
    counts.then_some(first)
}

/// Returns the number of the path with this name, by the address of the client.
fn number_of(connection: &ConnectionReport, name: Option<&str>) -> Option<usize> {
    let path = connection.paths.iter().find(|path| Some(path.name.as_str()) == name)?;
    path.client.split('.').nth(2)?.parse::<usize>().ok()?.checked_sub(1)
}

/// Prints what the explanation is made of.
fn tell(connection: &ConnectionReport, planted: &Planted) {
    for cause in connection.lost_time.iter().take(5) {
        let of = number_of(connection, cause.path.as_deref()).map(|path| path + 1);
        println!("    {:?} of path {of:?}: {:?} ms", cause.cause, cause.cost_ms);
    }
    for path in &connection.paths {
        println!(
            "    {} joined {:?}, {} bytes, {:?} Mbit/s, {:?} ms, loss {} %",
            path.client,
            path.joined_ms,
            path.traffic.bytes,
            path.link_mbps,
            path.rtt.as_ref().map(|rtt| (rtt.min_ms, rtt.median_ms)),
            path.traffic.loss_percent
        );
    }
    println!("    window {:?} {planted:?}", connection.data.window_max_bytes);
}

fn table(counts: &BTreeMap<(Kind, &'static str), Count>) -> String {
    let mut text =
        "| planted | cause | server | client | named instead |\n|---|---|---|---|---|\n".to_owned();
    let mut sums: BTreeMap<&str, Count> = BTreeMap::new();
    for kind in Kind::ALL {
        let of = |host| counts.get(&(kind, host)).cloned().unwrap_or_default();
        let (server, client) = (of("server"), of("client"));
        if server.captures + client.captures == 0 {
            continue;
        }
        sums.entry("server").or_default().add(&server);
        sums.entry("client").or_default().add(&client);
        let mut both = server.clone();
        both.add(&client);
        let instead: Vec<String> =
            both.instead.iter().map(|(name, times)| format!("{name} ({times})")).collect();
        let cell = |it: &Count| format!("{} of {}", it.right, it.captures);
        let _ = writeln!(
            text,
            "| {} | `{}` | {} | {} | {} |",
            kind.words(),
            kind.cause().0.name(),
            cell(&server),
            cell(&client),
            instead.join(", ")
        );
    }
    let sum = |host: &str| {
        let count = sums.get(host).cloned().unwrap_or_default();
        format!("{} of {}", count.right, count.captures)
    };
    let _ = writeln!(text, "| all | | {} | {} | |", sum("server"), sum("client"));
    text
}
