/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Agent mode: the guest executes accesses for a test on the host. */
#ifndef AGENT_H
#define AGENT_H

/* Serves the test mailbox until the host sends MAILBOX_EXIT. */
_Noreturn void agent(void);

#endif
