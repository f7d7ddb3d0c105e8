//! A home or a phone with two emulated lines, a rented server, and an origin, each in a namespace. The commands of a
//! page run in them.

use crate::net::{run, until};
use crate::{PLAIT, Running};
use libtest_mimic::Failed;
use plait_base::{Rate, Span};
use plait_link::{LinkConfig, RateSource};
use plait_live::Namespace;
use plait_live::emulate::{Line, Network, Report, TimeZero};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The lines: rate down in Mbit/s, RTT in ms. Each has 2 Mbit/s up.
pub const LINES: [(u64, u64); 2] = [(20, 22), (10, 40)];

/// A program that runs until the test ends it, and the lines that it wrote.
pub struct Daemon {
    pub running: Running,
    log: Arc<Mutex<Vec<String>>>,
}

impl Daemon {
    /// Returns the line with all `words`, and waits for it.
    pub fn line(&self, words: &[&str]) -> String {
        let find = || {
            let log = self.log.lock().unwrap();
            log.iter().find(|line| words.iter().all(|word| line.contains(word))).cloned()
        };
        let begun = Instant::now();
        loop {
            if let Some(line) = find() {
                return line;
            }
            let log = self.log.lock().unwrap().join("\n");
            assert!(begun.elapsed() < Duration::from_secs(60), "no {words:?} in a minute:\n{log}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal, and waits until the program has ended.
    pub fn end(&mut self, signal: &str) -> Result<(), Failed> {
        run(&format!("kill -{signal} {}", self.running.id()));
        self.running.wait()?;
        Ok(())
    }
}

/// A directory that is removed with its value.
pub struct Directory(PathBuf);

impl Deref for Directory {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The namespaces of a deployment.
pub struct Site {
    /// The programs of the page that still run, with the host of each. They end first.
    pub daemons: Vec<(String, Daemon)>,
    services: Vec<Running>,
    pub network: Network,
    /// A host behind the lines, if they end at a router.
    pub host: Namespace,
    pub server: Namespace,
    pub origin: Namespace,
    /// Directory in which the commands run.
    pub dir: Directory,
}

fn link(mbit: u64, rtt_ms: u64) -> LinkConfig {
    let rate = Rate::from_bps(mbit * 1_000_000);
    let mut link = LinkConfig::new(RateSource::Fixed(rate), Span::from_millis(rtt_ms).over(2));
    link.queue = LinkConfig::default_queue(rate);
    link
}

/// Joins two namespaces by a veth device. Both ends get their addresses.
fn join(
    one: (&Namespace, &str, &[&str]),
    other: (&Namespace, &str, &[&str]),
) -> Result<(), Failed> {
    let peer = other.0.path();
    one.0.within(|| {
        run(&format!(
            "ip link add {} type veth peer name {} netns {}",
            one.1,
            other.1,
            peer.display()
        ));
    })?;
    for (space, device, addresses) in [one, other] {
        space.within(|| {
            // The namespaces of a `Network` have IPv4 only.
            let v6 = format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6");
            fs::write(v6, "0").unwrap();
            for address in addresses {
                let nodad = if address.contains(':') { "nodad" } else { "" };
                run(&format!("ip addr add {address} dev {device} {nodad}"));
            }
            run(&format!("ip link set {device} up"));
        })?;
    }
    Ok(())
}

impl Site {
    /// Builds the network. The lines have these names at the side of the home or of the phone. They lead to the
    /// internet, which has the server and the origin.
    pub fn build(name: &str, devices: [&str; 2]) -> Result<Site, Failed> {
        let lines = devices.iter().zip(LINES).map(|(device, (mbit, rtt))| Line {
            name: (*device).to_owned(),
            down: link(mbit, rtt),
            up: link(2, rtt),
            backup: false,
        });
        let network = Network::build(&lines.collect::<Vec<_>>(), 1, TimeZero::Start)?;
        let [host, server, origin] = [(); 3].map(|()| Namespace::create().unwrap());
        for space in [&network.client, &network.server] {
            space.within(|| {
                fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
                fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
            })?;
        }
        for space in [&host, &server, &origin] {
            space.within(|| {
                run("ip link set lo up");
                fs::write("/proc/sys/net/ipv6/conf/default/accept_dad", "0").unwrap();
            })?;
        }
        let internet = &network.server;
        join(
            (internet, "srv", &["203.0.113.1/24", "2001:db8:1::1/64"]),
            (&server, "eth0", &["203.0.113.10/24", "2001:db8:1::10/64"]),
        )?;
        join(
            (internet, "org", &["198.51.100.1/24", "2001:db8:2::1/64"]),
            (&origin, "eth0", &["198.51.100.80/24", "2001:db8:2::80/64"]),
        )?;
        join(
            (&network.client, "lan0", &["192.168.1.1/24", "fd00:1::1/64"]),
            (&host, "eth0", &["192.168.1.5/24", "fd00:1::5/64"]),
        )?;
        for (space, v4, v6) in [
            (&server, "203.0.113.1", "2001:db8:1::1"),
            (&origin, "198.51.100.1", "2001:db8:2::1"),
            (&host, "192.168.1.1", "fd00:1::1"),
        ] {
            space.within(|| {
                run(&format!("ip route add default via {v4}"));
                run(&format!("ip -6 route add default via {v6}"));
            })?;
        }
        // A server with global addresses of IPv6 forwards them, or `plait doctor` complains.
        server.within(|| fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1"))??;
        // The router of a home translates addresses by itself.
        network.client.within(|| {
            run("nft add table ip home");
            run("nft add chain ip home out { type nat hook postrouting priority srcnat ; }");
            run("nft add rule ip home out ip saddr 192.168.1.0/24 masquerade");
        })?;
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("deployed").join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("site"))?;
        fs::write(dir.join("hosts"), "127.0.0.1 localhost\n198.51.100.80 origin.example\n")?;
        let (daemons, services, dir) = (Vec::new(), Vec::new(), Directory(dir));
        Ok(Site { daemons, services, network, host, server, origin, dir })
    }

    /// Ends all programs and the emulation.
    pub fn stop(self) -> Result<Report, Failed> {
        let Site { daemons, services, network, .. } = self;
        drop((daemons, services));
        Ok(network.stop()?)
    }

    /// Returns the namespace that a page calls by this name.
    fn space(&self, name: &str) -> &Namespace {
        match name {
            "server" => &self.server,
            "router" | "client" => &self.network.client,
            "host" => &self.host,
            other => panic!("no namespace for `{other}#`"),
        }
    }

    fn shell(&self, script: &str) -> Command {
        let path = Path::new(PLAIT).parent().unwrap().display();
        let mut command = Command::new("bash");
        command
            .args(["-euo", "pipefail", "-c", script])
            .env("PATH", format!("{path}:{}", std::env::var("PATH").unwrap()))
            .current_dir(&*self.dir)
            .stdin(Stdio::null());
        command
    }

    /// Starts a program of plait and waits until it is ready.
    pub fn start(&mut self, name: &str, line: &str) -> Result<(), Failed> {
        // The names of the server's side are known only there.
        let mut command = match name {
            "server" => {
                let inner = self.shell(&format!("mount --bind hosts /etc/hosts; exec {line}"));
                let mut outer = Command::new("unshare");
                outer.arg("-m").arg(inner.get_program()).args(inner.get_args());
                outer.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
                outer.current_dir(&*self.dir);
                outer
            }
            _ => self.shell(&format!("exec {line}")),
        };
        let mut child = self.space(name).within(|| command.stderr(Stdio::piped()).spawn())??;
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let written = Arc::clone(&log);
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| written.lock().unwrap().push(line));
        });
        let daemon = Daemon { running: Running(child), log };
        daemon.line(&["listening on "]);
        self.daemons.push((name.to_owned(), daemon));
        Ok(())
    }

    /// Runs a command of a page.
    pub fn run(&mut self, name: &str, line: &str) -> Result<(), Failed> {
        if ["plait serve ", "plait proxy "].iter().any(|start| line.starts_with(start)) {
            return self.start(name, line);
        }
        let output = self.space(name).within(|| self.shell(line).output())??;
        let [said, problem] =
            [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
        assert!(output.status.success(), "{name}# {line}: {}\n{said}\n{problem}", output.status);
        Ok(())
    }

    /// Starts a web server with the files of the directory `site`.
    pub fn web(&mut self, name: &str, address: &str, port: u16) -> Result<(), Failed> {
        let line = format!("exec python3 -m http.server {port} --bind {address} --directory site");
        let space = if name == "origin" { &self.origin } else { self.space(name) };
        let mut command = self.shell(&line);
        let child =
            space.within(|| command.stdout(Stdio::null()).stderr(Stdio::null()).spawn())??;
        self.services.push(Running(child));
        let to = format!("{}:{port}", if address == "::" { "127.0.0.1" } else { address });
        let space = if name == "origin" { &self.origin } else { self.space(name) };
        until("a web server", || space.within(|| TcpStream::connect(&to).is_ok()).unwrap());
        Ok(())
    }

    /// Returns the running program of a host.
    pub fn daemon(&mut self, name: &str) -> &mut Daemon {
        let found = self.daemons.iter_mut().find(|(host, _)| host == name);
        &mut found.unwrap_or_else(|| panic!("no program on {name}")).1
    }
}

/// Returns the commands of a page with the host of each: lines `HOST# COMMAND` of its console blocks. A backslash
/// joins lines.
pub fn commands(page: &str) -> Vec<(String, String)> {
    let blocks = page.split("```console\n").skip(1).filter_map(|it| it.split("```").next());
    let lines: Vec<String> = blocks
        .flat_map(|it| it.replace("\\\n", " ").lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let split = |line: &String| {
        let (name, command) = line.split_once("# ").unwrap_or_else(|| panic!("no host: {line}"));
        (name.to_owned(), command.to_owned())
    };
    lines.iter().map(split).collect()
}

/// Returns the block of a page, without a language, that contains `word`.
pub fn file_with<'a>(page: &'a str, word: &str) -> &'a str {
    let blocks = page.split("```\n").filter(|it| it.contains(word) && !it.starts_with('\n'));
    blocks.last().unwrap_or_else(|| panic!("no file with {word}"))
}
