/* The tests: each is a theme of the command line. They say their steps, and do not come back from one that fails. */
#ifndef LIFE_H
#define LIFE_H

#include "gpu.h"

/* The driver of the PF: placed, with firmware, rings and interrupts. */
extern struct gpu pf_gpu;
void pf_up(void);
/* `pf`: firmware, messages, contexts on each class of engines, their end; Function Level Reset and all once more. */
void pf_life(void);
/* `vf`: two VFs, provisioned, driven, kept apart, reset, disabled; the PF's reset at the end. */
void vf_life(void);
/* `many`: all VFs that the card has. */
void many_vfs(void);
/* Provisions VFs and enables them. */
void vfs_up(unsigned count);
/* A driver of a VF begins; works. */
void vf_up(unsigned vf);
void vf_works(unsigned vf, bool alone);
/* VF 1 resets itself, the PF leads, and VF 1's driver works again. */
void reset_vf_1(bool alone);
/* `two`: a second processor works with the same registers while the first submits; then each drives functions of its
 * own. */
void two_processors(void);
/* `moves`: BARs at other places, wrong ones too; accesses of all kinds. */
void moves(void);
/* `races`: the same, VFs, and resets, while a second processor uses what comes and goes. */
void races(void);
/* `chaos`: accesses at random, by seed= and rounds=, after which the card must come up again. */
void chaos(void);
/* `bench`: measures, and reports in the mailbox. */
void bench(void);

#endif
