//! A mix of requests (`--mix`): read from its file or its own text, described, and rendered for a
//! server that is yet to be started.

use std::path::Path;
use std::sync::Arc;

use model::{ANY_HOST, PlannedMix, StreamPlan};
use report::number;
use requests::{
    FileDefaults, RenderedRequests, RequestHeader, RequestTemplate, RequestsFormat, STDIN,
    TargetUrl,
};

use crate::exit::{Mistake, wrong};

/// Requests, and where they are from: a file's name, or the flag.
pub(crate) struct ReadMix {
    pub(crate) requests: RenderedRequests,
    pub(crate) source: String,
}

/// Reads a mix, which is a file's name or the mix itself.
///
/// # Errors
/// If the file cannot be read, or a request of it cannot be understood or sent.
pub(crate) fn read(
    mix: &str,
    given: &FileDefaults,
    root: Option<&Path>,
) -> Result<ReadMix, Mistake> {
    let given = FileDefaults { format: Some(RequestsFormat::Mix), ..given.clone() };
    let path = Path::new(mix);
    if mix == STDIN || path.exists() || is_name_of_file(mix) {
        let requests = requests::read_file(path, &given, root)?;
        return Ok(ReadMix { requests, source: shown_name(path) });
    }
    let requests = requests::parse_inline_mix(mix, &given);
    let requests = requests.map_err(|why| wrong(format!("--mix: {why}")))?;
    Ok(ReadMix { requests, source: "--mix".to_owned() })
}

/// Whether this can only be the name of a file that does not exist: a request has a path from the
/// root, or a URL, in it.
fn is_name_of_file(mix: &str) -> bool {
    let is_path = mix.starts_with('/') || mix.contains("://");
    !is_path && !mix.contains(' ')
}

/// A file's name, or stdin.
pub(crate) fn shown_name(path: &Path) -> String {
    if path == Path::new(STDIN) { "stdin".to_owned() } else { path.display().to_string() }
}

/// `5002 requests of mix.txt, by weight, 402 KiB of memory`.
pub(crate) fn described(requests: &RenderedRequests, source: &str) -> String {
    let count = number::count_of(requests.mix.requests().len() as u64, "request");
    let memory = number::bytes(requests.bytes as f64);
    format!("{count} of {source}, by weight, {memory} of memory")
}

/// The mix of a server that longtail starts, without these classes. Each request has the header
/// lines of `stream`, too.
///
/// # Errors
/// As [`read`], and if a request names a host or handles its connection otherwise than `stream`.
pub(crate) fn planned(
    mix: &str,
    without: &[String],
    stream: &StreamPlan,
) -> Result<PlannedMix, Mistake> {
    let keep_alive = stream.keep_alive;
    let headers: Vec<RequestHeader> =
        stream.headers().iter().map(RequestHeader::parse).collect::<Result<_, _>>()?;
    let target = TargetUrl::parse(&format!("http://{ANY_HOST}/"))?;
    let given = FileDefaults {
        target: Some(target),
        template: RequestTemplate { headers, keep_alive, ..RequestTemplate::default() },
        seed: 1,
        without: without.to_vec(),
        ..FileDefaults::default()
    };
    let ReadMix { requests, source } = read(mix, &given, None).map_err(|mistake| {
        let names_a_host = mistake.to_string().contains(ANY_HOST);
        if names_a_host {
            wrong("--mix: longtail starts the server and knows its host: write paths, such as GET /posts 80")
        } else {
            mistake
        }
    })?;
    if requests.keep_alive != keep_alive {
        return Err(wrong(
            "--mix: its requests close their connections (Connection: close): leave that header out, and give -k",
        ));
    }
    Ok(PlannedMix {
        described: described(&requests, &source),
        classes: requests.mix.classes().to_vec(),
        requests: Some(Arc::new(requests.mix)),
    })
}
