//! Kafka's partition directories as Arrow record batches.
//!
//! [`Discovery`] finds partitions, [`Plan`] takes a snapshot and decides what to read, [`Reader`]
//! reads it. Everything is synchronous and starts no thread, so that a process that forks may scan;
//! only [`ParallelReader`] starts threads, and they end with it. Nothing here writes to what it reads;
//! [`TableWriter`] is the way back, from Arrow into a log that the caller owns.

mod batches;
mod bytes_column;
mod columns;
mod committed;
mod cut;
mod discover;
mod internal;
mod options;
mod parallel;
mod payload;
mod plain;
mod plan;
mod pool;
mod pulse;
mod reader;
mod report;
mod schema;
mod snapshot;
mod table;
mod times;

pub use batches::batches;
pub use committed::Committed;
pub use discover::{Discovery, Found};
pub use internal::{InternalReader, InternalRow};
pub use options::{Isolation, OffsetBound, OnCorrupt, OnMissing, ScanOptions, Selection};
pub use parallel::ParallelReader;
pub use plan::{Chunk, PartitionPlan, Plan};
pub use pulse::Pulse;
pub use reader::Reader;
pub use report::{Place, Report};
pub use schema::{Column, schema_of};
pub use snapshot::{Partition, Segment};
pub use table::{Appended, TableOptions, TableWriter};
pub use times::{TimeAnswer, TimeQuery, offset_for_time};
