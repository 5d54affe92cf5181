//! What a scenario runs on: its folder, servers, programs, machines and control groups, and the
//! studies that it leaves. `is_there` says what of this is available here.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use export::text_formats::LONGEST_PACKET;
use model::{Clock as _, Cpus, LoadStudy, Nanos, ServerLocation, SlowClientCounts, Study};
use rustix::process::Signal;
use sink::{Sink, SinkBody, SinkSettings, SlotQueue};
use testkit::clock::{REAL_CLOCK, eventually};
use testkit::http::Receiver;

use super::laws::{assert_sound, is_of_the_machine};
use super::values::{at, plain, unescaped};
use crate::far::{Machines, certificate, host, on};
use crate::lab::{
    self, Ended, LONGTAIL, Lab, PATIENCE, Running, can, free_port, get_body, has,
    settings_and_words, sockets, split,
};
use crate::load::sink_with;

/// What {recorder} replies if the scenario has no `reply`.
const GREETING: &str = "HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello";

/// The sinks by name, and where they listen. The last six are on the machines of a `network`.
const SINKS: [(&str, &str); 11] = [
    ("ok", "127.0.0.1:0"),
    ("counter", "127.0.0.1:0"),
    ("slow", "127.0.0.1:0"),
    ("slots", "127.0.0.1:0"),
    ("tls", "tls://127.0.0.1:0"),
    ("near", "10.77.0.1:0"),
    ("far", "10.77.0.2:0"),
    ("far6", "[fd77::2]:0"),
    ("far-tls", "tls://10.77.0.2:0"),
    ("far-tls6", "tls://[fd77::2]:0"),
    ("far-public", "203.0.113.7:0"),
];

/// A scenario that is running.
pub(crate) struct Stage {
    pub(super) name: String,
    pub(super) lab: Lab,
    /// What names in braces stand for.
    pub(super) places: BTreeMap<String, String>,
    pub(super) sinks: Vec<Sink>,
    pub(super) receiver: Receiver,
    /// A UDP socket that statsd packets may be sent to.
    pub(super) agent: UdpSocket,
    /// Programs that run until the end of the scenario.
    pub(super) background: Vec<Running>,
    pub(super) running: Option<Running>,
    pub(super) ended: Option<Ended>,
    /// Longtail's machine and another one.
    pub(super) machines: Option<Machines>,
    pub(super) quota: Option<Quota>,
    pub(super) port: u16,
}

impl Stage {
    pub(crate) fn new(scenario: &str) -> Stage {
        let setting = |word: &str| scenario.lines().find_map(|line| line.strip_prefix(word));
        let reply = unescaped(setting("reply").unwrap_or(GREETING).trim_start());
        let statsd = setting("statsd-packet ").map(unescaped);
        let lab = Lab::new();
        let port = free_port();
        let agent = UdpSocket::bind("127.0.0.1:0").unwrap();
        agent.set_nonblocking(true).unwrap();
        let [free, web] =
            ["{free}", "{web}"].map(|name| if scenario.contains(name) { free_port() } else { 0 });
        let receiver = Receiver::by(move |_| {
            if let Some(lines) = &statsd {
                UdpSocket::bind("127.0.0.1:0")
                    .unwrap()
                    .send_to(lines.as_bytes(), ("127.0.0.1", free))
                    .unwrap();
            }
            reply.clone().into_bytes()
        });
        let of_crates = |folder: &str| format!("{}/../{folder}", env!("CARGO_MANIFEST_DIR"));
        let ours = launch::affinity::ours().expect("Linux tells");
        let last: Cpus = ours.iter().last().into_iter().collect();
        let places = BTreeMap::from([
            ("{port}", port.to_string()),
            ("{free}", free.to_string()),
            ("{web}", web.to_string()),
            ("{agent}", agent.local_addr().unwrap().to_string()),
            ("{agent-port}", agent.local_addr().unwrap().port().to_string()),
            ("{recorder}", receiver.address.to_string()),
            ("{taken}", receiver.address.port().to_string()),
            ("{version}", env!("CARGO_PKG_VERSION").to_owned()),
            ("{longtail}", LONGTAIL.to_owned()),
            ("{new-puma}", new_puma().unwrap_or_default()),
            ("{puma-6}", puma_6().unwrap_or_default()),
            ("{lab}", lab.path("").display().to_string()),
            ("{root}", of_crates("..")),
            ("{witness}", of_crates("longtail/tests/cli/witness.rb")),
            ("{goldens}", of_crates("report/tests/golden")),
            ("{fixtures}", of_crates("audit/tests/fixtures")),
            ("{cpus}", ours.len().to_string()),
            ("{last-cpu}", last.to_string()),
            ("{other-cpus}", ours.without(&last).to_string()),
        ]);
        let places = places.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Stage {
            name: scenario.lines().next().unwrap_or_default().to_owned(),
            lab,
            places,
            sinks: Vec::new(),
            receiver,
            agent,
            background: Vec::new(),
            running: None,
            ended: None,
            machines: None,
            quota: None,
            port,
        }
    }

    /// The text with all names in braces replaced. A sink starts when it is named for the first
    /// time.
    pub(super) fn filled(&mut self, text: &str) -> String {
        for (name, place) in SINKS {
            let [address, port] = [format!("{{{name}}}"), format!("{{{name}-port}}")];
            if (text.contains(&address) || text.contains(&port))
                && !self.places.contains_key(&address)
            {
                let sink = self.sink(name, place);
                self.places.insert(address, sink.address().to_string());
                self.places.insert(port, sink.address().port().to_string());
                self.sinks.push(sink);
            }
        }
        let mut text = self
            .places
            .iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
        if text.contains("{served}") {
            let by_sinks = self.sinks.iter().map(|sink| sink.ledger().requests).sum::<u64>();
            text = text
                .replace("{served}", &(by_sinks + self.receiver.kept().len() as u64).to_string());
        }
        while let Some((before, rest)) = text.split_once("{study ") {
            let (path, after) = rest.split_once('}').unwrap();
            let study =
                serde_json::from_str(&fs::read_to_string(self.newest().expect("a study")).unwrap())
                    .unwrap();
            text = format!(
                "{before}{}{after}",
                at(&study, path).into_iter().map(plain).collect::<Vec<_>>().join(" ")
            );
        }
        text
    }

    fn sink(&self, name: &str, place: &str) -> Sink {
        let body =
            if name == "counter" || name == "slow" { SinkBody::Counter } else { SinkBody::Ok };
        let plain = SinkSettings { body, ..SinkSettings::default() };
        let delayed = |ms| SinkSettings { delay: Nanos::from_millis(ms).into(), ..plain.clone() };
        let settings = match name {
            "slow" => delayed(2),
            "slots" => SinkSettings { queue: SlotQueue::Shared, threads: 4, ..delayed(20) },
            _ => plain,
        };
        let Some(machines) = &self.machines else { return sink_with(place, settings) };
        let pem = place.starts_with("tls").then(|| certificate(&self.lab, "app.test"));
        let host = if name == "near" { &machines.here } else { &machines.there };
        host.enter(|| sink_with(place, SinkSettings { pem, ..settings }))
    }

    /// A program on longtail's machine.
    fn program(&self, program: &str) -> Command {
        match &self.machines {
            Some(machines) => on(&self.lab, &machines.here, program),
            None => self.lab.program(program),
        }
    }

    /// Starts longtail with these arguments, or a shell with this line.
    pub(super) fn start(&self, word: &str, line: &str) -> Running {
        if word == "sh" {
            return Running::start(self.program("sh").args(["-c", line]));
        }
        let (line, input) =
            line.split_once(" <<< ").map_or((line, None), |(line, file)| (line, Some(file)));
        let (settings, words) = settings_and_words(line);
        let mut command = self.program(LONGTAIL);
        if let Some(file) = input {
            command.stdin(fs::File::open(self.lab.path(file)).unwrap());
        }
        Running::start(
            command.args(words).env("PUMA_TEST_PORT", self.port.to_string()).envs(settings),
        )
    }

    /// Starts a server, on the other machine if there is one.
    pub(super) fn serve(&mut self, line: &str) {
        let server = split(line);
        let mut command = match &self.machines {
            Some(machines) => on(&self.lab, &machines.there, &server[0]),
            None => self.lab.program(&server[0]),
        };
        let server = Running::start(command.args(&server[1..]));
        // The kernel's table of sockets shows only this process's own network namespace.
        let connects = || TcpStream::connect(("10.77.0.2", self.port)).is_ok();
        let listens = || match &self.machines {
            Some(machines) => machines.there.enter(connects),
            None => sockets(self.port).listening,
        };
        eventually(PATIENCE, || server.output_so_far(), || listens().then_some(()));
        self.places.insert("{served-pid}".to_owned(), server.pid().to_string());
        self.background.push(server);
    }

    pub(crate) fn ended(&self) -> &Ended {
        self.ended.as_ref().expect("a command comes before what it must print")
    }

    /// Whether it ended with this exit code. If a busy machine spoiled every run, 3 counts as
    /// 0 or 1.
    pub(super) fn has_code(&self, code: i32) -> bool {
        let ended_with = self.ended().status.code();
        let is_excused = || self.newest_study().is_some_and(|study| is_of_the_machine(&study));
        ended_with == Some(code) || matches!(code, 0 | 1) && ended_with == Some(3) && is_excused()
    }

    /// Waits until what is running has ended.
    pub(crate) fn finish(&mut self) {
        self.ended = self.running.take().map(Running::end).or(self.ended.take());
    }

    /// Saves a server's response for a port and target in a file, as soon as it is 200 with the
    /// text in its body.
    pub(super) fn fetch(&self, file: &str, what: &str) {
        let (place, part) = what.split_once(' ').unwrap_or((what, ""));
        let (port, target) = place.split_once('/').unwrap();
        let body = || get_body(port.parse().unwrap(), &format!("/{target}"));
        let has_it = || body().filter(|body| body.contains(part));
        self.lab.write(file, &eventually(PATIENCE, || format!("{place}: {:?}", body()), has_it));
    }

    /// Saves the packets that {agent} received in a file. Their sender must have ended.
    pub(super) fn save_packets(&self, file: &str) {
        let mut text = String::new();
        let mut buffer = vec![0; 65_536];
        while let Ok(length) = self.agent.recv(&mut buffer) {
            assert!(length <= LONGEST_PACKET, "{length}");
            text += str::from_utf8(&buffer[..length]).unwrap();
            text.push('\n');
        }
        self.lab.write(file, &text);
    }

    pub(super) fn studies(&self) -> Vec<PathBuf> {
        let is_one = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        self.lab.studies().into_iter().filter(is_one).collect()
    }

    /// The file of the newest study.
    pub(super) fn newest(&self) -> Option<String> {
        let written = |path: &PathBuf| fs::metadata(path).unwrap().modified().unwrap();
        Some(self.studies().into_iter().max_by_key(written)?.display().to_string())
    }

    pub(crate) fn newest_study(&self) -> Option<Study> {
        Some(lab::read(self.newest()?.as_ref()))
    }

    /// Checks what must hold after every scenario.
    pub(crate) fn assert_sound(mut self) {
        let name = &self.name;
        assert!(
            self.running.is_none(),
            "{name}: a command is still running that no line waits for"
        );
        for running in std::mem::take(&mut self.background) {
            running.send(Signal::TERM);
            running.send(Signal::CONT);
            running.end();
        }
        let mut ours = CountedByStudies::of(&self.studies());
        ours.is_exact &= !self.sinks.is_empty();
        // Connections, requests, bytes received, bytes sent: what the sinks received, we sent.
        let mut theirs = [0; 4];
        for ledger in self.sinks.into_iter().map(Sink::stop) {
            assert!(ledger.bad_requests == 0 || !ours.is_exact, "{name}: {ledger:?}");
            add(
                &mut theirs,
                [ledger.connections, ledger.requests, ledger.received_bytes, ledger.sent_bytes],
            );
        }
        ours.assert_agree_with(&theirs, name);
        self.lab.assert_nothing_left(self.port);
    }
}

/// What the studies of a scenario say was sent and received.
#[derive(Default)]
struct CountedByStudies {
    /// Connections, requests, bytes sent, bytes received.
    counts: [u64; 4],
    /// Whether the sinks must have counted the same.
    is_exact: bool,
    /// Whether it is known how many connections the sinks saw: for a server elsewhere, one more is
    /// made to see whether it listens; here the kernel says so.
    is_here: bool,
    slow: Vec<SlowClientCounts>,
    /// Requests before loads, one at a time.
    alone: u64,
}

impl CountedByStudies {
    /// Adds up the studies in these files, each of which must be sound.
    fn of(files: &[PathBuf]) -> CountedByStudies {
        let mut all = CountedByStudies {
            is_exact: !files.is_empty(),
            is_here: true,
            ..CountedByStudies::default()
        };
        for study in files.iter().map(|path| lab::read(path)) {
            assert_sound(&study);
            match study {
                Study::Load(study) if study.run.claim.is_none() => all.add_load(*study),
                Study::Sweep(_) => {}
                _ => all.is_exact = false,
            }
        }
        all
    }

    fn add_load(&mut self, study: LoadStudy) {
        let tally = &study.run.tally;
        let far = &study.run.generator.far;
        let has_lost = far.iter().any(|one| one.lost.is_some());
        self.is_here &= study.server == ServerLocation::Here && far.is_empty();
        let more = [
            tally.connections_opened,
            tally.all_requests(),
            tally.sent_bytes,
            tally.received_bytes,
        ];
        add(&mut self.counts, more);
        self.is_exact &= tally.counts.failed() == 0 && !study.interrupted && !has_lost;
        self.slow.extend(study.slow_clients);
        self.alone += study.classes_alone.iter().map(|class| class.requests).sum::<u64>();
    }

    /// Checks that the sinks counted as much.
    fn assert_agree_with(&self, theirs: &[u64; 4], name: &str) {
        let CountedByStudies { counts: ours, is_exact, is_here, slow, alone } = self;
        if *alone > 0 {
            let all = ours[1] + alone;
            assert_eq!(theirs[1], all, "{name}: requests, {alone} of them before loads");
        }
        if let [slow] = &slow[..] {
            assert_eq!(slow.accounted(), slow.opened, "{name}: {slow:?}");
            assert_eq!(theirs[0], ours[0] + slow.opened, "{name}: connections, {slow:?}");
            // The server may have had the request of a connection that was in use at the end.
            let fewest = ours[1] + slow.responses.total();
            let requests = fewest..=fewest + slow.unfinished;
            assert!(requests.contains(&theirs[1]), "{name}: {requests:?}, {theirs:?}, {slow:?}");
            return;
        }
        let from = usize::from(!is_here);
        assert!(
            *alone > 0 || !is_exact || ours[from..] == theirs[from..],
            "{name}: connections, requests, bytes sent and received: {ours:?}, {theirs:?}"
        );
    }
}

/// A ready-made study.
pub(super) fn made(name: &str) -> Study {
    match name {
        "judged" => testkit::study::judged().into(),
        "canonical" => testkit::study::canonical().into(),
        "sizes" => testkit::comparison::enough_threads().into(),
        "pairs" => testkit::comparison::pairs().into(),
        "bodies" => testkit::bodies::canonical().into(),
        "closed" => testkit::load::closed().into(),
        "failing" => testkit::load::failing().into(),
        "poisson" => testkit::load::open_poisson().into(),
        other => panic!("there is no study called {other}"),
    }
}

/// A control group with a share of a CPU. Only root can make one. It is removed when dropped.
pub(super) struct Quota(pub(super) PathBuf);

impl Quota {
    /// A quota of this many hundredths of a CPU; `None` if it can't be made.
    pub(super) fn of(percent: u64) -> Option<Quota> {
        let name = format!("longtail-test-{}-{percent}", std::process::id());
        let quota = percent * 1000;
        let quotas = [
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", quota.to_string()),
            ("/sys/fs/cgroup", "cpu.max", format!("{quota} 100000")),
        ];
        quotas.iter().find_map(|(root, file, quota)| {
            let folder = Path::new(root).join(&name);
            fs::create_dir(&folder).ok()?;
            let has_it = folder.join(file).is_file() && fs::write(folder.join(file), quota).is_ok();
            if !has_it {
                let _ = fs::remove_dir(&folder);
            }
            has_it.then_some(Quota(folder))
        })
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Its last process may still be ending.
        let soon = REAL_CLOCK.now() + Nanos::from_secs(10);
        while fs::remove_dir(&self.0).is_err() && REAL_CLOCK.now() < soon {
            REAL_CLOCK.sleep(Nanos::from_millis(20));
        }
    }
}

/// The command of the last Puma with a matching major version among the checkouts that
/// `LONGTAIL_PUMAS` names.
fn puma_of(is_wanted: fn(u32) -> bool) -> Option<String> {
    let folders = std::env::var("LONGTAIL_PUMAS").unwrap_or_default();
    let is_one = |folder: &&str| {
        let text = fs::read_to_string(format!("{folder}/lib/puma/const.rb")).unwrap_or_default();
        let version = text.lines().find_map(|line| line.split_once("PUMA_VERSION = VERSION = \""));
        let major = version.and_then(|(_, version)| version.split('.').next()?.parse::<u32>().ok());
        major.is_some_and(is_wanted)
    };
    let folder = folders.split_whitespace().rfind(is_one)?;
    Some(format!("ruby -I {folder}/lib {folder}/bin/puma"))
}

fn new_puma() -> Option<String> {
    puma_of(|major| major >= 7)
}

fn puma_6() -> Option<String> {
    puma_of(|major| major == 6)
}

/// Whether this machine has what a scenario `needs`: one of the features below, or a program.
pub(crate) fn is_there(need: &str) -> bool {
    // Without a lab, because a lab announces that a test is running.
    let output_of = |program: &str, words: &[&str]| {
        Command::new(program).args(words).env_remove("BUNDLE_GEMFILE").stdin(Stdio::null()).output()
    };
    let succeeds = |program: &str, words: &[&str]| {
        output_of(program, words).is_ok_and(|output| output.status.success())
    };
    let rails = ["-e", "require 'logger'; require 'action_controller/railtie'"];
    match need {
        "soak" => lab::soaks(),
        "cores" => {
            can(launch::affinity::ours().is_some_and(|ours| ours.len() > 1), "one processor")
        }
        "root" => can(rustix::process::geteuid().is_root(), "only root can do it"),
        "ipv6" => can(TcpListener::bind("[::1]:0").is_ok(), "no IPv6 on this machine"),
        "ssl" => {
            has("puma")
                && can(
                    succeeds("ruby", &["-rpuma", "-e", "exit Puma.ssl?"]),
                    "this Puma was built without SSL",
                )
        }
        "old" => {
            let version = output_of("puma", &["--version"])
                .map(|output| String::from_utf8(output.stdout).unwrap());
            let is_old = |version: String| {
                let number = version.split(' ').find_map(|word| word.split_once('.'));
                number.is_some_and(|(major, _)| matches!(major, "3" | "4" | "5" | "6"))
            };
            has("puma") && can(version.is_ok_and(is_old), "this Puma is newer than 6")
        }
        "new" => can(new_puma().is_some(), "LONGTAIL_PUMAS names no checkout of Puma 7 or later"),
        "six" => can(puma_6().is_some(), "LONGTAIL_PUMAS names no checkout of Puma 6"),
        "rails" => {
            has("puma") && can(succeeds("ruby", &rails), "Rails is not installed (ruby-railties)")
        }
        "nobody" => {
            let words = ["--reuid=65534", "--regid=65534", "--clear-groups", LONGTAIL, "--version"];
            can(succeeds("setpriv", &words), "another user cannot run this executable")
        }
        "limits" => {
            let words = ["--bounding-set=-sys_resource", "--inh-caps=-sys_resource", "true"];
            let may = !rustix::process::geteuid().is_root() || succeeds("setpriv", &words);
            can(may, "root cannot give up CAP_SYS_RESOURCE (setpriv)")
        }
        "clocks" => can(succeeds("unshare", &["-T", "true"]), "no time namespace"),
        "yaml" => can(Path::new("/usr/lib/python3/dist-packages/yaml").is_dir(), "no python3-yaml"),
        "namespaces" => host(&[]).is_some(),
        "bpf" => can(probe::bpf::possible().is_ok(), "no BPF here"),
        program => has(program),
    }
}

fn add(sums: &mut [u64; 4], more: [u64; 4]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}
