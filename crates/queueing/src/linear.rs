//! Linear equations, by Gaussian elimination with partial pivoting (Golub and Van Loan, Matrix Computations, 3.4).

/// The `x` with `matrix · x = right`, where each row has as many entries as there are rows. `None` where the matrix is
/// singular to working precision.
pub(crate) fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let n = right.len();
    for column in 0..n {
        let pivot = (column..n).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let (above, below) = matrix.split_at_mut(column + 1);
        let pivot_row = &above[column];
        if pivot_row[column].abs() < f64::MIN_POSITIVE || !pivot_row[column].is_finite() {
            return None;
        }
        for (offset, row) in below.iter_mut().enumerate() {
            let factor = row[column] / pivot_row[column];
            if factor == 0.0 {
                continue;
            }
            for (entry, of_pivot) in row[column..].iter_mut().zip(&pivot_row[column..]) {
                *entry -= factor * of_pivot;
            }
            right[column + 1 + offset] -= factor * right[column];
        }
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|column| matrix[row][column] * right[column]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_on_the_diagonal_is_pivoted_away() {
        let x =
            solve(vec![vec![0.0, 2.0, 1.0], vec![1.0, 0.0, 1.0], vec![2.0, 1.0, 0.0]], vec![7.0, 4.0, 4.0]).unwrap();
        for (x, expected) in x.iter().zip([1.0, 2.0, 3.0]) {
            assert!((x - expected).abs() < 1e-14);
        }
    }

    #[test]
    fn what_has_no_answer_has_none() {
        assert_eq!(solve(vec![vec![1.0, 2.0], vec![2.0, 4.0]], vec![1.0, 2.0]), None);
        assert_eq!(solve(vec![vec![f64::NAN]], vec![1.0]), None);
    }
}
