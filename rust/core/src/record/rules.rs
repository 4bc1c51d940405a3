//! What a topic asks of the records appended to it.

use super::fault::RecordFault;
use super::{Codec, TimestampType};
use crate::limits::{CLIENT_BATCH_BYTES_MAX, CLIENT_INFLATE_FREE_BYTES, CLIENT_INFLATE_RATIO_MAX};

/// The settings of a topic that decide about appended records, by the names Kafka gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// `message.timestamp.type`: whether records keep the producer's time or get the log's.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub timestamp_after_max_ms: i64,
    /// Whether `cleanup.policy` contains `compact`: every record needs a key.
    pub compacted: bool,
    /// `compression.type`; `None` is `producer`, which leaves the codec to the producer.
    pub compression: Option<Codec>,
    /// `compression.<codec>.level` of that codec; `None` is its default.
    pub compression_level: Option<i32>,
    /// `max.message.bytes`, which a batch that is built anew must keep to as well.
    pub max_message_bytes: usize,
    /// The most that a compressed batch may inflate to.
    pub inflated_bytes_max: usize,
}

impl Default for Rules {
    /// Kafka's defaults.
    fn default() -> Self {
        Self {
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            compacted: false,
            compression: None,
            compression_level: None,
            max_message_bytes: 1_048_588,
            inflated_bytes_max: CLIENT_BATCH_BYTES_MAX,
        }
    }
}

/// The times that records may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) earliest: i64,
    pub(super) latest: i64,
}

impl Rules {
    /// The times that a record may have that is appended now.
    pub(super) fn times(&self, now_ms: i64) -> Times {
        Times {
            earliest: now_ms.saturating_sub(self.timestamp_before_max_ms),
            latest: now_ms.saturating_add(self.timestamp_after_max_ms),
        }
    }

    /// Whether the log sets the times.
    pub(super) fn stamps(&self) -> bool {
        self.timestamp_type == TimestampType::LogAppendTime
    }

    /// The rule that a record breaks, if any. `batch_type` is what its batch says of the times.
    pub(super) fn fault(
        &self,
        times: Times,
        batch_type: TimestampType,
        timestamp: i64,
        key: Option<&[u8]>,
    ) -> Option<RecordFault> {
        if self.compacted && key.is_none() {
            return Some(RecordFault::NullKey);
        }
        if self.stamps() || timestamp == -1 {
            // A time that nobody reads is not judged; who set it is.
            return (batch_type == TimestampType::LogAppendTime).then_some(RecordFault::AppendTime);
        }
        let Times { earliest, latest } = times;
        (timestamp < earliest || timestamp > latest).then_some(RecordFault::Timestamp {
            found: timestamp,
            earliest,
            latest,
        })
    }

    /// Whether no record of a batch can break a rule, told by the extremes of its records.
    #[inline]
    pub(super) fn surely_allow(
        &self,
        times: Times,
        batch_type: TimestampType,
        extremes: (i64, i64),
        has_null_key: bool,
    ) -> bool {
        let (min, max) = extremes;
        batch_type == TimestampType::CreateTime
            && !(self.compacted && has_null_key)
            && (self.stamps() || (min >= times.earliest && max <= times.latest))
    }

    /// What so many compressed bytes may inflate to.
    pub(super) fn inflate_budget(&self, compressed_bytes: usize) -> usize {
        let by_ratio = compressed_bytes.saturating_mul(CLIENT_INFLATE_RATIO_MAX);
        // A topic that takes larger batches uncompressed takes them compressed as well.
        let most = self.inflated_bytes_max.max(self.max_message_bytes);
        by_ratio.max(CLIENT_INFLATE_FREE_BYTES).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000;

    fn fault(rules: &Rules, batch_type: TimestampType, timestamp: i64) -> Option<RecordFault> {
        rules.fault(rules.times(NOW), batch_type, timestamp, Some(b"k"))
    }

    #[test]
    fn the_bounds_of_the_times_are_inclusive() {
        let rules =
            Rules { timestamp_before_max_ms: 100, timestamp_after_max_ms: 50, ..Rules::default() };
        for (timestamp, good) in [
            (NOW - 100, true),
            (NOW - 101, false),
            (NOW + 50, true),
            (NOW + 51, false),
            (-1, true),
            (-2, false),
            (i64::MIN, false),
            (i64::MAX, false),
        ] {
            let found = fault(&rules, TimestampType::CreateTime, timestamp);
            assert_eq!(found.is_none(), good, "{timestamp}");
        }
    }

    #[test]
    fn by_default_any_past_is_good_and_an_hour_of_future() {
        let rules = Rules::default();
        let is_good = |timestamp| fault(&rules, TimestampType::CreateTime, timestamp).is_none();
        assert!(is_good(0) && is_good(-1) && is_good(NOW + 3_600_000));
        assert!(!is_good(NOW + 3_600_001));
    }

    #[test]
    fn a_producer_cannot_claim_the_append_time() {
        let create = Rules::default();
        let stamp = Rules { timestamp_type: TimestampType::LogAppendTime, ..create };
        let claimed = TimestampType::LogAppendTime;
        assert_eq!(fault(&stamp, claimed, NOW), Some(RecordFault::AppendTime));
        assert_eq!(fault(&create, claimed, -1), Some(RecordFault::AppendTime));
        assert_eq!(fault(&create, claimed, NOW), None, "Kafka takes the time and drops the claim");
        assert_eq!(fault(&stamp, TimestampType::CreateTime, i64::MAX), None);
    }

    #[test]
    fn the_inflate_budget_follows_the_input_between_its_bounds() {
        let rules = Rules::default();
        assert_eq!(rules.inflate_budget(10), 8 << 20);
        assert_eq!(rules.inflate_budget(20_000), 20_000_000);
        assert_eq!(rules.inflate_budget(1 << 20), 64 << 20);
        let large = Rules { max_message_bytes: 100 << 20, ..rules };
        assert_eq!(large.inflate_budget(1 << 20), 100 << 20);
    }
}
