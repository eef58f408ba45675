/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The tests: each is a theme of the command line. A test prints its steps and does not return from a failed one. */
#ifndef LIFE_H
#define LIFE_H

#include "gpu.h"

/* The PF's driver; pf_up places the PF's BARs and sets up firmware, CT rings and interrupts. */
extern struct gpu pf_gpu;
void pf_up(void);
/* `pf`: firmware, messages, contexts on each engine class and their destruction; FLR, and the same again. */
void pf_life(void);
/* `vf`: two VFs are provisioned, driven, checked for isolation, reset and disabled; reset of the PF at the end. */
void vf_life(void);
/* `many`: all VFs of the card. */
void many_vfs(void);
/* Provisions VFs and enables them. */
void vfs_up(unsigned count);
/* Starts a VF's driver; runs work on the VF. */
void vf_up(unsigned vf);
void vf_works(unsigned vf, bool alone);
/* VF 1 resets itself by FLR, the PF's driver handles it, and VF 1's driver works again. */
void reset_vf_1(bool alone);
/* `two`: a second processor accesses the same registers while the first submits; then each drives separate
 * functions. */
void two_processors(void);
/* `moves`: BARs at other addresses, including invalid ones; accesses of all kinds. */
void moves(void);
/* `races`: the same with VFs and resets, while a second processor uses them. */
void races(void);
/* `chaos`: random accesses, controlled by seed= and rounds=, after which the card must be usable again. */
void chaos(void);
/* `bench`: measures, and reports in the mailbox. */
void bench(void);

#endif
