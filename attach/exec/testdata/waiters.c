// Has as many threads wait for an event of rdma_cm as it is given, and one more, which is refused. Beside them another process makes calls on a device.
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int channel, refused;

static void *waits(void *unused)
{
	struct rdma_ucm_event_resp resp;
	struct {
		struct rdma_ucm_cmd_hdr h;
		struct rdma_ucm_get_event e;
	} c = { { RDMA_USER_CM_CMD_GET_EVENT, sizeof(c.e), sizeof(resp) }, { (uintptr_t)&resp } };

	if (write(channel, &c, sizeof(c)) < 0 && errno == ENOMEM)
		__atomic_add_fetch(&refused, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t small;
	pthread_t t;
	int status;

	channel = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 1 << 15);
	for (int i = 0; i <= atoi(argv[1]); i++)
		if (pthread_create(&t, &small, waits, NULL)) {
			perror("thread");
			return 1;
		}
	if (!fork()) {
		struct ibv_device **l = ibv_get_device_list(NULL);
		struct ibv_context *x = ibv_open_device(l[0]);

		for (int i = 0; i < 100; i++)
			if (ibv_dealloc_pd(ibv_alloc_pd(x)))
				_exit(1);
		_exit(0);
	}
	wait(&status);
	while (!__atomic_load_n(&refused, __ATOMIC_SEQ_CST))
		usleep(1000);
	printf("status %d, %d refused\n", status, refused);
	fflush(stdout);
	_exit(0);
}
