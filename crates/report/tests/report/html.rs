//! The HTML page: what is in it, and how a real browser lays it out. Without Chromium on PATH
//! (`bin/install-missing test` brings it) the second part is skipped, and says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use judge::words::{FirstSentence, first_sentence};
use model::{Study, SweepStudy};
use report::summary::Summary;
use report::{html, number};
use serde::Deserialize;
use testkit::{bodies, claimed, comparison, load, study};

/// A page of eight loads that were watched in every way.
fn eight_rows() -> SweepStudy {
    let mut study = study::watched();
    let last = study.runs[1].clone();
    for connections in [50, 60, 70, 80, 90, 100] {
        let mut run = last.clone();
        run.connections = connections;
        run.multiple = Some(f64::from(connections) / 10.0);
        study.runs.push(run);
    }
    study
}

fn page(study: &Study) -> String {
    html::whole(study, &Summary::of(study, None))
}

fn pages() -> Vec<(&'static str, Study)> {
    vec![
        ("eight rows", eight_rows().into()),
        ("repeated", study::repeated().into()),
        ("failing", study::failing().into()),
        ("unknown server", study::unknown_server().into()),
        ("no runs", study::empty().into()),
        ("open loop", load::open_poisson().into()),
        ("overloaded", load::overloaded().into()),
        ("a mix", load::mixed().into()),
        ("refused", load::refused().into()),
        ("an event", load::restarted().into()),
        ("restarts", comparison::restarts().into()),
        ("bodies", bodies::canonical().into()),
        ("another generator", claimed::hey_sweep().into()),
        ("three arms", comparison::three().into()),
        ("all pairs", comparison::pairs().into()),
        ("the best", comparison::best().into()),
    ]
}

#[test]
fn a_page_is_small_and_loads_nothing() {
    for (name, study) in pages() {
        let page = page(&study);
        assert!(page.len() <= 150_000, "{name}: {} bytes", page.len());
        for foreign in ["src=", "href=", "url(", "@import", "<link", "NaN", "inf\""] {
            assert!(!page.contains(foreign), "{name}: {foreign}");
        }
        let scripts = page.matches("<script").count();
        assert_eq!(
            scripts,
            page.matches("<script type=\"application/json\"").count(),
            "{name}: data alone"
        );
    }
}

#[test]
fn a_key_names_each_part_once() {
    let mut study = eight_rows();
    study.runs.iter_mut().for_each(|run| (run.app_times, run.kernel) = (None, None));
    let page = page(&study.into());
    assert!(page.contains("server, app and the rest"));
    assert!(!page.contains("the rest, server, app and the rest"));
}

#[test]
fn the_figures_are_those_of_the_summary() {
    for (name, study) in pages() {
        let summary = Summary::of(&study, None);
        let page = page(&study);
        let (_, embedded) = page.split_once("id=\"summary\">").unwrap();
        let (embedded, _) = embedded.split_once("</script>").unwrap();
        let embedded: serde_json::Value = serde_json::from_str(embedded).unwrap();
        let printed: serde_json::Value = serde_json::from_str(&summary.json()).unwrap();
        assert_eq!(embedded, printed, "{name}");
        let text = page
            .replace("&#39;", "'")
            .replace("&quot;", "\"")
            .replace("&lt;", "<")
            .replace("&gt;", ">");
        let FirstSentence { first, rest } = first_sentence(&summary.sentence);
        assert!(text.contains(&format!("<h1>{first}</h1>")), "{name}: {first}");
        assert!(text.contains(rest), "{name}: {rest}");
        // A comparison's table has the medians of its runs.
        let has_runs = summary.comparison.is_none();
        for run in summary.runs.iter().filter(|run| has_runs && run.is_the_servers()) {
            let percentiles = [0.50, 0.95, 0.99].map(|quantile| run.percentile(quantile));
            for time in percentiles.into_iter().chain([run.max()]).flatten() {
                let shown = number::milliseconds(time);
                let is_there =
                    ["", "?"].iter().any(|mark| page.contains(&format!(">{shown}{mark}</td>")));
                assert!(is_there, "{name}, {}: {shown}", run.label);
            }
        }
    }
}

#[test]
fn what_others_wrote_stays_text() {
    const EVIL: &str = "</script><script>alert(\"1\")</script><img src=x onerror='alert(2)'>&amp;";
    let mut study = study::watched();
    let server = &mut study.server;
    for text in [&mut server.command_line, &mut server.url] {
        *text = EVIL.into();
    }
    server.name = EVIL.to_owned();
    server.version = Some(EVIL.into());
    server.runtime = Some(EVIL.into());
    server.git = Some(EVIL.into());
    study.command_line = EVIL.into();
    study.environment.cpu = EVIL.to_owned();
    study.runs[0].watch.as_mut().unwrap().missing.push(EVIL.to_owned());
    study.runs[0].workers[0].worker = EVIL.to_owned();
    let mut of_load = load::open_poisson();
    of_load.plan.url = EVIL.into();
    of_load.command_line = EVIL.into();
    of_load.checks = vec![EVIL.to_owned()];
    for study in [Study::from(study), of_load.into()] {
        let page = page(&study);
        assert!(!page.contains("<script>") && !page.contains("<img"), "a text became an element");
        assert!(page.contains("&lt;script&gt;alert"), "the text is there");
    }
}

/// What the browser measures of one page at one width.
#[derive(Debug, Deserialize)]
struct MeasuredPage {
    name: String,
    width: u32,
    /// Pixels that the page is wider than its window.
    too_wide: f64,
    /// Texts of one drawing that overlap each other, or reach outside the drawing.
    overlaps: Vec<String>,
    /// Heads of percentiles in tables that are not folded, for which one has to scroll.
    p99_out_of_sight: Vec<String>,
    drawings: u32,
    background: String,
}

const MEASURE: &str = include_str!("measure.js");

/// All pages at the width of a desk and of a phone, in frames that run no scripts.
fn measured(browser: &Path, scheme: &str) -> Vec<MeasuredPage> {
    let folder = folder_of(scheme);
    let frames: String = pages()
        .iter()
        .flat_map(|(name, study)| {
            let page = page(study).replace('&', "&amp;").replace('"', "&quot;");
            [1280, 390].map(|width| {
                format!(
                    "<iframe name=\"{name}\" sandbox=\"allow-same-origin\" style=\"border:0;color-scheme:{scheme}\" \
                     width=\"{width}\" height=\"900\" srcdoc=\"{page}\"></iframe>"
                )
            })
        })
        .collect();
    let file = folder.join("pages.html");
    let all = format!(
        "<!DOCTYPE html><html style=\"color-scheme:{scheme}\"><meta charset=\"utf-8\"><body>{frames}\
         <script>onload = () => {{ {MEASURE} }}</script></body></html>"
    );
    std::fs::write(&file, all).unwrap();
    let dark = (scheme == "dark")
        .then_some(["--force-dark-mode", "--blink-settings=preferredColorScheme=0"]);
    let printed = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--window-size=1400,1000",
        ])
        .args(dark.into_iter().flatten())
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&printed.stdout);
    let json = dom.split_once("<body>").and_then(|(_, rest)| rest.split_once("</body>"));
    let (json, _) =
        json.unwrap_or_else(|| panic!("{dom}{}", String::from_utf8_lossy(&printed.stderr)));
    let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn folder_of(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("html-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Chromium on PATH.
fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

#[test]
#[expect(clippy::print_stderr, reason = "a skip says why")]
fn a_browser_shows_it_whole_on_a_desk_and_on_a_phone() {
    let Some(browser) = chromium() else {
        eprintln!("skipped: no chromium on PATH (bin/install-missing test)");
        return;
    };
    for scheme in ["light", "dark"] {
        for page in measured(&browser, scheme) {
            let MeasuredPage {
                name,
                width,
                too_wide,
                overlaps,
                p99_out_of_sight,
                drawings,
                background,
            } = page;
            assert!(too_wide <= 0.0, "{name} at {width} pixels scrolls by {too_wide}");
            assert_eq!(overlaps, Vec::<String>::new(), "{name} at {width} pixels");
            assert_eq!(p99_out_of_sight, Vec::<String>::new(), "{name} at {width} pixels");
            assert!(
                drawings > 0
                    || ["no runs", "refused", "bodies", "another generator"]
                        .contains(&name.as_str()),
                "{name}"
            );
            let brightness: u32 =
                background.split(|c: char| !c.is_ascii_digit()).flat_map(str::parse::<u32>).sum();
            assert_eq!(brightness < 382, scheme == "dark", "{name}: {background}");
        }
    }
}
