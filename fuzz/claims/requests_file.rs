//! What is true of any bytes that are given as a requests file.

use requests::{FileDefaults, RequestError, RequestsFormat, TargetUrl, parse};

/// Panics if the file, read as each format, is accepted without being HTTP/1.1, or refused in more
/// than a line.
pub(crate) fn is_sendable_or_refused_in_a_line(bytes: &[u8]) {
    for format in [
        None,
        Some(RequestsFormat::Json),
        Some(RequestsFormat::Plain),
        Some(RequestsFormat::Raw),
        Some(RequestsFormat::List),
        Some(RequestsFormat::Mix),
    ] {
        for target in [None, TargetUrl::parse("http://localhost:3000").ok()] {
            check(bytes, &FileDefaults { format, target, ..FileDefaults::default() });
        }
    }
}

fn check(bytes: &[u8], given: &FileDefaults) {
    let body_of = |path: &std::path::Path| match path.to_str() {
        Some("body") => Ok(b"a body".to_vec()),
        _ => Err(RequestError::new("'elsewhere' cannot be read")),
    };
    let read = match parse(bytes, given, body_of) {
        Ok(read) => read,
        Err(error) => {
            let line = error.to_string();
            assert!(
                !line.is_empty() && line.len() < 1000 && !line.contains(char::is_control),
                "{line:?}"
            );
            return;
        }
    };
    assert!(!read.mix.requests().is_empty());
    assert!(given.target.as_ref().is_none_or(|target| target.has_origin_of(&read.target)));
    // The URL that we print is one that we read.
    assert!(
        TargetUrl::parse(&read.target.to_string())
            .is_ok_and(|again| again.has_origin_of(&read.target))
    );
    for request in read.mix.requests() {
        let mut fields =
            vec![httparse::EMPTY_HEADER; request.bytes.split(|byte| *byte == b'\n').count()];
        let mut parsed = httparse::Request::new(&mut fields);
        let head = parsed.parse(&request.bytes);
        assert!(
            head.is_ok_and(|status| status.is_complete()),
            "{head:?}: {}",
            request.bytes.escape_ascii()
        );
        assert_eq!(request.is_head, parsed.method == Some("HEAD"));
    }
}
