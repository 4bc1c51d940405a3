//! A map that is walked in the order of Java's `HashMap<Long, …>`.
//!
//! Kafka writes the entries of a snapshot as its map gives them, so the order is part of the file:
//!
//! 1. A key's place is its hash, `h ^ (h >>> 16)` of `h = key ^ (key >>> 32)` cut to 32 bits, modulo
//!    the size of the table.
//! 2. The table has 16 places and doubles when more than three quarters of it are keys. It never
//!    shrinks, also not when the map is cleared.
//! 3. Keys of one place stand in the order they came in. Doubling the table keeps it.
//!
//! Not followed: a place with more than eight keys becomes a tree in a table of 64 and more, which
//! may bring another key to the front. Producer ids are handed out in blocks of consecutive
//! numbers, so that places fill evenly.

use std::collections::HashMap;

const TABLE_MIN: u64 = 16;

/// Values by producer id, walked as Java would.
#[derive(Debug, Clone)]
pub(super) struct JavaMap<V> {
    values: HashMap<i64, (u64, V)>,
    table: u64,
    inserted: u64,
}

impl<V> Default for JavaMap<V> {
    fn default() -> Self {
        Self { values: HashMap::new(), table: TABLE_MIN, inserted: 0 }
    }
}

impl<V> JavaMap<V> {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn get(&self, key: i64) -> Option<&V> {
        self.values.get(&key).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, key: i64) -> Option<&mut V> {
        self.values.get_mut(&key).map(|(_, value)| value)
    }

    /// Sets the value of a key; a key that is there keeps its place.
    pub(super) fn insert(&mut self, key: i64, value: V) {
        if let Some((_, present)) = self.values.get_mut(&key) {
            *present = value;
            return;
        }
        self.inserted = self.inserted.wrapping_add(1);
        self.values.insert(key, (self.inserted, value));
        let count = u64::try_from(self.values.len()).unwrap_or(u64::MAX);
        if count > self.table / 4 * 3 {
            self.table = self.table.saturating_mul(2);
        }
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&V) -> bool) {
        self.values.retain(|_, (_, value)| keep(value));
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
    }

    /// The values in Java's order.
    pub(super) fn ordered(&self) -> Vec<&V> {
        let mut places: Vec<_> = self
            .values
            .iter()
            .map(|(key, (inserted, value))| (place(*key, self.table), *inserted, value))
            .collect();
        places.sort_unstable_by_key(|(place, inserted, _)| (*place, *inserted));
        places.into_iter().map(|(_, _, value)| value).collect()
    }
}

/// The place of a key in a table whose size is a power of two.
fn place(key: i64, table: u64) -> u64 {
    let bits = u64::from_ne_bytes(key.to_ne_bytes());
    let hash = (bits ^ (bits >> 32)) & 0xffff_ffff;
    (hash ^ (hash >> 16)) & table.wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(keys: impl IntoIterator<Item = i64>) -> Vec<i64> {
        let mut map = JavaMap::default();
        for key in keys {
            map.insert(key, key);
        }
        map.ordered().into_iter().copied().collect()
    }

    #[test]
    fn small_numbers_stand_in_their_own_order() {
        assert_eq!(order([12, 3, 7, 0]), [0, 3, 7, 12]);
    }

    #[test]
    fn the_table_doubles_after_three_quarters() {
        // Twelve keys fit into 16 places, where 16 shares a place with 0; the thirteenth doubles it.
        let twelve: Vec<i64> = (5..=15).chain([16]).collect();
        assert_eq!(order(twelve.iter().copied()).first(), Some(&16));
        let thirteen = twelve.into_iter().chain([4]);
        assert_eq!(order(thirteen).last(), Some(&16));
    }

    #[test]
    fn keys_of_one_place_keep_the_order_they_came_in() {
        assert_eq!(order([32, 0, 16]), [32, 0, 16]);
        assert_eq!(order([16, 32, 0]), [16, 32, 0]);
    }

    #[test]
    fn high_bits_are_folded_in_as_in_java() {
        // Long.hashCode(1L << 32) is 1; (1 << 16) is folded to 1 as well; −1 hashes to 0.
        assert_eq!(place(1 << 32, 16), 1);
        assert_eq!(place(1 << 16, 16), 1);
        assert_eq!(place(-1, 16), 0);
        assert_eq!(place(i64::MIN, 1 << 16), 0x8000);
        assert_eq!(place(0x1234_5678_9abc_def0, 1 << 20), {
            let hash: u32 = 0x1234_5678 ^ 0x9abc_def0;
            u64::from(hash ^ (hash >> 16)) & 0xf_ffff
        });
    }

    #[test]
    fn a_cleared_map_keeps_its_table() {
        let mut map = JavaMap::default();
        for key in 0..13 {
            map.insert(key, key);
        }
        map.clear();
        for key in [16, 1] {
            map.insert(key, key);
        }
        assert_eq!(map.ordered(), [&1, &16], "in a new map 16 would come first");
    }
}
