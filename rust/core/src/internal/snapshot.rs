//! Snapshots of the metadata log: `<end offset>-<epoch>.checkpoint` and `bootstrap.checkpoint`.
//!
//! Version 2 batches one behind the other, without header or padding, as in a `.log` file:
//!
//! | batch | holds |
//! |---|---|
//! | first | control records: `SNAPSHOT_HEADER`, then perhaps `KRAFT_VERSION` and `KRAFT_VOTERS` |
//! | others | metadata records, all of one batch to be applied together |
//! | last | a control record: `SNAPSHOT_FOOTER` |
//!
//! 1. Offsets count from 0 and have nothing to do with those of the log.
//! 2. The file is complete when it has its name, so nothing in it may be torn.
//!
//! Written beside its name with `.part`, fsynced, renamed.

use super::{InternalRecord, METADATA_TOPIC, decode_control, decode_internal};
use crate::CorruptKind;
use crate::codec::Decoder;
use crate::error::{Error, Result};
use crate::fs::File;
use crate::limits::METADATA_BATCH_BYTES_MAX;
use crate::record::{EntryRecords, EntryView, RecordView};
use crate::segment::{Depth, Span, Step, Surroundings, Walker, Window};

/// Bytes read from the file at a time.
const READ_BYTES: usize = 256 << 10;

/// A record of a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotRecord {
    /// Its place in the snapshot.
    pub offset: i64,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// What it says.
    pub record: InternalRecord,
}

/// Reads a snapshot of the metadata log batch by batch.
pub struct MetadataSnapshot<F> {
    walker: Walker<F>,
    decoder: Decoder,
}

impl<F: File> MetadataSnapshot<F> {
    /// Begins with the first batch.
    pub fn open(file: F) -> Result<Self> {
        let bytes = file.facts()?.bytes;
        let span = Span {
            segment_base: 0,
            expected: 0,
            is_last: false,
            is_clean: true,
            around: Surroundings::default(),
        };
        let window = Window::new(file, 0, bytes, READ_BYTES);
        Ok(Self { walker: Walker::new(window, span, Depth::Bodies), decoder: Decoder::new() })
    }

    /// The records of the next batch; `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<Vec<SnapshotRecord>>> {
        match self.walker.step()? {
            Step::End => Ok(None),
            Step::Entry(_) => {
                let position = self.walker.position();
                let records = read_batch(self.walker.bytes(), &mut self.decoder)?;
                records.map(Some).map_err(|kind| self.damage(position, kind))
            }
            Step::Damage { position, kind, .. } | Step::Torn { position, kind, .. } => {
                Err(self.damage(position, kind))
            }
        }
    }

    fn damage(&self, position: u64, kind: CorruptKind) -> Error {
        Error::corrupt(self.walker.file().path(), position, kind)
    }
}

fn read_batch(
    bytes: &[u8],
    decoder: &mut Decoder,
) -> Result<Result<Vec<SnapshotRecord>, CorruptKind>> {
    let entry = match EntryView::parse(bytes) {
        Ok(entry) => entry,
        Err(kind) => return Ok(Err(kind)),
    };
    let is_control = matches!(
        &entry, EntryView::Batch(batch) if batch.header().attributes.is_control()
    );
    let records = EntryRecords::open(&entry, decoder, METADATA_BATCH_BYTES_MAX)?;
    Ok(records
        .and_then(|records| records.map(|record| read_record(&record?, is_control)).collect()))
}

fn read_record(record: &RecordView<'_>, is_control: bool) -> Result<SnapshotRecord, CorruptKind> {
    let decoded = if is_control {
        decode_control(record.key, record.value)?
    } else {
        decode_internal(METADATA_TOPIC, record.key, record.value)?
    };
    Ok(SnapshotRecord { offset: record.offset, timestamp: record.timestamp, record: decoded })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::fs::{Dir, Fs, RealFs};
    use crate::testing::{at_least, cases, name_of};

    fn read(path: &Path) -> Result<Vec<SnapshotRecord>> {
        let directory = RealFs.open_dir(path.parent().unwrap())?;
        let mut snapshot = MetadataSnapshot::open(directory.open(name_of(path))?)?;
        let mut records = Vec::new();
        while let Some(batch) = snapshot.next_batch()? {
            records.extend(batch);
        }
        Ok(records)
    }

    #[test]
    fn every_snapshot_of_the_corpus_begins_and_ends_as_it_must() {
        let mut found = 0;
        for path in cases().iter().flat_map(|case| case.files(".checkpoint")) {
            let records = read(&path).unwrap();
            let kind = |at: Option<&SnapshotRecord>| at.map(|at| at.record.kind.clone()).unwrap();
            assert_eq!(kind(records.first()), "SNAPSHOT_HEADER", "{}", path.display());
            assert_eq!(kind(records.last()), "SNAPSHOT_FOOTER", "{}", path.display());
            let offsets: Vec<i64> = records.iter().map(|record| record.offset).collect();
            assert_eq!(offsets, (0..i64::try_from(records.len()).unwrap()).collect::<Vec<_>>());
            found += 1;
        }
        assert!(found >= at_least(30), "only {found} snapshots");
    }
}
