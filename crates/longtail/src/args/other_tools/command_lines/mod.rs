//! Command lines of other load tools, answered with ours, whole, to paste.
//!
//! No flag is lost on the way: neither one of theirs nor one of ours that stands beside them. What
//! has no meaning here is named, because a flag that is silently ignored would make two results
//! look comparable that are not.

mod given_twice;
mod k6_settings;
mod notes;
mod readings;
mod translation;
mod typed_flags;
mod vegetas_report;

pub(crate) use k6_settings::are_k6s;
pub(crate) use readings::{
    OthersReading, other_readings, reading_of_owner, readings, say_readings,
};
pub(crate) use typed_flags::TypedWord;
pub(crate) use vegetas_report::{are_vegetas_report, of_vegetas_result};

use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use judge::words::listed;
use k6_settings::{Settings, k6_settings, value_typed, without_flag};
use model::Nanos;
use model::plan::quoted;
use model::secret::{SECRET, masked_body, masked_word};
use requests::{FileDefaults, RequestError, RequestsFormat, TargetUrl};
use translation::{BODY_FLAGS, OTHER_LAYOUTS, Translation, accepting, says_encoding, translate};
use typed_flags::UnknownFlags;

use crate::args::other_tools::flags::{
    BODY, DURATION, KeepAlive, METHOD, OtherTool, OthersDefault, OwnType, PATH, PAUSE, RATE, TOOLS,
    URL, UrlPlace, VALUE, VUS, WEIGHT, is_script,
};
use crate::args::other_tools::k6_script::{LaterStage, ScenarioStart};
use crate::args::other_tools::script_file::text_piped;
use crate::args::other_tools::synonyms;
use crate::exit::{Mistake, wrong};

/// What to do with [`URL`].
const PUT_YOURS: &str = "put your URL in the place of URL";

/// A line of ours to paste.
#[derive(Debug)]
pub(crate) struct PastedLine {
    /// What it is for, to be said before it; nothing where it only follows the line before.
    pub(crate) purpose: String,
    /// The command whose output is piped into it, if there is one.
    pub(crate) piped: Option<String>,
    /// The words of the line, without the program.
    pub(crate) words: Vec<String>,
    /// What it does otherwise, the most consequential first.
    pub(crate) notes: Vec<String>,
}

/// What to type for the load of another tool's command line: `beside` are the words of ours that
/// stand beside `theirs`, `whole` is longtail.
///
/// There are several lines where k6's script has several scenarios.
///
/// # Errors
/// Where it has no counterpart.
pub(crate) fn answer(
    whole: &Command,
    tool: &'static OtherTool,
    beside: &[String],
    theirs: &[String],
) -> Result<Vec<PastedLine>, Mistake> {
    if let Some(asked) = asked_of(tool, theirs) {
        return Err(wrong(asked));
    }
    let theirs = &without_subcommand(tool, theirs)?;
    let purpose = format!("for {}'s load", tool.name);
    if tool.name != "k6" {
        let settings = Settings::default();
        return lines_for(whole, tool, &purpose, beside, theirs, settings);
    }
    let settings = k6_settings(tool, theirs, None);
    let scenarios = settings.scenarios.clone();
    if scenarios.is_empty() {
        return lines_for(whole, tool, &purpose, beside, theirs, settings);
    }
    let mut lines = Vec::new();
    for (at, ScenarioStart { name, when }) in scenarios.iter().take(MOST_SCENARIOS).enumerate() {
        let settings = k6_settings(tool, theirs, Some(name));
        let name = quoted(name);
        let purpose = match at {
            0 => format!(
                "k6's {} scenarios are as many loads, each in a shell of its own: for {name}, {when}",
                scenarios.len()
            ),
            _ => format!("for {name}, {when}"),
        };
        for mut line in lines_for(whole, tool, &purpose, beside, theirs, settings)? {
            // What was said of a line before is so of this one.
            line.notes.retain(|note| !lines.iter().any(|it: &PastedLine| it.notes.contains(note)));
            lines.push(line);
        }
    }
    let others: Vec<String> =
        scenarios.iter().skip(MOST_SCENARIOS).map(|it| quoted(&it.name)).collect();
    if let Some(last) = lines.last_mut().filter(|_| !others.is_empty()) {
        last.notes.push(format!("its other scenarios have no line here: {}", listed(&others)));
    }
    Ok(lines)
}

/// Scenarios of a script that have a line each.
const MOST_SCENARIOS: usize = 4;

/// One line, of which k6's environment and script say `settings`; or one for each stage of a rate.
fn lines_for(
    whole: &Command,
    tool: &'static OtherTool,
    purpose: &str,
    beside: &[String],
    theirs: &[String],
    settings: Settings,
) -> Result<Vec<PastedLine>, Mistake> {
    let load = load_of(whole);
    let script = script_of(tool, theirs);
    let theirs = &[&settings.words, theirs].concat();
    let ignored = [(settings.leaves_out_rps, "rps"), (settings.has_own_users, "vus")];
    let ignored = ignored.into_iter().filter(|(is_ignored, _)| *is_ignored);
    let theirs = &ignored.fold(theirs.clone(), |line, (_, flag)| without_flag(tool, &line, flag));
    let mut found = translate(tool, load, theirs, UnknownFlags::LeftOut).map_err(wrong)?;
    if let Some(script) = missing_script(tool, theirs) {
        return Err(wrong(format!("there is no file {}", quoted(&script))));
    }
    found.harmless.extend(settings.harmless);
    found.differs.extend(settings.differs);
    found.flags.extend(settings.ours);
    let has_ceiling = tool.name == "k6" && tool.has_typed("rps", theirs);
    let piped =
        settings.url.as_deref().and_then(|url| found.send_in_order(settings.requests_each, url));
    found.count_requests_of_iterations(settings.requests_each, has_ceiling);
    found.note_uncounted(settings.is_uncounted, has_ceiling);
    found.multiply_users(settings.at_once);
    found.to_fill.extend(settings.to_fill);
    found.left_out.extend(settings.left_out);
    if tool.name == "siege" {
        found.take_siege_post();
    }
    if tool.name == "curl" {
        found.join_bodies(tool, theirs);
    }
    if tool.name == "locust" {
        found.left_out.push(NO_PYTHON.to_owned());
    }
    if tool.name == "vegeta" && !tool.has_typed("output", theirs) {
        found.harmless.push("longtail prints the answer itself, without vegeta report".to_owned());
    }
    found.note_endless(tool, theirs);
    find_url(tool, beside, &mut found);
    if let Some(url) = settings.url
        && found.operands == [URL]
    {
        found.operands = if piped.is_some() { Vec::new() } else { vec![url] };
    }
    found.settle_counts(tool, beside);
    found.take_encodings(tool, beside, theirs);
    found.encode_spaces();
    let words = found.whole_line(whole, tool, beside);
    check_requests_file(whole, &words)?;
    found.note_missing_files(&words);
    found.note_too_few_requests(tool, &words);
    found.note_lateness(tool, theirs, &words);
    if !settings.follows_nothing {
        found.note_redirects(tool, theirs, settings.requests_each);
    }
    found.note_unasked(tool, beside, &words);
    // A URL in the place of the script leaves nothing to say of one.
    if let UrlPlace::Script(_) = tool.url
        && script.as_deref().is_none_or(|word| found.operands != [word])
    {
        found.harmless.push(of_script(script.as_deref()));
        match settings.not_taken {
            Some(what) if what.is_empty() => {}
            Some(what) => found.leave_out_of_script(&what),
            None => found.harmless.push(OF_SCRIPT.to_owned()),
        }
    }
    if words.windows(2).any(|pair| {
        ["-d", "--data-raw"].contains(&pair[0].as_str())
            && pair[1] != BODY
            && masked_body(&pair[1]) == SECRET
    }) {
        found.to_fill.push(
            "a body is shown only if it is JSON or a form, or XML without a secret".to_owned(),
        );
    }
    found.fill_unknown(&words);
    // Before a line that measures something else.
    let without = match &found.impossible[..] {
        [] => String::new(),
        flags => format!(" without {}", listed(flags)),
    };
    let later: Vec<PastedLine> =
        settings.later.iter().filter_map(|stage| line_of_stage(&words, stage)).collect();
    if !later.is_empty() && words.iter().any(|word| word == "--expect") {
        let said = "k6's thresholds are of all stages together; --expect is of each line";
        found.differs.push(said.to_owned());
    }
    let in_turn = match later.len() {
        0 => String::new(),
        others => format!(" in {} stages, one after the other", others + 1),
    };
    let first = PastedLine {
        purpose: format!("{purpose}{without}{in_turn}"),
        piped,
        words,
        notes: Vec::new(),
    };
    let mut lines: Vec<PastedLine> = std::iter::once(first).chain(later).collect();
    // Behind all of them, so that they can be pasted together.
    if let Some(last) = lines.last_mut() {
        last.notes = found.notes();
    }
    Ok(lines)
}

/// Our line of another stage, given that of the first; `None` if that has no rate. Where a word
/// stands for the first one's rate, one stands for this stage's, too.
fn line_of_stage(first: &[String], stage: &LaterStage) -> Option<PastedLine> {
    let rate = first.iter().position(|word| ["--rate", "--ramp"].contains(&word.as_str()))?;
    let length = first.iter().position(|word| word == "--for")?;
    let [flag, rates, _, lasts] = &stage.words[..] else { return None };
    let mut words = first.to_vec();
    words[rate].clone_from(flag);
    words[rate + 1] = match (stands_for(&first[rate + 1], RATE), flag.as_str()) {
        (false, _) => rates.clone(),
        (true, "--ramp") => format!("{RATE}..{RATE}"),
        (true, _) => RATE.to_owned(),
    };
    words[length + 1].clone_from(lasts);
    let purpose = match stage.idle {
        Nanos::ZERO => String::new(),
        idle => format!("then, when nothing was sent for {idle}"),
    };
    Some(PastedLine { purpose, piped: None, words, notes: Vec::new() })
}

impl Translation {
    /// Takes the only target that is piped into this line: `GET http://localhost:3000/`.
    fn take_only_target(&mut self) -> bool {
        let piped = text_piped().unwrap_or_default();
        let mut lines = piped.lines().map(str::trim).filter(|line| !line.is_empty());
        let (Some(target), None) = (lines.next(), lines.next()) else { return false };
        let Some((method, url)) = target.split_once(' ') else { return false };
        let is_target = method.bytes().all(|byte| byte.is_ascii_uppercase())
            && (url.starts_with("http://") || url.starts_with("https://"))
            && !url.contains(char::is_whitespace);
        if is_target {
            if method != "GET" {
                self.flags.extend(["-m", method].map(str::to_owned));
            }
            self.operands.push(url.to_owned());
        }
        is_target
    }

    /// Has our line ask for compressed responses where the tool does. `beside` are words of ours.
    fn take_encodings(&mut self, tool: &'static OtherTool, beside: &[String], theirs: &[String]) {
        let typed = [&self.flags[..], beside].concat();
        let is_silent = says_encoding(&typed) || tool.asks_for_whole_bodies(&typed);
        self.accepts = tool.asks_for(theirs).filter(|_| !is_silent);
    }

    /// All words of our line, with what the tool does by default; `beside` are words of ours.
    fn whole_line(&self, whole: &Command, tool: &OtherTool, beside: &[String]) -> Vec<String> {
        let mut words = vec!["load".to_owned()];
        words.extend_from_slice(beside);
        words.extend_from_slice(&self.flags);
        let closes = match tool.keep_alive {
            KeepAlive::Always => false,
            KeepAlive::With(_) => !self.keeps_connections,
            KeepAlive::Never => true,
        };
        if closes && !words.iter().any(|word| word == "-k") {
            words.push("-k".to_owned());
        }
        // If `load` does not take these words, whoever types them is told why.
        let filled = with_values(&[&words[..], &self.operands].concat());
        if let Some(load) = parsed_load(whole, filled.iter()) {
            words.extend(defaults(tool, &load));
        }
        words.extend(self.accepts.into_iter().flat_map(accepting));
        words.extend_from_slice(&self.operands);
        words
    }
}

/// What to say of `hey -h` and `wrk --version`, which ask for the help or the version of the tool.
fn asked_of(tool: &'static OtherTool, words: &[String]) -> Option<String> {
    const HELP: [&str; 5] = ["-h", "-help", "--help", "-?", "help"];
    const VERSION: [&str; 5] = ["-V", "-v", "-version", "--version", "version"];
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let next = words.get(at + 1).map(String::as_str);
        let is_command = at == 0 || word.starts_with('-');
        at += 1;
        match tool.read(word, next) {
            Ok(TypedWord::Flags { takes_next, .. }) => at += usize::from(takes_next),
            Ok(TypedWord::Operand) | Err(_) if !is_command => {}
            _ if HELP.contains(&word.as_str()) => {
                let (place, example) = match tool.url {
                    UrlPlace::Word => ("a URL", "http://localhost:3000/".to_owned()),
                    UrlPlace::Script(command) => ("its script", format!("{command} script.js")),
                    UrlPlace::Targets(command) => {
                        ("its targets", format!("{command} -rate=100 -duration=10s"))
                    }
                };
                return Some(format!(
                    "{tool}'s flags are translated: longtail {tool} with {tool}'s flags and {place} says what to type for the same load{}; type longtail load -h for the flags of longtail; for example: longtail {tool} {example}",
                    tool.examples(),
                    tool = tool.name
                ));
            }
            _ if VERSION.contains(&word.as_str()) => {
                return Some("type longtail -V for the version of longtail".to_owned());
            }
            _ => {}
        }
    }
    None
}

/// The value behind a flag of ours.
fn value_behind(words: &[String], flag: &str) -> Option<String> {
    words.windows(2).rfind(|pair| pair[0] == flag).map(|pair| pair[1].clone())
}

/// Reads the requests file of our line, if it is there: what is wrong with it, such as a second
/// host, is said now and not by the line when it is pasted.
fn check_requests_file(whole: &Command, words: &[String]) -> Result<(), RequestError> {
    let Some(load) = parsed_load(whole, with_values(words).iter()) else { return Ok(()) };
    let Some(path) = load.get_one::<PathBuf>("requests").filter(|path| path.is_file()) else {
        return Ok(());
    };
    let url = load.get_one::<String>("url");
    let given = FileDefaults {
        format: load.get_one::<RequestsFormat>("requests_format").copied(),
        target: url.map(|url| TargetUrl::parse(url)).transpose()?,
        ..FileDefaults::default()
    };
    let root = load.get_one::<PathBuf>("requests_root");
    requests::read_file(path, &given, root.map(PathBuf::as_path)).map(drop)
}

/// The definition of `load`, in all of longtail's.
fn load_of(whole: &Command) -> &Command {
    whole.find_subcommand("load").expect("longtail has load")
}

fn parsed_load<'w>(whole: &Command, words: impl Iterator<Item = &'w String>) -> Option<ArgMatches> {
    let typed = std::iter::once("longtail".to_owned()).chain(words.cloned());
    let mut found = whole.clone().try_get_matches_from(typed).ok()?;
    found.remove_subcommand().map(|(_, load)| load)
}

/// The words of `vegeta attack` or `k6 run`, without that command. Flags may stand before it.
fn without_subcommand(tool: &'static OtherTool, theirs: &[String]) -> Result<Vec<String>, Mistake> {
    let name = match tool.url {
        UrlPlace::Word => return Ok(theirs.to_vec()),
        UrlPlace::Script(name) | UrlPlace::Targets(name) => name,
    };
    let command = tool.first_operand(theirs).unwrap_or(theirs.len());
    let before = &theirs[..command];
    let theirs = &theirs[command..];
    match theirs.first() {
        Some(word) if word == name => Ok([before, &theirs[1..]].concat()),
        Some(word) if ["report", "plot", "encode", "dump"].contains(&word.as_str()) => {
            let words = [before, &theirs[1..]].concat();
            let meant = of_vegetas_result(word, &words);
            Err(wrong(format!("{} {word} shows a result: {meant}", tool.name)))
        }
        Some(word) if !word.starts_with('-') && !synonyms::is_url(word) => Err(wrong(format!(
            "longtail knows only the lines of {} {name}: longtail load -h lists what it can do",
            tool.name
        ))),
        _ => Ok([before, theirs].concat()),
    }
}

/// Finds the URL of a line that has none; `beside` are words of ours.
fn find_url(tool: &OtherTool, beside: &[String], found: &mut Translation) {
    match tool.url {
        UrlPlace::Word => {
            // A pattern of URLs would be sent as it is written.
            if found.impossible.iter().any(|flag| flag == "--rand-regex-url") {
                found.operands = vec![URL.to_owned()];
            }
            let is_in_file = found.flags.iter().any(|flag| flag == "--requests");
            let is_beside = beside.iter().any(|word| synonyms::is_url(word));
            if found.operands.is_empty() && !is_in_file && !is_beside {
                found.operands.push(URL.to_owned());
            }
            if found.operands.iter().any(|word| word == URL) {
                found.to_fill.push(PUT_YOURS.to_owned());
            }
        }
        UrlPlace::Script(_)
            if found
                .operands
                .first()
                .is_some_and(|word| synonyms::is_url(word) && !is_script(word)) => {}
        UrlPlace::Script(_) => {
            found.operands = vec![URL.to_owned()];
        }
        UrlPlace::Targets(_) => {
            let has_targets = found.flags.iter().any(|flag| flag.starts_with("--requests"));
            if found.operands.is_empty() && !has_targets && found.take_only_target() {
                return;
            }
            if found.operands.is_empty() && !found.flags.iter().any(|flag| flag == "--requests") {
                found
                    .to_fill
                    .push("targets are read from stdin: pipe the same into this line".to_owned());
                found.flags.extend(["--requests", "-"].map(str::to_owned));
            }
            found.allow_bodies_outside_folder();
        }
    }
}

/// What of locust's file has flags here.
const NO_PYTHON: &str =
    "longtail runs no Python: --mix says the requests of its tasks, --think is their wait_time";

/// What of k6's script has flags here.
const OF_SCRIPT: &str = "its vus, duration, iterations and thresholds are -c, --for, -n and --expect; stages and executors with a rate are --rate, --ramp and --steps; sleep() is --think, headers are -H, methods and bodies -m and -d, checks --check";

/// The script that a line of k6 names.
fn script_of(tool: &'static OtherTool, theirs: &[String]) -> Option<String> {
    tool.first_operand(theirs).map(|at| theirs[at].clone())
}

/// The script of a line of k6 or wrk, if there is no such file.
fn missing_script(tool: &'static OtherTool, theirs: &[String]) -> Option<String> {
    let script = match tool.url {
        UrlPlace::Script(_) => script_of(tool, theirs)?,
        _ if ["wrk", "wrk2"].contains(&tool.name) => value_typed(tool, theirs, "script")?,
        _ => return None,
    };
    let is_elsewhere = script == "-" || script.contains("://");
    (!is_elsewhere && !Path::new(&script).exists()).then_some(script)
}

/// Words that stand in a line for what is not known, what to put in the place of each, and a value
/// that may stand there.
const UNKNOWN: [(&str, &str, &str); 10] = [
    (URL, "the URL of its requests", "http://localhost/"),
    (VUS, "its number of virtual users", "1"),
    (RATE, "its requests per second, such as 50/s", "1"),
    (DURATION, "how long it lasts, such as 30s", "1s"),
    (METHOD, "its method, such as POST", "GET"),
    (BODY, "its body", "a=1"),
    (VALUE, "the value of its header", "a"),
    (PATH, "its path (numbers that vary as {1..10})", "a"),
    (PAUSE, "its pause, such as 1500ms", "1s"),
    (WEIGHT, "how often it sends that request (9 is nine times as often as 1)", "1"),
];

/// Whether a word of a line has this one for something unknown: `RATE`, `RATE,RATE`.
pub(crate) fn stands_for(word: &str, unknown: &str) -> bool {
    match unknown {
        PATH => synonyms::is_url(word) && word.ends_with("/PATH") || in_mix(word, 1, "/PATH"),
        WEIGHT => in_mix(word, 2, WEIGHT),
        METHOD => word == METHOD || in_mix(word, 0, METHOD),
        BODY => word == BODY || word.split(", ").any(|it| it.contains(BODY_IN_MIX)),
        VALUE => known_of_header(word).is_some() || word.contains(VALUE_IN_MIX),
        RATE => word.split(',').flat_map(|part| part.split("..")).any(|part| part == RATE),
        _ => word.split(',').any(|part| part == unknown),
    }
}

/// A request's body that is not known, in `--mix`.
const BODY_IN_MIX: &str = " -d BODY";

/// The end of a header in `--mix` whose value is not known.
const VALUE_IN_MIX: &str = ": VALUE\"";

/// The name of a header with [`VALUE`] for its value.
fn known_of_header(word: &str) -> Option<&str> {
    let name = word.strip_suffix(VALUE)?.strip_suffix(": ")?;
    (!name.contains([' ', '"'])).then_some(name)
}

/// A value of a flag without its secrets, but with [`VALUE`] where that stands for the value of a
/// header.
pub(crate) fn masked_but_unknown(word: &str) -> String {
    if known_of_header(word).is_some() {
        return word.to_owned();
    }
    let known: Vec<String> = word.split(VALUE_IN_MIX).map(masked_word).collect();
    known.join(VALUE_IN_MIX)
}

/// Whether a request of this `--mix` has that word at this place: its method is 0, its path 1, its
/// weight 2.
fn in_mix(mix: &str, place: usize, unknown: &str) -> bool {
    let mut requests = mix.split(',').map(|request| request.split_whitespace());
    requests.any(|mut words| words.nth(place) == Some(unknown))
}

/// A line with some values in the place of words that stand for those that only the user knows.
pub(crate) fn with_values(line: &[String]) -> Vec<String> {
    let value = |word: &String| {
        let unknown = UNKNOWN.into_iter().filter(|(unknown, _, _)| stands_for(word, unknown));
        unknown.fold(word.clone(), |word, (unknown, _, value)| word.replace(unknown, value))
    };
    line.iter().map(value).collect()
}

impl Translation {
    /// What to put in the place of each word of our line that stands for something unknown, unless
    /// that is said already.
    fn fill_unknown(&mut self, words: &[String]) {
        for (unknown, what, _) in UNKNOWN {
            let begin = format!("for {unknown} put ");
            let is_there = words.iter().any(|word| stands_for(word, unknown));
            let said: Vec<&String> =
                self.to_fill.iter().filter(|it| it.starts_with(&begin)).collect();
            let mut names = if unknown == VALUE { names_with_value(words) } else { Vec::new() };
            names.retain(|name| !said.iter().any(|it| it.contains(name)));
            let is_said = !said.is_empty() && names.is_empty();
            let is_your_url = self.to_fill.iter().any(|it| unknown == URL && it == PUT_YOURS);
            if is_there && !is_said && !is_your_url {
                let what = match &names[..] {
                    names if !names.is_empty() => {
                        format!("{what} {}", listed(names))
                    }
                    _ => what.to_owned(),
                };
                self.to_fill.push(format!("{begin}{what}"));
            }
        }
    }
}

/// The names of headers whose value is not known, in a line of ours.
fn names_with_value(words: &[String]) -> Vec<String> {
    let in_mix = |word: &String| -> Vec<String> {
        let mut parts: Vec<&str> = word.split(VALUE_IN_MIX).collect();
        parts.pop();
        let name = |part: &&str| part.rsplit('"').next().map(str::to_owned);
        parts.iter().filter_map(name).collect()
    };
    let alone = words.iter().filter_map(|word| known_of_header(word)).map(str::to_owned);
    let mut names: Vec<String> = Vec::new();
    for name in alone.chain(words.iter().flat_map(in_mix)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// That k6's script is not run.
fn of_script(script: Option<&str>) -> String {
    match script {
        None => "its script is not run".to_owned(),
        Some("-") => "the script on stdin is not run".to_owned(),
        Some(script) => format!("{} is not run", quoted(script)),
    }
}

/// What is added to a load so that it does what that tool does by default, and looks like it.
fn defaults(tool: &OtherTool, load: &ArgMatches) -> Vec<String> {
    let is_given = |id: &str| load.value_source(id) == Some(ValueSource::CommandLine);
    let mut words = Vec::new();
    for OthersDefault { without, words: theirs } in tool.defaults {
        if !without.iter().any(|id| is_given(id)) {
            words.extend_from_slice(theirs);
        }
    }
    let has_body = BODY_FLAGS.into_iter().any(is_given);
    if tool.gets_with_body && has_body && !is_given("method") {
        words.extend(["-m", "GET"]);
    }
    let own_type = match tool.own_type {
        OwnType::OfBodies(name) if has_body => Some(name),
        OwnType::OfAll(name) => Some(name),
        OwnType::None | OwnType::OfBodies(_) => None,
    };
    let is_type = |header: &String| header.to_ascii_lowercase().starts_with("content-type:");
    let says_type = is_given("content_type")
        || load.get_many::<String>("headers").is_some_and(|mut headers| headers.any(is_type));
    if let Some(name) = own_type.filter(|_| !says_type) {
        words.extend(["-T", name]);
    }
    let is_tls = load.get_one::<String>("url").is_some_and(|url| url.starts_with("https://"));
    if is_tls && !tool.verifies_certificates && !is_given("insecure") {
        words.push("--insecure");
    }
    if let Some(style) = tool.style
        && !OTHER_LAYOUTS.into_iter().any(is_given)
    {
        words.extend(["--style", style]);
    }
    words.into_iter().map(str::to_owned).collect()
}

/// What to say of `load --as hey -- HEY'S WORDS`, which older versions ran; `None` if `flag`, which
/// `load` does not have, is another one.
pub(crate) fn after_as(
    whole: &Command,
    flag: &str,
    words: &[String],
) -> Option<Result<Vec<PastedLine>, Mistake>> {
    if !["--as", "--like"].contains(&flag) {
        return None;
    }
    let dashes = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (before, after) = words.split_at(dashes);
    let glued = format!("{flag}=");
    let at = before.iter().position(|word| word == flag || word.starts_with(&glued))?;
    let (name, flag_words) = match before[at].strip_prefix(&glued) {
        Some(name) => (name, 1),
        None => (before.get(at + 1).map_or("", String::as_str), 2),
    };
    let Some(tool) = OtherTool::of(name) else {
        let known = TOOLS.map(|tool| tool.name).join(" ");
        return Some(Err(wrong(format!(
            "load has no {flag}: command lines of these tools are known here: {known}"
        ))));
    };
    let mut beside = before.to_vec();
    beside.drain(at..(at + flag_words).min(before.len()));
    if let Some(command) = beside.iter().position(|word| word == "load") {
        beside.remove(command);
    }
    let theirs = after.get(1..).unwrap_or_default();
    let mut answered = answer(whole, tool, &beside, theirs);
    if let Ok([first, ..]) = answered.as_deref_mut() {
        first.purpose.insert_str(0, &format!("load has no {flag}: "));
    }
    Some(answered)
}

/// Whether these words behind `attack` are vegeta's, and not those of `attack.cr`.
pub(crate) fn are_vegetas(words: &[String]) -> bool {
    let is_ours =
        |word: &String| ["--target-throughput", "--url"].iter().any(|ours| word.starts_with(ours));
    let next = words.get(1).map(String::as_str);
    let is_vegetas = |word: &String| {
        OtherTool::of("vegeta")
            .is_some_and(|tool| matches!(tool.read(word, next), Ok(TypedWord::Flags { .. })))
    };
    words.first().is_some_and(is_vegetas) && !words.iter().any(is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::definition;

    fn line(tool: &str, beside: &str, theirs: &str) -> String {
        let words = |line: &str| shlex::split(line).unwrap();
        let tool = OtherTool::of(tool).unwrap();
        let answered = answer(&definition(), tool, &words(beside), &words(theirs));
        match answered {
            Ok(lines) => {
                let [PastedLine { purpose, piped: _, words, notes }] = &lines[..] else {
                    panic!("{lines:?}")
                };
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                let notes: Vec<String> = notes.iter().map(|note| format!("; {note}")).collect();
                format!("{purpose}, type longtail {}{}", words.join(" "), notes.concat())
            }
            Err(mistake) => mistake.to_string(),
        }
    }

    /// What is said of each line of hey that has no more to it.
    const HEYS: &str = "; hey follows redirects, ours does not";

    /// The three notes that may change the figures most come first, others together behind them.
    #[test]
    fn too_few_requests_for_an_expectation_are_named() {
        let noted = |line: &str| {
            let words: Vec<String> = line.split(' ').map(|it| it.replace('_', " ")).collect();
            let mut found = Translation::default();
            found.note_too_few_requests(OtherTool::of("k6").unwrap(), &words);
            found.fails
        };
        let expected =
            ["50 responses are too few to show p99 < 250ms (exit code 1): -n 400 makes enough"];
        assert_eq!(noted("load -n 50 --expect p99_<_250ms http://h/"), expected);
        assert!(noted("load -n 400 --expect p99_<_250ms http://h/").is_empty());
        assert!(noted("load -n 50 --expect mean_<_250ms http://h/").is_empty());
        assert!(noted("load --for 5s --expect p99_<_250ms http://h/").is_empty());
    }

    #[test]
    fn losses_stand_before_what_is_so_in_every_line() {
        let tool = OtherTool::of("hey").unwrap();
        let theirs = "-h2 -n 52 -c 5 -q 3 -d a=1 -disable-compression URL".split(' ');
        let theirs: Vec<String> = theirs.map(str::to_owned).collect();
        let said = answer(&definition(), tool, &[], &theirs);
        let notes = said.map(|lines| lines[0].notes.clone()).unwrap_or_default();
        assert_eq!(notes.len(), 4);
        assert_eq!(notes[0], "put your URL in the place of URL");
        assert_eq!(notes[1], "hey's -h2 cannot be done here: longtail speaks HTTP/1.1 only");
        assert!(notes[2].starts_with("hey's -q waits"), "{}", notes[2]);
        let of_requests = notes[3].find("hey sends 50 of 52 requests").unwrap();
        let of_method = notes[3].find("hey sends GET unless -m says otherwise").unwrap();
        assert!(of_requests < of_method);
        assert!(notes[3].ends_with("; hey follows redirects, ours does not"), "{}", notes[3]);
    }

    #[test]
    fn heys_lines_become_ours() {
        for (theirs, ours) in [
            (
                "-z 20s -m GET http://h/",
                "--for 20s -m GET -c 50 --timeout 20s -T text/html --style hey -H 'Accept-Encoding: gzip' http://h/",
            ),
            (
                "http://h/",
                "-c 50 --timeout 20s -n 200 -T text/html --style hey -H 'Accept-Encoding: gzip' http://h/",
            ),
            (
                "-c=4 -n=8 http://h/",
                "-c 4 -n 8 --timeout 20s -T text/html --style hey -H 'Accept-Encoding: gzip' http://h/",
            ),
            (
                "-c 20 -n 2000 -cpus 16 -disable-keepalive http://h/sleep0.2",
                "-c 20 -n 2000 --generator-threads 16 -k --timeout 20s -T text/html --style hey -H 'Accept-Encoding: gzip' http://h/sleep0.2",
            ),
        ] {
            assert_eq!(
                line("hey", "", theirs),
                format!("for hey's load, type longtail load {ours}{HEYS}")
            );
        }
    }

    #[test]
    fn bodies_have_the_type_that_the_tool_gives_them() {
        for (tool, theirs, ours) in [
            (
                "hey",
                "-n 1 -c 1 -m POST -T text/plain -U me/1 -d 'hello you' -t 0 https://h/",
                "-n 1 -c 1 -m POST -T text/plain -H 'User-Agent: me/1 hey/0.0.1' -d 'hello you' --timeout 24h --insecure --style hey -H 'Accept-Encoding: gzip' https://h/",
            ),
            (
                "hey",
                "-n 1 -c 1 -m POST -d a=1 http://h/",
                "-n 1 -c 1 -m POST -d a=1 --timeout 20s -T text/html --style hey -H 'Accept-Encoding: gzip' http://h/",
            ),
            (
                "curl",
                "-d a=1 -H 'content-type: a/b' http://h/",
                "-d a=1 -H 'content-type: a/b' -n 1 -c 1 http://h/",
            ),
            ("ab", "-p body http://h/", "-D body -k -c 1 -n 1 -T text/plain http://h/"),
        ] {
            let said = line(tool, "", theirs);
            let begins = said.starts_with(&format!("for {tool}'s load, type longtail load {ours}"));
            let says_type = said.contains(" itself ") && said.contains(" calls ");
            assert!(
                begins && says_type == (ours.contains(" -T ") && !theirs.contains("-T")),
                "{said}"
            );
        }
    }

    #[test]
    fn wrks_lines_become_ours() {
        for (theirs, ours) in [
            (
                "-t12 -c400 -d30s http://h/index.html",
                "--generator-threads 12 -c 396 --for 30s --style wrk http://h/index.html",
            ),
            (
                "--duration 3 -c 2k http://h/",
                "--for 3s -c 2000 --generator-threads 2 --style wrk http://h/",
            ),
        ] {
            let said = line("wrk", "", theirs);
            assert!(said.contains(&format!(", type longtail load {ours}")), "{said}");
        }
    }

    #[test]
    fn flags_of_ours_beside_theirs_stay() {
        for (beside, ours) in [
            (
                "-c 8 --rate 10/s",
                "-c 8 --rate 10/s --timeout 20s -n 200 -T text/html --style hey -H 'Accept-Encoding: gzip' http://h/",
            ),
            (
                "-kc8 --for=1s --json",
                "-kc8 --for=1s --json --timeout 20s -T text/html -H 'Accept-Encoding: gzip' http://h/",
            ),
            (
                "--fail-if 'p99 > 1s' --generator hey",
                "--fail-if 'p99 > 1s' --generator hey -c 50 --timeout 20s -n 200 -T text/html -H 'Accept-Encoding: gzip' http://h/",
            ),
        ] {
            let said = line("hey", beside, "http://h/");
            assert_eq!(said, format!("for hey's load, type longtail load {ours}{HEYS}"));
        }
    }

    #[test]
    fn what_has_no_counterpart_is_named() {
        let said = line("wrk", "", "-c4 -d1s --latency http://h/");
        assert!(said.ends_with(" http://h/; --latency: percentiles are always printed"), "{said}");
        let said = line("hey", "", "-n 5 -z 1s -disable-compression http://h/");
        let notes = "; hey ignores -n beside -z; -disable-compression: no compressed response is asked for; hey follows redirects, ours does not";
        assert!(said.starts_with("for hey's load, type longtail load --for 1s"), "{said}");
        assert!(said.ends_with(notes), "{said}");
        assert_eq!(line("wrk", "", "-s x.lua http://h/"), "there is no file x.lua");
        assert_eq!(line("k6", "", "run x.js"), "there is no file x.js");
        assert!(line("hey", "", "-Z http://h/").contains("-Z is no flag of hey"));
    }
}
