//! A column of byte strings: the place that most of a scan's bytes go to.

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::{BinaryArray, StringArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use kafkaseg_core::Result;
use kafkaseg_core::record::{FieldSpan, RecordSpan};

use crate::columns::arrow_error;
use crate::pool::{NumberColumn, Spare};

/// Short strings are copied in pieces of these sizes: a few instructions instead of a call. What is
/// copied too much is overwritten by the next string, or never shown.
pub(crate) const NARROW: usize = 32;
pub(crate) const WIDE: usize = 128;

/// Bytes with i32 offsets and, from the first null on, a validity bitmap.
pub(crate) struct BytesColumn {
    /// Empty before the first row, then one more than there are rows.
    offsets: NumberColumn<i32>,
    /// The strings, in the first `used` bytes. What follows has arbitrary content, so that a buffer
    /// that was used before needs no clearing.
    data: Vec<u8>,
    used: usize,
    /// Bytes of the batch before, to size the buffer of this one.
    used_before: usize,
    spare: Spare<u8>,
    validity: Option<BooleanBufferBuilder>,
}

impl BytesColumn {
    /// Keeps no spare buffer larger than `keep_bytes`.
    pub(crate) fn new(keep_bytes: usize) -> Self {
        Self {
            offsets: NumberColumn::new(keep_bytes),
            data: Vec::new(),
            used: 0,
            used_before: 0,
            spare: Spare::new(keep_bytes),
            validity: None,
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Bytes of the strings.
    #[inline]
    pub(crate) fn data_bytes(&self) -> usize {
        self.used
    }

    /// Bytes of strings and offsets.
    pub(crate) fn bytes(&self) -> usize {
        self.used + self.offsets.len() * 4
    }

    pub(crate) fn push(&mut self, bytes: Option<&[u8]>) {
        self.begin();
        if let Some(bytes) = bytes {
            self.make_room(bytes.len());
            let end = self.used + bytes.len();
            if let Some(target) = self.data.get_mut(self.used..end) {
                target.copy_from_slice(bytes);
            }
            self.used = end;
            if let Some(validity) = &mut self.validity {
                validity.append(true);
            }
        } else {
            let rows = self.rows();
            note_null(&mut self.validity, rows);
        }
        self.offsets.push(offset_of(self.used));
    }

    /// Appends one field of each record.
    #[inline]
    pub(crate) fn extend(
        &mut self,
        payload: &[u8],
        spans: &[RecordSpan],
        field: impl Fn(&RecordSpan) -> FieldSpan,
    ) {
        let (mut bytes, mut nulls) = (0, 0);
        for span in spans {
            match field(span).bytes() {
                Some(length) => bytes += length,
                None => nulls += 1,
            }
        }
        if nulls > 0 {
            for span in spans {
                self.push(field(span).slice(payload));
            }
            return;
        }
        self.begin();
        self.make_room(bytes);
        let data = self.data.as_mut_slice();
        let mut used = self.used;
        for (offset, span) in self.offsets.append(spans.len()).iter_mut().zip(spans) {
            let field = field(span);
            let length = field.bytes().unwrap_or(0);
            copy(data, used, payload, field.at(), length);
            used += length;
            *offset = offset_of(used);
        }
        self.used = used;
        if let Some(validity) = &mut self.validity {
            validity.append_n(spans.len(), true);
        }
    }

    /// Room for `rows` rows of `bytes` bytes together: where the last string ends, the bytes that
    /// follow it, and the ends of the rows, for the caller to set. [`Self::end_rows`] must follow.
    #[inline]
    pub(crate) fn begin_rows(&mut self, rows: usize, bytes: usize) -> (i32, &mut [u8], &mut [i32]) {
        self.begin();
        self.make_room(bytes);
        let room = self.data.get_mut(self.used..).unwrap_or_default();
        (offset_of(self.used), room, self.offsets.append(rows))
    }

    /// Keeps `taken` of the last `rows` rows that were begun.
    #[inline]
    pub(crate) fn end_rows(&mut self, rows: usize, taken: usize) {
        self.offsets.truncate(self.offsets.len() - (rows - taken));
        self.used = self.offsets.last().map_or(0, |end| usize::try_from(end).unwrap_or(0));
        if let Some(validity) = &mut self.validity {
            validity.append_n(taken, true);
        }
    }

    /// The first row of a batch asks for the spare buffer, see [`NumberColumn`].
    #[inline]
    fn begin(&mut self) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
            self.data = self.spare.take();
            if self.data.len() < self.used_before {
                self.data = vec![0; self.used_before + self.used_before / 8];
            }
        }
    }

    /// Makes room for strings of `bytes` bytes together, and for what copying them writes too much.
    #[inline]
    fn make_room(&mut self, bytes: usize) {
        if self.data.len() - self.used < bytes + WIDE {
            self.grow(self.used + bytes + WIDE);
        }
    }

    #[cold]
    fn grow(&mut self, least: usize) {
        let target = least.max(self.data.len() + self.data.len() / 2);
        self.data.reserve_exact(target - self.data.len());
        self.data.resize(target, 0);
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        self.offsets.truncate(rows + 1);
        self.used = self.offsets.last().map_or(0, |end| usize::try_from(end).unwrap_or(0));
        if let Some(validity) = &mut self.validity {
            validity.truncate(rows);
        }
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, Buffer, Option<NullBuffer>) {
        self.begin();
        self.used_before = std::mem::take(&mut self.used);
        let data = self.spare.lend(std::mem::take(&mut self.data));
        let nulls = self.validity.take().map(|mut validity| NullBuffer::new(validity.finish()));
        let data = data.slice_with_length(0, self.used_before);
        (OffsetBuffer::new(self.offsets.take()), data, nulls)
    }

    pub(crate) fn finish_binary(&mut self) -> Result<BinaryArray> {
        let (offsets, data, nulls) = self.take();
        BinaryArray::try_new(offsets, data, nulls).map_err(arrow_error)
    }

    pub(crate) fn finish_text(&mut self) -> Result<StringArray> {
        let (offsets, data, nulls) = self.take();
        StringArray::try_new(offsets, data, nulls).map_err(arrow_error)
    }
}

/// Copies `length` bytes at `at` of `payload` to `used` of `data`, where [`WIDE`] more have room.
#[inline]
fn copy(data: &mut [u8], used: usize, payload: &[u8], at: usize, length: usize) {
    let is_done = (length <= NARROW && copy_piece::<NARROW>(data, used, payload, at).is_some())
        || (length <= WIDE && copy_piece::<WIDE>(data, used, payload, at).is_some());
    if is_done {
        return;
    }
    let target = data.get_mut(used..used + length);
    if let (Some(target), Some(source)) = (target, payload.get(at..at + length)) {
        target.copy_from_slice(source);
    }
}

/// Copies `N` bytes, if so many are there.
#[inline]
fn copy_piece<const N: usize>(
    data: &mut [u8],
    used: usize,
    payload: &[u8],
    at: usize,
) -> Option<()> {
    let source = payload.get(at..)?.first_chunk::<N>()?;
    *data.get_mut(used..)?.first_chunk_mut::<N>()? = *source;
    Some(())
}

/// The reader finishes a batch long before 2 GiB, see `Columns::is_full`.
#[inline]
fn offset_of(used: usize) -> i32 {
    i32::try_from(used).unwrap_or(i32::MAX)
}

/// Appends a null; the first makes the bitmap, in which all rows before it are valid.
#[cold]
fn note_null(validity: &mut Option<BooleanBufferBuilder>, rows: usize) {
    validity
        .get_or_insert_with(|| {
            let mut validity = BooleanBufferBuilder::new(rows + 1024);
            validity.append_n(rows, true);
            validity
        })
        .append(false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use kafkaseg_core::record::{BatchBuilder, BatchSpec, BatchView, Records};

    /// A batch's payload and spans, with values of these lengths; negative is null.
    fn batch_of(lengths: &[i32], fill: u8) -> (Vec<u8>, Vec<RecordSpan>) {
        let mut builder = BatchBuilder::new(BatchSpec::at(0)).unwrap();
        for (length, fill) in lengths.iter().zip((0..=255).cycle().skip(usize::from(fill))) {
            let value = usize::try_from(*length).ok().map(|length| vec![fill; length]);
            builder.push(0, None, value.as_deref(), []).unwrap();
        }
        let mut bytes = Vec::new();
        builder.finish(&mut bytes).unwrap();
        let batch = BatchView::parse(&bytes).unwrap();
        let mut spans = vec![RecordSpan::default(); lengths.len()];
        let taken = Records::new(batch.header(), batch.payload()).take_spans(&mut spans).unwrap();
        assert_eq!(taken, lengths.len());
        (batch.payload().to_vec(), spans)
    }

    fn check(array: &BinaryArray, lengths: &[i32], fill: u8) {
        assert_eq!(array.len(), lengths.len());
        for (row, (length, fill)) in
            lengths.iter().zip((0..=255).cycle().skip(usize::from(fill))).enumerate()
        {
            match usize::try_from(*length) {
                Ok(length) => assert_eq!(array.value(row), vec![fill; length], "row {row}"),
                Err(_) => assert!(array.is_null(row), "row {row}"),
            }
        }
    }

    #[test]
    fn values_of_every_length_survive_and_batches_in_use_stay_as_they_are() {
        let every: Vec<i32> = (0..300).chain([5000, 0, 1, 32, 33, 128, 129]).collect();
        let holes: Vec<i32> =
            every.iter().map(|length| if length % 5 == 0 { -1 } else { *length }).collect();
        let mut column = BytesColumn::new(1 << 20);
        let mut kept: Option<(BinaryArray, Vec<i32>, u8)> = None;
        for round in 0..8 {
            let lengths = if round % 3 == 2 { &holes } else { &every };
            let (payload, spans) = batch_of(lengths, round);
            for spans in spans.chunks(64) {
                column.extend(&payload, spans, RecordSpan::value_span);
            }
            assert_eq!(column.rows(), lengths.len());
            let array = column.finish_binary().unwrap();
            check(&array, lengths, round);
            if let Some((array, lengths, round)) = kept.replace((array, lengths.clone(), round)) {
                check(&array, &lengths, round);
            }
        }
    }

    #[test]
    fn rows_taken_back_leave_no_trace() {
        let lengths = [10, 200, -1, 3];
        let (payload, spans) = batch_of(&lengths, 1);
        let mut column = BytesColumn::new(1 << 20);
        column.extend(&payload, &spans[..2], RecordSpan::value_span);
        column.extend(&payload, &spans[2..], RecordSpan::value_span);
        column.truncate(2);
        column.extend(&payload, &spans[2..], RecordSpan::value_span);
        check(&column.finish_binary().unwrap(), &lengths, 1);
        assert_eq!(column.finish_binary().unwrap().len(), 0);
    }
}
