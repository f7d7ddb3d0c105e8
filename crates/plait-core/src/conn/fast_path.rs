//! Header prediction. Nearly all segments are the next in order: data, or an acknowledgement alone.
//! A few field comparisons identify them and replace all other checks. All other segments take the
//! slow path from its start.

use crate::conn::Connection;
use crate::context::Context;
use crate::data::level::DataLevel;
use crate::notices::Notices;
use crate::paths::Paths;
use crate::tcp::fast_path::Next;
use plait_base::{Dsn, SendSsn, SubflowId};
use plait_wire::{DataAck, Dss, Flags, Segment};

/// The flags that rule out the fast path, and ACK, which must be set.
const TELLING: u8 = Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0 | Flags::ACK.0;

/// A segment for the subflow `id`, compared with the expected one.
struct Prediction<'a> {
    id: SubflowId,
    segment: &'a Segment,
}

/// The outcome of a prediction.
enum Predicted {
    /// The segment is not the expected one; nothing has changed.
    Other,
    /// It acknowledges sequence numbers below `ack`, and data below `edge`.
    Ack { ack: SendSsn, edge: Option<Dsn> },
    /// Its data was accepted.
    Data,
}

impl Connection {
    /// Processes a segment for the subflow `id` if it is the expected one. Otherwise returns
    /// false and changes nothing.
    #[inline(always)]
    pub(super) fn try_fast_path(
        &mut self,
        ctx: &mut Context<'_>,
        id: SubflowId,
        segment: &Segment,
    ) -> bool {
        let Connection { data, paths, notices, .. } = self;
        match (Prediction { id, segment }).take(ctx, data, paths, notices) {
            Predicted::Other => return false,
            Predicted::Ack { ack, edge } => self.on_acknowledgements(ctx, id, segment, ack, edge),
            // The end of the data may cause more to send than an acknowledgement.
            Predicted::Data => self.rounds.set_quiet(!self.data.reassembly().finished()),
        }
        true
    }
}

impl Prediction<'_> {
    #[inline(always)]
    fn take(
        &self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        paths: &mut Paths,
        notices: &mut Notices,
    ) -> Predicted {
        let Prediction { id, segment } = *self;
        let alone = segment.flags.0 & TELLING == Flags::ACK.0 && segment.options.mptcp.is_none();
        let settled = |plain| match plain {
            false => data.is_settled(&paths.spec.config),
            true => data.is_settled_plain(&paths.spec.config),
        };
        let dss = segment.options.dss.as_ref();
        if !alone
            || !settled(dss.is_none())
            || !(Next { segment, of: paths.subflow(id) }).is_expected()
        {
            return Predicted::Other;
        }
        let predicted = match dss {
            Some(dss) => self.mapped(ctx, data, paths, dss),
            None => self.plain(ctx, data, paths),
        };
        let Some((predicted, before)) = predicted else { return Predicted::Other };
        if let Some(before) = before {
            paths.after_data(data, notices, ctx.now, id, before);
        }
        predicted
    }

    /// Takes the expected segment of Multipath TCP. If it had data, also returns the DSN up to which data
    /// was readable before.
    #[inline(always)]
    fn mapped(
        &self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        paths: &mut Paths,
        dss: &Dss,
    ) -> Option<(Predicted, Option<Dsn>)> {
        let Prediction { id, segment } = *self;
        let (false, Some(DataAck { value, long: false })) = (dss.data_fin, dss.data_ack) else {
            return None;
        };
        let next = Next { segment, of: paths.subflow(id) };
        match &dss.mapping {
            None if segment.payload.is_empty() => {
                let ack = next.credible_ack()?;
                data.on_further_dss();
                paths.note_stamp(id, segment);
                let edge = data.keys().own.read_low(value, data.queue().una());
                Some((Predicted::Ack { ack, edge: Some(edge) }, None))
            }
            Some(map) => {
                let old = value.low() == data.keys().own.wire(data.queue().una()).low();
                if !old || !next.tells_no_news(data) {
                    return None;
                }
                let before = paths.take_next(ctx, data, id, segment, Some(map))?;
                data.on_further_dss();
                Some((Predicted::Data, Some(before)))
            }
            None => None,
        }
    }

    /// Takes the expected segment of plain TCP, as [`Prediction::mapped`] does.
    #[inline(always)]
    fn plain(
        &self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        paths: &mut Paths,
    ) -> Option<(Predicted, Option<Dsn>)> {
        let Prediction { id, segment } = *self;
        let next = Next { segment, of: paths.subflow(id) };
        if segment.payload.is_empty() {
            let ack = next.credible_ack()?;
            let edge = data.acknowledged_data(segment, ack);
            paths.note_stamp(id, segment);
            return Some((Predicted::Ack { ack, edge }, None));
        }
        let una = data.acknowledged_data(segment, next.of.sender().tx.una());
        if una != Some(data.queue().una()) || !next.tells_no_news(data) {
            return None;
        }
        let before = paths.take_next(ctx, data, id, segment, None)?;
        Some((Predicted::Data, Some(before)))
    }
}
