//! The offset index: lookups, bounds, order and fullness.

use super::*;
use crate::index::OffsetIndexView;

const NAME: &str = "00000000000000001000.index";

#[test]
fn lookups_give_the_numbers_of_the_published_example() {
    let room = Room::new();
    let index = room.offset(0, 1024, IndexMode::Active);
    for (offset, position) in [(3, 6000), (6, 12_000), (9, 18_000)] {
        index.append(offset, position).unwrap();
    }
    for (target, expected) in [
        (i64::MIN, at(0, 0)),
        (2, at(0, 0)),
        (3, at(3, 6000)),
        (5, at(3, 6000)),
        (9, at(9, 18_000)),
        (i64::MAX, at(9, 18_000)),
    ] {
        assert_eq!(index.lookup(target).unwrap(), expected, "{target}");
    }
    assert_eq!(index.upper_bound(0, 6000).unwrap(), Some(at(3, 6000)));
    assert_eq!(index.upper_bound(6000, 1).unwrap(), Some(at(6, 12_000)));
    assert_eq!(index.upper_bound(0, 0).unwrap(), Some(at(3, 6000)));
    assert_eq!(index.upper_bound(18_000, 1).unwrap(), None);
    assert_eq!(index.upper_bound(u64::MAX, u64::MAX).unwrap(), None);
    assert_eq!(index.last().unwrap(), at(9, 18_000));
    assert_eq!(index.entry(1).unwrap(), Some(at(6, 12_000)));
    assert_eq!((index.entry(3).unwrap(), index.entries().unwrap()), (None, 3));
}

#[test]
fn the_bytes_are_those_of_the_format() {
    let room = Room::new();
    let index = room.offset(1000, 100, IndexMode::Active);
    index.append(1009, 4150).unwrap();
    index.append(1019, 8300).unwrap();
    let active = room.file(NAME);
    assert_eq!(active.len(), 96, "100 bytes are 12 entries");
    let entries = [0, 0, 0, 9, 0, 0, 0x10, 0x36, 0, 0, 0, 0x13, 0, 0, 0x20, 0x6c];
    assert_eq!((&active[..16], &active[16..]), (&entries[..], &[0; 80][..]));
    index.close().unwrap();
    assert_eq!(room.file(NAME), entries);
    assert_eq!(OffsetIndexView::new(1000, &entries).lookup(1018), Some(at(1009, 4150)));
}

#[test]
fn an_empty_index_answers_with_the_segments_start() {
    let room = Room::new();
    let index = room.offset(1000, 8, IndexMode::Active);
    assert_eq!(index.lookup(5000).unwrap(), at(1000, 0));
    assert_eq!(index.upper_bound(0, 0).unwrap(), None);
    assert_eq!(index.last().unwrap(), at(1000, 0));
    index.trim().unwrap();
    assert_eq!((index.lookup(5000).unwrap(), room.file(NAME).len()), (at(1000, 0), 0));
}

#[test]
fn entries_that_do_not_belong_are_refused_and_change_nothing() {
    let room = Room::new();
    let index = room.offset(1000, 24, IndexMode::Active);
    index.append(1005, 10).unwrap();
    for (offset, position) in
        [(1005, 20), (1004, 20), (999, 20), (1000 + (1 << 31), 20), (1006, 1 << 31), (i64::MIN, 20)]
    {
        assert!(index.append(offset, position).is_err(), "{offset} {position}");
    }
    assert_eq!((index.entries().unwrap(), index.last().unwrap()), (1, at(1005, 10)));
    index.append(1000 + 0x7fff_ffff, 0x7fff_ffff).unwrap();
    assert!(!index.is_full());
    index.append(1000 + 0x7fff_ffff, 1).unwrap_err();
    assert_eq!(index.lookup(i64::MAX).unwrap(), at(1000 + 0x7fff_ffff, 0x7fff_ffff));
}

#[test]
fn it_is_full_at_its_last_entry() {
    let room = Room::new();
    let index = room.offset(0, 31, IndexMode::Active);
    for entry in 1..=3 {
        assert!(!index.is_full());
        index.append(entry, 100).unwrap();
    }
    assert!(index.is_full());
    let refused = index.append(4, 100).unwrap_err().to_string();
    assert!(refused.contains("is full with 3 entries"), "{refused}");
    assert!(OffsetIndex::open(Arc::clone(&room.dir), 7, 7, IndexMode::Active).is_err());
}

#[test]
fn truncation_keeps_what_is_below_the_offset() {
    for (offset, kept) in [(i64::MIN, 0), (10, 0), (11, 1), (20, 1), (21, 2), (30, 2), (31, 3)] {
        let room = Room::new();
        let index = room.offset(5, 1024, IndexMode::Active);
        for entry in 1_u32..=3 {
            index.append(i64::from(entry) * 10, entry * 100).unwrap();
        }
        index.truncate_to(offset).unwrap();
        assert_eq!(index.entries().unwrap(), kept, "{offset}");
        let bytes = room.file("00000000000000000005.index");
        assert!(bytes[kept * 8..].iter().all(|byte| *byte == 0), "{offset} leaves remains");
        index.append(offset.max(31), 1000).unwrap();
        assert_eq!(index.lookup(i64::MAX).unwrap(), at(offset.max(31), 1000));
    }
}

#[test]
fn random_work_equals_a_plain_list() {
    let mut random = Random::new(0x0ff5);
    let mut searches = 0;
    for _ in 0..60 {
        let room = Room::new();
        let base = random_i64(&mut random, 1 << 40);
        let index = room.offset(base, 8 * 4000, IndexMode::Active);
        let mut model: Vec<OffsetEntry> = Vec::new();
        for _ in 0..12 {
            for _ in 0..random.below(600) {
                let last = model.last().copied().unwrap_or(at(base, 0));
                let next = at(
                    last.offset + 1 + random_i64(&mut random, 5),
                    last.position + 1 + u32::try_from(random.below(9)).unwrap(),
                );
                if index.is_full() {
                    assert_eq!(model.len(), 4000);
                    break;
                }
                index.append(next.offset, next.position).unwrap();
                model.push(next);
            }
            let end = model.last().copied().unwrap_or(at(base, 0));
            for _ in 0..200 {
                let span = usize::try_from(end.offset - base).unwrap() + 8;
                let target = base - 2 + random_i64(&mut random, span);
                let expected = model.iter().rev().find(|entry| entry.offset <= target);
                assert_eq!(index.lookup(target).unwrap(), *expected.unwrap_or(&at(base, 0)));
                let to = random.below(usize::try_from(end.position).unwrap() + 5);
                let to = u32::try_from(to).unwrap();
                let expected = model.iter().find(|entry| entry.position >= to);
                let found = index.upper_bound(u64::from(to / 2), u64::from(to - to / 2)).unwrap();
                assert_eq!(found.as_ref(), expected);
                searches += 2;
            }
            match random.below(5) {
                0 => index.close().and_then(|()| index.extend(8 * 4000)).unwrap(),
                1 => index.trim().and_then(|()| index.extend(8 * 4000)).unwrap(),
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
        index.sanity().unwrap_or_else(|error| assert!(model.is_empty(), "{error}"));
        index.close().unwrap();
        let name = format!("{base:020}.index");
        let raw: Vec<u8> = model.iter().flat_map(|entry| entry.encode(base).unwrap()).collect();
        assert_eq!(room.file(&name), raw);
    }
    assert!(searches >= 250_000, "{searches}");
}
