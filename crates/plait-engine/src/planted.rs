//! Bugs that a test switches on to prove that the swarm finds them.

plait_base::planted_bugs! {
    /// A full table of client addresses is walked for every packet, and nobody counts whom it shuts out
    /// (R1 of the review of reliability).
    FullNames,
    /// Clients that do not read may hold as much as others, and near services have buffers of the usual
    /// size in a crowd (R2).
    UnreadShares,
    /// A relay is over as soon as one of its directions has ended.
    OneDirection,
    /// A socket that hung up wakes its relay again and again.
    HungUpWakes,
    /// A program that is gone is never asked after.
    Unasked,
}
