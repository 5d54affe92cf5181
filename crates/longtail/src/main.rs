//! longtail: finds out what a web server does when it has more requests than threads, and says
//! whether the numbers can be trusted.
//!
//! This file is the table of contents. The flags of each command are a file in `args`, and what it
//! does is one in `commands`. Text is printed in `ui`, what a long command shows meanwhile in
//! `progress`; exit codes and mistakes are in `exit`; studies are written and found again in
//! `study_files`, all results in `results`.

mod args;
mod commands;
mod exit;
mod files;
mod keys;
mod live_block;
mod load;
mod metrics;
mod mix;
mod progress;
mod results;
mod secrets;
mod signals;
mod study_files;
mod terminal;
mod ui;
mod watch_screen;

use std::ffi::OsString;

use engine::Resolver;
use launch::GuardCommand;

use crate::commands::Invocation;
use crate::exit::Exit;

/// The hidden subcommand that guards a server: it takes what follows as it is.
const GUARD: &str = "guard-server";

/// The command that guards a server.
fn guard() -> GuardCommand {
    GuardCommand::this_program(GUARD)
}

/// This very program, which also has the built-in server in it.
fn this_program() -> OsString {
    guard().program.into()
}

fn main() {
    signals::end_at_a_panic();
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == GUARD) {
        // Before anything else: a guard needs neither flags nor a terminal, and must not be slowed
        // by them.
        std::process::exit(launch::guard::run(words));
    }
    let words = commands::with_command(std::env::args_os().collect());
    let texts: Vec<String> =
        words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    secrets::note_words(commands::definition(), &texts);
    let exit = match commands::parse(words) {
        Ok(Invocation::Command(command, allowed)) => command.run(Resolver::within(allowed)),
        Ok(Invocation::Help(text)) => {
            ui::print(&text);
            Ok(Exit::Fine)
        }
        Ok(Invocation::Usage(text)) => {
            ui::say(&text);
            Ok(Exit::Mistake)
        }
        Err(mistake) => Err(mistake),
    };
    let exit = exit.unwrap_or_else(|mistake| {
        ui::complain(&mistake);
        mistake.exit()
    });
    std::process::exit(exit.and(ui::stdout_lost().unwrap_or(Exit::Fine)).code());
}
