//! Percentiles rise; they and the mean lie between the shortest and the longest.

use super::{Check, Evidence, Finding};
use crate::claim::Claim;
use crate::number;
use crate::printed::Printed;

pub(super) fn rises(claim: &Claim) -> Option<Finding> {
    let mut ladder: Vec<(String, Printed)> = Vec::new();
    ladder.extend(claim.min_s.map(|min| ("shortest".to_owned(), min)));
    ladder.extend(claim.percentiles.iter().map(|p| (number::percentile(p.quantile), p.time_s)));
    ladder.extend(claim.max_s.map(|max| ("longest".to_owned(), max)));
    let mean = claim.mean_s.map(|mean| ("mean".to_owned(), mean));
    let ends =
        [claim.min_s.map(|min| ("shortest".to_owned(), min)), claim.max_s.map(|max| ("longest".to_owned(), max))];
    let [shortest, longest] = ends.map(|end| end.zip(mean.clone()));
    let mut pairs: Vec<((String, Printed), (String, Printed))> =
        ladder.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    pairs.extend(shortest);
    pairs.extend(longest.map(|(longest, mean)| (mean, longest)));
    if pairs.is_empty() {
        return None;
    }
    let check = Check::Order;
    let error = claim.tool.percentile_error();
    let wrong =
        pairs.iter().find(|(lower, upper)| lower.1.range().widened(error).low > upper.1.range().widened(error).high);
    Some(match wrong {
        Some((lower, upper)) => {
            let (lower_s, upper_s) = (lower.1.value, upper.1.value);
            Finding::fails(check, Evidence::Order { lower: lower.0.clone(), lower_s, upper: upper.0.clone(), upper_s })
        }
        None => Finding::holds(check, Evidence::InOrder { figures: pairs.len() as u64 + 1 }),
    })
}
