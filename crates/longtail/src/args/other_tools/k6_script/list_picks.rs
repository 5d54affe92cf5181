//! Requests for which a script of k6 picks something from a list: `URLS[Math.floor(Math.random() *
//! URLS.length)]`, `randomItem(URLS)`. Each of the list is as likely as another one, so they are
//! requests of a mix.

use std::collections::HashSet;

use super::script_requests::ScriptRequest;
use crate::args::other_tools::js_literals::{
    BEGIN, END, JsCall, declared_once, end_of_statement, is_of_name, parts,
};

/// Longer lists are files of requests.
const MOST_ITEMS: usize = 50;

/// The call of k6's library that picks from a list.
const LIBRARY: &str = "randomItem(";

/// The name and the index of `NAME[index]`, where the bracket stands at that place.
fn indexed(code: &str, at: usize) -> Option<(&str, &str)> {
    let begin = code[..at].rfind(|c| !is_of_name(c)).map_or(0, |before| before + 1);
    let name = Some(&code[begin..at]).filter(|name| !name.is_empty())?;
    let (_, behind) = parts(&code[at + 1..])?;
    Some((name, &code[at + 1..code.len() - behind.len() - 1]))
}

/// What is picked from a list, wherever it stands in a script.
struct ListPick<'c> {
    /// As it stands there.
    written: &'c str,
    /// What the list has, as it stands there.
    items: Vec<&'c str>,
}

impl ScriptRequest {
    /// The requests of these calls: one for each, or one for each of a list. Their weights say how
    /// often each is sent, so that those of one call are together as many as those of another.
    pub(super) fn all_of(code: &str, calls: &[&JsCall<'_>]) -> Vec<ScriptRequest> {
        let Some(pick) = ListPick::in_code(code) else {
            let each = calls.iter().enumerate();
            let found = each.filter_map(|(at, call)| Some((at, ScriptRequest::of(code, call)?)));
            return found.map(|(call, it)| ScriptRequest { call, ..it }).collect();
        };
        let shares = pick.items.len() as u32;
        let mut requests = Vec::new();
        for (at, call) in calls.iter().enumerate() {
            let Some(plain) = ScriptRequest::of(code, call) else { continue };
            let each = pick.items.iter().filter_map(|item| {
                let code = code.replace(pick.written, item);
                let arguments = call.arguments.iter().map(|it| it.replace(pick.written, item));
                let arguments: Vec<String> = arguments.collect();
                let arguments = arguments.iter().map(String::as_str).collect();
                ScriptRequest::of(&code, &JsCall { arguments, ..**call })
            });
            let each: Vec<ScriptRequest> =
                each.map(|it| ScriptRequest { call: at, shares, ..it }).collect();
            let is_same = each.iter().all(|it| it.is_same_as(&plain));
            if is_same || each.iter().any(|it| it.url.is_none()) {
                requests.push(ScriptRequest { call: at, weight: shares, shares, ..plain });
            } else {
                requests.extend(each);
            }
        }
        requests
    }

    /// Whether it is sent as another one is.
    fn is_same_as(&self, other: &ScriptRequest) -> bool {
        (&self.method, &self.url, &self.body, &self.headers, self.timeout)
            == (&other.method, &other.url, &other.body, &other.headers, other.timeout)
    }

    /// How many of these requests an iteration sends on average.
    pub(super) fn sent_by_iteration(requests: &[ScriptRequest]) -> f64 {
        let shares = requests.first().map_or(1, |request| request.shares);
        let weights: f64 = requests.iter().map(|request| f64::from(request.weight)).sum();
        weights / f64::from(shares)
    }

    /// Each request once, with the weight of all that are the same.
    pub(super) fn each_once(requests: Vec<ScriptRequest>) -> Vec<ScriptRequest> {
        let mut found: Vec<ScriptRequest> = Vec::new();
        for request in requests {
            let is_known = |it: &&mut ScriptRequest| it.is_same_as(&request) && it.url.is_some();
            match found.iter_mut().find(is_known) {
                Some(known) => known.weight += request.weight,
                None => found.push(request),
            }
        }
        found
    }
}

impl<'c> ListPick<'c> {
    /// The only one of a script; `None` if there is none, or the list is no literal.
    fn in_code(code: &'c str) -> Option<ListPick<'c>> {
        let mut seen = HashSet::new();
        let by_index = code.match_indices('[').filter_map(|(at, _)| {
            let (name, index) = indexed(code, at).filter(|it| seen.insert(*it))?;
            ListPick::by_index(code, name, index)
        });
        let by_library =
            code.match_indices(LIBRARY).filter_map(|(at, _)| ListPick::by_library(code, at));
        let mut all = by_index.chain(by_library);
        let first = all.next()?;
        all.all(|it| it.written == first.written).then_some(first)
    }

    /// `NAME[index]`.
    fn by_index(code: &'c str, name: &str, index: &str) -> Option<ListPick<'c>> {
        let written = format!("{name}[{index}]");
        let begin = code.find(&written)?;
        let pick =
            ListPick { written: &code[begin..begin + written.len()], items: items_of(code, name)? };
        let declared =
            declared_once(code, index).map(|(_, value)| &value[..end_of_statement(value)]);
        pick.has_index(declared.unwrap_or(index), name).then_some(pick)
    }

    /// `randomItem(NAME)` of k6's library, which begins at that place.
    fn by_library(code: &'c str, at: usize) -> Option<ListPick<'c>> {
        let is_own =
            code.contains(&format!("function {LIBRARY}")) || code[..at].ends_with(is_of_name);
        let (list, behind) = parts(&code[at + LIBRARY.len()..])?;
        let [name] = list[..] else { return None };
        let written = &code[at..code.len() - behind.len()];
        Some(ListPick { written, items: items_of(code, name)? }).filter(|_| !is_own)
    }

    /// Whether an index takes each of the list as often as another one, at random or in turns.
    fn has_index(&self, index: &str, name: &str) -> bool {
        let bare: String = index.chars().filter(|c| !c.is_whitespace()).collect();
        let of_all = format!("Math.random()*{name}.length");
        let draws = [
            format!("Math.floor({of_all})"),
            format!("parseInt({of_all})"),
            format!("~~({of_all})"),
            format!("({of_all})|0"),
            format!("'{BEGIN}0..{}{END}'", self.items.len() - 1),
        ];
        let turns = ["__ITER", "iterationInTest", "iterationInScenario", "iterationInInstance"];
        let turn = bare.strip_suffix(&format!("%{name}.length"));
        draws.contains(&bare)
            || turn.is_some_and(|count| {
                turns.contains(&count)
                    || count.starts_with("exec.") && turns.iter().any(|it| count.ends_with(it))
            })
    }
}

/// What a list of that name has, if it is a literal that nothing changes.
pub(super) fn items_of<'c>(code: &'c str, name: &str) -> Option<Vec<&'c str>> {
    let (_, value) = declared_once(code, name)?;
    let (items, _) = parts(value.strip_prefix('[')?)?;
    let changes = ["push", "pop", "shift", "unshift", "splice", "concat", "sort", "reverse"];
    let is_changed = changes.iter().any(|change| code.contains(&format!("{name}.{change}(")));
    let is_list = (2..=MOST_ITEMS).contains(&items.len()) && !is_changed;
    is_list.then_some(items)
}
