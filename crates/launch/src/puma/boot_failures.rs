//! Why a Puma cannot boot, as far as its output says so: what it is missing, or workers that fail again
//! and again.

use std::path::Path;

use model::{App, ServerPlan, Socket};

use crate::{LaunchError, ServerOutput};

/// What this Puma is missing, if it has said so. It may still be running: in cluster mode the
/// master starts one worker after the other, each of which fails to load the app.
pub fn missing_dependency(plan: &ServerPlan, output: &ServerOutput) -> Option<LaunchError> {
    let is_ssl = matches!(plan.socket, Socket::Ssl4 | Socket::Ssl6);
    let brings_rails = plan.rackup.is_none() && plan.app == App::Rails;
    output.lines().find_map(|line| {
        if is_ssl && NO_SSL.iter().any(|said| line.contains(said)) {
            return Some(LaunchError::Unusable(format!(
                "this Puma was built without SSL, which -s {} needs: install OpenSSL's headers \
                 (libssl-dev) and then the puma gem anew, or use -s tcp4",
                plan.socket
            )));
        }
        if NO_EXTENSION.iter().any(|said| line.contains(said)) {
            let hint = build_extension(output);
            return Some(LaunchError::Unusable(format!(
                "this Puma's extension is not built (puma_http11): {hint}"
            )));
        }
        let missing = missing_rails(line).filter(|_| brings_rails)?;
        Some(LaunchError::Unusable(format!(
            "--app rails needs Rails 6.1 or later ({missing}): apt-get install ruby-railties, or \
             gem install rails, or add it to your bundle"
        )))
    })
}

/// What Ruby says if a checkout of Puma has no `puma_http11`, or one for another Ruby.
const NO_EXTENSION: [&str; 2] =
    ["cannot load such file -- puma/puma_http11", "incompatible library version"];

/// How to build it, in the checkout that Ruby's message names.
fn build_extension(output: &ServerOutput) -> String {
    let root = output.lines().find_map(|line| {
        let (before, _) = line.split_once("/lib/puma")?;
        let root = Path::new(before.get(before.find('/')?..)?);
        root.join("ext/puma_http11/extconf.rb").is_file().then(|| root.display().to_string())
    });
    match root {
        Some(root) => format!(
            "cd {root}/ext/puma_http11 && ruby extconf.rb && make && cp puma_http11.so \
             ../../lib/puma/ (needs Ruby's headers: apt-get install ruby-dev)"
        ),
        None => "run `bundle exec rake compile` in its checkout, or `gem install puma`".to_owned(),
    }
}

/// Why Puma's workers cannot start; its master retries for ever. The first may fail only for a
/// moment, for instance because the database is not there yet, so this is `None` until a second one
/// has failed.
pub fn failed_workers(output: &ServerOutput) -> Option<Vec<String>> {
    const LINES: usize = 12;
    let said: Vec<&str> = output.lines().skip_while(|line| !line.contains(NO_WORKER)).collect();
    let failed = said.iter().filter(|line| line.contains(NO_WORKER)).count();
    // The reason is in the lines after it; those of two workers may be mixed.
    let has_reason = said.last().is_some_and(|line| !line.contains(NO_WORKER));
    (failed > 1 && has_reason)
        .then(|| said.iter().take(LINES).map(|line| (*line).to_owned()).collect())
}

/// What Puma 3 to 8 prints (cluster.rb, cluster/worker.rb). The exception follows; up to Puma 5
/// only the place where it was raised.
const NO_WORKER: &str = "! Unable to start worker";

/// What Puma says to an `ssl://` bind if it was built without OpenSSL: from 5 on (binder.rb), and
/// before (`mini_ssl.c`).
const NO_SSL: [&str; 2] = ["Puma compiled without SSL support", "SSL not available in this build"];

/// How the Rails app's last line begins if there is no Rails. What is missing follows in
/// parentheses.
const NO_RAILS: &str = "Rails is not installed (";

/// What the Rails app says is missing, if this line says so.
fn missing_rails(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(NO_RAILS)?;
    Some(rest.split_once("): ").map_or(rest, |(what, _)| what))
}

#[cfg(test)]
mod tests {
    use super::super::apps::files;
    use super::*;
    use crate::Scratch;
    use crate::server_output::Transcript;

    #[test]
    fn a_missing_extension_is_named_with_the_command_that_builds_it() {
        let checkout = Scratch::new(&std::env::temp_dir()).unwrap();
        let root = checkout.path();
        std::fs::create_dir_all(root.join("ext/puma_http11")).unwrap();
        std::fs::write(root.join("ext/puma_http11/extconf.rb"), "").unwrap();
        let said = format!(
            "{}/lib/puma/client.rb:11:in `require': cannot load such file -- puma/puma_http11 \
             (LoadError)\n",
            root.display()
        );
        let missing_extension = |said: &str| {
            let transcript = Transcript::default();
            transcript.read(said.as_bytes());
            missing_dependency(&testkit::machine::puma(None, None), &transcript.so_far())
                .map(|error| error.to_string())
        };
        let line = missing_extension(&said).unwrap();
        assert!(
            line.contains(&format!("cd {}/ext/puma_http11 && ruby extconf.rb", root.display())),
            "{line}"
        );
        let elsewhere = missing_extension(
            "x.rb:1:in `require': cannot load such file -- puma/puma_http11 (LoadError)\n",
        )
        .unwrap();
        assert!(elsewhere.contains("rake compile"), "{elsewhere}");
        assert_eq!(missing_extension("cannot load such file -- rack (LoadError)\n"), None);
    }

    #[test]
    fn the_rails_app_says_what_is_missing() {
        assert!(
            files(App::Rails)
                .iter()
                .any(|(_, text)| text.contains(&format!("abort \"{NO_RAILS}#{{error.message}}): ")))
        );
        let line = "Rails is not installed (cannot load such file -- rails): apt-get install \
             ruby-railties";
        assert_eq!(missing_rails(line), Some("cannot load such file -- rails"));
        assert_eq!(missing_rails("* Listening on http://127.0.0.1:1"), None);
    }
}
