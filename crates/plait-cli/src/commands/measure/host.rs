//! `plait measure HOST`: measures paths to a host that runs `plait measure serve`.

use super::import::existing;
use super::{failure, text};
use crate::console::{Console, check_writable, deliver, json};
use crate::failure::Failure;
use crate::progress;
use plait_lab::links::check_name;
use plait_measure::live::{DEFAULT_PORT, From, Options, measure};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

/// The arguments of a measurement.
#[derive(clap::Args, Debug)]
pub(crate) struct HostArgs {
    /// The far side, which runs `plait measure serve`: a name or an address, and its port if it is not 7788
    #[arg(value_name = "HOST[:PORT]", required = true)]
    host: Option<String>,
    /// Device or address where the packets of a path start; may be repeated
    ///
    /// NAME=DEVICE gives the path another name.
    #[arg(long, value_name = "[NAME=]DEVICE|ADDR", required = true)]
    from: Vec<String>,
    /// Maximum duration of the measurement
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = super::time)]
    time: Duration,
    /// Maximum number of bytes to send in each direction
    #[arg(long, value_name = "SIZE", default_value = "200MB", value_parser = super::quota)]
    quota: u64,
    /// Write the file of links to this file in place of stdout, and the table to stdout
    ///
    /// If the file exists, its other links stay, and a path with the same name gets the new values.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write one JSON document to stdout (`plait schema measure`)
    #[arg(long)]
    json: bool,
    /// Print what would be measured, and send nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &HostArgs, console: Console) -> Result<(), Failure> {
    let host = args.host.as_deref().unwrap_or_default();
    let from = paths(&args.from)?;
    let to = resolve(("HOST", host), DEFAULT_PORT, &from)?;
    #[expect(clippy::disallowed_types, reason = "the file has the day of the measurement")]
    let now = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let options = Options {
        to,
        server: host.to_owned(),
        from,
        time: args.time,
        bytes: args.quota,
        now_s: now.as_secs(),
    };
    if args.dry_run {
        return deliver(&options.plan(), None);
    }
    check_writable("--output", args.output.as_deref())?;
    let mut all = existing(args.output.as_deref())?;
    let stop = progress::on_interrupt()?;
    let say = |text: &str| console.remark(1, &format!("plait: {text}"));
    let document = measure(&options, stop, &say).map_err(failure)?;
    document.merge_into(&mut all);
    let table = text::table(&document, console.width);
    match (&args.output, args.json) {
        (Some(_), false) => deliver(&table, None)?,
        _ => console.remark(1, table.trim_end()),
    }
    if args.json {
        deliver(&json(&document)?, None)?;
    }
    match (&args.output, args.json) {
        (None, true) => Ok(()),
        (output, _) => deliver(&all.to_toml(), output.as_deref()),
    }
}

/// Returns the paths of `--from`.
pub(crate) fn paths(texts: &[String]) -> Result<Vec<From>, Failure> {
    let from: Vec<From> = texts.iter().map(|text| From::parse(text)).collect();
    for (at, path) in from.iter().enumerate() {
        // A path has this name in the file of links, and it may be the name of a device of `plait shell --links`.
        if !path.name.is_ascii() || check_name("--from", &path.name).is_err() {
            return Err(Failure::Usage(format!(
                "--from: `{}`: not a path's name\n  \
                 give another name of letters, digits, `-` and `_`, such as wifi={}",
                path.name.escape_debug(),
                texts[at].rsplit_once('=').map_or(texts[at].as_str(), |it| it.1).escape_debug()
            )));
        }
        if from.iter().take(at).any(|it| it.name == path.name) {
            return Err(Failure::Usage(format!(
                "--from: two paths are named `{}`\n  give one of them another name: NAME=DEVICE",
                path.name
            )));
        }
    }
    Ok(from)
}

/// Returns the address of the far side, given by the argument `place`. Its family is that of the paths.
pub(crate) fn resolve(
    (place, host): (&str, &str),
    default_port: u16,
    from: &[From],
) -> Result<SocketAddr, Failure> {
    let v4 = from.iter().find_map(|it| it.address).map(|it| it.is_ipv4());
    let refused = |problem: &str| {
        Failure::Usage(format!(
            "{place}: `{host}`: {problem}\n  give a name or an address, such as 192.0.2.1 or far.example:{default_port}"
        ))
    };
    let bare = host.trim_matches(['[', ']']).parse().ok();
    let found: Vec<SocketAddr> = match bare {
        Some(address) => vec![SocketAddr::new(address, default_port)],
        None if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => {
            host.to_socket_addrs().map_err(|error| refused(&error.to_string()))?.collect()
        }
        None => (host, default_port)
            .to_socket_addrs()
            .map_err(|error| refused(&error.to_string()))?
            .collect(),
    };
    let fits = |it: &&SocketAddr| v4.is_none_or(|v4| it.is_ipv4() == v4);
    found.iter().find(fits).copied().ok_or_else(|| refused("it has no address of that family"))
}

#[cfg(test)]
mod tests {
    use super::paths;

    #[test]
    fn a_name_that_a_file_of_links_cannot_have_is_refused() {
        for text in [
            "my wifi=wlan0",
            "\u{e9}=wlan0",
            "a\nb=wlan0",
            "=wlan0",
            "2001:db8:1111:2222:3333:4444:5555:6666",
        ] {
            let error = paths(&[text.to_owned()]).unwrap_err();
            assert_eq!(error.code(), 2);
            let error = error.to_string();
            assert!(
                error.starts_with("--from: `") && error.contains("not a path's name"),
                "{error}"
            );
            assert_eq!(error.lines().count(), 2, "{error}");
        }
        for text in ["wifi=wlan0", "eth0.7", "2001:db8::1", "wan-1_b=eth0"] {
            assert!(paths(&[text.to_owned()]).is_ok(), "{text}");
        }
    }
}
