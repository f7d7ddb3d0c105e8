//! The directions of a path.

use std::ops::Index;

/// A direction of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Server to client.
    Down,
    /// Client to server.
    Up,
}

/// A value for each direction of a path.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PerDirection<T> {
    /// Server to client.
    pub down: T,
    /// Client to server.
    pub up: T,
}

impl<T> Index<Direction> for PerDirection<T> {
    type Output = T;

    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }
}
