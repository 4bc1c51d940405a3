//! Building a batch anew from the records of a set that cannot be appended as it is.
//!
//! 1. Offsets count up by one from the end of the log, whatever the set said of them.
//! 2. Producer, epoch, sequence and flags stay. Times stay the records' own: the base is the first
//!    record's, the largest is found again or is the append time.
//! 3. Messages of version 0 have no time: they get −1.
//! 4. A set of plain messages becomes one batch, because a batch is what version 2 has for a set.

use super::fault::{Faults, RecordFault, code, corrupt, refuse, unreadable};
use super::validate::{Placement, check_size, not_inflated};
use super::{
    AppendFacts, BatchBuilder, BatchHeader, BatchSpec, Codec, CorruptKind, EntryView,
    LegacyRecords, LegacyView, RecordView, Rules,
};
use crate::codec::{Decoder, Dialect, Encoder};
use crate::error::{Error, Result};
use crate::limits::INFLATE_WINDOW_BYTES;

/// Builds batches; keeps its buffers between them.
#[derive(Debug, Default)]
pub(super) struct Rebuilder {
    encoder: Encoder,
    builder: Option<BatchBuilder>,
    output: Vec<u8>,
}

impl Rebuilder {
    /// Puts the batch that was built last in the place of the set.
    pub(super) fn swap(&mut self, bytes: &mut Vec<u8>) {
        std::mem::swap(bytes, &mut self.output);
        self.output.clear();
        self.output.shrink_to(INFLATE_WINDOW_BYTES);
    }

    /// Builds a version 2 batch again, with another codec or other offsets.
    pub(super) fn rebuild<'a>(
        &mut self,
        header: &BatchHeader,
        codec: Codec,
        records: impl Iterator<Item = Result<RecordView<'a>, CorruptKind>>,
        rules: &Rules,
        at: &Placement,
    ) -> Result<BatchHeader> {
        let builder = self.begin(BatchSpec {
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            transactional: header.attributes.is_transactional(),
            control: header.attributes.is_control(),
            ..spec(rules, at)
        })?;
        for record in records {
            push(builder, &record.map_err(unreadable)?)?;
        }
        self.finish(codec, rules)
    }

    /// Builds a version 2 batch of messages of version 0 or 1, examined on the way.
    pub(super) fn convert(
        &mut self,
        bytes: &[u8],
        facts: &AppendFacts,
        decoder: &mut Decoder,
        rules: &Rules,
        at: &Placement,
    ) -> Result<BatchHeader> {
        let builder = self.begin(spec(rules, at))?;
        let mut conversion = Conversion { builder, rules, at, faults: Faults::default(), index: 0 };
        for entry in facts.entries_of(bytes) {
            let EntryView::Legacy(message) = entry else {
                return Err(refuse(code::INVALID_RECORD, "the set mixes versions"));
            };
            conversion.message(&message, decoder)?;
        }
        conversion.faults.refuse()?;
        self.finish(rules.compression.unwrap_or(facts.codec), rules)
    }

    fn begin(&mut self, spec: BatchSpec) -> Result<&mut BatchBuilder> {
        let begun = match &mut self.builder {
            Some(builder) => builder.restart(spec).map(|()| None),
            None => BatchBuilder::new(spec).map(Some),
        };
        if let Some(builder) = begun.map_err(invalid_record)? {
            self.builder = Some(builder);
        }
        self.builder.as_mut().ok_or_else(|| Error::Invalid("no builder".to_owned()))
    }

    fn finish(&mut self, codec: Codec, rules: &Rules) -> Result<BatchHeader> {
        let builder =
            self.builder.as_ref().ok_or_else(|| Error::Invalid("no builder".to_owned()))?;
        let level = rules.compression_level.filter(|_| rules.compression.is_some());
        self.output.clear();
        let header =
            builder.finish_compressed(codec, level, &mut self.encoder, &mut self.output)?;
        if builder.encoded_bytes() > INFLATE_WINDOW_BYTES {
            self.builder = None;
        }
        check_size(&header, rules)?;
        Ok(header)
    }
}

/// A set of old messages on its way into a batch.
struct Conversion<'a> {
    builder: &'a mut BatchBuilder,
    rules: &'a Rules,
    at: &'a Placement,
    faults: Faults,
    /// Records met so far.
    index: usize,
}

impl Conversion<'_> {
    fn message(&mut self, message: &LegacyView<'_>, decoder: &mut Decoder) -> Result<()> {
        if !message.is_wrapper() {
            let records = LegacyRecords::plain(message).map_err(unreadable)?;
            return self.records(message, records, std::iter::repeat(message.magic()));
        }
        let dialect = Dialect::from_magic(message.magic())
            .ok_or_else(|| corrupt(CorruptKind::Magic(message.magic())))?;
        let compressed = message.compressed().map_err(unreadable)?;
        let budget = self.rules.inflate_budget(compressed.len());
        let set = decoder
            .inflate_as(dialect, message.codec(), compressed, budget)
            .map_err(|error| not_inflated(error, budget))?;
        let records = LegacyRecords::wrapped(message, set, true).map_err(unreadable)?;
        self.records(message, records, inner_magics(set))
    }

    fn records(
        &mut self,
        message: &LegacyView<'_>,
        records: LegacyRecords<'_>,
        magics: impl Iterator<Item = i8>,
    ) -> Result<()> {
        let times = self.rules.times(self.at.now_ms);
        let (wrapper, batch_type) = (message.magic(), message.timestamp_type());
        for (record, found) in records.zip(magics) {
            let record = record.map_err(unreadable)?;
            let fault = if found == wrapper {
                self.rules.fault(times, batch_type, record.timestamp, record.key)
            } else {
                Some(RecordFault::Magic { found, wrapper })
            };
            match fault {
                Some(fault) => self.faults.add(self.index, fault),
                None => push(self.builder, &record)?,
            }
            self.index += 1;
        }
        Ok(())
    }
}

/// The versions of the messages of an inflated set.
fn inner_magics(set: &[u8]) -> impl Iterator<Item = i8> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let message = LegacyView::parse(rest).ok()?;
        rest = rest.get(message.total_bytes()..).unwrap_or_default();
        Some(message.magic())
    })
}

fn spec(rules: &Rules, at: &Placement) -> BatchSpec {
    BatchSpec {
        leader_epoch: at.leader_epoch,
        append_time: rules.stamps().then_some(at.now_ms),
        ..BatchSpec::at(at.next_offset)
    }
}

/// Adds a record at the next offset.
fn push(builder: &mut BatchBuilder, record: &RecordView<'_>) -> Result<()> {
    if record.timestamp < -1 {
        let reason = format!("timestamp {} is negative", record.timestamp);
        return Err(refuse(code::INVALID_TIMESTAMP, reason));
    }
    let headers = record.headers.iter();
    builder
        .push(record.timestamp, record.key, record.value, headers)
        .map_err(invalid_record)
        .map(|_| ())
}

/// What the builder cannot make of a set is the set's fault: nothing else came from the caller.
fn invalid_record(error: Error) -> Error {
    match error {
        Error::Invalid(reason) => refuse(code::INVALID_RECORD, reason),
        Error::TooLarge { .. } => refuse(code::MESSAGE_TOO_LARGE, error.to_string()),
        other => other,
    }
}
