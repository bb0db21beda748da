// Has its main thread and another one wait for an event of rdma_cm when a child of the other one ends, whose SIGCHLD the kernel gives to that one.
// Those whose waits end have EINTR.
#include "getevent.h"

static void *parent(void *unused)
{
	if (!fork()) {
		usleep(100000);
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
