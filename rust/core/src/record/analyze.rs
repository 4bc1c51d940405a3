//! The first look at bytes that are to be appended, before the log is locked.
//!
//! The bytes are entries one behind the other, of any version (see [`EntryView`]). What is looked at
//! depends on who hands them over:
//!
//! | | client | coordinator | raft leader | replication |
//! |---|---|---|---|---|
//! | leader epoch is the log's own | | | required | |
//! | base offset 0 (version 2) | required | | | |
//! | at most `max.message.bytes` | required | required | required | |
//! | checksum | required | required | required | required |
//! | fixed fields make sense | validator | validator | required | required |
//! | last offsets increase | | | required | required |
//! | an epoch above the log's | | | | ends the set |
//!
//! 1. An entry that is cut off ends the set without an error: a fetch response may end anywhere. A
//!    size below every entry's, or a magic byte that no version has, is corruption.
//! 2. A replica that meets a batch of a later epoch than the one it fetches in leaves that batch and
//!    all after it alone: it will fetch them again when it has learnt of the epoch.
//! 3. Nothing is allocated and nothing is inflated: the facts are those that headers tell.

use super::fault::{code, corrupt, refuse, too_large};
use super::{Codec, CorruptKind, EntryView, Origin};
use crate::error::Result;
use crate::limits::{ENTRY_SIZE_MIN, HEADER_UP_TO_MAGIC, LOG_OVERHEAD};

/// What the log allows at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnalyzeLimits {
    /// `max.message.bytes`: the largest entry, framing included.
    pub max_message_bytes: usize,
    /// The epoch of the leader that appends, or that a replica fetches from.
    pub leader_epoch: i32,
}

/// What the headers of a set of entries say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendFacts {
    /// The first offset; `None` where the first entry is of an old version, which tells it only
    /// when inflated.
    pub first_offset: Option<i64>,
    /// The last offset of the first entry, which no offset of the set precedes by more than a batch.
    pub last_offset_of_first: i64,
    /// The last offset of the set, −1 when it is empty.
    pub last_offset: i64,
    /// The leader epoch of the last entry, −1 when it has none.
    pub last_leader_epoch: i32,
    /// The largest timestamp that a header names, −1 when none does.
    pub max_timestamp: i64,
    /// The codec of the last compressed entry.
    pub codec: Codec,
    /// The version of the first entry.
    pub magic: i8,
    /// Whether all entries have that version.
    pub same_magic: bool,
    /// Entries of the set.
    pub entries: usize,
    /// Bytes of these entries. What follows them is cut off or left alone.
    pub valid_bytes: usize,
    /// Whether a batch of a later leader epoch ended the set.
    pub met_later_epoch: bool,
}

impl AppendFacts {
    const EMPTY: Self = Self {
        first_offset: None,
        last_offset_of_first: -1,
        last_offset: -1,
        last_leader_epoch: -1,
        max_timestamp: -1,
        codec: Codec::None,
        magic: 2,
        same_magic: true,
        entries: 0,
        valid_bytes: 0,
        met_later_epoch: false,
    };

    /// Whether there is nothing to append.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The first offset, or where it is not known the last one of the first entry: what a replica
    /// compares with the end of its log.
    pub fn first_or_last_of_first(&self) -> i64 {
        self.first_offset.unwrap_or(self.last_offset_of_first)
    }

    /// The entries that these facts are about, out of the bytes that were analyzed.
    pub fn entries_of<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = EntryView<'a>> + use<'a> {
        let mut rest = bytes.get(..self.valid_bytes).unwrap_or_default();
        std::iter::from_fn(move || {
            let entry = EntryView::parse(rest).ok()?;
            rest = rest.get(entry.total_bytes()..)?;
            Some(entry)
        })
    }

    fn add(&mut self, entry: &EntryView<'_>, codec: Codec) {
        if self.entries == 0 {
            self.magic = entry.magic();
            self.first_offset = match entry {
                EntryView::Batch(batch) => Some(batch.header().base_offset),
                EntryView::Legacy(_) => None,
            };
            self.last_offset_of_first = entry.last_offset();
        }
        self.same_magic &= entry.magic() == self.magic;
        self.last_offset = entry.last_offset();
        self.last_leader_epoch = entry.leader_epoch();
        self.max_timestamp = self.max_timestamp.max(entry.max_timestamp());
        if codec != Codec::None {
            self.codec = codec;
        }
        self.entries += 1;
        self.valid_bytes += entry.total_bytes();
    }
}

/// Looks at every entry of `bytes`; a refusal names Kafka's error.
pub fn analyze(bytes: &[u8], origin: Origin, limits: AnalyzeLimits) -> Result<AppendFacts> {
    let mut facts = AppendFacts::EMPTY;
    let mut rest = bytes;
    while let Some(entry) = next_entry(rest).map_err(corrupt)? {
        let epoch = entry.leader_epoch();
        if origin == Origin::Replication && epoch != -1 && epoch > limits.leader_epoch {
            facts.met_later_epoch = true;
            break;
        }
        check_source(&entry, origin, limits)?;
        if origin != Origin::Replication && entry.total_bytes() > limits.max_message_bytes {
            return Err(too_large(entry.total_bytes(), limits.max_message_bytes));
        }
        entry.check_crc().map_err(corrupt)?;
        let codec = entry.codec().map_err(corrupt)?;
        if matches!(origin, Origin::Replication | Origin::RaftLeader) {
            check_order(&entry, &facts)?;
        }
        facts.add(&entry, codec);
        rest = rest.get(entry.total_bytes()..).unwrap_or_default();
    }
    Ok(facts)
}

/// The entry at the start of `bytes`, or `None` when it is cut off. A cut is told before anything
/// of the entry but the least size is judged, as Kafka does.
fn next_entry(bytes: &[u8]) -> Result<Option<EntryView<'_>>, CorruptKind> {
    let Some(&[.., s0, s1, s2, s3]) = bytes.first_chunk::<LOG_OVERHEAD>() else { return Ok(None) };
    let size = i32::from_be_bytes([s0, s1, s2, s3]);
    if size < ENTRY_SIZE_MIN {
        return Err(CorruptKind::EntrySize(size));
    }
    let Some(&[.., magic]) = bytes.first_chunk::<HEADER_UP_TO_MAGIC>() else { return Ok(None) };
    if magic > 2 {
        return Err(CorruptKind::Magic(i8::from_be_bytes([magic])));
    }
    match EntryView::parse(bytes) {
        Ok(entry) => Ok(Some(entry)),
        Err(CorruptKind::TruncatedEntry) => Ok(None),
        Err(CorruptKind::EntrySize(_)) if is_cut(size, bytes) => Ok(None),
        Err(kind) => Err(kind),
    }
}

fn is_cut(size: i32, bytes: &[u8]) -> bool {
    usize::try_from(size).is_ok_and(|size| size > bytes.len().saturating_sub(LOG_OVERHEAD))
}

/// What only one origin must keep to.
fn check_source(entry: &EntryView<'_>, origin: Origin, limits: AnalyzeLimits) -> Result<()> {
    match (origin, entry) {
        (Origin::RaftLeader, entry) if entry.leader_epoch() != limits.leader_epoch => {
            let (found, own) = (entry.leader_epoch(), limits.leader_epoch);
            let reason = format!("leader epoch {found} of a batch is not the log's, {own}");
            Err(refuse(code::INVALID_RECORD, reason))
        }
        (Origin::Client, EntryView::Batch(batch)) if batch.header().base_offset != 0 => {
            let found = batch.header().base_offset;
            let reason = format!("the base offset of a client's batch is 0, not {found}");
            Err(refuse(code::INVALID_RECORD, reason))
        }
        _ => Ok(()),
    }
}

/// Entries whose offsets are kept must be ones that the log can hold.
fn check_order(entry: &EntryView<'_>, before: &AppendFacts) -> Result<()> {
    entry.check().map_err(corrupt)?;
    if entry.last_offset() <= before.last_offset {
        let (found, before) = (entry.last_offset(), before.last_offset);
        let reason = format!("last offset {found} of a batch does not follow {before}");
        return Err(refuse(code::OFFSETS_OUT_OF_ORDER, reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, Legacy, T0};
    use super::super::{BatchMut, TimestampType};
    use super::*;

    const LIMITS: AnalyzeLimits = AnalyzeLimits { max_message_bytes: 1_048_588, leader_epoch: 7 };

    fn code_of(bytes: &[u8], origin: Origin) -> Option<&'static str> {
        analyze(bytes, origin, LIMITS).err().map(|error| error.rejection().unwrap())
    }

    fn at(base_offset: i64, leader_epoch: i32) -> Vec<u8> {
        let mut bytes = samples::batch_a();
        let mut batch = BatchMut::parse(&mut bytes).unwrap();
        batch.set_base_offset(base_offset).unwrap();
        batch.set_leader_epoch(leader_epoch);
        bytes
    }

    #[test]
    fn a_producer_s_batch_tells_its_facts() {
        let bytes = samples::batch_a();
        let facts = analyze(&bytes, Origin::Client, LIMITS).unwrap();
        let expected = AppendFacts {
            first_offset: Some(0),
            last_offset_of_first: 2,
            last_offset: 2,
            max_timestamp: T0 + 5,
            entries: 1,
            valid_bytes: bytes.len(),
            ..AppendFacts::EMPTY
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn every_version_counts_and_the_last_codec_stays() {
        let set =
            [samples::legacy_v0(), samples::legacy_v1_gzip(), at(100, 7), at(103, 6)].concat();
        let facts = analyze(&set, Origin::Replication, LIMITS).unwrap();
        assert_eq!((facts.first_offset, facts.last_offset_of_first), (None, 5));
        assert_eq!(facts.first_or_last_of_first(), 5);
        assert_eq!((facts.last_offset, facts.last_leader_epoch), (105, 6));
        assert_eq!((facts.codec, facts.entries), (Codec::Gzip, 4));
        assert_eq!((facts.magic, facts.same_magic), (0, false));
        assert_eq!(facts.max_timestamp, T0 + 7);
        assert_eq!(facts.valid_bytes, set.len());
        let lasts = facts.entries_of(&set).map(|entry| entry.last_offset()).collect::<Vec<_>>();
        assert_eq!(lasts, [5, 11, 102, 105]);
    }

    #[test]
    fn a_cut_entry_ends_the_set_silently() {
        let (first, second) = (at(100, 7), at(103, 7));
        let set = [first.clone(), second].concat();
        for end in 0..=set.len() {
            let facts = analyze(&set[..end], Origin::Replication, LIMITS).unwrap();
            let whole = end / first.len();
            assert_eq!((facts.entries, facts.valid_bytes), (whole, whole * first.len()), "{end}");
            assert_eq!(facts.is_empty(), whole == 0);
        }
    }

    #[test]
    fn sizes_and_magics_that_nothing_has_are_corruption() {
        let mut bytes = samples::batch_a();
        bytes[8..12].copy_from_slice(&13_i32.to_be_bytes());
        assert_eq!(code_of(&bytes, Origin::Client), Some("CORRUPT_MESSAGE"));
        bytes[8..12].copy_from_slice(&48_i32.to_be_bytes());
        assert_eq!(code_of(&bytes, Origin::Client), Some("CORRUPT_MESSAGE"));
        // Not yet here is not yet wrong.
        assert_eq!(code_of(&bytes[..59], Origin::Client), None);
        for magic in [3, 0x80] {
            bytes[16] = magic;
            assert_eq!(code_of(&bytes, Origin::Client), Some("CORRUPT_MESSAGE"));
        }
        assert_eq!(code_of(&[0; 17], Origin::Replication), Some("CORRUPT_MESSAGE"));
    }

    #[test]
    fn a_wrong_checksum_is_corruption_for_everybody() {
        for origin in [Origin::Client, Origin::Coordinator, Origin::Replication] {
            for mut bytes in [samples::batch_a(), samples::legacy_v1_gzip()] {
                *bytes.last_mut().unwrap() ^= 1;
                assert_eq!(code_of(&bytes, origin), Some("CORRUPT_MESSAGE"));
            }
        }
    }

    #[test]
    fn the_size_limit_counts_the_framing_and_does_not_bind_replicas() {
        let bytes = samples::batch_a();
        let exact = AnalyzeLimits { max_message_bytes: bytes.len(), ..LIMITS };
        let below = AnalyzeLimits { max_message_bytes: bytes.len() - 1, ..LIMITS };
        assert!(analyze(&bytes, Origin::Client, exact).is_ok());
        for origin in [Origin::Client, Origin::Coordinator] {
            let refusal = analyze(&bytes, origin, below).unwrap_err();
            assert_eq!(refusal.rejection(), Some("MESSAGE_TOO_LARGE"));
        }
        assert!(analyze(&bytes, Origin::Replication, below).is_ok());
    }

    #[test]
    fn a_client_s_batch_begins_at_zero() {
        assert_eq!(code_of(&at(1, -1), Origin::Client), Some("INVALID_RECORD"));
        assert_eq!(code_of(&at(1, -1), Origin::Coordinator), None);
        assert_eq!(code_of(&samples::legacy_v1(), Origin::Client), None);
    }

    #[test]
    fn the_raft_leader_appends_in_its_own_epoch_only() {
        assert_eq!(code_of(&at(100, 7), Origin::RaftLeader), None);
        for epoch in [6, 8, -1] {
            assert_eq!(code_of(&at(100, epoch), Origin::RaftLeader), Some("INVALID_RECORD"));
        }
    }

    #[test]
    fn kept_offsets_increase() {
        for origin in [Origin::Replication, Origin::RaftLeader] {
            let good = [at(100, 7), at(110, 7)].concat();
            assert_eq!(code_of(&good, origin), None);
            for second in [100, 99, 0] {
                let bad = [at(100, 7), at(second, 7)].concat();
                assert_eq!(code_of(&bad, origin), Some("OFFSETS_OUT_OF_ORDER"));
            }
        }
        let twice = [at(0, -1), at(0, -1)].concat();
        assert_eq!(code_of(&twice, Origin::Client), None, "a leader assigns its own");
    }

    #[test]
    fn offsets_outside_the_offset_space_are_not_kept() {
        let mut bytes = at(100, 7);
        bytes[0] = 0x80;
        assert_eq!(code_of(&bytes, Origin::Replication), Some("CORRUPT_MESSAGE"));
        bytes[..8].copy_from_slice(&(i64::MAX - 1).to_be_bytes());
        assert_eq!(code_of(&bytes, Origin::Replication), Some("CORRUPT_MESSAGE"));
        let message = Legacy::new(1, -5).bytes();
        assert_eq!(code_of(&message, Origin::Replication), Some("CORRUPT_MESSAGE"));
    }

    #[test]
    fn a_replica_leaves_batches_of_a_later_epoch_alone() {
        let mut damaged = at(106, 8);
        *damaged.last_mut().unwrap() ^= 1;
        let set = [at(100, 7), at(103, 8), damaged, at(109, 7)].concat();
        let facts = analyze(&set, Origin::Replication, LIMITS).unwrap();
        assert!(facts.met_later_epoch);
        assert_eq!((facts.entries, facts.last_offset), (1, 102));
        assert_eq!(facts.entries_of(&set).count(), 1);
        let none = AnalyzeLimits { leader_epoch: 0, ..LIMITS };
        let facts = analyze(&at(100, -1), Origin::Replication, none).unwrap();
        assert_eq!((facts.entries, facts.met_later_epoch), (1, false));
    }

    #[test]
    fn a_codec_that_nobody_knows_is_corruption() {
        let mut bytes = samples::batch_a();
        let mut batch = BatchMut::parse(&mut bytes).unwrap();
        batch.set_max_timestamp(TimestampType::CreateTime, T0 + 6).unwrap();
        bytes[22] = 5;
        let crc = super::super::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        assert_eq!(code_of(&bytes, Origin::Client), Some("CORRUPT_MESSAGE"));
    }
}
