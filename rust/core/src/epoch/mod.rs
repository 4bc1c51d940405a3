//! stub
#![allow(missing_docs, clippy::all, clippy::pedantic)]
pub use crate::checkpoint::EpochEntry;
#[derive(Debug, Clone, Default)]
pub struct EpochCache { entries: Vec<EpochEntry> }
impl EpochCache {
    pub fn latest(&self) -> Option<EpochEntry> { self.entries.last().copied() }
    pub fn entries(&self) -> &[EpochEntry] { &self.entries }
    pub fn assign(&mut self, epoch: i32, start_offset: i64) -> crate::Result<bool> {
        if let Some(l) = self.latest() { if l.epoch == epoch && start_offset >= l.start_offset { return Ok(false) } }
        while self.latest().is_some_and(|l| l.epoch >= epoch || l.start_offset >= start_offset) { self.entries.pop(); }
        self.entries.push(EpochEntry { epoch, start_offset }); Ok(true)
    }
    pub fn truncate_from_end(&mut self, o: i64) -> bool { let n = self.entries.len(); self.entries.retain(|e| e.start_offset < o); n != self.entries.len() }
    pub fn truncate_from_start(&mut self, o: i64) -> bool {
        let gone: Vec<_> = self.entries.iter().copied().filter(|e| e.start_offset <= o).collect();
        let Some(last) = gone.last() else { return false };
        self.entries.retain(|e| e.start_offset > o);
        self.entries.insert(0, EpochEntry { epoch: last.epoch, start_offset: o }); true
    }
    pub fn clear(&mut self) -> bool { let n = self.entries.len(); self.entries.clear(); n != 0 }
    pub fn epoch_for(&self, o: i64) -> Option<i32> { self.entries.iter().rev().find(|e| e.start_offset <= o).map(|e| e.epoch) }
    pub fn end_offset_for(&self, e: i32, leo: i64) -> Option<(i32, i64)> { let _ = (e, leo); None }
    pub fn encode(&self) -> Vec<u8> { Vec::new() }
}
impl EpochCache { pub fn from_file(e: crate::checkpoint::LeaderEpochs) -> Self { Self { entries: e.entries().to_vec() } } }
