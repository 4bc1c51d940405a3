//! The names of a log directory's configuration, with their ranges.

use super::DirConfig;
use super::key::{Key, Slot};

type Row = Key<DirConfig>;

macro_rules! long {
    ($name:literal, $field:ident, $min:expr) => {
        Row {
            name: $name,
            synonyms: &[],
            slot: Slot::Long { at: |config| &mut config.$field, min: $min },
        }
    };
}

macro_rules! int {
    ($name:literal, $field:ident, $min:expr) => {
        Row {
            name: $name,
            synonyms: &[],
            slot: Slot::Int { at: |config| &mut config.$field, min: $min },
        }
    };
}

macro_rules! flag {
    ($name:literal, $field:ident) => {
        Row { name: $name, synonyms: &[], slot: Slot::Bool { at: |config| &mut config.$field } }
    };
}

macro_rules! double {
    ($name:literal, $field:ident, $max:expr) => {
        Row {
            name: $name,
            synonyms: &[],
            slot: Slot::Double { at: |config| &mut config.$field, min: 0.0, max: $max },
        }
    };
}

/// Every name that a directory has beside those of its logs.
pub(super) static KEYS: [Row; 19] = [
    long!("log.retention.check.interval.ms", retention_check_interval_ms, 1),
    long!("log.initial.task.delay.ms", initial_task_delay_ms, 0),
    long!("log.flush.scheduler.interval.ms", flush_scheduler_interval_ms, 0),
    long!("log.flush.offset.checkpoint.interval.ms", recovery_point_checkpoint_interval_ms, 0),
    long!("log.flush.start.offset.checkpoint.interval.ms", log_start_checkpoint_interval_ms, 0),
    long!(
        "replica.high.watermark.checkpoint.interval.ms",
        high_watermark_checkpoint_interval_ms,
        0
    ),
    int!("num.recovery.threads.per.data.dir", recovery_threads, 1),
    int!("num.partitions", num_partitions, 1),
    long!("producer.id.expiration.ms", producer_id_expiration_ms, 1),
    long!("producer.id.expiration.check.interval.ms", producer_id_expiration_check_interval_ms, 1),
    long!("transaction.max.timeout.ms", transaction_max_timeout_ms, 1),
    flag!("transaction.partition.verification.enable", transaction_partition_verification_enable),
    flag!("log.cleaner.enable", cleaner_enable),
    int!("log.cleaner.threads", cleaner_threads, 0),
    long!("log.cleaner.dedupe.buffer.size", cleaner_dedupe_buffer_bytes, 0),
    int!("log.cleaner.io.buffer.size", cleaner_io_buffer_bytes, 0),
    double!("log.cleaner.io.buffer.load.factor", cleaner_io_buffer_load_factor, 1.0),
    double!("log.cleaner.io.max.bytes.per.second", cleaner_io_max_bytes_per_second, f64::MAX),
    long!("log.cleaner.backoff.ms", cleaner_backoff_ms, 0),
];
