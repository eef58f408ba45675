// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Selection of a mutant: by the environment in a build with the feature `mutants`, never in another.

use crate::Item;

/// The environment variable that selects a mutant, as `V8-089/1`.
pub const VARIABLE: &str = "ARCTIC_MUTANT";

/// Returns whether mutant `number` of `item` is selected.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub const fn selected(_item: Item, _number: u8) -> bool {
    false
}

/// Returns whether mutant `number` of `item` is selected. The environment is read once.
#[cfg(feature = "mutants")]
pub fn selected(item: Item, number: u8) -> bool {
    static SELECTED: std::sync::OnceLock<Option<(u8, u16, u8)>> = std::sync::OnceLock::new();
    let selected = SELECTED.get_or_init(|| {
        let text = std::env::var(VARIABLE).ok()?;
        Some(parse(&text).unwrap_or_else(|| panic!("{VARIABLE}={text} is not of the form V8-089/1")))
    });
    let (volume, of) = item.parts();
    *selected == Some((volume, of, number))
}

/// Parses `V8-089/1`: volume, item, mutant.
#[cfg(any(feature = "mutants", test))]
fn parse(text: &str) -> Option<(u8, u16, u8)> {
    let (item, number) = text.strip_prefix('V')?.split_once('/')?;
    let (volume, of) = item.split_once('-')?;
    Some((volume.parse().ok()?, of.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutant_is_named_by_item_and_number() {
        assert_eq!(parse("V8-089/1"), Some((8, 89, 1)));
        assert_eq!(parse("V13-004/12"), Some((13, 4, 12)));
        assert_eq!(["V8-089", "8-089/1", "V8/1", ""].map(parse), [None; 4]);
    }
}
