//! Addresses of a server behind its device, and addresses of this host that nftables rules
//! redirect.

use super::Args;
use crate::commands::live::endpoint::{is_own, not_own, own, stand_in};
use crate::failure::Failure;
use plait_live::argument::not_of_a_host;
use plait_live::{Rule, ServiceAddress};
use std::net::{IpAddr, SocketAddr};

/// Largest number of addresses of `--public` and `--advertise` together. More are refused.
const MOST_ADDRESSES: usize = 32;
/// The problem of an address that clients of this server cannot use.
const OTHER_FAMILY: &str = "it is of another family than --listen\n  give one of the same family";

/// Addresses of a server in addition to `--listen`.
#[derive(Default, Debug)]
pub(super) struct Reach {
    /// Further addresses.
    pub(super) further: Vec<ServiceAddress>,
    /// Redirect rules for addresses that this host has itself.
    pub(super) rules: Vec<Rule>,
}

impl Reach {
    /// Builds the addresses of `--public` and `--advertise`. `ports` are all ports of the server, first that of
    /// `--listen`.
    ///
    /// The first public address leads to `--listen`. Every further address of this host gets a stand-in behind
    /// the device, so that the server knows the destination address of each segment.
    pub(super) fn of(args: &Args, ports: &[u16]) -> Result<Reach, Failure> {
        args.check_further()?;
        let mut reach = Reach::default();
        let mut primary = None;
        for public in &args.public {
            let to = match primary {
                _ if primary == Some(public.ip()) => args.listen.ip(),
                None => {
                    primary = Some(public.ip());
                    args.listen.ip()
                }
                Some(_) => reach.local(args.listen, public.ip(), false),
            };
            reach.lead(*public, SocketAddr::new(to, inner_port(public.port(), ports)));
        }
        for address in &args.advertise {
            if is_own(*address) != Some(true) {
                reach.further.push(ServiceAddress::from(*address));
                continue;
            }
            let local = reach.local(args.listen, *address, true);
            // Clients join at the port to which they first connected.
            let mut outer: Vec<u16> = args.public.iter().map(SocketAddr::port).collect();
            if outer.is_empty() {
                outer = ports.to_vec();
            }
            for port in outer {
                let inner = SocketAddr::new(local, inner_port(port, ports));
                reach.lead(SocketAddr::new(*address, port), inner);
            }
        }
        Ok(reach)
    }

    /// Returns the stand-in of an address of this host, and creates it if necessary. It is the same after
    /// a restart of the server at `listen`.
    fn local(&mut self, listen: SocketAddr, address: IpAddr, announced: bool) -> IpAddr {
        if let Some(known) = self.further.iter_mut().find(|known| known.address == address) {
            known.announced |= announced;
            return known.local;
        }
        let (listen, of) = (listen.to_string(), address.to_string());
        let free = |local: &IpAddr| self.further.iter().all(|known| known.local != *local);
        let each = (0u32..).map(|n| stand_in(&[&listen, &of, &n.to_string()], address.is_ipv4()));
        // At most 32 addresses share 2^16, so a free one is found.
        let Some(local) = each.into_iter().find(free) else { return address };
        self.further.push(ServiceAddress { address, local, announced });
        local
    }

    fn lead(&mut self, public: SocketAddr, to: SocketAddr) {
        let rule = Rule::Redirect { public, to };
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
    }

    /// Returns the flag that needs rules.
    pub(super) fn flag(&self) -> &'static str {
        match self.further.iter().any(|it| it.announced && it.local != it.address) {
            true => "--public and --advertise",
            false => "--public",
        }
    }

    /// Returns true if a rule redirects this address and port.
    pub(super) fn leads(&self, at: SocketAddr) -> bool {
        let is_for = |rule: &Rule| matches!(rule, Rule::Redirect { public, .. } if *public == at);
        self.rules.iter().any(is_for)
    }
}

/// Returns the port behind the device for a public one: the same if the server listens on it, otherwise that of
/// `--listen`.
fn inner_port(public: u16, ports: &[u16]) -> u16 {
    if ports.contains(&public) { public } else { ports.first().copied().unwrap_or(public) }
}

impl Args {
    /// Fails if an address cannot be a further one of this server.
    fn check_further(&self) -> Result<(), Failure> {
        let refuse = |flag: &str, given: &str, problem: &str| {
            Err(Failure::Usage(format!("{flag}: `{given}`: {problem}")))
        };
        let remedy =
            "give one that no device has, such as 10.77.0.1:80, and use --public for this one";
        not_own("--listen", self.listen.ip(), remedy)?;
        if self.public.len() + self.advertise.len() > MOST_ADDRESSES {
            let problem = format!("more than {MOST_ADDRESSES} addresses\n  give fewer");
            return Err(Failure::Usage(format!("--public and --advertise: {problem}")));
        }
        let v4 = self.listen.is_ipv4();
        for (at, public) in self.public.iter().enumerate() {
            let given = public.to_string();
            if public.is_ipv4() != v4 {
                return refuse("--public", &given, OTHER_FAMILY);
            }
            own("--public", public.ip())?;
            if self.public[..at].contains(public) {
                return refuse("--public", &given, "it is given twice\n  give a further address");
            }
        }
        for (at, other) in self.advertise.iter().enumerate() {
            let given = other.to_string();
            if let Some(problem) = not_of_a_host(*other) {
                return refuse("--advertise", &given, &problem);
            }
            if other.is_ipv4() != v4 {
                return refuse("--advertise", &given, OTHER_FAMILY);
            }
            if is_own(*other) == Some(true) {
                own("--advertise", *other)?;
            }
            let problem = match *other {
                _ if self.advertise[..at].contains(other) => "it is given twice",
                _ if *other == self.listen.ip() => "it is the address of --listen",
                _ if self.public.first().is_some_and(|first| first.ip() == *other) => {
                    "it is that of the first --public, which clients use already"
                }
                _ => continue,
            };
            return refuse("--advertise", &given, &format!("{problem}\n  give a further address"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_port_leads_to_the_same_one_if_it_is_listened_to() {
        assert_eq!(inner_port(443, &[8080, 443]), 443);
        assert_eq!(inner_port(80, &[8080, 443]), 8080);
    }

    #[test]
    fn an_address_has_one_stand_in() {
        let mut reach = Reach::default();
        let [a, b] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        let listen = "192.0.2.9:80".parse().unwrap();
        let (one, two) = (reach.local(listen, a, false), reach.local(listen, b, false));
        assert!(one != two && one.is_ipv4());
        assert_eq!(reach.local(listen, a, true), one);
        // A restarted server has the same ones, in any order.
        let mut again = Reach::default();
        assert_eq!((again.local(listen, b, false), again.local(listen, a, false)), (two, one));
        assert_eq!(reach.further[0], ServiceAddress { address: a, local: one, announced: true });
        assert!(!reach.further[1].announced);
    }
}
