//! Generators of segments, most of which can be encoded.

use plait_wire::codec::Headers;
use plait_wire::{
    AddAddr, DataAck, Dss, Flags, JoinAck, JoinSyn, JoinSynAck, Key, Mapping, MpCapable, Mptcp,
    Options, Payload, ResetReason, Segment, Timestamps, WireDsn,
};
use proptest::prelude::*;
use std::net::IpAddr;

pub(crate) fn headers() -> impl Strategy<Value = Headers> {
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>(), any::<u16>())
        .prop_map(|(src, dst, ident)| Headers { ident, ..Headers::new(src.into(), dst.into()) });
    let v6 =
        (any::<[u8; 16]>(), any::<[u8; 16]>(), 0u32..1 << 20).prop_map(|(src, dst, flow_label)| {
            Headers { flow_label, ..Headers::new(src.into(), dst.into()) }
        });
    (prop_oneof![v4, v6], any::<u8>(), any::<u8>()).prop_map(
        |(headers, hop_limit, traffic_class)| Headers { hop_limit, traffic_class, ..headers },
    )
}

fn number() -> impl Strategy<Value = (u64, bool)> {
    (any::<u64>(), any::<bool>())
        .prop_map(|(value, long)| (if long { value } else { value & 0xffff_ffff }, long))
}

fn dss() -> impl Strategy<Value = Dss> {
    let ack = number().prop_map(|(value, long)| DataAck { value: WireDsn(value), long });
    let map = (number(), any::<u32>(), any::<u16>(), any::<Option<u16>>()).prop_map(
        |((dsn, long), ssn, len, checksum)| Mapping { dsn: WireDsn(dsn), long, ssn, len, checksum },
    );
    (proptest::option::of(ack), proptest::option::of(map), any::<bool>())
        .prop_map(|(data_ack, mapping, data_fin)| Dss { data_ack, mapping, data_fin })
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)]
}

const REASONS: [ResetReason; 7] = [
    ResetReason::Unspecified,
    ResetReason::Mptcp,
    ResetReason::Resources,
    ResetReason::Prohibited,
    ResetReason::TooMuchOutstanding,
    ResetReason::Performance,
    ResetReason::Middlebox,
];

/// Options of a SYN, of a SYN/ACK, and of all other segments.
fn mptcp(syn: bool, ack: bool) -> BoxedStrategy<Mptcp> {
    let flags = any::<(bool, bool)>().prop_map(|(checksum_required, joins_denied)| MpCapable {
        checksum_required,
        joins_denied,
        ..MpCapable::default()
    });
    let join = any::<(bool, u8, u32, u64, u32)>();
    match (syn, ack) {
        (true, false) => prop_oneof![
            flags.prop_map(Mptcp::Capable),
            join.prop_map(|(backup, address_id, token, _, nonce)| {
                Mptcp::JoinSyn(JoinSyn { backup, address_id, token, nonce })
            })
        ]
        .boxed(),
        (true, true) => prop_oneof![
            (flags, any::<u64>()).prop_map(|(capable, key)| {
                Mptcp::Capable(MpCapable { sender_key: Some(Key(key)), ..capable })
            }),
            join.prop_map(|(backup, address_id, _, hmac, nonce)| {
                Mptcp::JoinSynAck(JoinSynAck { backup, address_id, hmac, nonce })
            })
        ]
        .boxed(),
        _ => prop_oneof![8 => established(flags), 1 => several()].boxed(),
    }
}

fn established(flags: impl Strategy<Value = MpCapable>) -> impl Strategy<Value = Mptcp> {
    let data = any::<Option<(u16, Option<u16>)>>();
    prop_oneof![
        (flags, any::<(u64, u64)>(), data).prop_map(|(capable, (one, other), data)| {
            Mptcp::Capable(MpCapable {
                sender_key: Some(Key(one)),
                receiver_key: Some(Key(other)),
                data_len: data.map(|data| data.0),
                checksum: data.and_then(|data| data.1),
                ..capable
            })
        }),
        any::<[u8; 20]>().prop_map(|hmac| Mptcp::JoinAck(JoinAck { hmac })),
        (any::<u8>(), address(), any::<Option<u16>>(), any::<Option<u64>>()).prop_map(
            |(address_id, address, port, hmac)| {
                Mptcp::AddAddr(AddAddr { address_id, address, port, hmac })
            }
        ),
        proptest::collection::vec(any::<u8>(), 1..=37)
            .prop_map(|ids| Mptcp::RemoveAddr(ids.into())),
        any::<bool>().prop_map(|backup| Mptcp::Prio { backup }),
        any::<u64>().prop_map(|dsn| Mptcp::Fail(WireDsn(dsn))),
        any::<u64>().prop_map(|key| Mptcp::FastClose(Key(key))),
        (0..REASONS.len(), any::<bool>())
            .prop_map(|(n, transient)| Mptcp::Reset { reason: REASONS[n], transient }),
    ]
}

/// Several options for one segment, each of another subtype.
fn several() -> impl Strategy<Value = Mptcp> {
    let options = (any::<u64>(), any::<u8>(), any::<bool>(), 0..REASONS.len());
    (options, proptest::sample::subsequence(vec![0, 1, 2, 3], 2..=4)).prop_map(
        |((number, id, flag, reason), which)| {
            let all = [
                Mptcp::RemoveAddr([id].into()),
                Mptcp::Prio { backup: flag },
                Mptcp::Fail(WireDsn(number)),
                Mptcp::Reset { reason: REASONS[reason], transient: flag },
            ];
            Mptcp::Several(which.into_iter().map(|at| all[at].clone()).collect())
        },
    )
}

fn options(syn: bool, ack: bool) -> impl Strategy<Value = Options> {
    let clock = any::<Option<(u32, u32)>>()
        .prop_map(|clock| clock.map(|(value, echo)| Timestamps { value, echo }));
    let opening = (any::<Option<u16>>(), proptest::option::of(0u8..=14), any::<[bool; 2]>());
    let sack = proptest::collection::vec(any::<(u32, u32)>(), 0..=4);
    let dss = proptest::option::of(dss());
    let mptcp = proptest::option::of(mptcp(syn, ack).prop_map(Box::new));
    (clock, opening, sack, dss, mptcp).prop_map(
        move |(
            timestamps,
            (mss, window_scale, [sack_permitted, early_joins]),
            sack,
            dss,
            mptcp,
        )| {
            let mut options = Options { timestamps, mptcp, ..Options::default() };
            if syn {
                (options.mss, options.window_scale) = (mss, window_scale);
                options.sack_permitted = sack_permitted;
                options.early_joins = early_joins;
            } else {
                options.dss = dss;
                sack.iter().for_each(|(left, right)| {
                    options.sack.push(*left, *right);
                });
            }
            options
        },
    )
}

fn payload() -> impl Strategy<Value = Payload> {
    prop_oneof![
        Just(Payload::Empty),
        proptest::collection::vec(any::<u8>(), 1..100)
            .prop_map(|bytes| Payload::from_bytes(&bytes)),
        (any::<u32>(), 1u32..2_000)
            .prop_map(|(offset, len)| Payload::Pattern { offset: offset.into(), len }),
        (any::<u32>(), 1u32..2_000, any::<u32>()).prop_map(|(offset, len, at)| {
            Payload::Pattern { offset: offset.into(), len }.edited(at % len)
        }),
    ]
}

/// Segments whose options are in permitted places. The options need not fit.
pub(crate) fn segment() -> impl Strategy<Value = Segment> {
    let kind = (any::<bool>(), any::<bool>(), any::<u8>());
    kind.prop_flat_map(|(syn, ack, other)| {
        let mut flags = Flags(other & !(Flags::SYN.0 | Flags::ACK.0));
        if syn {
            flags = flags.with(Flags::SYN);
        }
        if ack {
            flags = flags.with(Flags::ACK);
        }
        (Just(flags), options(syn, ack), any::<(u16, u16, u32, u32, u16)>(), payload())
    })
    .prop_map(|(flags, options, (src_port, dst_port, seq, ack, window), payload)| Segment {
        src_port,
        dst_port,
        seq,
        ack,
        flags,
        window,
        options,
        payload,
        ..Segment::default()
    })
}
