//! The evaluation of a relation: true or false at each point, and the point with the smallest margin.

/// One relation of a statement, at the point with the smallest margin.
#[derive(Clone, PartialEq, Debug)]
pub struct RelationResult {
    /// The left side as written.
    pub left: String,
    /// Value of the left side; NaN if a cell lacks it.
    pub left_value: f64,
    /// All values of a list that is judged as a whole; otherwise empty.
    pub list: Vec<f64>,
    /// The relation; empty for an expression that is true or false by itself.
    pub sign: &'static str,
    /// The right side as written.
    pub right: String,
    /// Value of the right side.
    pub right_value: f64,
    /// The points: `n=15, rtt2=100ms`; empty if there is only one place.
    pub place: String,
    /// True if the relation holds at all places.
    pub holds: bool,
    /// Number of places at which it holds, and number of places.
    pub places: (usize, usize),
    pub(super) margin: f64,
    /// The confidence at this point; 0 if it is unknown.
    pub(super) confidence: f64,
    /// Index of the atom in the statement.
    pub(super) atom: usize,
}

/// One relation at one point: the smallest part of a statement that is true or false.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Atom {
    /// True if the relation holds.
    pub(super) holds: bool,
    /// Distance from the opposite answer, relative to the sides; negative if the relation does not hold.
    pub(super) margin: f64,
    /// Value of the left side.
    pub(super) left: f64,
    /// True if a value is missing; the atom is then neither true nor false.
    pub(super) absent: bool,
}

/// The atoms of a relation.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Group {
    /// True if one atom that holds is enough.
    pub(super) any: bool,
    /// True if the atoms are on an axis that is a sample of networks.
    pub(super) over_networks: bool,
    pub(super) atoms: Vec<Atom>,
}

impl Group {
    pub(super) fn holds(&self) -> bool {
        let mut atoms = self.atoms.iter();
        if self.any { atoms.any(|atom| atom.holds) } else { atoms.all(|atom| atom.holds) }
    }
}

/// Returns one of two findings of the same relation in different iterations: the one that fails or
/// has the smaller margin.
pub(super) fn tighter(a: RelationResult, b: RelationResult) -> RelationResult {
    let places = (a.places.0 + b.places.0, a.places.1 + b.places.1);
    let holds = a.holds && b.holds;
    let first = match (a.holds, b.holds) {
        _ if a.confidence != b.confidence => a.confidence < b.confidence,
        (true, false) => false,
        (false, true) => true,
        _ => a.margin <= b.margin,
    };
    RelationResult { places, holds, ..if first { a } else { b } }
}
