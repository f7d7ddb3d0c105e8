//! Superpackets as a device splits them. Every segment gets a copy of the options, and some are
//! lost.
#![allow(clippy::unwrap_used)]

use plait_base::{PathId, RandomStream, Span, Time};
use plait_core::{Config, ConnectionSpec, Endpoint, Entropy, PathConfig, Transmit};
use plait_wire::{Mapping, Segment};
use std::sync::Arc;

const PORT: u16 = 80;
const LEN: usize = 3_000_000;

struct Seeded(RandomStream);

impl Entropy for Seeded {
    fn bits(&mut self) -> u64 {
        self.0.bits()
    }
}

fn endpoint(name: &str) -> Endpoint {
    Endpoint::new(Box::new(Seeded(RandomStream::new(1, &[name]))))
}

fn spec(superpacket: u32, checksum: bool) -> ConnectionSpec {
    let scheduler = plait_sched::Spec::parse("minrtt").unwrap();
    let controller = plait_cc::Spec::parse("cubic").unwrap();
    let path = |id| PathConfig::new(PathId(id));
    ConnectionSpec {
        config: Config::default().with(|it| {
            it.packets.superpacket = superpacket;
            it.checksum = checksum;
        }),
        paths: vec![path(0), path(1)],
        addresses: Vec::new(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |_| controller.build()),
    }
}

/// Returns the segments on the wire.
fn cut(sent: &Transmit) -> Vec<Segment> {
    let (len, size) = (sent.segment.payload.len(), u32::from(sent.cut));
    if size == 0 || len <= size {
        return vec![(*sent.segment).clone()];
    }
    let piece = |at: u32| {
        let mut segment = (*sent.segment).clone();
        segment.seq = segment.seq.wrapping_add(at);
        segment.payload = sent.segment.payload.slice(at, size);
        segment
    };
    (0..len.div_ceil(size)).map(|n| piece(n * size)).collect()
}

/// The result of a client's upload.
struct Upload {
    /// Most payload bytes of one segment before it is split, and the number of segments.
    longest: u32,
    count: usize,
    bytes: Vec<u8>,
}

/// Checks mappings as Linux does: a new mapping must not start within an unfinished one.
#[derive(Default)]
struct Strict {
    current: Option<Mapping>,
}

impl Strict {
    /// Checks the mapping of the next in-order segment.
    fn take(&mut self, seq: u32, len: u32, told: Mapping) {
        if let Some(now) = self.current
            && seq.wrapping_sub(now.ssn) < u32::from(now.len)
        {
            assert_eq!(told, now, "within one that is not used up");
        }
        let offset = seq.wrapping_sub(told.ssn);
        assert!(offset + len <= u32::from(told.len), "{seq} is not in {told:?}");
        self.current = Some(told);
    }
}

/// Uploads with superpackets of `superpacket` bytes; each `lossy`-th segment with data is lost. If
/// `checksum`, the server requests checksums.
fn upload(superpacket: u32, lossy: usize, checksum: bool) -> Upload {
    let (mut client, mut server) = (endpoint("client"), endpoint("server"));
    server.listen(PORT, spec(0, checksum));
    let (mut now, mut sent) = (Time::ZERO, 0);
    let conn = client.connect(now, PORT, spec(superpacket, false)).unwrap();
    let source: Vec<u8> = (0..LEN).map(|n| (n % 251) as u8).collect();
    let (mut written, mut accepted, mut piece) = (0, None, vec![0; 100_000]);
    let mut upload = Upload { longest: 0, count: 0, bytes: Vec::new() };
    // Arrived segments of each path.
    let mut arrived = vec![Vec::new(); 2];
    while upload.bytes.len() < LEN {
        assert!(now < Time::ZERO + Span::from_secs(300), "{} bytes came", upload.bytes.len());
        written +=
            client.write_bytes(now, conn, &source[written..LEN.min(written + 200_000)]).unwrap();
        while let Some(transmit) = client.poll_transmit(now) {
            upload.longest = upload.longest.max(transmit.segment.payload.len());
            upload.count += usize::from(!transmit.segment.payload.is_empty());
            for segment in cut(&transmit) {
                sent += usize::from(!segment.payload.is_empty());
                if segment.payload.is_empty() || sent % lossy != 0 {
                    server.handle(now, transmit.path, &segment);
                    arrived[transmit.path.index()].push(segment);
                }
            }
        }
        accepted = accepted.or_else(|| server.poll_accept());
        if let Some(accepted) = accepted {
            let count = server.read(now, accepted, &mut piece).unwrap();
            upload.bytes.extend_from_slice(&piece[..count]);
        }
        while let Some(transmit) = server.poll_transmit(now) {
            client.handle(now, transmit.path, &transmit.segment);
        }
        now += Span::from_millis(10);
        client.handle_timeout(now);
        server.handle_timeout(now);
    }
    assert_eq!(upload.bytes, source);
    for mut all in arrived {
        all.retain(|it| it.options.dss.is_some_and(|dss| dss.mapping.is_some()));
        let first = all.first().map_or(0, |it| it.seq);
        // In order. Of copies, the first one to arrive stays first.
        all.sort_by_key(|it| it.seq.wrapping_sub(first));
        // Subflow sequence numbers count from the SYN.
        let ssn = |it: &Segment| it.options.dss.unwrap().mapping.unwrap().ssn;
        let syn = all.first().map_or(0, |it| it.seq.wrapping_sub(ssn(it)));
        let (mut strict, mut next) = (Strict::default(), first);
        for it in all.iter().filter(|it| !it.payload.is_empty()) {
            if it.seq == next {
                let mapping = it.options.dss.unwrap().mapping.unwrap();
                assert_eq!(mapping.checksum.is_some(), checksum);
                strict.take(it.seq.wrapping_sub(syn), it.payload.len(), mapping);
                next = next.wrapping_add(it.payload.len());
            }
        }
    }
    upload
}

/// R31, R34: lost parts of a superpacket are retransmitted in full segments. They carry the mapping
/// of the superpacket and its checksum.
#[test]
fn parts_that_are_lost_come_again_with_the_mapping_of_all() {
    for checksum in [false, true] {
        let plain = upload(0, 97, checksum);
        assert!(plain.longest <= 1_428);
        let many = upload(Config::SUPERPACKET, 97, checksum);
        assert!(many.longest > 20_000, "{} bytes at most", many.longest);
        assert!(many.count * 4 < plain.count, "{} and {} segments", many.count, plain.count);
    }
}

/// No superpacket exceeds the device's limit.
#[test]
fn no_superpacket_is_longer_than_the_device_takes() {
    let few = upload(5_000, usize::MAX, false);
    assert_eq!(few.longest, 3 * 1_428);
    for checksum in [false, true] {
        let most = upload(Config::SUPERPACKET, usize::MAX, checksum);
        assert_eq!(most.longest, 45 * 1_428);
    }
}
