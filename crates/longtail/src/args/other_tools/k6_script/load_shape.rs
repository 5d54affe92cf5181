//! How much load a script of k6 makes, and how long, as its options say it: scenarios, executors
//! and stages.

use model::Nanos;

use crate::args::other_tools::flags::{DURATION, RATE, VUS, in_five_digits};
use crate::args::other_tools::js_literals::JsValue;

/// A scenario among several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScenarioStart {
    pub(crate) name: String,
    /// When it begins, for a person: `30s after the start`.
    pub(crate) when: String,
}

impl ScenarioStart {
    /// Those of options with more than one.
    pub(super) fn all_in(options: &JsValue) -> Vec<ScenarioStart> {
        let scenarios = options.field("scenarios").map_or(&[][..], JsValue::fields);
        if scenarios.len() < 2 {
            return Vec::new();
        }
        let start = |scenario: &JsValue| match scenario.field("startTime") {
            None => "from the start".to_owned(),
            Some(text) if text.text().is_some_and(is_no_time) => "from the start".to_owned(),
            Some(value) => match time(value) {
                Some(time) => format!("{time} after the start"),
                None => "at its startTime".to_owned(),
            },
        };
        let found = scenarios.iter();
        found.map(|(name, it)| ScenarioStart { name: name.clone(), when: start(it) }).collect()
    }
}

/// Whether a time is none: `0s`.
fn is_no_time(text: &str) -> bool {
    text.parse::<Nanos>().is_ok_and(|time| time == Nanos::ZERO)
}

/// Options with one of their scenarios alone.
pub(super) fn with_one_scenario(options: &JsValue, name: &str) -> JsValue {
    let one = |scenarios: &JsValue| {
        let found = scenarios.field(name).cloned().unwrap_or(JsValue::Computed);
        JsValue::Object(vec![(name.to_owned(), found)])
    };
    let fields = options.fields().iter().map(|(field, value)| {
        let value = if field == "scenarios" { one(value) } else { value.clone() };
        (field.clone(), value)
    });
    JsValue::Object(fields.collect())
}

/// The variables that the one scenario of these options has for itself.
pub(super) fn environment_of_scenario(options: &JsValue) -> JsValue {
    match options.field("scenarios").map_or(&[][..], JsValue::fields) {
        [(_, only)] => only.field("env").cloned().unwrap_or(JsValue::Nothing),
        _ => JsValue::Nothing,
    }
}

/// How much load there is, and how long, as scenarios or stages say it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoadShape {
    /// Our words, some of which may stand for what is not known.
    pub(crate) words: Vec<String>,
    /// The stages of a rate behind those words, in their order.
    pub(crate) later: Vec<LaterStage>,
    /// What it is, for a person: a sentence each.
    pub(crate) said: Vec<String>,
    /// Whether iterations come at a rate, however slow the server is.
    pub(crate) is_open: bool,
    /// How many iterations a second begin, and how many virtual users there are for them, if both
    /// are plain.
    pub(crate) iterations: Option<IterationRate>,
    /// What becomes of an iteration that comes too early, for a person; `None` in a closed loop.
    pub(crate) drops: Option<String>,
}

/// An arrival rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IterationRate {
    /// How many iterations begin in a second, at the highest rate.
    pub(crate) per_s: f64,
    /// The most virtual users for them.
    pub(crate) users: u32,
}

/// A stage of a rate that is a load of its own, after others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LaterStage {
    /// Our words for its rate and its length.
    pub(crate) words: Vec<String>,
    /// How long nothing is sent before it.
    pub(crate) idle: Nanos,
}

/// What becomes of an iteration of an arrival rate that comes too early.
const DROPS: &str = "k6 drops an iteration for which no VU is free, ours waits and counts from when it was due (--late skip drops it)";

/// The most virtual users, if they are plain.
pub(super) fn most_users(options: &JsValue) -> Option<u32> {
    let Some(shape) = LoadShape::of(options, 1.0) else { return options.field("vus")?.count() };
    let at = shape.words.iter().position(|word| word == "-c")?;
    shape.words.get(at + 1)?.parse().ok()
}

/// `'30s'`, or a number of milliseconds.
pub(super) fn time(value: &JsValue) -> Option<Nanos> {
    let time = match value {
        JsValue::Text(text) => text.parse().ok(),
        JsValue::Number(number) => format!("{number}ms").parse().ok(),
        _ => None,
    };
    time.filter(|time| *time > Nanos::ZERO)
}

/// Targets of stages with their times.
#[derive(Default)]
pub(crate) struct Stages {
    targets: Vec<f64>,
    lengths: Vec<Nanos>,
    pub(crate) total: Nanos,
}

impl Stages {
    /// `None` if one of them is no literal.
    pub(super) fn of(value: &JsValue) -> Option<Stages> {
        let JsValue::List(stages) = value else { return None };
        let mut found = Stages::default();
        for stage in stages {
            let target = stage.field("target")?.number()?;
            let length = match stage.field("duration")? {
                // A stage of no length changes the target at once.
                JsValue::Text(text) => text.parse().ok()?,
                number => time(number)?,
            };
            found.push(target, length);
        }
        (found.total > Nanos::ZERO).then_some(found)
    }

    /// One more, which ends with this target.
    pub(crate) fn push(&mut self, target: f64, length: Nanos) {
        self.targets.push(target);
        self.lengths.push(length);
        self.total = Nanos(self.total.0.saturating_add(length.0));
    }

    /// The most virtual users, of which there are `first` at the start.
    pub(crate) fn most(&self, first: u32) -> u32 {
        self.targets.iter().copied().fold(f64::from(first), f64::max) as u32
    }

    /// In parentheses, how many times as many the most are as there are on average; empty if that
    /// is hardly more.
    pub(crate) fn more_than_on_average(&self, first: u32) -> String {
        let starts = std::iter::once(f64::from(first)).chain(self.targets.iter().copied());
        let user_seconds = starts.zip(&self.targets).zip(&self.lengths);
        let user_seconds: f64 = user_seconds
            .map(|((start, end), length)| f64::midpoint(start, *end) * length.as_secs_f64())
            .sum();
        let times = f64::from(self.most(first)) * self.total.as_secs_f64() / user_seconds;
        if times.is_finite() && times >= MUCH_MORE {
            format!(" ({times:.1} times as many as k6 has on average)")
        } else {
            String::new()
        }
    }
}

/// A value, or the word that stands for it.
fn or_word(value: Option<impl ToString>, word: &str) -> String {
    value.map_or_else(|| word.to_owned(), |value| value.to_string())
}

impl LoadShape {
    /// What options say with scenarios or stages; `None` if they have neither.
    pub(super) fn of(options: &JsValue, each: f64) -> Option<LoadShape> {
        if let Some(scenarios) = options.field("scenarios") {
            return Some(LoadShape::of_scenarios(scenarios, each));
        }
        let stages = options.field("stages")?;
        let least = options.field("vus").and_then(JsValue::count_or_none);
        Some(LoadShape::of_stages(stages, least, "stages"))
    }

    fn of_scenarios(scenarios: &JsValue, each: f64) -> LoadShape {
        if let [(_, scenario)] = scenarios.fields() {
            return LoadShape::of_scenario(scenario, each);
        }
        // Each of several is a load of its own.
        let said = vec!["its scenarios are no plain literals".to_owned()];
        LoadShape {
            words: with_users(None, None),
            later: Vec::new(),
            said,
            is_open: false,
            iterations: None,
            drops: None,
        }
    }

    pub(super) fn of_scenario(scenario: &JsValue, each: f64) -> LoadShape {
        let executor = executor(scenario);
        // k6's default, where nothing is written, or nothing where something unknown is.
        let count = |name: &str, default: u32| match scenario.field(name) {
            None => Some(default),
            Some(value) => value.count(),
        };
        let starts_with = match scenario.field("startVUs") {
            None => Some(1),
            Some(value) => value.count_or_none(),
        };
        let length = scenario.field("duration").and_then(time);
        let most = scenario.field("maxVUs").or(scenario.field("preAllocatedVUs"));
        let most = most.and_then(JsValue::count);
        let unit = match scenario.field("timeUnit") {
            None => Some(Nanos::from_secs(1)),
            Some(unit) => time(unit),
        };
        let per_second =
            |number: f64| Some(number * each / unit?.as_secs_f64()).filter(|rate| *rate > 0.0);
        let mut later = Vec::new();
        let mut lowest = None;
        let mut iterations = None;
        let words = match executor {
            "constant-arrival-rate" => {
                let rate = scenario.field("rate").and_then(JsValue::number).and_then(per_second);
                iterations = rate.map(|rate| rate / each);
                at_rate(rate, length, most)
            }
            "ramping-arrival-rate" => {
                let from = match scenario.field("startRate") {
                    None => Some(0.0),
                    Some(rate) => rate.number(),
                };
                let stages = scenario.field("stages").and_then(Stages::of);
                let targets = stages.iter().flat_map(|stages| stages.targets.iter().copied());
                let highest = targets.chain(from).fold(0.0, f64::max);
                iterations = per_second(highest).map(|rate| rate / each);
                let ramp = Ramp::of(from, stages.as_ref(), per_second, most);
                later = ramp.later;
                lowest = ramp.lowest.map(|lowest| {
                    let lowest = in_five_digits(lowest);
                    format!("k6's rate begins or ends at 0 where --ramp has {lowest}/s")
                });
                ramp.words
            }
            "constant-vus" | "externally-controlled" => with_users(count("vus", 1), length),
            "shared-iterations" | "per-vu-iterations" => {
                let users = count("vus", 1);
                let each = count("iterations", 1);
                let all = if executor == "shared-iterations" {
                    each
                } else {
                    users.zip(each).map(|(users, each)| users.saturating_mul(each))
                };
                match all {
                    Some(all) => {
                        let users = or_word(users, VUS);
                        let words = ["-c".to_owned(), users, "-n".to_owned(), all.to_string()];
                        let most = scenario.field("maxDuration").map(|most| lasting(time(most)));
                        words.into_iter().chain(most.into_iter().flatten()).collect()
                    }
                    None => with_users(users, None),
                }
            }
            "ramping-vus" => {
                let stages = scenario.field("stages").unwrap_or(&JsValue::Computed);
                return LoadShape::of_stages(stages, starts_with, "ramping-vus");
            }
            "" => {
                let said = "the executor of its scenario is no plain literal".to_owned();
                return LoadShape {
                    words: with_users(None, None),
                    later: Vec::new(),
                    said: vec![said],
                    is_open: false,
                    iterations: None,
                    drops: None,
                };
            }
            _ => with_users(None, None),
        };
        let is_open = executor.ends_with("-arrival-rate");
        let drops = is_open.then(|| format!("its {executor} is an open loop: {DROPS}"));
        let is_controlled = executor == "externally-controlled";
        let controlled = is_controlled.then(|| {
            "k6's VUs can be changed while it runs (externally-controlled); -c stays".to_owned()
        });
        let said = lowest.into_iter().chain(of_each_user(scenario)).chain(said_of_end(scenario));
        let said = said.chain(controlled);
        let said = said.collect();
        LoadShape {
            words,
            later,
            said,
            is_open,
            iterations: iterations.zip(most).map(|(per_s, users)| IterationRate { per_s, users }),
            drops,
        }
    }

    /// Stages of virtual users, of which there are `least` at the start.
    fn of_stages(stages: &JsValue, least: Option<u32>, name: &str) -> LoadShape {
        let Some(stages) = Stages::of(stages) else {
            let said = format!("its {name} change the number of connections, ours stays");
            return LoadShape {
                words: with_users(None, None),
                later: Vec::new(),
                said: vec![said],
                is_open: false,
                iterations: None,
                drops: None,
            };
        };
        let first = least.unwrap_or(1);
        let more = stages.more_than_on_average(first);
        LoadShape {
            words: with_users(Some(stages.most(first)), Some(stages.total)),
            later: Vec::new(),
            said: vec![format!(
                "its {name} change the number of connections, ours stays: -c is the most of them, --for as long as all{more}"
            )],
            is_open: false,
            iterations: None,
            drops: None,
        }
    }
}

/// That a scenario counts the iterations of each of several virtual users, for a person.
fn of_each_user(scenario: &JsValue) -> Option<String> {
    let count = |name: &str| scenario.field(name)?.count();
    let users = count("vus").filter(|users| *users > 1)?;
    let each = count("iterations").unwrap_or(1);
    (executor(scenario) == "per-vu-iterations").then(|| {
        format!("-n is for the iterations of all VUs together, {each} of each of its {users} VUs")
    })
}

/// What a scenario says of its end, for a person.
fn said_of_end(scenario: &JsValue) -> Vec<String> {
    let is_counted = ["shared-iterations", "per-vu-iterations"].contains(&executor(scenario));
    let bound = scenario.field("maxDuration").filter(|_| is_counted).map(|most| {
        let most = or_word(time(most), DURATION);
        format!("--for {most} is its maxDuration: it ends before -n if that takes longer")
    });
    let graceful = scenario.field("gracefulStop").map(|length| {
        let length = length.text().map_or_else(String::new, |text| format!(" of {text}"));
        format!(
            "its gracefulStop{length} is left out: at the end ours waits for responses up to --timeout"
        )
    });
    bound.into_iter().chain(graceful).collect()
}

/// From so many times as many connections on the load is called another one.
const MUCH_MORE: f64 = 1.2;

fn executor(scenario: &JsValue) -> &str {
    scenario.field("executor").and_then(JsValue::text).unwrap_or_default()
}

/// An open loop; `most` virtual users may wait for responses at a time.
fn at_rate(per_second: Option<f64>, length: Option<Nanos>, most: Option<u32>) -> Vec<String> {
    let rate = per_second.map(|rate| format!("{}/s", in_five_digits(rate)));
    let words = ["--rate".to_owned(), or_word(rate, RATE)];
    [&words[..], &lasting(length), &of_most(most)].concat()
}

/// A rate that changes.
struct Ramp {
    /// Our words for its first stage that sends something. If its rates are not plain, somebody has
    /// to choose them.
    words: Vec<String>,
    later: Vec<LaterStage>,
    /// What stands in the place of a rate of 0 per second at an end of a ramp.
    lowest: Option<f64>,
}

impl Ramp {
    fn of(
        from: Option<f64>,
        stages: Option<&Stages>,
        per_second: impl Fn(f64) -> Option<f64>,
        most: Option<u32>,
    ) -> Ramp {
        let parts =
            stages.zip(from).and_then(|(stages, from)| parts_of_stages(from, stages, per_second));
        let sent = |part: &RatePart| part.lowest.is_none_or(|lowest| lowest > 0.0);
        let Some(parts) = parts.filter(|parts| parts.iter().any(sent)) else {
            let words = ["--steps".to_owned(), format!("{RATE},{RATE}")];
            let total = stages.map(|stages| stages.total);
            let words = [&words[..], &lasting(total), &of_most(most)].concat();
            return Ramp { words, later: Vec::new(), lowest: None };
        };
        let first = parts.iter().position(sent).unwrap_or_default();
        let words = [&parts[first].words[..], &of_most(most)].concat();
        let mut later = Vec::new();
        let mut idle = Nanos::ZERO;
        for part in &parts[first + 1..] {
            if sent(part) {
                let idle = std::mem::replace(&mut idle, Nanos::ZERO);
                later.push(LaterStage { words: part.words.clone(), idle });
            } else {
                idle += part.length;
            }
        }
        let lowest = parts.iter().find_map(|part| part.lowest.filter(|rate| *rate > 0.0));
        Ramp { words, later, lowest }
    }
}

/// A stage of a rate.
struct RatePart {
    /// Our words for it.
    words: Vec<String>,
    length: Nanos,
    /// What stands in the place of a rate of 0 per second, at which nothing is sent: a low rate at
    /// one end of a ramp, 0 where both ends are 0.
    lowest: Option<f64>,
}

/// Our words for each stage: a ramp, or a rate where the target is the one before. A stage of no
/// length changes the rate at once.
fn parts_of_stages(
    from: f64,
    stages: &Stages,
    per_second: impl Fn(f64) -> Option<f64>,
) -> Option<Vec<RatePart>> {
    let rate_of = |number: f64| if number == 0.0 { Some(0.0) } else { per_second(number) };
    let mut rate = rate_of(from)?;
    let mut parts = Vec::new();
    for (target, length) in stages.targets.iter().zip(&stages.lengths) {
        let target = rate_of(*target)?;
        let begin = std::mem::replace(&mut rate, target);
        if *length == Nanos::ZERO {
            continue;
        }
        let highest = begin.max(target);
        let is_ramp = in_five_digits(begin) != in_five_digits(target);
        let lowest = if highest > 1.0 { 1.0 } else { highest / 10.0 };
        let lowest = (begin.min(target) == 0.0).then_some(lowest);
        let ends = [begin, target].map(|end| in_five_digits(end.max(lowest.unwrap_or_default())));
        let words = match &ends {
            [begin, end] if is_ramp => ["--ramp".to_owned(), format!("{begin}/s..{end}/s")],
            [_, end] => ["--rate".to_owned(), format!("{end}/s")],
        };
        let words = [words, lasting(Some(*length))].concat();
        parts.push(RatePart { words, length: *length, lowest });
    }
    Some(parts)
}

fn with_users(users: Option<u32>, length: Option<Nanos>) -> Vec<String> {
    [&["-c".to_owned(), or_word(users, VUS)][..], &lasting(length)].concat()
}

fn lasting(length: Option<Nanos>) -> [String; 2] {
    ["--for".to_owned(), or_word(length, DURATION)]
}

fn of_most(most: Option<u32>) -> Vec<String> {
    most.map_or_else(Vec::new, |most| vec!["-c".to_owned(), most.to_string()])
}
