//! Imports of what iperf3, ping and ss really write, on the loopback device. A program that is not installed is
//! skipped, and the test says so.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use plait_lab::links::Link;
use plait_measure::import::{Direction, Input, join, read};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Returns the output of a program; `None` if it is not installed.
fn output(program: &str, arguments: &str) -> Option<String> {
    match Command::new(program).args(arguments.split(' ')).env("LC_ALL", "C").output() {
        Ok(output) => Some(String::from_utf8(output.stdout).unwrap()),
        Err(_) => {
            println!("skipped: {program} is not installed");
            None
        }
    }
}

fn link(text: &str) -> Link {
    let input = Input { file: "sample", text, changed_s: 0, direction: Direction::Down };
    join("loopback", &[read(&input).unwrap_or_else(|error| panic!("{error}\n{text}"))]).link
}

/// Returns the number of a value without its unit.
fn number(link: &Link, key: &str) -> f64 {
    let text = link.value(key).unwrap().value.clone().unwrap();
    text.trim_end_matches(char::is_alphabetic).parse().unwrap()
}

#[test]
fn the_output_of_ping_is_read() {
    let Some(text) = output("ping", "-c 5 -i 0.2 127.0.0.1") else { return };
    let (_, summary) =
        text.split_once("rtt min/avg/max/mdev = ").unwrap_or_else(|| panic!("{text}"));
    let least: f64 = summary.split('/').next().unwrap().parse().unwrap();
    let link = link(&text);
    assert!((number(&link, "rtt") - least).abs() < 0.0015, "{text}");
    assert!(link.value("rate_down").unwrap().is_unknown());
}

#[test]
fn the_output_of_iperf3_is_read() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new("iperf3");
    let server = server.args(["-s", "-1", "-p", &port.to_string()]).stdout(Stdio::null()).spawn();
    let Ok(mut server) = server else {
        println!("skipped: iperf3 is not installed");
        return;
    };
    let test = |_| {
        std::thread::sleep(Duration::from_millis(100));
        let text = output("iperf3", &format!("-c 127.0.0.1 -p {port} -R -t 4 -b 50M -J")).unwrap();
        Some(text).filter(|text| !text.contains("\"error\""))
    };
    let text = (0..50).find_map(test).unwrap();
    server.wait().unwrap();
    let test: Value = serde_json::from_str(&text).unwrap();
    let payload = test["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6;
    let size = test["start"]["tcp_mss_default"].as_f64().unwrap();
    let link = link(&text);
    let rate = number(&link, "rate_down");
    let expected = payload * (size + 52.0) / size;
    assert!((rate / expected - 1.0).abs() < 0.03, "{rate} {expected}");
    assert!(link.value("rate_up").unwrap().is_unknown());
    assert_eq!(link.value("rate_down").unwrap().date.len(), 10);
}

#[test]
fn the_output_of_ss_is_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(&[7; 200_000]).unwrap();
    server.read_exact(&mut [0; 200_000]).unwrap();
    let Some(text) = output("ss", &format!("-tin dport = :{port}")) else { return };
    let (_, rest) = text.split_once("minrtt:").unwrap_or_else(|| panic!("{text}"));
    let least: f64 = rest.split_whitespace().next().unwrap().parse().unwrap();
    let link = link(&text);
    if least > 0.0 {
        assert!((number(&link, "rtt") - least).abs() < 0.0015, "{text}");
    }
    assert!(link.value("rate_up").unwrap().is_unknown());
}
