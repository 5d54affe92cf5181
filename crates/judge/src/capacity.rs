//! What is concluded of a search for a capacity: whether a trial says something about the server,
//! the answer in a sentence, what broke first, why the search ended, and how sure that is.

use model::{
    BeyondRun, CapacityBracket, CapacityPlan, CapacityStudy, CapacityTrial, Diagnostic, Judgement,
    Limit, Nanos, Objective, ObjectiveFigure, Outcome, Pace, Quantile, Run, SearchEnd, Timing,
    TrialPurpose, TrialResult, Verdict, number,
};

use crate::checks::Grade;
use crate::cut_short::{is_shorter, result_so_far, search_so_far};
use crate::expectations::{ExpectationResult, ExpectedLimit};
use crate::findings;
use crate::limits;
use crate::next::rounded_up;
use crate::trust::TrustLine;
use crate::verdict;
use crate::words::{few_digits, tenths};

/// Judges a trial. Returns the check that failed if the trial is worthless because of it: if it broke
/// an objective, that may have been the fault of the generator, or of other programs that used the
/// CPUs up, unless the server's own responses broke it. One that kept its objectives although the
/// generator was late counts, unless requests were not sent in time or a generator was lost.
pub fn judge_trial(
    run: &mut Run,
    pace: &Pace,
    keeps_objectives: bool,
    objectives: &[Objective],
) -> Option<Diagnostic> {
    let judgement = verdict::of_open_loop(run, pace, Timing::default());
    let is_servers = keeps_objectives || errors_break(run, objectives);
    let others = others_took_the_cpus(run, objectives).filter(|_| !is_servers);
    let check = implicated(&judgement).cloned();
    run.judgement = Some(judgement);
    run.warnings.extend(others.clone());
    check.or(others).filter(|check| {
        let is_rate_wrong =
            matches!(check, Diagnostic::SentInTime { .. } | Diagnostic::GeneratorLost { .. });
        is_rate_wrong || !is_servers
    })
}

/// The check that decided, if it shows that the generator was the limit.
fn implicated(judgement: &Judgement) -> Option<&Diagnostic> {
    let is_generators = judgement.verdict == Verdict::GeneratorBound
        && matches!(judgement.limit, Some(Limit::Generator { .. }));
    judgement.decided_by.as_ref().filter(|_| is_generators)
}

/// Whether the server answered so many requests with an error that these alone break an objective:
/// neither a late generator nor a busy CPU writes such a response. A server that waits for a CPU may
/// well refuse requests (503, 429), so those don't count.
fn errors_break(run: &Run, objectives: &[Objective]) -> bool {
    let counts = &run.tally.counts;
    let errors = counts.sum_of(Outcome::is_error);
    let allowed = objectives.iter().filter_map(|it| match it.figure {
        ObjectiveFigure::ResponseTime(quantile) => Some(1.0 - quantile),
        ObjectiveFigure::ErrorShare => Some(it.limit),
        _ => None,
    });
    let allowed = allowed.fold(1.0, f64::min);
    errors as f64 > CLEARLY * allowed * counts.total() as f64
}

/// This many times as many errors as an objective allows are no chance.
const CLEARLY: f64 = 2.0;

/// Other programs used the CPUs up, and requests of the server waited for them: that they were late
/// then says nothing about the server.
fn others_took_the_cpus(run: &Run, objectives: &[Objective]) -> Option<Diagnostic> {
    let others = findings::busy_others(run)?;
    let server = run.generator.server.as_ref()?;
    let limits = objectives.iter().filter_map(|it| match it.figure {
        ObjectiveFigure::ResponseTime(_) => Some(it.limit),
        _ => None,
    });
    let limit = limits.fold(f64::INFINITY, f64::min);
    let waited = server.waited_per_request();
    let hardly_waited = waited.is_some_and(|waited| (waited.0 as f64) < HARDLY_WAITS * limit);
    if hardly_waited && limits::cpus::wanted(server) < limits::cpus::SERVER_USES * server.of {
        return None;
    }
    Some(Diagnostic::CpusTaken { others, of: server.of })
}

/// A wait for a CPU that is shorter than this share of an objective's limit makes no request late,
/// if the server wants few CPUs besides.
const HARDLY_WAITS: f64 = 0.02;

/// The lower end of a bracket, in three digits: rounded down, so that the bracket does not become
/// narrower.
pub fn rate_down(rate: f64) -> String {
    shown(rounded(rate, f64::floor))
}

/// The upper end, rounded up.
pub fn rate_up(rate: f64) -> String {
    shown(rounded(rate, f64::ceil))
}

/// The rate of a trial, at an end of the bracket in the digits of that end.
pub fn rate_of_trial(rate: f64, bracket: CapacityBracket) -> String {
    if rate.total_cmp(&bracket.low).is_eq() {
        rate_down(rate)
    } else if bracket.high.is_some_and(|high| rate.total_cmp(&high).is_eq()) {
        rate_up(rate)
    } else {
        number::significant(rate)
    }
}

fn shown(rate: f64) -> String {
    if rate > 0.0 { number::significant(rate) } else { "0".to_owned() }
}

fn rounded(rate: f64, by: fn(f64) -> f64) -> f64 {
    if rate <= 0.0 {
        return 0.0;
    }
    let unit = 10f64.powf(rate.log10().floor() - 2.0);
    by(rate / unit) * unit
}

/// The objectives, joined.
pub(crate) fn objectives(study: &CapacityStudy) -> String {
    let all: Vec<String> = study.plan.objectives.iter().map(ToString::to_string).collect();
    all.join(" and ")
}

/// The objectives, and with which other programs on its CPUs the server was seen to keep them.
pub(crate) fn conditions(study: &CapacityStudy) -> String {
    let beside = beside_others(study, deciding_runs(study)).unwrap_or_default();
    format!("{}{beside}", objectives(study))
}

/// The runs that the answer rests on: the closed loop, and the trials that count, of each size.
fn deciding_runs(study: &CapacityStudy) -> impl Iterator<Item = &Run> {
    let searches = std::iter::once(study).chain(study.sizes.iter().map(|size| &size.search));
    searches.flat_map(|search| {
        let trials = search.trials.iter().filter(|trial| counts(trial)).map(|trial| &trial.run);
        search.closed_loop.as_deref().into_iter().chain(trials)
    })
}

/// ` beside other programs that used up to 1.2 of the 2 CPUs`; `None` if the server hardly waited for
/// a CPU in any of these runs.
fn beside_others<'a>(
    study: &CapacityStudy,
    runs: impl IntoIterator<Item = &'a Run>,
) -> Option<String> {
    let used = runs.into_iter().filter_map(|run| {
        let taken = others_took_the_cpus(run, &study.plan.objectives)?;
        let Diagnostic::CpusTaken { others, of } = taken else { return None };
        Some((others, of))
    });
    let used: Vec<(f64, f64)> = used.collect();
    let (others, of) = used.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let up_to = if used.len() > 1 { "up to " } else { "" };
    Some(format!(" beside other programs that used {up_to}{} of the {of} CPUs", tenths(*others)))
}

/// The answer.
pub fn sentence(study: &CapacityStudy) -> String {
    let objectives = conditions(study);
    let bracket = study.bracket;
    match (bracket.low > 0.0, bracket.high) {
        (true, Some(high)) => format!(
            "It takes {} to {} requests/s with {objectives} (95 %).",
            rate_down(bracket.low),
            rate_up(high)
        ),
        (true, None) => format!(
            "It takes at least {} requests/s with {objectives} (95 %).",
            rate_down(bracket.low)
        ),
        (false, _) if study.end == Some(SearchEnd::NothingKeepsIt) => {
            let lowest = study.trials.iter().map(|trial| trial.rate).min_by(f64::total_cmp);
            format!(
                "No rate keeps {objectives}: it is broken at {}/s already.",
                number::significant(lowest.unwrap_or_default())
            )
        }
        (false, Some(high)) => format!(
            "It takes less than {} requests/s with {objectives} (95 %); no rate below was shown to keep that.",
            rate_up(high)
        ),
        (false, None) => match provisional(study) {
            Some(seems) => {
                format!(
                    "It seems to take {seems} with {objectives}, but the trials do not show that \
                     with 95 % certainty."
                )
            }
            None => format!("How much it takes with {objectives} is not known."),
        },
    }
}

/// What it seems to be, while it is not certain yet; `None` before two trials.
pub fn provisional(study: &CapacityStudy) -> Option<String> {
    let seems = study.seems;
    // It is no bound, so it has the digits that the trials have.
    let low = number::significant(seems.low);
    Some(match (seems.low > 0.0, seems.high.map(number::significant)) {
        (true, Some(high)) => format!("{low} to {high} requests/s"),
        (true, None) => format!("more than {low} requests/s"),
        (false, Some(high)) => format!("less than {high} requests/s"),
        (false, None) => return None,
    })
}

/// Why: what broke first, the limit, how the lower end was confirmed, the closed loop, why it
/// ended.
pub fn reasons(study: &CapacityStudy) -> Vec<String> {
    let mut reasons = Vec::new();
    reasons.extend(seems(study));
    reasons.extend(what_broke(study));
    reasons.extend(limit(study));
    reasons.extend(confirmed(study));
    reasons.extend(closed_loop(study));
    reasons.extend(theory(study));
    reasons.extend(beyond(study));
    reasons.extend(why_it_ended(study));
    reasons
}

/// Where the trials point, if the bracket is wider than that.
fn seems(study: &CapacityStudy) -> Option<String> {
    let low = study.seems.low;
    let high = study.seems.high.filter(|_| low > study.bracket.low)?;
    let is_wide = study.bracket.width().is_none_or(|width| width > study.plan.precision);
    let is_said = study.bracket.low == 0.0 && study.bracket.high.is_none();
    (is_wide && !is_said).then(|| {
        format!(
            "The trials point to {} to {}/s, which is not certain.",
            number::significant(low),
            number::significant(high)
        )
    })
}

/// Which objective breaks at which rate, and whether it does so at once.
fn what_broke(study: &CapacityStudy) -> Option<String> {
    let failed = study.failed().filter(|trial| !fails_once(trial.rate, study.bracket));
    match failed.min_by(|a, b| a.rate.total_cmp(&b.rate)) {
        Some(trial) => breaks(study, trial),
        None => study.lowest_failed().map(|trial| {
            format!(
                "One trial at {}/s failed: a rate is too high when two have failed there or below.",
                number::significant(trial.rate)
            )
        }),
    }
}

/// Whether a trial that failed at this rate is the only one there or below: two have to fail before
/// a rate counts as too high.
pub fn fails_once(rate: f64, bracket: CapacityBracket) -> bool {
    bracket.high.is_none_or(|high| rate < high)
}

/// That a trial broke an objective, by how much, and whether it does so at once.
fn breaks(study: &CapacityStudy, trial: &CapacityTrial) -> Option<String> {
    let TrialResult::Failed { objective } = trial.result else { return None };
    let condition = study.plan.objectives.get(objective)?;
    let late = trial.late.get(objective)?;
    let share = late.late as f64 / (late.requests as f64).max(1.0);
    let rate = rate_of_trial(trial.rate, study.bracket);
    let first = if study.plan.objectives.len() > 1 { " first" } else { "" };
    let low = study.bracket.low;
    let above = if low > 0.0 {
        let above = number::percent_tenths(trial.rate / low - 1.0);
        format!(", {above} % above {}/s", rate_down(low))
    } else {
        String::new()
    };
    // If the trial was much further up, how it breaks in between is not known.
    let is_near = low > 0.0 && trial.rate <= low * (1.0 + NEAR);
    let how = match (is_near, share > MOST_OF_THEM) {
        (true, true) => " It is a cliff.",
        (true, false) => " It breaks gradually.",
        (false, _) => "",
    };
    Some(format!(
        "{condition} breaks{first} at {rate}/s{above}: {} % of the requests were late or failed \
         there, {} % may be.{how}",
        number::percent_tenths(share),
        number::percent_tenths(late.allowed),
    ))
}

/// A rate that fails at most this far above the lower end tells how steeply the objective breaks.
const NEAR: f64 = 0.15;
/// From this share of late requests on, it is a cliff.
const MOST_OF_THEM: f64 = 0.5;

/// The limit by name: of the closed loop, whose server is known alone and at several loads, else of
/// the failed trial with the highest rate.
fn limit(study: &CapacityStudy) -> Option<String> {
    let highest = study.failed().max_by(|a, b| a.rate.total_cmp(&b.rate));
    let mut runs = study.closed_loop.as_deref().into_iter().chain(highest.map(|trial| &trial.run));
    let limit = runs.find_map(limit_of_server)?;
    let slots = study.server.as_ref().map(model::ServerFacts::slots);
    Some(limits::sentence(limit, slots))
}

/// The limit of a run if it is the server's and something is known of it.
fn limit_of_server(run: &Run) -> Option<&Limit> {
    let limit = run.limit()?;
    let says_something = !matches!(
        limit,
        Limit::Generator { .. } | Limit::NotKnown { cpu: None, at_once: None, .. }
    );
    says_something.then_some(limit)
}

fn confirmed(study: &CapacityStudy) -> Option<String> {
    let low = study.bracket.low;
    if low == 0.0 {
        return None;
    }
    // Without a confirmation it may have been a shorter one, with what was left of the budget.
    let trials = match study.confirmations {
        0 => "1 trial".to_owned(),
        others => number::count_of(1 + others, "full trial"),
    };
    let from_above = study.at_low().any(|trial| trial.purpose == TrialPurpose::FromAbove);
    let above = if from_above { ", one of them right after an overload" } else { "" };
    let p99 = study.at_low().filter_map(|trial| match trial.run.response_time(0.99) {
        Quantile::Time(time) => Some(time),
        _ => None,
    });
    let p99 =
        p99.max().map(|time| format!(": p99 up to {}", number::time(time))).unwrap_or_default();
    Some(format!("{}/s held in {trials}{above}{p99}.", rate_down(low)))
}

fn closed_loop(study: &CapacityStudy) -> Option<String> {
    let rate = study.closed_loop_rate()?;
    let run = study.closed_loop.as_deref()?;
    let reached = closed_loop_reached(run);
    let beside = beside_others(study, [run]).unwrap_or_default();
    let share = if study.bracket.low > 0.0 {
        format!(
            "; {}/s is {} % of that",
            rate_down(study.bracket.low),
            number::percent(study.bracket.low / rate)
        )
    } else {
        String::new()
    };
    Some(format!("{reached}{beside}{share}."))
}

/// `A closed loop of 30 connections reached 83.7/s`
pub fn closed_loop_reached(run: &Run) -> String {
    let cut_short = if is_shorter(run) {
        format!(" in the {} that it lasted", number::length(run.measured))
    } else {
        String::new()
    };
    format!(
        "A closed loop of {} reached {}/s{cut_short}",
        number::count_of(run.connections, "connection"),
        number::significant(run.completed_rate())
    )
}

/// What an ideal queue with all threads would take, unless something else is known to be the limit,
/// or other programs kept the closed loop from being as fast as the server can be.
fn theory(study: &CapacityStudy) -> Option<String> {
    let closed_loop = study.closed_loop.as_deref()?;
    if others_took_the_cpus(closed_loop, &study.plan.objectives).is_some() {
        return None;
    }
    let limit = limit_of_server(closed_loop);
    if !matches!(limit, None | Some(Limit::Threads { .. } | Limit::NotKnown { .. })) {
        return None;
    }
    let theory = study.theory?;
    let slots = study.server.as_ref().map(model::ServerFacts::slots)?;
    let queue = format!(
        "Theory: {slots} at a time, first come, first served, as fast as that closed loop,"
    );
    let constant = number::significant(theory.constant);
    Some(if theory.constant <= 0.0 {
        let each = f64::from(slots) / study.closed_loop_rate()?;
        format!(
            "{queue} would keep it at no rate: each request took {} inside.",
            number::time(Nanos::from_secs_f64(each))
        )
    } else if theory.exponential <= 0.0 {
        format!(
            "{queue} would take {constant}/s if each request takes the same time, and keep it at \
             no rate if service times are exponential."
        )
    } else {
        let exponential = number::significant(theory.exponential);
        format!(
            "{queue} would take {exponential} (exponential service times) to {constant}/s \
             (constant ones)."
        )
    })
}

/// What happened beyond the capacity: goodput, errors, p99, and whether it recovered.
fn beyond(study: &CapacityStudy) -> Vec<String> {
    if !study.plan.beyond.is_empty() && study.bracket.low == 0.0 && study.end.is_some() {
        return vec![
            "Nothing was tried beyond it: no rate was shown to keep the objective.".to_owned(),
        ];
    }
    study.beyond.iter().map(|run| beyond_run(study, run)).collect()
}

fn beyond_run(study: &CapacityStudy, run: &BeyondRun) -> String {
    let p99 = run.p99.map_or_else(
        || "more than 1 % without a good response".to_owned(),
        |time| format!("p99 {}", number::time(time)),
    );
    let retries = match study.plan.retry {
        Some(_) => format!(", {} sent again", run.retries),
        None => String::new(),
    };
    format!(
        "At {}x ({}/s for {}) {}/s are answered in time ({} %), {} failed{retries}, {p99}; {}.",
        number::shortest(run.times),
        number::significant(run.rate),
        number::span(run.length),
        number::significant(run.goodput()),
        number::percent(run.in_time as f64 / (run.requests as f64).max(1.0)),
        run.failed,
        recovery(study, run),
    )
}

/// Whether the server recovered from an overload, and if not, why that is so.
fn recovery(study: &CapacityStudy, run: &BeyondRun) -> String {
    let back = format!("back at {}/s", number::significant(run.rate_after));
    let watched = number::span(run.watched);
    match run.recovered_after {
        Some(Nanos::ZERO) => format!("{back} it holds at once"),
        Some(time) => format!("{back} it holds again after {}", number::length(time)),
        None if run.is_metastable(study.bracket.low) => format!(
            "{back} it did not recover within {watched}, although it kept twice that before: it is \
             metastable{}",
            at_end(run)
        ),
        None => format!(
            "{back} it did not recover within {watched}, too short a time for the {} requests that \
             waited",
            run.waiting(study.bracket.low)
        ),
    }
}

/// The evidence of a server that does not recover.
fn at_end(run: &BeyondRun) -> String {
    let Some(end) = run.at_end else { return String::new() };
    let seconds = end.length.as_secs_f64().max(f64::MIN_POSITIVE);
    let retries = if end.retries > 0 {
        let rate = number::significant(end.retries as f64 / seconds);
        format!(", with {rate}/s sent again")
    } else {
        String::new()
    };
    format!(
        " (in its last {} {} % were late or failed{retries})",
        number::span(end.length),
        number::percent(end.late as f64 / (end.requests as f64).max(1.0))
    )
}

/// What the budget will buy: `15 min will give about 12 %; 5 % would take about 40 min`.
pub fn forecast(study: &CapacityStudy) -> Option<String> {
    let forecast = study.forecast?;
    let budget = budget(study.plan.budget);
    match (forecast.width, forecast.both_ends_after) {
        (Some(width), _) if width <= study.plan.precision => None,
        (Some(width), _) => Some(format!(
            "{budget} will give about {} %; {} % would take {}",
            number::percent(width),
            number::shortest(study.plan.precision * 100.0),
            longer(forecast.precise_after),
        )),
        (None, Some(enough)) => Some(format!(
            "{budget} may be too short for both ends of the bracket; {} will do",
            longer(Some(enough))
        )),
        (None, None) => Some(format!(
            "{budget} may be too short for both ends of the bracket, and so may 4 hours"
        )),
    }
}

/// A forecast's budget in words. Forecasts try budgets of up to four hours.
fn longer(budget: Option<Nanos>) -> String {
    match budget {
        Some(time) => format!("about {}", self::budget(rounded_up(time))),
        None => "more than 4 hours".to_owned(),
    }
}

/// A budget in words: `15 min`, `90 s`.
pub fn budget(time: Nanos) -> String {
    let seconds = time.0 / 1_000_000_000;
    if seconds >= 60 && seconds.is_multiple_of(60) {
        format!("{} min", seconds / 60)
    } else {
        number::span(time)
    }
}

/// What is said before the first trial that offers more than the closed loop reached.
pub fn above_closed_loop(trial: u64, rate: f64, reached: f64) -> String {
    format!(
        "trial {trial} offers {}/s, more than the {}/s that the closed loop reached, on purpose: that \
         rate is only where to begin, and a rate that is too high has to be seen to fail",
        number::significant(rate),
        number::significant(reached),
    )
}

/// What is said before the first trial of a search whose budget is too short to show a lower end.
pub fn too_short(plan: &CapacityPlan, closed_loop_rate: f64, needed: Nanos) -> String {
    let objectives: Vec<String> = plan.objectives.iter().map(ToString::to_string).collect();
    format!(
        "a budget of {} is too short to show a rate that keeps {}: the closed loop reached {}/s, and \
         at such rates the requests that show it take about {}{}",
        budget(plan.budget),
        objectives.join(" and "),
        number::significant(closed_loop_rate),
        budget(rounded_up(needed)),
        quicker_percentile(plan),
    )
}

/// Percentiles that an objective is usually about, the quickest to show first.
const USUAL_PERCENTILES: [f64; 3] = [0.9, 0.95, 0.99];

/// What a percentile below the strictest one would save: `; p99 needs 5 times as many requests as
/// p95`. As many late requests show either, and of p95's limit five times as many may be late.
fn quicker_percentile(plan: &CapacityPlan) -> String {
    let quantiles = plan.objectives.iter().filter_map(|objective| match objective.figure {
        ObjectiveFigure::ResponseTime(quantile) => Some(quantile),
        _ => None,
    });
    let strictest = quantiles.fold(0.0, f64::max);
    let is_stricter = |objective: &Objective| {
        objective.figure == ObjectiveFigure::ErrorShare && objective.limit < 1.0 - strictest
    };
    if plan.objectives.iter().any(is_stricter) {
        return String::new();
    }
    let Some(lower) = USUAL_PERCENTILES.into_iter().rfind(|usual| *usual < strictest) else {
        return String::new();
    };
    let times = (1.0 - lower) / (1.0 - strictest);
    format!(
        "; {} needs {} times as many requests as {}",
        number::percentile(strictest),
        few_digits(times),
        number::percentile(lower)
    )
}

fn why_it_ended(study: &CapacityStudy) -> Option<String> {
    let precision = number::shortest(study.plan.precision * 100.0);
    Some(match study.end.as_ref()? {
        // The answer says it all, or `interrupted` does.
        SearchEnd::Precise | SearchEnd::NothingKeepsIt | SearchEnd::User => return None,
        SearchEnd::Budget => {
            let budget = budget(study.plan.budget);
            let takes =
                study.forecast.map(|it| format!("; that would take {}", longer(it.precise_after)));
            let takes = takes.unwrap_or_default();
            match study.bracket.width() {
                Some(width) if width > study.plan.precision => format!(
                    "The budget of {budget} is used up: the bracket is {} % wide, and {precision} % was asked for{takes}.",
                    number::percent(width)
                ),
                None if study.bracket.low == 0.0 => {
                    let enough = study.forecast.and_then(|forecast| forecast.both_ends_after);
                    let enough = enough.map(|time| format!("; {} will do", longer(Some(time))));
                    format!(
                        "What is left of the budget of {budget} is too short for a full trial at a lower rate{}{}.",
                        enough.unwrap_or_default(),
                        quicker_percentile(&study.plan)
                    )
                }
                Some(_) | None => format!("The budget of {budget} is used up."),
            }
        }
        SearchEnd::Undecided => match study.bracket.width() {
            Some(width) => format!(
                "Rates between are undecided: the bracket is {} % wide, and {precision} % was asked for.",
                number::percent(width)
            ),
            None => "The rates that were tried are undecided.".to_owned(),
        },
        SearchEnd::Generator => {
            "Trials above that cannot be trusted, so the server's limit was not reached.".to_owned()
        }
        SearchEnd::HighestRate => "The highest rate that may be tried still keeps it.".to_owned(),
        SearchEnd::ServerEnded => match &study.server_end {
            Some(how) => format!("It ended when the server did: {how}."),
            None => "The server ended in a trial.".to_owned(),
        },
    })
}

/// That the user ended the search early. It comes first, so that nobody reads the figures without
/// it.
fn interrupted(study: &CapacityStudy) -> Option<TrustLine> {
    let known = match study.trials.last() {
        None if study.closed_loop.as_deref().is_some_and(is_shorter) => {
            ", in the closed loop before the first trial".to_owned()
        }
        None => ", before the first trial".to_owned(),
        Some(last) if last.result == TrialResult::BrokenOff => format!(
            ", in a trial at {}/s, which does not count: this is what was known by then",
            number::significant(last.rate)
        ),
        Some(_) => ": this is what was known by then".to_owned(),
    };
    let sentence = format!(
        "Interrupted after {} of {}{known}",
        number::minutes(study.total_time),
        number::minutes(study.plan.budget),
    );
    (study.end == Some(SearchEnd::User)).then(|| TrustLine::new(Grade::Doubtful, sentence))
}

/// The check that made a trial worthless.
fn why_not_trusted(run: &Run) -> Option<Diagnostic> {
    let taken = run.warnings.iter().find(|it| matches!(it, Diagnostic::CpusTaken { .. }));
    run.judgement.as_ref().and_then(implicated).or(taken).cloned()
}

/// Requests of a trial of which it is known whether they were late.
fn judged_requests(trial: &CapacityTrial) -> u64 {
    trial.late.first().map_or(0, |late| late.requests)
}

/// Whether a trial says something about the server. It may, although the generator was late: then
/// its responses were in time all the same.
pub fn counts(trial: &CapacityTrial) -> bool {
    let is_whole = !matches!(trial.result, TrialResult::NotTrusted | TrialResult::BrokenOff);
    is_whole && judged_requests(trial) > 0
}

/// What speaks for the answer and against it.
pub fn trust(study: &CapacityStudy) -> Vec<TrustLine> {
    interrupted(study).into_iter().chain(evidence(study)).collect()
}

/// How many trials were not broken off.
pub(crate) fn whole_trials(study: &CapacityStudy) -> u64 {
    let is_whole = |trial: &&CapacityTrial| trial.result != TrialResult::BrokenOff;
    study.trials.iter().filter(is_whole).count() as u64
}

/// What its trials say for the answer and against it.
pub(crate) fn evidence(study: &CapacityStudy) -> Vec<TrustLine> {
    let mut lines = Vec::new();
    let doubted =
        study.trials.iter().filter(|trial| trial.result == TrialResult::NotTrusted).count() as u64;
    let whole = whole_trials(study);
    let trials = number::count_of(whole, "trial");
    let counting: Vec<&CapacityTrial> = study.trials.iter().filter(|it| counts(it)).collect();
    if !counting.is_empty() {
        let counted: u64 = counting.iter().map(|trial| judged_requests(trial)).sum();
        let counted = number::count_of(counted, "request");
        let these = if counting.len() as u64 == whole {
            trials.clone()
        } else {
            format!("{} of {trials} count", counting.len())
        };
        lines.push(TrustLine::new(
            Grade::Passed,
            format!("{these}, {counted}: each judged by how many were late, and how clustered"),
        ));
    }
    let late = counting.iter().filter(|trial| is_generator_bound(&trial.run)).count();
    if late > 0 {
        let they = match late {
            1 => "it counts, as what it showed does not depend on that",
            _ => "they count, as what they showed does not depend on that",
        };
        lines.push(TrustLine::new(
            Grade::Uncertain,
            format!("longtail was the limit in {late} of {trials}; {they}"),
        ));
    }
    if doubted > 0 {
        let mut said = study.trials.iter().filter(|trial| trial.result == TrialResult::NotTrusted);
        let check = said.next_back().and_then(|trial| why_not_trusted(&trial.run));
        let why = check.map(|check| format!(": {}", crate::assess(&check).sentence));
        lines.push(
            TrustLine::new(
                Grade::Doubtful,
                format!(
                    "{doubted} of {trials} cannot be trusted{}",
                    why.unwrap_or_default()
                ),
            )
            .hint("they may say nothing of the server: use a quieter machine, or make the load on another (--from)"),
        );
    }
    if doubted == 0 && beside_others(study, deciding_runs(study)).is_some() {
        lines.push(
            TrustLine::new(
                Grade::Doubtful,
                "other programs used the server's CPUs meanwhile: alone it may take more",
            )
            .hint("wait until the machine is idle, or give the server CPUs of its own (taskset)"),
        );
    }
    lines.extend(study.beyond.iter().filter_map(doubt_beyond));
    if !study.is_monotone {
        lines.push(TrustLine::new(
            Grade::Doubtful,
            "a rate failed below one that passed: the server, or the machine, changed meanwhile",
        ));
    }
    if study.bracket.low > 0.0 && study.confirmations == 0 {
        lines.push(TrustLine::new(
            Grade::Uncertain,
            "there was no time to confirm the lower end with other arrivals",
        ));
    }
    lines
}

fn is_generator_bound(run: &Run) -> bool {
    run.judgement.as_ref().is_some_and(|it| it.verdict == Verdict::GeneratorBound)
}

/// That the generator failed its checks in an overload.
fn doubt_beyond(run: &BeyondRun) -> Option<TrustLine> {
    let judgement = run.run.judgement.as_ref().filter(|_| is_generator_bound(&run.run))?;
    let why = judgement.decided_by.as_ref().map(|check| crate::assess(check).sentence);
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let times = number::shortest(run.times);
    let sentence = format!("the generator failed its checks at {times}x{why}");
    let hint =
        "what came at that rate may not be the server's; make the load on another machine (--from)";
    Some(TrustLine::new(Grade::Doubtful, sentence).hint(hint))
}

/// What is known of the capacity, in a few words.
fn in_short(study: &CapacityStudy) -> String {
    let bracket = study.bracket;
    match (bracket.low > 0.0, bracket.high) {
        (true, Some(high)) => format!("it is {} to {}/s", rate_down(bracket.low), rate_up(high)),
        (true, None) => format!("it is at least {}/s", rate_down(bracket.low)),
        (false, Some(high)) => format!("it is less than {}/s", rate_up(high)),
        (false, None) => "no trial has passed or failed with certainty".to_owned(),
    }
}

/// Whether the capacity is what was expected.
pub fn expectations(study: &CapacityStudy) -> Vec<ExpectationResult> {
    study
        .plan
        .expected
        .iter()
        .map(|expected| {
            let (result, word) = match expected.holds_for(study.bracket) {
                Some(true) => ("met", "PASS"),
                Some(false) => ("missed", "FAIL"),
                None => ("cannot_tell", "CANNOT TELL"),
            };
            ExpectationResult {
                between_per_s: None,
                expected: expected.to_string(),
                limit: ExpectedLimit {
                    class: None,
                    part: None,
                    figure: "capacity".to_owned(),
                    must_be: "above",
                    limit: expected.above.per_second(),
                    unit: "per_s",
                },
                result,
                sentence: format!(
                    "{} {expected}: {}",
                    result_so_far(word, search_so_far(study).as_deref()),
                    in_short(study)
                ),
                runs: Vec::new(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use model::{EndedBy, GeneratorFacts, ProcessCpu, ServerCpu};

    use super::*;

    /// A server that wanted few CPUs while other programs used both of them up: its requests waited
    /// this long for a CPU, and so many more were answered with status 503.
    fn waiting_beside_others(waited: Nanos, errors: u64, status: u16) -> Run {
        let elapsed = Nanos::from_secs(10);
        let cpu = Nanos::from_millis(200);
        let server = ServerCpu {
            processes: vec![ProcessCpu { pid: 1, cpu, run_queue: waited * 100 }],
            elapsed,
            requests: 100,
            of: 2.0,
            busy: Some(2.0),
            idle: Some(0.0),
            ..ServerCpu::default()
        };
        let mut run = testkit::load::overloaded().run;
        run.generator = GeneratorFacts { server: Some(server), ..GeneratorFacts::default() };
        run.tally.counts.add_answered(status, errors);
        run
    }

    #[test]
    fn a_trial_above_the_closed_loop_is_explained() {
        assert_eq!(
            above_closed_loop(4, 121.3, 99.7),
            "trial 4 offers 121/s, more than the 99.7/s that the closed loop reached, on purpose: \
             that rate is only where to begin, and a rate that is too high has to be seen to fail"
        );
    }

    #[test]
    fn a_trial_is_only_doubted_for_other_programs_if_they_may_have_made_requests_late() {
        let objectives = ["p99 < 400ms".parse().unwrap()];
        let taken = |waited: u64, errors: u64, status: u16| {
            let run = waiting_beside_others(Nanos::from_millis(waited), errors, status);
            let is_servers = errors_break(&run, &objectives);
            others_took_the_cpus(&run, &objectives).is_some() && !is_servers
        };
        assert!(taken(50, 0, 500), "an eighth of the limit is waited for a CPU");
        assert!(!taken(1, 0, 500), "a request hardly waits for a CPU");
        // Without a wait that shows, a server that is ready to run all the time has too few CPUs.
        let mut hello = waiting_beside_others(Nanos::from_millis(1), 0, 500);
        let server = hello.generator.server.as_mut().unwrap();
        server.requests = 10_000;
        server.processes[0].run_queue = Nanos::from_secs(10);
        assert!(others_took_the_cpus(&hello, &objectives).is_some());
        let many = testkit::load::overloaded().run.tally.counts.total() / 20;
        assert!(!taken(50, many, 500), "it answers with 500, which other programs do not write");
        assert!(taken(50, many, 503), "a server without a CPU may refuse requests");
    }

    #[test]
    fn the_answer_says_that_other_programs_used_the_cpus() {
        let mut study = testkit::capacity::found();
        study.trials[2].run = with_others(&study.trials[2].run, Nanos::from_millis(1));
        assert!(!sentence(&study).contains("other programs"), "it hardly waited for a CPU");
        let others = with_others(&study.trials[2].run, Nanos::from_millis(50));
        study.trials[2].run = others.clone();
        let beside = " beside other programs that used 2.0 of the 2 CPUs";
        let said = sentence(&study);
        assert_eq!(
            said,
            format!("It takes 500 to 572 requests/s with p99 < 200ms{beside} (95 %).")
        );
        let is_doubt = |line: &TrustLine| line.sentence.ends_with(": alone it may take more");
        assert!(trust(&study).iter().any(is_doubt));
        study.closed_loop = Some(Box::new(others));
        assert!(sentence(&study).contains(" used up to 2.0 of the 2 CPUs"));
        let reached = closed_loop(&study).unwrap();
        assert!(reached.contains(&format!("/s{beside}; 500/s is ")), "{reached}");
        // What the answer does not rest on says nothing about it.
        study.closed_loop = None;
        study.trials[2].result = TrialResult::NotTrusted;
        assert!(!sentence(&study).contains("other programs"));
        assert!(!trust(&study).iter().any(is_doubt), "the trial that does not count says it");
    }

    /// A run beside other programs that left no CPU idle, and for which requests waited so long.
    fn with_others(run: &Run, waited: Nanos) -> Run {
        let GeneratorFacts { server, .. } = waiting_beside_others(waited, 0, 200).generator;
        let mut run = run.clone();
        run.generator.server = server;
        run
    }

    #[test]
    fn a_trial_that_was_broken_off_is_no_trial_of_those_that_cannot_be_trusted() {
        let mut study = testkit::capacity::found();
        study.trials[0].result = TrialResult::NotTrusted;
        study.trials[5].result = TrialResult::BrokenOff;
        let said: Vec<String> = evidence(&study).into_iter().map(|line| line.sentence).collect();
        assert!(said[0].starts_with("4 of 5 trials count, "), "{said:?}");
        assert!(said.iter().any(|it| it.starts_with("1 of 5 trials cannot be trusted")));
    }

    #[test]
    fn a_rate_is_too_high_when_two_trials_have_failed_there_or_below() {
        let mut study = testkit::capacity::found();
        let lowest = study.lowest_failed().unwrap().rate;
        let rate = number::significant(lowest);
        study.bracket.high = Some(lowest);
        assert!(what_broke(&study).unwrap().contains(&format!(" breaks at {rate}/s")));
        study.bracket.high = Some(572.0);
        assert!(what_broke(&study).unwrap().contains(" breaks at 572/s"));
        study.bracket.high = None;
        let once = what_broke(&study).unwrap();
        assert!(once.starts_with(&format!("One trial at {rate}/s failed: ")), "{once}");
    }

    #[test]
    fn the_reason_of_a_doubt_is_the_check_that_decided() {
        let mut study = testkit::capacity::found();
        let last = study.trials.last_mut().unwrap();
        last.result = TrialResult::NotTrusted;
        last.run.warnings.push(Diagnostic::CpusTaken { others: 1.8, of: 2.0 });
        let judgement = last.run.judgement.as_mut().unwrap();
        judgement.verdict = Verdict::Invalid;
        judgement.decided_by = Some(Diagnostic::Failures { failed: 10, planned: 10 });
        let doubts = trust(&study).into_iter().map(|line| line.sentence);
        assert!(doubts.into_iter().any(|doubt| doubt.ends_with(
            "1 of 6 trials cannot be trusted: other programs used 1.8 of the 2 CPUs meanwhile, and \
             hardly any was idle"
        )));
    }

    #[test]
    fn a_lower_percentile_is_shown_with_fewer_requests() {
        let quicker = |objective: &str| {
            let objectives = vec![objective.parse().unwrap()];
            quicker_percentile(&CapacityPlan { objectives, ..testkit::capacity::found().plan })
        };
        assert_eq!(quicker("p99 < 200ms"), "; p99 needs 5 times as many requests as p95");
        assert_eq!(quicker("p99.9 < 1s"), "; p99.9 needs 10 times as many requests as p99");
        assert_eq!(quicker("p95 < 200ms"), "; p95 needs 2 times as many requests as p90");
        assert_eq!((quicker("p90 < 1s"), quicker("failed < 1%")), (String::new(), String::new()));
        let both = ["p95 < 1s", "failed < 0.1%"].map(|objective| objective.parse().unwrap());
        let plan = CapacityPlan { objectives: both.to_vec(), ..testkit::capacity::found().plan };
        assert_eq!(quicker_percentile(&plan), "", "the failures need more requests than that");
    }

    #[test]
    fn an_expectation_that_is_open_says_what_is_known() {
        let of = |low, high| {
            let mut study = testkit::capacity::found();
            study.bracket = model::CapacityBracket { low, high };
            expectations(&study)[0].sentence.clone()
        };
        let cannot_tell = "CANNOT TELL capacity > 450/s: ";
        assert_eq!(
            of(0.0, None),
            format!("{cannot_tell}no trial has passed or failed with certainty")
        );
        assert_eq!(of(180.0, None), format!("{cannot_tell}it is at least 180/s"));
        assert_eq!(of(0.0, Some(572.0)), format!("{cannot_tell}it is less than 572/s"));
        assert_eq!(of(0.0, Some(440.0)), "FAIL capacity > 450/s: it is less than 440/s");
        assert_eq!(of(180.0, Some(572.0)), format!("{cannot_tell}it is 180 to 572/s"));
    }

    #[test]
    fn trust_counts_only_trials_that_say_something() {
        let sentences = |study: &CapacityStudy| -> Vec<String> {
            trust(study).into_iter().map(|line| line.sentence).collect()
        };
        let mut study = testkit::capacity::found();
        study.trials[0].result = TrialResult::NotTrusted;
        study.trials[2].run.judgement.as_mut().unwrap().verdict = Verdict::GeneratorBound;
        let said = sentences(&study);
        assert!(said[0].starts_with("5 of 6 trials count, 39255 requests: "), "{said:?}");
        assert!(said[1].starts_with("longtail was the limit in 1 of 6 trials; it counts"));
        assert!(said[2].starts_with("1 of 6 trials cannot be trusted"), "{said:?}");
        // What was broken off decides nothing.
        let interrupted = "Interrupted after 14:31 of 15:00, in a trial at 540/s, which does not \
                           count: this is what was known by then";
        assert_eq!(sentences(&testkit::capacity::stopped()), [interrupted]);
    }

    #[test]
    fn a_closed_loop_that_was_interrupted_says_how_far_it_came() {
        let mut study = testkit::capacity::stopped();
        study.trials.clear();
        let run = study.closed_loop.as_mut().unwrap();
        run.measured = Nanos::from_secs(2);
        run.tally.completed_in_window = 180;
        run.warnings.push(Diagnostic::Interrupted { by: EndedBy::User });
        let reached = closed_loop(&study).unwrap();
        assert!(reached.ends_with(" reached 90.0/s in the 2.00 s that it lasted."), "{reached}");
        let trust = interrupted(&study).unwrap();
        assert!(trust.sentence.ends_with(", in the closed loop before the first trial"));
    }

    #[test]
    fn rounding_never_narrows_a_bracket() {
        for (rate, down, up) in [
            (412.34, "412", "413"),
            (1738.9, "1730", "1740"),
            (75.04, "75.0", "75.1"),
            (0.0, "0", "0"),
        ] {
            assert_eq!((rate_down(rate).as_str(), rate_up(rate).as_str()), (down, up));
        }
    }
}
