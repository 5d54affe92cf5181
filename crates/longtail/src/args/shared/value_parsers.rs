//! Value parsers for clap: what a number, time, path or word on the command line may be.

use audit::LoadTool;
use clap::builder::{PossibleValue, PossibleValuesParser, RangedI64ValueParser, TypedValueParser};
use model::{Arrivals, Nanos, Objective, Threads, Timestamps};
use queueing::prediction::TimeGoal;

use crate::exit::{Mistake, wrong};

/// The most connections: no machine has more, over all its addresses.
pub(crate) const CONNECTIONS: u32 = 1_000_000;
/// The most threads: no Puma has more.
const MOST_THREADS: u32 = 10_000;

/// Reads a whole number from 1 to `most`.
pub(crate) fn from_1_to(most: u32) -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(1..=i64::from(most))
}

/// The words that a flag takes, each with what it means. Two words may mean the same.
type WordTable<T> = &'static [(&'static str, T)];

/// Reads one of the words of a table, and returns what it means.
pub(crate) fn words<T: Copy + Send + Sync + 'static>(
    table: WordTable<T>,
) -> impl TypedValueParser<Value = T> {
    let words = PossibleValuesParser::new(table.iter().map(|(word, _)| *word));
    words.map(|typed| {
        table.iter().find(|(word, _)| *word == typed).expect("clap takes no other word").1
    })
}

/// Gaps between the requests of an open loop: equal; exponential, as of independent users; or
/// anything from 0 to twice the mean.
pub(crate) const ARRIVALS: WordTable<Arrivals> = &[
    ("constant", Arrivals::Constant),
    ("poisson", Arrivals::Poisson),
    ("uniform", Arrivals::Uniform),
];

/// Reads the name of a tool that can make the load.
pub(crate) fn load_tool() -> impl TypedValueParser<Value = LoadTool> {
    let names = LoadTool::GENERATORS
        .map(|tool| PossibleValue::new(tool.name()).hide(tool == LoadTool::Longtail));
    PossibleValuesParser::new(names).map(|typed| {
        let tool = LoadTool::GENERATORS.into_iter().find(|tool| tool.name() == typed);
        tool.expect("clap takes no other name")
    })
}

/// Reads a time above 0.
pub(crate) fn above_zero(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos::ZERO) => Err("give a time above 0, such as 10s".to_owned()),
        read => read,
    }
}

/// Reads how many threads a server has, at most `MOST_THREADS`.
pub(crate) fn threads(text: &str) -> Result<Threads, String> {
    let threads = text.parse::<Threads>()?;
    if threads.max > MOST_THREADS {
        Err(format!("at most {MOST_THREADS} threads"))
    } else {
        Ok(threads)
    }
}

/// Reads connections as a multiple of what a server handles at once.
pub(crate) fn multiple(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(multiple) if multiple > 0.0 && multiple <= 1e6 => Ok(multiple),
        Ok(_) => {
            Err("give numbers above 0, such as 0.5,1,2: 0 would be no connection at all".to_owned())
        }
        Err(_) => Err("type a number".to_owned()),
    }
}

/// Reads a path as it can stand in a request's first line.
pub(crate) fn path(text: &str) -> Result<String, String> {
    if !text.starts_with('/') || text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        return Err(
            "give a path that starts with / and has no blanks, such as /posts?page=2".to_owned()
        );
    }
    Ok(text.to_owned())
}

/// Whose clock says when a response came; `None` leaves it open.
pub(crate) type WantedTimestamps = Option<Timestamps>;

/// The words of `--timestamps`. With the kernel's stamps, our delay in reading a response is
/// measured by itself, and is not in the response times.
pub(crate) const TIMESTAMPS: WordTable<WantedTimestamps> =
    &[("auto", None), ("kernel", Some(Timestamps::Kernel)), ("user", Some(Timestamps::User))];

/// The timestamps to use: the kernel's, unless the user wants others or the kernel has none. It
/// stamps nothing on a Unix socket.
///
/// # Errors
/// Where the kernel's stamps were asked for and cannot be had.
pub(crate) fn resolved_timestamps(
    wanted: WantedTimestamps,
    is_tcp: bool,
) -> Result<Timestamps, Mistake> {
    let why_not = if !is_tcp {
        Some("is for TCP: the kernel stamps nothing on a Unix socket; leave it out")
    } else if !engine::can_stamp() {
        Some("cannot be had: this kernel does not know SO_TIMESTAMPNS; use --timestamps user")
    } else {
        None
    };
    match (wanted, why_not) {
        (Some(Timestamps::Kernel), Some(why)) => Err(wrong(format!("--timestamps kernel {why}"))),
        (Some(Timestamps::User), _) | (_, Some(_)) => Ok(Timestamps::User),
        _ => Ok(Timestamps::Kernel),
    }
}

/// Reads what a response time has to stay below.
pub(crate) fn time_goal(text: &str) -> Result<TimeGoal, String> {
    let objective: Objective = text.parse()?;
    TimeGoal::of(objective).ok_or_else(|| {
        format!("'{text}' cannot be predicted: write one such as 'p99 < 2s' or 'mean < 300ms'")
    })
}
