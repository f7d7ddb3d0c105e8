//! Sends mutated packets to a server. The committed corpus (`fuzz/corpus/ingress`) holds
//! conversations: the packets of a client to a server that draws the same keys. Packets are
//! changed, spliced, truncated, repeated, omitted and reordered. ICMP messages about too long
//! packets are included, for both families. The server must not panic, break an invariant, emit a
//! segment that cannot be encoded, or send without end.
//!
//! `PLAIT_FUZZ_SECONDS=600 cargo test --release -p plait-core --test fuzz` runs for 600 s. By
//! default a fixed number of conversations is played, on every machine. A finding has a number:
//! `PLAIT_ROUND=number` plays it again and prints the packets. `PLAIT_SEED` sets the seed.
//! `PLAIT_BLESS=1` rewrites the corpus.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod common;
#[path = "../../plait-wire/tests/codec/router.rs"]
#[cfg_attr(feature = "planted-bugs", allow(dead_code, reason = "the corpus is there"))]
mod router;
#[path = "fuzz/target.rs"]
mod target;

#[cfg(not(feature = "planted-bugs"))]
use common::endpoint;
#[cfg(not(feature = "planted-bugs"))]
use plait_base::PathId;
use plait_base::RandomStream;
use plait_core::Sizes;
#[cfg(not(feature = "planted-bugs"))]
use plait_wire::Segment;
#[cfg(not(feature = "planted-bugs"))]
use plait_wire::codec::{Headers, TcpChecksum, encode};
use std::fs;
#[cfg(not(feature = "planted-bugs"))]
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
#[cfg(not(feature = "planted-bugs"))]
use target::{PORT, at, headers, join, play_whole, spec, tell};
use target::{Sent, Target, mend};

/// Conversations, named by their end, by checksums, or by narrow paths.
const CONVERSATIONS: [&str; 5] = ["close", "abort", "leave", "checksum", "narrow"];

/// Returns a router's "packet too big" message about a packet of the server on `path`.
#[cfg(not(feature = "planted-bugs"))]
fn too_big(path: PathId, v6: bool, segment: &Segment, mtu: u32) -> Vec<u8> {
    let address = |bytes: [u8; 4]| match v6 {
        true => IpAddr::from([
            0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, bytes[0], bytes[1], bytes[2], bytes[3],
        ]),
        false => IpAddr::from(bytes),
    };
    let headers = Headers::new(address([10, 9, 9, 1]), address([10, 0, path.0 as u8, 2]));
    router::too_big(address([10, 5, 5, 5]), &headers, segment, mtu, 100)
}

/// Returns the packets of a conversation's client, with the step of each.
#[cfg(not(feature = "planted-bugs"))]
fn converse(name: &str) -> Vec<Sent> {
    let checksum = name == "checksum";
    let (mut client, mut server) = (endpoint(5, "client"), endpoint(5, "server"));
    server.listen(PORT, spec(checksum));
    let id = client.connect(at(0), PORT, spec(checksum)).unwrap();
    let (mut sent, mut accepted) = (Vec::new(), None);
    let narrow = (name == "narrow").then_some([(false, 1_400), (true, 1_300)]);
    let mut narrow = narrow.into_iter().flatten();
    for step in 0..30 {
        let now = at(step);
        client.handle_timeout(now);
        server.handle_timeout(now);
        match step {
            4 => assert!(client.write_bytes(now, id, &[b'c'; 3_000]).unwrap() > 0),
            8 => drop(client.set_backup(now, id, PathId(1), true)),
            12 if name == "abort" => client.abort(now, id).unwrap(),
            12 if name == "leave" => client.lose_address(now, PathId(1)),
            16 => client.finish(now, id).unwrap(),
            _ => {}
        }
        while let Some(transmit) = client.poll_transmit(now) {
            let mut bytes = Vec::new();
            encode(&headers(transmit.path), &transmit.segment, TcpChecksum::Full, &mut bytes)
                .unwrap();
            sent.push((step, bytes));
            server.handle(now, transmit.path, &transmit.segment);
        }
        accepted = accepted.or_else(|| server.poll_accept());
        if let Some(id) = accepted {
            server.skip(now, id, u64::MAX).unwrap();
            if step == 5 {
                server.write_bytes(now, id, &[b's'; 3_000]).unwrap();
            }
            if step == 18 {
                server.finish(now, id).unwrap();
            }
        }
        while let Some(transmit) = server.poll_transmit(now) {
            client.handle(now, transmit.path, &transmit.segment);
            // The next hops have a smaller MTU than the first long packets.
            if transmit.segment.payload.len() > 1_000
                && let Some((v6, mtu)) = narrow.next()
            {
                let said = too_big(transmit.path, v6, &transmit.segment, mtu);
                assert!(tell(&mut server, now, &said));
                sent.push((step, said));
            }
        }
        client.skip(now, id, u64::MAX).unwrap();
    }
    sent
}

fn corpus_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/ingress")
}

/// Returns the committed packets of each conversation in order. A file name has the conversation,
/// the packet's number and its step.
fn corpus() -> Vec<(bool, Vec<Sent>)> {
    let mut files: Vec<_> =
        fs::read_dir(corpus_dir()).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "bin"));
    files.sort();
    let of = |name: &&str| {
        let mine = files.iter().filter_map(|file| {
            let stem = file.file_stem()?.to_str()?.strip_prefix(*name)?;
            let step = stem.rsplit('-').next()?.parse().ok()?;
            Some((step, fs::read(file).unwrap()))
        });
        (*name == "checksum", mine.collect())
    };
    CONVERSATIONS.iter().map(of).collect()
}

/// Returns the offset of the TCP payload.
fn payload_at(packet: &[u8]) -> usize {
    (20 + usize::from(packet[32] >> 4) * 4).min(packet.len())
}

/// Returns true if the packet is a router's message.
fn is_icmp(packet: &[u8]) -> bool {
    packet[0] >> 4 == 6 || packet[9] == 1
}

/// Changes a router's message, mostly in the quoted packet. Its checksum stays correct in most
/// cases.
fn misquote(mut packet: Vec<u8>, stream: &mut RandomStream) -> Vec<u8> {
    let mut below = |bound: usize| stream.below(bound as u64) as usize;
    let header = if packet[0] >> 4 == 6 { 40 } else { 20 };
    for _ in 0..=below(3) {
        // The MTU, the numbers of the segment, or any byte.
        let at = match below(4) {
            0 => header + 4 + below(4),
            1 | 2 => header + 8 + header + below(8),
            _ => below(packet.len()),
        };
        packet[at] ^= 1 << below(8);
    }
    if below(16) == 0 {
        packet.truncate(header + 8 + below(packet.len() - header - 7));
    }
    if below(8) > 0 && packet[0] >> 4 == if header == 40 { 6 } else { 4 } {
        router::mend(&mut packet);
    }
    packet
}

fn mutate(packet: &[u8], other: &[u8], stream: &mut RandomStream) -> Vec<u8> {
    if is_icmp(packet) {
        return misquote(packet.to_vec(), stream);
    }
    let other = if is_icmp(other) { packet } else { other };
    let mut packet = packet.to_vec();
    let mut below = |bound: usize| stream.below(bound.max(1) as u64) as usize;
    for _ in 0..=below(3) {
        let (begin, end) = (40, payload_at(&packet));
        match below(8) {
            // Sequence number, acknowledgement or window, by a small or a large amount.
            0 => {
                let at = [24, 28][below(2)];
                let by = [1, 2, 100, 1_428, 3_000, 70_000, 0x8000_0000][below(7)];
                let number = u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
                let number =
                    if below(2) == 0 { number.wrapping_add(by) } else { number.wrapping_sub(by) };
                packet[at..at + 4].copy_from_slice(&number.to_be_bytes());
            }
            1 => packet[33] = [0x02, 0x10, 0x11, 0x12, 0x14, 0x18, 0x04, 0xff][below(8)],
            2 => packet[34 + below(2)] = below(256) as u8,
            3 | 4 if end > begin => packet[begin + below(end - begin)] ^= 1 << below(8),
            5 if end > begin => packet[begin + below(end - begin)] = below(256) as u8,
            // The options of another packet.
            6 if payload_at(other) >= 40 => {
                packet.splice(begin.min(end)..end, other[40..payload_at(other)].iter().copied());
                packet[32] = (packet[32] & 15) | (((payload_at(other) - 20) / 4) as u8) << 4;
            }
            _ => {
                let keep = end + below(packet.len() - end + 1);
                packet.truncate(keep);
            }
        }
        mend(&mut packet);
    }
    // Sometimes another path.
    if below(20) == 0 {
        packet[14] = below(3) as u8;
        mend(&mut packet);
    }
    packet
}

/// Totals of all played packets.
#[derive(Default)]
struct Tally {
    read: u64,
    taken: u64,
    sizes: Sizes,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.read += other.read;
        self.taken += other.taken;
        self.sizes.too_big_believed += other.sizes.too_big_believed;
        self.sizes.too_big_refused += other.sizes.too_big_refused;
        self.sizes.lowered_as_told += other.sizes.lowered_as_told;
    }
}

/// Plays one conversation with mutated packets.
fn play(
    checksum: bool,
    packets: &[Sent],
    stream: &mut RandomStream,
    aloud: bool,
) -> Result<Tally, String> {
    let mut target = Target { aloud, ..Target::new(checksum) };
    let rate = 2 + stream.below(20);
    for (step, packet) in packets {
        target.step_to(*step)?;
        match stream.below(rate) {
            0 => {
                let other = &packets[stream.below(packets.len() as u64) as usize].1;
                target.play(&mutate(packet, other, stream))?;
                if stream.below(2) == 0 {
                    target.play(packet)?;
                }
            }
            1 if stream.below(3) == 0 => {}
            1 => {
                let other = &packets[stream.below(packets.len() as u64) as usize].1;
                target.play(other)?;
                target.play(packet)?;
            }
            _ => target.play(packet)?,
        }
    }
    for step in [40, 100, 1_000, 10_000] {
        target.step_to(step)?;
    }
    Ok(Tally { read: target.read, taken: target.taken, sizes: target.server.sizes() })
}

/// Plays conversations until one fails or `go_on` returns false. Returns their number and totals.
fn fuzz(seed: u64, go_on: impl Fn(u64) -> bool) -> Result<(u64, Tally), (u64, String)> {
    let corpus = corpus();
    let (mut tally, mut round) = (Tally::default(), 0);
    while go_on(round) {
        let (checksum, packets) = &corpus[round as usize % corpus.len()];
        let mut stream = RandomStream::new(seed, &["ingress", &round.to_string()]);
        let outcome =
            catch_unwind(AssertUnwindSafe(|| play(*checksum, packets, &mut stream, false)));
        let outcome = outcome.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("a panic: {}", text.unwrap_or("without words")))
        });
        tally.add(&outcome.map_err(|broken| (round, broken))?);
        round += 1;
    }
    Ok((round, tally))
}

/// F18: the unchanged corpus consists of valid conversations, including routers' messages.
#[cfg(not(feature = "planted-bugs"))]
#[test]
fn the_corpus_is_understood() {
    if std::env::var_os("PLAIT_BLESS").is_some() {
        fs::create_dir_all(corpus_dir()).unwrap();
        for name in CONVERSATIONS {
            for (number, (step, packet)) in converse(name).iter().enumerate() {
                let file = format!("{name}-{number:02}-{step:02}.bin");
                fs::write(corpus_dir().join(file), packet).unwrap();
            }
        }
    }
    // The same conversations as libFuzzer reads them.
    for (name, (checksum, packets)) in CONVERSATIONS.iter().zip(corpus()) {
        let file = corpus_dir().join(format!("../endpoint/{name}.bin"));
        let whole = join(checksum, &packets);
        if std::env::var_os("PLAIT_BLESS").is_some() {
            fs::write(&file, &whole).unwrap();
        }
        assert_eq!(fs::read(&file).unwrap(), whole, "{name}");
        assert_eq!(play_whole(&whole), Ok(3_000), "{name}");
    }
    let mut shapes = std::collections::BTreeSet::new();
    for (name, (checksum, packets)) in CONVERSATIONS.iter().zip(corpus()) {
        assert!(packets.len() >= 8, "{} packets", packets.len());
        let mut target = Target::new(checksum);
        for (step, packet) in &packets {
            target.step_to(*step).unwrap();
            target.play(packet).unwrap();
            let mptcp = target.segment.options.mptcp.as_deref();
            shapes.extend(mptcp.map(|it| format!("{it:?}").chars().take(6).collect::<String>()));
        }
        assert_eq!(target.taken as usize, packets.len());
        assert_eq!((target.accepted.len(), target.read), (1, 3_000));
        let Sizes { too_big_believed, lowered_as_told, .. } = target.server.sizes();
        let told = if *name == "narrow" { 2 } else { 0 };
        assert_eq!((too_big_believed, lowered_as_told), (told, told));
    }
    println!("{shapes:?}");
    assert!(shapes.len() >= 6, "{shapes:?}");
}

/// F18, S6: no packets break an endpoint.
#[cfg(not(feature = "planted-bugs"))]
#[test]
fn no_packets_break_an_endpoint() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let seconds = number("PLAIT_FUZZ_SECONDS");
    #[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "asked for")]
    let started = std::time::Instant::now();
    let go_on = |round: u64| match seconds {
        Some(seconds) => !round.is_multiple_of(100) || started.elapsed().as_secs() < seconds,
        None => round < 720_000,
    };
    let seed = number("PLAIT_SEED").unwrap_or(1);
    if let Some(round) = number("PLAIT_ROUND") {
        let corpus = corpus();
        let (checksum, packets) = &corpus[round as usize % corpus.len()];
        let mut stream = RandomStream::new(seed, &["ingress", &round.to_string()]);
        return play(*checksum, packets, &mut stream, true).map(drop).unwrap();
    }
    let outcome = fuzz(seed, go_on);
    let (rounds, Tally { read, taken, sizes }) =
        outcome.unwrap_or_else(|(round, broken)| panic!("conversation {round}: {broken}"));
    println!("{rounds} conversations, {taken} packets, {read} bytes read, {sizes:?}");
    // Not all changed packets are rejected by the codec, and not all correct data is lost.
    assert!(taken > 8 * rounds && read > 1_000 * rounds, "{taken} packets, {read} bytes");
    // Routers' messages are processed, whether believed or not.
    let Sizes { too_big_believed, too_big_refused, lowered_as_told, .. } = sizes;
    let least = rounds / 20;
    assert!(
        too_big_believed.min(lowered_as_told) > least && too_big_refused > least / 10,
        "{sizes:?}"
    );
}

/// Tests the test: it finds planted bugs in the parser, and one in an endpoint's processing of
/// segments.
#[cfg(feature = "planted-bugs")]
#[test]
fn planted_bugs_are_found() {
    use plait_core::planted as core;
    use plait_wire::planted as wire;
    const {
        assert!(
            core::IN_PLACE,
            "build it in the tree with the patch: `tests/planted cargo test ...`"
        );
    };
    let find = |name: &str| match fuzz(1, |round| round < 4_000) {
        Err((round, broken)) => println!("{name}: conversation {round}: {broken}"),
        Ok((rounds, ..)) => panic!("{name} was not found in {rounds} conversations"),
    };
    core::plant(Some(core::Planted::WindowMovesLeft));
    find("WindowMovesLeft");
    core::plant(None);
    wire::plant(Some(wire::Planted::DataOffset));
    find("DataOffset");
    wire::plant(None);
}
