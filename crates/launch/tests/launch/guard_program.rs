//! The smallest program that can start a server under guard: it is its own guard, as longtail is.
//!
//! `guard COMMAND…` starts the command, prints `server PID` and then what the command prints, and
//! never ends by itself: the tests kill it, to see that nothing is left. `guard keep …` is the
//! hidden subcommand.

use std::io::Write as _;
use std::path::Path;
use std::process::exit;
use std::sync::Arc;

use launch::{GuardCommand, LaunchSpec, Scratch, Server};
use model::{Clock as _, Nanos};
use testkit::clock::REAL_CLOCK;

fn main() {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.next_if(|word| word == "keep").is_some() {
        exit(launch::guard::run(arguments));
    }
    let mut spec = LaunchSpec::command(arguments, Path::new("/"));
    let scratch = Scratch::new(&std::env::temp_dir()).expect("a temporary directory can be made");
    say(&format!("scratch {}", scratch.path().display()));
    spec.scratch = Some(Arc::new(scratch));
    let server = Server::start(&spec, &GuardCommand::this_program("keep"), &REAL_CLOCK)
        .expect("the server starts");
    say(&format!("server {}", server.pid()));
    let mut repeated = 0;
    loop {
        for line in server.output().lines().skip(repeated) {
            say(line);
            repeated += 1;
        }
        REAL_CLOCK.sleep(Nanos::from_millis(5));
    }
}

fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("somebody listens");
}
