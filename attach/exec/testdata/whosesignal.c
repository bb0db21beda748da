// Has its main thread and another one wait for an event of rdma_cm when a child of the other one ends, whose SIGCHLD the kernel gives to that one.
// Those whose waits end have EINTR.
#include "getevent.h"

static void *parent(void *unused)
{
	// The first ends it all, unless the machine had not let this thread wait yet.
	for (int us = 100000; us < 20000000; us *= 4)
		if (!fork()) {
			usleep(us);
			_exit(0);
		}
	waits();
	return NULL;
}

int main(void)
{
	pthread_t t;

	start(SIGCHLD);
	pthread_create(&t, NULL, parent, NULL);
	waits();
	usleep(100000);
	finish();
}
