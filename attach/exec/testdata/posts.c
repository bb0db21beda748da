/*
 * posts runs programs of posts on mlx5_0 and prints what each left behind: the WQEs in
 * the send ring, the doorbell record, the completions. It keeps a copy of what all its
 * memory must hold, and checks it.
 *
 * The programs come on standard input, as words. Lengths of areas, numbers of queues
 * and the rules of "post" are those of the simulated interpreter beside the test.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
	QUEUES = 16, DOMAINS = 16, MAXWR = 16, MAXSGE = 32, MAXWC = 8192,
	AREA = 4096, SLOTS = 32, SLOT = 256, SLAB = 3 * AREA + SLOTS * SLOT, MEMORY = QUEUES * SLAB,
	SRC = 0, DST = AREA, REMOTE = 2 * AREA, RECV = 3 * AREA,
};

struct queue {
	struct ibv_qp *qp;
	struct mlx5dv_qp dv;
	int peer;
	bool all;		/* every request is signalled */
	uint16_t sent;		/* send counter seen last */
	unsigned posted, taken, polled;	/* receives */
};

static struct ibv_context *ctx;
static struct ibv_pd *pd, *parents[DOMAINS];
static struct ibv_td *tds[DOMAINS];
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static union ibv_gid gid;
static struct queue queues[QUEUES];
static uint8_t *memory, *copy;
static uint64_t next_id;
static unsigned due;		/* completions */

static void die(const char *what)
{
	fprintf(stderr, "posts: %s: %s\n", what, strerror(errno));
	exit(3);
}

static long number(void)
{
	long n;

	if (scanf("%ld", &n) != 1)
		die("a number is missing");
	return n;
}

static uint64_t big(void)
{
	uint64_t n;

	if (scanf("%" SCNu64, &n) != 1)
		die("a number is missing");
	return n;
}

/* synchronise returns when the simulator has seen all that was stored to registers:
 * between two calls it looks at them. */
static void synchronise(struct queue *q)
{
	struct ibv_qp_attr a;
	struct ibv_qp_init_attr i;

	for (int k = 0; k < 2; k++)
		if (ibv_query_qp(q->qp, &a, IBV_QP_STATE, &i))
			die("query_qp");
	if (a.qp_state == IBV_QPS_ERR || a.qp_state == IBV_QPS_SQE)
		die("a queue pair is in error");
}

static void do_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		die("no device");
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	printf("open %d\n", ctx != NULL);
	if (!ctx)
		return;
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	copy = malloc(MEMORY);
	if (memory == MAP_FAILED || !copy)
		die("memory");
	for (uint32_t i = 0; i < MEMORY; i++)
		memory[i] = copy[i] = i * 0x9e3779b1u >> 24;
	pd = ibv_alloc_pd(ctx);
	if (!pd)
		die("alloc_pd");
	mr = ibv_reg_mr(pd, memory, MEMORY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	if (!mr)
		die("reg_mr");
	cq = ibv_create_cq(ctx, 4095, NULL, NULL, 0);
	if (!cq)
		die("create_cq");
	if (ibv_query_gid(ctx, 1, 0, &gid))
		die("query_gid");
	printf("key %08x at %" PRIx64 "\n", mr->lkey, (uint64_t)memory);
	if (mr->lkey != mr->rkey)
		die("two keys");
	next_id = due = 0;
}

/* destroy also ends the posts to the queue pair. */
static void destroy(int id)
{
	struct queue *q = &queues[id];

	if (!q->qp)
		return;
	if (q->peer >= 0)
		queues[q->peer].peer = -1;
	if (ibv_destroy_qp(q->qp))
		die("destroy_qp");
	memset(q, 0, sizeof(*q));
}

static void do_close(void)
{
	for (int i = 0; i < QUEUES; i++)
		destroy(i);
	for (int i = 0; i < DOMAINS; i++) {
		if (parents[i] && ibv_dealloc_pd(parents[i]))
			die("dealloc_pd of a parent domain");
		if (tds[i] && ibv_dealloc_td(tds[i]))
			die("dealloc_td");
		parents[i] = NULL;
		tds[i] = NULL;
	}
	if (ibv_destroy_cq(cq) || ibv_dereg_mr(mr) || ibv_dealloc_pd(pd) || ibv_close_device(ctx))
		die("close");
	munmap(memory, MEMORY);
	free(copy);
}

/* td ID: a thread domain with a parent domain. */
static void do_td(void)
{
	struct ibv_td_init_attr a = {};
	struct ibv_parent_domain_init_attr p = { .pd = pd };
	int i = number();

	tds[i] = ibv_alloc_td(ctx, &a);
	printf("td %d %d\n", i, tds[i] ? 0 : errno);
	if (!tds[i])
		return;
	p.td = tds[i];
	parents[i] = ibv_alloc_parent_domain(ctx, &p);
	if (!parents[i])
		die("alloc_parent_domain");
}

static void do_tdfree(void)
{
	int i = number();

	if (!tds[i])
		return;
	if (ibv_dealloc_pd(parents[i]) || ibv_dealloc_td(tds[i]))
		die("dealloc_td");
	parents[i] = NULL;
	tds[i] = NULL;
}

/* qp ID TD|-1 ALL SEND_WR RECV_WR SEND_SGE RECV_SGE INLINE */
static void do_qp(void)
{
	struct ibv_qp_init_attr a = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC };
	struct mlx5dv_obj o = {};
	int id = number(), td = number();
	struct queue *q = &queues[id];

	a.sq_sig_all = number();
	q->all = a.sq_sig_all;
	a.cap.max_send_wr = number();
	a.cap.max_recv_wr = number();
	a.cap.max_send_sge = number();
	a.cap.max_recv_sge = number();
	a.cap.max_inline_data = number();
	errno = 0;
	q->qp = ibv_create_qp(td >= 0 && parents[td] ? parents[td] : pd, &a);
	if (!q->qp) {
		printf("qp %d error %d\n", id, errno);
		return;
	}
	o.qp.in = q->qp;
	o.qp.out = &q->dv;
	if (mlx5dv_init_obj(&o, MLX5DV_OBJ_QP))
		die("mlx5dv_init_obj");
	q->peer = -1;
	printf("qp %d qpn %06x caps %u %u %u %u %u ring %u bf %lx %u\n", id, q->qp->qp_num, a.cap.max_send_wr,
	       a.cap.max_recv_wr, a.cap.max_send_sge, a.cap.max_recv_sge, a.cap.max_inline_data, q->dv.sq.wqe_cnt,
	       (unsigned long)q->dv.bf.reg & 4095, q->dv.bf.size);
}

static void ready(struct queue *q, struct queue *to)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = IBV_MTU_256, .dest_qp_num = to->qp->qp_num, .max_dest_rd_atomic = 8, .min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 64 } },
		.timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 8,
	};

	if (ibv_modify_qp(q->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("modify_qp to INIT");
	a.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(q->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("modify_qp to RTR");
	a.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(q->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("modify_qp to RTS");
}

/* connect A B: each sends to the other; A may be B. */
static void do_connect(void)
{
	int a = number(), b = number();

	if (!queues[a].qp || !queues[b].qp)
		return;
	ready(&queues[a], &queues[b]);
	if (a != b)
		ready(&queues[b], &queues[a]);
	queues[a].peer = b;
	queues[b].peer = a;
}

/* receive posts one receive, if there is a slot that the library is done with: short
 * messages get there when they are polled. */
static bool receive(int id)
{
	struct queue *q = &queues[id];
	struct ibv_sge s = { (uint64_t)memory + id * SLAB + RECV + q->posted % SLOTS * SLOT, SLOT, mr->lkey };
	struct ibv_recv_wr w = { .wr_id = next_id++, .sg_list = &s, .num_sge = 1 }, *bad;
	int e;

	if (q->posted - q->polled == SLOTS)
		return false;
	e = ibv_post_recv(q->qp, &w, &bad);
	printf("recv %d %d record %u\n", id, e, ntohl(q->dv.dbrec[0]));
	if (!e)
		q->posted++;
	return !e;
}

static bool receives(const struct ibv_send_wr *w)
{
	return w->opcode == IBV_WR_SEND || w->opcode == IBV_WR_SEND_WITH_IMM || w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* local is where the list entry of a request lies in the copy. */
static uint8_t *local(const struct ibv_send_wr *w, int i)
{
	return copy + (w->sg_list[i].addr - (uint64_t)memory);
}

/* perform does to the copy what the device does to the memory. */
static void perform(int id, const struct ibv_send_wr *w)
{
	struct queue *q = &queues[id], *to = &queues[q->peer];
	bool atomic = w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	uint8_t *far = copy + ((atomic ? w->wr.atomic.remote_addr : w->wr.rdma.remote_addr) - (uint64_t)memory);
	uint64_t old, new;

	if (q->all || w->send_flags & IBV_SEND_SIGNALED)
		due++;
	if (atomic) {
		memcpy(&old, far, 8);
		new = w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? old + w->wr.atomic.compare_add :
			old == w->wr.atomic.compare_add ? w->wr.atomic.swap : old;
		memcpy(far, &new, 8);
		memcpy(local(w, 0), &old, 8);
		return;
	}
	if (w->opcode == IBV_WR_SEND || w->opcode == IBV_WR_SEND_WITH_IMM)
		far = copy + q->peer * SLAB + RECV + to->taken % SLOTS * SLOT;
	if (receives(w)) {
		to->taken++;
		due++;
	}
	for (int i = 0; i < w->num_sge; i++) {
		uint32_t n = w->sg_list[i].length;

		if (w->opcode == IBV_WR_RDMA_READ)
			memcpy(local(w, i), far, n);
		else
			memcpy(far, local(w, i), n);
		far += n;
	}
}

/* wr OPCODE FLAGS REMOTE IMM COMPARE SWAP SGES (OFFSET LENGTH)... */
static void read_wr(int id, struct ibv_send_wr *w, struct ibv_sge *s)
{
	uint64_t far, base;
	uint32_t imm;

	if (scanf(" wr") == EOF)
		die("a request is missing");
	memset(w, 0, sizeof(*w));
	w->wr_id = next_id++;
	w->opcode = number();
	w->send_flags = number();
	base = (uint64_t)memory + id * SLAB;
	far = base + REMOTE + number();
	imm = big();
	w->imm_data = htonl(imm);
	switch (w->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		w->wr.atomic.remote_addr = far;
		w->wr.atomic.rkey = mr->rkey;
		w->wr.atomic.compare_add = big();
		w->wr.atomic.swap = big();
		base += DST;
		break;
	default:
		w->wr.rdma.remote_addr = far;
		w->wr.rdma.rkey = mr->rkey;
		big();
		big();
		base += w->opcode == IBV_WR_RDMA_READ ? DST : SRC;
	}
	w->num_sge = number();
	w->sg_list = s;
	for (int i = 0; i < w->num_sge; i++) {
		s[i].addr = base + number();
		s[i].length = number();
		s[i].lkey = mr->lkey;
	}
}

/* print_ring prints what was put into the ring since the last time. */
static void print_ring(int id)
{
	struct queue *q = &queues[id];
	uint16_t now = ntohl(q->dv.dbrec[1]);

	if (q->sent == now)
		return;
	printf("wqes %d %u ", id, q->sent);
	for (; q->sent != now; q->sent++) {
		const uint8_t *b = (uint8_t *)q->dv.sq.buf + q->sent % q->dv.sq.wqe_cnt * q->dv.sq.stride;

		for (unsigned i = 0; i < q->dv.sq.stride; i++)
			printf("%02x", b[i]);
	}
	printf("\n");
}

/* post QP N wr...: receives that the peer lacks are posted first; a list that there is
 * no room for is left out. */
static void do_post(void)
{
	static struct ibv_sge sges[MAXWR][MAXSGE];
	static struct ibv_send_wr wrs[MAXWR];
	struct ibv_send_wr *bad = NULL;
	int id = number(), n = number(), e;
	struct queue *q = &queues[id];
	unsigned want = 0;

	for (int i = 0; i < n; i++) {
		read_wr(id, &wrs[i], sges[i]);
		wrs[i].next = i + 1 < n ? &wrs[i + 1] : NULL;
		want += receives(&wrs[i]);
	}
	if (!q->qp || q->peer < 0)
		return;
	while (queues[q->peer].posted - queues[q->peer].taken < want)
		if (!receive(q->peer))
			return;
	e = ibv_post_send(q->qp, wrs, &bad);
	for (int i = 0; i < n && !(e && &wrs[i] == bad); i++)
		perform(id, &wrs[i]);
	synchronise(q);
	printf("post %d %d at %d record %u\n", id, e, e ? (int)(bad - wrs) : n, ntohl(q->dv.dbrec[1]));
	print_ring(id);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

static void print_wc(int id, const struct ibv_wc *w)
{
	bool sized = w->opcode & IBV_WC_RECV || w->opcode == IBV_WC_RDMA_READ ||
		w->opcode == IBV_WC_COMP_SWAP || w->opcode == IBV_WC_FETCH_ADD;

	printf("wc %d id %" PRIu64 " status %d opcode %d bytes %u flags %x imm %u\n", id, w->wr_id, w->status, w->opcode,
	       sized ? w->byte_len : 0, w->wc_flags,
	       w->opcode & IBV_WC_RECV && w->wc_flags & IBV_WC_WITH_IMM ? ntohl(w->imm_data) : 0);
}

/* drain waits for all completions and until the memory is as it must be. */
static void do_drain(void)
{
	static struct ibv_wc wcs[MAXWC];
	uint64_t end = now_ms() + 20000, hash = 0xcbf29ce484222325ull;
	unsigned have = 0;
	int n;

	while (have < due && now_ms() < end) {
		n = ibv_poll_cq(cq, MAXWC - have, wcs + have);
		if (n < 0)
			die("poll_cq");
		have += n;
	}
	if (have != due)
		die("completions are missing");
	due = 0;
	for (int id = 0; id < QUEUES; id++)
		queues[id].polled = queues[id].taken;
	for (int recv = 0; recv < 2; recv++)
		for (int id = 0; id < QUEUES; id++)
			for (unsigned i = 0; i < have; i++)
				if (queues[id].qp && wcs[i].qp_num == queues[id].qp->qp_num &&
				    !!(wcs[i].opcode & IBV_WC_RECV) == recv)
					print_wc(id, &wcs[i]);
	while (memcmp(memory, copy, MEMORY) && now_ms() < end)
		;
	for (unsigned i = 0; i < MEMORY; i++) {
		if (memory[i] != copy[i]) {
			fprintf(stderr, "posts: byte %#x of slab %d is %02x and must be %02x\n", i % SLAB, i / SLAB,
				memory[i], copy[i]);
			exit(3);
		}
		hash = (hash ^ memory[i]) * 0x100000001b3ull;
	}
	printf("memory %016" PRIx64 "\n", hash);
}

static void do_env(void)
{
	char name[64], value[64];

	if (scanf("%63s %63s", name, value) != 2)
		die("env");
	setenv(name, value, 1);
}

static void do_program(void)
{
	static const char *const names[] = {
		"MLX5_TOTAL_UUARS", "MLX5_NUM_LOW_LAT_UUARS", "MLX5_SHUT_UP_BF", "MLX5_POST_SEND_PREFER_BF",
		"MLX5_SINGLE_THREADED", "MLX5_CQE_SIZE", "MLX5_SCATTER_TO_CQE",
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	printf("program %ld\n", number());
}

int main(void)
{
	static const struct {
		const char *word;
		void (*run)(void);
	} steps[] = {
		{ "program", do_program }, { "env", do_env }, { "open", do_open },
		{ "close", do_close }, { "td", do_td }, { "tdfree", do_tdfree }, { "qp", do_qp },
		{ "connect", do_connect }, { "post", do_post }, { "drain", do_drain },
	};
	char word[64];

	while (scanf("%63s", word) == 1) {
		unsigned i = 0;

		if (!strcmp(word, "qpfree")) {
			destroy(number());
			continue;
		}
		while (i < sizeof(steps) / sizeof(steps[0]) && strcmp(word, steps[i].word))
			i++;
		if (i == sizeof(steps) / sizeof(steps[0]))
			die(word);
		steps[i].run();
	}
	return 0;
}
