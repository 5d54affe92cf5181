//! The flags of other load tools, and ours for each: a table a tool. `command_lines` turns whole
//! command lines into ours by them.

use model::Nanos;
use model::secret::{SECRET, is_secret_body, masked_body, masked_word};

/// A tool whose command lines are known here.
#[derive(Debug)]
pub(crate) struct OtherTool {
    /// Its program.
    pub(crate) name: &'static str,
    pub(crate) flags: &'static [OthersFlag],
    /// What it does where nothing else is said.
    pub(crate) defaults: &'static [OthersDefault],
    /// A flag without effect beside another one.
    pub(crate) ignored: Option<IgnoredFlag>,
    /// How its flags are written.
    pub(crate) spelling: Spelling,
    /// Whether it refuses a certificate that nobody vouches for.
    pub(crate) verifies_certificates: bool,
    /// The layout of ours that is its own.
    pub(crate) style: Option<&'static str>,
    /// Where it is told the URL.
    pub(crate) url: UrlPlace,
    /// Whether it keeps connections alive.
    pub(crate) keep_alive: KeepAlive,
    /// Whether it asks for compressed responses.
    pub(crate) compression: Compression,
    /// The flag that says whether it follows redirects; it does without it. `None` if it never does
    /// unasked.
    pub(crate) redirects: Option<&'static str>,
    /// Whether it sends GET where a body is given without a method.
    pub(crate) gets_with_body: bool,
    /// The type that it gives to requests, unless a flag or a header says one.
    pub(crate) own_type: OwnType,
    /// Whether a line without its name may be its own: it makes load, and has no other purpose.
    pub(crate) makes_load: bool,
}

/// Where a tool is told what to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UrlPlace {
    /// On the command line.
    Word,
    /// In a script, which stands after this subcommand.
    Script(&'static str),
    /// On stdin or in a file of targets; this is the subcommand.
    Targets(&'static str),
}

/// Whether a tool keeps connections alive, as far as no flag of ours says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeepAlive {
    /// It does.
    Always,
    /// It does with this flag.
    With(&'static str),
    /// It does not, unless its settings file says so.
    Never,
}

/// Whether a tool asks for compressed responses, and the `Accept-Encoding` that it sends then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Only where a header says so.
    Never,
    /// It does.
    Always(&'static str),
    /// It does without this flag.
    Unless(&'static str, &'static str),
    /// It does with this flag.
    With(&'static str, &'static str),
}

/// The `Content-Type` that a tool sends unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnType {
    None,
    /// With a body.
    OfBodies(&'static str),
    /// With every request.
    OfAll(&'static str),
}

/// How a tool's flags are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// `-kc10`, `-c 10`, `--connections=10`.
    Getopt,
    /// `-c 10`, `-c=10`, `--c=10`: one dash and two are the same.
    Go,
}

/// A flag of a tool that has no effect beside another one.
#[derive(Debug)]
pub(crate) struct IgnoredFlag {
    pub(crate) flag: &'static str,
    pub(crate) beside: &'static str,
}

/// A flag of another tool, under its names.
#[derive(Debug)]
pub(crate) struct OthersFlag {
    names: &'static str,
    pub(crate) takes: Takes,
    pub(crate) ours: Counterpart,
}

/// A default of a tool: words of ours, added if the line has none of these flags of ours (by their
/// identifiers).
#[derive(Debug)]
pub(crate) struct OthersDefault {
    pub(crate) without: &'static [&'static str],
    pub(crate) words: &'static [&'static str],
}

/// The value that a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// None.
    No,
    /// None, or `=true` and `=false`.
    Switch,
    /// Any text.
    Text,
    /// Any text, which is a body.
    Body,
    /// The same for curl, where `@FILE` is a file.
    BodyOrFile,
    /// The same, which leaves line breaks out of a file.
    BodyOrText,
    /// A field of a form whose value is to be encoded: `NAME=VALUE`.
    FormField,
    /// A whole number.
    Count,
    /// A number above 0.
    Number,
    /// A number that may end in k, M or G.
    Thousands,
    /// A number of seconds.
    Seconds,
    /// A time with a unit.
    Time,
    /// A time; a bare number is seconds.
    TimeOrSeconds,
    /// siege's time: a number with S, M or H; a bare number is minutes.
    SiegeTime,
    /// `USER:PASSWORD`.
    Credentials,
    /// `Name: value`, or `Name=value`.
    Header,
    /// `NAME=VALUE`, of a cookie.
    Cookie,
    /// vegeta's rate: `50`, `50/1s`, `100/1m`, or 0 and `infinity` for a closed loop.
    VegetaRate,
    /// `HOST:PORT` to listen at; without a host, or with that of all networks, it is loopback here.
    ListenAddress,
    /// k6's stages: `30s:20,1m:50`.
    StageList,
    /// `FROM:PORT:TO:PORT`, or `FROM:PORT=TO:PORT`: where to connect to instead.
    ConnectTo,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// What another tool's flag is here.
#[derive(Debug)]
pub(crate) enum Counterpart {
    /// These words, with the value where they have `{}`.
    Words(&'static [&'static str]),
    /// The same, and how it differs.
    WordsBut(&'static [&'static str], &'static str),
    /// Nothing, and why not, with the value where that has `{}`.
    Nothing(&'static str),
    /// It cannot be done, and why not or what is there instead.
    Impossible(&'static str),
    /// The pause between requests is random, up to this value: ours is its mean.
    RandomPause,
    /// Requests of each connection: ours is the total.
    EachConnection,
    /// oha's time between bursts.
    BurstDelay,
    /// oha's requests of a burst.
    BurstSize,
    /// In the place of the URL stands a file of URLs.
    UrlsFromFile,
    /// k6's stages, `30s:20,1m:50`: the number of connections changes, which ours cannot.
    Stages,
    /// wrk's script, of which only plain texts are known.
    LuaScript,
}

use Counterpart::{
    BurstDelay, BurstSize, EachConnection, Impossible, LuaScript, Nothing, RandomPause, Stages,
    UrlsFromFile, Words, WordsBut,
};
use Spelling::{Getopt, Go};
use Takes::{
    Body, BodyOrFile, BodyOrText, ConnectTo, Cookie, Count, Credentials, FormField, Header,
    ListenAddress, No, Number, OneOf, Seconds, SiegeTime, StageList, Switch, Text, Thousands, Time,
    TimeOrSeconds, VegetaRate,
};

/// What stands in a line for a URL that only the user knows.
pub(crate) const URL: &str = "URL";

/// What stands in a line for what a script says, if it cannot be read there.
pub(crate) const VUS: &str = "VUS";
pub(crate) const DURATION: &str = "DURATION";
pub(crate) const RATE: &str = "RATE";
pub(crate) const METHOD: &str = "METHOD";
pub(crate) const BODY: &str = "BODY";
pub(crate) const PATH: &str = "PATH";
pub(crate) const PAUSE: &str = "PAUSE";
/// The value of a header.
pub(crate) const VALUE: &str = "VALUE";
/// A header of which not even the name is known.
pub(crate) const UNKNOWN_HEADER: &str = "NAME: VALUE";
/// How often a request of `--mix` is sent.
pub(crate) const WEIGHT: &str = "WEIGHT";

/// Whether that is the name of a script of k6 or wrk.
pub(crate) fn is_script(word: &str) -> bool {
    [".js", ".ts", ".lua"].iter().any(|end| word.ends_with(end))
}

const fn flag(names: &'static str, takes: Takes, ours: Counterpart) -> OthersFlag {
    OthersFlag { names, takes, ours }
}

const fn default(
    without: &'static [&'static str],
    words: &'static [&'static str],
) -> OthersDefault {
    OthersDefault { without, words }
}

const ALWAYS_PERCENTILES: &str = "percentiles are always printed";
const NO_PROXY: &str = "longtail never uses a proxy";
const HTTP_1_ONLY: &str = "longtail speaks HTTP/1.1 only";
const NO_REDIRECTS: &str = "redirects are never followed";
const REDIRECT_FAILS: &str =
    "a redirect is a failure to vegeta; ours does not follow it, and counts it as a response";
const NO_PROGRESS: &str = "a pipe and --json show no progress";
const NO_COLOR: &str = "--color never does that";
const NO_DECODING: &str = "no compressed response is asked for";
const ONE_AT_A_TIME: &str = "longtail sends one request at a time on a connection";
/// Go's HTTP client asks for it unless it is told not to.
const GZIP: &str = "gzip";
const KEEPS_GOING: &str = "a failed request never ends the run";
const FROM_DUE_TIME: &str = "times always count from when a request was due";
pub(crate) const NO_LUA: &str =
    "longtail runs no Lua: -m, -H, -d and --requests FILE say what to send";
pub(crate) const K6_OUTPUT: &str =
    "--log FILE.csv has a line a request; --metrics, --otlp and --statsd-to export figures";
const OTHER_SCHEMA: &str = "has another schema than our JSON, which docs/FORMAT.md describes";
pub(crate) const NO_SCRIPT: &str = "longtail runs no script";
const NO_TAGS: &str = "figures have no tags; -o NAME.study.json keeps a run under a name";
const KEPT: &str =
    "every run is kept: longtail report shows it again; --log FILE has a line a request";
const KEPT_OTHERWISE: &str = "every run is kept in a form that vegeta report does not read: longtail report shows it again; --log FILE has a line a request";
const NO_DUMP: &str = "requests are not printed; --log FILE.csv has a line for each";
const OUR_COLUMNS: &str = "prints other columns, in seconds; ours are in ms";
/// What Go takes for no time.
const ZERO_TIMES: &[&str] = &["0", "0s", "0m", "0ms", "0h"];
/// What Go takes for `false`.
const FALSE: &[&str] = &["false", "f", "F", "0", "False", "FALSE"];
/// hey gives it to a GET, too.
const HEYS_TYPE: &str = "text/html";
const FORM_TYPE: &str = "application/x-www-form-urlencoded";
const NO_RATE: &str = "no rate, a closed loop";
const WAITS: &str = "waits for each connection's response; ours is an open loop that stays on schedule (--late skip leaves out what is late) and uses as few of the -c connections as it needs";
const CEILING: &str = "is the most requests a second of all VUs together, and k6 sends fewer where responses are slow; ours stays on schedule (--late skip leaves out what is late)";
const FOR_EVER: &str = "vegeta goes on for ever; ours ends after 10 s unless --for says otherwise";
const EVERY_HOST: &str = "is for one host; ours connects there whatever the host of a URL";
/// It sets the header, then replaces all headers.
const LOST_BY_HEY: &str = "sends no Authorization in hey up to 0.1.4, ours does";
/// wrk waits on for a slow response, where our `--timeout` closes its connection.
const COUNTS_SLOW: &str =
    "only counts slower responses, and gives none up; --expect 'max < {}' fails a run that has one";
const NO_NAMES: &str = "a study has no title";

const HEY: OtherTool = OtherTool {
    name: "hey",
    flags: &[
        flag("n", Count, Words(&["-n", "{}"])),
        flag("c", Count, Words(&["-c", "{}"])),
        flag("q", OneOf(&["0"]), Nothing(NO_RATE)),
        flag("q", Number, WordsBut(&["-q", "{}"], WAITS)),
        flag("m", Text, Words(&["-m", "{}"])),
        flag("H", Header, Words(&["-H", "{}"])),
        flag("A", Text, Words(&["-A", "{}"])),
        flag("d", Body, Words(&["-d", "{}"])),
        flag("D", Text, Words(&["-D", "{}"])),
        flag("T", Text, Words(&["-T", "{}"])),
        flag("a", Credentials, WordsBut(&["-a", "{}"], LOST_BY_HEY)),
        flag("z", OneOf(ZERO_TIMES), Nothing("no time, -n says how many")),
        flag("z", Time, Words(&["--for", "{}"])),
        // 0 waits for ever; a day is as good.
        flag("t", OneOf(&["0"]), Words(&["--timeout", "24h"])),
        flag("t", Seconds, Words(&["--timeout", "{}"])),
        // hey puts its own name behind it.
        flag("U", Text, Words(&["-H", "User-Agent: {} hey/0.0.1"])),
        flag("host", Text, Words(&["--host", "{}"])),
        flag("disable-keepalive", Switch, Words(&["-k"])),
        flag("disable-compression", Switch, Nothing(NO_DECODING)),
        flag("disable-redirects", Switch, Nothing(NO_REDIRECTS)),
        flag("more", Switch, Nothing("--full prints more")),
        flag("cpus", Count, Words(&["--generator-threads", "{}"])),
        flag("o", OneOf(&["csv"]), WordsBut(&["--log=-.csv"], OUR_COLUMNS)),
        flag("x", Text, Impossible(NO_PROXY)),
        flag("h2", Switch, Impossible(HTTP_1_ONLY)),
    ],
    defaults: &[
        default(&["connections"], &["-c", "50"]),
        default(&["timeout"], &["--timeout", "20s"]),
        default(&["number", "length"], &["-n", "200"]),
    ],
    ignored: Some(IgnoredFlag { flag: "n", beside: "z" }),
    spelling: Go,
    verifies_certificates: false,
    style: Some("hey"),
    url: UrlPlace::Word,
    keep_alive: KeepAlive::Always,
    compression: Compression::Unless("disable-compression", GZIP),
    redirects: Some("disable-redirects"),
    gets_with_body: true,
    own_type: OwnType::OfAll(HEYS_TYPE),
    makes_load: true,
};

const WRK_FLAGS: &[OthersFlag] = &[
    flag("t threads", Thousands, Words(&["--generator-threads", "{}"])),
    flag("c connections", Thousands, Words(&["-c", "{}"])),
    flag("d duration", TimeOrSeconds, Words(&["--for", "{}"])),
    flag("H header", Header, Words(&["-H", "{}"])),
    flag("L latency", No, Nothing(ALWAYS_PERCENTILES)),
    flag("T timeout", TimeOrSeconds, Nothing(COUNTS_SLOW)),
    flag("s script", Text, LuaScript),
    // wrk2, whose program is called wrk too.
    flag("R rate", Thousands, Words(&["--rate", "{}"])),
    flag("U u_latency", No, Nothing(FROM_DUE_TIME)),
    flag("B batch_latency", No, Nothing(FROM_DUE_TIME)),
];

const WRK_DEFAULTS: &[OthersDefault] = &[
    default(&["connections"], &["-c", "10"]),
    default(&["length"], &["--for", "10s"]),
    default(&["generator_threads"], &["--generator-threads", "2"]),
];

const WRK: OtherTool = OtherTool {
    name: "wrk",
    flags: WRK_FLAGS,
    defaults: WRK_DEFAULTS,
    ignored: None,
    spelling: Getopt,
    verifies_certificates: false,
    style: Some("wrk"),
    url: UrlPlace::Word,
    keep_alive: KeepAlive::Always,
    compression: Compression::Never,
    redirects: None,
    gets_with_body: false,
    own_type: OwnType::None,
    makes_load: true,
};

const WRK2: OtherTool = OtherTool { name: "wrk2", ..WRK };

const AB: OtherTool = OtherTool {
    name: "ab",
    flags: &[
        flag("n", Count, Words(&["-n", "{}"])),
        flag("c", Count, Words(&["-c", "{}"])),
        flag("t", Seconds, Words(&["--for", "{}"])),
        flag("s", Seconds, Words(&["--timeout", "{}"])),
        flag("k", No, Words(&[])),
        flag("p", Text, Words(&["-D", "{}"])),
        flag("u", Text, Words(&["-m", "PUT", "-D", "{}"])),
        flag("T", Text, Words(&["-T", "{}"])),
        flag("H", Header, Words(&["-H", "{}"])),
        flag("C", Cookie, Words(&["-H", "Cookie: {}"])),
        flag("A", Credentials, Words(&["-a", "{}"])),
        flag("m", Text, Words(&["-m", "{}"])),
        flag("i", No, Words(&["-m", "HEAD"])),
        flag("B", Text, Words(&["--source-ip", "{}"])),
        flag("g", Text, Words(&["--log", "{}"])),
        flag("e", Text, Words(&["-o", "{}"])),
        flag("v", Count, Nothing("--full prints more")),
        flag("b", Count, Nothing("the kernel chooses the size of buffers")),
        flag("w", No, Nothing("--html FILE writes a page")),
        flag("q", No, Nothing(NO_PROGRESS)),
        flag("d S", No, Nothing(ALWAYS_PERCENTILES)),
        flag("l", No, Nothing("responses may differ in length")),
        flag("r", No, Nothing(KEEPS_GOING)),
        flag("I", No, Impossible("the TLS handshake always names the host")),
        flag("X P", Text, Impossible(NO_PROXY)),
        flag("f Z", Text, Impossible("longtail chooses version and ciphers of TLS itself")),
    ],
    defaults: &[
        default(&["connections"], &["-c", "1"]),
        default(&["number", "length"], &["-n", "1"]),
    ],
    ignored: None,
    spelling: Getopt,
    verifies_certificates: false,
    style: None,
    url: UrlPlace::Word,
    keep_alive: KeepAlive::With("k"),
    compression: Compression::Never,
    redirects: None,
    gets_with_body: false,
    own_type: OwnType::OfBodies("text/plain"),
    makes_load: true,
};

const OHA: OtherTool = OtherTool {
    name: "oha",
    flags: &[
        flag("n", Thousands, Words(&["-n", "{}"])),
        flag("c", Count, Words(&["-c", "{}"])),
        flag("q", OneOf(&["0"]), Nothing(NO_RATE)),
        flag("q", Number, Words(&["--rate", "{}"])),
        flag("z", Time, Words(&["--for", "{}"])),
        flag("t", Time, Words(&["--timeout", "{}"])),
        flag("connect-timeout", Time, Words(&["--connect-timeout", "{}"])),
        flag("m method", Text, Words(&["-m", "{}"])),
        flag("H", Header, Words(&["-H", "{}"])),
        flag("A", Text, Words(&["-A", "{}"])),
        flag("d", Body, Words(&["-d", "{}"])),
        flag("D", Text, Words(&["-D", "{}"])),
        flag("T", Text, Words(&["-T", "{}"])),
        flag("a", Credentials, Words(&["-a", "{}"])),
        flag("host", Text, Words(&["--host", "{}"])),
        flag("urls-from-file", No, UrlsFromFile),
        flag("disable-keepalive", No, Words(&["-k"])),
        flag("insecure", No, Words(&["--insecure"])),
        flag("ipv4", No, Words(&["-4"])),
        flag("ipv6", No, Words(&["-6"])),
        flag("cacert", Text, Words(&["--cacert", "{}"])),
        flag("cert", Text, Words(&["--cert", "{}"])),
        flag("key", Text, Words(&["--key", "{}"])),
        flag("unix-socket", Text, Words(&["--unix", "{}"])),
        flag("connect-to", ConnectTo, WordsBut(&["--connect-to", "{}"], EVERY_HOST)),
        flag("j json", No, Words(&["--json"])),
        flag("output-format", OneOf(&["json", "csv"]), Words(&["--{}"])),
        flag("o output", Text, Words(&["-o", "{}"])),
        flag("db-url", Text, Nothing(KEPT)),
        flag("latency-correction", No, Nothing(FROM_DUE_TIME)),
        flag("no-tui", No, Nothing(NO_PROGRESS)),
        flag("fps u time-unit", Text, Nothing(NO_PROGRESS)),
        flag("no-color disable-color", No, Nothing(NO_COLOR)),
        flag("r redirect", Count, Nothing(NO_REDIRECTS)),
        flag("disable-compression", No, Nothing(NO_DECODING)),
        flag("no-pre-lookup", No, Nothing("a name is looked up once, before the start")),
        flag("stats-success-breakdown", No, Nothing("failures are always counted apart")),
        flag(
            "w wait-ongoing-requests-after-deadline",
            No,
            Nothing("a request in flight at the end is counted as such"),
        ),
        flag("p", Count, Impossible(HTTP_1_ONLY)),
        flag("http2", No, Impossible(HTTP_1_ONLY)),
        flag("x", Text, Impossible(NO_PROXY)),
        flag("burst-delay", Time, BurstDelay),
        flag("burst-rate", Count, BurstSize),
        flag("rand-regex-url", No, Impossible("--requests FILE --random takes URLs from a file")),
        flag("Z", Text, Impossible("--requests FILE sends another body each time")),
        flag("F form", Text, Impossible("-D FILE sends a body that is ready, -T says its type")),
    ],
    defaults: &[
        default(&["connections"], &["-c", "50"]),
        default(&["number", "length"], &["-n", "200"]),
    ],
    ignored: Some(IgnoredFlag { flag: "n", beside: "z" }),
    spelling: Getopt,
    verifies_certificates: true,
    style: None,
    url: UrlPlace::Word,
    keep_alive: KeepAlive::Always,
    compression: Compression::Unless("disable-compression", "gzip, compress, deflate, br"),
    redirects: Some("redirect"),
    gets_with_body: true,
    own_type: OwnType::None,
    makes_load: true,
};

const BOMBARDIER: OtherTool = OtherTool {
    name: "bombardier",
    flags: &[
        flag("c connections", Count, Words(&["-c", "{}"])),
        flag("n requests", Count, Words(&["-n", "{}"])),
        flag("d duration", Time, Words(&["--for", "{}"])),
        flag("r rate", OneOf(&["0"]), Nothing(NO_RATE)),
        flag("r rate", Number, WordsBut(&["--rate", "{}"], WAITS)),
        flag("t timeout", Time, Words(&["--timeout", "{}"])),
        flag("m method", Text, Words(&["-m", "{}"])),
        flag("b body", Body, Words(&["-d", "{}"])),
        flag("f body-file", Text, Words(&["-D", "{}"])),
        flag("H header", Header, Words(&["-H", "{}"])),
        flag("k insecure", No, Words(&["--insecure"])),
        flag("a disableKeepAlives", No, Words(&["-k"])),
        flag("cert", Text, Words(&["--cert", "{}"])),
        flag("key", Text, Words(&["--key", "{}"])),
        flag("l latencies", No, Nothing(ALWAYS_PERCENTILES)),
        flag("p print", Text, Nothing(NO_PROGRESS)),
        flag("q no-print", No, Nothing(NO_PROGRESS)),
        flag("o format", OneOf(&["json", "j"]), Words(&["--json"])),
        flag("o format", OneOf(&["plain-text", "pt"]), Words(&[])),
        flag("fasthttp http1", No, Nothing(HTTP_1_ONLY)),
        flag("http2", No, Impossible(HTTP_1_ONLY)),
        flag("s stream", No, Impossible("a body is sent with its length")),
    ],
    defaults: &[
        default(&["connections"], &["-c", "125"]),
        default(&["number", "length"], &["--for", "10s"]),
        default(&["timeout"], &["--timeout", "2s"]),
    ],
    ignored: None,
    spelling: Getopt,
    verifies_certificates: true,
    style: None,
    url: UrlPlace::Word,
    keep_alive: KeepAlive::Always,
    compression: Compression::Never,
    redirects: None,
    gets_with_body: true,
    own_type: OwnType::None,
    makes_load: true,
};

const AUTOCANNON: OtherTool = OtherTool {
    name: "autocannon",
    flags: &[
        flag("c connections", Count, Words(&["-c", "{}"])),
        flag("d duration", Seconds, Words(&["--for", "{}"])),
        flag("a amount", Count, Words(&["-n", "{}"])),
        flag("O maxOverallRequests", Count, Words(&["-n", "{}"])),
        flag("R overallRate r connectionRate", OneOf(&["0"]), Nothing(NO_RATE)),
        flag("R overallRate", Number, WordsBut(&["--rate", "{}"], WAITS)),
        flag("r connectionRate", Number, WordsBut(&["-q", "{}"], WAITS)),
        flag("D reconnectRate", Count, Words(&["--reconnect-after", "{}"])),
        flag("t timeout", Seconds, Words(&["--timeout", "{}"])),
        flag("m method", Text, Words(&["-m", "{}"])),
        flag("b body", Body, Words(&["-d", "{}"])),
        flag("i input", Text, Words(&["-D", "{}"])),
        flag("H headers", Header, Words(&["-H", "{}"])),
        flag("w workers", Count, Words(&["--generator-threads", "{}"])),
        flag("S socketPath", Text, Words(&["--unix", "{}"])),
        flag("cert", Text, Words(&["--cert", "{}"])),
        flag("key", Text, Words(&["--key", "{}"])),
        flag("ca", Text, Words(&["--cacert", "{}"])),
        flag("j json", No, Words(&["--json"])),
        flag("p pipelining", OneOf(&["1"]), Words(&[])),
        flag("p pipelining", Count, Impossible(ONE_AT_A_TIME)),
        flag("l latency", No, Nothing(ALWAYS_PERCENTILES)),
        flag("n no-progress", No, Nothing(NO_PROGRESS)),
        flag("T title", Text, Nothing(NO_NAMES)),
        flag("L sampleInt", Count, Nothing("longtail keeps every time, not samples")),
        flag("C ignoreCoordinatedOmission", No, Impossible(FROM_DUE_TIME)),
        flag("renderStatusCodes", No, Nothing("statuses are counted where they are not good ones")),
        flag("x excludeErrorStats", No, Nothing("failures are never among the times")),
        flag("debug", No, Nothing("--full prints more")),
        flag("B bailout", Count, Impossible("--stop-if 'errors > 1%' ends a run early")),
        flag("E expectBody", Text, Impossible("--check sha256=HEX checks the bodies")),
        flag("W warmup", Text, Impossible("--warm-up TIME loads before the measurement")),
        flag("F form har on-port", Text, Impossible("--requests FILE sends what a file says")),
        flag(
            "M maxConnectionRequests",
            Count,
            Impossible("-n ends a run after a number of requests in all"),
        ),
        flag("f forever", No, Impossible("a run ends by --for or -n")),
        flag(
            "s servername",
            Text,
            Impossible("the TLS handshake names the URL's host; --connect-to goes elsewhere"),
        ),
    ],
    defaults: &[
        default(&["connections"], &["-c", "10"]),
        default(&["number", "length"], &["--for", "10s"]),
        default(&["timeout"], &["--timeout", "10s"]),
    ],
    ignored: Some(IgnoredFlag { flag: "d", beside: "a" }),
    spelling: Getopt,
    verifies_certificates: true,
    style: None,
    url: UrlPlace::Word,
    keep_alive: KeepAlive::Always,
    compression: Compression::Never,
    redirects: None,
    gets_with_body: true,
    own_type: OwnType::None,
    makes_load: true,
};

const SIEGE: OtherTool = OtherTool {
    name: "siege",
    flags: &[
        flag("c concurrent", Count, Words(&["-c", "{}"])),
        flag("t time", SiegeTime, Words(&["--for", "{}"])),
        flag("r reps", Count, EachConnection),
        flag("r reps", OneOf(&["once"]), Impossible("-n is the number of requests in all")),
        flag("d delay", Seconds, RandomPause),
        flag("f file", Text, Words(&["--requests", "{}"])),
        flag("i internet", No, Words(&["--random"])),
        flag("H header", Header, Words(&["-H", "{}"])),
        flag("T content-type", Text, Words(&["-T", "{}"])),
        flag("user-agent", Text, Words(&["-H", "User-Agent: {}"])),
        flag("j json-output", No, Words(&["--json"])),
        flag(
            "b benchmark",
            No,
            Nothing("there is no pause between requests, unless --think says so"),
        ),
        flag("v verbose", No, Nothing("--log - prints a line a request")),
        flag("q quiet", No, Nothing(NO_PROGRESS)),
        flag("N no-parser", No, Nothing("a page's images and scripts are not loaded")),
        flag("no-follow", No, Nothing(NO_REDIRECTS)),
    ],
    defaults: &[default(&["connections"], &["-c", "25"])],
    ignored: None,
    spelling: Getopt,
    verifies_certificates: false,
    style: None,
    url: UrlPlace::Word,
    keep_alive: KeepAlive::Never,
    compression: Compression::Always(GZIP),
    redirects: Some("no-follow"),
    gets_with_body: false,
    own_type: OwnType::OfBodies(FORM_TYPE),
    makes_load: true,
};

const K6: OtherTool = OtherTool {
    name: "k6",
    flags: &[
        flag("u vus", Count, Words(&["-c", "{}"])),
        flag("d duration", Time, Words(&["--for", "{}"])),
        flag("i iterations", Count, Words(&["-n", "{}"])),
        flag("rps", OneOf(&["0"]), Nothing(NO_RATE)),
        flag("rps", Number, WordsBut(&["--rate", "{}"], CEILING)),
        flag("user-agent", Text, Words(&["-H", "User-Agent: {}"])),
        flag("insecure-skip-tls-verify", No, Words(&["--insecure"])),
        flag("no-connection-reuse", No, Words(&["-k"])),
        // Once in an iteration: of how many requests that is, a script says.
        flag("no-vu-connection-reuse", No, Words(&["--reconnect-after", "1"])),
        flag("summary-export", Text, WordsBut(&["-o", "{}"], OTHER_SCHEMA)),
        flag("q quiet no-color no-usage-report no-summary", No, Nothing(NO_PROGRESS)),
        flag("v verbose", No, Nothing("--full prints more")),
        flag("max-redirects", Count, Nothing(NO_REDIRECTS)),
        flag("discard-response-bodies", No, Nothing("bodies are read and not kept")),
        flag("no-setup no-teardown no-thresholds", No, Nothing(NO_SCRIPT)),
        flag("vus-max", Count, Nothing("no more connections are opened than -c says")),
        flag("s stage", StageList, Stages),
        flag("o out", Text, Impossible(K6_OUTPUT)),
        // k6's own -c is a config file, so one with a number is meant as ours.
        flag("c", Count, Words(&["-c", "{}"])),
        // The script is read with them.
        flag("e env", Text, Words(&[])),
        flag("config c", Text, Impossible(NO_SCRIPT)),
        flag("include-system-env-vars", Text, Impossible(NO_SCRIPT)),
        flag("tag tags system-tags", Text, Impossible(NO_TAGS)),
        flag("t type compatibility-mode execution-segment", Text, Impossible(NO_SCRIPT)),
        flag("execution-segment-sequence batch batch-per-host", Text, Impossible(NO_SCRIPT)),
        flag("paused w throw show-logs", No, Impossible(NO_SCRIPT)),
        flag("http-debug", No, Impossible(NO_DUMP)),
        flag("http-debug", Text, Impossible(NO_DUMP)),
        flag("summary-trend-stats summary-time-unit", Text, Nothing(ALWAYS_PERCENTILES)),
        flag("summary-mode", Text, Nothing("--full prints more")),
        flag("log-output log-format console-output", Text, Nothing(NO_SCRIPT)),
        flag("traces-output profiling-enabled secret-source", Text, Nothing(NO_SCRIPT)),
        flag("a address", Text, Nothing("--metrics 127.0.0.1:PORT shows live figures")),
        flag("dns", Text, Nothing("a name is looked up once, before the start")),
        flag("local-ips", Text, Words(&["--source-ip", "{}"])),
        flag("min-iteration-duration", Text, Impossible("--think TIME pauses between requests")),
        flag(
            "blacklist-ip block-hostnames",
            Text,
            Impossible("--allow-net says where load may go"),
        ),
        flag("no-cookies-reset", No, Nothing("responses set no cookies here")),
        flag("l linger", No, Nothing("a run ends by --for or -n")),
    ],
    defaults: &[
        default(&["connections", "rate", "steps", "ramp"], &["-c", VUS]),
        default(&["number", "length"], &["--for", DURATION]),
        default(&["timeout"], &["--timeout", "60s"]),
    ],
    ignored: None,
    spelling: Getopt,
    verifies_certificates: true,
    style: None,
    url: UrlPlace::Script("run"),
    keep_alive: KeepAlive::Always,
    compression: Compression::Never,
    redirects: Some("max-redirects"),
    gets_with_body: false,
    own_type: OwnType::None,
    makes_load: true,
};

const VEGETA: OtherTool = OtherTool {
    name: "vegeta",
    flags: &[
        flag("rate", VegetaRate, Words(&["--rate", "{}"])),
        flag("duration", OneOf(ZERO_TIMES), Nothing(FOR_EVER)),
        flag("duration", Time, Words(&["--for", "{}"])),
        // 0 waits for ever; a day is as good.
        flag("timeout", OneOf(ZERO_TIMES), Words(&["--timeout", "24h"])),
        flag("timeout", Time, Words(&["--timeout", "{}"])),
        flag("max-workers", Count, Words(&["-c", "{}"])),
        flag("max-connections", Count, Words(&["--max-connections", "{}"])),
        flag("targets", OneOf(&["stdin"]), Words(&["--requests", "-"])),
        flag("targets", Text, Words(&["--requests", "{}"])),
        flag("format", OneOf(&["json"]), Words(&["--requests-format", "json"])),
        flag("format", OneOf(&["http"]), Words(&["--requests-format", "plain"])),
        flag("header", Header, Words(&["-H", "{}"])),
        flag("body", Text, Words(&["-D", "{}"])),
        flag("cert", Text, Words(&["--cert", "{}"])),
        flag("key", Text, Words(&["--key", "{}"])),
        flag("root-certs", Text, Words(&["--cacert", "{}"])),
        flag("insecure", Switch, Words(&["--insecure"])),
        flag("keepalive", OneOf(FALSE), Words(&["-k"])),
        flag("keepalive", Switch, Nothing("connections are kept alive unless -k says otherwise")),
        flag("laddr", Text, Words(&["--source-ip", "{}"])),
        flag("unix-socket", Text, Words(&["--unix", "{}"])),
        flag("cpus", Count, Words(&["--generator-threads", "{}"])),
        flag("workers connections", Count, Nothing("there are as many connections as it takes")),
        flag("redirects", OneOf(&["0"]), Nothing(REDIRECT_FAILS)),
        flag("redirects", Text, Nothing(NO_REDIRECTS)),
        flag("max-body", Text, Nothing("bodies are read whole and not kept")),
        flag("http2", OneOf(FALSE), Nothing(HTTP_1_ONLY)),
        flag("output", Text, Nothing(KEPT_OTHERWISE)),
        flag("name", Text, Nothing(NO_NAMES)),
        flag("lazy", Switch, Nothing("requests are made before the start")),
        flag(
            "session-tickets",
            Switch,
            Nothing("TLS sessions are resumed where the server lets us"),
        ),
        flag("dns-ttl resolvers", Text, Nothing("a name is looked up once, before the start")),
        flag("prometheus-addr", ListenAddress, Words(&["--metrics", "{}"])),
        flag("h2c http2", Switch, Impossible(HTTP_1_ONLY)),
        flag("chunked", Switch, Impossible("a body is sent with its length")),
        flag("proxy-header", Text, Impossible(NO_PROXY)),
        flag("connect-to", ConnectTo, WordsBut(&["--connect-to", "{}"], EVERY_HOST)),
    ],
    defaults: &[default(&["rate", "connections"], &["--rate", "50"])],
    ignored: None,
    spelling: Go,
    verifies_certificates: true,
    style: None,
    url: UrlPlace::Targets("attack"),
    keep_alive: KeepAlive::Always,
    compression: Compression::Always(GZIP),
    redirects: Some("redirects"),
    gets_with_body: false,
    own_type: OwnType::None,
    makes_load: true,
};

const H2LOAD: OtherTool = OtherTool {
    name: "h2load",
    flags: &[
        flag("n requests", Count, Words(&["-n", "{}"])),
        flag("c clients", Count, Words(&["-c", "{}"])),
        flag("t threads", Count, Words(&["--generator-threads", "{}"])),
        flag("D duration", TimeOrSeconds, Words(&["--for", "{}"])),
        flag("warm-up-time", TimeOrSeconds, Words(&["--warm-up", "{}"])),
        flag("d data", Text, Words(&["-D", "{}"])),
        flag("H header", Header, Words(&["-H", "{}"])),
        flag("N connection-inactivity-timeout", OneOf(ZERO_TIMES), Words(&["--timeout", "24h"])),
        flag("N connection-inactivity-timeout", TimeOrSeconds, Words(&["--timeout", "{}"])),
        flag("T connection-active-timeout", OneOf(ZERO_TIMES), Words(&["--timeout", "24h"])),
        flag("T connection-active-timeout", TimeOrSeconds, Words(&["--timeout", "{}"])),
        flag("i input-file", Text, Words(&["--requests", "{}"])),
        flag("m max-concurrent-streams", OneOf(&["1"]), Words(&[])),
        flag("m max-concurrent-streams", Count, Impossible(ONE_AT_A_TIME)),
        flag("h1", No, Nothing(HTTP_1_ONLY)),
        flag("v verbose", No, Nothing("--full prints more")),
    ],
    defaults: &[
        default(&["connections"], &["-c", "1"]),
        default(&["number", "length"], &["-n", "1"]),
        default(&["generator_threads"], &["--generator-threads", "1"]),
    ],
    ignored: None,
    spelling: Getopt,
    verifies_certificates: false,
    style: None,
    url: UrlPlace::Word,
    keep_alive: KeepAlive::Always,
    compression: Compression::Never,
    redirects: None,
    gets_with_body: false,
    own_type: OwnType::None,
    makes_load: true,
};

/// Its lines are copied from browsers and documentation of APIs.
const CURL: OtherTool = OtherTool {
    name: "curl",
    flags: &[
        flag("X request", Text, Words(&["-m", "{}"])),
        flag("H header", Header, Words(&["-H", "{}"])),
        flag("d data data-ascii", BodyOrText, Words(&["-d", "{}"])),
        flag("data-binary", BodyOrFile, Words(&["-d", "{}"])),
        flag("data-raw", Body, Words(&["--data-raw", "{}"])),
        flag("data-urlencode", FormField, Words(&["-d", "{}"])),
        flag("data-urlencode", Text, Impossible("-D FILE sends a body that is ready")),
        // Its bodies are then the URL's query.
        flag("G get", No, Words(&[])),
        // It says no type of a file.
        flag("T upload-file", Text, Words(&["-m", "PUT", "-H", "Content-Type:", "-D", "{}"])),
        flag(
            "json",
            BodyOrFile,
            Words(&["-T", "application/json", "-A", "application/json", "-d", "{}"]),
        ),
        flag("u user", Credentials, Words(&["-a", "{}"])),
        flag("b cookie", Cookie, Words(&["-H", "Cookie: {}"])),
        flag("A user-agent", Text, Words(&["-H", "User-Agent: {}"])),
        flag("e referer", Text, Words(&["-H", "Referer: {}"])),
        flag("I head", No, Words(&["-m", "HEAD"])),
        flag("k insecure", No, Words(&["--insecure"])),
        flag("m max-time", OneOf(ZERO_TIMES), Words(&["--timeout", "24h"])),
        flag("m max-time", Seconds, Words(&["--timeout", "{}"])),
        flag("connect-timeout", Seconds, Words(&["--connect-timeout", "{}"])),
        flag("cacert", Text, Words(&["--cacert", "{}"])),
        flag("E cert", Text, Words(&["--cert", "{}"])),
        flag("key", Text, Words(&["--key", "{}"])),
        flag("resolve", Text, Words(&["--resolve", "{}"])),
        flag("connect-to", ConnectTo, WordsBut(&["--connect-to", "{}"], EVERY_HOST)),
        flag("unix-socket", Text, Words(&["--unix", "{}"])),
        flag("abstract-unix-socket", Text, Words(&["--unix", "@{}"])),
        flag("4 ipv4", No, Words(&["-4"])),
        flag("6 ipv6", No, Words(&["-6"])),
        flag("url", Text, Words(&["{}"])),
        flag("L location", No, Nothing(NO_REDIRECTS)),
        flag("compressed", No, Words(&[])),
        flag(
            "s silent S show-error i include v verbose f fail N no-buffer",
            No,
            Nothing("bodies are read and not printed"),
        ),
        flag("o output", Text, Nothing("bodies are read and not printed")),
        flag(
            "w write-out",
            Text,
            Nothing("times and failures are in the answer, and --log - prints a line a request"),
        ),
        flag("http1.1", No, Nothing(HTTP_1_ONLY)),
        flag("http2", No, Impossible(HTTP_1_ONLY)),
        flag("x proxy", Text, Impossible(NO_PROXY)),
        flag(
            "retry retry-delay retry-max-time",
            Text,
            Impossible("longtail capacity --retry 3:200ms sends a failed request again"),
        ),
        flag("Z parallel", No, Nothing("-c says how many requests are out at once")),
        flag("parallel-max", Count, Words(&["-c", "{}"])),
        flag("F form", Text, Impossible("-D FILE sends a body that is ready, -T says its type")),
    ],
    defaults: &[
        default(&["number", "length"], &["-n", "1"]),
        default(&["connections"], &["-c", "1"]),
    ],
    ignored: None,
    spelling: Getopt,
    verifies_certificates: true,
    style: None,
    url: UrlPlace::Word,
    keep_alive: KeepAlive::Always,
    compression: Compression::With("compressed", "deflate, gzip"),
    redirects: None,
    gets_with_body: false,
    own_type: OwnType::OfBodies(FORM_TYPE),
    makes_load: false,
};

/// What it sends is in a file of Python.
const LOCUST: OtherTool = OtherTool {
    name: "locust",
    flags: &[
        flag("u users", Count, Words(&["-c", "{}"])),
        flag("t run-time", TimeOrSeconds, Words(&["--for", "{}"])),
        flag("H host", Text, Words(&["{}"])),
        flag("r spawn-rate", Number, Nothing("all connections are there from the start")),
        flag("f locustfile", Text, Words(&[])),
        flag("html", Text, Words(&["--html", "{}"])),
        flag("csv", Text, WordsBut(&["-o", "{}.csv"], "writes other columns")),
        flag("json", No, Words(&["--json"])),
        flag("processes", Count, Words(&["--generator-threads", "{}"])),
        flag(
            "headless autostart only-summary print-stats csv-full-history",
            No,
            Nothing("there is no web page to start it from, and each run is kept"),
        ),
        flag("L loglevel logfile s stop-timeout", Text, Nothing("there is no such log")),
        flag("T tags E exclude-tags", Text, Impossible("--mix says which requests are sent")),
        flag("master worker", No, Impossible("--from 'ssh box2' makes the load elsewhere, too")),
    ],
    defaults: &[default(&["connections"], &["-c", "1"])],
    ignored: None,
    spelling: Getopt,
    verifies_certificates: true,
    style: None,
    url: UrlPlace::Word,
    keep_alive: KeepAlive::Always,
    compression: Compression::Always("gzip, deflate"),
    // No flag says otherwise.
    redirects: Some(""),
    gets_with_body: false,
    own_type: OwnType::None,
    makes_load: false,
};

/// All of them. Where a line may be of several, they are named in this order.
pub(crate) const TOOLS: [&OtherTool; 13] = [
    &WRK,
    &HEY,
    &AB,
    &SIEGE,
    &BOMBARDIER,
    &AUTOCANNON,
    &OHA,
    &K6,
    &VEGETA,
    &H2LOAD,
    &WRK2,
    &CURL,
    &LOCUST,
];

impl OtherTool {
    /// The one of that name.
    pub(crate) fn of(name: &str) -> Option<&'static OtherTool> {
        TOOLS.into_iter().find(|tool| tool.name == name)
    }

    /// Whether one of them has a flag of this name of several letters.
    pub(crate) fn any_has_long(name: &str) -> bool {
        let mut flags = TOOLS.into_iter().flat_map(|tool| tool.flags);
        name.len() > 2 && flags.any(|flag| flag.is_called(name))
    }
}

impl OthersFlag {
    /// Its first name, with its dashes.
    pub(crate) fn shown_name(&self, spelling: Spelling) -> String {
        let name = self.names.split(' ').next().unwrap_or_default();
        let is_letter = name.chars().count() == 1;
        let dashes = if is_letter || spelling == Spelling::Go { "-" } else { "--" };
        format!("{dashes}{name}")
    }

    pub(crate) fn takes_value(&self) -> bool {
        !matches!(self.takes, No | Switch)
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.names.split(' ').any(|one| one == name)
    }

    /// This value of it without its secrets.
    pub(crate) fn masked(&self, value: &str) -> String {
        match self.takes {
            _ if value.is_empty() => String::new(),
            Body | BodyOrFile | BodyOrText => masked_body(value),
            FormField if is_secret_body(value) => SECRET.to_owned(),
            Credentials | Cookie => SECRET.to_owned(),
            _ => masked_word(value),
        }
    }
}

impl Takes {
    /// A value of this kind, if that is a number, a time or a rate.
    pub(crate) fn example(self) -> Option<&'static str> {
        match self {
            Count | Number | Thousands | Seconds => Some("10"),
            SiegeTime => Some("10S"),
            Time | TimeOrSeconds => Some("10s"),
            VegetaRate => Some("50/s"),
            StageList => Some("30s:20"),
            _ => None,
        }
    }

    /// The value as our flag has it; `None` if no such flag takes it.
    pub(crate) fn ours(self, value: &str) -> Option<String> {
        let seconds = || value.parse::<f64>().is_ok_and(|n| n >= 0.0).then(|| format!("{value}s"));
        let is_count = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        let time = || value.parse::<model::Nanos>().is_ok().then(|| value.to_owned());
        match self {
            No | Switch => None,
            // A masked value says nothing of its kind.
            _ if value.contains(SECRET) => Some(value.to_owned()),
            Text | Body | BodyOrFile | BodyOrText => Some(value.to_owned()),
            FormField => form_field(value),
            Count => is_count.then(|| value.to_owned()),
            Number => value.parse::<f64>().is_ok_and(|n| n > 0.0).then(|| value.to_owned()),
            Thousands => without_unit(value),
            Seconds => seconds(),
            Time if value.parse::<f64>().is_ok() => None,
            TimeOrSeconds => seconds().or_else(time),
            Time => time(),
            SiegeTime => siege_time(value),
            Credentials => value.contains(':').then(|| value.to_owned()),
            Header => header(value),
            Cookie => value.contains('=').then(|| value.to_owned()),
            VegetaRate => vegeta_rate(value),
            ListenAddress => listen_address(value),
            ConnectTo => connect_to(value),
            StageList => value.split(',').all(is_stage).then(|| value.to_owned()),
            OneOf(words) => words.contains(&value).then(|| value.to_owned()),
        }
    }
}

/// What the value of a switch says: `true` and `false`, and what Go and others take for them.
pub(crate) fn truth_of(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "t" | "1" | "yes" | "on" => Some(true),
        "false" | "f" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// A number without its k, M or G (thousands, millions, billions).
fn without_unit(value: &str) -> Option<String> {
    let (digits, by) = match value.split_at_checked(value.len().saturating_sub(1)) {
        Some((digits, "k" | "K")) => (digits, 1e3),
        Some((digits, "m" | "M")) => (digits, 1e6),
        Some((digits, "g" | "G")) => (digits, 1e9),
        _ => (value, 1.0),
    };
    let number: f64 = digits.parse().ok().filter(|number| *number >= 0.0)?;
    Some(format!("{:.0}", number * by))
}

fn siege_time(value: &str) -> Option<String> {
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = &value[..value.len() - unit.len()];
    let unit = match unit {
        "s" | "S" => "s",
        "m" | "M" | "" => "m",
        "h" | "H" => "h",
        _ => return None,
    };
    (!number.is_empty()).then(|| format!("{number}{unit}"))
}

/// `Name: value`, of which autocannon also takes `Name=value`; hey's may lack the space.
fn header(value: &str) -> Option<String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'=')
    };
    if value.split_once(':').is_some_and(|(name, _)| is_name(name)) {
        return Some(value.to_owned());
    }
    let (name, value) = value.split_once('=')?;
    is_name(name).then(|| format!("{name}: {value}"))
}

/// `NAME=VALUE`, `=VALUE` or `VALUE` with the value encoded; not where it is in a file.
fn form_field(value: &str) -> Option<String> {
    let (name, plain) = match value.split_once('=') {
        Some(("", plain)) => (String::new(), plain),
        Some((name, plain)) => (format!("{name}="), plain),
        None if value.contains('@') => return None,
        None => (String::new(), value),
    };
    let encoded = plain.bytes().map(|byte| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    Some(name + &encoded.collect::<String>())
}

/// Requests per second; empty for no rate at all.
fn vegeta_rate(value: &str) -> Option<String> {
    if ["0", "inf", "infinity"].contains(&value) {
        return Some(String::new());
    }
    let (number, period) = value.split_once('/').unwrap_or((value, "1s"));
    // Go reads a bare unit as one: `50/s` is `50/1s`.
    let period = if period.starts_with(|c: char| c.is_ascii_digit()) {
        period.to_owned()
    } else {
        format!("1{period}")
    };
    let period: model::Nanos = period.parse().ok()?;
    let per_second = number.parse::<f64>().ok()? / period.as_secs_f64();
    per_second.is_finite().then(|| in_five_digits(per_second))
}

/// A number with no more digits than it takes to set a rate by: `1.6667`.
pub(crate) fn in_five_digits(number: f64) -> String {
    let before_point = number.abs().max(1e-9).log10().floor();
    let decimals = (4.0 - before_point).clamp(0.0, 12.0) as usize;
    let text = format!("{number:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// `30s:20`: a time, and how many connections there are at its end.
fn is_stage(text: &str) -> bool {
    text.split_once(':').is_some_and(|(time, connections)| {
        time.trim().parse::<model::Nanos>().is_ok() && connections.trim().parse::<u32>().is_ok()
    })
}

/// The last place of `FROM:PORT:TO:PORT` or `FROM:PORT=TO:PORT`. An IPv6 address has brackets.
fn connect_to(value: &str) -> Option<String> {
    let place = value.rsplit('=').next()?;
    let (before, port) = place.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let host = if before.ends_with(']') {
        &before[before.rfind('[')?..]
    } else {
        before.rsplit(':').next()?
    };
    if host.is_empty() || value.contains(',') { None } else { Some(format!("{host}:{port}")) }
}

/// `:8880`, `0.0.0.0:8880` and `[::]:8880` are open to all networks; ours listens at loopback.
fn listen_address(value: &str) -> Option<String> {
    let (host, port) = value.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let host = if ["", "0.0.0.0", "[::]"].contains(&host) { "127.0.0.1" } else { host };
    Some(format!("{host}:{port}"))
}

/// Our words of a flag with its value. A body that `-d` would refuse here has to be marked as text.
pub(super) fn with_value(parts: &[&str], value: &str) -> Vec<String> {
    let is_plain_text = value.starts_with('@') || value.parse::<Nanos>().is_ok();
    let word = |part: &&str| match *part {
        "-d" if is_plain_text => "--data-raw".to_owned(),
        part => part.replace("{}", value),
    };
    parts.iter().map(word).collect()
}
