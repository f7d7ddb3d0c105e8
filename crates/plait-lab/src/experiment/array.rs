//! Arrays of numbers over the points of axes, with which statements calculate.

/// Pseudo-axis of the runs of a cell.
pub(super) const RUNS: usize = usize::MAX;

/// An axis of an array: its index, and the selected points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Dim {
    pub(super) axis: usize,
    pub(super) points: Vec<usize>,
}

/// Numbers over axes in row-major order, so the last axis varies fastest. A missing value is NaN.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Array {
    pub(super) dims: Vec<Dim>,
    pub(super) data: Vec<f64>,
}

impl Array {
    pub(super) fn scalar(value: f64) -> Array {
        Array { dims: Vec::new(), data: vec![value] }
    }

    /// Returns the array with the number `of(place)` at each place; `place` has an index on each axis.
    pub(super) fn over(dims: Vec<Dim>, mut of: impl FnMut(&[usize]) -> f64) -> Array {
        let total: usize = dims.iter().map(|dim| dim.points.len()).product();
        let mut data = Vec::with_capacity(total);
        for flat in 0..total {
            data.push(of(&places(&dims, flat)));
        }
        Array { dims, data }
    }

    /// Applies `of` to each number.
    pub(super) fn map(mut self, of: impl Fn(f64) -> f64) -> Array {
        for value in &mut self.data {
            *value = of(*value);
        }
        self
    }

    /// Applies `of` to each pair of numbers. An axis that only one array has is repeated for the other.
    /// Returns `None` if the arrays have different points of the same axis.
    pub(super) fn zip(&self, other: &Array, of: impl Fn(f64, f64) -> f64) -> Option<Array> {
        let mut dims = self.dims.clone();
        for dim in &other.dims {
            match self.dims.iter().find(|known| known.axis == dim.axis) {
                Some(known) if known.points != dim.points => return None,
                Some(_) => {}
                None => dims.push(dim.clone()),
            }
        }
        let flats: Vec<(usize, usize)> = {
            let total: usize = dims.iter().map(|dim| dim.points.len()).product();
            (0..total)
                .map(|flat| {
                    let at = places(&dims, flat);
                    (self.flat_of(&dims, &at), other.flat_of(&dims, &at))
                })
                .collect()
        };
        let data = flats.into_iter().map(|(a, b)| of(self.data[a], other.data[b])).collect();
        Some(Array { dims, data })
    }

    /// Returns the flat index of a number from its places on the axes of a larger array.
    fn flat_of(&self, dims: &[Dim], at: &[usize]) -> usize {
        self.dims.iter().fold(0, |flat, dim| {
            let place = dims.iter().position(|other| other.axis == dim.axis);
            flat * dim.points.len() + place.map_or(0, |place| at[place])
        })
    }

    /// Returns the axis and the point of each coordinate of the number at `flat`.
    pub(super) fn points_of(&self, flat: usize) -> Vec<(usize, usize)> {
        let at = places(&self.dims, flat);
        self.dims.iter().zip(at).map(|(dim, place)| (dim.axis, dim.points[place])).collect()
    }
}

/// Returns the place on each axis of the number at `flat`.
fn places(dims: &[Dim], mut flat: usize) -> Vec<usize> {
    let mut at = vec![0; dims.len()];
    for (place, dim) in at.iter_mut().zip(dims).rev() {
        *place = flat % dim.points.len().max(1);
        flat /= dim.points.len().max(1);
    }
    at
}

/// Restricts arrays over all points of an axis to the points of the other arguments.
pub(super) fn aligned(arguments: Vec<Array>) -> Vec<Array> {
    let mut list = arguments;
    for at in 0..list.len() {
        for dim in list[at].dims.clone() {
            let narrow = list
                .iter()
                .flat_map(|other| &other.dims)
                .filter(|other| other.axis == dim.axis)
                .min_by_key(|other| other.points.len())
                .cloned();
            let Some(narrow) = narrow.filter(|narrow| narrow.points != dim.points) else {
                continue;
            };
            if !narrow.points.iter().all(|point| dim.points.contains(point)) {
                continue;
            }
            let old = list[at].clone();
            let kept = |flat: &usize| {
                let at = old.points_of(*flat);
                at.iter().any(|(axis, point)| *axis == dim.axis && narrow.points.contains(point))
            };
            let data = (0..old.data.len()).filter(kept).map(|flat| old.data[flat]).collect();
            let dims = old
                .dims
                .iter()
                .map(|it| if it.axis == dim.axis { narrow.clone() } else { it.clone() })
                .collect();
            list[at] = Array { dims, data };
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dim(axis: usize, count: usize) -> Dim {
        Dim { axis, points: (0..count).collect() }
    }

    #[test]
    fn axes_are_matched_by_name_and_not_by_place() {
        let a = Array::over(vec![dim(0, 2), dim(1, 3)], |at| (10 * at[0] + at[1]) as f64);
        let b = Array::over(vec![dim(1, 3)], |at| 100.0 * at[0] as f64);
        let sum = a.zip(&b, |a, b| a + b).unwrap();
        assert_eq!(sum.data, [0.0, 101.0, 202.0, 10.0, 111.0, 212.0]);
        // With the operands swapped, the axes are swapped as well.
        let swapped = b.zip(&a, |a, b| a + b).unwrap();
        assert_eq!(swapped.data, [0.0, 10.0, 101.0, 111.0, 202.0, 212.0]);
        assert_eq!(sum.points_of(4), [(0, 1), (1, 1)]);
        let other = Array::over(vec![Dim { axis: 1, points: vec![0, 2, 1] }], |_| 0.0);
        assert_eq!(a.zip(&other, |a, _| a), None);
    }
}
