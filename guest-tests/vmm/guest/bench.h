/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Measurements of `bench`, as indexes of mailbox.report. Times are in TSC ticks; all accesses are made in ring 3. */
#ifndef BENCH_H
#define BENCH_H

enum report {
    REPORT_BARE_EXIT = 0,       /* a 4-byte read of unassigned memory: the minimum cost of a trapped access */
    REPORT_REGISTER_READ = 1,   /* read of GU_CNTL: trapped */
    REPORT_REGISTER_WRITE = 2,  /* write to a register that only stores its value: trapped */
    REPORT_BARE_EVENT = 3,      /* a 4-byte write to an ioeventfd without a waiting thread, at event= (command line) */
    REPORT_HOT_WRITE = 4,       /* a write to VF_CAP, which drivers use as a barrier: also without a waiting thread */
    REPORT_WAITED_EVENT = 5,    /* a 4-byte write to an ioeventfd on which a thread waits, at waited= */
    REPORT_NOTIFICATION = 6,    /* a write to GUC_HOST_INTERRUPT without a request: a thread waits on it too */
    REPORT_LOCAL_WRITE = 7,     /* 8-byte write to local memory: mapped */
    REPORT_GGTT_WRITE = 8,      /* write to a GGTT entry: mapped */
    REPORT_MAILBOX = 9,         /* a mailbox request: five writes, a notification, the response */
    REPORT_MESSAGE = 10,        /* a CT request: doorbell, response in memory */
    REPORT_INTERRUPT = 11,      /* a CT request, until the MSI of the response */
    REPORT_SUBMISSION = 12,     /* a batch, from queueing until its seqno is in RAM */
    REPORTS
};

#endif
