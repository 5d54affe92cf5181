//! What a script of wrk says plainly: texts that it gives to `wrk.method`, `wrk.path`, `wrk.body`,
//! `wrk.headers`, and to `wrk.format` in its `request()`. Nothing is run, and nothing is guessed: a
//! word stands for a method or body that is computed, and what else is not plain is named.

use judge::words::listed;
use model::Nanos;
use model::plan::quoted;

use super::flags::{BODY, METHOD, PATH, UNKNOWN_HEADER, VALUE, with_value};
use super::js_literals::{BEGIN, END};
use super::k6_script::{quoted_in_mix, with_ends};
use super::lua_literals::{
    LuaWord, arguments, behind_comments, body_of_request, goes_on, is_of_name, local_value, parts,
    parts_and_rest, quoted_text, value_in_request, words,
};
use super::wrk_lists::ListUse;
use super::wrk_weights::HowOften;

/// What a script says of its requests.
#[expect(clippy::struct_excessive_bools, reason = "each is found or not, whatever the others are")]
#[derive(Debug, Default)]
pub(super) struct WrkScript {
    method: Option<Said>,
    path: Option<Said>,
    body: Option<Said>,
    /// How often each of several paths is taken, if not as often as the others: a number, or a word
    /// for it.
    path_weights: Option<Vec<String>>,
    /// The file whose text is the body.
    body_file: Option<String>,
    /// The file whose lines may be the paths of its requests, which are plain otherwise.
    pub(super) paths_file: Option<String>,
    headers: Vec<(String, Said)>,
    /// Its `delay()`, or the mean of it.
    pub(super) think: Option<Nanos>,
    /// Whether it has one of a length that is not plain.
    pub(super) has_unknown_delay: bool,
    /// Several requests that differ in more than their paths, as `--mix` takes them.
    mix: Option<String>,
    /// Whether there are several that no mix says.
    pub(super) has_several: bool,
    /// Which path it sends is not known: what to do about it.
    pub(super) path_to_write: Option<String>,
    /// Whether its paths end with a number that it counts.
    pub(super) is_counted: bool,
    /// What it has that no words say, each with our flag for it.
    not_taken: Vec<String>,
    /// Whether all its requests have headers of their own, so that those of wrk's line are not sent.
    pub(super) has_own_headers: bool,
}

/// What stands in a script for a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Text(String),
    /// Paths as `--mix` writes them: one that ends with a random number, `/a?id={1..1000}`, or with
    /// one that the script counts, or those that take turns.
    MixPaths(Vec<String>),
    /// A variable, a call, a sum, or several texts for several requests.
    Computed,
}

impl Said {
    fn word_or(self, word: &str) -> String {
        match self {
            Said::Text(text) => text,
            Said::MixPaths(_) | Said::Computed => word.to_owned(),
        }
    }
}

/// What stands for the name of a header that is not known, as in [`UNKNOWN_HEADER`].
const NAME: &str = "NAME";

/// Functions that wrk calls beside `request`.
const HOOKS: [&str; 4] = ["setup", "init", "response", "done"];

/// The files whose lines functions of the script read, where a call names one: `load("paths.txt")`
/// of `function load(file)` with `io.lines(file)` in it.
fn files_given_to_functions(text: &str) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for (at, _) in text.match_indices("function") {
        let Some((head, done)) = text[at + "function".len()..].split_once(')') else { continue };
        let Some((name, parameter)) = head.split_once('(') else { continue };
        let assigned = || text[..at].trim_end().strip_suffix('=').map(str::trim_end);
        let name = match name.trim() {
            "" => assigned().map_or("", |before| {
                &before[before.rfind(|c| !is_of_name(c)).map_or(0, |at| at + 1)..]
            }),
            name => name,
        };
        let reads = done.contains(&format!("io.lines({})", parameter.trim()));
        if name.is_empty() || parameter.trim().is_empty() || !reads {
            continue;
        }
        let all = words(text);
        let given = all.iter().filter(|it| it.word == name).filter_map(|it| named_file(it.behind));
        files.extend(given);
    }
    files.dedup();
    files
}

/// What ends a path whose numbers the script counts: how far is not known.
pub(super) const COUNTED: &str = "{1..500}";

fn order_of(what: &str) -> String {
    format!("the order of its {what} (--mix draws them at random, --requests FILE keeps it)")
}

const PIPELINING: &str =
    "its pipelining: it sends several requests at once, ours one at a time on a connection";

impl WrkScript {
    pub(super) fn in_text(text: &str) -> WrkScript {
        let mut script = WrkScript::default();
        let mut has_request = false;
        let mut formats = Vec::new();
        // Files whose text it reads, and those whose lines it reads.
        let mut files: Vec<String> = Vec::new();
        let mut lists: Vec<String> = Vec::new();
        // Of each block that is open: whether it is a function, which runs for all requests alike.
        let mut blocks: Vec<bool> = Vec::new();
        let mut before = "";
        for LuaWord { word, behind: rest } in words(text) {
            match word {
                "function" | "if" | "do" | "repeat" => blocks.push(word == "function"),
                "end" | "until" => _ = blocks.pop(),
                "wrk.format" => formats.extend(arguments(rest)),
                // The request that wrk makes of what the script sets, as `wrk.format()` does.
                "wrk.request" => formats.extend(arguments(rest).filter(Vec::is_empty)),
                "io.open" => files.extend(named_file(rest)),
                "io.lines" => lists.extend(named_file(rest)),
                _ => {}
            }
            let is_function = before == "function"
                || blocks.is_empty()
                    && rest
                        .trim_start()
                        .strip_prefix('=')
                        .is_some_and(|value| value.trim_start().starts_with("function"));
            if is_function && word == "request" {
                has_request = true;
            } else if is_function
                && word == "delay"
                && let Some(mean) = mean_delay(text, rest)
            {
                script.think = Some(mean).filter(|mean| *mean > Nanos::ZERO);
            } else if is_function && word == "delay" {
                script.has_unknown_delay = true;
            } else if is_function && word == "init" && only_sets_wrk(rest) {
            } else if is_function && HOOKS.contains(&word) {
                script.not_take(format!("its {word}()"));
            }
            before = word;
            if let Some(place) = word.strip_prefix("wrk.") {
                let is_steady = blocks.iter().all(|is_function| *is_function);
                script.take_assignment(text, place, rest, is_steady);
            }
        }
        lists.extend(files_given_to_functions(text));
        script.take_formats(text, &formats);
        if formats.len() == 1 {
            script.name_choices(text);
        }
        if puts_requests_together(text) {
            script.not_take(PIPELINING.to_owned());
        }
        // wrk makes it before the first call of the script's function, whatever that sets.
        let sets = |body: &str| {
            let all = words(body);
            let has = |is_it: &dyn Fn(&LuaWord<'_>) -> bool| all.iter().any(is_it);
            has(&|it| it.word == "wrk.request")
                && has(&|it| it.word.starts_with("wrk.") && it.value().is_some())
        };
        if body_of_request(text).is_some_and(sets) {
            script.path = Some(Said::Computed);
            script.mix = None;
        }
        if has_request && formats.is_empty() {
            script.method = Some(Said::Computed);
            script.body = Some(Said::Computed);
            script.not_take("its request()".to_owned());
        }
        script.path_to_write = script.has_unknown_path().then(|| {
            let paths =
                formats.first().and_then(|arguments| paths_of_variable(text, arguments.get(1)?));
            script.how_to_write_path(text, paths, &lists)
        });
        if files.is_empty() {
            script.paths_file = script.file_of_paths(&lists);
        }
        // One file that is read as a whole, and one body that is no literal: that is the file's text,
        // unless something is put together.
        let is_whole = text.matches(":read(").count() == 1
            && [":read(\"*a", ":read('*a", ":read(\"a", ":read('a"]
                .iter()
                .any(|read| text.contains(read))
            && !text.contains("..");
        if script.body == Some(Said::Computed)
            && is_whole
            && lists.is_empty()
            && let [file] = &files[..]
        {
            script.body_file = Some(file.clone());
        } else if script.path_to_write.is_none() || !files.is_empty() || lists.len() != 1 {
            let read = files.iter().chain(&lists).map(|file| quoted(file)).collect::<Vec<_>>();
            if !read.is_empty() {
                script.not_take(format!(
                    "what it reads from {} (--requests FILE sends the paths of its lines)",
                    listed(&read)
                ));
            }
        }
        script
    }

    /// The one file whose lines it reads, if all but the path of its requests is plain.
    fn file_of_paths(&self, lists: &[String]) -> Option<String> {
        let get = Said::Text("GET".to_owned());
        let is_get = self.method.as_ref().is_none_or(|method| *method == get);
        let is_alone = is_get && self.body.is_none() && !self.has_several;
        match lists {
            [file] if is_alone && self.path_to_write.is_some() => Some(file.clone()),
            _ => None,
        }
    }

    /// One request whose body has a number that varies, as a mix.
    fn mix_of_varying_body(&self, text: &str, formats: &[Vec<&str>]) -> Option<String> {
        let [one] = formats else { return None };
        varying_body(text, one.get(3)?)?;
        let mix = self.mix_of(text, formats, None)?;
        (!mix.contains(BODY) && !mix.contains(PATH)).then_some(mix)
    }

    /// `wrk.method = "POST"`, where `behind` is what stands behind the `place` in `wrk` in the text.
    fn take_assignment(&mut self, text: &str, place: &str, behind: &str, is_steady: bool) {
        let (place, header) = match place.split_once('.') {
            Some((place, name)) => (place, Some(Said::Text(name.to_owned()))),
            None => (place, None),
        };
        let (header, behind) = match behind.trim_start().strip_prefix('[') {
            Some(inside) if place == "headers" => match quoted_text(inside.trim_start()) {
                Some((name, behind)) => {
                    (Some(Said::Text(name)), behind.trim_start().strip_prefix(']').unwrap_or(""))
                }
                None => (Some(Said::Computed), inside.split_once(']').map_or("", |(_, b)| b)),
            },
            _ => (header, behind),
        };
        let value = behind.trim_start().strip_prefix('=').filter(|value| !value.starts_with('='));
        let Some(value) = value.map(str::trim_start) else { return };
        let of_path = || varying_path(text, value).or_else(|| paths_of_list(text, value));
        let said = if !is_steady {
            Said::Computed
        } else if let Some(path) = of_path().filter(|_| place == "path") {
            path
        } else {
            text_of_value(text, value)
        };
        match (place, header) {
            ("method", _) => self.method = Some(said),
            ("path", _) => self.path = Some(said),
            ("body", _) => self.body = Some(said),
            ("headers", Some(Said::Text(name))) => self.take_header(name, said),
            ("headers", _) => self.take_headers(value, is_steady),
            _ => self.not_take(format!("its wrk.{place}")),
        }
    }

    fn take_header(&mut self, name: String, said: Said) {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, said));
    }

    /// Takes that it has headers of which nothing is known.
    fn take_unknown_headers(&mut self) {
        self.take_header(NAME.to_owned(), Said::Computed);
        self.not_take(format!(
            "its headers, which are computed (a -H '{UNKNOWN_HEADER}' for each)"
        ));
    }

    /// `{ ["Accept"] = "a/b", Host = "h" }`.
    fn take_headers(&mut self, value: &str, is_steady: bool) {
        let fields = value.strip_prefix('{').filter(|_| is_steady).and_then(parts);
        let Some(fields) = fields else {
            self.take_unknown_headers();
            return;
        };
        for field in fields {
            let Some((name, value)) = field_of_table(field) else {
                self.take_unknown_headers();
                continue;
            };
            self.take_header(name, whole_text(value));
        }
    }

    /// What `wrk.format(method, path, headers, body)` says, where it says the same in each place.
    fn take_formats(&mut self, text: &str, formats: &[Vec<&str>]) {
        let said = |at: usize| {
            let mut all = formats.iter().map(|arguments| {
                let argument = arguments.get(at).filter(|written| **written != "nil");
                argument.map(|written| {
                    if at != 1 {
                        return text_of_value(text, written);
                    }
                    let varying = varying_path(text, written);
                    let written = local_value(text, written).unwrap_or(written);
                    varying
                        .or_else(|| counted_path(text, written))
                        .or_else(|| paths_of_list(text, written))
                        .unwrap_or_else(|| text_of_value(text, written))
                })
            });
            let first = all.next().flatten();
            if all.any(|other| other != first) { Some(Said::Computed) } else { first }
        };
        // Several calls that differ in their paths alone.
        let each = |at: usize| formats.iter().map(move |arguments| arguments.get(at).copied());
        let is_same = |at: usize| each(at).all(|written| Some(written) == each(at).next());
        self.is_counted = each(1).flatten().any(|written| is_counted(text, written));
        let paths = each(1).map(|written| match text_of_value(text, written?) {
            Said::Text(path) => path_of_mix(path),
            Said::MixPaths(_) | Said::Computed => None,
        });
        let paths: Option<Vec<String>> = paths.collect();
        let takes_turns = paths
            .filter(|_| formats.len() > 1 && [0, 2, 3].into_iter().all(is_same))
            .map(|mut paths| {
                paths.sort();
                paths.dedup();
                paths
            })
            .filter(|paths| paths.len() == formats.len());
        let how_often = HowOften::in_text(text, formats.len());
        let of_several = match how_often {
            HowOften::Listed if puts_requests_together(text) => ListUse::InTurns,
            _ => ListUse::of_several(text, &how_often, formats.len()),
        };
        let weights = of_several.weights(formats.len());
        let weights = weights.filter(|_| formats.len() > 1);
        let is_mix = formats.len() > 1 && (takes_turns.is_none() || weights.is_some());
        let mix = if is_mix { self.mix_of(text, formats, weights.as_deref()) } else { None };
        self.mix = self.mix_of_varying_body(text, formats);
        // In a mix with weights each request has what it needs.
        let takes_turns = takes_turns.filter(|_| weights.is_none());
        for (at, name, place) in [
            (0, "wrk.method", &mut self.method),
            (1, "wrk.path", &mut self.path),
            (3, "wrk.body", &mut self.body),
        ] {
            let is_own = formats.iter().all(|arguments| arguments.get(at) == Some(&name));
            if let Some(said) = said(at).filter(|_| !is_own) {
                *place = Some(said);
            }
        }
        if let Some(paths) = &takes_turns {
            self.path = Some(Said::MixPaths(paths.clone()));
        }
        if let Some(Said::MixPaths(paths)) = &self.path
            && paths.len() > 1
            && takes_turns.is_none()
        {
            let chooses =
                |written: &&str| words(written).iter().any(|it| ["and", "or"].contains(&it.word));
            let is_own = |written: &&str| ["nil", "wrk.path"].contains(written);
            let written: Vec<&str> = each(1).flatten().filter(|written| !is_own(written)).collect();
            let own = || {
                let all = words(text).into_iter().rev();
                all.filter(|it| it.word == "wrk.path").find_map(|it| it.value())
            };
            let one = match written[..] {
                [] => own(),
                [first, ..] => Some(first).filter(|_| !written.iter().any(chooses)),
            };
            let of_list = ListUse::of_path(text, one, paths.len());
            self.path_weights = of_list.weights(paths.len());
            if of_list == ListUse::InTurns {
                self.not_take(order_of("paths"));
            }
        }
        let headers = formats.iter().filter_map(|arguments| arguments.get(2).copied());
        let headers: Vec<&str> =
            headers.filter(|written| !["nil", "wrk.headers"].contains(written)).collect();
        match headers[..] {
            [] => {}
            _ if mix.is_some() => {}
            [one, ..] if formats.len() == 1 || takes_turns.is_some() => {
                // A table takes the place of those of `wrk`.
                let is_changed =
                    [format!("{one}["), format!("{one}.")].iter().any(|it| text.contains(it));
                let table = local_value(text, one).filter(|_| !is_changed).unwrap_or(one);
                self.headers.clear();
                self.has_own_headers = true;
                self.take_headers(table, true);
            }
            _ => self.take_unknown_headers(),
        }
        if formats.len() > 1 && takes_turns.is_none() {
            self.end_mix(mix, how_often);
        }
    }

    /// Takes several requests as this mix, or names them.
    fn end_mix(&mut self, mix: Option<String>, how_often: HowOften) {
        self.mix = mix;
        self.has_several = self.mix.is_none();
        if self.has_several {
            self.not_taken.push("several requests (--mix or --requests FILE)".to_owned());
        }
        self.not_taken.extend(match how_often {
            HowOften::Weights { weights, .. } if self.has_several => {
                let weights: Vec<String> = weights.iter().map(u32::to_string).collect();
                Some(format!("that it sends them {} (weights of --mix)", weights.join(" to ")))
            }
            HowOften::Unknown if self.has_several => {
                Some("how often it sends each (weights of --mix)".to_owned())
            }
            HowOften::Weights { is_counted: true, .. } => Some(order_of("requests")),
            HowOften::Weights { .. } | HowOften::Listed | HowOften::Unknown => None,
        });
    }

    /// Names that its one call of `wrk.format` sends different requests.
    fn name_choices(&mut self, text: &str) {
        if self.method == Some(Said::Computed) {
            self.not_take("how often it sends which method (--mix takes weights)".to_owned());
        } else if self.mix.is_none()
            && self.body == Some(Said::Computed)
            && text.contains("math.random")
        {
            self.not_take("that its body may differ each time (--mix varies numbers)".to_owned());
        }
    }

    /// Requests that are plain in all that they have, as `--mix` takes them; what a call of
    /// `wrk.format` leaves out is what `wrk` itself has.
    fn mix_of(
        &self,
        text: &str,
        formats: &[Vec<&str>],
        weights: Option<&[String]>,
    ) -> Option<String> {
        let own = |arguments: &[&str], at: usize, name: &str, said: Option<&Said>| {
            let written = arguments.get(at).copied().filter(|it| !["nil", name].contains(it));
            written.map(|written| text_of_value(text, written)).or_else(|| said.cloned())
        };
        let mut lines = Vec::new();
        for (at, arguments) in formats.iter().enumerate() {
            let method = own(arguments, 0, "wrk.method", self.method.as_ref());
            let method = method.unwrap_or_else(|| Said::Text("GET".to_owned()));
            let varying = arguments.get(1).and_then(|written| {
                let value = local_value(text, written).unwrap_or(written);
                varying_path(text, written).or_else(|| counted_path(text, value))
            });
            let path = varying.or_else(|| own(arguments, 1, "wrk.path", self.path.as_ref()));
            let path = match path? {
                Said::Text(path) => path_of_mix(path)?,
                Said::MixPaths(paths) if paths.len() == 1 => paths.into_iter().next()?,
                Said::MixPaths(_) | Said::Computed => format!("/{PATH}"),
            };
            let mut line = format!("{} {path}", method.word_or(METHOD));
            if let Some(weight) = weights.and_then(|weights| weights.get(at)) {
                line.extend([" ", weight]);
            }
            let varying = arguments.get(3).and_then(|written| varying_body(text, written));
            match varying.or_else(|| own(arguments, 3, "wrk.body", self.body.as_ref())) {
                None => {}
                Some(Said::Text(body)) if body.is_empty() => {}
                Some(Said::Text(body)) => line.extend([" -d ", &quoted_in_mix(&body)?]),
                Some(_) => line.extend([" -d ", BODY]),
            }
            // A table takes the place of those of `wrk`.
            let written =
                arguments.get(2).copied().filter(|it| !["nil", "wrk.headers"].contains(it));
            let headers: Option<Vec<(String, Said)>> = match written {
                None => Some(self.headers.clone()),
                Some(table) => table.strip_prefix('{').and_then(parts).and_then(|fields| {
                    let field = |field| {
                        let (name, value) = field_of_table(field)?;
                        Some((name, text_of_value(text, value)))
                    };
                    fields.into_iter().map(field).collect()
                }),
            };
            let unknown = || vec![(NAME.to_owned(), Said::Computed)];
            for (name, value) in headers.unwrap_or_else(unknown) {
                let value = value.word_or(VALUE);
                line.extend([" -H ", &quoted_in_mix(&format!("{name}: {value}"))?]);
            }
            lines.push(line);
        }
        Some(lines.join(", "))
    }

    fn not_take(&mut self, what: String) {
        if !self.not_taken.contains(&what) {
            self.not_taken.push(what);
        }
    }

    /// Our words for it, but for the path.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let headers = self.headers.iter().map(|(name, value)| {
            ["-H".to_owned(), format!("{name}: {}", value.clone().word_or(VALUE))]
        });
        if let Some(line) = &self.mix {
            return vec!["--mix".to_owned(), line.clone()];
        }
        if let Some(line) = self.mix_line() {
            words.extend(["--mix".to_owned(), line]);
            words.extend(headers.flatten());
            return words;
        }
        let body = self.body.clone().filter(|body| *body != Said::Text(String::new()));
        // wrk sends GET unless the script says otherwise, ours POST with a body.
        let default = body.is_some().then(|| Said::Text("GET".to_owned()));
        let is_default = |method: &Said| *method == Said::Text("GET".to_owned()) && body.is_none();
        if let Some(method) = self.method.clone().or(default).filter(|it| !is_default(it)) {
            words.extend(with_value(&["-m", "{}"], &method.word_or(METHOD)));
        }
        if let Some(file) = &self.body_file {
            words.extend(["-D".to_owned(), file.clone()]);
        } else if let Some(body) = body {
            words.extend(with_value(&["-d", "{}"], &body.word_or(BODY)));
        }
        words.extend(headers.flatten());
        words
    }

    /// Its requests as `--mix` takes them, if their paths are known and all else is plain.
    fn mix_line(&self) -> Option<String> {
        let Some(Said::MixPaths(paths)) = &self.path else { return None };
        let method = match &self.method {
            None => "GET",
            Some(Said::Text(method)) => method,
            Some(_) => return None,
        };
        let has_body = self.body.as_ref().is_some_and(|body| *body != Said::Text(String::new()));
        (!has_body && self.body_file.is_none()).then(|| {
            let weight = |at: usize| self.path_weights.as_ref()?.get(at);
            let line = |(at, path): (usize, &String)| match weight(at) {
                Some(weight) => format!("{method} {path} {weight}"),
                None => format!("{method} {path}"),
            };
            paths.iter().enumerate().map(line).collect::<Vec<_>>().join(", ")
        })
    }

    /// The path that takes the place of the URL's.
    pub(super) fn path(&self) -> Option<&str> {
        match &self.path {
            _ if self.mix.is_some() => Some("/"),
            Some(Said::Text(path)) => Some(path),
            Some(Said::MixPaths(_)) if self.mix_line().is_some() => Some("/"),
            _ => None,
        }
    }

    /// Whether it gives its requests a path that is not known, so that the URL's is another one.
    pub(super) fn has_unknown_path(&self) -> bool {
        match &self.path {
            _ if self.mix.is_some() => false,
            None | Some(Said::Text(_)) => false,
            Some(Said::MixPaths(_)) => self.mix_line().is_none(),
            Some(Said::Computed) => true,
        }
    }

    /// What to write for a path that is not known, which is one of `paths`, if these are known, or may
    /// be in one of the files whose lines it reads.
    fn how_to_write_path(
        &self,
        text: &str,
        paths: Option<Vec<String>>,
        files: &[String],
    ) -> String {
        if self.has_several {
            return format!("for {PATH} put a path of its requests");
        }
        if let Some(paths) = paths {
            let which = format!("a variable decides whether it sends {}", paths.join(" or "));
            let learns = self.headers.iter().any(|(_, said)| *said == Said::Computed)
                && words(text).iter().any(|it| it.word == "response");
            let why = if learns {
                ", and one line cannot log in first and then send the token"
            } else {
                ""
            };
            return format!("for {PATH} put one: {which}{why}");
        }
        if let [file] = files {
            let file = quoted(file);
            return format!(
                "for /{PATH} put /, and --requests {file} before the URL, if the lines of {file} are its paths"
            );
        }
        format!("for {PATH} put its path, which is computed (several: --mix or --requests FILE)")
    }

    /// What is not in the words.
    pub(super) fn not_taken(&self) -> Vec<String> {
        let mut all = Vec::new();
        all.extend(self.not_taken.iter().cloned());
        all
    }
}

/// Whether a function does nothing but set what `wrk` sends; `behind` is what stands behind its name.
fn only_sets_wrk(behind: &str) -> bool {
    let Some((_, body)) = behind.split_once(')') else { return false };
    let Some((body, _)) = body.split_once("\nend") else { return false };
    let mut lines = body.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.all(|line| line.starts_with("wrk.") || line.starts_with("--"))
}

/// A script in which the words behind wrk's URL stand in the place of `args[1]` and so on, the
/// parameter of its `init(args)`.
pub(super) fn with_arguments_of_init(text: &str, arguments: &[String]) -> String {
    let begins = ["function init(", "init = function(", "init=function("];
    let parameter = begins.into_iter().find_map(|begin| {
        let (_, behind) = text.split_once(begin)?;
        Some(behind.split_once(')')?.0.trim())
            .filter(|it| !it.is_empty() && it.chars().all(is_of_name))
    });
    let Some(parameter) = parameter else { return text.to_owned() };
    let mut text = text.to_owned();
    for (at, argument) in arguments.iter().enumerate() {
        if !argument.contains(['"', '\\', '\n']) {
            let read = format!("{parameter}[{}]", at + 1);
            let (mut whole, mut from) = (String::new(), 0);
            for (found, _) in text.match_indices(&read) {
                // `data[1]` is not the first of `a`.
                if !text[..found].ends_with(is_of_name) {
                    whole.extend([&text[from..found], "\"", argument, "\""]);
                    from = found + read.len();
                }
            }
            text = whole + &text[from..];
        }
    }
    text
}

/// Whether a script makes one text of several requests: `table.concat(requests)`, or a sum of them.
fn puts_requests_together(text: &str) -> bool {
    let bare: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let is_of_requests = |name: &str| {
        let is_element = |at: usize| {
            let before = bare[..at].strip_suffix("]=").and_then(|before| before.rsplit_once('['));
            before.is_some_and(|(before, _)| before.ends_with(name))
        };
        bare.contains(&format!("table.insert({name},wrk.format("))
            || bare.contains(&format!("{name}={{wrk.format("))
            || bare.match_indices("wrk.format(").any(|(at, _)| is_element(at))
    };
    let mut joined = bare.split("table.concat(").skip(1);
    bare.contains(")..wrk.format(")
        || joined.any(|behind| {
            let name = &behind[..behind.find(|c| !is_of_name(c)).unwrap_or(behind.len())];
            is_of_requests(name) || behind.starts_with("{wrk.format(")
        })
}

/// The text that is the whole value written here.
fn whole_text(written: &str) -> Said {
    let Some((text, behind)) = quoted_text(written) else { return Said::Computed };
    if goes_on(behind) { Said::Computed } else { Said::Text(text) }
}

/// The text that is the whole value written here, or that of a local variable.
fn text_of_value(text: &str, written: &str) -> Said {
    let length = written.find(|c| !is_of_name(c)).unwrap_or(written.len());
    let (name, behind) = written.split_at(length);
    match local_value(text, name).filter(|_| !goes_on(behind)) {
        Some(value) => whole_text(value),
        None => whole_text(written),
    }
}

/// A path with random numbers in it: `"/a?id=" .. math.random(1000)`, `string.format("/a/%d", id)`,
/// where the script's `request()` has `local id = math.random(10, 99)`.
fn varying_path(text: &str, written: &str) -> Option<Said> {
    let (path, behind) = sum_of(text, written.trim_start(), is_plain_in_mix)?;
    let is_whole = path.starts_with('/') && path.contains(BEGIN) && !goes_on(behind);
    is_whole.then(|| Said::MixPaths(vec![with_ends(&path)]))
}

/// A body with random numbers in it, which is a text of `--mix` between its quotes.
fn varying_body(text: &str, written: &str) -> Option<Said> {
    let (body, behind) = sum_of(text, written.trim_start(), |_| true)?;
    (body.contains(BEGIN) && !goes_on(behind)).then_some(Said::Text(body))
}

/// Texts, each of which `is_plain`, and random numbers between `..`, and what is behind them.
fn sum_of<'t>(
    text: &'t str,
    written: &'t str,
    is_plain: fn(&str) -> bool,
) -> Option<(String, &'t str)> {
    let (mut sum, mut behind) = summand_of(text, written, is_plain)?;
    while let Some(next) = behind.trim_start().strip_prefix("..") {
        let (part, behind_it) = summand_of(text, next.trim_start(), is_plain)?;
        sum += &part;
        behind = behind_it;
    }
    Some((sum, behind))
}

/// One of them.
fn summand_of<'t>(
    text: &'t str,
    written: &'t str,
    is_plain: fn(&str) -> bool,
) -> Option<(String, &'t str)> {
    if let Some((part, behind)) = quoted_text(written) {
        return is_plain(&part).then_some((part, behind));
    }
    let end = written.find(|c| !is_of_name(c)).unwrap_or(written.len());
    let (name, behind) = written.split_at(end);
    match name {
        "math.random" => {
            let (ends, behind) = behind.trim_start().strip_prefix('(')?.split_once(')')?;
            let ends: Option<Vec<u64>> =
                ends.split(',').map(|end| end.trim().parse().ok()).collect();
            let (least, most) = match ends?[..] {
                [most] => (1, most),
                [least, most] => (least, most),
                _ => return None,
            };
            (least < most).then(|| (format!("{BEGIN}{least}..{most}{END}"), behind))
        }
        "string.format" => {
            let (arguments, behind) = parts_and_rest(behind.trim_start().strip_prefix('(')?)?;
            let (template, values) = arguments.split_first()?;
            let Said::Text(template) = whole_text(template) else { return None };
            let mut values = values.iter();
            let mut pieces = template.split('%');
            let mut sum = pieces.next()?.to_owned();
            is_plain(&sum).then_some(())?;
            for piece in pieces {
                let behind = piece.strip_prefix(['d', 'i', 's'])?;
                // An argument is a whole part between commas.
                let value = format!("{})", values.next()?);
                let (value, end) =
                    sum_of(text, &value, is_plain).map(|(it, end)| (it, end.to_owned()))?;
                (end.trim() == ")" && is_plain(behind)).then_some(())?;
                sum.extend([&*value, behind]);
            }
            Some((sum, behind))
        }
        _ => {
            let value = value_in_request(text, name)?;
            // What it is made of is declared before it.
            let before = &text[..text.len() - value.len()];
            let (value, end) = sum_of(before, value, is_plain)?;
            (!goes_on(end)).then_some((value, behind))
        }
    }
}

/// Whether `--mix` reads a part of a path as it stands.
fn is_plain_in_mix(part: &str) -> bool {
    !part.contains(|c: char| c.is_whitespace() || "{},'\"".contains(c))
}

/// `"/item/" .. counter`, where the script has `counter = counter + 1`.
fn counted_path(text: &str, written: &str) -> Option<Said> {
    let (path, behind) = quoted_text(written)?;
    let behind = behind.trim_start().strip_prefix("..")?.trim_start();
    let end = behind.find(|c| !is_of_name(c)).unwrap_or(behind.len());
    let (name, behind) = behind.split_at(end);
    let is_counter = !name.is_empty()
        && ["{} = {} + 1", "{}={}+1", "{} = {}+1"]
            .iter()
            .any(|counting| text.contains(&counting.replace("{}", name)));
    let path = path_of_mix(path).filter(|_| is_counter && !goes_on(behind))?;
    Some(Said::MixPaths(vec![format!("{path}{COUNTED}")]))
}

/// Whether a path ends with a number that the script counts.
fn is_counted(text: &str, written: &str) -> bool {
    let value = local_value(text, written).unwrap_or(written);
    varying_path(text, written).is_none() && counted_path(text, value).is_some()
}

/// The mean of `delay() return math.random(10, 50) end`, in milliseconds, where `behind` stands
/// behind its name.
fn mean_delay(text: &str, behind: &str) -> Option<Nanos> {
    let (_, body) = behind.split_once(')')?;
    let (value, _) = body.trim_start().strip_prefix("return")?.split_once("end")?;
    let value = value.trim().trim_end_matches(';').trim_end();
    let mean = match value.strip_prefix("math.random(").and_then(|it| it.strip_suffix(')')) {
        None => match local_value(text, value) {
            Some(local) => local[..local.find('\n').unwrap_or(local.len())].trim().parse().ok()?,
            None => value.parse().ok()?,
        },
        Some(ends) => {
            let ends: Option<Vec<f64>> = ends.split(',').map(|it| it.trim().parse().ok()).collect();
            match ends?[..] {
                [most] => f64::midpoint(1.0, most),
                [least, most] => f64::midpoint(least, most),
                _ => return None,
            }
        }
    };
    (mean >= 0.0).then(|| Nanos::from_secs_f64(mean / 1e3))
}

/// A path that `--mix` reads as it stands.
fn path_of_mix(path: String) -> Option<String> {
    (is_plain_in_mix(&path) && path.starts_with('/')).then_some(path)
}

/// The paths of which `paths[i]` is one, if that list stands in the script as texts and nothing else
/// changes it.
fn paths_of_list(text: &str, written: &str) -> Option<Said> {
    let (name, index) = written.trim().split_once('[')?;
    let (_, behind) = parts_and_rest(index)?;
    (!goes_on(behind)).then_some(())?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let begins = [format!("{name} = {{"), format!("{name}={{")];
    let begin = begins.iter().find(|begin| text.contains(&***begin)).filter(|_| is_name)?;
    let (_, list) = text.split_once(&**begin)?;
    let others = [format!("{name} = "), format!("{name}=")].map(|it| text.matches(&*it).count());
    let is_set = |behind: &str| {
        let behind = behind.split_once(']').map_or("", |(_, behind)| behind.trim_start());
        behind.starts_with('=') && !behind.starts_with("==")
    };
    let is_added_to = text.contains(&format!("insert({name}"))
        || text.split(&format!("{name}[")).skip(1).any(is_set);
    if others.iter().sum::<usize>() != 1 || is_added_to {
        return None;
    }
    let paths = parts(list)?.into_iter().map(|part| match whole_text(behind_comments(part)) {
        Said::Text(path) => path_of_mix(path),
        Said::MixPaths(_) | Said::Computed => None,
    });
    let paths: Vec<String> = paths.collect::<Option<_>>()?;
    (!paths.is_empty()).then_some(Said::MixPaths(paths))
}

/// The paths that a script gives to this variable, if there are several and all of them are texts.
fn paths_of_variable(text: &str, name: &str) -> Option<Vec<String>> {
    let all = words(text);
    let values = all.iter().filter(|it| it.word == name).filter_map(LuaWord::value);
    let mut paths = Vec::new();
    for value in values {
        match whole_text(value) {
            Said::Text(path) if path.starts_with('/') && !paths.contains(&path) => paths.push(path),
            Said::Text(path) if paths.contains(&path) => {}
            Said::Text(_) | Said::MixPaths(_) | Said::Computed => return None,
        }
    }
    (paths.len() > 1).then_some(paths)
}

/// `["Content-Type"] = "a/b"` or `Accept = "a/b"`: the name, and what is written behind it.
fn field_of_table(field: &str) -> Option<(String, &str)> {
    if let Some(inside) = field.strip_prefix('[') {
        let (name, behind) = quoted_text(inside.trim_start())?;
        let value = behind.trim_start().strip_prefix(']')?.trim_start().strip_prefix('=')?;
        return Some((name, value.trim_start()));
    }
    let (name, value) = field.split_once('=')?;
    let name = name.trim();
    name.chars().all(is_of_name).then(|| (name.to_owned(), value.trim_start()))
}

/// The file that a call of `io.open` or `io.lines` names, and does not write.
fn named_file(behind: &str) -> Option<String> {
    let arguments = arguments(behind)?;
    let is_read = match arguments.get(1).map(|mode| whole_text(mode)) {
        None => true,
        Some(Said::Text(mode)) => mode.starts_with('r'),
        Some(Said::MixPaths(_) | Said::Computed) => false,
    };
    match whole_text(arguments.first().filter(|_| is_read)?) {
        Said::Text(file) => Some(file),
        Said::MixPaths(_) | Said::Computed => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_texts_are_taken_and_the_rest_is_named() {
        for (script, expected) in [
            (
                "wrk.method = \"POST\"\nwrk.body   = \"a=1\"\nwrk.headers[\"Content-Type\"] = \"application/json\"\n",
                "-m POST -d a=1 -H Content-Type: application/json",
            ),
            (
                "-- a remark = 1\n--[[ wrk.method = 'PUT' ]]\nwrk.body = '{\"a\":\\'b\\'}'; wrk.headers.Accept = 'x' -- y",
                "-m GET -d {\"a\":'b'} -H Accept: x",
            ),
            ("wrk.headers = { ['A'] = 'b', Host = 'h', C = d }", "-H A: b -H Host: h -H C: VALUE"),
            ("wrk.method = 'POST'\nwrk.body = [[@file]]", "-m POST --data-raw @file"),
            ("wrk.method = 'PUT'", "-m PUT"),
            ("wrk.method = METHOD\nwrk.body = 'a'", "-m METHOD -d a"),
            ("wrk.method = 'PUT'\nwrk.body = 'a=' .. n", "-m PUT -d BODY"),
            ("wrk.path = '/a'\nwrk.headers['A'] = os.time()", "-H A: VALUE at /a"),
            (
                "wrk.headers[NAME] = 'x'",
                "-H NAME: VALUE not its headers, which are computed (a -H 'NAME: VALUE' for each)",
            ),
            (
                "wrk.body = 'a'\nrequest = function() return wrk.format('POST', '/b') end",
                "-m POST -d a at /b",
            ),
            (
                "local n = 0\nfunction request()\n  n = n + 1\n  return wrk.format(nil, '/a?n=' .. n)\nend",
                "--mix GET /a?n={1..500} at /",
            ),
            (
                "request = function()\n  wrk.body = 'x'\n  return wrk.format('POST', wrk.path, wrk.headers, wrk.body)\nend\ndone = function(s) print('wrk.method = 1') end",
                "-m POST -d x not its done()",
            ),
            ("if x then wrk.method = 'PUT' end\nwrk.body = 'a'", "-m METHOD -d a"),
            (
                "wrk.headers.A = 'b'\nlocal a = { wrk.format('GET', '/a'), wrk.format('PUT', '/b', { C = 'd' }, 'c') }\nrequest = function() return a[1] end",
                "--mix GET /a WEIGHT -H \"A: b\", PUT /b WEIGHT -d \"c\" -H \"C: d\" at /",
            ),
            (
                "local a = { wrk.format('GET', '/a'), wrk.format('PUT', '/b', nil, c) }\nrequest = function() return a[1] end",
                "--mix GET /a WEIGHT, PUT /b WEIGHT -d BODY at /",
            ),
            (
                "wrk.method = 'PUT'\nlocal f = io.open('body.json', 'rb')\nwrk.body = f:read('*a')",
                "-m PUT -D body.json",
            ),
            (
                "local log = io.open('out', 'w')\nlocal b = io.open('b'):read('*a')\nfunction request() return wrk.format('POST', '/', nil, b) end",
                "-m POST -D b at /",
            ),
            (
                "wrk.body = 'n=' .. n .. io.open('b'):read('*a')",
                "-m GET -d BODY not what it reads from b (--requests FILE sends the paths of its lines)",
            ),
            (
                "for line in io.lines('paths.txt') do add(line) end\nfunction request() return wrk.format('GET', next()) end\nfunction delay() return 10 end",
                "for /PATH put /, and --requests paths.txt before the URL, if the lines of paths.txt are its paths",
            ),
            ("function request() return 'x' end", "-m METHOD -d BODY not its request()"),
        ] {
            let found = WrkScript::in_text(script);
            let mut words = found.words();
            words.extend(found.path().map(|path| format!("at {path}")));
            words.extend(found.path_to_write.clone());
            words.extend(found.not_taken().iter().map(|what| format!("not {what}")));
            assert_eq!(words.join(" "), expected, "{script}");
        }
    }

    #[test]
    fn words_behind_the_url_are_the_arguments_of_init() {
        let arguments = ["/a".to_owned(), "b".to_owned()];
        let filled = |text: &str| with_arguments_of_init(text, &arguments);
        let script =
            "init = function(args)\n  wrk.path = args[1]\n  wrk.headers['X'] = args[2]\nend";
        let script = WrkScript::in_text(&filled(script));
        assert_eq!(script.path(), Some("/a"));
        assert_eq!(script.words(), ["-H", "X: b"]);
        assert!(script.not_taken().is_empty());
        let script = "function init(a) x = a[1]; y = data[1]; z = a[3] end";
        let expected = "function init(a) x = \"/a\"; y = data[1]; z = a[3] end";
        assert_eq!(filled(script), expected);
        assert_eq!(
            filled("function request() return args[1] end"),
            "function request() return args[1] end"
        );
    }

    #[test]
    fn headers_of_a_format_take_the_place_of_all_others() {
        let script = "wrk.headers['A'] = 'b'\nlocal h = { ['C'] = 'd' }\nfunction request() return wrk.format('GET', '/', h) end";
        let script = WrkScript::in_text(script);
        assert_eq!(script.words(), ["-H", "C: d"]);
        assert!(script.has_own_headers);
    }

    #[test]
    fn a_path_that_a_response_decides_is_named() {
        let script = "path = '/login'\nrequest = function() return wrk.format('GET', path) end\nresponse = function(s, h, body)\n  path = '/me'\n  wrk.headers['X-Token'] = body\nend";
        assert_eq!(
            WrkScript::in_text(script).path_to_write.as_deref(),
            Some(
                "for PATH put one: a variable decides whether it sends /login or /me, and one line cannot log in first and then send the token"
            )
        );
    }

    #[test]
    fn requests_that_are_sent_at_once_are_named() {
        for (script, expected) in [
            (
                "init = function()\n  local r = {}\n  r[1] = wrk.format(nil, '/a')\n  r[2] = wrk.format(nil, '/b')\n  req = table.concat(r)\nend\nrequest = function() return req end",
                true,
            ),
            (
                "function request()\n  local r = {}\n  for i = 1, 8 do table.insert(r, wrk.format('GET', '/')) end\n  return table.concat(r)\nend",
                true,
            ),
            ("function request() return wrk.format() .. wrk.format() end", true),
            ("function request() return table.concat({ wrk.format(), wrk.format() }) end", true),
            (
                "local b = {}\nb[1] = 'a'\nfunction request() return wrk.format('POST', '/', nil, table.concat(b)) end",
                false,
            ),
            ("local r = { wrk.format(), wrk.format() }\nfunction request() return r[1] end", false),
        ] {
            let not_taken = WrkScript::in_text(script).not_taken();
            assert_eq!(not_taken.contains(&PIPELINING.to_owned()), expected, "{script}");
        }
    }

    #[test]
    fn a_plain_delay_is_its_mean() {
        for (delay, expected) in [
            ("function delay() return 10 end", Some("10ms")),
            ("delay = function()\n  return math.random(10, 50);\nend", Some("30ms")),
            ("local pause = 10\nfunction delay() return pause end", Some("10ms")),
            ("function delay() return pause end", None),
            ("function delay() if x then return 1 end return 2 end", None),
        ] {
            let script = WrkScript::in_text(delay);
            assert_eq!(script.think, expected.map(|it| it.parse().unwrap()), "{delay}");
            assert_eq!(script.has_unknown_delay, expected.is_none(), "{delay}");
        }
    }

    #[test]
    fn a_path_with_a_random_number_is_a_mix_and_another_one_is_unknown() {
        let said = |script: &str| {
            let script = WrkScript::in_text(script);
            (script.words().join(" "), script.path().map(str::to_owned), script.has_unknown_path())
        };
        let mix = |line: &str| (format!("--mix {line}"), Some("/".to_owned()), false);
        for (path, expected) in [
            ("'/a?id=' .. math.random(1000)", "GET /a?id={1..1000}"),
            ("\"/a/\"..math.random(10, 99)", "GET /a/{10..99}"),
            ("'/a?id=' .. math.random(9) .. '&b'", "GET /a?id={1..9}&b"),
            (
                "string.format('/u/%d?x=%s&y', math.random(5, 9), math.random(100))",
                "GET /u/{5..9}?x={1..100}&y",
            ),
        ] {
            let script = format!("request = function() return wrk.format('GET', {path}) end");
            assert_eq!(said(&script), mix(expected), "{script}");
            let script = format!(
                "request = function()\n  local path = {path}\n  return wrk.format(nil, path)\nend"
            );
            assert_eq!(said(&script), mix(expected), "{script}");
            let script =
                format!("request = function()\n  wrk.path = {path}\n  return wrk.format()\nend");
            assert_eq!(said(&script), mix(expected), "{script}");
        }
        for path in [
            "'/a?id=' .. counter",
            "'/a?id=' .. math.random(9) .. b",
            "string.format('/a/%05d', math.random(9))",
            "string.format('/a/%d', math.random(9), math.random(n))  .. n",
            "'/a?id=' .. math.random(n)",
            "paths[i]",
            "os.getenv('P')",
        ] {
            let script = format!("request = function() return wrk.format('GET', {path}) end");
            assert_eq!(said(&script), (String::new(), None, true), "{script}");
        }
        let with_local = |local: &str, path: &str| {
            said(&format!(
                "request = function()\n  local id = {local}\n  return wrk.format('GET', {path})\nend"
            ))
        };
        assert_eq!(with_local("math.random(1, 99)", "'/a/' .. id"), mix("GET /a/{1..99}"));
        let formatted = with_local("math.random(99)", "string.format('/a/%d/b', id)");
        assert_eq!(formatted, mix("GET /a/{1..99}/b"));
        for local in
            ["math.random(n)", "id", "'/a' .. id", "math.random(9) * 2", "math.random(9)\n  id = 3"]
        {
            assert!(with_local(local, "'/a/' .. id").2, "{local}");
        }
        let once = "local id = math.random(9)\nrequest = function() return wrk.format('GET', '/a/' .. id) end";
        assert!(said(once).2, "a number that is drawn once");
        for list in ["local paths = { '/a', '/b' }", "paths = {\"/a\", -- first\n \"/b\"}"] {
            let script = format!(
                "{list}\nrequest = function() i = i + 1; return wrk.format('GET', paths[i % #paths + 1]) end"
            );
            assert_eq!(said(&script), mix("GET /a, GET /b"), "{script}");
            for change in ["paths[3] = '/c'", "table.insert(paths, '/c')"] {
                assert!(said(&format!("{script}\n{change}")).2, "{change}");
            }
        }
        for body in [
            "n = n + 1\n  local path = paths[(n % #paths) + 1]\n  return wrk.format('GET', path)",
            "path = paths[n]\n  n = n + 1\n  if n > #paths then n = 1 end\n  return wrk.format(nil, path)",
            "n = n % #paths + 1\n  wrk.path = paths[n]\n  return wrk.format()",
            "local path = paths[math.random(#paths)]\n  return wrk.format('GET', path)",
        ] {
            let script =
                format!("paths = {{ '/a', '/b' }}\nn = 0\nrequest = function()\n  {body}\nend");
            assert_eq!(said(&script), mix("GET /a, GET /b"), "{script}");
        }
        for body in [
            "local path = paths[n] .. '?a'\n  return wrk.format('GET', path)",
            "if n > 1 then path = paths[1] end\n  return wrk.format('GET', path)",
        ] {
            let script = format!("paths = {{ '/a', '/b' }}\nfunction request()\n  {body}\nend");
            assert!(said(&script).2, "{script}");
        }
        let turns = "function request()\n  if n % 2 == 0 then return wrk.format('GET', '/a') end\n  return wrk.format('GET', '/b')\nend";
        assert_eq!(said(turns), mix("GET /a WEIGHT, GET /b WEIGHT"));
        assert!(said("local paths = { '/a', b }\nrequest = function() return wrk.format('GET', paths[1]) end").2);
        let body =
            "request = function() return wrk.format('POST', '/a' .. math.random(9), nil, 'b') end";
        assert!(said(body).2, "a mix would need its body");
    }
}
