//! The known name that a mistyped one was meant to be.

/// The nearest of the known names, when one is near enough to be worth offering.
pub(super) fn nearest(
    name: &str,
    known: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    let name: String = name.trim().to_lowercase().replace(['_', '-'], ".");
    // Longer names may hold more slips; beyond a third they are different words.
    let allowed = (name.len() / 5).clamp(1, 4);
    // A name of absurd length is near nothing, and not worth a table.
    if name.len() > 100 {
        return None;
    }
    known
        .map(|candidate| (distance(&name, candidate), candidate))
        .filter(|(slips, _)| *slips <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, remove or replace to make one text of the other.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        let mut cells = row.iter_mut();
        if let Some(first) = cells.next() {
            *first = left;
        }
        for (cell, other) in cells.zip(to.chars()) {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = *cell;
            left = replaced.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_slips() {
        for (from, to, slips) in
            [("", "", 0), ("a", "", 1), ("", "abc", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            assert_eq!(distance(from, to), slips, "{from} {to}");
        }
    }

    #[test]
    fn a_slip_finds_its_name_and_another_word_does_not() {
        let known = || ["segment.bytes", "segment.ms", "fsync"].into_iter();
        assert_eq!(nearest("segment_bytes", known()), Some("segment.bytes"));
        assert_eq!(nearest("Segment.Byte", known()), Some("segment.bytes"));
        assert_eq!(nearest("fsynch", known()), Some("fsync"));
        assert_eq!(nearest("listeners", known()), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), known()), None);
    }
}
