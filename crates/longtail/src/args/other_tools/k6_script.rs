//! What a script of k6 says plainly of its load: literals in `export const options = { … }` and in
//! its requests. Nothing is run, and nothing is guessed: whatever is computed or imported is not
//! known, and a word stands for it.

use judge::words::listed;
use model::Nanos;

use super::flags::{BODY, DURATION, METHOD, RATE, VUS, in_five_digits, with_value};
use super::js_literals::{
    JsCall, JsValue, TEMPLATE_OF_URL, body_of_function, calls, calls_of_batch, exported_object,
    form, opened_file, parts, value_with_constants, with_environment, with_groups_inline,
    without_comments,
};
use crate::args::mistakes::mistaken_values::k6_condition;

/// Options that are switches of k6's command line, too.
const SWITCHES: [(&str, &str); 3] = [
    ("noConnectionReuse", "no-connection-reuse"),
    ("noVUConnectionReuse", "no-vu-connection-reuse"),
    ("insecureSkipTLSVerify", "insecure-skip-tls-verify"),
];
/// Options that change the load, and are not taken.
const NOT_TAKEN: [&str; 8] = [
    "blacklistIPs",
    "blockHostnames",
    "dns",
    "hosts",
    "localIPs",
    "minIterationDuration",
    "tlsAuth",
    "tlsVersion",
];
/// Calls around a request that is not sent exactly once in each iteration.
const LOOPS: [&str; 3] = [".forEach", ".map", ".reduce"];

/// What a script says of its load.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct K6Script {
    /// Flags of k6 that say the same as its options: each with its value, which is empty for a
    /// switch.
    pub(super) flags: Vec<(&'static str, String)>,
    /// Whether its options do not say how many virtual users there are: k6's default is one.
    pub(super) has_one_user: bool,
    /// Whether its options say neither how long nor how often: k6 then runs it once.
    pub(super) runs_once: bool,
    /// What its scenarios or stages say; beside them k6 ignores its `vus` and `duration`.
    pub(super) shape: Option<LoadShape>,
    /// Our words for its thresholds.
    pub(super) thresholds: Vec<String>,
    /// Our words for its requests, but for the URL.
    pub(super) request: Vec<String>,
    /// The URL of its requests, if it is plain.
    pub(super) url: Option<String>,
    /// How many requests each iteration sends that are taken, if that is known and more than one;
    /// else 0.
    pub(super) requests_each: u32,
    /// How many more it sends, of which only the user knows what to write into a mix.
    pub(super) requests_left_out: u32,
    /// Why that is not known: how its requests are sent.
    pub(super) is_uncounted: Option<&'static str>,
    /// Whether it follows no redirect.
    pub(super) follows_nothing: bool,
    pub(super) pauses: Pauses,
    /// What it has that none of these says, each with our flag for it.
    pub(super) not_taken: Vec<String>,
    /// What its options have that runs beside each other, if that is more than one.
    pub(super) scenarios: Vec<ScenarioStart>,
    /// Variables of its environment without a value or a default.
    pub(super) missing: Vec<String>,
}

/// A scenario among several.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScenarioStart {
    pub(super) name: String,
    /// When it begins, for a person: `30s after the start`.
    pub(super) when: String,
}

impl ScenarioStart {
    /// Those of options with more than one.
    fn all_in(options: &JsValue) -> Vec<ScenarioStart> {
        let scenarios = options.field("scenarios").map_or(&[][..], JsValue::fields);
        if scenarios.len() < 2 {
            return Vec::new();
        }
        let start = |scenario: &JsValue| match scenario.field("startTime") {
            None => "from the start".to_owned(),
            Some(text) if text.text().is_some_and(is_no_time) => "from the start".to_owned(),
            Some(value) => match time(value) {
                Some(time) => format!("{time} after the start"),
                None => "at its startTime".to_owned(),
            },
        };
        let found = scenarios.iter();
        found.map(|(name, it)| ScenarioStart { name: name.clone(), when: start(it) }).collect()
    }
}

/// Whether a time is none: `0s`.
fn is_no_time(text: &str) -> bool {
    text.parse::<Nanos>().is_ok_and(|time| time == Nanos::ZERO)
}

/// Options with one of their scenarios alone.
fn with_one_scenario(options: &JsValue, name: &str) -> JsValue {
    let one = |scenarios: &JsValue| {
        let found = scenarios.field(name).cloned().unwrap_or(JsValue::Computed);
        JsValue::Object(vec![(name.to_owned(), found)])
    };
    let fields = options.fields().iter().map(|(field, value)| {
        let value = if field == "scenarios" { one(value) } else { value.clone() };
        (field.clone(), value)
    });
    JsValue::Object(fields.collect())
}

/// The pauses of an iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Pauses {
    #[default]
    None,
    /// There are some, of a length or number that is not plain.
    Unknown,
    Known {
        /// The one behind each request; where it pauses otherwise, the mean of it.
        behind_each: Nanos,
        in_all: Nanos,
        /// What is otherwise about that pause, for a person.
        said: Option<String>,
    },
}

/// How much load there is, and how long, as scenarios or stages say it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoadShape {
    /// Our words, some of which may stand for what is not known.
    pub(super) words: Vec<String>,
    /// What it is, for a person: a sentence each.
    pub(super) said: Vec<String>,
    /// Whether iterations come at a rate, however slow the server is.
    pub(super) is_open: bool,
    /// How many iterations a second begin, and how many virtual users there are for them, if both
    /// are plain.
    pub(super) iterations: Option<IterationRate>,
}

/// An arrival rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct IterationRate {
    /// How many iterations begin in a second, at the highest rate.
    pub(super) per_s: f64,
    /// The most virtual users for them.
    pub(super) users: u32,
}

/// What becomes of an iteration of an arrival rate that comes too early.
const DROPS: &str = "k6 drops an iteration for which no VU is free (dropped_iterations), ours waits and counts from when it was due (--late skip drops it)";

impl K6Script {
    /// That of a text; `None` if it is no script of k6. `given`: the variables of its environment.
    /// `scenario`: the one of several that is meant.
    pub(super) fn in_text(
        text: &str,
        given: &dyn Fn(&str) -> Option<String>,
        scenario: Option<&str>,
    ) -> Option<K6Script> {
        let environment = with_environment(&without_comments(text), given);
        let code = with_random_numbers(&environment.code);
        let has_options = code.contains("options");
        let all_options = exported_object(&code, "options");
        let scenarios = all_options.as_ref().map(ScenarioStart::all_in).unwrap_or_default();
        let options = match scenario {
            Some(name) => all_options.as_ref().map(|options| with_one_scenario(options, name)),
            None => all_options.clone(),
        };
        let users = options.as_ref().and_then(most_users);
        let numbered = users.and_then(|users| with_user_numbers(&code, users));
        let has_user_numbers = numbered.is_some();
        let code = numbered.unwrap_or(code);
        let functions = functions_of(options.as_ref());
        let body = match &functions[..] {
            [one] => body_of_function(&code, one).map(with_groups_inline),
            _ => None,
        };
        if options.is_none() && body.is_none() {
            return None;
        }
        let mut script =
            K6Script { missing: environment.missing, scenarios, ..K6Script::default() };
        let mut once: Vec<String> = Vec::new();
        let mut repeated = code.clone();
        for name in RUN_ONCE {
            if let Some(body) = body_of_function(&code, name) {
                repeated = repeated.replacen(body, "", 1);
                once.push(format!("its {name}() (runs once)"));
            }
        }
        // What other scenarios do is no part of this one, unless it calls their functions.
        for name in functions_of(all_options.as_ref()) {
            let is_called = body.as_deref().is_some_and(|body| body.contains(&format!("{name}(")));
            if scenario.is_some()
                && !functions.contains(&name)
                && !is_called
                && let Some(other) = body_of_function(&code, &name)
            {
                repeated = repeated.replacen(other, "", 1);
            }
        }
        let all = with_batches(calls(&repeated));
        let of_body = body.as_deref().map(|body| with_batches(calls(body)));
        // An iteration may send several requests, and a rate of ours is of requests.
        let mut requests = K6Script::default();
        if let Some(of_body) = &of_body {
            requests.take_requests(&code, &all, of_body);
        }
        let each = requests.requests_each.max(1);
        match &options {
            Some(options) => script.take_options(options, each, scenario),
            None if has_options => {
                script.not_taken.push("its options, which are no plain literals".to_owned());
            }
            None => {
                script.has_one_user = true;
                script.runs_once = true;
            }
        }
        if let Some(of_body) = &of_body {
            script.take_requests(&code, &all, of_body);
        } else if functions == ["default"] {
            if all.iter().any(|call| method_of(call).is_some() || call.name == "http.batch") {
                script.not_take("its requests, headers, timeouts and sleep()".to_owned());
            }
        } else {
            let names: Vec<String> = functions.iter().map(|name| format!("{name}()")).collect();
            let each_of = if names.len() > 1 { "each of " } else { "" };
            script.not_take(format!(
                "what {each_of}{} does: requests, headers, timeouts and sleep()",
                listed(&names)
            ));
        }
        let batches = calls(&repeated).into_iter().filter(|call| call.name == "http.batch");
        if let Some(most) = batches.filter_map(|it| Some(calls_of_batch(&it)?.len())).max() {
            let users = options.as_ref().and_then(|it| it.field("vus")?.count());
            let as_many = match users {
                Some(users) => {
                    format!("-c {} for its {users} VUs", users.saturating_mul(most as u32))
                }
                None => format!("multiply -c by {most}"),
            };
            script.not_take(format!("that http.batch sends {most} requests at once ({as_many})"));
        }
        for what in once {
            script.not_take(what);
        }
        script.name_additions(&code);
        script.name_numbers(&code, users.filter(|_| has_user_numbers));
        Some(script)
    }

    /// Names the numbers of its VUs, of which there are `users`, and of its iterations.
    fn name_numbers(&mut self, code: &str, users: Option<u32>) {
        // Where its URL is not in the line, nothing is drawn.
        let drawn = users.filter(|users| {
            let range = format!("{{1..{users}}}");
            self.request.iter().any(|word| word.contains(&range))
        });
        if let Some(users) = drawn {
            self.not_take(format!(
                "that each VU has its own __VU (here each request draws one of the 1 to {users} of the script)"
            ));
        }
        let iteration = "__ITER";
        if code.contains(iteration) && !self.not_taken.iter().any(|it| it.contains(iteration)) {
            self.not_take(format!("its {iteration}, the number of an iteration"));
        }
    }

    /// `each`: how many requests an iteration sends. `scenario`: the one of several that is meant.
    fn take_options(&mut self, options: &JsValue, each: u32, scenario: Option<&str>) {
        self.shape = LoadShape::of(options, each);
        let scenarios = options.field("scenarios").map_or(&[][..], JsValue::fields);
        if let (Some(shape), [(_, one)], None) = (&mut self.shape, scenarios, scenario)
            && let Some(start) = one.field("startTime").and_then(time)
        {
            shape
                .said
                .push(format!("its startTime is left out: ours begins at once, not after {start}"));
        }
        if self.shape.is_none() {
            let count = |name: &str| Some((options.field(name)?.count()?).to_string());
            let found = [
                ("vus", count("vus")),
                ("duration", options.field("duration").and_then(time).map(|time| time.to_string())),
                ("iterations", count("iterations")),
            ];
            self.flags.extend(found.into_iter().filter_map(|(name, value)| Some((name, value?))));
            self.runs_once =
                ["duration", "iterations"].iter().all(|name| options.field(name).is_none());
            self.has_one_user = options.field("vus").is_none();
        }
        if let Some(rps) = options.field("rps").and_then(JsValue::count) {
            self.flags.push(("rps", rps.to_string()));
        }
        for (option, flag) in SWITCHES {
            if options.field(option) == Some(&JsValue::Bool(true)) {
                self.flags.push((flag, String::new()));
            }
        }
        self.follows_nothing =
            options.field("maxRedirects").and_then(JsValue::number).is_some_and(|most| most == 0.0);
        if let Some(agent) = options.field("userAgent").and_then(JsValue::text) {
            self.flags.push(("user-agent", agent.to_owned()));
        }
        for (name, _) in options.fields() {
            if NOT_TAKEN.contains(&name.as_str()) {
                let flag = if name == "hosts" { " (--resolve)" } else { "" };
                self.not_taken.push(format!("its option {name}{flag}"));
            }
        }
        if let Some(thresholds) = options.field("thresholds") {
            self.take_thresholds(thresholds, scenario);
        }
    }

    /// `http_req_duration: ['p(95)<200']`, where a threshold may be an object with a text in it.
    /// Of a scenario among several it takes what is of all of them, but for counts, and its own.
    fn take_thresholds(&mut self, thresholds: &JsValue, scenario: Option<&str>) {
        for (metric, limits) in thresholds.fields() {
            let of_scenario = scenario
                .and_then(|_| metric.split_once("{scenario:")?.1.strip_suffix('}').map(str::trim));
            if of_scenario.is_some() && of_scenario != scenario {
                continue;
            }
            let metric = match of_scenario {
                Some(_) => metric.split('{').next().unwrap_or(metric),
                None => metric,
            };
            let counts_all = scenario.is_some() && of_scenario.is_none() && metric == "http_reqs";
            let limits = match limits {
                JsValue::List(limits) => &limits[..],
                one => std::slice::from_ref(one),
            };
            for limit in limits {
                let text = limit.field("threshold").unwrap_or(limit).text();
                let condition = text.and_then(|text| k6_condition(&format!("{metric}:{text}")));
                match condition.filter(|_| !counts_all) {
                    Some(condition) => {
                        self.thresholds.extend(["--expect".to_owned(), condition]);
                    }
                    None => self.not_take(unknown_threshold(metric, text)),
                }
                if limit.field("abortOnFail").is_some() {
                    self.not_take("abortOnFail (--stop-if)".to_owned());
                }
            }
        }
        if thresholds == &JsValue::Computed {
            self.not_take("its thresholds (--expect)".to_owned());
        }
    }

    /// Names what it does beside its requests.
    fn name_additions(&mut self, code: &str) {
        let calls = calls(code);
        let has_call = |names: &[&str]| calls.iter().any(|call| names.contains(&call.name));
        if has_call(&["http.setResponseCallback"]) || code.contains("responseCallback:") {
            self.not_take("which statuses it takes for good (--check status=200)".to_owned());
        }
        if code.contains("k6/metrics") && has_call(&["Trend", "Rate", "Counter", "Gauge"]) {
            self.not_take("its own metrics".to_owned());
        }
        if code.contains("handleSummary") {
            self.not_take("its handleSummary() (-o FILE)".to_owned());
        }
    }

    fn not_take(&mut self, what: String) {
        if !self.not_taken.contains(&what) {
            self.not_taken.push(what);
        }
    }

    /// Reads the requests: all calls of the script, and those of an iteration.
    fn take_requests(&mut self, code: &str, all: &[JsCall<'_>], of_body: &[JsCall<'_>]) {
        let has_batch = all.iter().any(|call| call.name == "http.batch");
        let is_request = |call: &&JsCall<'_>| method_of(call).is_some();
        let count = all.iter().filter(is_request).count();
        let why_uncounted = why_uncounted(all, of_body);
        let requests = match why_uncounted {
            None => ScriptRequest::all_in(code, of_body),
            Some(_) => Vec::new(),
        };
        let is_read = match &requests[..] {
            [] => false,
            [request] if request.url.as_deref().is_none_or(|url| !varies(url)) => {
                self.take_request(request);
                true
            }
            several => self.take_mix(several) || self.take_mix_of_plain(several),
        };
        let taken = if is_read { requests.len() - self.requests_left_out as usize } else { 0 };
        let sleeps = all.iter().filter(|call| call.name == "sleep").count();
        if sleeps > 0 {
            self.take_pauses(code, of_body, sleeps, taken);
        }
        if !is_read {
            self.is_uncounted = why_uncounted.filter(|_| count > 0 || has_batch);
            let unread = all.iter().filter(is_request);
            let unread: Vec<_> = unread.filter_map(|call| ScriptRequest::of(code, call)).collect();
            match &unread[..] {
                // However often it is sent, it is this one.
                [request] if !has_batch => self.take_request(request),
                several
                    if !has_batch
                        && of_body.iter().filter(is_request).count() == count
                        && (self.take_mix(several) || self.take_mix_of_plain(several)) =>
                {
                    (self.requests_each, self.requests_left_out) = (0, 0);
                    self.not_take(format!(
                        "how often it sends each request, some of them {}: --mix takes weights ('GET /a 9, GET /b 1')",
                        why_uncounted.unwrap_or_default()
                    ));
                }
                _ => {
                    self.not_take(match count {
                        0 if !has_batch => "its requests".to_owned(),
                        _ => format!(
                            "several requests{}, with their URLs, bodies and headers (--mix or --requests FILE)",
                            obstacle(why_uncounted, &requests)
                        ),
                    });
                    if !unread.is_empty() {
                        self.take_rest(&unread);
                    }
                }
            }
        }
        let checks: Vec<&JsCall<'_>> = all.iter().filter(|call| call.name == "check").collect();
        match status_of_checks(&checks) {
            // A check of ours is of all responses.
            Some((status, others)) if checks.len() == count && !has_batch => {
                self.request.extend(["--check".to_owned(), format!("status={status}")]);
                if others > 0 {
                    self.not_take(format!("its other checks ({})", known_checks(&checks)));
                }
            }
            _ if checks.is_empty() => {}
            Some(_) => self.not_take(
                "its checks of some of its requests (--check is of all responses)".to_owned(),
            ),
            None => self.not_take(format!("its checks ({})", known_checks(&checks))),
        }
    }

    /// Takes the pauses of an iteration of so many requests, 0 if they are not known. `sleeps`: how
    /// many the script has.
    fn take_pauses(&mut self, code: &str, of_body: &[JsCall<'_>], sleeps: usize, requests: usize) {
        let pauses = Pause::all_in(code, of_body);
        let all: f64 = pauses.iter().map(|pause| pause.mean).sum();
        if requests == 0 || pauses.len() != sleeps || all <= 0.0 {
            self.pauses = Pauses::Unknown;
            return;
        }
        let behind_each = Nanos::from_secs_f64(all / requests as f64);
        let in_all = Nanos::from_secs_f64(all);
        let is_random = pauses.iter().any(|pause| pause.is_random);
        let said = (is_random || !is_same_behind_each(of_body)).then(|| {
            let mean = if is_random { " (a mean)" } else { "" };
            format!(
                "its sleep() is {in_all}{mean} in each iteration: --think {behind_each} behind each request is as much in all"
            )
        });
        self.pauses = Pauses::Known { behind_each, in_all, said };
    }

    /// The method, URL, body and headers of its one request.
    fn take_request(&mut self, request: &ScriptRequest) {
        self.url = request.url.clone().filter(|url| !varies(url));
        match &request.method {
            None => self.request.extend(["-m", METHOD].map(str::to_owned)),
            Some(method) if method == "GET" => {}
            Some(method) => self.request.extend(["-m".to_owned(), method.clone()]),
        }
        match &request.body {
            ScriptBody::None => {}
            ScriptBody::Text(body) => self.request.extend(with_value(&["-d", "{}"], body)),
            ScriptBody::File(file) => self.request.extend(["-D".to_owned(), file.clone()]),
            ScriptBody::Computed => self.request.extend(["-d", BODY].map(str::to_owned)),
        }
        if request.is_own_form() {
            self.request.extend(["-T", FORM].map(str::to_owned));
        }
        for header in &request.headers {
            self.request.extend(["-H".to_owned(), header.clone()]);
        }
        self.take_rest(std::slice::from_ref(request));
    }

    /// What stands in no line of a mix: how long requests may take, and what is not taken.
    fn take_rest(&mut self, requests: &[ScriptRequest]) {
        self.follows_nothing |= requests.iter().all(|request| request.follows_nothing);
        let timeout = requests.first().and_then(|request| request.timeout);
        if requests.iter().any(|request| request.timeout != timeout) {
            self.not_take("the timeouts of its requests (--timeout)".to_owned());
        } else if let Some(timeout) = timeout {
            self.request.extend(["--timeout".to_owned(), timeout.to_string()]);
        }
        for what in requests.iter().flat_map(|request| &request.not_taken) {
            self.not_take(what.clone());
        }
    }

    /// Those of several requests whose URLs are plain as a mix, where others have a computed one;
    /// `false` if there are none of either.
    fn take_mix_of_plain(&mut self, requests: &[ScriptRequest]) -> bool {
        let is_plain = |request: &&ScriptRequest| request.url.is_some();
        let (plain, computed): (Vec<&ScriptRequest>, Vec<&ScriptRequest>) =
            requests.iter().partition(is_plain);
        let plain: Vec<ScriptRequest> = plain.into_iter().cloned().collect();
        if computed.is_empty() || !self.take_mix(&plain) {
            return false;
        }
        self.requests_left_out = computed.len() as u32;
        for request in computed {
            let method = request.method.as_deref().unwrap_or(METHOD);
            self.not_take(format!(
                "{method} {}, which is computed: add it to --mix with the values in it as {{1..10}}",
                request.written_url
            ));
        }
        true
    }

    /// Several requests as a mix; `false` if one of them is not plain, or goes elsewhere.
    fn take_mix(&mut self, requests: &[ScriptRequest]) -> bool {
        let lines: Option<Vec<ScriptMixLine>> =
            requests.iter().map(ScriptRequest::mix_line).collect();
        let Some(lines) = lines else { return false };
        let Some(first) = lines.first() else { return false };
        if lines.iter().any(|line| line.origin != first.origin) {
            return false;
        }
        let mix: Vec<&str> = lines.iter().map(|line| line.line.as_str()).collect();
        self.request.extend(["--mix".to_owned(), mix.join(", ")]);
        self.url = Some(format!("{}/", first.origin));
        self.requests_each = if requests.len() > 1 { requests.len() as u32 } else { 0 };
        self.take_rest(requests);
        true
    }
}

/// Why several requests are no mix.
fn obstacle(why_uncounted: Option<&str>, requests: &[ScriptRequest]) -> String {
    let lines: Vec<Option<ScriptMixLine>> = requests.iter().map(ScriptRequest::mix_line).collect();
    if let Some(how) = why_uncounted {
        format!(" that are sent {how}")
    } else if requests.iter().all(|request| request.url.is_none()) {
        ", whose URLs are computed".to_owned()
    } else if lines.iter().all(Option::is_some) {
        " to several hosts".to_owned()
    } else {
        let odd = requests.iter().zip(&lines).filter(|(_, line)| line.is_none());
        let odd: Vec<String> = odd
            .map(|(request, _)| {
                let method = request.method.as_deref().unwrap_or(METHOD);
                format!("{method} {}", request.written_url)
            })
            .collect();
        format!(" (what {} sends is computed, or would vary in --mix)", listed(&odd))
    }
}

/// What `--check` can check, and what it cannot of what these do.
fn known_checks(checks: &[&JsCall<'_>]) -> String {
    let of_body = [".body", ".json(", ".html("];
    let mut conditions = checks.iter().filter_map(|check| check.arguments.get(1));
    let reads_body = conditions.any(|it| of_body.iter().any(|part| it.contains(part)));
    let not_body = if reads_body { ", nothing of a body's text" } else { "" };
    format!("--check has status, length, sha256 and same-body{not_body}")
}

/// What to say of a threshold that is not taken.
fn unknown_threshold(metric: &str, limit: Option<&str>) -> String {
    let of_tag = metric
        .split_once('{')
        .and_then(|(metric, _)| k6_condition(&format!("{metric}:{}", limit?)));
    match (metric, of_tag) {
        (_, Some(condition)) => format!(
            "its threshold on {metric} (--expect '/PATH {condition}', with the path of that request)"
        ),
        ("checks", None) => {
            "its threshold on checks (with --check any failed one is exit code 1)".to_owned()
        }
        _ => format!("its threshold on {metric}"),
    }
}

/// The status that all these calls of `check` ask for, and how many other conditions they have.
fn status_of_checks(checks: &[&JsCall<'_>]) -> Option<(u16, usize)> {
    let mut statuses = Vec::new();
    let mut others = 0;
    for check in checks {
        let (conditions, _) = parts(check.arguments.get(1)?.trim().strip_prefix('{')?)?;
        let conditions = conditions.into_iter().filter(|condition| !condition.trim().is_empty());
        let of_call: Vec<Option<u16>> = conditions.map(status_of_condition).collect();
        let known: Vec<u16> = of_call.iter().copied().flatten().collect();
        // Each response must have it.
        known.first()?;
        others += of_call.len() - known.len();
        statuses.extend(known);
    }
    let first = *statuses.first()?;
    statuses.iter().all(|status| *status == first).then_some((first, others))
}

/// `'ok': (r) => r.status === 200`
fn status_of_condition(written: &str) -> Option<u16> {
    let (before, body) = written.split_once("=>")?;
    let parameter = before.rsplit(':').next()?.trim().trim_matches(['(', ')']).trim();
    let body = body.trim();
    let returned = body.strip_prefix('{').and_then(|body| body.strip_suffix('}'));
    let body = returned
        .and_then(|body| body.trim().strip_prefix("return "))
        .map_or(body, |body| body.trim().trim_end_matches(';'));
    let compared = body.trim().strip_prefix(parameter)?.strip_prefix(".status")?.trim_start();
    let number = compared.strip_prefix("===").or_else(|| compared.strip_prefix("=="))?.trim();
    number.parse().ok().filter(|status| (100..1000).contains(status))
}

/// A pause of an iteration.
struct Pause {
    /// In seconds.
    mean: f64,
    is_random: bool,
}

impl Pause {
    /// The pauses that are made once in each iteration and have a plain length.
    fn all_in(code: &str, of_body: &[JsCall<'_>]) -> Vec<Pause> {
        let sleeps = of_body.iter().filter(|call| call.depth == 0 && call.name == "sleep");
        sleeps.filter_map(|call| Pause::of(code, call.arguments.first()?)).collect()
    }

    /// `1`, `Math.random() * 2` or `randomIntBetween(1, 3)`.
    fn of(code: &str, written: &str) -> Option<Pause> {
        let number = |text: &str| value_with_constants(code, text).number();
        if let Some(mean) = number(written) {
            return Some(Pause { mean, is_random: false });
        }
        let bare: String = written.chars().filter(|c| !c.is_whitespace()).collect();
        let most = bare.strip_prefix("Math.random()*").or(bare.strip_suffix("*Math.random()"));
        let ends = bare.strip_prefix("randomIntBetween(").and_then(|rest| rest.strip_suffix(')'));
        let mean = match (bare == "Math.random()", most, ends) {
            (true, _, _) => 0.5,
            (_, Some(most), _) => number(most)? / 2.0,
            (_, _, Some(ends)) => {
                let (least, most) = ends.split_once(',')?;
                f64::midpoint(number(least)?, number(most)?)
            }
            _ => return None,
        };
        Some(Pause { mean, is_random: true })
    }
}

/// Whether the same pause is behind each request.
fn is_same_behind_each(of_body: &[JsCall<'_>]) -> bool {
    let top = of_body.iter().filter(|call| call.depth == 0);
    let steps: Vec<&JsCall<'_>> =
        top.filter(|call| method_of(call).is_some() || call.name == "sleep").collect();
    let first = steps.get(1).map(|call| &call.arguments);
    steps.chunks(2).all(|pair| {
        matches!(pair, [request, sleep]
            if method_of(request).is_some() && sleep.name == "sleep" && Some(&sleep.arguments) == first)
    })
}

/// Why it is not plain how many requests an iteration sends: how they are sent. `None` if each is
/// sent once in every iteration, and there are no others in the script.
fn why_uncounted(all: &[JsCall<'_>], of_body: &[JsCall<'_>]) -> Option<&'static str> {
    let is_loop = |call: &JsCall<'_>| {
        call.name == "for" || LOOPS.iter().any(|name| call.name.ends_with(name))
    };
    let is_request = |call: &&JsCall<'_>| method_of(call).is_some();
    let sent = of_body.iter().filter(is_request).filter(|call| call.depth == 0).count();
    // What begins behind the last request has none in it, but for the ends of statements.
    let last = of_body.iter().rposition(|call| call.name.starts_with("http."));
    let until_last = &of_body[..last.map_or(0, |last| last + 1)];
    let has_end = |name: &str| of_body.iter().any(|call| call.name == name);
    if until_last.iter().any(is_loop) || has_end("while") {
        Some("in a loop")
    } else if until_last.iter().any(|call| call.name == "http.batch") {
        Some("in a batch")
    } else if until_last.iter().any(|call| ["if", "switch"].contains(&call.name))
        || has_end("catch")
    {
        Some("under a condition")
    } else if sent != all.iter().filter(is_request).count() {
        Some("in another function")
    } else {
        None
    }
}

/// Functions that k6 runs once, around all iterations.
const RUN_ONCE: [&str; 2] = ["setup", "teardown"];

/// The functions that are iterations: those that scenarios name as `exec`.
fn functions_of(options: Option<&JsValue>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let scenarios = options.and_then(|options| options.field("scenarios"));
    for (_, scenario) in scenarios.map_or(&[][..], JsValue::fields) {
        let name = match scenario.field("exec") {
            None => "default",
            Some(exec) => exec.text().unwrap_or("its exec"),
        };
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() { vec!["default".to_owned()] } else { names }
}

/// Calls in which plain requests of a batch stand in its place.
fn with_batches(calls: Vec<JsCall<'_>>) -> Vec<JsCall<'_>> {
    let mut expanded = Vec::new();
    for call in calls {
        let requests = if call.name == "http.batch" { calls_of_batch(&call) } else { None };
        match requests {
            Some(requests) => expanded.extend(requests),
            None => expanded.push(call),
        }
    }
    expanded
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ScriptBody {
    None,
    Text(String),
    /// What this file has, whose path begins at the script's folder.
    File(String),
    Computed,
}

/// A request as a script has it.
#[derive(Clone, Debug)]
struct ScriptRequest {
    /// `None` if it is computed.
    method: Option<String>,
    /// `None` if it is computed.
    url: Option<String>,
    /// As it stands in the script, without quotes and random numbers.
    written_url: String,
    body: ScriptBody,
    /// Whether its body is an object, which k6 sends as a form.
    is_form: bool,
    /// `Name: value`.
    headers: Vec<String>,
    timeout: Option<Nanos>,
    /// Whether it follows no redirect.
    follows_nothing: bool,
    /// What it has beyond that.
    not_taken: Vec<String>,
}

/// A request as a line of `--mix`.
struct ScriptMixLine {
    /// `http://host:port`
    origin: String,
    line: String,
}

impl ScriptRequest {
    /// The requests of the default function, each of which is sent once in every iteration.
    fn all_in(code: &str, of_body: &[JsCall<'_>]) -> Vec<ScriptRequest> {
        let requests = of_body.iter().filter(|call| method_of(call).is_some());
        requests.filter_map(|call| ScriptRequest::of(code, call)).collect()
    }

    fn of(code: &str, call: &JsCall<'_>) -> Option<ScriptRequest> {
        let mut arguments =
            call.arguments.iter().map(|written| value_with_constants(code, written));
        let method = match method_of(call)? {
            "request" => arguments.next().and_then(|method| method.text().map(str::to_owned)),
            method => Some(method.to_owned()),
        };
        let is_url = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        let url = arguments.next().and_then(|url| url.text().map(str::to_owned)).filter(is_url);
        // http.get(url, parameters), http.post(url, body, parameters)
        let sent = if ["http.get", "http.head"].contains(&call.name) {
            JsValue::Nothing
        } else {
            arguments.next().unwrap_or(JsValue::Nothing)
        };
        let has_object = |written: &&str| written.trim().starts_with('{');
        let is_named = method_of(call) == Some("request");
        let of_url = usize::from(is_named);
        let written_url = call.arguments.get(of_url).copied().unwrap_or_default();
        let body = match &sent {
            JsValue::Nothing => ScriptBody::None,
            JsValue::Text(body) if body.is_empty() => ScriptBody::None,
            JsValue::Text(body) if !varies(body) => ScriptBody::Text(body.clone()),
            JsValue::Object(_) => match form(&sent).filter(|body| !varies(body)) {
                Some(body) => ScriptBody::Text(body),
                None => ScriptBody::Computed,
            },
            _ => call
                .arguments
                .get(of_url + 1)
                .and_then(|written| opened_file(code, written))
                .map_or(ScriptBody::Computed, ScriptBody::File),
        };
        let mut request = ScriptRequest {
            method,
            url,
            written_url: as_written(written_url),
            body,
            // Of `{ ...base }` no more is known.
            is_form: matches!(sent, JsValue::Object(_))
                || sent == JsValue::Computed
                    && call.arguments.get(of_url + 1).is_some_and(has_object),
            headers: Vec::new(),
            timeout: None,
            follows_nothing: false,
            not_taken: Vec::new(),
        };
        if request.is_form && call.arguments.iter().any(|written| written.contains("http.file(")) {
            request.is_form = false;
            request.not_taken.push("its form with a file (multipart/form-data)".to_owned());
        }
        match arguments.next() {
            None | Some(JsValue::Nothing) => {}
            Some(JsValue::Object(parameters)) => {
                for (name, value) in parameters {
                    request.take_parameter(&name, &value);
                }
            }
            Some(_) => request.not_taken.push("the headers of its request (-H)".to_owned()),
        }
        Some(request)
    }

    /// Whether k6 itself says that its body is a form: no header of it says what it is.
    fn is_own_form(&self) -> bool {
        let says_type = |header: &String| header.to_ascii_lowercase().starts_with("content-type:");
        self.is_form && !self.headers.iter().any(says_type)
    }

    fn take_parameter(&mut self, name: &str, value: &JsValue) {
        match (name, value) {
            ("headers", JsValue::Object(headers)) => {
                for (at, (name, value)) in headers.iter().enumerate() {
                    // Of two of a name the last one counts.
                    if headers[at + 1..].iter().any(|(later, _)| later == name) {
                        continue;
                    }
                    match value {
                        JsValue::Text(value) if !varies(value) => {
                            self.headers.push(format!("{name}: {value}"));
                        }
                        _ => self.not_taken.push(format!("its header {name} (-H)")),
                    }
                }
            }
            ("headers", _) => self.not_taken.push("the headers of its request (-H)".to_owned()),
            ("timeout", value) if time(value).is_some() => self.timeout = time(value),
            ("timeout", _) => self.not_taken.push("timeout of its request (--timeout)".to_owned()),
            ("redirects", JsValue::Number(most)) => self.follows_nothing = most == "0",
            ("tags" | "responseType" | "responseCallback" | "redirects", _) => {}
            _ => self.not_taken.push(format!("{name} of its request")),
        }
    }

    /// It as a line of `--mix`; `None` if something in it is computed, or would be read otherwise
    /// there.
    fn mix_line(&self) -> Option<ScriptMixLine> {
        let url = self.url.as_deref()?;
        let host = url.find("://")? + "://".len();
        let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |at| host + at);
        let path = url[end..].split('#').next().unwrap_or_default().replace(',', "%2C");
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        let is_odd = |text: &str| text.contains(|c: char| c.is_whitespace() || "{}'\"".contains(c));
        // What a script's own text has between braces would be read as a value that varies.
        let is_plain = path.split(BEGIN).enumerate().all(|(at, part)| match at {
            0 => !is_odd(part),
            _ => part.split_once(END).is_some_and(|(_, behind)| !is_odd(behind)),
        });
        if !is_plain || varies(&url[..end]) {
            return None;
        }
        let path = with_ends(&path);
        let mut line = format!("{} {path}", self.method.as_deref()?);
        match &self.body {
            ScriptBody::None => {}
            ScriptBody::Text(body) => line.extend([" -d ", &quoted_in_mix(body)?]),
            ScriptBody::File(_) | ScriptBody::Computed => return None,
        }
        if self.is_own_form() {
            line.extend([" -H ", &quoted_in_mix(&format!("Content-Type: {FORM}"))?]);
        }
        for header in &self.headers {
            line.extend([" -H ", &quoted_in_mix(header)?]);
        }
        Some(ScriptMixLine { origin: url[..end].to_owned(), line })
    }
}

/// The type of a body that k6 makes of an object.
const FORM: &str = "application/x-www-form-urlencoded";

/// Around the ends of a random number, in a script's text: characters that no script has.
const BEGIN: char = '\u{1}';
const END: char = '\u{2}';

/// Whether a random number is in this text.
fn varies(text: &str) -> bool {
    text.contains(BEGIN)
}

/// A random number as `--mix` has it: `{0..99}`.
fn with_ends(text: &str) -> String {
    text.replace(BEGIN, "{").replace(END, "}")
}

/// A URL as it stands in the script, without quotes; random numbers are ranges.
fn as_written(url: &str) -> String {
    let template = url.strip_prefix(TEMPLATE_OF_URL).unwrap_or(url);
    let (begin, end) = (format!("\"{BEGIN}"), format!("{END}\""));
    let mut pieces = template.trim_matches(['\'', '"', '`']).split(&*begin);
    let mut written = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let behind = piece.split_once(&*end).map_or(piece, |(_, behind)| behind);
        written.extend([USER_NUMBER, behind]);
    }
    let only_user = format!("${{{ONLY_USER}}}");
    with_ends(&written.replace(&only_user, &format!("${{{USER_NUMBER}}}")))
}

/// The number of a virtual user in a script.
const USER_NUMBER: &str = "__VU";

/// What stands for it where there is one virtual user.
const ONLY_USER: &str = "'1'";

/// The script with a text for the number of each virtual user, `__VU`, which is 1 to `users`; `None`
/// if it has none.
fn with_user_numbers(code: &str, users: u32) -> Option<String> {
    // The double quotes tell it from a random number.
    let text = match users {
        1 => ONLY_USER.to_owned(),
        _ => format!("\"{BEGIN}1..{users}{END}\""),
    };
    let is_of_name = |c: char| c.is_alphanumeric() || "_$".contains(c);
    let mut pieces = code.split(USER_NUMBER);
    let mut found = pieces.next().unwrap_or_default().to_owned();
    let mut is_found = false;
    for behind in pieces {
        let is_other = behind.starts_with(is_of_name) || found.ends_with(is_of_name);
        is_found |= !is_other;
        found.extend([if is_other { USER_NUMBER } else { &text }, behind]);
    }
    is_found.then_some(found)
}

/// The most virtual users, if they are plain.
fn most_users(options: &JsValue) -> Option<u32> {
    let Some(shape) = LoadShape::of(options, 1) else { return options.field("vus")?.count() };
    let at = shape.words.iter().position(|word| word == "-c")?;
    shape.words.get(at + 1)?.parse().ok()
}

/// The script with a text for each random whole number in it: `Math.floor(Math.random() * 100)` is
/// 0 to 99, with `+ 1` behind it 1 to 100.
fn with_random_numbers(code: &str) -> String {
    const CALL: &str = "Math.floor(Math.random()";
    let mut pieces = code.split(CALL);
    let mut found = pieces.next().unwrap_or_default().to_owned();
    for behind in pieces {
        match random_number(behind) {
            Some((least, most, rest)) => {
                found.extend([&format!("'{BEGIN}{least}..{most}{END}'"), rest]);
            }
            None => found.extend([CALL, behind]),
        }
    }
    found
}

/// ` * 100) + 1`: the least and the most number, and what stands behind it.
fn random_number(behind: &str) -> Option<(u64, u64, &str)> {
    let (count, rest) = behind.trim_start().strip_prefix('*')?.split_once(')')?;
    let count: u64 = count.trim().parse().ok().filter(|count| *count > 1)?;
    let Some(added) = rest.trim_start().strip_prefix('+').map(str::trim_start) else {
        return Some((0, count - 1, rest));
    };
    let digits = added.find(|c: char| !c.is_ascii_digit()).unwrap_or(added.len());
    let (least, after) = added.split_at(digits);
    // A text that is added is no number.
    match least.parse::<u64>() {
        Ok(least) => Some((least, least + count - 1, after)),
        Err(_) => Some((0, count - 1, rest)),
    }
}

/// A text in quotes, as a line of `--mix` reads it; `None` if it has what begins a value that varies
/// there, such as `{1..9}`, or a control character.
pub(super) fn quoted_in_mix(text: &str) -> Option<String> {
    let may_vary = text.split('{').skip(1).any(|behind| {
        let inside = behind.split_once('}').map_or("", |(inside, _)| inside);
        !inside.is_empty() && !inside.contains('"')
    });
    if may_vary || text.contains(char::is_control) {
        return None;
    }
    Some(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// `http.get` and the like: the method, or `request`, whose first argument says it.
fn method_of(call: &JsCall<'_>) -> Option<&'static str> {
    Some(match call.name.strip_prefix("http.")? {
        "get" => "GET",
        "head" => "HEAD",
        "post" => "POST",
        "put" => "PUT",
        "patch" => "PATCH",
        "del" => "DELETE",
        "options" => "OPTIONS",
        "request" | "asyncRequest" => "request",
        _ => return None,
    })
}

/// `'30s'`, or a number of milliseconds.
fn time(value: &JsValue) -> Option<Nanos> {
    let time = match value {
        JsValue::Text(text) => text.parse().ok(),
        JsValue::Number(number) => format!("{number}ms").parse().ok(),
        _ => None,
    };
    time.filter(|time| *time > Nanos::ZERO)
}

/// Targets of stages with their times.
#[derive(Default)]
pub(super) struct Stages {
    targets: Vec<f64>,
    lengths: Vec<Nanos>,
    pub(super) total: Nanos,
}

impl Stages {
    /// `None` if one of them is no literal.
    fn of(value: &JsValue) -> Option<Stages> {
        let JsValue::List(stages) = value else { return None };
        let mut found = Stages::default();
        for stage in stages {
            let target = stage.field("target")?.number()?;
            let length = match stage.field("duration")? {
                // A stage of no length changes the target at once.
                JsValue::Text(text) => text.parse().ok()?,
                number => time(number)?,
            };
            found.push(target, length);
        }
        (found.total > Nanos::ZERO).then_some(found)
    }

    /// One more, which ends with this target.
    pub(super) fn push(&mut self, target: f64, length: Nanos) {
        self.targets.push(target);
        self.lengths.push(length);
        self.total = Nanos(self.total.0.saturating_add(length.0));
    }

    /// The most virtual users, of which there are `first` at the start.
    pub(super) fn most(&self, first: u32) -> u32 {
        self.targets.iter().copied().fold(f64::from(first), f64::max) as u32
    }

    /// In parentheses, how many times as many the most are as there are on average; empty if that
    /// is hardly more.
    pub(super) fn more_than_on_average(&self, first: u32) -> String {
        let starts = std::iter::once(f64::from(first)).chain(self.targets.iter().copied());
        let user_seconds = starts.zip(&self.targets).zip(&self.lengths);
        let user_seconds: f64 = user_seconds
            .map(|((start, end), length)| f64::midpoint(start, *end) * length.as_secs_f64())
            .sum();
        let times = f64::from(self.most(first)) * self.total.as_secs_f64() / user_seconds;
        if times.is_finite() && times >= MUCH_MORE {
            format!(" ({times:.1} times as many as k6 has on average)")
        } else {
            String::new()
        }
    }
}

/// A value, or the word that stands for it.
fn or_word(value: Option<impl ToString>, word: &str) -> String {
    value.map_or_else(|| word.to_owned(), |value| value.to_string())
}

impl LoadShape {
    /// What options say with scenarios or stages; `None` if they have neither.
    fn of(options: &JsValue, each: u32) -> Option<LoadShape> {
        if let Some(scenarios) = options.field("scenarios") {
            return Some(LoadShape::of_scenarios(scenarios, each));
        }
        let stages = options.field("stages")?;
        let least = options.field("vus").and_then(JsValue::count);
        Some(LoadShape::of_stages(stages, least, "stages"))
    }

    fn of_scenarios(scenarios: &JsValue, each: u32) -> LoadShape {
        if let [(_, scenario)] = scenarios.fields() {
            return LoadShape::of_scenario(scenario, each);
        }
        // Each of several is a load of its own.
        let said = vec!["its scenarios are no plain literals".to_owned()];
        LoadShape { words: with_users(None, None), said, is_open: false, iterations: None }
    }

    fn of_scenario(scenario: &JsValue, each: u32) -> LoadShape {
        let executor = executor(scenario);
        // k6's default, where nothing is written, or nothing where something unknown is.
        let count = |name: &str, default: u32| match scenario.field(name) {
            None => Some(default),
            Some(value) => value.count(),
        };
        let length = scenario.field("duration").and_then(time);
        let most = scenario.field("maxVUs").or(scenario.field("preAllocatedVUs"));
        let most = most.and_then(JsValue::count);
        let unit = match scenario.field("timeUnit") {
            None => Some(Nanos::from_secs(1)),
            Some(unit) => time(unit),
        };
        let per_second = |number: f64| {
            Some(number * f64::from(each) / unit?.as_secs_f64()).filter(|rate| *rate > 0.0)
        };
        let mut others = None;
        let mut iterations = None;
        let words = match executor {
            "constant-arrival-rate" => {
                let rate = scenario.field("rate").and_then(JsValue::number).and_then(per_second);
                iterations = rate.map(|rate| rate / f64::from(each));
                at_rate(rate, length, most)
            }
            "ramping-arrival-rate" => {
                let from = match scenario.field("startRate") {
                    None => Some(0.0),
                    Some(rate) => rate.number(),
                };
                let stages = scenario.field("stages").and_then(Stages::of);
                let targets = stages.iter().flat_map(|stages| stages.targets.iter().copied());
                let highest = targets.chain(from).fold(0.0, f64::max);
                iterations = per_second(highest).map(|rate| rate / f64::from(each));
                let (words, behind) = ramp(from, stages.as_ref(), per_second, most);
                others = behind;
                words
            }
            "constant-vus" => with_users(count("vus", 1), length),
            "shared-iterations" | "per-vu-iterations" => {
                let users = count("vus", 1);
                let each = count("iterations", 1);
                let all = if executor == "shared-iterations" {
                    each
                } else {
                    users.zip(each).map(|(users, each)| users.saturating_mul(each))
                };
                match all {
                    Some(all) => {
                        let users = or_word(users, VUS);
                        ["-c".to_owned(), users, "-n".to_owned(), all.to_string()].to_vec()
                    }
                    None => with_users(users, None),
                }
            }
            "ramping-vus" => {
                let stages = scenario.field("stages").unwrap_or(&JsValue::Computed);
                return LoadShape::of_stages(stages, count("startVUs", 1), "ramping-vus");
            }
            "" => {
                let said = "the executor of its scenario is no plain literal".to_owned();
                return LoadShape {
                    words: with_users(None, None),
                    said: vec![said],
                    is_open: false,
                    iterations: None,
                };
            }
            _ => with_users(None, None),
        };
        let is_open = executor.ends_with("-arrival-rate");
        let is_loop = if is_open {
            format!("its {executor} is an open loop: {DROPS}")
        } else {
            format!("its {executor} is a closed loop")
        };
        let said = others.into_iter().chain([is_loop]).collect();
        LoadShape {
            words,
            said,
            is_open,
            iterations: iterations.zip(most).map(|(per_s, users)| IterationRate { per_s, users }),
        }
    }

    /// Stages of virtual users, of which there are `least` at the start.
    fn of_stages(stages: &JsValue, least: Option<u32>, name: &str) -> LoadShape {
        let Some(stages) = Stages::of(stages) else {
            let said = format!("its {name} change the number of connections, ours stays");
            return LoadShape {
                words: with_users(None, None),
                said: vec![said],
                is_open: false,
                iterations: None,
            };
        };
        let first = least.unwrap_or(1);
        let more = stages.more_than_on_average(first);
        LoadShape {
            words: with_users(Some(stages.most(first)), Some(stages.total)),
            said: vec![format!(
                "its {name} change the number of connections, ours stays: -c is the most of them, --for as long as all{more}"
            )],
            is_open: false,
            iterations: None,
        }
    }
}

/// From so many times as many connections on the load is called another one.
const MUCH_MORE: f64 = 1.2;

fn executor(scenario: &JsValue) -> &str {
    scenario.field("executor").and_then(JsValue::text).unwrap_or_default()
}

/// An open loop; `most` virtual users may wait for responses at a time.
fn at_rate(per_second: Option<f64>, length: Option<Nanos>, most: Option<u32>) -> Vec<String> {
    let rate = per_second.map(|rate| format!("{}/s", in_five_digits(rate)));
    let words = ["--rate".to_owned(), or_word(rate, RATE)];
    [&words[..], &lasting(length), &of_most(most)].concat()
}

/// A rate that changes: the first stages that are one ramp, or one rate, of ours, and what to say of
/// the others. If that is not plain, somebody has to choose rates.
fn ramp(
    from: Option<f64>,
    stages: Option<&Stages>,
    per_second: impl Fn(f64) -> Option<f64>,
    most: Option<u32>,
) -> (Vec<String>, Option<String>) {
    let parts =
        stages.zip(from).and_then(|(stages, from)| parts_of_stages(from, stages, per_second));
    let sent = |part: &RatePart| part.lowest.is_none_or(|lowest| lowest > 0.0);
    let Some(parts) = parts.filter(|parts| parts.iter().any(sent)) else {
        let words = ["--steps".to_owned(), format!("{RATE},{RATE}")];
        let total = stages.map(|stages| stages.total);
        return ([&words[..], &lasting(total), &of_most(most)].concat(), None);
    };
    let first = parts.iter().position(sent).unwrap_or_default();
    let line = [&parts[first].words[..], &of_most(most)].concat();
    let mut said = Vec::new();
    let others: Vec<String> = parts[first + 1..].iter().map(|part| part.words.join(" ")).collect();
    if !others.is_empty() {
        said.push(format!("behind its first stage: {}", listed(&others)));
    }
    if let Some(lowest) = parts.iter().find_map(|part| part.lowest.filter(|rate| *rate > 0.0)) {
        let lowest = in_five_digits(lowest);
        said.push(format!("k6's rate begins or ends at 0 where --ramp has {lowest}/s"));
    }
    (line, (!said.is_empty()).then(|| said.join("; ")))
}

/// A stage of a rate in our words.
struct RatePart {
    words: Vec<String>,
    /// What stands in the place of a rate of 0 per second, at which nothing is sent: a low rate at
    /// one end of a ramp, 0 where both ends are 0.
    lowest: Option<f64>,
}

/// Our words for each stage: a ramp, or a rate where the target is the one before. A stage of no
/// length changes the rate at once.
fn parts_of_stages(
    from: f64,
    stages: &Stages,
    per_second: impl Fn(f64) -> Option<f64>,
) -> Option<Vec<RatePart>> {
    let rate_of = |number: f64| if number == 0.0 { Some(0.0) } else { per_second(number) };
    let mut rate = rate_of(from)?;
    let mut parts = Vec::new();
    for (target, length) in stages.targets.iter().zip(&stages.lengths) {
        let target = rate_of(*target)?;
        let begin = std::mem::replace(&mut rate, target);
        if *length == Nanos::ZERO {
            continue;
        }
        let highest = begin.max(target);
        let is_ramp = in_five_digits(begin) != in_five_digits(target);
        let lowest = if highest > 1.0 { 1.0 } else { highest / 10.0 };
        let lowest = (begin.min(target) == 0.0).then_some(lowest);
        let ends = [begin, target].map(|end| in_five_digits(end.max(lowest.unwrap_or_default())));
        let words = if highest == 0.0 {
            vec![format!("nothing for {length}")]
        } else {
            let words = match &ends {
                [begin, end] if is_ramp => ["--ramp".to_owned(), format!("{begin}/s..{end}/s")],
                [_, end] => ["--rate".to_owned(), format!("{end}/s")],
            };
            [words, lasting(Some(*length))].concat()
        };
        parts.push(RatePart { words, lowest });
    }
    Some(parts)
}

fn with_users(users: Option<u32>, length: Option<Nanos>) -> Vec<String> {
    [&["-c".to_owned(), or_word(users, VUS)][..], &lasting(length)].concat()
}

fn lasting(length: Option<Nanos>) -> [String; 2] {
    ["--for".to_owned(), or_word(length, DURATION)]
}

fn of_most(most: Option<u32>) -> Vec<String> {
    most.map_or_else(Vec::new, |most| vec!["-c".to_owned(), most.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script without an environment.
    fn script(text: &str) -> Option<K6Script> {
        K6Script::in_text(text, &|_| None, None)
    }

    /// What is taken of a script whose iterations do this.
    fn taken_of_iteration(body: &str) -> String {
        taken(&format!("export default function () {{\n  {body}\n}}\n")).unwrap()
    }

    /// What is taken from a script, in a line; `None` if it is no script.
    fn taken(text: &str) -> Option<String> {
        script(text).map(line)
    }

    fn line(found: K6Script) -> String {
        let mut words: Vec<String> =
            found.flags.iter().map(|(name, value)| format!("--{name} {value}")).collect();
        words.extend(found.shape.map(|shape| shape.words.join(" ")));
        let (pause, said) = match &found.pauses {
            Pauses::None => (None, None),
            Pauses::Unknown => (None, Some("not its sleep()".to_owned())),
            Pauses::Known { behind_each, said, .. } => (
                Some(format!("--think {behind_each}")),
                said.as_ref().map(|it| format!("but {it}")),
            ),
        };
        words.extend(pause);
        words.extend(found.thresholds);
        words.extend(found.request);
        words.extend(found.url);
        words.extend(said);
        words.extend(found.is_uncounted.map(|how| format!("sent {how}")));
        words.extend(found.not_taken.iter().map(|what| format!("not {what}")));
        words.extend(found.missing.iter().map(|name| format!("without {name}")));
        words.join(" ")
    }

    fn with_options(options: &str) -> String {
        taken(&format!("export const options = {options};")).unwrap()
    }

    #[test]
    fn literals_are_read_and_nothing_is_guessed() {
        for (script, expected) in [
            (
                "import http from 'k6/http';\nexport const options = {\n  vus: 10,\n  duration: '30s',\n};\n",
                Some("--vus 10 --duration 30s"),
            ),
            (
                "export let options = { \"vus\": 5, \"iterations\": 100 }",
                Some("--vus 5 --iterations 100"),
            ),
            ("export const options: Options = { duration: \"1m\" };", Some("--duration 60s")),
            ("export const options = { // vus: 3\n /* vus: 4, */ vus: 5 };", Some("--vus 5")),
            // Of a nested object, a text, or a computed value nothing is taken.
            ("export const options = { ext: { vus: 3 }, tags: { a: 'vus: 4,' } };", Some("")),
            (
                "const VUS = 10;\nexport const options = { vus: VUS, duration: LENGTH };",
                Some("--vus 10"),
            ),
            ("export const options = { vus, duration: `${n}s` };", Some("")),
            ("export const options = { ...base, vus: 10 };", None),
            ("export const options = JSON.parse(open('./options.json'));", None),
            ("export { options } from './options.js';", None),
            ("export const options = { vus: 10, url: 'http://h/", None),
        ] {
            assert_eq!(taken(script).as_deref(), expected, "{script}");
        }
    }

    #[test]
    fn an_executor_decides_between_open_and_closed_loops() {
        for (scenario, expected) in [
            (
                "executor: 'constant-arrival-rate', rate: 100, timeUnit: '1s', duration: '2s', preAllocatedVUs: 20, maxVUs: 50",
                "--rate 100/s --for 2s -c 50",
            ),
            (
                "executor: 'constant-arrival-rate', rate: 90, timeUnit: '1m', duration: '2m', preAllocatedVUs: 20",
                "--rate 1.5/s --for 120s -c 20",
            ),
            (
                "executor: 'constant-arrival-rate', rate: R, duration: D",
                "--rate RATE --for DURATION",
            ),
            (
                "executor: 'constant-arrival-rate', rate: 5, timeUnit: U",
                "--rate RATE --for DURATION",
            ),
            ("executor: 'constant-vus', vus: 3, duration: '5s'", "-c 3 --for 5s"),
            ("executor: 'constant-vus', duration: '5s'", "-c 1 --for 5s"),
            ("executor: 'constant-vus', vus: N, duration: '5s'", "-c VUS --for 5s"),
            ("executor: 'shared-iterations', vus: 3, iterations: 9", "-c 3 -n 9"),
            ("executor: 'per-vu-iterations', vus: 3, iterations: 9", "-c 3 -n 27"),
            (
                "executor: 'ramping-vus', stages: [{ duration: '1m', target: 9 }, { duration: '0s', target: 0 }]",
                "-c 9 --for 60s",
            ),
            (
                "executor: 'ramping-arrival-rate', startRate: 10, stages: [{ target: 90, duration: '1m' }]",
                "--ramp 10/s..90/s --for 60s",
            ),
            (
                "executor: 'ramping-arrival-rate', startRate: 10, stages: [{ target: 10, duration: '1m' }]",
                "--rate 10/s --for 60s",
            ),
            (
                "executor: 'ramping-arrival-rate', startRate: 10, stages: [{ target: 90, duration: '0s' }, { target: 90, duration: '5s' }, { target: 9, duration: '1m' }]",
                "--rate 90/s --for 5s",
            ),
            (
                "executor: 'ramping-arrival-rate', startRate: 10, stages: [{ target: 0, duration: '1m' }]",
                "--ramp 10/s..1/s --for 60s",
            ),
            (
                "executor: 'ramping-arrival-rate', stages: [{ target: 0, duration: '5s' }, { target: 0.5, duration: '1m' }]",
                "--ramp 0.05/s..0.5/s --for 60s",
            ),
            (
                "executor: 'ramping-arrival-rate', startRate: R, stages: [{ target: 90, duration: '1m' }]",
                "--steps RATE,RATE --for 60s",
            ),
            (
                "executor: 'ramping-arrival-rate', stages: [{ target: 0, duration: '1m' }]",
                "--steps RATE,RATE --for 60s",
            ),
            ("executor: NAME", "-c VUS --for DURATION"),
        ] {
            let options = format!("{{ vus: 7, scenarios: {{ a: {{ {scenario} }} }} }}");
            assert_eq!(with_options(&options), expected, "{scenario}");
        }
        let both = "{ scenarios: { a: { executor: 'constant-arrival-rate' }, b: { executor: 'ramping-arrival-rate' } } }";
        assert_eq!(with_options(both), "-c VUS --for DURATION");
        assert_eq!(with_options("{ scenarios: ALL }"), "-c VUS --for DURATION");
        assert_eq!(
            with_options("{ stages: [{ duration: '1m', target: N }] }"),
            "-c VUS --for DURATION"
        );
    }

    #[test]
    fn plain_thresholds_are_expectations() {
        for (thresholds, expected) in [
            (
                "http_req_duration: ['p(95)<200', 'avg<=1e2'], http_req_failed: ['rate<0.01']",
                "--expect p95 < 200ms --expect mean < 100ms --expect failed < 1%",
            ),
            (
                "http_req_duration: [{ threshold: 'med<5', abortOnFail: true }]",
                "--expect p50 < 5ms not abortOnFail (--stop-if)",
            ),
            ("http_reqs: ['rate>10']", "--expect throughput > 10/s"),
            (
                "checks: ['rate>0.9']",
                "not its threshold on checks (with --check any failed one is exit code 1)",
            ),
            (
                "'http_req_duration{kind:a}': ['p(95)<200']",
                "not its threshold on http_req_duration{kind:a} (--expect '/PATH p95 < 200ms', with the path of that request)",
            ),
        ] {
            let options = format!("{{ thresholds: {{ {thresholds} }} }}");
            assert_eq!(with_options(&options), expected, "{thresholds}");
        }
    }

    #[test]
    fn stages_and_batches_say_how_many_connections_they_mean() {
        let said = |options: &str| {
            let text = format!(
                "export const options = {options};\nexport default function () {{ http.batch(['http://h/a', 'http://h/b']); }}"
            );
            let found = script(&text).unwrap();
            let shape = found.shape.map(|shape| shape.said.join("; ")).unwrap_or_default();
            [vec![shape], found.not_taken].concat().join("; ")
        };
        let ramp = "stages: [{ duration: '1s', target: 10 }, { duration: '1s', target: 0 }]";
        let ramped = said(&format!("{{ {ramp} }}"));
        assert!(ramped.contains("1.9 times as many as k6 has on average"), "{ramped}");
        assert!(ramped.contains("at once (multiply -c by 2)"), "{ramped}");
        let steady =
            said("{ stages: [{ duration: '0s', target: 10 }, { duration: '1s', target: 10 }] }");
        assert!(!steady.contains("on average"), "{steady}");
        let users = said("{ vus: 5, duration: '1s' }");
        assert!(users.contains("at once (-c 10 for its 5 VUs)"), "{users}");
    }

    #[test]
    fn a_random_number_in_a_url_and_one_status_among_checks_are_taken() {
        for (body, expected) in [
            (
                "http.get(`http://h/a/${Math.floor(Math.random() * 100)}?b`);",
                "--mix GET /a/{0..99}?b http://h/",
            ),
            (
                "const id = Math.floor(Math.random() * 9) + 1;\n  http.get('http://h/a/' + id);",
                "--mix GET /a/{1..9} http://h/",
            ),
            (
                "check(http.get('http://h/'), { a: (r) => { return r.status === 302; }, b: (r) => r.body });",
                "--check status=302 http://h/ not its other checks (--check has status, length, sha256 and same-body, nothing of a body's text)",
            ),
        ] {
            let script = format!("export default function () {{\n  {body}\n}}");
            let found = K6Script::in_text(&script, &|_| None, None).unwrap();
            let mut words = found.request.clone();
            words.extend(found.url);
            words.extend(found.not_taken.iter().map(|what| format!("not {what}")));
            assert_eq!(words.join(" "), expected, "{script}");
        }
    }

    #[test]
    fn the_number_of_a_virtual_user_varies_in_a_mix() {
        let stages = "stages: [{ duration: '1s', target: 10 }, { duration: '1s', target: 0 }]";
        let drawn = |users: u32| {
            format!(
                " not that each VU has its own __VU (here each request draws one of the 1 to {users} of the script)"
            )
        };
        for (options, url, expected) in [
            (stages, "`http://h/${__VU}`", format!("--mix GET /{{1..10}}, GET /b http://h/{}", drawn(10))),
            ("vus: 4, duration: '1s'", "'http://h/' + __VU", format!("--mix GET /{{1..4}}, GET /b http://h/{}", drawn(4))),
            (
                "vus: 4, duration: '1s'",
                "`http://h/${__VUS}`",
                "--mix GET /b http://h/ not GET http://h/${__VUS}, which is computed: add it to --mix with the values in it as {1..10}".to_owned(),
            ),
        ] {
            let text = format!(
                "export const options = {{ {options} }};\nexport default function () {{ http.get({url}); http.get('http://h/b'); }}"
            );
            let found = taken(&text).unwrap();
            assert!(found.ends_with(&expected), "{found}");
        }
    }

    #[test]
    fn an_object_as_a_body_is_a_form() {
        for (body, expected) in [
            (
                "http.post('http://h/', { b: 'd e', a: [1, true], 'c&': 'ü+' });",
                "-m POST -d a=1&a=true&b=d+e&c%26=%C3%BC%2B -T application/x-www-form-urlencoded http://h/",
            ),
            (
                "const login = { a: n };\n  http.request('PUT', 'http://h/', login);",
                "-m PUT -d BODY -T application/x-www-form-urlencoded http://h/",
            ),
            (
                "http.post('http://h/', { ...login, a: '1' });",
                "-m POST -d BODY -T application/x-www-form-urlencoded http://h/",
            ),
            (
                "http.post('http://h/', { a: 'b' }, { headers: { 'content-type': 'c' } });",
                "-m POST -d a=b -H content-type: c http://h/",
            ),
            (
                "http.get('http://h/'); http.post('http://h/', { a: 'b' });",
                "--mix GET /, POST / -d \"a=b\" -H \"Content-Type: application/x-www-form-urlencoded\" http://h/",
            ),
            (
                "http.post('http://h/', { a: http.file(f) });",
                "-m POST -d BODY http://h/ not its form with a file (multipart/form-data)",
            ),
        ] {
            assert_eq!(taken_of_iteration(body), expected, "{body}");
        }
    }

    #[test]
    fn what_keeps_requests_from_a_mix_is_named() {
        for (body, expected) in [
            (
                "http.get('http://h/a'); http.get('http://other/b');",
                "not several requests to several hosts, with their URLs, bodies and headers (--mix or --requests FILE)",
            ),
            (
                "http.get('http://h/a'); http.get(`http://h/item/${__ITER}`);",
                "--mix GET /a http://h/ not GET http://h/item/${__ITER}, which is computed: add it to --mix with the values in it as {1..10}",
            ),
            (
                "http.get(A); http.get(`http://h/item/${__ITER}`);",
                "not several requests, whose URLs are computed, with their URLs, bodies and headers (--mix or --requests FILE) not its __ITER, the number of an iteration",
            ),
            (
                "http.get('http://h/a'); http.post('http://h/b', '{1..9}');",
                "not several requests (what POST http://h/b sends is computed, or would vary in --mix), with their URLs, bodies and headers (--mix or --requests FILE)",
            ),
        ] {
            assert_eq!(taken_of_iteration(body), expected, "{body}");
        }
    }

    #[test]
    fn the_one_request_of_the_default_function_is_read() {
        for (body, expected) in [
            ("http.get('http://h/a'); sleep(0.1);", "--think 100ms http://h/a"),
            (
                "const r = http.get(`http://h/a`, { headers: { A: 'b' } });\ncheck(r, { ok: (r) => r.status === 200 });",
                "-H A: b --check status=200 http://h/a",
            ),
            (
                "check(http.get('http://h/a'), { 'a: b': r => r.status == 204, c: (r) => r.status === 204 });",
                "--check status=204 http://h/a",
            ),
            (
                "check(http.get('http://h/a'), { ok: (r) => r.status === 200 && r.body });",
                "http://h/a not its checks (--check has status, length, sha256 and same-body, nothing of a body's text)",
            ),
            (
                "check(http.get('http://h/a'), { a: (r) => r.status === 200, b: (r) => r.status === 201 });",
                "http://h/a not its checks (--check has status, length, sha256 and same-body)",
            ),
            (
                "check(http.get('http://h/a'), { a: (r) => r.status === 200 }); http.get('http://h/b');",
                "--mix GET /a, GET /b http://h/ not its checks of some of its requests (--check is of all responses)",
            ),
            (
                "check(http.post('http://h/', 'a=1', { timeout: '5s' }), {});",
                "-m POST -d a=1 --timeout 5s http://h/ not its checks (--check has status, length, sha256 and same-body)",
            ),
            ("http.post('http://h/', JSON.stringify(x));", "-m POST -d BODY http://h/"),
            (
                "const body = JSON.stringify({ a: [1, 2.50, true], 'b': 'c\"' });\n  const params = { headers: { A: 'b' }, timeout: 500 };\n  http.post('http://h/', body, params);",
                "-m POST -d {\"a\":[1,2.5,true],\"b\":\"c\\\"\"} -H A: b --timeout 500ms http://h/",
            ),
            (
                "const of = { a: 1 };\n  http.post('http://h/', JSON.stringify(of));",
                "-m POST -d {\"a\":1} http://h/",
            ),
            (
                "const file = open('./a.bin', 'b');\n  http.put('http://h/', file);",
                "-m PUT -D ./a.bin http://h/",
            ),
            (
                "const H = { A: 'b', C: 'd' };\n  http.get('http://h/', { headers: { ...H, A: 'e' } });",
                "-H C: d -H A: e http://h/",
            ),
            // What may be something else when it is sent.
            (
                "const of = { a: 1 };\n  of.a = n; http.post('http://h/', JSON.stringify(of));",
                "-m POST -d BODY http://h/",
            ),
            ("http.post('http://h/', JSON.stringify({ a: n }));", "-m POST -d BODY http://h/"),
            ("http.post('http://h/', JSON.stringify({ a: null }));", "-m POST -d BODY http://h/"),
            ("http.post('http://h/', JSON.stringify(b, 2));", "-m POST -d BODY http://h/"),
            (
                "const a = JSON.stringify(a);\n  http.post('http://h/', JSON.stringify(a));",
                "-m POST -d BODY http://h/",
            ),
            ("http.request(verb, 'http://h/', '@x');", "-m METHOD --data-raw @x http://h/"),
            ("http.get(BASE + '/a'); sleep(1)", "--think 1s"),
            ("const URL = 'http://h/a'; http.get(URL);", "http://h/a"),
            ("const BASE = 'http://h';\n  http.get(`${BASE}/x`);", "http://h/x"),
            ("const BASE = 'http://h' + PORT; http.get(`${BASE}/x`);", ""),
            (
                "const HOST = 'h'; const PORT = 80; const BASE = 'http://' + HOST\n  http.get(`${BASE}:${PORT}/x` + '?a=1');",
                "http://h:80/x?a=1",
            ),
            (
                "http.get('http://h/a'); http.get('http://h/b'); sleep(1);",
                "--think 500ms --mix GET /a, GET /b http://h/ but its sleep() is 1s in each iteration: --think 500ms behind each request is as much in all",
            ),
            (
                "http.get('http://h/a,b?c=1#d'); sleep(1); http.post('http://h', '{\"a\":1}', { headers: { B: 'c' } }); sleep(1);",
                "--think 1s --mix GET /a%2Cb?c=1, POST / -d \"{\\\"a\\\":1}\" -H \"B: c\" http://h/",
            ),
            (
                "sleep(1); http.get('http://h/');",
                "--think 1s http://h/ but its sleep() is 1s in each iteration: --think 1s behind each request is as much in all",
            ),
            (
                "http.get('http://h/'); sleep(Math.random() * 2); sleep(randomIntBetween(1, 2));",
                "--think 2.5s http://h/ but its sleep() is 2.5s (a mean) in each iteration: --think 2.5s behind each request is as much in all",
            ),
            ("http.get('http://h/'); sleep(T);", "http://h/ not its sleep()"),
            (
                "group('a', () => { http.get('http://h/a'); group('b', function () { http.get('http://h/b'); sleep(1); }); });",
                "--think 500ms --mix GET /a, GET /b http://h/ but its sleep() is 1s in each iteration: --think 500ms behind each request is as much in all",
            ),
            (
                "const P = { headers: { A: 'b' } };\n  http.batch(['http://h/a', ['POST', 'http://h/b', 'c', P], { method: 'PUT', url: 'http://h/d' }]);",
                "--mix GET /a, POST /b -d \"c\" -H \"A: b\", PUT /d http://h/ not that http.batch sends 3 requests at once (multiply -c by 3)",
            ),
            (
                "http.batch(all);",
                "sent in a batch not several requests that are sent in a batch, with their URLs, bodies and headers (--mix or --requests FILE)",
            ),
            (
                "const r = http.get('http://h/', { responseCallback: expected }); waiting.add(r.timings.waiting);",
                "http://h/ not which statuses it takes for good (--check status=200)",
            ),
        ] {
            assert_eq!(taken_of_iteration(body), expected, "{body}");
        }
    }

    #[test]
    fn a_request_may_be_sent_more_or_less_than_once_in_each_iteration() {
        for (body, expected) in [
            (
                "const url = 'http://h/'; for (const url of all) { http.get(url); }",
                "sent in a loop",
            ),
            ("const u = 'http://h/'; all.forEach((u) => http.get(u));", "sent in a loop"),
            (
                "http.get('http://h/a'); if (x) { http.get('http://h/b'); }",
                "--mix GET /a, GET /b http://h/ sent under a condition not how often it sends each request, some of them under a condition: --mix takes weights ('GET /a 9, GET /b 1')",
            ),
            (
                "for (const i of all) { http.get('http://h/'); sleep(1); }",
                "http://h/ not its sleep() sent in a loop",
            ),
            (
                "if (x) { http.get(`http://h/${y}`, { timeout: '5s', redirects: 0 }); }",
                "--timeout 5s sent under a condition",
            ),
            (
                "do { http.put('http://h/', 'a'); } while (x);",
                "-m PUT -d a http://h/ sent in a loop",
            ),
            ("const r = http.get('http://h/'); if (r.status !== 200) { fail(); }", "http://h/"),
        ] {
            assert_eq!(taken_of_iteration(body), expected, "{body}");
        }
    }

    #[test]
    fn what_an_iteration_is_decides_what_is_read() {
        let of_exec = "export const options = { scenarios: { a: { executor: 'constant-vus', vus: 5, duration: '2s', exec: 'b' } } };\n";
        for (functions, expected) in [
            (
                "export function b() { http.get('http://h/', { redirects: 0 }); sleep(1); }",
                "-c 5 --for 2s --think 1s http://h/",
            ),
            ("export const b = () => { http.get('http://h/'); };", "-c 5 --for 2s http://h/"),
            (
                "export { b } from './b.js';",
                "-c 5 --for 2s not what b() does: requests, headers, timeouts and sleep()",
            ),
            (
                "export function setup() { http.get('http://h/token'); }\nexport function b() { http.put('http://h/', 'x'); }\nexport function teardown() { http.del('http://h/'); }",
                "-c 5 --for 2s -m PUT -d x http://h/ not its setup() (runs once) not its teardown() (runs once)",
            ),
        ] {
            let found = taken(&format!("{of_exec}{functions}")).unwrap();
            assert_eq!(found, expected, "{functions}");
        }
        let several = "export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: 50, duration: '2s', exec: 'x' }, b: { executor: 'constant-vus', vus: 5, duration: '3s', exec: 'y', startTime: '30s' } } };\nexport function x() { http.get('http://h/x'); }\nexport function y() { http.post('http://h/y', 'y'); }";
        for (scenario, expected) in [
            ("a", "--rate 50/s --for 2s http://h/x"),
            ("b", "-c 5 --for 3s -m POST -d y http://h/y"),
        ] {
            let found = K6Script::in_text(several, &|_| None, Some(scenario)).unwrap();
            let starts: Vec<&str> = found.scenarios.iter().map(|it| &*it.when).collect();
            assert_eq!(starts, ["from the start", "30s after the start"]);
            assert_eq!(line(found), expected);
        }
        let unread = "export const options = { vus: 2 };\nexport default data => { http.get('http://h/'); };";
        assert_eq!(
            taken(unread).unwrap(),
            "--vus 2 not its requests, headers, timeouts and sleep()"
        );
        let elsewhere = "export default main;\nfunction main() { http.get('http://h/'); }";
        assert_eq!(taken(elsewhere).unwrap(), "http://h/");
    }

    #[test]
    fn a_rate_of_iterations_is_one_of_requests() {
        let rate = "export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: 10, duration: '5s' } }, maxRedirects: 0 };\nexport default function () { http.get('http://h/a'); http.get('http://h/b'); }";
        let found = script(rate).unwrap();
        assert!(found.requests_each == 2 && found.follows_nothing);
        let expected = "--rate 20/s --for 5s --mix GET /a, GET /b http://h/";
        assert_eq!(taken(rate).unwrap(), expected, "a rate of ours is of requests");
        let arrow =
            "export const options = { ...all };\nexport default () => { http.get('http://h/'); }";
        let expected = "http://h/ not its options, which are no plain literals";
        assert_eq!(taken(arrow).unwrap(), expected);
        let open = "export const options = { scenarios: { a: { executor: 'constant-arrival-rate' } } };\nexport default function () { http.get('http://h/'); sleep(T); }";
        assert_eq!(taken(open).unwrap(), "--rate RATE --for DURATION http://h/ not its sleep()");
    }

    #[test]
    fn the_environment_gives_values_or_the_script_its_defaults() {
        let options = "export const options = { vus: __ENV.VUS || 5, duration: __ENV.LENGTH ? __ENV.LENGTH : '10s' };";
        let request = "const BASE = (__ENV.BASE ?? 'http://h') + '/a';\nexport default () => { http.get(`${BASE}/${__ENV['ID']}`, { headers: { A: `b ${__ENV.TOKEN || \"c\"}` } }); sleep(Number(__ENV.PAUSE || 1)); };";
        let text = format!("{options}\n{request}");
        assert_eq!(taken(&text).unwrap(), "--vus 5 --duration 10s --think 1s -H A: b c without ID");
        let given = |name: &str| {
            let value = match name {
                "VUS" => "7",
                "LENGTH" => "1m",
                "BASE" => "http://it's",
                "ID" => "3",
                "TOKEN" => "d",
                "PAUSE" => "0.5",
                _ => return None,
            };
            Some(value.to_owned())
        };
        assert_eq!(
            line(K6Script::in_text(&text, &given, None).unwrap()),
            "--vus 7 --duration 60s --think 500ms -H A: b d http://it's/a/3"
        );
    }

    #[test]
    fn what_a_script_does_beside_its_requests_is_named_once() {
        let text = "import { Trend, Rate } from 'k6/metrics';\nconst a = new Trend('a');\nconst b = new Rate('b');\nhttp.setResponseCallback(http.expectedStatuses(404));\nexport default function () { http.get('http://h/'); }\nexport function handleSummary(data) { return {}; }";
        assert_eq!(
            taken(text).unwrap(),
            "http://h/ not which statuses it takes for good (--check status=200) not its own metrics not its handleSummary() (-o FILE)"
        );
    }
}
