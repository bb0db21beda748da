/*
 * ends kills processes and writes at once to the queue pairs that they had: a kernel has destroyed those when waitpid
 * returns, so every request must run out of retries. Its argument is the number of processes. It ends with
 * status 0 when all is as it should be.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { \
	fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #x, errno); _exit(1); } } while (0)

struct end {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
};

/* What two processes share. */
struct meeting {
	volatile uint32_t qpn[2], rkey, ready[2];
	char bytes[64];
};

static struct end open_end(struct meeting *m)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr i = { .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct end e;

	CHECK(list && list[0]);
	c = ibv_open_device(list[0]);
	CHECK(c);
	pd = ibv_alloc_pd(c);
	CHECK(pd);
	e.cq = i.send_cq = i.recv_cq = ibv_create_cq(c, 16, NULL, NULL, 0);
	CHECK(e.cq);
	e.qp = ibv_create_qp(pd, &i);
	CHECK(e.qp);
	e.mr = ibv_reg_mr(pd, m->bytes, sizeof(m->bytes), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(e.mr);
	return e;
}

static void join(struct end *e, uint32_t dest)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	CHECK(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = dest;
	a.max_dest_rd_atomic = 1;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.hop_limit = 1;
	CHECK(!ibv_query_gid(e->qp->context, 1, 0, &a.ah_attr.grh.dgid));
	CHECK(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 8;
	a.retry_cnt = 1;
	a.max_rd_atomic = 1;
	CHECK(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void meet(struct meeting *m, int who)
{
	m->ready[who]++;
	while (m->ready[!who] < m->ready[who])
		usleep(100);
}

static enum ibv_wc_status write_to(struct end *e, struct meeting *m)
{
	struct ibv_sge s = { (uintptr_t)m->bytes, 8, e->mr->lkey };
	struct ibv_send_wr w = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED, .sg_list = &s, .num_sge = 1,
		.wr.rdma = { (uintptr_t)m->bytes, m->rkey } }, *bad;
	struct ibv_wc wc;
	int n;

	CHECK(!ibv_post_send(e->qp, &w, &bad));
	do
		n = ibv_poll_cq(e->cq, 1, &wc);
	while (n == 0);
	CHECK(n == 1);
	return wc.status;
}

static void one(struct meeting *m)
{
	pid_t pid = fork();
	struct end e;

	CHECK(pid >= 0);
	e = open_end(m);
	m->qpn[pid == 0] = e.qp->qp_num;
	if (pid == 0)
		m->rkey = e.mr->rkey;
	meet(m, pid == 0);
	join(&e, m->qpn[pid != 0]);
	meet(m, pid == 0);
	if (pid == 0)
		for (;;)
			pause();
	CHECK(write_to(&e, m) == IBV_WC_SUCCESS);
	CHECK(!kill(pid, SIGKILL));
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(write_to(&e, m) == IBV_WC_RETRY_EXC_ERR);
	_exit(0);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1, failed = 0;

	for (int i = 0; i < n; i++) {
		struct meeting *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		int status;
		pid_t pid;

		CHECK(m != MAP_FAILED);
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			one(m);
		CHECK(waitpid(pid, &status, 0) == pid);
		failed += status != 0;
		munmap(m, 4096);
	}
	printf("%d of %d requests to a process that had ended were answered\n", failed, n);
	return failed != 0;
}
