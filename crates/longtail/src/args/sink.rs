//! Flags of `longtail sink`: a load sink whose right answers are known.

use std::path::PathBuf;

use clap::Args;
use model::{Nanos, Rate};
use sink::{DelayLaw, Faults, Listen, PemPair, RequestShare, SinkBody, SinkSettings, SlotQueue, StallLaw, StatusFault};

use crate::mistake::{Mistake, wrong};

const SINK_EXAMPLES: &str = "\
Examples:
  longtail sink                                         any URL, a CBOR body with a rising counter
  longtail sink --listen 127.0.0.1:9000 --body 1024     1 kB of bytes instead
  longtail sink --threads 4 --loops 1 --queue shared --delay 10ms    four slots of 10 ms, one line
  longtail sink --delay bimodal:1ms:50ms:0.02 --stall-every 1s:100ms
  longtail sink --reset 0.1% --status 503:1% --close-after 100
  longtail sink --listen unix:///tmp/sink.sock --listen unix://@sink --listen tls://127.0.0.1:9443

Ctrl-C prints what it has counted; so does GET /_ledger, as JSON.";

const LISTEN_HELP: &str = "Where: 127.0.0.1:8080, [::1]:8080, tls://127.0.0.1:8443, unix:///PATH, \
    unix://@NAME [default: 127.0.0.1:8080]";

/// Flags of `longtail sink`.
#[derive(Debug, Args)]
#[command(after_help = SINK_EXAMPLES)]
pub(crate) struct SinkArgs {
    #[arg(long, value_name = "PLACE", help = LISTEN_HELP)]
    listen: Vec<Listen>,
    /// Certificate for TLS (PEM) [default: one is made]
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Threads of the sink itself; slots and their queues have one
    #[arg(long, value_name = "N", default_value_t = 1)]
    loops: u32,
    /// Answer so many bytes instead of the counter
    #[arg(long, value_name = "BYTES")]
    body: Option<u32>,
    /// Response header more, such as 'server: nginx'
    #[arg(long = "header", value_name = "LINE")]
    headers: Vec<String>,

    /// What stands before the slots: unlimited, shared, split, inline10 [default: unlimited, or shared with slots]
    #[arg(long, value_name = "QUEUE", help_heading = "Slots")]
    queue: Option<SlotQueue>,
    /// Slots in all, in one line: the same as --threads N
    #[arg(long, value_name = "N", conflicts_with = "threads", help_heading = "Slots")]
    slots: Option<u32>,
    /// Workers, each with its slots
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Slots")]
    workers: u32,
    /// Slots a worker
    #[arg(long, value_name = "N", help_heading = "Slots")]
    threads: Option<u32>,
    /// Response header that names the worker
    #[arg(long, value_name = "NAME", help_heading = "Slots")]
    worker_header: Option<String>,

    /// Time an answer takes: 1ms, exp:5ms, uniform:1ms:9ms, bimodal:1ms:50ms:0.02, lognormal:5ms:0.8
    #[arg(long, value_name = "LAW", default_value = "0s", help_heading = "Laws")]
    delay: DelayLaw,
    /// Pauses in which nothing goes out, as a garbage collection: every:length
    #[arg(long, value_name = "EVERY:LENGTH", help_heading = "Laws")]
    stall_every: Option<StallLaw>,
    /// Chooses what is random
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Laws")]
    seed: u64,
    /// Connections that the kernel completes before they are accepted
    #[arg(long, value_name = "N", default_value_t = 1024, help_heading = "Laws")]
    backlog: u32,
    /// The most connections accepted in a second
    #[arg(long, value_name = "RATE", help_heading = "Laws")]
    accept_rate: Option<Rate>,
    /// Stay awake so long before an answer is due
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Laws")]
    spin: Nanos,

    /// Connections reset in place of an answer
    #[arg(long, value_name = "SHARE", help_heading = "Faults")]
    reset: Option<RequestShare>,
    /// Answers cut in the middle
    #[arg(long, value_name = "SHARE", help_heading = "Faults")]
    truncate: Option<RequestShare>,
    /// Requests without an answer
    #[arg(long, value_name = "SHARE", help_heading = "Faults")]
    no_answer: Option<RequestShare>,
    /// Answers with another status, such as 503:1%
    #[arg(long, value_name = "CODE:SHARE", help_heading = "Faults")]
    status: Vec<StatusFault>,
    /// Close a connection after so many answers
    #[arg(long, value_name = "N", help_heading = "Faults")]
    close_after: Option<u32>,
}

impl SinkArgs {
    /// The sink that the flags ask for.
    ///
    /// # Errors
    /// Where a queue is asked for, and nothing that it stands before; or none, and slots.
    pub(crate) fn settings(&self) -> Result<SinkSettings, Mistake> {
        let listen = if self.listen.is_empty() { SinkSettings::default().listen } else { self.listen.clone() };
        let threads = self.slots.or(self.threads);
        let has_slots = threads.is_some() || self.workers > 1;
        let queue = self.queue.unwrap_or(if has_slots { SlotQueue::Shared } else { SlotQueue::Unlimited });
        if queue != SlotQueue::Unlimited && !has_slots {
            return Err(wrong(format!(
                "--queue {queue} stands before slots, and there are none: add --slots N, or --workers N and --threads N"
            )));
        }
        if queue == SlotQueue::Unlimited && threads.is_some() {
            return Err(wrong("--queue unlimited has no slots: leave it out, or --slots and --threads"));
        }
        Ok(SinkSettings {
            listen,
            pem: self.cert.clone().zip(self.key.clone()).map(|(certificate, key)| PemPair { certificate, key }),
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
            faults: Faults {
                reset: self.reset.unwrap_or_default(),
                truncate: self.truncate.unwrap_or_default(),
                no_answer: self.no_answer.unwrap_or_default(),
                status: self.status.clone(),
                close_after: self.close_after,
            },
            spin: self.spin,
        })
    }
}
