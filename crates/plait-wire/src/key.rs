use core::fmt;
use core::net::IpAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A data sequence number as on the wire, all 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WireDsn(pub u64);

impl WireDsn {
    /// Returns the number `bytes` later.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> WireDsn {
        WireDsn(self.0.wrapping_add(bytes))
    }

    /// Returns the number of bytes since `first`.
    #[must_use]
    pub const fn since(self, first: WireDsn) -> u64 {
        self.0.wrapping_sub(first.0)
    }

    /// Returns the low 32 bits.
    #[must_use]
    pub const fn low(self) -> u32 {
        self.0 as u32
    }

    /// Returns what a field of a DSS has of it: all 64 bits if the field is `long`, or else the low 32.
    #[must_use]
    pub const fn field(self, long: bool) -> WireDsn {
        if long { self } else { WireDsn(self.low() as u64) }
    }
}

/// A subflow sequence number as on the wire (RFC 9293 section 3.4). It wraps, so it has no order.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WireSeq(pub u32);

impl WireSeq {
    /// Returns the number `count` later.
    #[must_use]
    pub const fn plus(self, count: u32) -> WireSeq {
        WireSeq(self.0.wrapping_add(count))
    }

    /// Returns how much later it is than `first`.
    #[must_use]
    pub const fn since(self, first: WireSeq) -> u32 {
        self.0.wrapping_sub(first.0)
    }

    /// Returns true if it is before `other`: `other` is at most half of the space later.
    #[must_use]
    pub const fn is_before(self, other: WireSeq) -> bool {
        self.since(other) >= 1 << 31
    }
}

/// A connection key of one end (RFC 8684 section 3.1). Debug output never shows it. Keys are compared
/// in constant time.
#[derive(Clone, Copy, Eq)]
pub struct Key(pub u64);

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Key {
    fn hash(self) -> [u8; 32] {
        Sha256::digest(self.0.to_be_bytes()).into()
    }

    /// Returns the token that identifies the connection in MP_JOIN: the top 32 bits of SHA-256 of the
    /// key (RFC 8684 section 3.2).
    #[must_use]
    pub fn token(self) -> u32 {
        let hash = self.hash();
        u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
    }

    /// Returns the initial data sequence number: the low 64 bits of SHA-256 of the key (RFC 8684
    /// section 3.1). The first byte of data has the next number.
    #[must_use]
    pub fn idsn(self) -> WireDsn {
        let hash = self.hash();
        WireDsn(number(&hash[24..]))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(token {:08x})", self.token())
    }
}

/// Returns the HMAC-SHA256 by which the end with key `own` authenticates itself in MP_JOIN (RFC 8684
/// section 3.2). The HMAC key is `own`, then `peer`; the message is `own_nonce`, then `peer_nonce`.
#[must_use]
pub fn join_hmac(own: Key, peer: Key, own_nonce: u32, peer_nonce: u32) -> JoinHmac {
    JoinHmac(hmac(own, peer, &[&own_nonce.to_be_bytes(), &peer_nonce.to_be_bytes()]))
}

/// Returns the rightmost 64 bits of the HMAC-SHA256 of an ADD_ADDR (RFC 8684 section 3.4.1).
///
/// The HMAC key is the sender's key `own`, then `peer`. The message is address identifier, address and
/// port; the port is zero if absent. Compare a received value with [`add_addr_hmac_matches`].
#[must_use]
pub fn add_addr_hmac(own: Key, peer: Key, id: u8, address: IpAddr, port: Option<u16>) -> u64 {
    let port = port.unwrap_or(0).to_be_bytes();
    let full = match address {
        IpAddr::V4(address) => hmac(own, peer, &[&[id], &address.octets(), &port]),
        IpAddr::V6(address) => hmac(own, peer, &[&[id], &address.octets(), &port]),
    };
    number(&full[24..])
}

/// Returns true if `received` equals `expected`; takes constant time.
#[must_use]
pub fn add_addr_hmac_matches(expected: u64, received: u64) -> bool {
    expected.ct_eq(&received).into()
}

/// Returns the HMAC-SHA256 of the parts of a message, keyed by `own` and `peer`.
fn hmac(own: Key, peer: Key, message: &[&[u8]]) -> [u8; 32] {
    let mut secret = [0u8; 16];
    secret[..8].copy_from_slice(&own.0.to_be_bytes());
    secret[8..].copy_from_slice(&peer.0.to_be_bytes());
    keyed_hash(&secret, message)
}

/// A secret that never leaves its endpoint. Only this endpoint can verify its signatures.
#[derive(Clone, Copy)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Makes a secret of 256 random bits.
    #[must_use]
    pub fn new(random: [u64; 4]) -> Secret {
        let mut bytes = [0; 32];
        for (part, word) in bytes.chunks_exact_mut(8).zip(random) {
            part.copy_from_slice(&word.to_be_bytes());
        }
        Secret(bytes)
    }

    /// Returns the HMAC-SHA256 of the concatenated parts of a message.
    #[must_use]
    pub fn sign(&self, message: &[&[u8]]) -> [u8; 32] {
        keyed_hash(&self.0, message)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Returns the HMAC-SHA256 of the concatenated parts of a message.
fn keyed_hash(secret: &[u8], message: &[&[u8]]) -> [u8; 32] {
    let mut mac = match Hmac::<Sha256>::new_from_slice(secret) {
        Ok(mac) => mac,
        // HMAC accepts keys of any length, so this never fails.
        Err(_) => return [0; 32],
    };
    for part in message {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Converts big-endian bytes, at most eight, to a number.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte))
}

/// A full HMAC-SHA256, of which MP_JOIN carries parts.
#[derive(Clone, Copy)]
pub struct JoinHmac([u8; 32]);

impl JoinHmac {
    /// Returns the leftmost 64 bits, for the SYN/ACK.
    #[must_use]
    pub fn left64(&self) -> u64 {
        number(&self.0[..8])
    }

    /// Returns the leftmost 160 bits, for the third ACK.
    #[must_use]
    pub fn left160(&self) -> [u8; 20] {
        let mut left = [0; 20];
        left.copy_from_slice(&self.0[..20]);
        left
    }

    /// Returns true if a received 64-bit value matches; takes constant time.
    #[must_use]
    pub fn matches64(&self, received: u64) -> bool {
        self.0[..8].ct_eq(&received.to_be_bytes()).into()
    }

    /// Returns true if a received 160-bit value matches; takes constant time.
    #[must_use]
    pub fn matches160(&self, received: &[u8; 20]) -> bool {
        self.0[..20].ct_eq(received).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;

    /// R17: keys, tokens and IDSNs that a stock Linux 6.18 confirmed.
    #[test]
    fn golden_tokens_and_idsns() {
        let key = Key(0x683e_36b2_5f2d_bc92);
        assert_eq!(key.token(), 0x09e0_8e65);
        assert_eq!(key.idsn().0, 0xf61f_2d04_eccc_e7a7);
        let key = Key(0x7396_2198_d473_a3d9);
        assert_eq!(key.token(), 0x4819_dd7b);
        assert_eq!(key.idsn().0, 0xeff7_0ab6_ed80_8c0c);
    }

    const SERVER: Key = Key(0x683e_36b2_5f2d_bc92);
    const CLIENT: Key = Key(0x7396_2198_d473_a3d9);

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        core::array::from_fn(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap())
    }

    /// R21: the MP_JOIN of a stock Linux 6.18 with these keys, client nonce f9391820 and server
    /// nonce ceeca092. The full values are from an independent HMAC implementation.
    #[test]
    fn golden_join_hmacs() {
        let server = join_hmac(SERVER, CLIENT, 0xceec_a092, 0xf939_1820);
        assert_eq!(
            server.0,
            bytes("2f9fde68e23635461005496d373d21732e3402c28af57d3680203627876ff477")
        );
        assert_eq!(server.left64(), 0x2f9f_de68_e236_3546);
        let client = join_hmac(CLIENT, SERVER, 0xf939_1820, 0xceec_a092);
        assert_eq!(
            client.0,
            bytes("762cdba99df52c78fed0a4bc79bd969ef39a5bac70ea3cdca2dedbe7590410e3")
        );
        assert_eq!(client.left160(), bytes("762cdba99df52c78fed0a4bc79bd969ef39a5bac"));
    }

    /// R23: an HMAC is refused if any one bit is wrong.
    #[test]
    fn an_hmac_with_one_wrong_bit_is_refused() {
        let hmac = join_hmac(SERVER, CLIENT, 1, 2);
        assert!(hmac.matches64(hmac.left64()) && hmac.matches160(&hmac.left160()));
        for bit in 0..64 {
            assert!(!hmac.matches64(hmac.left64() ^ (1 << bit)));
        }
        for bit in 0..160 {
            let mut wrong = hmac.left160();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(!hmac.matches160(&wrong));
        }
        // Exchanged roles or exchanged nonces are refused as well.
        assert!(!join_hmac(CLIENT, SERVER, 1, 2).matches64(hmac.left64()));
        assert!(!join_hmac(SERVER, CLIENT, 2, 1).matches64(hmac.left64()));
    }

    /// R43: values from an independent HMAC implementation.
    #[test]
    fn golden_add_addr_hmacs() {
        let v4 = IpAddr::from([10, 77, 2, 2]);
        let v6 = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 2]);
        let plain = add_addr_hmac(SERVER, CLIENT, 2, v4, None);
        assert_eq!(plain, 0x3fdc_1272_ab68_df56);
        assert_eq!(add_addr_hmac(SERVER, CLIENT, 2, v4, Some(4433)), 0x1609_2419_8f49_774a);
        assert_eq!(add_addr_hmac(SERVER, CLIENT, 3, v6, None), 0x59ae_d012_60f4_9677);
        assert!(add_addr_hmac_matches(plain, plain));
        assert!(!add_addr_hmac_matches(plain, plain ^ 1));
    }

    #[test]
    fn debug_output_never_shows_a_key() {
        let shown = format!("{SERVER:?} {:?} {SERVER:#?}", Some(SERVER));
        assert!(shown.contains("09e08e65"));
        for secret in ["683e", "5f2d", "bc92", &SERVER.0.to_string()] {
            assert!(!shown.to_lowercase().contains(secret), "{shown}");
        }
    }

    /// Values from an independent HMAC implementation.
    #[test]
    fn golden_signatures() {
        let secret = Secret::new([0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f, 1, u64::MAX]);
        let whole = secret.sign(&[b"one", b"two"]);
        assert_eq!(whole, secret.sign(&[b"onetwo"]));
        assert_eq!(
            whole,
            bytes("ba3e55801b8e767a31d21a405c2f7b2cfc94c7daf1b91552aec22e87d3701de9")
        );
        assert_eq!(format!("{secret:?}"), "Secret");
    }

    #[test]
    fn keys_are_equal_when_all_their_bits_are() {
        assert_eq!(SERVER, Key(SERVER.0));
        assert!((0..64).all(|bit| SERVER != Key(SERVER.0 ^ (1 << bit))));
    }
}
