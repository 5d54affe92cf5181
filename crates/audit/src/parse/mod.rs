//! Reads the output of load tools as claims. What is not understood is left out; the only error is
//! too many claims.

mod closed_loop;
mod hey;
mod open_loop;
mod words;
mod wrk;

use std::borrow::Cow;

use model::MaskedText;
use model::secret::SECRET;

use crate::claim::{Claim, ClaimedServer};
use crate::load_tool::LoadTool;

/// A kind of report: recognises its first line, and reads its claim.
type ReportParser = (fn(&str) -> bool, fn(&ToolReport<'_>) -> Claim);
/// Finds the claims of a format in which each row or line is one.
type RowParser = fn(&[Line<'_>]) -> Vec<Claim>;

const REPORTS: [ReportParser; 7] = [
    (|line| line.starts_with("Running ") && line.contains(" test @ "), wrk::wrk_and_wrk2),
    (|line| line == "Summary:", hey::hey_and_oha),
    (|line| line.starts_with("Concurrency Level:"), closed_loop::ab),
    (
        |line| {
            line.starts_with("Statistics")
                && line.split_whitespace().take(4).eq(["Statistics", "Avg", "Stdev", "Max"])
        },
        closed_loop::bombardier,
    ),
    (|line| line.starts_with("finished in ") && line.contains("req/s"), closed_loop::h2load),
    (|line| line.starts_with("Requests ") && line.contains("[total"), open_loop::vegeta),
    (|line| line.starts_with("requested:") && line.contains("achieved:"), open_loop::workload),
];
const ROWS: [RowParser; 3] = [wrk::response_time_wrk, hey::long_tail, open_loop::attack];

/// The most claims that are audited. Nobody reads more, and a file of nothing but first lines of
/// reports would have hundreds of thousands.
pub const MOST_CLAIMS: usize = 10_000;

/// A text with more than [`MOST_CLAIMS`] claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {MOST_CLAIMS} reports and rows are in it: audit a part of it")]
pub struct TooManyClaims;

/// Every claim in the text, of any tool, in the order of the text.
///
/// # Errors
/// If there are too many.
pub fn claims(text: &str) -> Result<Vec<Claim>, TooManyClaims> {
    let lines = cleaned(text);
    let mut claims = Vec::new();
    for (opens, claim) in REPORTS {
        let of_reports = reports(&lines, opens).map(|report| claim(&report));
        claims.extend(of_reports.filter(Claim::says_something).take(MOST_CLAIMS + 1));
    }
    for rows in ROWS {
        claims.extend(rows(&lines).into_iter().filter(Claim::says_something));
    }
    if claims.len() > MOST_CLAIMS {
        return Err(TooManyClaims);
    }
    claims.sort_by_key(|claim| claim.line);
    Ok(claims)
}

/// A line of the text as the tool printed it: without what a terminal, a mail or another system
/// adds (colours, `> ` of a quote, carriage returns), and without spaces around it.
struct Line<'a> {
    /// Counted from 1.
    number: usize,
    text: Cow<'a, str>,
}

/// The most blank lines in a row that are kept: a command line is searched for at most this many
/// lines above its report.
const BLANK_LINES: usize = 40;

/// The lines of a text.
fn cleaned(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut blank = 0;
    let mut number = 0;
    for line in text.split('\n') {
        // A progress bar ends each frame with a bare carriage return, so each is a line.
        for line in line.strip_suffix('\r').unwrap_or(line).split('\r') {
            number += 1;
            let text = trimmed(without_colours(quoted(line)));
            blank = if text.is_empty() { blank + 1 } else { 0 };
            if blank <= BLANK_LINES {
                lines.push(Line { number, text });
            }
        }
    }
    lines
}

/// What a quoted line (`> text`) quotes.
fn quoted(line: &str) -> &str {
    let mut line = line;
    while let Some(rest) = line.trim_start().strip_prefix("> ") {
        line = rest;
    }
    line
}

fn trimmed(line: Cow<'_, str>) -> Cow<'_, str> {
    match line {
        Cow::Borrowed(line) => Cow::Borrowed(line.trim()),
        Cow::Owned(line) => Cow::Owned(line.trim().to_owned()),
    }
}

fn without_colours(line: &str) -> Cow<'_, str> {
    if !line.contains(['\u{1b}', '\u{a0}']) {
        return Cow::Borrowed(line);
    }
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            plain.push(if c == '\u{a0}' { ' ' } else { c });
        } else if chars.next() == Some('[') {
            // Parameters, then one letter.
            _ = chars.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    Cow::Owned(plain)
}

/// One report in a text: its own lines, and those between it and the first line of the report
/// before it.
struct ToolReport<'a> {
    above: &'a [Line<'a>],
    /// The first one names the tool.
    lines: &'a [Line<'a>],
}

/// Each report: from a line that `opens` recognises to the next such line.
fn reports<'a>(
    lines: &'a [Line<'a>],
    opens: fn(&str) -> bool,
) -> impl Iterator<Item = ToolReport<'a>> {
    let starts: Vec<usize> = (0..lines.len()).filter(|at| opens(&lines[*at].text)).collect();
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([lines.len()]).collect();
    let above_from: Vec<usize> = [0].into_iter().chain(starts.iter().map(|at| at + 1)).collect();
    starts
        .into_iter()
        .zip(ends)
        .zip(above_from)
        .map(|((at, end), from)| ToolReport { above: &lines[from..at], lines: &lines[at..end] })
}

impl<'a> ToolReport<'a> {
    /// A claim with nothing but its tool and its line.
    fn bare_claim(&self, tool: LoadTool) -> Claim {
        Claim::new(tool, self.lines[0].number)
    }

    /// A claim with the nearest command line above it that calls one of `programs`.
    fn claim(&self, tool: LoadTool, programs: &[&str]) -> Claim {
        let calls = |program: &&str| self.near(40).map(bare).find(|line| is_call(line, program));
        let command = programs.iter().find_map(calls).map(command_line);
        Claim { command, ..self.bare_claim(tool) }
    }

    /// The lines above it, the nearest first.
    fn near(&self, lines: usize) -> impl Iterator<Item = &'a str> + use<'a> {
        self.above.iter().rev().take(lines).map(|line| &*line.text)
    }

    /// Its lines.
    fn texts(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.lines.iter().map(|line| &*line.text)
    }
}

/// A tool's command line with its secrets masked, for our output.
fn command_line(line: &str) -> MaskedText {
    // Nobody types a longer one, and there may be many lines to look at.
    const LONGEST: usize = 16 * 1024;
    if line.len() > LONGEST {
        return MaskedText::of_masked(SECRET.to_owned());
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let users = words.windows(2).filter_map(|pair| user_and_password(pair[0], pair[1]));
    MaskedText::from(users.fold(line.to_owned(), |line, user| line.replace(user, SECRET)))
}

/// The user and the password in a word of hey, oha, ab or curl: `-a me:password`, `-ame:password`.
fn user_and_password<'a>(before: &str, word: &'a str) -> Option<&'a str> {
    const FLAGS: [&str; 5] = ["-a", "-A", "-P", "-u", "-U"];
    let glued = FLAGS.iter().find_map(|flag| word.strip_prefix(flag));
    let value = if FLAGS.contains(&before) { word } else { glued? };
    let (user, password) = value.split_once(':')?;
    let is_url = user.contains('/') || password.starts_with("//");
    (!is_url && !password.is_empty()).then_some(value)
}

/// What follows a shell's prompt, or the line itself.
fn bare(line: &str) -> &str {
    let behind =
        ["$ ", "% ", "# "].iter().filter_map(|prompt| line.rfind(prompt).map(|at| at + 2)).max();
    let line = behind.map_or(line, |at| &line[at..]);
    line.trim().trim_matches('`').trim()
}

/// Whether the line calls the program, rather than being prose about it.
fn is_call(line: &str, program: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next().is_some_and(|first| first.rsplit('/').next() == Some(program))
        && (line.contains("://") || words.next().is_some_and(|second| second.starts_with('-')))
}

/// The value of the first of `names` that is given and that `read` makes sense of: `-c 20`, `-c20`,
/// `-c=20`, `--connections=20`.
fn option<T>(command: &str, names: &[&str], read: impl Fn(&str) -> Option<T>) -> Option<T> {
    let words: Vec<&str> = command.split_whitespace().collect();
    words.iter().enumerate().find_map(|(at, word)| {
        names.iter().find_map(|name| {
            let rest = word.strip_prefix(name)?;
            let is_long = name.len() > 2;
            match rest.strip_prefix('=') {
                Some(value) => read(value),
                None if rest.is_empty() => read(words.get(at + 1)?),
                None if is_long => None,
                None => read(rest),
            }
        })
    })
}

/// The value of an option that is a count.
fn count_option(command: &str, names: &[&str]) -> Option<u64> {
    option(command, names, words::option_count)
}

/// Puma's workers and threads, from a line with its options: `-w4 -t5:5`. Without `-w` it is one
/// process.
fn server(line: &str) -> Option<ClaimedServer> {
    let threads =
        option(line, &["-t"], |word| word.trim_end_matches(',').split_once(':')?.1.parse().ok())?;
    let workers = option(line, &["-w"], |word| word.parse().ok()).unwrap_or(1).max(1);
    (threads > 0).then_some(ClaimedServer { workers, threads })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_quotes_and_carriage_returns_are_no_part_of_a_line() {
        let lines = cleaned("> > \u{1b}[31;1mred\u{1b}[0m \r\n10%\r20%");
        let lines: Vec<_> = lines.iter().map(|line| (line.number, &*line.text)).collect();
        assert_eq!(lines, [(1, "red"), (2, "10%"), (3, "20%")]);
    }

    #[test]
    fn blank_lines_are_counted_and_only_so_many_are_kept() {
        let text = "\n \n".repeat(1000) + "Summary:";
        let lines = cleaned(&text);
        assert_eq!(lines.len(), BLANK_LINES + 1);
        assert_eq!(lines[BLANK_LINES].number, 2001);
    }

    #[test]
    fn pumas_options_tell_its_slots() {
        let slots = |line| server(line).map(|server| server.slots());
        assert_eq!(slots("Puma: -w4  -t5:5  dly 0.2   ───"), Some(20));
        assert_eq!(slots("Server cluster mode -w2 -t5:5, bind: tcp6"), Some(10));
        assert_eq!(slots("x.sh -t5:5 -R100"), Some(5));
        assert_eq!(slots("wrk -t8 -c16"), None);
    }

    #[test]
    fn options_are_found_however_they_are_joined() {
        for text in [
            "hey -c 20 -n 5",
            "wrk -t2 -c20",
            "hey -cpus 16 -c 20",
            "x --connections=20 -t8",
            "x -c=20",
        ] {
            assert_eq!(count_option(text, &["-c", "--connections"]), Some(20), "{text}");
        }
        assert_eq!(count_option("hey -cpus 16 http://x", &["-c"]), None);
    }

    #[test]
    fn a_command_is_found_behind_its_prompt_and_prose_is_none() {
        let lines = [
            "me@box:~$ hey -z 20s http://x/",
            "`hey` is a load tester, see https://x",
            "",
            "Summary:",
        ];
        let commands = |lines: &[&str]| -> Vec<Option<MaskedText>> {
            let text = lines.join("\n");
            reports(&cleaned(&text), |line| line == "Summary:")
                .map(|one| one.claim(LoadTool::Hey, &["hey"]).command)
                .collect()
        };
        assert_eq!(commands(&lines), [Some("hey -z 20s http://x/".into())]);
        assert_eq!(commands(&lines[1..]), [None]);
    }
}
