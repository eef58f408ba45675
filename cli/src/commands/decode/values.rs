// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Values of the options of `arctic decode`.

use arctic_gpu::card_file;

use crate::decode::engine::{FAMILIES, FLEX, Family, classes, names, of_card};

/// Returns the help of --class.
pub fn class_help() -> String {
    format!(
        "The engine class: {}. Of dumps and captures, all its engines are decoded; dwords, as those of its first engine",
        classes().join(", ")
    )
}

/// Returns `name` if a family has an engine or a class with this name; a family of which the input is may still lack it.
///
/// # Errors
///
/// With the accepted names.
pub fn engine(name: &str) -> Result<String, String> {
    if FAMILIES.iter().any(|family| family.engine(name).is_some()) {
        return Ok(name.to_owned());
    }
    Err(format!("expected a class ({}) or one of {}", classes().join(", "), names(FLEX).join(", ")))
}

/// Returns `name` if it is that of a class.
pub fn class(name: &str) -> Result<String, String> {
    match engine(name) {
        Ok(class) if !names(FLEX).contains(&name) => Ok(class),
        _ => Err(format!("expected one of {}; --engine gives one engine", classes().join(", "))),
    }
}

/// Returns the family of a card.
pub fn family(card: &str) -> Result<Family, String> {
    let model = card_file::load(card).map_err(|error| error.to_string())?;
    of_card(&model).ok_or_else(|| format!("no tables are known for the card {card}"))
}

/// Parses an address in hexadecimal.
pub fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text).replace('_', "");
    match u64::from_str_radix(&digits, 16) {
        Ok(address) if address < 1 << 48 => Ok(address),
        _ => Err("expected an address of 48 bits in hexadecimal, like 0x100000".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_more_than_48_bits_is_rejected() {
        assert_eq!(address("0xffff_ffff_ffff"), Ok(0xffff_ffff_ffff));
        assert!(address("0x1_0000_0000_0000").is_err() && address("ten").is_err());
    }

    #[test]
    fn unknown_engine_is_rejected_with_the_valid_names() {
        assert_eq!(engine("compute").unwrap(), "compute");
        assert!(engine("rcs9").unwrap_err().contains("rcs0, bcs0"));
        assert_eq!(class("compute").unwrap(), "compute");
        assert!(class("rcs0").unwrap_err().contains("video-enhance"));
    }
}
