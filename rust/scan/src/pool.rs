//! Buffers that come back when the consumer of a batch lets go of it.
//!
//! Fresh memory is dear: the kernel clears each page at its first touch, and a large buffer is given
//! back to it whole when it is freed. A buffer that was lent out in a batch is written again instead,
//! and is in the cache still.
//!
//! Each column keeps at most one spare buffer, none much larger than a batch should be, and none once
//! the scan is gone.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer, ToByteSlice};
use bytes::Bytes;

/// The place of a column's spare buffer.
#[derive(Debug)]
pub(crate) struct Spare<T> {
    place: Arc<Mutex<Vec<T>>>,
    keep_bytes: usize,
}

impl<T: ArrowNativeType> Spare<T> {
    /// Keeps no buffer larger than `keep_bytes`.
    pub(crate) fn new(keep_bytes: usize) -> Self {
        Self { place: Arc::default(), keep_bytes }
    }

    /// The spare buffer, with arbitrary content; an empty one when there is none.
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.place.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The values as an Arrow buffer. Their memory becomes the spare one when the last user of it is
    /// gone.
    pub(crate) fn lend(&self, values: Vec<T>) -> Buffer {
        let is_kept = values.capacity().saturating_mul(size_of::<T>()) <= self.keep_bytes;
        let home = if is_kept { Arc::downgrade(&self.place) } else { Weak::new() };
        Buffer::from(Bytes::from_owner(Lent { values, home }))
    }
}

/// A buffer in the hands of a consumer.
struct Lent<T> {
    values: Vec<T>,
    home: Weak<Mutex<Vec<T>>>,
}

impl<T: ArrowNativeType> AsRef<[u8]> for Lent<T> {
    fn as_ref(&self) -> &[u8] {
        self.values.as_slice().to_byte_slice()
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        let Some(place) = self.home.upgrade() else { return };
        // Whoever holds the lock may be a thread that a fork did not take along: never wait for it.
        let Ok(mut spare) = place.try_lock() else { return };
        if spare.capacity() < self.values.capacity() {
            std::mem::swap(&mut *spare, &mut self.values);
        }
    }
}

/// Numbers of one column, without nulls.
#[derive(Debug)]
pub(crate) struct NumberColumn<T> {
    values: Vec<T>,
    spare: Spare<T>,
    /// Values of the batch before, to size the buffer of this one.
    rows_before: usize,
}

impl<T: ArrowNativeType> NumberColumn<T> {
    pub(crate) fn new(keep_bytes: usize) -> Self {
        Self { values: Vec::new(), spare: Spare::new(keep_bytes), rows_before: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        self.begin();
        self.values.push(value);
    }

    #[inline]
    pub(crate) fn extend(&mut self, values: impl Iterator<Item = T>) {
        self.begin();
        self.values.extend(values);
    }

    /// Appends `rows` values, for the caller to set.
    #[inline]
    pub(crate) fn append(&mut self, rows: usize) -> &mut [T] {
        self.begin();
        let start = self.values.len();
        self.values.resize(start + rows, T::default());
        self.values.get_mut(start..).unwrap_or_default()
    }

    /// The first value of a batch asks for the spare buffer: by then the consumer has often dropped
    /// the batch before.
    #[inline]
    fn begin(&mut self) {
        if self.values.capacity() == 0 {
            self.values = self.spare.take();
            self.values.clear();
            if self.values.capacity() < self.rows_before {
                self.values.reserve(self.rows_before + self.rows_before / 8);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(crate) fn last(&self) -> Option<T> {
        self.values.last().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows);
    }

    /// The values so far; the column starts anew.
    pub(crate) fn take(&mut self) -> ScalarBuffer<T> {
        let values = std::mem::take(&mut self.values);
        self.rows_before = values.len();
        let rows = values.len();
        ScalarBuffer::new(self.spare.lend(values), 0, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer_of(spare: &Spare<i64>, rows: usize) -> Buffer {
        spare.lend(vec![7; rows])
    }

    #[test]
    fn a_dropped_buffer_is_the_next_one() {
        let spare = Spare::new(1 << 20);
        let lent = buffer_of(&spare, 100);
        let address = lent.as_ptr().addr();
        assert_eq!(spare.take().capacity(), 0, "it is still in use");
        let clone = lent.clone();
        drop(lent);
        assert_eq!(spare.take().capacity(), 0, "a clone is still in use");
        drop(clone);
        let again = spare.take();
        assert_eq!((again.as_ptr().addr(), again.capacity()), (address, 100));
    }

    #[test]
    fn one_buffer_is_kept_and_no_giant() {
        let spare = Spare::new(1000);
        for rows in [10, 20, 15, 126] {
            drop(buffer_of(&spare, rows));
        }
        assert_eq!(spare.take().capacity(), 20);
        assert_eq!(spare.take().capacity(), 0);
    }

    #[test]
    fn a_buffer_outlives_its_column() {
        let mut column = NumberColumn::new(1000);
        column.extend([1_i64, 2, 3].into_iter());
        let values = column.take();
        drop(column);
        assert_eq!(values.as_ref(), [1, 2, 3]);
    }
}
