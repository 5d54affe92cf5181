//! What is there to be measured, and what to compare with: programs, asked for their versions.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use model::{Clock, Nanos};
use rustix::fs::{OFlags, fcntl_setfl};

use super::check::{Check, Group, Question};

const fn question(name: &'static str, spoils: &'static str) -> Question {
    Question { group: Group::Programs, name, spoils }
}

/// How long all programs together may take.
const PATIENCE: Nanos = Nanos::from_millis(1500);
const LOOK_EVERY: Nanos = Nanos::from_millis(5);

/// Other generators, and what makes each say its version. hey has no such word.
const GENERATORS: [(&str, Option<&str>); 8] = [
    ("wrk", Some("-v")),
    ("hey", None),
    ("oha", Some("--version")),
    ("ab", Some("-V")),
    ("h2load", Some("--version")),
    ("bombardier", Some("--version")),
    ("wrk2", Some("-v")),
    ("vegeta", Some("-version")),
];

/// What is looked for, and where.
#[derive(Clone, Debug)]
pub struct Around {
    /// `PATH`.
    pub path: OsString,
    /// The command that a sweep would start Puma with; or why there is none.
    pub puma: Result<Vec<OsString>, String>,
}

/// Asks all programs at once.
pub(super) fn checks(around: &Around, clock: &impl Clock) -> Vec<Check> {
    let start = |program: &str, words: &[&str]| {
        Asked::start(find(program, &around.path)?.as_os_str(), words.iter().map(OsStr::new))
    };
    let mut puma = around.puma.as_ref().ok().and_then(|argv| {
        let (program, words) = argv.split_first()?;
        Asked::start(program, words.iter().map(OsString::as_os_str).chain([OsStr::new("--version")]))
    });
    let mut ruby = start("ruby", &["--version"]);
    // A Ruby without YJIT refuses the flag.
    let mut yjit = start("ruby", &["--yjit", "--version"]);
    let mut generators = GENERATORS.map(|(name, word)| start(name, &[word?]));
    let deadline = clock.now() + PATIENCE;
    let mut all: Vec<&mut Asked> =
        [&mut puma, &mut ruby, &mut yjit].into_iter().chain(&mut generators).flatten().collect();
    while all.iter_mut().any(|asked| !asked.has_ended()) && clock.now() < deadline {
        clock.sleep(LOOK_EVERY);
    }
    let there = GENERATORS.map(|(name, _)| find(name, &around.path).is_some());
    let said = generators.map(Answer::of);
    vec![
        puma_check(around, &Answer::of(puma)),
        ruby_check(&Answer::of(ruby), &Answer::of(yjit)),
        generators_check(there, &said),
    ]
}

/// An executable file in `PATH`.
fn find(program: &str, path: &OsStr) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let executable =
        |file: &PathBuf| file.metadata().is_ok_and(|at| at.is_file() && at.permissions().mode() & 0o111 != 0);
    std::env::split_paths(path).map(|folder| folder.join(program)).find(executable)
}

/// What came of asking a program.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    /// It is not there, or cannot be started.
    Missing,
    /// It did not end in time.
    Late,
    /// What it printed.
    Said(String),
}

impl Answer {
    fn of(asked: Option<Asked>) -> Answer {
        asked.map_or(Answer::Missing, |asked| asked.said().map_or(Answer::Late, Answer::Said))
    }

    fn text(&self) -> Option<&str> {
        if let Answer::Said(text) = self { Some(text) } else { None }
    }
}

/// A program that was asked for its version.
struct Asked(Child);

impl Asked {
    fn start<'a>(program: &OsStr, words: impl Iterator<Item = &'a OsStr>) -> Option<Asked> {
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().ok().map(Asked)
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// What it printed, wherever; `None` where it has not ended. Versions fit into a pipe, so nothing is read before; and
    /// nothing is waited for, so that a child of its own that holds the pipe open holds nobody up.
    fn said(mut self) -> Option<String> {
        if !self.has_ended() {
            return None;
        }
        let mut said = Vec::new();
        drain(self.0.stdout.take()?, &mut said);
        drain(self.0.stderr.take()?, &mut said);
        Some(String::from_utf8_lossy(&said).into_owned())
    }
}

/// All that is in a pipe now.
fn drain(mut pipe: impl io::Read + AsFd, said: &mut Vec<u8>) {
    if fcntl_setfl(&pipe, OFlags::NONBLOCK).is_ok() {
        // It ends with "would block" where the pipe is still open; what came before that is kept.
        let _ = pipe.read_to_end(said);
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first word that looks like a version: `5.6.5`, `v1.2.6`, `nghttp2/1.52.0`, `debian/4.1.0-3+b2`, `3.1.2p20`.
fn version(said: &str) -> Option<&str> {
    let words = said.split_ascii_whitespace().map(|word| {
        let word = word.rsplit('/').next().unwrap_or(word).trim_end_matches([',', ')']);
        word.strip_prefix('v').unwrap_or(word)
    });
    words.into_iter().find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
}

fn puma_check(around: &Around, answer: &Answer) -> Check {
    const ASKED: Question = question("Puma", "sweep: it measures the built-in server instead");
    let argv = match &around.puma {
        Ok(argv) => argv,
        Err(why) => return ASKED.warn(why.clone(), "gem install puma"),
    };
    let command = argv.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let said = match answer {
        Answer::Missing => return ASKED.warn(format!("{command} cannot be started"), "gem install puma"),
        Answer::Late => return ASKED.unknown(format!("{command} did not say its version in time")),
        Answer::Said(said) => said,
    };
    // Ruby's warnings may stand before it.
    if let Some(version) = said.lines().find_map(|line| version(line.strip_prefix("puma version ")?)) {
        return ASKED.fine(format!("{version} ({command})"));
    }
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
    let last: String = last.trim().chars().take(60).collect();
    ASKED.warn(format!("{command} --version says: {last}"), "bundle install, or gem install puma")
}

fn ruby_check(answer: &Answer, with_yjit: &Answer) -> Check {
    const ASKED: Question = question("Ruby", "sweep: there is no Puma without it");
    let said = match answer {
        Answer::Missing => return ASKED.warn("not found", "sudo apt-get install ruby"),
        Answer::Late => return ASKED.unknown("it did not say its version in time"),
        Answer::Said(said) => said,
    };
    let Some(version) = version(said) else { return ASKED.unknown("it says no version") };
    let yjit = match with_yjit.text() {
        Some(said) if said.contains("+YJIT") => ", with YJIT (-Y)",
        Some(_) => ", without YJIT (-Y cannot be used)",
        None => "; of YJIT it did not tell in time",
    };
    ASKED.fine(format!("{version}{yjit}"))
}

/// That there are none spoils no number.
fn generators_check(there: [bool; 8], answers: &[Answer; 8]) -> Check {
    const ASKED: Question = question("other generators", "nothing; our numbers have none beside them");
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for ((name, _), (there, answer)) in GENERATORS.iter().zip(there.into_iter().zip(answers)) {
        match (there, answer.text().and_then(version)) {
            (true, Some(version)) => found.push(format!("{name} {version}")),
            (true, None) => found.push((*name).to_owned()),
            (false, _) => missing.push(*name),
        }
    }
    let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
    ASKED.fine(if missing.is_empty() { found } else { format!("{found}; not found: {}", missing.join(", ")) })
}

#[cfg(test)]
mod tests {
    use super::super::check::Grade;
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_really_say() {
        for (said, expected) in [
            ("puma version 5.6.5\n", Some("5.6.5")),
            ("ruby 3.1.2p20 (2022-04-12 revision 4491bb740a) [x86_64-linux-gnu]\n", Some("3.1.2p20")),
            ("wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer\nUsage: …", Some("4.1.0-3+b2")),
            ("wrk 4.0.0 [epoll] Copyright (C) 2012 Will Glozer\n", Some("4.0.0")),
            ("This is ApacheBench, Version 2.3 <$Revision$>\n", Some("2.3")),
            ("h2load nghttp2/1.52.0\n", Some("1.52.0")),
            ("oha 1.4.5\n", Some("1.4.5")),
            ("bombardier version v1.2.6 linux/amd64\n", Some("1.2.6")),
            ("Version: 12.8.4\nCommit: abc\n", Some("12.8.4")),
            ("Usage: hey [options...] <url>\n", None),
        ] {
            assert_eq!(version(said), expected, "{said}");
        }
    }

    fn said(text: &str) -> Answer {
        Answer::Said(text.to_owned())
    }

    fn around() -> Around {
        Around { path: OsString::new(), puma: Ok(vec!["bundle".into(), "exec".into(), "puma".into()]) }
    }

    #[test]
    fn a_puma_that_cannot_say_its_version_is_a_doubt() {
        let none = Around { puma: Err("no Puma".to_owned()), ..around() };
        let check = puma_check(&around(), &said("puma version 6.4.2\n"));
        assert_eq!((check.grade, check.seen.as_str()), (Grade::Fine, "6.4.2 (bundle exec puma)"));
        let broken = "Could not find gem 'puma' in locally installed gems 1.2.\n";
        assert_eq!(puma_check(&around(), &said(broken)).grade, Grade::Warn);
        assert_eq!(puma_check(&around(), &Answer::Late).grade, Grade::Unknown);
        assert_eq!(puma_check(&none, &Answer::Missing).grade, Grade::Warn);
    }

    #[test]
    fn yjit_is_there_if_ruby_says_so() {
        let of = |yjit| ruby_check(&said("ruby 3.1.2p20 (2022)"), &yjit).seen;
        assert_eq!(of(said("ruby 3.1.2p20 (2022) +YJIT [x86_64-linux]")), "3.1.2p20, with YJIT (-Y)");
        assert_eq!(of(said("ruby: invalid option --yjit")), "3.1.2p20, without YJIT (-Y cannot be used)");
        assert_eq!(ruby_check(&Answer::Missing, &Answer::Missing).grade, Grade::Warn);
    }

    #[test]
    fn generators_are_listed_those_that_are_missing_too() {
        let mut there = [false; 8];
        let mut answers = [const { Answer::Missing }; 8];
        (there[0], there[1], answers[0]) = (true, true, said("wrk 4.1.0 [epoll]"));
        let seen = generators_check(there, &answers).seen;
        assert_eq!(seen, "wrk 4.1.0, hey; not found: oha, ab, h2load, bombardier, wrk2, vegeta");
    }

    #[test]
    fn a_pipe_that_stays_open_holds_nobody_up() {
        let words = ["-c", "echo tool 1.2; sleep 5 &"].map(OsStr::new);
        let mut asked = Asked::start(OsStr::new("sh"), words.into_iter()).unwrap();
        asked.0.wait().unwrap();
        assert_eq!(asked.said().as_deref(), Some("tool 1.2\n"));
    }

    #[test]
    fn a_program_that_does_not_end_is_not_waited_for() {
        let asked = Asked::start(OsStr::new("sleep"), [OsStr::new("1000")].into_iter()).unwrap();
        let pid = asked.0.id();
        assert_eq!(asked.said(), None);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "it was ended");
    }
}
