//! Rules of nftables that the kernel removes with this process. One kind redirects a port of an address of
//! this host to a server behind a TUN device. Another one redirects the connections of a network's hosts to a port of
//! this host. The third one masquerades origins as a device.

use crate::Origin;
use crate::nftables::{self, Batch, Chain};
use netlink_sys::{Socket, SocketAddr as Address, protocols::NETLINK_NETFILTER};
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

/// A rule for address translation. `Display` writes it in the syntax of `nft`, without its chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Redirects TCP segments for an address and port to another address and port of the same family.
    Redirect {
        /// The address and port that clients connect to.
        public: SocketAddr,
        /// The address and port at which plait listens.
        to: SocketAddr,
    },
    /// Redirects TCP segments that arrive by a device, and are not for this host, to a port of this host.
    Intercept {
        /// The device.
        device: String,
        /// The port.
        port: u16,
    },
    /// Replaces the source address of an origin by the address of the device by which the packet leaves.
    Masquerade(Origin),
}

impl Rule {
    fn chain(&self) -> Chain {
        match self {
            Rule::Redirect { .. } | Rule::Intercept { .. } => Chain::In,
            Rule::Masquerade(_) => Chain::Out,
        }
    }

    fn expressions(&self) -> Vec<Vec<u8>> {
        match self {
            Rule::Redirect { public, to } => nftables::redirect(*public, *to),
            Rule::Intercept { device, port } => nftables::intercept(device, *port),
            Rule::Masquerade(Origin { address, device, .. }) => {
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
            Rule::Intercept { device, port } => {
                let local = "meta l4proto tcp fib daddr type != local";
                write!(f, "iifname \"{device}\" {local} redirect to :{port}")
            }
            Rule::Masquerade(Origin { address, device, .. }) => {
                write!(f, "{} saddr {address}", family(address.is_ipv4()))?;
                if let Some(device) = device {
                    write!(f, " oifname \"{device}\"")?;
                }
                f.write_str(" masquerade")
            }
        }
    }
}

/// Rules in effect. Their table belongs to a netlink socket of this process. No other process may change
/// it, and the kernel removes it with the socket, however the process ends. Keeping it needs no capability
/// and no other program.
pub struct Rules {
    _owner: Socket,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").finish_non_exhaustive()
    }
}

impl Rules {
    /// Returns the rules in the syntax of `nft`, with their table and chains.
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

    /// Adds all rules, or none of them.
    ///
    /// # Errors
    /// If the process may not add rules, or if the kernel has no nf_tables or no owned tables (before Linux
    /// 5.12). The text names the rule.
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

    /// Checks whether the kernel has nf_tables. It changes nothing.
    ///
    /// # Errors
    /// If the kernel has no nf_tables. Without CAP_NET_ADMIN the kernel refuses the request
    /// ([`ErrorKind::PermissionDenied`]).
    pub fn probe() -> io::Result<()> {
        carry_out(&Batch::question()).map(drop)
    }

    /// Checks whether the kernel accepts a rule of [`Rule::Intercept`]. It changes nothing: the last message of the
    /// batch is wrong, and the kernel applies all messages or none.
    ///
    /// # Errors
    /// If the kernel refuses the rule, or a table with an owner.
    pub fn probe_redirection() -> io::Result<()> {
        let (table, wrong) = (table(), "a rule without its chain");
        let rule = Rule::Intercept { device: "plait".to_owned(), port: 1 };
        let mut batch = Batch::new();
        batch.table(&table);
        batch.chain(&table, Chain::In);
        batch.rule(&table, Chain::In, &rule.expressions(), rule.to_string());
        batch.rule(&table, Chain::Out, &[], wrong.to_owned());
        batch.end();
        match carry_out(&batch) {
            Err(error) if !error.to_string().contains(wrong) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Sends messages and reads the kernel's acknowledgement of each. The returned socket owns the new table.
fn carry_out(batch: &Batch) -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&Address::new(0, 0))?;
    // The kernel replies before `send` returns.
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

/// Returns the chains of the rules.
fn chains(rules: &[Rule]) -> impl Iterator<Item = Chain> {
    let needed = |chain: &Chain| rules.iter().any(|rule| rule.chain() == *chain);
    [Chain::In, Chain::Out].into_iter().filter(needed)
}

/// Returns the name of the table, which only this process uses.
fn table() -> String {
    format!("plait_{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirection_is_told_as_nft_reads_it() {
        let rules = [Rule::Intercept { device: "lan0".to_owned(), port: 4_000 }];
        let table = table();
        let rule = "iifname \"lan0\" meta l4proto tcp fib daddr type != local redirect to :4000";
        assert!(Rules::text(&rules).ends_with(&format!("add rule inet {table} in {rule}\n")));
    }

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
