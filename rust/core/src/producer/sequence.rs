//! Sequence numbers, which count a producer's records and begin again at 0 after `i32::MAX`.

/// The sequence of a record. Negative is "none".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequence(pub i32);

impl Sequence {
    /// No sequence at all.
    pub const NONE: Self = Self(-1);

    /// Whether this one comes right after another. After none comes 0.
    pub fn follows(self, last: Self) -> bool {
        match last.0.checked_add(1) {
            Some(next) => self.0 == next,
            None => self.0 == 0,
        }
    }

    /// The sequence so many records earlier.
    #[must_use]
    pub fn back(self, records: i32) -> Self {
        let space = i64::from(i32::MAX) + 1;
        let earlier = (i64::from(self.0) - i64::from(records)).rem_euclid(space);
        Self(i32::try_from(earlier).unwrap_or(-1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_space_wraps_after_its_largest_number() {
        assert!(Sequence(0).follows(Sequence(i32::MAX)));
        assert!(Sequence(0).follows(Sequence::NONE));
        assert!(Sequence(i32::MAX).follows(Sequence(i32::MAX - 1)));
        assert!(!Sequence(1).follows(Sequence(i32::MAX)));
        assert!(!Sequence(5).follows(Sequence(5)));
        assert_eq!(Sequence(1).back(3), Sequence(i32::MAX - 1));
        assert_eq!(Sequence(3).back(3), Sequence(0));
        assert_eq!(Sequence(i32::MAX).back(i32::MAX), Sequence(0));
        assert_eq!(Sequence(0).back(i32::MAX), Sequence(1));
    }
}
