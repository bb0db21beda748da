// Has a thread wait for an event of rdma_cm when a signal is given to the main thread, which does not take it since it waits in a vfork. If its wait
// ends, it has EINTR.
#include "getevent.h"

static void *event(void *unused)
{
	waits();
	return NULL;
}

int main(void)
{
	pid_t main_thread = getpid();
	pthread_t t;

	start(SIGUSR1);
	pthread_create(&t, NULL, event, NULL);
	usleep(50000);
	if (!vfork()) {
		kill(main_thread, SIGUSR1);
		usleep(150000);
		_exit(0);
	}
	usleep(50000);
	finish();
}
