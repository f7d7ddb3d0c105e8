//! Runs a planted transfer between two stock kernels, and captures it at both.

use super::net::dump::Dump;
use super::net::kernel::persist;
use super::net::{self, Bed, Family};
use super::planted::{Join, Kind, Planted};
use plait_base::Span;
use plait_live::Namespace;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for the peer.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Time between the set-up and the first SYN.
const SETTLING: Duration = Duration::from_millis(400);
/// Bytes that a slow reader takes at once.
const SIP: usize = 16_384;
/// Drops the SYNs of the second path at the server.
const BLOCK: [&str; 3] = [
    "nft add table inet planted",
    "nft add chain inet planted in { type filter hook input priority 0 ; }",
    "nft add rule inet planted in ip saddr 10.98.2.1 tcp flags & (syn|ack) == syn drop",
];

/// Records a transfer in two files, of the server and of the client. Returns the greatest lateness of the emulator.
pub fn record(planted: &Planted, files: [&Path; 2]) -> io::Result<Span> {
    let bed = Bed::build(Family::V4, &planted.lines)?;
    bed.own_service()?;
    let address = SocketAddr::new(Family::V4.service(), 80);
    prepare(planted, &bed)?;
    let listener = bed.server.within(|| listen(planted, address))??;
    let dumps = [Dump::start(&bed.server, files[0])?, Dump::start(&bed.client, files[1])?];
    thread::sleep(SETTLING);
    thread::scope(|scope| {
        let serving = scope.spawn(|| serve(planted, &listener));
        scope.spawn(|| change(planted, &bed));
        bed.client.within(|| fetch(planted, address))??;
        serving.join().map_err(|_| io::Error::other("the server panicked"))?
    })?;
    for dump in dumps {
        dump.end()?;
    }
    Ok(bed.emulator.stop()?.lateness.worst())
}

/// Changes the kernels before the transfer.
fn prepare(planted: &Planted, bed: &Bed) -> io::Result<()> {
    if !planted.sack {
        bed.server.within(|| net::set("net/ipv4/tcp_sack", "0"))?;
    }
    match planted.join {
        Join::AtOnce => Ok(()),
        Join::NoLimit => within(&bed.server, "ip mptcp limits set subflow 0"),
        Join::Blocked(_) => BLOCK.iter().try_for_each(|line| within(&bed.server, line)),
        Join::Late(_) => within(&bed.client, "ip mptcp endpoint delete id 2"),
    }
}

/// Changes the kernels during the transfer.
fn change(planted: &Planted, bed: &Bed) -> io::Result<()> {
    let wait = |span: Span| thread::sleep(Duration::from_nanos(span.as_nanos()));
    match planted.join {
        Join::Blocked(Some(span)) => {
            wait(span);
            within(&bed.server, "nft delete table inet planted")
        }
        Join::Late(span) => {
            wait(span);
            within(&bed.client, "ip mptcp endpoint add 10.98.2.1 dev c1 subflow id 2")
        }
        _ => Ok(()),
    }
}

fn within(space: &Namespace, line: &str) -> io::Result<()> {
    space.within(|| net::run(line))
}

fn socket(planted: &Planted, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
    socket.set_tcp_congestion(planted.cc.as_bytes())?;
    let set = socket.tcp_congestion()?;
    assert!(set.starts_with(planted.cc.as_bytes()), "the kernel took {set:?}");
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    Ok(socket)
}

fn listen(planted: &Planted, at: SocketAddr) -> io::Result<Socket> {
    let plain = planted.kind == Kind::PlainServer;
    let listener = socket(planted, if plain { Protocol::TCP } else { Protocol::MPTCP })?;
    listener.set_reuse_address(true)?;
    listener.bind(&at.into())?;
    listener.listen(1)?;
    Ok(listener)
}

/// Sends all parts to the first client.
fn serve(planted: &Planted, listener: &Socket) -> io::Result<()> {
    let (mut stream, _) = persist(|| listener.accept())?;
    if let Some(bytes) = planted.sndbuf {
        stream.set_send_buffer_size(bytes as usize)?;
    }
    stream.read_exact(&mut [0; 1])?;
    let part = vec![7; planted.part as usize];
    for number in 0..planted.parts {
        if number > 0 {
            thread::sleep(Duration::from_nanos(planted.pause.as_nanos()));
        }
        stream.write_all(&part)?;
    }
    stream.shutdown(Shutdown::Write)?;
    // The client closes last, so that the kernel does not reset unread data.
    while persist(|| stream.read(&mut [0; 64]))? > 0 {}
    Ok(())
}

/// Downloads everything.
fn fetch(planted: &Planted, from: SocketAddr) -> io::Result<()> {
    let mut stream = socket(planted, Protocol::MPTCP)?;
    if let Some(bytes) = planted.rcvbuf {
        stream.set_recv_buffer_size(bytes as usize)?;
    }
    stream.connect_timeout(&SockAddr::from(from), TIMEOUT)?;
    stream.write_all(&[1])?;
    let began = Instant::now();
    let mut buffer = vec![0; if planted.reader.is_some() { SIP } else { 1 << 18 }];
    let (mut read, total) = (0_u64, planted.part * planted.parts);
    while read < total {
        let count = persist(|| stream.read(&mut buffer))? as u64;
        if count == 0 {
            return Err(io::Error::other(format!("the stream ended after {read} of {total}")));
        }
        read += count;
        if let Some(rate) = planted.reader {
            let due = Duration::from_secs_f64(read as f64 / rate);
            thread::sleep(due.saturating_sub(began.elapsed()));
        }
    }
    Ok(())
}
