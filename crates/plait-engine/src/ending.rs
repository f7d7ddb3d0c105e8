//! Why a connection has ended, in words for the log.

use plait_core::TimedOut;

/// The peer of a new connection never answered.
pub(crate) const SILENT: &str =
    "no answer: check that a server runs there and that its answers reach this host";
const UNTAKEN: &str =
    "the peer neither acknowledged data nor opened its window for the user timeout";
const UNHEARD: &str = "the peer answered no keep-alive";
const SPENT: &str = "over_quota: the quotas of all paths are used up";
const RESET: &str = "the peer has reset the connection, or has not answered for too long";
const REFUSED: &str = "refused: no server listens there, or a firewall on the way forbids it";

/// A client has not named its destination, or the name was not resolved.
pub(crate) const UNASKED: &str = "no request, or no address for its name, within 30 s";
/// Too many clients have not named their destination.
pub(crate) const CROWDED: &str = "1,024 connections have no destination yet";

/// Returns why a connection failed: by the timeout that ended it, whether it was ever established, and
/// whether its peer refused it.
pub(crate) fn cause(timed_out: Option<TimedOut>, established: bool, refused: bool) -> &'static str {
    match (timed_out, established, refused) {
        (Some(TimedOut::User), ..) => UNTAKEN,
        (Some(TimedOut::KeepAlive), ..) => UNHEARD,
        (Some(TimedOut::Quota), ..) => SPENT,
        (_, true, _) => RESET,
        (.., true) => REFUSED,
        (.., false) => SILENT,
    }
}
