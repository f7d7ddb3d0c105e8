//! Who comes to the server, and whose each address and each stream is.

use crate::swarm::server::client::Client;
use crate::swarm::server::stranger::Stranger;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// Whose an address is.
#[derive(Clone, Copy)]
pub(super) enum Guest {
    Client(usize),
    Stranger(usize),
}

#[derive(Default)]
pub(super) struct Guests {
    pub(super) clients: Vec<Client>,
    pub(super) strangers: Vec<Stranger>,
    /// Whose each stream is: the place of its client, if one of the clients has it.
    pub(super) owners: Vec<Option<usize>>,
    by_address: BTreeMap<IpAddr, Guest>,
}

impl Guests {
    /// Gives a guest the next address, of another network than the one before.
    pub(super) fn give_address(&mut self, guest: Guest) -> IpAddr {
        let number = self.by_address.len() as u32 + 1;
        let address = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number * 0x101));
        self.by_address.insert(address, guest);
        address
    }

    /// Returns the guest that has an address.
    pub(super) fn at(&self, address: IpAddr) -> Option<Guest> {
        self.by_address.get(&address).copied()
    }
}
