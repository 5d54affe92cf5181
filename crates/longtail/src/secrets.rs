//! Secrets on our own command line. Which words hold them follows from the parser's own definition,
//! so that a new flag is masked as it is parsed.
//!
//! Secrets within a word (a header, a URL, a setting) are found by `model::secret`.

use std::sync::OnceLock;

use clap::{Arg, Command};
use model::MaskedText;
use model::plan::quoted;
use model::secret::{SECRET, is_secret_name, masked_body, masked_word, masked_words, what_to_put};

use crate::args::other_tools::command_lines::{self, TypedWord};
use crate::args::other_tools::flags::{BODY, OtherTool, Spelling, truth_of};
use crate::args::other_tools::synonyms;
use crate::exit::{LineToType, LinesToType, Mistake, wrong};

/// Flags whose value is a command line of ours.
const FLAGS_OF_WORDS: [&str; 2] = ["arms", "arm"];

/// Short flags of curl, ab and the like that take a user and a password.
const OTHERS_USER_FLAGS: [char; 4] = ['u', 'U', 'P', 'A'];

/// Shorter secrets are not looked for in messages: they would be found in too many words.
const SHORTEST: usize = 4;

/// The words of a command line without their secrets, and those secrets.
#[derive(Clone, Debug, Default)]
pub(crate) struct MaskedWords {
    /// As many words as there were.
    pub(crate) words: Vec<String>,
    /// The secrets, to be looked for in messages.
    secrets: Vec<Hidden>,
}

/// A secret that a message may repeat, and what replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hidden {
    text: String,
    shown: String,
}

/// What is known of this process's own command line.
struct OwnWords {
    /// The parser's definition of all of longtail.
    whole: Command,
    masked: MaskedWords,
}

static OURS: OnceLock<OwnWords> = OnceLock::new();

/// Notes the words of this process, without its name; `whole` is the parser's definition of
/// longtail.
pub(crate) fn note_words(whole: Command, words: &[String]) {
    let masked = MaskedWords::of(&whole, words);
    let _ = OURS.set(OwnWords { whole, masked });
}

/// This process's command line as it was typed, quoted for a shell, without secrets.
pub(crate) fn command_line() -> MaskedText {
    OURS.get().map_or_else(|| line(&[]), |ours| line(&ours.masked.words))
}

/// `longtail` and these words, which are masked already.
pub(crate) fn line(masked: &[String]) -> MaskedText {
    let words = masked.iter().map(|word| format!(" {}", quoted(word)));
    MaskedText::of_masked(format!("longtail{}", words.collect::<String>()))
}

/// A command line of ours from a file, which may not be masked yet.
pub(crate) fn line_again(line: &str) -> MaskedText {
    let Some(words) = shlex::split(line) else { return MaskedText::from(line) };
    let Some(at) = words.iter().position(|word| word == "longtail") else {
        return MaskedText::from(line);
    };
    let Some(ours) = OURS.get() else { return MaskedText::from(line) };
    let masked = MaskedWords::of(&ours.whole, &words[at + 1..]);
    let settings = words[..at].iter().map(|word| quoted(&masked_word(word)) + " ");
    let rest = self::line(&masked.words);
    MaskedText::of_masked(settings.collect::<String>() + &rest)
}

/// What to put in the place of each secret in lines of ours; `None` if none is masked.
pub(crate) fn missing_in(line: &str) -> Option<String> {
    what_to_put(&shlex::split(line)?)
}

/// Lines in which the shell puts in each header that is a secret of several of them, so that it is
/// typed once; where its variable is not set, the shell refuses the line.
pub(crate) fn with_variables(mut lines: LinesToType) -> LinesToType {
    let end = format!(": {SECRET}");
    let mut headers: Vec<String> = Vec::new();
    for LineToType { line, .. } in &lines.lines {
        let words = shlex::split(line).unwrap_or_default();
        let hidden = words.windows(2).filter(|pair| pair[0] == "-H" && pair[1].ends_with(&end));
        headers.extend(hidden.map(|pair| pair[1].clone()));
    }
    let mut variables: Vec<String> = Vec::new();
    for header in &headers {
        let shown = quoted(header);
        let has_it = |one: &&LineToType| one.line.contains(&shown);
        let name = header.trim_end_matches(&*end);
        let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if !is_plain || lines.lines.iter().filter(has_it).count() < 2 {
            continue;
        }
        let variable = name.to_ascii_uppercase().replace('-', "_");
        let filled = format!("\"{name}: ${{{variable}:?}}\"");
        for one in &mut lines.lines {
            one.line = one.line.replace(&shown, &filled);
        }
        variables.push(format!(
            "first set {variable} to the value of {name} (read -rs {variable} shows nothing)"
        ));
    }
    if !variables.is_empty() {
        lines.rest.extend(["; ", &variables.join("; ")]);
    }
    lines
}

/// A line from elsewhere (a shell on another machine, a server) that may hold our secrets or
/// others.
pub(crate) fn masked_line(line: &str) -> String {
    without_ours(&model::secret::masked(line))
}

/// A message without the secrets of this command line.
pub(crate) fn without_ours(text: &str) -> String {
    OURS.get().map_or_else(|| text.to_owned(), |ours| ours.masked.without_secrets(text))
}

/// Refuses a line with a masked secret in it, which was pasted from a report or an answer.
///
/// # Errors
/// Where the secret is missing.
pub(crate) fn refuse_placeholder(words: &[String]) -> Result<(), Mistake> {
    let Some(at) = words.iter().position(|word| word.contains(SECRET)) else { return Ok(()) };
    let word = &words[at];
    let before =
        at.checked_sub(1).map(|at| words[at].as_str()).filter(|word| word.starts_with('-'));
    let shown = before.map(|flag| format!("{flag} ")).unwrap_or_default() + &quoted(word);
    let typed = [before.unwrap_or_default(), word].map(str::to_owned);
    let missing = what_to_put(&typed).map(|what| format!("; {what}")).unwrap_or_default();
    Err(wrong(format!(
        "{shown}: {SECRET} stands for the value that you typed: longtail prints no secrets, put it in again{missing}"
    )))
}

/// Where the name of another tool stands whose line this is: before any command of ours, or directly
/// behind one (`longtail load wrk`).
fn place_of_tool(whole: &Command, words: &[String]) -> Option<usize> {
    let is_tool = |at: usize| words.get(at).is_some_and(|word| OtherTool::of(word).is_some());
    let is_command = |at: usize| whole.find_subcommand(&words[at]).is_some();
    let first = (0..words.len()).find(|at| is_tool(*at) || is_command(*at))?;
    if is_tool(first) {
        return Some(first);
    }
    if is_tool(first + 1) { Some(first + 1) } else { None }
}

/// Whether the parser takes these letters for short flags, the last perhaps with its value: then
/// they are not the name of a long flag.
fn are_short_flags(command: &Command, letters: &str) -> bool {
    for letter in letters.chars() {
        match command.get_arguments().find(|arg| arg.get_short() == Some(letter)) {
            None => return false,
            Some(arg) if takes_value(arg) => return true,
            Some(_) => {}
        }
    }
    true
}

impl MaskedWords {
    /// Masks the words after the program's name; `whole` is the parser's definition of longtail.
    pub(crate) fn of(whole: &Command, words: &[String]) -> MaskedWords {
        let mut masked = MaskedWords::default();
        masked.take_command(whole, words);
        masked.secrets.retain(|hidden| hidden.text.chars().count() >= SHORTEST);
        masked.secrets.sort_by_key(|hidden| std::cmp::Reverse(hidden.text.len()));
        masked.secrets.dedup();
        masked
    }

    /// A message without these secrets.
    pub(crate) fn without_secrets(&self, text: &str) -> String {
        self.secrets
            .iter()
            .fold(text.to_owned(), |text, hidden| text.replace(&hidden.text, &hidden.shown))
    }

    /// Masks words by the flags of the command that they name.
    fn take_command(&mut self, whole: &Command, words: &[String]) {
        if let Some(at) = place_of_tool(whole, words)
            && let Some(tool) = OtherTool::of(&words[at])
            && let Some(load) = whole.find_subcommand("load")
        {
            self.take_flags(whole, whole, &words[..at]);
            self.words.push(words[at].clone());
            return self.take_tool(whole, load, tool, &words[at + 1..]);
        }
        // A comparison may be typed as another command (`longtail overhead`).
        let found = words.iter().enumerate().find_map(|(at, word)| {
            let name = if word == "overhead" { "compare" } else { word };
            Some((at, whole.find_subcommand(name)?))
        });
        if let Some((at, command)) = found
            && command.get_name() == "attack"
            && command_lines::are_vegetas(&words[at + 1..])
            && let Some(tool) = OtherTool::of("vegeta")
        {
            self.take_flags(whole, whole, &words[..at]);
            self.words.push(words[at].clone());
            return self.take_tool(whole, command, tool, &words[at + 1..]);
        }
        let Some((at, command)) = found else {
            // Flags without a command are those of a load, or of a sweep, which needs no URL.
            let is_load = words.iter().any(|word| synonyms::is_url(word));
            let name = if is_load { "load" } else { "sweep" };
            let command = whole.find_subcommand(name).unwrap_or(whole);
            return self.take_flags(whole, command, words);
        };
        self.take_flags(whole, whole, &words[..at]);
        self.words.push(words[at].clone());
        let rest = &words[at + 1..];
        // `longtail fleet load` has the words of a load.
        let inner = rest.iter().position(|word| command.find_subcommand(word).is_some());
        match inner {
            Some(at) => {
                self.take_flags(whole, command, &rest[..at]);
                self.take_command(whole, &rest[at..]);
            }
            None => self.take_flags(whole, command, rest),
        }
    }

    /// Masks the flags and values of one command.
    fn take_flags(&mut self, whole: &Command, command: &Command, words: &[String]) {
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if word == "--" {
                self.words.push(word.clone());
                let behind: Vec<String> = rest.cloned().collect();
                self.take_others(whole, command, words, &behind);
                return;
            }
            if let Some(long) = word.strip_prefix("--") {
                self.take_long(whole, command, long, &mut rest);
            } else if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                self.take_short(whole, command, letters, &mut rest);
            } else {
                self.push(word, &masked_word(word));
            }
        }
    }

    /// What follows `--`: the words of a load, of another tool, or of a server.
    fn take_others(
        &mut self,
        whole: &Command,
        command: &Command,
        all: &[String],
        words: &[String],
    ) {
        let has_load = matches!(command.get_name(), "load" | "attack" | "generate");
        let load = whole.find_subcommand("load").filter(|_| has_load);
        let tool =
            all.iter().find_map(|word| OtherTool::of(word.rsplit('=').next().unwrap_or(word)));
        match (load, tool) {
            (Some(load), Some(tool)) => self.take_tool(whole, load, tool, words),
            (Some(load), None) => self.take_flags(whole, load, words),
            (None, _) => {
                for (word, masked) in words.iter().zip(masked_words(words)) {
                    self.push(word, &masked);
                }
            }
        }
    }

    /// The words of another tool, by what it takes for values. What it does not know may be a flag
    /// of a load.
    fn take_tool(
        &mut self,
        whole: &Command,
        load: &Command,
        tool: &'static OtherTool,
        words: &[String],
    ) {
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let next = words.get(at + 1);
            let Ok(read) = tool.read(word, next.map(String::as_str)) else {
                // A value that is none, such as the URL behind `-d` without a time, is no secret of it.
                if let Some(value) = tool.flag_of_number(word) {
                    let before = &word[..word.len() - value.len()];
                    self.push(word, &format!("{before}{}", masked_word(value)));
                    at += 1;
                    continue;
                }
                // Go's tools have no letters in one word: what they do not know is one name.
                if tool.spelling == Spelling::Go
                    && let Some((name, value)) = plain_flag(word)
                    && !is_secret_name(name)
                {
                    let before = &word[..word.len() - value.len()];
                    self.push(word, &format!("{before}{}", masked_word(value)));
                    at += 1;
                    continue;
                }
                return self.take_flags(whole, load, &words[at..]);
            };
            at += 1;
            let TypedWord::Flags { flags, takes_next } = read else {
                self.push(word, &masked_word(word));
                continue;
            };
            // Only the last flag of a word takes a value.
            let last = flags.last();
            let value = last.map_or("", |typed| typed.typed_value.as_str());
            let hidden = last.map_or_else(String::new, |typed| typed.flag.masked(value));
            if let Some(next) = next.filter(|_| takes_next) {
                self.words.push(word.clone());
                self.push(next, &hidden);
                at += 1;
            } else {
                let before = word.strip_suffix(value).unwrap_or(word);
                self.push(word, &format!("{before}{hidden}"));
            }
        }
    }

    /// `--name`, `--name=value`, `--name value`.
    fn take_long<'w>(
        &mut self,
        whole: &Command,
        command: &Command,
        word: &str,
        rest: &mut impl Iterator<Item = &'w String>,
    ) {
        let (name, glued) =
            word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let known = command.get_arguments().find(|arg| is_called(arg, name));
        // Another tool's flag is refused later; until then its value counts as that of our flag for
        // it.
        let meant = synonyms::meant(command, name);
        let holds = FlagValue::of(known.or(meant), name);
        let takes_value = known.map_or(meant.is_some() || holds == FlagValue::Secret, takes_value);
        if let Some(value) = glued {
            let masked = self.masked_value(whole, holds, value);
            self.words.push(format!("--{name}={masked}"));
            return;
        }
        self.words.push(format!("--{word}"));
        if takes_value && let Some(value) = rest.next() {
            let masked = self.masked_value(whole, holds, value);
            self.words.push(masked);
        }
    }

    /// `-k`, `-kc5`, `-ka user:password`: letters, the last of which may take a value.
    fn take_short<'w>(
        &mut self,
        whole: &Command,
        command: &Command,
        letters: &str,
        rest: &mut impl Iterator<Item = &'w String>,
    ) {
        // Go's tools have long flags with one dash.
        let name = letters.split('=').next().unwrap_or_default();
        let is_long = name.len() > 1
            && (is_secret_name(name) && !are_short_flags(command, letters)
                || command.get_arguments().any(|arg| is_called(arg, name))
                || synonyms::is_known(name)
                || OtherTool::any_has_long(name));
        if is_long {
            let at = self.words.len();
            self.take_long(whole, command, letters, rest);
            self.words[at].remove(0);
            return;
        }
        // `-k=false`, of a switch.
        let given = letters.split_once('=').map(|(_, value)| value);
        if name.len() == 1
            && given.and_then(truth_of).is_some()
            && command
                .get_arguments()
                .any(|arg| name.starts_with(|c| has_letter(arg, c)) && !takes_value(arg))
        {
            self.words.push(format!("-{letters}"));
            return;
        }
        for (at, letter) in letters.char_indices() {
            let known = command.get_arguments().find(|arg| has_letter(arg, letter));
            let is_user = known.is_none() && OTHERS_USER_FLAGS.contains(&letter);
            if !is_user && !known.is_some_and(takes_value) {
                continue;
            }
            let holds =
                if is_user { FlagValue::User } else { FlagValue::of(known, &letter.to_string()) };
            let value_at = at + letter.len_utf8();
            let (flags, value) = letters.split_at(value_at);
            if !value.is_empty() {
                let equals = if value.starts_with('=') { "=" } else { "" };
                let masked = self.masked_value(whole, holds, &value[equals.len()..]);
                self.words.push(format!("-{flags}{equals}{masked}"));
                return;
            }
            self.words.push(format!("-{letters}"));
            if let Some(value) = rest.next() {
                let masked = self.masked_value(whole, holds, value);
                self.words.push(masked);
            }
            return;
        }
        self.words.push(format!("-{letters}"));
    }

    /// A flag's value without its secrets.
    fn masked_value(&mut self, whole: &Command, holds: FlagValue, value: &str) -> String {
        let masked = match holds {
            FlagValue::Secret if value.is_empty() => String::new(),
            // What a line to paste has in the place of a body that is not known.
            FlagValue::Body if value == BODY => value.to_owned(),
            FlagValue::Body => masked_body(value),
            FlagValue::RawBody if !is_text_behind_at(value) => masked_body(value),
            FlagValue::User if synonyms::is_url(value) => masked_word(value),
            // autocannon's number of requests.
            FlagValue::Credentials if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                value.to_owned()
            }
            FlagValue::User if !value.contains(':') => masked_word(value),
            FlagValue::Secret | FlagValue::RawBody | FlagValue::Credentials | FlagValue::User => {
                SECRET.to_owned()
            }
            FlagValue::Words => self.masked_arm(whole, value),
            FlagValue::Text => command_lines::masked_but_unknown(value),
        };
        if masked != value {
            self.hide_what_differs(value, &masked);
        }
        masked
    }

    /// Words of a comparison, behind their arm's name.
    fn masked_arm(&mut self, whole: &Command, value: &str) -> String {
        let named = value.split_once('=').filter(|(name, _)| !name.starts_with('-'));
        let options = named.map_or(value, |(_, options)| options);
        let name = &value[..value.len() - options.len()];
        let Some(words) = shlex::split(options) else { return masked_word(value) };
        let mut arm = MaskedWords::default();
        if let Some(compare) = whole.find_subcommand("compare") {
            arm.take_flags(whole, compare, &words);
        }
        self.secrets.extend(arm.secrets);
        if arm.words == words {
            return value.to_owned();
        }
        let shown: Vec<_> = arm.words.iter().map(|word| quoted(word)).collect();
        format!("{name}{}", shown.join(" "))
    }

    fn push(&mut self, word: &str, masked: &str) {
        if word != masked {
            self.hide_what_differs(word, masked);
        }
        self.words.push(masked.to_owned());
    }

    /// Notes what stands in `word` where `masked` has a placeholder.
    fn hide_what_differs(&mut self, word: &str, masked: &str) {
        // The rest of the word stays readable: it is what the message is about.
        self.secrets.push(Hidden { text: word.to_owned(), shown: masked.to_owned() });
        let mut rest = word;
        let mut parts = masked.split(SECRET);
        let Some(first) = parts.next() else { return };
        rest = rest.strip_prefix(first).unwrap_or(rest);
        for part in parts {
            let end =
                if part.is_empty() { rest.len() } else { rest.find(part).unwrap_or(rest.len()) };
            self.hide(&rest[..end]);
            rest = rest.get(end + part.len()..).unwrap_or_default();
        }
    }

    fn hide(&mut self, secret: &str) {
        self.secrets.push(Hidden { text: secret.to_owned(), shown: SECRET.to_owned() });
    }
}

/// Whether a body begins with @ and is then no name of a file, such as `@body.json`: bare words may
/// be a secret.
fn is_text_behind_at(body: &str) -> bool {
    let is_ending = |ending: &str| {
        (1..=4).contains(&ending.len()) && ending.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    body.strip_prefix('@').is_some_and(|name| {
        !name.rsplit_once('.').is_some_and(|(stem, ending)| !stem.is_empty() && is_ending(ending))
    })
}

/// The name and the value of `-name=value` or `-name`, if that is a plain name.
fn plain_flag(word: &str) -> Option<(&str, &str)> {
    let flag = word.strip_prefix('-')?;
    let flag = flag.strip_prefix('-').unwrap_or(flag);
    let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
    let is_plain = name.len() > 1 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    is_plain.then_some((name, value))
}

/// What a flag's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlagValue {
    /// A secret, all of it.
    Secret,
    /// A body, in which there may be a secret, or `@FILE`.
    Body,
    /// A body where `@` is text.
    RawBody,
    /// `user:password` of our own flag.
    Credentials,
    /// A secret, where it has a colon: `user:password` in another tool's words.
    User,
    /// Words of our own.
    Words,
    /// Text that may hold a secret: a header, a URL, a setting.
    Text,
}

impl FlagValue {
    fn of(arg: Option<&Arg>, name: &str) -> FlagValue {
        let id = arg.map_or("", |arg| arg.get_id().as_str());
        let long = arg.and_then(Arg::get_long).unwrap_or(name);
        let is_file = arg.is_some_and(|arg| {
            arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "FILE"))
        });
        if id == "data" {
            FlagValue::Body
        } else if id == "data_raw" {
            FlagValue::RawBody
        } else if id == "auth" {
            FlagValue::Credentials
        } else if is_secret_name(long) && !is_file {
            FlagValue::Secret
        } else if FLAGS_OF_WORDS.contains(&id) {
            FlagValue::Words
        } else {
            FlagValue::Text
        }
    }
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

fn is_called(arg: &Arg, name: &str) -> bool {
    arg.get_long() == Some(name)
        || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
}

fn has_letter(arg: &Arg, letter: char) -> bool {
    arg.get_short() == Some(letter)
        || arg.get_all_short_aliases().is_some_and(|aliases| aliases.contains(&letter))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::commands;

    fn masked(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        MaskedWords::of(&commands::definition(), &words).words
    }

    /// Each short flag that takes a value, with the name of its command, and that command's short
    /// flags without a value, which may stand before it in the same word.
    fn short_flags() -> Vec<(String, char, Vec<char>)> {
        let whole = commands::definition();
        let commands = whole.get_subcommands().filter(|one| !one.has_subcommands());
        let of = |command: &Command| {
            let plain: Vec<char> = command
                .get_arguments()
                .filter(|arg| !takes_value(arg))
                .filter_map(Arg::get_short)
                .collect();
            let name = command.get_name().to_owned();
            let valued = command.get_arguments().filter(|arg| takes_value(arg));
            valued
                .flat_map(|arg| arg.get_short_and_visible_aliases().unwrap_or_default())
                .map(|letter| (name.clone(), letter, plain.clone()))
                .collect::<Vec<_>>()
        };
        commands.flat_map(of).collect()
    }

    /// Values in which every flag's secret is known by what stands around it.
    const VALUES: [&str; 5] = [
        "http://me:hunter2@h/",
        "Authorization: hunter2",
        "--env API_TOKEN=hunter2",
        "API_TOKEN=hunter2",
        "me:hunter2@h:80",
    ];

    proptest! {
        #[test]
        fn short_flags_are_masked_however_they_are_combined(
            (command, letter, plain) in prop::sample::select(short_flags()),
            picked in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
            value in prop::sample::select(VALUES.to_vec()),
            way in 0..3,
        ) {
            let before: String = picked
                .iter()
                .filter(|_| !plain.is_empty())
                .map(|index| plain[index.index(plain.len())])
                .collect();
            let flags = format!("-{before}{letter}");
            let words = match way {
                0 => masked(&[&command, &format!("{flags}{value}")]),
                1 => masked(&[&command, &format!("{flags}={value}")]),
                _ => masked(&[&command, &flags, value]),
            };
            prop_assert!(!words.concat().contains("hunter2"), "{words:?}");
            prop_assert!(words[1].starts_with(&flags), "{words:?}");
        }
    }

    #[test]
    fn a_password_that_reads_like_a_name_is_masked_all_the_same() {
        let words = masked(&["load", "-kame:SECRETTOKEN", "http://h/"]);
        assert_eq!(words[2], "http://h/", "{words:?}");
        assert!(!words[1].contains("SECRETTOKEN"), "{words:?}");
    }

    #[test]
    fn a_user_and_a_password_are_secret_in_every_flag_for_them() {
        let whole = commands::definition();
        for command in whole.get_subcommands() {
            let of_users = command.get_arguments().filter(|arg| {
                arg.get_value_names()
                    .is_some_and(|names| names.iter().any(|name| name.contains("PASSWORD")))
            });
            for arg in of_users {
                let name = arg.get_long().expect("it has a long name");
                let glued = format!("--{name}=me:hunter2");
                let words = masked(&[command.get_name(), &glued, &format!("--{name}"), "hunter2"]);
                assert!(!words.concat().contains("hunter2"), "{words:?}");
            }
        }
    }

    #[test]
    fn what_is_another_tools_or_a_servers_is_masked_too() {
        for words in [
            ["load", "-u", "me:hunter2", "http://h/"],
            ["load", "--user", "me:hunter2", "http://h/"],
            ["load", "--user=me:hunter2", "-c5", "http://h/"],
            ["load", "--api-key", "hunter2", "http://h/"],
            ["load", "-api-key=hunter2", "-c5", "http://h/"],
            ["sweep", "--", "env", "API_TOKEN=hunter2"],
            ["sweep", "--", "./serve", "--password=hunter2"],
            ["sweep", "--", "sh", "-c TOKEN=hunter2 exec serve"],
            ["compare", "--env", "SECRET_KEY_BASE=hunter2", "--arm="],
            ["compare", "--arm", "--env API_TOKEN=hunter2", "--arm="],
            ["compare", "--arm=b=--env 'API_TOKEN=a hunter2'", "--arm=", "-k"],
            ["compare", "--arm", "auth=main --env API_TOKEN=hunter2", "-k"],
            ["compare", "--arm", "b=-- env TOKEN=hunter2 ./serve", "-k"],
            ["overhead", "--env", "API_TOKEN=hunter2", "--arms=proc"],
            ["fleet", "load", "-ame:hunter2", "http://h/"],
            ["fleet", "--dir=x", "load", "--auth=me:hunter2"],
            ["load", "--from", "env TOKEN=hunter2 ssh box2", "http://h/"],
            ["load", "--otlp", "http://me:hunter2@h:4318", "http://h/"],
            ["watch", "h:9292", "--control-token", "hunter2"],
            ["sweep", "--puma", "env TOKEN=hunter2 puma", "-w2"],
            ["sweep", "--path", "/?token=hunter2", "-w2"],
            ["load", "--connect-to", "me:hunter2@h:80", "http://h/"],
        ] {
            let shown = masked(&words);
            assert!(!shown.concat().contains("hunter2"), "{shown:?}");
            assert_eq!(shown.len(), words.len());
        }
        let secret = "token=hunter2";
        let hey = ["load", "--as", "hey", "--", "-a", "me:hunter2", "-d", secret, "http://h/"];
        assert!(!masked(&hey).concat().contains("hunter2"));
        let wrk =
            ["load", "--as", "wrk", "--", "-d", "10s", "-H", "X-Api-Key: hunter2", "http://h/"];
        assert_eq!(masked(&wrk)[4..6], ["-d", "10s"]);
        assert!(!masked(&wrk).concat().contains("hunter2"));
        let hey = ["hey", "-a", "me:hunter2", "-d", secret, "http://h/"];
        assert!(!masked(&hey).concat().contains("hunter2"));
        assert_eq!(masked(&["wrk", "-d", "10s", "http://h/"])[1..3], ["-d", "10s"]);
        for words in [["-pace=linear", "-rate=5"], ["-pace", "linear"], ["-ab-cd=e", "-rate=5"]] {
            let vegeta = ["vegeta", "attack", words[0], words[1]];
            assert_eq!(masked(&vegeta)[2..], words, "no name is cut up");
        }
        for words in [["-ame:hunter2", "-rate=5"], ["-auth=hunter2", "-rate=5"]] {
            let vegeta = ["vegeta", "attack", words[0], words[1]];
            assert!(!masked(&vegeta).concat().contains("hunter2"));
        }
    }

    #[test]
    fn an_arms_name_is_none_of_its_settings() {
        for arm in ["auth=-t3:3", "token=main -k", "api-key=--env A=b", "secret="] {
            assert_eq!(masked(&["compare", "--arm", arm])[2], arm);
        }
        let arm = "token=--env API_TOKEN=hunter2 -k";
        let shown = "token=--env 'API_TOKEN=(secret)' -k";
        assert_eq!(masked(&["compare", "--arm", arm])[2], shown);
        let words = ["compare", "--arm", arm].map(str::to_owned);
        let said = MaskedWords::of(&commands::definition(), &words)
            .without_secrets(&format!("--arm '{arm}': hunter2 x"));
        assert_eq!(said, format!("--arm '{shown}': (secret) x"));
    }

    #[test]
    fn an_older_line_is_masked_when_it_is_read() {
        note_words(commands::definition(), &[]);
        let line = "PUMA_TEST_PORT=9292 longtail load -kame:hunter2 -d token=hunter2 http://h/";
        assert_eq!(
            &*line_again(line),
            "PUMA_TEST_PORT=9292 longtail load '-ka(secret)' -d 'token=(secret)' http://h/"
        );
        let masked = "longtail load -H 'X-Api-Key: (secret)' http://h/";
        assert_eq!(&*line_again(masked), masked);
    }
}
