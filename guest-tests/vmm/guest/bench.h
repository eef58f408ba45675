/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The measurements of `bench`: indexes of mailbox.report, in TSC ticks; all in ring 3. */
#ifndef BENCH_H
#define BENCH_H

enum report {
    REPORT_BARE_EXIT = 0,       /* a 4-byte read of unassigned memory: the minimum cost of a trapped access */
    REPORT_REGISTER_READ = 1,   /* read of GU_CNTL: trapped */
    REPORT_REGISTER_WRITE = 2,  /* write to a register that only stores its value: trapped */
    REPORT_BARE_EVENT = 3,      /* a 4-byte write to an ioeventfd without a listener: command line, event= */
    REPORT_HOT_WRITE = 4,       /* a write to VF_CAP, used by drivers as a barrier: such an ioeventfd */
    REPORT_HEARD_EVENT = 5,     /* a 4-byte write to an ioeventfd on which a thread waits: heard= */
    REPORT_DOORBELL = 6,        /* a write to GUC_HOST_INTERRUPT: such an ioeventfd, with no work for the card */
    REPORT_LOCAL_WRITE = 7,     /* 8-byte write to local memory: mapped */
    REPORT_GGTT_WRITE = 8,      /* write to a GGTT entry: mapped */
    REPORT_MAILBOX = 9,         /* a mailbox request: five writes, a doorbell, the response */
    REPORT_MESSAGE = 10,        /* a CT request: doorbell, response in memory */
    REPORT_INTERRUPT = 11,      /* the same, until the MSI of the response */
    REPORT_SUBMISSION = 12,     /* a batch: queued, submitted, until its seqno is in RAM */
    REPORTS
};

#endif
