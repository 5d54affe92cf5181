//! Another tool's flags in our words, one after the other, and what has no meaning here.

use std::path::Path;

use clap::Command;
use judge::words::listed;
use model::Nanos;
use model::plan::quoted;
use model::secret::{is_number_or_time, masked_word};

use super::k6_settings::{is_no_time, value_typed};
use super::typed_flags::{TypedFlag, TypedWord, UnknownFlags, Unread, is_url, may_be_value};
use super::value_behind;
use crate::args::other_tools::flags::{
    BODY, Compression, Counterpart, KeepAlive, METHOD, NO_LUA, OtherTool, PATH, PAUSE, RATE,
    Spelling, Takes, URL, UrlPlace, in_five_digits, with_value,
};
use crate::args::other_tools::k6_script::Stages;
use crate::args::other_tools::script_file::text_of;
use crate::args::other_tools::synonyms;
use crate::args::other_tools::wrk_script::{COUNTED, WrkScript, with_arguments_of_init};

/// Identifiers of flags that choose what is printed, or have no layout of hey or wrk.
pub(super) const OTHER_LAYOUTS: [&str; 6] =
    ["style", "format", "markdown", "json", "csv", "generator"];

/// Identifiers of flags that give a body.
pub(super) const BODY_FLAGS: [&str; 3] = ["data", "data_raw", "body_file"];

/// Another tool's command line in our words.
#[expect(clippy::struct_excessive_bools, reason = "each is found or not, whatever the others are")]
#[derive(Default)]
pub(super) struct Translation {
    pub(super) flags: Vec<String>,
    /// The URL.
    pub(super) operands: Vec<String>,
    /// Why our line ends with exit code 1 where theirs ends with 0.
    pub(super) fails: Vec<String>,
    /// What is to be done before the line can be pasted.
    pub(super) to_fill: Vec<String>,
    /// Names of their flags that cannot be done.
    pub(super) impossible: Vec<String>,
    /// What of theirs cannot be done, and why not.
    pub(super) left_out: Vec<String>,
    /// What of a script is not taken, a line each where a sentence would be long.
    pub(super) lines_of_script: Vec<String>,
    /// What ours does otherwise.
    pub(super) differs: Vec<String>,
    /// Flags of theirs that change nothing here, and why; where a value comes from.
    pub(super) harmless: Vec<String>,
    /// What the tool does otherwise in nearly every line.
    pub(super) habits: Vec<String>,
    /// That it follows redirects, which stands last.
    pub(super) redirects: Option<String>,
    /// The path that wrk's script gives to its requests.
    pub(super) path_of_script: Option<String>,
    /// The headers of wrk's script, which take the place of those of its flags.
    pub(super) headers_of_script: Vec<String>,
    /// Whether the requests of wrk's script have no header of its flags.
    pub(super) has_own_headers: bool,
    /// Whether what stands behind wrk's URL is in its script's texts.
    pub(super) takes_arguments: bool,
    /// What to write in the place of PATH, if it gives them one that is not known.
    pub(super) unknown_path: Option<String>,
    /// siege's requests of each connection.
    pub(super) each_connection: Option<u64>,
    /// oha's time between bursts, and requests of each.
    pub(super) burst_delay: Option<Nanos>,
    pub(super) burst_size: Option<u32>,
    /// Whether the URL's place has a file of URLs.
    pub(super) has_file_of_urls: bool,
    /// Those of k6's line.
    pub(super) stages: Stages,
    /// Whether the flag that keeps connections was there.
    pub(super) keeps_connections: bool,
    /// The encodings of a response that the tool accepts unasked.
    pub(super) accepts: Option<&'static str>,
    /// Whether another tool more probably means something by a value: a short flag's value that
    /// changes nothing here, or a time that is taken for a text or a file.
    pub(super) misses_value: bool,
}

/// Reads a command line of another tool.
///
/// # Errors
/// One line, where a flag is not that tool's, or has a wrong value.
pub(super) fn translate(
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
                        let has_value = !matches!(tool.url, UrlPlace::Script(_))
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
    ours.leave_out_second(tool, load, words);
    Ok(ours)
}

/// Whether each line of a file is a path.
fn has_paths_only(file: &str) -> bool {
    let text = text_of(Path::new(file)).unwrap_or_default();
    let mut lines = text.lines().filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some() && lines.all(|line| line.starts_with('/') && !line.contains(' '))
}

impl Translation {
    pub(super) fn take(&mut self, tool: &'static OtherTool, typed: &TypedFlag, words: &[String]) {
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
            Counterpart::LuaScript => self.take_lua(tool, name, value, words),
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
    pub(super) fn join_bodies(&mut self, tool: &'static OtherTool, words: &[String]) {
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
    pub(super) fn note_missing_files(&mut self, words: &[String]) {
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
            self.differs
                .push(format!("vegeta refuses {name} {rate} without -max-workers: -c is 50 here"));
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
        if !self.impossible.iter().any(|known| known == name) {
            self.impossible.push(name.to_owned());
        }
        for stage in value.split(',') {
            let Some((length, connections)) = stage.split_once(':') else { continue };
            let Ok(length) = length.trim().parse::<Nanos>() else { continue };
            self.stages.push(connections.trim().parse().unwrap_or(0.0), length);
        }
    }

    /// wrk's script: its texts, and words for what only the user knows.
    /// `line` is all of wrk's, whose words behind the URL its script gets.
    fn take_lua(&mut self, tool: &'static OtherTool, name: &str, path: &str, line: &[String]) {
        let shown = quoted(path);
        let Some(text) = text_of(Path::new(path)) else {
            let words = ["-m", METHOD, "-d", BODY].map(str::to_owned);
            self.left_out.push(format!("{}'s {name} cannot be done here: {NO_LUA}", tool.name));
            self.flags.extend(words);
            return;
        };
        let arguments = tool.operands(line).into_iter().skip(1).collect::<Vec<_>>();
        let with_arguments = with_arguments_of_init(&text, &arguments);
        self.takes_arguments = with_arguments != text;
        let script = WrkScript::in_text(&with_arguments);
        let words = script.words();
        self.harmless.push(format!("{shown} is read, not run"));
        let mut not_taken = script.not_taken();
        if script.is_counted {
            self.to_fill.push(format!(
                "for {COUNTED} put the numbers of its path: the script counts them up, ours draws them at random"
            ));
        }
        if script.has_unknown_delay && tool.name == "wrk" {
            self.flags.extend(["--think", PAUSE].map(str::to_owned));
            self.to_fill.push(format!("for {PAUSE} put the mean of its delay(), such as 15ms"));
        } else if script.has_unknown_delay {
            not_taken.push("its delay(), which ours has in a closed loop only".to_owned());
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
            self.leave_out_of_script(&not_taken);
        }
        let headers = words.windows(2).filter(|pair| pair[0] == "-H").map(|pair| pair[1].clone());
        self.headers_of_script = headers.collect();
        self.has_own_headers = script.has_own_headers;
        self.flags.extend(words);
        let list = script.paths_file.as_deref().filter(|file| has_paths_only(file));
        if let Some(file) = list {
            self.flags.extend(["--requests", file].map(str::to_owned));
            self.path_of_script = Some("/".to_owned());
            self.differs.push(format!(
                "the paths of {} are sent in turn by all connections together, in wrk by each thread for itself",
                quoted(file)
            ));
            return;
        }
        self.path_of_script = script.path().map(str::to_owned);
        self.unknown_path = script.path_to_write;
    }

    /// Puts the path that wrk's script says in the place of the URL's. Where that is not known, the
    /// line does not load another one.
    fn end_path_of_script(&mut self) {
        let unknown = self.unknown_path.as_ref().map(|_| format!("/{PATH}"));
        let Some(path) = self.path_of_script.take().or(unknown) else { return };
        match self.operands.first_mut().filter(|url| is_url(url)) {
            Some(url) if url != URL => {
                let host = url.find("://").map_or(0, |at| at + "://".len());
                let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |at| host + at);
                *url = format!("{}{path}", &url[..end]);
                self.to_fill.extend(self.unknown_path.take());
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
            let is_of_script = |of_script: &String| name(of_script) == name(header);
            let is_left_out =
                self.has_own_headers && !header.to_ascii_lowercase().starts_with("host:");
            !self.headers_of_script.contains(header)
                && (is_left_out || self.headers_of_script.iter().any(is_of_script))
        };
        let pairs = self.flags.windows(2).enumerate();
        let replaced: Vec<usize> = pairs
            .filter(|(_, pair)| pair[0] == "-H" && is_replaced(&pair[1]))
            .map(|(at, _)| at)
            .collect();
        for at in replaced.into_iter().rev() {
            let header = self.flags.drain(at..at + 2).next_back().unwrap_or_default();
            let shown = name(&header).unwrap_or_default();
            self.harmless.push(if self.has_own_headers {
                format!("wrk does not send {shown} of -H: the headers of wrk.format take its place")
            } else {
                format!("its script's {shown} takes the place of the flag's")
            });
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
    pub(super) fn allow_bodies_outside_folder(&mut self) {
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
        if self.takes_arguments {
            return;
        }
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

    /// Has the few requests of a short run be sent in their order, where `--mix` would draw them at
    /// random: the command that writes them, to be piped into our line. `each`: how many an iteration
    /// sends; `url`: their host.
    pub(super) fn send_in_order(&mut self, each: Option<f64>, url: &str) -> Option<String> {
        /// With so many of each, those that are drawn are nearly as many.
        const MANY_OF_EACH: f64 = 50.0;
        let mix = value_behind(&self.flags, "--mix")?;
        let iterations = value_behind(&self.flags, "-n")?.parse::<f64>().ok()?;
        let requests: Vec<&str> = mix.split(", ").collect();
        // Of a list from which one is picked, k6 itself draws at random.
        let is_of_all = (each? - requests.len() as f64).abs() < f64::EPSILON;
        let is_short = is_of_all && iterations < MANY_OF_EACH;
        if !is_short || requests.len() < 2 {
            return None;
        }
        let target = |request: &&str| {
            let (method, path) = request.split_once(' ')?;
            let is_plain = path.starts_with('/') && !path.contains([' ', '{']) && path != "/PATH";
            let target = format!("{method} {}{path}", url.trim_end_matches('/'));
            let is_shown = method != METHOD && masked_word(&target) == target;
            (is_plain && is_shown).then(|| quoted(&target))
        };
        let targets: Option<Vec<String>> = requests.iter().map(target).collect();
        let Some(targets) = targets else {
            self.left_out.push(
                "in so short a run --mix may send one request more often than another: it draws them at random, where --requests FILE sends them in order"
                    .to_owned(),
            );
            return None;
        };
        self.take_values(&["--mix"]);
        self.flags.extend(["--requests", "-"].map(str::to_owned));
        Some(format!("printf '%s\\n' {}", targets.join(" ")))
    }

    /// k6 counts iterations, of which each sends `each` requests on average, if that is known and not
    /// one. `is_of_requests`: whether its rate is one of requests.
    pub(super) fn count_requests_of_iterations(&mut self, each: Option<f64>, is_of_requests: bool) {
        let Some(each) = each else { return };
        let counts = 1..self.flags.len();
        let is_count = |flag: &str| ["-n", "--reconnect-after"].contains(&flag);
        for at in counts.filter(|at| is_count(&self.flags[at - 1])).collect::<Vec<_>>() {
            let Ok(iterations) = self.flags[at].parse::<f64>() else { continue };
            self.flags[at] = (iterations * each).round().max(1.0).to_string();
        }
        let has = |flags: &[&str]| self.flags.iter().any(|flag| flags.contains(&flag.as_str()));
        let is_rate = has(&["--rate", "--ramp", "--steps"]) && !is_of_requests;
        let is_number = has(&["-n", "--reconnect-after"]);
        let shown = in_five_digits(each);
        let average = if each.fract() > 0.0 { " on average" } else { "" };
        let is_said = self.left_out.iter().any(|it| it.starts_with("in so short a run"));
        let differs = if each > 1.0 && has(&["--mix"]) && !is_said {
            let what = if average.is_empty() {
                format!("--mix draws its {shown} requests")
            } else {
                format!("an iteration sends {shown} requests{average}, which --mix draws")
            };
            format!("{what} at random (--requests FILE keeps their order)")
        } else {
            format!("an iteration sends {shown} requests{average}")
        };
        let counts = match (is_number, is_rate) {
            (false, false) if has(&["--mix"]) => "",
            (_, true) => "; k6 counts iterations, a rate here counts requests",
            _ => "; k6 counts iterations, -n counts requests",
        };
        self.differs.push(format!("{differs}{counts}"));
    }

    /// Has as many connections as virtual users send requests at once, each user so many.
    pub(super) fn multiply_users(&mut self, at_once: Option<u32>) {
        let Some(times) = at_once else { return };
        let users = value_behind(&self.flags, "-c").and_then(|users| users.parse::<u64>().ok());
        let Some(users) = users else {
            self.left_out
                .push(format!("multiply -c by {times}: http.batch sends {times} requests at once"));
            return;
        };
        let all = users.saturating_mul(times.into());
        self.set("-c", all);
        self.differs.push(format!(
            "-c {all} is {times} for each of its {users} VUs: http.batch sends {times} requests at once"
        ));
    }

    /// Puts a word in the place of a rate of iterations, where it is not known how many requests they
    /// send.
    fn ask_for_rate(&mut self, how: &str) {
        for flag in ["--rate", "--ramp", "--steps"] {
            let Some(at) = self.flags.iter().position(|word| word == flag) else { continue };
            let Some(rate) = self.flags.get_mut(at + 1).filter(|rate| !rate.contains(RATE)) else {
                continue;
            };
            let iterations = std::mem::replace(rate, RATE.to_owned());
            if flag == "--ramp" {
                *rate = format!("{RATE}..{RATE}");
            }
            self.to_fill.push(format!(
                "for {RATE} put {iterations} times the requests of an iteration, which sends them {how}"
            ));
        }
    }

    /// How k6's requests are sent, where that does not tell how many each iteration sends.
    /// `is_of_requests`: whether its rate is one of requests.
    pub(super) fn note_uncounted(&mut self, how: Option<&str>, is_of_requests: bool) {
        let Some(how) = how else { return };
        // A rate of k6's --rps is one of requests for k6, too.
        if !is_of_requests {
            self.ask_for_rate(how);
        }
        let counts = ["-n"].into_iter();
        let with_value = |flag: &str| {
            let at = self.flags.iter().position(|word| word == flag)?;
            Some(self.flags.get(at..at + 2)?.join(" "))
        };
        let mut counts: Vec<String> = counts.filter_map(with_value).collect();
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
    pub(super) fn settle_counts(&mut self, tool: &OtherTool, beside: &[String]) {
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
    pub(super) fn count(&self, tool: &OtherTool, flag: &str) -> Option<u64> {
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
    pub(super) fn encode_spaces(&mut self) {
        for url in self.operands.iter_mut().filter(|url| is_url(url)) {
            *url = url.trim().replace(' ', "%20");
        }
    }

    /// siege's `URL POST BODY` and `URL POST <FILE` in one word.
    pub(super) fn take_siege_post(&mut self) {
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
    pub(super) fn first_operand(&'static self, words: &[String]) -> Option<usize> {
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

    /// Its words that are neither flags nor values of them.
    fn operands(&'static self, words: &[String]) -> Vec<String> {
        let mut operands = Vec::new();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let next = words.get(at + 1).map(String::as_str);
            at += 1;
            match self.read(word, next) {
                _ if word == "--" => {
                    operands.extend_from_slice(&words[at..]);
                    break;
                }
                Ok(TypedWord::Operand) => operands.push(word.clone()),
                Ok(TypedWord::Flags { takes_next, .. }) => at += usize::from(takes_next),
                Err(_) => {}
            }
        }
        operands
    }

    /// What it sends as `Accept-Encoding` though nobody asked for that.
    pub(super) fn asks_for(&'static self, words: &[String]) -> Option<&'static str> {
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
    pub(super) fn asks_for_whole_bodies(&self, words: &[String]) -> bool {
        let is_head = value_behind(words, "-m").is_some_and(|method| method == "HEAD");
        let is_range = |word: &String| word.to_ascii_lowercase().starts_with("range:");
        self.spelling == Spelling::Go && (is_head || words.iter().any(is_range))
    }

    /// Some of its flags that ours are called otherwise: ` (-z is --for, …)`.
    pub(super) fn examples(&self) -> String {
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
    pub(super) fn has_typed(&'static self, name: &str, words: &[String]) -> bool {
        let next = |at: usize| words.get(at + 1).map(String::as_str);
        words.iter().enumerate().any(|(at, word)| match self.read(word, next(at)) {
            Ok(TypedWord::Flags { flags, .. }) => flags.iter().any(|one| one.flag.is_called(name)),
            Ok(TypedWord::Operand) | Err(_) => false,
        })
    }
}

/// Whether a header among these words says which encodings of a response are accepted.
pub(super) fn says_encoding(words: &[String]) -> bool {
    words.iter().any(|word| word.to_ascii_lowercase().contains("accept-encoding:"))
}

/// Our words that accept these encodings of a response.
pub(super) fn accepting(encodings: &str) -> [String; 2] {
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
