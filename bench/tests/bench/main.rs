//! The bench at toy size, and the ceiling of instructions.

mod ceiling;
mod toy;

use std::process::Child;

/// A child that does not outlive its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
