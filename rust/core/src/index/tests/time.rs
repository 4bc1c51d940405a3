//! The time index: lookups, order, the last slot and truncation by offset.

use super::*;
use crate::index::TimeIndexView;

const T0: i64 = 1_700_000_000_000;
const NAME: &str = "00000000000000001000.timeindex";

#[test]
fn the_bytes_are_those_of_the_format_and_lookups_find_them() {
    let room = Room::new();
    let index = room.time(1000, 100, IndexMode::Active);
    assert_eq!(room.file(NAME).len(), 96, "100 bytes are 8 entries");
    for entry in [when(T0 + 9, 1009), when(T0 + 19, 1019), when(T0 + 25, 1025)] {
        assert!(index.maybe_append(entry, false).unwrap());
    }
    assert_eq!(index.lookup(T0 + 8).unwrap(), when(-1, 1000));
    assert_eq!(index.lookup(T0 + 18).unwrap(), when(T0 + 9, 1009));
    assert_eq!(index.lookup(T0 + 19).unwrap(), when(T0 + 19, 1019));
    assert_eq!(index.lookup(i64::MAX).unwrap(), when(T0 + 25, 1025));
    assert_eq!(index.lookup(i64::MIN).unwrap(), when(-1, 1000));
    index.close().unwrap();
    let bytes = room.file(NAME);
    let expected = [
        0x00, 0x00, 0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x09, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x01,
        0x8b, 0xcf, 0xe5, 0x68, 0x13, 0x00, 0x00, 0x00, 0x13, 0x00, 0x00, 0x01, 0x8b, 0xcf, 0xe5,
        0x68, 0x19, 0x00, 0x00, 0x00, 0x19,
    ];
    assert_eq!(bytes, expected);
    assert_eq!(TimeIndexView::new(1000, &bytes).len(), 3);
}

#[test]
fn only_a_later_timestamp_makes_an_entry() {
    let room = Room::new();
    let index = room.time(1000, 1200, IndexMode::Active);
    assert!(!index.maybe_append(when(-1, 1005), false).unwrap(), "no record has a timestamp");
    assert!(index.maybe_append(when(50, 1005), false).unwrap());
    assert!(!index.maybe_append(when(50, 1009), false).unwrap());
    assert!(index.maybe_append(when(49, 1009), false).is_err());
    assert!(index.maybe_append(when(60, 1004), false).is_err());
    assert!(index.maybe_append(when(60, 1000 + (1 << 31)), false).is_err());
    assert!(index.maybe_append(when(51, 1005), false).unwrap(), "an equal offset may follow");
    assert_eq!((index.entries().unwrap(), index.last().unwrap()), (2, when(51, 1005)));
}

#[test]
fn one_slot_is_kept_for_the_last_entry_of_the_segment() {
    let room = Room::new();
    let index = room.time(0, 12 * 3 + 11, IndexMode::Active);
    index.maybe_append(when(1, 1), false).unwrap();
    assert!(!index.is_full());
    index.maybe_append(when(2, 2), false).unwrap();
    assert!(index.is_full());
    assert!(index.maybe_append(when(3, 3), false).is_err());
    assert!(index.maybe_append(when(3, 3), true).unwrap());
    assert!(index.maybe_append(when(4, 4), true).is_err(), "there is no room at all");
    assert!(!index.maybe_append(when(3, 9), true).unwrap(), "which nobody needs for nothing new");
    assert_eq!(index.entries().unwrap(), 3);
    let single = room.time(9, 23, IndexMode::Active);
    assert!(single.is_full(), "one entry is only the last one");
}

#[test]
fn truncation_goes_by_the_offset() {
    for (offset, kept) in [(i64::MIN, 0), (1005, 0), (1006, 1), (1009, 1), (1010, 2), (2000, 3)] {
        let room = Room::new();
        let index = room.time(1000, 1200, IndexMode::Active);
        for entry in [when(70, 1005), when(80, 1009), when(90, 1030)] {
            index.maybe_append(entry, false).unwrap();
        }
        index.truncate_to(offset).unwrap();
        assert_eq!(index.entries().unwrap(), kept, "{offset}");
        assert!(room.file(NAME)[kept * 12..].iter().all(|byte| *byte == 0));
        assert!(index.maybe_append(when(91, 3000), false).unwrap());
        assert_eq!(index.lookup(91).unwrap(), when(91, 3000));
    }
}

#[test]
fn random_work_equals_a_plain_list() {
    let mut random = Random::new(0x7173);
    let mut searches = 0;
    for _ in 0..60 {
        let room = Room::new();
        let base = random_i64(&mut random, 1 << 40);
        let bytes = 12 * 2500;
        let index = room.time(base, bytes, IndexMode::Active);
        let mut model: Vec<TimeEntry> = Vec::new();
        for _ in 0..12 {
            for _ in 0..random.below(400) {
                let last = model.last().copied().unwrap_or(when(T0, base));
                let time = last.timestamp + random_i64(&mut random, 4);
                let next = when(time, last.offset + 1 + random_i64(&mut random, 3));
                if index.is_full() {
                    break;
                }
                let is_new = model.is_empty() || time > last.timestamp;
                assert_eq!(index.maybe_append(next, false).unwrap(), is_new);
                model.extend(is_new.then_some(next));
            }
            let end = model.last().copied().unwrap_or(when(T0, base));
            for _ in 0..200 {
                let span = usize::try_from(end.timestamp - T0).unwrap() + 8;
                let target = T0 - 2 + random_i64(&mut random, span);
                let expected = model.iter().rev().find(|entry| entry.timestamp <= target);
                assert_eq!(index.lookup(target).unwrap(), *expected.unwrap_or(&when(-1, base)));
                searches += 1;
            }
            match random.below(5) {
                0 => index.close().and_then(|()| index.extend(bytes)).unwrap(),
                1 => index.trim().and_then(|()| index.extend(bytes)).unwrap(),
                2 => {
                    let span = usize::try_from(end.offset - base).unwrap() + 4;
                    let to = base + random_i64(&mut random, span);
                    index.truncate_to(to).unwrap();
                    model.retain(|entry| entry.offset < to);
                }
                _ => {}
            }
            assert_eq!(index.entries().unwrap(), model.len());
        }
        index.sanity().unwrap();
        index.close().unwrap();
        let name = format!("{base:020}.timeindex");
        let raw: Vec<u8> = model.iter().flat_map(|entry| entry.encode(base).unwrap()).collect();
        assert_eq!(room.file(&name), raw);
    }
    assert!(searches >= 140_000, "{searches}");
}
