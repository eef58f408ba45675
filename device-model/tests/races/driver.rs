// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A virtual function's driver, executed one access at a time.

use arctic_device_model::gpu::Gpu;
use arctic_device_model::topology::EngineClass;
use arctic_test_support::mi::{self, Process};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::{context, ct};

/// State of the driver's current job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Free,
    Written,
    Registered,
    RegistrationRung,
    Enabled,
    EnabledRung,
    Done,
    Deregistered,
    DeregistrationRung,
}

/// Runs contexts one after another. Each stores a distinct value and uses the next engine class.
pub struct Driver {
    pub vf: Vf,
    stage: Stage,
    jobs: u32,
    value: u32,
    /// The jobs store to guest memory in an endless loop.
    pub floods: bool,
}

const ID: u32 = 5;
const CELL: u64 = at::SCRATCH + 0x80;

impl Driver {
    pub fn new(vf: Vf) -> Driver {
        Driver { vf, stage: Stage::Free, jobs: 0, value: 0, floods: false }
    }

    /// Number of completed jobs.
    pub fn jobs(&self) -> u32 {
        self.jobs
    }

    /// Starts again after a reset of the function.
    pub fn restart(&mut self) {
        self.vf.up();
        self.stage = Stage::Free;
    }

    fn class(&self) -> EngineClass {
        EngineClass::BY_GUC[self.jobs as usize % EngineClass::BY_GUC.len()]
    }

    /// Performs the next access to memory or to a register.
    pub fn step(&mut self) {
        self.stage = match self.stage {
            Stage::Free => {
                self.value = self.jobs << 8 | u32::from(self.vf.function.number()) << 4 | 1;
                self.vf.poke(CELL, 0);
                let job = if self.floods {
                    self.flood().to_vec()
                } else {
                    mi::store_data_imm(self.vf.global(CELL), self.value).to_vec()
                };
                self.vf.write_context(ID, 0, &job);
                Stage::Written
            }
            Stage::Written => {
                let class = u32::from(self.class().guc());
                let registration = context::registration(ID, class, 1, self.vf.descriptor(ID, 0));
                self.vf.put(&ct::fast_request(0x4502, &registration));
                Stage::Registered
            }
            Stage::Registered => self.ring(Stage::RegistrationRung),
            Stage::RegistrationRung => {
                self.vf.put(&ct::fast_request(0x1001, &[ID, 1]));
                Stage::Enabled
            }
            Stage::Enabled => self.ring(Stage::EnabledRung),
            Stage::EnabledRung if self.vf.peek(CELL) == self.value => Stage::Done,
            Stage::EnabledRung => Stage::EnabledRung,
            Stage::Done => {
                self.vf.put(&ct::fast_request(0x4503, &[ID]));
                Stage::Deregistered
            }
            Stage::Deregistered => self.ring(Stage::DeregistrationRung),
            Stage::DeregistrationRung => {
                self.vf.consume();
                match self.vf.card.status().functions.get(self.vf.function.index()) {
                    Some(function) if function.contexts == Some(0) => {
                        self.jobs += 1;
                        Stage::Free
                    }
                    _ => Stage::DeregistrationRung,
                }
            }
        };
    }

    /// Returns a ring that starts an endless batch of stores to guest memory by PPGTT addresses.
    fn flood(&self) -> [u32; 3] {
        const RAM: u64 = 0x10_0000;
        let store = |address| mi::store_data_imm(Process(address), self.value);
        let again = self.vf.jump(ID);
        let mut batch = store(self.vf.base() + CELL).to_vec();
        batch.extend((0..200).flat_map(|n| store(RAM + n * 4)));
        batch.extend(again);
        self.vf.write_words(Vf::batch(ID), &batch);
        again
    }

    fn ring(&self, next: Stage) -> Stage {
        self.vf.set(GUC_HOST_INTERRUPT, 1);
        next
    }
}

/// Another vCPU of the same guest: accesses registers, mailbox and notifications, one access at a time.
pub struct Processor {
    pub vf: Vf,
    /// Next step of a mailbox request: dwords 3, 2, 1, the header, the notification, a read of the response.
    mail: usize,
}

const QUERY: [u32; 4] = [0x5509, 1, 0, 0];

impl Processor {
    pub fn new(vf: Vf) -> Processor {
        Processor { vf, mail: 0 }
    }

    pub fn step(&mut self, random: &mut Random) {
        let vf = &self.vf;
        match random.below(8) {
            0 => drop(vf.get(random.below(0x40_0000 / 4) as u32 * 4)),
            1 => vf.set(0x19_0030, random.dword()),
            2 => vf.set(random.of(&[0x19_0090, 0x19_00a0, 0x19_00e8]), random.dword()),
            3 => vf.set(0x19_0010, random.dword()),
            4 => vf.set(0x40_0000 + random.below(8) as u32 * 4096, 1),
            5 => {
                // xe's interrupt handler, possibly concurrent on two vCPUs.
                let sources = vf.get(0x19_0018);
                vf.set(0x19_0070, 1 << random.below(32));
                vf.set(0x19_0060, vf.get(0x19_0060));
                vf.set(0x19_0018, sources);
            }
            _ => {
                match self.mail {
                    n @ 0..4 => vf.set(MAILBOX + (3 - n as u32) * 4, QUERY[3 - n]),
                    4 => vf.set(GUC_HOST_INTERRUPT, 1),
                    _ => {
                        let answer = vf.get(MAILBOX);
                        let waits = answer == QUERY[0];
                        let answered = waits || answer == 0 || answer >> 28 == 0xf || answer >> 28 == 0xe;
                        assert!(answered || vf.disturbed, "{answer:#x}");
                    }
                }
                self.mail = (self.mail + 1) % 6;
            }
        }
    }
}
