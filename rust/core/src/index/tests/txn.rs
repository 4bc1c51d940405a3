//! The transaction index: made by the first abort, searched without reading all of it.

use super::*;
use crate::index::{AbortedTxn, TXN_ENTRY_BYTES};

const NAME: &str = "00000000000000000100.txnindex";

fn aborted(producer_id: i64, first: i64, last: i64, stable: i64) -> AbortedTxn {
    AbortedTxn { producer_id, first_offset: first, last_offset: last, last_stable_offset: stable }
}

#[test]
fn the_first_abort_makes_the_file() {
    let room = Room::new();
    let index = room.txn(100);
    assert_eq!(index.aborted_between(0, i64::MAX).unwrap(), (vec![], false));
    index.sanity().unwrap();
    index.truncate_to(0).unwrap();
    index.reset().unwrap();
    index.flush().unwrap();
    assert_eq!((room.names(), index.entries().unwrap()), (vec![], 0));
    index.append(&aborted(4242, 103, 105, 106)).unwrap();
    let expected = [
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x92, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x67, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x69, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x6a,
    ];
    assert_eq!((room.file(NAME), index.path()), (expected.to_vec(), room.path().join(NAME)));
    index.flush().unwrap();
}

#[test]
fn a_reader_gets_what_overlaps_and_learns_when_to_stop() {
    let room = Room::new();
    let index = room.txn(0);
    let entries = [aborted(1, 0, 10, 11), aborted(2, 5, 20, 15), aborted(1, 15, 30, 31)];
    for entry in &entries {
        index.append(entry).unwrap();
    }
    let between = |from, to| index.aborted_between(from, to).unwrap();
    assert_eq!(between(0, 1), (vec![entries[0]], true));
    assert_eq!(between(0, 11), (vec![entries[0]], true), "the first ends at the bound");
    assert_eq!(between(0, 12), (entries[..2].to_vec(), true));
    assert_eq!(between(11, 16), (entries[1..].to_vec(), true));
    assert_eq!(between(21, 32), (entries[2..].to_vec(), false));
    assert_eq!(between(31, 40), (vec![], false));
}

#[test]
fn markers_out_of_order_are_refused() {
    let room = Room::new();
    let index = room.txn(100);
    index.append(&aborted(1, 100, 110, 111)).unwrap();
    assert!(index.append(&aborted(2, 101, 110, 111)).is_err());
    assert!(index.append(&aborted(2, 101, 109, 111)).is_err());
    index.close();
    assert!(index.append(&aborted(2, 101, 110, 111)).is_err(), "nor after it was opened again");
    assert_eq!(index.entries().unwrap(), 1);
}

#[test]
fn random_work_equals_a_plain_list() {
    let mut random = Random::new(0x7a);
    for _ in 0..25 {
        let room = Room::new();
        let index = room.txn(0);
        let mut model: Vec<AbortedTxn> = Vec::new();
        for _ in 0..8 {
            for _ in 0..random.below(150) {
                let last = model.last().map_or(0, |entry| entry.last_offset);
                let marker = last + 1 + random_i64(&mut random, 6);
                let first = (marker - random_i64(&mut random, 30)).max(0);
                let stable = marker + 1 - random_i64(&mut random, 12);
                model.push(aborted(7, first, marker, stable));
                index.append(model.last().unwrap()).unwrap();
            }
            let end = model.last().map_or(0, |entry| entry.last_offset);
            for _ in 0..60 {
                let from = random_i64(&mut random, usize::try_from(end).unwrap() + 9);
                let upper = from + 1 + random_i64(&mut random, 60);
                let stop = model.iter().position(|entry| entry.last_stable_offset >= upper);
                let seen = &model[..stop.map_or(model.len(), |stop| stop + 1)];
                let overlaps =
                    |entry: &&AbortedTxn| entry.last_offset >= from && entry.first_offset < upper;
                let expected: Vec<_> = seen.iter().filter(overlaps).copied().collect();
                let found = index.aborted_between(from, upper).unwrap();
                assert_eq!(found, (expected, stop.is_some()), "{from} {upper}");
            }
            match random.below(3) {
                0 => index.close(),
                1 => {
                    let to = random_i64(&mut random, usize::try_from(end).unwrap() + 4);
                    index.truncate_to(to).unwrap();
                    model.retain(|entry| entry.last_offset < to);
                }
                _ => index.flush().unwrap(),
            }
            assert_eq!(index.entries().unwrap(), u64::try_from(model.len()).unwrap());
            index.sanity().unwrap();
        }
    }
}

#[test]
fn a_torn_entry_is_damage_and_is_overwritten() {
    let room = Room::new();
    let first = aborted(1, 100, 110, 111);
    let mut bytes = Vec::new();
    first.encode(&mut bytes);
    bytes.extend([9; TXN_ENTRY_BYTES - 1]);
    room.write(NAME, &bytes);
    let index = room.txn(100);
    let error = index.sanity().unwrap_err().to_string();
    assert!(error.contains("position 34") && error.contains("inside an entry"), "{error}");
    assert_eq!(index.aborted_between(0, 1000).unwrap(), (vec![first], false));
    let second = aborted(2, 101, 120, 121);
    index.append(&second).unwrap();
    index.sanity().unwrap();
    assert_eq!(index.aborted_between(0, 1000).unwrap(), (vec![first, second], false));
}

#[test]
fn damage_is_named_with_its_place() {
    for (byte, why) in [(1, "version"), (34 + 25, "do not increase"), (34 + 18, "below the base")] {
        let room = Room::new();
        let mut bytes = Vec::new();
        aborted(1, 100, 110, 111).encode(&mut bytes);
        aborted(1, 100, 111, 112).encode(&mut bytes);
        bytes[byte] = if byte == 34 + 18 { 0x80 } else { 105 };
        room.write(NAME, &bytes);
        let error = room.txn(100).sanity().unwrap_err().to_string();
        let place = format!("position {}", byte / 34 * 34);
        assert!(error.contains(why) && error.contains(&place), "{error}");
    }
}

#[test]
fn truncation_and_reset_leave_the_empty_file_that_kafka_leaves() {
    let room = Room::new();
    let index = room.txn(100);
    index.append(&aborted(1, 100, 110, 111)).unwrap();
    index.truncate_to(110).unwrap();
    assert_eq!((room.file(NAME).len(), index.entries().unwrap()), (0, 0));
    index.append(&aborted(1, 100, 105, 106)).unwrap();
    index.reset().unwrap();
    assert_eq!(room.file(NAME).len(), 0);
    index.sanity().unwrap();
    index.rename(crate::names::FileState::Deleted).unwrap();
    assert_eq!(room.names(), [format!("{NAME}.deleted")]);
    assert_eq!((index.remove().unwrap(), index.remove().unwrap()), (true, false));
}
