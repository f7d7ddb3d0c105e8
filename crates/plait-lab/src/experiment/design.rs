//! Points that fill a cube evenly, by the WSP algorithm (Santiago, Claeys-Bruno and Sergent 2012).
//! From many random points it takes the one nearest the centre and removes all points closer to it
//! than a distance. It continues with the nearest remaining point. A bisection finds the distance
//! that leaves the wanted number of points.

use plait_base::RandomStream;

/// Candidates for each wanted point.
const CANDIDATES: usize = 10;
/// Steps of the bisection.
const HALVINGS: u32 = 40;

/// Returns `count` points of the unit cube with `dimensions` axes; the same seed gives the same points.
pub(super) fn points(dimensions: usize, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut stream =
        RandomStream::new(seed, &["design", &dimensions.to_string(), &count.to_string()]);
    let candidates: Vec<Vec<f64>> =
        (0..count * CANDIDATES).map(|_| (0..dimensions).map(|_| stream.unit()).collect()).collect();
    // A longer distance leaves fewer points.
    let (mut near, mut far) = (0.0, libm::sqrt(dimensions as f64));
    for _ in 0..HALVINGS {
        let middle = (near + far) / 2.0;
        let left = chosen(&candidates, middle).len();
        if left == count {
            near = middle;
            break;
        }
        if left > count { near = middle } else { far = middle }
    }
    let mut list = chosen(&candidates, near);
    // If no distance leaves exactly `count` points, the surplus at the end is dropped.
    list.truncate(count);
    list.into_iter().map(|at| candidates[at].clone()).collect()
}

/// Returns the points that remain with this distance, in the order of the selection.
fn chosen(candidates: &[Vec<f64>], distance: f64) -> Vec<usize> {
    let Some(first) = candidates.first() else { return Vec::new() };
    let centre = vec![0.5; first.len()];
    let mut left: Vec<usize> = (0..candidates.len()).collect();
    let nearest = |from: &[f64], left: &[usize]| {
        left.iter()
            .map(|at| (square(from, &candidates[*at]), *at))
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
            .map(|(_, at)| at)
    };
    let mut chosen = Vec::new();
    let mut next = nearest(&centre, &left);
    while let Some(at) = next {
        chosen.push(at);
        let here = &candidates[at];
        left.retain(|other| {
            *other != at && square(here, &candidates[*other]) >= distance * distance
        });
        next = nearest(here, &left);
    }
    chosen
}

fn square(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_design_has_as_many_points_as_asked_for_and_keeps_them_apart() {
        let list = points(6, 200, 1);
        assert_eq!(list.len(), 200);
        assert!(list.iter().flatten().all(|x| (0.0..1.0).contains(x)));
        let mut least = f64::INFINITY;
        for (at, a) in list.iter().enumerate() {
            for b in &list[at + 1..] {
                least = least.min(square(a, b));
            }
        }
        // The nearest two of 200 random points of this cube are about 0.12 apart.
        assert!(libm::sqrt(least) > 0.35, "{}", libm::sqrt(least));
        // The design covers each factor, so its mean is in the middle.
        for axis in 0..6 {
            let mean = list.iter().map(|point| point[axis]).sum::<f64>() / 200.0;
            assert!((mean - 0.5).abs() < 0.05, "{axis}: {mean}");
        }
        assert_eq!(list, points(6, 200, 1));
        assert_ne!(list, points(6, 200, 2));
    }
}
