//! The body of a raw answer, for those who check answers after the fact. Never on a lane's time.

/// The body of the whole response `raw`, chunks joined; `None` where it is none.
pub fn body(raw: &[u8]) -> Option<Vec<u8>> {
    let mut rest = raw;
    loop {
        let mut fields = [httparse::EMPTY_HEADER; 256];
        let mut response = httparse::Response::new(&mut fields);
        let httparse::Status::Complete(length) = response.parse(rest).ok()? else { return None };
        let interim = response.code? < 200;
        let chunked = response.headers.iter().any(|field| {
            field.name.eq_ignore_ascii_case("transfer-encoding")
                && field.value.to_ascii_lowercase().ends_with(b"chunked")
        });
        rest = &rest[length..];
        if !interim {
            return if chunked { joined(rest) } else { Some(rest.to_vec()) };
        }
    }
}

fn joined(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let httparse::Status::Complete((at, size)) = httparse::parse_chunk_size(rest).ok()? else { return None };
        if size == 0 {
            return Some(body);
        }
        let end = at.checked_add(usize::try_from(size).ok()?)?;
        body.extend_from_slice(rest.get(at..end)?);
        rest = rest.get(end + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_what_is_behind_the_last_head() {
        assert_eq!(body(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").as_deref(), Some(&b"ok"[..]));
        let interim = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(body(interim).as_deref(), Some(&b"ok"[..]));
    }

    #[test]
    fn chunks_are_joined() {
        let raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
        assert_eq!(body(raw).as_deref(), Some(&b"abcde"[..]));
        assert_eq!(body(&raw[..raw.len() - 12]), None);
    }
}
