//! The limit: what kept a server from doing more. Each kind has a file with when it holds and its
//! sentences.
//!
//! A verdict says whether the server was measured; the limit says what has to change for it to do
//! more. If the evidence shows no limit, the limit is not known, and the sentence says what was
//! seen.

pub(crate) mod accept_queue;
pub(crate) mod cpus;
pub(crate) mod inside_app;
mod more_than_stated;
pub(crate) mod network;
mod not_known;
mod one_cpu_each;
pub(crate) mod refusals;
mod ruby_lock;
pub(crate) mod threads;

use model::{Limit, Strength};

use crate::checks::assess;

/// Its name.
pub fn name(limit: &Limit) -> &'static str {
    match limit {
        Limit::Threads { .. } => "threads",
        Limit::InsideApp { .. } => "inside the app",
        Limit::MoreThanStated { .. } => "more than stated",
        Limit::Refusals { .. } => "refusals",
        Limit::Cpu(_) => "CPU",
        Limit::RubyLock { .. } => "Ruby's lock",
        Limit::OneCpuEach { .. } => "one CPU",
        Limit::AcceptQueue { .. } => "accept queue",
        Limit::Network { .. } => "network",
        Limit::Generator { .. } => "generator",
        Limit::SharedCpus(_) => "shared CPUs",
        Limit::NotKnown { .. } => "not known",
    }
}

/// Its name and the evidence, in a line.
pub fn evidence(limit: &Limit) -> String {
    let evidence = match limit {
        Limit::Threads { slots, connections, at_once, busy, .. } => {
            threads::evidence(*slots, *connections, at_once.as_ref(), *busy)
        }
        Limit::InsideApp { slots, at_once, held, locked, .. } => {
            inside_app::evidence(*slots, at_once.as_ref(), *held, locked.as_ref())
        }
        Limit::MoreThanStated { stated, at_once, .. } => {
            more_than_stated::evidence(*stated, at_once)
        }
        Limit::Refusals { at_once, refused_per_s, status } => {
            refusals::evidence(at_once.as_ref(), *refused_per_s, *status)
        }
        Limit::Cpu(cpu) | Limit::SharedCpus(cpu) => cpu.to_string(),
        Limit::RubyLock { processes, each, cpu, strength } => {
            ruby_lock::evidence(*processes, *each, cpu, *strength)
        }
        Limit::OneCpuEach { processes, cpu, .. } => one_cpu_each::evidence(*processes, cpu),
        Limit::AcceptQueue { dropped, retried, longest } => {
            accept_queue::evidence(*dropped, *retried, *longest)
        }
        Limit::Network { round_trip, slow, retransmitted, share } => {
            network::evidence(*round_trip, *slow, *retransmitted, *share)
        }
        Limit::Generator { check } => assess(check).sentence,
        Limit::NotKnown { cpu, at_once, busy } => {
            not_known::evidence(cpu.as_ref(), at_once.as_ref(), *busy)
        }
    };
    format!("{}: {evidence}", name(limit))
}

/// The limit alone, for whoever reads one line; `None` of those that a watch does not conclude.
pub fn in_short(limit: &Limit) -> Option<String> {
    Some(match limit {
        Limit::Cpu(_) => "The CPUs are the limit.".to_owned(),
        Limit::SharedCpus(_) => {
            "The CPUs are the limit, and other programs use them, too.".to_owned()
        }
        Limit::RubyLock { strength: Strength::Is, .. } => "Ruby's lock is the limit.".to_owned(),
        Limit::RubyLock { .. } => "Ruby's lock is probably the limit.".to_owned(),
        Limit::OneCpuEach { .. } => "One CPU for each process is the limit.".to_owned(),
        Limit::InsideApp { locked: Some(_), .. } => {
            let sentence = inside_app::sentence(limit);
            let (what, _) = sentence.split_once(": ")?;
            match what.split_once(',') {
                Some((first, rest)) => format!("{first} is the limit,{rest}."),
                None => format!("{what} is the limit."),
            }
        }
        Limit::InsideApp { .. }
        | Limit::Threads { .. }
        | Limit::MoreThanStated { .. }
        | Limit::Refusals { .. }
        | Limit::AcceptQueue { .. }
        | Limit::Network { .. }
        | Limit::Generator { .. }
        | Limit::NotKnown { .. } => return None,
    })
}

/// The limit as the end of a sentence that says how much the server does, such as `its threads are the
/// limit`; `None` if it is not known well enough for that.
pub(crate) fn clause(limit: &Limit) -> Option<String> {
    if let Limit::Threads { .. } = limit {
        return threads::clause(limit);
    }
    let short = in_short(limit)?;
    let clause = short.trim_end_matches('.');
    Some(match clause.split_once(' ') {
        Some((first @ ("The" | "One"), rest)) => format!("{} {rest}", first.to_lowercase()),
        _ => clause.to_owned(),
    })
}

/// What it means for the server, in a sentence or two. `slots`: how many requests it can process at
/// a time, if that is known.
pub fn sentence(limit: &Limit, slots: Option<u32>) -> String {
    match limit {
        Limit::Threads { .. } => threads::sentence(limit),
        Limit::InsideApp { .. } => inside_app::sentence(limit),
        Limit::MoreThanStated { .. } => more_than_stated::sentence(limit),
        Limit::Refusals { at_once, refused_per_s, status } => {
            refusals::sentence(at_once.as_ref(), *refused_per_s, *status)
        }
        Limit::Cpu(cpu) => cpus::sentence(cpu),
        Limit::SharedCpus(cpu) => cpus::sentence_shared(cpu),
        Limit::RubyLock { processes, each, cpu, strength } => {
            ruby_lock::sentence(*processes, *each, cpu, *strength, slots)
        }
        Limit::OneCpuEach { processes, cpu, .. } => one_cpu_each::sentence(*processes, cpu),
        Limit::AcceptQueue { dropped, longest, .. } => accept_queue::sentence(*dropped, *longest),
        Limit::Network { round_trip, slow, retransmitted, share } => {
            network::sentence(*round_trip, *slow, *retransmitted, *share)
        }
        Limit::Generator { check } => {
            format!("The generator is the limit: {}.", assess(check).sentence)
        }
        Limit::NotKnown { cpu, at_once, busy } => {
            not_known::sentence(cpu.as_ref(), at_once.as_ref(), *busy, slots)
        }
    }
}
