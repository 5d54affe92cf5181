//! Requests files as users write them, format by format: what is sent, and what is said when nothing can be.

use std::path::Path;

use proptest::prelude::*;
use requests::{
    FileDefaults, RenderedRequests, RequestError, RequestHeader, RequestTemplate, RequestsFormat, TargetUrl, parse,
};

const AGENT: &str = concat!("user-agent: longtail/", env!("CARGO_PKG_VERSION"), "\r\naccept: */*\r\n");

fn target(url: &str) -> TargetUrl {
    TargetUrl::parse(url).unwrap()
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
    requests.requests.iter().map(|request| std::str::from_utf8(&request.bytes).unwrap()).collect()
}

fn refusal(text: impl AsRef<[u8]>, given: &FileDefaults) -> String {
    let message = parse(text.as_ref(), given, body_of).unwrap_err().to_string();
    assert!(!message.contains(['\n', '\r', '\u{1b}']), "{message:?}");
    message
}

/// The plain format's features, one after the other.
const PLAIN: &str = "\
GET http://goku:9090/path/to/dragon?item=ball
GET http://goku:9090/path/to
HEAD http://goku:9090/path/to/success

# get a dragon ball
GET http://goku:9090/path/to/dragon?item=ball
# specify a test account
X-Account-ID: 99
X-Account-ID: 100

POST http://goku:9090/things
Content-Type: application/json
@/etc/body

DELETE http://goku:9090/things/1
X-Confirm: yes";

#[test]
fn the_plain_format_is_request_lines_headers_and_bodies_by_reference() {
    let requests = read(PLAIN, &FileDefaults::default());
    assert_eq!((requests.format, requests.target.origin()), (RequestsFormat::Plain, "http://goku:9090".to_owned()));
    let host = format!("host: goku:9090\r\n{AGENT}");
    assert_eq!(
        texts(&requests),
        [
            format!("GET /path/to/dragon?item=ball HTTP/1.1\r\n{host}\r\n"),
            format!("GET /path/to HTTP/1.1\r\n{host}\r\n"),
            format!("HEAD /path/to/success HTTP/1.1\r\n{host}\r\n"),
            format!("GET /path/to/dragon?item=ball HTTP/1.1\r\n{host}X-Account-ID: 99\r\nX-Account-ID: 100\r\n\r\n"),
            format!(
                "POST /things HTTP/1.1\r\n{host}content-length: 11\r\nContent-Type: application/json\r\n\r\nfrom a file"
            ),
            format!("DELETE /things/1 HTTP/1.1\r\n{host}X-Confirm: yes\r\n\r\n"),
        ]
    );
    assert_eq!(
        requests.requests.iter().map(|request| request.is_head).collect::<Vec<_>>(),
        [false, false, true, false, false, false]
    );
}

#[test]
fn a_windows_editors_file_is_the_same_file() {
    let windows = format!("\u{feff}{}", PLAIN.replace('\n', "\r\n"));
    assert_eq!(read(windows, &FileDefaults::default()), read(PLAIN, &FileDefaults::default()));
}

#[test]
fn json_lines_carry_headers_and_a_body_in_base64() {
    let text = r#"{"method":"GET","url":"http://goku:9090/"}

{"method":"POST","url":"http://goku:9090/x","body":"UHVuY2gh","header":{"Content-Type":["text/plain"],"X-Two":["1","2"]}}
{"method":"GET","url":"/y","body":null,"header":null}
"#;
    let requests = read(text, &FileDefaults::default());
    assert_eq!(requests.format, RequestsFormat::Json);
    let host = format!("host: goku:9090\r\n{AGENT}");
    assert_eq!(
        texts(&requests),
        [
            format!("GET / HTTP/1.1\r\n{host}\r\n"),
            format!(
                "POST /x HTTP/1.1\r\n{host}content-length: 6\r\nContent-Type: text/plain\r\nX-Two: 1\r\nX-Two: 2\r\n\r\nPunch!"
            ),
            format!("GET /y HTTP/1.1\r\n{host}\r\n"),
        ]
    );
}

#[test]
fn a_list_is_of_urls_and_paths() {
    let requests =
        read("# three\nlocalhost:3000/a\n\n/b?c\n  http://localhost:3000/käse  \n", &FileDefaults::default());
    assert_eq!(requests.format, RequestsFormat::List);
    let paths: Vec<_> = texts(&requests).iter().map(|text| text.split(' ').nth(1).unwrap()).collect();
    assert_eq!(paths, ["/a", "/b?c", "/k%C3%A4se"]);
}

#[test]
fn raw_requests_go_out_byte_for_byte() {
    let requests: [&[u8]; 4] = [
        b"GET /x HTTP/1.1\r\nhOsT:  h:1 \r\n\r\n",
        b"POST /y HTTP/1.1\r\nHost: h:1\r\nContent-Length: 6\r\n\r\n\r\n\0\xff\r\n",
        b"HEAD /z HTTP/1.1\r\nHost: h:1\r\n\r\n",
        b"GET http://h:1/absolute HTTP/1.0\r\n\r\n",
    ];
    for between in ["", "\r\n", "\n\n\r\n"] {
        let file = requests.join(between.as_bytes());
        let read = read(&file, &FileDefaults::default());
        assert_eq!((read.format, read.target.origin()), (RequestsFormat::Raw, "http://h:1".to_owned()));
        let bytes: Vec<&[u8]> = read.requests.iter().map(|request| &*request.bytes).collect();
        assert_eq!(bytes, requests);
        assert_eq!(read.requests.iter().filter(|request| request.is_head).count(), 1);
    }
}

#[test]
fn a_captured_request_may_name_the_host_it_was_captured_from() {
    let file = "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n";
    assert_eq!(read(file, &to("https://localhost:3000")).target.origin(), "https://localhost:3000");
}

#[test]
fn flags_are_each_requests_default_and_its_own_word_wins() {
    let headers = vec![RequestHeader::parse("X-A: flag").unwrap(), RequestHeader::parse("X-B: flag").unwrap()];
    let template = RequestTemplate { headers, body: Some(b"flag".to_vec()), ..RequestTemplate::default() };
    let given = FileDefaults { template, ..to("http://me:pw@h/") };
    let file = "POST http://h/1\nx-a: file\n@/etc/body\n\nPOST /2\nx-b:\nAccept:\n";
    let requests = read(file, &given);
    let texts = texts(&requests);
    assert!(texts[0].contains("\r\nX-B: flag\r\nx-a: file\r\n\r\nfrom a file"), "{}", texts[0]);
    assert!(texts[1].ends_with("content-length: 4\r\nX-A: flag\r\n\r\nflag"), "{}", texts[1]);
    assert!(!texts[1].contains("accept"));
    assert!(texts.iter().all(|text| text.contains("\r\nauthorization: Basic bWU6cHc=\r\n")));
    let template = RequestTemplate { method: requests::method("post").unwrap(), ..RequestTemplate::default() };
    assert!(self::texts(&read("/a", &FileDefaults { template, ..to("h") }))[0].starts_with("POST /a HTTP/1.1\r\n"));
    let raw = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    assert!(refusal(raw, &given).starts_with("raw requests go out byte for byte"));
    assert!(refusal(raw, &to("http://me:pw@h/")).starts_with("raw requests go out byte for byte"));
}

/// What is refused, and a part of what is said: a file, a line of JSON or a raw request behind a good one, a URL, a header, a method.
#[test]
fn every_mistake_is_one_line_that_names_it() {
    for row in include_str!("mistakes.jsonl").lines() {
        let [kind, text, says]: [String; 3] = serde_json::from_str(row).unwrap();
        let said = match kind.as_str() {
            "url" => TargetUrl::parse(&text).unwrap_err().to_string(),
            "header" => RequestHeader::parse(&text).unwrap_err().to_string(),
            "method" => requests::method(&text).unwrap_err().to_string(),
            "json" => {
                refusal(format!("{{\"method\":\"GET\",\"url\":\"http://a/\"}}\n{text}"), &FileDefaults::default())
            }
            "raw" => refusal(format!("GET / HTTP/1.1\r\nHost: a\r\n\r\n{text}"), &FileDefaults::default()),
            "latin1" => refusal(text.chars().map(|c| c as u8).collect::<Vec<_>>(), &FileDefaults::default()),
            _ => refusal(&text, &FileDefaults::default()),
        };
        assert!(said.contains(&says) && !said.contains(['\n', '\r', '\u{1b}']), "{row}: {said}");
    }
    assert!(refusal("about.html", &to("http://h:1")).contains("'about.html' goes to http://about.html"));
    let given = FileDefaults { format: Some(RequestsFormat::Plain), ..FileDefaults::default() };
    assert!(refusal("get http://a/", &given).contains("line 1: 'get http://a/' begins no request"));
}

#[test]
fn a_file_without_a_request_is_refused() {
    for file in ["", "\n\n", "# nothing\n", "\u{feff}"] {
        assert!(refusal(file, &FileDefaults::default()).contains("there is no request in it"));
        for format in [RequestsFormat::Json, RequestsFormat::Plain, RequestsFormat::Raw, RequestsFormat::List] {
            // A comment is nothing in a list only; elsewhere it is refused as what it is.
            let given = FileDefaults { format: Some(format), ..to("h") };
            assert!(parse(file.as_bytes(), &given, body_of).is_err());
        }
    }
}

#[test]
fn a_request_larger_than_64_mib_is_refused() {
    let huge = |_: &Path| Ok(vec![0; 64 << 20]);
    let error = parse(b"POST http://a/\n@huge\n", &FileDefaults::default(), huge).unwrap_err();
    assert_eq!(error.to_string(), "line 1: the request is larger than 64 MiB: make its body smaller");
}

#[test]
fn a_file_on_disk_is_named_and_its_line() {
    let error = requests::read_file(Path::new("/nowhere/requests"), &FileDefaults::default()).unwrap_err();
    assert!(error.to_string().starts_with("'/nowhere/requests' cannot be read ("), "{error}");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mistake.txt");
    std::fs::write(&path, "http://a/\nhttp://b/\n").unwrap();
    let error = requests::read_file(&path, &FileDefaults::default()).unwrap_err().to_string();
    assert!(error.starts_with(&format!("'{}': line 2: 'http://b/' goes to", path.display())), "{error}");
}

proptest! {
    #[test]
    fn raw_requests_back_to_back_are_cut_where_they_were_joined(
        requests in prop::collection::vec((0..3u8, prop::collection::vec(any::<u8>(), 0..50)), 1..6),
    ) {
        let rendered: Vec<Vec<u8>> = requests.iter().map(|(kind, body)| {
            let template = RequestTemplate {
                method: requests::method(["POST", "PUT", "HEAD"][usize::from(*kind)]).unwrap(),
                body: Some(body.clone()),
                ..RequestTemplate::default()
            };
            template.render(&target("http://h/x")).bytes.to_vec()
        }).collect();
        let read = parse(&rendered.concat(), &FileDefaults::default(), body_of).unwrap();
        let cut: Vec<Vec<u8>> = read.requests.iter().map(|request| request.bytes.to_vec()).collect();
        prop_assert_eq!(cut, rendered);
    }
}
