//! Flags of `longtail sweep`, among them those of Puma's scripts (`-w2 -t5:5 -R100 -d0.2 -k`), also
//! with `--bodies`; and the plan that is made of them.

use audit::LoadTool;
use clap::Args;
use generators::LoadOrder;
use model::plan::quoted;
use model::{
    App, Bodies, BodiesPlan, EventKind, LoadSettings, Nanos, Plan, PlannedEvent, Private, Probe,
    Rate, ServerKind, ServerSize, Stop,
};

use super::server::{ServerArgs, server_command, tried_sizes};
use super::value_parsers::{CONNECTIONS, above_zero, from_1_to, load_tool, multiple};
use super::{ADVANCED, OutletArgs, OutputArgs, ThresholdArgs};
use crate::exit::{Mistake, refuse_if, wrong};

const EXAMPLES: &str = "\
Examples:
  longtail sweep -w2 -t5:5 -d0.1                    2 workers x 5 threads, a sleep of 100 ms
  longtail sweep -r config.ru --path /posts         your own app; its service time is measured first
  longtail sweep -r config.ru --mix mix.txt         fast and slow pages, by weight
  longtail sweep -w2 -t5 --url http://127.0.0.1:8000 -- gunicorn -w2 --threads 5 app:app
  longtail sweep -w2 -t5:5 -d0.1 -k                 a new connection for each request
  longtail sweep -w2 -t5:5 -s ssl4                  over TLS; -s unix and aunix: over a Unix socket
  longtail sweep -w2 -t5:5 -c 16,20,64              numbers of connections in place of multiples
  longtail sweep -t5:5 -d1 --app rails              a small Rails app that sleeps 1 s
  longtail sweep -w2 -t5:5 --bodies acsi1,10,100 -s tcp4,unix    what each response body costs on each socket
  longtail sweep -w4 -t5:5 -R100 -d0.2 --style puma    the columns of benchmarks/local/long_tail_hey.sh
  longtail sweep -w4 -t5:5 -R100 -d0.2 --generator hey    hey makes the load, as in Puma's script
  longtail sweep -w2 -t5:5 -d0.1 -k --inspect app   where the time went: accept queue, server, app
  longtail sweep -w2 -t5:5 -d0.1 -k --inspect app,kernel    the same, with the kernel's own timestamps
  longtail sweep -w2 -t5:5 -r config.ru -c 8 --during restart,worker-kill    what a restart costs, beside a run without
  longtail sweep -w2 -t5:5 -r config.ru --rate 50/s --during phased-restart --expect 'p99 < 1s during'    for CI
  longtail sweep -w2 -t5:5 -d0.1 --probe-discipline    in which order does it serve, with keep-alive and without?
  longtail sweep -w2 -t5:5 -C puma.rb --statsd-listen 127.0.0.1:8125    what puma-plugin-statsd and the app send
  longtail sweep -w2 -t5:5 --metrics 127.0.0.1:9464 --metrics-linger 30s    for Prometheus to scrape, at /metrics
  longtail sweep --slots 4 --url http://127.0.0.1:9292 -- falcon serve -n4 -b http://127.0.0.1:9292

Environment: PUMA_TEST_HOST4, PUMA_TEST_HOST6, PUMA_TEST_PORT and PUMA_TEST_CTRL choose where Puma listens, as in
Puma's own scripts; without them free ports are used. With --generator hey or wrk, HEY and WRK name the program, HEY_CPUS its CPUs.";

/// Flags of `longtail sweep`.
#[expect(clippy::doc_markdown, reason = "these lines are the help, shown as they are")]
#[derive(Debug, Args)]
#[command(
    after_long_help = EXAMPLES,
    group(clap::ArgGroup::new("list_of_arms").args(["tries", "during"]))
)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Connections of each step, in workers x threads [default: 1,1.5,2,3,4]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = multiple, help_heading = "Load")]
    multiples: Vec<f64>,
    /// Connections of each step, in place of --multiples
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', value_parser = from_1_to(CONNECTIONS),
          conflicts_with = "multiples", help_heading = "Load")]
    connections: Vec<u32>,
    /// Length of each step, after a warm-up of 1s
    #[arg(short = 'z', long = "for", short_alias = 'D', id = "length", value_name = "TIME", default_value = "10s",
          value_parser = above_zero, help_heading = "Load")]
    length: Nanos,
    /// End each step by count instead: N requests on each connection, as in Puma's scripts
    #[arg(short = 'R', long, value_name = "N", conflicts_with = "length", help_heading = ADVANCED,
          value_parser = clap::value_parser!(u64).range(1..))]
    requests_per_connection: Option<u64>,
    /// Do all steps N times, each time on a fresh server
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Load", value_parser = from_1_to(1000))]
    repeat: u32,
    /// Steps of response bodies: array, chunked, string, i (file); sizes in kB
    #[arg(short, long, value_name = "LIST", help_heading = "Load")]
    pub(crate) bodies: Option<Bodies>,
    /// How many threads? auto (for --rate), or sizes: 2x3,4x5,4x5k (k is -k)
    #[arg(long = "try", value_name = "LIST",
          conflicts_with_all = ["multiples", "repeat", "bodies", "generator", "requests_per_connection", "probe_discipline"],
          help_heading = "Load")]
    tries: Option<String>,
    /// Do something to the server in the middle of a load, and say what it costs: restart@5s
    ///
    /// A list of phased-restart, restart, refork, worker-kill, worker-term, stop-start, scale-up,
    /// scale-down, or signals such as HUP; or a command, such as 'sh -c "bin/deploy"@5s'; may be given again. Each has
    /// a run on a fresh server, beside one without an event. Without a time, after a third of the run.
    #[arg(long, value_name = "EVENT@TIME",
          conflicts_with_all = ["tries", "multiples", "repeat", "bodies", "generator", "requests_per_connection", "probe_discipline"],
          help_heading = ADVANCED)]
    during: Vec<String>,
    /// With --try auto: your traffic [default: 60 % of the most that a size does]; with --during
    /// and with --try of sizes: open loop at this rate, in place of -c
    ///
    /// What each size of a list does in overload, the same list shows without --rate; auto shows both.
    #[arg(long, value_name = "RATE", conflicts_with = "connections", help_heading = ADVANCED)]
    rate: Option<Rate>,
    /// wrk, hey, ab, h2load, oha or bombardier makes the load, and is audited
    #[arg(
        long,
        alias = "with",
        conflicts_with_all = ["from", "mix"],
        value_parser = load_tool(),
        value_name = "TOOL",
        help_heading = "Load"
    )]
    pub(crate) generator: Option<LoadTool>,

    #[command(flatten)]
    pub(crate) thresholds: ThresholdArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Load before each step, not measured; less once the server is warm [default: 1s, or none
    /// with -R]
    #[arg(long, value_name = "TIME", help_heading = ADVANCED)]
    warm_up: Option<Nanos>,
    /// Before the sweep, find out in which order the server serves, with keep-alive and without
    #[arg(long, conflicts_with_all = ["generator", "body", "mix"], help_heading = ADVANCED)]
    probe_discipline: bool,
    /// Do not wait between steps until the server is idle
    #[arg(long, help_heading = ADVANCED)]
    no_cool_down: bool,
    /// Do not measure the generator's own limit first (once a day)
    #[arg(long, help_heading = ADVANCED)]
    no_calibrate: bool,
    /// With --try: blocks, each with every size once [default: 8 to 20, until it is clear]; with
    /// --during each with every event once [default: 1]
    #[arg(long, value_name = "N", requires = "list_of_arms", help_heading = ADVANCED, value_parser = from_1_to(1000))]
    blocks: Option<u32>,
    /// With --bodies: chooses the order of the steps [default: 1]
    #[arg(long, value_name = "N", help_heading = ADVANCED)]
    seed: Option<u64>,
    #[command(flatten)]
    pub(crate) outlets: OutletArgs,

    /// With --bodies, in the words of response_time_wrk.sh: streams [default: 80 % of workers x
    /// threads, at least 1]
    #[arg(short = 'T', long, value_name = "N", hide = true, value_parser = from_1_to(10_000))]
    streams: Option<u32>,
    /// And connections of each stream
    #[arg(long, value_name = "N", hide = true, conflicts_with = "connections", value_parser = from_1_to(100_000))]
    connections_per_stream: Option<u32>,
}

impl SweepArgs {
    /// The words of the comparison that `--try` or `--during` is, where one is given among `words`.
    ///
    /// # Errors
    /// If its list cannot be read.
    pub(crate) fn as_comparison(&self, words: &[String]) -> Result<Option<Vec<String>>, Mistake> {
        let Some(list) = &self.tries else { return self.as_comparison_of_events(words) };
        let own = ["--best", "--no-control"].map(str::to_owned);
        let margin = || format!("--margin={MARGIN_AT_A_RATE}");
        if list == "auto" {
            refuse_if(
                self.server.puma.has_threads(),
                "--try auto finds the threads of a worker: leave out -t (-w sets the workers)",
            )?;
            refuse_if(
                self.server.url.is_some() || !self.server.command.is_empty(),
                "--try auto starts Puma with other numbers of threads: compare another server's commands, longtail compare --url URL --arm '-- COMMAND' --arm '-- COMMAND'",
            )?;
            let own = own.into_iter().chain(["--find-threads".to_owned()]);
            return Ok(Some(comparison(words, "--try", Some(margin()), own)));
        }
        let arms = try_list(list)?;
        let arms = arms.iter().map(|arm| as_arm(arm));
        let arrivals = self.rate.map(|_| "--arrivals=poisson".to_owned());
        let own = own.into_iter().chain(arrivals).chain(arms);
        Ok(Some(comparison(words, "--try", self.rate.map(|_| margin()), own)))
    }

    /// The same of `--during`: one arm without an event, and one with each. One block tells what an
    /// event costs; more tell how much that varies.
    fn as_comparison_of_events(&self, words: &[String]) -> Result<Option<Vec<String>>, Mistake> {
        if self.during.is_empty() {
            return Ok(None);
        }
        let arms = self.during.iter().map(|list| event_arms(list));
        let arms = arms.collect::<Result<Vec<_>, _>>()?.concat();
        let length = self.requests_per_connection.is_none().then(|| format!("--for={EVENT_RUN}"));
        let blocks = self.blocks.is_none().then(|| "--blocks=1".to_owned());
        let own = std::iter::once("--no-control".to_owned()).chain(blocks);
        let base = std::iter::once("no event=".to_owned()).chain(arms);
        let arms: Vec<String> = base.map(|arm| as_arm(&arm)).collect();
        Ok(Some(comparison(words, "--during", length, own.chain(arms))))
    }
}

/// Nobody adds threads, or takes some away, for less of the mean response time. Of the throughput,
/// which decides without a rate, half of that matters.
const MARGIN_AT_A_RATE: &str = "10%";

/// How long a run with an event is, if nothing else is said: a restart of a small app and its end
/// have room in it.
const EVENT_RUN: Nanos = Nanos::from_secs(15);

fn as_arm(arm: &str) -> String {
    format!("--arm={arm}")
}

/// These words of a sweep as words of a comparison: without `flag` and its values, with `default`
/// first, which the user's own words override, and with `own` before the server's command.
fn comparison(
    words: &[String],
    flag: &str,
    default: Option<String>,
    own: impl Iterator<Item = String>,
) -> Vec<String> {
    let mut words = words.to_vec();
    let command = server_command(&mut words);
    if let Some(at) = words.iter().position(|word| word == "sweep") {
        let name = std::iter::once("compare".to_owned());
        words.splice(at..=at, name.chain(default));
    }
    while let Some(at) = words.iter().position(|word| word == flag) {
        words.drain(at..words.len().min(at + 2));
    }
    let with_value = format!("{flag}=");
    words.retain(|word| !word.starts_with(&with_value));
    words.extend(own);
    words.extend(command);
    words
}

/// The arms of `sweep --during restart,refork@5s`: one for each event, called as it is typed; of a
/// command, which may have commas, one.
///
/// # Errors
/// If one of them is no event.
fn event_arms(list: &str) -> Result<Vec<String>, Mistake> {
    let event = |text: &str| text.parse::<PlannedEvent>();
    let is_command = |event: &PlannedEvent| matches!(event.kind, EventKind::Command(_));
    if event(list).is_ok_and(|event| is_command(&event)) {
        return Ok(vec![format!("--during {}", quoted(list))]);
    }
    let arm = |text: &str| match event(text) {
        Ok(event) => Ok(format!("{event}=--during {event}")),
        Err(why) => Err(wrong(format!("--during: {why}"))),
    };
    list.split(',').map(arm).collect()
}

/// The command that `sweep --bodies` was before: its `-c` is of each stream, and its bodies have a
/// default.
pub(crate) fn as_bodies(command: clap::Command) -> clap::Command {
    command
        .mut_arg("bodies", |arg| arg.default_value("acsi1,10,100,256,512,1024,2048"))
        .mut_arg("connections", |arg| arg.short(None).long("total-connections"))
        .mut_arg("connections_per_stream", |arg| arg.short('c').long("connections"))
}

/// The arms of `sweep --try 2x3,4x5,4x5k`: workers x threads, without keep-alive where a k stands
/// behind them.
///
/// # Errors
/// If one of them is not a size.
fn try_list(list: &str) -> Result<Vec<String>, Mistake> {
    Ok(tried_sizes(list)?.into_iter().map(size_arm).collect())
}

/// The arm for a size, called by it.
pub(crate) fn size_arm(size: ServerSize) -> String {
    let ServerSize { workers, threads, keep_alive } = size;
    let no_keep_alive = if keep_alive { "" } else { " -k" };
    format!("{size}=-w{workers} -t{threads}:{threads}{no_keep_alive}")
}

impl SweepArgs {
    /// Refuses flags that belong to other sweeps than those over bodies.
    fn refuse_what_bodies_lack(&self) -> Result<(), Mistake> {
        let server_flag = format!("--server {}", self.server.which.name);
        let of_others = [
            (self.server.path.is_some(), "--path"),
            (self.server.mix.is_some(), "--mix"),
            (self.server.body.is_some(), "--body"),
            (self.server.app.is_some(), "--app"),
            (!self.server.which.kind.serves_bodies(), server_flag.as_str()),
            (self.server.url.is_some(), "--url"),
            (self.server.slots.is_some(), "--slots"),
            (!self.server.command.is_empty(), "-- COMMAND"),
            (!self.multiples.is_empty(), "--multiples (-c N sets the connections)"),
            (self.connections.len() > 1, "a list of -c"),
            (self.requests_per_connection.is_some(), "-R"),
            (self.probe_discipline, "--probe-discipline"),
            (self.generator.is_some(), "--generator"),
            (self.server.inspect.asks_app(), "--inspect app"),
            (self.outlets.is_any(), "--statsd-listen, --statsd-to, --metrics and --otlp"),
        ];
        let given: Vec<&str> =
            of_others.into_iter().filter_map(|(is_given, flag)| is_given.then_some(flag)).collect();
        if !given.is_empty() {
            return Err(wrong(format!(
                "--bodies goes without {}: leave out one or the other",
                given.join(", ")
            )));
        }
        let sockets = &self.server.socket;
        if let Some((_, twice)) =
            sockets.iter().enumerate().find(|(at, socket)| sockets[..*at].contains(socket))
        {
            return Err(wrong(format!(
                "-s has {twice} twice: name each kind of socket once (--repeat N repeats all)"
            )));
        }
        Ok(())
    }

    /// All that was asked of a sweep over bodies, every default made explicit.
    ///
    /// # Errors
    /// If flags contradict each other or a value cannot be.
    pub(crate) fn bodies_plan(&self) -> Result<BodiesPlan, Mistake> {
        self.refuse_what_bodies_lack()?;
        self.check_values()?;
        self.thresholds.check_classes(&[])?;
        let sockets = &self.server.socket;
        // A body is little work: what the tracepoints cost would show.
        let probe = self
            .server
            .inspect
            .probe(sockets)?
            .filter(|probe| *probe != Probe::Auto)
            .unwrap_or(Probe::Proc);
        let (connections_per_stream, streams) = match self.connections.first() {
            Some(connections) => (*connections, Some(self.streams.unwrap_or(1))),
            None => (
                self.connections_per_stream.unwrap_or(BodiesPlan::CONNECTIONS_PER_STREAM),
                self.streams,
            ),
        };
        let puma = ServerKind::Puma { command: self.server.puma.puma.clone().map(Private::from) };
        Ok(BodiesPlan {
            server: self.server.reached(self.server.puma.server(puma, App::Bodies, sockets[0]))?,
            stream: self.server.stream_as_given(Stop::After(self.length), self.warm_up)?,
            sockets: sockets.clone(),
            bodies: self.bodies.clone().unwrap_or_default(),
            connections_per_stream,
            streams,
            repeat: self.repeat,
            seed: self.seed.unwrap_or(1),
            cool_down: !self.no_cool_down,
            calibrate: !self.no_calibrate,
            probe,
            thresholds: self.thresholds.all(),
        })
    }

    /// All that was asked, every default made explicit.
    ///
    /// # Errors
    /// If flags contradict each other or a value cannot be.
    pub(crate) fn plan(&self) -> Result<Plan, Mistake> {
        self.check_values()?;
        let server = self.server.server()?;
        if let Some(with) = self.generator {
            self.check_with(with)?;
        }
        if self.seed.is_some() || self.streams.is_some() || self.connections_per_stream.is_some() {
            return Err(wrong(
                "--seed, -T and --connections-per-stream belong to --bodies: add it",
            ));
        }
        let stop = self
            .requests_per_connection
            .map_or(Stop::After(self.length), Stop::RequestsPerConnection);
        let stream = self.server.stream(stop, self.warm_up)?;
        let classes = stream.mix.as_ref().map_or(&[][..], |mix| &mix.classes);
        self.thresholds.check_classes(classes)?;
        Ok(Plan {
            server,
            stream,
            multiples: match (self.connections.is_empty(), self.multiples.is_empty()) {
                (true, true) => Plan::MULTIPLES.to_vec(),
                (true, false) => self.multiples.clone(),
                (false, _) => Vec::new(),
            },
            connections: self.connections.clone(),
            repeat: self.repeat,
            cool_down: !self.no_cool_down,
            // The ceiling that we could measure is ours and not the other generator's.
            calibrate: !self.no_calibrate && self.generator.is_none(),
            probe_discipline: self.probe_discipline,
            with: self.generator.map(|with| with.name().to_owned()),
            probe: self.probe()?,
            statsd_listen: self.outlets.statsd_listen,
            thresholds: self.thresholds.all(),
        })
    }

    /// Refuses a value that cannot be, whatever the others are.
    pub(crate) fn check_values(&self) -> Result<(), Mistake> {
        refuse_if(
            self.rate.is_some(),
            "--rate is for sweep --during: longtail load has --rate for a server that runs already, and longtail capacity finds the highest",
        )?;
        self.outlets.check()?;
        self.server.puma.check()
    }

    /// What is read meanwhile: nothing, if another generator runs, as nobody knows when its warm-up
    /// is over.
    fn probe(&self) -> Result<Probe, Mistake> {
        let asked = self.server.probe()?;
        match self.generator {
            None => Ok(asked.unwrap_or(Probe::Auto)),
            Some(_)
                if matches!(asked, None | Some(Probe::None)) && !self.server.inspect.asks_app() =>
            {
                Ok(Probe::None)
            }
            Some(with) => Err(wrong(format!(
                "--inspect is of our own runs: leave it out with --generator {}",
                with.name()
            ))),
        }
    }

    /// Refuses what the other generator cannot do, whatever the number of connections will be.
    fn check_with(&self, with: LoadTool) -> Result<(), Mistake> {
        let name = with.name();
        let socket = self.server.socket_kind()?;
        if socket.is_unix() {
            return Err(wrong(format!(
                "--generator {name}: it knows no Unix socket: leave out -s {socket}"
            )));
        }
        generators::check_thresholds(with, &self.thresholds.all())?;
        let shares_evenly = matches!(with, LoadTool::Hey | LoadTool::H2load);
        if self.requests_per_connection.is_some() && !shares_evenly {
            return Err(wrong(format!(
                "--generator {name}: it cannot give each connection -R requests: give --for"
            )));
        }
        let load = LoadSettings {
            requests_total: self.requests_per_connection,
            warm_up: self.warm_up.unwrap_or(Nanos::ZERO),
            keep_alive: !self.server.no_keep_alive,
            timeout: self.server.timeout,
            lanes: self.server.lanes(),
            ..LoadSettings::closed(1)
        };
        let time = self.requests_per_connection.is_none().then_some(self.length);
        let order = LoadOrder { time, ..LoadOrder::get("", load) };
        generators::check_order(with, &order)?;
        refuse_if(
            self.server.body.is_some() && self.server.puma.rackup.is_some(),
            format_args!(
                "--generator {name} asks for a path alone: leave out -r, or give --path in place of --body"
            ),
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use model::{Bodies, BodiesPlan, Nanos, Plan, Socket, Stop, Threads};

    use super::SweepArgs;
    use crate::commands::{Command, Invocation, parse};

    /// The flags of a command line, as a shell reads it.
    fn asked(line: &str) -> SweepArgs {
        let words = shlex::split(line).unwrap().into_iter().map(OsString::from);
        match parse(std::iter::once("longtail".into()).chain(words)) {
            Ok(Invocation::Command(Command::Sweep(args) | Command::Bodies(args), _)) => *args,
            Err(mistake) => panic!("{line}: {mistake}"),
            Ok(_) => panic!("{line} is not a sweep"),
        }
    }

    fn plan(line: &str) -> Plan {
        asked(line).plan().unwrap_or_else(|mistake| panic!("{line}: {mistake}"))
    }

    fn bodies(line: &str) -> BodiesPlan {
        asked(line).bodies_plan().unwrap_or_else(|mistake| panic!("{line}: {mistake}"))
    }

    #[test]
    fn pumas_own_words_work() {
        let plan = plan("sweep -w4 -t5:5 -R100 -d0.2 -k -Y -r app.ru -C puma.rb -stcp6");
        assert_eq!(plan.server.workers, Some(4));
        assert_eq!(plan.server.threads, Some(Threads { min: 5, max: 5 }));
        assert_eq!(plan.stream.stop, Stop::RequestsPerConnection(100));
        assert_eq!(plan.stream.delay, Some(Nanos::from_millis(200)));
        assert_eq!(plan.stream.target_path().exposed(), "/sleep0.2");
        assert_eq!(plan.stream.warm_up, Nanos::ZERO, "Puma's script has none");
        assert!(!plan.stream.keep_alive && plan.server.yjit);
        assert_eq!(plan.server.socket, Socket::Tcp6);
    }

    #[test]
    fn another_servers_slots_are_its_workers_times_their_threads() {
        for (words, expected) in
            [("-w2 -t5", 10), ("-w4", 4), ("-t8", 8), ("-w2 -t5 --slots=10", 10)]
        {
            match plan(&format!("sweep --url=http://127.0.0.1:9/ {words} -- x")).server.kind {
                model::ServerKind::Command { slots, .. } => assert_eq!(slots, expected, "{words}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn rails_is_asked_in_milliseconds() {
        for (words, path) in [
            ("--app=rails", "/sleep?ms=100"),
            ("--app=rails -d1.1", "/sleep?ms=1100"),
            ("--app=rails -d1500us", "/sleep?ms=1.5"),
            ("--app=rails --path=/x", "/x"),
            ("--app=sleep", "/sleep0.1"),
        ] {
            assert_eq!(plan(&format!("sweep {words}")).stream.target_path().exposed(), path);
        }
    }

    #[test]
    fn a_kind_of_socket_has_the_names_of_pumas_scripts() {
        for (word, socket) in [("tcp", Socket::Tcp4), ("ssl", Socket::Ssl4), ("ssl6", Socket::Ssl6)]
        {
            assert_eq!(plan(&format!("sweep -s {word}")).server.socket, socket);
        }
    }

    #[test]
    fn the_words_of_pumas_script_work() {
        let words = "-w2 -t5:5 -s tcp6 -b ac50,100 -c4 -T3 -D5 -d0.01 -Y -C puma.rb -r ci.ru -k";
        let asked = bodies(&format!("bodies {words}"));
        assert_eq!(asked.bodies.to_string(), "ac50,100");
        assert_eq!(asked.sockets, [Socket::Tcp6]);
        assert_eq!(
            (asked.connections_on(10), asked.stream.stop),
            (12, Stop::After(Nanos::from_secs(5)))
        );
        assert_eq!(asked.stream.delay, Some(Nanos::from_millis(10)));
        assert!(asked.server.yjit && !asked.stream.keep_alive);
        assert_eq!(bodies(&format!("sweep {words}")), asked, "a sweep takes them too");
    }

    #[test]
    fn the_defaults_are_those_of_pumas_script() {
        let asked = bodies("bodies -w2 -t5:5");
        assert_eq!((asked.bodies.clone(), asked.runs()), (Bodies::default(), 28));
        assert_eq!((asked.streams_on(10), asked.connections_on(10)), (8, 16), "wrk -t8 -c16");
        assert_eq!(asked.stream.stop, Stop::After(Nanos::from_secs(10)));
        assert_eq!(bodies("sweep --bodies=acsi1,10,100,256,512,1024,2048 -w2 -t5:5"), asked);
    }

    #[test]
    fn a_sweeps_connections_are_the_total() {
        assert_eq!(bodies("sweep -bs1 -c16").connections_on(10), 16);
        assert_eq!(bodies("bodies -bs1 -c16").connections_on(10), 8 * 16, "of each stream");
    }
}
