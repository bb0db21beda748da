// limits KIND... makes objects of each kind until one is refused, and prints how many there were and the
// errno. Then a child makes one: it may have its own. In the end the process gives everything back, and
// makes one again.
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1 << 17 };

static struct ibv_device **devices;
static struct ibv_context *x;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static union ibv_gid gid;
static char page[8192];
static char *big; // reserved, and never touched
static const size_t bigsize = 1ull << 30;
static void *made[MOST];

static void *make(const char *kind)
{
	struct ibv_ah_attr a = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 1 } };
	struct ibv_srq_init_attr s = { .attr = { 1, 1, 0 } };
	struct ibv_qp_init_attr q = { .send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	if (!strcmp(kind, "pd"))
		return ibv_alloc_pd(x);
	if (!strcmp(kind, "mr"))
		return ibv_reg_mr(pd, page, sizeof page, 0);
	if (!strcmp(kind, "memory"))
		return ibv_reg_mr(pd, big, bigsize, 0);
	if (!strcmp(kind, "mw"))
		return ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	if (!strcmp(kind, "ah"))
		return ibv_create_ah(pd, &a);
	if (!strcmp(kind, "cq"))
		return ibv_create_cq(x, 1, NULL, NULL, 0);
	if (!strcmp(kind, "srq"))
		return ibv_create_srq(pd, &s);
	if (!strcmp(kind, "qp"))
		return ibv_create_qp(pd, &q);
	if (!strcmp(kind, "channel"))
		return ibv_create_comp_channel(x);
	if (!strcmp(kind, "file"))
		return ibv_open_device(devices[0]);
	exit(2);
}

static int end(const char *kind, void *p)
{
	if (!strcmp(kind, "pd"))
		return ibv_dealloc_pd(p);
	if (!strcmp(kind, "mr") || !strcmp(kind, "memory"))
		return ibv_dereg_mr(p);
	if (!strcmp(kind, "mw"))
		return ibv_dealloc_mw(p);
	if (!strcmp(kind, "ah"))
		return ibv_destroy_ah(p);
	if (!strcmp(kind, "cq"))
		return ibv_destroy_cq(p);
	if (!strcmp(kind, "srq"))
		return ibv_destroy_srq(p);
	if (!strcmp(kind, "qp"))
		return ibv_destroy_qp(p);
	if (!strcmp(kind, "channel"))
		return ibv_destroy_comp_channel(p);
	return ibv_close_device(p);
}

static int begin(void)
{
	x = ibv_open_device(devices[0]);
	pd = x ? ibv_alloc_pd(x) : NULL;
	cq = pd ? ibv_create_cq(x, 1, NULL, NULL, 0) : NULL;
	return cq && !ibv_query_gid(x, 1, 0, &gid);
}

static int fill(const char *kind)
{
	int n = 0, left, status;
	errno = 0;
	while (n < MOST && (made[n] = make(kind)))
		n++;
	printf("%s %d %s\n", kind, n, strerrorname_np(errno));
	fflush(stdout);
	pid_t child = fork();
	if (!child)
		_exit(!begin() || (strcmp(kind, "memory") && !make(kind)));
	if (waitpid(child, &status, 0) != child || status) {
		printf("%s: a child can make nothing\n", kind);
		return 1;
	}
	for (left = n; left > 0; left--)
		if (end(kind, made[left - 1])) {
			printf("%s: cannot be given back\n", kind);
			return 1;
		}
	void *again = make(kind);
	for (int tries = 0; !again && tries < 60000; tries++) { // the end of a file is seen a little later
		usleep(1000);
		again = make(kind);
	}
	if (!again || end(kind, again)) {
		printf("%s: none after all were given back\n", kind);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	devices = ibv_get_device_list(NULL);
	big = mmap(NULL, bigsize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!devices || !devices[0] || big == MAP_FAILED || !begin())
		return 3;
	for (int i = 1; i < argc; i++)
		if (fill(argv[i]))
			return 1;
	return 0;
}
