//! The 40 bytes of option space, and which options are left out when it is too small.
//!
//! | precedence | options | bytes |
//! |---|---|---|
//! | always sent | the options of a SYN; MP_CAPABLE and MP_JOIN until the handshake ends | 23 to 36 |
//! | always sent | timestamps, once negotiated (RFC 7323 section 3.2) | 12, packed 10 |
//! | over all below | the mapping of payload, DATA_FIN, the infinite mapping | 14 to 26 |
//! | over a DATA_ACK | one signal: ADD_ADDR, REMOVE_ADDR, MP_PRIO, MP_FAIL, MP_FASTCLOSE | 3 to 30 |
//! | over SACK | a DATA_ACK without a mapping; the next segment can carry it | 8 or 12 |
//! | lowest | SACK blocks, the most recent first; later ACKs can repeat them | 4 + 8 each |
//!
//! As in Linux, MPTCP options have precedence over SACK. [`crate::codec::encode`] returns an error if
//! the options that remain do not fit.

use crate::{MAX_OPTION_BYTES, Options};

/// The options that were left out of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GaveWay {
    /// Number of SACK blocks left out.
    pub sack_blocks: u32,
    /// True if the DATA_ACK was left out and must be sent on another segment.
    pub data_ack: bool,
}

impl Options {
    /// Leaves options out, lowest precedence first, until all fit. Returns the options left out.
    ///
    /// SACK blocks are left out while the padded form exceeds [`MAX_OPTION_BYTES`]. A DSS with only
    /// a DATA_ACK is left out if even the packed form does not fit then.
    #[inline]
    pub fn give_way(&mut self) -> GaveWay {
        // Fast path for nearly every segment: a DSS beside timestamps always fits.
        if self.sack.count() == 0 && self.mptcp.is_none() {
            return GaveWay::default();
        }
        self.make_room()
    }

    #[inline(never)]
    fn make_room(&mut self) -> GaveWay {
        let before = self.sack.count();
        while self.sack.count() > 0 && self.padded_len() > MAX_OPTION_BYTES {
            self.sack.truncate(self.sack.count() - 1);
        }
        let lone_ack = self.dss.is_some_and(|dss| dss.mapping.is_none() && !dss.data_fin);
        let data_ack = lone_ack && !self.fits();
        if data_ack {
            self.dss = None;
        }
        GaveWay { sack_blocks: before - self.sack.count(), data_ack }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AddAddr, DataAck, Dss, Key, Mapping, Mptcp, Timestamps, WireDsn};
    use alloc::boxed::Box;
    use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    /// An ACK with timestamps, a DATA_ACK, four SACK blocks and, if given, another option.
    fn ack(long: bool, option: Option<Mptcp>) -> Options {
        let mut options = Options {
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            dss: Some(Dss {
                data_ack: Some(DataAck { value: WireDsn(7), long }),
                ..Dss::default()
            }),
            mptcp: option.map(Box::new),
            ..Options::default()
        };
        for n in 0..4 {
            assert!(options.sack.push(10 * n, 10 * n + 5));
        }
        options
    }

    /// R2, R43, R45: how many SACK blocks fit beside each signal, and when the DATA_ACK is left out.
    #[test]
    fn who_gives_way_to_whom() {
        let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
        let add = |address, port, hmac| {
            Some(Mptcp::AddAddr(AddAddr { address_id: 2, address, port, hmac }))
        };
        let table = [
            ("nothing", None, 2, false),
            ("MP_PRIO", Some(Mptcp::Prio { backup: true }), 1, false),
            ("REMOVE_ADDR", Some(Mptcp::RemoveAddr([1].into())), 1, false),
            ("MP_FAIL", Some(Mptcp::Fail(WireDsn(1))), 0, false),
            ("MP_FASTCLOSE", Some(Mptcp::FastClose(Key(1))), 0, false),
            ("echo v4", add(v4, None, None), 1, false),
            ("echo v4 and port", add(v4, Some(80), None), 0, false),
            ("echo v6", add(v6, None, None), 0, false),
            ("echo v6 and port", add(v6, Some(80), None), 0, false),
            ("ADD_ADDR v4", add(v4, None, Some(1)), 0, false),
            ("ADD_ADDR v4 and port", add(v4, Some(80), Some(1)), 0, false),
            ("ADD_ADDR v6", add(v6, None, Some(1)), 0, true),
            ("ADD_ADDR v6 and port", add(v6, Some(80), Some(1)), 0, true),
        ];
        for (name, option, blocks, waits) in table {
            let mut options = ack(false, option.clone());
            let gave = options.give_way();
            let expected = GaveWay { sack_blocks: 4 - blocks, data_ack: waits };
            assert_eq!(gave, expected, "{name}");
            assert!(options.fits() && options.mptcp.as_deref() == option.as_ref(), "{name}");
            assert_eq!((options.sack.count(), options.dss.is_none()), (blocks, waits), "{name}");
            assert_eq!(options.give_way(), GaveWay::default(), "{name}");
        }
        let mut long = ack(true, None);
        assert_eq!(long.give_way().sack_blocks, 3);
    }

    /// R2: a mapping is never left out, and neither is a DATA_FIN.
    #[test]
    fn mappings_stay() {
        let mapping = Mapping { dsn: WireDsn(1), long: true, ssn: 1, len: 9, checksum: Some(1) };
        for data_fin in [false, true] {
            let mut options = ack(true, Some(Mptcp::Fail(WireDsn(1))));
            if let Some(dss) = &mut options.dss {
                (dss.mapping, dss.data_fin) = (Some(mapping).filter(|_| !data_fin), data_fin);
            }
            let told = options.dss;
            options.give_way();
            assert_eq!((options.dss, options.sack.count()), (told, 0));
        }
    }
}
