// Opens its device file again by way of /proc, to read and to write, closes that again, and uses its context: the first open of
// the file is still there. Then the context is closed while another one of the file's descriptors stays, which is closed last.
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int again(pid_t pid, int fd, int flags) {
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
	return open(path, flags);
}

static int works(struct ibv_context *x, const char *when) {
	usleep(50000); // the supervisor hears of it meanwhile
	struct ibv_pd *pd = ibv_alloc_pd(x);
	if (pd && !ibv_dealloc_pd(pd))
		return 1;
	printf("%s: %s\n", when, strerror(errno));
	return 0;
}

int main(void) {
	struct ibv_device **l = ibv_get_device_list(NULL);
	struct ibv_context *x = l && l[0] ? ibv_open_device(l[0]) : NULL;
	int flags[] = {O_RDWR, O_RDONLY, O_WRONLY}, last = -1;
	if (!x)
		return 1;
	for (int i = 0; i < 3; i++) {
		int fd = again(getpid(), x->cmd_fd, flags[i]);
		if (fd < 0 || !works(x, "open again") || close(fd) || !works(x, "closed again"))
			return 2;
	}
	pid_t parent = getpid(), child = fork();
	if (!child)
		_exit(close(again(parent, x->cmd_fd, O_RDWR)) ? 1 : 0);
	int status = 1;
	if (waitpid(child, &status, 0) != child || status || !works(x, "another process"))
		return 3;
	last = again(getpid(), x->cmd_fd, O_RDONLY);
	if (last < 0 || ibv_close_device(x))
		return 4;
	usleep(50000);
	return close(last);
}
