//! The emulated paths of `shell` and `race`: which keys of a path the emulator has, and its results.

use crate::failure::Failure;
use crate::flags::paths_of_links;
use plait_lab::links::LinkFile;
use plait_lab::scenario::Path;
use plait_lab::{Place, Scenario};
use plait_link::LinkCounters;
use plait_live::emulate::{Line, Network, PerDirection, Report};
use plait_report::render::{Align, Column, Emphasis, Table, bytes};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, ErrorKind};

/// Keys of a path that the emulator does not have, and the reason.
const NOT_EMULATED: [(&str, &str); 7] = [
    ("edit", "the emulator changes no payload"),
    ("strip", "the emulator leaves MPTCP options alone"),
    ("gone", "the emulator removes no address; use an outage: down=FROM..TO"),
    ("nic", "the kernel sends to the emulated link without another link before it"),
    ("via", "emulated paths share no link"),
    ("cost", "the stock kernel has no prices; use `backup`"),
    ("quota", "the stock kernel has no quotas"),
];

/// What `--help` says about the keys.
pub(crate) const KEYS_HELP: &str = "A path such as wifi:rtt=25ms,rate=25mbit, or a profile; once per path

The keys are those of `plait compare`, except edit, strip, gone, nic, via, cost and quota. The name becomes that \
of the network device. The first path is the primary. Down means from the server to the client.";

/// Fails if a path of `--path` has a key that the emulator does not have.
fn check_keys(path: &str) -> Result<(), Failure> {
    let Some((name, fields)) = path.split_once(':') else { return Ok(()) };
    let keys = fields.split(',').map(|it| it.split('=').next().unwrap_or_default().trim());
    for key in keys {
        check_key(key, &|| format!("--path {}:{key}", name.trim().escape_debug()))?;
    }
    Ok(())
}

/// Fails if the emulator does not have a key, which is at `place`.
fn check_key(key: &str, place: &dyn Fn() -> String) -> Result<(), Failure> {
    match NOT_EMULATED.iter().find(|(known, _)| *known == key) {
        Some((_, why)) => Err(Failure::Usage(format!(
            "{}: it is not emulated: {why}\n  leave it out, or take the simulator: `plait compare`, or `plait race --predict`",
            place()
        ))),
        None => Ok(()),
    }
}

/// Fails if the emulator does not have a key of a file of links. The error has the line.
fn check_file(file: &str) -> Result<(), Failure> {
    let known = LinkFile::from_file(file, &|name| plait_app::file::settings(name))?;
    let keys = known.links.iter().flat_map(|link| &link.values);
    keys.into_iter().try_for_each(|(key, value)| {
        check_key(key, &|| match &value.place {
            // The place of a table is that of its key.
            place @ Place::File { field, .. } if !field.ends_with(key.as_str()) => {
                format!("{place}.{key}")
            }
            place => place.to_string(),
        })
    })
}

/// Returns the paths of `--path`, or those of a file of links, as settings. Fails if the emulator does not have a key.
pub(crate) fn emulated_paths(
    paths: &[String],
    links: Option<&str>,
) -> Result<Vec<(&'static str, String)>, Failure> {
    let Some(file) = links else {
        paths.iter().try_for_each(|path| check_keys(path))?;
        return Ok(paths.iter().map(|path| ("path", path.clone())).collect());
    };
    check_file(file)?;
    Ok(paths_of_links(file)?.into_iter().filter(|it| it.0 == "path").collect())
}

/// Returns the failure of a command without links. `others` are the flags that give links, too.
pub(crate) fn no_path(others: &str) -> Failure {
    Failure::Usage(format!(
        "--path: it is missing\n  give the links, such as --path wifi:rate=20mbit,rtt=22ms; or {others}"
    ))
}

/// Returns the paths of a scenario for the emulator, with the randomness of `seed`. Fails if a name cannot be that
/// of a device.
pub(crate) fn lines(scenario: &Scenario, seed: u64) -> Result<Vec<Line>, Failure> {
    if scenario.paths.len() > Network::MOST_PATHS {
        let (given, most) = (scenario.paths.len(), Network::MOST_PATHS);
        return Err(Failure::Usage(format!(
            "--path: {given} paths are given\n  allowed: at most {most}, as many as the kernel has endpoints"
        )));
    }
    let links = scenario.links(seed);
    let line = |(path, links): (&Path, plait_lab::scenario::PathLinks)| {
        check_name(&path.name)?;
        Ok(Line {
            name: path.name.clone(),
            down: links.link.down,
            up: links.link.up,
            backup: links.usage.backup,
        })
    };
    scenario.paths.iter().zip(links).map(line).collect()
}

fn check_name(name: &str) -> Result<(), Failure> {
    let problem = match name {
        "lo" | "all" | "default" => "the kernel uses this name itself",
        _ if !name.is_ascii() => "the name of a device has only ASCII characters",
        _ if name.len() > Network::LONGEST_NAME => "the name of a device has at most 15 characters",
        _ => return Ok(()),
    };
    let name = name.escape_debug();
    Err(Failure::Usage(format!("path `{name}`: {problem}\n  give it another name, such as wifi")))
}

/// Returns the failure for a network that could not be made.
pub(crate) fn not_made(error: &io::Error) -> Failure {
    let (what, remedy) = match error.kind() {
        ErrorKind::PermissionDenied => {
            ("namespaces or devices", "it needs CAP_SYS_ADMIN and CAP_NET_ADMIN: run it as root")
        }
        ErrorKind::NotFound => (
            "the emulated network",
            "it needs `sh`, `ip` (iproute2) and /dev/net/tun (modprobe tun); see `plait doctor`",
        ),
        _ => ("the emulated network", "it needs Linux with MPTCP and TUN; see `plait doctor`"),
    };
    Failure::Privilege(format!("{what}: {error}\n  {remedy}"))
}

/// Traffic of an emulated path.
#[derive(Serialize, JsonSchema, Clone, PartialEq, Eq, Debug)]
pub(crate) struct PathTraffic {
    /// Name of the path, and of its devices.
    name: String,
    /// Address of the client on the path.
    client: String,
    /// Address of the server on the path. The server also has an address that all paths lead to.
    server: String,
    /// Packets from the server to the client.
    down: WayTraffic,
    /// Packets from the client to the server.
    up: WayTraffic,
}

/// Packets that a link took in one direction, as whole IP packets.
#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WayTraffic {
    /// Delivered bytes.
    delivered_bytes: u64,
    /// Delivered packets.
    delivered_packets: u64,
    /// Packets dropped because the queue was full.
    dropped_queue: u64,
    /// Packets dropped by active queue management.
    dropped_aqm: u64,
    /// Packets lost at random.
    dropped_loss: u64,
    /// Packets lost in an outage.
    dropped_outage: u64,
    /// Packets longer than the MTU.
    dropped_mtu: u64,
}

impl From<LinkCounters> for WayTraffic {
    fn from(it: LinkCounters) -> WayTraffic {
        WayTraffic {
            delivered_bytes: it.delivered_bytes,
            delivered_packets: it.delivered_packets,
            dropped_queue: it.dropped_queue,
            dropped_aqm: it.dropped_aqm,
            dropped_loss: it.dropped_loss,
            dropped_outage: it.dropped_outage,
            dropped_mtu: it.dropped_mtu,
        }
    }
}

/// Delay of the emulator behind the times that its links require, in microseconds.
#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LatenessReport {
    /// Delivered packets.
    packets: u64,
    /// Median over the packets.
    median_us: u64,
    /// 99th percentile over the packets.
    p99_us: u64,
    /// Greatest lateness of a packet or of a wake-up of the emulator.
    worst_us: u64,
}

impl LatenessReport {
    pub(crate) fn of(report: &Report) -> LatenessReport {
        let late = &report.lateness;
        LatenessReport {
            packets: late.packets(),
            median_us: late.percentile(50).as_micros(),
            p99_us: late.percentile(99).as_micros(),
            worst_us: late.worst().as_micros(),
        }
    }
}

/// Returns the traffic of each path.
pub(crate) fn traffic(lines: &[Line], report: &Report) -> Vec<PathTraffic> {
    let path = |(at, (line, links)): (usize, (&Line, &PerDirection<LinkCounters>))| PathTraffic {
        name: line.name.clone(),
        client: Network::client_address(at).to_string(),
        server: Network::server_address(at).to_string(),
        down: links.down.into(),
        up: links.up.into(),
    };
    lines.iter().zip(&report.links).enumerate().map(path).collect()
}

/// Returns a table of the traffic.
pub(crate) fn table(traffic: &[PathTraffic], width: usize) -> String {
    let right = |title| Column::new(title, Align::Right);
    let mut table = Table::new(vec![
        Column::new("path", Align::Left),
        Column::new("direction", Align::Left),
        right("delivered"),
        right("packets"),
        right("queue full"),
        right("aqm").dispensable(1),
        right("lost"),
        right("in outage").dispensable(3),
        right("too long").dispensable(2),
    ]);
    for path in traffic {
        for (direction, way) in [("down", path.down), ("up", path.up)] {
            let mut cells = vec![
                path.name.clone(),
                direction.to_owned(),
                bytes(way.delivered_bytes),
                way.delivered_packets.to_string(),
            ];
            let dropped =
                [way.dropped_queue, way.dropped_aqm, way.dropped_loss, way.dropped_outage];
            cells.extend(dropped.iter().chain([&way.dropped_mtu]).map(ToString::to_string));
            table.row(Emphasis::None, cells);
        }
    }
    table.to_text(width, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_lab::scenario::PATH_KEYS;

    #[test]
    fn a_key_that_is_not_emulated_is_refused_by_its_name() {
        for (key, _) in NOT_EMULATED {
            assert!(PATH_KEYS.iter().any(|known| known.name == key), "{key}");
            let failure = check_keys(&format!("wifi:rtt=9ms, {key} = 1,rate=1mbit")).unwrap_err();
            assert_eq!(failure.code(), 2);
            assert!(failure.to_string().starts_with(&format!("--path wifi:{key}: ")), "{failure}");
            assert!(KEYS_HELP.contains(key), "{key}");
        }
        // Parameters of values and names of paths are no keys.
        for path in ["strip", "edit:rtt=9ms,rate=1mbit", "a:loss=ge:p=1%,r=30%", "a:trace=via"] {
            assert!(check_keys(path).is_ok(), "{path}");
        }
    }

    #[test]
    fn a_name_that_is_no_name_of_a_device_is_refused() {
        for name in ["lo", "default", "w\u{fc}rfel", "sixteen-letters-"] {
            assert_eq!(check_name(name).unwrap_err().code(), 2, "{name}");
        }
        for name in ["wifi", "lte-verizon", "fifteen-letters", "2"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
    }
}
