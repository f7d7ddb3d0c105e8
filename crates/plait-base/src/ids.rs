use core::fmt;

/// A path: a route between two addresses. The world numbers its paths from zero; a server of many
/// clients has one for each of their addresses. Numbers go up to [`PathId::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct PathId(pub u32);

/// A subflow of one connection, numbered in the order of creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct SubflowId(pub u8);

/// One of the addresses at which a listening host is reached over a path. The world numbers them
/// from zero; clients dial number 0, the others are told by ADD_ADDR (RFC 8684 section 3.4.1). The
/// client's own address is that of the path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ServerAddress(pub u8);

impl ServerAddress {
    /// No address: the one number that is never given.
    pub const NONE: ServerAddress = ServerAddress(u8::MAX);
}

/// A connection of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ConnId(pub u32);

impl SubflowId {
    /// A connection has at most this many live subflows, so that a set of them is one byte.
    pub const MAX: usize = 8;

    /// The subflow's position in an array of at most [`SubflowId::MAX`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl PathId {
    /// The largest number: paths have 24 bits, so that one word names a conversation.
    pub const MAX: PathId = PathId((1 << 24) - 1);

    /// The path at a position, if there are numbers for so many.
    #[must_use]
    pub fn at(index: usize) -> Option<PathId> {
        let number = u32::try_from(index).ok()?;
        (number <= PathId::MAX.0).then_some(PathId(number))
    }

    /// The path's position in the world's list.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of subflows of one connection, as a bit mask.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SubflowSet(pub u8);

impl SubflowSet {
    /// No subflow.
    pub const EMPTY: SubflowSet = SubflowSet(0);

    /// The set of one subflow.
    #[must_use]
    pub const fn one(id: SubflowId) -> SubflowSet {
        SubflowSet(1 << id.0)
    }

    /// Whether the set holds `id`.
    #[must_use]
    pub const fn contains(self, id: SubflowId) -> bool {
        self.0 & (1 << id.0) != 0
    }

    /// Adds `id`.
    pub const fn insert(&mut self, id: SubflowId) {
        self.0 |= 1 << id.0;
    }

    /// Takes `id` out.
    pub const fn remove(&mut self, id: SubflowId) {
        self.0 &= !(1 << id.0);
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many subflows the set holds.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The members in ascending order.
    pub fn iter(self) -> impl Iterator<Item = SubflowId> {
        (0..SubflowId::MAX as u8).map(SubflowId).filter(move |id| self.contains(*id))
    }
}

impl FromIterator<SubflowId> for SubflowSet {
    fn from_iter<I: IntoIterator<Item = SubflowId>>(ids: I) -> SubflowSet {
        let mut set = SubflowSet::EMPTY;
        for id in ids {
            set.insert(id);
        }
        set
    }
}

impl fmt::Debug for SubflowSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|id| id.0)).finish()
    }
}

impl fmt::Display for SubflowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
