// Opens files of devices as programs may: with O_PATH, and with no descriptor left. Each open has to be answered.
// A thread whose call has been taken and is never answered ends by SIGALRM.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static const char *paths[] = {"/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm", "/sys/class/infiniband/mlx5_0/node_guid", "/sys/class/infiniband"};
static int failures;

static void want(const char *path, const char *what, int flags, int e)
{
	int fd = open(path, flags);

	if (fd < 0 ? errno != e : e != 0) {
		printf("%s, %s: %s, want %s\n", path, what, fd < 0 ? strerror(errno) : "opened", e ? strerror(e) : "opened");
		failures++;
	}
	if (fd >= 0)
		close(fd);
}

int main(void)
{
	struct rlimit few = {16, 16}; // for a channel too there is no number left then
	struct stat st;
	int i, fd;

	alarm(600);
	for (i = 0; i < 4; i++)
		want(paths[i], "O_PATH", O_PATH | O_CLOEXEC, 0);
	fd = open("/sys/class/infiniband", O_PATH | O_DIRECTORY);
	if (fd < 0 || fstatat(fd, "mlx5_0/node_guid", &st, 0) || !S_ISREG(st.st_mode)) {
		printf("no file is found from a folder of O_PATH: %s\n", strerror(errno));
		failures++;
	}
	close(fd);
	want(paths[0], "O_PATH and O_DIRECTORY", O_PATH | O_DIRECTORY, ENOTDIR);
	want(paths[2], "O_RDWR and O_TRUNC", O_RDWR | O_TRUNC, geteuid() ? EACCES : EROFS);
	fd = open(paths[2], O_RDONLY);
	if (fd < 0 || lseek(fd, 0, SEEK_END) <= 0) {
		printf("%s is empty\n", paths[2]);
		failures++;
	}
	close(fd);
	if (setrlimit(RLIMIT_NOFILE, &few))
		return 1;
	while (open("/dev/null", O_RDONLY) >= 0)
		;
	for (i = 0; i < 4; i++) {
		want(paths[i], "no descriptor left", O_RDONLY, EMFILE);
		want(paths[i], "no descriptor left, O_PATH", O_PATH, EMFILE);
	}
	want(paths[1], "no descriptor left, O_RDWR", O_RDWR, EMFILE);
	printf(failures ? "%d failures\n" : "all answered\n", failures);
	return failures != 0;
}
