/* Threads that wait for an event of rdma_cm when signals come: those whose waits end have EINTR. */
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

/* Opens the channel, and has a signal interrupt what waits. */
static void start(int signal)
{
	struct sigaction a = { .sa_handler = handler };

	channel = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	sigaction(signal, &a, NULL);
}

/* Waits for an event; returns -1 with errno. */
static int get_event(void)
{
	struct rdma_ucm_event_resp resp;
	struct {
		struct rdma_ucm_cmd_hdr h;
		struct rdma_ucm_get_event e;
	} c = { { RDMA_USER_CM_CMD_GET_EVENT, sizeof(c.e), sizeof(resp) }, { (uintptr_t)&resp } };

	return write(channel, &c, sizeof(c));
}

/* Waits, and keeps an errno other than EINTR. */
static void waits(void)
{
	if (get_event() >= 0 || errno != EINTR)
		__atomic_store_n(&wrong, errno, __ATOMIC_SEQ_CST);
}

/* Prints that errno, or 0, and ends the process while others still wait. */
static void finish(void)
{
	printf("errno %d\n", __atomic_load_n(&wrong, __ATOMIC_SEQ_CST));
	fflush(stdout);
	_exit(0);
}
