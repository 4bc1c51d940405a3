//! What a broker sets for a log directory.

use super::key::{self, Key};
use super::{LogConfig, dir_keys};
use crate::checkpoint::Properties;
use crate::error::{Error, Result};

/// The configuration of a log directory. Times are milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct DirConfig {
    /// What a log has where its topic sets nothing else.
    pub log: LogConfig,
    /// `log.retention.check.interval.ms`.
    pub retention_check_interval_ms: i64,
    /// `log.initial.task.delay.ms`.
    pub initial_task_delay_ms: i64,
    /// `log.flush.scheduler.interval.ms`.
    pub flush_scheduler_interval_ms: i64,
    /// `log.flush.offset.checkpoint.interval.ms`: the recovery points.
    pub recovery_point_checkpoint_interval_ms: i64,
    /// `log.flush.start.offset.checkpoint.interval.ms`: the log start offsets.
    pub log_start_checkpoint_interval_ms: i64,
    /// `replica.high.watermark.checkpoint.interval.ms`.
    pub high_watermark_checkpoint_interval_ms: i64,
    /// `num.recovery.threads.per.data.dir`.
    pub recovery_threads: u32,
    /// `num.partitions`.
    pub num_partitions: u32,
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i64,
    /// `producer.id.expiration.check.interval.ms`.
    pub producer_id_expiration_check_interval_ms: i64,
    /// `transaction.max.timeout.ms`.
    pub transaction_max_timeout_ms: i64,
    /// `transaction.partition.verification.enable`.
    pub transaction_partition_verification_enable: bool,
    /// `log.cleaner.enable`.
    pub cleaner_enable: bool,
    /// `log.cleaner.threads`.
    pub cleaner_threads: u32,
    /// `log.cleaner.dedupe.buffer.size`, for all threads together.
    pub cleaner_dedupe_buffer_bytes: i64,
    /// `log.cleaner.io.buffer.size`, for all threads together.
    pub cleaner_io_buffer_bytes: u32,
    /// `log.cleaner.io.buffer.load.factor`.
    pub cleaner_io_buffer_load_factor: f64,
    /// `log.cleaner.io.max.bytes.per.second`.
    pub cleaner_io_max_bytes_per_second: f64,
    /// `log.cleaner.backoff.ms`.
    pub cleaner_backoff_ms: i64,
}

impl Default for DirConfig {
    fn default() -> Self {
        Self {
            log: LogConfig::default(),
            retention_check_interval_ms: 300_000,
            initial_task_delay_ms: 30_000,
            flush_scheduler_interval_ms: i64::MAX,
            recovery_point_checkpoint_interval_ms: 60_000,
            log_start_checkpoint_interval_ms: 60_000,
            high_watermark_checkpoint_interval_ms: 5000,
            recovery_threads: 2,
            num_partitions: 1,
            producer_id_expiration_ms: 86_400_000,
            producer_id_expiration_check_interval_ms: 600_000,
            transaction_max_timeout_ms: 900_000,
            transaction_partition_verification_enable: true,
            cleaner_enable: true,
            cleaner_threads: 1,
            cleaner_dedupe_buffer_bytes: 128 << 20,
            cleaner_io_buffer_bytes: 512 << 10,
            cleaner_io_buffer_load_factor: 0.9,
            cleaner_io_max_bytes_per_second: f64::MAX,
            cleaner_backoff_ms: 15_000,
        }
    }
}

impl DirConfig {
    /// Kafka's defaults, changed by these pairs: names of the directory, and names of logs, which
    /// become the defaults of its topics.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let pairs: Vec<_> = pairs.into_iter().collect();
        for (name, _) in &pairs {
            if !Self::knows(name) {
                return Err(key::unknown(name, Self::names()));
            }
        }
        Self::default().apply(&pairs)
    }

    /// Kafka's defaults, changed by a properties text in which every name must be known.
    pub fn from_properties(properties: &Properties) -> Result<Self> {
        Self::parse(properties.iter())
    }

    /// What a broker's `server.properties` says about its log directories. The rest is passed over.
    pub fn from_server_properties(properties: &Properties) -> Result<Self> {
        let pairs: Vec<_> = properties.iter().filter(|(name, _)| Self::knows(name)).collect();
        Self::default().apply(&pairs)
    }

    /// Every name of the directory with its value, then those of its logs.
    pub fn entries(&self) -> Vec<(&'static str, String)> {
        let entry = |key: &Key<Self>| Some((key.name, key.get(self)?));
        let own = dir_keys::KEYS.iter().filter_map(entry);
        own.chain(self.log.entries()).collect()
    }

    fn knows(name: &str) -> bool {
        dir_keys::KEYS.iter().any(|key| key.is_called(name)) || LogConfig::knows(name)
    }

    fn names() -> impl Iterator<Item = &'static str> {
        dir_keys::KEYS.iter().flat_map(Key::names).chain(LogConfig::names())
    }

    fn apply(mut self, pairs: &[(&str, &str)]) -> Result<Self> {
        for key in &dir_keys::KEYS {
            key.apply(&mut self, pairs)?;
        }
        self.log = self.log.apply(pairs)?;
        self.check()?;
        Ok(self)
    }

    /// Checks what one value alone cannot show.
    pub fn check(&self) -> Result<()> {
        let threads = i64::from(self.cleaner_threads.max(1));
        let each = self.cleaner_dedupe_buffer_bytes / threads;
        if self.cleaner_enable && each <= 1 << 20 {
            return Err(Error::Invalid(format!(
                "log.cleaner.dedupe.buffer.size ({}) over log.cleaner.threads ({threads}) leaves \
                 {each} bytes a thread; it takes more than 1048576",
                self.cleaner_dedupe_buffer_bytes
            )));
        }
        self.log.check()
    }
}
