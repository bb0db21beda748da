// Has three threads wait for an event of rdma_cm when a signal comes to their process, which the main thread blocks. Those whose waits end have EINTR.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static int channel, ended, wrong;

static void handler(int unused) {}

static void *waits(void *unused)
{
	struct rdma_ucm_event_resp resp;
	struct {
		struct rdma_ucm_cmd_hdr h;
		struct rdma_ucm_get_event e;
	} c = { { RDMA_USER_CM_CMD_GET_EVENT, sizeof(c.e), sizeof(resp) }, { (uintptr_t)&resp } };

	if (write(channel, &c, sizeof(c)) >= 0 || errno != EINTR)
		__atomic_store_n(&wrong, errno, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

int main(void)
{
	struct sigaction a = { .sa_handler = handler };
	sigset_t block;
	pthread_t t;

	channel = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	sigaction(SIGALRM, &a, NULL);
	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, waits, NULL);
	sigemptyset(&block);
	sigaddset(&block, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &block, NULL);
	usleep(100000);
	kill(getpid(), SIGALRM);
	while (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST))
		usleep(1000);
	usleep(100000);
	printf("errno %d\n", __atomic_load_n(&wrong, __ATOMIC_SEQ_CST));
	fflush(stdout);
	_exit(0);
}
