//! Flags of `longtail load` and `longtail attack`, hey's and wrk's among them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use model::{Arrivals, Late, Nanos, Objective, Order, Pace, Profile, Rate, Timing};

use crate::args::like::{self, Tool};
use crate::args::limits::check_times;
use crate::args::output::ColumnsWord;
use crate::args::timestamps::TimestampsWord;
use crate::args::{OutletArgs, OutputArgs};
use crate::generators::Generator;
use crate::load::Check;
use crate::mistake::{Mistake, wrong};

const LOAD_EXAMPLES: &str = "\
Examples:
  longtail load -c 64 --for 30s http://127.0.0.1:9292/           closed loop: 64 connections, as fast as they are answered
  longtail load -n 1000 -c 20 http://127.0.0.1:9292/             exactly 1000 requests
  longtail load --rate 500/s --arrivals poisson http://127.0.0.1:9292/    open loop: a user does not wait for others
  longtail load --rate 80/s --service 100ms http://127.0.0.1:9292/      an overload: how many slots are there?
  longtail load --ramp 100/s..1000/s --for 60s http://127.0.0.1:9292/
  longtail load --steps 100/s,200/s,400/s --for 30s http://127.0.0.1:9292/    each rate for 10 s
  longtail load --unix /run/app.sock http://localhost/           over a unix socket; @name for an abstract one
  longtail load --requests requests.txt --fail-if 'p99 > 200ms' --fail-if 'errors > 0.1%' http://127.0.0.1:9292/
  longtail load --rate 100/s --statsd-listen 127.0.0.1:8125 http://127.0.0.1:9292/    what the app says by statsd meanwhile
  longtail load --metrics 127.0.0.1:9464 --otlp http://127.0.0.1:4318 http://127.0.0.1:9292/    for Prometheus, a collector
  longtail load --like hey -- -z 20s -m GET http://127.0.0.1:9292/      hey's own command line, and its layout
  longtail load --with wrk -c 64 --for 30s http://127.0.0.1:9292/       wrk makes the load; what it claims, audited

Clashes: hey's -t (timeout) and wrk's -t (threads) are --timeout and --lanes; wrk's -d (duration) is --for; here -d is
hey's (a body). hey's -o csv is --log FILE.csv.
Exit code: 0, 1 where a --fail-if holds, 2 for a mistake, 130 after Ctrl-C.";

/// Arrival laws.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ArrivalsWord {
    /// Evenly spaced
    #[default]
    Constant,
    /// As independent users come: exponential gaps
    Poisson,
    /// Gaps uniform from 0 to twice the mean
    Uniform,
}

/// What becomes of late requests.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum LateWord {
    /// They wait, and their due time stays
    #[default]
    Queue,
    /// They are counted and not sent
    Skip,
}

/// How precisely due times are kept.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum TimingWord {
    /// Wake at whole milliseconds: least CPU
    Coalesce,
    /// Wake for each due time
    #[default]
    Precise,
    /// As precise, and awake for the last 50 us
    Spin,
}

/// What a lane is trusted to send in a second: a tenth of what it can, so that it never queues by itself.
const RATE_OF_A_LANE: f64 = 20_000.0;

/// The lanes where the user names none: half the cores, as the server wants some; and no more than the rate needs, as each lane
/// more is one more thread that wakes up beside the server.
fn default_lanes(pace: &Pace, cores: u32) -> u32 {
    let needed = match pace {
        Pace::Closed => u32::MAX,
        Pace::Open { profile, .. } => (profile.peak().per_second() / RATE_OF_A_LANE).ceil().clamp(1.0, 1e6) as u32,
    };
    (cores / 2).max(1).min(needed)
}

/// Flags of `longtail load`.
#[derive(Debug, Args)]
#[command(after_help = LOAD_EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "a flag is a bool")]
pub(crate) struct LoadArgs {
    /// Where to: http:// or https://
    #[arg(required_unless_present_any = ["like", "requests"])]
    pub(crate) url: Option<String>,

    /// Connections: exactly so many in a closed loop [default: 50], at most so many in an open one
    #[arg(short, long, value_name = "N", help_heading = "How much", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: Option<u32>,
    /// Requests in total, exactly
    #[arg(short = 'n', long = "number", value_name = "N", help_heading = "How much", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) number: Option<u64>,
    /// Length of the run, the warm-up not included [default: 10s, or as -n, --ramp or --steps say]
    #[arg(short = 'z', long = "for", value_name = "TIME", help_heading = "How much")]
    length: Option<Nanos>,
    /// Load before the run that is not measured
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "How much")]
    warm_up: Nanos,
    /// Closed loop: pause between an answer and the connection's next request
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "How much")]
    think: Nanos,
    /// Open loop: requests per second in total, such as 500/s or 0.5/s
    #[arg(long, value_name = "RATE", conflicts_with_all = ["ramp", "steps", "per_connection_rate"], help_heading = "How much")]
    rate: Option<Rate>,
    /// Open loop: requests per second of each connection, as hey's -q
    #[arg(short = 'q', value_name = "RATE", conflicts_with_all = ["ramp", "steps"], help_heading = "How much")]
    per_connection_rate: Option<Rate>,
    /// Open loop: from one rate to another, over the length of the run
    #[arg(long, value_name = "A..B", conflicts_with = "steps", help_heading = "How much")]
    ramp: Option<String>,
    /// Open loop: one rate after the other, each for its part of the run
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', help_heading = "How much")]
    steps: Vec<Rate>,
    /// How due times are spaced
    #[arg(long, value_enum, default_value_t, help_heading = "How much")]
    arrivals: ArrivalsWord,
    /// Chooses the random draws
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "How much")]
    seed: u64,
    /// So many requests become due together; the rate stays
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "How much", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    burst: u32,
    /// Open loop: bound of the connections where -c gives none
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = "How much", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_connections: u32,
    /// What becomes of a request that is due while all connections are busy
    #[arg(long, value_enum, default_value_t, help_heading = "How much")]
    late: LateWord,
    /// How precisely due times are kept; in a closed loop, whether a lane may stay awake for answers that come soon (coalesce: it never
    /// does)
    #[arg(long, value_enum, default_value_t, help_heading = "How much")]
    timing: TimingWord,
    /// Whose clock says when an answer came
    #[arg(long, value_enum, default_value_t, help_heading = "How much")]
    pub(crate) timestamps: TimestampsWord,
    /// An answer that takes longer counts as timed out; after the last send they are waited for so long
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "How much")]
    pub(crate) timeout: Nanos,
    /// Threads of the generator [default: half the cores, and in an open loop no more than one for each 20 000/s]
    #[arg(long, value_name = "N", help_heading = "How much", value_parser = clap::value_parser!(u32).range(1..=1024))]
    lanes: Option<u32>,

    /// Method
    #[arg(short, long, value_name = "NAME", help_heading = "What")]
    pub(crate) method: Option<String>,
    /// Header, `Name: value`; `Name:` takes a default one away
    #[arg(short = 'H', long = "header", value_name = "LINE", help_heading = "What")]
    pub(crate) headers: Vec<String>,
    /// Body
    #[arg(short, long, value_name = "TEXT", conflicts_with = "body_file", help_heading = "What")]
    pub(crate) data: Option<String>,
    /// Body from a file
    #[arg(short = 'D', long, value_name = "FILE", help_heading = "What")]
    pub(crate) body_file: Option<PathBuf>,
    /// Content-Type header
    #[arg(short = 'T', long, value_name = "TYPE", help_heading = "What")]
    pub(crate) content_type: Option<String>,
    /// Accept header
    #[arg(short = 'A', long, value_name = "TYPE", help_heading = "What")]
    pub(crate) accept: Option<String>,
    /// Basic authentication
    #[arg(short = 'a', long = "auth", value_name = "USER:PASSWORD", help_heading = "What")]
    pub(crate) auth: Option<String>,
    /// Host header
    #[arg(long, value_name = "NAME", help_heading = "What")]
    pub(crate) host: Option<String>,
    /// Requests from a file: vegeta's JSON or plain format, raw HTTP, or a list of URLs or paths
    #[arg(long, value_name = "FILE", help_heading = "What")]
    pub(crate) requests: Option<PathBuf>,
    /// Format of that file where it cannot be told: json, plain, raw, list
    #[arg(long, value_name = "NAME", requires = "requests", help_heading = "What")]
    pub(crate) requests_format: Option<String>,
    /// Draw the requests at random (--seed) instead of in order
    #[arg(long, requires = "requests", help_heading = "What")]
    random: bool,
    /// Response header in which a worker of the server names itself
    #[arg(long, value_name = "NAME", default_value = "x-worker-pid", help_heading = "What")]
    pub(crate) worker_header: String,

    /// A new connection for each request
    #[arg(short = 'k', long = "no-keep-alive", visible_alias = "disable-keepalive", help_heading = "Over what")]
    pub(crate) no_keep_alive: bool,
    /// Close a connection after so many requests and open it anew
    #[arg(long, value_name = "N", help_heading = "Over what", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests_per_connection: Option<u64>,
    /// HTTP pipelining: requests that a connection has out at once
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Over what",
          conflicts_with_all = ["no_keep_alive", "requests_per_connection"],
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) pipeline: u32,
    /// A unix socket; @NAME for an abstract one
    #[arg(
        long,
        value_name = "PATH",
        visible_alias = "unix-socket",
        conflicts_with = "connect_to",
        help_heading = "Over what"
    )]
    pub(crate) unix: Option<String>,
    /// Connect to another host and port than the URL's
    #[arg(long, value_name = "HOST:PORT", help_heading = "Over what")]
    pub(crate) connect_to: Option<String>,
    /// Addresses to connect from, in turn
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Over what")]
    pub(crate) source_ip: Vec<std::net::IpAddr>,
    /// Take any certificate
    #[arg(long, help_heading = "Over what")]
    pub(crate) insecure: bool,
    /// Certificates to trust instead of the system's (PEM)
    #[arg(long, value_name = "FILE", help_heading = "Over what")]
    pub(crate) cacert: Option<PathBuf>,
    /// Our own certificate (PEM), for a server that asks for one
    #[arg(long, value_name = "FILE", requires = "key", help_heading = "Over what")]
    pub(crate) cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "Over what")]
    pub(crate) key: Option<PathBuf>,

    /// Do not measure the generator's own limit first (it is measured once a day)
    #[arg(long, help_heading = "Judgement")]
    pub(crate) no_calibrate: bool,
    /// Exit with 1 where this holds: 'p99 > 200ms', 'errors > 0.1%', 'sent < 99%', 'completed < 100/s'
    #[arg(long, value_name = "CONDITION", help_heading = "Judgement")]
    pub(crate) fail_if: Vec<Objective>,
    /// End the run early where this holds (looked at once a second)
    #[arg(long, value_name = "CONDITION", help_heading = "Judgement")]
    pub(crate) stop_if: Vec<Objective>,
    /// For how long a request holds a slot of the server, such as 200ms: then an overload (--rate above what it can do)
    /// tells its slots, and not only its capacity
    #[arg(long, value_name = "TIME", conflicts_with = "with", help_heading = "Judgement")]
    pub(crate) service: Option<Nanos>,
    /// Check the answers after the fact: status=200, length=1024, sha256=HEX, same-body, cbor-counter
    #[arg(long = "check", value_name = "WHAT", help_heading = "Judgement")]
    pub(crate) checks: Vec<Check>,

    /// One line a request into this file, in order of completion: CSV where it ends in .csv; - is stdout
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) log: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) outlets: OutletArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Keep the study in this file too
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = "Output")]
    pub(crate) save: Option<PathBuf>,

    /// Another generator on PATH makes the load, and its claim is reported as its own: wrk, hey, oha, ab, h2load,
    /// bombardier, wrk2, vegeta
    #[arg(long, value_enum, value_name = "TOOL", hide_possible_values = true, help_heading = "Other tools")]
    pub(crate) with: Option<Generator>,
    /// The words after -- are another tool's command line
    #[arg(long, value_enum, value_name = "TOOL", help_heading = "Other tools")]
    like: Option<Tool>,
    /// That command line, as it is
    #[arg(last = true, value_name = "WORDS", requires = "like", help_heading = "Other tools")]
    others_words: Vec<String>,
}

/// When requests are due, over how many connections, for how long.
pub(crate) struct Schedule {
    pub(crate) pace: Pace,
    pub(crate) connections: u32,
    pub(crate) length: Option<Nanos>,
    pub(crate) lanes: u32,
}

impl LoadArgs {
    /// These flags, or those that another tool's command line comes to.
    ///
    /// # Errors
    /// Where that command line cannot be followed.
    pub(crate) fn or_like(self, parse: impl Fn(Vec<String>) -> Result<LoadArgs, Mistake>) -> Result<LoadArgs, Mistake> {
        let Some(tool) = self.like else { return Ok(self) };
        if self.url.is_some() {
            return Err(wrong("with --like the URL belongs to the words after --"));
        }
        let words = like::translate(tool, &self.others_words).map_err(Mistake::Flags)?;
        let theirs = parse(words)?;
        let columns = match tool {
            Tool::Hey => ColumnsWord::Hey,
            Tool::Wrk => ColumnsWord::Wrk,
        };
        // What the other tool has no words for may stand before the --.
        let output = if theirs.output.is_csv() { theirs.output } else { self.output };
        Ok(LoadArgs {
            // Another generator's claim has a layout of its own.
            output: if self.with.is_some() { output } else { output.or_columns(columns) },
            with: self.with,
            save: self.save,
            log: self.log,
            fail_if: self.fail_if,
            stop_if: self.stop_if,
            checks: self.checks,
            outlets: self.outlets,
            no_calibrate: self.no_calibrate,
            service: self.service,
            worker_header: self.worker_header,
            ..theirs
        })
    }

    /// The schedule, every default made explicit.
    ///
    /// # Errors
    /// Where flags contradict each other.
    pub(crate) fn schedule(&self) -> Result<Schedule, Mistake> {
        let profile = self.profile()?;
        let length = self.run_length(profile.as_ref());
        let is_open = profile.is_some();
        if !is_open && (self.burst > 1 || matches!(self.late, LateWord::Skip)) {
            return Err(wrong("--burst and --late belong to an open loop: give --rate, --ramp or --steps"));
        }
        if is_open && self.think > Nanos::ZERO {
            return Err(wrong(
                "--think belongs to a closed loop: leave it out, or leave out --rate, --ramp and --steps",
            ));
        }
        check_times([length, Some(self.warm_up), Some(self.timeout), Some(self.think)])?;
        if self.service == Some(Nanos::ZERO) {
            return Err(wrong("--service wants a time above 0, such as 200ms"));
        }
        if length == Some(Nanos::ZERO) || self.timeout == Nanos::ZERO {
            return Err(wrong("--for and --timeout want a time above 0, such as 10s"));
        }
        let pace = match profile {
            None => Pace::Closed,
            Some(profile) => Pace::Open {
                profile,
                arrivals: match self.arrivals {
                    ArrivalsWord::Constant => Arrivals::Constant,
                    ArrivalsWord::Poisson => Arrivals::Poisson,
                    ArrivalsWord::Uniform => Arrivals::Uniform,
                },
                seed: self.seed,
                burst: self.burst,
            },
        };
        let most = if is_open { self.max_connections } else { 50 };
        // More connections than requests would only be opened and closed.
        let needed = self.number.and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX);
        let connections = self.connections.unwrap_or(most).min(needed);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u32;
        let lanes = self.lanes.unwrap_or_else(|| default_lanes(&pace, cores)).min(connections);
        Ok(Schedule { pace, connections, length, lanes })
    }

    fn profile(&self) -> Result<Option<Profile>, Mistake> {
        if let Some(rate) = self.rate {
            return Ok(Some(Profile::Flat { rate }));
        }
        if let Some(each) = self.per_connection_rate {
            let total = each.per_second() * f64::from(self.connections.unwrap_or(50));
            return Ok(Some(Profile::Flat { rate: Rate::new(total).map_err(|error| wrong(error.to_string()))? }));
        }
        if let Some(ramp) = &self.ramp {
            let (from, to) =
                ramp.split_once("..").ok_or_else(|| wrong("--ramp wants two rates, such as 100/s..1000/s"))?;
            let rate = |text: &str| text.parse::<Rate>().map_err(|error| wrong(format!("--ramp: {error}")));
            let over = self.length.unwrap_or(DEFAULT_LENGTH);
            return Ok(Some(Profile::Ramp { from: rate(from)?, to: rate(to)?, over }));
        }
        if self.steps.is_empty() {
            return Ok(None);
        }
        let each = self.length.map_or(DEFAULT_LENGTH, |length| length / self.steps.len() as u64);
        Ok(Some(Profile::Steps { rates: self.steps.clone(), each }))
    }

    /// Where neither time nor number ends the run, time does: no run is endless.
    fn run_length(&self, profile: Option<&Profile>) -> Option<Nanos> {
        self.length.or_else(|| profile.and_then(Profile::length)).or(match self.number {
            Some(_) => None,
            None => Some(DEFAULT_LENGTH),
        })
    }

    /// A flag of these that only longtail's own generator can follow, where there is one, as it is typed.
    pub(crate) fn own_flag(&self) -> Option<&'static str> {
        let is_default = |timing| matches!(timing, TimingWord::Precise);
        let given = [
            (self.unix.is_some(), "--unix"),
            (self.connect_to.is_some(), "--connect-to"),
            (!self.source_ip.is_empty(), "--source-ip"),
            (self.pipeline > 1, "--pipeline"),
            (self.requests.is_some(), "--requests"),
            (self.think > Nanos::ZERO, "--think"),
            (self.ramp.is_some(), "--ramp"),
            (!self.steps.is_empty(), "--steps"),
            (!matches!(self.arrivals, ArrivalsWord::Constant), "--arrivals"),
            (self.burst > 1, "--burst"),
            (matches!(self.late, LateWord::Skip), "--late"),
            (!is_default(self.timing), "--timing"),
            (self.timestamps != TimestampsWord::Auto, "--timestamps"),
            (self.requests_per_connection.is_some(), "--requests-per-connection"),
            (self.cacert.is_some(), "--cacert"),
            (self.cert.is_some(), "--cert"),
            (!self.stop_if.is_empty(), "--stop-if"),
            (!self.checks.is_empty(), "--check"),
            (self.log.is_some(), "--log"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag)
    }

    /// Requests per second in total, and of each connection, as they were given.
    pub(crate) fn rates(&self) -> (Option<Rate>, Option<Rate>) {
        (self.rate, self.per_connection_rate)
    }

    pub(crate) fn warm_up(&self) -> Nanos {
        self.warm_up
    }

    pub(crate) fn think(&self) -> Nanos {
        self.think
    }

    pub(crate) fn late(&self) -> Late {
        match self.late {
            LateWord::Queue => Late::Queue,
            LateWord::Skip => Late::Skip,
        }
    }

    pub(crate) fn timing(&self) -> Timing {
        match self.timing {
            TimingWord::Coalesce => Timing::Coalesce,
            TimingWord::Precise => Timing::Precise,
            TimingWord::Spin => Timing::Spin,
        }
    }

    pub(crate) fn order(&self) -> Order {
        if self.random { Order::Random { seed: self.seed } } else { Order::Sequential }
    }
}

/// Where nothing else ends a run, or a step of it.
const DEFAULT_LENGTH: Nanos = Nanos::from_secs(10);

const ATTACK_EXAMPLES: &str = "\
Examples:
  longtail attack --target-throughput=10 --url='http://localhost:3000/sleep?ms=1000'
  longtail attack --target-throughput=10 --url='http://localhost:3000/sleep?ms=1000' -n 30

It is `longtail load --rate 10/s -k --log -`: an open loop, a new connection for each request, one line a request in
order of completion.";

/// Flags of `longtail attack`.
#[derive(Debug, Args)]
#[command(after_help = ATTACK_EXAMPLES)]
pub(crate) struct AttackArgs {
    /// Requests per second
    #[arg(long, value_name = "RATE")]
    pub(crate) target_throughput: Rate,
    /// Where to
    #[arg(long, value_name = "URL")]
    pub(crate) url: String,
    /// Length of the run
    #[arg(long = "for", value_name = "TIME", default_value = "60s")]
    pub(crate) length: Nanos,
    /// Requests in total
    #[arg(short = 'n', long = "number", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) number: Option<u64>,
}

impl AttackArgs {
    /// The words of `load` that this comes to.
    pub(crate) fn as_load(&self) -> Vec<String> {
        // On kept connections a Puma before 7 serves those that it has and lets the others wait: not in their turn.
        let words = [format!("--rate={}", self.target_throughput), "--no-keep-alive".to_owned(), "--log=-".to_owned()];
        let mut words = words.to_vec();
        words.push(match self.number {
            Some(n) => format!("-n{n}"),
            None => format!("--for={}", self.length),
        });
        words.push(self.url.clone());
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::load_words;

    fn schedule(words: &str) -> Result<Schedule, String> {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        load_words(words).and_then(|args| args.schedule()).map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn an_open_loop_has_no_more_lanes_than_its_rate_needs() {
        let lanes = |words, cores| default_lanes(&schedule(words).unwrap().pace, cores);
        assert_eq!((lanes("--rate 100 http://h/", 16), lanes("--rate 50000 http://h/", 16)), (1, 3));
        assert_eq!((lanes("--rate 500000 http://h/", 16), lanes("--steps 10,90000 --for 2s http://h/", 16)), (8, 5));
        assert_eq!(
            (lanes("http://h/", 16), lanes("http://h/", 1), lanes("--ramp 1..30000 --for 9s http://h/", 4)),
            (8, 1, 2)
        );
    }

    #[test]
    fn a_rate_is_of_the_whole_run_and_heys_q_is_of_each_connection() {
        let rate = |words| match schedule(words).unwrap().pace {
            Pace::Open { profile: Profile::Flat { rate }, .. } => rate.per_second().to_bits(),
            other => panic!("{other:?}"),
        };
        assert_eq!(rate("--rate 500/s -c 10 http://h/"), 500f64.to_bits());
        assert_eq!(rate("-q 5 -c 10 http://h/"), 50f64.to_bits());
    }

    #[test]
    fn every_run_ends() {
        assert_eq!(schedule("http://h/").unwrap().length, Some(Nanos::from_secs(10)));
        assert_eq!(schedule("-n 5 http://h/").unwrap().length, None);
        assert_eq!(schedule("--steps 1,2,3 --for 30s http://h/").unwrap().length, Some(Nanos::from_secs(30)));
        assert_eq!(schedule("--steps 1,2,3 http://h/").unwrap().length, Some(Nanos::from_secs(30)));
    }

    #[test]
    fn no_more_connections_than_requests() {
        assert_eq!(schedule("-n 5 http://h/").unwrap().connections, 5);
        assert_eq!(schedule("-n 5 -c 20 http://h/").unwrap().connections, 5);
        assert_eq!(schedule("-c 20 http://h/").unwrap().connections, 20);
    }

    #[test]
    fn every_mistake_is_one_line() {
        for words in [
            "--rate 0 http://h/",
            "--rate many http://h/",
            "--rate 5 --ramp 1..2 http://h/",
            "--ramp 5 http://h/",
            "--ramp 5..x http://h/",
            "--burst 5 http://h/",
            "--late skip http://h/",
            "--rate 5 --think 1s http://h/",
            "--for 0 http://h/",
            "-n 0 http://h/",
            "-c 0 http://h/",
            "--fail-if latency http://h/",
            "--cert x http://h/",
            "-d x -D y http://h/",
        ] {
            let line = schedule(words).err().unwrap_or_else(|| panic!("{words} is taken"));
            assert!(!line.contains('\n'), "{words}: {line}");
        }
    }
}
