//! The figures of a load.

use model::series::Second;
use model::{LoadStudy, Nanos, Pace, Profile, Rate};

use crate::html::figure::{KeyEntry, PageFigure, SECONDS, TitledFigure, spread, spread_plot, thinned, time_axis};
use crate::html::heat_map;
use crate::plot::{Plot, PlotAxis, PlotMark, PlotPoint};
use crate::summary::{Summary, SummaryVerdict};

/// All figures, in the order in which they are asked.
pub(crate) fn figures(study: &LoadStudy, summary: &Summary) -> Vec<TitledFigure> {
    let is_forced = study.run.judgement.as_ref().is_some_and(|judgement| judgement.forced);
    if !summary.trusted && !is_forced {
        return vec![TitledFigure { title: "All plots", drawn: Err("the figures are not the server's".to_owned()) }];
    }
    let rates = if study.plan.pace.is_open() { "Offered and completed" } else { "Completed over time" };
    [
        ("How response times are spread", spread_of_times(study, summary)),
        (rates, rates_over_time(study)),
        ("Response time over time", heat_map::figure(&[&study.run])),
        ("The generator's own delay", generators_delay(study)),
    ]
    .map(|(title, drawn)| TitledFigure { title, drawn })
    .into()
}

fn spread_of_times(study: &LoadStudy, summary: &Summary) -> Result<PageFigure, String> {
    let run = &study.run;
    let mut lines = vec![spread("p99", |q| run.response_time(q).time())];
    let mut key = vec![KeyEntry::new("p99", "response time, from when a request was due")];
    if study.plan.pace.is_open() {
        lines.push(spread("p50", |q| run.service_time(q).time()));
        key.push(KeyEntry::new("p50", "service time, from when it was sent"));
    }
    let (plot, last) = spread_plot(lines).ok_or(match summary.verdict {
        SummaryVerdict::Overloaded => {
            "more was offered than the server can do: a percentile would only say how long the run was"
        }
        _ => "too few good responses for two percentiles",
    })?;
    let sentence = format!(
        "Read up from a percentile: that share of all responses took at most so long. The lines end at {last}, the \
         last percentile that the responses bear."
    );
    Ok(PageFigure { key, plots: vec![plot], sentence })
}

/// Completed and failed requests of each second, against what was offered.
fn rates_over_time(study: &LoadStudy) -> Result<PageFigure, String> {
    let run = &study.run;
    let seconds = &run.tally.series.seconds;
    let measured = run.measured.as_secs_f64();
    // A second that the window covers in part would show half a rate.
    let whole = &seconds[..seconds.len().min(measured.floor() as usize)];
    if whole.len() < 2 {
        return Err("the run is shorter than two seconds".to_owned());
    }
    let counted = |class: &str, count: fn(&Second) -> u64| {
        let point = |(at, second): (usize, &Second)| PlotPoint { x: at as f64 + 0.5, y: count(second) as f64 };
        PlotMark::line(class, thinned(&whole.iter().enumerate().map(point).collect::<Vec<_>>()))
    };
    let mut lines = Vec::new();
    let mut key = vec![KeyEntry::new("rate", "completed")];
    let mut sentence = "Requests that ended in each whole second of the window.".to_owned();
    if let Pace::Open { profile, .. } = &study.plan.pace {
        lines.push(PlotMark::line("ideal", offered(profile, study.plan.warm_up, measured)));
        key.push(KeyEntry::new("ideal", "offered"));
        sentence += " Where completed stays below offered, a backlog grows.";
    }
    lines.push(counted("rate", |second| second.completed));
    if run.tally.counts.failed() > 0 {
        lines.push(counted("max", |second| second.failed));
        key.push(KeyEntry::new("max", "failed"));
    }
    let x = PlotAxis { title: SECONDS.to_owned(), ..time_axis(measured) };
    Ok(PageFigure { key, plots: vec![Plot::from_zero(x, "requests/s", lines)], sentence })
}

/// The rate that the profile asks for, from the start of the window.
fn offered(profile: &Profile, warm_up: Nanos, span: f64) -> Vec<PlotPoint> {
    let from = warm_up.as_secs_f64();
    match profile {
        Profile::Flat { rate } => [0.0, span].map(|x| PlotPoint { x, y: rate.per_second() }).to_vec(),
        Profile::Ramp { from: first, to, over } => {
            let (first, last, over) = (first.per_second(), to.per_second(), over.as_secs_f64());
            let at = |x: f64| PlotPoint { x, y: first + (last - first) * ((x + from) / over).min(1.0) };
            [0.0, (over - from).clamp(0.0, span), span].map(at).to_vec()
        }
        Profile::Steps { rates, each } => {
            let each = each.as_secs_f64();
            let step = |(at, rate): (usize, &Rate)| {
                let start = at as f64 * each - from;
                let end = if at + 1 == rates.len() { span } else { (start + each).min(span) };
                let start = start.max(0.0);
                (start < end).then(|| [start, end].map(|x| PlotPoint { x, y: rate.per_second() }))
            };
            rates.iter().enumerate().filter_map(step).flatten().collect()
        }
    }
}

/// What the generator added by itself.
fn generators_delay(study: &LoadStudy) -> Result<PageFigure, String> {
    let tally = &study.run.tally;
    let (mut lines, mut key) = (Vec::new(), Vec::new());
    for (class, meaning, times) in [
        ("p50", "until it sent a request that was due", &tally.generator_lag),
        ("p95", "until it read a response that had come", &tally.read_lag),
    ] {
        let is_known = |q: f64| times.count() as f64 * (1.0 - q) >= 1.0 - 1e-9;
        if times.count() > 1 {
            lines.push(spread(class, |q| times.quantile(q).filter(|_| is_known(q))));
            key.push(KeyEntry::new(class, meaning));
        }
    }
    let (plot, _) = spread_plot(lines).ok_or("it was not recorded")?;
    let sentence =
        "How late longtail was by itself. The first is part of the response times above; the second is where \
                    the kernel's time stamps were used, and then in none of them."
            .to_owned();
    Ok(PageFigure { key, plots: vec![plot], sentence })
}
