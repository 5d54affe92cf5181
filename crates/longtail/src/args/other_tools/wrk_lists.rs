//! Which of a list a script of wrk takes for each request: in turns, at random, or as often as
//! weights in a second list say.

use super::flags::WEIGHT;
use super::lua_literals::{LuaWord, body_of_request, is_of_name, local_value, parts, words};
use super::wrk_weights::HowOften;

/// How often a script takes each of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ListUse {
    /// As often as the others, one after the other.
    InTurns,
    /// As often as the others, at random.
    Drawn,
    /// So many times each.
    Weights(Vec<u32>),
    /// What decides is not plain.
    Unknown,
}

impl ListUse {
    /// That of several requests of a script, of which it is known how often each is sent if it decides
    /// that for each.
    pub(super) fn of_several(text: &str, how_often: &HowOften, count: usize) -> ListUse {
        match how_often {
            HowOften::Weights { weights, .. } => ListUse::Weights(weights.clone()),
            HowOften::Unknown => ListUse::Unknown,
            HowOften::Listed => ListUse::of_requests(text, count),
        }
    }

    /// Words for the weights of so many requests; `None` if each is sent as often as another one.
    pub(super) fn weights(&self, count: usize) -> Option<Vec<String>> {
        match self {
            ListUse::InTurns | ListUse::Drawn => None,
            ListUse::Weights(weights) => Some(weights.iter().map(u32::to_string).collect()),
            ListUse::Unknown => Some(vec![WEIGHT.to_owned(); count]),
        }
    }

    /// That of the list whose element is written here, as the path of a request.
    pub(super) fn of_path(text: &str, written: Option<&str>, count: usize) -> ListUse {
        let found = written.and_then(|written| {
            let (list, index) = local_value(text, written).unwrap_or(written).split_once('[')?;
            Some((list.trim(), *parts(index)?.first()?))
        });
        match found {
            Some((list, index)) => ListUse::of(text, list, index, count),
            None => ListUse::Unknown,
        }
    }

    /// That of `LIST[index]`, in a list of so many.
    pub(super) fn of(text: &str, list: &str, index: &str, count: usize) -> ListUse {
        let bare = bare(text);
        let index = self::bare(index);
        let index = index.as_str();
        let known = ListUse::of_value(&bare, list, index, count)
            .or_else(|| weights_of_loop(text, list, index, count).map(ListUse::Weights))
            .or_else(|| ListUse::of_variable(text, list, index, count));
        known.unwrap_or(ListUse::Unknown)
    }

    /// That of the list in which a script keeps requests that it has made before the load.
    fn of_requests(text: &str, count: usize) -> ListUse {
        let Some(body) = body_of_request(text) else { return ListUse::Unknown };
        let is_loop = |word: &str| ["for", "while", "repeat"].contains(&word);
        if words(text).iter().any(|it| is_loop(it.word)) {
            return ListUse::Unknown;
        }
        let mut indexed = words(body).into_iter().filter_map(|it| {
            let inside = it.behind.strip_prefix('[')?;
            let index = parts(inside)?;
            Some((it.word, *index.first()?))
        });
        match (indexed.next(), indexed.next()) {
            (Some((list, index)), None) => ListUse::of(text, list, index, count),
            _ => ListUse::Unknown,
        }
    }

    /// `math.random(#list)` or `i % #list + 1`, at the begin of this text; all of it but for what
    /// follows in a script.
    fn of_value(code: &str, list: &str, written: &str, count: usize) -> Option<ListUse> {
        let ends_with = |form: &str| written.strip_prefix(form).is_some_and(is_end_of_value);
        for most in [format!("#{list}"), count.to_string()] {
            let draws = [format!("math.random({most})"), format!("math.random(1,{most})")];
            if draws.iter().any(|form| ends_with(form)) {
                return Some(ListUse::Drawn);
            }
            let begin = written.trim_start_matches('(');
            let counter = &begin[..begin.find(|c| !is_of_name(c)).unwrap_or(begin.len())];
            let turns = [
                format!("{counter}%{most}+1"),
                format!("({counter}%{most})+1"),
                format!("(({counter}-1)%{most})+1"),
                format!("({counter}-1)%{most}+1"),
            ];
            let is_counted = code.contains(&format!("{counter}={counter}+1"))
                || code.contains(&format!("{counter}={written}"));
            if !counter.is_empty() && is_counted && turns.iter().any(|form| ends_with(form)) {
                return Some(ListUse::InTurns);
            }
        }
        None
    }

    /// That of a variable, of whose values each is plain.
    fn of_variable(text: &str, list: &str, name: &str, count: usize) -> Option<ListUse> {
        if name.is_empty() || !name.chars().all(is_of_name) {
            return None;
        }
        let code = bare(text);
        let length_of_body = body_of_request(text).map_or(0, str::len);
        let mut found = None;
        let mut begins_again = 0;
        for it in words(text) {
            let Some(value) = it.value().filter(|_| it.word == name) else { continue };
            let is_in_request = value.len() < length_of_body;
            let value = bare(value);
            if let Some(known) = ListUse::of_value(&code, list, &value, count) {
                found = Some(known);
            } else if value.strip_prefix(&format!("{name}+1")).is_some_and(is_end_of_value) {
                found = found.or(Some(ListUse::InTurns));
                begins_again += 1;
            } else if value.starts_with(['0', '1']) && is_end_of_value(&value[1..]) {
                begins_again += usize::from(is_in_request);
            } else {
                return None;
            }
        }
        // A counter goes on from the first one again, behind the last.
        let plain = code.replace(['(', ')', ';'], "");
        let wraps = [
            format!("{name}={name}+1if{name}>#{list}then{name}=1end"),
            format!("if{name}>=#{list}then{name}=1else{name}={name}+1end"),
            format!("if{name}==#{list}then{name}=1else{name}={name}+1end"),
            format!("if{name}>=#{list}then{name}=0end{name}={name}+1"),
            format!("if{name}==#{list}then{name}=0end{name}={name}+1"),
        ];
        let is_plain =
            begins_again == 0 || begins_again == 2 && wraps.iter().any(|wrap| plain.contains(wrap));
        found.filter(|_| is_plain)
    }
}

/// A text without what separates words.
fn bare(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Whether a value is over where this follows.
fn is_end_of_value(behind: &str) -> bool {
    !behind.starts_with(|c: char| "+-*/%^.[(<>=~".contains(c) || c.is_ascii_digit())
        && !["and", "or"].iter().any(|word| behind.starts_with(word))
}

/// The weights of a loop that adds them up until they reach a random number, and then takes that one
/// of the list: `for i, w in ipairs(weights) do sum = sum + w; if r <= sum then … list[i] …`.
fn weights_of_loop(text: &str, list: &str, index: &str, count: usize) -> Option<Vec<u32>> {
    let body = bare(body_of_request(text)?).replace(';', "");
    let taken = format!("{list}[{index}]");
    let head = &body[..body.find(&taken)?];
    let head = &head[head.rfind(&format!("for{index}"))? + "for".len() + index.len()..];
    let (table, weight, steps) = if let Some(behind) = head.strip_prefix(',') {
        let (weight, behind) = behind.split_once("inipairs(")?;
        let (table, steps) = behind.split_once(")do")?;
        (table, weight.to_owned(), steps)
    } else {
        let (table, steps) = head.strip_prefix("=1,#")?.split_once("do")?;
        (table, format!("{table}[{index}]"), steps)
    };
    let weights = numbers_of_list(text, table).filter(|weights| weights.len() == count)?;
    let (sum, steps) = steps.split_once('=')?;
    let steps = steps.strip_prefix(&format!("{sum}+{weight}if"))?;
    let (drawn, steps) = steps.split_once("<=")?;
    // Nothing else decides.
    steps.strip_prefix(&format!("{sum}then"))?.starts_with("returnwrk.format(").then_some(())?;
    let starts_at_0 = body.contains(&format!("{sum}=0"));
    let all: u32 = weights.iter().sum();
    let code = bare(text);
    let added_up = |name: &str| {
        let each = code.split(&format!("inipairs({table})do{name}={name}+")).nth(1);
        each.is_some_and(|_| code.contains(&format!("{name}=0")))
    };
    let begin = body.find(&format!("{drawn}=math.random("))?;
    let (most, _) = body[begin..].split_once('(')?.1.split_once(')')?;
    let most = most.strip_prefix("1,").unwrap_or(most);
    let is_of_all = most == all.to_string()
        || added_up(most)
        || numbers_of_variable(&code, most).is_some_and(|number| number == all);
    (starts_at_0 && is_of_all && drawn.chars().all(is_of_name)).then_some(weights)
}

/// The number that a script gives to a variable, if it does so once.
fn numbers_of_variable(code: &str, name: &str) -> Option<u32> {
    let declared = format!("local{name}=");
    let mut values = code.split(&declared).skip(1);
    let value = values.next().filter(|_| values.next().is_none())?;
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let others = code.matches(&format!("{name}=")).count();
    value[..digits].parse().ok().filter(|_| others == 1)
}

/// The numbers of `NAME = { 70, 20, 10 }`, if nothing changes that list.
fn numbers_of_list(text: &str, name: &str) -> Option<Vec<u32>> {
    let is_name = !name.is_empty() && name.chars().all(is_of_name);
    let all = words(text);
    let mut set = all.iter().filter(|it| it.word == name).filter_map(LuaWord::value);
    let list = set.next().filter(|_| is_name && set.next().is_none())?;
    let numbers = parts(list.strip_prefix('{')?)?.into_iter().map(|part| part.parse().ok());
    let numbers: Vec<u32> = numbers.collect::<Option<_>>()?;
    let code = bare(text);
    let is_changed = code.contains(&format!("insert({name}"))
        || code.split(&format!("{name}[")).skip(1).any(|behind| {
            let behind = behind.split_once(']').map_or("", |(_, behind)| behind);
            behind.starts_with('=') && !behind.starts_with("==")
        });
    (!is_changed && !numbers.contains(&0)).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_used_evenly_by_weights_or_in_an_unknown_way() {
        let by_weights = |draw: &str, comparison: &str| {
            format!(
                "local w = {{70, 20, 10}}\nlocal total = 0\nfor _, x in ipairs(w) do total = total + x end\nrequest = function()\n  local r = {draw}\n  local sum = 0\n  for i, x in ipairs(w) do\n    sum = sum + x\n    if r {comparison} sum then return wrk.format('GET', p[i]) end\n  end\nend"
            )
        };
        let weights = || ListUse::Weights(vec![70, 20, 10]);
        let request = |before: &str| format!("local i = 0\nrequest = function()\n  {before}\nend");
        for (index, script, expected) in [
            ("i % #p + 1", request("i = i + 1"), ListUse::InTurns),
            ("i % 3 + 1", request("i = i + 1"), ListUse::InTurns),
            ("i", request("i = (i % #p) + 1"), ListUse::InTurns),
            ("i", request("i = i + 1; if i > #p then i = 1 end"), ListUse::InTurns),
            ("i", request("if i == #p then i = 1 else i = i + 1 end"), ListUse::InTurns),
            ("math.random(#p)", request(""), ListUse::Drawn),
            ("math.random(1, 3)", request(""), ListUse::Drawn),
            ("k", request("local k = math.random(#p)"), ListUse::Drawn),
            ("i", by_weights("math.random(total)", "<="), weights()),
            ("i", by_weights("math.random(1, 100)", "<="), weights()),
            // What decides is not plain.
            ("i", by_weights("math.random(total)", "<"), ListUse::Unknown),
            ("i", by_weights("math.random(90)", "<="), ListUse::Unknown),
            ("i", by_weights("pick()", "<="), ListUse::Unknown),
            ("i", request("i = i + 1; if i >= #p then i = 1 end"), ListUse::Unknown),
            ("i", request("i = i + 1"), ListUse::Unknown),
            ("i", request("i = math.random(#p) if i > 1 then i = 1 end"), ListUse::Unknown),
            ("i % #p + 1", request(""), ListUse::Unknown),
            ("k", request("local k = math.random(#p) - 1"), ListUse::Unknown),
            ("k", request("local k = pick()"), ListUse::Unknown),
            ("1", request(""), ListUse::Unknown),
            ("math.random(2)", request(""), ListUse::Unknown),
        ] {
            assert_eq!(ListUse::of(&script, "p", index, 3), expected, "{index} in {script}");
        }
    }
}
