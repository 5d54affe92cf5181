//! All that is printed: results to stdout, progress and complaints to stderr. Nothing else in the house prints.
//!
//! Progress is drawn by a thread of its own on a terminal; elsewhere a run is a line of stderr. It reads one number per lane a few times
//! a second and is never waited for.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use engine::RunProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use model::{Nanos, Study};
use report::Width;
use report::answer::Emphasis;
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use sweep::Phase;

use crate::exit::Exit;
use crate::mistake::Mistake;

/// Redraws of the progress line.
const TICK: Duration = Duration::from_millis(250);

/// What controls a terminal or turns text around becomes visible, as JSON writes it: text from outside (a server's stderr, the value of a header,
/// a git branch, a study's strings, a name in statsd) is in what we print. Inside JSON it stays the same string.
fn harmless(text: &str) -> Cow<'_, str> {
    let acts = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) {
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Prints to stdout. A reader that has gone (`| head`) is no error; a full disk ends the program.
pub(crate) fn print(text: &str) {
    write_out(&harmless(text));
}

fn write_out(text: &str) {
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        note(&format!("stdout cannot be written ({error}): give it a place with room"));
        // Whatever server is under test goes with us: its guard sees to that.
        std::process::exit(Exit::Mistake.code());
    }
}

/// Prints something to stdout as JSON.
pub(crate) fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).expect("its keys are strings");
    print(&(text + "\n"));
}

/// What `--color` says; without it `NO_COLOR`, `CLICOLOR_FORCE` and the terminal decide.
pub(crate) fn choose_color(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => {}
        clap::ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
        clap::ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
    }
}

/// Prints to stdout, in colour where that is wanted. Text that would control a terminal is printed without.
pub(crate) fn print_painted(plain: &str, painted: impl FnOnce(&dyn Fn(Emphasis, &str) -> String) -> String) {
    let is_colored = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
    if is_colored && matches!(harmless(plain), Cow::Borrowed(_)) {
        write_out(&painted(&in_color));
    } else {
        print(plain);
    }
}

/// Bad is red, doubtful yellow, the answer bold; each is said in words too.
fn in_color(emphasis: Emphasis, text: &str) -> String {
    let style = match emphasis {
        Emphasis::Plain => Style::new(),
        Emphasis::Strong => Style::new().bold(),
        Emphasis::Doubtful => AnsiColor::Yellow.on_default(),
        Emphasis::Bad => AnsiColor::Red.on_default().bold(),
    };
    format!("{style}{text}{style:#}")
}

/// That of the terminal which stdout is now; any where it is none, or does not tell.
pub(crate) fn terminal_width() -> Width {
    let out = io::stdout();
    let size = out.is_terminal().then(|| tcgetwinsize(&out).ok()).flatten();
    // A serial line has none, until somebody tells it.
    size.filter(|size| size.ws_col > 0).map_or(Width::ANY, |size| Width::of(size.ws_col.into()))
}

/// Says a line on stderr. Where nobody listens, that is no error.
fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless(line));
}

/// Says on stderr how longtail is used, to somebody who gave no command.
pub(crate) fn usage(text: &str) {
    say(text);
}

/// Says on stderr what a user should know beside the results.
pub(crate) fn note(text: &str) {
    say(&format!("longtail: {text}"));
}

/// Says on stderr what went wrong: a server's own last lines where there are any, then our one line.
pub(crate) fn complain(mistake: &Mistake) {
    for line in mistake.last_lines() {
        say(&format!("  | {line}"));
    }
    say(&format!("longtail: {mistake}"));
}

/// Says that longtail itself has failed, on a line of its own: a progress line may stand there.
pub(crate) fn fault(text: &str) {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr().lock(), "\r\x1b[2K");
    }
    say(&format!("longtail: {text}"));
}

/// What a long command shows while it goes on: the rows that are done, and a line of progress below them. All of it goes at the end.
pub(crate) struct Ui {
    bar: ProgressBar,
    /// The rows, each with a line break.
    rows: Arc<Mutex<String>>,
    /// Draws it anew, until the other end of its channel goes.
    ticker: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Ui {
    /// A line on stderr where that is a terminal, else nothing.
    pub(crate) fn new() -> Ui {
        let is_drawn = io::stderr().is_terminal();
        let target = if is_drawn { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        // Its first frame is drawn before anything is reported.
        let rows = Arc::default();
        let bar = ProgressBar::with_draw_target(None, target).with_style(waiting(&rows)).with_message("starting");
        let (end, ended) = channel();
        let tick = {
            let bar = bar.clone();
            move || {
                while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    bar.tick();
                }
            }
        };
        // The library's own ticker panics where no thread can be had: then the line stands still.
        let ticker = is_drawn.then(|| std::thread::Builder::new().name("progress".to_owned()).spawn(tick).ok());
        Ui { bar, rows, ticker: ticker.flatten().map(|thread| (end, thread)) }
    }

    /// Shows what is going on.
    pub(crate) fn phase(&self, phase: &Phase) {
        self.bar.reset_elapsed();
        match phase {
            Phase::Running { number, of, what, connections, length, left, progress, .. } => {
                // The first estimate of a study of one run would only say its length again.
                let left = left.filter(|_| *of > 1);
                let left =
                    left.map(|left| format!(", about {} left", report::number::minutes(left))).unwrap_or_default();
                let what = if what.is_empty() { String::new() } else { format!("{what}, ") };
                let message = format!("run {number}/{of}{left}: {what}{connections} connections");
                self.say_in_a_pipe(&message, *length);
                self.bar.set_style(running(&self.rows, progress));
                self.bar.set_message(message);
                self.bar.set_prefix(length.map(|length| format!(" of {length}")).unwrap_or_default());
            }
            Phase::OtherRunning { number, of, connections, length } => {
                let message = format!("run {number}/{of}: {connections} connections");
                self.say_in_a_pipe(&message, *length);
                let length = length.map(|length| format!(" of {length}")).unwrap_or_default();
                self.bar.set_style(waiting(&self.rows));
                self.bar.set_message(message + &length);
            }
            other => {
                self.bar.set_style(waiting(&self.rows));
                self.bar.set_message(match other {
                    Phase::Calibrating => "measuring the generator's own limit",
                    Phase::Starting => "starting the server",
                    Phase::WarmingUp => "warming the server up with each body",
                    Phase::MeasuringServiceTime => "measuring the service time over one connection",
                    Phase::Probing => "probing who waits for whom, with keep-alive and without",
                    Phase::CoolingDown => "waiting until the server is idle",
                    Phase::Reconciling => "waiting for the server's own count",
                    _ => "stopping the server",
                });
            }
        }
    }

    /// That a run begins, where no line is drawn: minutes of a script's sweep are not silent.
    fn say_in_a_pipe(&self, message: &str, length: Option<Nanos>) {
        if self.bar.is_hidden() {
            let length = length.map(|length| format!(", {length}")).unwrap_or_default();
            note(&format!("{message}{length}"));
        }
    }

    /// Shows how far a load is, by its time or its number of requests.
    pub(crate) fn loading(&self, length: Option<Nanos>, number: Option<u64>, progress: &Arc<RunProgress>) {
        let length = length.map(|length| format!(" of {length}"));
        let number = number.map(|number| format!(" of {number} requests"));
        self.bar.set_style(running(&self.rows, progress));
        self.bar.set_message("load");
        self.bar.set_prefix(length.or(number).unwrap_or_default());
    }

    /// Shows what is going on where no requests are counted.
    pub(crate) fn working(&self, what: &str) {
        self.bar.set_style(waiting(&self.rows));
        self.bar.set_message(what.to_owned());
    }

    /// Says a line that stays: above the progress, or on stderr where there is none.
    pub(crate) fn line(&self, text: &str) {
        if self.bar.is_hidden() {
            note(text);
        } else {
            self.bar.println(harmless(text));
        }
    }

    /// Shows the runs that are done.
    pub(crate) fn rows(&self, study: &Study) {
        if self.bar.is_hidden() {
            return;
        }
        let text = report::answer::rows(study);
        *self.rows.lock().unwrap_or_else(PoisonError::into_inner) = harmless(&text).into_owned();
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.ticker.take() {
            drop(end);
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

/// Rows, and a line of which this is the template.
fn style(rows: &Arc<Mutex<String>>, template: &str) -> ProgressStyle {
    let rows = Arc::clone(rows);
    let write_rows = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = out.write_str(&rows.lock().unwrap_or_else(PoisonError::into_inner));
    };
    let template = format!("{{rows}}{{spinner}} {template}");
    ProgressStyle::with_template(&template).expect("a constant template").with_key("rows", write_rows)
}

fn waiting(rows: &Arc<Mutex<String>>) -> ProgressStyle {
    style(rows, "{msg}, {elapsed}")
}

fn running(rows: &Arc<Mutex<String>>, progress: &Arc<RunProgress>) -> ProgressStyle {
    let figures = Arc::new(Mutex::new(LiveFigures::default()));
    let progress = Arc::clone(progress);
    style(rows, "{msg}, {elapsed}{prefix}, {done}").with_key(
        "done",
        move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let connected = progress.connected();
            if progress.start() == Nanos::ZERO && connected > 0 {
                let _ = write!(out, "{connected} connections open");
            } else {
                let mut figures = figures.lock().unwrap_or_else(PoisonError::into_inner);
                figures.update(&progress, state.elapsed());
                let _ = write!(out, "{} requests{}", progress.ended(), figures.text);
            }
        },
    )
}

/// What a run shows of itself while it goes on: its rate now, and the response times so far.
#[derive(Default)]
struct LiveFigures {
    /// When the rate was last worked out, and how many requests had ended then.
    at: Duration,
    ended: u64,
    /// `, 1203/s, p50 3.56 ms, p99 23.3 ms`.
    text: String,
}

/// The figures are worked out anew so often: each time costs a generator thread a copy of its tally.
const REFRESH: Duration = Duration::from_secs(2);

impl LiveFigures {
    fn update(&mut self, progress: &RunProgress, now: Duration) {
        let passed = now.saturating_sub(self.at);
        if passed < REFRESH {
            return;
        }
        let ended = progress.ended();
        let rate = ended.saturating_sub(self.ended) as f64 / passed.as_secs_f64();
        self.text = format!(", {}/s", report::number::rate_in_words(rate));
        if let Some(tally) = progress.tally() {
            for q in [0.5, 0.99] {
                if let Some(time) = tally.response_time_at(q).time() {
                    let _ = write!(self.text, ", {} {}", report::number::percentile(q), report::number::time(time));
                }
            }
        }
        (self.at, self.ended) = (now, ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_does_nothing_to_a_terminal() {
        for (text, shown) in [
            ("as it is: ✔ ±5 %\n\tindented\n", "as it is: ✔ ±5 %\n\tindented\n"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("over\rwritten", "over\\u000dwritten"),
            ("\u{9b}2J", "\\u009b2J"),
            ("\u{202e}moc.elpmaxe", "\\u202emoc.elpmaxe"),
        ] {
            assert_eq!(harmless(text), shown);
        }
        let json = serde_json::to_string("a\u{9b}b\u{7f}").unwrap();
        assert_eq!(serde_json::from_str::<String>(&harmless(&json)).unwrap(), "a\u{9b}b\u{7f}");
    }
}
