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
/* `two`: a second processor works with the same registers while the first submits. */
void two_processors(void);
/* What the second processor does when the first says so. */
void second_processor(void);
/* `bench`: measures, and reports in the mailbox. */
void bench(void);

#endif
