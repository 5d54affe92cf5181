//! Printing: results to stdout, progress and errors to stderr. (The screen of `watch`, logs to
//! stdout and pipes between processes are elsewhere.)
//!
//! If stderr is not read (Ctrl-S, or a pipe into a pager), lines are dropped, and the measurement goes
//! on. Only results on stdout wait for their reader, and they are on disk by then. What a long command
//! shows meanwhile is drawn by `progress`.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use anstyle::{AnsiColor, Style};
use model::Nanos;
use report::Width;
use report::answer::Emphasis;
use serde::Serialize;

use crate::exit::{Exit, LinesToType, Mistake};
use crate::live_block;
use crate::secrets;
use crate::study_files::is_full;
use crate::terminal::{LEFT_OUT, TerminalSize, harmless, takes_more, write_to_stderr};

/// How often writing to stdout began or ended, so it is odd during a write.
static PRINTS: AtomicU64 = AtomicU64::new(0);

/// Set once writing to stdout has failed: [`Exit::Fine`] if its reader is gone (`| head`), which is
/// no error, or [`Exit::Unwritten`], as on a full disk.
static STDOUT_LOST: OnceLock<Exit> = OnceLock::new();

/// Prints to stdout. After a failure nothing more is printed: see [`stdout_lost`].
pub(crate) fn print(text: &str) {
    write_out(&harmless(text));
}

fn write_out(text: &str) {
    if stdout_lost().is_some() {
        return;
    }
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        live_block::lift();
    }
    PRINTS.fetch_add(1, Ordering::SeqCst);
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    PRINTS.fetch_add(1, Ordering::SeqCst);
    if let Err(error) = written {
        let has_reader = error.kind() != io::ErrorKind::BrokenPipe;
        if has_reader {
            let hint = if is_full(&error) { ": give it a place with room" } else { "" };
            note(&format!("stdout cannot be written ({error}){hint}"));
        }
        let _ = STDOUT_LOST.set(Exit::Unwritten.if_so(has_reader));
    }
}

/// The exit code once stdout cannot be written any more. Work that is only done to be printed may end
/// then.
pub(crate) fn stdout_lost() -> Option<Exit> {
    STDOUT_LOST.get().copied()
}

/// A number for the write to stdout that is in progress. The same number twice means that nobody has
/// read meanwhile.
pub(crate) fn print_in_progress() -> Option<u64> {
    Some(PRINTS.load(Ordering::SeqCst)).filter(|prints| prints % 2 == 1)
}

/// Prints a value to stdout as JSON.
pub(crate) fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).expect("its keys are strings");
    print(&(text + "\n"));
}

/// Applies `--color`; `auto` leaves it to `NO_COLOR`, `CLICOLOR_FORCE` and the terminal.
pub(crate) fn choose_color(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => {}
        clap::ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
        clap::ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
    }
}

/// Prints to stdout, in colour if wanted. Text with control characters is printed without colour.
pub(crate) fn print_painted(
    plain: &str,
    painted: impl FnOnce(&dyn Fn(Emphasis, &str) -> String) -> String,
) {
    let is_colored = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
    if is_colored && matches!(harmless(plain), Cow::Borrowed(_)) {
        write_out(&painted(&in_color));
    } else {
        print(plain);
    }
}

/// Bad is red, doubtful yellow, the conclusion bold. Words say the same, for those without colours.
fn in_color(emphasis: Emphasis, text: &str) -> String {
    let style = match emphasis {
        Emphasis::Plain => Style::new(),
        Emphasis::Strong => Style::new().bold(),
        Emphasis::Doubtful => AnsiColor::Yellow.on_default(),
        Emphasis::Bad => AnsiColor::Red.on_default().bold(),
    };
    format!("{style}{text}{style:#}")
}

/// The width of the terminal; any width if stdout is none, or its width is not known.
pub(crate) fn terminal_width() -> Width {
    let size = TerminalSize::of(io::stdout()).ok().filter(|size| size.columns > 0);
    size.map_or(Width::ANY, |size| Width::of(size.columns.into()))
}

/// How many lines an answer may have so that all of it is on the screen when the prompt is back, with
/// `below` lines between both; `None` if stdout is no terminal, or one that is too small for any answer.
pub(crate) fn rows_for_answer(below: usize) -> Option<usize> {
    /// A smaller one has no room even for the table and the conclusion.
    const LEAST: u16 = 20;
    const PROMPT: usize = 1;
    let size = TerminalSize::of(io::stdout()).ok().filter(|size| size.rows >= LEAST)?;
    Some(usize::from(size.rows) - PROMPT - below)
}

/// Each of these lines, broken at spaces where it is too wide.
pub(crate) fn broken(text: &str, width: Width) -> String {
    let mut broken = String::new();
    for line in text.split('\n') {
        if width.fits(line.chars().count()) {
            broken.extend([line, "\n"]);
        } else if line.starts_with(' ') {
            report::wrap(&mut broken, width, "", line);
        } else {
            broken += &report::broken(line, width);
        }
    }
    broken
}

/// The width of the terminal at stderr; any width if it is none.
fn width_of_stderr() -> Width {
    let is_terminal = io::stderr().is_terminal();
    if is_terminal { Width::of(TerminalSize::of_stderr().columns.into()) } else { Width::ANY }
}

/// Writes a line to stderr, broken at spaces where a terminal is narrower. It is no error if nobody
/// reads it. While its reader has stopped, lines are dropped, and their number is reported when it
/// reads on.
pub(crate) fn say(line: &str) {
    say_as_broken(&broken(&harmless(line), width_of_stderr()));
}

/// Writes lines to stderr that are broken already.
fn say_as_broken(text: &str) {
    live_block::lift();
    let left_out = LEFT_OUT.load(Ordering::Relaxed);
    if left_out > 0 && takes_more(io::stderr(), Nanos::ZERO) {
        LEFT_OUT.store(0, Ordering::Relaxed);
        write_to_stderr(&format!(
            "longtail: {left_out} lines are missing here, because stderr was not read\n"
        ));
    }
    if !write_to_stderr(text) {
        LEFT_OUT.fetch_add(1, Ordering::Relaxed);
    }
}

/// Tells the user something on stderr. Secrets are masked, which a server or another tool may repeat.
pub(crate) fn note(text: &str) {
    say(&format!("longtail: {}", secrets::without_ours(text)));
}

/// Reports a mistake on stderr: the server's last lines, if any, then one line of ours.
pub(crate) fn complain(mistake: &Mistake) {
    for line in mistake.last_lines() {
        say(&format!("  | {}", secrets::masked_line(line)));
    }
    match mistake {
        Mistake::ToType(lines) => {
            say_as_broken(&harmless(&secrets::without_ours(&laid_out(lines, width_of_stderr()))));
        }
        _ => note(&mistake.to_string()),
    }
}

/// Columns of sentences about lines to paste where no terminal says how many there are.
const COLUMNS_OF_SENTENCES: usize = 100;

/// Lines to paste: each alone, with what is said of it below, and one that is too wide for a terminal
/// broken for a shell. A single one of which there is nothing to say stands behind its sentence if
/// both fit.
fn laid_out(lines: &LinesToType, terminal: Width) -> String {
    let width = if terminal == Width::ANY { Width::of(COLUMNS_OF_SENTENCES) } else { terminal };
    let whole = format!("longtail: {lines}");
    let is_alone = matches!(&lines.lines[..], [line] if line.notes.is_empty());
    if is_alone && width.fits(whole.chars().count()) {
        return whole + "\n";
    }
    let rest = lines.rest.trim_start_matches([',', ';', ' ']);
    let mut text = String::new();
    for (at, line) in lines.lines.iter().enumerate() {
        let before = line.before.trim_start_matches("; ").trim_end();
        let before = if at == 0 { format!("longtail: {before}") } else { before.to_owned() };
        if !before.is_empty() {
            text += &broken(&before, width);
        }
        text += &broken_command(&line.line, terminal);
        let rest = Some(rest).filter(|rest| lines.lines.len() == 1 && !rest.is_empty());
        for note in rest.into_iter().chain(line.notes.iter().map(String::as_str)) {
            let mut lines = String::new();
            report::wrap(&mut lines, width, "", &format!("  {}", with_quotes_whole(note)));
            text += &lines.replace(HELD_SPACE, " ");
        }
    }
    if lines.lines.len() > 1 && !rest.is_empty() {
        text += &broken(rest, width);
    }
    text
}

/// Stands for a space at which a line is not broken; no text has it.
const HELD_SPACE: char = '\u{e000}';

/// Bytes of a word in quotes that fits into any terminal.
const LONGEST_WHOLE: usize = 40;

/// A sentence that is not broken between the quotes of a command's word: `--expect 'max < 2s'`.
fn with_quotes_whole(note: &str) -> String {
    const QUOTE: char = '\'';
    let mut whole = String::with_capacity(note.len());
    let mut is_quoted = false;
    for (at, letter) in note.char_indices() {
        if letter == QUOTE {
            // That of `k6's` stands behind a letter.
            let begins = note[..at].chars().next_back().is_none_or(|before| " (=".contains(before));
            let length = note[at + 1..].find(QUOTE);
            is_quoted = !is_quoted && begins && length.is_some_and(|it| it <= LONGEST_WHOLE);
        }
        whole.push(if is_quoted && letter == ' ' { HELD_SPACE } else { letter });
    }
    whole
}

/// A command, broken where it is too wide: at spaces outside of quotes, with a `\` that makes a shell
/// read on in the next line.
fn broken_command(line: &str, width: Width) -> String {
    if width.fits(line.chars().count()) {
        return format!("{line}\n");
    }
    report::command_lines("", line, width)
}

/// Reports a part that failed; its exit code. Other parts are done all the same.
pub(crate) fn exit_of_part(done: Result<(), Mistake>) -> Exit {
    match done {
        Ok(()) => Exit::Fine,
        Err(mistake) => {
            complain(&mistake);
            mistake.exit()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::LineToType;

    #[test]
    fn a_line_to_paste_is_broken_so_that_a_shell_reads_the_same_words() {
        let line = "longtail load -c 10 -H 'Accept: it'\\''s a long one' -d 'a b' URL";
        for columns in 1..80 {
            let broken = broken_command(line, Width::of(columns));
            // As a shell reads it.
            let read = broken.replace("\\\n", "");
            assert_eq!(shlex::split(&read), shlex::split(line), "{broken}");
        }
        let line =
            "longtail load -H \"Authorization: ${AUTHORIZATION:?}\" -d 'a \" b' -H 'a: b' URL";
        for columns in 1..80 {
            let broken = broken_command(line, Width::of(columns)).replace("\\\n", "");
            assert_eq!(shlex::split(&broken), shlex::split(line), "{broken}");
        }
        let line = "longtail load -c 10 -H 'Accept: it'\\''s a long one' -d 'a b' URL";
        let expected =
            "longtail load -c 10 \\\n    -H 'Accept: it'\\''s a long one' \\\n    -d 'a b' URL\n";
        assert_eq!(broken_command(line, Width::of(38)), expected);
    }

    #[test]
    fn a_word_in_quotes_is_not_broken() {
        let note = "wrk's -T only counts slower ones; --expect 'max < 2s' fails a run";
        for columns in 40..70 {
            let line = LineToType {
                before: "type ".to_owned(),
                line: "longtail load URL".to_owned(),
                notes: vec![note.to_owned()],
            };
            let lines = LinesToType { lines: vec![line], rest: String::new() };
            let text = laid_out(&lines, Width::of(columns));
            assert!(text.contains("'max < 2s'"), "{text}");
            assert!(
                text.ends_with("run\n") && text.lines().all(|it| it.len() <= columns),
                "{text}"
            );
        }
    }

    #[test]
    fn a_line_to_paste_stands_alone_unless_all_fits() {
        let line = "longtail load --generator-threads 2 -c 10 --for 10s --style wrk URL --json";
        let one = LinesToType::one("there is no command 'wrk': type ", line);
        let narrow = Width::of(80);
        let expected = format!("longtail: there is no command 'wrk': type\n{line}\n");
        assert_eq!(laid_out(&one, narrow), expected);
        assert_eq!(laid_out(&one, Width::ANY), expected);
        let wide = laid_out(&one, Width::of(200));
        assert_eq!(wide, format!("longtail: there is no command 'wrk': type {line}\n"));
        let before = "; as ab's line, ".to_owned();
        let notes = vec!["it differs".to_owned()];
        let other = LineToType { before, line: line.to_owned(), notes };
        let two = LinesToType {
            lines: vec![one.lines[0].clone(), other],
            rest: ", or --data 10".to_owned(),
        };
        let expected = format!(
            "longtail: there is no command 'wrk': type\n{line}\nas ab's line,\n{line}\n  it differs\nor --data 10\n"
        );
        assert_eq!(laid_out(&two, Width::of(200)), expected);
    }
}
