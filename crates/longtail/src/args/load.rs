//! Flags of `longtail load`, hey's and wrk's among them. When requests are due by them: `load/schedule.rs`.

mod schedule;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use engine::{IpVersion, Resolver, StaticAddresses};
use model::{LatePolicy, Nanos, Objective, Rate, RequestOrder, Timing};

use super::like::{self, Tool};
use super::output::TextStyle;
use super::timestamps::TimestampsWord;
use super::{OutletArgs, OutputArgs, load_words};
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
  longtail load --requests requests.txt --fail-if 'p99 > 200ms' http://127.0.0.1:9292/    or 'errors > 0.1%'
  longtail load --rate 100/s --statsd-listen 127.0.0.1:8125 http://127.0.0.1:9292/    what the app says by statsd meanwhile
  longtail load --metrics 127.0.0.1:9464 --otlp http://127.0.0.1:4318 http://127.0.0.1:9292/    for Prometheus, a collector
  longtail load --as hey -- -z 20s -m GET http://127.0.0.1:9292/      hey's own command line, and its layout
  longtail load --generator wrk -c 64 --for 30s http://127.0.0.1:9292/       wrk makes the load; what it claims, audited

Clashes: hey's -t (timeout) and wrk's -t (threads) are --timeout and --threads; wrk's -d (duration) is --for; here -d is
hey's (a body). hey's -o csv is --log FILE.csv.
Exit code: 0; 1 where a --fail-if holds, or the generator was the limit so that nobody can tell; 2 for a mistake, before any load;
3 where no figure is the server's (INVALID: nothing came back good); 130 after Ctrl-C.";

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
enum LatePolicyArg {
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
    /// Wake for each due time, early by what wake-ups are usually late
    #[default]
    Precise,
    /// As precise, and awake for the last 50 us
    Spin,
}

/// Flags of `longtail load`.
#[derive(Debug, Args)]
#[command(after_help = LOAD_EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "a flag is a bool")]
pub(crate) struct LoadArgs {
    /// Where to: http:// or https://, any host; HTTP/1.1, never through a proxy
    #[arg(required_unless_present_any = ["style_of", "requests"])]
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
    late: LatePolicyArg,
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
    #[arg(long, alias = "lanes", alias = "generator-threads", value_name = "N", help_heading = "How much", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,

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
    /// Take this address for a host and port of the URL, in place of a look-up (as curl does)
    #[arg(long, value_name = "HOST:PORT:ADDRESS", help_heading = "Over what")]
    resolve: Vec<StaticAddresses>,
    /// IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6", help_heading = "Over what")]
    ipv4: bool,
    /// IPv6 only
    #[arg(short = '6', long, help_heading = "Over what")]
    ipv6: bool,
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
    #[arg(long, value_name = "TIME", conflicts_with = "generator", help_heading = "Judgement")]
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

    /// Another generator on PATH makes the load, and its claim is reported as its own: wrk, hey, oha, ab, h2load,
    /// bombardier, wrk2, vegeta
    #[arg(
        long,
        alias = "with",
        value_enum,
        value_name = "TOOL",
        hide_possible_values = true,
        help_heading = "Other tools"
    )]
    pub(crate) generator: Option<Generator>,
    /// The words after -- are another tool's command line
    #[arg(long = "as", alias = "like", value_enum, value_name = "TOOL", help_heading = "Other tools")]
    style_of: Option<Tool>,
    /// That command line, as it is
    #[arg(last = true, value_name = "WORDS", requires = "style_of", help_heading = "Other tools")]
    others_words: Vec<String>,
}

impl LoadArgs {
    /// These flags, or those that another tool's command line comes to.
    ///
    /// # Errors
    /// Where that command line cannot be followed.
    pub(crate) fn or_like(self) -> Result<LoadArgs, Mistake> {
        let Some(tool) = self.style_of else { return Ok(self) };
        if self.url.is_some() {
            return Err(wrong("with --as the URL belongs to the words after --"));
        }
        let words = like::translate(tool, &self.others_words).map_err(Mistake::Flags)?;
        let theirs = load_words(words)?;
        let style = match tool {
            Tool::Hey => TextStyle::Hey,
            Tool::Wrk => TextStyle::Wrk,
        };
        Ok(LoadArgs {
            // What the other tool has no words for may stand before the --. Another generator's claim has a layout of its own.
            output: if self.generator.is_some() { self.output } else { self.output.or_style(style) },
            generator: self.generator,
            log: self.log.or(theirs.log),
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

    /// How the hosts of these flags are found: as `resolver` does it, which knows where connections may go.
    pub(crate) fn resolver(&self, mut resolver: Resolver) -> Resolver {
        resolver.version = match (self.ipv4, self.ipv6) {
            (true, _) => Some(IpVersion::V4),
            (_, true) => Some(IpVersion::V6),
            _ => None,
        };
        resolver.given.clone_from(&self.resolve);
        resolver
    }

    /// Whether flags give the address of a name.
    pub(crate) fn chooses_address(&self) -> bool {
        !self.resolve.is_empty()
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
            (matches!(self.late, LatePolicyArg::Skip), "--late"),
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

    pub(crate) fn late(&self) -> LatePolicy {
        match self.late {
            LatePolicyArg::Queue => LatePolicy::Queue,
            LatePolicyArg::Skip => LatePolicy::Skip,
        }
    }

    pub(crate) fn timing(&self) -> Timing {
        match self.timing {
            TimingWord::Coalesce => Timing::Coalesce,
            TimingWord::Precise => Timing::Precise,
            TimingWord::Spin => Timing::Spin,
        }
    }

    pub(crate) fn order(&self) -> RequestOrder {
        if self.random { RequestOrder::Random { seed: self.seed } } else { RequestOrder::Sequential }
    }
}
