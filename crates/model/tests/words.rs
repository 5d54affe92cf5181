//! Parses what users type and what files contain, and prints it again: the rows of `words.txt`.

use std::ffi::OsStr;
use std::fmt::{Debug, Display};
use std::str::FromStr;

use model::endpoint::is_public;
use model::{
    AllowedNetworks, Bodies, Body, ChunkedDecoder, Cpus, Endpoint, Nanos, Objective, Rate, Threads,
    Threshold,
};

fn listed(all: impl IntoIterator<Item = impl ToString>) -> String {
    all.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" ")
}

/// Parses a text and prints the value. Checks that parsing the printed text gives the same value.
fn typed<T: FromStr<Err = String> + Display + Debug + PartialEq>(
    text: &str,
) -> Result<String, String> {
    let read: T = text.parse()?;
    assert_eq!(read.to_string().parse(), Ok(read), "{text}");
    Ok(text.parse::<T>()?.to_string())
}

/// The printed form of a text, in the group called `name`.
fn printed(name: &str, text: &str) -> Result<String, String> {
    match name {
        "time" => typed::<Nanos>(text),
        "rate" => typed::<Rate>(text),
        "objective" => typed::<Objective>(text),
        "threshold" => typed::<Threshold>(text),
        "threads" => typed::<Threads>(text),
        "CPUs" => typed::<Cpus>(text),
        "CPUs one by one" => text.parse::<Cpus>().map(|cpus| listed(cpus.iter())),
        "CPUs in words" => text.parse::<Cpus>().map(|cpus| cpus.in_words()),
        "body" => typed::<Body>(text),
        "bytes of a body" => text.parse::<Body>().map(|body| body.bytes().to_string()),
        "bodies" => typed::<Bodies>(text),
        "bodies one by one" => text.parse::<Bodies>().map(|bodies| listed(bodies.all())),
        "Unix socket" => Endpoint::unix(OsStr::new(text)).map(|endpoint| endpoint.to_string()),
        "TCP address" => Ok(Endpoint::Tcp(text.parse().unwrap()).to_string()),
        "networks" => typed::<AllowedNetworks>(text),
        "address that networks permit" => {
            let (networks, address) = text.split_once(' ').unwrap();
            Ok(networks.parse::<AllowedNetworks>()?.permits(address.parse().unwrap()).to_string())
        }
        "public address" => Ok(is_public(text.parse().unwrap()).to_string()),
        "chunked body" => {
            let mut body = ChunkedDecoder::default();
            let taken = body.feed(text.as_bytes(), |_| ()).ok_or("no chunk")?;
            Ok(format!(
                "{taken} bytes, {}",
                if body.is_done() { "the end" } else { "more to come" }
            ))
        }
        _ => panic!("no row is about '{name}'"),
    }
}

#[test]
fn every_row_is_printed_or_refused_as_it_says() {
    let mut name = "";
    let mut rows = 0;
    for line in include_str!("words.txt").lines().filter(|line| !line.starts_with('#')) {
        let text = |text: &str| text.replace("\\r", "\r").replace("\\n", "\n");
        match (line.split_once(" => "), line.split_once(" !! ")) {
            (Some((read, expected)), _) => {
                assert_eq!(printed(name, &text(read)).as_deref(), Ok(expected), "{line}");
            }
            (_, Some((read, words))) => {
                assert!(printed(name, &text(read)).unwrap_err().contains(words), "{line}");
            }
            _ => name = line.strip_suffix(':').unwrap_or_else(|| panic!("{line}")),
        }
        rows += 1;
    }
    assert!(rows > 120, "{rows}");
}
