//! What a leader does to a set before it appends it: checks every record, assigns offsets and
//! epoch, sets the times, and brings codec and version to what the topic asks for.
//!
//! | codec of the set → of the topic | version 2 | versions 0 and 1 |
//! |---|---|---|
//! | the same, or the topic leaves it to the producer | in place | built anew as version 2 |
//! | another | built anew | built anew as version 2 |
//! | none → any, control batch | in place: markers are never compressed | |
//!
//! 1. A set is one batch of version 2, one compressed message of version 0 or 1, or any number of
//!    plain messages of one of these versions. What comes out is always one batch of version 2.
//! 2. In place, the records stay as they are. Offset and epoch stand outside of the checksum; it is
//!    taken anew only where the times change. An in-place batch costs one walk over its records and
//!    no allocation.
//! 3. A batch whose records do not count up by one from its base is built anew. Kafka does so for
//!    compressed batches and stores uncompressed ones as they are, whose records then claim the
//!    offsets of their neighbours.
//! 4. All records are examined. One that breaks a rule refuses the set, and the refusal lists them.
//!    On any refusal the set is as it was but for a cut-off entry at its end.
//! 5. What a compressed set may inflate to is bounded by [`Rules::inflated_bytes_max`] and by its
//!    own size, and nothing beyond is ever held.

use super::fault::{Faults, code, corrupt, refuse, too_large, unreadable};
use super::rebuild::Rebuilder;
use super::skim::{Skim, skim};
use super::{
    AppendFacts, BatchHeader, BatchMut, BatchView, Codec, Origin, Records, Rules, TimestampType,
};
use crate::codec::{Decoder, InflateError};
use crate::error::{Error, Result};
use crate::limits::INFLATE_WINDOW_BYTES;

/// Where and when a set is appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// Who hands the set over: a client or a coordinator. Nobody else's offsets are assigned here.
    pub origin: Origin,
    /// The offset of its first record: the end of the log.
    pub next_offset: i64,
    /// The epoch of the leader that appends it.
    pub leader_epoch: i32,
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
}

/// A set that is ready to be written: one batch of version 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validated {
    /// The header of the batch as it will be written.
    pub header: BatchHeader,
    /// The time that the log gave the records, −1 where they keep their own.
    pub log_append_time: i64,
    /// Whether the batch was built anew, instead of being changed in place.
    pub rebuilt: bool,
}

/// Checks sets and makes them ready. Holds contexts and buffers of some MiB between sets: one per
/// thread that appends, or a few to share, rather than one per partition.
#[derive(Debug, Default)]
pub struct Validator {
    decoder: Decoder,
    rebuilder: Rebuilder,
}

/// What is to be done with a set that passed.
enum Verdict {
    Place { max_timestamp: i64 },
    Replace(BatchHeader),
}

impl Validator {
    /// A validator that holds nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the set and makes it ready in `bytes`. The facts are those of
    /// [`analyze`](super::analyze), which has compared the checksums.
    pub fn validate(
        &mut self,
        bytes: &mut Vec<u8>,
        facts: &AppendFacts,
        rules: &Rules,
        at: &Placement,
    ) -> Result<Validated> {
        check_set(facts, at.origin)?;
        bytes.truncate(facts.valid_bytes);
        let verdict = if facts.magic == 2 {
            self.judge_batch(bytes, rules, at)
        } else {
            self.rebuilder.convert(bytes, facts, &mut self.decoder, rules, at).map(Verdict::Replace)
        };
        self.forget_giants();
        let (header, rebuilt) = match verdict? {
            Verdict::Place { max_timestamp } => (place(bytes, max_timestamp, rules, at)?, false),
            Verdict::Replace(header) => {
                self.rebuilder.swap(bytes);
                (header, true)
            }
        };
        let log_append_time = if rules.stamps() { at.now_ms } else { -1 };
        Ok(Validated { header, log_append_time, rebuilt })
    }

    fn judge_batch(&mut self, bytes: &[u8], rules: &Rules, at: &Placement) -> Result<Verdict> {
        let batch = BatchView::parse(bytes).map_err(corrupt)?;
        let header = batch.header();
        check_header(header, at.origin)?;
        let source = batch.codec().map_err(corrupt)?;
        let is_plain_control = source == Codec::None && header.attributes.is_control();
        let target = rules.compression.filter(|_| !is_plain_control).unwrap_or(source);
        let payload = inflate(&mut self.decoder, source, batch.payload(), rules)?;
        let skim = skim(header, payload).map_err(unreadable)?;
        check_records(header, payload, &skim, rules, at)?;
        if source == target && skim.in_order {
            return Ok(Verdict::Place { max_timestamp: skim.max_timestamp });
        }
        let records = Records::new(header, payload);
        self.rebuilder.rebuild(header, target, records, rules, at).map(Verdict::Replace)
    }

    /// One giant batch does not pin its memory for the life of the log.
    fn forget_giants(&mut self) {
        if self.decoder.held_bytes() > INFLATE_WINDOW_BYTES {
            self.decoder = Decoder::new();
        }
    }
}

/// What must hold of the set as a whole.
fn check_set(facts: &AppendFacts, origin: Origin) -> Result<()> {
    if !matches!(origin, Origin::Client | Origin::Coordinator) {
        return Err(Error::Invalid(format!("a set from {origin:?} keeps its offsets")));
    }
    let invalid = |reason: String| Err(refuse(code::INVALID_RECORD, reason));
    if facts.entries == 0 {
        return invalid("the set holds no batch".to_owned());
    }
    if facts.entries > 1 && (facts.magic == 2 || facts.codec != Codec::None) {
        return invalid(format!("the set holds {} batches, not one", facts.entries));
    }
    if !facts.same_magic {
        return invalid(format!("the set mixes version {} with others", facts.magic));
    }
    Ok(())
}

/// What must hold of a version 2 header.
fn check_header(header: &BatchHeader, origin: Origin) -> Result<()> {
    let invalid = |reason: String| Err(refuse(code::INVALID_RECORD, reason));
    let (count, last_delta) = (header.records_count, header.last_offset_delta);
    if count <= 0 {
        return invalid(format!("the batch claims {count} records"));
    }
    if origin != Origin::Client {
        return Ok(());
    }
    if i64::from(last_delta) + 1 != i64::from(count) {
        return invalid(format!("the batch claims {count} records up to offset {last_delta}"));
    }
    if header.attributes.is_control() {
        return invalid("clients do not write control records".to_owned());
    }
    if header.producer_id >= 0 && header.base_sequence < 0 {
        let (producer, sequence) = (header.producer_id, header.base_sequence);
        return invalid(format!("producer {producer} sent the sequence {sequence}"));
    }
    Ok(())
}

/// Checks every record against the rules: all at once by their extremes, one by one if these leave
/// a doubt.
fn check_records(
    header: &BatchHeader,
    payload: &[u8],
    skim: &Skim,
    rules: &Rules,
    at: &Placement,
) -> Result<()> {
    let times = rules.times(at.now_ms);
    let batch_type = header.attributes.timestamp_type();
    let extremes = (skim.min_timestamp, skim.max_timestamp);
    if rules.surely_allow(times, batch_type, extremes, skim.has_null_key) {
        return Ok(());
    }
    let mut faults = Faults::default();
    for (index, record) in Records::new(header, payload).enumerate() {
        let record = record.map_err(unreadable)?;
        if let Some(fault) = rules.fault(times, batch_type, record.timestamp, record.key) {
            faults.add(index, fault);
        }
    }
    faults.refuse()
}

/// The records of a version 2 batch, within the budget of a stranger.
fn inflate<'a>(
    decoder: &'a mut Decoder,
    codec: Codec,
    stored: &'a [u8],
    rules: &Rules,
) -> Result<&'a [u8]> {
    let budget = rules.inflate_budget(stored.len());
    decoder.inflate(codec, stored, budget).map_err(|error| not_inflated(error, budget))
}

pub(super) fn not_inflated(error: InflateError, budget: usize) -> Error {
    match error {
        InflateError::Corrupt(_) => corrupt(error.into()),
        InflateError::OverBudget => {
            let reason = format!("the batch inflates to more than {budget} bytes");
            refuse(code::MESSAGE_TOO_LARGE, reason)
        }
    }
}

/// Assigns offset, epoch and times in place.
fn place(
    bytes: &mut [u8],
    max_timestamp: i64,
    rules: &Rules,
    at: &Placement,
) -> Result<BatchHeader> {
    let mut batch = BatchMut::parse(bytes).map_err(corrupt)?;
    batch.set_base_offset(at.next_offset)?;
    batch.set_leader_epoch(at.leader_epoch);
    if rules.stamps() {
        batch.set_max_timestamp(TimestampType::LogAppendTime, at.now_ms)?;
    } else {
        batch.set_max_timestamp(TimestampType::CreateTime, max_timestamp)?;
    }
    Ok(*batch.header())
}

/// Checks the size of a batch that was built anew.
pub(super) fn check_size(header: &BatchHeader, rules: &Rules) -> Result<()> {
    if header.total_bytes() > rules.max_message_bytes {
        return Err(too_large(header.total_bytes(), rules.max_message_bytes));
    }
    Ok(())
}
