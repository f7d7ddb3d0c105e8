//! Guarantees of the codec for any bytes.

use plait_wire::codec::{
    EncodeError, ParseError, Problem, TcpChecksum, Verify, Why, encode, parse, parse_into,
};
use plait_wire::{AddAddr, Mptcp, Options, Segment};
use std::fmt::{Arguments, Write};
use std::net::IpAddr;

/// Names of the cases that occurred in one packet. The buffers are used again for the next packet.
#[derive(Default)]
pub(crate) struct Words {
    text: String,
    ends: Vec<usize>,
}

impl Words {
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }

    fn add(&mut self, word: Arguments<'_>) {
        self.text.write_fmt(word).unwrap();
        self.ends.push(self.text.len());
    }

    /// Adds the beginning of a word, as `kept` returns it.
    fn add_kept(&mut self, word: Arguments<'_>, kept: impl Fn(&str) -> &str) {
        let start = self.text.len();
        self.text.write_fmt(word).unwrap();
        let end = start + kept(&self.text[start..]).len();
        self.text.truncate(end);
        self.ends.push(end);
    }
}

/// Parses the bytes and checks the guarantees. Adds names of the cases that occurred, or returns the guarantee
/// that was broken.
pub(crate) fn check(packet: &[u8], met: &mut Words) -> Result<(), String> {
    // The ICMP parser gets the same bytes.
    let said = plait_wire::codec::parse_too_big(packet);
    let verified = parse(packet, Verify::Checksum);
    let mut segment = Segment::default();
    let parsed = match parse_into(packet, Verify::Trusted, &mut segment) {
        Ok(parsed) => parsed,
        Err(error) => {
            let outside = error.at > packet.len();
            let told = || format!("{error}, of {} bytes", packet.len());
            return match verified {
                _ if outside => Err(format!("an error outside of the packet: {}", told())),
                Ok(_) => Err(format!("only the verified packet parses: {}", told())),
                Err(_) => {
                    if let Some(quoted) = said {
                        met.add(format_args!(
                            "too big v{}",
                            if quoted.src.is_ipv4() { 4 } else { 6 }
                        ));
                    }
                    problem(&error, met);
                    Ok(())
                }
            };
        }
    };
    let payload = packet.get(parsed.payload_at..).unwrap_or_default();
    if !payload.starts_with(parsed.payload) {
        return Err("the payload is not where it is said to be".to_owned());
    }
    let (walked, bytes) = walk(option_bytes(packet, parsed.payload_at));
    let taken = count(&segment.options);
    let skipped = usize::from(parsed.skipped.count);
    if walked != taken + skipped {
        let told = format!("{walked} options, {taken} taken and {skipped} skipped");
        return Err(format!("{told}: {segment:?}"));
    }
    let raw = segment.options.raw_len() as usize;
    if skipped == 0 && bytes != raw {
        return Err(format!("{bytes} bytes of options were read as {raw}: {segment:?}"));
    }
    round(packet, &segment)?;
    names(&segment.options, met);
    if let Some(unread) = parsed.skipped.first {
        reason(unread.why, met);
    }
    match verified {
        Ok((_, again)) if again.options != segment.options => {
            Err("verifying changes the options".to_owned())
        }
        Ok(_) => Ok(()),
        Err(ParseError { problem: Problem::Checksum(_), .. }) => Ok(()),
        Err(error) => Err(format!("only the trusted packet parses: {error}")),
    }
}

/// Checks that a parsed packet can be encoded and parses to the same. Padded options may not fit.
fn round(packet: &[u8], segment: &Segment) -> Result<(), String> {
    let Ok((headers, whole)) = parse(packet, Verify::Trusted) else {
        return Err("it parses once, but not twice".to_owned());
    };
    let mut again = Vec::new();
    match encode(&headers, &whole, TcpChecksum::Full, &mut again) {
        Ok(_) => {}
        Err(EncodeError::Options(_)) if !segment.options.fits() => return Ok(()),
        Err(error) => return Err(format!("{error}: {segment:?}")),
    }
    let (same_headers, read) =
        parse(&again, Verify::Checksum).map_err(|error| format!("its own packet: {error}"))?;
    let fields = |s: &Segment| (s.src_port, s.dst_port, s.seq, s.ack, s.flags, s.window);
    let same = same_headers == headers
        && fields(&read) == fields(&whole)
        && read.options == whole.options
        && read.payload.bytes() == whole.payload.bytes();
    if same { Ok(()) } else { Err(format!("{whole:?} came back as {read:?}")) }
}

/// Finds the options of a packet that parses, independently of the codec.
fn option_bytes(packet: &[u8], payload_at: usize) -> &[u8] {
    let byte = |at: usize| usize::from(packet.get(at).copied().unwrap_or(0));
    let mut tcp = if byte(0) >> 4 == 4 { (byte(0) & 15) * 4 } else { 40 };
    let mut next = if byte(0) >> 4 == 4 { 6 } else { byte(6) };
    while next != 6 && tcp < packet.len() {
        (next, tcp) = (byte(tcp), tcp + 8 + 8 * byte(tcp + 1));
    }
    packet.get(tcp + 20..payload_at).unwrap_or_default()
}

/// Returns the number of options, including a malformed last one, and the number of bytes of the options
/// before it.
fn walk(mut rest: &[u8]) -> (usize, usize) {
    let (mut options, mut bytes) = (0, 0);
    loop {
        match rest {
            [] | [0, ..] => return (options, bytes),
            [1, tail @ ..] => rest = tail,
            [_, len @ 2..=255, ..] if usize::from(*len) <= rest.len() => {
                options += 1;
                bytes += usize::from(*len);
                rest = &rest[usize::from(*len)..];
            }
            _ => return (options + 1, bytes),
        }
    }
}

fn count(options: &Options) -> usize {
    usize::from(options.mss.is_some())
        + usize::from(options.window_scale.is_some())
        + usize::from(options.sack_permitted)
        + usize::from(options.early_joins)
        + usize::from(options.timestamps.is_some())
        + usize::from(options.sack.count() > 0)
        + usize::from(options.dss.is_some())
        + options.mptcp.as_deref().map_or(0, |option| option.all().len())
}

/// Adds the name of every option, with its shape.
fn names(options: &Options, met: &mut Words) {
    let simple = [
        ("MSS", options.mss.is_some()),
        ("window scale", options.window_scale.is_some()),
        ("SACK permitted", options.sack_permitted),
        ("early joins", options.early_joins),
        ("timestamps", options.timestamps.is_some()),
    ];
    for (name, _) in simple.iter().filter(|(_, there)| *there) {
        met.add(format_args!("{name}"));
    }
    if options.sack.count() > 0 {
        met.add(format_args!("SACK {}", options.sack.count()));
    }
    if let Some(dss) = &options.dss {
        met.add(format_args!("DSS {}", dss.len()));
        if dss.data_fin {
            met.add(format_args!("DATA_FIN"));
        }
        if dss.mapping.is_some_and(|map| map.len == 0) {
            met.add(format_args!("infinite mapping"));
        }
    }
    for option in options.mptcp.iter().flat_map(|option| option.all()) {
        name(option, met);
    }
}

fn name(option: &Mptcp, met: &mut Words) {
    let len = option.len();
    match option {
        Mptcp::Capable(_) => met.add(format_args!("MP_CAPABLE {len}")),
        Mptcp::JoinSyn(_) | Mptcp::JoinSynAck(_) | Mptcp::JoinAck(_) => {
            met.add(format_args!("MP_JOIN {len}"));
        }
        Mptcp::AddAddr(AddAddr { address: IpAddr::V4(_), .. }) => {
            met.add(format_args!("ADD_ADDR v4 {len}"));
        }
        Mptcp::AddAddr(_) => met.add(format_args!("ADD_ADDR v6 {len}")),
        Mptcp::RemoveAddr(_) => met.add(format_args!("REMOVE_ADDR")),
        Mptcp::Prio { .. } => met.add(format_args!("MP_PRIO")),
        Mptcp::Fail(_) => met.add(format_args!("MP_FAIL")),
        Mptcp::FastClose(_) => met.add(format_args!("MP_FASTCLOSE")),
        Mptcp::Reset { reason, .. } => met.add(format_args!("MP_TCPRST {reason:?}")),
        Mptcp::Several(_) => met.add(format_args!("several in several")),
    }
}

/// Adds the name of the problem of a packet.
fn problem(error: &ParseError, met: &mut Words) {
    met.add_kept(format_args!("{:?}", error.problem), |text| {
        let kind = text.split([',', ')']).next().unwrap_or_default();
        kind.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('(')
    });
}

fn reason(why: Why, met: &mut Words) {
    let kind = |text: &str| text.find('(').unwrap_or(text.len());
    met.add_kept(format_args!("skipped: {why:?}"), |text| &text[..kind(text)]);
}
