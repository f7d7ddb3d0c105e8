//! Captures of transfers between two stock kernels, made by tcpdump, with one planted cause each. `plait explain`
//! names the cause, from the capture of the server and from that of the client.

use crate::net::dump::{self, Dump};
use crate::net::kernel::{self, Service, Speaks};
use crate::net::{self, Bed, Case, Family, Line};
use libtest_mimic::Failed;
use plait_base::{Span, Time};
use plait_capture::{Cause, ConnectionReport, Place, Protocol};
use plait_live::emulate::Strip;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

pub fn cases() -> Vec<Case> {
    PLANTED
        .iter()
        .map(|planted| {
            let ignored = !dump::is_known();
            Case::test(planted.name, move || check(planted)).with_ignored_flag(ignored)
        })
        .collect()
}

/// A transfer with one cause.
struct Planted {
    name: &'static str,
    /// Changes the two lines.
    lines: fn(&mut [Line; 2]),
    /// Changes the kernels of client and server.
    kernels: fn(&Bed),
    megabytes: usize,
    /// Bytes that the server's program writes at once, and the pause after them in milliseconds.
    writes: Option<(usize, u64)>,
    /// The cause, and the number of its path.
    cause: Option<(Cause, Option<usize>)>,
}

const CLEAN: Planted = Planted {
    name: "clean",
    lines: |_| {},
    kernels: |_| {},
    megabytes: 8,
    writes: None,
    cause: None,
};

const PLANTED: &[Planted] = &[
    CLEAN,
    Planted {
        name: "lossy_path",
        lines: |lines| lines[0].loss = 4,
        cause: Some((Cause::Loss, Some(0))),
        ..CLEAN
    },
    Planted {
        name: "small_receive_buffer",
        kernels: |bed| {
            let small = || net::set("net/ipv4/tcp_rmem", "4096 24576 24576");
            bed.client.within(small).unwrap();
        },
        megabytes: 3,
        cause: Some((Cause::ReceiveWindow, None)),
        ..CLEAN
    },
    Planted {
        name: "small_send_buffer",
        kernels: |bed| {
            let small = || net::set("net/ipv4/tcp_wmem", "4096 16384 40000");
            bed.server.within(small).unwrap();
        },
        megabytes: 3,
        cause: Some((Cause::SendBuffer, None)),
        ..CLEAN
    },
    Planted {
        name: "idle_program",
        writes: Some((4_000_000, 2_000)),
        cause: Some((Cause::ApplicationIdle, None)),
        ..CLEAN
    },
    Planted {
        name: "messages",
        writes: Some((100_000, 150)),
        megabytes: 3,
        cause: Some((Cause::ApplicationIdle, None)),
        ..CLEAN
    },
    Planted {
        name: "silent_path",
        lines: |lines| {
            lines[0].outage = Some((Time::ZERO + Span::from_millis(1_500), Span::from_secs(3)));
        },
        megabytes: 14,
        cause: Some((Cause::PathSilent, Some(0))),
        ..CLEAN
    },
    Planted {
        name: "join_without_options",
        lines: |lines| lines[1].strip = Strip::SynAck,
        megabytes: 4,
        cause: Some((Cause::JoinRefused, Some(1))),
        ..CLEAN
    },
    Planted {
        name: "limit_of_subflows",
        kernels: |bed| bed.server.within(|| net::run("ip mptcp limits set subflow 0")).unwrap(),
        megabytes: 2,
        cause: Some((Cause::JoinRefused, Some(1))),
        ..CLEAN
    },
    Planted {
        name: "late_endpoint",
        kernels: |bed| {
            bed.client.within(|| net::run("ip mptcp endpoint delete id 2")).unwrap();
            let client = bed.client.try_clone().unwrap();
            thread::spawn(move || {
                // The transfer begins within half a second.
                thread::sleep(Duration::from_millis(2_000));
                let add = || net::run("ip mptcp endpoint add 10.98.2.1 dev c1 subflow id 2");
                client.within(add).unwrap();
            });
        },
        cause: Some((Cause::JoinLate, Some(1))),
        ..CLEAN
    },
    Planted {
        name: "no_options_after_the_syn",
        lines: |lines| lines[0].strip = Strip::AfterSyn,
        megabytes: 2,
        cause: Some((Cause::OptionsRemoved, None)),
        ..CLEAN
    },
    Planted {
        name: "no_options_at_all",
        lines: |lines| lines[0].strip = Strip::SynAck,
        megabytes: 4,
        cause: Some((Cause::OptionsRemoved, None)),
        ..CLEAN
    },
];

/// Sends `len` bytes to the first client, `each` at once, with a pause between them.
fn serve_with_pauses(
    bed: &Bed,
    to: SocketAddr,
    len: usize,
    each: usize,
    pause: Duration,
) -> Result<thread::JoinHandle<()>, Failed> {
    let listener = bed.server.within(|| kernel::socket(to.ip(), Speaks::Mptcp))??;
    listener.set_reuse_address(true)?;
    listener.bind(&to.into())?;
    listener.listen(1)?;
    Ok(thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut byte = [0];
        while stream.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {}
        for (at, piece) in kernel::pattern(len).chunks(each).enumerate() {
            thread::sleep(if at == 0 { Duration::ZERO } else { pause });
            stream.write_all(piece).unwrap();
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        while stream.read(&mut byte).unwrap_or(0) > 0 {}
    }))
}

/// Explains a transfer. Its losses are random: with 4 %, one transfer of ten has another first cause. So if the
/// first transfer is explained wrongly, at least three of four others must be explained correctly.
fn check(planted: &'static Planted) -> Result<(), Failed> {
    let Err(why) = explain(planted) else { return Ok(()) };
    println!("{}: another cause, so four further transfers decide", planted.name);
    let right = (0..4).filter(|_| explain(planted).is_ok()).count();
    if right >= 3 { Ok(()) } else { Err(why) }
}

fn explain(planted: &Planted) -> Result<(), Failed> {
    let mut lines = [Line::new(20, 20, 100_000), Line::new(10, 60, 150_000)];
    (planted.lines)(&mut lines);
    let bed = Bed::build(Family::V4, &lines)?;
    bed.own_service()?;
    (planted.kernels)(&bed);
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = |host: &str| dir.join(format!("{}-{host}.pcap", planted.name));
    let dumps =
        [Dump::start(&bed.server, &file("server"))?, Dump::start(&bed.client, &file("client"))?];
    let to = SocketAddr::new(Family::V4.service(), 80);
    let len = planted.megabytes * 1_000_000;
    if let Some((each, pause_ms)) = planted.writes {
        let served = serve_with_pauses(&bed, to, len, each, Duration::from_millis(pause_ms))?;
        bed.client.within(|| kernel::get(to, Speaks::Mptcp, len))??;
        served.join().unwrap();
    } else {
        let served = Service::start(&bed.server, to, Speaks::Mptcp, 1)?;
        bed.client.within(|| kernel::get(to, Speaks::Mptcp, len))??;
        served.join();
    }
    for (dump, place) in dumps.into_iter().zip([Place::Sender, Place::Receiver]) {
        let explanation = dump::explain(&dump.end()?)?;
        println!("{}, {place:?}: {}", planted.name, explanation.sentence);
        let connection = &explanation.connections[0];
        let said = format!("{place:?}: {:#?}", connection.lost_time);
        verify(planted, connection, place, len as u64).map_err(|why| format!("{why}\n{said}"))?;
    }
    bed.emulator.stop()?;
    Ok(())
}

/// Compares the explanation with the planted cause.
fn verify(
    planted: &Planted,
    connection: &ConnectionReport,
    place: Place,
    len: u64,
) -> Result<(), String> {
    let wrong = |what: String| Err(what);
    if (connection.data.bytes, connection.sender) != (len, "server") {
        return wrong(format!("{} bytes from the {}", connection.data.bytes, connection.sender));
    }
    let falls_back = matches!(planted.cause, Some((Cause::OptionsRemoved, _)));
    let protocol = if falls_back { Protocol::Fallback } else { Protocol::Mptcp };
    if (connection.protocol, connection.paths[0].place) != (protocol, place) {
        return wrong(format!(
            "{:?}, captured at {:?}",
            connection.protocol, connection.paths[0].place
        ));
    }
    let path_of =
        |name: Option<&String>| connection.paths.iter().position(|path| Some(&path.name) == name);
    let main = connection.lost_time.first();
    let found = main.map(|main| (main.cause, path_of(main.path.as_ref())));
    match planted.cause {
        Some(expected) if found != Some(expected) => wrong(format!("{found:?}, not {expected:?}")),
        Some(_) => Ok(()),
        // A clean transfer has no cause except slow start.
        None => {
            let faults =
                [Cause::PathSilent, Cause::JoinRefused, Cause::OptionsRemoved, Cause::JoinLate];
            match connection.lost_time.iter().find(|it| faults.contains(&it.cause)) {
                Some(fault) => wrong(format!("{:?} in a clean transfer", fault.cause)),
                None => rates(connection),
            }
        }
    }
}

/// The rates of both links, 20 and 10 Mbit/s, are found to a tenth. A segment of 1500 bytes has at least 1400
/// bytes of payload.
fn rates(connection: &ConnectionReport) -> Result<(), String> {
    for (path, mbit) in connection.paths.iter().zip([20.0, 10.0]) {
        let found = path.link_mbps.unwrap_or(0.0);
        if !(0.86..1.05).contains(&(found / mbit)) {
            return Err(format!("{}: {found} Mbit/s of {mbit}", path.name));
        }
    }
    Ok(())
}
