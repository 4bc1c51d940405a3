//! Random damage: whatever happens to the bytes, no record is given that was not written, and the
//! scan ends.

use kafkaseg_core::names::FileKind;
use kafkaseg_core::record::Codec;
use kafkaseg_scan::OnCorrupt;

use crate::is_long;
use crate::log::Log;
use crate::memory::MemoryFs;
use crate::random::Random;
use crate::rows::{Ask, assert_no_wrong_row, is_corrupt};

/// Three segments, plain and compressed, closed cleanly.
fn log() -> Log {
    let batches = Random::new(30).batches(1000, 24 << 10, &Codec::ALL);
    let mut log = Log::of(1000, vec![]);
    let third = batches.len() / 3;
    log.segments =
        batches.chunks(third.max(1)).map(|part| (part[0].base_offset, part.to_vec())).collect();
    log.index_interval = 512;
    log
}

/// One change to the bytes of a file.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) -> String {
    let at = random.below(bytes.len());
    let longest = if random.one_in(2) { 32 } else { 4096 };
    let length = (1 + random.below(longest)).min(bytes.len() - at);
    let to = random.below(bytes.len() - length + 1);
    match random.below(6) {
        0 => {
            let garbage = random.bytes(length);
            bytes[at..at + length].copy_from_slice(&garbage);
            format!("{length} bytes of garbage at {at}")
        }
        1 => {
            bytes[at..at + length].fill(0);
            format!("{length} zeros at {at}")
        }
        2 => {
            bytes.drain(at..at + length);
            format!("{length} bytes deleted at {at}")
        }
        3 => {
            let again = bytes[at..at + length].to_vec();
            bytes.splice(to..to, again);
            format!("{length} bytes of {at} inserted at {to}")
        }
        4 => {
            bytes.copy_within(at..at + length, to);
            format!("{length} bytes of {at} copied over {to}")
        }
        _ => {
            for index in 0..length {
                bytes.swap(at + index, to + index);
            }
            format!("{length} bytes swapped between {at} and {to}")
        }
    }
}

fn damaged(log: &Log, fs: &MemoryFs, random: &mut Random) -> (MemoryFs, String) {
    let mut fs = fs.copy();
    let mut story = String::new();
    for _ in 0..=random.below(2) {
        let segment = random.below(log.segments.len());
        let kind = match random.below(12) {
            0 => FileKind::Index,
            1 => FileKind::TimeIndex,
            _ => FileKind::Log,
        };
        let path = log.path_of(segment, kind);
        let mut bytes = fs.read(&path);
        if !bytes.is_empty() {
            let change = damage(&mut bytes, random);
            story.extend([path.display().to_string(), format!(": {change}; ")]);
            fs = fs.with(&path, bytes);
        }
    }
    (fs, story)
}

#[test]
fn random_damage_never_makes_a_wrong_record() {
    let log = log();
    let (fs, _) = log.write();
    let truth = log.rows();
    let cases = if is_long() { 1_000_000 } else { 4_000 };
    let (mut seen, mut unseen) = (0, 0);
    for seed in 0..cases {
        let mut random = Random::new(seed);
        let (fs, story) = damaged(&log, &fs, &mut random);
        let context = format!("seed {seed}: {story}");
        let mut ask = Ask::on_corrupt(OnCorrupt::Skip);
        ask.options.batch_bytes = [1 << 10, 16 << 10, 4 << 20][random.below(3)];
        ask.options.threads = if random.one_in(40) { 2 } else { 1 };
        let rows = if random.one_in(4) {
            ask.split_rows(&fs, 1 + random.below(6)).unwrap().0
        } else {
            ask.rows(&fs).unwrap().0
        };
        assert_no_wrong_row(&rows, &truth, &context);
        ask.options.on_corrupt = OnCorrupt::Error;
        match ask.rows(&fs) {
            Ok((rows, _)) => {
                assert_no_wrong_row(&rows, &truth, &context);
                unseen += 1;
            }
            Err(error) => {
                assert!(is_corrupt(&error), "{context}: {error}");
                seen += 1;
            }
        }
        ask.options.on_corrupt = OnCorrupt::Stop;
        let (rows, _) = ask.rows(&fs).unwrap();
        // Not always a prefix: batches that are gone without a trace look compacted.
        assert_no_wrong_row(&rows, &truth, &context);
    }
    assert!(seen > unseen * 5, "most damage is seen: {seen} times, {unseen} not");
}
