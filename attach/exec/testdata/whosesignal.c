// Has its main thread and another one wait for an event of rdma_cm when a child of the other one ends, whose SIGCHLD the kernel gives to that one.
// Those whose waits end have EINTR.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static int channel, wrong;

static void handler(int unused) {}

static void waits(void)
{
	struct rdma_ucm_event_resp resp;
	struct {
		struct rdma_ucm_cmd_hdr h;
		struct rdma_ucm_get_event e;
	} c = { { RDMA_USER_CM_CMD_GET_EVENT, sizeof(c.e), sizeof(resp) }, { (uintptr_t)&resp } };

	if (write(channel, &c, sizeof(c)) >= 0 || errno != EINTR)
		__atomic_store_n(&wrong, errno, __ATOMIC_SEQ_CST);
}

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
	struct sigaction a = { .sa_handler = handler };
	pthread_t t;

	channel = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	sigaction(SIGCHLD, &a, NULL);
	pthread_create(&t, NULL, parent, NULL);
	waits();
	usleep(100000);
	printf("errno %d\n", __atomic_load_n(&wrong, __ATOMIC_SEQ_CST));
	fflush(stdout);
	_exit(0);
}
