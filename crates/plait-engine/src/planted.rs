//! Names of the bugs of the engine in `tests/planted.patch`. A test switches them on to prove that the
//! swarm finds them.

plait_base::planted_bugs! {
    /// A full table of client addresses is walked for every packet, and refused clients are not
    /// counted.
    FullNames,
    /// Clients that do not read may hold as much as others, and sockets to near services always
    /// have default buffers.
    UnreadShares,
    /// A relay ends as soon as one of its directions has ended.
    OneDirection,
    /// A socket that hung up wakes its relay repeatedly.
    HungUpWakes,
    /// A keep-alive never checks whether a program still runs.
    Unasked,
}
