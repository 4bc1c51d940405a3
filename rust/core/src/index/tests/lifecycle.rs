//! From preallocation to removal: what the files are at each step, and what a stop leaves.

use super::*;
use crate::names::FileState;

const NAME: &str = "00000000000000000000.index";
const MAX: u64 = 8 * 10;

fn filled(room: &Room, entries: u32) -> OffsetIndex<RealDir> {
    let index = room.offset(0, MAX, IndexMode::Active);
    for entry in 1..=entries {
        index.append(i64::from(entry) * 2, entry * 100).unwrap();
    }
    index
}

#[test]
fn a_sealed_index_is_not_touched_before_the_first_search() {
    let room = Room::new();
    filled(&room, 4).close().unwrap();
    let index = room.offset(0, MAX, IndexMode::Sealed);
    assert_eq!((index.entries().unwrap(), index.last().unwrap()), (4, at(8, 400)));
    assert!(!index.is_mapped(), "neither the count nor the last entry needs a map");
    assert_eq!(index.lookup(5).unwrap(), at(4, 200));
    assert!(index.is_mapped());
    assert_eq!((index.entries().unwrap(), index.last().unwrap()), (4, at(8, 400)));
    index.close().unwrap();
    assert!(!index.is_mapped());
    assert_eq!(index.lookup(7).unwrap(), at(6, 300), "it opens again");
    assert_eq!(room.file(NAME).len(), 32);
}

#[test]
fn a_sealed_index_takes_nothing_until_it_is_extended() {
    let room = Room::new();
    let index = filled(&room, 4);
    index.trim().unwrap();
    assert_eq!(room.file(NAME).len(), 32);
    assert!(index.is_full());
    let error = index.append(100, 1000).unwrap_err().to_string();
    assert!(error.contains("not open for appending"), "{error}");
    index.extend(MAX).unwrap();
    assert_eq!((room.file(NAME).len(), index.is_full()), (80, false));
    index.append(100, 1000).unwrap();
    assert_eq!((index.entries().unwrap(), index.lookup(101).unwrap()), (5, at(100, 1000)));
}

#[test]
fn reopening_a_trimmed_file_as_active_goes_on_where_it_ended() {
    let room = Room::new();
    filled(&room, 4).close().unwrap();
    let index = room.offset(0, MAX, IndexMode::Active);
    assert_eq!((index.entries().unwrap(), room.file(NAME).len()), (4, 80));
    index.append(20, 900).unwrap();
    index.close().unwrap();
    assert_eq!(room.file(NAME).len(), 40);
}

#[test]
fn a_smaller_maximum_never_cuts_entries() {
    let room = Room::new();
    let index = filled(&room, 4);
    index.extend(16).unwrap();
    assert_eq!((index.entries().unwrap(), room.file(NAME).len()), (4, 32));
    assert!(index.is_full(), "so the segment rolls");
    index.extend(8 * 100).unwrap();
    assert_eq!((room.file(NAME).len(), index.last().unwrap()), (800, at(8, 400)));
}

#[test]
fn after_an_unclean_stop_the_length_counts_and_sanity_fails_until_a_reset() {
    let room = Room::new();
    drop(filled(&room, 4));
    let index = room.offset(0, MAX, IndexMode::Sealed);
    assert_eq!(index.entries().unwrap(), 10);
    assert!(index.sanity().is_err());
    for target in 0..30 {
        assert!(index.lookup(target).unwrap().offset <= target);
    }
    index.reset(MAX).unwrap();
    assert_eq!((index.entries().unwrap(), room.file(NAME)), (0, vec![0; 80]));
    index.sanity().unwrap();
    index.append(3, 50).unwrap();
    index.trim().unwrap();
    assert_eq!(room.file(NAME), [0, 0, 0, 3, 0, 0, 0, 50]);
}

#[test]
fn a_missing_file_is_an_empty_index_and_is_made_only_to_be_written() {
    let room = Room::new();
    let index = room.offset(7, MAX, IndexMode::Sealed);
    assert_eq!((index.lookup(99).unwrap(), index.last().unwrap()), (at(7, 0), at(7, 0)));
    assert_eq!((index.entries().unwrap(), index.upper_bound(0, 0).unwrap()), (0, None));
    index.sanity().unwrap();
    index.truncate_to(7).unwrap();
    index.trim().unwrap();
    index.flush().unwrap();
    index.rename(FileState::Deleted).unwrap();
    index.rename(FileState::Live).unwrap();
    index.close().unwrap();
    assert!(room.names().is_empty(), "{:?}", room.names());
    index.extend(MAX).unwrap();
    index.append(9, 9).unwrap();
    assert_eq!(room.file("00000000000000000007.index").len(), 80);
}

#[test]
fn a_file_removed_by_hand_comes_back_with_its_entries() {
    for searched in [false, true] {
        let room = Room::new();
        let index = filled(&room, 4);
        if searched {
            index.close().unwrap();
            index.lookup(3).unwrap();
        }
        room.remove(NAME);
        index.truncate_to(7).unwrap();
        index.extend(8 * 20).unwrap();
        index.append(50, 5000).unwrap();
        assert_eq!(index.entries().unwrap(), 4, "three kept, one new");
        assert_eq!(index.lookup(7).unwrap(), at(6, 300));
        assert_eq!(index.lookup(60).unwrap(), at(50, 5000));
        index.flush().unwrap();
        // The held file has no name any more; one that was opened by name has.
        assert_eq!(room.names().len(), usize::from(searched));
    }
}

#[test]
fn a_torn_end_is_damage_and_is_not_searched() {
    let room = Room::new();
    room.write(NAME, &[0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0]);
    let index = room.offset(0, MAX, IndexMode::Sealed);
    assert_eq!((index.entries().unwrap(), index.lookup(9).unwrap()), (1, at(5, 9)));
    let error = index.sanity().unwrap_err().to_string();
    assert!(error.contains("position 8") && error.contains("inside an entry"), "{error}");
    index.extend(MAX).unwrap();
    index.append(6, 20).unwrap();
    index.close().unwrap();
    assert_eq!(room.file(NAME), [0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0, 6, 0, 0, 0, 20]);
}

#[test]
fn sanity_names_the_broken_rule_and_its_place() {
    let room = Room::new();
    for (bytes, why, position) in [
        (&[0xff, 0, 0, 5, 0, 0, 0, 9][..], "below the base", 0),
        (&[0, 0, 0, 5, 0xff, 0, 0, 9], "negative", 0),
        (&[0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0, 10], "offsets do not increase", 8),
        (&[0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0, 6, 0, 0, 0, 9], "positions do not increase", 8),
    ] {
        room.write(NAME, bytes);
        let error = room.offset(0, MAX, IndexMode::Sealed).sanity().unwrap_err().to_string();
        let place = format!("position {position}:");
        assert!(error.contains(why) && error.contains(&place), "{error}");
    }
    let time = "00000000000000000000.timeindex";
    for (bytes, why) in [
        (&[0, 0, 0, 0, 0, 0, 0, 5, 0x80, 0, 0, 0][..], Some("below the base")),
        (&[0xff, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0], Some("timestamps do not increase")),
        (&[0; 24], Some("timestamps do not increase")),
        (&[0; 12], None),
        (&[0; 13], Some("inside an entry")),
    ] {
        room.write(time, bytes);
        let found =
            room.time(0, MAX, IndexMode::Sealed).sanity().map_err(|error| error.to_string());
        match why {
            Some(why) => assert!(found.as_ref().unwrap_err().contains(why), "{found:?}"),
            None => assert_eq!(found, Ok(())),
        }
    }
}

#[test]
fn a_renamed_index_is_found_under_its_new_name() {
    let room = Room::new();
    let index = filled(&room, 2);
    index.close().unwrap();
    index.rename(FileState::Deleted).unwrap();
    assert_eq!(room.names(), [format!("{NAME}.deleted")]);
    assert_eq!(index.lookup(4).unwrap(), at(4, 200));
    assert!(index.path().ends_with(format!("{NAME}.deleted")));
    assert_eq!((index.remove().unwrap(), index.remove().unwrap()), (true, false));
    let cleaned =
        OffsetIndex::open_as(Arc::clone(&room.dir), 0, FileState::Cleaned, MAX, IndexMode::Active);
    cleaned.unwrap().rename(FileState::Swap).unwrap();
    assert_eq!(room.names(), [format!("{NAME}.swap")]);
}

#[test]
fn what_random_bytes_answer_is_never_above_the_target() {
    let mut random = Random::new(77);
    let room = Room::new();
    for _ in 0..300 {
        let bytes: Vec<u8> =
            (0..random.below(20_000)).map(|_| random.next().to_be_bytes()[3] >> 4).collect();
        room.write(NAME, &bytes);
        room.write("00000000000000000000.timeindex", &bytes);
        let offsets = room.offset(0, MAX, IndexMode::Sealed);
        let times = room.time(0, MAX, IndexMode::Sealed);
        for _ in 0..100 {
            let target = random.next().cast_signed() >> random.below(60);
            assert!(offsets.lookup(target).unwrap().offset <= target.max(0));
            assert!(times.lookup(target).unwrap().timestamp <= target.max(-1));
            let _ = offsets.upper_bound(random.next() >> 40, 9).unwrap();
        }
        let to = random.next().cast_signed() >> random.below(60);
        offsets.truncate_to(to).unwrap();
        times.truncate_to(to).unwrap();
        let _ = (offsets.sanity(), times.sanity());
    }
}
