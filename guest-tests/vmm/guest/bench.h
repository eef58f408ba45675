/* What `bench` measures: numbers of mailbox.report, in ticks of the time-stamp counter; all in ring 3. */
#ifndef BENCH_H
#define BENCH_H

enum report {
    REPORT_BARE_EXIT = 0,       /* a 4-byte read of memory that is nobody's: what any trapped access costs at least */
    REPORT_REGISTER_READ = 1,   /* of GU_CNTL: trapped */
    REPORT_REGISTER_WRITE = 2,  /* of a register that is storage: trapped */
    REPORT_DOORBELL = 3,        /* a write to GUC_HOST_INTERRUPT: an ioeventfd */
    REPORT_HOT_WRITE = 4,       /* a write to VF_CAP, which drivers do as a barrier: an ioeventfd */
    REPORT_LOCAL_WRITE = 5,     /* 8 bytes of local memory: mapped */
    REPORT_GGTT_WRITE = 6,      /* a global entry: mapped */
    REPORT_MAILBOX = 7,         /* a request by mailbox: five writes, a doorbell, the answer */
    REPORT_MESSAGE = 8,         /* a request by message: doorbell, answer in memory */
    REPORT_INTERRUPT = 9,       /* from the doorbell of a request to the MSI of its answer */
    REPORT_SUBMISSION = 10,     /* a batch: queued, submitted, its seqno in RAM */
};

#endif
