//! The plain GET that a sweep sends, rendered before the start.

use model::Request;

/// Renders a request without a body.
///
/// `host` goes into the Host header, which HTTP/1.1 demands (RFC 9112 section 3.2) and newer Pumas insist on.
pub fn render(method: &str, host: &str, path: &str, keep_alive: bool) -> Request {
    render_with(method, host, path, &[], keep_alive)
}

/// As [`render`], with header lines of one's own, `name: value`, beside those that every request has.
pub fn render_with(method: &str, host: &str, path: &str, headers: &[String], keep_alive: bool) -> Request {
    let version = env!("CARGO_PKG_VERSION");
    let more: String = headers.iter().flat_map(|line| [line, "\r\n"]).collect();
    let close = if keep_alive { "" } else { "connection: close\r\n" };
    let text = format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nuser-agent: longtail/{version}\r\naccept: */*\r\n{more}{close}\r\n"
    );
    Request { bytes: text.into_bytes().into(), is_head: method == "HEAD" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_alive_is_http_1_1s_default_and_close_is_said() {
        let text = |keep_alive| String::from_utf8(render("GET", "h:1", "/x", keep_alive).bytes.to_vec()).unwrap();
        assert!(text(true).starts_with("GET /x HTTP/1.1\r\nhost: h:1\r\n") && !text(true).contains("connection"));
        assert!(text(false).ends_with("connection: close\r\n\r\n"));
    }

    #[test]
    fn headers_of_ones_own_stand_before_the_end() {
        let request = render_with("GET", "h:1", "/x", &["body-conf: s10".to_owned()], false);
        let text = String::from_utf8(request.bytes.to_vec()).unwrap();
        assert!(text.ends_with("accept: */*\r\nbody-conf: s10\r\nconnection: close\r\n\r\n"), "{text}");
    }
}
