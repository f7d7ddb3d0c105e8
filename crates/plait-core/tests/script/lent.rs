//! Several calls for one connection that is lent.

use crate::harness::{Script, multipath};
use crate::segment::{ACK, PSH, want};
use plait_base::ConnId;
use plait_core::{ConnectionState, Error, Lent};

/// A server whose client has sent a request of 100 bytes.
fn asked() -> Script {
    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).data(0, 100));
    s.expect(want(0, ACK).dack(100));
    s
}

/// Calls of a loan have the same results as those of the endpoint, in any order.
#[test]
fn an_answer_leaves_in_any_order_of_calls() {
    for read_first in [true, false] {
        let mut s = asked();
        let (now, id) = (s.now, s.id);
        let (read, written) = Lent::to(&mut s.endpoint, now, id, |lent| {
            assert_eq!((lent.state(), lent.readable()), (ConnectionState::Open, 100));
            let early = if read_first { lent.skip(u64::MAX) } else { 0 };
            let written = lent.write(500).unwrap();
            assert_eq!(lent.unacked(), 500);
            (early + lent.skip(u64::MAX), written)
        })
        .unwrap();
        assert_eq!((read, written), (100, 500));
        s.drain();
        s.expect(want(0, PSH).len(500));
        s.expect_nothing();
    }
}

/// The end of the data is sent, although a read follows it, and ends the writes.
#[test]
fn a_finished_stream_ends() {
    let mut s = asked();
    let (now, id) = (s.now, s.id);
    Lent::to(&mut s.endpoint, now, id, |lent| {
        lent.finish();
        assert_eq!(lent.write(1), Err(Error::Finished));
        assert_eq!(lent.skip(u64::MAX), 100);
    });
    s.drain();
    s.expect(want(0, ACK).data_fin(0));
}

#[test]
fn an_unknown_connection_is_not_lent() {
    let mut s = asked();
    let unknown = ConnId(s.id.0 + 1);
    assert!(Lent::to(&mut s.endpoint, s.now, unknown, |_| ()).is_none());
}
