// Registers memory whose page faults a thread of the program would have to answer, and lets the device read it.
// Nobody answers: the device must go on all the same, and so must another context.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GETPID32 = 20, IOCTL32 = 54, USERFAULTFD32 = 374, X32 = 0x40000000 };

#define CHECK(x) do { if (!(x)) { printf("line %d: %s (%s)\n", __LINE__, #x, strerror(errno)); return 1; } } while (0)

static int read_from(struct ibv_context *x, void *from)
{
	static char to[4096] __attribute__((aligned(4096)));
	struct ibv_pd *pd = ibv_alloc_pd(x);
	struct ibv_cq *cq = ibv_create_cq(x, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr i = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp *q = ibv_create_qp(pd, &i);
	struct ibv_mr *a = ibv_reg_mr(pd, from, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *b = ibv_reg_mr(pd, to, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	union ibv_gid gid;
	CHECK(q && a && b && !ibv_query_gid(x, 1, 0, &gid));
	struct ibv_qp_attr s = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	CHECK(!ibv_modify_qp(q, &s, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	s = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = q->qp_num,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 64 } } };
	CHECK(!ibv_modify_qp(q, &s, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	s = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7 };
	CHECK(!ibv_modify_qp(q, &s, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
	struct ibv_sge e = { (uint64_t)from, 4096, a->lkey };
	struct ibv_send_wr w = { .sg_list = &e, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr = { .rdma = { (uint64_t)to, b->rkey } } }, *bad;
	struct ibv_wc c;
	CHECK(!ibv_post_send(q, &w, &bad));
	while (!ibv_poll_cq(cq, 1, &c))
		;
	return 0;
}

// A page whose faults go to a descriptor that nobody reads; NULL when the kernel does not give one.
static void *unanswered(int fd)
{
	struct uffdio_api api = { .api = UFFD_API };
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register r = { .range = { (unsigned long)p, 4096 }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &r))
		return NULL;
	return p;
}

// A call of the 32-bit kind, which 64-bit programs can make too, unless the kernel has none.
static long call32(long nr, long a, long b, long c)
{
	int status;
	if (!fork()) {
		long get = GETPID32;
		__asm__ volatile("int $0x80" : "+a"(get) : : "memory", "r8", "r9", "r10", "r11");
		_exit(0);
	}
	if (wait(&status) < 0 || status)
		return -1;
	__asm__ volatile("int $0x80" : "+a"(nr) : "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
	return nr;
}

int main(void)
{
	struct ibv_device **l = ibv_get_device_list(NULL);
	struct ibv_context *x = l && l[0] ? ibv_open_device(l[0]) : NULL;
	CHECK(x);
	int dev = open("/dev/userfaultfd", O_RDWR);
	int fds[] = { syscall(SYS_userfaultfd, O_CLOEXEC), syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY),
		dev < 0 ? -1 : ioctl(dev, USERFAULTFD_IOC_NEW, O_CLOEXEC),
		call32(USERFAULTFD32, O_CLOEXEC, 0, 0), dev < 0 ? -1 : call32(IOCTL32, dev, USERFAULTFD_IOC_NEW, O_CLOEXEC),
		syscall(X32 | SYS_userfaultfd, O_CLOEXEC) };
	for (unsigned i = 0; i < sizeof fds / sizeof *fds; i++) {
		void *p = unanswered(fds[i]);
		if (p && read_from(x, p))
			return 1;
	}
	CHECK(ibv_alloc_pd(x));
	puts("went on");
	return 0;
}
