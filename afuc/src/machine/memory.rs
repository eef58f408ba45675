// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Memory of a machine.

use std::collections::HashMap;

use super::bus::Access;
use super::fault::FaultKind;

const PAGE_WORDS: usize = 1024;
type Page = [u32; PAGE_WORDS];

/// Memory in pages of 4 KiB. A page that is not mapped cannot be accessed, unless `map_on_demand` is set.
#[derive(Debug, Clone)]
pub struct Memory {
    /// True to map a page with zeros when it is accessed first.
    pub map_on_demand: bool,
    /// Index into `pages` by number of the page.
    numbers: HashMap<u64, usize>,
    pages: Vec<Box<Page>>,
    /// The page of the last access and its index: most accesses are to the same page as the one before.
    last: (u64, usize),
}

/// No page has this number.
const NO_PAGE: u64 = u64::MAX;

impl Default for Memory {
    fn default() -> Self {
        Self { map_on_demand: false, numbers: HashMap::new(), pages: Vec::new(), last: (NO_PAGE, 0) }
    }
}

impl Memory {
    /// Maps the pages of a range; pages that are mapped keep their content.
    pub fn map(&mut self, address: u64, bytes: u64) {
        for number in address >> 12..=address.saturating_add(bytes.saturating_sub(1)) >> 12 {
            self.numbers.entry(number).or_insert_with(|| {
                self.pages.push(Box::new([0; PAGE_WORDS]));
                self.pages.len() - 1
            });
        }
    }

    /// True if the page of the address is mapped.
    pub fn is_mapped(&self, address: u64) -> bool {
        self.numbers.contains_key(&(address >> 12))
    }

    #[inline]
    fn word(&mut self, address: u64) -> Access<&mut u32> {
        if !address.is_multiple_of(4) {
            return Err(FaultKind::Unaligned(address));
        }
        if self.last.0 != address >> 12 {
            self.look_up(address)?;
        }
        let page = self.pages.get_mut(self.last.1).ok_or(FaultKind::Unmapped(address))?;
        Ok(&mut page[(address >> 2) as usize % PAGE_WORDS])
    }

    fn look_up(&mut self, address: u64) -> Access<()> {
        if self.map_on_demand {
            self.map(address, 4);
        }
        let index = *self.numbers.get(&(address >> 12)).ok_or(FaultKind::Unmapped(address))?;
        self.last = (address >> 12, index);
        Ok(())
    }

    /// The word at an address, without mapping its page.
    pub fn get(&self, address: u64) -> Option<u32> {
        let index = self.numbers.get(&(address >> 12))?;
        self.pages.get(*index).map(|page| page[(address >> 2) as usize % PAGE_WORDS])
    }

    /// Reads a word.
    ///
    /// # Errors
    ///
    /// If the address is not mapped or not a multiple of 4.
    #[inline]
    pub fn read(&mut self, address: u64) -> Access<u32> {
        self.word(address).map(|word| *word)
    }

    /// Writes a word.
    ///
    /// # Errors
    ///
    /// If the address is not mapped or not a multiple of 4.
    #[inline]
    pub fn write(&mut self, address: u64, value: u32) -> Access<()> {
        self.word(address).map(|word| *word = value)
    }
}
