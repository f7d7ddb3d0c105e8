//! Settings of a client's connection, chosen by the dialled port and the client's address.

use plait_core::ConnectionSpec;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

/// An address prefix, as in `10.0.0.0/8`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    address: IpAddr,
    /// Length of the prefix in bits.
    len: u8,
}

impl Prefix {
    /// Returns true if the prefix contains an address. It contains no address of the other family.
    #[must_use]
    pub fn contains(&self, other: IpAddr) -> bool {
        // At length 0 the shift drops all bits.
        match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let apart = own.to_bits() ^ other.to_bits();
                apart.checked_shr(32 - u32::from(self.len)).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let apart = own.to_bits() ^ other.to_bits();
                apart.checked_shr(128 - u32::from(self.len)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    /// Returns true if the prefix contains each address of the other one.
    #[must_use]
    pub fn covers(&self, other: &Prefix) -> bool {
        self.len <= other.len && self.contains(other.address)
    }

    /// Returns true if the prefix is of IPv4.
    #[must_use]
    pub const fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// Returns true if no bit after the prefix is set. `10.1.0.0/8` is ambiguous.
    fn is_whole(&self) -> bool {
        let len = u32::from(self.len);
        match self.address {
            IpAddr::V4(address) => address.to_bits().checked_shl(len).unwrap_or(0) == 0,
            IpAddr::V6(address) => address.to_bits().checked_shl(len).unwrap_or(0) == 0,
        }
    }
}

impl FromStr for Prefix {
    type Err = &'static str;

    /// Parses `ADDR` or `ADDR/BITS`.
    fn from_str(text: &str) -> Result<Prefix, &'static str> {
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| "no IP address")?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let len = match len {
            None => longest,
            // `parse` would accept a leading plus sign.
            Some(len) if len.starts_with('+') => return Err("no number of bits"),
            Some(len) => len.parse().map_err(|_| "no number of bits")?,
        };
        if len > longest {
            return Err("more bits than an address has");
        }
        let prefix = Prefix { address, len };
        if prefix.is_whole() { Ok(prefix) } else { Err("bits are set behind the prefix") }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

/// The clients that a rule applies to. Both conditions must hold.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Match {
    /// The port that they dial; `None` matches every listening port.
    pub port: Option<u16>,
    /// Prefix of their addresses; `None` matches every address.
    pub from: Option<Prefix>,
}

impl Match {
    /// Returns true if both conditions hold for each client for which those of the other one hold.
    #[must_use]
    pub fn covers(&self, other: &Match) -> bool {
        let port = self.port.is_none() || self.port == other.port;
        let within = |own: Prefix| other.from.is_some_and(|other| own.covers(&other));
        port && self.from.is_none_or(within)
    }

    fn holds(&self, port: u16, from: IpAddr) -> bool {
        self.port.is_none_or(|wanted| wanted == port)
            && self.from.is_none_or(|prefix| prefix.contains(from))
    }
}

/// A rule and the settings of its connections.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The clients that it applies to.
    pub of: Match,
    /// Settings of their connections.
    pub spec: ConnectionSpec,
}

/// All rules in order, and the settings of connections without a rule.
#[derive(Default, Debug)]
pub(crate) struct Choices {
    rules: Vec<(Match, Arc<ConnectionSpec>)>,
    ports: Vec<(u16, Arc<ConnectionSpec>)>,
}

impl Choices {
    pub(crate) fn new(rules: Vec<Choice>, ports: &[(u16, Arc<ConnectionSpec>)]) -> Choices {
        let rules = rules.into_iter().map(|it| (it.of, Arc::new(it.spec))).collect();
        Choices { rules, ports: ports.to_vec() }
    }

    /// Returns true if there are no rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the index of the first rule that applies to a client.
    pub(crate) fn place(&self, port: u16, from: IpAddr) -> Option<usize> {
        self.rules.iter().position(|(of, _)| of.holds(port, from))
    }

    /// Returns the settings for a client's connection; `None` if the port is closed.
    pub(crate) fn spec(&self, port: u16, from: IpAddr) -> Option<&Arc<ConnectionSpec>> {
        let listening = self.ports.iter().find(|(number, _)| *number == port);
        let (_, of_port) = listening?;
        Some(self.place(port, from).map_or(of_port, |place| &self.rules[place].1))
    }

    /// Closes all ports.
    pub(crate) fn stop(&mut self) {
        self.rules.clear();
        self.ports.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn a_shorter_prefix_covers_a_longer_one() {
        for (own, other, covers) in [
            ("10.0.0.0/8", "10.0.0.0/8", true),
            ("10.0.0.0/8", "10.1.0.0/16", true),
            ("10.1.0.0/16", "10.0.0.0/8", false),
            ("10.0.0.0/8", "11.0.0.0/16", false),
            ("0.0.0.0/0", "10.1.2.3", true),
            ("0.0.0.0/0", "fd00::/8", false),
            ("fd00::/8", "fd77::1", true),
        ] {
            assert_eq!(prefix(own).covers(&prefix(other)), covers, "{own} {other}");
        }
        let of = |port, from: &str| Match { port, from: from.parse().ok() };
        for (own, other, covers) in [
            (of(None, ""), of(Some(80), "10.0.0.0/8"), true),
            (of(Some(80), ""), of(Some(80), "10.0.0.0/8"), true),
            (of(Some(80), ""), of(Some(443), "10.0.0.0/8"), false),
            (of(Some(80), ""), of(None, "10.0.0.0/8"), false),
            (of(None, "10.0.0.0/8"), of(None, ""), false),
            (of(None, "10.0.0.0/8"), of(Some(80), "10.1.0.0/16"), true),
        ] {
            assert_eq!(own.covers(&other), covers, "{own:?} {other:?}");
        }
    }

    #[test]
    fn a_prefix_holds_what_begins_alike() {
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        for (prefix_text, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.2"),
            ("0.0.0.0/0", "255.1.2.3", "::1"),
            ("192.0.2.128/25", "192.0.2.255", "192.0.2.127"),
            ("fd00::/8", "fdff::1", "fe00::"),
            ("::/0", "fd00::1", "10.0.0.1"),
            ("fd77::1", "fd77::1", "fd77::2"),
        ] {
            assert!(prefix(prefix_text).contains(at(inside)), "{prefix_text} {inside}");
            assert!(!prefix(prefix_text).contains(at(outside)), "{prefix_text} {outside}");
        }
    }

    #[test]
    fn what_is_no_prefix_is_refused() {
        for (text, why) in [
            ("10.0.0.0/33", "more bits than an address has"),
            ("fd00::/129", "more bits than an address has"),
            ("10.1.0.0/8", "bits are set behind the prefix"),
            ("fd00::1/64", "bits are set behind the prefix"),
            ("10.0.0.0/", "no number of bits"),
            ("10.0.0.0/+8", "no number of bits"),
            ("10.0.0.0/300", "no number of bits"),
            ("10.0.0/8", "no IP address"),
            ("", "no IP address"),
        ] {
            assert_eq!(text.parse::<Prefix>(), Err(why), "{text}");
        }
        assert_eq!(prefix("fd00::/8").to_string(), "fd00::/8");
    }

    #[test]
    fn both_conditions_hold_or_the_rule_does_not() {
        let of = |port, from: Option<&str>| Match { port, from: from.map(prefix) };
        let client: IpAddr = "10.0.0.7".parse().unwrap();
        for (of, holds) in [
            (of(None, None), true),
            (of(Some(80), None), true),
            (of(Some(81), None), false),
            (of(None, Some("10.0.0.0/24")), true),
            (of(Some(80), Some("10.0.0.0/24")), true),
            (of(Some(81), Some("10.0.0.0/24")), false),
            (of(Some(80), Some("10.0.1.0/24")), false),
        ] {
            assert_eq!(of.holds(80, client), holds, "{of:?}");
        }
    }
}
