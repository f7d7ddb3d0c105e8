//! The parts of a connection that change together with its subflows.

use crate::context::Context;
use crate::data::level::DataLevel;
use crate::notices::Notices;
use crate::timers::ConnectionTimers;

/// The parts of a connection beside its subflows and its scheduler, for one call.
pub(crate) struct Parts<'a> {
    pub(crate) ctx: Context<'a>,
    pub(crate) data: &'a mut DataLevel,
    pub(crate) timers: &'a mut ConnectionTimers,
    pub(crate) notices: &'a mut Notices,
}
