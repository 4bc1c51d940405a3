//! What tests share: the corpus of real broker directories and a small random source.
#![allow(clippy::disallowed_methods, reason = "tests read files directly")]

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Cases in the full corpus; fewer are there when tests fall back to the copy in the repository.
const FULL_CORPUS_CASES: usize = 56;

/// Where the corpus of real broker directories is: the environment's choice, the checkout's
/// neighbour, or the small copy inside the repository (refused under `CI=true`).
pub(crate) fn corpus_dir() -> PathBuf {
    if let Some(chosen) = std::env::var_os("KAFKASEG_CORPUS") {
        return chosen.into();
    }
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = repository.join("../shared/corpus");
    if shared.is_dir() {
        return shared;
    }
    let required = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!required, "CI=true and {} is missing", shared.display());
    repository.join("tests/data")
}

/// The cases of the corpus, by name.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = list(&corpus_dir())
        .into_iter()
        .filter(|path| path.join("log").is_dir())
        .map(|root| Case { root })
        .collect();
    cases.sort_by(|a, b| a.root.cmp(&b.root));
    assert!(!cases.is_empty(), "no corpus case in {}", corpus_dir().display());
    cases
}

/// A floor for what a corpus test must have seen: `full` on the whole corpus, 1 on the small copy.
pub(crate) fn at_least(full: usize) -> usize {
    if cases().len() >= FULL_CORPUS_CASES { full } else { 1 }
}

/// One case: a broker directory and the truth about it.
pub(crate) struct Case {
    root: PathBuf,
}

impl Case {
    /// The case's name.
    pub(crate) fn name(&self) -> &str {
        self.root.file_name().and_then(|name| name.to_str()).unwrap()
    }

    /// The broker's log directory.
    pub(crate) fn log(&self) -> PathBuf {
        self.root.join("log")
    }

    /// Whether the broker stopped cleanly, so that every file can be held to its rules.
    pub(crate) fn is_clean(&self) -> bool {
        self.log().join(".kafka_cleanshutdown").exists()
    }

    /// What Kafka's own dump tool printed, if it is stored.
    pub(crate) fn dump(&self) -> Option<String> {
        let plain = self.root.join("expected/dump.txt");
        if plain.exists() {
            return Some(String::from_utf8_lossy(&fs::read(plain).unwrap()).into_owned());
        }
        let packed = fs::read(self.root.join("expected/dump.txt.gz")).ok()?;
        let mut text = Vec::new();
        flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut text).unwrap();
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Every file of the log directory whose name ends so, with the recovered copies left out.
    pub(crate) fn files(&self, ending: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for path in list(&self.log()) {
            if path.is_dir() {
                found.extend(list(&path));
            } else {
                found.push(path);
            }
        }
        found.retain(|path| path.is_file() && name_of(path).ends_with(ending));
        found.sort();
        found
    }
}

/// Every file of the corpus whose name ends so, with its bytes.
pub(crate) fn corpus_files(ending: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = cases().into_iter().flat_map(|case| case.files(ending));
    paths.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

/// What the dump tool printed, cut at its "Dumping <file>" lines: the file's name under the log
/// directory and the lines after it.
pub(crate) fn dump_sections(dump: &str) -> Vec<(&str, Vec<&str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in dump.lines() {
        if let Some(file) = line.strip_prefix("Dumping ") {
            sections.push((file, Vec::new()));
        } else if let Some((_, lines)) = sections.last_mut() {
            lines.push(line);
        }
    }
    sections
}

/// The integer after a label such as `offset: ` in a line of the dump tool.
pub(crate) fn labelled(line: &str, label: &str) -> Option<i64> {
    let label = format!("{label}: ");
    let at = line
        .match_indices(&label)
        .find(|(at, _)| *at == 0 || line.as_bytes().get(at - 1) == Some(&b' '))?;
    let rest = line.get(at.0 + label.len()..)?;
    let end = rest.find(' ').unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

/// The last component of a path.
pub(crate) fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap()
}

fn list(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// A small repeatable random source (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    /// One of the choices.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}
