//! Zig-zag variable-length integers, as records use them, and plain ones, as metadata uses them.
//!
//! A 32-bit value takes at most 5 bytes, a 64-bit value at most 10. Writers emit the shortest form;
//! readers accept longer ones within that bound, as Kafka does.

use super::CorruptKind;

type Taken<T> = Result<(T, usize), CorruptKind>;

/// Reads a zig-zag 32-bit integer from the start of `bytes`: the value and the bytes it took.
#[inline]
pub fn read_varint(bytes: &[u8]) -> Taken<i32> {
    let (raw, taken) = read_unsigned(bytes)?;
    Ok((unzigzag32(raw), taken))
}

/// Reads a zig-zag 64-bit integer from the start of `bytes`: the value and the bytes it took.
#[inline]
pub fn read_varlong(bytes: &[u8]) -> Taken<i64> {
    // One and two bytes cover nearly every timestamp delta of a real batch.
    match *bytes {
        [first, ..] if first < 0x80 => Ok((unzigzag64(u64::from(first)), 1)),
        [first, second, ..] if second < 0x80 => {
            Ok((unzigzag64(u64::from(first & 0x7f) | (u64::from(second) << 7)), 2))
        }
        _ => read_long_tail(bytes),
    }
}

#[cold]
fn read_long_tail(bytes: &[u8]) -> Taken<i64> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).wrapping_shl(u32::try_from(index * 7).unwrap_or(63));
        if byte & 0x80 == 0 {
            return Ok((unzigzag64(value), index + 1));
        }
    }
    Err(CorruptKind::Varint)
}

/// Reads a plain (not zig-zag) 32-bit integer: the value and the bytes it took.
#[inline]
pub fn read_unsigned(bytes: &[u8]) -> Taken<u32> {
    match *bytes {
        [first, ..] if first < 0x80 => Ok((u32::from(first), 1)),
        [first, second, ..] if second < 0x80 => {
            Ok((u32::from(first & 0x7f) | (u32::from(second) << 7), 2))
        }
        _ => read_unsigned_tail(bytes),
    }
}

#[inline(never)]
fn read_unsigned_tail(bytes: &[u8]) -> Taken<u32> {
    let mut value = 0_u32;
    for (index, byte) in bytes.iter().take(5).enumerate() {
        value |= u32::from(byte & 0x7f).wrapping_shl(u32::try_from(index * 7).unwrap_or(28));
        if byte & 0x80 == 0 {
            return Ok((value, index + 1));
        }
    }
    Err(CorruptKind::Varint)
}

/// Appends a zig-zag 32-bit integer.
pub fn write_varint(value: i32, output: &mut Vec<u8>) {
    write_unsigned_long(u64::from(zigzag32(value)), output);
}

/// Appends a zig-zag 64-bit integer.
pub fn write_varlong(value: i64, output: &mut Vec<u8>) {
    write_unsigned_long(zigzag64(value), output);
}

fn write_unsigned_long(mut raw: u64, output: &mut Vec<u8>) {
    loop {
        let group = u8::try_from(raw & 0x7f).unwrap_or(0x7f);
        raw >>= 7;
        if raw == 0 {
            output.push(group);
            return;
        }
        output.push(group | 0x80);
    }
}

/// The encoded form of a raw value below 2^28, from the lowest byte on, and the bytes it takes.
/// Without a branch: the lengths of records rarely repeat.
#[inline]
pub(super) fn varint_word(raw: u64) -> (u64, u32) {
    let bytes =
        1 + u32::from(raw >= 1 << 7) + u32::from(raw >= 1 << 14) + u32::from(raw >= 1 << 21);
    let groups = (raw & 0x7f)
        | ((raw & 0x3f80) << 1)
        | ((raw & 0x001f_c000) << 2)
        | ((raw & 0x0fe0_0000) << 3);
    let continued = 0x0080_8080 & ((1 << (8 * (bytes - 1))) - 1);
    (groups | continued, bytes)
}

/// Bytes that [`write_varint`] emits for a value.
pub fn varint_bytes(value: i32) -> usize {
    unsigned_bytes(u64::from(zigzag32(value)))
}

/// Bytes that [`write_varlong`] emits for a value.
pub fn varlong_bytes(value: i64) -> usize {
    unsigned_bytes(zigzag64(value))
}

fn unsigned_bytes(raw: u64) -> usize {
    let bits = 64 - (raw | 1).leading_zeros();
    usize::try_from(bits.div_ceil(7)).unwrap_or(10)
}

#[inline]
fn unzigzag32(raw: u32) -> i32 {
    (raw >> 1).cast_signed() ^ -((raw & 1).cast_signed())
}

#[inline]
fn unzigzag64(raw: u64) -> i64 {
    (raw >> 1).cast_signed() ^ -((raw & 1).cast_signed())
}

#[inline]
pub(super) fn zigzag32(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)).cast_unsigned()
}

#[inline]
pub(super) fn zigzag64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_examples_read_and_write() {
        let cases: &[(i32, &[u8])] = &[
            (0, &[0x00]),
            (-1, &[0x01]),
            (63, &[0x7e]),
            (-64, &[0x7f]),
            (64, &[0x80, 0x01]),
            (300, &[0xd8, 0x04]),
            (8191, &[0xfe, 0x7f]),
            (8192, &[0x80, 0x80, 0x01]),
            (i32::MAX, &[0xfe, 0xff, 0xff, 0xff, 0x0f]),
            (i32::MIN, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        ];
        for &(value, bytes) in cases {
            let mut written = Vec::new();
            write_varint(value, &mut written);
            assert_eq!(written, bytes);
            assert_eq!(varint_bytes(value), bytes.len());
            assert_eq!(read_varint(bytes), Ok((value, bytes.len())));
            assert_eq!(read_varlong(bytes), Ok((i64::from(value), bytes.len())));
        }
    }

    #[test]
    fn a_word_is_what_is_written() {
        for raw in (0..70_000).chain((17..28).flat_map(|bit| (1 << bit) - 3..(1 << bit) + 3)) {
            let mut written = Vec::new();
            write_unsigned_long(raw, &mut written);
            let (word, bytes) = varint_word(raw);
            if raw < 1 << 28 {
                let bytes = usize::try_from(bytes).unwrap();
                assert_eq!(word.to_le_bytes()[..bytes], written, "{raw}");
                assert!(word.to_le_bytes()[bytes..].iter().all(|byte| *byte == 0));
            }
        }
    }

    #[test]
    fn extreme_longs_take_ten_bytes_and_survive() {
        for value in [i64::MAX, i64::MIN, 1_700_000_000_000, -86_400_997] {
            let mut written = Vec::new();
            write_varlong(value, &mut written);
            assert_eq!(varlong_bytes(value), written.len());
            assert_eq!(read_varlong(&written), Ok((value, written.len())));
        }
    }

    #[test]
    fn a_continuation_on_the_last_permitted_byte_is_refused() {
        assert_eq!(read_varint(&[0x80; 5]), Err(CorruptKind::Varint));
        assert_eq!(read_varlong(&[0x80; 10]), Err(CorruptKind::Varint));
        assert_eq!(read_varint(&[0x80]), Err(CorruptKind::Varint));
        assert_eq!(read_varint(&[]), Err(CorruptKind::Varint));
    }

    #[test]
    fn over_long_forms_within_the_bound_are_accepted() {
        assert_eq!(read_varint(&[0x82, 0x80, 0x00]), Ok((1, 3)));
    }
}
