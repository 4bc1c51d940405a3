//! Cuts the stored inputs of the fuzz targets from the corpus of real broker directories.
//!
//! `cargo test -p kafkaseg-core --lib fuzz_seeds -- --ignored` writes them to `rust/fuzz/corpus`:
//! for each kind of entry the smallest that says something, so that a fuzzer starts from real bytes
//! of every shape and still runs fast.
#![allow(clippy::disallowed_methods, reason = "tests touch files directly")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::codec::{Decoder, Dialect};
use crate::record::{
    Attributes, BatchHeader, BatchView, Codec, EntryView, LegacyView, Records, crc32, crc32c,
};
use crate::testing::{Case, cases};

const BUDGET: usize = 16 << 20;
const LOG_BYTES: usize = 6 << 10;

/// Inputs by target and name; of two with the same name the smaller stays.
#[derive(Default)]
struct Seeds(BTreeMap<(&'static str, String), Vec<u8>>);

impl Seeds {
    fn offer(&mut self, target: &'static str, name: String, bytes: Vec<u8>) {
        let kept = self.0.entry((target, name)).or_insert_with(|| bytes.clone());
        if bytes.len() < kept.len() {
            *kept = bytes;
        }
    }

    fn offer_batch(&mut self, case: &Case, batch: &BatchView<'_>, decoder: &mut Decoder) {
        let header = batch.header();
        let codec = batch.codec().unwrap();
        let flags = header.attributes.0 & !7;
        let compressed = batch.payload();
        let name = format!("v2-{}-{flags:02x}", codec.name());
        self.offer("batch", name, batch.bytes().to_vec());
        if codec != Codec::None && compressed.len() >= 60 && case.name().starts_with("codecs-") {
            let name = format!("{}-{}", codec.name(), case.name());
            self.offer("codecs", name, [&[codec.id() - 1 + 8], compressed].concat());
        }
        let payload = decoder.inflate(codec, compressed, BUDGET).unwrap();
        let headers =
            Records::new(header, payload).any(|record| !record.unwrap().headers.is_empty());
        if header.records_count >= 3 || header.attributes.is_control() {
            let name = format!("v2-{flags:02x}{}", if headers { "-headers" } else { "" });
            self.offer("records", name, not_compressed(header, payload));
        }
    }

    fn offer_legacy(&mut self, message: &LegacyView<'_>, decoder: &mut Decoder) {
        let codec = message.codec();
        let magic = message.magic();
        let name = format!("v{magic}-{}-{}", codec.name(), message.timestamp_type().id());
        self.offer("batch", name.clone(), message.bytes().to_vec());
        if codec == Codec::None {
            self.offer("legacy_set", name, message.bytes().to_vec());
            return;
        }
        let compressed = message.compressed().unwrap();
        let dialect = Dialect::from_magic(magic).unwrap();
        let choice = codec.id() - 1 + 4 * u8::try_from(magic).unwrap();
        let set = decoder.inflate_as(dialect, codec, compressed, BUDGET).unwrap();
        if set.len() >= 200 {
            self.offer("legacy_set", name.clone(), holding_its_set(message, set));
            self.offer("codecs", name, [&[choice], compressed].concat());
        }
    }

    fn offer_log(&mut self, case: &Case, path: &Path, bytes: &[u8]) {
        let wanted = [
            "compacted-4.3.0",
            "compacted-v1",
            "txn-4.3.0",
            "internals-4.3.0",
            "unclean-torn-garbage",
            "unclean-corrupt-last-length",
            "leftovers-kill9",
        ];
        let partition = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let name = format!("{}-{partition}", case.name());
        if case.name().starts_with("upgraded") {
            self.offer("log_file", name, around_changes_of_format(bytes));
        } else if wanted.contains(&case.name())
            && bytes.len() >= LOG_BYTES / 2
            && partition != "__transaction_state-0"
        {
            self.offer("log_file", name, end_of_log(bytes));
        }
    }

    fn write(self) -> usize {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
        let mut total = 0;
        for ((target, name), bytes) in self.0 {
            fs::create_dir_all(root.join(target)).unwrap();
            fs::write(root.join(target).join(name), &bytes).unwrap();
            total += bytes.len();
        }
        total
    }
}

/// The last entries of a log: torn and damaged ones are there.
fn end_of_log(bytes: &[u8]) -> Vec<u8> {
    let mut rest = bytes;
    while rest.len() > LOG_BYTES {
        let Ok(entry) = EntryView::parse(rest) else { break };
        rest = &rest[entry.total_bytes()..];
    }
    rest[..rest.len().min(LOG_BYTES)].to_vec()
}

/// The entries next to those where the version changes, or the first ones where it never does.
fn around_changes_of_format(bytes: &[u8]) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut rest = bytes;
    while let Ok(entry) = EntryView::parse(rest) {
        rest = &rest[entry.total_bytes()..];
        entries.push(entry);
    }
    let is_near = |at: usize| {
        let near = &entries[at.saturating_sub(3)..entries.len().min(at + 4)];
        at < 3 || near.iter().any(|entry| entry.magic() != entries[at].magic())
    };
    let near = (0..entries.len()).filter(|at| is_near(*at));
    near.flat_map(|at| entries[at].bytes().iter().copied()).collect()
}

fn not_compressed(header: &BatchHeader, payload: &[u8]) -> Vec<u8> {
    let mut header = BatchHeader {
        attributes: Attributes(header.attributes.0 & !7),
        batch_length: i32::try_from(49 + payload.len()).unwrap(),
        ..*header
    };
    let covered = [&header.write()[21..], payload].concat();
    header.crc = crc32c(&covered);
    [&header.write()[..21], &covered].concat()
}

/// The wrapper with its inflated set in the place of the compressed one, as the target takes it.
fn holding_its_set(message: &LegacyView<'_>, set: &[u8]) -> Vec<u8> {
    let compressed = message.compressed().unwrap().len();
    let head = &message.bytes()[..message.total_bytes() - compressed - 4];
    let length = i32::try_from(set.len()).unwrap().to_be_bytes();
    let mut bytes = [head, &length, set].concat();
    let size = i32::try_from(bytes.len() - 12).unwrap().to_be_bytes();
    bytes[8..12].copy_from_slice(&size);
    let crc = crc32(&bytes[16..]).to_be_bytes();
    bytes[12..16].copy_from_slice(&crc);
    bytes
}

#[test]
#[ignore = "writes rust/fuzz/corpus"]
fn cut_seeds_from_the_corpus() {
    let mut seeds = Seeds::default();
    let mut decoder = Decoder::new();
    for case in cases() {
        for path in case.files(".log") {
            let bytes = fs::read(&path).unwrap();
            seeds.offer_log(&case, &path, &bytes);
            let mut rest = &bytes[..];
            while let Ok(entry) = EntryView::parse(rest) {
                if entry.check_crc().is_err() {
                    break;
                }
                match &entry {
                    EntryView::Batch(batch) => seeds.offer_batch(&case, batch, &mut decoder),
                    EntryView::Legacy(message) => seeds.offer_legacy(message, &mut decoder),
                }
                rest = &rest[entry.total_bytes()..];
            }
        }
    }
    let total = seeds.write();
    assert!(total <= 300 << 10, "{total} bytes");
}
