//! The log of a server whose stderr is a full pipe, beyond the limit of queued lines.

use crate::net::{self, Bed, Family, Line};
use crate::{at_once, metrics, serve, value};
use libtest_mimic::Failed;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Connections of the test: each has two lines, of some 240 bytes together.
const CLIENTS: usize = 24_000;
/// Clients at a time.
const AT_A_TIME: usize = 4;
/// Largest number of queued bytes of lines.
const MAX_WAITING_BYTES: usize = 4 << 20;

/// Lines beyond 4 MiB are dropped and counted exactly, and the server continues. It logs again when stderr is
/// read again.
pub(super) fn dropped() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(100, 1, 400_000)])?;
    let to = at_once(&bed.server)?;
    let listen = SocketAddr::new(bed.family.service(), 80);
    let at = SocketAddr::from(([127, 0, 0, 1], 9100));
    let mut server = bed.server.within(|| serve(listen, to, &["--metrics", "127.0.0.1:9100"]))?;
    bed.server.within(|| net::set("net/ipv4/ip_local_port_range", "1024 65535"))?;
    // Clients run on the server's host: the emulator is not needed, and would be slower.
    let client = || -> io::Result<()> {
        let mut stream = TcpStream::connect(listen)?;
        stream.write_all(b"last 10\n")?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        if bytes.len() == 10 { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    };
    let some = || bed.server.within(|| (0..CLIENTS / AT_A_TIME).try_for_each(|_| client()));
    thread::scope(|scope| {
        let all: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(some)).collect();
        all.into_iter().try_for_each(|it| it.join().unwrap()?)
    })?;
    let ended = || {
        let metrics = metrics(&bed.server, at);
        let relayed = |multipath| value(&metrics, &format!("plait_connections{{{multipath}}}"));
        relayed("multipath=\"false\"") + relayed("multipath=\"true\"") == 0
    };
    net::until("the end of connections", ended);
    // From here on stderr is read.
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let (said, says) = mpsc::channel();
    let reader = thread::spawn(move || lines.try_for_each(|line| said.send(line.unwrap()).ok()));
    let (mut logged, mut dropped, mut bytes) = (0, 0, 0);
    while dropped == 0 {
        let line = says.recv_timeout(Duration::from_secs(20))?;
        bytes += line.len() + 1;
        match line.strip_prefix("event=lines-dropped count=") {
            Some(count) => dropped = count.parse()?,
            None => {
                let known = ["event=accepted ", "event=ended "];
                assert!(known.iter().any(|it| line.starts_with(it)), "{line}");
                logged += 1;
            }
        }
    }
    eprintln!("{logged} lines of {bytes} bytes were written, {dropped} were dropped");
    assert_eq!(logged + dropped, 2 * CLIENTS);
    // Lines in the pipe, and lines already taken for it, are added.
    assert!((MAX_WAITING_BYTES..MAX_WAITING_BYTES + (1 << 20)).contains(&bytes), "{bytes}");
    bed.server.within(client)??;
    for event in ["event=accepted ", "event=ended "] {
        let line = says.recv_timeout(Duration::from_secs(20))?;
        assert!(line.starts_with(event), "{line}");
    }
    net::run(&format!("kill -TERM {}", server.id()));
    assert_eq!(server.wait()?.code(), Some(0));
    reader.join().unwrap();
    assert!(!says.iter().any(|line| line.contains("lines-dropped")));
    Ok(())
}
