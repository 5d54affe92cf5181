//! What to type next: commands that settle what a study leaves open. Each is the study's own command line with one thing changed.

use model::{Finding, LoadStudy, Nanos, Pace, Plan, Quantile, ServerKind, Stop, Study, SweepStudy, Verdict, findings};

use crate::number;
use crate::summary::NextCommand;

/// More than two are a list to read.
const MOST: usize = 2;

/// The commands, the most useful first.
pub(crate) fn next_commands(study: &Study) -> Vec<NextCommand> {
    let mut next = match study {
        Study::Sweep(study) => of_sweep(study),
        Study::Load(study) => of_load(study),
        Study::Bodies(_) | Study::Compare(_) => Vec::new(),
    };
    next.truncate(MOST);
    next
}

fn command(command: String, why: &str) -> NextCommand {
    NextCommand { command, why: why.to_owned() }
}

fn of_sweep(study: &SweepStudy) -> Vec<NextCommand> {
    let plan = &study.plan;
    let changed = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan.clone();
        change(&mut plan);
        plan.command_line()
    };
    let longer = |times: u64| match plan.stream.stop {
        Stop::After(time) => Stop::After(time * times),
        Stop::RequestsPerConnection(n) => Stop::RequestsPerConnection(n * times),
    };
    let findings = findings(&Study::from(study.clone()));
    let mut next = Vec::new();
    let is_puma = matches!(plan.server.kind, ServerKind::Puma { .. });
    for finding in &findings {
        match finding {
            Finding::Unfair { .. } | Finding::ServedInTurns { .. } if plan.stream.keep_alive => {
                let line = changed(&|plan| plan.stream.keep_alive = false);
                if next.iter().all(|it: &NextCommand| it.command != line) {
                    next.push(command(line, "without keep-alive"));
                }
            }
            Finding::StillRising { .. } => {
                let multiples =
                    [4.0, 8.0, 16.0].map(|times| times * plan.multiples.iter().copied().fold(1.0, f64::max) / 4.0);
                let line = changed(&|plan| {
                    plan.connections.clear();
                    plan.multiples = multiples.to_vec();
                });
                next.push(command(line, "more connections"));
            }
            Finding::OneLoad { connections, .. } => {
                let line = changed(&|plan| {
                    plan.multiples.clear();
                    plan.connections = [1, 2, 4].map(|n| (n * connections / 2).max(1)).to_vec();
                });
                next.push(command(line, "half of it, and twice as many"));
            }
            Finding::Undecided { .. } => {
                let line = changed(&|plan| {
                    plan.connections.clear();
                    plan.multiples = vec![0.5, 1.0, 4.0];
                });
                next.push(command(line, "the app alone, and under load"));
            }
            Finding::Limited { limit: model::Limit::RubyLock { .. }, .. } if is_puma => {
                let workers = study.server.workers.max(1) * 2;
                let line = changed(&|plan| plan.server.workers = Some(workers));
                next.push(command(line, "twice as many workers"));
            }
            Finding::NotMeasured { verdict: Verdict::Invalid, .. } => {
                next.push(command("longtail report --full".to_owned(), "all checks and figures"));
            }
            _ => {}
        }
    }
    let quantile = |run: &model::Run| run.response_time(0.99);
    if study.runs.iter().any(|run| quantile(run) == Quantile::TooFew) {
        next.push(command(changed(&|plan| plan.stream.stop = longer(6)), "p99 needs more answers"));
    }
    next
}

fn of_load(study: &LoadStudy) -> Vec<NextCommand> {
    let plan = &study.plan;
    // A generator's threads, requests and files stay as they were typed; only how much is asked for changes.
    let with = |flags: &str, dropped: &[&str]| edited(&study.command_line, flags, dropped);
    let mut next = Vec::new();
    for finding in &findings(&Study::from(study.clone())) {
        match finding {
            Finding::ClosedLoop { rate_per_s, pauses: false, .. } if *rate_per_s >= 2.0 => {
                let rate = round_rate(0.7 * rate_per_s);
                let line = with(&format!("--rate {rate} --for 30s"), &["--rate", "--for", "-n", "--requests"]);
                next.push(command(line, "70 % of it, sent on schedule"));
            }
            Finding::KeepsUp { offered_per_s: Some(offered), .. } => {
                let [from, to] = [*offered, 10.0 * offered].map(round_rate);
                let line = with(&format!("--ramp {from}..{to} --for 60s"), &["--rate", "--for", "-n", "--requests"]);
                next.push(command(line, "where is it saturated?"));
            }
            Finding::Overloaded { completed_per_s, .. } => {
                let rate = round_rate(0.7 * completed_per_s);
                let line = with(&format!("--rate {rate} --for 30s"), &["--rate", "--for", "-n", "--requests"]);
                next.push(command(line, "70 % of what it can do"));
            }
            Finding::Peaked { completed_per_s } => {
                let rate = round_rate(0.7 * completed_per_s);
                let line = with(
                    &format!("--rate {rate} --for 30s"),
                    &["--rate", "--for", "-n", "--ramp", "--over", "--steps", "--step"],
                );
                next.push(command(line, "70 % of what it can do"));
            }
            Finding::FallsBehind { under_way: Some(_), .. } if plan.length.is_some() => {
                let length = plan.length.unwrap_or(Nanos::from_secs(10)) * 6;
                next.push(command(
                    with(&format!("--for {length}"), &["--for"]),
                    "overloaded, or some requests that take long?",
                ));
            }
            Finding::NotMeasured { verdict: Verdict::Invalid, .. } => {
                next.push(command("longtail report --full".to_owned(), "all checks and figures"));
            }
            _ => {}
        }
    }
    let is_short = study.run.response_time(0.99) == Quantile::TooFew && plan.pace == Pace::Closed;
    if let Some(length) = plan.length.filter(|_| is_short) {
        next.push(command(with(&format!("--for {}", length * 6), &["--for"]), "p99 needs more answers"));
    }
    next
}

/// Two digits: nobody offers 6861.4 requests a second.
fn round_rate(rate: f64) -> String {
    let unit = 10f64.powf(rate.max(1e-9).log10().floor() - 1.0);
    number::shortest((rate / unit).round() * unit.max(1e-9)).chars().take(12).collect()
}

/// The command line with these flags in place of those dropped, which each have a value.
fn edited(line: &str, flags: &str, dropped: &[&str]) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut is_value = false;
    for word in line.split(' ') {
        let is_dropped = |flag: &&&str| {
            let rest = word.strip_prefix(**flag);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('=') || !flag.starts_with("--"))
        };
        if std::mem::take(&mut is_value) {
            continue;
        }
        match dropped.iter().chain(&WHERE_TO).find(is_dropped) {
            Some(flag) => is_value = word == *flag,
            None => words.push(word),
        }
    }
    words.push(flags);
    words.join(" ")
}

/// Where results go is no part of what is asked next.
const WHERE_TO: [&str; 3] = ["-o", "--html", "--log"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_replaced_however_it_was_typed() {
        for typed in ["--rate 500 --for 5s", "--rate=500/s --for=5s", "-n100", "-n 100 --rate=2 -o run.json"] {
            let line = format!("longtail load {typed} -c64 http://127.0.0.1:3000/");
            assert_eq!(
                edited(&line, "--rate 70 --for 30s", &["--rate", "--for", "-n", "--requests"]),
                "longtail load -c64 http://127.0.0.1:3000/ --rate 70 --for 30s"
            );
        }
    }

    #[test]
    fn a_rate_has_two_digits() {
        assert_eq!([6861.4, 70.4, 0.71, 8.04, 350.0].map(round_rate), ["6900", "70", "0.71", "8", "350"]);
    }
}
