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
	do { // a thread that the machine has not let wait yet takes a signal without effect
		usleep(100000);
		kill(getpid(), SIGALRM);
		for (int i = 0; i < 500 && !__atomic_load_n(&ended, __ATOMIC_SEQ_CST); i++)
			usleep(1000);
	} while (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST));
	usleep(100000);
	finish();
}
