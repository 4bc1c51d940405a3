//! The transaction index, `<base>.txnindex`: the aborted transactions whose marker is in the segment.
//!
//! | position in entry | type | field |
//! |---|---|---|
//! | 0 | i16 | version, 0 |
//! | 2 | i64 | producer id |
//! | 10 | i64 | first offset of the transaction, possibly in an earlier segment |
//! | 18 | i64 | last offset: that of the abort marker |
//! | 26 | i64 | last stable offset just after the transaction ended |
//!
//! 1. Entries stand in the order of their markers: last offsets increase strictly.
//! 2. No last offset is below the segment's base offset; Kafka rebuilds an index that breaks this.
//! 3. The file is not preallocated. It is absent when empty, but recovery can leave one of 0 bytes.
//!
//! Written when an abort marker is appended, fsynced with its segment.

use crate::bytes::Reader;
use crate::record::CorruptKind;

/// Bytes of an entry.
pub const TXN_ENTRY_BYTES: usize = 34;

const SHORT: CorruptKind = CorruptKind::Side("transaction index ends inside an entry");

/// One aborted transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTxn {
    /// Who wrote it.
    pub producer_id: i64,
    /// First offset of the transaction in this partition.
    pub first_offset: i64,
    /// Offset of the abort marker.
    pub last_offset: i64,
    /// Last stable offset just after the transaction ended.
    pub last_stable_offset: i64,
}

impl AbortedTxn {
    /// Reads one entry.
    pub fn decode(raw: &[u8; TXN_ENTRY_BYTES]) -> Result<Self, CorruptKind> {
        let mut reader = Reader::new(raw, SHORT);
        if reader.i16()? != 0 {
            return Err(CorruptKind::Side("transaction index entry version is not 0"));
        }
        Ok(Self {
            producer_id: reader.i64()?,
            first_offset: reader.i64()?,
            last_offset: reader.i64()?,
            last_stable_offset: reader.i64()?,
        })
    }

    /// Checks that the entry can stand after one with that last offset in a segment's index.
    pub(super) fn check_after(
        &self,
        previous: Option<i64>,
        base_offset: i64,
    ) -> Result<(), CorruptKind> {
        if self.last_offset < base_offset {
            return Err(CorruptKind::Side("transaction index entry is below the base offset"));
        }
        if self.first_offset > self.last_offset {
            return Err(CorruptKind::Side("transaction index entry ends before it starts"));
        }
        if previous.is_some_and(|previous| previous >= self.last_offset) {
            return Err(CorruptKind::Side("transaction index offsets do not increase"));
        }
        Ok(())
    }

    /// Appends the entry's bytes.
    pub fn encode(&self, output: &mut Vec<u8>) {
        output.extend([0, 0]);
        for field in
            [self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset]
        {
            output.extend(field.to_be_bytes());
        }
    }
}

/// The bytes of a transaction index.
#[derive(Debug, Clone, Copy)]
pub struct TxnIndexView<'a> {
    base_offset: i64,
    entries: &'a [[u8; TXN_ENTRY_BYTES]],
    torn_bytes: usize,
}

impl<'a> TxnIndexView<'a> {
    /// A view of the file's bytes.
    pub fn new(base_offset: i64, bytes: &'a [u8]) -> Self {
        let (entries, torn) = bytes.as_chunks();
        Self { base_offset, entries, torn_bytes: torn.len() }
    }

    /// Whole entries in the file.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the file holds no whole entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes after the last whole entry, which are ignored.
    pub fn torn_bytes(&self) -> usize {
        self.torn_bytes
    }

    /// The entry at an index; `None` after the last.
    pub fn entry(&self, index: usize) -> Option<Result<AbortedTxn, CorruptKind>> {
        self.entries.get(index).map(AbortedTxn::decode)
    }

    /// The entries in their order.
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = Result<AbortedTxn, CorruptKind>> + ExactSizeIterator + use<'a>
    {
        self.entries.iter().map(AbortedTxn::decode)
    }

    /// Checks what every index written by Kafka keeps.
    pub fn sanity(&self) -> Result<(), CorruptKind> {
        if self.torn_bytes != 0 {
            return Err(SHORT);
        }
        let mut previous = None;
        for entry in self.iter() {
            let entry = entry?;
            entry.check_after(previous, self.base_offset)?;
            previous = Some(entry.last_offset);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: [u8; 34] = [
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x92, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x67, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x69, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x6a,
    ];
    const ABORTED: AbortedTxn = AbortedTxn {
        producer_id: 4242,
        first_offset: 103,
        last_offset: 105,
        last_stable_offset: 106,
    };

    fn why(base_offset: i64, entries: &[AbortedTxn]) -> &'static str {
        let mut bytes = Vec::new();
        for entry in entries {
            entry.encode(&mut bytes);
        }
        match TxnIndexView::new(base_offset, &bytes).sanity() {
            Err(CorruptKind::Side(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_published_example_reads_and_writes() {
        let view = TxnIndexView::new(100, &EXAMPLE);
        assert_eq!(view.entry(0), Some(Ok(ABORTED)));
        assert_eq!((view.len(), view.entry(1)), (1, None));
        assert_eq!(view.sanity(), Ok(()));
        let mut written = Vec::new();
        ABORTED.encode(&mut written);
        assert_eq!(written, EXAMPLE);
    }

    #[test]
    fn another_version_and_a_torn_end_are_refused() {
        for version in [1, 0xff] {
            let mut other = EXAMPLE;
            other[1] = version;
            assert!(TxnIndexView::new(0, &other).sanity().is_err());
        }
        let torn = TxnIndexView::new(0, &EXAMPLE[..33]);
        assert_eq!((torn.is_empty(), torn.torn_bytes()), (true, 33));
        assert_eq!(torn.sanity(), Err(SHORT));
        assert_eq!(TxnIndexView::new(0, &[]).sanity(), Ok(()));
    }

    #[test]
    fn sanity_names_the_broken_rule() {
        assert!(why(106, &[ABORTED]).contains("below the base"));
        assert!(why(100, &[ABORTED, ABORTED]).contains("do not increase"));
        let backwards = AbortedTxn { first_offset: 106, ..ABORTED };
        assert!(why(100, &[backwards]).contains("ends before it starts"));
    }
}
