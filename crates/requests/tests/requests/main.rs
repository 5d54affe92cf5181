//! What users give, as rows of files, and at random: what is sent, and what is said when nothing
//! can be.

use std::path::Path;

use model::pace::uniform;
use model::{Request, RequestMix};
use proptest::prelude::*;
use requests::{
    FileDefaults, RenderedRequests, RequestError, RequestHeader, RequestTemplate, RequestsFormat,
    TargetUrl, parse,
};
use serde::de::DeserializeOwned;

#[path = "../../../../fuzz/claims/requests_file.rs"]
mod claims;

/// The rows of a file, which name the version of longtail `VERSION`.
fn rows<Row: DeserializeOwned>(file: &str) -> impl Iterator<Item = Row> {
    let file = file.replace("VERSION", env!("CARGO_PKG_VERSION"));
    let rows: Vec<Row> = file
        .lines()
        .map(|row| serde_json::from_str(row).unwrap_or_else(|why| panic!("{why}: {row}")))
        .collect();
    rows.into_iter()
}

fn target(url: &str) -> TargetUrl {
    TargetUrl::parse(url).unwrap_or_else(|error| panic!("{error}"))
}

fn with_headers(lines: &[impl AsRef<str>]) -> RequestTemplate {
    let headers = lines.iter().map(|line| RequestHeader::parse(line.as_ref()).unwrap()).collect();
    RequestTemplate { headers, ..RequestTemplate::default() }
}

fn to(url: &str) -> FileDefaults {
    FileDefaults { target: Some(target(url)), ..FileDefaults::default() }
}

/// Body files: `/etc/body` is there, every other is not.
fn body_of(path: &Path) -> Result<Vec<u8>, RequestError> {
    match path.to_str() {
        Some("/etc/body") => Ok(b"from a file".to_vec()),
        _ => Err(RequestError::new(format!("'{}' cannot be read (not there)", path.display()))),
    }
}

fn read(text: impl AsRef<[u8]>, given: &FileDefaults) -> RenderedRequests {
    parse(text.as_ref(), given, body_of).unwrap_or_else(|error| panic!("{error}"))
}

fn texts(requests: &RenderedRequests) -> Vec<&str> {
    requests
        .mix
        .requests()
        .iter()
        .map(|request| std::str::from_utf8(&request.bytes).unwrap())
        .collect()
}

fn refusal(text: impl AsRef<[u8]>, given: &FileDefaults) -> String {
    parse(text.as_ref(), given, body_of).unwrap_err().to_string()
}

/// URL; how it is shown, without the user; host, port, authority, path, credentials.
type UrlRow = (String, String, String, u16, String, String, Option<String>);

#[test]
fn a_url_is_scheme_host_port_and_path_which_stays_as_given() {
    for (url, shown, host, port, authority, path, credentials) in
        rows::<UrlRow>(include_str!("urls.jsonl"))
    {
        let found = target(&url);
        assert_eq!((&found.to_string(), found.tls), (&shown, shown.starts_with("https:")), "{url}");
        assert_eq!(
            (&found.host, found.port, &found.authority, &found.path),
            (&host, port, &authority, &path),
            "{url}"
        );
        assert_eq!(found.credentials, credentials.map(String::into_bytes), "{url}");
        assert!(
            shown == format!("{}{path}", found.origin()) && target(&shown).has_origin_of(&found),
            "{url}"
        );
    }
    for other in ["https://h:80/", "http://h:81/", "http://g/"] {
        assert!(!target("http://h:80/x").has_origin_of(&target(other)), "{other}");
    }
}

/// URL, method, body, headers, whether the connection is kept; what is sent.
type TemplateRow = (String, String, Option<String>, Vec<String>, bool, String);

#[test]
fn a_request_has_what_the_user_gave_and_defaults_for_the_rest() {
    for (url, method, body, headers, keep_alive, sent) in
        rows::<TemplateRow>(include_str!("templates.jsonl"))
    {
        let method = requests::method(&method).unwrap();
        let body = body.map(String::into_bytes);
        let template = RequestTemplate { method, body, keep_alive, ..with_headers(&headers) };
        let rendered = template.render(&target(&url)).unwrap();
        assert_eq!(String::from_utf8_lossy(&rendered.request.bytes), sent);
        assert_eq!(rendered.keeps_connection, keep_alive, "{sent}");
    }
    assert_eq!(RequestHeader::parse(b"X: \xe9".as_slice()).unwrap().value(), Some(&b"\xe9"[..]));
    assert!(RequestHeader::basic_auth("Aladdin").unwrap_err().to_string().contains("no colon"));
}

/// A file, its format, where it goes; what is sent.
type FileRow = (String, String, String, Vec<String>);

#[test]
fn a_file_of_each_format_is_the_requests_in_it() {
    for (file, format, origin, sent) in rows::<FileRow>(include_str!("files.jsonl")) {
        let found = read(&file, &FileDefaults::default());
        assert_eq!((found.format.to_string(), found.target.origin()), (format, origin), "{file}");
        assert_eq!(texts(&found), sent, "{file}");
        let are_heads = sent.iter().map(|request| request.starts_with("HEAD "));
        assert!(found.mix.requests().iter().map(|request| request.is_head).eq(are_heads), "{file}");
    }
    // A captured request may name the host it was captured from.
    let captured = "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n";
    assert_eq!(
        read(captured, &to("https://localhost:3000")).target.origin(),
        "https://localhost:3000"
    );
}

#[test]
fn flags_are_each_requests_default_and_its_own_word_wins() {
    let template = RequestTemplate {
        body: Some(b"flag".to_vec()),
        ..with_headers(&["X-A: flag", "X-B: flag"])
    };
    let given = FileDefaults { template, ..to("http://me:pw@h/") };
    let requests =
        read("POST http://h/1\nx-a: file\n@/etc/body\n\nPOST /2\nx-b:\nAccept:\n", &given);
    let texts = texts(&requests);
    assert!(texts[0].contains("\r\nX-B: flag\r\nx-a: file\r\n\r\nfrom a file"), "{}", texts[0]);
    assert!(texts[1].ends_with("content-length: 4\r\nX-A: flag\r\n\r\nflag"), "{}", texts[1]);
    assert!(!texts[1].contains("accept"));
    assert!(texts.iter().all(|text| text.contains("\r\nauthorization: Basic bWU6cHc=\r\n")));
    let template =
        RequestTemplate { method: requests::method("post").unwrap(), ..RequestTemplate::default() };
    assert!(
        self::texts(&read("/a", &FileDefaults { template, ..to("h") }))[0]
            .starts_with("POST /a HTTP/1.1\r\n")
    );
    for given in [&given, &to("http://me:pw@h/")] {
        let said = refusal("GET / HTTP/1.1\r\nHost: h\r\n\r\n", given);
        assert!(said.starts_with("raw requests go out byte for byte"), "{said}");
    }
}

/// What is refused, and a part of what is said: a file, a line of JSON or a raw request after a
/// good one, a URL, a header, a method.
#[test]
fn every_mistake_is_one_line_that_names_it() {
    for [kind, text, says] in rows::<[String; 3]>(include_str!("mistakes.jsonl")) {
        let of_file = |file: &[u8]| refusal(file, &FileDefaults::default());
        let said = match kind.as_str() {
            "url" => TargetUrl::parse(&text).unwrap_err().to_string(),
            "header" => RequestHeader::parse(&text).unwrap_err().to_string(),
            "method" => requests::method(&text).unwrap_err().to_string(),
            "json" => {
                of_file(format!("{{\"method\":\"GET\",\"url\":\"http://a/\"}}\n{text}").as_bytes())
            }
            "raw" => of_file(format!("GET / HTTP/1.1\r\nHost: a\r\n\r\n{text}").as_bytes()),
            "latin1" => of_file(&text.chars().map(|c| c as u8).collect::<Vec<_>>()),
            _ => of_file(text.as_bytes()),
        };
        assert!(
            said.contains(&says) && !said.contains(['\n', '\r', '\u{1b}']),
            "{kind} {text}: {said}"
        );
    }
    assert!(
        refusal("about.html", &to("http://h:1")).contains("'about.html' goes to http://about.html")
    );
    let given = FileDefaults { format: Some(RequestsFormat::Plain), ..FileDefaults::default() };
    assert!(refusal("get http://a/", &given).contains("line 1: 'get http://a/' begins no request"));
    let huge = |_: &Path| Ok(vec![0; 64 << 20]);
    let error = parse(b"POST http://a/\n@huge\n", &FileDefaults::default(), huge).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1: the request is larger than 64 MiB: make its body smaller"
    );
    for file in ["", "\n\n", "# nothing\n", "\u{feff}"] {
        assert!(refusal(file, &FileDefaults::default()).contains("there is no request in it"));
        for (_, format) in RequestsFormat::NAMES {
            // A list skips comments; other formats may refuse them as what they are.
            let given = FileDefaults { format: Some(*format), ..to("h") };
            assert!(parse(file.as_bytes(), &given, body_of).is_err());
        }
    }
}

#[test]
fn a_file_on_disk_is_named_and_its_line() {
    let error = requests::read_file(Path::new("/nowhere/requests"), &FileDefaults::default(), None)
        .unwrap_err();
    assert!(error.to_string().starts_with("'/nowhere/requests' cannot be read ("), "{error}");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mistake.txt");
    std::fs::write(&path, "http://a/\nhttp://b/\n").unwrap();
    let error = requests::read_file(&path, &FileDefaults::default(), None).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("'{}': line 2: 'http://b/' goes to", path.display())),
        "{error}"
    );
}

#[test]
fn every_file_of_the_fuzzers_corpus_is_sendable_or_refused_in_a_line() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/requests_file");
    let replayed = std::fs::read_dir(corpus).unwrap().map(|entry| {
        claims::is_sendable_or_refused_in_a_line(&std::fs::read(entry.unwrap().path()).unwrap());
    });
    let replayed = replayed.count();
    assert!(replayed >= 10, "only {replayed} files: is the corpus there?");
}

/// The gaps of a Poisson pace with the same seed fall with `uniform`: unmixed draws would correlate
/// fully, and one request would always come after the long gaps.
#[test]
fn random_requests_do_not_correlate_with_the_gaps_before_them() {
    let n = 10_000u64;
    let seed = 7;
    let request = Request::new(Vec::new(), false);
    let mix = RequestMix::at_random(vec![request; 1000], seed);
    let sum: f64 =
        (0..n).map(|i| (mix.index(i) as f64 / 999.0 - 0.5) * (uniform(seed, i) - 0.5)).sum();
    let correlation = sum / n as f64 * 12.0;
    assert!(correlation.abs() < 0.03, "correlation {correlation}");
}

/// Lines that are nearly of a format.
const NEARLY: [&str; 13] = [
    "GET http://h/x\n",
    "POST /y\n",
    "X-A: 1\n",
    "Accept:\n",
    "@body\n",
    "@missing\n",
    "# c\n",
    "\r\n",
    "http://h/\n",
    "{\"method\":\"GET\",\"url\":\"http://h\"}\n",
    "{\"method\":\"PUT\",\"url\":\"/\",\"body\":\"YQ==\",\"header\":{\"A\":[\"b\"]}}\n",
    "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
];

/// Such lines, put together at random.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(&NEARLY[..]).prop_map(|line| line.as_bytes().to_vec());
    let piece = prop_oneof![13 => line, 1 => prop::collection::vec(any::<u8>(), 0..20)];
    prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_file_is_sendable_or_refused_in_a_line(
        bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..300), nearly()],
    ) {
        claims::is_sendable_or_refused_in_a_line(&bytes);
    }

    #[test]
    fn what_is_rendered_is_read_back_the_same(
        method_name in "[A-Z]{1,10}",
        path in "/[!$-;=@-Z_a-z~]{0,40}",
        headers in prop::collection::vec(("x-[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}", "[\\x21-\\x7e]([\\t -~]{0,40}[\\x21-\\x7e])?"), 0..8),
        body in prop::option::of(prop::collection::vec(any::<u8>(), 0..200)),
        keep_alive in any::<bool>(),
    ) {
        prop_assume!(method_name != "CONNECT");
        let template = RequestTemplate {
            method: requests::method(&method_name).unwrap(),
            headers: headers.iter().map(|(name, value)| RequestHeader::new(name, value).unwrap()).collect(),
            body: body.clone(),
            keep_alive,
            queue_header: None,
        };
        let target = target("http://localhost:3000").at(&path).unwrap();
        let request = template.render(&target).unwrap().request;
        let mut fields = [httparse::EMPTY_HEADER; 32];
        let mut parsed = httparse::Request::new(&mut fields);
        let head = parsed.parse(&request.bytes).unwrap().unwrap();
        prop_assert_eq!((parsed.method, parsed.path), (Some(&*method_name), Some(&*path)));
        prop_assert_eq!(&request.bytes[head..], body.as_deref().unwrap_or_default());
        let values = |name: &str| parsed.headers.iter().filter(|f| f.name == name).map(|f| f.value).collect::<Vec<_>>();
        prop_assert_eq!(values("host"), [b"localhost:3000"]);
        prop_assert_eq!(values("connection").is_empty(), keep_alive);
        if let Some(body) = &body {
            let length = body.len().to_string();
            prop_assert_eq!(values("content-length"), [length.as_bytes()]);
        }
        let own: Vec<_> = parsed.headers.iter().filter(|f| f.name.starts_with("x-")).map(|f| (f.name, f.value)).collect();
        let given: Vec<_> = headers.iter().map(|(name, value)| (&**name, value.as_bytes())).collect();
        prop_assert_eq!(own, given);
    }

    #[test]
    fn raw_requests_back_to_back_are_cut_where_they_were_joined(
        requests in prop::collection::vec((0..3u8, prop::collection::vec(any::<u8>(), 0..50)), 1..6),
    ) {
        let rendered: Vec<Vec<u8>> = requests.iter().map(|(kind, body)| {
            let method = requests::method(["POST", "PUT", "HEAD"][usize::from(*kind)]).unwrap();
            let template = RequestTemplate { method, body: Some(body.clone()), ..RequestTemplate::default() };
            template.render(&target("http://h/x")).unwrap().request.bytes.to_vec()
        }).collect();
        let read = parse(&rendered.concat(), &FileDefaults::default(), body_of).unwrap();
        let cut: Vec<Vec<u8>> = read.mix.requests().iter().map(|request| request.bytes.to_vec()).collect();
        prop_assert_eq!(cut, rendered);
    }
}

#[test]
fn the_place_of_a_queue_header_is_known_and_the_users_own_gives_way() {
    let template = RequestTemplate {
        body: Some(b"body".to_vec()),
        queue_header: Some(model::QueueHeader::Nginx),
        ..with_headers(&["x-request-start: mine", "X-Other: y"])
    };
    let target = TargetUrl::parse("http://h/").unwrap();
    let request = template.render(&target).unwrap().request;
    let text = String::from_utf8(request.bytes.to_vec()).unwrap();
    let at = request.queue_stamp.unwrap() as usize;
    assert!(text[..at].ends_with("\r\nX-Request-Start: "), "{text}");
    assert!(text[at..].starts_with("t=0000000000.000\r\n\r\nbody"), "{text}");
    assert!(text.contains("X-Other: y") && !text.contains("mine"), "{text}");
}
