//! `plait shell`: its links carry the kernel's Multipath TCP, and it leaves nothing behind however it ends.
#![allow(unreachable_pub)]

use crate::net;
use crate::net::kernel::{self, Service, Speaks};
use crate::{PLAIT, Running, await_state, ended, file, first_line, problem, settled};
use libtest_mimic::{Failed, Trial};
use plait_live::Namespace;
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Address of the server in every shell.
const SERVER: ([u8; 4], u16) = ([10, 99, 0, 1], 80);

/// Guides with commands that need root.
const GUIDES: [(&str, &str); 3] = [
    ("emulate", include_str!("../../../../docs/guides/emulate.md")),
    ("measure", include_str!("../../../../docs/guides/measure.md")),
    ("race", include_str!("../../../../docs/guides/race.md")),
];

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("a_shell_has_links_for_multipath_tcp", carried),
        Trial::test("a_link_of_a_shell_can_be_down_and_short", impaired),
        Trial::test("a_server_of_a_shell_is_awaited", awaited),
        Trial::test("a_shell_ends_as_its_command", codes),
    ];
    for (name, page) in GUIDES {
        trials.push(Trial::test(format!("the_guide_runs/{name}"), move || guide(page)));
    }
    for signal in ["TERM", "INT", "KILL"] {
        let name = format!("nothing_is_left_behind_by_a_shell_that_ends_by/{signal}");
        trials.push(Trial::test(name, move || undone(signal)));
    }
    for signal in ["TERM", "INT", "HUP"] {
        let name = format!("a_command_that_ignores_signals_is_ended_with_its_shell/{signal}");
        trials.push(Trial::test(name, move || stubborn(signal)));
    }
    trials.push(Trial::test("a_command_of_a_shell_can_handle_a_signal", handled));
    trials
}

/// A running shell, whose command waits for its input to end.
struct Shell {
    running: Running,
    client: Namespace,
    server: Namespace,
    /// A process in the client's namespace.
    inside: u32,
}

impl Shell {
    /// Starts a shell. Its command runs `first`, reports where it is, waits, and then exits with code 7.
    fn start(flags: &[&str], first: &str) -> Result<Shell, Failed> {
        let script = format!("{first}\necho $$ $PLAIT_SERVER_NETNS; read -r line; exit 7");
        // A program that was started in the background ignores INT, and so do the programs that it starts.
        let mut running = Command::new("env")
            .args(["--default-signal=INT,QUIT", PLAIT, "shell"])
            .args(flags)
            .args(["--", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map(Running)?;
        let (line, _) = first_line(running.stdout.take())?;
        let (inside, server) = line.trim().split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
        let client = Namespace::open(Path::new(&format!("/proc/{inside}/ns/net")))?;
        let server = Namespace::open(Path::new(server))?;
        Ok(Shell { running, client, server, inside: inside.parse()? })
    }

    /// Ends the input of the command, and returns the exit code of the shell.
    fn end(mut self) -> Result<Option<i32>, Failed> {
        drop(self.running.stdin.take());
        Ok(self.running.wait()?.code())
    }
}

/// Runs `test` while a shell with these paths runs. Returns the report of the shell.
fn reported(
    name: &str,
    paths: &[&str],
    test: impl FnOnce(&Shell) -> Result<(), Failed>,
) -> Result<Value, Failed> {
    let file = file(name);
    let flags = ["--report", &file.display().to_string()];
    let shell = Shell::start(&[paths, &flags].concat(), ":")?;
    test(&shell)?;
    assert_eq!(shell.end()?, Some(7));
    Ok(serde_json::from_slice(&fs::read(file)?)?)
}

/// Returns a number of a path of a report.
fn number(report: &Value, path: usize, way: &str, name: &str) -> u64 {
    report["paths"][path][way][name].as_u64().unwrap_or_else(|| panic!("{report}"))
}

/// A kernel downloads a megabyte over both links, which takes at least as long as both together need.
fn carried() -> Result<(), Failed> {
    const BYTES: usize = 1_000_000;
    let paths = ["--path", "wifi:rate=16mbit,rtt=20ms", "--path", "lte:rate=8mbit,rtt=40ms"];
    let report = reported("shell-carried.json", &paths, |shell| {
        let service = Service::start(&shell.server, SocketAddr::from(SERVER), Speaks::Mptcp, 1)?;
        let begun = Instant::now();
        let get = || kernel::get(service.address, Speaks::Over(2), BYTES);
        let bytes = shell.client.within(get)??;
        let took = begun.elapsed().as_secs_f64();
        assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(BYTES)));
        // At 24 Mbit/s, without headers.
        assert!(took > BYTES as f64 * 8.0 / 24e6, "{took}");
        service.join();
        Ok(())
    })?;
    assert_eq!(report["schema"], "plait.shell/1");
    assert_eq!(report["exit_code"], 7);
    let down = [0, 1].map(|path| number(&report, path, "down", "delivered_bytes"));
    assert!(down[0] + down[1] > BYTES as u64, "{down:?}");
    assert!(down.iter().all(|bytes| *bytes > 20_000), "{down:?}");
    assert_eq!(report["paths"][1]["client"], "10.98.2.1");
    let late = &report["lateness"];
    let late = ["median_us", "p99_us", "worst_us"].map(|name| late[name].as_u64().unwrap());
    assert!(late[0] <= late[1] && late[1] <= late[2] && late[2] > 0, "{late:?}");
    assert!(report["lateness"]["packets"].as_u64().unwrap() > 700, "{report}");
    Ok(())
}

/// A link that is down from the start carries nothing. One with a short MTU drops long packets.
fn impaired() -> Result<(), Failed> {
    let paths = [
        "--path",
        "wifi:rate=20mbit,rtt=20ms,mtu=1000",
        "--path",
        "lte:rate=20mbit,rtt=20ms,down=0s..",
    ];
    let report = reported("shell-impaired.json", &paths, |shell| {
        shell.client.within(|| {
            let socket = std::net::UdpSocket::bind("10.98.1.1:0")?;
            socket.send_to(&[0; 1_200], "10.98.1.2:9")?;
            socket.send_to(&[0; 600], "10.98.1.2:9")?;
            let socket = std::net::UdpSocket::bind("10.98.2.1:0")?;
            socket.send_to(&[0; 600], "10.98.2.2:9")
        })??;
        let received = || shell.client.within(|| net::device_bytes("wifi").received).unwrap();
        // The answer to the packet that was delivered, because its port is closed. It quotes at most 548 bytes.
        net::until("a packet", || received() > 500);
        Ok(())
    })?;
    assert_eq!(number(&report, 0, "up", "dropped_mtu"), 1);
    assert!(number(&report, 0, "up", "delivered_bytes") >= 628, "{report}");
    assert_eq!(number(&report, 1, "up", "delivered_packets"), 0);
    assert!(number(&report, 1, "up", "dropped_outage") >= 1, "{report}");
    Ok(())
}

/// A server that opens its socket late is ready when the command starts. One that fails ends the shell.
fn awaited() -> Result<(), Failed> {
    let page = file("shell-page");
    fs::write(&page, "a page\n")?;
    let directory = page.parent().unwrap().display();
    let server = format!("sleep 0.3; exec python3 -m http.server 80 --directory {directory}");
    let fetch = "import os, sys, urllib.request as it\n\
                 server = os.environ['PLAIT_SERVER']\n\
                 print(it.urlopen('http://%s/shell-page' % server).read().decode(), end='')";
    let shell = |server: &str, command: &[&str]| {
        let flags = ["shell", "--path", "wifi:rate=20mbit,rtt=20ms", "--server", server, "--"];
        Command::new(PLAIT).args(flags).args(command).output()
    };
    let output = ended(0, shell(&server, &["python3", "-c", fetch])?);
    let messages = problem(&output);
    assert_eq!(output.stdout, b"a page\n", "{messages}");
    assert!(messages.contains("wifi  down") && messages.contains("emulator: "), "{messages}");
    let problem = problem(&ended(4, shell("exit 9", &["true"])?));
    assert!(problem.contains("--server: `exit 9`: it ended before it was ready"), "{problem}");
    Ok(())
}

fn codes() -> Result<(), Failed> {
    for (command, code) in
        [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("kill -9 $$", 137)]
    {
        let output = Command::new(PLAIT)
            .args(["shell", "-q", "--path", "wifi:rate=20mbit,rtt=20ms", "--", "sh", "-c", command])
            .output()?;
        assert_eq!(output.status.code(), Some(code), "{command}: {output:?}");
        assert!(output.stderr.is_empty() && output.stdout.is_empty(), "{command}: {output:?}");
    }
    let missing = ["shell", "--path", "wifi:rate=1mbit,rtt=9ms", "--", "/no/such/program"];
    let problem = problem(&ended(2, Command::new(PLAIT).args(missing).output()?));
    assert!(problem.contains("COMMAND: `/no/such/program`"), "{problem}");
    Ok(())
}

/// The shell ends while programs run on both sides, one of which has left its session and ignores TERM.
fn undone(signal: &str) -> Result<(), Failed> {
    let before = settled();
    let daemon =
        "setsid sh -c 'trap \"\" TERM; while :; do sleep 0.2; done' >/dev/null 2>&1 </dev/null &";
    let server = "exec python3 -m http.server 80";
    let mut shell =
        Shell::start(&["--path", "wifi:rate=16mbit,rtt=20ms", "--server", server], daemon)?;
    let spaces = [&shell.client, &shell.server].map(|space| inode(&space.path()));
    assert_eq!(inode(Path::new(&format!("/proc/{}/ns/net", shell.inside))), spaces[0]);
    let inside = || processes().iter().filter(|space| spaces.contains(space)).count();
    net::until("programs on both sides", || {
        let all = processes();
        spaces.iter().all(|space| all.contains(space)) && inside() >= 3
    });
    // The end of its input would end the command, too.
    let _input = shell.running.stdin.take();
    net::run(&format!("kill -{signal} {}", shell.running.id()));
    let status = shell.running.wait()?;
    match signal {
        "KILL" => assert_eq!(status.code(), None),
        "TERM" => assert_eq!(status.code(), Some(143)),
        _ => assert_eq!(status.code(), Some(130)),
    }
    net::until("the end of all programs", || inside() == 0);
    await_state(&before);
    Ok(())
}

/// The command ignores all signals that can be ignored, as an interactive shell does.
fn stubborn(signal: &str) -> Result<(), Failed> {
    let before = settled();
    let mut shell = Shell::start(&["--path", "wifi:rate=16mbit,rtt=20ms"], "trap '' TERM INT HUP")?;
    let _input = shell.running.stdin.take();
    net::run(&format!("kill -{signal} {}", shell.running.id()));
    assert_eq!(shell.running.wait()?.code(), Some(137));
    await_state(&before);
    Ok(())
}

/// The command handles the signal: it writes its result and ends with a code of its own.
fn handled() -> Result<(), Failed> {
    let result = file("shell-handled.txt");
    let before = settled();
    let first = format!("trap 'sleep 0.2; echo done >{}; exit 9' INT", result.display());
    let mut shell = Shell::start(&["--path", "wifi:rate=16mbit,rtt=20ms"], &first)?;
    let _input = shell.running.stdin.take();
    net::run(&format!("kill -INT {}", shell.running.id()));
    assert_eq!(shell.running.wait()?.code(), Some(9));
    assert_eq!(fs::read_to_string(result)?, "done\n");
    await_state(&before);
    Ok(())
}

/// Returns what identifies the namespace of a file.
fn inode(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).unwrap().ino()
}

/// Returns the network namespace of each process.
fn processes() -> Vec<u64> {
    use std::os::unix::fs::MetadataExt;
    let all = fs::read_dir("/proc").unwrap().flatten();
    let space = |it: fs::DirEntry| Some(fs::metadata(it.path().join("ns/net")).ok()?.ino());
    all.filter_map(space).collect()
}

/// The commands of the guide that need root.
fn guide(page: &str) -> Result<(), Failed> {
    let blocks = page.split("```console\n").skip(1).filter_map(|it| it.split("```").next());
    let mut ran = 0;
    for block in blocks {
        let path = Path::new(PLAIT).parent().unwrap().display().to_string();
        let path = format!("{path}:{}", std::env::var("PATH").unwrap());
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", block])
            .env("PATH", path)
            .current_dir(file("guide").parent().unwrap())
            .output()?;
        let problem = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{block}\n{}\n{problem}", output.status);
        ran += 1;
    }
    assert!(ran > 0);
    Ok(())
}
