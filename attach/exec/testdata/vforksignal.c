// Has a thread wait for an event of rdma_cm when a signal is given to the main thread, which does not take it since it waits in a vfork. If its wait
// ends, it has EINTR.
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

static void *event(void *unused)
{
	waits();
	return NULL;
}

int main(void)
{
	struct sigaction a = { .sa_handler = handler };
	pid_t main_thread = getpid();
	pthread_t t;

	channel = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	sigaction(SIGUSR1, &a, NULL);
	pthread_create(&t, NULL, event, NULL);
	usleep(50000);
	if (!vfork()) {
		kill(main_thread, SIGUSR1);
		usleep(150000);
		_exit(0);
	}
	usleep(50000);
	printf("errno %d\n", __atomic_load_n(&wrong, __ATOMIC_SEQ_CST));
	fflush(stdout);
	_exit(0);
}
