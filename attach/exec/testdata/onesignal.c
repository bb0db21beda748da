// Has three threads wait for an event of rdma_cm when a signal comes to their process, which the main thread blocks. Those whose waits end have EINTR.
#include "getevent.h"

static int ended;

static void *waiter(void *unused)
{
	waits();
	__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

int main(void)
{
	sigset_t block;
	pthread_t t;

	start(SIGALRM);
	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, waiter, NULL);
	sigemptyset(&block);
	sigaddset(&block, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &block, NULL);
	usleep(100000);
	kill(getpid(), SIGALRM);
	while (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST))
		usleep(1000);
	usleep(100000);
	finish();
}
