//! What the receiving side saw of a schedule: how many, and in which order. Never when.

use super::{load, loaded, study};
use testkit::http::Receiver;

use crate::lab::Lab;

fn numbered(lab: &Lab, count: usize) {
    lab.write("numbers", &expected(count).join("\n"));
}

fn expected(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("/{n}")).collect()
}

#[test]
fn an_even_stream_arrives_whole_and_in_order() {
    let (lab, receiver) = (Lab::new(), Receiver::start());
    numbered(&lab, 300);
    let words = format!("--rate 600/s --for 500ms -c 1 --requests numbers {}", receiver.url());
    load(&lab, &words).with_code(0);
    assert_eq!(receiver.targets(), expected(300));
    assert_eq!(study(&lab).run.tally.counts.good(), 300);
}

#[test]
fn a_stream_over_many_connections_and_lanes_arrives_whole() {
    let (lab, receiver) = (Lab::new(), Receiver::start());
    numbered(&lab, 300);
    let words = format!("--rate 600/s --for 500ms -c 20 --threads 3 --requests numbers {}", receiver.url());
    load(&lab, &words).with_code(0);
    let mut targets = receiver.targets();
    targets.sort_by_key(|target| target[1..].parse::<usize>().unwrap());
    assert_eq!(targets, expected(300), "none twice, none missing");
}

#[test]
fn a_seed_is_a_stream_and_another_seed_another() {
    let count = |seed| {
        let receiver = Receiver::start();
        let words = format!("--rate 400/s --arrivals poisson --seed {seed} --for 500ms {}", receiver.url());
        let study = loaded(&words);
        assert_eq!(receiver.requests().len() as u64, study.run.tally.counts.good());
        study.run.tally.counts.total()
    };
    let counts: Vec<u64> = [1, 2, 3, 4].map(count).to_vec();
    assert_eq!(count(1), counts[0]);
    assert!(counts.iter().any(|n| *n != counts[0]), "{counts:?}");
}

#[test]
fn what_is_skipped_is_counted_and_does_not_arrive() {
    let receiver = Receiver::start();
    let study = loaded(&format!("--rate 400/s --burst 40 --for 500ms -c 1 --late skip {}", receiver.url()));
    let counts = &study.run.tally.counts;
    let skipped = counts.of(model::Outcome::Skipped);
    assert_eq!((counts.total(), counts.good() + skipped), (200, 200));
    assert!(skipped > 0);
    assert_eq!(receiver.requests().len() as u64, counts.good());
}

#[test]
fn a_random_order_draws_from_all_and_repeats_with_its_seed() {
    let drawn = |seed| {
        let (lab, receiver) = (Lab::new(), Receiver::start());
        numbered(&lab, 5);
        load(&lab, &format!("-n 60 -c 1 --random --seed {seed} --requests numbers {}", receiver.url())).with_code(0);
        receiver.targets()
    };
    let first = drawn(1);
    assert_eq!(first, drawn(1));
    assert_ne!(first, drawn(2));
    assert!(expected(5).iter().all(|target| first.contains(target)));
}
