//! Which other tools' command line it may be that was typed without the tool's name, and what
//! each would mean here.

use clap::Command;
use clap::parser::ValueSource;
use model::Nanos;

use super::translation::translate;
use super::typed_flags::{UnknownFlags, is_url};
use super::{find_url, load_of, parsed_load};
use crate::args::mistakes::unknown_words;
use crate::args::other_tools::flags::{OtherTool, TOOLS, URL, UrlPlace};
use crate::args::other_tools::synonyms;
use crate::exit::{LineToType, LinesToType};

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
        found.take_encodings(tool, &[], words);
        let line = found.whole_line(whole, tool, &[]);
        found.note_redirects(tool, words, None);
        found.note_unasked(tool, &[], &line);
        line
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
