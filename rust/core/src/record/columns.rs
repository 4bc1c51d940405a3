//! Records as borrowed columns, in the layout of Arrow's arrays: one buffer of bytes per column and
//! where each row ends in it.

use super::fault::Faults;
use super::{RecordFault, Rules, TimestampType};
use crate::error::{Error, Result};

/// Where the rows of a column begin and end: one number more than there are rows.
#[derive(Debug, Clone, Copy)]
pub enum Offsets<'a> {
    /// 32 bits wide.
    Short(&'a [i32]),
    /// 64 bits wide.
    Long(&'a [i64]),
}

impl Offsets<'_> {
    /// Rows between these offsets.
    pub fn rows(&self) -> usize {
        let count = match self {
            Self::Short(offsets) => offsets.len(),
            Self::Long(offsets) => offsets.len(),
        };
        count.saturating_sub(1)
    }

    /// Where a row begins and ends. Offsets that were checked are not negative.
    #[inline]
    pub fn range(&self, row: usize) -> Option<(usize, usize)> {
        match self {
            Self::Short(offsets) => {
                let &[start, end, ..] = offsets.get(row..)? else { return None };
                Some((usize::try_from(start).ok()?, usize::try_from(end).ok()?))
            }
            Self::Long(offsets) => {
                let &[start, end, ..] = offsets.get(row..)? else { return None };
                Some((usize::try_from(start).ok()?, usize::try_from(end).ok()?))
            }
        }
    }

    /// Checks that the offsets never fall and stay within so many items.
    fn check(&self, items: usize) -> Result<()> {
        let (first, last, rising) = match self {
            Self::Short(offsets) => (
                offsets.first().map(|first| i64::from(*first)),
                offsets.last().map(|last| i64::from(*last)),
                offsets.is_sorted(),
            ),
            Self::Long(offsets) => {
                (offsets.first().copied(), offsets.last().copied(), offsets.is_sorted())
            }
        };
        let (Some(first), Some(last)) = (first, last) else {
            return Err(invalid("a column has at least one offset"));
        };
        let inside = usize::try_from(last).is_ok_and(|last| last <= items);
        if first < 0 || !rising || !inside {
            return Err(invalid("the offsets of a column leave its data"));
        }
        Ok(())
    }
}

/// Which rows are there: bits from the lowest of each byte on, 1 = there.
#[derive(Debug, Clone, Copy)]
pub struct Validity<'a> {
    bits: &'a [u8],
    start: usize,
}

impl<'a> Validity<'a> {
    /// The bits from a bit on.
    pub fn new(bits: &'a [u8], start: usize) -> Self {
        Self { bits, start }
    }

    /// Whether a row is there.
    #[inline]
    fn is_set(&self, row: usize) -> bool {
        let bit = self.start + row;
        self.bits.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }

    fn covers(&self, rows: usize) -> bool {
        let bits = self.start.checked_add(rows);
        bits.is_some_and(|bits| bits.div_ceil(8) <= self.bits.len())
    }
}

/// A column of byte strings, some of them null.
#[derive(Debug, Clone, Copy)]
pub struct BytesColumn<'a> {
    offsets: Offsets<'a>,
    data: &'a [u8],
    validity: Option<Validity<'a>>,
}

impl<'a> BytesColumn<'a> {
    /// A column whose parts fit each other; without `validity` nothing is null.
    pub fn new(
        offsets: Offsets<'a>,
        data: &'a [u8],
        validity: Option<Validity<'a>>,
    ) -> Result<Self> {
        offsets.check(data.len())?;
        if validity.is_some_and(|validity| !validity.covers(offsets.rows())) {
            return Err(invalid("the validity of a column is shorter than the column"));
        }
        Ok(Self { offsets, data, validity })
    }

    /// Rows of the column.
    pub fn rows(&self) -> usize {
        self.offsets.rows()
    }

    /// The bytes of a row, if it is there and not null.
    #[inline]
    pub fn get(&self, row: usize) -> Option<&'a [u8]> {
        if self.is_null(row) {
            return None;
        }
        let (start, end) = self.offsets.range(row)?;
        self.data.get(start..end)
    }

    #[inline]
    fn is_null(&self, row: usize) -> bool {
        self.validity.is_some_and(|validity| !validity.is_set(row))
    }
}

/// The times of the records.
#[derive(Debug, Clone, Copy)]
pub enum Timestamps<'a> {
    /// One for each.
    Each(&'a [i64]),
    /// One for all.
    All(i64),
}

/// The headers of the records: lists of names and values.
#[derive(Debug, Clone, Copy)]
pub struct HeadersColumn<'a> {
    lists: Offsets<'a>,
    names: BytesColumn<'a>,
    values: BytesColumn<'a>,
}

impl<'a> HeadersColumn<'a> {
    /// Headers whose parts fit each other. A name cannot be null.
    pub fn new(
        lists: Offsets<'a>,
        names: BytesColumn<'a>,
        values: BytesColumn<'a>,
    ) -> Result<Self> {
        lists.check(names.rows())?;
        if names.rows() != values.rows() {
            return Err(invalid("headers have as many values as names"));
        }
        if (0..names.rows()).any(|row| names.is_null(row)) {
            return Err(invalid("the name of a header is null"));
        }
        Ok(Self { lists, names, values })
    }

    /// The headers of a row, in their order.
    pub(super) fn get(
        &self,
        row: usize,
    ) -> impl Iterator<Item = super::Header<'a>> + Clone + use<'a> {
        let (names, values) = (self.names, self.values);
        let (start, end) = self.lists.range(row).unwrap_or((0, 0));
        (start..end).map(move |header| super::Header {
            key: names.get(header).unwrap_or_default(),
            value: values.get(header),
        })
    }
}

/// Records by column. A column that is not there is null, or empty, in every record.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    rows: usize,
    keys: Option<BytesColumn<'a>>,
    values: Option<BytesColumn<'a>>,
    timestamps: Timestamps<'a>,
    headers: Option<HeadersColumn<'a>>,
}

impl<'a> Columns<'a> {
    /// So many records without keys, values and headers.
    pub fn new(rows: usize, timestamps: Timestamps<'a>) -> Result<Self> {
        if let Timestamps::Each(times) = timestamps
            && times.len() != rows
        {
            return Err(uneven("timestamps", times.len(), rows));
        }
        Ok(Self { rows, keys: None, values: None, timestamps, headers: None })
    }

    /// With these keys.
    pub fn with_keys(self, keys: BytesColumn<'a>) -> Result<Self> {
        self.check_rows("keys", keys.rows())?;
        Ok(Self { keys: Some(keys), ..self })
    }

    /// With these values.
    pub fn with_values(self, values: BytesColumn<'a>) -> Result<Self> {
        self.check_rows("values", values.rows())?;
        Ok(Self { values: Some(values), ..self })
    }

    /// With these headers.
    pub fn with_headers(self, headers: HeadersColumn<'a>) -> Result<Self> {
        self.check_rows("headers", headers.lists.rows())?;
        Ok(Self { headers: Some(headers), ..self })
    }

    fn check_rows(&self, what: &str, rows: usize) -> Result<()> {
        if rows == self.rows { Ok(()) } else { Err(uneven(what, rows, self.rows)) }
    }

    /// Number of records.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The key of a record.
    #[inline]
    pub fn key(&self, row: usize) -> Option<&'a [u8]> {
        self.keys.as_ref()?.get(row)
    }

    /// The value of a record.
    #[inline]
    pub fn value(&self, row: usize) -> Option<&'a [u8]> {
        self.values.as_ref()?.get(row)
    }

    /// The time of a record.
    #[inline]
    pub fn timestamp(&self, row: usize) -> i64 {
        match self.timestamps {
            Timestamps::Each(times) => times.get(row).copied().unwrap_or(-1),
            Timestamps::All(time) => time,
        }
    }

    #[inline]
    pub(super) fn headers(&self) -> Option<&HeadersColumn<'a>> {
        self.headers.as_ref()
    }

    /// Checks every record against the rules of a topic, as a batch that comes ready-made is
    /// checked: all at once where the extremes settle it, else one by one.
    pub fn check(&self, rules: &Rules, now_ms: i64) -> Result<()> {
        let times = rules.times(now_ms);
        let extremes = match self.timestamps {
            Timestamps::All(time) => (time, time),
            Timestamps::Each(each) => (
                each.iter().copied().min().unwrap_or(now_ms),
                each.iter().copied().max().unwrap_or(now_ms),
            ),
        };
        let may_lack_keys = self.keys.is_none_or(|keys| keys.validity.is_some());
        let create = TimestampType::CreateTime;
        if rules.surely_allow(times, create, extremes, may_lack_keys) {
            return Ok(());
        }
        let mut faults = Faults::default();
        for row in 0..self.rows {
            let has_key = self.keys.is_some_and(|keys| !keys.is_null(row));
            let fault = if rules.compacted && !has_key {
                Some(RecordFault::NullKey)
            } else {
                rules.fault(times, create, self.timestamp(row), Some(&[]))
            };
            if let Some(fault) = fault {
                faults.add(row, fault);
            }
        }
        faults.refuse()
    }
}

fn invalid(what: &str) -> Error {
    Error::Invalid(what.to_owned())
}

fn uneven(what: &str, found: usize, rows: usize) -> Error {
    Error::Invalid(format!("{found} {what} for {rows} records"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000;

    #[test]
    fn rows_are_slices_and_nulls_are_not_empty() {
        let offsets = [2, 4, 4, 4, 7];
        let bits = [0b1101_0000, 0b0000_0000];
        let column =
            BytesColumn::new(Offsets::Short(&offsets), b"..abcde", Some(Validity::new(&bits, 4)))
                .unwrap();
        let got = (0..4).map(|row| column.get(row)).collect::<Vec<_>>();
        assert_eq!(got, [Some(&b"ab"[..]), None, Some(b""), Some(b"cde")]);
        assert_eq!(column.rows(), 4);
        assert_eq!(column.get(4), None);
        let long = BytesColumn::new(Offsets::Long(&[0, 1, 7]), b"..abcde", None).unwrap();
        assert_eq!(long.get(1), Some(&b".abcde"[..]));
    }

    #[test]
    fn offsets_that_fall_or_leave_the_data_are_refused() {
        for offsets in [&[][..], &[-1, 2], &[0, 4], &[2, 1], &[0, 3, 2], &[4, 4]] {
            assert!(BytesColumn::new(Offsets::Short(offsets), b"abc", None).is_err());
            let wide = offsets.iter().map(|offset| i64::from(*offset)).collect::<Vec<_>>();
            assert!(BytesColumn::new(Offsets::Long(&wide), b"abc", None).is_err());
        }
        assert!(BytesColumn::new(Offsets::Long(&[0, i64::MAX]), b"abc", None).is_err());
    }

    #[test]
    fn validity_must_cover_the_rows() {
        let offsets = [0; 10];
        let of = |bits, start| {
            BytesColumn::new(Offsets::Short(&offsets), b"", Some(Validity::new(bits, start)))
        };
        assert!(of(&[0xff, 0xff], 7).is_ok());
        assert!(of(&[0xff, 0xff], 8).is_err());
        assert!(of(&[0xff], 0).is_err());
        assert!(of(&[0xff], usize::MAX).is_err());
    }

    #[test]
    fn columns_are_equally_long() {
        let two = BytesColumn::new(Offsets::Short(&[0, 0, 0]), b"", None).unwrap();
        assert!(Columns::new(3, Timestamps::Each(&[1, 2])).is_err());
        let columns = Columns::new(3, Timestamps::All(0)).unwrap();
        assert!(columns.with_keys(two).is_err());
        assert!(columns.with_values(two).is_err());
        let headers = HeadersColumn::new(Offsets::Short(&[0, 1, 2]), two, two).unwrap();
        assert!(columns.with_headers(headers).is_err());
        assert!(Columns::new(2, Timestamps::All(0)).unwrap().with_headers(headers).is_ok());
    }

    #[test]
    fn the_name_of_a_header_is_not_null() {
        let (offsets, bits) = ([0, 0, 0], [0b01]);
        let validity = Some(Validity::new(&bits, 0));
        let holed = BytesColumn::new(Offsets::Short(&offsets), b"", validity).unwrap();
        let full = BytesColumn::new(Offsets::Short(&offsets), b"", None).unwrap();
        let lists = Offsets::Short(&[0, 2]);
        assert!(HeadersColumn::new(lists, holed, full).is_err());
        assert!(HeadersColumn::new(lists, full, holed).is_ok());
        assert!(HeadersColumn::new(Offsets::Short(&[0, 3]), full, full).is_err());
    }

    #[test]
    fn the_rules_of_a_topic_hold_for_columns() {
        let compacted = Rules { compacted: true, ..Rules::default() };
        let (offsets, bits) = ([0; 4], [0b101]);
        let holed =
            BytesColumn::new(Offsets::Short(&offsets), b"", Some(Validity::new(&bits, 0))).unwrap();
        let columns = Columns::new(3, Timestamps::Each(&[NOW, -1, NOW])).unwrap();
        let keyed = columns.with_keys(holed).unwrap();
        assert!(keyed.check(&Rules::default(), NOW).is_ok());
        let Err(Error::RejectedRecords { code, records, .. }) = keyed.check(&compacted, NOW) else {
            panic!("a key is missing")
        };
        assert_eq!((code, records.len(), records[0].index), ("INVALID_RECORD", 1, 1));
        assert!(columns.check(&compacted, NOW).is_err());
        let late = Columns::new(2, Timestamps::Each(&[NOW, NOW + 3_600_001])).unwrap();
        let refusal = late.check(&Rules::default(), NOW).unwrap_err();
        assert_eq!(refusal.rejection(), Some("INVALID_TIMESTAMP"));
        let stamping = Rules { timestamp_type: TimestampType::LogAppendTime, ..Rules::default() };
        assert!(late.check(&stamping, NOW).is_ok());
    }
}
