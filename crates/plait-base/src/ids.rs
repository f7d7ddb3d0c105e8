use core::fmt;

/// A path: a route between two addresses. The world numbers its paths from zero; a server has one
/// for each client address. Numbers go up to [`PathId::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct PathId(pub u32);

/// A subflow of one connection, numbered in the order of creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct SubflowId(pub u8);

/// An address of a listening host on a path. The world numbers them from zero. Clients dial number
/// 0 and learn the others from ADD_ADDR (RFC 8684 section 3.4.1). The path determines the client's
/// own address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ServerAddress(pub u8);

impl ServerAddress {
    /// No address; this number is never assigned.
    pub const NONE: ServerAddress = ServerAddress(u8::MAX);
}

/// A connection of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ConnId(pub u32);

impl SubflowId {
    /// The first subflow.
    pub const FIRST: SubflowId = SubflowId(0);

    /// Most live subflows of a connection, so that a set of them fits one byte.
    pub const MAX: usize = 8;

    /// Returns the subflow's index in an array of at most [`SubflowId::MAX`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl PathId {
    /// The largest number. Paths have 24 bits, so that a key of a conversation fits one word.
    pub const MAX: PathId = PathId((1 << 24) - 1);

    /// Returns the path with this index; `None` above [`PathId::MAX`].
    #[must_use]
    pub fn at(index: usize) -> Option<PathId> {
        let number = u32::try_from(index).ok()?;
        (number <= PathId::MAX.0).then_some(PathId(number))
    }

    /// Returns the path's index in the world's list.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of subflows of one connection, as a bit mask.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SubflowSet(pub u8);

impl SubflowSet {
    /// The empty set.
    pub const EMPTY: SubflowSet = SubflowSet(0);

    /// Returns the set of one subflow.
    #[must_use]
    pub const fn one(id: SubflowId) -> SubflowSet {
        SubflowSet(1 << id.0)
    }

    /// Returns true if `id` is in the set.
    #[must_use]
    pub const fn contains(self, id: SubflowId) -> bool {
        self.0 & (1 << id.0) != 0
    }

    /// Adds `id`.
    pub const fn insert(&mut self, id: SubflowId) {
        self.0 |= 1 << id.0;
    }

    /// Removes `id`.
    pub const fn remove(&mut self, id: SubflowId) {
        self.0 &= !(1 << id.0);
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of subflows in the set.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns the members in ascending order.
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
