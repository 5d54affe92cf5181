//! Bytes: an answer's size times the answers, and the total over the duration.

use super::counts::HEY_KEEPS;
use super::{Check, Evidence, Finding};
use crate::claim::{Claim, Tool};
use crate::range::Range;

/// The total and the rate may be of slightly different ends of the run.
const SLIGHT: f64 = 0.01;

pub(super) fn per_answer(claim: &Claim) -> Option<Finding> {
    let (total, each) = (claim.received_bytes?, claim.answer_bytes?);
    let check = Check::BytesPerAnswer;
    // vegeta divides by all requests, hey by the times that it kept.
    let answers = match claim.tool {
        Tool::Vegeta => claim.requests,
        Tool::Hey => claim.answered().map(|n| n.min(HEY_KEEPS)),
        _ => claim.answered(),
    };
    let Some(answers) = answers else { return Some(Finding::unchecked(check, "answers are not counted")) };
    // A whole number is a quotient that was cut off.
    let each_range = if each.decimals == 0 { each.cut().range() } else { each.range() };
    let allowed = each_range.scaled(answers as f64);
    let expected = each.value * answers as f64;
    Some(judge(check, total.range(), total.value, expected, allowed))
}

pub(super) fn transfer(claim: &Claim) -> Option<Finding> {
    let (rate, total) = (claim.transfer_bytes_per_s?, claim.received_bytes?);
    let check = Check::TransferRate;
    let Some(duration) = claim.duration_s else { return Some(Finding::unchecked(check, "the duration is not told")) };
    let Some(allowed) = total.range().over(duration.range()) else {
        return Some(Finding::unchecked(check, "the duration has too few digits"));
    };
    Some(judge(check, rate.range(), rate.value, total.value / duration.value, allowed))
}

fn judge(check: Check, figure: Range, printed: f64, expected: f64, allowed: Range) -> Finding {
    let evidence = Evidence::Equal { printed, expected, allowed };
    if allowed.meets(figure) {
        Finding::holds(check, evidence)
    } else if allowed.widened(SLIGHT).meets(figure) {
        Finding::doubtful(check, evidence)
    } else {
        Finding::fails(check, evidence)
    }
}
