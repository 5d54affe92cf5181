//! What is wrong with a server's certificate, in words, each with the remedy that works.

use jiff::Timestamp;
use model::Endpoint;
use rustls::CertificateError;
use rustls::pki_types::{CertificateDer, UnixTime};

use crate::tls::TlsSettings;

/// What is wrong with a certificate, and what to do. `--cacert` helps against an unknown authority,
/// not against a wrong date or name.
pub(crate) fn explanation(
    reason: &CertificateError,
    certificate: Option<&CertificateDer<'_>>,
    endpoint: &Endpoint,
    tls: &TlsSettings,
) -> String {
    let it = format!("the certificate of {endpoint}");
    let issuer = certificate.and_then(|certificate| Issuer::of(certificate));
    match reason {
        CertificateError::ExpiredContext { time, not_after } => format!(
            "{it} expired on {} (today is {} here): renew it, or accept any with --insecure",
            date(*not_after),
            date(*time)
        ),
        CertificateError::Expired => {
            format!("{it} has expired: renew it, or accept any with --insecure")
        }
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "{it} is not valid before {} (today is {} here): set the clock that is wrong, or \
             accept any with --insecure",
            date(*not_before),
            date(*time)
        ),
        CertificateError::NotValidYet => {
            format!(
                "{it} is not valid yet: set the clock that is wrong, or accept any with --insecure"
            )
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            other_name(&it, presented, endpoint, tls.server_name())
        }
        CertificateError::NotValidForName => format!(
            "{it} is for another name than {}: correct the URL, or accept any with --insecure",
            tls.server_name()
        ),
        CertificateError::UnknownIssuer | CertificateError::Other(_) => {
            unknown_issuer(&it, issuer.as_ref(), tls.has_authorities())
        }
        CertificateError::Revoked => {
            format!("{it} was revoked: get a new one, or accept any with --insecure")
        }
        CertificateError::BadSignature => format!(
            "{it} is not signed by the authority that it names: give the right one with --cacert \
             FILE, or accept any with --insecure"
        ),
        CertificateError::BadEncoding => {
            format!("{it} cannot be read: make a new one, or accept any with --insecure")
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            format!(
                "{it} is not one for servers (extended key usage): make one for serverAuth, or \
                 accept any with --insecure"
            )
        }
        _ => format!(
            "{it} is signed in a way that is not accepted (an old or weak algorithm): make one \
             with ECDSA or RSA 2048 and SHA-256, or accept any with --insecure"
        ),
    }
}

/// What is wrong with a certificate for these names, where the URL has another one.
fn other_name(it: &str, presented: &[String], endpoint: &Endpoint, asked: &str) -> String {
    let names: Vec<&str> = presented.iter().map(|name| plain_name(name)).collect();
    let Some(name) = names.first() else {
        return format!(
            "{it} names no host (subjectAltName), so it is not for {asked}: make one that does, \
             or accept any with --insecure"
        );
    };
    format!(
        "{it} is for {}, and not for {asked}: type https://{}{}/ with --connect-to {endpoint}, or \
         accept any with --insecure",
        names.join(", "),
        name.replace('*', "www"),
        port_of(endpoint)
    )
}

fn unknown_issuer(it: &str, issuer: Option<&Issuer>, has_authorities: bool) -> String {
    match issuer {
        Some(Issuer::Itself) => format!(
            "{it} is self-signed: trust it with --cacert FILE (this very certificate, in PEM), or \
             accept any with --insecure"
        ),
        Some(Issuer::Other(name)) if has_authorities => format!(
            "{it} is signed by '{name}', which is not in the file of --cacert: give the \
             certificate of that authority, or accept any with --insecure"
        ),
        Some(Issuer::Other(name)) => format!(
            "{it} is signed by '{name}', which is not trusted here: trust it with --cacert FILE \
             (the certificate of that authority, in PEM), or accept any with --insecure"
        ),
        None => format!(
            "{it} is signed by nobody who is trusted here: trust the authority with --cacert \
             FILE, or accept any with --insecure"
        ),
    }
}

/// `DnsName("app.test")` of the TLS library, and `app.test`.
fn plain_name(presented: &str) -> &str {
    let inner = presented.split_once('(').map_or(presented, |(_, inner)| inner);
    inner.trim_end_matches(')').trim_matches('"')
}

fn port_of(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp(address) if address.port() != 443 => format!(":{}", address.port()),
        _ => String::new(),
    }
}

/// `2025-01-31`, in UTC.
fn date(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let day = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    day.strftime("%Y-%m-%d").to_string()
}

/// Who signed a certificate, as it says itself.
#[derive(Debug, PartialEq, Eq)]
enum Issuer {
    Itself,
    /// The common name of another one.
    Other(String),
}

impl Issuer {
    /// Reads a certificate up to the two names (RFC 5280 section 4.1); `None` if it is no
    /// certificate.
    fn of(certificate: &[u8]) -> Option<Issuer> {
        const SEQUENCE: u8 = 0x30;
        let whole = Element::first(certificate)?;
        let to_be_signed = Element::first(whole.content)?;
        let mut rest = to_be_signed.content;
        let mut sequences = Vec::new();
        // Algorithm, issuer, validity, subject: the first four sequences.
        while sequences.len() < 4 {
            let element = Element::first(rest)?;
            rest = &rest[element.length..];
            if element.tag == SEQUENCE {
                sequences.push(element.content);
            }
        }
        let issuer = sequences[1];
        let subject = sequences[3];
        if issuer == subject {
            return Some(Issuer::Itself);
        }
        Some(Issuer::Other(
            common_name(issuer).unwrap_or_else(|| "an authority without a name".to_owned()),
        ))
    }
}

/// The common name (2.5.4.3) in a distinguished name.
fn common_name(name: &[u8]) -> Option<String> {
    const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];
    let at = name.windows(COMMON_NAME.len()).position(|part| part == COMMON_NAME)?;
    let text = Element::first(&name[at + COMMON_NAME.len()..])?;
    let text = String::from_utf8_lossy(text.content);
    Some(text.chars().filter(|char| !char.is_control()).take(80).collect())
}

/// An element of DER.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    /// Bytes of all of it.
    length: usize,
}

impl Element<'_> {
    /// The element at the start of `bytes`.
    fn first(bytes: &[u8]) -> Option<Element<'_>> {
        let [tag, length, rest @ ..] = bytes else { return None };
        let more = usize::from(length & 0x7f);
        let (content_length, header) = if *length < 0x80 {
            (usize::from(*length), 2)
        } else {
            let digits = rest.get(..more).filter(|digits| digits.len() <= 4)?;
            let length = digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit));
            (length, 2 + more)
        };
        let length = header + content_length;
        Some(Element { tag: *tag, content: bytes.get(header..length)?, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_signed_a_certificate_is_read_from_it() {
        let own = rcgen::generate_simple_self_signed(vec!["app.test".to_owned()]).unwrap();
        assert_eq!(Issuer::of(own.cert.der()), Some(Issuer::Itself));
        for length in 0..60 {
            // Cut at any byte it is no certificate, and nothing panics.
            assert_eq!(Issuer::of(&own.cert.der()[..length]), None);
        }
    }

    #[test]
    fn a_date_has_no_seconds() {
        let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_735_689_600));
        assert_eq!(date(time), "2025-01-01");
        assert_eq!(plain_name("DnsName(\"app.test\")"), "app.test");
        assert_eq!(plain_name("app.test"), "app.test");
    }
}
