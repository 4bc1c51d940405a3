//! What a scan gives, in a form that can be compared with the truth.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, BinaryArray, RecordBatch};
use kafkaseg_core::{Error, Result};
use kafkaseg_scan::{
    Column, Discovery, OffsetBound, OnCorrupt, ParallelReader, Plan, Reader, Report, ScanOptions,
    Selection,
};

use crate::log::{Batch, ROOT, Record};
use crate::memory::MemoryFs;

/// One record as a scan shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub(crate) leader_epoch: i32,
}

impl Row {
    pub(crate) fn of(record: &Record, batch: &Batch) -> Self {
        Self {
            offset: record.offset,
            timestamp: record.timestamp,
            key: record.key.clone(),
            value: record.value.clone(),
            headers: record.headers.clone(),
            leader_epoch: batch.leader_epoch,
        }
    }
}

/// The columns that make a [`Row`].
const ROW: [Column; 6] = [
    Column::Offset,
    Column::Timestamp,
    Column::Key,
    Column::Value,
    Column::Headers,
    Column::LeaderEpoch,
];

/// A scan to run.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) path: PathBuf,
    pub(crate) selection: Selection,
    pub(crate) options: ScanOptions,
}

impl Default for Ask {
    fn default() -> Self {
        let options = ScanOptions { columns: ROW.to_vec(), ..ScanOptions::default() };
        Self { path: ROOT.into(), selection: Selection::default(), options }
    }
}

impl Ask {
    pub(crate) fn on_corrupt(on_corrupt: OnCorrupt) -> Self {
        let mut ask = Self::default();
        ask.options.on_corrupt = on_corrupt;
        ask
    }

    pub(crate) fn between(mut self, start: Option<i64>, end: Option<i64>) -> Self {
        let bound = |offset: Option<i64>| offset.map_or(OffsetBound::None, OffsetBound::All);
        self.selection.start = bound(start);
        self.selection.end = bound(end);
        self
    }

    pub(crate) fn plan(&self, fs: &MemoryFs) -> Result<Plan> {
        let discovery = Discovery::look(fs, std::slice::from_ref(&self.path))?;
        Plan::make(fs, &discovery, &self.selection, self.options.clone(), &mut calm)
    }

    /// Runs it with as many threads as the options say.
    pub(crate) fn batches(&self, fs: &MemoryFs) -> Result<(Vec<RecordBatch>, Report)> {
        read(fs, self.plan(fs)?)
    }

    pub(crate) fn rows(&self, fs: &MemoryFs) -> Result<(Vec<Row>, Report)> {
        let (batches, report) = self.batches(fs)?;
        Ok((rows_of(&batches), report))
    }

    pub(crate) fn count(&self, fs: &MemoryFs) -> Result<u64> {
        let plan = Arc::new(self.plan(fs)?);
        Ok(Reader::count(fs.clone(), plan, &mut calm)?.0)
    }

    /// The rows of all splits, one after the other.
    pub(crate) fn split_rows(&self, fs: &MemoryFs, parts: usize) -> Result<(Vec<Row>, usize)> {
        let (rows, reports) = self.split_reports(fs, parts)?;
        Ok((rows, reports.len()))
    }

    pub(crate) fn split_reports(
        &self,
        fs: &MemoryFs,
        parts: usize,
    ) -> Result<(Vec<Row>, Vec<Report>)> {
        let mut rows = Vec::new();
        let mut reports = Vec::new();
        for split in self.plan(fs)?.splits(fs, parts, &mut calm)? {
            let (batches, report) = read(fs, split)?;
            rows.extend(rows_of(&batches));
            reports.push(report);
        }
        Ok((rows, reports))
    }
}

/// A pulse that never stops anything.
#[expect(clippy::unnecessary_wraps, reason = "the shape of a pulse")]
pub(crate) fn calm() -> Result<()> {
    Ok(())
}

pub(crate) fn read(fs: &MemoryFs, plan: Plan) -> Result<(Vec<RecordBatch>, Report)> {
    let mut batches = Vec::new();
    if plan.options.threads > 1 {
        let mut reader = ParallelReader::start(fs.clone(), plan, &mut calm)?;
        while let Some(batch) = reader.next_batch(&mut calm)? {
            batches.push(batch);
        }
        return Ok((batches, reader.report().clone()));
    }
    let mut reader = Reader::new(fs.clone(), Arc::new(plan));
    while let Some(batch) = reader.next_batch(&mut calm)? {
        batches.push(batch);
    }
    Ok((batches, reader.report().clone()))
}

pub(crate) fn rows_of(batches: &[RecordBatch]) -> Vec<Row> {
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| row_at(batch, row))).collect()
}

fn row_at(batch: &RecordBatch, row: usize) -> Row {
    let bytes =
        |array: &BinaryArray, row: usize| (!array.is_null(row)).then(|| array.value(row).to_vec());
    let headers = batch.column(4).as_list::<i32>();
    let headers = if headers.is_null(row) {
        Vec::new()
    } else {
        let fields = headers.value(row);
        let fields = fields.as_struct();
        let keys = fields.column(0).as_string::<i32>();
        let values = fields.column(1).as_binary::<i32>();
        (0..fields.len())
            .map(|at| (keys.value(at).as_bytes().to_vec(), bytes(values, at)))
            .collect()
    };
    Row {
        offset: batch.column(0).as_primitive::<Int64Type>().value(row),
        timestamp: batch.column(1).as_primitive::<TimestampMicrosecondType>().value(row) / 1000,
        key: bytes(batch.column(2).as_binary(), row),
        value: bytes(batch.column(3).as_binary(), row),
        headers,
        leader_epoch: batch.column(5).as_primitive::<Int32Type>().value(row),
    }
}

/// Asserts that each row is one of the truth, in order and none twice.
#[track_caller]
pub(crate) fn assert_no_wrong_row(rows: &[Row], truth: &[Row], context: &str) {
    let mut rest = truth;
    for row in rows {
        match rest.iter().position(|known| known == row) {
            Some(at) => rest = &rest[at + 1..],
            None => panic!("{context}: a record that was never written, or not here: {row:?}"),
        }
    }
}

/// Whether the error is damage.
pub(crate) fn is_corrupt(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. })
}
