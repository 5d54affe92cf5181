//! What an overload says of the server: its capacity by how fast response times grew, and its slots.

use model::LoadStudy;
use model::forecast::{Estimate, Overload, OverloadDoubt};

use super::part::{Body, Part};
use crate::number;

/// The growth and what follows from it; nothing of a load that was no overload.
pub(crate) fn part(study: &LoadStudy) -> Option<Part> {
    let overload = study.run.overload.as_ref()?;
    let times = match overload.growth {
        Some(growth) => format!("response times by {} s", number::fixed(growth, 3)),
        None => "the longest response times with it: not all wait their turn".to_owned(),
    };
    let mut lines = vec![format!(
        "the backlog grew by {} requests each second of {} req/s, to {}, and {times}; there is no steady state, and no percentile of one",
        number::fixed(overload.backlog_growth, 1),
        number::rate_in_words(overload.offered),
        number::count(overload.backlog_at_end),
    )];
    lines.push(match overload.doubt {
        Some(doubt) => format!("nothing is inferred: {}", why(overload, doubt)),
        None => inferred(overload),
    });
    Some(Part::new("overload", vec![Body::Lines(lines)]))
}

fn inferred(overload: &Overload) -> String {
    let capacity = format!(
        "capacity {} req/s by the growth{}, {} by the answers counted",
        with_error(overload.capacity, 1),
        if overload.growth.is_some() { "" } else { " of the backlog" },
        number::rate_in_words(overload.answered)
    );
    match (overload.slots, overload.service_time) {
        (Some(slots), Some(time)) => {
            format!("inferred: {} slots of {}; {capacity}", with_error(slots, 2), number::time(time))
        }
        _ => format!("inferred: {capacity}; --service TIME, for how long a request holds a slot, tells the slots too"),
    }
}

/// `5.00 ± 0.02`.
fn with_error(inferred: Estimate, decimals: usize) -> String {
    format!("{} ± {}", number::fixed(inferred.value, decimals), number::fixed(inferred.half_width, decimals))
}

fn why(overload: &Overload, doubt: OverloadDoubt) -> String {
    match doubt {
        OverloadDoubt::Failures => {
            "requests without a good answer have no response time that could have grown".to_owned()
        }
        OverloadDoubt::Disagreement => format!(
            "the growth says {} req/s, the answers counted say {}: it was not one server at one speed",
            number::rate_in_words(overload.capacity.value),
            number::rate_in_words(overload.answered)
        ),
    }
}
