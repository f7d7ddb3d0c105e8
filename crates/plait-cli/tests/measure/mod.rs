//! `plait measure` between the namespaces of `plait shell`: it finds the links that the shell emulates.
#![allow(unreachable_pub)]

use crate::net::timely::measured;
use crate::net::{Bed, Line};
use crate::{PLAIT, Running, file};
use libtest_mimic::{Failed, Trial};
use plait_lab::links::{LinkFile, Values};
use plait_live::emulate::Strip;
use serde_json::Value;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Lateness that 99 of 100 packets of a measurement that counts do not exceed, in microseconds. The values are means,
/// percentiles and minima of hundreds of packets, so single late packets do not matter.
const LATE_US: u64 = 1_000;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_measurement_finds_rate_rtt_queue_and_loss", found),
        Trial::test("a_measurement_finds_a_shared_bottleneck", shared),
        Trial::test("a_measurement_sees_whether_mptcp_options_arrive", stripped),
        Trial::test("a_measurement_stops_at_its_bytes", spared),
        Trial::test("a_dead_path_is_unknown_and_the_others_are_measured", dead),
        Trial::test("the_far_side_of_a_measurement_has_limits", limited),
        Trial::test("a_measurement_needs_a_far_side", alone),
    ]
}

/// A measurement of the links of a shell.
struct Seen {
    document: Value,
    links: LinkFile,
}

/// Measures the paths `from` behind a shell with these links. Returns `None` if packets were late.
fn measure(
    name: &str,
    links: &[&str],
    from: &[&str],
    flags: &[&str],
) -> Result<Option<Seen>, Failed> {
    let report = file(&format!("measure-{name}.json"));
    let out = file(&format!("measure-{name}.toml"));
    let _ = fs::remove_file(&out);
    let mut plait = Command::new(PLAIT);
    plait.arg("shell");
    plait.args(links.iter().flat_map(|link| ["--path", link]));
    plait.args(["--server", &format!("{PLAIT} measure serve --listen 10.99.0.1:7788")]);
    plait.arg("--report").arg(&report).args(["--", PLAIT, "measure", "10.99.0.1", "--json"]);
    plait.args(from.iter().flat_map(|from| ["--from", from]));
    let output = plait.args(flags).arg("-o").arg(&out).output()?;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&fs::read(&report)?)?;
    if report["lateness"]["p99_us"].as_u64().unwrap() > LATE_US {
        return Ok(None);
    }
    let text = fs::read_to_string(&out)?;
    let links = LinkFile::from_toml("links.toml", &text).map_err(|error| error.to_string())?;
    Ok(Some(Seen { document: serde_json::from_slice(&output.stdout)?, links }))
}

impl Seen {
    /// Returns a value of a path, such as `down/rate_mbps`, and its range.
    fn value(&self, path: usize, name: &str) -> [f64; 3] {
        let found = self.document["paths"][path].pointer(&format!("/{name}")).unwrap();
        ["value", "low", "high"].map(|it| found[it].as_f64().unwrap_or_else(|| panic!("{found}")))
    }

    fn number(&self, path: usize, name: &str) -> f64 {
        self.document["paths"][path].pointer(&format!("/{name}")).unwrap().as_f64().unwrap()
    }

    /// Returns the deviation of a value beyond a share of the true one, if there is one.
    fn beyond(&self, path: usize, name: &str, truth: f64, most: f64) -> Option<String> {
        let [value, ..] = self.value(path, name);
        let off = (value / truth - 1.0).abs();
        (off > most).then(|| format!("path {path}: {name} is {value}, not {truth}"))
    }
}

/// The first path carries nothing from the start.
fn dead() -> Result<(), Failed> {
    let links = ["lte:rate=8mbit,rtt=60ms,down=0s..", "wifi:rate=20mbit,rtt=22ms"];
    let out = file("measure-dead.toml");
    let _ = fs::remove_file(&out);
    let mut plait = Command::new(PLAIT);
    plait.args(["shell", "--server", &format!("{PLAIT} measure serve --listen 10.99.0.1:7788")]);
    plait.args(links.iter().flat_map(|link| ["--path", link]));
    plait.args(["--", PLAIT, "measure", "10.99.0.1", "--json", "--from", "lte", "--from", "wifi"]);
    let output = plait.args(["--time", "10s", "-o"]).arg(&out).output()?;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout)?;
    let [lte, wifi] = [0, 1].map(|path| &document["paths"][path]);
    let remark = lte["remarks"][0].as_str().unwrap();
    assert!(lte["name"] == "lte" && lte["rtt_ms"].is_null(), "{lte}");
    assert!(remark.contains("probes over UDP") && remark.contains("TCP does not pass"), "{remark}");
    assert!(wifi["name"] == "wifi" && wifi["down"]["rate_mbps"]["value"].is_number(), "{wifi}");
    let links = LinkFile::from_toml("links.toml", &fs::read_to_string(&out)?)
        .map_err(|error| error.to_string())?;
    assert!(links.links[0].value("rate_down").unwrap().is_unknown());
    assert!(!links.links[1].value("rate_down").unwrap().is_unknown());
    Ok(())
}

/// The losses are binomial, so a share of `truth` percent of `sent` packets is within four deviations in all but one
/// of 15,000 measurements.
fn beyond_chance(percent: f64, truth: f64, sent: f64) -> Option<String> {
    let deviation = 100.0 * (truth / 100.0 * (1.0 - truth / 100.0) / sent).sqrt();
    ((percent - truth).abs() > 4.0 * deviation)
        .then(|| format!("a loss of {percent} % of {sent} packets, not {truth} %"))
}

fn found() -> Result<(), Failed> {
    let links = [
        "wifi:rate_down=20mbit,rate_up=5mbit,rtt=22ms,queue=100ms",
        "lte:rate=8mbit,owd_down=40ms,owd_up=20ms,queue=200ms,loss=1%",
    ];
    let look = || measure("found", &links, &["wifi", "lte"], &["--time", "24s"]);
    let refute = |seen: &Seen| {
        let rates = [(0, "down", 20.0), (0, "up", 5.0), (1, "down", 8.0), (1, "up", 8.0)];
        let rate = |(path, way, mbps)| seen.beyond(path, &format!("{way}/rate_mbps"), mbps, 0.1);
        let queues = [(0, "down", 100.0), (0, "up", 100.0), (1, "down", 200.0), (1, "up", 200.0)];
        let queue = |(path, way, ms)| seen.beyond(path, &format!("{way}/queue_ms"), ms, 0.25);
        let rtt = |(path, ms): (usize, f64)| {
            let [value, ..] = seen.value(path, "rtt_ms");
            ((value - ms).abs() > 2.0)
                .then(|| format!("path {path}: an RTT of {value}, not {ms} ms"))
        };
        let sent = seen.number(1, "down/loss_packets");
        let losses = || {
            let [lost, ..] = seen.value(1, "down/loss_percent");
            beyond_chance(lost, 1.0, sent)
        };
        let slant = seen.number(1, "asymmetry_ms");
        let own = seen.document["bottleneck"] == "own";
        let first = rates.into_iter().find_map(rate);
        first
            .or_else(|| queues.into_iter().find_map(queue))
            .or_else(|| [(0, 22.0), (1, 60.0)].into_iter().find_map(rtt))
            .or_else(losses)
            .or_else(|| {
                ((slant - 20.0).abs() > 2.0).then(|| format!("{slant} ms slower down, not 20"))
            })
            .or_else(|| (!own).then(|| format!("not separate: {}", seen.document)))
    };
    let Some(seen) = measured("the links of a shell are found", look, refute)? else {
        return Ok(());
    };
    assert_eq!(seen.document["schema"], "plait.measure/1");
    assert!(seen.number(1, "down/loss_packets") > 300.0, "{}", seen.document);
    assert_eq!(seen.value(0, "down/loss_percent")[0], 0.0, "{}", seen.document);
    assert_eq!(seen.document["paths"][0]["mptcp_options"], true);
    // The file has the same values, and the slanted path both of its delays.
    let raw = seen.links.scenario(Values::Middle).unwrap();
    let arguments = format!("{:?}", raw.arguments());
    assert!(arguments.contains("lte:owd_down=") && arguments.contains("wifi:rtt="), "{arguments}");
    assert!(seen.links.shared.is_empty());
    assert_eq!(seen.links.links[0].value("rate_down").unwrap().source, "plait measure 10.99.0.1");
    Ok(())
}

fn shared() -> Result<(), Failed> {
    let link = ["home:rate=12mbit,rtt=20ms,queue=80ms"];
    let look = || measure("shared", &link, &["a=home", "b=10.98.1.1"], &["--time", "20s"]);
    let refute = |seen: &Seen| {
        let shared = seen.document["bottleneck"] == "shared";
        let missing = seen.document["missing_share"]["value"].as_f64().unwrap();
        let right = shared && (missing - 1.0).abs() < 0.15;
        (!right).then(|| format!("a shared bottleneck was not found: {}", seen.document))
    };
    let Some(seen) = measured("a shared bottleneck is found", look, refute)? else { return Ok(()) };
    assert_eq!(seen.links.shared.len(), 1);
    assert!(seen.links.shared[0].starts_with("shared:rate_down=1"), "{:?}", seen.links.shared);
    assert_eq!(seen.links.links[1].value("via").unwrap().value.as_deref(), Some("shared"));
    Ok(())
}

/// Starts a server in the namespace of a bed, and waits until it is ready.
fn serve(bed: &Bed, flags: &[&str]) -> Result<Running, Failed> {
    let at = format!("{}:7788", bed.family.service());
    let mut command = Command::new(PLAIT);
    command.args(["measure", "serve", "--listen", &at]).args(flags).stderr(Stdio::piped());
    let mut running = bed.server.within(|| command.spawn())?.map(Running)?;
    let mut line = String::new();
    let stderr = running.stderr.take().unwrap();
    let mut reader = std::io::BufReader::new(stderr);
    std::io::BufRead::read_line(&mut reader, &mut line)?;
    assert!(line.contains("measure: ready"), "{line}");
    // The server goes on to write.
    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    Ok(running)
}

fn ask(bed: &Bed, flags: &[&str]) -> Result<Output, Failed> {
    let mut command = Command::new(PLAIT);
    command.args(["measure", &bed.family.service().to_string(), "--json"]).args(flags);
    Ok(bed.client.within(|| command.output())??)
}

fn bed(strip: Strip) -> Result<Bed, Failed> {
    let line = |strip| Line { strip, ..Line::new(10, 20, 100_000) };
    let bed = Bed::build(crate::Family::V4, &[line(Strip::Nothing), line(strip)])?;
    bed.own_service()?;
    Ok(bed)
}

fn stripped() -> Result<(), Failed> {
    let bed = bed(Strip::Syn)?;
    let _server = serve(&bed, &[])?;
    let output = ask(&bed, &["--from", "c0", "--from", "c1", "--time", "12s"])?;
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{problem}");
    let document: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(document["paths"][0]["mptcp_options"], true, "{document}");
    assert_eq!(document["paths"][1]["mptcp_options"], false, "{document}");
    assert!(problem.contains("MPTCP options do not arrive: a"), "{problem}");
    Ok(())
}

fn spared() -> Result<(), Failed> {
    let bed = bed(Strip::Nothing)?;
    let _server = serve(&bed, &[])?;
    let output = ask(&bed, &["--from", "c0", "--time", "8s", "--quota", "1MB"])?;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout)?;
    // A megabyte in each direction.
    let bytes = document["bytes"].as_u64().unwrap();
    assert!((1_000_000..=2_000_000).contains(&bytes), "{document}");
    let counted = bed.client.within(|| fs::read_to_string("/sys/class/net/c0/statistics/tx_bytes"));
    assert!(counted?.unwrap_or_default().trim().parse().unwrap_or(0) < 1_100_000);
    Ok(())
}

fn limited() -> Result<(), Failed> {
    let bed = bed(Strip::Nothing)?;
    let _server = serve(&bed, &["--quota", "2MB", "--time", "10s"])?;
    for (flags, allowed) in [
        (["--quota", "3MB", "--time", "9s"], "3 MB are asked for; allowed: --quota 2MB"),
        (["--quota", "1MB", "--time", "20s"], "20 s are asked for; allowed: --time 10s"),
    ] {
        let output = ask(&bed, &[&["--from", "c0"], &flags[..]].concat())?;
        assert_eq!(output.status.code(), Some(4));
        let problem = String::from_utf8_lossy(&output.stderr);
        assert!(problem.contains(&format!("the far side refuses: {allowed}")), "{problem}");
    }
    // Datagrams without the token of a measurement get no answer, and other text over TCP ends the connection.
    let at = format!("{}:7788", bed.family.service());
    bed.client.within(|| -> Result<(), Failed> {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.set_read_timeout(Some(Duration::from_millis(300)))?;
        let mut probe = [0; 56];
        probe[16] = 1;
        socket.send_to(&probe, &at)?;
        assert!(socket.recv_from(&mut [0; 100]).is_err());
        let mut stream = std::net::TcpStream::connect(&at)?;
        std::io::Write::write_all(&mut stream, b"GET / HTTP/1.1\r\n\r\n")?;
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer)?;
        assert!(answer.contains("the first line must say hello"), "{answer}");
        Ok(())
    })?
}

fn alone() -> Result<(), Failed> {
    let bed = bed(Strip::Nothing)?;
    let output = ask(&bed, &["--from", "c0"])?;
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{problem}");
    assert!(problem.contains("start the far side: plait measure serve --listen"), "{problem}");
    let wrong = ask(&bed, &["--from", "none0"])?;
    let problem = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status.code(), Some(2), "{problem}");
    assert!(
        problem.contains("--from: `none0`: ") && problem.contains("give a device"),
        "{problem}"
    );
    // A service that is no far side of a measurement.
    let answered = bed.server.within(|| -> Result<(), Failed> {
        let listener = TcpListener::bind((bed.family.service(), 7788))?;
        std::thread::spawn(move || listener.accept());
        Ok(())
    })?;
    answered?;
    let output = ask(&bed, &["--from", "c0"])?;
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{problem}");
    assert!(problem.contains("is not `plait measure serve`"), "{problem}");
    Ok(())
}
