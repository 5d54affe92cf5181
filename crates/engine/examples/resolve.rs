//! Prints the addresses of each name that is given, in the order in which longtail has them
//! (`bin/compare-resolvers` compares the C libraries that a build may have).

use std::io::Write as _;

use engine::Resolver;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    for name in std::env::args().skip(1) {
        match Resolver::within(None).resolve(&name, 80) {
            Ok(found) => {
                let shown: Vec<String> =
                    found.iter().map(|address| address.ip().to_string()).collect();
                writeln!(out, "{name}: {}", shown.join(" "))?;
            }
            // The C libraries have words of their own for why.
            Err(_) => writeln!(out, "{name}: no address")?,
        }
    }
    Ok(())
}
