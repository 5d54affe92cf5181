//! Command lines of other load tools, answered with ours, whole, to paste.
//!
//! No flag is lost on the way: neither one of theirs nor one of ours that stands beside them. What
//! has no meaning here is named, because a flag that is silently ignored would make two results
//! look comparable that are not.

use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use judge::words::listed;
use model::objective::ObjectiveFigure;
use model::plan::quoted;
use model::secret::{SECRET, is_number_or_time, masked_body, masked_word};
use model::{Interval, Nanos, Objective};
use requests::{FileDefaults, RequestError, RequestsFormat, TargetUrl};

use super::flags::{
    BODY, Compression, Counterpart, DURATION, KeepAlive, METHOD, NO_LUA, NO_SCRIPT, OtherTool,
    OthersDefault, OthersFlag, OwnType, PATH, RATE, Spelling, TOOLS, Takes, URL, UrlPlace, VUS,
    in_five_digits, is_script, truth_of, with_value,
};
use super::k6_script::{IterationRate, K6Script, Pauses, ScenarioStart, Stages};
use super::script_file::text_of;
use super::synonyms;
use super::wrk_script::{COUNTED, WrkScript};
use crate::args::mistakes::unknown_words;
use crate::exit::{LineToType, LinesToType, Mistake, wrong};

/// Identifiers of flags that choose what is printed, or have no layout of hey or wrk.
const OTHER_LAYOUTS: [&str; 6] = ["style", "format", "markdown", "json", "csv", "generator"];

/// Identifiers of flags that give a body.
const BODY_FLAGS: [&str; 3] = ["data", "data_raw", "body_file"];

/// What to do with [`URL`].
const PUT_YOURS: &str = "put your URL in the place of URL";

/// A flag of another tool as it stands in a line of it.
#[derive(Clone, Debug)]
pub(crate) struct TypedFlag {
    pub(crate) flag: &'static OthersFlag,
    /// With its dashes.
    name: String,
    /// The value for ours; empty if it takes none.
    value: String,
    /// The value as it was typed.
    pub(crate) typed_value: String,
    /// Of a switch: `=false`.
    is_off: bool,
}

/// A word of another tool's line, with the next one if that is its value.
#[derive(Clone, Debug)]
pub(crate) enum TypedWord {
    /// Its flags: several letters may stand behind one dash.
    Flags {
        flags: Vec<TypedFlag>,
        /// Whether the next word is the last one's value.
        takes_next: bool,
    },
    /// Something else: a URL.
    Operand,
}

/// Why a word of another tool's line is not understood.
pub(crate) enum Unread {
    /// No flag of that name is known; what to say of it.
    Flag(String),
    /// Its value is wrong or missing; what to say of it.
    Value(String),
}

/// What becomes of flags that the tool does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnknownFlags {
    /// The line is not the tool's.
    Refused,
    /// They are left out, and named.
    LeftOut,
}

impl OtherTool {
    /// Reads a word of its line; `next` is the word behind it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(&'static self, word: &str, next: Option<&str>) -> Result<TypedWord, Unread> {
        if !word.starts_with('-') || word == "-" {
            return Ok(TypedWord::Operand);
        }
        let bare = word.trim_start_matches('-');
        let (name, glued) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (bare, None),
        };
        let is_long = match self.spelling {
            Spelling::Go => true,
            Spelling::Getopt => word.starts_with("--"),
        };
        if is_long {
            let (flag, takes_next) = self.flag(name, word, glued, next)?;
            return Ok(TypedWord::Flags { flags: vec![flag], takes_next });
        }
        self.read_letters(bare, next)
    }

    /// `-kc10`: letters, the last of which may take a value.
    fn read_letters(&'static self, letters: &str, next: Option<&str>) -> Result<TypedWord, Unread> {
        let mut flags = Vec::new();
        for (at, letter) in letters.char_indices() {
            let name = letter.to_string();
            let rest = &letters[at + letter.len_utf8()..];
            let takes_value =
                self.flags.iter().any(|flag| flag.is_called(&name) && flag.takes_value());
            let behind_equals = rest.strip_prefix('=');
            let glued = if takes_value && !rest.is_empty() {
                Some(behind_equals.unwrap_or(rest))
            } else {
                // `-a=false`, of a switch.
                behind_equals.filter(|value| truth_of(value).is_some())
            };
            let word = format!("-{name}");
            // Of `-xc10` all is left out if `-x` is not known.
            let (flag, takes_next) =
                self.flag(&name, &word, glued, next).map_err(|why| match why {
                    Unread::Flag(_) if flags.is_empty() && rest.is_empty() => why,
                    Unread::Flag(_) => Unread::Flag(format!(
                        "-{letters} is no flag of {} that is known here",
                        self.name
                    )),
                    Unread::Value(_) => why,
                })?;
            let is_last = flag.flag.takes_value() || glued.is_some();
            flags.push(flag);
            if is_last {
                return Ok(TypedWord::Flags { flags, takes_next });
            }
        }
        Ok(TypedWord::Flags { flags, takes_next: false })
    }

    /// Its flag of that name whose value fits, and whether `next` is that value.
    fn flag(
        &'static self,
        name: &str,
        word: &str,
        glued: Option<&str>,
        next: Option<&str>,
    ) -> Result<(TypedFlag, bool), Unread> {
        let mut called = self.flags.iter().filter(|flag| flag.is_called(name)).peekable();
        if called.peek().is_none() {
            let why = format!("{word} is no flag of {} that is known here", self.name);
            return Err(Unread::Flag(why));
        }
        let shown = word.split('=').next().unwrap_or(word).to_owned();
        for flag in called {
            let typed = TypedFlag {
                flag,
                name: shown.clone(),
                value: String::new(),
                typed_value: String::new(),
                is_off: false,
            };
            match flag.takes {
                Takes::No | Takes::Switch => {
                    let Some(value) = glued else {
                        let takes_next = flag.takes == Takes::Switch
                            && next.is_some_and(|next| ["true", "false"].contains(&next));
                        let is_off = takes_next && next == Some("false");
                        return Ok((TypedFlag { is_off, ..typed }, takes_next));
                    };
                    if let Some(is_on) = truth_of(value) {
                        return Ok((TypedFlag { is_off: !is_on, ..typed }, false));
                    }
                }
                _ => {
                    let given = glued.or(next).unwrap_or_default();
                    if let Some(value) = flag.takes.ours(given) {
                        let typed_value = given.to_owned();
                        return Ok((TypedFlag { value, typed_value, ..typed }, glued.is_none()));
                    }
                }
            }
        }
        let tool = self.name;
        Err(Unread::Value(match glued.or(next) {
            Some(value) if may_be_value(value) => {
                format!("'{value}' is no value of {tool}'s {shown}")
            }
            _ => format!("{tool}'s {shown} needs a value"),
        }))
    }
}

/// Whether that is a URL, or stands for one.
fn is_url(word: &str) -> bool {
    synonyms::is_url(word) || word == URL
}

/// Whether that is a value and not the next flag.
fn may_be_value(word: &str) -> bool {
    !word.starts_with('-')
}

/// Another tool's command line in our words.
#[derive(Default)]
struct Translation {
    flags: Vec<String>,
    /// The URL.
    operands: Vec<String>,
    /// Why our line ends with exit code 1 where theirs ends with 0.
    fails: Vec<String>,
    /// What is to be done before the line can be pasted.
    to_fill: Vec<String>,
    /// Names of their flags that cannot be done.
    impossible: Vec<String>,
    /// What of theirs cannot be done, and why not.
    left_out: Vec<String>,
    /// What ours does otherwise.
    differs: Vec<String>,
    /// Flags of theirs that change nothing here, and why; where a value comes from.
    harmless: Vec<String>,
    /// What the tool does otherwise in nearly every line.
    habits: Vec<String>,
    /// The path that wrk's script gives to its requests.
    path_of_script: Option<String>,
    /// The headers of wrk's script, which take the place of those of its flags.
    headers_of_script: Vec<String>,
    /// What to write in the place of PATH, if it gives them one that is not known.
    unknown_path: Option<&'static str>,
    /// siege's requests of each connection.
    each_connection: Option<u64>,
    /// oha's time between bursts, and requests of each.
    burst_delay: Option<Nanos>,
    burst_size: Option<u32>,
    /// Whether the URL's place has a file of URLs.
    has_file_of_urls: bool,
    /// Those of k6's line.
    stages: Stages,
    /// Whether the flag that keeps connections was there.
    keeps_connections: bool,
    /// The encodings of a response that the tool accepts unasked.
    accepts: Option<&'static str>,
    /// Whether another tool more probably means something by a value: a short flag's value that
    /// changes nothing here, or a time that is taken for a text or a file.
    misses_value: bool,
}

/// Reads a command line of another tool.
///
/// # Errors
/// One line, where a flag is not that tool's, or has a wrong value.
fn translate(
    tool: &'static OtherTool,
    load: &Command,
    words: &[String],
    unknown: UnknownFlags,
) -> Result<Translation, String> {
    let mut ours = Translation::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let next = words.get(at + 1).map(String::as_str);
        at += 1;
        if word == "--" {
            ours.operands.extend_from_slice(&words[at..]);
            break;
        }
        match tool.read(word, next) {
            Ok(TypedWord::Operand) => ours.operands.push(word.clone()),
            Ok(TypedWord::Flags { flags, takes_next }) => {
                for flag in &flags {
                    ours.take(tool, flag, words);
                }
                at += usize::from(takes_next);
            }
            Err(Unread::Value(why)) => return Err(why),
            Err(Unread::Flag(why)) => {
                // A long flag of ours may stand among theirs.
                match synonyms::takes_value(load, word) {
                    Some(takes_value) => {
                        ours.flags.push(word.clone());
                        if takes_value && let Some(value) = words.get(at) {
                            ours.flags.push(value.clone());
                            at += 1;
                        }
                    }
                    None if unknown == UnknownFlags::LeftOut => {
                        ours.left_out.push(format!("{why}, and is left out"));
                        let has_value = tool.url == UrlPlace::Word
                            && next.is_some_and(|next| may_be_value(next) && !is_url(next));
                        at += usize::from(has_value);
                    }
                    None => return Err(why),
                }
            }
        }
    }
    ours.end_bursts();
    ours.leave_out_words_of_script(tool, words);
    ours.end_path_of_script();
    ours.end_headers_of_script();
    ours.take_file_of_urls();
    ours.count_all_requests();
    ours.end_stages();
    ours.end_compression(tool, words);
    Ok(ours)
}

impl Translation {
    fn take(&mut self, tool: &'static OtherTool, typed: &TypedFlag, words: &[String]) {
        let TypedFlag { flag, name, value, typed_value, is_off } = typed;
        if *is_off {
            return;
        }
        if let KeepAlive::With(keeping) = tool.keep_alive
            && flag.is_called(keeping)
        {
            self.keeps_connections = true;
            self.harmless.push(format!("{name} of {} is keep-alive, the default here", tool.name));
        }
        if let Some(ignored) = &tool.ignored
            && flag.is_called(ignored.flag)
            && value_typed(tool, words, ignored.beside).is_some_and(|value| !is_no_time(&value))
        {
            let beside = ignored.beside;
            self.harmless.push(format!("{} ignores {name} beside -{beside}", tool.name));
            return;
        }
        if is_time_for_text(typed) {
            self.misses_value = true;
        }
        match &flag.ours {
            Counterpart::Words(_) if flag.takes == Takes::VegetaRate && value.is_empty() => {
                self.take_closed_loop(name, typed_value, tool.has_typed("max-workers", words));
            }
            Counterpart::Words(parts) if flag.takes == Takes::ListenAddress => {
                self.flags.extend(with_value(parts, value));
                if value != typed_value {
                    self.differs.push(format!(
                        "{name} {typed_value} is open to every network; ours listens at {value}"
                    ));
                }
            }
            Counterpart::Words(parts) if flag.takes == Takes::BodyOrFile => {
                self.flags.extend(with_body_or_file(parts, value));
            }
            Counterpart::Words(parts) if flag.takes == Takes::BodyOrText => {
                self.note_line_breaks(tool, name, value);
                self.flags.extend(with_body_or_file(parts, value));
            }
            Counterpart::Words(["{}"]) => self.operands.push(value.clone()),
            Counterpart::Words(parts) => self.flags.extend(with_value(parts, value)),
            Counterpart::WordsBut(parts, difference) => {
                self.flags.extend(with_value(parts, value));
                self.differs.push(format!("{}'s {name} {difference}", tool.name));
            }
            Counterpart::Nothing(why) => {
                self.misses_value |= flag.takes_value() && name.len() == 2;
                let is_number = is_number_or_time(typed_value);
                let shown = if is_number { format!("{name} {typed_value}") } else { name.clone() };
                self.take_nothing(&shown, &why.replace("{}", value));
            }
            Counterpart::Impossible(why) => {
                self.left_out.push(format!("{}'s {name} cannot be done here: {why}", tool.name));
                if !self.impossible.contains(name) {
                    self.impossible.push(name.clone());
                }
            }
            Counterpart::RandomPause => {
                let most = value.parse().unwrap_or(Nanos::ZERO);
                if most > Nanos::ZERO {
                    self.differs.push(format!("{name} is a random pause of up to {most}"));
                    self.flags.extend(["--think".to_owned(), (most / 2).to_string()]);
                }
            }
            Counterpart::BurstDelay => self.burst_delay = value.parse().ok(),
            Counterpart::BurstSize => self.burst_size = value.parse().ok(),
            Counterpart::UrlsFromFile => self.has_file_of_urls = true,
            Counterpart::EachConnection => self.each_connection = value.parse().ok(),
            Counterpart::Stages => self.take_stages(tool, name, value),
            Counterpart::LuaScript => self.take_lua(tool, name, value),
        }
    }

    /// A flag that changes nothing here; several for the same reason are named together.
    fn take_nothing(&mut self, shown: &str, why: &str) {
        let reason = format!(": {why}");
        match self.harmless.iter_mut().find(|known| known.ends_with(&reason)) {
            Some(known) => {
                let names = known.len() - reason.len();
                known.insert_str(names, &format!(", {shown}"));
            }
            None => self.harmless.push(format!("{shown}{reason}")),
        }
    }

    /// curl's `-d @FILE`, which leaves out what breaks lines in the file.
    fn note_line_breaks(&mut self, tool: &OtherTool, name: &str, value: &str) {
        let Some(file) = value.strip_prefix('@') else { return };
        let made = if file == "-" {
            "tr -d '\\r\\n' before it makes the same body".to_owned()
        } else {
            let bytes = std::fs::read(file).unwrap_or_default();
            if !bytes.iter().any(|byte| [b'\r', b'\n', 0].contains(byte)) {
                return;
            }
            let file = quoted(file);
            format!("tr -d '\\r\\n' <{file} makes the same body")
        };
        let tool = tool.name;
        self.differs
            .push(format!("{tool}'s {name} leaves line breaks out of a file, -D does not: {made}"));
    }

    /// curl sends several bodies as one, with `&` between them, and with `-G` as the URL's query.
    fn join_bodies(&mut self, tool: &'static OtherTool, words: &[String]) {
        let is_body = |word: &&String| ["-d", "--data-raw", "-D"].contains(&word.as_str());
        let is_query = tool.has_typed("get", words);
        if !is_query && self.flags.iter().filter(is_body).count() < 2 {
            return;
        }
        let (place, texts) = self.take_values(&["-d", "--data-raw"]);
        let (place_of_file, files) = self.take_values(&["-D"]);
        if !texts.is_empty() && !files.is_empty() || files.len() > 1 {
            self.left_out.push(
                "curl's bodies are one, with & between them: write them all into the file of -D"
                    .to_owned(),
            );
        }
        let joined = texts.join("&");
        if let Some(file) = files.first() {
            let of_file = ["-D".to_owned(), file.clone()];
            self.flags.splice(place_of_file..place_of_file, of_file);
        } else if texts.is_empty() {
        } else if !is_query {
            self.flags.splice(place..place, with_value(&["-d", "{}"], &joined));
        } else if let Some(url) = self.operands.first_mut().filter(|url| *url != URL) {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(&joined);
        } else {
            self.to_fill.push(format!("the query of its URL is {}", quoted(&joined)));
        }
    }

    /// Takes these flags of ours away: where the first one was, and the values of all.
    fn take_values(&mut self, names: &[&str]) -> (usize, Vec<String>) {
        let mut place = 0;
        let mut values = Vec::new();
        while let Some(at) = self.flags.iter().position(|flag| names.contains(&flag.as_str())) {
            place = if values.is_empty() { at } else { place };
            values.extend(self.flags.drain(at..(at + 2).min(self.flags.len())).nth(1));
        }
        (place, values)
    }

    /// Names files of our line that are not there.
    fn note_missing_files(&mut self, words: &[String]) {
        const FILES: [&str; 5] = ["--requests", "-D", "--cert", "--key", "--cacert"];
        let missing: Vec<String> = words
            .windows(2)
            .filter(|pair| FILES.contains(&pair[0].as_str()))
            .filter(|pair| pair[1] != "-" && !Path::new(&pair[1]).exists())
            .map(|pair| quoted(&masked_word(&pair[1])))
            .collect();
        if !missing.is_empty() {
            self.to_fill.insert(0, format!("there is no file {}", missing.join(" and no file ")));
        }
    }

    /// vegeta's `-rate=0`, of which its default rate is no part.
    fn take_closed_loop(&mut self, name: &str, rate: &str, has_workers: bool) {
        if !has_workers {
            self.flags.extend(["-c", "50"].map(str::to_owned));
        }
        self.harmless.push(format!("{name} {rate} is a closed loop: no --rate"));
    }

    /// k6's `30s:20,1m:50`: how long each stage is, and how many connections it ends with.
    fn take_stages(&mut self, tool: &OtherTool, name: &str, value: &str) {
        let why = format!(
            "{}'s {name} cannot be done here: the number of connections stays; --ramp A..B and --steps A,B raise a rate",
            tool.name
        );
        self.left_out.push(why);
        for stage in value.split(',') {
            let Some((length, connections)) = stage.split_once(':') else { continue };
            let Ok(length) = length.trim().parse::<Nanos>() else { continue };
            self.stages.push(connections.trim().parse().unwrap_or(0.0), length);
        }
    }

    /// wrk's script: its texts, and words for what only the user knows.
    fn take_lua(&mut self, tool: &OtherTool, name: &str, path: &str) {
        let shown = quoted(path);
        if !Path::new(path).exists() {
            self.left_out
                .push(format!("there is no file {shown}, and it would not be run: {NO_LUA}"));
            return;
        }
        let Some(text) = text_of(Path::new(path)) else {
            let words = ["-m", METHOD, "-d", BODY].map(str::to_owned);
            let write = write_unknown(&words).unwrap_or_default();
            self.left_out
                .push(format!("{}'s {name} cannot be done here: {NO_LUA}; {write}", tool.name));
            self.flags.extend(words);
            return;
        };
        let script = WrkScript::in_text(&text);
        let words = script.words();
        let said = format!("{shown} is read, not run");
        match write_unknown(&words) {
            Some(write) => self.to_fill.push(format!("{said}: {write}")),
            None => self.harmless.push(said),
        }
        let mut not_taken = script.not_taken();
        if script.is_counted {
            self.to_fill.push(format!(
                "put the numbers of its path in the place of {COUNTED}: the script counts them up"
            ));
        }
        if let Some(think) = script.think {
            // At a rate a pause delays no request.
            if tool.name == "wrk" {
                self.flags.extend(["--think".to_owned(), think.to_string()]);
                self.differs.push(format!("--think {think} is its delay(), or the mean of it"));
            } else {
                not_taken.push("its delay(), which ours has in a closed loop only".to_owned());
            }
        }
        if !not_taken.is_empty() {
            self.left_out.push(format!("not taken: {}", listed(&not_taken)));
        }
        let headers = words.windows(2).filter(|pair| pair[0] == "-H").map(|pair| pair[1].clone());
        self.headers_of_script = headers.collect();
        self.flags.extend(words);
        self.path_of_script = script.path().map(str::to_owned);
        self.unknown_path = script.has_unknown_path().then_some(if script.has_several {
            "write a path of its requests in the place of PATH"
        } else {
            "its path is computed: write it in the place of PATH (several: --mix or --requests FILE)"
        });
    }

    /// Puts the path that wrk's script says in the place of the URL's. Where that is not known, the
    /// line does not load another one.
    fn end_path_of_script(&mut self) {
        let unknown = self.unknown_path.map(|_| format!("/{PATH}"));
        let Some(path) = self.path_of_script.take().or(unknown) else { return };
        match self.operands.first_mut().filter(|url| is_url(url)) {
            Some(url) if url != URL => {
                let host = url.find("://").map_or(0, |at| at + "://".len());
                let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |at| host + at);
                *url = format!("{}{path}", &url[..end]);
                self.to_fill.extend(self.unknown_path.map(str::to_owned));
            }
            _ if self.unknown_path.is_some() => {
                self.to_fill.push("the path of its URL is computed".to_owned());
            }
            _ => self.to_fill.push(format!("the path of its URL is {}", quoted(&path))),
        }
    }

    /// Leaves out headers of wrk's flags that its script has, too: it is run after the flags.
    fn end_headers_of_script(&mut self) {
        let name = |header: &str| header.split(':').next().map(str::to_owned);
        let is_replaced = |header: &String| {
            !self.headers_of_script.contains(header)
                && self.headers_of_script.iter().any(|of_script| name(of_script) == name(header))
        };
        let pairs = self.flags.windows(2).enumerate();
        let replaced: Vec<usize> = pairs
            .filter(|(_, pair)| pair[0] == "-H" && is_replaced(&pair[1]))
            .map(|(at, _)| at)
            .collect();
        for at in replaced.into_iter().rev() {
            let header = self.flags.drain(at..at + 2).next_back().unwrap_or_default();
            let shown = name(&header).unwrap_or_default();
            self.harmless.push(format!("its script's {shown} takes the place of the flag's"));
        }
    }

    /// oha's `--burst-delay 2s --burst-rate 4`: four requests every two seconds.
    fn end_bursts(&mut self) {
        let size = self.burst_size.unwrap_or(1);
        let Some(delay) = self.burst_delay.filter(|delay| *delay > Nanos::ZERO) else {
            if self.burst_size.is_some() {
                let why = "oha's --burst-rate does nothing without --burst-delay";
                self.harmless.push(why.to_owned());
            }
            return;
        };
        if let Some(at) = self.flags.iter().position(|flag| flag == "--rate") {
            self.flags.drain(at..(at + 2).min(self.flags.len()));
            self.harmless.push("oha ignores -q beside --burst-delay".to_owned());
        }
        let rate = in_five_digits(f64::from(size) / delay.as_secs_f64());
        self.flags.extend(["--rate".to_owned(), rate]);
        if size > 1 {
            self.flags.extend(["--burst".to_owned(), size.to_string()]);
        }
    }

    /// vegeta's targets may name bodies anywhere; ours only below the folder of the targets, unless
    /// another one is named.
    fn allow_bodies_outside_folder(&mut self) {
        if self.flags.iter().any(|flag| flag == "--requests-root") {
            return;
        }
        let Some(at) = self.flags.iter().position(|flag| flag == "--requests") else { return };
        let folder = self.flags.get(at + 1).and_then(|file| Path::new(file).parent());
        if folder.is_some_and(|folder| !["", "."].map(Path::new).contains(&folder)) {
            self.flags.extend(["--requests-root", "."].map(str::to_owned));
            self.harmless.push("--requests-root . is where bodies (@FILE) may be".to_owned());
        }
    }

    /// wrk's words behind the URL, which its Lua script gets.
    fn leave_out_words_of_script(&mut self, tool: &'static OtherTool, words: &[String]) {
        let has_script = tool.has_typed("script", words) || words.iter().any(|word| word == "--");
        if !["wrk", "wrk2"].contains(&tool.name) || !has_script || self.operands.len() < 2 {
            return;
        }
        let behind: Vec<String> =
            self.operands.drain(1..).map(|word| quoted(&masked_word(&word))).collect();
        let words = behind.join(" ");
        self.left_out.push(format!("what stands behind the URL, {words}, is for the Lua script"));
    }

    /// oha's `--urls-from-file FILE`, where the file stands in the place of the URL.
    fn take_file_of_urls(&mut self) {
        if self.has_file_of_urls
            && let Some(file) = self.operands.pop()
        {
            self.flags.extend(["--requests".to_owned(), file]);
        }
    }

    /// The load that is nearest to k6's stages: the most connections of them, for as long.
    fn end_stages(&mut self) {
        if self.stages.total == Nanos::ZERO {
            return;
        }
        // k6's -u is the number that they begin with.
        let first = value_behind(&self.flags, "-c").and_then(|users| users.parse().ok());
        let first = first.unwrap_or(1);
        self.set("-c", u64::from(self.stages.most(first)));
        if !self.flags.iter().any(|flag| flag == "--for") {
            self.flags.extend(["--for".to_owned(), self.stages.total.to_string()]);
        }
        let more = self.stages.more_than_on_average(first);
        if !more.is_empty() {
            self.differs.push(format!("-c is the most of its stages{more}"));
        }
    }

    /// siege's -r counts the requests of each connection, of which it has 25.
    fn count_all_requests(&mut self) {
        let Some(each) = self.each_connection else { return };
        let flag = self.flags.iter().position(|flag| flag == "-c");
        let given = flag.and_then(|at| self.flags.get(at + 1)?.parse().ok());
        let connections: u64 = given.unwrap_or(25);
        if given.is_none() {
            self.flags.extend(["-c".to_owned(), connections.to_string()]);
        }
        self.harmless.push(format!("-r {each} is of each of {connections} connections"));
        self.flags.extend(["-n".to_owned(), each.saturating_mul(connections).to_string()]);
    }

    /// k6 counts iterations, each of which may send several requests.
    fn count_requests_of_iterations(&mut self, each: u32) {
        if each < 2 {
            return;
        }
        let counts = 1..self.flags.len();
        let is_count = |flag: &str| ["-n", "--reconnect-after"].contains(&flag);
        for at in counts.filter(|at| is_count(&self.flags[at - 1])).collect::<Vec<_>>() {
            let Ok(iterations) = self.flags[at].parse::<u64>() else { continue };
            self.flags[at] = iterations.saturating_mul(each.into()).to_string();
        }
        self.differs.push(format!(
            "--mix draws its {each} requests at random, equally likely, so not as many of each in a short run; k6 sends them in their order, as ours does from a file (--requests FILE); k6 counts iterations, -n and --rate count requests"
        ));
    }

    /// What counts are of, where some requests of an iteration are not in the line.
    fn note_requests_left_out(&mut self, each: u32, left_out: u32) {
        if left_out > 0 {
            let each = each.max(1);
            let requests = if each > 1 { "requests" } else { "request" };
            self.left_out.push(format!(
                "an iteration is {each} {requests} here, {left_out} more only k6 sends: raise -n or --rate with those that you add"
            ));
        }
    }

    /// How k6's requests are sent, where that does not tell how many each iteration sends.
    fn note_uncounted(&mut self, how: Option<&str>) {
        let Some(how) = how else { return };
        let counts = ["-n", "--rate", "--ramp", "--steps"].into_iter();
        let with_value = |flag: &str| {
            let at = self.flags.iter().position(|word| word == flag)?;
            Some(self.flags.get(at..at + 2)?.join(" "))
        };
        let mut counts: Vec<String> = counts.filter_map(with_value).collect();
        // A rate of --rps is one of requests for k6, too.
        if counts.len() > 1 {
            counts.clear();
        }
        counts.extend(with_value("--reconnect-after"));
        if !counts.is_empty() {
            let several = self.flags.iter().any(|flag| flag == "--mix");
            let some = if several { "some of " } else { "" };
            let does = if counts.len() > 1 { "count" } else { "counts" };
            let them = if counts.len() > 1 { "them" } else { "it" };
            self.left_out.push(format!(
                "{some}its requests are sent {how}: k6 counts iterations, {} {does} requests, so multiply {them} by the requests of an iteration",
                listed(&counts)
            ));
        }
    }

    /// wrk gives each thread as many connections as the others, and hey each connection as many
    /// requests; both leave out the rest of the division, and refuse to divide by more than there
    /// is. `beside` are words of ours.
    fn settle_counts(&mut self, tool: &OtherTool, beside: &[String]) {
        let (whole, each, name, has_end) = match tool.name {
            "wrk" | "wrk2" => ("-c", "--generator-threads", "threads", false),
            "hey" => ("-n", "-c", "connections", true),
            _ => return,
        };
        let ends_by_time = has_end && self.flags.iter().any(|flag| flag == "--for");
        if ends_by_time || beside.iter().any(|word| word.starts_with('-')) {
            return;
        }
        let (Some(all), Some(parts)) = (self.count(tool, whole), self.count(tool, each)) else {
            return;
        };
        let what = if whole == "-n" { "requests" } else { "connections" };
        let tool = tool.name;
        if all < parts {
            let is_typed = |flag: &str| self.flags.iter().any(|word| word == flag);
            // What was typed stays.
            let (flag, value) = if is_typed(whole) { (each, all) } else { (whole, parts) };
            self.set(flag, value);
            self.differs.push(format!(
                "{tool} refuses fewer {what} ({all}) than {name} ({parts}): {flag} is {value} here"
            ));
        } else if all % parts != 0 {
            let even = all - all % parts;
            self.set(whole, even);
            let makes = if whole == "-n" { "sends" } else { "opens" };
            self.harmless.push(format!(
                "{tool} {makes} {even} of {all} {what}, as many for each of {parts} {name}"
            ));
        }
    }

    /// The number behind a flag of ours, or the tool's default; `None` if it is no number above 0.
    fn count(&self, tool: &OtherTool, flag: &str) -> Option<u64> {
        let value_in = |words: &[&str]| {
            let at = words.iter().rposition(|word| *word == flag)?;
            words.get(at + 1)?.parse().ok()
        };
        let typed: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        let count = if typed.contains(&flag) {
            value_in(&typed)
        } else {
            tool.defaults.iter().find_map(|default| value_in(default.words))
        };
        count.filter(|count| *count > 0)
    }

    /// Gives a flag of ours this value.
    fn set(&mut self, flag: &str, value: u64) {
        match self.flags.iter().rposition(|word| word == flag) {
            Some(at) if at + 1 < self.flags.len() => self.flags[at + 1] = value.to_string(),
            _ => self.flags.extend([flag.to_owned(), value.to_string()]),
        }
    }

    /// curl's `--compressed`, unless a header of its line says what it accepts.
    fn end_compression(&mut self, tool: &'static OtherTool, words: &[String]) {
        if let Compression::With(flag, encodings) = tool.compression
            && tool.has_typed(flag, words)
            && !says_encoding(&self.flags)
        {
            self.flags.extend(accepting(encodings));
        }
    }

    /// A space in a URL as our line takes it.
    fn encode_spaces(&mut self) {
        for url in self.operands.iter_mut().filter(|url| is_url(url)) {
            *url = url.trim().replace(' ', "%20");
        }
    }

    /// siege's `URL POST BODY` and `URL POST <FILE` in one word.
    fn take_siege_post(&mut self) {
        let Some(operand) = self.operands.first_mut() else { return };
        let Some((url, body)) = operand.split_once(" POST") else { return };
        let body = body.trim().to_owned();
        *operand = url.to_owned();
        self.flags.extend(["-m", "POST"].map(str::to_owned));
        let words = match body.strip_prefix('<') {
            Some(file) => with_value(&["-D", "{}"], file.trim()),
            None if body.is_empty() => Vec::new(),
            None => with_value(&["-d", "{}"], &body),
        };
        self.flags.extend(words);
    }
}

impl OtherTool {
    /// Where its first word stands that is neither a flag nor the value of one.
    fn first_operand(&'static self, words: &[String]) -> Option<usize> {
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let next = words.get(at + 1).map(String::as_str);
            at += match self.read(word, next) {
                Ok(TypedWord::Operand) => return Some(at),
                Ok(TypedWord::Flags { takes_next, .. }) => 1 + usize::from(takes_next),
                Err(_) => 1,
            };
        }
        None
    }

    /// What it sends as `Accept-Encoding` though nobody asked for that.
    fn asks_for(&'static self, words: &[String]) -> Option<&'static str> {
        match self.compression {
            Compression::Always(encodings) => Some(encodings),
            Compression::Unless(flag, encodings) => {
                (!self.has_typed(flag, words)).then_some(encodings)
            }
            Compression::Never | Compression::With(..) => None,
        }
    }

    /// Whether these words of ours are a load for which a tool in Go asks for no compression: its
    /// library does not with HEAD and for a part of a body.
    fn asks_for_whole_bodies(&self, words: &[String]) -> bool {
        let is_head = value_behind(words, "-m").is_some_and(|method| method == "HEAD");
        let is_range = |word: &String| word.to_ascii_lowercase().starts_with("range:");
        self.spelling == Spelling::Go && (is_head || words.iter().any(is_range))
    }

    /// Some of its flags that ours are called otherwise: ` (-z is --for, …)`.
    fn examples(&self) -> String {
        const MOST: usize = 3;
        let mut examples: Vec<String> = Vec::new();
        for flag in self.flags {
            let Counterpart::Words([ours, ..]) = &flag.ours else { continue };
            let name = flag.shown_name(self.spelling);
            let example = format!("{name} is {ours}");
            let is_new = ours.starts_with('-') && name != *ours && !examples.contains(&example);
            if is_new && examples.len() < MOST {
                examples.push(example);
            }
        }
        if examples.is_empty() { String::new() } else { format!(" ({})", examples.join(", ")) }
    }

    /// Whether its flag of that name is in the line.
    fn has_typed(&'static self, name: &str, words: &[String]) -> bool {
        let next = |at: usize| words.get(at + 1).map(String::as_str);
        words.iter().enumerate().any(|(at, word)| match self.read(word, next(at)) {
            Ok(TypedWord::Flags { flags, .. }) => flags.iter().any(|one| one.flag.is_called(name)),
            Ok(TypedWord::Operand) | Err(_) => false,
        })
    }
}

/// Whether a header among these words says which encodings of a response are accepted.
fn says_encoding(words: &[String]) -> bool {
    words.iter().any(|word| word.to_ascii_lowercase().contains("accept-encoding:"))
}

/// Our words that accept these encodings of a response.
fn accepting(encodings: &str) -> [String; 2] {
    ["-H".to_owned(), format!("Accept-Encoding: {encodings}")]
}

/// `-d 10s`, which may be a body, but is a time in other tools.
fn is_time_for_text(typed: &TypedFlag) -> bool {
    let TypedFlag { flag, typed_value, .. } = typed;
    let is_letter = typed.name.len() == 2;
    is_letter && matches!(flag.takes, Takes::Body | Takes::Text) && is_number_or_time(typed_value)
}

/// Our words of a flag with its value for curl, where `@FILE` is a file.
fn with_body_or_file(parts: &[&str], value: &str) -> Vec<String> {
    let Some(file) = value.strip_prefix('@') else { return with_value(parts, value) };
    let of_file: Vec<&str> =
        parts.iter().map(|part| if *part == "-d" { "-D" } else { part }).collect();
    with_value(&of_file, file)
}

/// A line of ours to paste.
#[derive(Debug)]
pub(crate) struct PastedLine {
    /// What is wrong with what was typed.
    pub(crate) refusal: String,
    /// The words of the line, without the program.
    pub(crate) words: Vec<String>,
    /// What it does otherwise, the most consequential first.
    pub(crate) notes: Vec<String>,
}

/// What to say of a command line of another tool: `refusal` is what is wrong with it, `beside` the
/// words of ours that stand beside `theirs`, `whole` is longtail.
///
/// There are several lines where k6's script has several scenarios.
///
/// # Errors
/// Where it has no counterpart.
pub(crate) fn answer(
    whole: &Command,
    tool: &'static OtherTool,
    refusal: &str,
    beside: &[String],
    theirs: &[String],
) -> Result<Vec<PastedLine>, Mistake> {
    if let Some(asked) = asked_of(tool, theirs) {
        return Err(wrong(asked));
    }
    let theirs = &without_subcommand(tool, theirs)?;
    if tool.name != "k6" {
        let settings = Settings::default();
        return Ok(vec![line_for(whole, tool, refusal, beside, theirs, settings)?]);
    }
    let settings = k6_settings(tool, theirs, None);
    let scenarios = settings.scenarios.clone();
    if scenarios.is_empty() {
        return Ok(vec![line_for(whole, tool, refusal, beside, theirs, settings)?]);
    }
    let mut lines = Vec::new();
    for (at, ScenarioStart { name, when }) in scenarios.iter().take(MOST_SCENARIOS).enumerate() {
        let settings = k6_settings(tool, theirs, Some(name));
        let name = quoted(name);
        let refusal = match at {
            0 => format!(
                "{refusal}: its {} scenarios are as many loads, each in a shell of its own; for {name}, {when}",
                scenarios.len()
            ),
            _ => format!("for {name}, {when}"),
        };
        let mut line = line_for(whole, tool, &refusal, beside, theirs, settings)?;
        // What was said of a line before is so of this one.
        line.notes.retain(|note| !lines.iter().any(|it: &PastedLine| it.notes.contains(note)));
        lines.push(line);
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

/// One line, of which k6's environment and script say `settings`.
fn line_for(
    whole: &Command,
    tool: &'static OtherTool,
    refusal: &str,
    beside: &[String],
    theirs: &[String],
    settings: Settings,
) -> Result<PastedLine, Mistake> {
    let load = load_of(whole);
    let script = script_of(tool, theirs);
    let theirs = &[&settings.words, theirs].concat();
    let theirs =
        &if settings.leaves_out_rps { without_flag(tool, theirs, "rps") } else { theirs.clone() };
    let mut found = translate(tool, load, theirs, UnknownFlags::LeftOut).map_err(wrong)?;
    found.harmless.extend(settings.harmless);
    found.differs.extend(settings.differs);
    found.flags.extend(settings.ours);
    found.count_requests_of_iterations(settings.requests_each);
    found.note_requests_left_out(settings.requests_each, settings.requests_left_out);
    found.note_uncounted(settings.is_uncounted);
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
        found.operands = vec![url];
    }
    found.settle_counts(tool, beside);
    let typed = [&found.flags[..], beside].concat();
    let is_silent = says_encoding(&typed) || tool.asks_for_whole_bodies(&typed);
    found.accepts = tool.asks_for(theirs).filter(|_| !is_silent);
    found.encode_spaces();
    let words = found.whole_line(whole, tool, beside);
    check_requests_file(whole, &words).map_err(|why| wrong(format!("{refusal}: {why}")))?;
    found.note_missing_files(&words);
    found.note_too_few_requests(&words);
    found.note_lateness(tool, theirs, &words);
    if let Some(flag) = tool.redirects
        && !tool.has_typed(flag, theirs)
        && !settings.follows_nothing
    {
        found.habits.push(format!("{} follows redirects, ours does not", tool.name));
    }
    found.note_unasked(tool, beside, &words);
    // A URL in the place of the script leaves nothing to say of one.
    if let UrlPlace::Script(_) = tool.url
        && script.as_deref().is_none_or(|word| found.operands != [word])
    {
        let said = of_script(script.as_deref(), &words);
        if write_unknown(&words).is_some() || settings.not_taken.is_none() {
            found.to_fill.push(said);
        } else {
            found.harmless.push(said);
        }
        match settings.not_taken {
            Some(what) if what.is_empty() => {}
            Some(what) => found.left_out.push(format!("not taken: {}", listed(&what))),
            None => found.harmless.push(OF_SCRIPT.to_owned()),
        }
    }
    if words.windows(2).any(|pair| {
        ["-d", "--data-raw"].contains(&pair[0].as_str())
            && pair[1] != BODY
            && masked_body(&pair[1]) == SECRET
    }) {
        found.to_fill.push(
            "a body is shown only if it is JSON, XML or a form, with no secret in it".to_owned(),
        );
    }
    // Before a line that measures something else.
    let without = match &found.impossible[..] {
        [] => String::new(),
        [flag] => format!(", and {flag} is left out below"),
        flags => format!(", and {} are left out below", listed(flags)),
    };
    Ok(PastedLine { refusal: format!("{refusal}{without}"), words, notes: found.notes() })
}

/// The most notes below a line of what is lost or to be done; what is less important stands together
/// in the last one. What changes little, or is so in nearly every line, is one more.
const MOST_NOTES: usize = 3;

impl Translation {
    /// What is said below our line, the most consequential first.
    fn notes(&self) -> Vec<String> {
        // Of a flag that is given twice.
        let once = |kinds: &[&Vec<String>]| {
            let mut notes: Vec<String> = Vec::new();
            for note in kinds.iter().copied().flatten() {
                if !notes.contains(note) {
                    notes.push(note.clone());
                }
            }
            notes
        };
        let mut notes = once(&[&self.fails, &self.to_fill, &self.left_out, &self.differs]);
        if notes.len() > MOST_NOTES {
            let others = notes.split_off(MOST_NOTES - 1).join("; ");
            notes.push(others);
        }
        let minor = once(&[&self.harmless, &self.habits]).join("; ");
        notes.extend(Some(minor).filter(|minor| !minor.is_empty()));
        notes
    }

    /// A tool that goes on until it is interrupted, where ours ends.
    fn note_endless(&mut self, tool: &'static OtherTool, theirs: &[String]) {
        let ends: &[&str] = match tool.name {
            "vegeta" => &["duration"],
            "siege" => &["t", "r"],
            "locust" => &["t"],
            _ => return,
        };
        if !ends.iter().any(|flag| tool.has_typed(flag, theirs)) {
            self.differs.push(format!(
                "without -{} {} goes on for ever; ours ends after 10 s unless --for says otherwise",
                ends.join(" or -"),
                tool.name
            ));
        }
    }

    /// Expectations that this number of requests cannot show, so that our line ends with exit code
    /// 1 where the other tool's ends with 0.
    fn note_too_few_requests(&mut self, words: &[String]) {
        let number = |flag: &str| value_behind(words, flag)?.parse::<u64>().ok();
        let time = |flag: &str| value_behind(words, flag)?.parse::<Nanos>().ok();
        let rate = value_behind(words, "--rate");
        let rate = rate.and_then(|rate| rate.trim_end_matches("/s").parse::<f64>().ok());
        // With pauses a connection sends at most one request a pause.
        let per_s = match (rate, number("-c"), time("--think")) {
            (Some(rate), _, _) => Some(rate),
            (None, Some(users), Some(think)) if think > Nanos::ZERO => {
                Some(users as f64 / think.as_secs_f64())
            }
            _ => None,
        };
        let by_time = per_s.zip(time("--for"));
        let requests = match (number("-n"), by_time) {
            (Some(requests), _) => requests,
            (None, Some((per_s, length))) => (per_s * length.as_secs_f64()) as u64,
            (None, None) => return,
        };
        let expected = words.windows(2).filter(|pair| pair[0] == "--expect").map(|pair| &pair[1]);
        for expected in expected {
            let Ok(Objective { figure: ObjectiveFigure::ResponseTime(quantile), .. }) =
                expected.parse()
            else {
                continue;
            };
            let unknown = Interval {
                quantile,
                inflation: None,
                low: None,
                high: None,
                without_generator: None,
            };
            let Some(needed) = unknown.responses_needed(requests, None, 1.0) else { continue };
            let enough = match by_time.filter(|_| number("-n").is_none()) {
                // Responses take time, too, and what is near the least may not be enough.
                Some((per_s, _)) => {
                    format!("--for={}s", (1.5 * needed as f64 / per_s).ceil())
                }
                None => format!("-n {}", requests * needed.div_ceil(requests.max(1))),
            };
            self.fails.push(format!(
                "{requests} responses cannot show {expected} (exit code 1): {enough} can"
            ));
        }
    }

    /// What becomes of requests for which no connection is free when they are due: most tools send
    /// them late and forget since when they waited.
    fn note_lateness(&mut self, tool: &'static OtherTool, theirs: &[String], words: &[String]) {
        let is_open = words.iter().any(|word| word == "--rate");
        let note = match tool.name {
            "vegeta" if is_open && tool.has_typed("max-workers", theirs) => {
                "with all -max-workers busy, vegeta's times count from the sending, ours from the due time"
            }
            "oha" if is_open && !tool.has_typed("latency-correction", theirs) => {
                "oha's times count from the sending (without --latency-correction), ours from the due time"
            }
            _ => return,
        };
        self.differs.push(note.to_owned());
    }

    /// What a tool sends unasked, and a server may answer otherwise without: the method of a body,
    /// and headers. `words` is our line, `beside` are words of ours in it that were typed.
    fn note_unasked(&mut self, tool: &OtherTool, beside: &[String], words: &[String]) {
        let typed = [&self.flags[..], beside].concat();
        let has = |words: &[String], word: &str| words.iter().any(|one| one == word);
        if has(words, "GET") && !has(&typed, "GET") {
            self.habits.push(format!("{} sends GET unless -m says otherwise", tool.name));
        }
        let has_body = ["-d", "--data-raw", "-D"].iter().any(|flag| has(words, flag));
        if !has_body {
            return;
        }
        let encodings = self.accepts.map(|_| "asks for compressed responses (Accept-Encoding)");
        let is_unasked = has(words, "-T") && !has(&typed, "-T");
        let own_type = match tool.own_type {
            OwnType::OfBodies(name) if is_unasked => Some(format!("calls a body {name} (-T)")),
            OwnType::OfAll(name) if is_unasked => Some(format!("calls every request {name} (-T)")),
            OwnType::None | OwnType::OfBodies(_) | OwnType::OfAll(_) => None,
        };
        let unasked: Vec<String> =
            encodings.map(str::to_owned).into_iter().chain(own_type).collect();
        if !unasked.is_empty() {
            self.habits.push(format!("{} itself {}", tool.name, listed(&unasked)));
        }
    }
}

impl Translation {
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

/// What the environment and a script say to a tool.
#[derive(Default)]
struct Settings {
    /// Its flags that say the same.
    words: Vec<String>,
    /// Flags of ours for what no flag of it says.
    ours: Vec<String>,
    url: Option<String>,
    /// What cannot be done, and why not.
    left_out: Vec<String>,
    /// What ours does otherwise.
    differs: Vec<String>,
    /// Where values come from.
    harmless: Vec<String>,
    /// Whether its script has it follow no redirect.
    follows_nothing: bool,
    /// How many requests an iteration of its script sends; 0 if that is not known.
    requests_each: u32,
    /// How many more it sends that are not taken.
    requests_left_out: u32,
    /// Whether k6's ceiling of a rate is no rate of ours.
    leaves_out_rps: bool,
    /// Why that is not known: how they are sent.
    is_uncounted: Option<&'static str>,
    /// What its script has, and no flag here says; `None` if the script is not read.
    not_taken: Option<Vec<String>>,
    /// The scenarios of its script, if there are several and its line has no length.
    scenarios: Vec<ScenarioStart>,
}

/// What variables of the environment and the options of its script say to k6, where no flag of its
/// line says it. `scenario`: the one of several that is meant.
fn k6_settings(tool: &'static OtherTool, line: &[String], scenario: Option<&str>) -> Settings {
    let mut settings = Settings::default();
    for (variable, flag) in K6_SETTINGS {
        let Some(value) = std::env::var(variable).ok().filter(|value| !value.is_empty()) else {
            continue;
        };
        let Some(known) = tool.flags.iter().find(|known| known.is_called(flag)) else { continue };
        if tool.has_typed(flag, line) || !known.takes_value() && value != "true" {
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
        let text = script_of(tool, line).and_then(|script| text_of(Path::new(&script)));
        let environment = given_environment(tool, line);
        let given = |name: &str| {
            let typed = environment.iter().rfind(|(typed, _)| typed == name);
            typed.map(|(_, value)| value.clone()).or_else(|| std::env::var(name).ok())
        };
        let script = text.and_then(|text| K6Script::in_text(&text, &given, scenario));
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
        let said = [&self.words[..], line].concat();
        let is_said = |flag: &str| tool.has_typed(flag, &said);
        let has_length = ["duration", "iterations", "stage"].into_iter().any(is_said);
        let runs_once =
            script.runs_once && script.shape.is_none() && !has_length && !is_said("vus");
        let mut taken = Vec::new();
        for (flag, value) in script.flags {
            let is_length = ["duration", "iterations"].contains(&flag);
            // k6 ignores `vus` in a script that it runs once.
            if is_said(flag) || is_length && has_length || flag == "vus" && runs_once {
                continue;
            }
            self.words.push(format!("--{flag}"));
            if value.is_empty() {
                taken.push(flag.to_owned());
            } else {
                taken.push(format!("{flag} {}", masked_word(&value)));
                self.words.push(value);
            }
        }
        if runs_once {
            self.words.extend(["--iterations", "1"].map(str::to_owned));
            self.harmless.push("k6 runs a script once unless it is told otherwise".to_owned());
        }
        if (script.has_one_user || runs_once) && !is_said("vus") {
            self.words.extend(["--vus", "1"].map(str::to_owned));
        }
        if !taken.is_empty() {
            self.harmless.push(format!("its options say {}", listed(&taken)));
        }
        let mut is_open = false;
        let mut iterations = None;
        if let Some(shape) = script.shape.filter(|_| !has_length) {
            is_open = shape.is_open;
            iterations = shape.iterations;
            self.differs.extend(shape.said);
            let mut words = shape.words;
            if is_said("vus") {
                words = without_pair(words, "-c");
            }
            self.ours.extend(words);
        }
        let pauses = std::mem::take(&mut script.pauses);
        let rate = RateOfScript { each: script.requests_each.max(1), is_open, iterations };
        self.take_pauses(tool, line, pauses, &rate, &mut script.not_taken);
        if !has_length {
            self.scenarios = script.scenarios;
        }
        if !is_said("no-thresholds") {
            if scenario.is_some() && !script.thresholds.is_empty() {
                let said = "k6's thresholds are of all its scenarios, unless they name one; --expect is of this load";
                self.differs.push(said.to_owned());
            }
            self.ours.extend(script.thresholds);
        }
        if script.request.iter().any(|word| word == "--check") {
            let said =
                "a failed --check is exit code 1; in k6 only a threshold on checks fails a run";
            self.differs.push(said.to_owned());
        }
        let folder = script_of(tool, line);
        let folder = folder.as_deref().map(Path::new).and_then(Path::parent);
        if let (Some(folder), Some(at)) =
            (folder, script.request.iter().position(|word| word == "-D"))
            && let Some(file) = script.request.get_mut(at + 1)
        {
            *file = folder.join(&*file).display().to_string();
        }
        self.ours.extend(script.request);
        self.url = script.url;
        self.follows_nothing = script.follows_nothing;
        self.requests_each = script.requests_each;
        self.requests_left_out = script.requests_left_out;
        self.is_uncounted = script.is_uncounted;
        self.not_taken = Some(script.not_taken);
    }
}

/// How often iterations of a script begin.
struct RateOfScript {
    /// How many requests an iteration sends.
    each: u32,
    /// Whether they come at a rate, however slow the server is.
    is_open: bool,
    /// That rate, if it is plain.
    iterations: Option<IterationRate>,
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
        not_taken: &mut Vec<String>,
    ) {
        let &RateOfScript { each, is_open, iterations } = rate;
        let all = [&self.words[..], line].concat();
        let ceiling = value_typed(tool, &all, "rps").and_then(|rps| rps.parse::<f64>().ok());
        let ceiling = ceiling.filter(|rps| *rps > 0.0);
        let users = value_typed(tool, &all, "vus");
        let users = users.or_else(|| value_behind(&self.ours, "-c"));
        let most = match &pauses {
            Pauses::Known { in_all, .. } => users
                .and_then(|users| users.parse::<f64>().ok())
                .map(|users| users * f64::from(each) / in_all.as_secs_f64()),
            Pauses::None | Pauses::Unknown => None,
        };
        match (pauses, ceiling) {
            (pauses, Some(ceiling)) if is_open => {
                self.limit_rate(ceiling, iterations.map(|rate| rate.per_s * f64::from(each)));
                self.note_pauses_at_rate(&pauses, iterations);
            }
            (Pauses::None, _) => {}
            (pauses, _) if is_open => self.note_pauses_at_rate(&pauses, iterations),
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
                let what = "its sleep(): without --think the load is many times as high";
                not_taken.insert(0, what.to_owned());
            }
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
            _ => self.left_out.push(format!(
                "its rps is left out: k6 makes at most {shown} requests a second, whatever its rate"
            )),
        }
    }

    fn note_pauses_at_rate(&mut self, pauses: &Pauses, iterations: Option<IterationRate>) {
        match pauses {
            Pauses::None => {}
            Pauses::Known { in_all, .. } => {
                self.differs.push(pause_at_rate(Some(*in_all), iterations));
            }
            Pauses::Unknown => self.differs.push(pause_at_rate(None, iterations)),
        }
    }
}

/// What becomes of pauses at a rate, which delay no request. `pauses`: those of an iteration,
/// `iterations`: how many a second begin, and the most virtual users for them.
fn pause_at_rate(pauses: Option<Nanos>, iterations: Option<IterationRate>) -> String {
    if let (Some(pauses), Some(IterationRate { per_s: rate, users })) = (pauses, iterations) {
        let most = f64::from(users) / pauses.as_secs_f64();
        if most < rate {
            return format!(
                "its sleep() holds each of {users} VUs for {pauses}, so that k6 begins at most {} of its {} iterations a second and drops the others; ours sends all",
                in_five_digits(most),
                in_five_digits(rate)
            );
        }
    }
    "its sleep() only holds a VU: at a rate it delays no request, and is left out".to_owned()
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
fn value_typed(tool: &'static OtherTool, line: &[String], name: &str) -> Option<String> {
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
fn is_no_time(value: &str) -> bool {
    value.parse::<Nanos>().is_ok_and(|time| time == Nanos::ZERO)
}

/// A tool's line without a flag of it.
fn without_flag(tool: &'static OtherTool, line: &[String], name: &str) -> Vec<String> {
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

/// The value behind a flag of ours.
fn value_behind(words: &[String], flag: &str) -> Option<String> {
    words.windows(2).rfind(|pair| pair[0] == flag).map(|pair| pair[1].clone())
}

/// Words without a flag and its value.
fn without_pair(mut words: Vec<String>, flag: &str) -> Vec<String> {
    if let Some(at) = words.iter().position(|word| word == flag) {
        words.drain(at..(at + 2).min(words.len()));
    }
    words
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

/// What to type for `vegeta report`, `plot` and `encode`, whose name is `command`.
pub(crate) fn of_vegetas_result(command: &str, words: &[String]) -> String {
    let found = VegetasReport::of(words);
    let ours = found.line_of_ours(command);
    match found.file {
        Some(file) if file.ends_with(".study.json") => {
            format!("type longtail {ours} {}", quoted(file))
        }
        Some(file) => {
            let file = quoted(file);
            format!(
                "{file} is no run of longtail, which reads only what vegeta report prints: type vegeta report {file} | longtail audit -, or longtail {ours} for the last run of longtail itself"
            )
        }
        None => format!(
            "longtail audit FILE checks what vegeta report prints; for the last run of longtail itself, type longtail {ours}"
        ),
    }
}

/// What `vegeta report`, `plot` or `encode` are told.
#[derive(Default)]
struct VegetasReport<'w> {
    /// `-type` of report, `-to` of encode.
    format: &'w str,
    output: Option<&'w str>,
    /// The first file of results.
    file: Option<&'w str>,
}

impl<'w> VegetasReport<'w> {
    fn of(words: &'w [String]) -> VegetasReport<'w> {
        /// Flags that take a value.
        const FLAGS: [&str; 9] =
            ["type", "to", "output", "o", "every", "buckets", "title", "threshold", "cpus"];
        let mut found = VegetasReport::default();
        let mut rest = words.iter().map(String::as_str);
        while let Some(word) = rest.next() {
            let Some(flag) = word.strip_prefix('-').filter(|flag| !flag.is_empty()) else {
                found.file = found.file.or(Some(word));
                continue;
            };
            let flag = flag.trim_start_matches('-');
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None if FLAGS.contains(&flag) => (flag, rest.next()),
                None => (flag, None),
            };
            match name {
                "type" | "to" => found.format = value.unwrap_or_default(),
                "output" | "o" => found.output = value,
                _ => {}
            }
        }
        found
    }

    /// Our words for the same.
    fn line_of_ours(&self, command: &str) -> String {
        match (command, self.format) {
            ("plot", _) => "report --html report.html".to_owned(),
            ("encode" | "dump", "csv") => "report --csv".to_owned(),
            ("encode" | "dump", _) | (_, "json") => "report --json".to_owned(),
            (_, format) if format.starts_with("hist") => "report --style hey".to_owned(),
            (_, "hdrplot") => "report -o FILE.hdr".to_owned(),
            _ => match self.output {
                Some(file) => format!("report -o {}", quoted(file)),
                None => "report".to_owned(),
            },
        }
    }
}

/// Whether these words behind `report` are vegeta's, and not ours.
pub(crate) fn are_vegetas_report(words: &[String]) -> bool {
    let flags = ["type", "every", "buckets", "output"];
    words.iter().any(|word| {
        let name = word.split('=').next().unwrap_or(word);
        let bare = name.trim_start_matches('-');
        name.starts_with('-')
            && flags.contains(&bare)
            && (bare != "output" || !name.starts_with("--"))
    })
}

/// Finds the URL of a line that has none; `beside` are words of ours.
fn find_url(tool: &OtherTool, beside: &[String], found: &mut Translation) {
    match tool.url {
        UrlPlace::Word => {
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

/// Words that stand in a line for what is not known, what each is, and a value that may stand there.
const UNKNOWN: [(&str, &str, &str); 7] = [
    (URL, "URL", "http://localhost/"),
    (VUS, "number of virtual users", "1"),
    (RATE, "rate", "1"),
    (DURATION, "duration", "1s"),
    (METHOD, "method", "GET"),
    (BODY, "body", "a=1"),
    (PATH, "path", "a"),
];

/// Whether a word of a line has this one for something unknown: `RATE`, `RATE,RATE`.
pub(crate) fn stands_for(word: &str, unknown: &str) -> bool {
    match unknown {
        PATH => synonyms::is_url(word) && word.ends_with("/PATH"),
        _ => word.split(',').any(|part| part == unknown),
    }
}

/// A line with some values in the place of words that stand for those that only the user knows.
pub(crate) fn with_values(line: &[String]) -> Vec<String> {
    let value = |word: &String| {
        let unknown = UNKNOWN.into_iter().find(|(unknown, _, _)| stands_for(word, unknown));
        unknown.map_or_else(|| word.clone(), |(unknown, _, value)| word.replace(unknown, value))
    };
    line.iter().map(value).collect()
}

/// To write what is not known in the place of the words for it; `None` if a line has none of them.
fn write_unknown(words: &[String]) -> Option<String> {
    let is_there = |unknown: &str| words.iter().any(|word| stands_for(word, unknown));
    let unknown: Vec<(&str, &str, &str)> =
        UNKNOWN.into_iter().filter(|(word, _, _)| is_there(word)).collect();
    if unknown.is_empty() {
        return None;
    }
    let what: Vec<String> = unknown.iter().map(|(_, what, _)| (*what).to_owned()).collect();
    let places: Vec<String> = unknown.iter().map(|(word, _, _)| (*word).to_owned()).collect();
    Some(format!("write its {} in the place of {}", listed(&what), listed(&places)))
}

/// What to say of k6's script, which is not run. `words`: our line, in which words stand for what is
/// not known of it.
fn of_script(script: Option<&str>, words: &[String]) -> String {
    let first = match script {
        None => "its script is not run".to_owned(),
        Some("-") => "the script on stdin is not run".to_owned(),
        Some(script) if script.contains("://") || Path::new(script).exists() => {
            format!("{} is not run", quoted(script))
        }
        Some(script) => format!("there is no file {}, and it would not be run", quoted(script)),
    };
    match write_unknown(words) {
        Some(write) => format!("{first}: {write}"),
        None => first,
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
    let refusal = format!("load has no {flag}");
    let Some(tool) = OtherTool::of(name) else {
        let known = TOOLS.map(|tool| tool.name).join(" ");
        return Some(Err(wrong(format!(
            "{refusal}: command lines of these tools are known here: {known}"
        ))));
    };
    let mut beside = before.to_vec();
    beside.drain(at..(at + flag_words).min(before.len()));
    if let Some(command) = beside.iter().position(|word| word == "load") {
        beside.remove(command);
    }
    let theirs = after.get(1..).unwrap_or_default();
    Some(answer(whole, tool, &refusal, &beside, theirs))
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

/// How a tool would take a line that does not name it.
pub(crate) struct OthersReading {
    pub(crate) tool: &'static OtherTool,
    /// `load` and our words.
    pub(crate) words: Vec<String>,
    /// What they do otherwise, the most consequential first.
    notes: Vec<String>,
    /// Whether something cannot be done.
    leaves_out: bool,
    /// Whether none of its flags could be taken.
    asks_nothing: bool,
    /// Whether another tool more probably means something by a value of it.
    pub(crate) misses_value: bool,
    /// What is asked for, whatever words say it, without the tool's defaults.
    meaning: String,
}

/// Flags that as a rule only lines of one tool have together: threads, connections, a duration.
const OWN_FLAGS: [(&str, [&str; 3]); 2] = [("wrk", ["t", "c", "d"]), ("h2load", ["t", "c", "D"])];

/// Whether a line has all flags that together are a tool's own.
fn is_surely(tool: &'static OtherTool, words: &[String]) -> bool {
    let own = OWN_FLAGS.iter().find(|(name, _)| *name == tool.name);
    own.is_some_and(|(_, flags)| flags.iter().all(|flag| tool.has_typed(flag, words)))
}

/// How tools would take these words, which are no name of a tool or command but flags and a URL.
/// Lines that mean the same are one reading, that of the first tool. If there are readings in which
/// everything can be done, only these are returned.
pub(crate) fn readings(whole: &Command, words: &[String]) -> Vec<OthersReading> {
    let mut readings: Vec<OthersReading> = Vec::new();
    for tool in TOOLS {
        let Some(reading) = reading(whole, tool, words, UnknownFlags::Refused) else { continue };
        if !readings.iter().any(|known| known.meaning == reading.meaning) {
            readings.push(reading);
        }
    }
    if readings.is_empty() {
        let sure = TOOLS.into_iter().find(|tool| is_surely(tool, words));
        let reading = sure.and_then(|tool| reading(whole, tool, words, UnknownFlags::LeftOut));
        return reading.into_iter().collect();
    }
    if let Some(sure) = readings.iter().position(|reading| is_surely(reading.tool, words)) {
        return vec![readings.swap_remove(sure)];
    }
    if readings.iter().any(|reading| !reading.leaves_out) {
        readings.retain(|reading| !reading.leaves_out);
    }
    if readings.iter().any(|reading| !reading.misses_value) {
        readings.retain(|reading| !reading.misses_value);
    }
    if readings.iter().any(|reading| reading.tool.makes_load) {
        readings.retain(|reading| reading.tool.makes_load);
    }
    // A reading that leaves out everything but the URL is none.
    readings.retain(|reading| !reading.leaves_out || !reading.asks_nothing);
    readings
}

fn reading(
    whole: &Command,
    tool: &'static OtherTool,
    words: &[String],
    unknown: UnknownFlags,
) -> Option<OthersReading> {
    let mut found = translate(tool, load_of(whole), words, unknown).ok()?;
    if let UrlPlace::Targets(_) = tool.url {
        find_url(tool, &[], &mut found);
    }
    found.encode_spaces();
    if found.flags.iter().any(|flag| flag == "--requests") {
        found.operands.retain(|word| word != URL);
    }
    if found.operands.len() > 1 || !found.operands.iter().all(|word| is_url(word)) {
        return None;
    }
    let load = ["load".to_owned()];
    let translated = [&load[..], &found.flags, &found.operands].concat();
    let meaning = meaning(whole, &translated)?;
    let asks_nothing = found.flags.is_empty();
    // One request, as curl sends, is not what whoever types `load` wants; and lines of k6 and
    // vegeta have no URL.
    let words = if tool.makes_load && tool.url == UrlPlace::Word {
        found.settle_counts(tool, &[]);
        found.whole_line(whole, tool, &[])
    } else {
        translated
    };
    let notes = found.notes();
    let leaves_out = !found.left_out.is_empty();
    let misses_value = found.misses_value;
    Some(OthersReading { tool, words, notes, leaves_out, asks_nothing, misses_value, meaning })
}

impl OthersReading {
    /// Whether it asks for the same as these words of ours.
    pub(crate) fn means(&self, whole: &Command, words: &[String]) -> bool {
        meaning(whole, words).is_some_and(|ours| ours == self.meaning)
    }
}

/// How the tool takes these words that alone has a long flag of them, such as oha's `--no-tui`;
/// `None` if there is no such flag, or that tool does not have the others.
pub(crate) fn reading_of_owner(whole: &Command, words: &[String]) -> Option<OthersReading> {
    let load = load_of(whole);
    let owner = words.iter().find_map(|word| owner_of(load, word))?;
    reading(whole, owner, words, UnknownFlags::Refused)
}

/// The only tool that has this long flag; `None` if it is one of `load`, too.
fn owner_of(load: &Command, word: &str) -> Option<&'static OtherTool> {
    let name = word.trim_start_matches('-').split('=').next()?;
    if !word.starts_with('-') || name.len() < 3 || synonyms::has(load, &format!("--{name}")) {
        return None;
    }
    let mut owners = TOOLS.into_iter().filter(|tool| {
        let is_second_wrk = tool.name == "wrk2";
        tool.makes_load && !is_second_wrk && tool.flags.iter().any(|flag| flag.is_called(name))
    });
    let first = owners.next()?;
    if owners.next().is_none() { Some(first) } else { None }
}

/// What a load asks for, whatever words say it; `None` if it is not understood.
fn meaning(whole: &Command, words: &[String]) -> Option<String> {
    let load = parsed_load(whole, words.iter())?;
    if unknown_words::check(load_of(whole), words).is_some() {
        return None;
    }
    let mut values: Vec<String> = load
        .ids()
        .filter(|id| load.value_source(id.as_str()) == Some(ValueSource::CommandLine))
        .filter_map(|id| {
            let values = load.try_get_raw(id.as_str()).ok()??;
            let values: Vec<String> =
                values.map(|value| in_one_spelling(&value.to_string_lossy())).collect();
            Some(format!("{id}={values:?}"))
        })
        .collect();
    values.sort_unstable();
    Some(values.join(" "))
}

/// A value as others may be compared with it: `30` and `30s` are one time.
fn in_one_spelling(value: &str) -> String {
    match value.parse::<Nanos>() {
        Ok(time) => time.to_string(),
        Err(_) => value.to_owned(),
    }
}

/// The readings of a line without a command that differ from what it means here; none if it means
/// nothing here.
pub(crate) fn other_readings(whole: &Command, words: &[String]) -> Vec<OthersReading> {
    let load: Vec<String> = ["load".to_owned()].into_iter().chain(words.iter().cloned()).collect();
    let Some(ours) = meaning(whole, &load) else { return Vec::new() };
    let mut all = readings(whole, words);
    all.retain(|reading| reading.tool.makes_load && !reading.leaves_out && reading.meaning != ours);
    all
}

/// The most readings of one line that a message has.
const MOST_READINGS: usize = 3;

/// What to type for a line that only other tools take as it is; `None` if none does. `shown` makes
/// text of a line of ours.
pub(crate) fn say_readings(
    readings: &[OthersReading],
    shown: impl Fn(&[String]) -> String,
) -> Option<LinesToType> {
    let mut lines = Vec::new();
    for (at, reading) in readings.iter().take(MOST_READINGS).enumerate() {
        let whose = format!("as {}'s line", reading.tool.name);
        let before = if at == 0 { format!("{whose}, type ") } else { format!("; {whose}, ") };
        let notes = reading.notes.clone();
        lines.push(LineToType { before, line: shown(&reading.words), notes });
    }
    if lines.is_empty() { None } else { Some(LinesToType { lines, rest: String::new() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::definition;

    fn line(tool: &str, beside: &str, theirs: &str) -> String {
        let words = |line: &str| shlex::split(line).unwrap();
        let tool = OtherTool::of(tool).unwrap();
        let answered = answer(&definition(), tool, "no", &words(beside), &words(theirs));
        match answered {
            Ok(lines) => {
                let [PastedLine { refusal, words, notes }] = &lines[..] else {
                    panic!("{lines:?}")
                };
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                let notes: Vec<String> = notes.iter().map(|note| format!("; {note}")).collect();
                format!("{refusal}: type longtail {}{}", words.join(" "), notes.concat())
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
            found.note_too_few_requests(&words);
            found.fails
        };
        let expected = ["50 responses cannot show p99 < 250ms (exit code 1): -n 400 can"];
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
        let said = answer(&definition(), tool, "no", &[], &theirs);
        let notes = said.map(|lines| lines[0].notes.clone()).unwrap_or_default();
        assert_eq!(notes.len(), 4);
        assert_eq!(notes[0], "put your URL in the place of URL");
        assert_eq!(notes[1], "hey's -h2 cannot be done here: longtail speaks HTTP/1.1 only");
        assert!(notes[2].starts_with("hey's -q waits"), "{}", notes[2]);
        let of_requests = notes[3].find("hey sends 50 of 52 requests").unwrap();
        assert!(of_requests < notes[3].find("hey follows redirects, ours does not").unwrap());
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
            assert_eq!(line("hey", "", theirs), format!("no: type longtail load {ours}{HEYS}"));
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
            let begins = said.starts_with(&format!("no: type longtail load {ours}"));
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
            assert!(said.contains(&format!(": type longtail load {ours}")), "{said}");
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
            assert_eq!(said, format!("no: type longtail load {ours}{HEYS}"));
        }
    }

    #[test]
    fn what_has_no_counterpart_is_named() {
        let said = line("wrk", "", "-c4 -d1s --latency http://h/");
        assert!(said.ends_with(" http://h/; --latency: percentiles are always printed"), "{said}");
        let said = line("hey", "", "-n 5 -z 1s -disable-compression http://h/");
        let notes = "; hey ignores -n beside -z; -disable-compression: no compressed response is asked for; hey follows redirects, ours does not";
        assert!(said.starts_with("no: type longtail load --for 1s"), "{said}");
        assert!(said.ends_with(notes), "{said}");
        assert!(line("wrk", "", "-s x.lua http://h/").contains("there is no file x.lua"));
        assert!(line("hey", "", "-Z http://h/").contains("-Z is no flag of hey"));
    }
}
