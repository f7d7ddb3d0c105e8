//! R18, R29: DSNs and DATA_ACKs of 4 bytes across 2^32, counted from each end's IDSN.

use crate::harness::{MSS, Script, multipath, spec};
use crate::segment::{ACK, want};
use plait_wire::Key;

/// Largest distance of the IDSN's low half from 2^32.
const NEAR: u32 = 50_000;

/// Returns the first key from `from` on that puts the low half of the IDSN just below 2^32.
fn key_before_the_wrap(from: u64) -> Key {
    (from..).map(Key).find(|key| (key.idsn().low()) > u32::MAX - NEAR).unwrap()
}

#[test]
fn what_is_sent() {
    let key = key_before_the_wrap(1);
    let mut s = Script::server_drawing(spec(multipath(), 1, None), &[key.0]);
    s.establish(1, 20);
    assert_eq!(s.remote_key, Some(key));
    let total = 70 * u64::from(MSS);
    s.write(total);
    let (mut acked, mut low, mut wraps) = (0, 0_u32, 0);
    while acked < total {
        for (_, seg, segment) in core::mem::take(&mut s.out) {
            let map = segment.options.dss.unwrap().mapping.unwrap();
            assert_eq!((seg.map.unwrap().0, map.long), (acked, false));
            wraps += usize::from(map.dsn.low() < low);
            low = map.dsn.low();
            acked += u64::from(seg.len);
        }
        s.after(20);
        s.ack(0, 1 + acked as u32, acked);
        assert_eq!(s.endpoint.unacked(s.id).unwrap(), total - acked);
    }
    assert_eq!(wraps, 1);
    s.finish();
    s.expect(want(0, ACK).data_fin(total));
}

#[test]
fn what_is_received() {
    for long in [false, true] {
        let mut s = Script::server(spec(multipath(), 2, None));
        s.key = key_before_the_wrap(1 << 32);
        s.establish(2, 20);
        let total = 70 * u64::from(MSS);
        for first in (0..total).step_by(2 * MSS as usize) {
            // The second segment of each pair arrives first, on the other subflow.
            let (ahead, next) = (first + u64::from(MSS), s.tx(0));
            let seg = s.tx(1).data(ahead, MSS);
            s.send(if long { seg.long() } else { seg });
            let seg = next.data(first, MSS);
            s.send(if long { seg.long() } else { seg });
            assert_eq!(s.skip(1 << 20), 2 * u64::from(MSS));
        }
        s.lose_all();
        s.send(s.tx(0).data_fin(total));
        s.expect(want(0, ACK).dack(total + 1));
    }
}
