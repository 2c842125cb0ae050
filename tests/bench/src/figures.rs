//! Medians and percentiles.

use std::time::Duration;

/// The middle of what was measured, which must not be empty.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

/// The value that 99 of 100 do not pass.
pub(crate) fn p99(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() * 99).div_ceil(100) - 1]
}

/// The median of the ratios of each round, in which both were measured side by side.
pub(crate) fn paired_ratio(ours: &[f64], peers: &[f64]) -> f64 {
    let ratios: Vec<f64> = ours.iter().zip(peers).map(|(ours, peers)| ours / peers).collect();
    median(&ratios)
}

/// A duration as microseconds.
pub(crate) fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_small_lists() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(p99(&hundred), 99.0);
        assert_eq!(p99(&[7.0]), 7.0);
        assert_eq!(paired_ratio(&[2.0, 9.0, 4.0], &[1.0, 3.0, 4.0]), 2.0);
    }
}
