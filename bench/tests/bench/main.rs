//! The bench at a tiny size, and the ceiling of instructions.

mod ceiling;
mod toy;

use std::process::Child;

/// A child process that is killed with its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn skipped(why: &str) {
    say(&format!("skipped: {why}"));
}

#[expect(
    clippy::print_stderr,
    reason = "a skipped test says why, and the ceiling says how near to it a run is"
)]
fn say(text: &str) {
    eprintln!("{text}");
}
