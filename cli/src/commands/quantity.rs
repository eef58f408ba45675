// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Parsers of arguments that are whole numbers, with errors that name the unit and the range.

use std::ops::RangeInclusive;

/// Returns a parser of a whole number of `unit` (a plural: `MiB`, `seconds`) in `range`.
///
/// # Panics
/// The parser panics if a number of the range is not one of `T`.
pub fn quantity<T>(
    unit: &'static str,
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: TryFrom<u64, Error: std::fmt::Debug> + 'static,
{
    move |text| match text.parse::<u64>() {
        Ok(number) if range.contains(&number) => Ok(T::try_from(number).expect("the range is one of the type")),
        _ => Err(expected(unit, &range)),
    }
}

/// What is accepted. An upper limit that no user reaches is that of the type, and is not named.
fn expected(unit: &str, range: &RangeInclusive<u64>) -> String {
    let least = range.start();
    match *range.end() {
        end if end >= u32::MAX.into() => format!("expected a whole number of {unit}, at least {least}"),
        end => format!("expected a whole number of {unit}, {least} to {end}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_unit_and_the_range() {
        let memory = quantity::<u32>("MiB", 320..=u32::MAX.into());
        assert_eq!((memory("320"), memory("4294967295")), (Ok(320), Ok(u32::MAX)));
        for wrong in ["4G", "10", "", "-1", "4294967296", "1.5"] {
            assert_eq!(memory(wrong), Err("expected a whole number of MiB, at least 320".into()), "{wrong}");
        }
        let vfs = quantity::<u8>("VFs", 1..=63);
        assert_eq!(vfs("63"), Ok(63));
        assert_eq!(vfs("64"), Err("expected a whole number of VFs, 1 to 63".into()));
    }
}
