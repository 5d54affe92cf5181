//! From what was asked ([`ServerPlan`]) to the command that starts Puma as its own benchmark scripts do.
//!
//! Nothing is started here, but everything is checked that would fail later with a worse message. What stays true:
//! Puma is bound to loopback only.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{App, ServerKind, ServerPlan, Socket};

use crate::command::{find_program, words};
use crate::scratch::random_hex;
use crate::{Bind, LaunchError, Output, Pair, Scratch, Spec, app};

/// Bytes of a directory's path to which `/longtail-xxxxxxxx/control.sock` can be added: a socket's path has 108 at the
/// most (unix(7)). `server.sock` is shorter.
const SOCKET_DIR_LIMIT: usize = 70;

/// Where Puma and its control server listen. `PUMA_TEST_HOST4`, `PUMA_TEST_HOST6`, `PUMA_TEST_PORT` and
/// `PUMA_TEST_CTRL` in the environment of Puma's own scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// For `-s tcp4`, `ssl4` and for the control server: an address of 127.0.0.0/8, or `localhost`.
    pub host4: String,
    /// For `-s tcp6` and `ssl6`: `::1`, `[::1]` or `localhost`.
    pub host6: String,
    /// The server's port, where its socket has one; `None` finds a free one.
    pub port: Option<u16>,
    /// The control server's port; `None` uses a private unix socket.
    pub control_port: Option<u16>,
}

impl Default for Addresses {
    fn default() -> Addresses {
        Addresses { host4: "127.0.0.1".to_owned(), host6: "::1".to_owned(), port: None, control_port: None }
    }
}

/// What is found around us and decides which Puma is started and how.
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
}

impl Surroundings {
    /// Those of this process.
    ///
    /// # Errors
    /// Where the current directory was removed.
    pub fn here() -> Result<Surroundings, LaunchError> {
        Ok(Surroundings {
            dir: std::env::current_dir().map_err(|_| LaunchError::NoDirectory(".".into()))?,
            path: std::env::var_os("PATH").unwrap_or_default(),
            rubyopt: std::env::var_os("RUBYOPT").filter(|value| !value.is_empty()),
            gemfile: std::env::var_os("BUNDLE_GEMFILE").filter(|value| !value.is_empty()).map(PathBuf::from),
            temporary: std::env::temp_dir(),
        })
    }
}

/// How Puma's control server is asked, for `/stats` for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Where it listens.
    pub address: ControlAddress,
    /// What it wants as `?token=`.
    pub token: String,
}

/// Where a control server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlAddress {
    /// On loopback.
    Tcp(SocketAddr),
    /// A socket file in a directory that only this user can enter.
    Unix(PathBuf),
}

/// A Puma that is ready to be started, once: each start of a server wants its own.
#[derive(Clone, Debug)]
pub struct Puma {
    /// What to start.
    pub spec: Spec,
    /// Where it will listen.
    pub bind: Bind,
    /// Its control server.
    pub control: Control,
}

/// Makes the command out of the plan, chooses ports or names, and writes our app where none is given, and a certificate
/// where one is needed.
///
/// As always with Puma, where no config file is given it reads `config/puma.rb` if there is one, and what neither the
/// plan nor a file says it takes from `WEB_CONCURRENCY` and `PUMA_MAX_THREADS`.
///
/// A port that is free now may be taken by another program before Puma binds it; Puma then says so at boot.
///
/// # Errors
/// Whatever the user can mend: no Puma, a file that does not exist, a port in use, a host that is not loopback.
///
/// # Panics
/// Where the plan is for another server than Puma.
pub fn prepare(plan: &ServerPlan, addresses: &Addresses, around: &Surroundings) -> Result<Puma, LaunchError> {
    let ServerKind::Puma { command } = &plan.kind else { panic!("{:?} is not Puma", plan.kind) };
    let mut argv = match command {
        Some(text) => given(text, around)?,
        None => discover(around)?,
    };
    let missing = |path: &PathBuf| !around.dir.join(path).is_file();
    if let Some(rackup) = plan.rackup.clone().filter(missing) {
        return Err(LaunchError::RackupMissing(rackup));
    }
    // To Puma `-C -` is "no config file at all".
    if let Some(config) = plan.config.clone().filter(|path| path != Path::new("-") && missing(path)) {
        return Err(LaunchError::ConfigMissing(config));
    }
    let listeners = Listeners::choose(plan.socket, addresses)?;
    let scratch = scratch(&around.temporary)?;
    let dir = scratch.path();
    let unwritable = |source| LaunchError::Scratch { within: dir.to_owned(), source };
    let control_socket = dir.join("control.sock");
    let rackup = match &plan.rackup {
        Some(rackup) => rackup.clone(),
        None => app::write(plan.app, dir).map_err(unwritable)?,
    };
    let bind = match (plan.socket, listeners.server) {
        (Socket::Ssl4 | Socket::Ssl6, Some(address)) => {
            Bind::Ssl(address, Pair::make(dir, address.ip()).map_err(unwritable)?)
        }
        (_, Some(address)) => Bind::Tcp(address),
        (Socket::Aunix, None) => Bind::Abstract(format!("longtail-{}", random_hex(32))),
        (_, None) => Bind::Unix(dir.join("server.sock")),
    };
    let (control, control_url) = match listeners.control {
        Some(address) => (ControlAddress::Tcp(address), format!("tcp://{address}")),
        None => (ControlAddress::Unix(control_socket.clone()), format!("unix://{}", control_socket.display())),
    };
    // Whoever can enter the private directory may ask; a port is open to every user of the machine.
    let token = if listeners.control.is_some() { random_hex(32) } else { "longtail".to_owned() };

    argv.extend(["-q", "-b"].map(OsString::from));
    argv.push(bind.argument().into());
    argv.extend(plan.workers.map(|workers| format!("-w{workers}").into()));
    argv.extend(plan.threads.map(|threads| format!("-t{threads}").into()));
    argv.extend(plan.config.iter().flat_map(|config| ["-C".into(), config.clone().into()]));
    argv.push(format!("--control-url={control_url}").into());
    argv.push(format!("--control-token={token}").into());
    argv.push(rackup.into());
    let mut env = Vec::new();
    if plan.yjit {
        env.push(("RUBYOPT".into(), with_yjit(around.rubyopt.as_deref())));
    }
    if plan.rackup.is_none() {
        env.extend(app::environment(plan.app, dir));
    }
    Ok(Puma {
        spec: Spec { argv, env, dir: around.dir.clone(), scratch: Some(Arc::new(scratch)), cpus: plan.cpus.clone() },
        bind,
        control: Control { address: control, token },
    })
}

/// A free address of the kind, or the one that was asked for, for a server other than Puma.
///
/// # Errors
/// As [`prepare`], of hosts and ports.
///
/// # Panics
/// Where the kind has no address: such a server takes none of those.
pub fn free_address(socket: Socket, addresses: &Addresses) -> Result<SocketAddr, LaunchError> {
    Listeners::choose(socket, addresses).map(|listeners| listeners.server.expect("a kind with an address"))
}

/// What a Puma that was asked for this has said it lacks, where it has said so. It need not have ended: in cluster mode
/// the master starts one worker after the other, each of which fails to load the app.
pub fn lacks(plan: &ServerPlan, output: &Output) -> Option<LaunchError> {
    if !matches!(plan.kind, ServerKind::Puma { .. }) {
        return None;
    }
    let is_ssl = matches!(plan.socket, Socket::Ssl4 | Socket::Ssl6);
    let brings_rails = plan.rackup.is_none() && plan.app == App::Rails;
    output.lines().find_map(|line| {
        if is_ssl && NO_SSL.iter().any(|said| line.contains(said)) {
            return Some(LaunchError::NoSsl { socket: plan.socket.to_string() });
        }
        let missing = app::missing_rails(line).filter(|_| brings_rails)?;
        Some(LaunchError::NoRails { missing: missing.to_owned() })
    })
}

/// What Puma says at an `ssl://` bind where it was built without OpenSSL: 5 and later (binder.rb), and before (`mini_ssl.c`).
const NO_SSL: [&str; 2] = ["Puma compiled without SSL support", "SSL not available in this build"];

/// The words of `--puma`, whose program must exist.
fn given(text: &str, around: &Surroundings) -> Result<Vec<OsString>, LaunchError> {
    let words = words(text).map_err(|reason| LaunchError::BadCommand { command: text.to_owned(), reason })?;
    found(&words[0], "correct --puma, or leave it out to have puma found", around)?;
    Ok(words.into_iter().map(OsString::from).collect())
}

/// The command that starts Puma here, where none is given: the first of
///
/// 1. in a checkout of Puma (or below): its own executable, by `bundle exec` where it has a lock file, else `ruby -Ilib`;
/// 2. in a bundle that has Puma, searched upward as bundler does: `bundle exec puma`;
/// 3. `puma` on PATH.
///
/// # Errors
/// [`LaunchError::NoPuma`] where there is none, so that the caller can use another server;
/// [`LaunchError::ProgramNotFound`] where there is one but not the `bundle` or `ruby` that it needs. Taking another
/// Puma then would measure another version than the user's.
pub fn discover(around: &Surroundings) -> Result<Vec<OsString>, LaunchError> {
    let bundle = |program: &OsStr| {
        found("bundle", "run `gem install bundler`, or give --puma COMMAND", around)?;
        Ok(vec!["bundle".into(), "exec".into(), program.to_owned()])
    };
    if let Some((root, executable)) = checkout(&around.dir) {
        let path = |name: &str| if root == around.dir { name.into() } else { root.join(name).into_os_string() };
        if lock_file(root).is_some() {
            return bundle(&path(executable));
        }
        found("ruby", "install Ruby, or give --puma COMMAND", around)?;
        let mut library = OsString::from("-I");
        library.push(path("lib"));
        return Ok(vec!["ruby".into(), library, path(executable)]);
    }
    let lock = match &around.gemfile {
        Some(gemfile) => Some(lock_of(&around.dir.join(gemfile))),
        None => around.dir.ancestors().find_map(lock_file),
    };
    if lock.is_some_and(|lock| fs::read_to_string(lock).is_ok_and(|text| lists_puma(&text))) {
        return bundle(OsStr::new("puma"));
    }
    match find_program(OsStr::new("puma"), &around.dir, &around.path) {
        Some(_) => Ok(vec!["puma".into()]),
        None => Err(LaunchError::NoPuma),
    }
}

/// The nearest directory upward that is a checkout of Puma, and its executable there.
fn checkout(dir: &Path) -> Option<(&Path, &'static str)> {
    let root = dir.ancestors().find(|folder| folder.join("puma.gemspec").is_file())?;
    let executable = ["bin/puma", "exe/puma"].into_iter().find(|file| root.join(file).is_file())?;
    Some((root, executable))
}

fn lock_file(dir: &Path) -> Option<PathBuf> {
    ["Gemfile.lock", "gems.locked"].map(|name| dir.join(name)).into_iter().find(|lock| lock.is_file())
}

/// Bundler's rule: `gems.rb` has `gems.locked`, any other name gets `.lock`.
fn lock_of(gemfile: &Path) -> PathBuf {
    if gemfile.file_name() == Some(OsStr::new("gems.rb")) {
        return gemfile.with_file_name("gems.locked");
    }
    let mut lock = gemfile.as_os_str().to_owned();
    lock.push(".lock");
    lock.into()
}

/// Whether a lock file has resolved Puma: a gem of the bundle is indented by four, what one of them wants by six.
fn lists_puma(lock: &str) -> bool {
    lock.lines().any(|line| line.starts_with("    puma ("))
}

fn found(program: &str, mend: &str, around: &Surroundings) -> Result<(), LaunchError> {
    match find_program(OsStr::new(program), &around.dir, &around.path) {
        Some(_) => Ok(()),
        None => Err(LaunchError::ProgramNotFound { program: program.to_owned(), mend: mend.to_owned() }),
    }
}

/// `RUBYOPT` with YJIT, and with what it said before.
fn with_yjit(rubyopt: Option<&OsStr>) -> OsString {
    let Some(before) = rubyopt else { return "--yjit".into() };
    let mut both = before.to_owned();
    both.push(" --yjit");
    both
}

/// The private directory. Puma reads a socket's path as a URI, so it must be short and plain: where the usual place is
/// not, `/tmp` is.
fn scratch(temporary: &Path) -> Result<Scratch, LaunchError> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    let bytes = temporary.as_os_str().as_encoded_bytes();
    let fits = temporary.is_absolute() && bytes.len() <= SOCKET_DIR_LIMIT && bytes.iter().all(plain);
    let within = if fits { temporary } else { Path::new("/tmp") };
    Scratch::new(within).map_err(|source| LaunchError::Scratch { within: within.to_owned(), source })
}

/// The addresses, free a moment ago.
struct Listeners {
    /// `None` for a Unix socket.
    server: Option<SocketAddr>,
    control: Option<SocketAddr>,
}

impl Listeners {
    fn choose(socket: Socket, addresses: &Addresses) -> Result<Listeners, LaunchError> {
        let host4 = loopback4(&addresses.host4)?;
        let server = match socket {
            Socket::Tcp4 | Socket::Ssl4 => Some(IpAddr::V4(host4)),
            Socket::Tcp6 | Socket::Ssl6 => Some(IpAddr::V6(loopback6(&addresses.host6)?)),
            Socket::Unix | Socket::Aunix => None,
        };
        if let (Some(port), true, true) = (addresses.port, addresses.port == addresses.control_port, server.is_some()) {
            return Err(LaunchError::SamePort(port));
        }
        // Both are held until both are chosen, so that they differ.
        let control = match addresses.control_port {
            Some(port) => Some(hold(host4.into(), Some(port), "PUMA_TEST_CTRL")?),
            None => None,
        };
        let server = match server {
            Some(host) => Some(hold(host, addresses.port, "PUMA_TEST_PORT")?),
            None => None,
        };
        let address = |(_, address)| address;
        Ok(Listeners { server: server.map(address), control: control.map(address) })
    }
}

/// Listens there, to know that it can be done.
fn hold(host: IpAddr, port: Option<u16>, setting: &'static str) -> Result<(TcpListener, SocketAddr), LaunchError> {
    let wanted = SocketAddr::new(host, port.unwrap_or(0));
    let bound = TcpListener::bind(wanted).and_then(|listener| listener.local_addr().map(|address| (listener, address)));
    bound.map_err(|error: io::Error| match (error.kind(), port) {
        (ErrorKind::AddrInUse, Some(port)) => LaunchError::PortInUse { port, host: host.to_string(), setting },
        (kind, port) => {
            let mend = match (kind, port, host) {
                (ErrorKind::PermissionDenied, Some(port), _) => {
                    format!("unset {setting}, or set it to a port above 1023, not {port}")
                }
                (_, _, IpAddr::V6(_)) => "use -s tcp4".to_owned(),
                (_, _, IpAddr::V4(_)) => "is the loopback interface up?".to_owned(),
            };
            LaunchError::CannotBind { host: wanted.to_string(), reason: error.to_string(), mend }
        }
    })
}

fn loopback4(host: &str) -> Result<Ipv4Addr, LaunchError> {
    let address = if host == "localhost" { Ok(Ipv4Addr::LOCALHOST) } else { host.parse() };
    address.ok().filter(Ipv4Addr::is_loopback).ok_or_else(|| LaunchError::NotLoopback {
        host: host.to_owned(),
        setting: "PUMA_TEST_HOST4",
        allowed: "127.0.0.1 and others of 127.0.0.0/8",
    })
}

fn loopback6(host: &str) -> Result<Ipv6Addr, LaunchError> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let address = if bare == "localhost" { Ok(Ipv6Addr::LOCALHOST) } else { bare.parse() };
    address.ok().filter(Ipv6Addr::is_loopback).ok_or_else(|| LaunchError::NotLoopback {
        host: host.to_owned(),
        setting: "PUMA_TEST_HOST6",
        allowed: "::1",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_bound() {
        for host in ["0.0.0.0", "192.168.1.2", "example.org", "", "::1"] {
            assert!(matches!(loopback4(host), Err(LaunchError::NotLoopback { .. })), "{host}");
        }
        for host in ["::", "fe80::1", "::ffff:127.0.0.1", "example.org", "127.0.0.1"] {
            assert!(matches!(loopback6(host), Err(LaunchError::NotLoopback { .. })), "{host}");
        }
        assert_eq!(loopback4("127.0.0.2").unwrap(), Ipv4Addr::new(127, 0, 0, 2));
        assert_eq!(loopback4("localhost").unwrap(), Ipv4Addr::LOCALHOST);
        assert_eq!(loopback6("[::1]").unwrap(), Ipv6Addr::LOCALHOST);
    }

    #[test]
    fn yjit_is_added_to_what_rubyopt_says() {
        assert_eq!(with_yjit(None), "--yjit");
        assert_eq!(with_yjit(Some(OsStr::new("-W0"))), "-W0 --yjit");
    }

    #[test]
    fn a_gem_of_the_bundle_is_told_from_one_that_is_only_wanted() {
        assert!(lists_puma("GEM\n  specs:\n    nio4r (2.7.4)\n    puma (6.5.0)\n      nio4r (~> 2.0)\n"));
        assert!(!lists_puma(
            "GEM\n  specs:\n    x (1.0)\n      puma (>= 5)\n    puma-metrics (1.2)\nDEPENDENCIES\n  x\n"
        ));
    }

    #[test]
    fn the_lock_has_the_name_that_bundler_gives_it() {
        assert_eq!(lock_of(Path::new("/a/gems.rb")), Path::new("/a/gems.locked"));
        assert_eq!(lock_of(Path::new("/a/Gemfile.rails7")), Path::new("/a/Gemfile.rails7.lock"));
    }

    #[test]
    fn a_socket_path_puma_could_not_read_is_not_chosen() {
        for place in ["/nonexistent dir/with spaces", &format!("/{}", "x".repeat(100)), "relative"] {
            assert!(scratch(Path::new(place)).unwrap().path().starts_with("/tmp"), "{place}");
        }
    }
}
