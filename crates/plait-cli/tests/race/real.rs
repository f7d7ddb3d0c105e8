//! `plait race --to` between two namespaces with two pairs of veth devices. Nothing here depends on the time that a run
//! takes.

use super::rows;
use crate::net::{device_bytes, run, said, set, until};
use crate::schema::violation;
use crate::{PLAIT, Running, await_state, ended, file, first_line, problem, settled};
use libtest_mimic::{Failed, Trial};
use plait_live::Namespace;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const FAR: &str = "10.99.0.1";
const PATHS: [&str; 4] = ["--from", "v1", "--from", "v2"];
const CONTROLLERS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("measured_links_predict_a_race_over_real_links", predicted),
        Trial::test("a_race_over_real_links_names_what_is_missing", refused),
        Trial::test("a_side_of_a_race_that_only_receives_needs_no_privilege", unprivileged),
        Trial::test("a_far_side_has_one_race_at_a_time_and_one_version", limited),
        Trial::test("times_of_a_far_side_are_moved_to_the_near_clock", moved),
        Trial::test("an_interrupted_race_over_real_links_has_its_runs", interrupted),
    ];
    for workload in [
        "download:1MB",
        "upload:1MB",
        "stream:8kB@20ms,for=400ms",
        "bulk:300ms",
        "web:google,think=off",
    ] {
        let name = format!("a_race_over_real_links/{}", workload.split(':').next().unwrap());
        trials.push(Trial::test(name, move || raced(workload)));
    }
    for killed in ["near", "far"] {
        let name = format!("nothing_is_left_behind_by_a_race_over_real_links/{killed}");
        trials.push(Trial::test(name, move || left(killed)));
    }
    trials
}

/// The hosts of a race, joined by two pairs of devices.
struct Hosts {
    near: Namespace,
    far: Namespace,
}

impl Hosts {
    fn build() -> Result<Hosts, Failed> {
        let (near, far) = (Namespace::create()?, Namespace::create()?);
        for space in [&near, &far] {
            space.within(|| {
                run("ip link set lo up");
                set("net/ipv4/ip_forward", "1");
                set("net/ipv4/conf/all/rp_filter", "0");
                set("net/ipv4/conf/default/rp_filter", "0");
                run("ip mptcp limits set subflow 2 add_addr_accepted 2");
            })?;
        }
        let peer = far.path();
        near.within(|| {
            for at in 1..=2 {
                let peer = format!("peer name v{at} netns {}", peer.display());
                run(&format!("ip link add v{at} type veth {peer}"));
                run(&format!("ip addr add 10.98.{at}.1/24 dev v{at}"));
                run(&format!("ip link set v{at} up"));
            }
        })?;
        far.within(|| {
            run(&format!("ip addr add {FAR}/32 dev lo"));
            for at in 1..=2 {
                run(&format!("ip addr add 10.98.{at}.2/24 dev v{at}"));
                run(&format!("ip link set v{at} up"));
            }
        })?;
        near.within(|| {
            for at in 1..=2 {
                run(&format!("ip route add default via 10.98.{at}.2 dev v{at} metric {at}0"));
            }
            run("ip mptcp endpoint add 10.98.2.1 dev v2 subflow");
        })?;
        Ok(Hosts { near, far })
    }

    /// Builds the hosts, and starts the far side.
    fn ready() -> Result<(Hosts, Running), Failed> {
        let hosts = Hosts::build()?;
        let far = hosts.serve()?;
        Ok((hosts, far))
    }

    /// Starts the far side, and waits until it is ready.
    fn serve(&self) -> Result<Running, Failed> {
        self.serve_by(Command::new(PLAIT))
    }

    fn serve_by(&self, mut command: Command) -> Result<Running, Failed> {
        let listen = format!("{FAR}:7789");
        command.args(["race", "serve", "--listen", &listen]).stderr(Stdio::piped());
        let mut running = self.far.within(|| command.spawn())?.map(Running)?;
        let (line, mut reader) = first_line(running.stderr.take())?;
        assert!(line.contains("race: ready"), "{line}");
        // The far side goes on to write.
        std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
        Ok(running)
    }

    fn command(&self, flags: &[&str]) -> Command {
        let mut command = Command::new(PLAIT);
        command.args(["race", "--to", FAR, "--json"]).args(flags);
        command
    }

    fn race(&self, flags: &[&str]) -> Result<Output, Failed> {
        let mut command = self.command(flags);
        Ok(self.near.within(|| command.output())??)
    }

    /// Starts a race whose output is not read.
    fn start(&self, flags: &[&str]) -> Result<Running, Failed> {
        let mut command = self.command(flags);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(self.near.within(|| command.spawn())?.map(Running)?)
    }

    /// Runs a race that succeeds, and returns its document.
    fn document(&self, flags: &[&str]) -> Result<Value, Failed> {
        Ok(serde_json::from_slice(&ended(0, self.race(flags)?).stdout)?)
    }

    /// Runs a race that ends with this code, and returns what it wrote to stderr.
    fn problem(&self, code: i32, flags: &[&str]) -> Result<String, Failed> {
        Ok(problem(&ended(code, self.race(flags)?)))
    }

    /// Bytes that the devices of the near side have received and sent.
    fn carried(&self) -> Result<u64, Failed> {
        let devices = self.near.within(|| ["v1", "v2"].map(device_bytes))?;
        Ok(devices.iter().map(|it| it.received + it.sent).sum())
    }
}

fn schema() -> Value {
    let output = Command::new(PLAIT).args(["schema", "race"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every sender makes its runs, and plait accepts only complete ones.
fn raced(workload: &str) -> Result<(), Failed> {
    let (hosts, _far) = Hosts::ready()?;
    let mut schedulers = "slot,minrtt,kernel:cubic".to_owned();
    let mut senders = vec!["slot", "minrtt", "kernel:cubic"];
    if fs::read_to_string(CONTROLLERS)?.contains("bbr") {
        schedulers += ",kernel:bbr";
        senders.push("kernel:bbr");
    }
    senders.extend(["tcp:v1", "tcp:v2"]);
    let before = hosts.carried()?;
    let own = ["--workload", workload, "--runs", "2", "--schedulers", &schedulers];
    let document = hosts.document(&[&PATHS[..], &own].concat())?;
    let schema = schema();
    assert_eq!(violation(&schema, &schema, &document, "document"), None);
    assert_eq!(document["to"], FAR);
    assert_eq!(document["heats"][0]["paths"], serde_json::json!(["v1", "v2"]));
    assert!(document.get("predicted_runs").is_none(), "{document}");
    let found: Vec<&str> =
        rows(&document).iter().map(|row| row["sender"].as_str().unwrap()).collect();
    assert_eq!(found, senders);
    for row in rows(&document) {
        assert_eq!(row["counted"], 2, "{row}");
        let measure = &row["measures"][0];
        assert!(measure["live"]["median"].as_f64().unwrap() > 0.0, "{row}");
        assert!(measure.get("predicted").is_none() && row.get("worst_late_us").is_none(), "{row}");
        // Each device counts a few frames of the kernel, such as ARP.
        let share = |path: &str| row["path_share"][path].as_f64().unwrap();
        match row["sender"].as_str().unwrap() {
            "tcp:v1" => assert!(share("v1") > 0.95, "{row}"),
            "tcp:v2" => assert!(share("v2") > 0.95, "{row}"),
            _ => assert!((share("v1") + share("v2") - 1.0).abs() < 1e-9, "{row}"),
        }
    }
    if workload.ends_with("1MB") {
        let all = 1_000_000 * 2 * senders.len() as u64;
        assert!(hosts.carried()? - before > all);
    }
    Ok(())
}

fn predicted() -> Result<(), Failed> {
    let (hosts, _far) = Hosts::ready()?;
    let links = file("race-links.toml");
    let link = |name: &str, mbit: u32| {
        let value = |text: String| format!("{{ value = \"{text}\", source = \"by hand\" }}");
        let (rtt, rate) = (value("20ms".to_owned()), value(format!("{mbit}mbit")));
        format!("[[path]]\nname = \"{name}\"\nrtt = {rtt}\nrate_down = {rate}\nrate_up = {rate}\n")
    };
    let all = [link("other", 9), link("lte", 10), link("wifi", 20)].concat();
    fs::write(&links, format!("schema = \"plait.links/1\"\n{all}"))?;
    let links = links.to_str().unwrap();
    let flags = ["--links", links, "--workload", "download:200kB", "--runs", "1"];
    // The second path is given by its address.
    let from = ["--from", "wifi=v1", "--from", "lte=10.98.2.1", "--schedulers", "minrtt"];
    let document = hosts.document(&[&flags[..], &from].concat())?;
    let schema = schema();
    assert_eq!(violation(&schema, &schema, &document, "document"), None);
    assert_eq!(document["predicted_runs"], 30);
    let heat = &document["heats"][0];
    let paths: Vec<&str> =
        heat["paths"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert!(paths[0].starts_with("wifi:") && paths[1].starts_with("lte:"), "{paths:?}");
    assert_eq!(paths.len(), 2);
    let of = |at: usize, of: &str| rows(&document)[at]["measures"][0][of]["median"].as_f64();
    // 200 kB at 20 and at 10 Mbit/s, after two round trips.
    assert!(of(1, "predicted").unwrap() > 120.0 && of(2, "predicted").unwrap() > 200.0);
    // The devices have no such delays. So the live runs are no copies of the predictions.
    assert!(of(0, "live").unwrap() > 0.0 && of(0, "live") != of(0, "predicted"));
    assert!(rows(&document)[2]["path_share"]["lte"].as_f64().unwrap() > 0.9);
    let unknown = hosts.problem(2, &[&flags[..], &["--from", "v1"]].concat())?;
    assert!(unknown.contains("it has no link `v1`, a path of --from"), "{unknown}");
    Ok(())
}

/// The clock of the far side is seconds ahead. All runs together take no longer than the race.
fn moved() -> Result<(), Failed> {
    let (hosts, _far) = Hosts::ready()?;
    std::thread::sleep(Duration::from_secs(3));
    for workload in ["upload:100kB", "stream:8kB@20ms,for=100ms"] {
        let begun = Instant::now();
        let own = ["--workload", workload, "--runs", "1", "--schedulers", "kernel:cubic"];
        let document = hosts.document(&[&PATHS[..], &own].concat())?;
        let took = begun.elapsed().as_secs_f64() * 1e3;
        let median = |row: &Value| row["measures"][0]["live"]["median"].as_f64().unwrap();
        let all: f64 = rows(&document).iter().map(median).sum();
        assert!(all > 0.0 && all < took, "{all} ms in {took} ms: {document}");
    }
    Ok(())
}

fn refused() -> Result<(), Failed> {
    let hosts = Hosts::build()?;
    let flags = [&PATHS[..], &["--workload", "download:1MB"]].concat();
    let alone = hosts.problem(4, &flags)?;
    assert!(alone.contains("start the far side: plait race serve --listen"), "{alone}");
    // A service that is no far side of a race.
    hosts.far.within(|| -> Result<(), Failed> {
        let listener = TcpListener::bind((FAR, 7789))?;
        std::thread::spawn(move || listener.accept());
        Ok(())
    })??;
    let other = hosts.problem(4, &flags)?;
    assert!(other.contains("is not `plait race serve` of this version"), "{other}");
    let _far = hosts.serve()?;
    let wrong = hosts.problem(2, &["--from", "none0", "--workload", "download:1MB"])?;
    assert!(wrong.contains("--from: `none0`: ") && wrong.contains("give a device"), "{wrong}");
    let blocks = [&PATHS[..], &["--workload", "burst:20seg"]].concat();
    let blocks = hosts.problem(2, &blocks)?;
    assert!(blocks.contains("it does not run between two hosts: "), "{blocks}");
    let near = hosts.problem(2, &[&flags[..], &["--schedulers", "slott"]].concat())?;
    assert!(near.contains("did you mean `slot`?"), "{near}");
    // The kernel opens no further subflow without an endpoint.
    hosts.near.within(|| run("ip mptcp endpoint flush"))?;
    let endpoint = hosts.problem(3, &flags)?;
    let mend = "ip mptcp endpoint add 10.98.2.1 dev v2 subflow";
    assert!(endpoint.contains(mend), "{endpoint}");
    hosts.near.within(|| {
        run(mend);
        set("net/mptcp/enabled", "0");
    })?;
    let off = hosts.problem(3, &flags)?;
    assert!(off.contains("sysctl -w net.mptcp.enabled=1"), "{off}");
    hosts.near.within(|| set("net/mptcp/enabled", "1"))?;
    // Each side that sends by plait has to forward.
    hosts.far.within(|| set("net/ipv4/ip_forward", "0"))?;
    let closed = hosts.problem(3, &flags)?;
    assert!(closed.contains("the far side cannot: plait cannot send: net.ipv4.ip_forward is 0"));
    hosts.near.within(|| set("net/ipv4/ip_forward", "0"))?;
    let closed = hosts.problem(3, &[&PATHS[..], &["--workload", "upload:1MB"]].concat())?;
    assert!(closed.contains("plait cannot send: net.ipv4.ip_forward is 0"), "{closed}");
    Ok(())
}

/// Returns the command without any capability.
fn without_capabilities(command: &Command) -> Command {
    let mut bare = Command::new("setpriv");
    bare.args(["--bounding-set", "-all", "--inh-caps", "-all"]);
    bare.arg(command.get_program()).args(command.get_args());
    bare
}

/// A side that only receives needs no capability. A side that sends by plait says which one it needs.
fn unprivileged() -> Result<(), Failed> {
    let hosts = Hosts::build()?;
    let bare = |flags: &[&str]| -> Result<Output, Failed> {
        let mut command = without_capabilities(&hosts.command(flags));
        Ok(hosts.near.within(|| command.output())??)
    };
    let flags = |workload| [&PATHS[..], &["--workload", workload, "--runs", "1"]].concat();
    let far = hosts.serve()?;
    ended(0, bare(&flags("download:1MB"))?);
    let problem = problem(&ended(3, bare(&flags("upload:1MB"))?));
    assert!(problem.contains("CAP_NET_ADMIN"), "{problem}");
    drop(far);
    let _far = hosts.serve_by(without_capabilities(&Command::new(PLAIT)))?;
    let plain = ["--schedulers", "kernel:cubic"];
    let document = hosts.document(&[&flags("upload:1MB")[..], &plain].concat())?;
    assert!(rows(&document).iter().all(|row| row["counted"] == 1), "{document}");
    let problem = hosts.problem(3, &flags("download:1MB"))?;
    assert!(problem.contains("the far side cannot: "), "{problem}");
    assert!(problem.contains("CAP_NET_ADMIN"), "{problem}");
    Ok(())
}

fn limited() -> Result<(), Failed> {
    let (hosts, _far) = Hosts::ready()?;
    let answer = |line: &str| -> Result<String, Failed> {
        hosts.near.within(|| -> Result<String, Failed> {
            let mut stream = TcpStream::connect((FAR, 7789))?;
            stream.set_read_timeout(Some(Duration::from_secs(20)))?;
            stream.write_all(line.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        })?
    };
    let other = answer("{\"hello\":{\"version\":2,\"of_version_2\":true}}\n")?;
    assert!(other.contains("the near side speaks version 2, and this far side 1"), "{other}");
    for line in ["GET / HTTP/1.1\r\n\r\n", "{\"clock\":null}\n", "\n"] {
        let answer = answer(line)?;
        assert!(answer.contains("the first line must say hello"), "{line}: {answer}");
    }
    let first = hosts.start(&[&PATHS[..], &["--workload", "bulk:20s"]].concat())?;
    let devices = || hosts.far.within(|| said("ip -o link")).unwrap();
    until("a run of plait", || devices().contains("plait0"));
    let flags = [&PATHS[..], &["--workload", "download:1MB", "--runs", "1"]].concat();
    let busy = hosts.problem(4, &flags)?;
    assert!(busy.contains("the far side refuses: another race runs"), "{busy}");
    drop(first);
    until("the end of the first race", || !devices().contains("plait0"));
    // A failed check shows that the far side is free again, and a good one that it works.
    until("a free far side", || hosts.race(&flags).unwrap().status.code() == Some(0));
    Ok(())
}

fn interrupted() -> Result<(), Failed> {
    let (hosts, _far) = Hosts::ready()?;
    let mut command =
        hosts.command(&[&PATHS[..], &["--workload", "bulk:500ms", "--runs", "900"]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut near = hosts.near.within(|| command.spawn())?.map(Running)?;
    let (line, _progress) = first_line(near.stderr.take())?;
    assert!(line.contains("1/900 slot: goodput_mbps="), "{line}");
    run(&format!("kill -INT {}", near.id()));
    let mut text = String::new();
    near.stdout.take().unwrap().read_to_string(&mut text)?;
    assert_eq!(near.wait()?.code(), Some(130));
    let document: Value = serde_json::from_str(&text)?;
    assert_eq!(document["interrupted"], true);
    assert_eq!(rows(&document)[0]["counted"], 1, "{document}");
    assert!(rows(&document)[0]["failures"].is_null(), "{document}");
    Ok(())
}

/// The near side or the far side is killed in the middle of a run of plait at that side, and at the other one.
fn left(killed: &str) -> Result<(), Failed> {
    let hosts = Hosts::build()?;
    let states = || -> Result<[String; 2], Failed> {
        Ok([hosts.near.within(settled)?, hosts.far.within(settled)?])
    };
    let before = states()?;
    for (workload, sends) in [("bulk:30s", &hosts.far), ("upload:100GB", &hosts.near)] {
        let mut far = hosts.serve()?;
        let mut near = hosts.start(&[&PATHS[..], &["--workload", workload]].concat())?;
        let carried = hosts.carried()?;
        let has_device = || sends.within(|| said("ip -o link")).unwrap().contains("plait0");
        until("a run of plait", || has_device() && hosts.carried().unwrap() > carried + 3_000_000);
        let victim = if killed == "near" { &mut near } else { &mut far };
        victim.kill()?;
        victim.wait()?;
        if killed == "far" {
            // The near side notices it, and ends by itself.
            assert_eq!(near.wait()?.code(), Some(4));
        }
        hosts.near.within(|| await_state(&before[0]))?;
        hosts.far.within(|| await_state(&before[1]))?;
    }
    Ok(())
}
