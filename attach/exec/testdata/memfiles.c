// Takes as much memory as it can by its memory files: those of queues, made without a queue, until one is refused; and the device
// file, to which it writes until the supervisor has taken that back. Prints how many queues there were, and what was refused.
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 1 << 20, MOST = 64, LONG = 64 };

int main(void)
{
	static char block[MIB];
	struct ibv_device **l = ibv_get_device_list(NULL);
	struct ibv_context *x = l && l[0] ? ibv_open_device(l[0]) : NULL;
	int n = 0, fd;
	struct stat st;
	void *p[MOST];

	if (!x)
		return 1;
	for (; n < MOST; n++) // contiguous pages, order 0: command 1 of the offset, which is 1 MiB
		if ((p[n] = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, x->cmd_fd, MIB)) == MAP_FAILED)
			break;
	printf("%d queues, then %s\n", n, n < MOST ? strerror(errno) : "no end");
	while (n > 0)
		munmap(p[--n], MIB);
	ibv_close_device(x);

	x = ibv_open_device(l[0]);
	if (!x)
		return 1;
	fd = x->cmd_fd;
	memset(block, 1, sizeof block);
	for (n = 0; n < LONG; n++)
		if (pwrite(fd, block, MIB, (512L + n) * MIB) != MIB)
			return 1;
	do {
		usleep(1000);
		if (fstat(fd, &st))
			return 1;
	} while (st.st_blocks * 512 > 2 * MIB);
	printf("taken back\n");
	if (!ibv_create_cq(x, 10, NULL, NULL, 0))
		return 1;
	return 0;
}
