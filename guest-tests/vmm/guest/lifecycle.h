/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The tests. The command line selects one by its name ("theme"). A test prints a line per passed check; a failed check
 * ends the VM. */
#ifndef LIFE_H
#define LIFE_H

#include "gpu.h"

/* The PF's driver. pf_up loads the firmware and sets up CT rings and interrupts; the BARs must have addresses. */
extern struct gpu pf_gpu;
void pf_up(void);
/* `pf`: firmware, messages, contexts on each engine class; repeated after an FLR and after a bus reset. */
void pf_life(void);
/* `vf`: two VFs are provisioned, driven, checked for isolation, reset and disabled; finally the PF is reset. */
void vf_life(void);
/* `many`: drives all VFs of the card. */
void many_vfs(void);
/* Provisions VFs and enables them. */
void vfs_up(unsigned count);
/* Starts a VF's driver. vf_works runs batches on it; `alone` also checks that they raise no MSI of the PF. */
void vf_up(unsigned vf);
void vf_works(unsigned vf, bool alone);
/* Resets VF 1 by FLR, handles the reset in the PF's driver, and restarts VF 1's driver. */
void reset_vf_1(bool alone);
/* `two`: a second processor accesses the same registers while the first submits; then the processors drive different
 * functions. */
void two_processors(void);
/* `moves`: BARs at other addresses, including invalid ones; accesses of all widths and alignments. */
void moves(void);
/* `races`: moves BARs, toggles VFs and decoding, and resets functions while a second processor accesses them. */
void races(void);
/* `chaos`: random accesses (seed=, rounds=), after which a reset must make the card usable again. */
void chaos(void);
/* `bench`: writes measurements to the mailbox. */
void bench(void);

#endif
