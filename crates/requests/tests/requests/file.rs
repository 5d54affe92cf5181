//! Requests files as users write them, format by format: what is sent, and what is said when nothing can be.

use std::io;
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
        _ => Err(RequestError::Unreadable { path: path.display().to_string(), why: io::ErrorKind::NotFound.into() }),
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

fn refused(text: impl AsRef<[u8]>, says: &str) {
    let message = refusal(text, &FileDefaults::default());
    assert!(message.contains(says), "{message}");
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
    refused(format!("{file}GET / HTTP/1.1\r\nHost: other\r\n\r\n"), "line 4: 'other' goes to http://other");
    refused("GET / HTTP/1.0\r\n\r\n", "line 1: '/' does not say which host");
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

#[test]
fn a_request_to_elsewhere_is_refused_with_its_line() {
    for (file, says) in [
        ("http://a/\nhttp://b/x\n", "line 2: 'http://b/x' goes to http://b, and the target is http://a"),
        ("GET http://a/\n\n# c\nGET https://a/\n", "line 4: 'https://a/' goes to https://a"),
        (
            "{\"method\":\"GET\",\"url\":\"http://a\"}\n{\"method\":\"GET\",\"url\":\"http://a:81\"}",
            "line 2: 'http://a:81'",
        ),
        ("/a\n", "line 1: '/a' does not say which host"),
    ] {
        refused(file, says);
    }
    assert!(refusal("about.html", &to("http://h:1")).contains("'about.html' goes to http://about.html"));
}

#[test]
fn a_file_without_a_request_is_refused() {
    for file in ["", "\n\n", "# nothing\n", "\u{feff}"] {
        refused(file, "there is no request in it");
        for format in [RequestsFormat::Json, RequestsFormat::Plain, RequestsFormat::Raw, RequestsFormat::List] {
            // A comment is nothing in a list only; elsewhere it is refused as what it is.
            let given = FileDefaults { format: Some(format), ..to("h") };
            assert!(parse(file.as_bytes(), &given, body_of).is_err());
        }
    }
}

#[test]
fn a_mistake_in_a_list_or_the_plain_format_has_its_line() {
    for (file, says) in [
        (&b"http://a/\n\nhttp://a/b c\n"[..], "line 3: 'http://a/b c' is no URL"),
        (b"http://a/\nftp://a/\n", "line 2: 'ftp://a/' is neither http:// nor https://"),
        (b"http://a/\n/\xff\n", "line 2: the line is not UTF-8"),
        (b"http://a/\n/\x1b[31m\n", "line 2: '/\\u{1b}[31m' is no path"),
        (b"GET http://a/\nX-A 1\n", "line 2: 'X-A 1' is no header"),
        (b"GET http://a/\nX A: 1\n", "line 2:"),
        (b"GET http://a/\n@/etc/missing\n", "line 2: '/etc/missing' cannot be read ("),
        (b"GET http://a/\n@ \n", "line 2: @ without a path"),
        (b"GET http://a/\n@/etc/body\nX: late\n", "line 3: 'X: late' begins no request"),
        (b"GET http://a/\n\n@/etc/body\n", "line 3: '@/etc/body' begins no request"),
        (b"CONNECT http://a/\n", "line 1: CONNECT opens a tunnel"),
        (b"GET http://a/ HTTP/2\n", "line 1:"),
        (b"\n<html lang=de>\n", "line 2: '<html lang=de>' begins no format that is known"),
        (b"Host: a\n", "line 1: 'Host: a' begins no format"),
    ] {
        refused(file, says);
    }
    let given = FileDefaults { format: Some(RequestsFormat::Plain), ..FileDefaults::default() };
    assert!(refusal("get http://a/", &given).contains("line 1: 'get http://a/' begins no request"));
}

#[test]
fn a_mistake_in_a_json_line_has_its_line() {
    for (line, says) in [
        (r#"{"method":"GET"}"#, "line 2: column 16: missing field `url`: write {\"method\""),
        (r#"{"method":"GET","url":"/","headers":{}}"#, "unknown field `headers`"),
        (r#"{"method":"GET","url":"/","body":"Punch!"}"#, "line 2: the body is not base64"),
        (r#"{"method":"","url":"/"}"#, "line 2: '' is no method"),
        (r#"{"method":"GET","url":"/","header":{"A":["b\r\nC: d"]}}"#, "line 2: the value of the header 'A'"),
        ("{\n\"method\":\"GET\"}", "line 2: column 1: EOF"),
        ("GET http://a/", "line 2: column 1: expected value"),
    ] {
        refused(format!("{{\"method\":\"GET\",\"url\":\"http://a/\"}}\n{line}"), says);
    }
}

#[test]
fn a_mistake_in_a_raw_request_has_the_line_it_begins_at() {
    for (request, says) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n", "line 4: the head of the request that begins here has no end"),
        ("\r\nGET / HTTP/2.0\r\n\r\n", "line 5: the request that begins here is not HTTP/1.1"),
        ("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nshort", "says 9 bytes of body and 5 are left"),
        ("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "is not one number"),
        ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "is not one number"),
        ("POST / HTTP/1.1\r\nContent-Length: 18446744073709551616\r\n\r\n", "is not one number"),
        ("POST / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n", "larger than 64 MiB"),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "give the body whole"),
        ("GET / HTTP/1.1\nHost: a\n\n", "line 4: a line of this request's head ends with LF alone"),
        ("CONNECT a:1 HTTP/1.1\r\n\r\n", "line 4: CONNECT opens a tunnel"),
        ("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", "line 4: 'http://b/' goes to http://b"),
    ] {
        refused(format!("GET / HTTP/1.1\r\nHost: a\r\n\r\n{request}"), says);
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
