//! Asks a server about itself: Puma through its control server, the built-in server for its count
//! at `/_ledger`.
//!
//! A control server has one thread and no keep-alive, so each request has a connection of its own.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use model::{ControlServer, Endpoint, Nanos};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::http::{self, LONGEST_EXCHANGE, NEVER};

/// Finds the address of a host and port, or says in a line why there is none.
pub type FindAddress<'a> = &'a dyn Fn(&str, u16) -> Result<SocketAddr, String>;

/// Reads an address as Puma writes it, `tcp://HOST:PORT` or `unix://PATH`. A server that listens on
/// every address is asked on loopback.
///
/// # Errors
/// If it is no such URL, or its host has no address: why, in a line.
pub fn parse_address(url: &str, find: FindAddress<'_>) -> Result<Endpoint, String> {
    let wrong =
        || format!("'{url}' is not a control URL: write tcp://127.0.0.1:9293 or unix:///PATH");
    if let Some(path) = url.strip_prefix("unix://") {
        return if path.starts_with('/') { Ok(Endpoint::Unix(path.into())) } else { Err(wrong()) };
    }
    let authority = url.strip_prefix("tcp://").ok_or_else(wrong)?.trim_end_matches('/');
    let (host, port) = authority.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
    let host = match host {
        "" => return Err(wrong()),
        "localhost" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        host => host,
    };
    find(host, port).map(Endpoint::Tcp)
}

/// The control server that Puma's state file names: lines `control_url: …` and `control_auth_token:
/// …` (`lib/puma/state_file.rb`).
///
/// # Errors
/// If it names none, or none that can be found.
pub fn from_state_file(text: &str, find: FindAddress<'_>) -> Result<ControlServer, String> {
    let field = |name: &str| {
        let value =
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?.trim();
        let bare = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
        Some(bare('"').or_else(|| bare('\'')).unwrap_or(value).to_owned())
            .filter(|value| !value.is_empty())
    };
    let url =
        field("control_url").ok_or("it names no control server: start Puma with --control-url")?;
    // Puma writes this word if it wants no token.
    let token = field("control_auth_token").filter(|token| token != "none").unwrap_or_default();
    Ok(ControlServer { address: parse_address(&url, find)?, token })
}

/// The body of `GET /<command>`, within `time` and until `over`.
///
/// # Errors
/// If it cannot be reached in time, or refuses, as it does during boot and shutdown.
pub(crate) fn ask(
    server: &ControlServer,
    command: &str,
    time: Nanos,
    over: &AtomicBool,
) -> Result<Vec<u8>, String> {
    let token =
        if server.token.is_empty() { String::new() } else { format!("?token={}", server.token) };
    let response = http::get(&server.address, &format!("{command}{token}"), time, over)
        .map_err(|error| format!("the control server does not answer: {error}"))?;
    if response.is_ok() {
        Ok(response.body)
    } else {
        Err(format!("the control server answered {}", response.status))
    }
}

/// Tells Puma to do something, such as `phased-restart`.
///
/// # Errors
/// As of any question to a control server; one with `data_only` refuses.
pub fn order(server: &ControlServer, command: &str) -> Result<(), String> {
    ask(server, command, LONGEST_EXCHANGE, &NEVER).map(drop)
}

/// Reads what was asked for from the body of a response.
pub(crate) fn understood<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body)
        .map_err(|error| format!("the control server's response is not understood: {error}"))
}

/// The requests that the built-in server at `address` has received since its start.
///
/// # Errors
/// If it does not respond, or not with a ledger.
pub fn sink_requests(address: SocketAddr) -> Result<u64, String> {
    #[derive(Deserialize)]
    struct SinkRequests {
        requests: u64,
    }
    sink_ledger::<SinkRequests>(address).map(|ledger| ledger.requests)
}

/// Reads the fields of `T` from the ledger of the sink at `address`.
///
/// # Errors
/// If it does not respond, or not with such a ledger.
pub fn sink_ledger<T: DeserializeOwned>(address: SocketAddr) -> Result<T, String> {
    let sink = ControlServer { address: Endpoint::Tcp(address), token: String::new() };
    understood(&ask(&sink, "_ledger", LONGEST_EXCHANGE, &NEVER)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resolves numeric addresses only.
    fn find(host: &str, port: u16) -> Result<SocketAddr, String> {
        format!("{host}:{port}").parse().map_err(|_| format!("{host} is not known"))
    }

    #[test]
    fn a_control_url_is_as_puma_takes_it() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/control_urls.txt");
        testkit::golden::expect_rows(file, |url| parse_address(url, &find));
    }

    #[test]
    fn a_state_file_names_the_control_server() {
        let text = "---\npid: 9\ncontrol_url: tcp://127.0.0.1:9293\ncontrol_auth_token: \
             \"01\"\nrunning_from: \"/x\"\n";
        let address = Endpoint::Tcp("127.0.0.1:9293".parse().unwrap());
        assert_eq!(
            from_state_file(text, &find),
            Ok(ControlServer { address, token: "01".to_owned() })
        );
        for (text, part) in
            [("---\npid: 9\n", "--control-url"), ("control_url: tcp://far:1\n", "far is not known")]
        {
            assert!(from_state_file(text, &find).is_err_and(|said| said.contains(part)), "{text}");
        }
    }
}
