//! TLS: whom to trust, and whom a server trusts.

use std::path::Path;

use engine::{TlsOptions, TlsSettings};
use model::Outcome;
use rcgen::{BasicConstraints, IsCa, date_time_ymd};

use super::{
    BOTH, Pair, Scratch, authority, insecure, outcome, own_config, server_config, trusting,
};
use crate::kit::GOOD;

#[test]
#[expect(clippy::print_stderr, reason = "a skip says why")]
fn without_insecure_a_certificate_nobody_vouches_for_fails() {
    let tls =
        match TlsSettings::new(&TlsOptions { server_name: "localhost", ..TlsOptions::default() }) {
            Err(error) if error.to_string().starts_with("no certificate authority") => {
                return eprintln!("skipped: no certificate authority is installed here");
            }
            tls => tls.expect("the system's authorities"),
        };
    assert_eq!(outcome(own_config(), tls), Outcome::ConnectFailed);
}

/// Asserts whether a client with these settings trusts a server with this certificate, in both
/// versions of TLS.
fn assert_trusted(what: &str, pair: &Pair, tls: &TlsSettings, is_trusted: bool) {
    let expected = if is_trusted { GOOD } else { Outcome::ConnectFailed };
    for version in BOTH {
        let server = server_config(pair, &[version], None);
        assert_eq!(outcome(server, tls.clone()), expected, "{what}");
    }
}

fn expire(params: &mut rcgen::CertificateParams) {
    params.not_after = date_time_ymd(2001, 1, 1);
}

#[test]
fn a_certificate_is_trusted_if_its_authority_is_and_its_name_fits() {
    let scratch = Scratch::new();
    let ours = authority();
    let vouched = Pair::signed_by(&ours, "localhost");
    let foreign = Pair::signed_by(&authority(), "localhost");
    let own = Pair::self_signed(|_| {});
    let own_pem = own.cert.pem();
    let of_address = Pair::self_signed(|params| {
        params.subject_alt_names = vec![rcgen::SanType::IpAddress([127, 0, 0, 1].into())];
    });
    let address_pem = of_address.cert.pem();
    let given = |pem: &str, name| trusting(&scratch, pem, name);
    let ours = given(&ours.pem(), "localhost");
    assert_trusted("its authority is given", &vouched, &ours, true);
    assert_trusted("another authority is given", &foreign, &ours, false);
    assert_trusted("self-signed, and given", &own, &given(&own_pem, "localhost"), true);
    let other_name = given(&own_pem, "elsewhere.example");
    assert_trusted("given, of another name", &own, &other_name, false);
    assert_trusted("an address's", &of_address, &given(&address_pem, "127.0.0.1"), true);
    assert_trusted("another address's", &of_address, &given(&address_pem, "[::1]"), false);
}

/// As `openssl req -x509` makes it.
#[test]
fn a_servers_own_certificate_may_be_an_authoritys() {
    let scratch = Scratch::new();
    let own = Pair::self_signed(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    let given = |name| trusting(&scratch, &own.cert.pem(), name);
    assert_trusted("of this name", &own, &given("localhost"), true);
    assert_trusted("of another name", &own, &given("x.y"), false);
}

#[test]
fn an_expired_certificate_is_not_trusted() {
    let scratch = Scratch::new();
    let expired = Pair::self_signed(expire);
    let authority = Pair::self_signed(|params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        expire(params);
    });
    for pair in [expired, authority] {
        let given = trusting(&scratch, &pair.cert.pem(), "localhost");
        assert_trusted("expired", &pair, &given, false);
    }
}

#[test]
fn insecure_takes_any_certificate() {
    let own = Pair::self_signed(|_| {});
    let elsewhere = Pair::self_signed(|params| {
        expire(params);
        params.subject_alt_names =
            vec![rcgen::SanType::DnsName("elsewhere.example".try_into().expect("a name"))];
    });
    assert_trusted("nobody vouches for it", &own, &insecure(), true);
    assert_trusted("expired, and of another name", &elsewhere, &insecure(), true);
}

#[test]
fn a_server_that_asks_who_we_are_is_told_or_refuses_in_both_versions() {
    let scratch = Scratch::new();
    let pair = Pair::self_signed(|_| {});
    let issuer = authority();
    let client = Pair::signed_by(&issuer, "client");
    let cert = scratch.file("cert.pem", &client.cert.pem());
    let key = scratch.file("key.pem", &client.key.serialize_pem());
    let both =
        scratch.file("both.pem", &format!("{}{}", client.cert.pem(), client.key.serialize_pem()));
    let options = TlsOptions { insecure: true, server_name: "localhost", ..TlsOptions::default() };
    for version in BOTH {
        for (cert_file, key_file) in [(&cert, Some(key.as_path())), (&both, None)] {
            let tls =
                TlsSettings::new(&TlsOptions { cert_file: Some(cert_file), key_file, ..options })
                    .expect("a pair");
            assert_eq!(outcome(server_config(&pair, &[version], Some(issuer.as_ref())), tls), GOOD);
        }
        // TLS 1.3: our side of the handshake is over before the server has looked for the
        // certificate, and the request is out.
        let refused = outcome(server_config(&pair, &[version], Some(issuer.as_ref())), insecure());
        assert!(
            matches!(refused, Outcome::ConnectFailed | Outcome::Reset),
            "{version:?}: {refused:?}"
        );
    }
}

#[test]
fn files_and_names_that_are_of_no_use_are_refused_with_a_hint() {
    let scratch = Scratch::new();
    let error_of =
        |options: TlsOptions<'_>| TlsSettings::new(&options).expect_err("of no use").to_string();
    let options = TlsOptions { server_name: "localhost", insecure: true, ..TlsOptions::default() };
    let pair = Pair::self_signed(|_| {});
    let cert = scratch.file("cert.pem", &pair.cert.pem());
    let key = scratch.file("key.pem", &pair.key.serialize_pem());
    let other_key = scratch.file("other.pem", &Pair::self_signed(|_| {}).key.serialize_pem());
    let text = scratch.file("text.pem", "no certificate");
    let missing = Path::new("/nonexistent/ca.pem");
    let verified = TlsOptions { insecure: false, ..options };
    assert!(
        error_of(TlsOptions { ca_file: Some(missing), ..verified })
            .starts_with("cannot read /nonexistent/ca.pem")
    );
    assert!(
        error_of(TlsOptions { ca_file: Some(&text), ..verified }).contains("there is none in it")
    );
    assert!(error_of(TlsOptions { key_file: Some(&key), ..options }).contains("--cert"));
    assert!(error_of(TlsOptions { cert_file: Some(&cert), ..options }).contains("a private key"));
    let mismatch = TlsOptions { cert_file: Some(&cert), key_file: Some(&other_key), ..options };
    assert!(error_of(mismatch).contains("belong together"));
    assert!(error_of(TlsOptions { server_name: "a b", ..options }).contains("a b is neither"));
}
