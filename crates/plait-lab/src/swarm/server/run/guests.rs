//! The guests of the server, their addresses, and their streams.

use crate::swarm::server::client::Client;
use crate::swarm::server::stranger::Stranger;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// The owner of an address.
#[derive(Clone, Copy)]
pub(super) enum Guest {
    Client(usize),
    Stranger(usize),
}

#[derive(Default)]
pub(super) struct Guests {
    pub(super) clients: Vec<Client>,
    pub(super) strangers: Vec<Stranger>,
    /// The client of each stream, or `None` if a stranger has it.
    pub(super) owners: Vec<Option<usize>>,
    by_address: BTreeMap<IpAddr, Guest>,
}

impl Guests {
    /// Assigns the next address to a guest. It is in another network than the address before it.
    pub(super) fn give_address(&mut self, guest: Guest) -> IpAddr {
        let number = self.by_address.len() as u32 + 1;
        let address = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number * 0x101));
        self.by_address.insert(address, guest);
        address
    }

    /// Returns the guest with this address.
    pub(super) fn at(&self, address: IpAddr) -> Option<Guest> {
        self.by_address.get(&address).copied()
    }
}
