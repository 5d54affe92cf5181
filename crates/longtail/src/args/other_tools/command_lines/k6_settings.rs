//! What k6 was asked for: the options of its script, and what its command line says instead.

use std::path::Path;

use judge::words::listed;
use model::Nanos;
use model::plan::quoted;
use model::secret::masked_word;

use super::typed_flags::TypedWord;
use super::{script_of, value_behind};
use crate::args::other_tools::flags::{
    NO_SCRIPT, OtherTool, PATH, PAUSE, RATE, in_five_digits, is_script,
};
use crate::args::other_tools::js_literals::without_comments;
use crate::args::other_tools::k6_script::{
    IterationRate, K6Script, LaterStage, LineOfScript, Pauses, ScenarioStart, ScenarioUse,
    files_opened, is_of_file, with_files_beside,
};
use crate::args::other_tools::script_file::text_of;

/// Environment variables by which k6 is told the same as by flags, and those flags.
const K6_SETTINGS: [(&str, &str); 11] = [
    ("K6_VUS", "vus"),
    ("K6_DURATION", "duration"),
    ("K6_ITERATIONS", "iterations"),
    ("K6_RPS", "rps"),
    ("K6_STAGES", "stage"),
    ("K6_USER_AGENT", "user-agent"),
    ("K6_SUMMARY_EXPORT", "summary-export"),
    ("K6_OUT", "out"),
    ("K6_INSECURE_SKIP_TLS_VERIFY", "insecure-skip-tls-verify"),
    ("K6_NO_CONNECTION_REUSE", "no-connection-reuse"),
    ("K6_NO_VU_CONNECTION_REUSE", "no-vu-connection-reuse"),
];

/// Flags of k6 that say how long or how often: one of them takes the place of all that a script or the
/// environment says of that.
const LENGTHS: [&str; 3] = ["duration", "iterations", "stage"];

/// What the environment and a script say to a tool.
#[derive(Default)]
pub(super) struct Settings {
    /// Its flags that say the same.
    pub(super) words: Vec<String>,
    /// Flags of ours for what no flag of it says.
    pub(super) ours: Vec<String>,
    pub(super) url: Option<String>,
    /// What to put in the place of words in `ours`.
    pub(super) to_fill: Vec<String>,
    /// What cannot be done, and why not.
    pub(super) left_out: Vec<String>,
    /// What ours does otherwise.
    pub(super) differs: Vec<String>,
    /// Where values come from.
    pub(super) harmless: Vec<String>,
    /// Whether its script has it follow no redirect.
    pub(super) follows_nothing: bool,
    /// How many requests an iteration of its script sends on average, if that is known and not one.
    pub(super) requests_each: Option<f64>,
    /// How many of them each virtual user sends at the same time, if that is always as many.
    pub(super) at_once: Option<u32>,
    /// Whether k6's ceiling of a rate is no rate of ours.
    pub(super) leaves_out_rps: bool,
    /// Whether its script alone says how many virtual users there are, whatever the line says.
    pub(super) has_own_users: bool,
    /// Why that is not known: how they are sent.
    pub(super) is_uncounted: Option<&'static str>,
    /// What its script has, and no flag here says; `None` if the script is not read.
    pub(super) not_taken: Option<Vec<String>>,
    /// The stages of its rate behind the one that is in `ours`.
    pub(super) later: Vec<LaterStage>,
    /// The scenarios of its script, if there are several and its line has no length.
    pub(super) scenarios: Vec<ScenarioStart>,
}

/// What variables of the environment and the options of its script say to k6, where no flag of its
/// line says it. `scenario`: the one of several that is meant.
pub(super) fn k6_settings(
    tool: &'static OtherTool,
    line: &[String],
    scenario: Option<&str>,
) -> Settings {
    let mut settings = Settings::default();
    for (variable, flag) in K6_SETTINGS {
        let Some(value) = std::env::var(variable).ok().filter(|value| !value.is_empty()) else {
            continue;
        };
        let Some(known) = tool.flags.iter().find(|known| known.is_called(flag)) else { continue };
        let is_replaced =
            LENGTHS.contains(&flag) && LENGTHS.into_iter().any(|it| tool.has_typed(it, line));
        if is_replaced || tool.has_typed(flag, line) || !known.takes_value() && value != "true" {
            continue;
        }
        settings.words.push(format!("--{flag}"));
        settings.harmless.push(format!("{variable}={} is in the environment", masked_word(&value)));
        if known.takes_value() {
            settings.words.push(value);
        }
    }
    settings.take_script(tool, line, scenario);
    settings
}

impl Settings {
    /// What k6's script says. How long it runs counts only if nothing else says it: k6 then takes no
    /// notice of the script's length, count, stages or scenarios.
    fn take_script(&mut self, tool: &'static OtherTool, line: &[String], scenario: Option<&str>) {
        let text = text_of_script(tool, line);
        let environment = given_environment(tool, line);
        if let Some(text) = &text {
            let names: Vec<&str> = environment.iter().map(|(name, _)| name.as_str()).collect();
            self.note_unread(text, &names);
        }
        let given = |name: &str| {
            let typed = environment.iter().rfind(|(typed, _)| typed == name);
            typed.map(|(_, value)| value.clone()).or_else(|| std::env::var(name).ok())
        };
        let said = [&self.words[..], line].concat();
        let is_said = |flag: &str| tool.has_typed(flag, &said);
        let has_length = LENGTHS.into_iter().any(is_said);
        let users = value_typed(tool, &said, "vus").and_then(|users| users.parse().ok());
        let of_script = LineOfScript { given: &given, scenario, has_length, users };
        let script = text.and_then(|text| K6Script::in_text(&text, of_script));
        let Some(mut script) = script else {
            if !environment.is_empty() {
                self.left_out.push(format!("k6's -e cannot be done here: {NO_SCRIPT}"));
            }
            return;
        };
        if let [first, ..] = &script.missing[..] {
            let all: Vec<String> =
                script.missing.iter().map(|name| format!("__ENV.{name}")).collect();
            let are = if all.len() > 1 { "are" } else { "is" };
            self.left_out
                .push(format!("{} {are} not given: k6 run -e {first}=VALUE", listed(&all)));
        }
        let runs_once = script.runs_once && script.shape.is_none() && !has_length;
        self.note_own_users(script.scenario_use, runs_once, is_said("vus"));
        for (flag, value) in script.flags {
            let is_length = ["duration", "iterations"].contains(&flag);
            // k6 ignores `vus` in a script that it runs once.
            if is_said(flag) || is_length && has_length || flag == "vus" && runs_once {
                continue;
            }
            self.words.push(format!("--{flag}"));
            if !value.is_empty() {
                self.words.push(value);
            }
        }
        if runs_once {
            self.words.extend(["--iterations", "1"].map(str::to_owned));
            self.harmless.push("k6 runs a script once unless it is told otherwise".to_owned());
        }
        if runs_once {
            self.ours.extend(["-c", "1"].map(str::to_owned));
        } else if script.has_one_user && !is_said("vus") {
            self.words.extend(["--vus", "1"].map(str::to_owned));
        }
        let mut is_open = false;
        let mut iterations = None;
        let drops = script.shape.as_mut().and_then(|shape| shape.drops.take());
        self.differs.extend(script.said);
        if let Some(shape) = script.shape {
            is_open = shape.is_open;
            iterations = shape.iterations;
            self.differs.extend(shape.said);
            self.ours.extend(shape.words);
            self.later = shape.later;
            self.has_own_users = true;
        }
        let rate = RateOfScript {
            each: script.requests_each.unwrap_or(1.0),
            is_open,
            iterations,
            is_uncounted: script.is_uncounted.is_some(),
        };
        self.take_pauses(tool, line, script.pauses, &rate);
        self.differs.extend(drops);
        self.note_ceiling_of_all(tool, line, scenario.is_some() || script.scenarios.len() > 1);
        self.scenarios = script.scenarios;
        if !is_said("no-thresholds") {
            if script.has_shared_thresholds {
                let said =
                    "k6's thresholds are of all its scenarios together; --expect is of this load";
                self.differs.push(said.to_owned());
            }
            self.ours.extend(script.thresholds);
        }
        self.note_check(&script.request);
        file_from_folder(tool, line, &mut script.request);
        self.ours.extend(script.request);
        self.url = script.url;
        self.follows_nothing = script.follows_nothing;
        self.requests_each = script.requests_each;
        self.at_once = script.at_once;
        self.is_uncounted = script.is_uncounted;
        script.not_taken.extend(files_not_taken(tool, line, &script.computed));
        self.not_taken = Some(script.not_taken);
        self.to_fill.extend(script.paths_to_write.iter().map(|request| path_to_put(request)));
        self.to_fill.extend(script.to_fill);
    }
}

impl Settings {
    /// Says what a check among these words does otherwise.
    fn note_check(&mut self, request: &[String]) {
        if request.iter().any(|word| word == "--check") {
            let said =
                "a failed --check is exit code 1; in k6 only a threshold on checks fails a run";
            self.differs.push(said.to_owned());
        }
    }

    /// Names the variables of `-e` that a script does not read, unless a file that it imports may.
    fn note_unread(&mut self, script: &str, names: &[&str]) {
        let imports_own = ["from './", "from \"./", "from '../", "from \"../", "open("];
        if imports_own.iter().any(|import| script.contains(import)) {
            return;
        }
        let mut unread: Vec<String> = Vec::new();
        for name in names {
            if !script.contains(name) && !unread.iter().any(|known| known == name) {
                unread.push((*name).to_owned());
            }
        }
        if !unread.is_empty() {
            self.differs.push(format!("its script does not read {} (-e)", listed(&unread)));
        }
    }
}

/// The text of the script that a line names, with what it takes from files beside it.
fn text_of_script(tool: &'static OtherTool, line: &[String]) -> Option<String> {
    let script = script_of(tool, line)?;
    let script = Path::new(&script);
    let folder = script.parent().unwrap_or(Path::new(""));
    Some(with_files_beside(&text_of(script)?, folder))
}

/// The files of which a script makes what is computed.
fn files_not_taken(tool: &'static OtherTool, line: &[String], computed: &[String]) -> Vec<String> {
    let text = script_of(tool, line).and_then(|script| text_of(Path::new(&script)));
    let text = text.map(|text| without_comments(&text)).unwrap_or_default();
    let is_used = |file: &&str| computed.iter().any(|written| is_of_file(&text, written, file));
    let files = files_opened(&text).into_iter().filter(is_used);
    files.map(|file| format!("what it takes from {}", quoted(file))).collect()
}

/// What to put in the place of the path of a request, which is as it is written in the script.
fn path_to_put(request: &str) -> String {
    format!("for {PATH} put the path of {request} (numbers that vary as {{1..10}})")
}

/// How often iterations of a script begin.
struct RateOfScript {
    /// How many requests an iteration sends on average.
    each: f64,
    /// Whether they come at a rate, however slow the server is.
    is_open: bool,
    /// That rate, if it is plain.
    iterations: Option<IterationRate>,
    /// Whether it is not known how many requests an iteration sends.
    is_uncounted: bool,
}

impl Settings {
    /// The pauses of an iteration, and k6's `rps`, which is a ceiling: a rate of ours only where
    /// its virtual users reach it.
    fn take_pauses(
        &mut self,
        tool: &'static OtherTool,
        line: &[String],
        pauses: Pauses,
        rate: &RateOfScript,
    ) {
        let &RateOfScript { each, is_open, iterations, is_uncounted } = rate;
        let all = [&self.words[..], line].concat();
        let ceiling = value_typed(tool, &all, "rps").and_then(|rps| rps.parse::<f64>().ok());
        let ceiling = ceiling.filter(|rps| *rps > 0.0);
        let users = value_typed(tool, &all, "vus");
        let users = users.or_else(|| value_behind(&self.ours, "-c"));
        let most = match &pauses {
            Pauses::Known { in_all, .. } => users
                .and_then(|users| users.parse::<f64>().ok())
                .map(|users| users * each / in_all.as_secs_f64()),
            Pauses::None | Pauses::Unknown => None,
        };
        match (pauses, ceiling) {
            (pauses, Some(ceiling)) if is_open => {
                self.limit_rate(
                    ceiling,
                    iterations.filter(|_| !is_uncounted).map(|rate| rate.per_s * each),
                );
                self.note_pauses_at_rate(&pauses, rate);
            }
            (Pauses::None, _) => {}
            (pauses, _) if is_open => self.note_pauses_at_rate(&pauses, rate),
            (Pauses::Known { in_all, .. }, Some(ceiling))
                if most.is_some_and(|it| it > ceiling) =>
            {
                let length = most.map(|most| most * in_all.as_secs_f64() / ceiling);
                let length = Nanos::from_secs_f64(length.unwrap_or_default());
                self.differs.push(format!(
                    "its sleep() is left out at a rate; k6 makes as many requests while an iteration takes less than {length}, with its sleep() of {in_all}"
                ));
            }
            (_, Some(ceiling)) if most.is_none() => {
                self.leaves_out_rps = true;
                self.ours.extend(["--rate", RATE].map(str::to_owned));
                self.differs.push(format!(
                    "its rps, {} requests a second, is the most that k6 makes; how many it makes with its sleep() is not known, and no more than that belong in the place of RATE",
                    in_five_digits(ceiling)
                ));
            }
            (Pauses::Known { behind_each, in_all, said }, Some(ceiling)) => {
                self.leaves_out_rps = true;
                self.ours.extend(["--think".to_owned(), behind_each.to_string()]);
                self.differs.extend(said);
                self.differs.push(format!(
                    "its rps, {} requests a second, is left out: with {in_all} of sleep() in an iteration k6 makes at most {} a second",
                    in_five_digits(ceiling),
                    in_five_digits(most.unwrap_or_default())
                ));
            }
            (Pauses::Known { behind_each, said, .. }, None) => {
                self.ours.extend(["--think".to_owned(), behind_each.to_string()]);
                self.differs.extend(said);
            }
            (Pauses::Unknown, _) => {
                self.ours.extend(["--think", PAUSE].map(str::to_owned));
                self.to_fill.push(format!(
                    "for {PAUSE} put the mean of its sleep() behind each request, such as 1500ms"
                ));
            }
        }
    }

    /// How many virtual users there are if the line's number of them, `is_said`, does not count: k6
    /// takes notice of it only beside a length, a number of iterations or stages.
    fn note_own_users(&mut self, scenario_use: ScenarioUse, runs_once: bool, is_said: bool) {
        self.has_own_users = runs_once || scenario_use == ScenarioUse::Run;
        if is_said && self.has_own_users {
            let why = if runs_once {
                "without a duration, a number of iterations or stages"
            } else {
                "beside the scenarios of a script"
            };
            self.harmless.push(format!("k6 ignores -u (--vus) {why}"));
        }
        if scenario_use == ScenarioUse::ReplacedByNothing {
            self.left_out.push(
                "k6 itself refuses this line: a duration, a number of iterations or stages in it takes the place of the script's scenarios, and the script has no default function"
                    .to_owned(),
            );
        }
    }

    /// k6's `rps` limits all virtual users of all scenarios together.
    fn note_ceiling_of_all(&mut self, tool: &'static OtherTool, line: &[String], is_one: bool) {
        let all = [&self.words[..], line].concat();
        if let Some(rps) = value_typed(tool, &all, "rps").filter(|rps| is_one && *rps != "0") {
            self.differs.push(format!(
                "its rps of {rps} is the most requests a second of all scenarios together: make --rate lower by what the others send"
            ));
        }
    }

    /// k6's `rps` beside an arrival rate of `rate` requests a second: the lower of both counts.
    fn limit_rate(&mut self, ceiling: f64, rate: Option<f64>) {
        self.leaves_out_rps = true;
        let shown = in_five_digits(ceiling);
        match rate {
            Some(rate) if rate <= ceiling => {
                self.harmless.push(format!("its rps of {shown} is no less than its rate"));
            }
            _ => {
                let reached = match rate {
                    // A word will stand for it.
                    None => format!(": no more than {shown}/s belongs in the place of {RATE}"),
                    Some(_) => self.limit_to_reached(ceiling),
                };
                self.left_out.push(format!(
                    "its rps is left out: k6 makes at most {shown} requests a second, whatever its rate{reached}"
                ));
            }
        }
    }

    /// Pauses at a rate delay no request, but hold a virtual user: where there are too few of them, k6
    /// does not reach its rate.
    fn note_pauses_at_rate(&mut self, pauses: &Pauses, rate: &RateOfScript) {
        if let (Pauses::Known { in_all, .. }, Some(IterationRate { per_s, users })) =
            (pauses, rate.iterations)
        {
            let most = f64::from(users) / in_all.as_secs_f64();
            if most < per_s {
                let reached = self.limit_to_reached(most * rate.each);
                self.differs.push(format!(
                    "its sleep() holds each of {users} VUs for {in_all}, so that k6 begins at most {} of its {} iterations a second and drops the others{reached}",
                    in_five_digits(most),
                    in_five_digits(per_s)
                ));
                return;
            }
        }
        if *pauses != Pauses::None {
            self.harmless.push(
                "its sleep() only holds a VU: at a rate it delays no request, and is left out"
                    .to_owned(),
            );
        }
    }

    /// Has our rate be no more than the requests a second that k6 reaches, and says so.
    fn limit_to_reached(&mut self, most: f64) -> String {
        let reached = format!("{}/s", in_five_digits(most));
        let at = |flag: &str| self.ours.iter().position(|word| word == flag);
        if let Some(at) = at("--rate").filter(|at| self.ours[at + 1] != RATE) {
            let rate = self.ours[at + 1].trim_end_matches("/s").parse::<f64>();
            if rate.is_ok_and(|rate| rate <= most) {
                return String::new();
            }
            self.ours[at + 1].clone_from(&reached);
            format!(": --rate {reached} is that many requests")
        } else {
            if let Some(at) = at("--ramp") {
                self.ours[at + 1] = format!("{RATE}..{RATE}");
            }
            format!(": no rate of more than {reached} belongs in the place of {RATE}")
        }
    }
}

/// Has the file of a body be found from here: its path in a script begins at the script's folder.
fn file_from_folder(tool: &'static OtherTool, line: &[String], request: &mut [String]) {
    let script = script_of(tool, line);
    let folder = script.as_deref().map(Path::new).and_then(Path::parent);
    if let (Some(folder), Some(at)) = (folder, request.iter().position(|word| word == "-D"))
        && let Some(file) = request.get_mut(at + 1)
    {
        *file = folder.join(&*file).display().to_string();
    }
}

/// The variables that k6's `-e NAME=VALUE` gives to a script.
fn given_environment(tool: &'static OtherTool, line: &[String]) -> Vec<(String, String)> {
    let mut given = Vec::new();
    for (at, word) in line.iter().enumerate() {
        let next = line.get(at + 1).map(String::as_str);
        let Ok(TypedWord::Flags { flags, .. }) = tool.read(word, next) else { continue };
        for typed in flags.iter().filter(|typed| typed.flag.is_called("env")) {
            if let Some((name, value)) = typed.value.split_once('=') {
                given.push((name.to_owned(), value.to_owned()));
            }
        }
    }
    given
}

/// The value of a tool's flag; the last one counts.
pub(super) fn value_typed(tool: &'static OtherTool, line: &[String], name: &str) -> Option<String> {
    let mut found = None;
    for (at, word) in line.iter().enumerate() {
        let next = line.get(at + 1).map(String::as_str);
        let Ok(TypedWord::Flags { flags, .. }) = tool.read(word, next) else { continue };
        let typed = flags.into_iter().rfind(|typed| typed.flag.is_called(name));
        found = typed.map(|typed| typed.value).or(found);
    }
    found
}

/// Whether a value is a time of 0, which tools take as if it was not given.
pub(super) fn is_no_time(value: &str) -> bool {
    value.parse::<Nanos>().is_ok_and(|time| time == Nanos::ZERO)
}

/// A tool's line without a flag of it.
pub(super) fn without_flag(tool: &'static OtherTool, line: &[String], name: &str) -> Vec<String> {
    let mut left = Vec::new();
    let mut at = 0;
    while let Some(word) = line.get(at) {
        let next = line.get(at + 1).map(String::as_str);
        let (is_it, count) = match tool.read(word, next) {
            Ok(TypedWord::Flags { flags, takes_next }) => {
                let is_it = flags.iter().any(|typed| typed.flag.is_called(name));
                (is_it, 1 + usize::from(takes_next))
            }
            Ok(TypedWord::Operand) | Err(_) => (false, 1),
        };
        let end = (at + count).min(line.len());
        if !is_it {
            left.extend_from_slice(&line[at..end]);
        }
        at = end;
    }
    left
}

/// Whether these words behind `run` are k6's: a script, or flags of it.
pub(crate) fn are_k6s(words: &[String]) -> bool {
    let flag = |at: usize| {
        let next = words.get(at + 1).map(String::as_str);
        let read = OtherTool::of("k6").map(|tool| tool.read(&words[at], next));
        matches!(read, Some(Ok(TypedWord::Flags { .. }))) && words[at].starts_with("--")
    };
    words.iter().any(|word| is_script(word)) || (0..words.len()).any(flag)
}
