//! Packets made by mutation of other packets.

use plait_base::RandomStream;
use plait_wire::Sum;

/// Numbers at the limits of parsers.
const ODD: [u8; 12] = [0, 1, 2, 3, 4, 7, 8, 12, 30, 0x7f, 0x80, 0xff];
/// SYN, SYN/ACK, ACK, PSH/ACK, RST, RST/ACK, FIN/ACK, and an invalid combination.
const FLAGS: [u8; 8] = [0x02, 0x12, 0x10, 0x18, 0x04, 0x14, 0x11, 0xff];

/// A packet split into its parts.
#[derive(Clone)]
struct Parts {
    ip: Vec<u8>,
    tcp: Vec<u8>,
    options: Vec<u8>,
    payload: Vec<u8>,
}

/// Generates packets; the same seed gives the same packets.
pub(crate) struct Mutator {
    stream: RandomStream,
    corpus: Vec<Parts>,
    packet: Vec<u8>,
}

impl Mutator {
    pub(crate) fn new(seed: u64, corpus: &[Vec<u8>]) -> Mutator {
        let corpus = corpus.iter().map(|packet| Parts::of(packet)).collect();
        Mutator { stream: RandomStream::new(seed, &["fuzz"]), corpus, packet: Vec::new() }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.stream.below(bound.max(1) as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn byte(&mut self) -> u8 {
        if self.one_in(2) { ODD[self.below(ODD.len())] } else { self.stream.bits() as u8 }
    }

    fn any(&mut self) -> Parts {
        let index = self.below(self.corpus.len());
        self.corpus[index].clone()
    }

    /// Returns the next packet.
    pub(crate) fn next(&mut self) -> &[u8] {
        let mut parts = self.any();
        if self.one_in(3) {
            parts.ip = self.any().ip;
        }
        for _ in 0..self.below(4) {
            self.change_options(&mut parts.options);
        }
        if self.one_in(3) {
            parts.tcp[13] = FLAGS[self.below(FLAGS.len())];
        }
        parts.options.truncate(40);
        if !self.one_in(16) {
            parts.options.resize(parts.options.len().div_ceil(4) * 4, 0);
        }
        self.assemble(&parts);
        if self.one_in(24) {
            self.quote();
        }
        self.damage();
        &self.packet
    }

    fn change_options(&mut self, options: &mut Vec<u8>) {
        let len = options.len();
        match self.below(7) {
            0 => options.extend(self.any().options),
            1 => {
                let other = self.any().options;
                options.splice(0..0, other);
            }
            // One bit of one byte, most likely of a kind, a length or flags.
            2 if len > 0 => {
                let at = self.below(len);
                options[at] ^= 1 << self.below(8);
            }
            3 if len > 0 => {
                let at = self.below(len);
                options[at] = self.byte();
            }
            4 if len > 0 => {
                options.remove(self.below(len));
            }
            5 => {
                let at = self.below(len + 1);
                let byte = self.byte();
                options.insert(at, byte);
            }
            _ => options.truncate(self.below(len + 1)),
        }
    }

    /// Joins the parts, with correct lengths and a correct checksum of the IPv4 header. Damage comes later.
    fn assemble(&mut self, parts: &Parts) {
        let words = 5 + parts.options.len() / 4;
        self.packet.clear();
        self.packet.extend_from_slice(&parts.ip);
        self.packet.extend_from_slice(&parts.tcp);
        self.packet.extend_from_slice(&parts.options);
        self.packet.extend_from_slice(&parts.payload);
        self.packet[parts.ip.len() + 12] = (words as u8) << 4;
        let len = self.packet.len();
        if parts.ip[0] >> 4 == 4 {
            self.packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            mend_v4(&mut self.packet);
        } else {
            self.packet[4..6].copy_from_slice(&(len as u16 - 40).to_be_bytes());
        }
    }

    /// Quotes the packet in an ICMP error of a router.
    fn quote(&mut self) {
        let v6 = self.packet[0] >> 4 == 6;
        let (header, most) = if v6 { (40, 1_232) } else { (20, 548) };
        let quoted = self.packet.len().min(8 + self.below(most));
        // Its IP header is that of the packet; the addresses do not matter.
        let mut said = self.packet[..header].to_vec();
        said.extend(if v6 { [2, 0, 0, 0, 0, 0] } else { [3, 4, 0, 0, 0, 0] });
        said.extend((self.stream.bits() as u16).to_be_bytes());
        said.extend(&self.packet[..quoted]);
        let (len, body) = (said.len() as u16, said.len() - header);
        let mut sum = Sum::default();
        if v6 {
            said[4..6].copy_from_slice(&(body as u16).to_be_bytes());
            said[6] = 58;
            sum.add(&said[8..40]);
            sum.add(&(body as u32).to_be_bytes());
            sum.add(&[0, 58]);
        } else {
            (said[0], said[9]) = (0x45, 1);
            said[2..4].copy_from_slice(&len.to_be_bytes());
            mend_v4(&mut said);
        }
        sum.add(&said[header..]);
        said[header + 2..header + 4].copy_from_slice(&sum.checksum().to_be_bytes());
        self.packet = said;
    }

    /// Sometimes changes bytes of the headers, and sometimes the end of the packet.
    fn damage(&mut self) {
        if self.one_in(4) {
            for _ in 0..=self.below(3) {
                let reach = self.packet.len().min(84);
                let at = self.below(reach);
                self.packet[at] = self.byte();
            }
            // With a wrong checksum the parser would stop at the IPv4 header.
            if self.packet[0] >> 4 == 4 && !self.one_in(4) {
                mend_v4(&mut self.packet);
            }
        }
        if self.one_in(24) {
            let keep = self.below(self.packet.len() + 1);
            self.packet.truncate(keep);
        }
    }
}

impl Parts {
    /// Splits a valid packet.
    fn of(packet: &[u8]) -> Parts {
        let byte = |at: usize| usize::from(packet[at]);
        let mut tcp = if byte(0) >> 4 == 4 { (byte(0) & 15) * 4 } else { 40 };
        let mut next = if byte(0) >> 4 == 4 { 6 } else { byte(6) };
        while next != 6 {
            (next, tcp) = (byte(tcp), tcp + 8 + 8 * byte(tcp + 1));
        }
        let payload = tcp + (byte(tcp + 12) >> 4) * 4;
        Parts {
            ip: packet[..tcp].to_vec(),
            tcp: packet[tcp..tcp + 20].to_vec(),
            options: packet[tcp + 20..payload].to_vec(),
            payload: packet[payload..].to_vec(),
        }
    }
}

/// Corrects the checksum of an IPv4 header, whose length the packet gives.
fn mend_v4(packet: &mut [u8]) {
    let len = usize::from(packet[0] & 15) * 4;
    if len < 20 || packet.len() < len {
        return;
    }
    packet[10..12].fill(0);
    let mut sum = Sum::default();
    sum.add(&packet[..len]);
    packet[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
}
