//! What a finding says, in a sentence. Every figure in it is in the finding.

use model::finding::FailureCount;
use model::{Believable, Diagnostic, Finding, Limit, Nanos, PercentileTime, TwoGroups, Verdict};

use crate::number::{self, count_of, rate_in_words};

/// A finding in words: one sentence, or two.
#[expect(clippy::too_many_lines, reason = "a sentence for each finding")]
pub(crate) fn of(finding: &Finding) -> String {
    match finding {
        Finding::NotMeasured { runs, verdict, check } => {
            not_measured(runs, *verdict, check.as_ref())
        }
        Finding::Saturated { connections, is_lowest, is_only, rate_per_s, on_shared_cpus } => {
            let shared = if *on_shared_cpus {
                ", on CPUs that it shares; on CPUs of its own it would do more"
            } else {
                ""
            };
            let n = count_of(*connections, "connection");
            let from = match (is_only, is_lowest) {
                (true, _) => format!("At {n}"),
                (_, true) => format!("From {n} on, the lowest load tried,"),
                _ => format!("From {n} on"),
            };
            format!(
                "{from} the server is saturated at {} requests/s{shared}.",
                rate_in_words(*rate_per_s)
            )
        }
        Finding::StillRising { connections, rate_per_s } => {
            let (n, rate) = (count_of(*connections, "connection"), rate_in_words(*rate_per_s));
            format!(
                "Throughput still rises at {n}, the highest load tried: the server does at least {rate} requests/s."
            )
        }
        Finding::OneLoad { connections, rate_per_s } => {
            let (n, rate) = (count_of(*connections, "connection"), rate_in_words(*rate_per_s));
            format!(
                "{rate} requests/s at {n}; whether the server is saturated there, one load does not tell."
            )
        }
        Finding::Collapsing {
            best_connections,
            best_per_s,
            connections,
            rate_per_s,
            more_cpus_of_others,
        } => {
            let [best, rate] = [*best_per_s, *rate_per_s].map(rate_in_words);
            let rates = format!(
                "{best} requests/s at {}, {rate} at {connections}",
                count_of(*best_connections, "connection")
            );
            match more_cpus_of_others.map(tenths) {
                None => format!("Throughput falls under load: {rates}."),
                Some(more) => format!(
                    "Throughput falls: {rates}. But other processes used {more} more CPUs at {connections}, so this does not show that the server does less."
                ),
            }
        }
        Finding::Unfair { multiple, groups, in_order, .. } => {
            let (at, groups, each) = (load(*multiple), two_groups(groups), brief(*in_order));
            format!(
                "It is unfair: at {at}, {groups}. Served first come, first served, each would take about {each}."
            )
        }
        Finding::InOrder { multiple, p50, p95, in_order, .. } => format!(
            "It is fair: at {} half of the requests take {} or less and 95 % at most {}; first come, first served, each would take {}.",
            load(*multiple),
            brief(*p50),
            brief(*p95),
            brief(*in_order)
        ),
        Finding::Spread { multiple, p50, p95, in_order, .. } => format!(
            "At {} half of the requests take {} or less, and 5 % more than {}; first come, first served, each would take about {}.",
            load(*multiple),
            brief(*p50),
            brief(*p95),
            brief(*in_order)
        ),
        Finding::Undecided { connections, groups, in_order } => format!(
            "At {}, {}; first come, first served, each would take about {}. Whether the server's order or the app makes some slow, one load does not tell.",
            count_of(*connections, "connection"),
            two_groups(groups),
            brief(*in_order)
        ),
        Finding::AppVaries { connections, groups } => {
            let (n, groups) = (count_of(*connections, "connection"), two_groups(groups));
            format!(
                "The app itself varies: also at {n}, where no request waits for another, {groups}."
            )
        }
        Finding::ClosedLoop { connections, rate_per_s, highest, pauses } => {
            let never = if *pauses { "that pause between requests" } else { "that never pause" };
            let n = count_of(*connections, "connection");
            format!(
                "{} requests/s over {n} {never}{}.",
                rate_in_words(*rate_per_s),
                within(*highest)
            )
        }
        Finding::KeepsUp { offered_per_s, highest } => {
            let offered = offered_per_s.map(|rate| format!("{} requests/s", rate_in_words(rate)));
            let offered = offered.as_deref().unwrap_or("what is offered");
            format!("The server keeps up with {offered}{}.", within(*highest))
        }
        Finding::Overloaded {
            offered_per_s,
            completed_per_s,
            backlog_growth_per_s,
            growth,
            groups,
        } => {
            let [offered, completed, backlog] =
                [*offered_per_s, *completed_per_s, *backlog_growth_per_s].map(two_digits);
            let overload = format!(
                "OVERLOADED: of {offered} requests/s the server completes about {completed}. The backlog grows by {backlog} requests a second"
            );
            match (growth, groups) {
                (_, Some(groups)) => {
                    format!("{overload}; {}, and these ever longer.", two_groups(groups))
                }
                (Some(growth), None) => format!(
                    "{overload}; each second of it adds {} of waiting. A percentile would only say how long the test was.",
                    brief(Nanos::from_secs_f64(*growth))
                ),
                (None, None) => format!("{overload}, and the longest response times with it."),
            }
        }
        Finding::Peaked { completed_per_s } => format!(
            "The server completes at most {} requests/s; what is offered beyond that waits, and a percentile would only say how long.",
            rate_in_words(*completed_per_s)
        ),
        Finding::FallsBehind { offered_per_s, completed_per_s, under_way } => {
            let [offered, completed] = [*offered_per_s, *completed_per_s].map(rate_in_words);
            let behind = format!("Of {offered} requests/s the server completes {completed}");
            under_way.map_or(format!("{behind}."), |n| {
                format!("{behind}; {n} had no answer when the load ended. It is overloaded, or some requests take longer than the run.")
            })
        }
        Finding::BodyRange { slowest, slowest_per_s, fastest, fastest_per_s } => {
            let [low, high] = [*slowest_per_s, *fastest_per_s].map(rate_in_words);
            format!("Throughput goes from {low} requests/s ({slowest}) to {high} ({fastest}).")
        }
        Finding::Claimed { by, audit } => {
            let (these, what) = match audit {
                Believable::Possible => ("These", "; held against each other, they are possible"),
                Believable::Doubtful => ("These", ", and they are doubtful"),
                Believable::Impossible => ("IMPOSSIBLE: these", ", and no run can have had them"),
                Believable::Unchecked => ("These", "; nothing of them could be checked"),
            };
            format!("{these} are {by}'s own figures{what}.")
        }
        Finding::Failed { runs, failed, planned, kinds, timeout } => {
            let at = if runs.is_empty() { String::new() } else { format!(" at {}", listed(runs)) };
            let share = percent(*failed as f64 / (*planned).max(1) as f64);
            let kinds = kinds.iter().map(|kind| failure(kind, *timeout)).collect::<Vec<_>>();
            format!(
                "{share} of the requests failed{at} ({failed} of {planned}): {}.",
                listed(&kinds)
            )
        }
        Finding::Limited { limit, slots, .. } => limited(limit, *slots),
        Finding::ServedInTurns { least, most, waiting, is_old_puma } => {
            let [least, most] = [*least, *most].map(tenths);
            let n = if least == most { most } else { format!("{least} to {most}") };
            let who = if *is_old_puma { "Puma before 7" } else { "The server" };
            let waiting = count_of(*waiting, "other connection");
            format!(
                "{who} serves one keep-alive connection several times before it takes the next ({n} responses in a row); {waiting} wait meanwhile."
            )
        }
        Finding::WaitInAcceptQueue { multiple, wait, mean } => {
            let (at, [wait, mean]) = (load(*multiple), [*wait, *mean].map(brief));
            format!(
                "At {at} a request waits {wait} of {mean} in the kernel's accept queue, on average."
            )
        }
        Finding::UnevenWorkers { multiple, deviation } => {
            let (at, percent) = (load(*multiple), number::fixed(deviation.abs() * 100.0, 0));
            let more = if *deviation > 0.0 { "more" } else { "less" };
            format!(
                "The workers' parts are uneven: at {at} one has {percent} % {more} than an even share."
            )
        }
    }
}

/// A load: `1.5x`.
fn load(multiple: f64) -> String {
    format!("{}x", number::shortest((multiple * 100.0).round() / 100.0))
}

/// A time of three digits: `0.384 ms`, `101 ms`, `3.21 s`.
pub(crate) fn brief(time: Nanos) -> String {
    number::length(time)
}

fn two_groups(groups: &TwoGroups) -> String {
    // Both shares in whole percents, or both finer: they are read as a sum.
    let slow = if groups.slow_share >= 0.05 {
        (groups.slow_share * 100.0).round() / 100.0
    } else {
        groups.slow_share
    };
    let [fast_part, slow_part] = [1.0 - slow, slow].map(percent);
    let [fast_mean, slow_mean] = [groups.fast_mean, groups.slow_mean].map(brief);
    format!(
        "{fast_part} of the requests take {fast_mean} and {slow_part} take {slow_mean}, on average"
    )
}

/// A share in words: `10 %`, `2.3 %`, `0.04 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = match percent {
        0.0 | 9.95.. => 0,
        0.995.. => 1,
        _ => 2,
    };
    let text = number::fixed(percent, decimals);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

fn two_digits(value: f64) -> String {
    if value < 9.95 { rate_in_words(value) } else { number::fixed(value, 0) }
}

fn within(highest: Option<PercentileTime>) -> String {
    let Some(PercentileTime { quantile, time }) = highest else { return String::new() };
    let percent = number::fixed(quantile * 100.0, 0);
    let of = if percent == "50" { "half".to_owned() } else { format!("{percent} of 100") };
    format!("; {of} are answered within {}", brief(time))
}

/// `a, b and c`.
pub(crate) fn listed(parts: &[String]) -> String {
    match parts {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        parts => parts.concat(),
    }
}

fn not_measured(runs: &[String], verdict: Verdict, check: Option<&Diagnostic>) -> String {
    let at = if runs.is_empty() { String::new() } else { format!(" at {}", listed(runs)) };
    let check = check.map(ToString::to_string).unwrap_or_default();
    if verdict == Verdict::GeneratorBound {
        format!(
            "GENERATOR-BOUND{at}: longtail was the limit, so this is no figure of the server; {check}."
        )
    } else {
        format!("INVALID{at}: {check}. Nothing is concluded from it.")
    }
}

fn failure(kind: &FailureCount, timeout: Nanos) -> String {
    let n = kind.requests;
    let plural = if n == 1 { "" } else { "s" };
    match kind.outcome.as_str() {
        "timed_out" => format!("{n} timeout{plural} after {}", number::span(timeout)),
        "connect_timed_out" => format!("{n} connect timeout{plural}"),
        "reset" => format!("{n} connection{plural} reset"),
        "connect_refused" => format!("{n} connection{plural} refused"),
        "closed_early" => format!("{n} connection{plural} closed early"),
        "bad_response" => format!("{n} bad response{plural}"),
        "in_flight" => format!("{n} still out at the end"),
        status if status.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{n} answered with status {status}")
        }
        other => format!("{n} {}", other.replace('_', " ")),
    }
}

fn limited(limit: &Limit, slots: Option<u32>) -> String {
    match limit {
        Limit::Threads { slots, of_maximum, .. } => format!(
            "The threads are the limit: all {slots} are busy, and they do {} of what {slots} can.",
            percent(of_maximum.min(1.0))
        ),
        Limit::Cpu(cpu) => format!(
            "The server uses {} of {} CPUs: they are the limit.",
            tenths(cpu.server),
            cpu.of
        ),
        Limit::RubyLock { processes, cpu, .. } => {
            let processes = count_of(*processes, "process").replace("processs", "processes");
            let more = slots.map_or("More threads", |_| "More threads a worker");
            format!(
                "Ruby's lock is the limit: it runs one thread of a process at a time, and {processes} did ({} of {} CPUs used). {more} add waiting, not throughput.",
                tenths(cpu.server),
                cpu.of
            )
        }
        Limit::AcceptQueue { dropped, longest, .. } => format!(
            "The accept queue is the limit: it was full, the kernel dropped {}, and the longest took {} to connect.",
            count_of(*dropped, "connect"),
            brief(*longest)
        ),
        Limit::Network { .. } => {
            let evidence = limit.to_string();
            format!("The network is the limit: {}.", evidence.trim_start_matches("network: "))
        }
        Limit::Generator { check } => format!("The generator is the limit: {check}."),
        Limit::SharedCpus(cpu) => {
            let mut users = vec![("the server", cpu.server), ("longtail", cpu.generator)];
            users.extend(cpu.others.map(|others| ("other processes", others)));
            users.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            let used = |(who, cpus): &(&str, f64)| format!("{} by {who}", tenths(*cpus));
            let users = listed(&users.iter().map(used).collect::<Vec<_>>());
            format!(
                "The {} CPUs are used up, {users}: they are the limit, and they are shared.",
                cpu.of
            )
        }
        Limit::NotKnown { cpu: Some(cpu) } => {
            let threads =
                if slots.is_some() { ", and its threads do less than they could" } else { "" };
            format!(
                "What limits the server is not known: it uses {} of {} CPUs{threads}.",
                tenths(cpu.server),
                cpu.of
            )
        }
        Limit::NotKnown { cpu: None } => {
            "What limits the server is not known: nothing could be read of its processes."
                .to_owned()
        }
    }
}

/// One decimal, as CPUs have: `1.9`.
fn tenths(value: f64) -> String {
    number::fixed(value, 1)
}
