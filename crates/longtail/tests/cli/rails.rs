//! The Rails app, as `sweep --app rails` starts it and by hand. Skipped, with the reason, where there is no Rails.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;

use model::run::ShareSource;
use model::{Clock as _, Diagnostic, Nanos};
use rustix::process::{Pid, Signal, kill_process};

use crate::clock::{SteadyClock, eventually};
use crate::lab::{
    Lab, PATIENCE, Running, can, free_port, has, in_a_window, ledger_warnings, none_is_empty, swept_twice,
};

const THREADS: usize = 5;

/// A Ruby that cannot load Rails.
const WITHOUT_RAILS: &str = "\
module Kernel
  alias require_all require
  def require(name)
    raise LoadError, \"cannot load such file -- #{name}\" if name.start_with?('rails', 'action_controller')
    require_all(name)
  end
end
";

fn has_rails() -> bool {
    let asked =
        || Lab::new().program("ruby").args(["-e", "require 'logger'; require 'action_controller/railtie'"]).output();
    has("puma") && can(asked().is_ok_and(|output| output.status.success()), "Rails is not installed (ruby-railties)")
}

fn swept(mode: &str, workers: usize) {
    if has_rails() {
        in_a_window(|window| swept_for(&format!("{mode} {window}"), workers).then_some(()));
    }
}

/// Whether there were requests in each run; all that is asserted holds without any too.
fn swept_for(words: &str, workers: usize) -> bool {
    let (_, _, study) = swept_twice(&Lab::new(), &format!("--app rails {words} -t2:2 -d0.01"));
    assert!(study.server.command_line.starts_with("RAILS_ENV=production "), "{}", study.server.command_line);
    assert_eq!(study.plan.stream.target_path(), "/sleep?ms=10");
    for run in &study.runs {
        assert_eq!(run.tally.counts.good(), run.tally.counts.total(), "{:?}", run.tally.counts);
        assert_eq!(run.workers.len(), workers, "{:?}", run.workers);
        assert!(run.workers.iter().all(|share| share.source == ShareSource::Header));
    }
    none_is_empty(&study.runs)
}

#[test]
fn a_single_puma_with_rails_counts_what_we_count() {
    swept("", 1);
}

#[test]
fn two_workers_with_rails_count_what_we_count() {
    swept("-w2", 2);
}

#[test]
fn a_ruby_without_rails_is_named_before_any_load() {
    if !has("puma") {
        return;
    }
    // A worker that dies while it loads the app is replaced for ever; the second must not be waited for.
    for mode in ["", "-w2"] {
        let lab = Lab::new();
        let without = lab.write("without_rails.rb", WITHOUT_RAILS);
        let mut sweep = lab.longtail(&format!("sweep --app rails {mode} -t1:1"));
        Running::start(sweep.env("RUBYOPT", format!("-r{}", without.display())))
            .end()
            .refused("apt-get install ruby-railties");
        lab.assert_nothing_left(0);
        assert!(lab.studies().is_empty());
    }
}

#[test]
fn a_bundle_that_has_rails_is_used() {
    if !has_rails() || !has("bundle") {
        return;
    }
    let lab = Lab::new();
    lab.write("Gemfile", "gem 'railties'\ngem 'puma'\n");
    let bundle =
        lab.program("bundle").args(["install", "--local"]).env("BUNDLE_USER_HOME", lab.path("bundle")).output();
    let bundle = bundle.unwrap();
    if !can(bundle.status.success(), "bundler cannot make a bundle of the gems that are installed") {
        return;
    }
    lab.run("sweep --app rails -t2:2 -d0.01 -R5 --multiples 1 --no-calibrate").with_code(0);
    let study = lab.study();
    assert!(study.server.command_line.contains(" bundle exec puma "), "{}", study.server.command_line);
    assert_eq!(study.runs[0].tally.counts.good(), 10);
    assert_eq!(ledger_warnings(&study), Vec::<&Diagnostic>::new());
}

/// Puma with the app of this repository, as its README starts it, in no environment that is named.
struct ByHand {
    lab: Lab,
    puma: Child,
    port: u16,
}

impl ByHand {
    /// `None`, and said, where there is no Rails.
    fn start() -> Option<ByHand> {
        if !has_rails() {
            return None;
        }
        let (lab, port) = (Lab::new(), free_port());
        let app = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../servers/rails/config.ru");
        let mut puma = lab.program("puma");
        puma.args(["-q", &format!("-t{THREADS}:{THREADS}"), "-b", &format!("tcp://127.0.0.1:{port}")]).arg(app);
        puma.env_remove("RAILS_ENV").env_remove("RACK_ENV").env_remove("SECRET_KEY_BASE");
        let output = std::fs::File::create(lab.path("output")).unwrap();
        let puma = puma.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap();
        let server = ByHand { lab, puma, port };
        eventually(PATIENCE, || server.output(), || TcpStream::connect(("127.0.0.1", port)).ok());
        Some(server)
    }

    fn output(&self) -> String {
        std::fs::read_to_string(self.lab.path("output")).unwrap()
    }

    /// Sends a request and leaves the answer to be read.
    fn ask(&self, target: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "GET {target} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        stream
    }

    fn answer(&self, target: &str) -> (String, String) {
        let mut text = String::new();
        self.ask(target).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.puma), Signal::KILL);
        let _ = self.puma.wait();
    }
}

#[test]
fn it_sleeps_as_long_as_it_is_asked_to_and_says_who_did() {
    let Some(server) = ByHand::start() else { return };
    for target in ["/sleep?ms=0", "/sleep?ms=12", "/sleep?ms=1.5"] {
        let (head, body) = server.answer(target);
        assert!(head.starts_with("HTTP/1.0 200 ") && body == "ok", "{target}: {head} {body}");
        assert!(head.contains(&format!("\r\nx-worker-pid: {}\r\n", server.puma.id())), "{head}");
    }
    // Less than a second is slept too. A sleep may be longer where the machine is busy, and is never shorter.
    let asked = SteadyClock.now();
    server.answer("/sleep?ms=999");
    assert!(SteadyClock.now() - asked >= Nanos::from_millis(999), "it did not sleep");
    assert_eq!(server.output().matches("GET").count(), 0, "a line a request: {}", server.output());
}

#[test]
fn what_it_cannot_do_is_one_line() {
    let Some(server) = ByHand::start() else { return };
    let bad = [
        "",
        "?ms=",
        "?ms=x",
        "?ms=-1",
        "?ms=1e3",
        "?ms=1%0a",
        "?ms[]=1",
        "?ms[a]=1",
        "?ms=99999999999",
        "?ms=%ff",
        "?%",
    ];
    for query in bad {
        let (head, body) = server.answer(&format!("/sleep{query}"));
        assert!(head.starts_with("HTTP/1.0 400 "), "{query}: {head}");
        assert!(body.ends_with('\n') && body.lines().count() == 1, "{query}: {body:?}");
    }
    for target in ["/", "/sleepy?ms=1", "/sleep/1"] {
        let (head, body) = server.answer(target);
        assert!(head.starts_with("HTTP/1.0 404 ") && body.lines().count() == 1, "{target}: {head}");
    }
    assert_eq!(server.output().lines().last(), Some("Use Ctrl-C to stop"), "and nothing is logged");
}

/// The numbers of the requests of an attack, in the order in which they were completed; all were answered 200.
fn attacked(server: &ByHand, rate: u32, ms: u32, requests: usize) -> Vec<usize> {
    let mut attack = server.lab.longtail(&format!("attack --target-throughput={rate} -n {requests}"));
    attack.arg(format!("--url=http://127.0.0.1:{}/sleep?ms={ms}", server.port));
    let attack = Running::start(&mut attack).end().with_code(0);
    let numbers = attack.stdout.lines().filter_map(|line| {
        let (number, rest) = line.strip_prefix("request ")?.split_once(' ')?;
        assert!(rest.starts_with("status=200 latency="), "{line}");
        Some(number.parse().unwrap())
    });
    numbers.collect()
}

/// With twice as many requests as the threads can serve, they are served in their turn, so many at a
/// time. Whichever takes how long: when one is completed, all before it were begun, and no more than the other
/// threads' are unfinished.
#[test]
fn requests_beyond_the_threads_are_served_in_their_turn() {
    let Some(server) = ByHand::start() else { return };
    for (rate, ms) in [(25, 200), (50, 200)] {
        let numbers = attacked(&server, rate, ms, 40);
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=40).collect::<Vec<_>>(), "each once");
        for (place, number) in numbers.iter().enumerate() {
            assert!((place + 1).abs_diff(*number) < THREADS, "request {number} was the {}th: {numbers:?}", place + 1);
        }
    }
}
