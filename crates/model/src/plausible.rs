//! Rejects impossible numbers from a file or another machine before they are used: a report
//! allocates as many columns as there are workers, and an analysis iterates over as many requests
//! as were counted.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The largest count: beyond it a JSON reader may round (RFC 8259, section 6).
const MOST: u64 = 1 << 53;
/// The latest time in ns, by any clock: 292 years.
const LATEST: u64 = 1 << 63;
/// The largest number with decimals, and the largest sum of times.
const LARGEST: f64 = 1e24;

/// Numbers with a smaller limit, because something is allocated for each.
const SMALLER: [(&str, u64); 8] = [
    ("workers", 100_000),
    ("threads", 100_000),
    ("lanes", 100_000),
    ("cores", 1_000_000),
    ("block", 100_000),
    ("blocks", 100_000),
    ("repeat", 100_000),
    ("kilobytes", 1 << 40),
];

/// Numbers without a limit: `bytes` is the length that a server announced.
const ANY: [&str; 3] = ["seed", "sum_ns", "bytes"];

/// Checks all numbers of a study without keeping them.
///
/// # Errors
/// If a number is impossible, or the JSON is damaged.
pub fn check<'de, D: Deserializer<'de>>(study: D) -> Result<(), D::Error> {
    NumbersOf { key: "", most: MOST }.deserialize(study)
}

/// Like [`check`], for messages between generators, in which any number may be an instant, even the
/// largest one, which means never.
///
/// # Errors
/// Like [`check`].
pub fn check_message<'de, D: Deserializer<'de>>(message: D) -> Result<(), D::Error> {
    NumbersOf { key: "", most: u64::MAX }.deserialize(message)
}

/// Checks the numbers in the value of a key.
#[derive(Clone, Copy)]
struct NumbersOf<'a> {
    key: &'a str,
    /// The default limit.
    most: u64,
}

impl NumbersOf<'_> {
    fn limit(&self) -> u64 {
        let NumbersOf { key, most } = *self;
        if ANY.contains(&key) {
            return u64::MAX;
        }
        let is_time = key.ends_with("_ns") || matches!(key, "" | "at" | "buckets" | "nanos");
        let smaller = SMALLER.iter().find(|(name, _)| *name == key).map(|(_, smaller)| *smaller);
        smaller.unwrap_or(if is_time { LATEST } else { most })
    }
}

impl<'de> DeserializeSeed<'de> for NumbersOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NumbersOf<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        if number > self.limit() {
            return Err(E::custom(format_args!("{number} is too large for '{}'", self.key)));
        }
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        if number.abs() > LARGEST {
            return Err(E::custom(format_args!("{number:e} is too large for '{}'", self.key)));
        }
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while values.next_element_seed(NumbersOf { ..self })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(key) = fields.next_key::<Cow<'_, str>>()? {
            fields.next_value_seed(NumbersOf { key: &key, ..self })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    fn checked(json: &str) -> Result<(), String> {
        let mut value = serde_json::Deserializer::from_str(json);
        super::check(&mut value).map_err(|error| error.to_string())
    }

    #[test]
    fn impossible_numbers_are_named_with_their_place() {
        for json in [
            r#"{"seed": 18446744073709551615, "bytes": 18446744073709551615, "sum_ns": 18446744073709551615, "at_ns": [1, 9223372036854775808]}"#,
            r#"{"workers": 8, "connections": 9007199254740992, "rate": 1e23, "name": "x", "none": null}"#,
            r#"{"buckets": [[1700000000000000000, 3]], "change": -1.5, "less": -3, "is": true}"#,
        ] {
            assert_eq!(checked(json), Ok(()), "{json}");
        }
        for (json, complaint) in [
            (r#"{"runs": [{"count": 18446744073709551615}]}"#, "too large for 'count' at line 1"),
            (r#"{"workers": 100001}"#, "100001 is too large for 'workers'"),
            (r#"{"elapsed_ns": 18446744073709551615}"#, "for 'elapsed_ns'"),
            (r#"{"rate": 1e308}"#, "1e308 is too large for 'rate'"),
            (r#"{"a": [1, 2"#, "EOF"),
        ] {
            let error = checked(json).unwrap_err();
            assert!(error.contains(complaint), "{error}");
        }
    }
}
