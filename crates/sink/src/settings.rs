//! What is asked of a sink, and whether it can be done. Nothing is started here.

use std::net::SocketAddr;

use model::Nanos;

use crate::SinkError;

/// More workers than any server has; each costs three rendered responses.
pub(crate) const MOST_WORKERS: u32 = 10_000;

/// What a sink shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Workers, 1 to 10 000. They are names in a header here, not processes.
    pub workers: u32,
    /// Slots a worker, 1 or more.
    pub threads: u32,
    /// How long a request holds its slot, where its path is not `/sleep<seconds>`.
    pub delay: Nanos,
    /// The response header that names the worker (`0`, `1`, …), such as `x-worker`.
    pub worker_header: String,
}

impl Settings {
    /// Refuses what cannot be served.
    pub(crate) fn check(&self) -> Result<(), SinkError> {
        if self.threads == 0 || !(1..=MOST_WORKERS).contains(&self.workers) {
            return Err(SinkError::BadSlots { workers: self.workers, threads: self.threads });
        }
        let name = &self.worker_header;
        let taken = ["connection", "content-length", "content-type", "transfer-encoding"];
        // A subset of RFC 9110 section 5.6.2's `token`, which every client takes.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if name.is_empty() || !name.bytes().all(plain) || taken.iter().any(|taken| name.eq_ignore_ascii_case(taken)) {
            return Err(SinkError::BadHeader(name.clone()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(workers: u32, threads: u32, worker_header: &str) -> Settings {
        Settings {
            listen: ([127, 0, 0, 1], 0).into(),
            workers,
            threads,
            delay: Nanos::ZERO,
            worker_header: worker_header.to_owned(),
        }
    }

    #[test]
    fn what_cannot_be_served_is_refused_in_one_line() {
        let bad = [
            settings(0, 5, "x-worker"),
            settings(2, 0, "x-worker"),
            settings(MOST_WORKERS + 1, 1, "x-worker"),
            settings(1, 1, ""),
            settings(1, 1, "x worker"),
            settings(1, 1, "x\r\nworker"),
            settings(1, 1, "Content-Length"),
        ];
        for settings in bad {
            let line = settings.check().unwrap_err().to_string();
            assert_eq!(line.lines().count(), 1, "{line}");
        }
        assert!(settings(1, 1, "X-Worker").check().is_ok());
    }
}
