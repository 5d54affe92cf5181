//! The Rails app, as `sweep --app rails` starts it and by hand. Skipped, with the reason, where there is no Rails.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use model::run::ShareSource;
use model::{Clock as _, Diagnostic, Nanos};

use crate::clock::SteadyClock;
use crate::lab::{Lab, Running, can, end, free_port, has, ledger_warnings};
use crate::puma::counted;

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

#[test]
fn rails_counts_what_we_count() {
    let modes = if has_rails() { ["", "-w2"].as_slice() } else { &[] };
    for mode in modes {
        let study = counted(&format!("--app rails {mode} -d0.01"), ShareSource::Header);
        assert!(study.server.command_line.starts_with("RAILS_ENV=production "), "{}", study.server.command_line);
        assert_eq!(study.plan.stream.target_path(), "/sleep?ms=10");
    }
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
        end(sweep.env("RUBYOPT", format!("-r{}", without.display()))).refused("apt-get install ruby-railties");
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
    puma: Running,
    port: u16,
}

impl ByHand {
    /// `None`, and said, where there is no Rails.
    fn start() -> Option<ByHand> {
        let (lab, port) = has_rails().then(|| (Lab::new(), free_port()))?;
        let app = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../servers/rails/config.ru");
        let puma = Running::puma(&lab, port, &app, &format!("-t{THREADS}:{THREADS}"));
        Some(ByHand { lab, puma, port })
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

#[test]
fn it_sleeps_as_long_as_it_is_asked_to_and_says_who_did() {
    let Some(server) = ByHand::start() else { return };
    for target in ["/sleep?ms=0", "/sleep?ms=12", "/sleep?ms=1.5"] {
        let (head, body) = server.answer(target);
        assert!(head.starts_with("HTTP/1.0 200 ") && body == "ok", "{target}: {head} {body}");
        assert!(head.contains(&format!("\r\nx-worker-pid: {}\r\n", server.puma.pid())), "{head}");
    }
    // Less than a second is slept too. A sleep may be longer where the machine is busy, and is never shorter.
    let asked = SteadyClock.now();
    server.answer("/sleep?ms=999");
    assert!(SteadyClock.now() - asked >= Nanos::from_millis(999), "it did not sleep");
    assert_eq!(server.puma.said().matches("GET").count(), 0, "a line a request: {}", server.puma.said());
}

#[test]
fn what_it_cannot_do_is_one_line() {
    let Some(server) = ByHand::start() else { return };
    let bad = "?ms= ?ms=x ?ms=-1 ?ms=1e3 ?ms=1%0a ?ms[]=1 ?ms[a]=1 ?ms=99999999999 ?ms=%ff ?%";
    for query in bad.split(' ').chain([""]) {
        let (head, body) = server.answer(&format!("/sleep{query}"));
        assert!(head.starts_with("HTTP/1.0 400 "), "{query}: {head}");
        assert!(body.ends_with('\n') && body.lines().count() == 1, "{query}: {body:?}");
    }
    for target in ["/", "/sleepy?ms=1", "/sleep/1"] {
        let (head, body) = server.answer(target);
        assert!(head.starts_with("HTTP/1.0 404 ") && body.lines().count() == 1, "{target}: {head}");
    }
    assert_eq!(server.puma.said().lines().last(), Some("Use Ctrl-C to stop"), "and nothing is logged");
}

/// The numbers of the requests of an attack, in the order in which they were completed; all were answered 200.
fn attacked(server: &ByHand, rate: u32, ms: u32, requests: usize) -> Vec<usize> {
    let url = format!("http://127.0.0.1:{}/sleep?ms={ms}", server.port);
    let attack = server.lab.run(&format!("attack --target-throughput={rate} -n {requests} --url={url}")).with_code(0);
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
    for rate in [25, 50] {
        let numbers = attacked(&server, rate, 200, 40);
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=40).collect::<Vec<_>>(), "each once");
        for (place, number) in numbers.iter().enumerate() {
            assert!((place + 1).abs_diff(*number) < THREADS, "request {number} was the {}th: {numbers:?}", place + 1);
        }
    }
}
