//! Values that are one of a few words.

use crate::record::Codec;

/// When bytes reach the device, beyond what roll, checkpoint and close always sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fsync {
    /// `flush.messages` and `flush.ms` are not looked at.
    Never,
    /// After `flush.messages` records or `flush.ms` milliseconds: Kafka's way, whose defaults for
    /// both are "never".
    #[default]
    Interval,
    /// An append returns only when a sync has covered it.
    Always,
}

impl Fsync {
    pub(super) const NAMES: &'static str = "never, interval or always";

    /// The mode of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Never, Self::Interval, Self::Always].into_iter().find(|mode| mode.name() == name)
    }

    /// The name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Interval => "interval",
            Self::Always => "always",
        }
    }
}

/// `cleanup.policy`: how old records leave the log. Neither means never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanupPolicy {
    /// The newest record of each key stays.
    pub compact: bool,
    /// Segments beyond the retention go.
    pub delete: bool,
}

impl CleanupPolicy {
    pub(super) const NAMES: &'static str = "compact and delete, each at most once";

    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut policy = Self { compact: false, delete: false };
        for word in super::key::words(text) {
            let flag = match word {
                "compact" => &mut policy.compact,
                "delete" => &mut policy.delete,
                _ => return None,
            };
            if std::mem::replace(flag, true) {
                return None;
            }
        }
        Some(policy)
    }

    pub(super) fn text(self) -> &'static str {
        match (self.compact, self.delete) {
            (true, true) => "compact,delete",
            (true, false) => "compact",
            (false, true) => "delete",
            (false, false) => "",
        }
    }
}

/// `compression.type`: how the leader stores batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionType {
    /// As the producer sent them.
    Producer,
    /// With this codec; `uncompressed` is [`Codec::None`].
    Codec(Codec),
}

impl CompressionType {
    pub(super) const NAMES: &'static str = "uncompressed, gzip, snappy, lz4, zstd or producer";

    /// The type of a name of the configuration.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "producer" => Some(Self::Producer),
            "uncompressed" => Some(Self::Codec(Codec::None)),
            "none" => None,
            _ => Codec::from_name(name).map(Self::Codec),
        }
    }

    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Codec(Codec::None) => "uncompressed",
            Self::Codec(codec) => codec.name(),
        }
    }

    /// The codec to store a batch with that came with `sent`.
    pub fn target(self, sent: Codec) -> Codec {
        match self {
            Self::Producer => sent,
            Self::Codec(codec) => codec,
        }
    }
}
