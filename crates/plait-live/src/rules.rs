//! Rules of nftables that go with this process: a port of this host's own address that leads to a server
//! behind a TUN device, and own addresses that servers see as those of a device.

use crate::Origin;
use crate::nftables::{self, Batch, Chain};
use netlink_sys::{Socket, SocketAddr as Address, protocols::NETLINK_NETFILTER};
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

/// A rule for address translation. `Display` gives it as `nft` reads it, without its chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// TCP segments for one address and port go to another one of the same family.
    Redirect {
        /// What clients connect to.
        public: SocketAddr,
        /// Where plait listens.
        to: SocketAddr,
    },
    /// Packets of an origin leave under the address of the device by which they leave.
    Masquerade(Origin),
}

impl Rule {
    fn chain(&self) -> Chain {
        match self {
            Rule::Redirect { .. } => Chain::In,
            Rule::Masquerade(_) => Chain::Out,
        }
    }

    fn expressions(&self) -> Vec<Vec<u8>> {
        match self {
            Rule::Redirect { public, to } => nftables::redirect(*public, *to),
            Rule::Masquerade(Origin { address, device }) => {
                nftables::masquerade(*address, device.as_deref())
            }
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = |v4| if v4 { "ip" } else { "ip6" };
        match self {
            Rule::Redirect { public, to } => {
                let (ip, address, port) = (family(public.is_ipv4()), public.ip(), public.port());
                write!(f, "{ip} daddr {address} tcp dport {port} dnat {ip} to {to}")
            }
            Rule::Masquerade(Origin { address, device }) => {
                write!(f, "{} saddr {address}", family(address.is_ipv4()))?;
                if let Some(device) = device {
                    write!(f, " oifname \"{device}\"")?;
                }
                f.write_str(" masquerade")
            }
        }
    }
}

/// Rules that are set. Their table belongs to a netlink socket of this process: nobody else may change
/// it, and the kernel removes it with the socket, however the process ends. No capability and no other
/// program is needed to keep it.
pub struct Rules {
    _owner: Socket,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").finish_non_exhaustive()
    }
}

impl Rules {
    /// Rules as `nft` reads them, with the table and the chains that they need.
    #[must_use]
    pub fn text(rules: &[Rule]) -> String {
        let table = table();
        let mut text = format!("add table inet {table} {{ flags owner; }}\n");
        for chain in chains(rules) {
            let hook = match chain {
                Chain::In => "prerouting priority dstnat",
                Chain::Out => "postrouting priority srcnat",
            };
            let name = chain.name();
            text.push_str(&format!("add chain inet {table} {name} {{ type nat hook {hook}; }}\n"));
        }
        for rule in rules {
            text.push_str(&format!("add rule inet {table} {} {rule}\n", rule.chain().name()));
        }
        text
    }

    /// Sets rules, all of them or none.
    ///
    /// # Errors
    /// If the process may not, or the kernel has no nf_tables or none with owned tables (before Linux
    /// 5.12); the text names the rule.
    pub fn set(rules: &[Rule]) -> io::Result<Rules> {
        let table = table();
        let mut batch = Batch::new();
        batch.table(&table);
        for chain in chains(rules) {
            batch.chain(&table, chain);
        }
        for rule in rules {
            batch.rule(&table, rule.chain(), &rule.expressions(), rule.to_string());
        }
        batch.end();
        Ok(Rules { _owner: carry_out(&batch)? })
    }

    /// Whether the kernel has nf_tables. It changes nothing.
    ///
    /// # Errors
    /// Why the kernel does not say so: without CAP_NET_ADMIN it refuses to
    /// ([`ErrorKind::PermissionDenied`]).
    pub fn probe() -> io::Result<()> {
        carry_out(&Batch::question()).map(drop)
    }
}

/// Sends messages, and waits until the kernel has acknowledged all of them. What they make belongs to the
/// socket.
fn carry_out(batch: &Batch) -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&Address::new(0, 0))?;
    // The kernel answers before sending returns.
    socket.set_non_blocking(true)?;
    socket.send(batch.bytes(), 0)?;
    let mut acknowledged = 0;
    while acknowledged < batch.len() {
        let answers = match socket.recv_from_full() {
            Ok((answers, _)) => answers,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(io::Error::other("the kernel does not answer"));
            }
            Err(error) => return Err(error),
        };
        acknowledged += batch.acknowledged(&answers)?;
    }
    Ok(socket)
}

/// The chains that rules need.
fn chains(rules: &[Rule]) -> impl Iterator<Item = Chain> {
    let needed = |chain: &Chain| rules.iter().any(|rule| rule.chain() == *chain);
    [Chain::In, Chain::Out].into_iter().filter(needed)
}

/// A table of this process alone.
fn table() -> String {
    format!("plait_{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_told_as_nft_reads_them() {
        let rules = [
            Rule::Redirect {
                public: "10.99.0.1:80".parse().unwrap(),
                to: "10.77.0.1:8080".parse().unwrap(),
            },
            Rule::Redirect {
                public: "[fd99::1]:80".parse().unwrap(),
                to: "[fd77::1]:8080".parse().unwrap(),
            },
        ];
        let table = table();
        assert_eq!(
            Rules::text(&rules),
            format!(
                "add table inet {table} {{ flags owner; }}\n\
                 add chain inet {table} in {{ type nat hook prerouting priority dstnat; }}\n\
                 add rule inet {table} in ip daddr 10.99.0.1 tcp dport 80 dnat ip to 10.77.0.1:8080\n\
                 add rule inet {table} in ip6 daddr fd99::1 tcp dport 80 dnat ip6 to [fd77::1]:8080\n"
            )
        );
    }
}
