//! Producer state of a log: its snapshots, and how it is brought back from them.

use std::sync::Arc;

use super::Log;
use super::append::facts_of;
use super::writer::Writer;
use crate::error::{Error, Result};
use crate::fs::{File, WriteFs};
use crate::producer::ProducerStates;
use crate::record::BatchView;
use crate::segment::read::Heads;
use crate::segment::{EntryHead, Segment};

impl<S: WriteFs> Log<S> {
    /// Forgets producers that were not heard of for `producer.id.expiration.ms`.
    pub fn expire_producers(&self, now_ms: i64) -> Result<()> {
        let mut writer = self.writer()?;
        writer.producers.expire(now_ms, self.options.producer_expiration_ms);
        Ok(())
    }
}

/// Brings producer state up to date with the batches of a segment from an offset on.
pub(crate) fn replay<S: WriteFs>(
    producers: &mut ProducerStates,
    segment: &Segment<S>,
    size: u64,
    from: i64,
) -> Result<()> {
    let file = segment.file()?;
    let mut body = Vec::new();
    let mut heads = Heads::new(file, segment.hint(from, size)?, size);
    while let Some((position, head)) = heads.next()? {
        let EntryHead::Batch(header) = head else { continue };
        if header.last_offset() < from || header.producer_id < 0 {
            continue;
        }
        let damage = |kind| Error::corrupt(file.path(), position, kind);
        // Only a marker has to be read; the header tells everything else.
        body.resize(header.total_bytes(), 0);
        let needed = if header.attributes.is_control() {
            body.len()
        } else {
            EntryHead::BYTES
        };
        let place = body.get_mut(..needed).unwrap_or_default();
        if file.read_at(place, position)? < needed {
            return Err(Error::Changed { path: file.path().to_owned(), what: "was cut short" });
        }
        let batch = BatchView::parse(&body).map_err(damage)?;
        producers.replay(&facts_of(&batch)?)?;
    }
    Ok(())
}
