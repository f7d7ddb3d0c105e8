//! A middlebox that removes MPTCP options. It has its own packet parser, so that it shares no bug with the
//! stack under test.

/// The kind of MPTCP options.
const MPTCP: u8 = 30;
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// The segments from which the middlebox removes MPTCP options, or another change to them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Strip {
    /// None.
    #[default]
    Nothing,
    /// SYNs.
    Syn,
    /// SYN/ACKs.
    SynAck,
    /// All segments except SYNs and SYN/ACKs.
    AfterSyn,
    /// Segments with data, except SYNs.
    Data,
    /// None. Instead, it damages the HMAC of every ADD_ADDR.
    AddressProof,
}

impl Strip {
    /// Replaces the options by no-operations if the packet is such a segment, and corrects the checksum.
    pub(super) fn apply(self, packet: &mut [u8]) {
        if self != Strip::Nothing
            && let Some(tcp) = tcp_at(packet)
        {
            self.apply_to_tcp(&mut packet[tcp..]);
        }
    }

    fn wants(self, flags: u8, has_data: bool) -> bool {
        match self {
            Strip::Nothing => false,
            Strip::Syn => flags & (SYN | ACK) == SYN,
            Strip::SynAck => flags & (SYN | ACK) == SYN | ACK,
            Strip::AfterSyn => flags & SYN == 0,
            Strip::Data => flags & SYN == 0 && has_data,
            Strip::AddressProof => flags & SYN == 0,
        }
    }

    fn apply_to_tcp(self, tcp: &mut [u8]) {
        let header = usize::from(tcp.get(12).map_or(0, |byte| byte >> 4)) * 4;
        if header < 20 || header > tcp.len() || !self.wants(tcp[13], tcp.len() > header) {
            return;
        }
        let mut at = 20;
        while at < header {
            let len = match tcp[at] {
                0 => break,
                1 => 1,
                _ => tcp.get(at + 1).map_or(0, |len| usize::from(*len)),
            };
            if len == 0 || at + len > header {
                break;
            }
            if tcp[at] == MPTCP && self != Strip::AddressProof {
                blank(tcp, at, at + len);
            } else if tcp[at] == MPTCP && has_proof(&tcp[at..at + len]) {
                let last = at + len - 1;
                let damaged = tcp[last] ^ 1;
                put(tcp, last, damaged);
            }
            at += len;
        }
    }
}

/// Returns whether a packet is a segment with FIN.
pub(super) fn has_fin(packet: &[u8]) -> bool {
    tcp_at(packet).is_some_and(|tcp| packet[tcp + 13] & FIN != 0)
}

/// Returns whether a packet is the first segment of a TCP connection.
pub(super) fn is_syn(packet: &[u8]) -> bool {
    tcp_at(packet).is_some_and(|tcp| packet[tcp + 13] & (SYN | ACK) == SYN)
}

/// Returns whether an option is an ADD_ADDR with an HMAC, so not an echo.
fn has_proof(option: &[u8]) -> bool {
    // Four bytes of header, at least four of address, and eight of HMAC.
    option.len() >= 16 && option[2] == 0x30
}

/// Overwrites bytes with no-operations.
fn blank(tcp: &mut [u8], from: usize, to: usize) {
    (from..to).for_each(|at| put(tcp, at, 1));
}

/// Overwrites a byte, and updates the checksum (RFC 1624).
fn put(tcp: &mut [u8], at: usize, byte: u8) {
    let place = if at.is_multiple_of(2) { 8 } else { 0 };
    let mut sum = u32::from(!u16::from_be_bytes([tcp[16], tcp[17]]));
    sum += u32::from(!(u16::from(tcp[at]) << place)) + (u32::from(byte) << place);
    tcp[at] = byte;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    tcp[16..18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// Returns the offset of the TCP header. Returns `None` if the packet is not TCP or is too short.
fn tcp_at(packet: &[u8]) -> Option<usize> {
    match packet.first()? >> 4 {
        4 if *packet.get(9)? == 6 => Some(usize::from(packet[0] & 15) * 4),
        6 if *packet.get(6)? == 6 => Some(40),
        _ => None,
    }
    .filter(|at| packet.len() >= at + 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(bytes: &[u8]) -> u16 {
        let words = bytes.chunks(2).map(|two| match two {
            [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
            _ => u32::from(two[0]) << 8,
        });
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// A recorded SYN. Its MP_CAPABLE becomes four no-operations, and the sum of its words with the pseudo
    /// header does not change.
    #[test]
    fn a_syn_loses_its_option_and_keeps_its_sum() {
        let text = "45000040c0d540003f0664310a6201010a4d0102df1611514ced7aec00000000b002faf085af0000\
                    020405b40402080a74ea5476000000000103030a1e040101";
        let packet: Vec<u8> = (0..text.len() / 2)
            .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        let mut stripped = packet.clone();
        Strip::Syn.apply(&mut stripped);
        assert_eq!(stripped[60..], [1, 1, 1, 1]);
        assert_eq!(sum(&stripped[20..]), sum(&packet[20..]));
        assert_ne!(stripped[36..38], packet[36..38]);
        assert!(is_syn(&packet) && is_syn(&stripped));
        for other in
            [Strip::Nothing, Strip::SynAck, Strip::AfterSyn, Strip::Data, Strip::AddressProof]
        {
            let mut same = packet.clone();
            other.apply(&mut same);
            assert_eq!(same, packet, "{other:?}");
        }
    }

    /// An ADD_ADDR, its echo, and a DSS. Only the first has an HMAC.
    #[test]
    fn the_proof_of_an_address_is_damaged_and_the_sum_kept() {
        for (option, proved) in [
            ("1e103003 0a630002 01020304 05060708", true),
            ("1e083103 0a630002 01010101 01010101", false),
            ("1e0c2001 00000001 00000001 01010101", false),
        ] {
            let ip = "45000038 00004000 40060000 0a620101 0a630001";
            let tcp = "0050c001 00000001 00000002 90100100 abcd0000";
            let text: String = [ip, tcp, option].concat().split(' ').collect();
            let packet: Vec<u8> = (0..text.len() / 2)
                .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
                .collect();
            assert!(!is_syn(&packet), "{option}");
            let mut damaged = packet.clone();
            Strip::AddressProof.apply(&mut damaged);
            assert_eq!(damaged != packet, proved, "{option}");
            if proved {
                assert_eq!(damaged[40..55], packet[40..55]);
                assert_eq!(damaged[55], packet[55] ^ 1);
                assert_eq!(sum(&damaged[20..]), sum(&packet[20..]));
            }
        }
    }

    /// A SYN over IPv4 and over IPv6. Truncated packets and packets of other protocols do not change.
    #[test]
    fn what_is_no_tcp_or_cut_short_stays() {
        let all = [Strip::Syn, Strip::SynAck, Strip::AfterSyn, Strip::Data, Strip::AddressProof];
        let tcp: Vec<u8> = {
            let mut header = vec![0; 20];
            (header[12], header[13]) = (0x60, SYN);
            [header, vec![MPTCP, 4, 1, 1]].concat()
        };
        let v4 = [vec![0x45, 0, 0, 44, 0, 0, 0, 0, 64, 6], vec![0; 10], tcp.clone()].concat();
        let v6 = [vec![0x60, 0, 0, 0, 0, 24, 6, 64], vec![0; 32], tcp].concat();
        for (whole, protocol) in [(v4, 9), (v6, 6)] {
            assert!(is_syn(&whole) && !is_syn(&whole[..whole.len() - 5]));
            let mut answer = whole.clone();
            answer[whole.len() - 11] |= ACK;
            assert!(!is_syn(&answer));
            let mut changed = whole.clone();
            Strip::Syn.apply(&mut changed);
            assert_eq!(changed[whole.len() - 4..], [1, 1, 1, 1]);
            for strip in all {
                for len in 0..whole.len() {
                    let mut short = whole[..len].to_vec();
                    strip.apply(&mut short);
                    assert_eq!(short, whole[..len], "{strip:?}, {len} bytes");
                }
                for (at, byte) in [(protocol, 17), (protocol, 1), (0, 0x05), (0, 0x75)] {
                    let mut other = whole.clone();
                    other[at] = byte;
                    let before = other.clone();
                    strip.apply(&mut other);
                    assert_eq!(other, before, "{strip:?}, {byte:#x} at {at}");
                }
                // Parsing stops at an option that is longer than the rest of the header.
                let mut long = whole.clone();
                let last = long.len() - 3;
                long[last] = 5;
                let before = long.clone();
                strip.apply(&mut long);
                assert_eq!(long, before, "{strip:?}");
            }
        }
    }
}
