//! Builds the command that starts Puma as its own benchmark scripts do, from the plan
//! ([`ServerPlan`]). `server.rs` starts it.
//!
//! Nothing is started here, but whatever would fail later with a worse message is checked. Puma
//! listens on loopback only, unless generators on other machines need to reach it.

mod apart;
mod installation;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use model::paths::why_no_file;
use model::{App, ControlServer, Endpoint, ServerKind, ServerPlan, Socket};

use self::apart::ApartSettings;
pub use self::apart::{PumaConfig, ask_config};
use self::installation::given;
pub use self::installation::{BootLines, discover, printed_version};
use crate::bind::ChosenAddresses;
use crate::spec::random_hex;
use crate::{
    Addresses, LaunchError, LaunchSpec, Scratch, ServerBind, ServerOutput, TlsPair, unwritable,
};

/// The longest path of a directory, in bytes, to which `/longtail-run-xxxxxxxx/control.sock` can be
/// added: the path of a socket has at most 108 (unix(7)). `server.sock` is shorter.
const SOCKET_DIR_LIMIT: usize = 70;

/// The surroundings of this process that decide which Puma is started, and how.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The current directory: where Puma runs.
    pub dir: PathBuf,
    /// `PATH`.
    pub path: OsString,
    /// `RUBYOPT`, which `-Y` appends to.
    pub rubyopt: Option<OsString>,
    /// `BUNDLE_GEMFILE`: the bundle to use instead of the one that is found.
    pub gemfile: Option<PathBuf>,
    /// `TMPDIR`: where the private directory is made.
    pub temporary: PathBuf,
    /// The data folder, where the private directory is noted.
    pub data: Option<PathBuf>,
}

impl Surroundings {
    /// The surroundings of this process.
    ///
    /// # Errors
    /// If the current directory was removed.
    pub fn here() -> Result<Surroundings, LaunchError> {
        Ok(Surroundings {
            dir: std::env::current_dir().map_err(|_| {
                LaunchError::Unusable(
                    "the directory '.' does not exist: start longtail in one that does".to_owned(),
                )
            })?,
            path: std::env::var_os("PATH").unwrap_or_default(),
            rubyopt: std::env::var_os("RUBYOPT").filter(|value| !value.is_empty()),
            gemfile: std::env::var_os("BUNDLE_GEMFILE")
                .filter(|value| !value.is_empty())
                .map(PathBuf::from),
            temporary: std::env::temp_dir(),
            data: crate::data_folder(),
        })
    }

    /// The surroundings of a server that runs in another folder, or with other environment
    /// variables.
    #[must_use]
    pub fn of(mut self, dir: Option<&Path>, env: &BTreeMap<OsString, OsString>) -> Surroundings {
        self.dir = dir.map_or(self.dir, Path::to_owned);
        for (name, value) in env {
            match name.to_str() {
                Some("PATH") => self.path.clone_from(value),
                Some("RUBYOPT") => self.rubyopt = Some(value.clone()),
                Some("BUNDLE_GEMFILE") => self.gemfile = Some(value.into()),
                _ => {}
            }
        }
        self
    }
}

/// A Puma that is ready to be started once; each start needs its own.
#[derive(Clone, Debug)]
pub struct Puma {
    /// What to start.
    pub spec: LaunchSpec,
    /// The address it will listen on.
    pub bind: ServerBind,
    /// Its control server.
    pub control: ControlServer,
}

/// Builds the command from the plan, chooses ports or names, writes one of longtail's apps if the
/// plan has none, and a certificate if one is needed.
///
/// As always with Puma, it reads `config/puma.rb` if there is one and no config file is given
/// (`apart.rb` sees to that), and takes what neither the plan nor a file says from
/// `WEB_CONCURRENCY` and `PUMA_MAX_THREADS`.
///
/// A port that is free now may be taken by another program before Puma binds it; Puma then says so
/// at boot.
///
/// # Errors
/// What the user can fix: no Puma, a file that does not exist, a port in use, a host that is not
/// loopback.
///
/// # Panics
/// If the plan is for another server than Puma.
pub fn prepare(
    plan: &ServerPlan,
    addresses: &Addresses,
    around: &Surroundings,
) -> Result<Puma, LaunchError> {
    let ServerKind::Puma { command } = &plan.kind else { panic!("{:?} is not Puma", plan.kind) };
    let mut argv = match command {
        Some(text) => given(text.exposed(), around)?,
        None => discover(around)?,
    };
    check_files(plan, around)?;
    let listeners = ChosenAddresses::choose(plan.socket, plan.address, addresses)?;
    let scratch = scratch(&around.temporary, around.data.as_deref())?;
    let dir = scratch.path();
    let rackup = match &plan.rackup {
        Some(rackup) => rackup.clone(),
        None => write_app(plan.app, dir).map_err(unwritable(dir))?,
    };
    let bind = server_bind(plan.socket, listeners.server, dir)?;
    let control = control_server(listeners.control, dir);
    let control_url = control_url(&control.address);
    let bind_url = bind.argument();
    let apart = ApartSettings {
        reads_usual_files: plan.config.is_none(),
        bind: &bind_url,
        control_url: &control_url,
        control_token: &control.token,
    };
    let last_config = apart.write(dir)?;

    argv.extend(["-q", "-b"].map(OsString::from));
    argv.push(bind_url.into());
    argv.extend(plan.workers.map(|workers| format!("-w{workers}").into()));
    argv.extend(plan.threads.map(|threads| format!("-t{threads}").into()));
    // `-C -` is left out: with another file beside it, `-` would be the name of a file.
    if let Some(config) = config_file(plan) {
        argv.extend(["-C".into(), config.into()]);
    }
    argv.extend(["-C".into(), last_config.into()]);
    argv.push(format!("--control-url={control_url}").into());
    argv.push(rackup.into());
    let spec = LaunchSpec {
        argv,
        env: environment(plan, around, dir),
        dir: around.dir.clone(),
        scratch: Some(Arc::new(scratch)),
        cpus: plan.cpus.clone(),
    };
    Ok(Puma { spec, bind, control })
}

/// The config file of the plan. To Puma `-C -` is "no config file at all".
fn config_file(plan: &ServerPlan) -> Option<&Path> {
    plan.config.as_deref().filter(|path| *path != Path::new("-"))
}

/// Refuses a rackup or config file that does not exist.
fn check_files(plan: &ServerPlan, around: &Surroundings) -> Result<(), LaunchError> {
    let why_no_file = |path: &Path| why_no_file(&around.dir.join(path));
    if let Some(rackup) = &plan.rackup
        && let Some(why) = why_no_file(rackup)
    {
        return Err(LaunchError::Unusable(format!(
            "rackup '{}' {why}: correct -r, or leave it out to use the app that longtail brings",
            rackup.display()
        )));
    }
    if let Some(config) = config_file(plan)
        && let Some(why) = why_no_file(config)
    {
        return Err(LaunchError::Unusable(format!(
            "config '{}' {why}: correct -C, or leave it out",
            config.display()
        )));
    }
    Ok(())
}

/// Where Puma listens: at `address`, with a certificate in `dir` for TLS, or on a Unix socket.
fn server_bind(
    socket: Socket,
    address: Option<SocketAddr>,
    dir: &Path,
) -> Result<ServerBind, LaunchError> {
    match (socket, address) {
        (Socket::Ssl4 | Socket::Ssl6, Some(address)) => {
            let pair = TlsPair::make(dir, address.ip()).map_err(unwritable(dir))?;
            Ok(ServerBind { tls: Some(pair), ..ServerBind::tcp(address) })
        }
        (_, Some(address)) => Ok(ServerBind::tcp(address)),
        (Socket::Aunix, None) => Ok(ServerBind {
            place: Endpoint::Abstract(format!("longtail-{}", random_hex(32)).into()),
            tls: None,
        }),
        (_, None) => Ok(ServerBind { place: Endpoint::Unix(dir.join("server.sock")), tls: None }),
    }
}

/// The control server, at `address` or on a Unix socket in `dir`, with a new token.
fn control_server(address: Option<SocketAddr>, dir: &Path) -> ControlServer {
    let address = match address {
        Some(address) => Endpoint::Tcp(address),
        None => Endpoint::Unix(dir.join("control.sock")),
    };
    ControlServer { address, token: random_hex(32) }
}

fn control_url(address: &Endpoint) -> String {
    let scheme = if address.tcp().is_some() { "tcp" } else { "unix" };
    format!("{scheme}://{}", address.address())
}

/// Variables of Puma's environment.
fn environment(
    plan: &ServerPlan,
    around: &Surroundings,
    dir: &Path,
) -> BTreeMap<OsString, OsString> {
    let mut env = BTreeMap::new();
    if plan.yjit {
        let mut options = around.rubyopt.clone().unwrap_or_default();
        options.push(if options.is_empty() { "--yjit" } else { " --yjit" });
        env.insert("RUBYOPT".into(), options);
    }
    if plan.rackup.is_none() {
        env.extend(app_environment(plan.app, dir));
    }
    env
}

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
/// only its place.
const NO_WORKER: &str = "! Unable to start worker";

/// What Puma says to an `ssl://` bind if it was built without OpenSSL: from 5 on (binder.rb), and
/// before (`mini_ssl.c`).
const NO_SSL: [&str; 2] = ["Puma compiled without SSL support", "SSL not available in this build"];

/// The private directory. Puma reads a socket's path as a URI, so it must be short and plain. If
/// the usual place is not, `/tmp` is used.
fn scratch(temporary: &Path, data: Option<&Path>) -> Result<Scratch, LaunchError> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    let bytes = temporary.as_os_str().as_encoded_bytes();
    let fits =
        temporary.is_absolute() && bytes.len() <= SOCKET_DIR_LIMIT && bytes.iter().all(plain);
    let within = if fits { temporary } else { Path::new("/tmp") };
    Scratch::noted(within, data).map_err(unwritable(within))
}

/// The files of an app with their paths below the app's directory, by which Rails finds them. The
/// first is the rackup file.
const fn files(app: App) -> &'static [(&'static str, &'static str)] {
    match app {
        App::Sleep => &[("sleep.ru", include_str!("../../../servers/sleep.ru"))],
        App::Bodies => &[("bodies.ru", include_str!("../../../servers/bodies.ru"))],
        App::Rails => &[
            ("rails/config.ru", include_str!("../../../servers/rails/config.ru")),
            (
                "rails/config/application.rb",
                include_str!("../../../servers/rails/config/application.rb"),
            ),
            ("rails/config/routes.rb", include_str!("../../../servers/rails/config/routes.rb")),
            (
                "rails/app/controllers/sleep_controller.rb",
                include_str!("../../../servers/rails/app/controllers/sleep_controller.rb"),
            ),
        ],
    }
}

/// How the Rails app's last line begins if there is no Rails. What is missing follows in
/// parentheses.
const NO_RAILS: &str = "Rails is not installed (";

/// Writes the app into `dir` and returns its rackup file.
fn write_app(app: App, dir: &Path) -> io::Result<PathBuf> {
    for (name, text) in files(app) {
        let file = dir.join(name);
        fs::create_dir_all(file.parent().expect("every file is below the directory"))?;
        fs::write(file, text)?;
    }
    Ok(dir.join(files(app)[0].0))
}

/// Environment variables of the app in `dir`.
fn app_environment(app: App, dir: &Path) -> Option<(OsString, OsString)> {
    match app {
        App::Sleep => None,
        App::Rails => Some(("RAILS_ENV".into(), "production".into())),
        // `bodies.ru` writes its files there, so that they are removed with the directory.
        App::Bodies => Some(("LONGTAIL_BODIES_FOLDER".into(), dir.join("bodies").into())),
    }
}

/// What the Rails app says is missing, if this line says so.
fn missing_rails(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(NO_RAILS)?;
    Some(rest.split_once("): ").map_or(rest, |(what, _)| what))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let transcript = crate::server::Transcript::default();
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
    fn a_socket_path_that_puma_cannot_read_is_not_chosen() {
        for place in ["/nonexistent dir/with spaces", &format!("/{}", "x".repeat(100)), "relative"]
        {
            assert!(scratch(Path::new(place), None).unwrap().path().starts_with("/tmp"), "{place}");
        }
    }

    #[test]
    fn the_bodies_app_reads_the_folder_that_it_is_given() {
        let (name, _) = app_environment(App::Bodies, Path::new("/tmp")).unwrap();
        assert!(files(App::Bodies)[0].1.contains(&format!("ENV['{}']", name.display())));
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
