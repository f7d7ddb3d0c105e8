//! Bugs of the codec that a test switches on to prove that the fuzzer finds them.

plait_base::planted_bugs! {
    /// The data offset is believed, wherever it points.
    DataOffset,
    /// An option's length below two counts as two.
    ShortOption,
    /// The length of a DSS is not held against its flags.
    DssLength,
    /// The port in an echo is not read.
    EchoPort,
    /// The bytes of a long REMOVE_ADDR are counted in a field that is too small.
    ManyAddresses,
}
