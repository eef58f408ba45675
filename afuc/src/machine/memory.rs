// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Memory of a machine.

use std::collections::{BTreeMap, HashMap};

use super::bus::Access;
use super::fault::FaultKind;

const PAGE_WORDS: usize = 1024;
type Page = [u32; PAGE_WORDS];

/// Pages that a machine may have, 1 GiB: an image or a stream can access more than the host has.
pub const LIMIT_PAGES: usize = 1 << 18;

/// Memory in pages of 4 KiB. A page that is not mapped cannot be accessed, unless `map_on_demand` is set. A page that is
/// mapped takes memory when it is accessed first.
#[derive(Debug, Clone)]
pub struct Memory {
    /// True to map a page with zeros when it is accessed first.
    pub map_on_demand: bool,
    /// Index into `pages` by number of the page.
    numbers: HashMap<u64, usize>,
    pages: Vec<Box<Page>>,
    /// Numbers of mapped pages: the first, and the one after the last. The ranges do not touch each other.
    mapped: BTreeMap<u64, u64>,
    /// The page of the last access and its index: most accesses are to the same page as the one before.
    last: (u64, usize),
}

/// No page has this number.
const NO_PAGE: u64 = u64::MAX;

impl Default for Memory {
    fn default() -> Self {
        Self {
            map_on_demand: false,
            numbers: HashMap::new(),
            pages: Vec::new(),
            mapped: BTreeMap::new(),
            last: (NO_PAGE, 0),
        }
    }
}

impl Memory {
    /// Maps the pages of a range; pages that are mapped keep their content.
    pub fn map(&mut self, address: u64, bytes: u64) {
        let mut first = address >> 12;
        let mut end = (address.saturating_add(bytes.saturating_sub(1)) >> 12) + 1;
        // Ranges that overlap the new one or touch it become part of it.
        while let Some((start, stop)) = self.mapped.range(..=end).next_back().map(|(start, stop)| (*start, *stop)) {
            if stop < first {
                break;
            }
            self.mapped.remove(&start);
            (first, end) = (first.min(start), end.max(stop));
        }
        self.mapped.insert(first, end);
    }

    /// True if the page of the address is mapped.
    pub fn is_mapped(&self, address: u64) -> bool {
        let page = address >> 12;
        self.numbers.contains_key(&page) || self.mapped.range(..=page).next_back().is_some_and(|(_, end)| page < *end)
    }

    #[inline]
    fn word(&mut self, address: u64) -> Access<&mut u32> {
        if !address.is_multiple_of(4) {
            return Err(FaultKind::Unaligned(address));
        }
        if self.last.0 != address >> 12 {
            self.lookup(address)?;
        }
        let page = self.pages.get_mut(self.last.1).ok_or(FaultKind::Unmapped(address))?;
        Ok(&mut page[(address >> 2) as usize % PAGE_WORDS])
    }

    fn lookup(&mut self, address: u64) -> Access<()> {
        let page = address >> 12;
        let index = match self.numbers.get(&page) {
            Some(index) => *index,
            None if !self.map_on_demand && !self.is_mapped(address) => return Err(FaultKind::Unmapped(address)),
            None if self.pages.len() >= LIMIT_PAGES => return Err(FaultKind::MemoryFull),
            None => {
                self.pages.push(Box::new([0; PAGE_WORDS]));
                self.numbers.insert(page, self.pages.len() - 1);
                self.pages.len() - 1
            }
        };
        self.last = (page, index);
        Ok(())
    }

    /// The word at an address, without mapping its page.
    pub fn get(&self, address: u64) -> Option<u32> {
        match self.numbers.get(&(address >> 12)) {
            Some(index) => self.pages.get(*index).map(|page| page[(address >> 2) as usize % PAGE_WORDS]),
            None => self.is_mapped(address).then_some(0),
        }
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
