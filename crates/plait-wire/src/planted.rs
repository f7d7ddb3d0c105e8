//! Bugs of the codec that a test switches on to prove that the fuzzer finds them.

plait_base::planted_bugs! {
    /// The data offset is not checked against the segment.
    DataOffset,
    /// An option length below two is read as two.
    ShortOption,
    /// The length of a DSS is not checked against its flags.
    DssLength,
    /// The port in an ADD_ADDR echo is not read.
    EchoPort,
    /// The number of addresses of a long REMOVE_ADDR overflows its counter.
    ManyAddresses,
}
