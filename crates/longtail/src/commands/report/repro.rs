//! `longtail report --repro`: the files that a study's command line names, for the block that shows
//! the result again in an empty folder.

use std::fs;
use std::path::{Component, Path};
use std::time::{Duration, SystemTime};

use judge::next::WHERE_TO;
use model::plan::quoted;
use model::secret::{SECRET, is_secret_body, masked};
use model::{ServerFacts, Study};
use report::repro::{Repro, ReproFile};
use report::summary::Summary;

/// Longer files are named, not shown.
const LINES: usize = 100;
/// Flags whose value is a file that must be there.
const READING: [&str; 8] =
    ["-r", "--rackup", "-C", "--config", "--requests", "--replay", "-D", "--body-file"];
/// The flag whose value is a mix, or a file with one.
const MIX: &str = "--mix";
/// Flags whose file may name others: bodies, and words for values that differ.
const NAMING_FILES: [&str; 2] = [MIX, "--requests"];
/// The flag whose value is a command line of its own.
const ARM: &str = "--arm";
/// Words of a Ruby file that loads more of its app.
const LOADS_MORE: [&str; 8] = [
    "require_relative",
    "require \"./",
    "require './",
    "Bundler.require",
    "APP_PATH",
    "__dir__",
    "load \"",
    "load '",
];

/// What shows the study's result again, with the files as they are now; paths are from this folder.
pub(super) fn of(study: &Study) -> Repro {
    let summary = Summary::of(study, None);
    let words = shlex::split(&summary.command_line).unwrap_or_default();
    let mut collector = Collector {
        repro: Repro::default(),
        taken: Vec::new(),
        started: summary.started_at.parse::<jiff::Timestamp>().ok().map(SystemTime::from),
    };
    // Program and command are no files, whatever lies in this folder.
    let command = words.iter().position(|word| word == "longtail").map_or(0, |at| at + 2);
    let (before, after) = words.split_at(command.min(words.len()));
    let words = [before, &collector.words(after)].concat();
    collector.needs_of(study, &words);
    Repro { command: joined(&words), ..collector.repro }
}

/// A piece of code in Markdown.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'"))
}

fn joined(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

struct Collector {
    repro: Repro,
    /// Paths that were seen, and what the files are called in the empty folder.
    taken: Vec<TakenFile>,
    /// When the study began.
    started: Option<SystemTime>,
}

struct TakenFile {
    path: String,
    name: String,
}

impl Collector {
    /// The words of a command line, with the files called as in the empty folder.
    fn words(&mut self, words: &[String]) -> Vec<String> {
        let mut named: Vec<String> = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let flag = at.checked_sub(1).map_or("", |before| words[before].as_str());
            named.push(self.word(flag, word));
        }
        named
    }

    /// A word after another, with the file in it called as in the empty folder.
    fn word(&mut self, flag: &str, word: &str) -> String {
        if flag == ARM {
            return self.arm(word);
        }
        let (own_flag, value) = flag_and_value(word);
        if own_flag == ARM {
            return format!("{own_flag}={}", self.arm(value));
        }
        let flag = if own_flag.is_empty() { flag } else { own_flag };
        if WHERE_TO.contains(&flag) {
            return word.to_owned();
        }
        let before = &word[..word.len() - value.len()];
        if let Some(file) = value.strip_prefix('@') {
            if Path::new(file).is_file() {
                self.need(format!("{}, whose headers may be secrets", code(file)));
            }
            return word.to_owned();
        }
        if value == "-" && (READING.contains(&flag) || flag == MIX) {
            self.need(format!("what {} read from stdin", code(&format!("{flag} -"))));
            return word.to_owned();
        }
        if Path::new(value).is_file() {
            if NAMING_FILES.contains(&flag) {
                let folder = Path::new(value).parent().unwrap_or(Path::new(""));
                self.files_named_in(&fs::read_to_string(value).unwrap_or_default(), folder);
            }
            return format!("{before}{}", self.file(value));
        }
        if flag == MIX {
            self.files_named_in(value, Path::new(""));
        } else if READING.contains(&flag) {
            self.need(format!("{}, which is not in this folder", code(value)));
        }
        word.to_owned()
    }

    /// The files that a mix names, `@BODY` and `{WORDS}`; paths are from `folder`.
    fn files_named_in(&mut self, mix: &str, folder: &Path) {
        let words = mix.split(|c: char| c.is_whitespace() || c == ',');
        let bodies = words.filter_map(|word| word.strip_prefix('@'));
        let values = mix.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
        for named in bodies.chain(values).filter(|named| !named.is_empty()) {
            let path = folder.join(named);
            let path = path.to_string_lossy();
            if !Path::new(&*path).is_file() {
                continue;
            }
            let holds_secret = fs::read_to_string(&*path).is_ok_and(|text| is_secret_body(&text));
            if holds_secret {
                self.need(format!("{}, which may hold a secret", code(named)));
            } else if name_in_folder(&path) == path {
                self.file(&path);
            } else {
                self.need(format!("{}, which the requests name", code(named)));
            }
        }
    }

    /// The options of an arm, or a branch.
    fn arm(&mut self, text: &str) -> String {
        let (name, options) = match text.split_once('=') {
            Some((name, options)) if !name.starts_with('-') => (format!("{name}="), options),
            _ => (String::new(), text),
        };
        let words = shlex::split(options).unwrap_or_default();
        if words.first().is_some_and(|word| !word.starts_with('-')) {
            self.need(format!("a clone of the app, for the commit {}", code(options)));
            return text.to_owned();
        }
        format!("{name}{}", joined(&self.words(&words)))
    }

    /// What a file is called in the empty folder; its text is collected, or why not is said.
    fn file(&mut self, path: &str) -> String {
        if let Some(taken) = self.taken.iter().find(|taken| taken.path == path) {
            return taken.name.clone();
        }
        let name = name_in_folder(path);
        let is_used = self.taken.iter().any(|taken| taken.name == name);
        let name = if is_used { format!("{}-{name}", self.taken.len() + 1) } else { name };
        self.taken.push(TakenFile { path: path.to_owned(), name: name.clone() });
        match fs::read_to_string(path) {
            Err(_) => self.need(format!("{}, which is no text", code(&name))),
            Ok(text) if text.lines().count() > LINES => {
                self.need(format!("{}, which has {} lines", code(&name), text.lines().count()));
            }
            Ok(text) if masked(&text) != text => {
                self.need(format!("{}, which seems to hold a secret", code(&name)));
            }
            Ok(text) => {
                self.note_what_it_loads(&name, &text);
                if self.was_changed_since(path) {
                    let as_measured = "as it was measured: it was changed since";
                    self.need(format!("{} {as_measured}", code(&name)));
                } else {
                    self.repro.files.push(ReproFile { name: name.clone(), text });
                }
            }
        }
        name
    }

    /// Says that a Ruby file loads others of its app.
    fn note_what_it_loads(&mut self, name: &str, text: &str) {
        let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
        let is_ruby = matches!(extension, Some("ru" | "rb"));
        let loads = |line: &&str| {
            !line.trim_start().starts_with('#') && LOADS_MORE.iter().any(|word| line.contains(word))
        };
        if let Some(line) = text.lines().find(loads).filter(|_| is_ruby) {
            self.need(format!(
                "the app's folder: {} loads more of it ({})",
                code(name),
                code(line.trim())
            ));
        }
    }

    /// Whether a file was written after the measurement began.
    fn was_changed_since(&self, path: &str) -> bool {
        let changed = fs::metadata(path).and_then(|file| file.modified()).ok();
        // The study's time is a whole second.
        let since = self.started.map(|started| started + Duration::from_secs(1));
        changed.zip(since).is_some_and(|(changed, since)| changed > since)
    }

    /// What the study needs besides files.
    fn needs_of(&mut self, study: &Study, words: &[String]) {
        let server = match study {
            Study::Sweep(sweep) => Some(&sweep.server),
            Study::Bodies(bodies) => bodies.server(),
            Study::Compare(_) | Study::Load(_) | Study::Capacity(_) => None,
        };
        let names_puma = words.iter().any(|word| word.starts_with("--puma"));
        if let Some(ServerFacts { name, version: Some(version), .. }) = server
            && name == ServerFacts::PUMA
            && !names_puma
        {
            self.need(format!(
                "Puma {version}: {}",
                code(&format!("gem install puma --version {version}"))
            ));
        }
        let url = words.iter().find(|word| word.contains("://"));
        if let (Study::Load(_) | Study::Capacity(_), Some(url)) = (study, url) {
            self.need(format!("the server that was measured, at {}", code(url)));
        }
        if words.iter().any(|word| word.starts_with("--from")) {
            self.need("the machines of `--from`".to_owned());
        }
        if words.iter().any(|word| word.contains(SECRET)) {
            self.need(format!("in the command, your secret in the place of {}", code(SECRET)));
        }
    }

    fn need(&mut self, need: String) {
        if !self.repro.needs.contains(&need) {
            self.repro.needs.push(need);
        }
    }
}

/// A flag and its value in one word: `--rackup=app.ru`, `-rapp.ru`; of any other word the flag is
/// empty.
fn flag_and_value(word: &str) -> (&str, &str) {
    if word.starts_with("--") {
        return word.split_once('=').unwrap_or(("", word));
    }
    let short = word.split_at_checked(2).filter(|(flag, value)| {
        !value.is_empty() && (READING.contains(flag) || WHERE_TO.contains(flag))
    });
    short.unwrap_or(("", word))
}

/// The path itself where it leads further into this folder, else the file's name.
fn name_in_folder(path: &str) -> String {
    let path = Path::new(path);
    let is_inside =
        path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    if is_inside {
        path.to_string_lossy().trim_start_matches("./").to_owned()
    } else {
        name.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_behind_a_flag_is_found_however_it_is_written() {
        assert_eq!(flag_and_value("-rapp.ru"), ("-r", "app.ru"));
        assert_eq!(flag_and_value("--rackup=app.ru"), ("--rackup", "app.ru"));
        assert_eq!(flag_and_value("app.ru"), ("", "app.ru"));
        assert_eq!(flag_and_value("-w2"), ("", "-w2"));
    }

    #[test]
    fn a_path_out_of_the_folder_becomes_a_name() {
        assert_eq!(name_in_folder("./config/puma.rb"), "config/puma.rb");
        assert_eq!(name_in_folder("/srv/app/config.ru"), "config.ru");
        assert_eq!(name_in_folder("../config.ru"), "config.ru");
    }
}
