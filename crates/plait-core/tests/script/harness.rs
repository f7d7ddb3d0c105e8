//! One real endpoint in virtual time. The script plays its peer. Every segment of the endpoint is
//! audited, in every scenario.

use crate::segment::{ACK, SYN, Seg, Want, want};
use plait_base::{ConnId, DataRangeSet, Dsn, PathId, RandomStream, Span, Time};
use plait_core::{Config, ConnectionSpec, ConnectionState, Endpoint, Entropy, PathConfig};
use plait_wire::{Flags, JoinAck, JoinSyn, JoinSynAck, Key, MpCapable, Mptcp, Segment, join_hmac};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

/// Payload of a full segment at an MTU of 1500.
pub(crate) const MSS: u32 = 1428;
pub(crate) const PORT: u16 = 80;
/// Paths of a script: the number of a path, plus this much per server address.
pub(crate) const SERVER: u32 = 16;
/// The script's key.
pub(crate) const KEY: Key = Key(0x7396_2198_d473_a3d9);
/// The script's window scale.
pub(crate) const SCALE: u8 = 7;

struct Draws {
    first: VecDeque<u64>,
    rest: RandomStream,
}

impl Entropy for Draws {
    fn bits(&mut self) -> u64 {
        self.first.pop_front().unwrap_or_else(|| self.rest.bits())
    }
}

/// The script's state of one subflow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    pub(crate) port: u16,
    pub(crate) remote_port: u16,
    pub(crate) iss: u32,
    pub(crate) irs: u32,
    /// Next relative sequence numbers to send and to acknowledge.
    pub(crate) nxt: u32,
    pub(crate) rcv: u32,
    /// The endpoint's window scale.
    pub(crate) remote_scale: u8,
    pub(crate) heard: u32,
    pub(crate) nonce: u32,
    pub(crate) remote_nonce: u32,
    pub(crate) last_ack: u32,
    /// Its SYN offered no timestamps.
    pub(crate) no_stamps: bool,
}

pub(crate) struct Script {
    pub(crate) endpoint: Endpoint,
    pub(crate) now: Time,
    pub(crate) id: ConnId,
    pub(crate) peers: BTreeMap<u32, Peer>,
    pub(crate) key: Key,
    pub(crate) remote_key: Option<Key>,
    pub(crate) out: VecDeque<(Time, Seg, Segment)>,
    pub(crate) config: Config,
    /// DSS checksums are in use: the script sends them and verifies the endpoint's.
    pub(crate) sums: bool,
    pub(crate) log: String,
    pub(crate) sent: DataRangeSet,
    pub(crate) data_fin: Option<u64>,
    pub(crate) dack: u64,
    pub(crate) edge: u64,
    pub(crate) client: bool,
    /// DATA_ACK of a peer that has received everything the endpoint sent.
    pub(crate) data_rcv: u64,
}

pub(crate) fn spec(config: Config, paths: u32, backup: Option<u32>) -> ConnectionSpec {
    let scheduler = plait_sched::Spec::parse("minrtt").expect("scheduler");
    let controller = plait_cc::Spec::parse("reno").expect("controller");
    let path = |id| PathConfig { backup: backup == Some(id), ..PathConfig::new(PathId(id)) };
    ConnectionSpec {
        config,
        paths: (0..paths).map(path).collect(),
        addresses: Vec::new(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |_| controller.build()),
    }
}

pub(crate) fn multipath() -> Config {
    Config::default()
}

pub(crate) fn plain() -> Config {
    Config { multipath: false, ..Config::default() }
}

fn millis(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e6
}

impl Script {
    fn new(config: Config, client: bool, first: &[u64]) -> Script {
        let draws = Draws {
            first: first.iter().copied().collect(),
            rest: RandomStream::new(1, &["script"]),
        };
        let mut endpoint = Endpoint::new(Box::new(draws));
        endpoint.check_invariants(true);
        Script {
            endpoint,
            now: Time::ZERO,
            id: ConnId(0),
            peers: BTreeMap::new(),
            key: KEY,
            remote_key: None,
            out: VecDeque::new(),
            sums: config.checksum,
            config,
            log: String::new(),
            sent: DataRangeSet::new(),
            data_fin: None,
            dack: 0,
            edge: 0,
            client,
            data_rcv: 0,
        }
    }

    /// Returns a script of a dialling endpoint. Its SYN is sent.
    pub(crate) fn client(spec: ConnectionSpec) -> Script {
        Script::client_drawing(spec, &[])
    }

    /// As [`Script::client`], but the first random numbers are `first` (key, then ISN).
    pub(crate) fn client_drawing(spec: ConnectionSpec, first: &[u64]) -> Script {
        let mut script = Script::new(spec.config.clone(), true, first);
        script.id = script.endpoint.connect(script.now, PORT, spec).unwrap();
        script.drain();
        script
    }

    /// Returns a script of an endpoint that listens on [`PORT`].
    pub(crate) fn server(spec: ConnectionSpec) -> Script {
        Script::server_drawing(spec, &[])
    }

    pub(crate) fn server_drawing(spec: ConnectionSpec, first: &[u64]) -> Script {
        let mut script = Script::new(spec.config.clone(), false, first);
        script.endpoint.listen(PORT, spec);
        script
    }

    /// Returns a server with `paths` established subflows of 20 ms. No segment is pending.
    pub(crate) fn open_server(config: Config, paths: u32) -> Script {
        let mut s = Script::server(spec(config, paths, None));
        s.establish(paths, 20);
        s
    }

    /// Returns a plain TCP server with one established subflow of 20 ms. `changed` edits the peer's
    /// SYN.
    pub(crate) fn plain_server(changed: impl FnOnce(Seg) -> Seg) -> Script {
        let mut s = Script::server(spec(plain(), 1, None));
        let syn = s.syn(0);
        let syn = changed(syn);
        let stamps = syn.stamps.is_some();
        s.send(syn);
        s.after(20);
        let ack = s.tx(0);
        s.send(Seg { stamps: ack.stamps.filter(|_| stamps), ..ack });
        s.id = s.endpoint.poll_accept().unwrap_or_else(|| s.fail("nothing to accept"));
        s
    }

    /// Runs the handshakes of a server script. Each path has a round trip of `rtt` ms.
    pub(crate) fn establish(&mut self, paths: u32, rtt: u64) {
        let capable = self.config.multipath;
        let syn = self.syn(0);
        self.send(if capable { syn.mptcp(capable_syn()) } else { syn.stripped() });
        self.expect(want(0, SYN.with(ACK)));
        self.after(rtt);
        let proof = self.proof(0);
        self.send(if capable { proof } else { proof.stripped() });
        self.id = self.endpoint.poll_accept().unwrap_or_else(|| self.fail("nothing to accept"));
        for path in 1..paths {
            self.join(path, rtt, false);
        }
        self.out.clear();
    }

    /// Runs a complete join by the peer.
    pub(crate) fn join(&mut self, path: u32, rtt: u64, backup: bool) {
        let syn = self.join_syn(path, backup);
        self.send(syn);
        self.expect(want(path, SYN.with(ACK)).mptcp("join answer"));
        self.after(rtt);
        let proof = self.proof(path);
        self.send(proof);
        self.expect(want(path, ACK).ack(1).no_map());
    }

    /// Returns a client whose first subflow took 20 ms and has received a DSS. Its joins are sent.
    pub(crate) fn joining_client(spec: ConnectionSpec) -> Script {
        let mut s = Script::client(spec);
        s.expect(want(0, SYN));
        s.after(20);
        s.send(s.syn_ack(0));
        s.expect(want(0, ACK).mptcp("capable2"));
        s.send(s.tx(0));
        s
    }

    /// Returns a client with `paths` established subflows of 20 ms.
    pub(crate) fn open_client(config: Config, paths: u32) -> Script {
        let mut s = Script::client(spec(config, paths, None));
        s.establish_client(paths, 20);
        s
    }

    pub(crate) fn establish_client(&mut self, paths: u32, rtt: u64) {
        self.expect(want(0, SYN));
        self.after(rtt);
        let answer = self.syn_ack(0);
        self.send(answer);
        self.expect(want(0, ACK));
        if self.config.multipath {
            self.send(self.tx(0));
            for path in 1..paths {
                self.expect(want(path, SYN).mptcp("join"));
            }
            self.after(rtt);
            for path in 1..paths {
                let answer = self.syn_ack(path);
                self.send(answer);
                self.expect(want(path, ACK).mptcp("join proof"));
            }
            self.after(rtt);
            (1..paths).for_each(|path| self.send(self.tx(path)));
        }
        self.out.clear();
    }

    // Templates of the peer's segments.

    /// Returns the peer's first SYN on `path`, without an MPTCP option.
    pub(crate) fn syn(&mut self, path: u32) -> Seg {
        let port = 1_000 + path;
        let iss = 0xffff_f000_u32.wrapping_add(path << 20);
        let fresh =
            Peer { port: port as u16, remote_port: PORT, iss, nonce: 77, ..Peer::default() };
        self.peers.insert(path, fresh);
        Seg {
            path,
            flags: SYN,
            win: 0xffff,
            mss: Some(1460),
            scale: Some(SCALE),
            sack_permitted: true,
            stamps: Some((self.clock(), 0)),
            ..Seg::default()
        }
    }

    pub(crate) fn join_syn(&mut self, path: u32, backup: bool) -> Seg {
        let token = self.remote_key.map_or(0, Key::token);
        let syn = self.syn(path);
        syn.mptcp(Mptcp::JoinSyn(JoinSyn { backup, address_id: path as u8, token, nonce: 77 }))
    }

    /// Returns the peer's answer to the endpoint's SYN, with the matching MPTCP option.
    pub(crate) fn syn_ack(&self, path: u32) -> Seg {
        let (key, remote, peer) = (self.key, self.remote_key, &self.peers[&path]);
        let option = match (self.config.multipath, path) {
            (false, _) => None,
            (true, 0) => Some(Mptcp::Capable(MpCapable {
                checksum_required: self.sums,
                joins_denied: false,
                sender_key: Some(key),
                receiver_key: None,
                data_len: None,
                checksum: None,
            })),
            (true, _) => {
                let remote = remote.expect("the endpoint told its key");
                let hmac = join_hmac(key, remote, peer.nonce, peer.remote_nonce).left64();
                let (address_id, nonce) = (path as u8, peer.nonce);
                Some(Mptcp::JoinSynAck(JoinSynAck { backup: false, address_id, hmac, nonce }))
            }
        };
        let stamps = Some((self.clock(), peer.heard));
        Seg {
            path,
            flags: SYN.with(ACK),
            ack: 1,
            win: 0xffff,
            mss: Some(1460),
            scale: Some(SCALE),
            sack_permitted: true,
            stamps,
            mptcp: option,
            ..Seg::default()
        }
    }

    /// Returns the third ACK with both keys, or with the HMAC of a join.
    pub(crate) fn proof(&self, path: u32) -> Seg {
        let remote = self.remote_key.unwrap_or(Key(0));
        let peer = &self.peers[&path];
        let option = if path == 0 {
            Mptcp::Capable(MpCapable {
                checksum_required: self.sums,
                joins_denied: false,
                sender_key: Some(self.key),
                receiver_key: Some(remote),
                data_len: None,
                checksum: None,
            })
        } else {
            let hmac = join_hmac(self.key, remote, peer.nonce, peer.remote_nonce).left160();
            Mptcp::JoinAck(JoinAck { hmac })
        };
        Seg { dack: None, mptcp: Some(option), ..self.tx(path) }
    }

    /// Returns a pure ACK of everything received on `path`, with a DSS if Multipath TCP is in use.
    pub(crate) fn tx(&self, path: u32) -> Seg {
        let peer = &self.peers[&path];
        Seg {
            path,
            flags: ACK,
            seq: peer.nxt,
            ack: peer.rcv,
            win: 0xffff,
            stamps: Some((self.clock(), peer.heard)),
            dack: self.config.multipath.then_some(self.data_rcv),
            ..Seg::default()
        }
    }

    fn clock(&self) -> u32 {
        5_000 + (self.now.as_nanos() / 1_000_000) as u32
    }

    // Events.

    /// Passes a segment to the endpoint.
    pub(crate) fn send(&mut self, seg: Seg) {
        self.arrive(seg);
        self.drain();
    }

    /// As `send`, before the host sends anything.
    pub(crate) fn arrive(&mut self, seg: Seg) {
        let segment = self.to_wire(&seg);
        self.note(&format!("> {}", line(&seg)));
        let peer = self.peers.get_mut(&seg.path).expect("a known path");
        let syn = u32::from(seg.flags.has(Flags::SYN));
        let fin = u32::from(seg.flags.has(Flags::FIN));
        peer.nxt = peer.nxt.max(seg.seq + seg.len + syn + fin);
        peer.no_stamps |= syn == 1 && seg.stamps.is_none();
        let first = seg.mptcp.as_ref().is_some_and(carries_first_data);
        let dsn =
            seg.map.map(|(dsn, ssn, _)| dsn.wrapping_add(u64::from(seg.seq.saturating_sub(ssn))));
        let dsn = first.then_some(0).or(dsn).or(self.plain_dsn(&seg));
        if let Some(dsn) = dsn.filter(|dsn| *dsn < 1 << 32) {
            self.sent.insert(plait_base::DataRange::with_len(Dsn::new(dsn), u64::from(seg.len)));
        }
        if let Some((dsn, _, len)) = seg.map.filter(|_| seg.data_fin) {
            self.data_fin = Some(dsn.wrapping_add(u64::from(len)).wrapping_sub(1));
        }
        self.endpoint.handle(self.now, PathId(seg.path % SERVER), &segment);
    }

    fn plain_dsn(&self, seg: &Seg) -> Option<u64> {
        (!self.config.multipath && seg.len > 0).then(|| u64::from(seg.seq) - 1)
    }

    /// Advances `millis` ms. Timers expire in their order.
    pub(crate) fn after(&mut self, millis: u64) {
        self.until(self.now + Span::from_millis(millis));
    }

    pub(crate) fn until(&mut self, target: Time) {
        let mut storm = 0;
        loop {
            let due = self.endpoint.poll_timeout();
            if due > target {
                break;
            }
            storm = if due > self.now { 0 } else { storm + 1 };
            assert!(storm < 100, "a storm of timers at {}\n{}", millis(due), self.log);
            self.now = self.now.max(due);
            self.endpoint.handle_timeout(self.now);
            self.drain();
        }
        self.now = target;
    }

    pub(crate) fn write(&mut self, len: u64) {
        let taken = self.endpoint.write(self.now, self.id, len).unwrap();
        self.note(&format!("write {len}: {taken}"));
        self.drain();
    }

    pub(crate) fn finish(&mut self) {
        self.endpoint.finish(self.now, self.id).unwrap();
        self.note("finish");
        self.drain();
    }

    /// Reads at most `max` bytes and returns their number.
    pub(crate) fn skip(&mut self, max: u64) -> u64 {
        let read = self.endpoint.skip(self.now, self.id, max).unwrap();
        self.note(&format!("read {read}"));
        self.drain();
        read
    }

    pub(crate) fn state(&self) -> ConnectionState {
        self.endpoint.state(self.id).unwrap()
    }

    pub(crate) fn drain(&mut self) {
        while self.endpoint.poll_news().is_some() {}
        let mut count = 0;
        while let Some(transmit) = self.endpoint.poll_transmit(self.now) {
            count += 1;
            assert!(count < 20_000, "segments without end\n{}", self.tail());
            let path = transmit.path.0 + SERVER * u32::from(transmit.segment.server.0);
            let seg = self.read_wire(path, &transmit.segment);
            self.note(&format!("< {}", line(&seg)));
            self.audit(&seg, &transmit.segment);
            self.out.push_back((self.now, seg, *transmit.segment));
        }
        if let Some(violation) = self.endpoint.violation() {
            self.fail(&format!("violation: {violation}"));
        }
    }

    // Expectations.

    /// Takes the next sent segment and checks the fields of `want`.
    pub(crate) fn expect(&mut self, want: Want) -> Seg {
        let Some((time, seg, _)) = self.out.pop_front() else {
            self.fail(&format!("expected {}, but nothing was sent", words(&want.0)))
        };
        let mut fields = seg.fields();
        fields.push(("time", millis(time).to_string()));
        let mut diff = String::new();
        for (field, expected) in &want.0 {
            let actual = &fields.iter().find(|(name, _)| name == field).expect("a field").1;
            if actual != expected {
                let _ = writeln!(diff, "  {field:>6}: expected {expected}, got {actual}");
            }
        }
        if !diff.is_empty() {
            self.fail(&format!("the segment differs\n{diff}"));
        }
        seg
    }

    pub(crate) fn expect_nothing(&mut self) {
        if let Some((_, seg, _)) = self.out.front() {
            self.fail(&format!("expected nothing, got {}", line(seg)));
        }
    }

    /// Drops all sent segments and returns their number.
    pub(crate) fn lose_all(&mut self) -> usize {
        core::mem::take(&mut self.out).len()
    }

    pub(crate) fn fail(&self, why: &str) -> ! {
        panic!(
            "at {} ms: {why}\nwhat happened (> to the endpoint, < from it):\n{}",
            millis(self.now),
            self.tail()
        )
    }

    fn tail(&self) -> String {
        let lines: Vec<&str> = self.log.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }

    fn note(&mut self, what: &str) {
        let _ = writeln!(self.log, "{:>10.3} {what}", millis(self.now));
    }

    /// Acknowledges everything up to `seq` on `path`, and the data up to `dack`.
    pub(crate) fn ack(&mut self, path: u32, seq: u32, dack: u64) {
        let peer = self.peers.get_mut(&path).expect("a known path");
        peer.rcv = peer.rcv.max(seq);
        self.data_rcv = self.data_rcv.max(dack);
        self.send(self.tx(path));
    }

    /// Acknowledges everything up to `seq` on the first path, with `win` as window field.
    pub(crate) fn ack_window(&mut self, seq: u32, win: u16) {
        self.peers.get_mut(&0).expect("a known path").rcv = seq;
        self.send(self.tx(0).win(win));
    }

    /// Returns true if the endpoint has ever sent data on `path`.
    pub(crate) fn log_has_data_on(&self, path: u32) -> bool {
        let start = format!("< path {path},");
        let sent = |line: &&str| line.contains(&start) && !line.contains("len 0");
        self.log.lines().any(|line| sent(&line))
    }
}

impl Peer {
    /// Sends later segments of this peer to `port` of the endpoint.
    pub(crate) fn aim_at(&mut self, port: u16) {
        self.remote_port = port;
    }

    pub(crate) fn own_shift(&self, segment: &Segment) -> u8 {
        if segment.flags.has(Flags::SYN) { 0 } else { self.remote_scale }
    }
}

pub(crate) fn capable_syn() -> Mptcp {
    Mptcp::Capable(MpCapable::default())
}

pub(crate) fn carries_first_data(option: &Mptcp) -> bool {
    matches!(option, Mptcp::Capable(MpCapable { data_len: Some(_), .. }))
}

fn words(fields: &[(&'static str, String)]) -> String {
    let words: Vec<String> = fields.iter().map(|(name, value)| format!("{name} {value}")).collect();
    words.join(", ")
}

pub(crate) fn line(seg: &Seg) -> String {
    let fields = seg.fields();
    let told: Vec<_> = fields.into_iter().filter(|(_, v)| v != "-" && v != "[]").collect();
    words(&told)
}
