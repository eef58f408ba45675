/* The guest as the hands of a test on the host. */
#ifndef AGENT_H
#define AGENT_H

/* Serves the test mailbox until it is told to end. */
_Noreturn void agent(void);

#endif
