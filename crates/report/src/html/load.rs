//! The figures of a load.

use model::{LoadStudy, Nanos, Pace, Profile};

use crate::html::figure::{DrawnFigure, KeyEntry, PageFigure};
use crate::html::heat_map;
use crate::html::over_time::{self, ClassedLine};
use crate::html::spread::{self, SpreadLine};
use crate::plot::PlotPoint;
use crate::summary::{Summary, SummaryVerdict};

/// All figures, in the order in which they are asked.
pub(crate) fn figures(study: &LoadStudy, summary: &Summary) -> Vec<PageFigure> {
    let is_forced = study.run.judgement.as_ref().is_some_and(|judgement| judgement.forced);
    if !summary.trusted && !is_forced {
        return vec![PageFigure::left_out("All plots", "the figures are not the server's")];
    }
    vec![spread_of_times(study, summary), rates_over_time(study), times_over_time(study), generators_delay(study)]
}

fn spread_of_times(study: &LoadStudy, summary: &Summary) -> PageFigure {
    const TITLE: &str = "How response times are spread";
    let run = &study.run;
    let mut lines = vec![SpreadLine::new("p99", |q| run.response_time(q))];
    let mut key = vec![KeyEntry::new("p99", "response time, from when a request was due")];
    if study.plan.pace.is_open() {
        lines.push(SpreadLine::new("p50", |q| run.service_time(q)));
        key.push(KeyEntry::new("p50", "service time, from when it was sent"));
    }
    let Some((plot, last)) = spread::plot(TITLE, &lines) else {
        let reason = match summary.verdict {
            SummaryVerdict::Overloaded => {
                "more was offered than the server can do: a percentile would only say how long the run was"
            }
            _ => "too few good responses for two percentiles",
        };
        return PageFigure::left_out(TITLE, reason);
    };
    let sentence = format!(
        "Read up from a percentile: that share of all responses took at most so long. The lines end at {last}, the \
         last percentile that the responses bear."
    );
    PageFigure::Drawn(DrawnFigure { title: TITLE, key, plots: vec![plot], sentence })
}

/// Completed and failed requests of each second, against what was offered.
fn rates_over_time(study: &LoadStudy) -> PageFigure {
    let run = &study.run;
    let is_open = study.plan.pace.is_open();
    let title = if is_open { "Offered and completed" } else { "Completed over time" };
    let seconds = &run.tally.series.seconds;
    let measured = run.measured.as_secs_f64();
    // A second that the window covers in part would show half a rate.
    let whole = &seconds[..seconds.len().min(measured.floor() as usize)];
    if whole.len() < 2 {
        return PageFigure::left_out(title, "the run is shorter than two seconds");
    }
    let points = |count: fn(&model::series::Second) -> u64| {
        let points =
            whole.iter().enumerate().map(|(at, second)| PlotPoint { x: at as f64 + 0.5, y: count(second) as f64 });
        over_time::thinned(points.collect())
    };
    let mut lines = Vec::new();
    let mut key = vec![KeyEntry::new("rate", "completed")];
    if let Pace::Open { profile, .. } = &study.plan.pace {
        lines.push(ClassedLine { class: "ideal".to_owned(), points: offered(profile, study.plan.warm_up, measured) });
        key.push(KeyEntry::new("ideal", "offered"));
    }
    lines.push(ClassedLine { class: "rate".to_owned(), points: points(|second| second.completed) });
    if run.tally.counts.failed() > 0 {
        lines.push(ClassedLine { class: "max".to_owned(), points: points(|second| second.failed) });
        key.push(KeyEntry::new("max", "failed"));
    }
    let mut plots = vec![over_time::plot(title, "requests/s", measured, lines)];
    over_time::finish(&mut plots);
    let sentence = if is_open {
        "Requests that ended in each whole second of the window. Where completed stays below offered, a backlog grows."
    } else {
        "Requests that ended in each whole second of the window."
    };
    PageFigure::Drawn(DrawnFigure { title, key, plots, sentence: sentence.to_owned() })
}

/// The rate that the profile asks for, from the start of the window.
fn offered(profile: &Profile, warm_up: Nanos, span: f64) -> Vec<PlotPoint> {
    let from = warm_up.as_secs_f64();
    let corners: Vec<PlotPoint> = match profile {
        Profile::Flat { rate } => [0.0, span].map(|x| PlotPoint { x, y: rate.per_second() }).to_vec(),
        Profile::Ramp { from: first, to, over } => {
            let (first, last, over) = (first.per_second(), to.per_second(), over.as_secs_f64());
            let at = |x: f64| PlotPoint { x, y: first + (last - first) * ((x + from) / over).min(1.0) };
            [0.0, (over - from).clamp(0.0, span), span].map(at).to_vec()
        }
        Profile::Steps { rates, each } => {
            let each = each.as_secs_f64();
            let step = |(at, rate): (usize, &model::Rate)| {
                let start = at as f64 * each - from;
                let is_last = at + 1 == rates.len();
                let end = if is_last { span } else { start + each };
                let (start, end) = (start.max(0.0), end.min(span));
                (start < end).then(|| [start, end].map(|x| PlotPoint { x, y: rate.per_second() }))
            };
            rates.iter().enumerate().filter_map(step).flatten().collect()
        }
    };
    corners
}

fn times_over_time(study: &LoadStudy) -> PageFigure {
    const TITLE: &str = "Response time over time";
    let figure = heat_map::figure(TITLE, &[&study.run]);
    figure.map_or_else(|| PageFigure::left_out(TITLE, "no good response was recorded"), PageFigure::Drawn)
}

/// What the generator added by itself.
fn generators_delay(study: &LoadStudy) -> PageFigure {
    const TITLE: &str = "The generator's own delay";
    let tally = &study.run.tally;
    let known = [
        ("p50", "until it sent a request that was due", &tally.generator_lag),
        ("p95", "until it read a response that had come", &tally.read_lag),
    ];
    let known: Vec<_> = known.into_iter().filter(|(.., times)| times.count() > 1).collect();
    let lines: Vec<SpreadLine<'_>> = known
        .iter()
        .map(|(class, _, times)| SpreadLine {
            class: (*class).to_owned(),
            time_at: Box::new(move |q| {
                let is_known = times.count() as f64 * (1.0 - q) >= 1.0 - 1e-9;
                times.quantile(q).filter(|_| is_known)
            }),
        })
        .collect();
    let Some((mut plot, _)) = spread::plot(TITLE, &lines) else {
        return PageFigure::left_out(TITLE, "it was not recorded");
    };
    plot.height = 220.0;
    let key = known.iter().map(|(class, meaning, _)| KeyEntry::new(*class, *meaning)).collect();
    let sentence =
        "How late longtail was by itself. The first is part of the response times above; the second is where \
                    the kernel's time stamps were used, and then in none of them."
            .to_owned();
    PageFigure::Drawn(DrawnFigure { title: TITLE, key, plots: vec![plot], sentence })
}
