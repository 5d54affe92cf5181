//! `longtail watch`: watches a server that is already running.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use engine::Resolver;
use judge::signals::SignalThresholds;
use model::{Clock as _, Nanos, SystemClock};
use probe::sampler::Observation;
use report::{Width, number};
use serde_json::Value;
use watch::{AnswerLine, LineKind, StatisticsSource, WatchBoard, WatchEnd, WatchTarget};

use crate::args::WatchArgs;
use crate::exit::{Exit, Mistake};
use crate::keys::Key;
use crate::terminal::TerminalSize;
use crate::watch_screen::{WatchScreen, is_a_terminal};
use crate::{signals, terminal, ui};

/// How often keys and signals are checked while nothing is observed.
const CHECK_PERIOD: Duration = Duration::from_millis(50);

/// How often a watch says where it stands if nothing shows it.
const REPORT_EVERY: Nanos = Nanos::from_secs(10);
/// With so little left it is not said.
const ABOUT_TO_END: Nanos = Nanos::from_secs(3);

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
        length,
    };
    let end = watch::observe(&target, statistics.as_ref(), args.every, clock, |receiver| {
        let screen = if is_drawn { Some(WatchScreen::take(args.full)?) } else { None };
        let mut viewer = Viewer {
            args,
            answer: &answer,
            screen,
            length,
            interrupt: &interrupt,
            next_report: REPORT_EVERY,
            lines_below_head: None,
        };
        viewer.follow(receiver, clock, &mut board)
    })??;
    if end != WatchEnd::Server {
        board.close(clock.now());
    }
    answer.print(args, &board, end);
    // A watch without a length is meant to be ended by the user.
    let is_early = args.length.is_some() && interrupt.load(Ordering::Relaxed);
    Ok(Exit::Interrupted.if_so(is_early))
}

/// The server, and the control server that tells its statistics.
fn find(
    args: &WatchArgs,
    resolver: &Resolver,
) -> Result<(WatchTarget, Option<StatisticsSource>), Mistake> {
    let mut statistics = args.control.source(resolver)?;
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
    /// How long it is to be; `None` if the user ends it.
    length: Option<Nanos>,
}

impl WatchAnswer<'_> {
    /// The lines of the answer; `end` is absent while the watch goes on.
    fn lines(&self, board: &WatchBoard, end: Option<WatchEnd>, width: Width) -> Vec<AnswerLine> {
        let seen = board.evidence();
        let mut lines = watch::answer(self.target, self.statistics, &seen, end, self.length, width);
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
        let width = args.width();
        let lines = self.lines(board, Some(end), width);
        let rows = TerminalSize::of(io::stdout()).ok().map(|size| usize::from(size.rows));
        // The prompt takes a line, too.
        let scrolls_off = rows.is_some_and(|rows| rows > 0 && (args.full || lines.len() >= rows));
        let mut text: String = lines.into_iter().map(|line| line.text + "\n").collect();
        if args.full {
            text.push('\n');
            text.push_str(&watch::all_figures(board, width));
        }
        // On a small terminal the first lines are gone: say the answer once more.
        if let Some(answer) = watch::in_short(board).filter(|_| scrolls_off) {
            report::wrap(&mut text, width, "  In short: ", &answer);
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
    /// When to say next where it stands.
    next_report: Nanos,
    /// How many lines were printed below the last head; `None` before the first.
    lines_below_head: Option<usize>,
}

impl Viewer<'_> {
    /// Takes in what is observed until the watch is over.
    fn follow(
        &mut self,
        receiver: &Receiver<Observation>,
        clock: SystemClock,
        board: &mut WatchBoard,
    ) -> Result<WatchEnd, Mistake> {
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
            self.report(clock.now(), board);
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
            if self.args.output.is_json() {
                ui::print(&format!("{}\n", self.answer.json(board, None, false)));
            } else {
                self.print_line(board);
            }
        }
    }

    /// Prints the last sample in a line. The head comes first, and on a terminal again when it
    /// would scroll away.
    fn print_line(&mut self, board: &WatchBoard) {
        let width = self.args.width();
        let rows = TerminalSize::of(io::stdout()).ok().map(|size| usize::from(size.rows));
        let is_full = |below: usize| rows.is_some_and(|rows| rows > 2 && below + 2 >= rows);
        let below = match self.lines_below_head {
            Some(below) if !is_full(below) => below,
            Some(_) | None => {
                let head = watch::sample_line_head(board, width);
                ui::print(&head);
                // The first of its own lines is allowed for.
                head.lines().count().saturating_sub(1)
            }
        };
        ui::print(&watch::sample_line(board, width));
        self.lines_below_head = Some(below + 1);
    }

    /// Says every ten seconds where it stands, if nothing else shows it.
    fn report(&mut self, now: Nanos, board: &WatchBoard) {
        if self.screen.is_some() || self.args.lines || now < self.next_report {
            return;
        }
        self.next_report += REPORT_EVERY;
        // The answer follows at once.
        if self.length.is_some_and(|length| now + ABOUT_TO_END > length) {
            return;
        }
        let of = self.length.map(|length| format!(" of {}", number::minutes(length)));
        let stands = watch::stands_at(board).map(|answer| format!(": {answer}"));
        let time = number::minutes(now);
        ui::note(&format!("{time}{}{}", of.unwrap_or_default(), stands.unwrap_or_default()));
    }

    /// Handles the keys that were pressed and draws what is new. Returns whether the user quits.
    fn update_screen(&mut self, board: &WatchBoard) -> Result<bool, Mistake> {
        let Some(screen) = &mut self.screen else { return Ok(false) };
        if let Some(key) = screen.ending_key()? {
            // On the screen it is a key and no signal.
            self.interrupt.fetch_or(key == Key::ControlC, Ordering::Relaxed);
            return Ok(true);
        }
        // A terminal that takes no output now is drawn on later, so that keys and signals are not
        // held up.
        if screen.is_stale && terminal::takes_more(io::stdout(), Nanos::ZERO) {
            let width = self.args.width();
            let mut lines = self.answer.lines(board, None, width);
            if screen.is_full {
                // The evidence would leave no room for the figures.
                let is_answer = |line: &AnswerLine| line.kind != LineKind::Plain;
                let answer = lines.iter().rposition(is_answer).map_or(0, |last| last + 1);
                lines.truncate(answer);
                lines.push(AnswerLine::plain(""));
                lines.extend(watch::all_figures(board, width).lines().map(AnswerLine::plain));
            }
            screen.draw(&lines)?;
        }
        Ok(false)
    }
}
