//! `longtail watch`: watches a server that is already running.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use clap::Args;
use engine::Resolver;
use judge::signals::SignalThresholds;
use model::{Clock as _, Nanos, SystemClock};
use probe::sampler::Observation;
use report::Width;
use serde_json::Value;
use watch::{AnswerLine, StatisticsSource, TargetName, WatchBoard, WatchEnd, WatchTarget};

use crate::args::ADVANCED;
use crate::args::event::control_source;
use crate::args::output::FormatArgs;
use crate::args::value_parsers::above_zero;
use crate::exit::{Exit, Mistake, refuse_if, wrong};
use crate::watch_screen::{WatchScreen, is_a_terminal};
use crate::{signals, study_files, terminal, ui};

/// How often keys and signals are checked while nothing is observed.
const CHECK_PERIOD: Duration = Duration::from_millis(50);

/// Finds the server, looks at it until it ends, the time is up or the user has seen enough, and
/// prints what was seen.
///
/// # Errors
/// If a flag is wrong, or there is no such server.
pub(crate) fn run(args: &WatchArgs, resolver: &Resolver) -> Result<Exit, Mistake> {
    let is_plain = args.plain || args.lines || args.output.is_json();
    let is_drawn = !is_plain && is_a_terminal();
    let length = args.length(is_drawn)?;
    let thresholds = args.thresholds()?;
    let (target, statistics) = find(args, resolver)?;
    let interrupt = signals::interruption()?;
    let clock = SystemClock::start();
    signals::begin();
    let mut board = WatchBoard::of(&target, statistics.is_some());
    let answer = WatchAnswer {
        target: &target,
        statistics: statistics.as_ref(),
        thresholds: thresholds.as_ref(),
    };
    let end = watch::observe(&target, statistics.as_ref(), args.every, clock, |receiver| {
        let screen = if is_drawn { Some(WatchScreen::take(args.full)?) } else { None };
        let mut viewer = Viewer { args, answer: &answer, screen, length, interrupt: &interrupt };
        viewer.follow(receiver, clock, &mut board)
    })??;
    if end != WatchEnd::Server {
        board.close(clock.now());
    }
    answer.print(args, &board, end);
    // A watch without a length, or on a screen, is meant to be ended by the user.
    let is_early = args.length.is_some() && interrupt.load(Ordering::Relaxed) && !is_drawn;
    Ok(Exit::Interrupted.if_so(is_early))
}

/// The server, and the control server that tells its statistics.
fn find(
    args: &WatchArgs,
    resolver: &Resolver,
) -> Result<(WatchTarget, Option<StatisticsSource>), Mistake> {
    let mut statistics = args.statistics(resolver)?;
    if statistics.is_none() {
        // A process also listens for its control server. That must be known first, so that it is
        // not taken for the port to watch.
        statistics = StatisticsSource::of_processes(args.target.pid().as_slice(), resolver);
    }
    let control = statistics.as_ref().map(|source| &source.control.address);
    let target = WatchTarget::find(&args.target, args.port, control, resolver)?;
    if statistics.is_none() {
        statistics = StatisticsSource::of_processes(&target.roots, resolver);
    }
    Ok((target, statistics))
}

/// What the answer of a watch is made of, besides what was seen.
struct WatchAnswer<'a> {
    target: &'a WatchTarget,
    statistics: Option<&'a StatisticsSource>,
    /// `--signals`
    thresholds: Option<&'a SignalThresholds>,
}

impl WatchAnswer<'_> {
    /// The lines of the answer; `end` is absent while the watch goes on.
    fn lines(&self, board: &WatchBoard, end: Option<WatchEnd>, width: Width) -> Vec<AnswerLine> {
        let seen = board.evidence();
        let mut lines = watch::answer(self.target, self.statistics, &seen, end, width);
        if let Some(thresholds) = self.thresholds {
            lines.extend(watch::signal_lines(board, thresholds, width));
        }
        lines
    }

    /// The answer as JSON, with all figures if they are asked for.
    fn json(&self, board: &WatchBoard, end: Option<WatchEnd>, has_figures: bool) -> Value {
        let figures = has_figures.then_some(board);
        let mut answer = watch::watch_json(self.target, &board.evidence(), end, figures);
        if let Some(thresholds) = self.thresholds {
            answer["signals"] = watch::signals_json(board, thresholds);
        }
        answer
    }

    /// Prints what a finished watch has seen.
    fn print(&self, args: &WatchArgs, board: &WatchBoard, end: WatchEnd) {
        if args.output.is_json() {
            let answer = self.json(board, Some(end), args.full);
            let text = if args.lines { format!("{answer}\n") } else { format!("{answer:#}\n") };
            ui::print(&text);
            return;
        }
        let width = ui::terminal_width();
        let lines = self.lines(board, Some(end), width);
        let mut text: String = lines.into_iter().map(|line| line.text + "\n").collect();
        if args.full {
            text.push('\n');
            text.push_str(&watch::all_figures(board, width));
        }
        ui::print(&text);
    }
}

/// Shows the board while it fills.
struct Viewer<'a> {
    args: &'a WatchArgs,
    answer: &'a WatchAnswer<'a>,
    screen: Option<WatchScreen>,
    length: Option<Nanos>,
    interrupt: &'a AtomicBool,
}

impl Viewer<'_> {
    /// Takes in what is observed until the watch is over.
    fn follow(
        &mut self,
        receiver: &Receiver<Observation>,
        clock: SystemClock,
        board: &mut WatchBoard,
    ) -> Result<WatchEnd, Mistake> {
        if self.args.lines && !self.args.output.is_json() {
            ui::print(&watch::sample_line_head(ui::terminal_width()));
        }
        loop {
            let mut received = receiver.recv_timeout(CHECK_PERIOD);
            while let Ok(observation) = received {
                self.take(observation, board);
                if board.has_ended() {
                    return Ok(WatchEnd::Server);
                }
                received = receiver.recv_timeout(Duration::ZERO);
            }
            if self.update_screen(board)? {
                return Ok(WatchEnd::User);
            }
            // Nobody reads on (`| head`), or the disk is full.
            let is_unread = self.args.lines && ui::stdout_lost().is_some();
            let is_disconnected = matches!(received, Err(RecvTimeoutError::Disconnected));
            if self.interrupt.load(Ordering::Relaxed) || is_unread || is_disconnected {
                return Ok(WatchEnd::User);
            }
            if self.length.is_some_and(|length| clock.now() >= length) {
                return Ok(WatchEnd::Time);
            }
        }
    }

    /// Puts an observation on the board, and prints its line if lines are wanted.
    fn take(&mut self, observation: Observation, board: &mut WatchBoard) {
        let is_sample =
            matches!(observation, Observation::Server(_) | Observation::Connected { .. });
        let is_shown = is_sample || matches!(observation, Observation::Statistics { .. });
        if let Some(screen) = &mut self.screen {
            screen.is_stale |= is_shown;
        }
        board.take(observation);
        if is_sample && self.args.lines && !board.has_ended() {
            let line = if self.args.output.is_json() {
                format!("{}\n", self.answer.json(board, None, false))
            } else {
                watch::sample_line(board, ui::terminal_width())
            };
            ui::print(&line);
        }
    }

    /// Handles the keys that were pressed and draws what is new. Returns whether the user quits.
    fn update_screen(&mut self, board: &WatchBoard) -> Result<bool, Mistake> {
        let Some(screen) = &mut self.screen else { return Ok(false) };
        if screen.wants_to_end()? {
            return Ok(true);
        }
        // A terminal that takes no output now is drawn on later, so that keys and signals are not
        // held up.
        if screen.is_stale && terminal::takes_more(io::stdout(), Nanos::ZERO) {
            let width = ui::terminal_width();
            let mut lines = self.answer.lines(board, None, width);
            if screen.is_full {
                lines.push(AnswerLine::plain(""));
                lines.extend(watch::all_figures(board, width).lines().map(AnswerLine::plain));
            }
            screen.draw(&lines)?;
        }
        Ok(false)
    }
}

/// The shortest sampling interval: a shorter one would mostly measure the sampling itself.
const SHORTEST: Nanos = Nanos::from_millis(100);
/// How long a watch without a screen lasts if nobody says: each worker of a Puma reports every five
/// seconds, so at least once in this time.
const SHORT_WATCH: Nanos = Nanos::from_secs(7);

const FEW_EXAMPLES: &str = "\
Examples:
  longtail watch 9292                          the server that listens on port 9292
  longtail watch $(cat tmp/pids/server.pid)    that process and its workers
  longtail watch :9292 --for 1m --json         the answer for a script";

const EXAMPLES: &str = "\
Examples:
  longtail watch 9292                            the server that listens on port 9292
  longtail watch $(cat tmp/pids/server.pid)      that process and its workers
  longtail watch 9292 --state tmp/puma.state     with Puma's own statistics, where its state file is elsewhere
  longtail watch /run/puma.sock --for 30s | cat  thirty seconds, then the answer
  longtail watch :9292 --full                    all figures: min, mean, max, last
  longtail watch :9292 --for 1m --json           the answer for a script
  longtail watch 9292 --signals                  with the thresholds that longtail signals found, to copy an alert
  longtail watch box2:9292 --control-url tcp://box2:9293 --control-token secret
      a Puma on another machine: its own statistics, and how long a connect takes

Sends no requests. Puma's statistics are read where its state file is found (tmp/puma.state and the
like) or named; reading them resets the maxima of Puma 7 and later. Needs no privileges; only root
and the server's own user see which process holds which connection.
q, Esc and Ctrl-C end it.";

/// Flags of `longtail watch`.
#[derive(Debug, Args)]
#[command(after_help = FEW_EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    /// A port (9292 or :9292), a process (4242 or pid:4242), a Unix socket (/run/puma.sock or
    /// @name), or HOST:PORT
    #[arg(value_name = "PORT|PID|SOCKET|HOST:PORT")]
    pub(crate) target: TargetName,
    /// Which port, where the process listens on several
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    #[arg(long, value_name = "URL", help_heading = ADVANCED, help = "Puma's control server: tcp://HOST:9293 or unix:///PATH")]
    control_url: Option<String>,
    /// Token of the control server
    #[arg(long, value_name = "TOKEN", requires = "control_url", help_heading = ADVANCED)]
    control_token: Option<String>,
    /// Puma's state file [default: looked for where Puma runs]
    #[arg(long, value_name = "FILE", conflicts_with = "control_url")]
    state: Option<PathBuf>,
    /// Show the numbers that longtail signals ranked beside the thresholds that it found: the last ones,
    /// or those of its -o FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    signals: Option<String>,
    /// End after this time [default: never on a terminal, 7s in a pipe]
    #[arg(long = "for", value_name = "TIME", value_parser = above_zero)]
    length: Option<Nanos>,
    /// Sampling interval; the accept queue: 20 times a second
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) every: Nanos,
    /// No live screen: the answer once, as in a pipe
    #[arg(long)]
    plain: bool,
    /// No live screen: a line for each sample, then the answer
    #[arg(long)]
    pub(crate) lines: bool,
    /// All figures: least, mean, most, last, by process
    #[arg(long, help_heading = "Output")]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

impl WatchArgs {
    /// When to end.
    ///
    /// # Errors
    /// If the sampling interval is too short, or flags contradict each other.
    pub(crate) fn length(&self, is_drawn: bool) -> Result<Option<Nanos>, Mistake> {
        refuse_if(
            self.every < SHORTEST,
            "--every wants 100ms or more: sampling more often measures itself",
        )?;
        if self.lines && self.output.is_json() && self.full {
            return Err(wrong("--lines prints the answer so far: leave out --full"));
        }
        Ok(self.length.or((!is_drawn && !self.lines).then_some(SHORT_WATCH)))
    }

    /// The thresholds that `longtail signals` found, where they are asked for.
    ///
    /// # Errors
    /// If there are none, or the file is something else.
    fn thresholds(&self) -> Result<Option<SignalThresholds>, Mistake> {
        let Some(named) = &self.signals else { return Ok(None) };
        let path =
            if named.is_empty() { study_files::last_signals()? } else { PathBuf::from(named) };
        let text = study_files::read_bytes(&path)?;
        let read = serde_json::from_slice::<SignalThresholds>(&text);
        let thresholds = read.ok().filter(|found| found.kind == "signals").ok_or_else(|| {
            wrong(format!(
                "--signals: '{}' is not what longtail signals writes with -o: name that file, or leave it out for the last one",
                path.display()
            ))
        })?;
        Ok(Some(thresholds))
    }

    /// Puma's control server, where one was named.
    ///
    /// # Errors
    /// If it cannot be asked from here, or the state file names none.
    pub(crate) fn statistics(
        &self,
        resolver: &Resolver,
    ) -> Result<Option<StatisticsSource>, Mistake> {
        control_source(
            self.state.as_deref(),
            self.control_url.as_deref(),
            self.control_token.as_deref(),
            resolver,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::commands::{Command, Invocation, parse};

    #[test]
    fn a_control_server_is_named_by_its_url() {
        // As the tests are run: nobody but this machine may be connected to.
        let guarded = Resolver::within(Some("127.0.0.0/8,::1/128".parse().unwrap()));
        for (words, expected) in [
            ("--control-url=tcp://127.0.0.1:9293 --control-token=t", Some(("127.0.0.1:9293", "t"))),
            ("--control-url=unix:///tmp/c.sock", Some(("/tmp/c.sock", ""))),
            ("--lines", None),
        ] {
            let words = ["longtail", "watch", "9292"]
                .into_iter()
                .chain(words.split(' '))
                .map(OsString::from);
            let Ok(Invocation::Command(Command::Watch(args), _)) = parse(words) else {
                panic!("not a watch")
            };
            let found = args.statistics(&guarded).unwrap().map(|source| source.control);
            let found = found.map(|control| (control.address.address(), control.token));
            assert_eq!(found, expected.map(|(place, token)| (place.to_owned(), token.to_owned())));
        }
    }
}
