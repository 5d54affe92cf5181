//! Builds the command line that starts Puma as its own benchmark scripts do, from the plan
//! ([`ServerPlan`]). `start_server.rs` starts it.
//!
//! Nothing is started here, but whatever would fail later with a worse message is checked. Puma
//! listens on loopback only, unless generators on other machines need to reach it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use model::paths::why_no_file;
use model::{ControlServer, Endpoint, ServerKind, ServerPlan, Socket};

use super::Surroundings;
use super::apps::{app_environment, write_app};
use super::installation::{discover, given};
use super::isolation::IsolationSettings;
use crate::bind::ChosenAddresses;
use crate::spec::random_hex;
use crate::{Addresses, LaunchError, LaunchSpec, Scratch, ServerBind, TlsPair, unwritable};

/// The longest path of a directory, in bytes, to which `/longtail-run-xxxxxxxx/control.sock` can be
/// added: the path of a socket has at most 108 (unix(7)). `server.sock` is shorter.
const SOCKET_DIR_LIMIT: usize = 70;

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
/// As Puma always does, it reads `config/puma.rb` if there is one and no config file is given
/// (`isolation.rb` sees to that). Settings that neither the plan nor a file has come from
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
    check_files(plan, &around.dir)?;
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
    let isolation = IsolationSettings {
        reads_usual_files: plan.config.is_none(),
        bind: &bind_url,
        control_url: &control_url,
        control_token: &control.token,
    };
    let last_config = isolation.write(dir)?;

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

/// Refuses a rackup or config file that does not exist, seen from `dir`.
///
/// # Errors
/// Which file, and what to correct.
pub fn check_files(plan: &ServerPlan, dir: &Path) -> Result<(), LaunchError> {
    let why_no_file = |path: &Path| why_no_file(&dir.join(path));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_path_that_puma_cannot_read_is_not_chosen() {
        for place in ["/nonexistent dir/with spaces", &format!("/{}", "x".repeat(100)), "relative"]
        {
            assert!(scratch(Path::new(place), None).unwrap().path().starts_with("/tmp"), "{place}");
        }
    }
}
