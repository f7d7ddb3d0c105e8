//! DSS checksums: who requests them, the data that they cover, delivery, and wrong checksums. The
//! audit verifies the checksums of every segment of the endpoint.

use crate::harness::{MSS, Script, multipath, spec};
use crate::segment::{ACK, PSH, RST, SYN, Seg, want};
use plait_base::DataRange;
use plait_core::{Config, ConnectionState, FallbackCause};
use plait_wire::{MpCapable, Mptcp};

fn summing() -> Config {
    Config { checksum: true, ..Config::default() }
}

fn asking(ask: bool, data_len: Option<u16>, s: &Script) -> Mptcp {
    Mptcp::Capable(MpCapable {
        checksum_required: ask,
        joins_denied: false,
        sender_key: data_len.map(|_| s.key),
        receiver_key: data_len.and(s.remote_key),
        data_len,
        checksum: None,
    })
}

/// Returns the MP_FAIL of the endpoint for a mapping with all 64 bits of its DSN.
fn failed(s: &Script, dsn: u64) -> String {
    format!("{:?}", Mptcp::Fail(s.key.idsn().plus(1).plus(dsn)))
}

/// R12: a server that does not request checksums uses them if the client does, and sets the flag.
#[test]
fn the_client_asks() {
    let mut s = Script::server(spec(multipath(), 1, None));
    s.sums = true;
    let syn = s.syn(0).mptcp(asking(true, None, &s));
    s.send(syn);
    s.expect(want(0, SYN.with(ACK)).mptcp("capable1 sums"));
    s.after(20);
    s.send(s.proof(0));
    s.id = s.endpoint.poll_accept().unwrap();
    s.write(1_000);
    s.lose_all();
    s.send(s.tx(0).data(0, 500));
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 500);
}

/// R12: a client that does not request checksums uses them if the server does. Its third ACK and
/// its first data have the flag.
#[test]
fn the_server_asks() {
    let mut s = Script::client(spec(multipath(), 1, None));
    s.expect(want(0, SYN).mptcp("capable0"));
    s.after(20);
    s.sums = true;
    s.send(s.syn_ack(0));
    s.expect(want(0, ACK).mptcp("capable2 sums"));
    s.write(5_000);
    // R7: MP_CAPABLE with data takes 24 bytes, four more than a DSS.
    let seg = s.expect(want(0, PSH).mptcp("capable2 1424 sums").len(MSS - 4));
    assert!(matches!(seg.mptcp, Some(Mptcp::Capable(it)) if it.len_with_checksum()));
    s.expect(want(0, PSH).map(1_424, 1_425, MSS as u16));
    s.finish();
    s.ack(0, 5_001, 5_000);
    s.lose_all();
}

/// R12: a client verifies checksums although only the server requested them.
#[test]
fn a_client_verifies_too() {
    let mut s = Script::client(spec(multipath(), 1, None));
    s.after(20);
    s.sums = true;
    s.send(s.syn_ack(0));
    s.lose_all();
    s.send(s.tx(0).data(0, 500));
    s.expect(want(0, ACK).ack(501).dack(500));
    s.send(s.tx(0).data(500, 500).edited());
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 500);
    let cause = s.endpoint.stats(s.id).unwrap().fallback;
    assert_eq!(cause, Some(FallbackCause::Checksum));
}

trait Lengths {
    fn len_with_checksum(&self) -> bool;
}

impl Lengths for MpCapable {
    fn len_with_checksum(&self) -> bool {
        Mptcp::Capable(self.clone()).len() == 24
    }
}

/// R12: without a request no checksums are sent, and received ones are not verified.
#[test]
fn nobody_asks() {
    let mut s = Script::open_server(multipath(), 1);
    s.sums = true;
    s.send(s.tx(0).data(0, 500).edited());
    s.sums = false;
    s.expect(want(0, ACK).dack(500).mptcp("-"));
}

/// R7, R12, R34: the first data on MP_CAPABLE has a checksum. Data with a wrong one is not
/// accepted.
#[test]
fn first_data_with_its_checksum() {
    for edited in [false, true] {
        let mut s = Script::server(spec(summing(), 1, None));
        let syn = s.syn(0).mptcp(asking(true, None, &s));
        s.send(syn);
        s.after(20);
        s.lose_all();
        let first = asking(true, Some(400), &s);
        let data = Seg { len: 400, dack: None, edited, ..s.tx(0).flags(PSH).mptcp(first) };
        s.send(data);
        assert_eq!(s.endpoint.readable(s.id).unwrap(), if edited { 0 } else { 400 });
    }
}

/// R34: data is delivered and DATA_ACKed only after its whole mapping has arrived. The mapping
/// covers three segments, and only the first one carries it.
#[test]
fn the_whole_mapping_first() {
    let mut s = Script::open_server(summing(), 1);
    let whole = Seg { len: 300, ..s.tx(0).flags(PSH).map(0, 1, 300) };
    let segment = s.to_wire(&whole);
    let checksum = segment.options.dss.and_then(|dss| dss.mapping).unwrap().checksum;
    for (seq, readable) in [(1, 0), (101, 0), (201, 300)] {
        let mut piece = segment.clone();
        piece.seq = segment.seq.wrapping_add(seq - 1);
        piece.payload = segment.payload.slice(seq - 1, 100);
        if seq > 1 {
            piece.options.dss = None;
        }
        s.sent.insert(DataRange::between(0, readable));
        s.endpoint.handle(s.now, plait_base::PathId(0), &piece);
        s.drain();
        assert_eq!(s.endpoint.readable(s.id).unwrap(), readable, "{checksum:?}");
        s.expect(want(0, ACK).ack(seq + 100).dack(readable));
    }
}

/// R34: a DATA_FIN without data has the checksum of its pseudo header. With a wrong one it is
/// ignored.
#[test]
fn the_data_fin_has_one() {
    let mut s = Script::open_server(summing(), 1);
    s.sums = false;
    s.send(s.tx(0).data_fin(0));
    s.lose_all();
    assert_eq!(s.state(), ConnectionState::Open);
    s.sums = true;
    s.send(s.tx(0).data_fin(0));
    s.expect(want(0, ACK).dack(1));
    assert_eq!(s.state(), ConnectionState::PeerDone);
    s.finish();
    s.expect(want(0, ACK).data_fin(0));
}

/// R34, R41: a DATA_FIN with data counts in the length of the mapping, but adds no byte to the
/// checksum.
#[test]
fn the_data_fin_with_data() {
    let mut s = Script::open_server(summing(), 1);
    let mut last = s.tx(0).data(0, 500).map(0, 1, 501);
    last.data_fin = true;
    s.send(last);
    s.expect(want(0, ACK).ack(501).dack(501));
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 500);
}

/// R53, F4: among several subflows, the one with a wrong checksum is reset with MP_FAIL and the
/// mapping's DSN. The data is not delivered, and another subflow carries it.
#[test]
fn a_wrong_checksum_among_subflows() {
    let mut s = Script::open_server(summing(), 2);
    s.send(s.tx(0).data(0, 500));
    s.expect(want(0, ACK).dack(500));
    s.send(s.tx(1).data(500, 500).edited());
    s.expect(want(1, RST).mptcp(&failed(&s, 500)));
    s.send(s.tx(0).data(500, 500));
    s.expect(want(0, ACK).dack(1_000));
    assert_eq!((s.endpoint.readable(s.id).unwrap(), s.state()), (1_000, ConnectionState::Open));
}

/// R53: if the peer resets a subflow with MP_FAIL, its data is sent elsewhere. This includes data
/// acknowledged on it but not DATA_ACKed.
#[test]
fn a_subflow_that_is_reset_with_mp_fail() {
    let mut s = Script::open_server(summing(), 2);
    s.write(2 * u64::from(MSS));
    s.expect(want(0, PSH).map(0, 1, MSS as u16));
    s.expect(want(0, PSH).map(1_428, 1_429, MSS as u16));
    s.ack(0, 2 * MSS + 1, u64::from(MSS));
    let dsn = s.remote_key.unwrap().idsn().plus(1 + u64::from(MSS));
    s.send(s.tx(0).flags(RST).mptcp(Mptcp::Fail(dsn)));
    s.expect(want(1, PSH).map(1_428, 1, MSS as u16));
    s.expect_nothing();
}

/// R31: a mapping with a checksum that overlaps a different one is an error.
#[test]
fn contradictions_are_errors() {
    let mut s = Script::open_server(summing(), 2);
    s.send(s.tx(1).seq(501).data(500, 500));
    s.lose_all();
    let mut other = s.tx(1).data(9_000, 600);
    (other.seq, other.map) = (401, Some((9_000, 401, 600)));
    s.send(other);
    s.expect(want(1, RST).mptcp("Reset { reason: Mptcp, transient: false }"));
    assert_eq!(s.state(), ConnectionState::Open);
}

/// R2, R34: options with a checksum and a SACK block fit, and the segment stays within the MTU
/// (verified by the audit).
#[test]
fn checksums_leave_room_for_one_block() {
    let mut s = Script::open_server(summing(), 1);
    s.send(s.tx(0).seq(501).data(500, 100));
    s.send(s.tx(0).seq(801).data(800, 100));
    s.lose_all();
    s.write(5_000);
    s.expect(want(0, PSH).len(MSS));
}
