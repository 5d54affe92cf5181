//! The requests of a load, from its flags: one that they describe, those of a file or a mix, or those
//! of a log that is replayed.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use model::RequestMix;
use report::number;
use requests::{
    FileDefaults, RenderedRequest, RenderedRequests, ReplayDefaults, RequestHeader,
    RequestTemplate, RequestsFormat, STDIN, TargetUrl,
};

use super::log_times::LogTimes;
use crate::args::LoadArgs;
use crate::exit::{Mistake, refuse_if, wrong};
use crate::mix;
use crate::ui;

/// The requests, and a description of them.
pub(super) struct RequestsToSend {
    pub(super) target: TargetUrl,
    pub(super) mix: RequestMix,
    pub(super) described: String,
    /// Whether a connection carries more than one of them.
    pub(super) keep_alive: bool,
    /// When each of them came, where a log is replayed.
    pub(super) times: Option<LogTimes>,
}

impl RequestsToSend {
    /// The requests of a file or a mix, which is described by where it is from.
    fn of(read: RenderedRequests, source: &str, at_random: bool) -> RequestsToSend {
        let format = read.format;
        let count = read.mix.requests().len();
        let described = match format {
            RequestsFormat::Mix => mix::described(&read, source),
            RequestsFormat::Json
            | RequestsFormat::Plain
            | RequestsFormat::Raw
            | RequestsFormat::List => {
                let order = if at_random { "at random" } else { "in order" };
                let counted = number::count_of(count as u64, "request");
                format!("{counted} of {source} ({format}), {order}")
            }
        };
        let RenderedRequests { target, mix, keep_alive, .. } = read;
        RequestsToSend { target, mix, described, keep_alive, times: None }
    }

    /// The URL of the only request; of several the server, because their paths differ.
    pub(super) fn where_to(&self) -> TargetUrl {
        let mut target = self.target.clone();
        if self.mix.requests().len() > 1 {
            "/".clone_into(&mut target.path);
        }
        target
    }
}

/// The requests that the flags ask for.
///
/// # Errors
/// If a flag is wrong, or a file cannot be read or understood.
pub(super) fn requests_to_send(args: &LoadArgs) -> Result<RequestsToSend, Mistake> {
    let to_send = rendered(args, &template(args)?)?;
    let is_stamped = |request: &model::Request| request.queue_stamp.is_some();
    refuse_if(
        args.queue_header.is_some() && !to_send.mix.requests().iter().all(is_stamped),
        "--queue-header: raw requests go out as they are: leave it out, or use another format",
    )?;
    args.thresholds.check_classes(to_send.mix.classes())?;
    Ok(to_send)
}

/// The requests of a file, a mix or a log, or the one that the flags describe.
fn rendered(args: &LoadArgs, template: &RequestTemplate) -> Result<RequestsToSend, Mistake> {
    let target = args.url.as_deref().map(TargetUrl::parse).transpose()?;
    let given = FileDefaults {
        format: args.requests_format,
        target: target.clone(),
        template: template.clone(),
        at_random: args.random,
        seed: args.seed,
        without: args.without.clone(),
    };
    if let Some(path) = &args.requests {
        let read = requests::read_file(path, &given, args.requests_root.as_deref())?;
        return Ok(RequestsToSend::of(read, &mix::shown_name(path), args.random));
    }
    if let Some(text) = &args.mix {
        let read = mix::read(text, &given, args.requests_root.as_deref())?;
        return Ok(RequestsToSend::of(read.requests, &read.source, args.random));
    }
    let target =
        target.ok_or_else(|| wrong("say where to: a URL such as http://127.0.0.1:9292/"))?;
    if let Some(path) = &args.replay {
        return replayed(args, path, target, template.clone());
    }
    let body = template
        .body
        .as_ref()
        .map(|body| format!(" with {} bytes", body.len()))
        .unwrap_or_default();
    let described = format!("{}{body}", template.method);
    let RenderedRequest { request, keeps_connection } = template.render(&target)?;
    let mix = RequestMix::of_one(request);
    Ok(RequestsToSend { mix, target, described, keep_alive: keeps_connection, times: None })
}

/// The requests of a log. What is not replayed, and how its times were read, stands in the line that
/// says what was sent.
fn replayed(
    args: &LoadArgs,
    path: &Path,
    target: TargetUrl,
    template: RequestTemplate,
) -> Result<RequestsToSend, Mistake> {
    let all_methods = args.replay_all;
    let given = ReplayDefaults { target: target.clone(), template, all_methods, seed: args.seed };
    let log = requests::read_log(path, &given)?;
    let count = log.requests.len();
    let counted = number::count_of(count as u64, "request");
    let mut parts = vec![format!("{counted} of {} ({})", mix::shown_name(path), log.format)];
    if log.spread > 0 {
        let which = if log.spread >= count as u64 {
            "its times".to_owned()
        } else {
            format!("{} of its times", log.spread)
        };
        parts.push(format!(
            "{which} are whole seconds: spread within each by the seed {}",
            args.seed
        ));
    }
    if log.ended > 0 {
        let units: Vec<String> = log.durations_in.iter().map(ToString::to_string).collect();
        let read_as = match units.as_slice() {
            [] => String::new(),
            units => format!(", read as {},", units.join(" and ")),
        };
        parts.push(format!(
            "{} were logged at their end: the duration{read_as} is subtracted",
            log.ended
        ));
    }
    if log.has_wrong_durations {
        parts.push(
            "the durations are not subtracted, as they would be longer than the log: \
             call them duration_us or duration_ns if they are"
                .to_owned(),
        );
    }
    let left_out: u64 = log.left_out.values().sum();
    if left_out > 0 {
        let reasons: Vec<String> =
            log.left_out.iter().map(|(why, n)| format!("{n} {why}")).collect();
        parts.push(format!("{left_out} left out: {}", reasons.join(", ")));
    }
    if all_methods {
        parts.push("without the bodies, which a log lacks".to_owned());
    }
    let described = parts.join("; ");
    Ok(RequestsToSend {
        target,
        mix: RequestMix::in_order(log.requests).with_classes(log.classes),
        described,
        keep_alive: log.keep_alive,
        times: Some(LogTimes { times: log.times, start: log.start }),
    })
}

/// The request that the flags describe, without its target.
///
/// # Errors
/// If a flag is wrong, or the body cannot be read.
pub(super) fn template(args: &LoadArgs) -> Result<RequestTemplate, Mistake> {
    // `unknown_words::check` has refused it already, unless other letters stand before the d:
    // `-kd @FILE`.
    if let Some(text) = args.data.as_ref().filter(|text| text.starts_with('@')) {
        let why = "-d may be a file or a text here: type -D FILE to send the file, or --data-raw";
        return Err(wrong(format!("{why} {text} to send that text")));
    }
    let from_stdin =
        [&args.body_file, &args.requests].map(|file| file.as_deref() == Some(Path::new(STDIN)));
    refuse_if(
        from_stdin == [true, true],
        "-D - and --requests - both read stdin, which can be read once: name a file for one of them",
    )?;
    if from_stdin.contains(&true) && io::stdin().is_terminal() {
        ui::note("reading stdin, until Ctrl-D");
    }
    let body = match (args.data.as_ref().or(args.data_raw.as_ref()), &args.body_file) {
        (Some(text), _) => Some(text.clone().into_bytes()),
        (None, Some(path)) => Some(requests::read_body(path)?),
        (None, None) => None,
    };
    let method = match &args.method {
        Some(name) => requests::method(name)?,
        // As with curl, a body means POST.
        None if body.is_some() => requests::Method::POST,
        None => requests::Method::GET,
    };
    let mut headers = Vec::new();
    for line in &args.headers {
        match line.strip_prefix('@') {
            Some(file) => headers.extend(requests::read_headers(Path::new(file))?),
            None => headers.push(RequestHeader::parse(line)?),
        }
    }
    for (name, value) in
        [("content-type", &args.content_type), ("accept", &args.accept), ("host", &args.host)]
    {
        headers.extend(value.as_ref().map(|value| RequestHeader::new(name, value)).transpose()?);
    }
    headers.extend(args.auth.as_ref().map(RequestHeader::basic_auth).transpose()?);
    let queue_header = args.queue_header;
    Ok(RequestTemplate { method, headers, body, keep_alive: !args.no_keep_alive, queue_header })
}

/// What slow clients send where they post a body of their own: the load's headers, and as many
/// bytes as were asked for.
pub(super) fn slow_request(
    args: &LoadArgs,
    target: &TargetUrl,
) -> Result<Option<model::Request>, Mistake> {
    let Some(length) = args.slow_clients.and_then(|slow| slow.body) else { return Ok(None) };
    let posted = RequestTemplate {
        method: requests::Method::POST,
        body: Some(vec![b'x'; length as usize]),
        // Only lanes stamp requests.
        queue_header: None,
        ..template(args)?
    };
    Ok(Some(posted.render(target)?.request))
}
