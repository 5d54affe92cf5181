//! What a user may get wrong, in every command: one line that names it, exit code 2, and nobody was sent anything.

use testkit::http::Receiver;

use crate::lab::{Lab, Running};
use crate::load::split;

#[test]
fn a_mistake_is_one_line_that_names_it_before_any_load() {
    let receiver = Receiver::start();
    let (url, https) = (receiver.url(), receiver.url().replace("http", "https"));
    for line in include_str!("mistakes.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (words, part) = line.split_once(" =>").unwrap();
        let lab = Lab::new();
        let words = words.replace("{url}", &url).replace("{https}", &https);
        let said = Running::start(&mut lab.longtail_of(split(&words))).end().refused(part.trim_start());
        assert!(said.starts_with("longtail: "), "{words}: {said}");
        assert!(lab.living().is_empty() && lab.studies().is_empty(), "{words}");
    }
    assert!(receiver.requests().is_empty(), "nobody was sent anything");
}
