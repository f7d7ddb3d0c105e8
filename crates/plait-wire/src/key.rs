use core::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A connection key of one end (RFC 8684 section 3.1). It never appears in debug output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub u64);

impl Key {
    fn hash(self) -> [u8; 32] {
        Sha256::digest(self.0.to_be_bytes()).into()
    }

    /// The token that names the connection in MP_JOIN: the top 32 bits of SHA-256 of the key
    /// (RFC 8684 section 3.2).
    #[must_use]
    pub fn token(self) -> u32 {
        let hash = self.hash();
        u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
    }

    /// The initial data sequence number: the low 64 bits of SHA-256 of the key (RFC 8684 section
    /// 3.1). The first byte of data has the number after it.
    #[must_use]
    pub fn idsn(self) -> u64 {
        let hash = self.hash();
        hash[24..].iter().fold(0, |value, byte| (value << 8) | u64::from(*byte))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(token {:08x})", self.token())
    }
}

/// HMAC-SHA256 that the end with key `own` proves itself with in MP_JOIN: keyed by both keys, its
/// own first, over both nonces, its own first (RFC 8684 section 3.2).
#[must_use]
pub fn join_hmac(own: Key, peer: Key, own_nonce: u32, peer_nonce: u32) -> JoinHmac {
    let mut secret = [0u8; 16];
    secret[..8].copy_from_slice(&own.0.to_be_bytes());
    secret[8..].copy_from_slice(&peer.0.to_be_bytes());
    let mut message = [0u8; 8];
    message[..4].copy_from_slice(&own_nonce.to_be_bytes());
    message[4..].copy_from_slice(&peer_nonce.to_be_bytes());
    let mut mac = match Hmac::<Sha256>::new_from_slice(&secret) {
        Ok(mac) => mac,
        // HMAC takes keys of any length, so there is no error to hand on.
        Err(_) => return JoinHmac([0; 32]),
    };
    mac.update(&message);
    JoinHmac(mac.finalize().into_bytes().into())
}

/// A full HMAC-SHA256 and the parts of it that MP_JOIN carries.
#[derive(Clone, Copy)]
pub struct JoinHmac([u8; 32]);

impl JoinHmac {
    /// Leftmost 64 bits, for the SYN/ACK.
    #[must_use]
    pub fn left64(&self) -> u64 {
        self.0[..8].iter().fold(0, |value, byte| (value << 8) | u64::from(*byte))
    }

    /// Leftmost 160 bits, for the third ACK.
    #[must_use]
    pub fn left160(&self) -> [u8; 20] {
        let mut left = [0; 20];
        left.copy_from_slice(&self.0[..20]);
        left
    }

    /// Whether a received 64-bit value is right, in constant time.
    #[must_use]
    pub fn matches64(&self, received: u64) -> bool {
        self.0[..8].ct_eq(&received.to_be_bytes()).into()
    }

    /// Whether a received 160-bit value is right, in constant time.
    #[must_use]
    pub fn matches160(&self, received: &[u8; 20]) -> bool {
        self.0[..20].ct_eq(received).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R17: keys, tokens and IDSNs that a stock Linux 6.18 confirmed.
    #[test]
    fn golden_tokens_and_idsns() {
        let key = Key(0x683e_36b2_5f2d_bc92);
        assert_eq!(key.token(), 0x09e0_8e65);
        assert_eq!(key.idsn(), 0xf61f_2d04_eccc_e7a7);
        let key = Key(0x7396_2198_d473_a3d9);
        assert_eq!(key.token(), 0x4819_dd7b);
        assert_eq!(key.idsn(), 0xeff7_0ab6_ed80_8c0c);
    }
}
