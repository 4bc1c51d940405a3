//! The records of a whole entry in memory, whatever its version and codec.

use super::{
    BatchView, Codec, CorruptKind, EntryView, LegacyRecords, LegacyView, RecordView, Records,
};
use crate::codec::{Decoder, Dialect, InflateError};
use crate::error::{Error, Result};

/// Iterator over the records of an entry. Stops after the first error.
#[derive(Debug, Clone)]
pub enum EntryRecords<'a> {
    /// Of a version 2 batch.
    Batch(Records<'a>),
    /// Of a version 0 or 1 message.
    Legacy(LegacyRecords<'a>),
}

impl<'a> EntryRecords<'a> {
    /// Checks the entry's checksum and fixed fields and inflates what is compressed, to at most
    /// `budget` bytes: more is [`Error::TooLarge`]. Damage is the inner error, to which the caller
    /// adds where the entry stands.
    pub fn open(
        entry: &EntryView<'a>,
        decoder: &'a mut Decoder,
        budget: usize,
    ) -> Result<Result<Self, CorruptKind>> {
        let opened =
            entry.check_crc().and_then(|()| entry.check()).map_err(Refused::Damage).and_then(
                |()| match entry {
                    EntryView::Batch(batch) => open_batch(batch, decoder, budget),
                    EntryView::Legacy(message) => open_legacy(message, decoder, budget),
                },
            );
        match opened {
            Ok(records) => Ok(Ok(records)),
            Err(Refused::Damage(kind)) => Ok(Err(kind)),
            Err(Refused::OverBudget) => Err(over_budget(budget)),
        }
    }

    /// The next record; `None` after the last, when nothing may be left.
    pub fn next_record(&mut self) -> Result<Option<RecordView<'a>>, CorruptKind> {
        match self {
            Self::Batch(records) => records.next_record(),
            Self::Legacy(records) => records.next_record(),
        }
    }
}

impl<'a> Iterator for EntryRecords<'a> {
    type Item = Result<RecordView<'a>, CorruptKind>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Batch(records) => records.next(),
            Self::Legacy(records) => records.next(),
        }
    }
}

/// Why an entry was not opened.
enum Refused {
    Damage(CorruptKind),
    OverBudget,
}

impl From<CorruptKind> for Refused {
    fn from(kind: CorruptKind) -> Self {
        Self::Damage(kind)
    }
}

impl From<InflateError> for Refused {
    fn from(error: InflateError) -> Self {
        match error {
            InflateError::OverBudget => Self::OverBudget,
            InflateError::Corrupt(_) => Self::Damage(error.into()),
        }
    }
}

fn open_batch<'a>(
    batch: &BatchView<'a>,
    decoder: &'a mut Decoder,
    budget: usize,
) -> Result<EntryRecords<'a>, Refused> {
    let stored = batch.payload();
    let payload = match batch.codec()? {
        // Compaction leaves batches without records, whose codec bits mean nothing.
        _ if stored.is_empty() => stored,
        codec => decoder.inflate(codec, stored, budget)?,
    };
    Ok(EntryRecords::Batch(Records::new(batch.header(), payload)))
}

fn open_legacy<'a>(
    message: &LegacyView<'a>,
    decoder: &'a mut Decoder,
    budget: usize,
) -> Result<EntryRecords<'a>, Refused> {
    let records = match message.codec() {
        Codec::None => LegacyRecords::plain(message)?,
        codec => {
            let dialect = Dialect::from_magic(message.magic());
            let dialect = dialect.ok_or(CorruptKind::Magic(message.magic()))?;
            let set = decoder.inflate_as(dialect, codec, message.compressed()?, budget)?;
            LegacyRecords::wrapped(message, set, true)?
        }
    };
    Ok(EntryRecords::Legacy(records))
}

/// How large the records really are is not known without inflating them: the size is the least
/// they can have.
fn over_budget(budget: usize) -> Error {
    let limit = u64::try_from(budget).unwrap_or(u64::MAX);
    Error::TooLarge { what: "inflated batch", size: limit.saturating_add(1), limit }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, Legacy};
    use super::*;

    fn offsets(bytes: &[u8], budget: usize) -> Result<Result<Vec<i64>, CorruptKind>> {
        let entry = match EntryView::parse(bytes) {
            Ok(entry) => entry,
            Err(kind) => return Ok(Err(kind)),
        };
        let mut decoder = Decoder::new();
        let records = EntryRecords::open(&entry, &mut decoder, budget)?;
        Ok(records.and_then(|records| records.map(|record| Ok(record?.offset)).collect()))
    }

    #[test]
    fn every_version_opens_alike() {
        for (bytes, expected) in [
            (samples::legacy_v0(), vec![5]),
            (samples::legacy_v0_lz4(), vec![10, 11]),
            (samples::legacy_v1(), vec![6]),
            (samples::legacy_v1_gzip(), vec![10, 11]),
            (samples::batch_b(), vec![100, 101, 102]),
        ] {
            assert_eq!(offsets(&bytes, 1 << 20).unwrap(), Ok(expected));
        }
    }

    #[test]
    fn the_budget_holds_for_inflated_bytes_only() {
        assert_eq!(offsets(&samples::batch_b(), 0).unwrap(), Ok(vec![100, 101, 102]));
        let inflated = samples::legacy_v1_gzip_inner().len();
        assert!(offsets(&samples::legacy_v1_gzip(), inflated).unwrap().is_ok());
        assert!(matches!(
            offsets(&samples::legacy_v1_gzip(), inflated - 1),
            Err(Error::TooLarge { size: 72, limit: 71, .. })
        ));
    }

    #[test]
    fn damage_of_any_bit_under_the_checksum_is_found() {
        for whole in [samples::legacy_v1_gzip(), samples::batch_b()] {
            for bit in 17 * 8..whole.len() * 8 {
                let mut bytes = whole.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(offsets(&bytes, 1 << 20).unwrap().is_err(), "bit {bit}");
            }
        }
    }

    #[test]
    fn compressed_bytes_that_do_not_inflate_are_damage_not_a_limit() {
        let wrapper = Legacy::new(1, 5).codec(1).value(Some(b"no gzip at all, honestly")).bytes();
        assert!(matches!(offsets(&wrapper, 1 << 20).unwrap(), Err(CorruptKind::Inflate(_))));
    }
}
