// One thread makes an mmap that the kernel refuses, and no call after it; a second one makes an mmap of the
// same file, which has to wait for the first. Meanwhile the calls on another file must be answered:
// stall ROUNDS says in how many rounds all of them were, before the second mmap returned, and ends them after two. In the end
// threads repeat refused mmaps, and each must get on.
#define _GNU_SOURCE
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct ibv_context *x;
static volatile int refused, go_on, returned, tid;

// No mapping may lie at address 1.
static void refused_mmap(long page)
{
	mmap((void *)1, 4096, PROT_WRITE, MAP_SHARED | MAP_FIXED, x->cmd_fd, 0x100000 + 4096 * page);
}

static void *first(void *arg)
{
	refused_mmap(0);
	refused = 1;
	while (!go_on)
		;
	return arg;
}

static void *second(void *arg)
{
	tid = syscall(SYS_gettid);
	refused_mmap(1);
	returned = 1;
	return arg;
}

static int in_mmap(void)
{
	char name[64], b[16] = "";
	snprintf(name, sizeof name, "/proc/self/task/%d/syscall", tid);
	int fd = open(name, O_RDONLY);
	int n = read(fd, b, sizeof b - 1);
	close(fd);
	return n > 0 && !strncmp(b, "9 ", 2);
}

static void *repeat(void *arg)
{
	for (int i = 0; i < 50; i++)
		refused_mmap((long)arg);
	return arg;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1, answered = 0;
	struct ibv_device **l = ibv_get_device_list(NULL);
	struct ibv_context *y = l && l[0] ? ibv_open_device(l[0]) : NULL;
	x = y ? ibv_open_device(l[0]) : NULL;
	if (!x)
		return 3;
	for (int k = 0; k < rounds && answered < 2; k++) {
		pthread_t a, b;
		refused = go_on = returned = tid = 0;
		pthread_create(&a, NULL, first, NULL);
		while (!refused)
			;
		pthread_create(&b, NULL, second, NULL);
		while (!returned && (!tid || !in_mmap()))
			;
		for (int i = 0; i < 5; i++) {
			struct ibv_pd *p = ibv_alloc_pd(y);
			if (!p || ibv_dealloc_pd(p))
				return 4;
		}
		answered += !returned;
		go_on = 1;
		pthread_join(a, NULL);
		pthread_join(b, NULL);
	}
	pthread_t t[4];
	for (long i = 0; i < 4; i++)
		pthread_create(t + i, NULL, repeat, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	printf("answered in %d of %d rounds\n", answered, rounds);
	return 0;
}
