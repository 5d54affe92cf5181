//! Flags of `longtail bodies`, those of Puma's `response_time_wrk.sh` among them, and what they mean together.

use clap::Args;
use model::{App, Bodies, BodiesPlan, Nanos, Probe, Socket, Stop, StreamPlan};

use super::conduct::ConductArgs;
use super::inspect::InspectArgs;
use super::limits::{check_timeout, check_times};
use super::output::TextStyle;
use super::server::{PumaArgs, SocketWord};
use super::timestamps::{Situation, TimestampsWord};
use super::{OutputArgs, ThresholdArgs};
use crate::mistake::{Mistake, wrong};

const BODIES_EXAMPLES: &str = "\
Examples:
  longtail bodies -w2 -t5:5 -s tcp6                 four types, 1 kB to 2 MB: 28 runs, 6 minutes
  longtail bodies -w2 -t5:5 -b ac50,100 -D3         arrays and chunks of 50 and 100 kB, 3 s each
  longtail bodies -t5:5 -s tcp4,ssl4,unix,aunix -b s10,1024    one more axis: the kind of socket
  longtail bodies -w2 -t5:5 -s tcp6 --like-seed     the tables of response_time_wrk.sh
  longtail bodies -r test/rackup/ci_select.ru -b s10    any app that goes by Puma's header Body-Conf

Environment: PUMA_TEST_HOST4, PUMA_TEST_HOST6, PUMA_TEST_PORT and PUMA_TEST_CTRL choose where Puma listens, as in
Puma's own scripts; without them free ports are taken.";

/// In place of the help that all others of Puma have.
const RACKUP: &str = "Rackup file whose app goes by the header Body-Conf [default: the app that longtail brings]";

/// Flags of `longtail bodies`.
#[derive(Debug, Args)]
#[command(after_help = BODIES_EXAMPLES, mut_arg("rackup", |rackup| rackup.help(RACKUP)))]
pub(crate) struct BodiesArgs {
    #[command(flatten)]
    pub(crate) puma: PumaArgs,
    /// Kinds of socket to bind, one server after the other
    #[arg(
        short,
        long,
        value_enum,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "tcp4",
        help_heading = "Server"
    )]
    socket: Vec<SocketWord>,

    /// Types of body, then sizes in kB: a array, c chunked, s string, i File/IO
    #[arg(
        short,
        long,
        value_name = "TYPES,SIZES",
        default_value = "acsi1,10,100,256,512,1024,2048",
        help_heading = "Stream of requests"
    )]
    bodies: Bodies,
    /// Connections a stream
    #[arg(short, long, value_name = "N", default_value_t = 2, help_heading = "Stream of requests",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    connections: u32,
    /// Streams; connections in total are -T x -c [default: 80 % of workers x threads, at least 1]
    #[arg(short = 'T', long, value_name = "N", help_heading = "Stream of requests",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    streams: Option<u32>,
    /// Length of each run, the warm-up not included (a bare number is seconds)
    #[arg(
        short = 'D',
        long = "for",
        id = "length",
        value_name = "TIME",
        default_value = "10s",
        help_heading = "Stream of requests"
    )]
    length: Nanos,
    /// How long the app waits before each answer (a bare number is seconds)
    #[arg(short, long, value_name = "TIME", help_heading = "Stream of requests")]
    delay: Option<Nanos>,
    /// No keep-alive: a new connection for each request
    #[arg(
        short = 'k',
        long = "no-keep-alive",
        visible_alias = "disable-keepalive",
        help_heading = "Stream of requests"
    )]
    no_keep_alive: bool,
    /// Load that is not measured: before each run, and of each type on a fresh server
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Stream of requests")]
    warm_up: Nanos,
    /// Do all of it so often, each time on fresh servers and in another order
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Stream of requests",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Chooses the order of the runs
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Stream of requests")]
    seed: u64,
    #[command(flatten)]
    pub(crate) conduct: ConductArgs,
    /// Whose clock says when an answer came; auto: the kernel's where every kind of socket is TCP, so that all are held
    /// against the same
    #[arg(long, value_enum, default_value_t, help_heading = "Stream of requests")]
    timestamps: TimestampsWord,
    #[command(flatten)]
    inspect: InspectArgs,

    #[command(flatten)]
    pub(crate) thresholds: ThresholdArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// The tables of Puma's script, character by character (--style puma)
    #[arg(long, help_heading = "Output")]
    like_seed: bool,
}

impl BodiesArgs {
    /// How results are printed.
    pub(crate) fn output(&self) -> OutputArgs {
        let output = self.output.clone();
        if self.like_seed { output.or_style(TextStyle::Puma) } else { output }
    }

    /// All that was asked, every default made explicit.
    ///
    /// # Errors
    /// Where flags contradict each other or a value cannot be.
    pub(crate) fn plan(&self) -> Result<BodiesPlan, Mistake> {
        let (timeout, boot_timeout) = (self.conduct.timeout, self.puma.boot_timeout);
        check_times([Some(self.length), Some(self.warm_up), Some(timeout), Some(boot_timeout), self.delay])?;
        if self.length == Nanos::ZERO {
            return Err(wrong("-D wants a time above 0, such as 10s"));
        }
        check_timeout(timeout)?;
        self.puma.check()?;
        let sockets: Vec<Socket> = self.socket.iter().map(|word| word.socket()).collect();
        if let Some(twice) = sockets.iter().enumerate().find(|(at, socket)| sockets[..*at].contains(socket)) {
            return Err(wrong(format!(
                "-s has {} twice: name each kind of socket once (--repeat N does all of them again)",
                twice.1
            )));
        }
        let timestamps = self
            .timestamps
            .resolve(Situation { is_tcp: !sockets.iter().any(|socket| socket.is_unix()), is_pipelined: false })?;
        // A body is little work: what the tracepoints cost would show.
        let probe = self.inspect.probe(&sockets)?.filter(|probe| *probe != Probe::Auto).unwrap_or(Probe::Proc);
        if self.inspect.asks_app() {
            return Err(wrong("--inspect app goes without bodies: leave out one of the two"));
        }
        Ok(BodiesPlan {
            server: self.puma.server(self.puma.kind(), App::Bodies, sockets[0]),
            stream: StreamPlan {
                delay: self.delay,
                path: None,
                body: None,
                keep_alive: !self.no_keep_alive,
                stop: Stop::After(self.length),
                warm_up: self.warm_up,
                timeout,
                lanes: self.conduct.lanes(),
                timestamps,
                worker_header: self.conduct.worker_header.clone(),
                anatomy: false,
            },
            sockets,
            bodies: self.bodies.clone(),
            connections_per_stream: self.connections,
            streams: self.streams,
            repeat: self.repeat,
            seed: self.seed,
            cool_down: self.conduct.cools_down(),
            calibrate: self.conduct.calibrates(),
            probe,
            thresholds: self.thresholds.all(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, Invocation, parse};
    use std::ffi::OsString;

    fn plan(words: &[&str]) -> Result<BodiesPlan, String> {
        let words = ["longtail", "bodies"].into_iter().chain(words.iter().copied()).map(OsString::from);
        match parse(words).map_err(|mistake| mistake.to_string())? {
            Invocation::Command(Command::Bodies(args)) => args.plan().map_err(|mistake| mistake.to_string()),
            _ => Err("not bodies".to_owned()),
        }
    }

    #[test]
    fn the_words_of_pumas_script_work() {
        let plan = plan(&[
            "-w2", "-t5:5", "-s", "tcp6", "-b", "ac50,100", "-c4", "-T3", "-D5", "-d0.01", "-Y", "-C", "puma.rb", "-r",
            "ci.ru", "-k",
        ])
        .unwrap();
        assert_eq!(plan.bodies.to_string(), "ac50,100");
        assert_eq!(plan.sockets, [Socket::Tcp6]);
        assert_eq!((plan.connections_on(10), plan.stream.stop), (12, Stop::After(Nanos::from_secs(5))));
        assert_eq!(plan.stream.delay, Some(Nanos::from_millis(10)));
        assert!(plan.server.yjit && !plan.stream.keep_alive);
    }

    #[test]
    fn the_defaults_are_those_of_pumas_script() {
        let plan = plan(&["-w2", "-t5:5"]).unwrap();
        assert_eq!((plan.bodies.clone(), plan.runs()), (Bodies::default(), 28));
        assert_eq!((plan.streams_on(10), plan.connections_on(10)), (8, 16), "wrk -t8 -c16");
        assert_eq!(plan.stream.stop, Stop::After(Nanos::from_secs(10)));
    }

    #[test]
    fn a_plan_printed_and_parsed_is_itself() {
        let cases: [&[&str]; 10] = [
            &[],
            &["-w2", "-t5:5", "-s", "tcp4,ssl4,unix,aunix", "-bsi10,2048"],
            &["-w0", "-t0:16", "-D1500ms", "--warm-up=0", "--repeat=3", "--seed=99"],
            &["--no-calibrate", "--no-cool-down", "-r", "my app.ru", "-C", "config/puma.rb", "-Y"],
            &["--timestamps=user"],
            &["-k", "-c7", "-T3", "-d0.25", "--generator-threads=2", "--timeout=250ms", "--worker-header=x-pid"],
            &["--puma", "bundle exec puma", "-s", "ssl6"],
            &["-b", "10", "-s", "tcp,ssl"],
            &["--inspect=none", "-s", "unix"],
            &["--inspect=kernel"],
        ];
        for words in cases {
            let asked = plan(words).unwrap();
            let printed = asked.arguments();
            let again = plan(&printed[1..].iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(again.as_ref(), Ok(&asked), "{printed:?}");
        }
    }

    #[test]
    fn every_mistake_is_one_line() {
        let cases: [(&[&str], &str); 16] = [
            (&["-b", "ax1"], "no kind of body"),
            (&["-b", "a0"], "whole kB from 1"),
            (&["-b", "a1,1"], "twice"),
            (&["-b", "aa1"], "twice"),
            (&["-b", ""], "nothing in it"),
            (&["-b", "s1.5"], "'1.5'"),
            (&["-s", "tcp4,tcp"], "-s has tcp4 twice"),
            (&["-s", "tcp9"], "tcp4"),
            (&["-s", ""], "--socket"),
            (&["-s", "tcp4,unix", "--timestamps=kernel"], "is for TCP"),
            (&["-D0"], "-D"),
            (&["-c0"], "--connections"),
            (&["-T0"], "--streams"),
            (&["-t5:2"], "MIN:MAX"),
            (&["--repeat=0"], "--repeat"),
            (&["--inspect=kernel", "-s", "tcp4,unix"], "leave it out with -s unix"),
        ];
        for (words, part) in cases {
            let line = plan(words).unwrap_err();
            assert!(line.contains(part) && !line.contains('\n'), "{words:?}: {line}");
        }
    }
}
