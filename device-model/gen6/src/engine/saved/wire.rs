// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Records of the command streamers.

use arctic_base::state::{Document, Record, RestoreError, SavedState, Tag, Writer};
use zerocopy::little_endian::{U32, U64};

use super::{Batch, LONGEST, Layouts, SavedBlit, SavedEngine, SavedEngines};
use crate::blitter::{SETUP_DWORDS, Setup};

/// Largest number of engines.
const MOST_ENGINES: usize = 16;

arctic_base::record! {
    /// A command streamer.
    struct EngineRecord[b"ENGN", 36] {
        /// [`IN_BATCH`] and the following.
        flags: U32,
        /// Addresses of the first and the next command of the batch.
        batch: [U32; 2],
        /// What setup commands have left.
        blit_setup: [U32; SETUP_DWORDS],
    }

    /// A blit that is not complete.
    struct BlitRecord[b"BLIT", 64] {
        /// Index of its engine.
        engine: U32,
        /// Number of dwords of its command.
        length: U32,
        /// Value of BCS_SWCTRL.
        control: U32,
        /// Page directory: first entry in the GGTT's table, and PP_DCLV; only with [`PPGTT`].
        directory: [U32; 2],
        done: U64,
        /// The command. Last, because a longer command may be added.
        dwords: [U32; LONGEST],
    }
}

/// Flags of an engine: it is in a batch, which is in the PPGTT; it waits; it arbitrates; the pattern of setup commands is solid;
/// the blit is in the PPGTT, and its surfaces are swizzled.
const IN_BATCH: u32 = 1;
const BATCH_IN_PPGTT: u32 = 2;
const WAITING: u32 = 4;
const ARBITRATION: u32 = 8;
const SOLID: u32 = 16;
const PPGTT: u32 = 32;
const SWIZZLED: u32 = 64;
const ALL: u32 = 127;

fn flag(set: bool, flag: u32) -> u32 {
    if set { flag } else { 0 }
}

impl SavedState for SavedEngines {
    const UNIT: &'static str = "engine";
    const TAGS: &'static [Tag] = &[EngineRecord::TAG, BlitRecord::TAG];

    fn write(&self, to: &mut Writer) {
        let SavedEngines(engines) = self;
        to.records(engines.iter().map(|engine| {
            let SavedEngine { batch, waiting, arbitration, blit_setup, pending } = engine;
            let (setup, solid) = blit_setup.parts();
            let pending = pending.as_ref();
            EngineRecord {
                flags: (flag(batch.is_some(), IN_BATCH)
                    | flag(batch.is_some_and(|batch| batch.ppgtt), BATCH_IN_PPGTT)
                    | flag(*waiting, WAITING)
                    | flag(*arbitration, ARBITRATION)
                    | flag(solid, SOLID)
                    | flag(pending.is_some_and(|blit| blit.directory.is_some()), PPGTT)
                    | flag(pending.is_some_and(|blit| blit.layouts.swizzled), SWIZZLED))
                .into(),
                batch: batch.map_or([U32::ZERO; 2], |batch| [batch.start.into(), batch.next.into()]),
                blit_setup: setup.map(U32::new),
            }
        }));
        let blits = (0_u32..).zip(engines).filter_map(|(index, engine)| Some((index, engine.pending.as_ref()?)));
        to.records(blits.map(|(index, blit)| {
            let SavedBlit { dwords, layouts, directory, done } = blit;
            let (first, loaded) = directory.unwrap_or_default();
            let mut fields = [U32::ZERO; LONGEST];
            fields.iter_mut().zip(dwords).for_each(|(field, dword)| field.set(*dword));
            BlitRecord {
                engine: index.into(),
                length: u32::try_from(dwords.len()).unwrap_or(u32::MAX).into(),
                control: layouts.control.into(),
                directory: [first.into(), loaded.into()],
                done: (*done).into(),
                dwords: fields,
            }
        }));
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let invalid = RestoreError::invalid::<SavedEngines>;
        let mut blits = from.records::<BlitRecord>(MOST_ENGINES)?.into_iter().peekable();
        let mut engines = Vec::new();
        for (index, EngineRecord { flags, batch, blit_setup }) in (0_u32..).zip(from.records(MOST_ENGINES)?) {
            let flags = flags.get();
            let [start, next] = batch.map(U32::get);
            let has = |flag| flags & flag != 0;
            let blit = blits.next_if(|blit| blit.engine.get() == index);
            // A flag without what it describes would not be saved again.
            let is_possible = flags & !ALL == 0
                && (has(IN_BATCH) || !has(BATCH_IN_PPGTT) && (start, next) == (0, 0))
                && (blit.is_some() || !has(PPGTT) && !has(SWIZZLED));
            if !is_possible {
                return Err(invalid("a flag"));
            }
            let pending = match blit {
                None => None,
                Some(blit) => {
                    let [first, loaded] = blit.directory.map(U32::get);
                    let dwords = usize::try_from(blit.length.get()).ok().and_then(|length| blit.dwords.get(..length));
                    let layouts = Layouts { control: blit.control.get(), swizzled: has(SWIZZLED) };
                    Some(SavedBlit {
                        dwords: dwords.ok_or(invalid("a blit"))?.iter().map(|dword| dword.get()).collect(),
                        layouts,
                        directory: has(PPGTT).then_some((first, loaded)),
                        done: blit.done.get(),
                    })
                }
            };
            engines.push(SavedEngine {
                batch: has(IN_BATCH).then_some(Batch { start, next, ppgtt: has(BATCH_IN_PPGTT) }),
                waiting: has(WAITING),
                arbitration: has(ARBITRATION),
                blit_setup: Setup::of(blit_setup.map(U32::get), has(SOLID)),
                pending,
            });
        }
        if blits.next().is_some() { Err(invalid("a blit of no engine")) } else { Ok(SavedEngines(engines)) }
    }
}
