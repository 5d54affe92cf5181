//! Flags of `longtail sink`.

use std::path::PathBuf;

use clap::Args;
use model::{Nanos, Rate};
use sink::{
    DelayLaw, Fault, FaultLaw, Listen, PemPair, RequestShare, SinkBody, SinkSettings, SlotQueue,
    StallLaw,
};

use super::ADVANCED;
use crate::exit::{Mistake, refuse_if, wrong};

const EXAMPLES: &str = "\
Examples:
  longtail sink                                         any URL; the body is a counter in CBOR
  longtail sink --listen 127.0.0.1:9000 --body 1024     1 kB of bytes instead
  longtail sink --threads 4 --loops 1 --queue shared --delay 10ms    four requests of 10 ms at once
  longtail sink --delay bimodal:1ms:50ms:0.02 --stall-every 1s:100ms
  longtail sink --reset 0.1% --status 503:1% --close-after 100
  longtail sink --listen unix:///tmp/sink.sock --listen unix://@sink --listen tls://127.0.0.1:9443

Ctrl-C prints what it has counted; GET /_ledger returns it as JSON.";

const LISTEN_HELP: &str =
    "127.0.0.1:8080 (the default), tls://HOST:PORT, unix:///PATH or unix://@NAME";

/// Flags of `longtail sink`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SinkArgs {
    #[arg(long, value_name = "PLACE", help = LISTEN_HELP)]
    listen: Vec<Listen>,
    /// Certificate for TLS (PEM) [default: a new one]
    #[arg(long, value_name = "FILE", requires = "key", help_heading = ADVANCED)]
    cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = ADVANCED)]
    key: Option<PathBuf>,
    /// Threads of the test server itself; only 1 with a queue
    #[arg(long, value_name = "N", default_value_t = 1)]
    loops: u32,
    /// Respond with this many bytes instead of a counter in CBOR
    #[arg(long, value_name = "BYTES")]
    body: Option<u32>,
    /// Another response header, such as 'server: nginx'
    #[arg(long = "header", value_name = "LINE", help_heading = ADVANCED)]
    headers: Vec<String>,

    /// unlimited, shared, split or inline10 [default: shared with --slots]
    #[arg(long, value_name = "QUEUE", help_heading = "Queue")]
    queue: Option<SlotQueue>,
    /// Requests processed at once, in one process: the same as --threads N
    #[arg(long, value_name = "N", conflicts_with = "threads", help_heading = "Queue")]
    slots: Option<u32>,
    /// Workers
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Queue")]
    workers: u32,
    /// Threads of each worker
    #[arg(long, value_name = "N", help_heading = "Queue")]
    threads: Option<u32>,
    /// Response header that names the worker
    #[arg(long, value_name = "NAME", help_heading = ADVANCED)]
    worker_header: Option<String>,

    /// Service time: 1ms, exp:5ms, or another law (see longtail predict)
    #[arg(long, value_name = "LAW", default_value = "0s", help_heading = "Time")]
    delay: DelayLaw,
    /// Pauses in which nothing is sent, like a garbage collection
    #[arg(long, value_name = "EVERY:LENGTH", help_heading = "Time")]
    stall_every: Option<StallLaw>,
    /// Seed of what is random
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = ADVANCED)]
    seed: u64,
    /// Length of the accept queue
    #[arg(long, value_name = "N", default_value_t = 1024, help_heading = ADVANCED)]
    backlog: u32,
    /// Most connections accepted per second
    #[arg(long, value_name = "RATE", help_heading = ADVANCED)]
    accept_rate: Option<Rate>,
    /// Busy-wait this long before a response is due
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = ADVANCED)]
    spin: Nanos,

    /// Share of requests whose connection is reset, such as 0.1%
    #[arg(long, value_name = "SHARE", help_heading = "Faults")]
    reset: Option<RequestShare>,
    /// Share of responses that end in the middle
    #[arg(long, value_name = "SHARE", help_heading = "Faults")]
    truncate: Option<RequestShare>,
    /// Share of requests that get no response
    #[arg(long, value_name = "SHARE", help_heading = "Faults")]
    no_answer: Option<RequestShare>,
    /// Share of responses with another status, such as 503:1%
    #[arg(long, value_name = "CODE:SHARE", help_heading = "Faults")]
    status: Vec<FaultLaw>,
    /// Close a connection after N responses
    #[arg(long, value_name = "N", help_heading = "Faults")]
    close_after: Option<u32>,
}

impl SinkArgs {
    /// The sink that the flags ask for.
    ///
    /// # Errors
    /// If a queue is asked for without slots, or slots with no queue.
    pub(crate) fn settings(&self) -> Result<SinkSettings, Mistake> {
        let listen = if self.listen.is_empty() {
            SinkSettings::default().listen
        } else {
            self.listen.clone()
        };
        let threads = self.slots.or(self.threads);
        let has_slots = threads.is_some() || self.workers > 1;
        let queue =
            self.queue.unwrap_or(if has_slots { SlotQueue::Shared } else { SlotQueue::Unlimited });
        refuse_if(
            queue != SlotQueue::Unlimited && !has_slots,
            format_args!(
                "--queue {queue} stands before slots, and there are none: add --slots N, or --workers N and --threads N"
            ),
        )?;
        if queue == SlotQueue::Unlimited && threads.is_some() {
            return Err(wrong(
                "--queue unlimited has no slots: leave it out, or --slots and --threads",
            ));
        }
        Ok(SinkSettings {
            listen,
            pem: self
                .cert
                .clone()
                .zip(self.key.clone())
                .map(|(certificate, key)| PemPair { certificate, key }),
            loops: self.loops,
            queue,
            workers: self.workers,
            threads: threads.unwrap_or(1),
            delay: self.delay,
            stalls: self.stall_every,
            seed: self.seed,
            body: self.body.map_or(SinkBody::Counter, SinkBody::Bytes),
            headers: self.headers.clone(),
            worker_header: self.worker_header.clone(),
            backlog: self.backlog,
            accept_rate: self.accept_rate,
            faults: self.faults(),
            close_after: self.close_after,
            spin: self.spin,
        })
    }

    fn faults(&self) -> Vec<FaultLaw> {
        let shares = [
            (Fault::Reset, self.reset),
            (Fault::Truncate, self.truncate),
            (Fault::NoAnswer, self.no_answer),
        ];
        let laws =
            shares.into_iter().filter_map(|(fault, share)| Some(FaultLaw { fault, share: share? }));
        laws.chain(self.status.iter().copied()).collect()
    }
}
