//! Flags for the server under test: which one, where it listens, what is requested, what is
//! sampled. `sweep` and each arm of `compare` have them, and the environment of Puma's own scripts.

use std::net::IpAddr;
use std::path::PathBuf;

use audit::LoadTool;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use generators::settings;
use launch::{Addresses, affinity};
use model::plan::quoted;
use model::{
    App, Body, Cpus, MaskedText, NamedServer, Nanos, Private, Probe, ServerKind, ServerPlan,
    ServerSize, Socket, Stop, StreamPlan, Threads,
};

use super::value_parsers::{
    TIMESTAMPS, WantedTimestamps, above_zero, from_1_to, path, resolved_timestamps, threads, words,
};
use crate::args::ADVANCED;
use crate::exit::{Mistake, refuse_if, wrong};
use crate::mix;

/// Reads the name of a server that longtail knows how to start.
fn named_server() -> impl TypedValueParser<Value = NamedServer> {
    let names = ServerKind::NAMED.map(|named| PossibleValue::new(named.name).help(named.help));
    PossibleValuesParser::new(names).map(|typed| {
        let named = ServerKind::NAMED.into_iter().find(|named| named.name == typed);
        named.expect("clap takes no other name")
    })
}

/// The kinds of socket that a server can be bound to, in the words of Puma's scripts.
const SOCKETS: &[(&str, Socket)] = &[
    ("tcp4", Socket::Tcp4),
    ("tcp6", Socket::Tcp6),
    ("ssl4", Socket::Ssl4),
    ("ssl6", Socket::Ssl6),
    ("unix", Socket::Unix),
    ("aunix", Socket::Aunix),
    ("tcp", Socket::Tcp4),
    ("ssl", Socket::Ssl4),
];

/// The sizes of `--try 2x3,4x5,4x5k`.
///
/// # Errors
/// If one of them is not a size, or there is nothing to compare it with.
pub(crate) fn tried_sizes(list: &str) -> Result<Vec<ServerSize>, Mistake> {
    let sizes = list
        .split(',')
        .map(|word| word.parse::<ServerSize>().map_err(|error| wrong(format!("--try {error}"))));
    let sizes: Vec<ServerSize> = sizes.collect::<Result<_, _>>()?;
    refuse_if(
        sizes.len() < 2,
        format_args!(
            "--try '{list}' has nothing to be compared with: name two or more, such as --try {list},4x5"
        ),
    )?;
    Ok(sizes)
}

/// How a Puma is started.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct PumaArgs {
    /// Worker processes; 0 is single mode [default: the config file's, or 0]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    workers: Option<u32>,
    /// Threads of each worker [default: the config file's, or 5:5]
    #[arg(short, long, value_name = "MIN:MAX", value_parser = threads)]
    threads: Option<Threads>,
    /// Rackup file of your app [default: an app that sleeps]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) rackup: Option<PathBuf>,
    /// Puma's config file
    #[arg(short = 'C', long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Start Ruby with YJIT
    #[arg(short = 'Y', long, help_heading = ADVANCED)]
    yjit: bool,
    /// Command that starts Puma [default: bundle exec puma in a bundle, bin/puma in a checkout, or
    /// puma]
    #[arg(long, value_name = "CMD", help_heading = ADVANCED)]
    pub(crate) puma: Option<String>,
    /// CPUs for the server alone, such as 0-2; the generator runs on the others [default: all are
    /// shared]
    #[arg(long, value_name = "LIST", help_heading = ADVANCED)]
    server_cpus: Option<Cpus>,
    /// How long the server may take to start
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = ADVANCED)]
    pub(crate) boot_timeout: Nanos,
}

impl PumaArgs {
    /// The versions of Puma, where there are several: `--puma 6.6.1,7.2.1`.
    pub(crate) fn versions(&self) -> Vec<&str> {
        self.puma.iter().flat_map(|words| words.split(',')).map(str::trim).collect()
    }

    /// Refuses settings that no Puma can have.
    ///
    /// # Errors
    /// Where longtail may not run on these CPUs, or they are all of its CPUs.
    pub(crate) fn check(&self) -> Result<(), Mistake> {
        let (Some(asked), Some(ours)) = (&self.server_cpus, affinity::ours()) else {
            return Ok(());
        };
        if !ours.contain(asked) {
            return Err(wrong(format!(
                "--server-cpus {asked}: longtail may run on {ours}; choose among those"
            )));
        }
        refuse_if(
            ours == *asked,
            format_args!(
                "--server-cpus {asked} leaves no CPU to the generator: leave one out, or leave out the flag"
            ),
        )?;
        Ok(())
    }

    /// Whether a flag is given that only Puma has.
    pub(crate) fn asks_for_puma(&self) -> bool {
        self.rackup.is_some() || self.config.is_some() || self.yjit || self.puma.is_some()
    }

    /// The workers that were given.
    pub(crate) fn workers(&self) -> Option<u32> {
        self.workers
    }

    /// Whether a config file was given, which may set workers and threads.
    pub(crate) fn has_config(&self) -> bool {
        self.config.is_some()
    }

    /// Whether threads were given.
    pub(crate) fn has_threads(&self) -> bool {
        self.threads.is_some()
    }

    /// Workers x threads, where one of them was given; the other is 1 by default.
    pub(crate) fn size(&self) -> Option<u32> {
        let is_given = self.workers.is_some() || self.threads.is_some();
        let threads = self.threads.map_or(1, |threads| threads.max);
        is_given.then(|| self.workers.unwrap_or(0).max(1).saturating_mul(threads))
    }

    /// A server of that kind with that app on that socket, and everything else as these flags say.
    pub(crate) fn server(&self, kind: ServerKind, app: App, socket: Socket) -> ServerPlan {
        let default_threads = (self.config.is_none() && kind.stated_slots().is_none())
            .then_some(Threads { min: 5, max: 5 });
        ServerPlan {
            kind,
            workers: self.workers,
            threads: self.threads.or(default_threads),
            rackup: self.rackup.clone(),
            app,
            config: self.config.clone(),
            yjit: self.yjit,
            socket,
            cpus: self.server_cpus.clone(),
            address: None,
        }
    }
}

/// The server, and what is requested of it.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    pub(crate) puma: PumaArgs,
    /// tcp4, tcp6, ssl4, ssl6, unix, aunix; sweep -b: a list
    #[arg(short, long, value_name = "KIND", value_delimiter = ',', value_parser = words(SOCKETS),
          default_value = "tcp4", help_heading = "Server")]
    pub(crate) socket: Vec<Socket>,
    /// puma, or builtin: a test server inside longtail
    #[arg(long = "server", value_parser = named_server(), value_name = "NAME", default_value = ServerKind::NAMED[0].name, help_heading = ADVANCED)]
    pub(crate) which: NamedServer,
    /// Where the server of COMMAND responds
    #[arg(long, value_name = "URL", help_heading = "Server")]
    pub(crate) url: Option<String>,
    /// Starts any other server; needs --url, and -w and -t or --slots
    #[arg(last = true, value_name = "COMMAND", help_heading = "Server")]
    pub(crate) command: Vec<String>,

    /// How long the app holds a thread [default: 100ms, or measured]
    #[arg(short, long, value_name = "TIME", help_heading = "Load")]
    pub(crate) delay: Option<Nanos>,
    /// What to request [default: /sleep0.1 with -d0.1, or /]
    #[arg(long, value_name = "PATH", value_parser = path, help_heading = "Load")]
    pub(crate) path: Option<String>,
    /// Requests by weight: 'GET /posts 80, GET /search 15', or a file
    #[arg(long, value_name = "MIX", conflicts_with_all = ["path", "body", "delay"], help_heading = "Load")]
    pub(crate) mix: Option<String>,
    /// Leave out a class of --mix, by its name
    #[arg(long, value_name = "CLASS", requires = "mix", help_heading = ADVANCED)]
    pub(crate) without: Vec<String>,
    /// No keep-alive: a new connection for each request
    #[arg(short = 'k', long = "no-keep-alive", alias = "disable-keepalive", help_heading = "Load")]
    pub(crate) no_keep_alive: bool,
    /// Make the load on another machine, such as 'ssh box2'; repeatable
    #[arg(long, value_name = "COMMAND", help_heading = ADVANCED)]
    pub(crate) from: Vec<String>,
    #[command(flatten)]
    pub(crate) inspect: InspectArgs,

    /// An app that longtail brings: sleep or rails [default: sleep]
    #[arg(long, value_name = "NAME", value_parser = words(&[("sleep", App::Sleep), ("rails", App::Rails)]),
          conflicts_with = "rackup", help_heading = ADVANCED)]
    pub(crate) app: Option<App>,
    /// With --from: the address of this machine that the server listens on [default: the one that
    /// ssh comes from]
    #[arg(long, value_name = "IP", requires = "from", conflicts_with = "command", help_heading = ADVANCED)]
    pub(crate) server_address: Option<IpAddr>,
    /// Requests that the server of COMMAND handles at once [default: -w x -t]
    #[arg(long, value_name = "N", help_heading = ADVANCED, value_parser = from_1_to(u32::MAX))]
    pub(crate) slots: Option<u32>,
    /// Every response carries this body, such as s10 (see sweep -b)
    #[arg(long, value_name = "BODY", conflicts_with_all = ["path", "app"], help_heading = ADVANCED)]
    pub(crate) body: Option<Body>,
    /// A response that takes longer counts as timed out
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = above_zero, help_heading = ADVANCED)]
    pub(crate) timeout: Nanos,
    /// Threads of the generator [default: 1]
    #[arg(long, alias = "lanes", value_name = "N", help_heading = ADVANCED, value_parser = from_1_to(1024))]
    pub(crate) generator_threads: Option<u32>,
    /// Whose clock says when a response came: kernel, user (the generator), or auto
    #[arg(long, value_name = "CLOCK", value_parser = words(TIMESTAMPS), default_value = "auto", help_heading = ADVANCED)]
    pub(crate) timestamps: WantedTimestamps,
    /// Response header in which a worker names itself
    #[arg(long, value_name = "NAME", default_value = "x-worker-pid", help_heading = ADVANCED)]
    pub(crate) worker_header: String,
}

/// What is said of flags of a server to be started, where one runs already.
pub(crate) const ONE_RUNS_ALREADY: &str = "a URL is of a server that runs already: leave out the flags that start one (-w, -t, -r, -C, -s, -d, --server, --server-cpus, --path, --try, -- COMMAND), or the URL";

impl ServerArgs {
    /// The server and how to start it.
    ///
    /// # Errors
    /// Where flags contradict each other.
    pub(crate) fn server(&self) -> Result<ServerPlan, Mistake> {
        let kind = self.kind()?;
        let socket = self.socket_kind()?;
        if !kind.listens_on(socket) {
            let server = if self.command.is_empty() {
                format!("--server {}", self.which.name)
            } else {
                "a command after --".to_owned()
            };
            return Err(wrong(format!(
                "-s {socket} is for Puma: {server} listens on tcp4 or tcp6 only"
            )));
        }
        refuse_if(
            self.body.is_some() && !kind.serves_bodies(),
            "--body is for Puma: no other server has an app that goes by it",
        )?;
        self.reached(self.puma.server(kind, self.app(), socket))
    }

    /// The same server, at an address that generators on other machines reach, if there are any.
    ///
    /// # Errors
    /// Where they cannot.
    pub(crate) fn reached(&self, server: ServerPlan) -> Result<ServerPlan, Mistake> {
        match self.socket.iter().find(|socket| socket.is_unix()) {
            Some(socket) if !self.from.is_empty() => Err(wrong(format!(
                "--from: no other machine reaches a Unix socket: use -s tcp4, not {socket}"
            ))),
            _ => Ok(ServerPlan { address: self.server_address, ..server }),
        }
    }

    pub(crate) fn socket_kind(&self) -> Result<Socket, Mistake> {
        match self.socket[..] {
            [socket] => Ok(socket),
            _ => Err(wrong(
                "-s takes several kinds of socket with --bodies only: give one, or add --bodies acsi1,10",
            )),
        }
    }

    fn app(&self) -> App {
        self.app.unwrap_or(if self.body.is_some() { App::Bodies } else { App::Sleep })
    }

    fn kind(&self) -> Result<ServerKind, Mistake> {
        let asks_for_puma = self.puma.asks_for_puma() || self.app.is_some();
        if self.command.is_empty() {
            refuse_if(
                self.slots.is_some() || self.url.is_some(),
                "--slots and --url belong to another server's command: add -- COMMAND at the end",
            )?;
            let named = self.which.clone();
            refuse_if(
                asks_for_puma && !named.kind.takes_puma_flags(),
                format_args!(
                    "--server {} takes no -r, --app, -C, -Y or --puma: they are Puma's",
                    named.name
                ),
            )?;
            return Ok(match &self.puma.puma {
                Some(command) => ServerKind::Puma { command: Some(Private::from(command.clone())) },
                None => named.kind,
            });
        }
        refuse_if(
            self.which != ServerKind::NAMED[0] || asks_for_puma,
            "a command after -- is a server of its own: it takes --slots or -w and -t, and --url, not -r, --app, -C, -Y, --puma or --server",
        )?;
        let of_size = self.puma.size();
        if let (Some(slots), Some(of_size)) = (self.slots, of_size)
            && slots != of_size
        {
            return Err(wrong(format!(
                "--slots {slots} is not -w x -t, which is {of_size}: leave out --slots"
            )));
        }
        match (self.slots.or(of_size), &self.url) {
            (Some(slots), Some(url)) => Ok(ServerKind::Command {
                argv: self.command.clone().into(),
                slots,
                url: url.clone().into(),
            }),
            _ => Err(wrong(
                "a command after -- needs --url URL (where it will answer), and -w N -t N (its workers, and threads of each) or --slots N (what it can process at once)",
            )),
        }
    }

    /// What is sent until `stop`, after a warm-up. If an app of our own sleeps, its delay is known
    /// without measuring it.
    ///
    /// # Errors
    /// Where flags contradict each other.
    pub(crate) fn stream(&self, stop: Stop, warm_up: Option<Nanos>) -> Result<StreamPlan, Mistake> {
        let app = self.app();
        let sleeps = self.puma.rackup.is_none() && self.command.is_empty() && app != App::Bodies;
        let has_one_path = self.path.is_some() || self.mix.is_some();
        let default_delay = (sleeps && !has_one_path).then_some(Nanos::from_millis(100));
        let delay = self.delay.or(default_delay);
        // The Rails app takes a number without a unit.
        let rails_path = delay
            .filter(|_| app == App::Rails)
            .map(|delay| format!("/sleep?ms={}", delay.0 as f64 / 1e6));
        let given = self.stream_as_given(stop, warm_up)?;
        let mix = self.mix.as_deref();
        let mix = mix.map(|mix| mix::planned(mix, &self.without, &given)).transpose()?;
        let requests = mix.as_ref().and_then(|mix| mix.requests.as_ref());
        let of_mix = requests
            .and_then(|mix| mix.requests().iter().find_map(model::Request::path_of_get))
            .map(str::to_owned);
        let path = self.path.clone().or(rails_path).or(of_mix).map(Private::from);
        Ok(StreamPlan { delay, path, mix, ..given })
    }

    /// The stream of requests without what depends on the app, on any of its sockets.
    ///
    /// # Errors
    /// Where the kernel's stamps were asked for and cannot be had.
    pub(crate) fn stream_as_given(
        &self,
        stop: Stop,
        warm_up: Option<Nanos>,
    ) -> Result<StreamPlan, Mistake> {
        let default_warm_up =
            if matches!(stop, Stop::After(_)) { Nanos::from_secs(1) } else { Nanos::ZERO };
        let is_tcp = !self.socket.iter().any(|socket| socket.is_unix());
        Ok(StreamPlan {
            delay: self.delay,
            path: self.path.clone().map(Private::from),
            body: self.body,
            mix: None,
            keep_alive: !self.no_keep_alive,
            stop,
            warm_up: warm_up.unwrap_or(default_warm_up),
            timeout: self.timeout,
            lanes: self.lanes(),
            timestamps: resolved_timestamps(self.timestamps, is_tcp)?,
            worker_header: self.worker_header.clone(),
            reads_app_times: self.inspect.asks_app(),
            from: self.from.iter().map(|from| from.as_str().into()).collect(),
        })
    }

    /// What is read of server and kernel during a run; `None` where that was left open.
    ///
    /// # Errors
    /// As [`InspectArgs::probe`].
    pub(crate) fn probe(&self) -> Result<Option<Probe>, Mistake> {
        self.inspect.probe(&[self.socket_kind()?])
    }

    /// Refuses flags of a server to be started where one runs already.
    ///
    /// # Errors
    /// If one is given.
    pub(crate) fn refuse_to_start_one(&self) -> Result<(), Mistake> {
        let is_given = self.puma.asks_for_puma()
            || self.puma.size().is_some()
            || !self.command.is_empty()
            || self.app.is_some()
            || self.path.is_some()
            || self.delay.is_some()
            || self.body.is_some()
            || self.socket[..] != [Socket::Tcp4]
            || self.which != ServerKind::NAMED[0]
            || self.slots.is_some()
            || self.url.is_some()
            || self.puma.server_cpus.is_some()
            || self.server_address.is_some();
        refuse_if(is_given, ONE_RUNS_ALREADY)
    }

    /// The words of `load` for an open loop on a server that runs already, as far as these flags
    /// determine them; the rate is a placeholder, as each run sets its own.
    pub(crate) fn words_of_load(&self) -> Vec<String> {
        let mut words: Vec<String> = ["--rate=1/s", "--arrivals=poisson"].map(str::to_owned).into();
        words.push(format!("--timeout={}", self.timeout));
        words.push(format!("--worker-header={}", self.worker_header));
        let clock = TIMESTAMPS.iter().find(|(_, clock)| *clock == self.timestamps);
        words.extend(clock.map(|(name, _)| format!("--timestamps={name}")));
        words.extend(self.from.iter().map(|from| format!("--from={from}")));
        words.extend(self.generator_threads.map(|n| format!("--generator-threads={n}")));
        words.extend(self.mix.iter().map(|mix| format!("--mix={mix}")));
        words.extend(self.without.iter().map(|class| format!("--without={class}")));
        if self.no_keep_alive {
            words.push("--no-keep-alive".to_owned());
        }
        words
    }

    /// Threads of the generator: one unless asked for more, as no Puma is as fast as one of them.
    pub(crate) fn lanes(&self) -> u32 {
        self.generator_threads.unwrap_or(1)
    }
}

/// Removes a server's command, and the `--` before it, from these words.
pub(crate) fn server_command(words: &mut Vec<String>) -> Vec<String> {
    words.iter().position(|word| word == "--").map(|at| words.split_off(at)).unwrap_or_default()
}

/// `proc` reads what every user may read; `kernel` adds the kernel's tracepoints; with `app`, which
/// is no probe, each response says when the app began and ended.
const INSPECTED: &[(&str, Option<Probe>)] = &[
    ("none", Some(Probe::None)),
    ("proc", Some(Probe::Proc)),
    ("kernel", Some(Probe::Bpf)),
    ("bpf", Some(Probe::Bpf)),
    ("app", None),
    ("auto", Some(Probe::Auto)),
];

/// What is inspected.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[arg(help = "Read: none, proc, kernel (CAP_BPF, CAP_PERFMON), app [default: auto]", long, alias = "probe", value_parser = words(INSPECTED), value_name = "LIST", value_delimiter = ',',
          help_heading = "Load")]
    inspect: Vec<Option<Probe>>,
    /// The same as --inspect app
    #[arg(long, hide = true)]
    anatomy: bool,
}

impl InspectArgs {
    /// Whether anything is asked for.
    pub(crate) fn is_given(&self) -> bool {
        self.anatomy || !self.inspect.is_empty()
    }

    /// Whether the app is asked when it began and ended.
    pub(crate) fn asks_app(&self) -> bool {
        self.anatomy || self.inspect.contains(&None)
    }

    /// What is read of server and kernel, of servers on these kinds of socket; `None` where that
    /// was left open.
    ///
    /// # Errors
    /// Where two things exclude each other, or the kernel's tracepoints cannot see one of the
    /// sockets.
    pub(crate) fn probe(&self, sockets: &[Socket]) -> Result<Option<Probe>, Mistake> {
        let mut probes = self.inspect.iter().flatten().copied();
        let probe = probes.next();
        refuse_if(
            probes.next().is_some(),
            "--inspect wants one of none, proc and kernel (kernel includes proc), and app beside it",
        )?;
        match sockets.iter().find(|socket| socket.is_unix()) {
            Some(socket) if probe == Some(Probe::Bpf) => Err(wrong(format!(
                "--inspect kernel sees TCP alone: leave it out with -s {socket}"
            ))),
            _ => Ok(probe),
        }
    }
}

const HOST4: &str = "PUMA_TEST_HOST4";
const HOST6: &str = "PUMA_TEST_HOST6";
const PORT: &str = "PUMA_TEST_PORT";
const CONTROL_PORT: &str = "PUMA_TEST_CTRL";

/// Where Puma listens.
///
/// # Errors
/// Where a port is no port.
pub(crate) fn addresses() -> Result<Addresses, Mistake> {
    let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let port = |name: &str| match text(name).map(|value| (value.parse::<u16>(), value)) {
        None => Ok(None),
        Some((Ok(port), _)) if port > 0 => Ok(Some(port)),
        Some((_, value)) => {
            Err(wrong(format!("{name}='{value}' is no port: set it to 1 to 65535, or unset it")))
        }
    };
    let default = Addresses::default();
    Ok(Addresses {
        host4: text(HOST4).unwrap_or(default.host4),
        host6: text(HOST6).unwrap_or(default.host6),
        port: port(PORT)?,
        control_port: port(CONTROL_PORT)?,
    })
}

/// A command line of a sweep, with the environment variables that count in front: together they
/// repeat a study here.
pub(crate) fn with_environment(command_line: &str, generator: Option<LoadTool>) -> MaskedText {
    let all = [HOST4, HOST6, PORT, CONTROL_PORT].into_iter().chain(settings(generator));
    with_variables(all, command_line)
}

/// A command line, with these variables in front as far as they are set.
pub(crate) fn with_variables(
    names: impl Iterator<Item = &'static str>,
    command_line: &str,
) -> MaskedText {
    let set = names.filter_map(|name| {
        std::env::var(name).ok().map(|value| format!("{name}={} ", quoted(&value)))
    });
    MaskedText::of_masked(set.collect::<String>() + command_line)
}
