//! SYN cookies (RFC 4987 section 3.6): while the table of half-open connections is full, a SYN is
//! answered without state. The third ACK returns everything the server needs later:
//!
//! * The initial sequence number is a signature of the client's address, both ports and the client's
//!   initial sequence number. Its lowest bits hold the MSS and the age.
//! * The lowest bits of the timestamp hold window scale, SACK and whether MP_CAPABLE was offered. Without
//!   timestamps there is neither scaling nor SACK.
//! * The key of Multipath TCP is taken from the same signature. The third ACK, or the first data, repeats
//!   it beside the client's key (RFC 8684 section 3.1).
//!
//! A cookie is valid until the end of the period after its own, for 128 s at most. Each period has a new
//! secret.

use crate::context::Context;
use crate::endpoint::{Endpoint, KnownSubflow};
use crate::paths::handshake::{Opening, SynRequest, syn_request};
use crate::spec::{ConnectionSpec, ConnectionState};
use crate::tcp::address::Address;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::net::{IpAddr, Ipv6Addr};
use plait_base::{PathId, SubflowId, Time};
use plait_wire::{Flags, Key, MpCapable, Mptcp, Options, Secret, Segment, Timestamps, WireSeq};

/// Lifetime of one secret in seconds.
const PERIOD_S: u64 = 64;
/// The MSS values that a cookie can hold, in bytes. A smaller MSS counts as the first.
const MSS_BYTES: [u16; 8] = [256, 536, 1_220, 1_300, 1_400, 1_440, 1_460, 8_940];
/// Bits of the initial sequence number for the index into [`MSS_BYTES`], and one for the period.
const MSS_BITS: u32 = 3;
const LOW_BITS: u32 = MSS_BITS + 1;
/// Bits of a timestamp that hold options.
const STAMP_BITS: u32 = 6;
/// Window shift of a peer without window scaling. No real shift is as large.
const NO_SCALE: u32 = 15;
const SACK: u32 = 1 << 4;
const MULTIPATH: u32 = 1 << 5;

/// The address of a client, as signed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client([u8; 16]);

impl Client {
    /// Returns the client that a path number identifies.
    pub(super) fn on(path: PathId) -> Client {
        Client(u128::from(path.0).to_be_bytes())
    }

    /// Returns the client with an address.
    pub(super) fn at(source: IpAddr) -> Client {
        Client(match source {
            IpAddr::V4(source) => source.to_ipv6_mapped().octets(),
            IpAddr::V6(source) => source.octets(),
        })
    }

    /// Returns the address of the client, if it has one and not only a path number. These numbers
    /// have 24 bits, and no client has an address below 2^32.
    pub(super) fn source(self) -> Option<IpAddr> {
        let address = u128::from_be_bytes(self.0);
        (address >> 32 > 0).then(|| Ipv6Addr::from(address).to_canonical())
    }
}

/// The secrets of this period and of the one before.
#[derive(Debug, Default)]
pub(super) struct Cookies {
    /// Indexed by the lowest bit of the number of the period.
    secrets: [Option<PeriodSecret>; 2],
}

/// The secret of one period.
#[derive(Debug)]
struct PeriodSecret {
    /// The number of the period.
    period: u64,
    secret: Secret,
}

/// The timestamp of a SYN, and the options of the SYN that the timestamp of its SYN/ACK holds.
#[derive(Clone, Copy)]
struct SynStamp {
    value: u32,
    bits: u32,
}

/// The signed values.
#[derive(Clone, Copy, Debug)]
struct Subject {
    client: Client,
    address: Address,
    /// The client's initial sequence number.
    irs: WireSeq,
}

/// A cookie and its key.
#[derive(Clone, Copy, Debug)]
struct Cookie {
    iss: WireSeq,
    key: Key,
    mss: u16,
}

fn period(now: Time) -> u64 {
    now.as_nanos() / (PERIOD_S * 1_000_000_000)
}

impl Subject {
    /// Returns the cookie signed by `secret`. `low` are its lowest bits.
    fn sign(&self, secret: &Secret, low: u32) -> Cookie {
        let Address { local_port, remote_port, .. } = self.address;
        let server = self.address.server();
        let (client, server, low_byte) = (&self.client.0, &[server.0], &[low as u8]);
        let (local, remote) = (&local_port.to_be_bytes(), &remote_port.to_be_bytes());
        let hash =
            secret.sign(&[client, server, local, remote, &self.irs.0.to_be_bytes(), low_byte]);
        let word =
            |at: usize| hash[at..at + 4].iter().fold(0, |word, it| word << 8 | u32::from(*it));
        let key = Key(u64::from(word(4)) << 32 | u64::from(word(8)));
        let mss = MSS_BYTES[(low >> 1) as usize % MSS_BYTES.len()];
        Cookie { iss: WireSeq(word(0) << LOW_BITS | low), key, mss }
    }
}

impl Cookies {
    /// Returns true if a cookie that is still valid may have been sent.
    fn in_use(&self, now: Time) -> bool {
        let valid = |it: &PeriodSecret| it.period + 1 >= period(now);
        self.secrets.iter().flatten().any(valid)
    }

    /// Returns a cookie for a SYN with the MSS `mss`.
    fn make(&mut self, ctx: &mut Context<'_>, subject: &Subject, mss: u16) -> Cookie {
        let now = period(ctx.now);
        let slot = &mut self.secrets[(now & 1) as usize];
        let secret = match slot {
            Some(it) if it.period == now => it.secret,
            _ => {
                let secret = Secret::new([(); 4].map(|()| ctx.draw()));
                slot.insert(PeriodSecret { period: now, secret }).secret
            }
        };
        let index = MSS_BYTES.iter().rposition(|it| *it <= mss).unwrap_or(0);
        subject.sign(&secret, (index as u32) << 1 | (now & 1) as u32)
    }

    /// Returns the cookie with the initial sequence number `iss`, if it is valid.
    fn verify(&self, now: Time, subject: &Subject, iss: WireSeq) -> Option<Cookie> {
        let low = iss.0 & ((1 << LOW_BITS) - 1);
        let it = self.secrets[(low & 1) as usize].as_ref()?;
        let cookie = subject.sign(&it.secret, low);
        (it.period + 1 >= period(now) && cookie.iss == iss).then_some(cookie)
    }
}

/// Returns the options of the SYN that the timestamp of its SYN/ACK holds.
fn stamp_bits(syn: &Segment) -> u32 {
    let scale = syn.options.window_scale.map_or(NO_SCALE, |scale| u32::from(scale.min(14)));
    let sack = if syn.options.sack_permitted { SACK } else { 0 };
    let multipath = if syn_request(syn) == SynRequest::Multipath { MULTIPATH } else { 0 };
    scale | sack | multipath
}

/// Returns the latest timestamp up to `value` whose lowest bits are `bits`.
fn stamp(value: u32, bits: u32) -> u32 {
    let mask = (1 << STAMP_BITS) - 1;
    let late = value & mask < bits;
    (value & !mask | bits).wrapping_sub(if late { 1 << STAMP_BITS } else { 0 })
}

/// Returns the SYN as reconstructed from the third ACK. Its options come from the bits of its
/// timestamp, if it has any. `capable` is its MP_CAPABLE.
fn recalled(
    segment: &Segment,
    stamps: Option<SynStamp>,
    mss: u16,
    capable: Option<MpCapable>,
) -> Segment {
    let bits = stamps.map_or(NO_SCALE, |it| it.bits);
    let scale = bits & 0xf;
    let options = Options {
        mss: Some(mss),
        window_scale: (scale != NO_SCALE).then_some(scale as u8),
        sack_permitted: bits & SACK != 0,
        timestamps: stamps.map(|it| Timestamps { value: it.value, echo: 0 }),
        mptcp: capable.map(|it| Box::new(Mptcp::Capable(it))),
        ..Options::default()
    };
    Segment {
        src_port: segment.src_port,
        dst_port: segment.dst_port,
        seq: segment.seq,
        flags: Flags::SYN,
        server: segment.server,
        window: segment.window,
        options,
        ..Segment::default()
    }
}

/// Returns the MP_CAPABLE of a segment.
fn capable(segment: &Segment) -> Option<MpCapable> {
    match segment.options.mptcp.as_deref() {
        Some(Mptcp::Capable(capable)) => Some(capable.clone()),
        _ => None,
    }
}

impl Endpoint {
    /// Answers a SYN with a cookie and keeps no state.
    #[cold]
    pub(super) fn answer_without_state(
        &mut self,
        now: Time,
        client: Client,
        spec: &Arc<ConnectionSpec>,
        address: Address,
        syn: &Segment,
    ) {
        let mut ctx = self.shared.context(now, self.connections.next_id());
        let subject = Subject { client, address, irs: WireSeq(syn.seq) };
        let mss = syn.options.mss.unwrap_or(spec.config.packets.unsaid_mss);
        let Cookie { iss, key, mss } = self.cookies.make(&mut ctx, &subject, mss);
        // The token of an existing connection cannot name a second one (RFC 8684 section 3.1).
        let unique = ctx.is_unique(key);
        let offered = capable(syn).filter(|_| unique);
        let bits = stamp_bits(syn);
        let stamps = syn.options.timestamps.map(|it| SynStamp { value: it.value, bits });
        let recalled = recalled(syn, stamps, mss, offered);
        let opening = Opening::Stateless { address, syn: &recalled, iss };
        let mut conn = super::Connection::open(Arc::clone(spec), key, &opening, &mut ctx);
        let mut answer = conn.take_syn_ack(now);
        if let Some(stamps) = &mut answer.segment.options.timestamps {
            stamps.value = stamp(stamps.value, bits);
        }
        self.shared.counters.on_cookie_sent();
        self.answers.push_back(answer);
    }

    /// Opens the connection of a SYN that was answered with a cookie, if `segment` is its third
    /// ACK. Returns false otherwise.
    #[cold]
    pub(super) fn completes_handshake(
        &mut self,
        now: Time,
        client: Client,
        address: Address,
        segment: &Segment,
    ) -> bool {
        let spec = self.listeners.get(&address.local_port);
        let Some(spec) = spec.filter(|_| segment.flags.has(Flags::ACK) && self.cookies.in_use(now))
        else {
            return false;
        };
        let spec = Arc::clone(spec);
        let subject = Subject { client, address, irs: WireSeq(segment.seq.wrapping_sub(1)) };
        let cookie = self.cookies.verify(now, &subject, WireSeq(segment.ack.wrapping_sub(1)));
        let told = capable(segment);
        let right = |cookie: &Cookie| {
            let free = !self.shared.tokens.contains_key(&cookie.key.token());
            told.as_ref().is_none_or(|told| told.receiver_key == Some(cookie.key) && free)
        };
        let Some(Cookie { iss, key, mss }) = cookie.filter(right) else {
            self.shared.counters.on_cookie_refused();
            return false;
        };
        if self.full {
            self.shared.counters.on_turned_away();
            return false;
        }
        let bits = |echo: u32| echo & ((1 << STAMP_BITS) - 1);
        let stamps = segment.options.timestamps;
        let stamps = stamps.map(|it| SynStamp { value: it.value, bits: bits(it.echo) });
        let offered = stamps.is_some_and(|it| it.bits & MULTIPATH != 0);
        let syn_option = |told: MpCapable| MpCapable {
            sender_key: None,
            receiver_key: None,
            data_len: None,
            checksum: None,
            ..told
        };
        let offer = told.map(syn_option).or(offered.then(MpCapable::default));
        let mut syn = recalled(segment, stamps, mss, offer);
        syn.seq = subject.irs.0;
        // The window of the ACK is scaled, that of a SYN is not.
        let scale = syn.options.window_scale.unwrap_or(0).min(14);
        syn.window = (u32::from(segment.window) << scale).min(0xffff) as u16;
        self.shared.name_client(address.path(), subject.client.source());
        let conn = self.with_context(now, |ctx| {
            let opening = Opening::Stateless { address, syn: &syn, iss };
            let mut conn = super::Connection::open(spec, key, &opening, ctx);
            // The state after the SYN/ACK was sent.
            conn.take_syn_ack(now);
            conn
        });
        self.shared.counters.on_cookie_accepted();
        let id = self.add(now, conn);
        let known = KnownSubflow { conn: id, subflow: SubflowId::FIRST };
        self.handle_known(now, known, address, segment);
        if self.connections.find(id).is_some_and(|it| it.state() == ConnectionState::Connecting) {
            // This segment follows the third ACK, which the client will retransmit.
            self.forget(id);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A timestamp is never ahead of the clock, and less than 64 ms behind it.
    #[test]
    fn a_timestamp_holds_six_bits() {
        for value in [0, 1, 63, 64, 1_000, u32::MAX] {
            for bits in 0..64 {
                let stamp = stamp(value, bits);
                assert_eq!(stamp & 63, bits);
                assert!(value.wrapping_sub(stamp) < 64, "{value} {bits}");
            }
        }
    }

    /// The reconstructed MSS is at most the one in the SYN.
    #[test]
    fn the_mss_is_rounded_down() {
        let of = |mss: u16| MSS_BYTES.iter().rposition(|it| *it <= mss).map(|at| MSS_BYTES[at]);
        assert_eq!([of(1_459), of(1_460), of(65_535)], [Some(1_440), Some(1_460), Some(8_940)]);
        assert_eq!([of(256), of(255)], [Some(256), None]);
        assert!(MSS_BYTES.len() <= 1 << MSS_BITS);
    }
}
