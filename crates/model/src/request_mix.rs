//! What a load sends ([`RequestMix`]): rendered requests, the classes whose figures are told apart,
//! and which request is the n-th.
//!
//! Everything is decided before the start. The n-th request of a run is a pure function of its
//! number and the seed, whatever lane sends it, so a run can be repeated.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::pace::{mix, random_bits};

/// The most classes of a mix. Each lane has a histogram for each of them.
pub const MOST_CLASSES: usize = 200;

/// The host that requests are rendered for before it is known where their server will listen.
pub const ANY_HOST: &str = "longtail.invalid";

/// Keeps the draws of requests apart from those of the gaps between them, which have the same seed.
const ORDER: u64 = 0x006F_7264_6572;

/// Whether a name that a user typed means the class of this name: `GET /search` is `/search`, too.
pub fn means_class(typed: &str, class: &str) -> bool {
    typed == class || typed.strip_prefix("GET ") == Some(class)
}

/// A rendered request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Head and body as sent over the wire.
    pub bytes: Arc<[u8]>,
    /// Whether the method is HEAD: its response has no body, whatever its head says (RFC 9110
    /// section 9.3.2).
    pub is_head: bool,
    /// The number of its class; 0 where the mix has no classes.
    #[serde(default)]
    pub class: u8,
    /// Where the value of its [`QueueHeader`](crate::QueueHeader) begins, if it has one.
    #[serde(default)]
    pub queue_stamp: Option<u32>,
}

impl Request {
    /// A request of no particular class.
    pub fn new(bytes: impl Into<Arc<[u8]>>, is_head: bool) -> Request {
        Request { bytes: bytes.into(), is_head, class: 0, queue_stamp: None }
    }

    /// The same for the server at `authority`, if it was rendered for [`ANY_HOST`].
    #[must_use]
    pub fn for_host(&self, authority: &str) -> Request {
        let line = format!("\r\nhost: {ANY_HOST}\r\n");
        let is_host = |part: &[u8]| part.eq_ignore_ascii_case(line.as_bytes());
        let Some(at) = self.bytes.windows(line.len()).position(is_host) else {
            return self.clone();
        };
        let host = format!("\r\nhost: {authority}\r\n");
        let rest = &self.bytes[at + line.len()..];
        let bytes = [&self.bytes[..at], host.as_bytes(), rest].concat();
        Request { bytes: bytes.into(), ..self.clone() }
    }

    /// The path that a GET asks for; `None` for other methods.
    pub fn path_of_get(&self) -> Option<&str> {
        let line = self.bytes.strip_prefix(b"GET ")?;
        let end = line.iter().position(|byte| *byte == b' ')?;
        std::str::from_utf8(&line[..end]).ok()
    }
}

/// Requests that take turns, with one weight for all of them: a line of a mix, expanded to a
/// request for each value of its variables.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestGroup {
    /// The first of them, by its index among all requests.
    pub first: u32,
    /// How many there are, at least one.
    pub count: u32,
    /// How often one of them is sent, relative to the weights of the other groups; above 0.
    pub weight: f64,
}

/// What a load sends; at least one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestMix {
    requests: Vec<Request>,
    /// The names of the classes; empty where requests are not told apart.
    classes: Vec<String>,
    order: RequestOrder,
}

/// Which request is the n-th.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum RequestOrder {
    /// One after the other, then again from the first.
    Sequential,
    /// The group is drawn at random by its weight, independently of the other draws.
    Drawn { stream: u64, chances: Vec<GroupChance> },
}

/// A row of Walker's alias table: with as many rows as groups, one draw of a row and one
/// comparison choose a group by its weight (Vose, IEEE TSE 17, 1991).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct GroupChance {
    /// Draws below this are of the row's own group, the others of `otherwise`.
    below: u32,
    /// The number of the other group.
    otherwise: u32,
    /// The row's own group.
    first: u32,
    count: u32,
}

impl RequestMix {
    /// The same request each time.
    pub fn of_one(request: Request) -> RequestMix {
        RequestMix { requests: vec![request], classes: Vec::new(), order: RequestOrder::Sequential }
    }

    /// Requests that are sent one after the other, then again from the first.
    ///
    /// # Panics
    /// If there is none.
    pub fn in_order(requests: Vec<Request>) -> RequestMix {
        assert!(!requests.is_empty(), "a load sends something");
        RequestMix { requests, classes: Vec::new(), order: RequestOrder::Sequential }
    }

    /// Requests that are drawn at random, all of them alike. The same seed always gives the same
    /// order.
    ///
    /// # Panics
    /// If there is none.
    pub fn at_random(requests: Vec<Request>, seed: u64) -> RequestMix {
        let one = |first| RequestGroup { first, count: 1, weight: 1.0 };
        let groups: Vec<RequestGroup> = (0..requests.len() as u32).map(one).collect();
        RequestMix::by_weight(requests, &groups, seed)
    }

    /// Requests that are drawn at random by the weight of their group.
    ///
    /// # Panics
    /// If there is no group, or a group has no requests.
    pub fn by_weight(requests: Vec<Request>, groups: &[RequestGroup], seed: u64) -> RequestMix {
        let has_all = |group: &RequestGroup| {
            group.count > 0 && group.first as usize + group.count as usize <= requests.len()
        };
        assert!(!groups.is_empty() && groups.iter().all(has_all), "groups have requests");
        let order = RequestOrder::Drawn { stream: mix(seed ^ ORDER), chances: alias_table(groups) };
        RequestMix { requests, classes: Vec::new(), order }
    }

    /// The same with classes of these names, which the requests name by their number.
    ///
    /// # Panics
    /// If a request is of a class that has no name.
    #[must_use]
    pub fn with_classes(mut self, classes: Vec<String>) -> RequestMix {
        let is_named = |request: &Request| usize::from(request.class) < classes.len().max(1);
        assert!(self.requests.iter().all(is_named), "each class has a name");
        self.classes = classes;
        self
    }

    /// The names of its classes; empty where requests are not told apart.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// All its requests.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// The request with this index.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn request(&self, index: usize) -> &Request {
        &self.requests[index]
    }

    /// The class of the `n`-th request.
    pub fn class_of(&self, n: u64) -> u8 {
        self.requests[self.index(n)].class
    }

    /// The same requests by the same weights, drawn anew.
    #[must_use]
    pub fn drawn_anew(&self, seed: u64) -> RequestMix {
        let order = match &self.order {
            RequestOrder::Sequential => RequestOrder::Sequential,
            RequestOrder::Drawn { chances, .. } => {
                RequestOrder::Drawn { stream: mix(seed ^ ORDER), chances: chances.clone() }
            }
        };
        RequestMix { requests: self.requests.clone(), classes: self.classes.clone(), order }
    }

    /// The requests of this class alone, one after the other.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn of_class(&self, class: u8) -> RequestMix {
        let of_class = self.requests.iter().filter(|request| request.class == class);
        RequestMix::in_order(of_class.cloned().collect()).with_classes(self.classes.clone())
    }

    /// The same mix with each request replaced by what `change` makes of it.
    #[must_use]
    pub fn map(&self, change: impl Fn(&Request) -> Request) -> RequestMix {
        RequestMix { requests: self.requests.iter().map(change).collect(), ..self.clone() }
    }

    /// The index of the `n`-th request. The requests of a group take turns by the number in the
    /// run, so none comes again before `count` requests have been sent.
    #[inline]
    pub fn index(&self, n: u64) -> usize {
        match &self.order {
            _ if self.requests.len() == 1 => 0,
            RequestOrder::Sequential => (n % self.requests.len() as u64) as usize,
            RequestOrder::Drawn { stream, chances } => {
                let drawn = random_bits(*stream, n);
                // The high half chooses the row, the low half one of its two groups.
                let row = ((drawn >> 32) * chances.len() as u64) >> 32;
                let mut chance = &chances[row as usize];
                if drawn as u32 >= chance.below {
                    chance = &chances[chance.otherwise as usize];
                }
                (chance.first + n as u32 % chance.count) as usize
            }
        }
    }
}

/// Each row keeps a part of its draws for its own group, and gives the rest to a group whose weight
/// is more than a row's share.
fn alias_table(groups: &[RequestGroup]) -> Vec<GroupChance> {
    /// How many different draws a row has: 2^32.
    const DRAWS: f64 = 4_294_967_296.0;
    let sum: f64 = groups.iter().map(|group| group.weight).sum();
    let mut left: Vec<f64> =
        groups.iter().map(|group| group.weight / sum * groups.len() as f64).collect();
    let mut chances: Vec<GroupChance> = groups
        .iter()
        .zip(0..)
        .map(|(group, number)| GroupChance {
            below: u32::MAX,
            otherwise: number,
            first: group.first,
            count: group.count,
        })
        .collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..groups.len()).partition(|number| left[*number] < 1.0);
    while let Some(lesser) = small.pop() {
        let Some(greater) = large.last().copied() else { break };
        chances[lesser].below = (left[lesser] * DRAWS) as u32;
        chances[lesser].otherwise = greater as u32;
        left[greater] -= 1.0 - left[lesser];
        if left[greater] < 1.0 {
            large.pop();
            small.push(greater);
        }
    }
    chances
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(class: u8) -> Request {
        Request { class, ..Request::new(Vec::new(), false) }
    }

    /// The chi-square of counts against those that are expected.
    fn deviation(counts: &[f64], expected: &[f64]) -> f64 {
        let of_each = counts.iter().zip(expected);
        of_each.map(|(count, expected)| (count - expected).powi(2) / expected).sum()
    }

    /// How often each class is sent among the first `draws` requests.
    fn counts(mix: &RequestMix, classes: usize, draws: u64) -> Vec<f64> {
        let mut counts = vec![0.0; classes];
        (0..draws).for_each(|n| counts[usize::from(mix.class_of(n))] += 1.0);
        counts
    }

    #[test]
    fn a_list_is_sent_in_order_or_all_alike_at_random() {
        let requests = || (0..3).map(request).collect::<Vec<_>>();
        let ordered = RequestMix::in_order(requests());
        assert_eq!((0..5).map(|n| ordered.index(n)).collect::<Vec<_>>(), [0, 1, 2, 0, 1]);
        let drawn = RequestMix::at_random(requests(), 3);
        let expected = [20_000.0 / 3.0; 3];
        // 99.9 % of samples are below, at two degrees of freedom.
        assert!(deviation(&counts(&drawn, 3, 20_000), &expected) < 13.8);
        assert_eq!(RequestMix::of_one(request(0)).index(u64::MAX), 0);
    }

    #[test]
    fn classes_are_drawn_by_their_weights_whatever_the_seed() {
        let weights = [80.0, 15.0, 5.0, 0.5];
        let requests: Vec<Request> = (0..4).map(request).collect();
        let groups: Vec<RequestGroup> = weights
            .iter()
            .zip(0..)
            .map(|(weight, first)| RequestGroup { first, count: 1, weight: *weight })
            .collect();
        let draws = 50_000;
        let expected = weights.map(|weight| draws as f64 * weight / 100.5);
        let squares: Vec<f64> = (0..20)
            .map(|seed| {
                let mix = RequestMix::by_weight(requests.clone(), &groups, seed);
                deviation(&counts(&mix, 4, draws), &expected)
            })
            .collect();
        // Three degrees of freedom each: one in 10^4 is above 21.1; the sum has 60, and its 99.9 %
        // are from 29 to 103.
        let sum: f64 = squares.iter().sum();
        assert!(squares.iter().all(|square| *square < 21.1), "{squares:?}");
        assert!((29.0..103.0).contains(&sum), "{sum}: {squares:?}");
        let again = |seed| {
            let mix = RequestMix::by_weight(requests.clone(), &groups, seed);
            (0..100).map(|n| mix.index(n)).collect::<Vec<_>>()
        };
        assert_eq!(again(7), again(7));
        assert_ne!(again(7), again(8));
    }

    #[test]
    fn a_request_for_any_host_is_sent_to_the_host_that_is_known_later() {
        let bytes = b"GET /a?b HTTP/1.1\r\nHost: longtail.invalid\r\nX: y\r\n\r\n";
        let request = Request { class: 3, ..Request::new(bytes.as_slice(), false) };
        assert_eq!(request.path_of_get(), Some("/a?b"));
        let sent = request.for_host("127.0.0.1:3000");
        let expected = b"GET /a?b HTTP/1.1\r\nhost: 127.0.0.1:3000\r\nX: y\r\n\r\n";
        assert_eq!((&*sent.bytes, sent.class), (expected.as_slice(), 3));
        let of_its_own = Request::new(b"POST / HTTP/1.1\r\nHost: a\r\n\r\n".as_slice(), false);
        assert_eq!(of_its_own.for_host("b"), of_its_own);
        assert_eq!(of_its_own.path_of_get(), None);
    }

    #[test]
    fn the_requests_of_a_group_do_not_come_again_before_all_had_their_turn() {
        let requests: Vec<Request> = (0..50).map(|n| request(u8::from(n >= 10))).collect();
        let groups = [
            RequestGroup { first: 0, count: 10, weight: 1.0 },
            RequestGroup { first: 10, count: 40, weight: 3.0 },
        ];
        let mix = RequestMix::by_weight(requests, &groups, 1);
        let sent: Vec<usize> = (0..10_000).map(|n| mix.index(n)).collect();
        for (index, count) in [(3, 10), (17, 40)] {
            let times: Vec<usize> = (0..sent.len()).filter(|n| sent[*n] == index).collect();
            assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= count));
        }
        let seen: std::collections::BTreeSet<usize> = sent.into_iter().collect();
        assert_eq!(seen.len(), 50, "all are sent");
    }
}
