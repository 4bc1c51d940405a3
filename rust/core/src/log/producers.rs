//! Producer state of a log: its snapshots, and how it is brought back from them.

use super::Log;
use super::append::facts_of;
use super::view::floor;
use super::writer::Writer;
use crate::error::{Error, Result};
use crate::fs::{File, WriteFs};
use crate::producer::{BatchFacts, ProducerStates};
use crate::record::{BatchHeader, BatchView};
use crate::segment::read::Heads;
use crate::segment::{EntryHead, Segment};

impl<S: WriteFs> Log<S> {
    /// Forgets producers that were not heard of for `producer.id.expiration.ms`.
    pub fn expire_producers(&self, now_ms: i64) -> Result<()> {
        let mut writer = self.writer()?;
        writer.producers.expire(now_ms, self.options.producer_expiration_ms);
        Ok(())
    }

    /// Brings the state to the end of a log that was cut.
    pub(super) fn rebuild_producers(&self, writer: &mut Writer<S>) -> Result<()> {
        let (start, end) = (writer.start, writer.end.offset);
        let expiration_ms = self.options.producer_expiration_ms;
        let Writer { producers, snapshots, .. } = writer;
        snapshots.truncate_and_reload(producers, start, end, self.now_ms(), expiration_ms)?;
        let from = producers.map_end_offset();
        if from < end {
            let first = floor(&writer.slots, from).unwrap_or(0);
            let slots = writer.slots.clone();
            for slot in slots.iter().skip(first) {
                let size = writer.size_of(&slot.segment);
                replay(&mut writer.producers, &slot.segment, size, from)?;
            }
            writer.producers.set_map_end_offset(end);
            writer.take_synced_snapshot()?;
        }
        writer.producers.on_high_watermark(writer.high_watermark.offset);
        writer.flush.names = true;
        Ok(())
    }
}

impl<S: WriteFs> Writer<S> {
    /// Writes the state at the base of a new segment. The next flush syncs it.
    pub(super) fn take_snapshot(&mut self, offset: i64) -> Result<()> {
        self.producers.set_map_end_offset(offset);
        if self.snapshots.take(&self.producers, false)? {
            self.flush.snapshots.push(offset);
            self.flush.names = true;
        }
        Ok(())
    }

    /// Writes the state at the end of a log that is being closed or was cut.
    pub(super) fn take_synced_snapshot(&mut self) -> Result<()> {
        self.producers.set_map_end_offset(self.end.offset);
        self.snapshots.take(&self.producers, true).map(|_| ())
    }

    /// Forgets the state and every snapshot of a log that begins anew.
    pub(super) fn reset_producers(&mut self, offset: i64) -> Result<()> {
        self.producers.clear(offset);
        self.flush.snapshots.clear();
        self.snapshots.delete_all()
    }
}

/// Brings producer state up to date with the batches of a segment from an offset on.
pub(crate) fn replay<S: WriteFs>(
    producers: &mut ProducerStates,
    segment: &Segment<S>,
    size: u64,
    from: i64,
) -> Result<()> {
    let mut heads = Heads::new(segment.file()?, segment.hint(from, size)?, size);
    while let Some((position, head)) = heads.next()? {
        if let EntryHead::Batch(header) = head
            && header.last_offset() >= from
            && header.producer_id >= 0
        {
            let facts = stored_facts(segment, position, &header);
            match facts.and_then(|facts| producers.replay(&facts)) {
                // A batch that contradicts the ones before, or a marker that makes no sense, is in
                // the log all the same.
                Ok(_) | Err(Error::Rejected { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// What producer state needs to know of a batch in a file. Only a marker has to be read.
fn stored_facts<S: WriteFs>(
    segment: &Segment<S>,
    position: u64,
    header: &BatchHeader,
) -> Result<BatchFacts> {
    if !header.attributes.is_control() {
        return Ok(BatchFacts::of(header, None));
    }
    let file = segment.file()?;
    let mut bytes = vec![0; header.total_bytes()];
    if file.read_at(&mut bytes, position)? < bytes.len() {
        return Err(segment.changed("was cut short"));
    }
    let batch = BatchView::parse(&bytes);
    let batch = batch.map_err(|kind| Error::corrupt(file.path(), position, kind))?;
    facts_of(&batch)
}
