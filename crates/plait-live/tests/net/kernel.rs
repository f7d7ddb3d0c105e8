//! Programs that use TCP or Multipath TCP sockets of the kernel.

use super::{Counters, until};
use plait_live::Namespace;
use sha2::{Digest, Sha256};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longest wait for a peer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The protocol of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speaks {
    Tcp,
    Mptcp,
    /// Multipath TCP. The transfer begins when this many subflows exist. The kernel joins from a work queue,
    /// which on a busy machine may run only after the transfer.
    Over(u64),
}

/// Returns a socket with the congestion controller that the tests expect. The default of the namespace may
/// be another one, and setting its sysctl may have no effect.
pub fn socket(to: IpAddr, speaks: Speaks) -> io::Result<Socket> {
    let protocol = if speaks == Speaks::Tcp { Protocol::TCP } else { Protocol::MPTCP };
    let domain = if to.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::STREAM, Some(protocol))?;
    socket.set_tcp_congestion(b"cubic")?;
    let set = socket.tcp_congestion()?;
    assert!(set.starts_with(b"cubic"), "the kernel took {set:?}");
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Repeats `wait` if it was interrupted. A socket with a timeout returns EINTR if the program was stopped
/// meanwhile.
pub fn persist<T>(mut wait: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match wait() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// Returns test data in which every part is different.
pub fn pattern(len: usize) -> Vec<u8> {
    let words = (0..len.div_ceil(8) as u64).map(|n| (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut bytes: Vec<u8> = words.flat_map(u64::to_be_bytes).collect();
    bytes.truncate(len);
    bytes
}

/// Returns the SHA-256 of `bytes` in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A service on a separate thread. For each connection it reads a line `get N` or `put N`, and sends or
/// reads N bytes. It answers a `put` with the hash.
pub struct Service {
    pub address: SocketAddr,
    thread: JoinHandle<()>,
}

impl Service {
    /// Serves `connections` connections in the namespace.
    pub fn start(
        space: &Namespace,
        address: SocketAddr,
        speaks: Speaks,
        connections: usize,
    ) -> io::Result<Service> {
        let listener = space.within(|| -> io::Result<Socket> {
            let listener = socket(address.ip(), speaks)?;
            listener.set_reuse_address(true)?;
            listener.bind(&address.into())?;
            listener.listen(64)?;
            Ok(listener)
        })??;
        let address = listener.local_addr()?.as_socket().unwrap();
        let thread = thread::spawn(move || {
            // Generating the data takes time that would distort measurements, so the last data is reused.
            let mut ready = Vec::new();
            for _ in 0..connections {
                let Ok((stream, _)) = persist(|| listener.accept()) else { return };
                if let Err(error) = answer(stream, &mut ready) {
                    eprintln!("the service: {error}");
                }
            }
        });
        Ok(Service { address, thread })
    }

    pub fn join(self) {
        self.thread.join().unwrap();
    }
}

fn answer(mut stream: Socket, ready: &mut Vec<u8>) -> io::Result<()> {
    let mut request = Vec::new();
    let mut byte = [0];
    while persist(|| stream.read(&mut byte))? == 1 && byte[0] != b'\n' {
        request.push(byte[0]);
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let (verb, len) = request.split_once(' ').unwrap_or(("", "0"));
    let len: usize = len.parse().unwrap_or(0);
    if verb == "put" {
        let mut bytes = vec![0; len];
        stream.read_exact(&mut bytes)?;
        stream.write_all(hash(&bytes).as_bytes())?;
    } else {
        if ready.len() != len {
            *ready = pattern(len);
        }
        stream.write_all(ready)?;
    }
    stream.shutdown(Shutdown::Write)?;
    // The client closes last. Otherwise the kernel might reset the connection before all data is read.
    while persist(|| stream.read(&mut byte))? > 0 {}
    Ok(())
}

/// Connects from the namespace of the calling thread, and from the address `from` if it is given.
fn connect(from: Option<IpAddr>, to: SocketAddr, speaks: Speaks) -> io::Result<Socket> {
    let socket = socket(to.ip(), speaks)?;
    if let Some(from) = from {
        socket.bind(&SocketAddr::new(from, 0).into())?;
    }
    socket.connect_timeout(&SockAddr::from(to), PATIENCE)?;
    Ok(socket)
}

/// Connects, and writes a request of two parts. Writes the second part when all requested subflows exist.
pub fn request(to: SocketAddr, speaks: Speaks, parts: [&str; 2]) -> io::Result<Socket> {
    request_from(None, to, speaks, parts)
}

/// Does the same from the address `from` if it is given.
pub fn request_from(
    from: Option<IpAddr>,
    to: SocketAddr,
    speaks: Speaks,
    parts: [&str; 2],
) -> io::Result<Socket> {
    let joins = || Counters::read().since(&Counters::default(), "MPJoinSynAckRx");
    let before = joins();
    let mut stream = connect(from, to, speaks)?;
    if let Speaks::Over(subflows) = speaks {
        // A request in two pieces would add a round trip to timed downloads.
        stream.write_all(parts[0].as_bytes())?;
        let asked = Instant::now();
        while joins() - before < subflows - 1 {
            assert!(asked.elapsed() < PATIENCE, "{} joins of {}", joins() - before, subflows - 1);
            thread::sleep(Duration::from_millis(5));
        }
        stream.write_all(parts[1].as_bytes())?;
    } else {
        stream.write_all(parts.concat().as_bytes())?;
    }
    Ok(stream)
}

/// Sends the request `verb len` to the service.
fn ask(to: SocketAddr, speaks: Speaks, verb: &str, len: usize) -> io::Result<Socket> {
    request(to, speaks, [&format!("{verb} "), &format!("{len}\n")])
}

/// Downloads `len` bytes and returns them.
pub fn get(to: SocketAddr, speaks: Speaks, len: usize) -> io::Result<Vec<u8>> {
    let mut stream = ask(to, speaks, "get", len)?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Downloads `len` bytes, and writes the request only after a pause.
pub fn get_late(to: SocketAddr, pause: Duration, len: usize) -> io::Result<Vec<u8>> {
    let mut stream = connect(None, to, Speaks::Mptcp)?;
    thread::sleep(pause);
    stream.write_all(format!("get {len}\n").as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Requests `len` bytes over two subflows, appends them to `bytes`, and stores their number in `there`.
/// Returns an error if none arrives for `patience`.
pub fn get_some(
    to: SocketAddr,
    len: usize,
    patience: Duration,
    bytes: &mut Vec<u8>,
    there: &AtomicUsize,
) -> io::Result<()> {
    let mut stream = ask(to, Speaks::Over(2), "get", len)?;
    stream.set_read_timeout(Some(patience))?;
    let (mut piece, mut last) = (vec![0; 0x1_0000], Instant::now());
    loop {
        // Not `persist`, which would restart the timeout.
        let count = match stream.read(&mut piece) {
            Err(error)
                if error.kind() == io::ErrorKind::Interrupted && last.elapsed() < patience =>
            {
                continue;
            }
            count => count?,
        };
        if count == 0 {
            return Ok(());
        }
        last = Instant::now();
        bytes.extend(&piece[..count]);
        there.store(bytes.len(), Ordering::Relaxed);
    }
}

/// Uploads `len` bytes and returns the hash that the peer computed.
pub fn put(to: SocketAddr, speaks: Speaks, len: usize) -> io::Result<String> {
    upload(to, speaks, len, false)
}

/// Does the same, but shuts its side down before it reads the answer.
pub fn put_and_end(to: SocketAddr, speaks: Speaks, len: usize) -> io::Result<String> {
    upload(to, speaks, len, true)
}

fn upload(to: SocketAddr, speaks: Speaks, len: usize, end: bool) -> io::Result<String> {
    let mut stream = ask(to, speaks, "put", len)?;
    stream.write_all(&pattern(len))?;
    if end {
        stream.shutdown(Shutdown::Write)?;
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Pauses a download in the middle until the test opens it. The client's buffers limit the data that
/// arrives meanwhile ([`super::Bed::bound_buffers`]).
#[derive(Default, Debug)]
pub struct Gate {
    /// Whether the reader may read beyond [`Gate::AT`].
    open: AtomicBool,
}

impl Gate {
    /// Number of bytes read before the pause.
    const AT: usize = 1_500_000;

    /// Lets the reader continue.
    pub fn open(&self) {
        self.open.store(true, Ordering::Relaxed);
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }
}

/// Downloads `len` bytes of the pattern over two subflows, and returns the time and size of each read.
/// Checks every byte. If there is a gate, it waits at it.
pub fn get_timed(
    to: SocketAddr,
    len: usize,
    gate: Option<&Gate>,
) -> io::Result<Vec<(Instant, usize)>> {
    let mut stream = ask(to, Speaks::Over(2), "get", len)?;
    let (expected, mut buffer) = (pattern(len), vec![0; 0x1_0000]);
    let (mut arrivals, mut at) = (Vec::new(), 0);
    loop {
        let count = persist(|| stream.read(&mut buffer))?;
        if count == 0 {
            return Ok(arrivals);
        }
        assert_eq!(buffer[..count], expected[at..at + count], "from byte {at} on");
        at += count;
        arrivals.push((Instant::now(), count));
        if let Some(gate) = gate.filter(|_| at >= Gate::AT) {
            until("the gate", || gate.is_open());
        }
    }
}

/// Downloads `len` bytes of the pattern by Multipath TCP with a receive buffer of `buffer` bytes. Reads
/// 16 KiB every `pause`. Returns the hash.
pub fn get_slowly(
    to: SocketAddr,
    len: usize,
    buffer: usize,
    pause: Duration,
) -> io::Result<String> {
    let mut stream = socket(to.ip(), Speaks::Mptcp)?;
    stream.set_recv_buffer_size(buffer)?;
    stream.connect_timeout(&SockAddr::from(to), PATIENCE)?;
    stream.write_all(format!("get {len}\n").as_bytes())?;
    let (mut sum, mut piece) = (Sha256::new(), vec![0; 16 * 1024]);
    loop {
        let count = persist(|| stream.read(&mut piece))?;
        if count == 0 {
            return Ok(sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        sum.update(&piece[..count]);
        std::thread::sleep(pause);
    }
}

/// Uploads `len` bytes over two subflows. Writes one byte at a time, with TCP_NODELAY.
pub fn put_bytewise(to: SocketAddr, len: usize) -> io::Result<String> {
    let mut stream = ask(to, Speaks::Over(2), "put", len)?;
    stream.set_tcp_nodelay(true)?;
    for byte in pattern(len) {
        stream.write_all(&[byte])?;
    }
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Requests `len` bytes over two subflows, reads some, and closes with unread data.
pub fn abort(to: SocketAddr, len: usize) -> io::Result<()> {
    let mut stream = ask(to, Speaks::Over(2), "get", len)?;
    stream.read_exact(&mut vec![0; 100_000])?;
    stream.set_linger(Some(Duration::ZERO))
}
