//! A small repeatable random source (splitmix64), and the seed of a run.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    pub fn flip(&mut self) -> bool {
        self.next() & 1 == 1
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

/// The seed of this run: the environment's, or one of the clock's.
pub fn seed() -> u64 {
    let chosen = std::env::var("KAFKASEG_CRASH_SEED").ok();
    let chosen = chosen.map(|seed| seed.parse().expect("KAFKASEG_CRASH_SEED is a number"));
    chosen.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        u64::from(now.subsec_nanos())
    })
}

/// Whether everything is to be tried, and not a sample.
pub fn is_long() -> bool {
    std::env::var("KAFKASEG_LONG").is_ok_and(|value| value == "1")
}
