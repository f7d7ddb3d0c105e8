//! Names of the bugs of `tests/planted.patch`. A test switches them on to prove that the swarm finds
//! them.

/// True in a tree with the patch (`tests/planted`).
pub const IN_PLACE: bool = false;

plait_base::planted_bugs! {
    /// The DATA_ACK is one ahead of the data that arrived.
    DataAckAhead,
    /// A timeout does not reinject data on other subflows.
    NoReinjection,
    /// The advertised window excludes out-of-order data, so its right edge moves left.
    WindowMovesLeft,
    /// Data that overlaps delivered data is delivered whole.
    OverlapTwice,
    /// Data that overlaps delivered data is dropped whole.
    RestDropped,
    /// The DATA_FIN is sent once and never again.
    DataFinOnce,
    /// The peer's DATA_FIN is processed before all data has arrived.
    DataFinEarly,
    /// A retransmission carries the mapping of the first data that is not DATA_ACKed.
    WrongMapping,
    /// Data below a SACK block counts as delivered.
    SackForgets,
    /// A closed window is never probed.
    NoWindowProbe,
    /// The second consecutive timeout sets no timer.
    TimeoutOnce,
    /// Subflows send their FIN as soon as the DATA_FIN is sent.
    FinEarly,
    /// The HMAC of a join is sent once and never again.
    ProofOnce,
    /// An old window update replaces a newer one.
    StaleWindow,
    /// The application is not notified when its send buffer has room again.
    LostWakeUp,
    /// A retransmission does not count as in flight.
    FlightForgets,
    /// A connection keeps all its memory when its subflows only wait.
    WaitsInFull,
}
