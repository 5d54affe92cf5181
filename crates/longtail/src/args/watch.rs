//! Flags of `longtail watch`.

use std::path::PathBuf;

use clap::Args;
use judge::signals::SignalThresholds;
use model::Nanos;
use report::Width;
use watch::TargetName;

use super::event::ControlArgs;
use super::output::{FormatArgs, columns_to_fit, width_asked_for};
use super::value_parsers::above_zero;
use crate::exit::{Mistake, refuse_if, wrong};
use crate::{study_files, ui};

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
like) or named; reading them resets the maxima of Puma 7 and later. What waits, and where, any user
sees; what the threads wait for, which is the reason, only root and the server's own user. The rate
of requests and how long each waits are the kernel's estimate without Puma's control server
(activate_control_app, state_path).
--lines: s, since the watch began; queue, connections in the accept queue; open, connections; busy,
threads; backlog, requests that wait inside Puma; age s, how old these two are; flight, requests in
flight, and inside, how many of them wait for a thread (both without the control server); CPUs used;
wait %, threads that wait for a CPU, 100 for each; overfl/s, connects that full queues dropped.
q, Esc and Ctrl-C end it, with exit code 0; but Ctrl-C that cuts --for short ends it with 130.";

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
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    /// Show the numbers that longtail signals ranked beside the thresholds that it found: the last ones,
    /// or those of its -o FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    signals: Option<String>,
    /// End after this time [default: never on a terminal, 7s in a pipe]
    #[arg(long = "for", value_name = "TIME", value_parser = above_zero)]
    pub(crate) length: Option<Nanos>,
    /// Sampling interval; the accept queue: 20 times a second
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) every: Nanos,
    /// No live screen: the answer once, as in a pipe
    #[arg(long)]
    pub(crate) plain: bool,
    /// No live screen: a line for each sample, then the answer (its columns: --help)
    #[arg(long)]
    pub(crate) lines: bool,
    /// All figures: least, mean, most, last, by process
    #[arg(long, help_heading = "Output")]
    pub(crate) full: bool,
    /// Fit the text to this width; 0: however wide [default: the terminal's width, at most 100]
    #[arg(long, value_name = "COLUMNS", value_parser = columns_to_fit, help_heading = "Output")]
    width: Option<usize>,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// The help of `watch` on a screen, where the state file is not rare.
pub(crate) fn as_watch(command: clap::Command) -> clap::Command {
    command.mut_arg("state", |arg| arg.help_heading(None::<&str>))
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

    /// The width of the text: what was asked for, or the terminal's.
    pub(crate) fn width(&self) -> Width {
        let asked = self.width.map(width_asked_for);
        asked.unwrap_or_else(|| ui::terminal_width().at_most(watch::COLUMNS))
    }

    /// The thresholds that `longtail signals` found, where they are asked for.
    ///
    /// # Errors
    /// If there are none, or the file is something else.
    pub(crate) fn thresholds(&self) -> Result<Option<SignalThresholds>, Mistake> {
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
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use engine::Resolver;

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
            let found = args.control.source(&guarded).unwrap().map(|source| source.control);
            let found = found.map(|control| (control.address.address(), control.token));
            assert_eq!(found, expected.map(|(place, token)| (place.to_owned(), token.to_owned())));
        }
    }
}
