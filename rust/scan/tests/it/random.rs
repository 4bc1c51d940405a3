//! Numbers from a seed, so that every failure can be repeated.

use kafkaseg_core::record::Codec;

use crate::log::{Batch, Log, Record, T0};

/// A small generator (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).unwrap();
        usize::try_from(self.next() % limit).unwrap()
    }

    pub(crate) fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    /// A record with anything a record can have.
    pub(crate) fn record(&mut self, offset: i64) -> Record {
        let key_bytes = self.below(12);
        let value_bytes = self.below(140);
        let headers = if self.one_in(6) { self.below(3) } else { 0 };
        Record {
            offset,
            timestamp: T0 + offset * 10 + i64::try_from(self.below(500)).unwrap(),
            key: (!self.one_in(5)).then(|| self.bytes(key_bytes)),
            value: (!self.one_in(9)).then(|| self.bytes(value_bytes)),
            headers: (0..headers).map(|_| self.header()).collect(),
        }
    }

    fn header(&mut self) -> (Vec<u8>, Option<Vec<u8>>) {
        let name = format!("h{}", self.below(10)).into_bytes();
        let value = self.below(10);
        (name, (!self.one_in(4)).then(|| self.bytes(value)))
    }

    /// Batches without gaps from an offset on, until they take about `bytes` bytes.
    pub(crate) fn batches(&mut self, from: i64, bytes: usize, codecs: &[Codec]) -> Vec<Batch> {
        let mut batches = Vec::new();
        let mut offset = from;
        let mut epoch = 0;
        let mut made = 0;
        while made < bytes {
            let count = 1 + i64::try_from(self.below(24)).unwrap();
            let records: Vec<_> = (offset..offset + count).map(|at| self.record(at)).collect();
            offset += count;
            if self.one_in(8) {
                epoch += 1 + i32::try_from(self.below(3)).unwrap();
            }
            let mut batch = Batch::of(epoch, records);
            batch.codec = codecs[batches.len() % codecs.len()];
            let (files, _) = Log::of(0, vec![batch.clone()]).encode();
            made += files[0].len();
            batches.push(batch);
        }
        batches
    }
}

/// Takes records and whole batches away, as compaction does.
pub(crate) fn compacted(mut batches: Vec<Batch>, random: &mut Random) -> Vec<Batch> {
    batches.retain(|_| !random.one_in(4));
    for batch in &mut batches {
        // The batch keeps the range of its offsets.
        batch.records.retain(|_| !random.one_in(3));
    }
    batches
}
