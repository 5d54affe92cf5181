//! Names the classes of requests that have no names of their own: those of a list by path, those of
//! a log by route. A log has a path for each record of an app, so what looks like an id does not
//! tell requests apart.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::secret::masked_word;
use model::{MOST_CLASSES, Request};

/// The class of all routes that are no class of their own.
const OTHERS: &str = "other paths";
/// A word of hexadecimal digits of this length or more is an id, such as a commit or a UUID without
/// dashes.
const LONG_HEX: usize = 16;

/// Makes the requests of each method and path (without query) a class, and gives their names;
/// none if there is only one, or more than can be told apart.
pub(crate) fn name_by_path(requests: &mut [Request]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut known: BTreeMap<String, u8> = BTreeMap::new();
    for request in requests.iter_mut() {
        let name = path_name(&request.bytes);
        if !known.contains_key(&name) {
            if names.len() == MOST_CLASSES {
                for request in requests.iter_mut() {
                    request.class = 0;
                }
                return Vec::new();
            }
            known.insert(name.clone(), names.len() as u8);
            names.push(name.clone());
        }
        request.class = known[&name];
    }
    if names.len() > 1 { names } else { Vec::new() }
}

/// Makes the requests of each route a class, and gives their names; none if there is only one. If
/// there are more than can be told apart, the least frequent routes share one class.
pub(crate) fn name_by_route(requests: &mut [Request]) -> Vec<String> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut counts: Vec<u64> = Vec::new();
    let mut routes: Vec<u32> = Vec::with_capacity(requests.len());
    for request in requests.iter() {
        let next = known.len();
        let number = *known.entry(route(&request.bytes)).or_insert(next);
        if number == next {
            counts.push(0);
        }
        counts[number] += 1;
        routes.push(number as u32);
    }
    if known.len() < 2 {
        return Vec::new();
    }
    let mut names: Vec<&String> = known.keys().collect();
    names.sort_by_key(|name| Reverse(counts[known[*name]]));
    let own = if names.len() > MOST_CLASSES { MOST_CLASSES - 1 } else { names.len() };
    // All others are in the class after these.
    let mut classes = vec![own as u8; counts.len()];
    for (class, name) in names[..own].iter().enumerate() {
        classes[known[*name]] = class as u8;
    }
    for (request, number) in requests.iter_mut().zip(&routes) {
        request.class = classes[*number as usize];
    }
    let others = (own < names.len()).then(|| OTHERS.to_owned());
    names[..own].iter().map(|name| (*name).clone()).chain(others).collect()
}

/// `/posts`, or `POST /posts` for another method than GET: what stands in the first line of a
/// request, without its query and its secrets.
fn path_name(request: &[u8]) -> String {
    named(request, str::to_owned)
}

/// The same of a route: `/posts/:id`.
fn route(request: &[u8]) -> String {
    let without_ids = |path: &str| {
        let segments = path.split('/').map(|part| if is_id(part) { ":id" } else { part });
        segments.collect::<Vec<_>>().join("/")
    };
    named(request, without_ids)
}

/// Method, unless it is GET, and what `shown` makes of the path.
fn named(request: &[u8], shown: impl Fn(&str) -> String) -> String {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let method = words.next().unwrap_or_default();
    let path = words.next().unwrap_or_default().split('?').next().unwrap_or_default();
    let path = shown(path);
    masked_word(&if method == "GET" { path } else { format!("{method} {path}") })
}

/// Whether a part of a path is a number, a UUID or a long hexadecimal word.
fn is_id(segment: &str) -> bool {
    let hex: String = segment.chars().filter(|char| *char != '-').collect();
    let is_number = !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit());
    is_number || hex.len() >= LONG_HEX && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(lines: impl IntoIterator<Item = String>) -> Vec<Request> {
        let request =
            |line: String| Request::new(format!("{line} HTTP/1.1\r\n").into_bytes(), false);
        lines.into_iter().map(request).collect()
    }

    #[test]
    fn neither_ids_nor_queries_tell_requests_apart() {
        for (line, name) in [
            ("GET /posts/17?page=2", "/posts/:id"),
            ("GET /posts/17/comments", "/posts/:id/comments"),
            ("HEAD /a/7c9e6679-7425-40de-944b-e07fc1f90ae7", "HEAD /a/:id"),
            (
                "GET /blobs/da39a3ee5e6b4b0d3255bfef95601890afd80709.js",
                "/blobs/da39a3ee5e6b4b0d3255bfef95601890afd80709.js",
            ),
            ("GET /blobs/da39a3ee5e6b4b0d3255", "/blobs/:id"),
            ("GET /v2/facade", "/v2/facade"),
            ("GET /", "/"),
        ] {
            assert_eq!(route(format!("{line} HTTP/1.1\r\nhost: h\r\n").as_bytes()), name);
        }
    }

    #[test]
    fn the_most_frequent_routes_are_classes_and_the_others_are_one() {
        let mut alike = requests((0..9).map(|n| format!("GET /posts/{n}")));
        assert!(name_by_route(&mut alike).is_empty());
        let rare = (0..300).map(|n| format!("GET /page{n}"));
        let frequent = (0..5).map(|_| "GET /search?q=1".to_owned());
        let mut many = requests(rare.chain(frequent));
        let names = name_by_route(&mut many);
        assert_eq!((names.len(), names[0].as_str()), (MOST_CLASSES, "/search"));
        assert_eq!(names[MOST_CLASSES - 1], OTHERS);
        let of = |class: usize| many.iter().filter(|it| usize::from(it.class) == class).count();
        assert_eq!((of(0), of(1)), (5, 1));
        assert_eq!(of(MOST_CLASSES - 1), 300 - (MOST_CLASSES - 2));
    }
}
