//! The figures of loads, of bodies and of comparisons; the last is a forest plot of the differences,
//! with the control.

use std::borrow::Cow;

use model::comparison::{ComparedMetric, ComparisonQuestion, Difference, TwoValues};
use model::tally::Second;
use model::{
    Bodies, BodiesStudy, Body, BodyKind, LoadStudy, Nanos, ObjectiveFigure, Pace, Profile, Rate,
    Socket, Threshold, TrialResult,
};

use crate::capacity::SummaryCapacity;
use crate::comparison::change_words;
use crate::comparison::shortened;
use crate::comparison::summary::{self, SummaryComparison};
use crate::details::{PivotPlace, median_of_body};
use crate::html::event;
use crate::html::figure::{
    FEWEST_ABOVE, KeyEntry, PageFigure, ResponseTimeLimit, SECONDS, TitledFigure, drawn, heat_map,
    limit, spread, spread_plot, stacked, thinned, time_axis,
};
use crate::number;
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotCell, PlotMark, PlotPoint, PlotShape};
use crate::run_column::RunColumn;
use crate::run_columns::{P50, RATE};
use crate::summary::{Summary, SummaryVerdict};

/// The figures of a load, in the order in which readers ask for them.
pub(crate) fn of_load(study: &LoadStudy, summary: &Summary<'_>) -> Vec<TitledFigure> {
    let is_forced = study.run.judgement.as_ref().is_some_and(|judgement| judgement.forced);
    if !summary.trusted && !is_forced {
        return vec![TitledFigure {
            title: "All plots".into(),
            drawn: Err("the figures are not the server's".to_owned()),
        }];
    }
    let rates = if study.plan.load.pace.is_open() {
        "Offered and completed"
    } else {
        "Completed over time"
    };
    let figures = [
        ("How response times are spread", spread_of_times(study, summary)),
        (rates, rates_over_time(study)),
        ("Response time over time", heat_map(&[&study.run], &limits_of_all(study))),
    ];
    let figures = figures.map(|(title, drawn)| TitledFigure { title: title.into(), drawn });
    event::figure(&study.run).into_iter().chain(figures).collect()
}

/// How late longtail itself was, beside what else speaks for the figures or against them.
pub(crate) fn own_delay(study: &LoadStudy) -> TitledFigure {
    TitledFigure { title: "The generator's own delay".into(), drawn: generators_delay(study) }
}

/// The thresholds of all requests, not only of a class or of a part of the run.
fn thresholds_of_all(study: &LoadStudy) -> impl Iterator<Item = &Threshold> {
    let is_of_all = |it: &&Threshold| it.class.is_none() && it.condition.part.is_none();
    study.plan.thresholds.iter().filter(is_of_all)
}

/// The limits of response times of all requests.
fn limits_of_all(study: &LoadStudy) -> Vec<ResponseTimeLimit> {
    let of_threshold = |threshold: &Threshold| match threshold.condition.figure {
        ObjectiveFigure::ResponseTime(_) | ObjectiveFigure::Max => Some(ResponseTimeLimit {
            time: Nanos::from_secs_f64(threshold.condition.limit / 1e9),
            name: name_of(threshold),
        }),
        _ => None,
    };
    thresholds_of_all(study).filter_map(of_threshold).collect()
}

/// What was asked for, as it was typed.
fn name_of(threshold: &Threshold) -> String {
    if threshold.is_expected { threshold.asked() } else { threshold.to_string() }
}

fn spread_of_times(study: &LoadStudy, summary: &Summary<'_>) -> Result<PageFigure, String> {
    let run = &study.run;
    let mut lines = Vec::new();
    let mut key = vec![KeyEntry::new("p99", "response time, from when a request was due")];
    if study.plan.load.pace.is_open() {
        lines.push(spread("p50", |q| drawn(run, q).then(|| run.service_time(q).time()).flatten()));
        key.push(KeyEntry::new("p50", "service time, from when it was sent (hidden where equal)"));
    }
    // Drawn last, so that no other line hides it.
    lines.push(spread("p99", |q| drawn(run, q).then(|| run.response_time(q).time()).flatten()));
    let mut labelled = vec![0.99];
    let mut labels = Vec::new();
    for threshold in thresholds_of_all(study) {
        let condition = threshold.condition;
        let ObjectiveFigure::ResponseTime(quantile) = condition.figure else { continue };
        if let Some(measured) = run.response_time(quantile).time() {
            lines.push(limit("ideal", quantile, condition.limit / 1e6, measured));
            key.push(KeyEntry::new("ideal", threshold.to_string()));
            labels.push(label_of_limit(
                quantile,
                condition.limit / 1e6,
                measured,
                name_of(threshold),
            ));
            labelled.push(quantile);
        }
    }
    let (mut plot, last) = spread_plot(lines).ok_or(match summary.verdict {
        SummaryVerdict::Overloaded => {
            "more was offered than the server can do: a percentile would only say how long the run was"
        }
        _ => "too few good responses for two percentiles",
    })?;
    labelled.sort_by(f64::total_cmp);
    labelled.dedup();
    plot.marks.extend(labels);
    plot.marks.extend(labelled.into_iter().flat_map(|quantile| label_of_time(quantile, summary)));
    let sentence = format!(
        "Read up from a percentile: that share of all responses took at most that long. The lines \
         end at {last}: fewer than {FEWEST_ABOVE} responses took longer, which tell nothing."
    );
    Ok(PageFigure { key, plots: vec![plot], sentence })
}

/// A dot at a percentile of the response time, with its figure; nothing if it is not known.
fn label_of_time(quantile: f64, summary: &Summary<'_>) -> Vec<PlotMark> {
    let Some(run) = summary.runs.first() else { return Vec::new() };
    let Some(time) = run.percentile(quantile) else { return Vec::new() };
    let at = PlotPoint { x: 1.0 / (1.0 - quantile), y: time.as_millis_f64() };
    let mark = if run.is_uncertain(quantile) { "?" } else { "" };
    let figure = format!("{}: {}{mark}", number::percentile(quantile), number::time(time));
    let label = PlotShape::Label { at, is_right: true, is_below: true };
    vec![PlotMark::new("p99", PlotShape::Dot(at), ""), PlotMark::new("p99", label, figure)]
}

/// The name of a limit, left of where its line turns to what was measured.
fn label_of_limit(quantile: f64, limit_ms: f64, measured: Nanos, name: String) -> PlotMark {
    let at = PlotPoint { x: 1.0 / (1.0 - quantile), y: limit_ms };
    let is_below = limit_ms < measured.as_millis_f64();
    PlotMark::new("ideal", PlotShape::Label { at, is_right: false, is_below }, name)
}

/// Completed and failed requests of each second, next to what was offered.
fn rates_over_time(study: &LoadStudy) -> Result<PageFigure, String> {
    let run = &study.run;
    let seconds = &run.tally.series.seconds;
    let measured = run.measured.as_secs_f64();
    // A second that is only partly in the window would show too low a rate.
    let whole = &seconds[..seconds.len().min(measured.floor() as usize)];
    if whole.len() < 2 {
        return Err("the run is shorter than two seconds".to_owned());
    }
    let counted = |class: &str, count: fn(&Second) -> u64| {
        let point = |(at, second): (usize, &Second)| PlotPoint {
            x: at as f64 + 0.5,
            y: count(second) as f64,
        };
        PlotMark::line(class, thinned(&whole.iter().enumerate().map(point).collect::<Vec<_>>()))
    };
    let mut lines = Vec::new();
    let mut key = vec![KeyEntry::new("rate", "completed")];
    let mut sentence = "Requests that ended in each whole second of the window.".to_owned();
    if let Pace::Open { profile, .. } = &study.plan.load.pace {
        lines.push(PlotMark::line("ideal", offered(profile, study.plan.load.warm_up, measured)));
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

/// The rate that the profile offers, over time since the start of the window.
fn offered(profile: &Profile, warm_up: Nanos, span: f64) -> Vec<PlotPoint> {
    let from = warm_up.as_secs_f64();
    match profile {
        Profile::Flat { rate } => {
            [0.0, span].map(|x| PlotPoint { x, y: rate.per_second() }).to_vec()
        }
        Profile::Ramp { from: first, to, over } => {
            let first = first.per_second();
            let last = to.per_second();
            let over = over.as_secs_f64();
            let at =
                |x: f64| PlotPoint { x, y: first + (last - first) * ((x + from) / over).min(1.0) };
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
        // Its mean: a study does not keep each due time.
        Profile::Recorded { recorded } => {
            let mean = recorded.requests as f64 / recorded.lasts.as_secs_f64();
            [0.0, span].map(|x| PlotPoint { x, y: mean }).to_vec()
        }
    }
}

/// The generator's own delay.
fn generators_delay(study: &LoadStudy) -> Result<PageFigure, String> {
    let tally = &study.run.tally;
    let mut lines = Vec::new();
    let mut key = Vec::new();
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
        "How late longtail was by itself. The first is part of the response times above. The \
         second is known where the kernel's time stamps were used, and is part of no time above."
            .to_owned();
    Ok(PageFigure { key, plots: vec![plot], sentence })
}

/// The figures of a study of bodies.
pub(crate) fn of_bodies(study: &BodiesStudy) -> Vec<TitledFigure> {
    vec![
        TitledFigure {
            title: "Throughput against size".into(),
            drawn: against_size(study, "requests/s", &RATE),
        },
        TitledFigure {
            title: "Median response time against size".into(),
            drawn: against_size(study, "p50, ms", &P50),
        },
    ]
}

/// The class of a kind, and what it is.
fn class_and_meaning(kind: BodyKind) -> [&'static str; 2] {
    match kind {
        BodyKind::Array => ["p50", "array of 1 kB strings"],
        BodyKind::Chunked => ["p99", "chunks"],
        BodyKind::String => ["p95", "one string"],
        BodyKind::Io => ["server", "file"],
    }
}

fn against_size(study: &BodiesStudy, unit: &str, figure: &RunColumn) -> Result<PageFigure, String> {
    let bodies = &study.plan.bodies;
    let sockets = &study.plan.sockets;
    if bodies.kilobytes.len() < 2 {
        return Err("there is one size".to_owned());
    }
    let points = |socket: Socket, kind: BodyKind| {
        let point = |kilobytes: &u32| {
            let body = Body { kilobytes: *kilobytes, kind };
            let y = median_of_body(study, PivotPlace { socket, body }, figure)?;
            Some(PlotPoint { x: f64::from(*kilobytes), y })
        };
        bodies.kilobytes.iter().filter_map(point).collect::<Vec<_>>()
    };
    let of_socket = |socket: &Socket| {
        bodies.kinds.iter().flat_map(|kind| points(*socket, *kind)).collect::<Vec<_>>()
    };
    let all: Vec<f64> = sockets.iter().flat_map(of_socket).map(|point| point.y).collect();
    if all.is_empty() {
        return Err("no run's figures are the server's".to_owned());
    }
    let plots = sockets.iter().map(|socket| {
        let marks = bodies.kinds.iter().flat_map(|kind| {
            let [class, _] = class_and_meaning(*kind);
            let points = points(*socket, *kind);
            let dot = |at: &PlotPoint| {
                let title =
                    format!("{socket} {}{}: {} {unit}", kind.letter(), at.x, (figure.shown)(at.y));
                PlotMark::new(class, PlotShape::Dot(*at), title)
            };
            let dots: Vec<PlotMark> = points.iter().map(dot).collect();
            dots.into_iter().chain([PlotMark::line(class, points)])
        });
        // All sockets on one scale, so that their heights compare.
        let scale = AxisScale::around(all.iter().copied());
        let y = PlotAxis::rounded(format!("{unit} over {socket}, log scale"), scale, 4);
        Plot { label: socket.to_string(), ..Plot::new(sizes(bodies), y, marks.collect()) }
    });
    let key = bodies
        .kinds
        .iter()
        .map(|kind| class_and_meaning(*kind))
        .map(|[class, meaning]| KeyEntry::new(class, meaning));
    let repeats = if study.plan.repeat > 1 { " Of repeats the middle one is drawn." } else { "" };
    let is_whole = all.len() == sockets.len() * bodies.kinds.len() * bodies.kilobytes.len();
    let missing = if is_whole { "" } else { " A body without a dot has no figure of the server." };
    let sentence = format!(
        "Both axes are logarithmic: where a line is flat, the size costs nothing yet.{repeats}{missing}"
    );
    let plots = stacked(plots.collect(), "kB of content (1024 bytes), log scale");
    Ok(PageFigure { key: key.collect(), plots, sentence })
}

/// The axis of sizes, with a tick at each.
fn sizes(bodies: &Bodies) -> PlotAxis {
    let mut sizes = bodies.kilobytes.clone();
    sizes.sort_unstable();
    let [low, high] = [sizes[0].max(1), sizes[sizes.len() - 1]].map(f64::from);
    let scale = AxisScale::Logarithmic { low: low / 1.15, high: high * 1.15 };
    let ticks =
        sizes.into_iter().map(|size| AxisTick { at: f64::from(size), label: size.to_string() });
    PlotAxis::labelled("", scale, ticks)
}

/// A row of the forest plot: a heading, or a difference.
enum ForestRow<'a> {
    /// What the rows below it are about.
    Heading(String),
    Difference(Box<ForestDifference<'a>>),
}

/// How far an arm is from another in a metric.
struct ForestDifference<'a> {
    /// What stands at its left: the arm, or the metric where only two arms are compared.
    label: String,
    class: String,
    /// What the key calls its colour.
    in_key: String,
    /// What it is, in full.
    what: String,
    difference: Cow<'a, Difference>,
}

/// The trials of a search, in order, and the bracket that they left.
pub(crate) fn of_capacity(summary: &SummaryCapacity) -> TitledFigure {
    let has_bracket = summary.lo_per_s > 0.0 || summary.hi_per_s.is_some();
    let title = if has_bracket { "The trials and the bracket" } else { "The trials" };
    TitledFigure { title: title.into(), drawn: trials(summary) }
}

/// Numbers of trials below the axis, about.
const MOST_TRIAL_TICKS: usize = 12;

fn trials(summary: &SummaryCapacity) -> Result<PageFigure, String> {
    if summary.trials.is_empty() {
        return Err("there was no trial".to_owned());
    }
    let count = summary.trials.len();
    let ends = [summary.lo_per_s, summary.hi_per_s.unwrap_or(0.0)];
    let known = ends.into_iter().filter(|rate| *rate > 0.0);
    let mut marks: Vec<PlotMark> =
        known.map(|rate| PlotMark::new("mark", PlotShape::Level(rate), "")).collect();
    for (at, trial) in summary.trials.iter().enumerate() {
        let class = match trial.result {
            TrialResult::Passed => "p50",
            TrialResult::Failed { .. } => "max",
            TrialResult::Undecided | TrialResult::NotTrusted | TrialResult::BrokenOff => "ideal",
        };
        let place = PlotPoint { x: at as f64 + 1.0, y: trial.rate_per_s };
        let title = format!(
            "{}/s: {} of {} late",
            number::significant(trial.rate_per_s),
            trial.late,
            trial.requests
        );
        marks.push(PlotMark::new(class, PlotShape::Dot(place), title));
    }
    let scale = AxisScale::Linear { low: 0.0, high: count as f64 + 1.0 };
    // Trials are whole, and there is none before the first and after the last.
    let step = count.div_ceil(MOST_TRIAL_TICKS);
    let numbers = (1..=count).step_by(step);
    let ticks = numbers.map(|number| AxisTick { at: number as f64, label: number.to_string() });
    let x = PlotAxis::labelled("trial", scale, ticks);
    let is_drawn = |class: &str| marks.iter().any(|mark| mark.class == class);
    let key = [
        KeyEntry::new("p50", "keeps the objectives"),
        KeyEntry::new("max", "breaks one"),
        KeyEntry::new("ideal", "neither: undecided, too short to pass, broken off or not trusted"),
        KeyEntry::new("mark", "the bracket"),
    ];
    let key = key.into_iter().filter(|entry| is_drawn(&entry.class)).collect();
    let sentence =
        "A dot is a trial at one rate. A rate passes only in a trial with enough requests, and counts \
                    as too high when two trials at it or below it failed."
            .to_owned();
    Ok(PageFigure { key, plots: vec![Plot::from_zero(x, "requests/s", marks)], sentence })
}

/// The figure of a comparison: all metrics that are compared as ratios.
pub(crate) fn of_comparison(summary: &SummaryComparison) -> TitledFigure {
    let title = match summary.question {
        ComparisonQuestion::Change => "Difference from the base",
        ComparisonQuestion::Settings => "What each setting changes",
        ComparisonQuestion::Pairs => "Differences between the arms",
        ComparisonQuestion::Best => "Difference from the best",
    };
    TitledFigure { title: title.into(), drawn: forest(summary) }
}

fn forest(summary: &SummaryComparison) -> Result<PageFigure, String> {
    let rows = forest_rows(summary);
    let differences: Vec<&ForestDifference<'_>> = rows
        .iter()
        .filter_map(|row| match row {
            ForestRow::Heading(_) => None,
            ForestRow::Difference(row) => Some(&**row),
        })
        .collect();
    if differences.is_empty() {
        return Err("no metric has an interval: too few blocks".to_owned());
    }
    let margin = summary.margin;
    let axis = axis_of_differences(&differences, margin);
    let upright = |class, x| PlotMark::new(class, PlotShape::Upright(x), "");
    let mut marks =
        vec![upright("axis", 1.0), upright("mark", 1.0 - margin), upright("mark", 1.0 + margin)];
    let mut ticks = Vec::new();
    for (at, row) in rows.iter().rev().enumerate() {
        let y = at as f64 + 0.5;
        match row {
            ForestRow::Heading(text) => {
                let at = PlotPoint { x: axis.scale.low(), y };
                marks.push(PlotMark::new("", PlotShape::Word(at), text));
            }
            ForestRow::Difference(row) => {
                marks.extend(row.marks(y));
                ticks.push(AxisTick { at: y, label: row.label.clone() });
            }
        }
    }
    let plot = Plot { left: 150.0, ..Plot::of_rows(rows.len(), axis, ticks, marks) };
    let sentence = sentence_of_forest(summary);
    Ok(PageFigure { key: key_of_forest(&differences), plots: vec![plot], sentence })
}

fn sentence_of_forest(summary: &SummaryComparison) -> String {
    // A search for the best has no control.
    let control = if summary.question == ComparisonQuestion::Best {
        ""
    } else {
        "; where the control's bar reaches, nothing can be told"
    };
    let drawn = summary.metrics.iter().flat_map(|row| row.differences.iter().chain(&row.control));
    let two_kinds = if drawn.into_iter().any(|it| it.two_changes.is_some()) {
        " Two dots without a bar: the blocks have two kinds of change."
    } else {
        ""
    };
    let unknown = without_interval(summary);
    let unknown = if unknown.is_empty() {
        String::new()
    } else {
        format!(" Not drawn, for want of blocks: {}.", judge::words::listed(&unknown))
    };
    format!(
        "A dot is the estimate over all blocks, its bar the interval at the level of its test. A bar that leaves 0 out, with its \
         dot beyond the margin, is a difference; a bar wholly within the margin is none{control}.{two_kinds}{unknown}"
    )
}

/// The metrics that would be drawn if there were enough blocks.
fn without_interval(summary: &SummaryComparison) -> Vec<String> {
    let is_unknown = |row: &&ComparedMetric| {
        !row.metric.is_share()
            && !row.differences.is_empty()
            && row.differences.iter().all(|difference| difference.interval.is_none())
    };
    summary.metrics.iter().filter(is_unknown).map(|row| summary::name(row.metric)).collect()
}

/// A logarithmic axis, on which half and twice as much are equally far from the base.
fn axis_of_differences(rows: &[&ForestDifference<'_>], margin: f64) -> PlotAxis {
    let ends = || {
        rows.iter().flat_map(|row| {
            let both = row.difference.two_changes.map(|it| [it.low, it.high]);
            both.or(row.difference.interval).into_iter().flatten()
        })
    };
    let low = ends().fold(1.0 / (1.0 + 1.5 * margin), |low, end| low.min(1.0 + end)).max(0.01);
    let high = ends().fold(1.0 + 1.5 * margin, |high, end| high.max(1.0 + end));
    let room = (high / low).powf(0.04);
    let scale = AxisScale::Logarithmic { low: low / room, high: high * room };
    let mut axis = PlotAxis::rounded("difference, %, log scale", scale, 6);
    for tick in &mut axis.ticks {
        let percent = ((tick.at - 1.0) * 1e4).round() / 100.0 + 0.0;
        tick.label = if percent > 0.0 { format!("+{percent}") } else { percent.to_string() };
    }
    axis
}

/// An entry for each colour.
fn key_of_forest(rows: &[&ForestDifference<'_>]) -> Vec<KeyEntry> {
    let mut key: Vec<KeyEntry> = Vec::new();
    for row in rows {
        if !key.iter().any(|entry| entry.meaning == row.in_key) {
            key.push(KeyEntry::new(row.class.as_str(), row.in_key.as_str()));
        }
    }
    key.push(KeyEntry::new("mark", "the margin"));
    key
}

impl ForestDifference<'_> {
    /// The interval as a bar at this height, and the estimate as a dot.
    fn marks(&self, y: f64) -> Vec<PlotMark> {
        let Difference { interval, estimate, two_changes, .. } = *self.difference;
        let mut marks = Vec::new();
        let dot = |part: f64, title: String| {
            let dot = PlotShape::Dot(PlotPoint { x: 1.0 + part, y });
            PlotMark::new(format!("estimate {}", self.class), dot, title)
        };
        // A bar and a dot between two kinds of changes would be where no block is.
        if let Some(TwoValues { low, high, .. }) = two_changes {
            let both = change_words::two_changes_in_short(&self.difference).unwrap_or_default();
            let title = format!("{}: {both}, by the block", self.what);
            return [low, high].map(|part| dot(part, title.clone())).into();
        }
        if let Some([low, high]) = interval {
            let bar = PlotCell {
                from: PlotPoint { x: 1.0 + low, y: y - 0.15 },
                to: PlotPoint { x: 1.0 + high, y: y + 0.15 },
            };
            let title = format!(
                "{}: {} %",
                self.what,
                change_words::interval_of(&self.difference).unwrap_or_default()
            );
            let class = format!("interval {}", self.class);
            marks.push(PlotMark::new(class, PlotShape::Cells(vec![bar]), title));
        }
        if let Some(estimate) = estimate {
            let title = format!(
                "{}: {}",
                self.what,
                change_words::estimate_of(&self.difference).unwrap_or_default()
            );
            marks.push(dot(estimate, title));
        }
        marks
    }
}

/// The colour of an arm, the same in all rows.
fn class_of_arm(summary: &SummaryComparison, letter: &str) -> String {
    const COLOURS: usize = 6;
    let at = summary.arms.iter().position(|arm| arm.letter == letter).unwrap_or(0);
    format!("arm{}", at % COLOURS)
}

/// The rows from top to bottom: for each metric and each of its bases, the arms compared with that
/// base; the control stands once for each metric.
fn forest_rows(summary: &SummaryComparison) -> Vec<ForestRow<'_>> {
    let mut rows = Vec::new();
    for row in summary.metrics.iter().filter(|row| !row.metric.is_share()) {
        for (at, base) in bases(summary, row).into_iter().enumerate() {
            let mut differences = differences_from(summary, row, base);
            if differences.is_empty() {
                continue;
            }
            differences.extend(control(summary, row).filter(|_| at == 0));
            if summary.compared().count() > 2 {
                let metric = summary::name(row.metric);
                rows.push(ForestRow::Heading(format!("{metric} against {}", summary.called(base))));
            }
            rows.extend(differences.into_iter().map(|row| ForestRow::Difference(Box::new(row))));
        }
    }
    rows
}

/// The arms that others are compared with in a metric: the base, the best, or, if the metric
/// decides a comparison of pairs, every arm.
fn bases<'a>(summary: &'a SummaryComparison, row: &ComparedMetric) -> Vec<&'a str> {
    let base = summary.base().letter.as_str();
    match summary.question {
        ComparisonQuestion::Best => {
            vec![summary.ranking.as_ref().map_or(base, |ranking| ranking.best.as_str())]
        }
        ComparisonQuestion::Settings | ComparisonQuestion::Pairs if row.decides => {
            summary.compared().map(|arm| arm.letter.as_str()).collect()
        }
        ComparisonQuestion::Change | ComparisonQuestion::Settings | ComparisonQuestion::Pairs => {
            vec![base]
        }
    }
}

/// The known differences of the other arms from `base`. A pair is shown only in the direction in
/// which it was tested, so that none appears twice; against the best, every arm is shown.
fn differences_from<'a>(
    summary: &'a SummaryComparison,
    row: &'a ComparedMetric,
    base: &str,
) -> Vec<ForestDifference<'a>> {
    let is_pair = summary.compared().count() == 2;
    let difference = |arm: &str| match summary.question {
        ComparisonQuestion::Best => row.seen_from(base, arm).map(Cow::Owned),
        ComparisonQuestion::Change | ComparisonQuestion::Settings | ComparisonQuestion::Pairs => {
            row.difference(base, arm).map(Cow::Borrowed)
        }
    };
    summary
        .compared()
        .filter_map(|arm| {
            let difference = difference(&arm.letter).filter(|it| it.interval.is_some())?;
            let label = if is_pair { summary::name(row.metric) } else { shortened(&arm.called) };
            let class = class_of_arm(summary, &arm.letter);
            let what = format!("{} against {}", arm.called, summary.called(base));
            let in_key = if is_pair { what.clone() } else { arm.called.clone() };
            Some(ForestDifference { label, class, in_key, what, difference })
        })
        .collect()
}

fn control<'a>(
    summary: &SummaryComparison,
    row: &'a ComparedMetric,
) -> Option<ForestDifference<'a>> {
    let difference = row.control.as_ref().filter(|difference| difference.interval.is_some())?;
    let what = format!("the control: {} against itself", summary.called_control());
    Some(ForestDifference {
        label: "control".to_owned(),
        class: "rest".to_owned(),
        in_key: what.clone(),
        what,
        difference: Cow::Borrowed(difference),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_search_names_only_what_is_drawn() {
        let drawn = |study: &model::CapacityStudy| {
            let TitledFigure { title, drawn } = of_capacity(&crate::capacity::summary(study));
            let figure = drawn.unwrap();
            let key: Vec<String> = figure.key.into_iter().map(|entry| entry.class).collect();
            let ticks = figure.plots[0].x.ticks.iter().map(|tick| tick.label.clone());
            (title, key.join(" "), ticks.collect::<Vec<_>>().join(" "))
        };
        let (title, key, ticks) = drawn(&testkit::capacity::found());
        assert_eq!(title, "The trials and the bracket");
        assert_eq!((&*key, &*ticks), ("p50 max ideal mark", "1 2 3 4 5 6"));
        let (title, key, ticks) = drawn(&testkit::capacity::stopped());
        assert_eq!((&*title, &*key, &*ticks), ("The trials", "ideal", "1"));
    }

    #[test]
    fn a_limit_is_drawn_at_its_percentile_if_that_is_known() {
        let mut study = testkit::load::open_poisson();
        let limits = ["expect p99 < 200ms", "expect p99.999 < 1s", "expect failed < 1"];
        study.plan.thresholds = limits.map(|text| text.parse().unwrap()).to_vec();
        let study = model::Study::from(study);
        let summary = Summary::of(&study, None);
        let model::Study::Load(load) = &study else { unreachable!("a load") };
        let figure = spread_of_times(load, &summary).unwrap();
        let limits: Vec<&str> = figure
            .key
            .iter()
            .filter(|entry| entry.class == "ideal")
            .map(|entry| entry.meaning.as_str())
            .collect();
        assert_eq!(limits, ["expect p99 < 200ms"]);
        let labels = figure.plots[0].marks.iter().filter(|mark| !mark.title.is_empty());
        let labels: Vec<&str> = labels.map(|mark| mark.title.as_str()).collect();
        assert_eq!(labels, ["p99 < 200ms", "p99: 70.3 ms"]);
    }
}
