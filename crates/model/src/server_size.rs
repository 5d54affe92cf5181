//! The size of a server that `--try` starts ([`ServerSize`]).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Workers x threads, with keep-alive or without: `2x3`, `4x5k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSize {
    /// Worker processes; 0 is single mode.
    pub workers: u32,
    /// Threads of each.
    pub threads: u32,
    /// Whether connections are kept.
    pub keep_alive: bool,
}

impl ServerSize {
    /// As `--try` takes it: `2x3`, `4x5k`.
    pub fn as_typed(self) -> String {
        let k = if self.keep_alive { "" } else { "k" };
        format!("{}x{}{k}", self.workers, self.threads)
    }

    /// Requests that it processes at a time.
    pub fn slots(self) -> u32 {
        self.workers.max(1).saturating_mul(self.threads)
    }
}

impl FromStr for ServerSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ServerSize, String> {
        let (size, keep_alive) = match text.strip_suffix('k') {
            Some(size) => (size, false),
            None => (text, true),
        };
        let numbers = size.split_once('x');
        let numbers = numbers.and_then(|(workers, threads)| {
            Some([workers.parse::<u32>().ok()?, threads.parse::<u32>().ok()?])
        });
        match numbers {
            Some([workers, threads]) if threads > 0 => {
                Ok(ServerSize { workers, threads, keep_alive })
            }
            Some(_) | None => Err(format!(
                "'{text}': write WORKERSxTHREADS, with a k for no keep-alive, such as 2x3,4x5,4x5k"
            )),
        }
    }
}

impl fmt::Display for ServerSize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let no_keep_alive = if self.keep_alive { "" } else { " -k" };
        write!(out, "{} x {}{no_keep_alive}", self.workers, self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_read_and_shown() {
        for (text, shown) in [("2x3", "2 x 3"), ("0x16", "0 x 16"), ("4x5k", "4 x 5 -k")] {
            assert_eq!(text.parse::<ServerSize>().unwrap().to_string(), shown);
        }
        for wrong in ["", "2", "2x", "x3", "2x0", "2x3kk", "2 x 3", "-1x2"] {
            assert!(wrong.parse::<ServerSize>().is_err(), "{wrong}");
        }
    }
}
