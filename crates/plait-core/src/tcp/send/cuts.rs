//! Splits sent segments when a path drops longer ones.

use crate::tcp::send::TxRing;
use crate::tcp::send::sent::{Sent, SentState};
use plait_base::SendSsn;

impl TxRing {
    /// Splits the segment at the left edge into a part of `small` bytes and others of at most
    /// `most`.
    #[cold]
    pub(crate) fn cut_first(&mut self, small: u32, most: u32) {
        let end = self.ring.front().map_or(SendSsn::ZERO, |first| first.seq + u64::from(small));
        self.cut(|sent| if sent.seq < end { small } else { most }, 1);
    }

    /// Splits every segment into parts of at most `most` bytes.
    #[cold]
    pub(crate) fn cut_to(&mut self, most: u32) {
        if self.ring.iter().any(|sent| sent.len > most) {
            self.cut(|_| most, usize::MAX);
        }
    }

    /// Splits each of the first `count` segments; `most` returns the length of the next part of the
    /// rest.
    fn cut(&mut self, most: impl Fn(&Sent) -> u32, count: usize) {
        let whole = core::mem::take(&mut self.ring);
        self.ring.reserve(2 * whole.len());
        for (at, mut rest) in whole.into_iter().enumerate() {
            while at < count && !rest.fin && rest.len > most(&rest).max(1) {
                let len = most(&rest).max(1);
                self.ring.push_back(Sent { len, ..rest });
                rest.seq += u64::from(len);
                rest.dsn += u64::from(len);
                rest.len -= len;
            }
            self.ring.push_back(rest);
        }
        // An acknowledgement may have ended within a segment.
        while let Some(first) = self.ring.front().filter(|first| first.end() <= self.una) {
            if first.state == SentState::InFlight {
                self.inflight -= u64::from(first.len);
            }
            self.ring.pop_front();
        }
        let all = |it| self.ring.iter().filter(|sent| sent.state == it).count() as u32;
        (self.lost, self.sacked_segments) = (all(SentState::Lost), all(SentState::Sacked));
        self.look_anew();
    }
}
