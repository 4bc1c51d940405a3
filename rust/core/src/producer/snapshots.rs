//! stub
#![allow(missing_docs, clippy::all, clippy::pedantic)]
use std::sync::Arc;
use crate::fs::{WriteDir};
use crate::Result;
use super::ProducerStates;
pub struct Snapshots<D: WriteDir> { dir: Arc<D> }
impl<D: WriteDir> Snapshots<D> {
    pub fn new(dir: Arc<D>) -> Self { Self { dir } }
    pub fn take(&mut self, _s: &ProducerStates, _sync: bool) -> Result<bool> { Ok(false) }
    pub fn sync(&self, _o: i64) -> Result<()> { Ok(()) }
    pub fn rename_deleted(&mut self, _o: i64) -> Result<Option<String>> { Ok(None) }
    pub fn truncate_and_reload(&mut self, s: &mut ProducerStates, start: i64, end: i64, _now: i64, _exp: i64) -> Result<()> { if s.map_end_offset() != end { s.clear(start) } Ok(()) }
    pub fn delete_all(&mut self) -> Result<()> { Ok(()) }
}
impl<D: WriteDir> Snapshots<D> { pub fn open(dir: Arc<D>) -> Result<Self> { Ok(Self{dir}) } pub fn remove_stray(&mut self, _b: &[i64]) -> Result<()> { Ok(()) } }
