//! Response time over due time, as counts in a few hundred cells: what a plot with a dot a request would show.
//!
//! It is made of the [`crate::batches`] when a run is over, so it costs a request nothing.

use serde::{Deserialize, Serialize};

use crate::{Batches, Nanos, batches};

/// Columns and rows at the most: 384 cells.
const COLUMNS: usize = 32;
const ROWS: usize = 12;

/// How many good responses took how long, by when their requests were due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseTimeMap {
    /// The time of one column.
    #[serde(rename = "column_ns")]
    pub column: Nanos,
    /// Edges of the rows, rising: a row counts the times from its lower edge up to its upper one, without that.
    #[serde(rename = "edges_ns")]
    pub edges: Vec<Nanos>,
    /// For each column since the start of the window the responses in each row, the shortest times first.
    pub counts: Vec<Vec<u64>>,
}

impl ResponseTimeMap {
    /// Of a run with these batches; `None` where they have no response.
    pub fn of(batches: &Batches) -> Option<ResponseTimeMap> {
        const EACH: usize = batches::MOST.div_ceil(COLUMNS);
        let buckets = batches.buckets()?;
        let rows = buckets.len().min(ROWS);
        let edges: Vec<usize> = (0..=rows).map(|row| buckets.start + row * buckets.len() / rows).collect();
        let of_row = |column: &[batches::Batch], row: &[usize]| column.iter().map(|b| b.within(row[0]..row[1])).sum();
        let of_column = |column: &[batches::Batch]| edges.windows(2).map(|row| of_row(column, row)).collect();
        Some(ResponseTimeMap {
            column: Nanos(batches.width().0 * EACH as u64),
            counts: batches.filled().chunks(EACH).map(of_column).collect(),
            edges: edges.into_iter().map(Batches::shortest_of).collect(),
        })
    }

    /// The most responses in one cell.
    pub fn most(&self) -> u64 {
        self.counts.iter().flatten().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Window;
    use proptest::prelude::*;

    const WINDOW: Window = Window { from: Nanos(1_000), until: Nanos(3_000_001_000) };

    proptest! {
        #[test]
        fn each_response_is_in_the_cell_of_its_times(
            all in prop::collection::vec((0_u64..3_000_000_000, 1_u64..100_000_000_000), 1..200),
        ) {
            let mut batches = Batches::new(WINDOW);
            for (due, time) in &all {
                batches.record(WINDOW.from + Nanos(*due), Nanos(*time), Nanos::ZERO);
            }
            let map = ResponseTimeMap::of(&batches).unwrap();
            prop_assert!(map.counts.len() <= COLUMNS && map.counts.iter().all(|rows| rows.len() <= ROWS));
            prop_assert!(map.edges.windows(2).all(|pair| pair[0] < pair[1]));
            let mut expected = vec![vec![0; map.edges.len() - 1]; map.counts.len()];
            for (due, time) in all {
                let row = map.edges.iter().rposition(|edge| edge.0 <= time).unwrap();
                expected[(due / map.column.0) as usize][row] += 1;
            }
            prop_assert_eq!(map.most(), expected.iter().flatten().copied().max().unwrap());
            prop_assert_eq!(map.counts, expected);
        }
    }

    #[test]
    fn of_no_response_there_is_none() {
        assert_eq!(ResponseTimeMap::of(&Batches::new(WINDOW)), None);
    }
}
