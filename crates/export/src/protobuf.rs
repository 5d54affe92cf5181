//! The wire format of Protocol Buffers, as far as OTLP's requests and responses need it
//! (protobuf.dev/programming-guides/encoding).

/// How a field's value is written: the last three bits of its key.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
const FIXED32: u64 = 5;

/// A message that is being written. Fields are written in the order of the calls; one that has its
/// type's default value need not be.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProtobufMessage {
    bytes: Vec<u8>,
}

impl ProtobufMessage {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// A message within this one.
    pub(crate) fn message(&mut self, field: u64, message: &ProtobufMessage) {
        self.length_delimited(field, &message.bytes);
    }

    pub(crate) fn text(&mut self, field: u64, text: &str) {
        self.length_delimited(field, text.as_bytes());
    }

    /// An enum or an unsigned number of variable length.
    pub(crate) fn varint(&mut self, field: u64, value: u64) {
        self.key(field, VARINT);
        self.number(value);
    }

    pub(crate) fn fixed64(&mut self, field: u64, value: u64) {
        self.key(field, FIXED64);
        self.bytes.extend(value.to_le_bytes());
    }

    pub(crate) fn double(&mut self, field: u64, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    /// A repeated field of `fixed64` or `double`, packed as proto3 packs it.
    pub(crate) fn packed(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let packed: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
        self.length_delimited(field, &packed);
    }

    fn length_delimited(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, LENGTH_DELIMITED);
        self.number(bytes.len() as u64);
        self.bytes.extend(bytes);
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.number(field << 3 | wire_type);
    }

    /// Seven bits a byte, the lowest first; the eighth says whether more follow.
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

/// What a field of a received message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValue<'a> {
    /// A number of any wire type.
    Number(u64),
    /// Text, or a message.
    Bytes(&'a [u8]),
}

/// The fields of a received message with their numbers; `None` if it cannot be read.
pub(crate) fn fields(mut message: &[u8]) -> Option<Vec<(u64, FieldValue<'_>)>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = read_number(&mut message)?;
        let value = match key & 7 {
            VARINT => FieldValue::Number(read_number(&mut message)?),
            FIXED64 => FieldValue::Number(u64::from_le_bytes(*take_array(&mut message)?)),
            FIXED32 => FieldValue::Number(u32::from_le_bytes(*take_array(&mut message)?).into()),
            LENGTH_DELIMITED => {
                let length = usize::try_from(read_number(&mut message)?).ok()?;
                let (bytes, rest) = message.split_at_checked(length)?;
                message = rest;
                FieldValue::Bytes(bytes)
            }
            _ => return None,
        };
        fields.push((key >> 3, value));
    }
    Some(fields)
}

fn take_array<'a, const N: usize>(message: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (array, rest) = message.split_first_chunk()?;
    *message = rest;
    Some(array)
}

fn read_number(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let [byte] = *take_array(message)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut inner = ProtobufMessage::default();
            inner.varint(1, value);
            inner.fixed64(16, value);
            inner.double(3, 0.5);
            inner.packed(4, [value, 2].into_iter());
            let mut message = ProtobufMessage::default();
            message.text(2, "text");
            message.message(1000, &inner);
            let bytes = message.into_bytes();
            let packed = [value.to_le_bytes(), 2_u64.to_le_bytes()].concat();
            let inner_fields = [
                (1, FieldValue::Number(value)),
                (16, FieldValue::Number(value)),
                (3, FieldValue::Number(0.5_f64.to_bits())),
                (4, FieldValue::Bytes(&packed)),
            ];
            let read = fields(&bytes).unwrap();
            assert_eq!(read[0], (2, FieldValue::Bytes(b"text")));
            let (1000, FieldValue::Bytes(within)) = read[1] else { panic!("{read:?}") };
            assert_eq!(fields(within).unwrap(), inner_fields);
        }
    }

    #[test]
    fn the_examples_of_the_specification_are_read() {
        assert_eq!(fields(&[0x08, 0x96, 0x01]), Some(vec![(1, FieldValue::Number(150))]));
        let testing = b"\x12\x07testing";
        assert_eq!(fields(testing), Some(vec![(2, FieldValue::Bytes(b"testing"))]));
        assert_eq!(fields(b"\x0d\x01\0\0\0"), Some(vec![(1, FieldValue::Number(1))]));
    }

    #[test]
    fn what_is_cut_off_or_of_no_known_type_cannot_be_read() {
        for bytes in [
            &b"\x12\x08testing"[..],
            b"\x08",
            b"\x08\x96",
            b"\x09\0\0\0\0\0\0\0",
            b"\x0b",
            b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            &[0xff; 12],
        ] {
            assert_eq!(fields(bytes), None, "{bytes:?}");
        }
    }
}
