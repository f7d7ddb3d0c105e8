//! Captures of many simulated connections of two paths, as large as wanted.

use plait_app::Workload;
use plait_base::{Chance, PathId, Rate, Span, Time};
use plait_core::{Config, ConnectionSpec, PathConfig};
use plait_link::{LinkConfig, RateSource};
use plait_sim::{
    ConnectionSetup, Direction, Hop, MiddleboxConfig, PairSetup, PathSetup, Setup, Watch,
    run_watched,
};
use plait_wire::codec::{Headers, TcpChecksum, encode_headers};
use plait_wire::{Mptcp, Segment};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

/// The capture keeps so many bytes of each packet, as `tcpdump -s 160` does.
const SNAP_BYTES: usize = 160;
/// Time of the first packet, in nanoseconds since the epoch.
const BEGIN_NS: u64 = 1_700_000_000_000_000_000;
/// Time from the begin of a connection to that of the next one, and from the last packet of connections to the next
/// ones that begin together.
const STAGGER_NS: u64 = 20_000_000;
const PAUSE_NS: u64 = 1_000_000_000;

/// The connections of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// Number of connections, and how many of them are open at a time.
    pub connections: usize,
    pub at_a_time: usize,
    /// Data that the server of each connection sends, in bytes.
    pub data_bytes: u64,
    /// True if the capture is made at the clients, which receive the data. Otherwise it is made at the servers.
    pub at_receiver: bool,
}

/// What a capture has.
#[derive(Clone, Copy, Default, Debug)]
pub struct Made {
    pub packets: u64,
    /// First handshakes. A client that gets no answer in time dials on its other path too, and the server takes each
    /// handshake that it sees for a connection.
    pub handshakes: usize,
}

impl Crowd {
    /// Writes the capture.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<Made> {
        let header: [u32; 6] = [0xa1b2_3c4d, 2 | 4 << 16, 0, 0, SNAP_BYTES as u32, 1];
        for word in header {
            out.write_all(&word.to_le_bytes())?;
        }
        let (mut made, mut begin_ns) = (Made::default(), BEGIN_NS);
        for first in (0..self.connections).step_by(self.at_a_time) {
            let numbers = first..self.connections.min(first + self.at_a_time);
            let mut recorders: Vec<Recorder> = Vec::new();
            for number in numbers {
                let own_ns = begin_ns + (number - first) as u64 * STAGGER_NS;
                recorders.push(self.record(number, own_ns));
            }
            let of = |(at, it): (usize, &Recorder)| -> Vec<_> {
                it.records.iter().map(|(at_ns, start)| (*at_ns, at, *start)).collect()
            };
            let mut order: Vec<_> = recorders.iter().enumerate().flat_map(of).collect();
            order.sort_unstable();
            for (at_ns, at, start) in &order {
                begin_ns = begin_ns.max(*at_ns + PAUSE_NS);
                let record = &recorders[*at].bytes[*start..];
                out.write_all(&record[..16 + captured(record)])?;
            }
            made.packets += order.len() as u64;
            made.handshakes += recorders.iter().map(|it| it.dialled.len()).sum::<usize>();
        }
        out.flush()?;
        Ok(made)
    }

    /// Simulates a connection.
    fn record(&self, number: usize, begin_ns: u64) -> Recorder {
        let mut recorder = Recorder {
            number: number as u16,
            begin_ns,
            at_receiver: self.at_receiver,
            idents: [0; 2],
            dialled: BTreeSet::new(),
            records: Vec::new(),
            bytes: Vec::new(),
        };
        let nth = number as u64;
        let paths = vec![
            path("wifi", 10 + nth % 7 * 5, 10 + nth % 5 * 12, 200_000 + (nth % 3) as u32 * 900_000),
            path("lte", 5 + nth % 3 * 5, 40 + nth % 11 * 10, (nth % 4) as u32 * 1_000_000),
        ];
        let setup = setup(paths, 1 + nth, self.data_bytes);
        let outcome = run_watched(&setup, &mut recorder);
        assert_eq!(outcome.violation, None);
        recorder
    }
}

/// Returns the captured bytes of the record of a packet.
fn captured(record: &[u8]) -> usize {
    u32::from_le_bytes([record[8], record[9], record[10], record[11]]) as usize
}

/// Returns a path. `loss_ppb` is the chance of a packet to be lost, in billionths.
fn path(name: &str, mbit: u64, rtt_ms: u64, loss_ppb: u32) -> PathSetup {
    let link = || {
        let rate = RateSource::Fixed(Rate::from_bps(mbit * 1_000_000));
        let mut link = LinkConfig::new(rate, Span::from_millis(rtt_ms).over(2));
        link.impairments.loss = Chance::from_ppb(loss_ppb).into();
        link
    };
    PathSetup {
        name: name.into(),
        down: link(),
        up: link(),
        nic_down: Rate::from_bps(1_000_000_000),
        nic_up: Rate::from_bps(1_000_000_000),
        via: None,
        middlebox: MiddleboxConfig::default(),
        removed: Vec::new(),
        resting: Vec::new(),
    }
}

fn setup(paths: Vec<PathSetup>, seed: u64, data_bytes: u64) -> Setup {
    let scheduler = plait_sched::Spec::parse("minrtt").unwrap();
    let controller = plait_cc::Spec::parse("cubic").unwrap();
    let spec = ConnectionSpec {
        config: Config::default(),
        paths: (0..paths.len() as u32).map(|id| PathConfig::new(PathId(id))).collect(),
        addresses: Vec::new(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |_| controller.build()),
    };
    let connection = ConnectionSetup {
        client: spec.clone(),
        server: spec,
        workload: Workload::parse(&format!("download:{data_bytes}B")).unwrap(),
        start: Time::ZERO,
    };
    Setup {
        seed,
        paths,
        shared: Vec::new(),
        pairs: vec![PairSetup { connections: vec![connection], background: false, memory: None }],
        until: Time::ZERO + Span::from_secs(1_000_000),
        check: false,
        wire: false,
        linger: true,
        send_cost: Span::ZERO,
    }
}

/// The packets of one connection at one of its ends, as records of a pcap file.
struct Recorder {
    number: u16,
    begin_ns: u64,
    at_receiver: bool,
    /// The latest IP identifications of server and client.
    idents: [u16; 2],
    /// The path and the client's port of each first handshake.
    dialled: BTreeSet<(PathId, u16)>,
    /// Time and offset of each record.
    records: Vec<(u64, usize)>,
    bytes: Vec<u8>,
}

impl Watch for Recorder {
    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        let leaves = (way == Direction::Up) == self.at_receiver;
        if hop != (if leaves { Hop::Sent } else { Hop::Delivered }) {
            return;
        }
        let [high, low] = self.number.to_be_bytes();
        let client = [10, path.0 as u8, high, low].into();
        let server = [192, 0, 2, 1 + path.0 as u8].into();
        let (src, dst, side) = match way {
            Direction::Down => (server, client, 0),
            Direction::Up => (client, server, 1),
        };
        if matches!(segment.options.mptcp.as_deref(), Some(Mptcp::Capable(_))) {
            let port = if way == Direction::Up { segment.src_port } else { segment.dst_port };
            self.dialled.insert((path, port));
        }
        self.idents[side] = self.idents[side].wrapping_add(1).max(1);
        let headers = Headers { ident: self.idents[side], ..Headers::new(src, dst) };
        let at_ns = self.begin_ns + now.as_nanos();
        let start = self.bytes.len();
        self.records.push((at_ns, start));
        self.bytes.extend(((at_ns / 1_000_000_000) as u32).to_le_bytes());
        self.bytes.extend(((at_ns % 1_000_000_000) as u32).to_le_bytes());
        self.bytes.extend([0; 8]);
        self.bytes.extend([2; 12]);
        self.bytes.extend([0x08, 0x00]);
        let headers_len =
            encode_headers(&headers, segment, TcpChecksum::Full, &mut self.bytes).unwrap();
        let len = 14 + headers_len + segment.payload.len() as usize;
        let kept = len.min(SNAP_BYTES);
        self.bytes.resize(start + 16 + kept, 0);
        self.bytes[start + 8..start + 12].copy_from_slice(&(kept as u32).to_le_bytes());
        self.bytes[start + 12..start + 16].copy_from_slice(&(len as u32).to_le_bytes());
    }
}
