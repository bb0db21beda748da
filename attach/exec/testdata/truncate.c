// Tries to take the memory of a device file, and of the queues behind it, from the supervisor by
// changing the size of the files: with ftruncate, fallocate and copies of the descriptor.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failures;

static void resize(const char *what, int fd, off_t size) {
	int r = ftruncate(fd, size);
	if (r == 0 || errno != EPERM) {
		printf("%s: ftruncate(%ld): %s, want EPERM\n", what, (long)size, r == 0 ? "done" : strerror(errno));
		failures++;
	}
	// A device file says that it is a character device, which has no size; where it ends is that of its memory.
	if (lseek(fd, 0, SEEK_END) == 0) {
		printf("%s: has no memory any more\n", what);
		failures++;
	}
	// A hole keeps the size: what was there is zero from now on.
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20);
}

int main(void) {
	struct ibv_device **l = ibv_get_device_list(NULL);
	struct ibv_context *x = l && l[0] ? ibv_open_device(l[0]) : NULL;
	if (!x)
		return 3;
	int file = dup(x->cmd_fd); // later the descriptor shows a queue, and this one the device file
	struct ibv_pd *pd = ibv_alloc_pd(x);
	struct ibv_cq *cq = ibv_create_cq(x, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr a = {.send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	if (!pd || !cq || !ibv_create_qp(pd, &a))
		return 4;
	resize("device file", file, 0);
	resize("device file", file, (off_t)1 << 40);
	resize("queue", x->cmd_fd, 0);
	resize("queue", x->cmd_fd, (off_t)1 << 40);
	usleep(20000); // the supervisor looks at its mappings
	if (!ibv_alloc_pd(x) || !ibv_create_cq(x, 16, NULL, NULL, 0)) {
		printf("calls fail: %s\n", strerror(errno));
		failures++;
	}
	printf(failures ? "%d failures\n" : "all kept\n", failures);
	return failures != 0;
}
