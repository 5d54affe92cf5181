//! Flags of `longtail attack`, and the words of `longtail load` that they come to.

use clap::Args;
use model::{Nanos, Rate};

const ATTACK_EXAMPLES: &str = "\
Examples:
  longtail attack --target-throughput=10 --url='http://localhost:3000/sleep?ms=1000'
  longtail attack --target-throughput=10 --url='http://localhost:3000/sleep?ms=1000' -n 30

It is `longtail load --rate 10/s -k --log -`: an open loop, a new connection for each request, one line a request in
order of completion.";

/// Flags of `longtail attack`.
#[derive(Debug, Args)]
#[command(after_help = ATTACK_EXAMPLES)]
pub(crate) struct AttackArgs {
    /// Requests per second
    #[arg(long, value_name = "RATE")]
    pub(crate) target_throughput: Rate,
    /// Where to
    #[arg(long, value_name = "URL")]
    pub(crate) url: String,
    /// Length of the run
    #[arg(long = "for", value_name = "TIME", default_value = "60s")]
    pub(crate) length: Nanos,
    /// Requests in total
    #[arg(short = 'n', long = "number", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) number: Option<u64>,
}

impl AttackArgs {
    /// The words of `load` that this comes to.
    pub(crate) fn as_load(&self) -> Vec<String> {
        // On kept connections a Puma before 7 serves those that it has and lets the others wait: not in their turn.
        let words = [format!("--rate={}", self.target_throughput), "--no-keep-alive".to_owned(), "--log=-".to_owned()];
        let mut words = words.to_vec();
        words.push(match self.number {
            Some(n) => format!("-n{n}"),
            None => format!("--for={}", self.length),
        });
        words.push(self.url.clone());
        words
    }
}
