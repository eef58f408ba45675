/* What `bench` measures: numbers of mailbox.report, in ticks of the time-stamp counter; all in ring 3. */
#ifndef BENCH_H
#define BENCH_H

enum report {
    REPORT_BARE_EXIT = 0,       /* a 4-byte read of memory that is nobody's: what any trapped access costs at least */
    REPORT_REGISTER_READ = 1,   /* of GU_CNTL: trapped */
    REPORT_REGISTER_WRITE = 2,  /* of a register that is storage: trapped */
    REPORT_BARE_EVENT = 3,      /* a 4-byte write that is an ioeventfd which nobody hears: command line, event= */
    REPORT_HOT_WRITE = 4,       /* a write to VF_CAP, which drivers do as a barrier: such an ioeventfd */
    REPORT_HEARD_EVENT = 5,     /* a 4-byte write that is an ioeventfd for which a thread waits: heard= */
    REPORT_DOORBELL = 6,        /* a write to GUC_HOST_INTERRUPT: such an ioeventfd, and the card has nothing to do */
    REPORT_LOCAL_WRITE = 7,     /* 8 bytes of local memory: mapped */
    REPORT_GGTT_WRITE = 8,      /* a global entry: mapped */
    REPORT_MAILBOX = 9,         /* a request by mailbox: five writes, a doorbell, the answer */
    REPORT_MESSAGE = 10,        /* a request by message: doorbell, answer in memory */
    REPORT_INTERRUPT = 11,      /* the same, to the MSI of the answer */
    REPORT_SUBMISSION = 12,     /* a batch: queued, submitted, its seqno in RAM */
    REPORTS
};

#endif
