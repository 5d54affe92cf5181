//! Resolves names to addresses, once, before the start; and refuses addresses outside
//! `--allow-net`.
//!
//! Every host that a user names (in a URL, as a control server, as a receiver of metrics) is
//! resolved here before anything connects. The C library looks it up; where [`Resolver::allowed`]
//! is set, only if all name servers that it might ask are allowed themselves.

use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use model::AllowedNetworks;

use crate::EngineError;

/// How the hosts that a user names become addresses.
#[derive(Clone, Debug, Default)]
pub struct Resolver {
    /// Where connections may go; `None`: anywhere.
    pub allowed: Option<AllowedNetworks>,
    /// Only addresses of this version of IP; `None`: of both.
    pub version: Option<IpVersion>,
    /// Addresses that are given for a host and port, in place of a look-up.
    pub given: Vec<StaticAddresses>,
    /// Where `hosts` and `resolv.conf` are, below `/etc` (tests: elsewhere).
    system: PathBuf,
}

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Addresses for one host and port, as curl's `--resolve HOST:PORT:ADDRESS[,ADDRESS]` gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticAddresses {
    host: String,
    port: u16,
    addresses: Vec<IpAddr>,
}

impl FromStr for StaticAddresses {
    type Err = String;

    fn from_str(text: &str) -> Result<StaticAddresses, String> {
        let wrong =
            || format!("'{text}' is not HOST:PORT:ADDRESS, such as example.com:443:10.1.2.3");
        let mut parts = text.splitn(3, ':');
        let host = parts.next();
        let port = parts.next();
        let addresses = parts.next();
        let host = host.filter(|host| !host.is_empty()).ok_or_else(wrong)?.to_ascii_lowercase();
        let port =
            port.and_then(|port| port.parse().ok()).filter(|port| *port > 0).ok_or_else(wrong)?;
        let parsed =
            addresses.unwrap_or_default().split(',').map(|one| without_brackets(one).parse());
        let addresses = parsed.collect::<Result<_, _>>().map_err(|_| wrong())?;
        Ok(StaticAddresses { host, port, addresses })
    }
}

/// The start of a message: `app is 10.0.0.5, ` for a name, `10.0.0.5 is ` for an address.
fn named(host: &str, address: IpAddr) -> String {
    if host == address.to_string() {
        format!("{host} is ")
    } else {
        format!("{host} is {address}, ")
    }
}

impl Resolver {
    /// A resolver that allows these networks only; `None`: all.
    pub fn within(allowed: Option<AllowedNetworks>) -> Resolver {
        Resolver { allowed, ..Resolver::default() }
    }

    /// All addresses of `host` at `port`, in the resolver's order and each once. A host is a name,
    /// or an address in any spelling, an IPv6 address with its brackets or without.
    ///
    /// # Errors
    /// If there is none, or one of them may not be connected to.
    pub fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, EngineError> {
        let host = without_brackets(host);
        let mut addresses = self.look_up(host, port)?;
        if let Some(version) = self.version {
            let first = addresses.first().map(SocketAddr::ip);
            addresses.retain(|address| address.is_ipv4() == (version == IpVersion::V4));
            if let (true, Some(found)) = (addresses.is_empty(), first) {
                let wanted = if version == IpVersion::V4 { "IPv4" } else { "IPv6" };
                return Err(EngineError(format!("{host} has no {wanted} address, only {found}")));
            }
        }
        if addresses.is_empty() {
            return Err(EngineError(format!(
                "{host} has no address (check the name, or give one with --resolve \
                 HOST:PORT:ADDRESS)"
            )));
        }
        // One forbidden address refuses the name: it must not depend on which address a connection
        // takes.
        addresses.iter().try_for_each(|address| self.check(host, address.ip()))?;
        let mut seen = HashSet::new();
        addresses.retain(|address| seen.insert(*address));
        Ok(addresses)
    }

    /// Whether an address, which the user named as `host`, may be connected to.
    ///
    /// # Errors
    /// If it is outside of the allowed networks.
    pub fn check(&self, host: &str, address: IpAddr) -> Result<(), EngineError> {
        match &self.allowed {
            Some(allowed) if !allowed.permits(address) => Err(EngineError(format!(
                "{}outside the allowed networks {allowed} (--allow-net or LONGTAIL_ALLOW_NET)",
                named(host, address)
            ))),
            _ => Ok(()),
        }
    }

    fn look_up(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, EngineError> {
        let of_port = |addresses: Vec<IpAddr>| {
            addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()
        };
        let is_given =
            |given: &&StaticAddresses| given.port == port && given.host.eq_ignore_ascii_case(host);
        if let Some(given) = self.given.iter().find(is_given) {
            return Ok(of_port(given.addresses.clone()));
        }
        if let Ok(address) = host.parse() {
            return Ok(of_port(vec![address]));
        }
        let has_zone =
            host.split_once('%').is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok());
        let Some(allowed) = self.allowed.as_ref().filter(|_| !has_zone) else {
            return self.ask_system(host, port);
        };
        let listed = self.in_hosts_file(host);
        if !listed.is_empty() {
            return Ok(of_port(listed));
        }
        if host == "localhost" || host.ends_with(".localhost") {
            // Always this machine (RFC 6761 section 6.3).
            return Ok(of_port(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]));
        }
        // A host that ends in a number is not a name (URL Standard, "ends in a number checker"),
        // but the C library might take it for an address (`127.1`), or ask a name server about it.
        let last = host.rsplit('.').next().unwrap_or_default();
        if !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit())
            || last.starts_with("0x")
        {
            return Err(EngineError(format!("{host} is no IPv4 address (four numbers up to 255)")));
        }
        match self.name_server_outside(allowed) {
            Some(asked) => Err(EngineError(format!(
                "{host} is not in /etc/hosts, and a look-up would ask {asked}, outside the \
                 allowed networks (--allow-net): give its address with --resolve \
                 HOST:PORT:ADDRESS"
            ))),
            None => self.ask_system(host, port),
        }
    }

    /// Asks the C library; musl's differs from glibc in two things, which are done here for it.
    fn ask_system(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, EngineError> {
        let is_musl = cfg!(target_env = "musl");
        if is_musl {
            // Its search of the hosts file is case-sensitive.
            let listed = self.in_hosts_file(host);
            if !listed.is_empty() {
                return Ok(listed.into_iter().map(|ip| SocketAddr::new(ip, port)).collect());
            }
        }
        let failed = match (host, port).to_socket_addrs() {
            Ok(found) => return Ok(found.collect()),
            Err(error) => error,
        };
        if is_musl {
            // It tries no search domain for a name that has a dot.
            for name in self.in_search_domains(host) {
                if let Ok(found) = (name.as_str(), port).to_socket_addrs() {
                    return Ok(found.collect());
                }
            }
        }
        Err(EngineError(format!(
            "cannot resolve {host}: {failed} (check the name, or give its address with --resolve \
             HOST:PORT:ADDRESS)"
        )))
    }

    /// A name with a dot, completed with each of the search domains (resolv.conf(5)). A dot at its
    /// end says that it is complete already.
    fn in_search_domains(&self, host: &str) -> Vec<String> {
        if !host.contains('.') || host.ends_with('.') {
            return vec![];
        }
        let settings = self.system_file("resolv.conf");
        let domains = settings.lines().rev().find_map(|line| {
            let mut words = line.split_ascii_whitespace();
            matches!(words.next(), Some("search" | "domain")).then_some(words)
        });
        domains.into_iter().flatten().map(|domain| format!("{host}.{domain}")).collect()
    }

    /// The addresses that the hosts file has for a name (hosts(5)).
    fn in_hosts_file(&self, host: &str) -> Vec<IpAddr> {
        let mut found = Vec::new();
        for line in self.system_file("hosts").lines() {
            let mut words = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
            let address = words.next().and_then(|word| word.parse().ok());
            if let (Some(address), true) =
                (address, words.any(|name| name.eq_ignore_ascii_case(host)))
            {
                found.push(address);
            }
        }
        found
    }

    /// A name server that a look-up might ask and that is outside of `allowed` (resolv.conf(5)).
    fn name_server_outside(&self, allowed: &AllowedNetworks) -> Option<String> {
        let settings = self.system_file("resolv.conf");
        let servers =
            settings.lines().filter_map(|line| line.trim_start().strip_prefix("nameserver"));
        let servers: Vec<&str> =
            servers.filter_map(|line| line.split_ascii_whitespace().next()).collect();
        // Without an entry the C library asks this machine.
        let asked = if servers.is_empty() { vec!["127.0.0.1"] } else { servers };
        // An entry that cannot be parsed is not known to be allowed.
        let is_allowed = |server: &&str| {
            let address = server.split('%').next().unwrap_or_default().parse();
            address.is_ok_and(|address| allowed.permits(address))
        };
        asked
            .into_iter()
            .find(|server| !is_allowed(server))
            .map(|server| format!("the name server {server}"))
    }

    /// The contents of a system file; empty if it cannot be read, as for the C library.
    fn system_file(&self, name: &str) -> String {
        let bytes = fs::read(Path::new("/etc").join(&self.system).join(name));
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

/// `[::1]` as `::1`; anything else as it is.
pub(crate) fn without_brackets(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "127.0.0.0/8,::1/128";

    /// A resolver with system files of its own, which are deleted with it.
    struct Guarded(Resolver);

    impl std::ops::Deref for Guarded {
        type Target = Resolver;

        fn deref(&self) -> &Resolver {
            &self.0
        }
    }

    impl Drop for Guarded {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0.system);
        }
    }

    /// A resolver that reads these files, and allows only the networks of this machine.
    fn system(folder: &str, hosts: &str, name_servers: &str) -> Guarded {
        let folder = std::env::temp_dir().join(format!("resolve-{folder}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("hosts"), hosts).unwrap();
        fs::write(folder.join("resolv.conf"), name_servers).unwrap();
        Guarded(Resolver {
            allowed: Some(HERE.parse().unwrap()),
            system: folder,
            ..Resolver::default()
        })
    }

    fn shown(resolver: &Resolver, host: &str) -> String {
        match resolver.resolve(host, 80) {
            Ok(found) => found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_address_is_checked_and_no_name_server_asked() {
        let hosts = "127.0.0.1 localhost\n10.0.0.5 far # 127.0.0.1 near\n127.0.0.9 both\n10.0.0.9 \
             BOTH\n::1 six 6th\n";
        let guarded = system("spelled", hosts, "nameserver 10.255.255.53\n");
        for row in include_str!("resolve_cases.txt").lines() {
            let (host, expected) = row.split_once(" => ").unwrap();
            let said = shown(&guarded, host);
            assert!(said.contains(expected), "{host}: {said}");
        }
    }

    #[test]
    fn a_name_server_is_asked_only_where_all_who_might_be_asked_are_allowed() {
        for (folder, name_servers, asked) in [
            ("v4", "# x\nnameserver 10.0.0.53\n", "the name server 10.0.0.53"),
            ("second", "nameserver 127.0.0.53\nnameserver ::2\n", "the name server ::2"),
            ("odd", "nameserver what\n", "the name server what"),
        ] {
            let said = shown(&system(folder, "", name_servers), "example.invalid");
            assert!(said.contains(asked), "{folder}: {said}");
        }
        let here = HERE.parse().unwrap();
        let far = "10.0.0.0/8".parse().unwrap();
        let local = system("local", "", "nameserver 127.0.0.53\nnameserver ::1\n");
        assert_eq!(local.name_server_outside(&here), None);
        let empty = system("empty", "", "");
        assert_eq!(empty.name_server_outside(&here), None);
        assert_eq!(empty.name_server_outside(&far).as_deref(), Some("the name server 127.0.0.1"));
    }

    #[test]
    fn a_name_with_a_dot_is_looked_for_in_the_last_search_line() {
        let resolver = system("search", "", "search a\nnameserver ::1\nsearch b.example c\n");
        assert_eq!(resolver.in_search_domains("shop.eu"), ["shop.eu.b.example", "shop.eu.c"]);
        assert_eq!(resolver.in_search_domains("shop.eu."), [""; 0]);
        // The C library does these.
        assert_eq!(resolver.in_search_domains("shop"), [""; 0]);
    }

    #[test]
    fn addresses_of_the_other_ip_version_are_left_out_before_the_check() {
        let hosts = "127.0.0.9 both\n2001:db8::9 both\n";
        let mut guarded = system("version", hosts, "nameserver 127.0.0.1\n");
        assert!(shown(&guarded, "both").starts_with("both is 2001:db8::9, outside"));
        guarded.0.version = Some(IpVersion::V4);
        assert_eq!(shown(&guarded, "both"), "127.0.0.9:80");
        guarded.0.version = Some(IpVersion::V6);
        assert_eq!(shown(&guarded, "127.0.0.9"), "127.0.0.9 has no IPv6 address, only 127.0.0.9");
    }

    #[test]
    fn given_addresses_take_the_place_of_a_look_up_and_are_checked_too() {
        let given = |text: &str| Resolver {
            given: vec![text.parse().unwrap()],
            allowed: Some(HERE.parse().unwrap()),
            ..Resolver::default()
        };
        assert_eq!(shown(&given("app.test:80:127.0.0.7"), "APP.test"), "127.0.0.7:80");
        assert_eq!(
            shown(&given("app.test:80:127.0.0.7,[::1]"), "app.test"),
            "127.0.0.7:80 [::1]:80"
        );
        assert_eq!(shown(&given("app.test:80:::1"), "app.test"), "[::1]:80");
        assert!(
            shown(&given("app.test:80:10.0.0.7"), "app.test")
                .starts_with("app.test is 10.0.0.7, outside")
        );
        for text in [
            "",
            "h",
            "h:80",
            "h:80:",
            "h:0:127.0.0.1",
            "h:80:name",
            ":80:127.0.0.1",
            "h:80:127.0.0.1,",
        ] {
            assert!(
                text.parse::<StaticAddresses>()
                    .is_err_and(|line| line.contains("HOST:PORT:ADDRESS")),
                "{text}"
            );
        }
    }

    #[test]
    fn without_allowed_networks_any_address_will_do() {
        let free = Resolver::default();
        assert_eq!(shown(&free, "203.0.113.7"), "203.0.113.7:80");
        assert_eq!(shown(&free, "[2001:db8::1]"), "[2001:db8::1]:80");
        let addresses = free.resolve("localhost", 80).expect("localhost is in every hosts file");
        for (at, address) in addresses.iter().enumerate() {
            assert!(!addresses[..at].contains(address), "{address} twice");
        }
    }
}
