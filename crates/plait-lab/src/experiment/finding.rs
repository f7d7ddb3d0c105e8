//! What was found of a relation: true or false at each point, and the point where it is tightest.

/// One relation of a statement, at the point where it holds by least or fails by most.
#[derive(Clone, PartialEq, Debug)]
pub struct Shown {
    /// The left side as written, the relation and the right side.
    pub left: String,
    /// Its value, not a number where a cell has none.
    pub left_value: f64,
    /// All values of a list, where it is one that is judged as a whole.
    pub list: Vec<f64>,
    /// The relation; empty for what is true or not by itself.
    pub sign: &'static str,
    /// The right side as written.
    pub right: String,
    /// Its value.
    pub right_value: f64,
    /// Where: `n=15, rtt2=100ms`; empty where there is one place only.
    pub place: String,
    /// Whether it holds, everywhere.
    pub holds: bool,
    /// At how many places it was asked, and at how many it holds.
    pub places: (usize, usize),
    pub(super) margin: f64,
    /// The confidence with which it holds there; 0 if nothing is said of it.
    pub(super) confidence: f64,
    /// The place of its atom among those of the statement.
    pub(super) atom: usize,
}

/// One relation at one point: the smallest part of a statement that is true or false.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Atom {
    /// Whether it holds.
    pub(super) holds: bool,
    /// How far it is from the other answer, relative to its sides; below zero if it does not hold.
    pub(super) margin: f64,
    /// The value of its left side.
    pub(super) left: f64,
    /// Whether something that it looks at has no value: then it is neither true nor false.
    pub(super) absent: bool,
}

/// The atoms of a relation.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Group {
    /// Whether one of them is enough.
    pub(super) any: bool,
    /// Whether they lie on an axis that is a sample of networks.
    pub(super) over_networks: bool,
    pub(super) atoms: Vec<Atom>,
}

impl Group {
    pub(super) fn holds(&self) -> bool {
        let mut atoms = self.atoms.iter();
        if self.any { atoms.any(|atom| atom.holds) } else { atoms.all(|atom| atom.holds) }
    }
}

/// Of two findings of one relation at different turns, the one that fails, or holds by less.
pub(super) fn tighter(a: Shown, b: Shown) -> Shown {
    let places = (a.places.0 + b.places.0, a.places.1 + b.places.1);
    let holds = a.holds && b.holds;
    let first = match (a.holds, b.holds) {
        _ if a.confidence != b.confidence => a.confidence < b.confidence,
        (true, false) => false,
        (false, true) => true,
        _ => a.margin <= b.margin,
    };
    Shown { places, holds, ..if first { a } else { b } }
}
