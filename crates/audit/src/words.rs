//! What a finding says, in one or two plain sentences.

use std::fmt::Write as _;

use crate::check::{Check, Evidence, Finding, Outcome};
use crate::claim::Tool;
use crate::number;

/// A check's name, as in "holds: Little's law".
pub(crate) fn name(check: Check) -> &'static str {
    match check {
        Check::LittlesLaw => "Little's law",
        Check::PercentilesAgainstRate => "percentiles against rate",
        Check::PercentilesAgainstMean => "percentiles against mean",
        Check::HistogramAgainstMean => "histogram against mean",
        Check::Order => "order of percentiles",
        Check::Spread => "standard deviation",
        Check::RateTimesDuration => "rate x duration",
        Check::OutcomesAddUp => "outcomes add up",
        Check::HistogramAddsUp => "histogram adds up",
        Check::BytesPerAnswer => "bytes per answer",
        Check::TransferRate => "bytes per second",
        Check::Floor => "nothing faster than the sleep",
        Check::TheoreticalMaximum => "theoretical maximum",
        Check::FirstComeFirstServed => "first come, first served",
        Check::PhantomSamples => "phantom samples",
        Check::ConnectionsOpened => "connections opened",
        Check::RequestsSent => "requests sent",
        Check::AllSamplesKept => "all times kept",
        Check::OfferedRate => "offered rate",
        Check::Staircase => "staircase",
        Check::WorkerShares => "workers' shares",
        Check::SharesDeviation => "Std Dev of the shares",
        Check::Failures => "failures",
    }
}

/// The evidence of an outcome that has some.
fn evidence(outcome: &Outcome) -> Option<&Evidence> {
    match outcome {
        Outcome::Holds { evidence }
        | Outcome::Explains { evidence }
        | Outcome::Doubtful { evidence }
        | Outcome::Fails { evidence } => Some(evidence),
        Outcome::Unchecked { .. } => None,
    }
}

/// What was found, for whoever has to decide whether to believe the claim.
pub(crate) fn sentence(tool: Tool, finding: &Finding) -> String {
    let Some(evidence) = evidence(&finding.outcome) else { return String::new() };
    match evidence {
        Evidence::InFlight { .. } => in_flight(evidence),
        Evidence::ForcedMean { least_s, most_s, mean_s } => forced(finding.check, *least_s, *most_s, *mean_s),
        Evidence::Order { lower, lower_s, upper, upper_s } => format!(
            "the {lower} is {} and yet the {upper} is {}.",
            number::printed_time(*lower_s),
            number::printed_time(*upper_s)
        ),
        Evidence::InOrder { figures } => format!("{} in order.", number::count_of(*figures, "figure")),
        Evidence::Spread { stdev_s, most_s } => format!(
            "{} is printed; with this mean and longest it is at most {}.",
            number::printed_time(*stdev_s),
            number::time(*most_s)
        ),
        Evidence::Equal { printed, expected, allowed } => format!(
            "{} is printed, and {} follows from the other figures ({} to {} as they are rounded).",
            number::sum(*printed),
            number::sum(*expected),
            number::sum(allowed.low),
            number::sum(allowed.high)
        ),
        Evidence::Floor { shortest_s, delay_s } => format!(
            "{} is printed, and the server sleeps {} over each request.",
            number::printed_time(*shortest_s),
            number::printed_time(*delay_s)
        ),
        Evidence::Ideal { .. } => ideal(evidence),
        Evidence::Fairness { .. } => fairness(tool, evidence),
        Evidence::Phantoms { .. } => phantoms(evidence),
        Evidence::Truncated { asked, among, used } => truncated(finding.check, *asked, *among, *used),
        Evidence::SamplesLost { requests, kept, mean_ratio } => samples_lost(*requests, *kept, *mean_ratio),
        Evidence::Delivery { .. } => delivery(evidence),
        Evidence::Staircase { .. } => staircase(evidence),
        Evidence::FullestWorker { .. } => fullest(evidence),
        Evidence::SharesDeviation { printed_points, population_points, sample_points } => format!(
            "{} is printed; the printed shares have {} (as a population) or {} (as a sample).",
            number::points(*printed_points),
            number::points(*population_points),
            number::points(*sample_points)
        ),
        Evidence::Failures { .. } => failures(tool, evidence),
    }
}

fn in_flight(evidence: &Evidence) -> String {
    let Evidence::InFlight { rate_per_s, mean_s, at_once, in_flight, ratio, ratio_allowed, cycle_s, fixed_count } =
        evidence
    else {
        return String::new();
    };
    let product = format!(
        "{} x {} is {} requests at once",
        number::printed_rate(*rate_per_s),
        number::printed_time(*mean_s),
        number::in_flight(*in_flight)
    );
    let ends = [ratio_allowed.low, ratio_allowed.high].map(number::times);
    let allowed = if ends[0] == ends[1] {
        "however it was rounded".to_owned()
    } else {
        format!("{} to {} as rounded", ends[0], ends[1])
    };
    let (at_once, cycle) = (number::count(*at_once), number::time(*cycle_s));
    if *ratio >= 1.0 {
        format!(
            "{product}, and there can be {at_once}: {} times too many ({allowed}). At that rate the true mean is {cycle} at the most.",
            number::times(*ratio)
        )
    } else {
        let count = if *fixed_count { ", or has sent its part and is done" } else { "" };
        format!(
            "{product}, of {at_once} that there should be: {} times ({allowed}). A connection sends every {cycle} on average; for the rest of that it connects, waits for the generator{count}.",
            number::times(*ratio)
        )
    }
}

fn forced(check: Check, least_s: f64, most_s: Option<f64>, mean_s: f64) -> String {
    let against = match check {
        Check::PercentilesAgainstRate => "connections / rate leaves",
        _ => "the printed mean is",
    };
    let whose = if check == Check::HistogramAgainstMean { "the histogram" } else { "its percentiles" };
    let most = most_s.map_or_else(String::new, |most| format!(" and {} at the most", number::time(most)));
    let shown =
        if check == Check::PercentilesAgainstRate { number::time(mean_s) } else { number::printed_time(mean_s) };
    format!("{whose} force a mean of {} at the least{most}; {against} {shown}.", number::time(least_s))
}

fn ideal(evidence: &Evidence) -> String {
    let Evidence::Ideal { rate_per_s, maximum_per_s, cycle_s, ideal_s } = evidence else { return String::new() };
    format!(
        "{} is {} of the {} that the slots allow; the mean is {}, and {} if nothing but the sleep took time.",
        number::printed_rate(*rate_per_s),
        number::percent(rate_per_s / maximum_per_s),
        number::rate(*maximum_per_s),
        number::time(*cycle_s),
        number::time(*ideal_s)
    )
}

fn fairness(tool: Tool, evidence: &Evidence) -> String {
    let Evidence::Fairness { cycle_s, median_s, p90_s, connections, slots } = evidence else { return String::new() };
    let cause = if tool.is_corrected_by_wrk() {
        "The server serves some connections many times in a row while others wait (Puma up to 6 does, with keep-alive), or the slow samples are wrk's own, or both."
    } else {
        "The server serves some connections many times in a row while others wait."
    };
    format!(
        "first come, first served gives everybody about {} with {} connections on {} slots; here half took {} or less and a tenth {} or more. {cause}",
        number::time(*cycle_s),
        number::count(*connections),
        number::count(*slots),
        number::printed_time(*median_s),
        number::printed_time(*p90_s)
    )
}

fn phantoms(evidence: &Evidence) -> String {
    let Evidence::Phantoms {
        interval_s, share, share_estimate, mean_without_s, predicted_ratio, printed_ratio, ..
    } = evidence
    else {
        return String::new();
    };
    let many = if share.low > 0.0 {
        format!("at least {}, and about {},", number::percent(share.low), number::percent(*share_estimate))
    } else {
        format!("up to {}, and about {},", number::percent(share.high), number::percent(*share_estimate))
    };
    let mean = match (predicted_ratio, printed_ratio) {
        (Some(predicted), Some(printed)) => format!(
            " Without them the mean is about {}: they make it {} times too large, and {} is found.",
            number::time(*mean_without_s),
            number::times(*predicted),
            number::times(*printed)
        ),
        _ => format!(" Without them the mean is about {}.", number::time(*mean_without_s)),
    };
    format!(
        "after the run wrk adds a sample for every {} (connections / rate) that a longer one lasted. Of its samples {many} were never sent.{mean}",
        number::time(*interval_s)
    )
}

fn truncated(check: Check, asked: u64, among: u64, used: u64) -> String {
    let (asked, among, used) = (number::count(asked), number::count(among), number::count(used));
    if check == Check::ConnectionsOpened {
        format!(
            "{asked} connections were asked for and {used} opened: each of {among} threads takes {asked} / {among}, without the rest."
        )
    } else {
        format!(
            "{asked} requests were asked for and {used} sent: each of {among} connections sends {asked} / {among}, without the rest."
        )
    }
}

fn samples_lost(requests: u64, kept: u64, mean_ratio: Option<f64>) -> String {
    let counts =
        format!("of {} only {} have a time in the figures", number::count_of(requests, "request"), number::count(kept));
    match mean_ratio {
        Some(ratio) => format!(
            "{counts}: hey keeps the first million, and divides the sum of all times by as many, so that its mean is {} times too large. Percentiles and histogram are of the start of the run.",
            number::times(ratio)
        ),
        None => format!("{counts}; the start of the run was used to calibrate."),
    }
}

fn delivery(evidence: &Evidence) -> String {
    let Evidence::Delivery { offered_per_s, achieved_per_s, missing, in_flight } = evidence else {
        return String::new();
    };
    let under_way = in_flight
        .map_or_else(String::new, |n| format!(" On average {} requests were under way.", number::in_flight(n)));
    format!(
        "{} was asked for and {} reached: {} of the load is missing, and the times are of a lighter one.{under_way}",
        number::printed_rate(*offered_per_s),
        number::printed_rate(*achieved_per_s),
        number::percent(*missing)
    )
}

fn staircase(evidence: &Evidence) -> String {
    let Evidence::Staircase {
        slots,
        steps,
        step_s,
        step_expected_s,
        first_excess_s,
        hold_s,
        hold_told,
        hold_measured_s,
        spacing_least_s,
        sent_at_most_per_s,
        sent_estimate_per_s,
        offered_per_s,
        missing_least,
    } = evidence
    else {
        return String::new();
    };
    let expected =
        step_expected_s.map_or_else(String::new, |step| format!(" ({} at the offered rate)", number::time(step)));
    let mut text = format!(
        "every {} answers take {} longer{expected}, {} times: {slots} are processed at once.",
        number::count(*slots),
        number::exact_time(*step_s),
        number::count(steps - 1)
    );
    let hold = if *hold_told { "sleeps" } else { "takes" };
    _ = write!(
        text,
        " As each {hold} {} at the least, requests were {} or more apart: at most {} were sent",
        number::printed_time(*hold_s),
        number::exact_time(*spacing_least_s),
        number::rate(*sent_at_most_per_s)
    );
    if let (Some(offered), Some(missing)) = (offered_per_s, missing_least.filter(|missing| *missing > 0.0)) {
        _ = write!(
            text,
            ", not {}: {} or more is missing (with the {} measured, {} was sent). The delay grows with every request, as when a generator sleeps after each send",
            number::printed_rate(*offered),
            number::percent(missing),
            number::exact_time(*hold_measured_s),
            number::rate(*sent_estimate_per_s)
        );
    }
    text.push('.');
    if *first_excess_s > 0.02 * hold_s {
        _ = write!(
            text,
            " The first of every {} takes {} more than the others: one slow start is never forgotten.",
            number::count(*slots),
            number::time(*first_excess_s)
        );
    }
    text
}

fn fullest(evidence: &Evidence) -> String {
    let Evidence::FullestWorker { largest_share, predicted_per_s, printed_per_s, even_per_s } = evidence else {
        return String::new();
    };
    format!(
        "one worker got {} of a fixed number of requests, and the run ends with it: that alone gives {} instead of {}, and {} is printed. The dip is imbalance, and not capacity.",
        number::percent(*largest_share),
        number::rate(*predicted_per_s),
        number::rate(*even_per_s),
        number::printed_rate(*printed_per_s)
    )
}

fn failures(tool: Tool, evidence: &Evidence) -> String {
    let Evidence::Failures { failed, requests, good_per_s, timeouts, as_status_zero } = evidence else {
        return String::new();
    };
    let mut text = format!("{} of {} failed", number::count(*failed), number::count_of(*requests, "request"));
    if let Some(good) = good_per_s {
        let good = if failed >= requests { "none".to_owned() } else { number::rate(*good) };
        _ = write!(text, ", and are in its rate: {good} of it was good");
    }
    text.push('.');
    if *timeouts > 0 {
        _ = write!(
            text,
            " {} took longer than {tool}'s timeout and have left its distribution.",
            number::count(*timeouts)
        );
    }
    if *as_status_zero {
        text +=
            " Those without an answer stand among the statuses as 0, and nothing says that they are not in the times.";
    }
    text
}
