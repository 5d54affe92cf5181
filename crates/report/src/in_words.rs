//! A server and its load in a few words: name and versions, what it can process at once, how long a run is.

use model::{ServerFacts, Stop};

use crate::number::{self, count_of};

/// The parts that are there, one after the other.
pub(crate) fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// `Puma 5.6.5, Ruby 3.1.7, main 43b8bba1`.
pub(crate) fn server(server: &ServerFacts) -> String {
    let version = server.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let runtime = server.runtime.as_ref().map(|runtime| {
        let runtime = runtime.split(" (").next().unwrap_or(runtime);
        // `ruby 3.1.7p261`: nobody asks for the patch level.
        let word = runtime.strip_prefix("ruby ").unwrap_or(runtime);
        let is_ruby = word.len() < runtime.len();
        let version: String = if is_ruby {
            word.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect()
        } else {
            word.to_owned()
        };
        if is_ruby { format!("Ruby {version}") } else { version }
    });
    listed([Some(format!("{}{version}", server.name)), runtime, server.git.clone()].into_iter().flatten())
}

/// `2 workers x 5 threads = 10 slots`.
pub(crate) fn slots(server: &ServerFacts) -> String {
    let threads = count_of(server.threads, "thread");
    match (server.cluster, server.workers) {
        (true, workers) => {
            format!("{} x {threads} = {} slots", count_of(workers, "worker"), number::count(server.slots()))
        }
        (false, 0 | 1) => threads,
        (false, workers) => format!(
            "{} x {threads} = {} slots",
            count_of(workers, "process").replace("processs", "processes"),
            number::count(server.slots())
        ),
    }
}

/// How long each run is: `10 s`, `100 requests a connection`.
pub(crate) fn length(stop: Stop) -> String {
    match stop {
        Stop::After(time) => number::span(time),
        Stop::RequestsPerConnection(n) => format!("{} a connection", count_of(n, "request")),
    }
}

/// What becomes of a connection after an answer.
pub(crate) fn connections(keep_alive: bool) -> &'static str {
    if keep_alive { "keep-alive" } else { "a new connection for each request" }
}

/// Joined by commas, empty ones left out.
pub(crate) fn listed(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}
