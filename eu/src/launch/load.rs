// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Loader: code and data of a zebin, relocated.

use super::memory::Space;
use super::{LaunchError, implicit};
use crate::zebin::{Relocation, Section, Zebin, ZebinError};

/// Address of the code relative to the instruction base.
pub const CODE_BASE: u32 = 0;
/// Name of the kernel that stands for functions.
const FUNCTIONS: &str = "Intel_Symbol_Table";
/// Alignment of functions.
const ALIGNMENT: usize = 64;
/// Largest code.
const LARGEST: usize = crate::exec::CODE_LIMIT;

/// Places sections with data in memory and returns the relocated code of a kernel, functions behind it.
pub fn load(zebin: &Zebin, kernel: &str, space: &mut Space) -> Result<Vec<u8>, LaunchError> {
    let mut addresses: Vec<Option<u64>> = vec![None; zebin.sections.len()];
    let mut code = Vec::new();
    let main = format!(".text.{kernel}");
    let section = zebin.section(&main).ok_or_else(|| LaunchError::Zebin(ZebinError::Missing(main.clone())))?;
    code.extend_from_slice(zebin.bytes(section));
    // The functions whose addresses are taken are in the section of a kernel that is none.
    let is_kernel =
        |name: &str| !name.starts_with(FUNCTIONS) && zebin.info.kernels.iter().any(|kernel| kernel.name == name);
    let mut placed: Vec<(usize, usize)> = Vec::new();
    for (index, section) in zebin.sections.iter().enumerate() {
        if section.name == main {
            addresses[index] = Some(u64::from(CODE_BASE));
            placed.push((index, 0));
        } else if let Some(name) = section.name.strip_prefix(".text.")
            && !is_kernel(name)
        {
            code.resize(code.len().next_multiple_of(ALIGNMENT), 0);
            addresses[index] = Some(u64::from(CODE_BASE) + code.len() as u64);
            placed.push((index, code.len()));
            code.extend_from_slice(zebin.bytes(section));
        } else if let Some((start, offset)) = data_section(zebin, section, space)? {
            space.poke(start.wrapping_add(offset), zebin.bytes(section));
            addresses[index] = Some(start.wrapping_add(offset));
        }
        if code.len() > LARGEST {
            return Err(LaunchError::Memory { name: "the code".into(), size: code.len() });
        }
    }
    for relocation in &zebin.relocations {
        let Some(name) = zebin.sections.get(relocation.section).map(|section| section.name.as_str()) else { continue };
        if name.starts_with(".text.") {
            if let Some((_, start)) = placed.iter().find(|(index, _)| *index == relocation.section) {
                let patch = value(zebin, relocation, &addresses, name)?;
                apply(&mut code, *start, relocation, patch, name)?;
            }
        } else if let Some(address) = addresses.get(relocation.section).copied().flatten() {
            let patch = value(zebin, relocation, &addresses, name)?;
            let at = address.wrapping_add(relocation.offset);
            // The bytes at the place are a number to add, as in all relocations without one of their own.
            let mut old = [0; 8];
            let size = if relocation.kind == 1 { 8 } else { 4 };
            old[..size].copy_from_slice(&space.peek(at, size));
            let old = u64::from_le_bytes(old);
            let bytes = match relocation.kind {
                1 => &old.wrapping_add(patch).to_le_bytes()[..],
                2 => &old.wrapping_add(patch).to_le_bytes()[..4],
                3 => &old.wrapping_add(patch >> 32).to_le_bytes()[..4],
                _ => continue,
            };
            space.poke(at, bytes);
        }
    }
    Ok(code)
}

/// Memory for a section of data: its start and the section's offset in it. `None` for other sections. The zeros of `.bss.NAME`
/// follow the bytes of `.data.NAME`, and a kernel reaches both from the start of the bytes.
fn data_section(zebin: &Zebin, section: &Section, space: &mut Space) -> Result<Option<(u64, u64)>, LaunchError> {
    let (prefix, other) = match section.name.as_str() {
        name if name.starts_with(".data.") => (".data.", ".bss."),
        name if name.starts_with(".bss.") => (".bss.", ".data."),
        _ => return Ok(None),
    };
    let suffix = &section.name[prefix.len()..];
    let name = format!(".data.{suffix}");
    let other = zebin.section(&format!("{other}{suffix}")).map_or(0, |section| section.size);
    let start = match space.named(&name) {
        Some((start, _)) => start,
        None => {
            let size = section.size.checked_add(other).and_then(|size| usize::try_from(size).ok());
            space.allocate(&name, size.unwrap_or(usize::MAX))?
        }
    };
    Ok(Some((start, if prefix == ".bss." { other } else { 0 })))
}

/// The value that a relocation stores.
fn value(zebin: &Zebin, relocation: &Relocation, addresses: &[Option<u64>], section: &str) -> Result<u64, LaunchError> {
    let fail = |symbol: &str, reason| {
        LaunchError::Zebin(ZebinError::Relocation { symbol: symbol.into(), section: section.into(), reason })
    };
    let symbol = zebin.symbols.get(relocation.symbol).ok_or_else(|| fail("?", "the symbol does not exist"))?;
    if symbol.section == 0 {
        // Code asks for it if the implicit values are before the cross-thread data.
        if symbol.name.starts_with(implicit::DISTANCE) {
            return Ok(implicit::BYTES as u64);
        }
        return Err(fail(&symbol.name, "the symbol is defined in another module, and modules are not linked"));
    }
    let base = addresses.get(usize::from(symbol.section)).copied().flatten();
    let base = base.ok_or_else(|| fail(&symbol.name, "the symbol's section is not loaded"))?;
    Ok(base.wrapping_add(symbol.value).wrapping_add_signed(relocation.addend))
}

fn apply(code: &mut [u8], start: usize, relocation: &Relocation, value: u64, section: &str) -> Result<(), LaunchError> {
    let bytes = value.to_le_bytes();
    let bytes = match relocation.kind {
        1 => &bytes[..],
        2 => &bytes[..4],
        3 => &bytes[4..],
        7 => &bytes[..2],
        // Offset of per-thread data, which the compiler has already stored.
        4 => return Ok(()),
        _ => {
            return Err(LaunchError::Zebin(ZebinError::Relocation {
                symbol: format!("kind {}", relocation.kind),
                section: section.into(),
                reason: "this kind of relocation is not supported",
            }));
        }
    };
    let at = usize::try_from(relocation.offset).ok().and_then(|offset| start.checked_add(offset));
    let into = at.and_then(|at| code.get_mut(at..at.checked_add(bytes.len())?));
    let Some(into) = into else {
        return Err(LaunchError::Zebin(ZebinError::Relocation {
            symbol: "at its offset".into(),
            section: section.into(),
            reason: "it is beyond the end of the section",
        }));
    };
    into.copy_from_slice(bytes);
    Ok(())
}
