//! Names of the bugs of the codec in `tests/planted.patch`. A test switches them on to prove that the
//! fuzzer finds them.

/// True in a tree with the patch (`tests/planted`).
pub const IN_PLACE: bool = false;

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
