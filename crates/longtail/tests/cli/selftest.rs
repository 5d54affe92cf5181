//! `longtail doctor --self-test`: every request is in both ledgers. Its times are printed and not looked at here.

use serde_json::Value;

use crate::lab::Lab;
use crate::schemas::assert_keeps;

#[test]
fn every_request_byte_and_connection_is_in_both_ledgers() {
    let lab = Lab::new();
    let ended = lab.run("doctor --self-test --quick --json").with_code(0);
    assert_eq!(ended.stderr, "");
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_keeps("selftest", &all);
    assert_eq!(all["conserved"], true);
    let cases = all["cases"].as_array().unwrap();
    // The seeds are fixed, so that the number of random arrivals is a fact too.
    let planned: Vec<_> = cases.iter().map(|case| (case["case"].as_str().unwrap(), &case["planned"])).collect();
    let expected = [
        ("constant 1ms", 300),
        ("exp:5ms", 300),
        ("bimodal:1ms:50ms:0.02", 300),
        ("stalls 1s:100ms", 1200),
        ("D/D/5 at twice", 30),
        ("M/D/5 at 0.8", 286),
        ("rate 1000/s", 500),
    ];
    assert_eq!(planned.len(), expected.len());
    for ((case, planned), (name, number)) in planned.into_iter().zip(expected) {
        assert_eq!((case, planned.as_u64()), (name, Some(number)));
    }
    for case in cases {
        let balances = case["balances"].as_array().unwrap();
        assert!(balances.len() >= 10);
        for balance in balances {
            assert_eq!(balance["expected"], balance["found"], "{}: {}", case["case"], balance["what"]);
        }
    }
    assert!(lab.studies().is_empty());
}
