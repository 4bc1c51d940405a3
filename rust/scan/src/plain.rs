//! The usual records into the usual columns, in one pass.

use kafkaseg_core::CorruptKind;
use kafkaseg_core::record::{PlainRecord, Records};

use crate::bytes_column::{BytesColumn, NARROW, WIDE};
use crate::pool::NumberColumn;

/// Room that is made for the values of one call. When it is used up, the call ends.
const VALUE_ROOM_BYTES: usize = 32 << 10;

/// The longest key of a plain record, and one.
const KEY_BYTES: usize = 64;

/// Puts at most `most` of the next records into keys and values, offsets and timestamps, as long as
/// they are plain. Returns how many there were.
pub(crate) fn append_plain(
    records: &mut Records<'_>,
    most: usize,
    (keys, values): (&mut BytesColumn, &mut BytesColumn),
    (offsets, timestamps): (&mut NumberColumn<i64>, &mut NumberColumn<i64>),
) -> Result<usize, CorruptKind> {
    let rows = most.min(usize::try_from(records.left()).unwrap_or(0));
    let value_bytes = records.rest().len().min(VALUE_ROOM_BYTES);
    let (mut key_end, mut key_room, key_ends) = keys.begin_rows(rows, rows * KEY_BYTES);
    let (mut value_end, mut value_room, value_ends) = values.begin_rows(rows, value_bytes);
    let slots = offsets.append(rows).iter_mut().zip(timestamps.append(rows));
    let slots = slots.zip(key_ends).zip(value_ends);
    let taken =
        records.take_plain(slots, |(((offset, timestamp), key_slot), value_slot), record| {
            key_room = put_key(std::mem::take(&mut key_room), &record)?;
            value_room = put_value(std::mem::take(&mut value_room), &record)?;
            key_end = key_end.wrapping_add(record.key_bytes.cast_signed());
            value_end = value_end.wrapping_add(record.value_bytes.cast_signed());
            *key_slot = key_end;
            *value_slot = value_end;
            *offset = record.offset;
            *timestamp = record.timestamp.wrapping_mul(1000);
            Some(())
        });
    let kept = *taken.as_ref().unwrap_or(&0);
    keys.end_rows(rows, kept);
    values.end_rows(rows, kept);
    offsets.truncate(offsets.len() - (rows - kept));
    timestamps.truncate(timestamps.len() - (rows - kept));
    taken
}

/// Puts the key at the start of `room` and returns the room after it. What is copied too much is
/// overwritten by the next string, or never shown.
#[inline]
fn put_key<'r>(room: &'r mut [u8], record: &PlainRecord<'_>) -> Option<&'r mut [u8]> {
    let bytes = usize::try_from(record.key_bytes).ok()?;
    if bytes <= NARROW {
        *room.first_chunk_mut::<NARROW>()? = *record.near_key()?;
    } else {
        *room.first_chunk_mut::<KEY_BYTES>()? = *record.near_key()?;
    }
    room.get_mut(bytes..)
}

#[inline]
fn put_value<'r>(room: &'r mut [u8], record: &PlainRecord<'_>) -> Option<&'r mut [u8]> {
    let bytes = usize::try_from(record.value_bytes).ok()?;
    if bytes <= WIDE {
        *room.first_chunk_mut::<WIDE>()? = *record.near_value()?;
    } else {
        room.get_mut(..bytes)?.copy_from_slice(record.value()?);
    }
    room.get_mut(bytes..)
}
