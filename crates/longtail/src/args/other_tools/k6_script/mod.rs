//! What a script of k6 says plainly of its load: literals in `export const options = { … }` and in
//! its requests. Nothing is run, and nothing is guessed: whatever is computed or imported is not
//! known, and a word stands for it.

mod branch_shares;
mod files_beside;
mod iteration;
mod list_picks;
mod load_shape;
mod script_requests;
mod value_sources;
mod varying_numbers;
mod written_out;

pub(super) use files_beside::with_files_beside;
pub(super) use iteration::Pauses;
pub(super) use load_shape::{IterationRate, LaterStage, LoadShape, ScenarioStart, Stages};
pub(super) use script_requests::quoted_in_mix;
pub(super) use value_sources::{files_opened, is_of_file};

use branch_shares::CallShares;
use iteration::{Pause, RUN_ONCE, UNDER_CONDITION, functions_of, why_uncounted, with_batches};
use judge::words::listed;
use load_shape::{environment_of_scenario, most_users, time, with_one_scenario};
use model::secret::{SECRET, masked_body};
use script_requests::{FORM, ScriptBody, ScriptRequest, method_of};
pub(super) use varying_numbers::with_ends;
use varying_numbers::{varies, with_random_numbers, with_user_numbers};
use written_out::{with_loops_written_out, with_single_declarations};

use crate::args::mistakes::mistaken_values::k6_condition;
use crate::args::other_tools::flags::{BODY, METHOD, VALUE, WEIGHT, with_value};
use crate::args::other_tools::js_literals::{
    EnvironmentSources, JsCall, JsValue, body_of_function, calls, calls_of_batch, exported_object,
    is_read_in_function, parts, reads_variable, with_environment, with_groups_inline,
    without_assertions, without_comments,
};

/// Options that are switches of k6's command line, too.
const SWITCHES: [(&str, &str); 3] = [
    ("noConnectionReuse", "no-connection-reuse"),
    ("noVUConnectionReuse", "no-vu-connection-reuse"),
    ("insecureSkipTLSVerify", "insecure-skip-tls-verify"),
];

/// So many requests of a batch k6 sends to one host at a time, unless its option `batchPerHost` says
/// otherwise.
const MOST_OF_HOST: u32 = 6;

/// What a check of ours can ask for.
const KNOWN_CHECKS: &str = "--check has status, length, sha256 and same-body";

/// Options that change the load, and are not taken.
const NOT_TAKEN: [&str; 10] = [
    "batch",
    "batchPerHost",
    "blacklistIPs",
    "blockHostnames",
    "dns",
    "hosts",
    "localIPs",
    "minIterationDuration",
    "tlsAuth",
    "tlsVersion",
];

/// Modules by which a script sends what is no request of `k6/http`.
const OTHER_SENDERS: [&str; 7] = [
    "k6/ws",
    "k6/websockets",
    "k6/experimental/websockets",
    "k6/net/grpc",
    "k6/browser",
    "k6/experimental/browser",
    "jslib.k6.io/httpx",
];

/// What k6 does with the scenarios of a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ScenarioUse {
    /// There are none, or the line takes their place with the default function.
    #[default]
    None,
    /// It runs them.
    Run,
    /// The line takes their place, and the script has no default function: k6 refuses that.
    ReplacedByNothing,
}

/// What a script says of its load.
#[expect(clippy::struct_excessive_bools, reason = "each is found or not, whatever the others are")]
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct K6Script {
    /// Flags of k6 that say the same as its options: each with its value, which is empty for a
    /// switch.
    pub(super) flags: Vec<(&'static str, String)>,
    /// Whether its options do not say how many virtual users there are: k6's default is one.
    pub(super) has_one_user: bool,
    /// Whether its options say neither how long nor how often: k6 then runs it once.
    pub(super) runs_once: bool,
    pub(super) scenario_use: ScenarioUse,
    /// What its scenarios or stages say; beside them k6 ignores its `vus` and `duration`.
    pub(super) shape: Option<LoadShape>,
    /// Our words for its thresholds.
    pub(super) thresholds: Vec<String>,
    /// Whether some of them are of all of several scenarios together.
    pub(super) has_shared_thresholds: bool,
    /// Our words for its requests, but for the URL.
    pub(super) request: Vec<String>,
    /// The URL of its requests, if it is plain.
    pub(super) url: Option<String>,
    /// How many requests an iteration sends on average, if that is known and not one.
    pub(super) requests_each: Option<f64>,
    /// How many of them each virtual user sends at the same time, if that is always as many.
    pub(super) at_once: Option<u32>,
    /// Why that is not known: how its requests are sent.
    pub(super) is_uncounted: Option<&'static str>,
    /// Whether it follows no redirect.
    pub(super) follows_nothing: bool,
    pub(super) pauses: Pauses,
    /// What ours does otherwise, a sentence each.
    pub(super) said: Vec<String>,
    /// What it has that none of these says, each with our flag for it.
    pub(super) not_taken: Vec<String>,
    /// The requests whose path is computed, as they are written.
    pub(super) paths_to_write: Vec<String>,
    /// What to know of what stands in the place of words in its line.
    pub(super) to_fill: Vec<String>,
    /// What is computed of its requests, as it stands there.
    pub(super) computed: Vec<String>,
    /// What its options have that runs beside each other, if that is more than one.
    pub(super) scenarios: Vec<ScenarioStart>,
    /// Variables of its environment without a value or a default.
    pub(super) missing: Vec<String>,
}

/// What the line of k6 says to its script.
#[derive(Clone, Copy)]
pub(super) struct LineOfScript<'a> {
    /// The variables of its environment.
    pub(super) given: &'a dyn Fn(&str) -> Option<String>,
    /// The scenario that is meant, of several.
    pub(super) scenario: Option<&'a str>,
    /// Whether the line says how long or how often: k6 then takes no notice of what the script says of
    /// that, nor of its stages and scenarios, and runs its default function.
    pub(super) has_length: bool,
    /// The number of virtual users that the line says.
    pub(super) users: Option<u32>,
}

impl LineOfScript<'_> {
    /// The options of a script that are left beside the line.
    fn options_left(&self, options: &JsValue) -> JsValue {
        const LENGTHS: [&str; 4] = ["duration", "iterations", "stages", "scenarios"];
        let is_left = |name: &str| match self {
            LineOfScript { has_length: true, .. } => !LENGTHS.contains(&name),
            LineOfScript { users, .. } => name != "vus" || users.is_none(),
        };
        let left = options.fields().iter().filter(|(name, _)| is_left(name)).cloned();
        let users = self.users.map(|users| ("vus".to_owned(), JsValue::Number(users.to_string())));
        JsValue::Object(left.chain(users).collect())
    }
}

impl K6Script {
    /// That of a text; `None` if it is no script of k6.
    pub(super) fn in_text(text: &str, line: LineOfScript<'_>) -> Option<K6Script> {
        let LineOfScript { given, scenario, .. } = line;
        let declared = with_single_declarations(&without_assertions(&without_comments(text)));
        let in_environment =
            |of_scenario| with_environment(&declared, EnvironmentSources { given, of_scenario });
        let before_scenarios = in_environment(&[]);
        let has_options = before_scenarios.code.contains("options");
        let written_options = exported_object(&before_scenarios.code, "options");
        let all_options = written_options.as_ref().map(|all| line.options_left(all));
        let scenarios = all_options.as_ref().map(ScenarioStart::all_in).unwrap_or_default();
        let options = match scenario {
            Some(name) => all_options.as_ref().map(|options| with_one_scenario(options, name)),
            None => all_options.clone(),
        };
        let own_environment = options.as_ref().map_or(JsValue::Nothing, environment_of_scenario);
        let environment = match own_environment.fields() {
            [] => before_scenarios,
            own => in_environment(own),
        };
        let code = with_loops_written_out(with_random_numbers(&environment.code));
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
        let has_scenarios =
            written_options.as_ref().is_some_and(|options| options.field("scenarios").is_some());
        script.scenario_use = match has_scenarios {
            true if !line.has_length => ScenarioUse::Run,
            true if !code.contains("export default") => ScenarioUse::ReplacedByNothing,
            _ => ScenarioUse::None,
        };
        let mut once: Vec<String> = Vec::new();
        let mut repeated = code.clone();
        for name in RUN_ONCE {
            if let Some(body) = body_of_function(&code, name) {
                repeated = repeated.replacen(body, "", 1);
                once.push(format!("its {name}() (runs once)"));
            }
        }
        // What other scenarios do is no part of this one, unless it calls their functions.
        let others =
            functions_of(written_options.as_ref()).into_iter().chain(["default".to_owned()]);
        for name in others {
            let is_called = body.as_deref().is_some_and(|body| body.contains(&format!("{name}(")));
            if !functions.contains(&name)
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
            requests.take_requests(&code, &all, body.as_deref().unwrap_or_default(), of_body);
        }
        let each = requests.requests_each.unwrap_or(1.0);
        match &options {
            Some(options) => script.take_options(options, each, scenario),
            None if has_options => {
                script.not_taken.push("its options (they are no plain literals)".to_owned());
            }
            None => {
                script.has_one_user = true;
                script.runs_once = true;
            }
        }
        if let Some(of_body) = &of_body {
            script.take_requests(&code, &all, body.as_deref().unwrap_or_default(), of_body);
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
        for what in once {
            script.not_take(what);
        }
        script.name_environment(&declared, &own_environment);
        script.name_additions(&code);
        script.name_varying_body(&code);
        script.name_numbers(&code, users.filter(|_| has_user_numbers));
        Some(script)
    }

    /// Takes that an iteration with this body sends several requests at once.
    fn take_batches(&mut self, body: &str) {
        let sent = calls(body);
        let batches = sent.iter().filter(|call| call.name == "http.batch");
        let Some(most) = batches.filter_map(|it| Some(calls_of_batch(it)?.len() as u32)).max()
        else {
            return;
        };
        let of_body = sent.iter().filter(|call| call.name.starts_with("http."));
        let is_always = of_body.map(|call| call.name).eq(["http.batch"]);
        if is_always && self.requests_each == Some(f64::from(most)) && most <= MOST_OF_HOST {
            self.at_once = Some(most);
        } else {
            self.not_take(format!(
                "that http.batch sends {most} requests at once (multiply -c by as many)"
            ));
        }
    }

    /// Names variables of the scenario's own environment that are computed, or come too late.
    fn name_environment(&mut self, code: &str, own: &JsValue) {
        for (name, value) in own.fields().iter().filter(|(name, _)| reads_variable(code, name)) {
            if !is_read_in_function(code, name) {
                self.said.push(format!(
                    "its scenario's env comes too late for __ENV.{name}, which is read before any scenario begins: k6 uses -e or the script's default there, as here"
                ));
            } else if value.text().is_none() {
                self.not_take(format!("__ENV.{name}, which its scenario's env computes"));
            }
        }
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
        let mut behind = code.split(iteration).skip(1);
        // Where it decides what is sent, the weights of requests say it.
        let is_missed = match self.is_uncounted {
            None => behind.any(|rest| !rest.trim_start().starts_with('%')),
            Some(_) => behind.next().is_some(),
        };
        let mut named = self.not_taken.iter().chain(&self.paths_to_write);
        if is_missed && !named.any(|it| it.contains(iteration)) {
            self.not_take(format!("its {iteration}, the number of an iteration"));
        }
    }

    /// `each`: how many requests an iteration sends. `scenario`: the one of several that is meant.
    fn take_options(&mut self, options: &JsValue, each: f64, scenario: Option<&str>) {
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
        // Each hint with the metrics that it is of.
        let mut unknown: Vec<(String, Vec<String>)> = Vec::new();
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
                if let Some(condition) = condition.filter(|_| !counts_all) {
                    self.thresholds.extend(["--expect".to_owned(), condition]);
                    self.has_shared_thresholds |= scenario.is_some() && of_scenario.is_none();
                } else {
                    let hint = hint_of_threshold(metric, text);
                    match unknown.iter_mut().find(|(known, _)| *known == hint) {
                        Some((_, metrics)) if metrics.iter().any(|it| it == metric) => {}
                        Some((_, metrics)) => metrics.push(metric.to_owned()),
                        None => unknown.push((hint, vec![metric.to_owned()])),
                    }
                }
                if limit.field("abortOnFail").is_some() {
                    self.not_take("abortOnFail (--stop-if)".to_owned());
                }
            }
        }
        for (hint, metrics) in unknown {
            self.not_take(format!("its threshold on {}{hint}", listed(&metrics)));
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
        let ends_with = |end: &str| calls.iter().any(|call| call.name.ends_with(end));
        let of_pages = [".submitForm", ".clickLink"].into_iter().filter(|call| ends_with(call));
        let of_pages: Vec<String> = of_pages.map(|call| format!("{}()", &call[1..])).collect();
        if !of_pages.is_empty() {
            self.not_take(format!("the requests of its {} (--mix)", listed(&of_pages)));
        }
        if code.contains("cookieJar(") && ends_with(".set") {
            self.not_take("the cookies that it sets in its jar (-H 'Cookie: …')".to_owned());
        }
        let others: Vec<&str> = OTHER_SENDERS.into_iter().filter(|it| code.contains(it)).collect();
        if !others.is_empty() {
            self.not_take(format!("what it sends by {}", others.join(", ")));
        }
        if code.contains("k6/metrics") && has_call(&["Trend", "Rate", "Counter", "Gauge"]) {
            self.not_take("its own metrics".to_owned());
        }
        if code.contains("handleSummary") {
            self.not_take("its handleSummary() (-o FILE)".to_owned());
        }
    }

    /// Says that `-d` sends one body, where a script may make another one each time.
    fn name_varying_body(&mut self, code: &str) {
        const SOURCES: [&str; 7] =
            ["random", "uuid", "__VU", "__ITER", "Date", "exec.", "iterationIn"];
        let has_unknown = self.request.windows(2).any(|pair| pair[0] == "-d" && pair[1] == BODY);
        if has_unknown && SOURCES.iter().any(|source| code.contains(source)) {
            self.not_take(
                "that its body may differ each time (-d sends one; --mix varies numbers: {1..500})"
                    .to_owned(),
            );
        }
    }

    fn not_take(&mut self, what: String) {
        if !self.not_taken.contains(&what) {
            self.not_taken.push(what);
        }
    }

    /// Reads the requests: all calls of the script, and those of an iteration with this body.
    fn take_requests(
        &mut self,
        code: &str,
        all: &[JsCall<'_>],
        body: &str,
        of_body: &[JsCall<'_>],
    ) {
        let has_batch = all.iter().any(|call| call.name == "http.batch");
        let is_request = |call: &&JsCall<'_>| method_of(call).is_some();
        let count = all.iter().filter(is_request).count();
        let why_uncounted = why_uncounted(all, of_body);
        let has_all = of_body.iter().filter(is_request).count() == count;
        let is_choice = has_all && why_uncounted == Some(UNDER_CONDITION);
        let of_request = |call: &JsCall<'_>| method_of(call).is_some();
        let shares = if is_choice { CallShares::in_body(code, body, &of_request) } else { None };
        let requests = match (why_uncounted, &shares) {
            (None, _) => ScriptRequest::all_in(code, of_body),
            (_, Some(shares)) => ScriptRequest::all_with_shares(code, of_body, shares),
            _ => Vec::new(),
        };
        let sent = ScriptRequest::sent_by_iteration(&requests);
        let requests = ScriptRequest::each_once(requests);
        let is_read = match &requests[..] {
            [] => false,
            [request] if !request.is_for_mix() => {
                self.take_request(request);
                true
            }
            several => self.take_mix(several, true),
        };
        if is_read {
            self.requests_each = Some(sent).filter(|sent| (sent - 1.0).abs() > f64::EPSILON);
        }
        self.take_batches(body);
        let sleeps = all.iter().filter(|call| call.name == "sleep").count();
        if sleeps > 0 {
            self.pauses = {
                let in_all = Pause::of_iteration(code, body, sleeps);
                Pauses::of_iteration(
                    of_body,
                    in_all,
                    if is_read { sent } else { 0.0 },
                    self.at_once,
                )
            };
        }
        if !is_read {
            self.is_uncounted = why_uncounted.filter(|_| count > 0 || has_batch);
            let unread = all.iter().filter(is_request);
            let unread = ScriptRequest::all_of(code, &unread.collect::<Vec<_>>());
            let unread = ScriptRequest::each_once(unread);
            match &unread[..] {
                // However often it is sent, it is this one.
                [request] if !has_batch => {
                    if !request.is_for_mix() || !self.take_mix(&unread, true) {
                        self.take_request(request);
                    }
                }
                several if !has_batch && has_all && self.take_mix(several, false) => {
                    self.not_take(format!(
                        "how often it sends each request, some of them {}",
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
            Some((status, others))
                if (count == 1 || checks.len() == count)
                    && !has_batch
                    && !checks.iter().any(|check| check.is_conditional) =>
            {
                self.request.extend(["--check".to_owned(), format!("status={status}")]);
                if others > 0 {
                    self.not_take(format!("its other checks ({KNOWN_CHECKS})"));
                }
            }
            _ if checks.is_empty() => {}
            Some((status, _)) => self.not_take(format!(
                "its checks (--check status={status} is of all responses, theirs may not be)"
            )),
            None if have_several_statuses(&checks) => self.not_take(
                "its checks, which expect another status for one request than for another (--check is of all responses)"
                    .to_owned(),
            ),
            None => self.not_take(format!("its checks ({KNOWN_CHECKS})")),
        }
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
            ScriptBody::Text(body) if !varies(body) => {
                self.request.extend(with_value(&["-d", "{}"], body));
            }
            ScriptBody::File(file) => self.request.extend(["-D".to_owned(), file.clone()]),
            // Ours sends one body, and the script another one each time.
            ScriptBody::Text(_) | ScriptBody::Computed => {
                self.request.extend(["-d", BODY].map(str::to_owned));
            }
        }
        if request.is_own_form() {
            self.request.extend(["-T", FORM].map(str::to_owned));
        }
        for header in &request.headers {
            if varies(header) {
                let name = header.split(':').next().unwrap_or_default();
                self.request.extend(["-H".to_owned(), format!("{name}: {VALUE}")]);
            } else {
                self.request.extend(["-H".to_owned(), header.clone()]);
            }
        }
        self.take_rest(std::slice::from_ref(request));
        self.note_what_to_fill(std::slice::from_ref(request));
    }

    /// What to know of what stands in the line for parts of these requests.
    fn note_what_to_fill(&mut self, requests: &[ScriptRequest]) {
        for request in requests {
            let unknown = match &request.body {
                ScriptBody::Text(body) if masked_body(body) != *body => SECRET,
                ScriptBody::Computed => BODY,
                _ => continue,
            };
            let note =
                format!("URL-encode what you put for {unknown}, as k6 does (a b&c is a+b%26c)");
            if request.is_form && !self.to_fill.contains(&note) {
                self.to_fill.push(note);
            }
        }
        let mut names: Vec<String> = Vec::new();
        for header in requests.iter().filter(|it| it.is_of_response).flat_map(|it| &it.headers) {
            let name = header.strip_suffix(VALUE).and_then(|name| name.strip_suffix(": "));
            if let Some(name) = name.filter(|name| !names.iter().any(|known| known == name)) {
                names.push(name.to_owned());
            }
        }
        if !names.is_empty() {
            self.to_fill.push(format!(
                "for {VALUE} put a valid {}: k6 takes it from a response, and one line cannot log in first",
                listed(&names)
            ));
        }
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
        self.computed.extend(requests.iter().flat_map(|request| request.computed.clone()));
        for what in requests.iter().flat_map(|request| &request.not_taken) {
            self.not_take(what.clone());
        }
    }

    /// Several requests as a mix; `false` if one of them is not plain but for its URL, or goes
    /// elsewhere, or no URL is known. Words stand for what is computed, and for weights that are not
    /// known.
    fn take_mix(&mut self, requests: &[ScriptRequest], are_weights_known: bool) -> bool {
        let mut origins = requests.iter().filter_map(ScriptRequest::origin);
        let Some(origin) = origins.next() else { return false };
        // Where no URL is plain, one of which nothing is known may go anywhere.
        let is_plain = requests.iter().any(|request| request.url.is_some());
        if !is_plain && requests.iter().any(|request| request.origin().is_none()) {
            return false;
        }
        let first = requests.first().map_or(1, |request| request.weight);
        let is_alike = requests.iter().all(|request| request.weight == first);
        let line = |request: &ScriptRequest| {
            let weight = request.weight.to_string();
            let weight = if are_weights_known { &weight } else { WEIGHT };
            let is_written = !is_alike || !are_weights_known;
            request.mix_line(Some(weight).filter(|weight| is_written && *weight != "1"))
        };
        let lines: Option<Vec<String>> = requests.iter().map(line).collect();
        let Some(lines) = lines.filter(|_| origins.all(|other| other == origin)) else {
            return false;
        };
        self.request.extend(["--mix".to_owned(), lines.join(", ")]);
        self.url = Some(format!("{origin}/"));
        for request in requests.iter().filter(|request| request.url.is_none()) {
            self.paths_to_write.push(format!(
                "{} {}",
                request.method.as_deref().unwrap_or(METHOD),
                request.written_url
            ));
        }
        self.take_rest(requests);
        self.note_what_to_fill(requests);
        true
    }
}

/// Why several requests are no mix.
fn obstacle(why_uncounted: Option<&str>, requests: &[ScriptRequest]) -> String {
    let lines: Vec<Option<String>> = requests.iter().map(|it| it.mix_line(None)).collect();
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

/// What to type for a threshold that is not taken, in parentheses; empty if nothing is.
fn hint_of_threshold(metric: &str, limit: Option<&str>) -> String {
    let of_tag = metric
        .split_once('{')
        .and_then(|(metric, _)| k6_condition(&format!("{metric}:{}", limit?)));
    // These tags are of the response, and name no request.
    let is_of_responses = ["{expected_response:", "{status:", "{error"];
    let is_of_responses = is_of_responses.iter().any(|tag| metric.contains(tag));
    match (metric, of_tag) {
        (_, Some(condition)) if is_of_responses => {
            format!(" (--expect '{condition}' is of all responses)")
        }
        (_, Some(condition)) => {
            format!(" (--expect '/PATH {condition}', with the path of that request)")
        }
        ("checks", None) => " (with --check any failed one is exit code 1)".to_owned(),
        _ => String::new(),
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

/// Whether each of these calls of `check` asks for one status, and not all for the same.
fn have_several_statuses(checks: &[&JsCall<'_>]) -> bool {
    let one = |check: &&JsCall<'_>| status_of_checks(&[*check]).map(|(status, _)| status);
    let statuses: Option<Vec<u16>> = checks.iter().map(one).collect();
    statuses.is_some_and(|all| all.windows(2).any(|pair| pair[0] != pair[1]))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that says nothing but the script.
    const BARE: LineOfScript<'static> =
        LineOfScript { given: &|_| None, scenario: None, has_length: false, users: None };

    /// A script without an environment.
    fn script(text: &str) -> Option<K6Script> {
        K6Script::in_text(text, BARE)
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
        words.extend(found.paths_to_write.iter().map(|request| format!("path of {request}")));
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
            (
                "'http_req_duration{expected_response:true}': ['p(95)<200']",
                "not its threshold on http_req_duration{expected_response:true} (--expect 'p95 < 200ms' is of all responses)",
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
            let at_once = found.at_once.map(|times| format!("{times} at once"));
            [vec![shape], found.not_taken, at_once.into_iter().collect()].concat().join("; ")
        };
        let ramp = "stages: [{ duration: '1s', target: 10 }, { duration: '1s', target: 0 }]";
        let ramped = said(&format!("{{ {ramp} }}"));
        assert!(ramped.contains("1.9 times as many as k6 has on average"), "{ramped}");
        assert!(ramped.contains("2 at once"), "{ramped}");
        let steady =
            said("{ stages: [{ duration: '0s', target: 10 }, { duration: '1s', target: 10 }] }");
        assert!(!steady.contains("on average"), "{steady}");
        let users = said("{ vus: 5, duration: '1s' }");
        assert!(users.contains("2 at once"), "{users}");
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
                "const id = randomIntBetween(1, 50);\n  http.get(`http://h/a/${id}`);",
                "--mix GET /a/{1..50} http://h/",
            ),
            ("http.get('http://h/a/' + randomIntBetween(2, 5));", "--mix GET /a/{2..5} http://h/"),
            ("http.get('http://h/a/' + my.randomIntBetween(2, 5));", "--mix GET /PATH http://h/"),
            (
                "check(http.get('http://h/'), { a: (r) => { return r.status === 302; }, b: (r) => r.body });",
                "--check status=302 http://h/ not its other checks (--check has status, length, sha256 and same-body)",
            ),
        ] {
            let script = format!("export default function () {{\n  {body}\n}}");
            let found = K6Script::in_text(&script, BARE).unwrap();
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
            (
                stages,
                "`http://h/${__VU}`",
                format!("--mix GET /{{1..10}}, GET /b http://h/{}", drawn(10)),
            ),
            (
                "vus: 4, duration: '1s'",
                "'http://h/' + __VU",
                format!("--mix GET /{{1..4}}, GET /b http://h/{}", drawn(4)),
            ),
            (
                "vus: 4, duration: '1s'",
                "`http://h/${__VUS}`",
                "--mix GET /PATH, GET /b http://h/ path of GET http://h/${__VUS}".to_owned(),
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
                "--mix GET /a, GET /PATH http://h/ path of GET http://h/item/${__ITER}",
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
                "http://h/a not its checks (--check has status, length, sha256 and same-body)",
            ),
            (
                "check(http.get('http://h/a'), { a: (r) => r.status === 200, b: (r) => r.status === 201 });",
                "http://h/a not its checks (--check has status, length, sha256 and same-body)",
            ),
            (
                "check(http.get('http://h/a'), { a: (r) => r.status === 200 }); http.get('http://h/b');",
                "--mix GET /a, GET /b http://h/ not its checks (--check status=200 is of all responses, theirs may not be)",
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
            ("sleep(1); http.get('http://h/');", "--think 1s http://h/"),
            (
                "http.get('http://h/'); sleep(Math.random() * 2); sleep(randomIntBetween(1, 2));",
                "--think 2.5s http://h/ but --think 2.5s is the mean of its sleep()",
            ),
            ("http.get('http://h/'); sleep(T);", "http://h/ not its sleep()"),
            (
                "group('a', () => { http.get('http://h/a'); group('b', function () { http.get('http://h/b'); sleep(1); }); });",
                "--think 500ms --mix GET /a, GET /b http://h/ but its sleep() is 1s in each iteration: --think 500ms behind each request is as much in all",
            ),
            (
                "const P = { headers: { A: 'b' } };\n  http.batch(['http://h/a', ['POST', 'http://h/b', 'c', P], { method: 'PUT', url: 'http://h/d' }]);",
                "--mix GET /a, POST /b -d \"c\" -H \"A: b\", PUT /d http://h/",
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
                "--mix GET /a WEIGHT, GET /b WEIGHT http://h/ sent under a condition not how often it sends each request, some of them under a condition",
            ),
            (
                "for (const i of all) { http.get('http://h/'); sleep(1); }",
                "http://h/ not its sleep() sent in a loop",
            ),
            (
                "if (x) { http.get(`http://h/${y}`, { timeout: '5s', redirects: 0 }); }",
                "--mix GET /PATH --timeout 5s http://h/ sent under a condition path of GET http://h/${y}",
            ),
            (
                "do { http.put('http://h/', 'a'); } while (x);",
                "-m PUT -d a http://h/ sent in a loop",
            ),
            ("const r = http.get('http://h/'); if (r.status !== 200) { fail(); }", "http://h/"),
            (
                "const r = http.get('http://h/'); sleep(1); if (r.status !== 200) sleep(5);",
                "http://h/ not its sleep()",
            ),
            (
                "const r = http.get('http://h/'); r.status === 429 && sleep(5);",
                "http://h/ not its sleep()",
            ),
            (
                "for (const i of all) sleep(1); http.put('http://h/', 'a');",
                "-m PUT -d a http://h/ not its sleep() sent in a loop",
            ),
            ("x && http.put('http://h/', 'a');", "-m PUT -d a http://h/ sent under a condition"),
            (
                "const r = http.get('http://h/'); if (x) check(r, { ok: (r) => r.status === 200 });",
                "http://h/ not its checks (--check status=200 is of all responses, theirs may not be)",
            ),
        ] {
            assert_eq!(taken_of_iteration(body), expected, "{body}");
        }
    }

    #[test]
    fn a_random_whole_number_is_a_pause_of_its_mean() {
        for (pause, expected) in [
            ("Math.floor(Math.random() * 3) + 1", "2s"),
            ("randomIntBetween(1, 4)", "2.5s"),
            ("Math.random() * 2 + 1", "2s"),
            ("1 + Math.random() * (5 - 2)", "2.5s"),
            ("2 + Math.random()", "2.5s"),
            ("(500 + Math.random() * 1000) / 1000", "1s"),
        ] {
            let found = taken_of_iteration(&format!("http.get('http://h/'); sleep({pause});"));
            assert!(found.starts_with(&format!("--think {expected} http://h/")), "{found}");
            assert!(
                found.contains(&format!("--think {expected} is the mean of its sleep()")),
                "{found}"
            );
        }
    }

    #[test]
    fn pauses_of_branches_and_loops_are_added_up_or_not_known() {
        for (pauses, expected) in [
            ("if (x) { sleep(2); } else { sleep(2); }", Some("2s")),
            ("if (Math.random() < 0.25) { sleep(2); } sleep(1);", Some("1.5s")),
            ("for (let i = 0; i < 3; i++) { sleep(1); }", Some("3s")),
            ("const t = Math.random() * 2; sleep(t);", Some("1s")),
            ("if (x) { sleep(2); } else { sleep(1); }", None),
            ("if (x) { sleep(2); }", None),
            ("for (const one of all) { sleep(1); }", None),
            ("sleep(1 / Math.random());", None),
            ("sleep(1 - -x);", None),
        ] {
            let found = taken_of_iteration(&format!("http.get('http://h/'); {pauses}"));
            let expected = match expected {
                Some(pause) => format!("--think {pause} http://h/"),
                None => "http://h/ not its sleep()".to_owned(),
            };
            assert!(found.starts_with(&expected), "{pauses}: {found}");
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
            let found =
                K6Script::in_text(several, LineOfScript { scenario: Some(scenario), ..BARE })
                    .unwrap();
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
        assert!(found.requests_each == Some(2.0) && found.follows_nothing);
        let expected = "--rate 20/s --for 5s --mix GET /a, GET /b http://h/";
        assert_eq!(taken(rate).unwrap(), expected, "a rate of ours is of requests");
        let arrow =
            "export const options = { ...all };\nexport default () => { http.get('http://h/'); }";
        let expected = "http://h/ not its options (they are no plain literals)";
        assert_eq!(taken(arrow).unwrap(), expected);
        let open = "export const options = { scenarios: { a: { executor: 'constant-arrival-rate' } } };\nexport default function () { http.get('http://h/'); sleep(T); }";
        assert_eq!(taken(open).unwrap(), "--rate RATE --for DURATION http://h/ not its sleep()");
    }

    #[test]
    fn the_environment_gives_values_or_the_script_its_defaults() {
        let options = "export const options = { vus: __ENV.VUS || 5, duration: __ENV.LENGTH ? __ENV.LENGTH : '10s' };";
        let request = "const BASE = (__ENV.BASE ?? 'http://h') + '/a';\nexport default () => { http.get(`${BASE}/${__ENV['ID']}`, { headers: { A: `b ${__ENV.TOKEN || \"c\"}` } }); sleep(Number(__ENV.PAUSE || 1)); };";
        let text = format!("{options}\n{request}");
        let expected = "--vus 5 --duration 10s --think 1s --mix GET /PATH -H \"A: b c\" http://h/ path of GET ${BASE}/${__ENV.ID} without ID";
        assert_eq!(taken(&text).unwrap(), expected);
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
            line(K6Script::in_text(&text, LineOfScript { given: &given, ..BARE }).unwrap()),
            "--vus 7 --duration 60s --think 500ms -H A: b d http://it's/a/3"
        );
    }

    #[test]
    fn a_default_may_stand_behind_the_number_that_a_variable_is_made() {
        let text = "const VUS = parseInt(__ENV.VUS, 10) || 7, LENGTH = __ENV.LENGTH || '9s';\nexport const options = { vus: VUS, duration: LENGTH };";
        assert_eq!(taken(text).unwrap(), "--vus 7 --duration 9s");
        let given = |name: &str| (name == "VUS").then(|| "3".to_owned());
        let found = K6Script::in_text(text, LineOfScript { given: &given, ..BARE }).unwrap();
        assert_eq!(line(found), "--vus 3 --duration 9s");
        let stages = "stages: [{ duration: '10s', target: 8 }]";
        for start in [
            format!(
                "{{ scenarios: {{ a: {{ executor: 'ramping-vus', startVUs: 0, {stages} }} }} }}"
            ),
            format!("{{ vus: 0, {stages} }}"),
        ] {
            let shape = script(&format!("export const options = {start};")).unwrap().shape.unwrap();
            assert!(shape.said[0].contains("(2.0 times as many"), "{:?}", shape.said);
        }
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
