// Makes and destroys queues in several threads of one context, and checks what RDMA
// WRITEs and READs of a queue pair to itself move: queues THREADS ROUNDS DOMAINS.
// With DOMAINS that many thread domains are made first, and the last one is used.

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHECK(x) do { if (!(x)) { printf("line %d: %s\n", __LINE__, #x); exit(1); } } while (0)

enum { SIZE = 1 << 18 };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static union ibv_gid gid;
static int rounds;

static void connect_self(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	memset(&a, 0, sizeof a);
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = qp->qp_num;
	a.max_dest_rd_atomic = 4;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.dgid = gid;
	a.ah_attr.grh.hop_limit = 1;
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	memset(&a, 0, sizeof a);
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = 7;
	a.max_rd_atomic = 4;
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		IBV_QP_MAX_QP_RD_ATOMIC));
}

static void post(struct ibv_qp *qp, enum ibv_wr_opcode op, char *at, struct ibv_mr *mr, char *to, struct ibv_mr *rmr, unsigned n)
{
	struct ibv_sge sge = {(uintptr_t)at, n, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {(uintptr_t)to, rmr->rkey}};
	CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void reap(struct ibv_cq *cq, int n)
{
	struct ibv_wc wc;
	while (n > 0) {
		int k = ibv_poll_cq(cq, 1, &wc);
		CHECK(k >= 0);
		if (k > 0)
			CHECK(wc.status == IBV_WC_SUCCESS);
		n -= k;
	}
}

// move moves random pieces from a to b and back to c.
static void move(struct ibv_qp *qp, struct ibv_cq *cq, char **m, struct ibv_mr **mr, unsigned *seed)
{
	for (int i = 0; i < 8; i++) {
		unsigned n = rand_r(seed) % 2 ? 1 + rand_r(seed) % 300 : 1 + rand_r(seed) % (SIZE / 2);
		unsigned at = rand_r(seed) % (SIZE - n);
		for (unsigned k = 0; k < n; k++)
			m[0][at + k] = rand_r(seed);
		post(qp, IBV_WR_RDMA_WRITE, m[0] + at, mr[0], m[1] + at, mr[1], n);
		post(qp, IBV_WR_RDMA_READ, m[2] + at, mr[2], m[1] + at, mr[1], n);
		reap(cq, 2);
		CHECK(!memcmp(m[0] + at, m[1] + at, n));
		CHECK(!memcmp(m[0] + at, m[2] + at, n));
	}
}

static void use(struct ibv_pd *in, unsigned seed)
{
	char *m[3];
	struct ibv_mr *mr[3];
	for (int i = 0; i < 3; i++) {
		// What the program shares with itself is moved in another way than what it does not.
		m[i] = mmap(0, SIZE, PROT_READ | PROT_WRITE, (seed >> i & 1 ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
		CHECK(m[i] != MAP_FAILED);
		CHECK(mr[i] = ibv_reg_mr(pd, m[i], SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
	}
	struct ibv_cq *cq = ibv_create_cq(ctx, 1 + seed % 500, 0, 0, 0);
	CHECK(cq);
	struct ibv_qp_init_attr a = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 2 + seed % 200, .max_recv_wr = seed % 100, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(in, &a);
	CHECK(qp);
	connect_self(qp);
	move(qp, cq, m, mr, &seed);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_cq(cq));
	for (int i = 0; i < 3; i++) {
		CHECK(!ibv_dereg_mr(mr[i]));
		munmap(m[i], SIZE);
	}
}

static void *thread(void *arg)
{
	for (int i = 0; i < rounds; i++)
		use(pd, (uintptr_t)arg * 1000 + i);
	return 0;
}

static void domains(int n)
{
	struct ibv_parent_domain_init_attr p = {.pd = pd};
	struct ibv_td_init_attr t = {0};
	for (int i = 0; i < n; i++)
		CHECK(p.td = ibv_alloc_td(ctx, &t));
	struct ibv_pd *parent = ibv_alloc_parent_domain(ctx, &p);
	CHECK(parent);
	use(parent, 1);
}

int main(int argc, char **argv)
{
	CHECK(argc == 4);
	int threads = atoi(argv[1]);
	rounds = atoi(argv[2]);
	struct ibv_device **list = ibv_get_device_list(0);
	CHECK(list && list[0]);
	CHECK(ctx = ibv_open_device(list[0]));
	CHECK(pd = ibv_alloc_pd(ctx));
	CHECK(!ibv_query_gid(ctx, 1, 0, &gid));
	if (atoi(argv[3]))
		domains(atoi(argv[3]));
	pthread_t t[64];
	for (int i = 0; i < threads; i++)
		CHECK(!pthread_create(&t[i], 0, thread, (void *)(uintptr_t)(i + 1)));
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], 0);
	puts("all moved");
	return 0;
}
