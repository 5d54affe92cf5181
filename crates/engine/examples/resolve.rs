//! Prints the addresses of each given name, in the order in which longtail uses them.
//! `bin/compare-resolvers` compares the output of builds with different C libraries.

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
            // Each C library words the reason differently, so it is not printed.
            Err(_) => writeln!(out, "{name}: no address")?,
        }
    }
    Ok(())
}
