//! Encodes messages of nf_tables (`linux/netfilter/nf_tables.h`) for tables, chains and rules of address
//! translation.

use crate::netlink::{ACK, CREATE, EXCLUSIVE, HEADER_BYTES, REQUEST, VERDICT, attribute};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// NFNL_SUBSYS_NFTABLES.
const SUBSYSTEM: u16 = 10;
/// NFNL_MSG_BATCH_BEGIN and NFNL_MSG_BATCH_END.
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
/// NFT_MSG_NEWTABLE, NFT_MSG_NEWCHAIN and NFT_MSG_NEWRULE.
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;

/// NFT_MSG_GETGEN.
const ASK_GENERATION: u16 = SUBSYSTEM << 8 | 16;

/// NLM_F_APPEND.
const APPEND: u16 = 0x800;
/// NLA_F_NESTED.
const NESTED: u16 = 0x8000;

/// NFPROTO_UNSPEC, NFPROTO_INET, NFPROTO_IPV4 and NFPROTO_IPV6.
const ANY: u8 = 0;
const INET: u8 = 1;
const IPV4: u8 = 2;
const IPV6: u8 = 10;

/// NFT_TABLE_F_OWNER: the table belongs to the socket that creates it. Only that socket may change it, and
/// the kernel removes it with the socket (Linux 5.12).
const OWNER: u32 = 2;
/// Bytes of the name of a network device, with its closing zero (IFNAMSIZ).
const DEVICE_NAME_BYTES: usize = 16;
const TCP: u8 = 6;
/// RTN_LOCAL.
const LOCAL: u32 = 2;

/// Two registers of 16 bytes (NFT_REG_1 and NFT_REG_2).
const FIRST: u32 = 1;
const SECOND: u32 = 2;

/// The place at which packets are translated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Chain {
    /// Before routing, to change destinations.
    In,
    /// After routing, to change sources.
    Out,
}

impl Chain {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Chain::In => "in",
            Chain::Out => "out",
        }
    }

    /// Returns the hook (NF_INET_PRE_ROUTING, NF_INET_POST_ROUTING) and the priority (dstnat, srcnat).
    fn hook(self) -> (u32, i32) {
        match self {
            Chain::In => (0, -100),
            Chain::Out => (4, 100),
        }
    }
}

/// Messages that the kernel applies as one transaction.
#[derive(Debug)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    /// The subject of each message, for error texts, without the first message, which opens the batch.
    about: Vec<String>,
}

impl Batch {
    pub(crate) fn new() -> Batch {
        let mut batch = Batch { bytes: Vec::new(), about: Vec::new() };
        batch.put(BATCH_BEGIN, 0, ANY, SUBSYSTEM, &[]);
        batch
    }

    /// Creates a request that every kernel with nf_tables acknowledges. It changes nothing.
    pub(crate) fn question() -> Batch {
        let mut batch = Batch { bytes: Vec::new(), about: vec!["nf_tables".to_owned()] };
        batch.put(ASK_GENERATION, ACK, ANY, 0, &[]);
        batch
    }

    /// Adds a table that belongs to the socket that sends this batch.
    pub(crate) fn table(&mut self, table: &str) {
        let body = [text(1, table), number(2, OWNER)].concat();
        self.ask(format!("table {table}"), NEW_TABLE, CREATE | EXCLUSIVE, &body);
    }

    pub(crate) fn chain(&mut self, table: &str, chain: Chain) {
        let (hook, priority) = chain.hook();
        let hook = nested(4, &[number(1, hook), number(2, priority.cast_unsigned())]);
        let body = [text(1, table), text(3, chain.name()), hook, text(7, "nat")].concat();
        self.ask(format!("chain {}", chain.name()), NEW_CHAIN, CREATE, &body);
    }

    /// Adds a rule at the end of a chain. `about` is its text for error messages.
    pub(crate) fn rule(
        &mut self,
        table: &str,
        chain: Chain,
        expressions: &[Vec<u8>],
        about: String,
    ) {
        let body = [text(1, table), text(2, chain.name()), nested(4, expressions)].concat();
        self.ask(about, NEW_RULE, CREATE | APPEND, &body);
    }

    /// Closes the batch.
    pub(crate) fn end(&mut self) {
        self.put(BATCH_END, 0, ANY, SUBSYSTEM, &[]);
    }

    /// Returns the encoded messages.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of messages that the kernel has to acknowledge.
    pub(crate) fn len(&self) -> usize {
        self.about.len()
    }

    /// Parses the kernel's replies in `bytes` and returns how many messages they acknowledge.
    ///
    /// # Errors
    /// If the kernel refuses a message. The text has the subject of the message and the kernel's reason.
    pub(crate) fn acknowledged(&self, mut bytes: &[u8]) -> io::Result<usize> {
        let mut count = 0;
        while let Some((header, rest)) = bytes.split_at_checked(HEADER_BYTES) {
            let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
            let (kind, sequence) = (u16::from_ne_bytes([header[4], header[5]]), word(8));
            if let (VERDICT, Some(code)) = (kind, rest.first_chunk()) {
                let code = i32::from_ne_bytes(*code);
                if code != 0 {
                    let error = io::Error::from_raw_os_error(code.wrapping_neg());
                    let about = self.about.get((sequence as usize).wrapping_sub(1));
                    let about = about.map_or("the batch", String::as_str);
                    return Err(io::Error::new(error.kind(), format!("`{about}`: {error}")));
                }
                count += 1;
            }
            let len = (word(0) as usize).next_multiple_of(4).max(HEADER_BYTES);
            bytes = bytes.get(len..).unwrap_or_default();
        }
        Ok(count)
    }

    fn ask(&mut self, about: String, kind: u16, flags: u16, body: &[u8]) {
        self.about.push(about);
        self.put(kind, flags | ACK, INET, 0, body);
    }

    /// Appends `struct nlmsghdr`, `struct nfgenmsg` and attributes.
    fn put(&mut self, kind: u16, flags: u16, family: u8, resource: u16, body: &[u8]) {
        let len = (HEADER_BYTES + 4 + body.len()) as u32;
        let sequence = self.about.len() as u32;
        self.bytes.extend(len.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((flags | REQUEST).to_ne_bytes());
        self.bytes.extend(sequence.to_ne_bytes());
        self.bytes.extend(0_u32.to_ne_bytes());
        self.bytes.extend([family, 0]);
        self.bytes.extend(resource.to_be_bytes());
        self.bytes.extend(body);
    }
}

/// Returns the expressions that redirect TCP segments for `public` to `to`, of the same family.
pub(crate) fn redirect(public: SocketAddr, to: SocketAddr) -> Vec<Vec<u8>> {
    let (family, offset) = destination(public.ip());
    let port = public.port().to_be_bytes();
    [
        is_family(family),
        // The address in the network header, the protocol, and the port in the transport header.
        loads_and_compares(1, offset, &octets(public.ip())),
        vec![meta(16), compare(&[TCP])],
        loads_and_compares(2, 2, &port),
        vec![
            immediate(FIRST, &octets(to.ip())),
            immediate(SECOND, &to.port().to_be_bytes()),
            expression(
                "nat",
                &[number(1, 1), number(2, u32::from(family)), number(3, FIRST), number(5, SECOND)],
            ),
        ],
    ]
    .concat()
}

/// Returns the expressions that masquerade packets from `source` which leave by `device`. `None` applies to
/// any device.
pub(crate) fn masquerade(source: IpAddr, device: Option<&str>) -> Vec<Vec<u8>> {
    let (family, offset) = self::source(source);
    let by_device = device.map_or(Vec::new(), |device| {
        // NFT_META_OIFNAME.
        vec![meta(7), compare(&device_name(device))]
    });
    [
        is_family(family),
        loads_and_compares(1, offset, &octets(source)),
        by_device,
        vec![expression("masq", &[])],
    ]
    .concat()
}

/// Returns the expressions that redirect TCP segments which arrive by `device` and are not for this host to `port` of
/// this host.
pub(crate) fn intercept(device: &str, port: u16) -> Vec<Vec<u8>> {
    // The type of the route to the destination (NFT_FIB_RESULT_ADDRTYPE, NFTA_FIB_F_DADDR).
    let fib = [number(1, FIRST), number(2, 3), number(3, 2)];
    vec![
        // NFT_META_IIFNAME.
        meta(6),
        compare(&device_name(device)),
        meta(16),
        compare(&[TCP]),
        expression("fib", &fib),
        differs(&LOCAL.to_ne_bytes()),
        immediate(FIRST, &port.to_be_bytes()),
        // The port, and NF_NAT_RANGE_PROTO_SPECIFIED.
        expression("redir", &[number(1, FIRST), number(3, 2)]),
    ]
}

/// Returns the name of a device as the kernel compares it.
fn device_name(device: &str) -> Vec<u8> {
    let mut name = device.as_bytes().to_vec();
    name.resize(DEVICE_NAME_BYTES, 0);
    name
}

/// Returns the family of an address, and the offset of the destination in the IP header.
fn destination(address: IpAddr) -> (u8, u32) {
    match address {
        IpAddr::V4(_) => (IPV4, 16),
        IpAddr::V6(_) => (IPV6, 24),
    }
}

/// Returns the family of an address, and the offset of the source in the IP header.
fn source(address: IpAddr) -> (u8, u32) {
    match address {
        IpAddr::V4(_) => (IPV4, 12),
        IpAddr::V6(_) => (IPV6, 8),
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// NFT_META_NFPROTO.
fn is_family(family: u8) -> Vec<Vec<u8>> {
    vec![meta(15), compare(&[family])]
}

fn meta(key: u32) -> Vec<u8> {
    expression("meta", &[number(2, key), number(1, FIRST)])
}

/// Compares bytes of the network header (base 1) or the transport header (base 2) with `expected`. The rule
/// ends if they differ.
fn loads_and_compares(base: u32, offset: u32, expected: &[u8]) -> Vec<Vec<u8>> {
    let len = expected.len() as u32;
    let load = [number(1, FIRST), number(2, base), number(3, offset), number(4, len)];
    vec![expression("payload", &load), compare(expected)]
}

/// Ends the rule if the first register differs from `value` (NFT_CMP_EQ).
fn compare(value: &[u8]) -> Vec<u8> {
    expression("cmp", &[number(1, FIRST), number(2, 0), nested(3, &[attribute(1, value)])])
}

/// Ends the rule if the first register has `value` (NFT_CMP_NEQ).
fn differs(value: &[u8]) -> Vec<u8> {
    expression("cmp", &[number(1, FIRST), number(2, 1), nested(3, &[attribute(1, value)])])
}

fn immediate(register: u32, value: &[u8]) -> Vec<u8> {
    expression("immediate", &[number(1, register), nested(2, &[attribute(1, value)])])
}

/// An element of a list of expressions.
fn expression(name: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    nested(1, &[text(1, name), nested(2, attributes)])
}

fn nested(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | NESTED, &parts.concat())
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

fn text(kind: u16, value: &str) -> Vec<u8> {
    attribute(kind, &[value.as_bytes(), &[0]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_lists_have_their_length() {
        assert_eq!(text(1, "nat").len(), 8);
        let outer = nested(2, &[number(1, 5)]);
        assert_eq!(outer[..4], [&12_u16.to_ne_bytes()[..], &0x8002_u16.to_ne_bytes()].concat());
        assert_eq!(outer[8..], 5_u32.to_be_bytes());
    }

    #[test]
    fn a_refused_message_is_named() {
        let mut batch = Batch::new();
        batch.table("t");
        batch.chain("t", Chain::In);
        let mut answers = Vec::new();
        // An acknowledgement of the first message, and ENOENT for the second.
        for (sequence, code) in [(1_u32, 0_i32), (2, -2)] {
            answers.extend(36_u32.to_ne_bytes());
            answers.extend(VERDICT.to_ne_bytes());
            answers.extend([0; 2]);
            answers.extend(sequence.to_ne_bytes());
            answers.extend([0; 4]);
            answers.extend(code.to_ne_bytes());
            answers.extend([0; 16]);
        }
        assert_eq!(batch.acknowledged(&answers[..36]).unwrap(), 1);
        let error = batch.acknowledged(&answers).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("`chain in`: "), "{error}");
        // Truncated replies acknowledge nothing.
        for len in 0..36 {
            assert_eq!(batch.acknowledged(&answers[..len]).unwrap_or(1), usize::from(len >= 20));
        }
    }
}
