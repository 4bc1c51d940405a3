//! Every bit of a segment flipped: reported, or on the computed list of what the format hides.

use std::collections::BTreeSet;

use arrow_array::RecordBatch;
use kafkaseg_core::names::FileKind;
use kafkaseg_core::record::Codec;
use kafkaseg_core::{CorruptKind, Error};
use kafkaseg_scan::{OnCorrupt, Report};

use crate::is_long;
use crate::log::{Batch, Close, Log, Placed};
use crate::memory::MemoryFs;
use crate::random::{Random, compacted};
use crate::rows::{Ask, Row, assert_no_wrong_row, is_corrupt, rows_of};

const SEGMENT_BYTES: usize = 64 << 10;

/// Bytes of a batch header that its checksum does not cover.
const UNCOVERED: usize = 17;

/// One bit of the victim segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Flip {
    byte: usize,
    bit: u8,
}

/// A log, one segment of which gets damaged.
struct Victim {
    log: Log,
    segment: usize,
    fs: MemoryFs,
    bytes: Vec<u8>,
    placed: Vec<Placed>,
    rows: Vec<Row>,
    /// The rows as a scan of the undamaged log gives them.
    truth: RecordBatch,
}

impl Victim {
    fn new(log: Log, segment: usize) -> Self {
        let (fs, placed) = log.write();
        let bytes = fs.read(log.path_of(segment, FileKind::Log));
        let rows = log.rows();
        let placed = placed.into_iter().filter(|batch| batch.segment == segment).collect();
        let (batches, report) = Ask::default().batches(&fs).unwrap();
        assert_eq!(rows_of(&batches), rows, "the undamaged log reads as it was written");
        assert_eq!(report.damage_count, 0);
        let [truth] = batches.as_slice() else { panic!("{} batches", batches.len()) };
        let truth = truth.clone();
        Self { log, segment, fs, bytes, placed, rows, truth }
    }

    /// One flip per byte, the bit rotating; all bits of what the checksum does not cover.
    fn flips(&self) -> Vec<Flip> {
        let heads: BTreeSet<usize> =
            self.placed.iter().flat_map(|at| at.position..at.position + UNCOVERED).collect();
        let mut flips = Vec::new();
        for byte in 0..self.bytes.len() {
            let every = is_long() || heads.contains(&byte);
            let bit = u8::try_from(byte % 8).unwrap();
            let bits = if every { 0..8 } else { bit..bit + 1 };
            flips.extend(bits.map(|bit| Flip { byte, bit }));
        }
        assert!(flips.len() >= self.bytes.len() + self.placed.len() * UNCOVERED * 7);
        flips
    }

    /// The flips of bytes that no checksum covers.
    fn head_flips(&self) -> Vec<Flip> {
        let bytes = self.placed.iter().flat_map(|at| at.position..at.position + UNCOVERED);
        bytes.flat_map(|byte| (0..8).map(move |bit| Flip { byte, bit })).collect()
    }

    fn flipped(&self, flip: Flip) -> MemoryFs {
        let mut bytes = self.bytes.clone();
        bytes[flip.byte] ^= 1 << flip.bit;
        self.fs.with(self.log.path_of(self.segment, FileKind::Log), bytes)
    }

    fn batch_at(&self, byte: usize) -> (usize, &Placed) {
        let after = self.placed.partition_point(|batch| batch.position <= byte);
        (after - 1, &self.placed[after - 1])
    }

    /// The rows without those of the batch that holds a byte.
    fn rows_without(&self, byte: usize) -> Vec<Row> {
        let (_, batch) = self.batch_at(byte);
        let lost = batch.header.base_offset..=batch.header.last_offset();
        self.rows.iter().filter(|row| !lost.contains(&row.offset)).cloned().collect()
    }

    /// Whether a scan gave everything but the batch that holds a byte.
    fn is_all_without(&self, given: &[RecordBatch], byte: usize) -> bool {
        let (_, batch) = self.batch_at(byte);
        let start = self.rows.partition_point(|row| row.offset < batch.header.base_offset);
        let end = self.rows.partition_point(|row| row.offset <= batch.header.last_offset());
        let [given] = given else { return false };
        let after = self.rows.len() - end;
        given.num_rows() == start + after
            && given.slice(0, start) == self.truth.slice(0, start)
            && given.slice(start, after) == self.truth.slice(end, after)
    }

    /// Asserts that a flip is seen: an error that names the batch, or a report and all the rest.
    fn assert_seen(&self, flip: Flip) {
        let fs = self.flipped(flip);
        let (_, batch) = self.batch_at(flip.byte);
        let (batches, report) = Ask::on_corrupt(OnCorrupt::Skip).batches(&fs).unwrap();
        let [damage] = report.damage.as_slice() else { panic!("{flip:?}: {:?}", report.damage) };
        assert_eq!(damage.position, u64::try_from(batch.position).unwrap(), "{flip:?}");
        assert_eq!(report.tails, [], "{flip:?}");
        assert!(self.is_all_without(&batches, flip.byte), "{flip:?} in {:?}", batch.header);
        if flip.byte.is_multiple_of(16) || flip.byte - batch.position < UNCOVERED {
            match Ask::on_corrupt(OnCorrupt::Error).batches(&fs).err() {
                Some(Error::Corrupt { position, .. }) => assert_eq!(position, damage.position),
                other => panic!("{flip:?} in {:?}: {other:?}", batch.header),
            }
        }
    }

    /// Asserts that a flip is seen where gaps leave doubt: the error names the batch or the one
    /// before, which it contradicts, and no more than it and its neighbours is lost.
    fn assert_seen_nearby(&self, flip: Flip) {
        let fs = self.flipped(flip);
        let (index, batch) = self.batch_at(flip.byte);
        let before = &self.placed[index.saturating_sub(1)];
        match Ask::on_corrupt(OnCorrupt::Error).rows(&fs).err() {
            Some(Error::Corrupt { position, .. }) => {
                let blamed = [before.position, batch.position];
                assert!(blamed.contains(&usize::try_from(position).unwrap()), "{flip:?}");
            }
            other => panic!("{flip:?} in {:?}: {other:?}", batch.header),
        }
        let (rows, report) = Ask::on_corrupt(OnCorrupt::Skip).rows(&fs).unwrap();
        assert!(report.damage_count > 0, "{flip:?}");
        assert_no_wrong_row(&rows, &self.rows, &format!("{flip:?} in {:?}", batch.header));
        let after = self.placed.get(index + 1).unwrap_or(batch);
        let doubted = before.header.base_offset..=after.header.last_offset();
        let given: BTreeSet<_> = rows.iter().map(|row| row.offset).collect();
        let lost = self.rows.iter().map(|row| row.offset).filter(|row| !given.contains(row));
        let lost: Vec<_> = lost.filter(|offset| !doubted.contains(offset)).collect();
        assert_eq!(lost, [], "{flip:?} {:?}", report.damage);
    }

    fn is_seen(&self, flip: Flip) -> bool {
        match Ask::on_corrupt(OnCorrupt::Error).batches(&self.flipped(flip)) {
            Ok(_) => false,
            Err(error) if is_corrupt(&error) => true,
            Err(other) => panic!("{flip:?}: {other}"),
        }
    }
}

fn contiguous(seed: u64, codecs: &[Codec]) -> Vec<Batch> {
    Random::new(seed).batches(1000, SEGMENT_BYTES, codecs)
}

/// The batches as the middle one of three segments.
fn sealed(batches: Vec<Batch>) -> Log {
    let mut random = Random::new(99);
    let end = batches.last().unwrap().last_offset + 1;
    let epoch = batches.last().unwrap().leader_epoch;
    let before = random.batches(900, 512, &[Codec::None]);
    let before: Vec<_> = before.into_iter().filter(|batch| batch.last_offset < 1000).collect();
    let mut after = random.batches(end, 512, &[Codec::None]);
    for batch in &mut after {
        batch.leader_epoch = epoch;
    }
    let mut log = Log::of(1000, batches);
    let before: Vec<_> = before.into_iter().map(|b| Batch { leader_epoch: 0, ..b }).collect();
    log.segments.insert(0, (900, before));
    log.segments.push((end, after));
    log
}

fn assert_all_seen(close: Close, codecs: &[Codec]) {
    let mut log = Log::of(1000, contiguous(1, codecs));
    log.close = close;
    let victim = Victim::new(log, 0);
    for flip in victim.flips() {
        victim.assert_seen(flip);
    }
}

#[test]
fn every_flip_in_a_plain_contiguous_log_is_seen() {
    assert_all_seen(Close::Clean, &[Codec::None]);
}

#[test]
fn every_flip_in_a_compressed_contiguous_log_is_seen() {
    assert_all_seen(Close::CleanBySnapshot, &Codec::ALL);
}

#[test]
fn every_flip_in_a_sealed_segment_of_a_contiguous_log_is_seen() {
    let mut log = sealed(contiguous(2, &Codec::ALL));
    log.close = Close::Open;
    let victim = Victim::new(log, 1);
    for flip in if is_long() { victim.flips() } else { victim.head_flips() } {
        victim.assert_seen(flip);
    }
}

/// What no reader can see, worked out from the format alone: the new base offset lies in the gap
/// around its batch and in the same epoch of the checkpoint; the new epoch lies between its
/// neighbours' and there is no checkpoint to contradict it.
fn hidden(victim: &Victim) -> BTreeSet<Flip> {
    let log = &victim.log;
    let batches: Vec<_> = log.segments[victim.segment].1.iter().collect();
    let is_last = victim.segment + 1 == log.segments.len();
    let mut hidden = BTreeSet::new();
    for (index, (batch, at)) in batches.iter().zip(&victim.placed).enumerate() {
        let before = index.checked_sub(1).map(|before| batches[before]);
        let after = batches.get(index + 1);
        let lowest = before.map_or(log.segments[victim.segment].0, |batch| batch.last_offset + 1);
        let below = match (after, log.segments.get(victim.segment + 1)) {
            (Some(after), _) => after.base_offset,
            (None, Some((next, _))) => *next,
            (None, None) => i64::MAX,
        };
        for bit in 0..64_u8 {
            let base = batch.base_offset ^ (1 << bit);
            let Some(last) = base.checked_add(batch.last_offset - batch.base_offset) else {
                continue;
            };
            let knows_end = is_last && after.is_none() && log.close != Close::Open;
            let fits_gap = base >= lowest && last < below && !knows_end;
            let fits_epoch = !log.has_epochs || epoch_at(log, last) == Some(batch.leader_epoch);
            if fits_gap && fits_epoch {
                let byte = at.position + 7 - usize::from(bit / 8);
                hidden.insert(Flip { byte, bit: bit % 8 });
            }
        }
        for bit in 0..32_u8 {
            let epoch = batch.leader_epoch ^ (1 << bit);
            let lowest = before.map_or(0, |batch| batch.leader_epoch);
            let highest = after.map_or(i32::MAX, |batch| batch.leader_epoch);
            if !log.has_epochs && (lowest..=highest).contains(&epoch) {
                let byte = at.position + 15 - usize::from(bit / 8);
                hidden.insert(Flip { byte, bit: bit % 8 });
            }
        }
    }
    hidden
}

/// The epoch that the checkpoint gives an offset.
fn epoch_at(log: &Log, offset: i64) -> Option<i32> {
    let starts = log.batches().filter(|batch| batch.base_offset <= offset);
    starts.map(|batch| batch.leader_epoch).max()
}

fn assert_hides_exactly_what_it_must(victim: &Victim) -> usize {
    let hidden = hidden(victim);
    for flip in victim.head_flips() {
        if hidden.contains(&flip) {
            assert!(!victim.is_seen(flip), "{flip:?} is seen, though nothing tells it");
        } else {
            victim.assert_seen_nearby(flip);
        }
    }
    hidden.len()
}

#[test]
fn without_the_epoch_checkpoint_only_epochs_at_an_edge_are_hidden() {
    let mut log = Log::of(1000, contiguous(3, &[Codec::None]));
    log.has_epochs = false;
    let victim = Victim::new(log, 0);
    let hidden = assert_hides_exactly_what_it_must(&victim);
    let epochs: BTreeSet<_> = victim.log.batches().map(|batch| batch.leader_epoch).collect();
    assert!(epochs.len() > 3);
    assert!(hidden > 31, "the last epoch's bits and some at each change: {hidden}");
}

#[test]
fn a_compacted_log_hides_only_base_offsets_moved_inside_their_gap() {
    for (close, has_epochs) in [(Close::Clean, true), (Close::CleanBySnapshot, false)] {
        let mut random = Random::new(4);
        let batches = compacted(contiguous(5, &[Codec::None]), &mut random);
        let mut log = Log::of(1000, batches);
        log.close = close;
        log.has_epochs = has_epochs;
        let hidden = assert_hides_exactly_what_it_must(&Victim::new(log, 0));
        assert!(hidden > 10, "{hidden}");
    }
}

#[test]
fn a_sealed_segment_of_a_compacted_log_hides_no_more() {
    let mut log = sealed(contiguous(6, &[Codec::None]));
    let kept = compacted(std::mem::take(&mut log.segments[1].1), &mut Random::new(7));
    log.segments[1].1 = kept;
    log.close = Close::Open;
    assert!(assert_hides_exactly_what_it_must(&Victim::new(log, 1)) > 10);
}

/// Goal: a cut of the scan at a damaged batch hides nothing. Method: the flips that only the
/// surroundings show, read in splits and with threads, where each piece has fewer surroundings.
#[test]
fn splits_and_threads_see_every_flip_that_one_reader_sees() {
    let mut log = Log::of(1000, contiguous(8, &[Codec::None]));
    log.index_interval = 0;
    let victim = Victim::new(log, 0);
    for (number, flip) in victim.head_flips().into_iter().enumerate() {
        if number % 3 != 0 && !is_long() {
            continue;
        }
        let fs = victim.flipped(flip);
        let mut ask = Ask::on_corrupt(OnCorrupt::Error);
        ask.options.threads = if number % 4 == 0 { 2 } else { 1 };
        ask.options.batch_bytes = 1 << 10;
        let (seen, context) = if ask.options.threads == 2 {
            (ask.rows(&fs).map(|(rows, _)| rows), "two threads")
        } else {
            (ask.split_rows(&fs, 2 + number % 7).map(|(rows, _)| rows), "splits")
        };
        match seen {
            Err(error) => assert!(is_corrupt(&error), "{flip:?} {context}: {error}"),
            Ok(_) => panic!("{flip:?} is not seen with {context}"),
        }
        ask.options.on_corrupt = OnCorrupt::Skip;
        let (rows, reports) = ask.split_reports(&fs, 2 + number % 7).unwrap();
        let damage: u64 = reports.iter().map(|report| report.damage_count).sum();
        assert_eq!(damage, 1, "{flip:?}: {:?}", kinds(&reports));
        assert!(rows == victim.rows_without(flip.byte), "{flip:?} in splits");
    }
}

/// Goal: starting in the middle hides nothing either. Method: scans from the offset of each batch
/// that is damaged in its head, found through an index that knows every batch.
#[test]
fn a_scan_that_starts_at_a_damaged_batch_sees_it() {
    let mut log = Log::of(1000, contiguous(9, &[Codec::None]));
    log.index_interval = 0;
    let victim = Victim::new(log, 0);
    for flip in victim.head_flips() {
        let fs = victim.flipped(flip);
        let (_, batch) = victim.batch_at(flip.byte);
        let start = batch.header.base_offset;
        let ask = Ask::on_corrupt(OnCorrupt::Skip).between(Some(start), None);
        let (rows, report) = ask.rows(&fs).unwrap();
        let wanted: Vec<Row> =
            victim.rows_without(flip.byte).into_iter().filter(|row| row.offset >= start).collect();
        assert!(rows == wanted, "{flip:?}");
        assert_eq!(report.damage_count, 1, "{flip:?}: {:?}", report.damage);
    }
}

fn kinds(reports: &[Report]) -> Vec<(u64, CorruptKind)> {
    let places = reports.iter().flat_map(|report| &report.damage);
    places.map(|place| (place.position, place.kind)).collect()
}

/// Goal: the indexes are caches that nothing protects; a flip in one changes no result. Method: the
/// offsets and times around every entry are asked for with every bit of the file flipped.
#[test]
fn flips_in_the_indexes_change_nothing() {
    let mut log = sealed(contiguous(10, &[Codec::None]));
    log.index_interval = 8192;
    let victim = Victim::new(log, 1);
    for ask in index_asks(&victim) {
        let (truth, _) = ask.batches(&victim.fs).unwrap();
        for kind in [FileKind::Index, FileKind::TimeIndex] {
            let path = victim.log.path_of(1, kind);
            let bytes = victim.fs.read(&path);
            assert!(bytes.len() > 40);
            for flip in (0..bytes.len()).flat_map(|byte| (0..8).map(move |bit| Flip { byte, bit }))
            {
                let mut changed = bytes.clone();
                changed[flip.byte] ^= 1 << flip.bit;
                let (given, report) = ask.batches(&victim.fs.with(&path, changed)).unwrap();
                assert!(given == truth, "{kind:?} {flip:?} {:?} {:?}", ask.options, ask.selection);
                assert_eq!(report.damage_count, 0, "{kind:?} {flip:?}");
            }
        }
    }
}

fn index_asks(victim: &Victim) -> Vec<Ask> {
    let timed = |start: i64| {
        let mut ask = Ask::default();
        ask.options.start_timestamp = Some(start);
        ask.options.columns.truncate(2);
        ask
    };
    let latest = victim.placed.iter().map(|batch| batch.header.max_timestamp).max().unwrap();
    let mut asks = vec![timed(latest), timed(latest + 1)];
    for part in 1..5 {
        let row = &victim.rows[victim.rows.len() * part / 5];
        asks.push(timed(row.timestamp));
        let mut ask = Ask::default().between(Some(row.offset), Some(row.offset + 40));
        ask.options.columns.truncate(2);
        asks.push(ask);
    }
    asks
}
