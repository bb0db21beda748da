/*
 * hostile makes valid, nearly valid and hostile use of the devices in a generated order:
 *
 *   hostile gen SEED COUNT               prints a program: lines of an operation's name and its seed
 *   hostile run FILE...                  runs programs in child processes, which may end as they like
 *   hostile seeds FIRST PROGRAMS COUNT   runs the programs that gen would print
 *   hostile good                         makes a queue pair, moves data and checks it, as a program should
 *
 * After each program good must be possible. stderr names the program before it begins.
 *
 * An operation draws all that it chooses from its own seed, so that a line that is removed from a
 * program, or an operation that is added to the table, does not change the others.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CTX = 4, MANY = 12, PAGES = 64, PAGE = 4096 };

static struct ibv_context *ctx[CTX];
static struct ibv_pd *pd[MANY];
static struct ibv_cq *cq[MANY];
static struct ibv_qp *qp[MANY];
static struct ibv_srq *srq[MANY];
static struct ibv_mr *mr[MANY];
static struct ibv_mw *mw[MANY];
static struct ibv_ah *ah[MANY];
static struct ibv_comp_channel *ch[MANY];
static void *uar[MANY];  // pages of registers that rings have shown
static void *ring[MANY]; // memory of queues
static size_t ringlen[MANY];
static int fds[MANY]; // copies of device files, and what else came from the device
static uint8_t *mem;
static int depth; // of forks

static __thread uint64_t state;

static uint64_t rnd(void)
{
	state += 0x9e3779b97f4a7c15ull; // splitmix64
	uint64_t z = state;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static int n(int limit) { return rnd() % limit; }
static int at(void) { return n(MANY); }

// A small number, or one at the edge of something.
static uint64_t value(void)
{
	static const uint64_t edges[] = { 0, ~0ull, 1ull << 31, 0x7fffffff, 1ull << 32, 0xffff, 0x10000, 1ull << 63 };
	switch (n(4)) {
	case 0: return edges[n(8)];
	case 1: return rnd() >> n(64);
	default: return n(20);
	}
}

// An address: of the arena, of a queue, or of nothing.
static uint64_t address(void)
{
	switch (n(12)) {
	case 0: return 0;
	case 1: return ~0ull - n(8192);
	case 2: return 0x7fffffffe000ull;
	case 3: return (uint64_t)mem + (uint64_t)n(PAGES) * PAGE - 3;
	case 4: return (uint64_t)ring[at()] + n(PAGE);
	case 5: return (uint64_t)uar[at()] + n(PAGE);
	case 6: return 0xffffffff80000000ull;
	default: return (uint64_t)mem + n((PAGES - 1) * PAGE);
	}
}

// A size that may be, or one that may not.
static uint32_t size(uint32_t usual) { return n(6) ? 1 + n(usual) : value(); }

static void fill(volatile void *p, size_t len)
{
	for (size_t i = 0; i + 8 <= len; i += 8)
		*(volatile uint64_t *)((volatile uint8_t *)p + i) = rnd();
}

static struct ibv_context *context(void)
{
	int i = n(CTX);
	if (!ctx[i]) {
		struct ibv_device **l = ibv_get_device_list(NULL);
		ctx[i] = l && l[0] ? ibv_open_device(l[0]) : NULL;
		ibv_free_device_list(l);
	}
	return ctx[i];
}

static int file(void) { return n(3) || !ctx[0] ? fds[at()] : ctx[0]->cmd_fd; }

static void op_open(void) { context(); }

static void op_close(void)
{
	int i = n(CTX);
	if (!ctx[i] || n(4))
		return;
	close(ctx[i]->cmd_fd); // the library does not know
	ctx[i] = NULL;
}

static void op_pd(void)
{
	int i = at();
	if (pd[i] && n(2) && !ibv_dealloc_pd(pd[i]))
		pd[i] = NULL;
	struct ibv_context *x = context();
	if (x && !pd[i])
		pd[i] = ibv_alloc_pd(x);
}

static struct ibv_pd *a_pd(void)
{
	int i = at();
	struct ibv_context *x = context();
	if (!pd[i] && x)
		pd[i] = ibv_alloc_pd(x);
	return pd[i];
}

static void keep(void *buf, size_t len)
{
	int i = at();
	ring[i] = buf;
	ringlen[i] = len;
}

static void op_cq(void)
{
	int i = at();
	if (cq[i] && n(2) && !ibv_destroy_cq(cq[i]))
		cq[i] = NULL;
	struct ibv_context *x = context();
	if (cq[i] || !x)
		return;
	struct ibv_comp_channel *c = ch[at()];
	if (!(cq[i] = ibv_create_cq(x, size(300), NULL, c && c->context == x ? c : NULL, n(8) ? 0 : value())))
		return;
	struct mlx5dv_cq d;
	struct mlx5dv_obj o = { .cq = { cq[i], &d } };
	if (!mlx5dv_init_obj(&o, MLX5DV_OBJ_CQ)) {
		keep(d.buf, (size_t)d.cqe_cnt * d.cqe_size);
		uar[at()] = (void *)((uint64_t)d.cq_uar & ~(PAGE - 1ull));
	}
}

static struct ibv_cq *a_cq(struct ibv_context *x)
{
	int i = at();
	if (!cq[i] && x)
		cq[i] = ibv_create_cq(x, 1 + n(64), NULL, NULL, 0);
	return cq[i];
}

static void op_srq(void)
{
	int i = at();
	if (srq[i] && n(2) && !ibv_destroy_srq(srq[i]))
		srq[i] = NULL;
	struct ibv_pd *p = a_pd();
	struct ibv_srq_init_attr a = { .attr = { .max_wr = size(64), .max_sge = size(4) } };
	if (p && !srq[i])
		srq[i] = ibv_create_srq(p, &a);
	if (srq[i]) {
		struct ibv_srq_attr b = { .max_wr = value(), .srq_limit = size(10) };
		ibv_modify_srq(srq[i], &b, n(4) ? IBV_SRQ_LIMIT : value());
	}
}

static void op_qp(void)
{
	int i = at();
	if (qp[i] && n(2) && !ibv_destroy_qp(qp[i]))
		qp[i] = NULL;
	struct ibv_pd *p = a_pd();
	if (!p || qp[i])
		return;
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET };
	struct ibv_srq *s = srq[at()];
	struct ibv_qp_init_attr a = { .send_cq = a_cq(p->context), .recv_cq = a_cq(p->context), .srq = n(3) ? NULL : s,
		.qp_type = n(20) ? types[n(6)] : value(), .sq_sig_all = n(2),
		.cap = { size(64), size(64), size(4), size(4), n(3) ? 0 : size(200) } };
	if (!a.send_cq || !a.recv_cq || !(qp[i] = ibv_create_qp(p, &a)))
		return;
	struct mlx5dv_qp d;
	struct mlx5dv_obj o = { .qp = { qp[i], &d } };
	if (!mlx5dv_init_obj(&o, MLX5DV_OBJ_QP)) {
		keep(d.sq.buf, (size_t)d.sq.wqe_cnt * d.sq.stride);
		keep(d.rq.buf, (size_t)d.rq.wqe_cnt * d.rq.stride);
		uar[at()] = (void *)((uint64_t)d.bf.reg & ~(PAGE - 1ull));
	}
}

static int to_rts(struct ibv_qp *q, uint32_t peer, int timeout)
{
	union ibv_gid gid;
	if (ibv_query_gid(q->context, 1, 0, &gid))
		return -1;
	int ud = q->qp_type == IBV_QPT_UD, rc = q->qp_type == IBV_QPT_RC;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x1111,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
	if (ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)))
		return -1;
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 1, .ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 64 } } };
	if (ibv_modify_qp(q, &a, IBV_QP_STATE | (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
			(rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)))
		return -1;
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 2, .rnr_retry = 1, .max_rd_atomic = 1 };
	return ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
		(rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0));
}

static void op_connect(void)
{
	struct ibv_qp *a = qp[at()], *b = qp[at()];
	if (a && b) {
		to_rts(a, b->qp_num, 8);
		to_rts(b, a->qp_num, 8);
	}
}

static void op_modify(void)
{
	struct ibv_qp *q = qp[at()];
	struct ibv_qp_attr a;
	fill(&a, sizeof a);
	a.qp_state = n(8);
	a.cur_qp_state = n(8);
	a.port_num = n(4) ? 1 : a.port_num;
	if (q)
		ibv_modify_qp(q, &a, n(2) ? IBV_QP_STATE : value());
	struct ibv_qp_init_attr i;
	if (q)
		ibv_query_qp(q, &a, value(), &i);
}

static void op_mr(void)
{
	int i = at();
	if (mr[i] && n(2) && !ibv_dereg_mr(mr[i]))
		mr[i] = NULL;
	struct ibv_pd *p = a_pd();
	int access = n(3) ? 0xf : value();
	if (n(2))
		access |= IBV_ACCESS_ON_DEMAND;
	if (p && !mr[i] && (access & IBV_ACCESS_ON_DEMAND) && !n(4))
		mr[i] = ibv_reg_mr(p, NULL, SIZE_MAX, access);
	else if (p && !mr[i])
		mr[i] = ibv_reg_mr(p, (void *)address(), n(4) ? 1 + n(8 * PAGE) : value(), access);
	else if (mr[i])
		ibv_rereg_mr(mr[i], n(8), a_pd(), (void *)address(), 1 + n(PAGE), n(4) ? n(16) : value());
	struct ibv_sge s = { n(4) ? (uint64_t)address() : value(), n(4) ? n(8 * PAGE) : value(), mr[i] ? mr[i]->lkey : value() };
	if (p)
		ibv_advise_mr(p, n(4), n(3), &s, 1);
}

static void op_mw(void)
{
	int i = at();
	if (mw[i] && n(2) && !ibv_dealloc_mw(mw[i]))
		mw[i] = NULL;
	struct ibv_pd *p = a_pd();
	if (p && !mw[i])
		mw[i] = ibv_alloc_mw(p, n(3));
}

static void op_ah(void)
{
	int i = at();
	if (ah[i] && n(2) && !ibv_destroy_ah(ah[i]))
		ah[i] = NULL;
	struct ibv_pd *p = a_pd();
	struct ibv_ah_attr a = { .is_global = n(4) > 0, .port_num = size(1), .grh = { .hop_limit = n(64), .sgid_index = n(4) ? 0 : value() } };
	if (p && !ah[i] && !ibv_query_gid(p->context, 1, 0, &a.grh.dgid)) {
		if (!n(4))
			fill(&a.grh.dgid, sizeof a.grh.dgid);
		ah[i] = ibv_create_ah(p, &a);
	}
}

static void op_channel(void)
{
	int i = at();
	if (ch[i] && n(3)) {
		if (n(2))
			close(ch[i]->fd); // events may lie in it
		else if (ibv_destroy_comp_channel(ch[i]))
			return;
		ch[i] = NULL;
	}
	struct ibv_context *x = context();
	if (x && !ch[i] && (ch[i] = ibv_create_comp_channel(x)))
		fcntl(ch[i]->fd, F_SETFL, O_NONBLOCK);
}

static struct ibv_sge sge(void)
{
	struct ibv_mr *m = mr[at()];
	if (!m || !n(8))
		return (struct ibv_sge){ address(), size(PAGE), value() };
	return (struct ibv_sge){ (uint64_t)m->addr + n(64), n(8) ? n(4000) : value(), m->lkey };
}

static void op_post(void)
{
	struct ibv_qp *q = qp[at()];
	struct ibv_mr *m = mr[at()];
	struct ibv_sge s[4] = { sge(), sge(), sge(), sge() };
	struct ibv_recv_wr r = { .wr_id = rnd(), .sg_list = s, .num_sge = n(3) }, *badr;
	struct ibv_send_wr w = { .wr_id = rnd(), .sg_list = s, .num_sge = n(3), .opcode = n(10) ? n(7) : value(),
		.send_flags = n(4) ? IBV_SEND_SIGNALED : n(16), .imm_data = rnd() }, *bads;
	if (!q || q->state < IBV_QPS_INIT)
		return;
	for (int k = n(4); k > 0; k--)
		ibv_post_recv(q, &r, &badr);
	if (q->qp_type == IBV_QPT_UD) {
		if (!(w.wr.ud.ah = ah[at()]) || q->state != IBV_QPS_RTS)
			return;
		w.wr.ud.remote_qpn = n(2) ? q->qp_num : value();
		w.wr.ud.remote_qkey = 0x1111;
	} else {
		w.wr.atomic.remote_addr = m && n(6) ? (uint64_t)m->addr + 8 * n(64) : address();
		w.wr.atomic.rkey = m && n(6) ? m->rkey : value();
	}
	for (int k = n(6); k > 0; k--)
		ibv_post_send(q, &w, &bads);
}

static void op_post_srq(void)
{
	struct ibv_srq *q = srq[at()];
	struct ibv_sge s = sge();
	struct ibv_recv_wr r = { .wr_id = rnd(), .sg_list = &s, .num_sge = n(2) }, *bad;
	for (int k = n(6); q && k > 0; k--)
		ibv_post_srq_recv(q, &r, &bad);
}

static void op_poll(void)
{
	struct ibv_cq *q = cq[at()];
	struct ibv_wc wc[8];
	if (!q)
		return;
	ibv_req_notify_cq(q, n(2));
	for (int k = 0; k < 4; k++)
		ibv_poll_cq(q, 8, wc);
	if (!n(3))
		ibv_resize_cq(q, size(300));
	struct ibv_comp_channel *c = ch[at()];
	struct ibv_cq *of;
	void *cookie;
	if (c && !ibv_get_cq_event(c, &of, &cookie))
		ibv_ack_cq_events(of, 1);
}

// Doorbells and pushes that no library makes.
static void op_register(void)
{
	uint8_t *p = uar[at()];
	if (!p)
		return;
	struct ibv_qp *q = qp[at()];
	static const int places[] = { 0x800, 0x900, 0xa00, 0xb00, 0x20, 0 };
	volatile uint64_t *to = (volatile uint64_t *)(p + (n(8) ? places[n(5)] : n(PAGE / 8) * 8));
	int words = n(3) ? 1 : n(32);
	for (int k = 0; k < words && ((uint64_t)to & (PAGE - 1)) + 8 * k < PAGE - 8; k++) {
		uint64_t v = rnd();
		if (k == 0 && q && n(4)) // one that names a queue
			v = __builtin_bswap64((uint64_t)n(0x1000000) << 32 | (uint64_t)q->qp_num << 8 | n(64));
		to[k] = v;
	}
}

static void op_record(void)
{
	struct ibv_qp *q = qp[at()];
	struct ibv_cq *c = cq[at()];
	struct mlx5dv_qp dq;
	struct mlx5dv_cq dc;
	struct mlx5dv_obj o = { .qp = { q, &dq } };
	if (q && n(2) && !mlx5dv_init_obj(&o, MLX5DV_OBJ_QP))
		dq.dbrec[n(2)] = n(2) ? __builtin_bswap32(n(70)) : rnd();
	o.cq.in = c;
	o.cq.out = &dc;
	if (c && n(2) && !mlx5dv_init_obj(&o, MLX5DV_OBJ_CQ))
		dc.dbrec[n(2)] = n(2) ? __builtin_bswap32(n(70)) : rnd();
}

// Work requests and completions that no library writes.
static void op_ring(void)
{
	int i = at();
	if (!ring[i] || ringlen[i] < 64)
		return;
	uint8_t *p = (uint8_t *)ring[i] + 64 * n(ringlen[i] / 64);
	struct ibv_qp *q = qp[at()];
	if (n(3) && q) { // a head that passes the first checks
		static const uint8_t ops[] = { 0, 1, 8, 9, 10, 11, 14, 16, 17, 18, 20, 21, 0x19, 0x1b, 0x25, 0x1f, 0x2f };
		uint32_t h[4] = { __builtin_bswap32(n(256) << 24 | n(64) << 8 | ops[n(17)]), __builtin_bswap32(q->qp_num << 8 | n(64)), 0, rnd() };
		memcpy(p, h, 16);
		fill(p + 16, 48);
	} else
		fill(p, 64);
}

// What the kernel lets a program do to its memory.
static void op_memory(void)
{
	void *p = n(3) ? ring[at()] : n(2) ? uar[at()] : mem + n(PAGES) * PAGE;
	size_t len = n(4) ? PAGE : (1 + n(16)) * PAGE;
	if (!p || !depth) // the child that survives is the first one
		return;
	p = (void *)((uint64_t)p & ~(PAGE - 1ull));
	switch (n(9)) {
	case 0: munmap(p, len); break;
	case 1: mprotect(p, len, n(8)); break;
	case 2: madvise(p, len, MADV_REMOVE); break;
	case 3: madvise(p, len, MADV_DONTNEED); break;
	case 4: mremap(p, PAGE, len, MREMAP_MAYMOVE); break;
	case 5: mmap(p, len, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); break;
	case 6: mmap(p, len, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, file(), n(32) * PAGE); break;
	case 7: madvise(p, len, 100 + n(4)); break; // hardware poison needs rights, the others do not exist
	case 8: madvise(p, len, MADV_FREE); break;
	}
}

// A file of the program's own, registered and then cut off.
static void op_own_file(void)
{
	int f = memfd_create("own", n(2) ? 0 : MFD_HUGETLB);
	size_t len = 2 << 20;
	if (f < 0 || ftruncate(f, len))
		return;
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	struct ibv_pd *d = a_pd();
	int i = at();
	if (p != MAP_FAILED && d && !mr[i])
		mr[i] = ibv_reg_mr(d, p, n(2) ? len : PAGE, 0xf);
	if (n(2))
		ftruncate(f, n(2) ? 0 : PAGE);
	close(f);
}

static void op_mmap(void)
{
	static const size_t lens[] = { PAGE, PAGE, PAGE, 2 * PAGE, 1 << 20, 1ull << 30, 1ull << 40, 0 };
	uint64_t off = n(3) == 0 ? (uint64_t)n(512) * PAGE : n(2) ? ((uint64_t)n(16) << 20 | (uint64_t)n(300) * PAGE) : rnd() & ~(PAGE - 1ull);
	static const int prots[] = { PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ, 0, 7 };
	size_t len = lens[n(8)];
	uint8_t *p = mmap(n(10) ? NULL : (void *)address(), len, prots[n(5)], n(8) ? MAP_SHARED : MAP_PRIVATE, file(), off);
	if (p == MAP_FAILED)
		return;
	if (n(3))
		munmap(p, len);
	else if (len == PAGE)
		uar[at()] = p;
}

static void op_file(void)
{
	int f = file(), i = at();
	uint8_t b[256];
	fill(b, sizeof b);
	switch (n(10)) {
	case 0: fds[i] = dup(f); break;
	case 1: if (fds[i] > 2) close(fds[i]); fds[i] = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC); break;
	case 2: if (fds[i] > 2) dup2(f, fds[i]); break;
	case 3: ftruncate(f, value()); break;
	case 4: fallocate(f, n(2) ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE : n(64), n(32) * PAGE, 1 + n(8 * PAGE)); break;
	case 5: pwrite(f, b, sizeof b, n(64) * PAGE / 2); break;
	case 6: fcntl(f, F_ADD_SEALS, n(64)); break;
	case 7: fcntl(f, F_SETFL, n(2) ? O_NONBLOCK : O_APPEND); break;
	case 8: write(f, b, 1 + n(sizeof b)); break;
	case 9: fds[i] = open("/dev/null", O_RDWR); break;
	}
}

struct attr { uint16_t id, len, flags; uint8_t elem, zero; uint64_t data; };
struct call { uint16_t length, object, method, attrs; uint64_t reserved; uint32_t driver, reserved2; struct attr a[64]; };
#define RDMA_VERBS_IOCTL 0xc0181b01UL

// A call of any method with attributes of any kind.
static void op_ioctl(void)
{
	static const uint16_t lens[] = { 0, 1, 4, 8, 16, 32, 40, 64, 112, 256, 4096, 65535 };
	struct call c = { .object = n(20) ? n(19) : value(), .method = n(20) ? n(8) + (n(4) ? 0 : 0x1000) : value(),
		.attrs = n(50) ? n(12) : value(), .driver = n(20) ? 1 : value() };
	if (!n(4))
		c.object = 0x1000 + n(9);
	for (int i = 0; i < 64 && i < c.attrs; i++)
		c.a[i] = (struct attr){ (n(4) ? 0 : 0x1000) + (n(8) ? i : n(24)), lens[n(12)], n(10) ? 1 : rnd(), n(30) ? 0 : rnd(), 0,
			n(2) ? address() : value() };
	c.length = n(30) ? 24 + 16 * c.attrs : value();
	ioctl(file(), RDMA_VERBS_IOCTL, n(40) ? &c : (void *)address());
}

// A command with numbers that may be handles, and addresses that may be queues.
static void op_command(void)
{
	uint32_t in[128], drv[64];
	static uint8_t out[4096], drvout[4096];
	for (int i = 0; i < 128; i++)
		in[i] = n(3) ? n(12) : value();
	for (int i = 0; i < 64; i++)
		drv[i] = n(3) ? n(12) : value();
	if (n(2)) {
		uint64_t a[2] = { address(), address() }, b[3] = { address(), n(3) ? n(1 << 16) : value(), address() };
		memcpy(drv, a, 16);
		memcpy(in + 2, b, 24);
	}
	struct call c = { .driver = 1 };
	int k = 0;
	c.a[k++] = (struct attr){ 0, n(2) ? 8 * (1 + n(16)) : n(512), 1, 0, 0, n(20) ? (uint64_t)in : address() };
	c.a[k++] = (struct attr){ 1, n(8) ? 256 : n(4097), 1, 0, 0, n(20) ? (uint64_t)out : address() };
	c.a[k++] = (struct attr){ 2, 8, 1, 0, 0, n(64) | (n(4) ? 0 : 0x80000000u) };
	if (n(4))
		c.a[k++] = (struct attr){ 0x1000, n(2) ? 8 * n(12) : n(256), n(2), 0, 0, n(20) ? (uint64_t)drv : address() };
	if (n(4))
		c.a[k++] = (struct attr){ 0x1001, n(4096), n(2), 0, 0, n(20) ? (uint64_t)drvout : address() };
	c.attrs = k;
	c.length = 24 + 16 * k;
	ioctl(file(), RDMA_VERBS_IOCTL, &c);
}

static void any(int forks);

// Children that use, close, and end with what they inherited, while the parent goes on or ends.
static void op_fork(void)
{
	if (depth > 2)
		return;
	pid_t p = n(4) ? fork() : vfork();
	if (p == 0 && n(4) == 0) {
		for (int i = 3; i < 64; i++)
			fcntl(i, F_SETFD, 0); // the next program has them
		execl("/bin/sleep", "sleep", n(2) ? "0" : "0.01", NULL);
		_exit(0);
	}
	if (p == 0) {
		depth++;
		prctl(PR_SET_PDEATHSIG, n(2) ? SIGKILL : 0);
		for (int k = n(12); k > 0; k--)
			any(0);
		_exit(0);
	}
	if (p > 0 && n(2)) {
		if (n(4) == 0)
			ptrace(PTRACE_ATTACH, p, 0, 0);
		usleep(n(500));
		kill(p, SIGKILL);
	}
}

// A process with a memory of its own that has only the device's descriptors.
static void op_pass(void)
{
	int s[2], f = file();
	if (depth > 2 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s))
		return;
	char b = 0;
	struct iovec v = { &b, 1 };
	union { char c[CMSG_SPACE(sizeof(int))]; struct cmsghdr h; } u = { .h = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	memcpy(CMSG_DATA(&u.h), &f, sizeof f);
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof u.c };
	sendmsg(s[0], &m, 0);
	if (n(2) && f > 2)
		close(f);
	if (n(2) && recvmsg(s[1], &m, MSG_DONTWAIT) == 1 && m.msg_controllen)
		memcpy(&fds[at()], CMSG_DATA(&u.h), sizeof(int));
	close(s[0]);
	close(s[1]);
}

static void *thread(void *arg)
{
	state = (uint64_t)arg;
	for (int k = n(20); k > 0; k--)
		any(0);
	return NULL;
}

static void op_threads(void)
{
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		if (!pthread_create(t + i, NULL, thread, (void *)rnd()) && n(2))
			pthread_detach(t[i]);
}

static void nothing(int sig) { (void)sig; }

static void op_signals(void)
{
	signal(SIGALRM, nothing);
	struct itimerval v = { { 0, n(3) ? 100 + n(1000) : 0 }, { 0, 100 } };
	setitimer(ITIMER_REAL, &v, NULL);
}

static void op_limits(void)
{
	struct rlimit l = { n(2) ? 64 + n(64) : 1024, 1024 };
	setrlimit(RLIMIT_NOFILE, &l);
	l = (struct rlimit){ n(2) ? n(64) * 1024 : RLIM_INFINITY, RLIM_INFINITY };
	setrlimit(RLIMIT_MEMLOCK, &l);
}

static void op_end(void)
{
	if (!n(16))
		n(2) ? _exit(n(256)) : (void)kill(getpid(), SIGKILL);
}

static void op_wait(void) { usleep(n(300)); }

// The operations, with how often each is drawn.
static const struct op { const char *name; int weight; void (*run)(void); } ops[] = {
	{ "open", 6, op_open }, { "close", 3, op_close }, { "pd", 4, op_pd }, { "cq", 10, op_cq }, { "srq", 5, op_srq }, { "qp", 14, op_qp },
	{ "connect", 12, op_connect }, { "modify", 5, op_modify }, { "mr", 10, op_mr }, { "mw", 4, op_mw }, { "ah", 4, op_ah },
	{ "channel", 5, op_channel }, { "post", 30, op_post }, { "post_srq", 6, op_post_srq }, { "poll", 14, op_poll },
	{ "register", 14, op_register }, { "record", 8, op_record }, { "ring", 14, op_ring }, { "memory", 6, op_memory },
	{ "own_file", 3, op_own_file }, { "mmap", 10, op_mmap }, { "file", 10, op_file }, { "ioctl", 15, op_ioctl },
	{ "command", 15, op_command }, { "fork", 6, op_fork }, { "pass", 4, op_pass }, { "threads", 2, op_threads },
	{ "signals", 1, op_signals }, { "limits", 1, op_limits }, { "end", 2, op_end }, { "wait", 6, op_wait },
};
enum { OPS = sizeof ops / sizeof ops[0] };

static const struct op *draw(void)
{
	int sum = 0, k = 0;
	for (int i = 0; i < OPS; i++)
		sum += ops[i].weight;
	for (int x = n(sum); (x -= ops[k].weight) >= 0;)
		k++;
	return &ops[k];
}

static void any(int forks)
{
	const struct op *o = draw();
	if (forks || o->run != op_fork)
		o->run();
}

// What crashes is the program's own affair, and a hang ends.
static void begin(void)
{
	struct rlimit none = { 0, 0 };
	setrlimit(RLIMIT_CORE, &none);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	depth = 1;
}

// watch waits until a child has ended or has gone on for too long, and ends what it left.
static void watch(pid_t child)
{
	int ended = 0;
	for (int k = 0; k < 2000 && !ended; k++) {
		usleep(500);
		ended = waitpid(child, NULL, WNOHANG) == child;
	}
	kill(-child, SIGKILL);
	kill(child, SIGKILL);
	if (!ended)
		waitpid(child, NULL, 0);
}

static void line(const char *name, uint64_t seed)
{
	for (int i = 0; i < OPS; i++)
		if (!strcmp(ops[i].name, name)) {
			state = seed;
			ops[i].run();
			return;
		}
	fprintf(stderr, "hostile: no operation %s\n", name);
	_exit(9);
}

static int run(FILE *f)
{
	pid_t p = fork();
	if (p) {
		watch(p);
		return 0;
	}
	begin();
	char name[32];
	unsigned long seed;
	while (fscanf(f, "%31s %lu", name, &seed) == 2)
		line(name, seed);
	_exit(0);
}

static void generated(uint64_t seed, int count, int print)
{
	pid_t p = print ? 0 : fork();
	if (p) {
		watch(p);
		return;
	}
	if (!print)
		begin();
	for (uint64_t s = seed; count > 0; count--) {
		state = s;
		const struct op *o = draw();
		uint64_t own = rnd() >> 16;
		s = rnd();
		if (print)
			printf("%s %lu\n", o->name, own);
		else
			line(o->name, own);
	}
	if (!print)
		_exit(0);
}

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "good, line %d: %s (errno %d)\n", __LINE__, #x, errno); return 1; } } while (0)

// good is a program that must not notice the others.
static int good(void)
{
	struct ibv_device **l = ibv_get_device_list(NULL);
	CHECK(l && l[0]);
	struct ibv_context *x = ibv_open_device(l[0]);
	CHECK(x);
	struct ibv_pd *d = ibv_alloc_pd(x);
	struct ibv_comp_channel *c = ibv_create_comp_channel(x);
	CHECK(d && c);
	struct ibv_cq *q = ibv_create_cq(x, 16, NULL, c, 0);
	CHECK(q);
	struct ibv_qp_init_attr a = { .send_cq = q, .recv_cq = q, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp *p = ibv_create_qp(d, &a);
	CHECK(p);
	static uint8_t b[2 * PAGE] __attribute__((aligned(PAGE)));
	struct ibv_mr *m = ibv_reg_mr(d, b, sizeof b, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(m && !to_rts(p, p->qp_num, 18));
	for (int k = 0; k < 8; k++) {
		memset(b, 'a' + k, PAGE);
		struct ibv_sge s = { (uint64_t)b, PAGE, m->lkey };
		struct ibv_send_wr w = { .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
			.wr = { .rdma = { (uint64_t)b + PAGE, m->rkey } } }, *bad;
		struct ibv_wc wc;
		CHECK(!ibv_req_notify_cq(q, 0) && !ibv_post_send(p, &w, &bad));
		void *cookie;
		struct ibv_cq *of;
		CHECK(!ibv_get_cq_event(c, &of, &cookie));
		ibv_ack_cq_events(of, 1);
		CHECK(ibv_poll_cq(q, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
		CHECK(!memcmp(b, b + PAGE, PAGE));
	}
	CHECK(!ibv_destroy_qp(p) && !ibv_dereg_mr(m) && !ibv_destroy_cq(q) && !ibv_destroy_comp_channel(c) && !ibv_dealloc_pd(d) && !ibv_close_device(x));
	return 0;
}

// well runs the well-behaved program beside all that is left, and says which generated one came before.
static int well(const char *after)
{
	int status;
	pid_t p = fork();
	if (!p)
		_exit(good());
	if (waitpid(p, &status, 0) == p && status == 0)
		return 0;
	fprintf(stderr, "hostile: a good program fails with status %#x after %s\n", status, after);
	return 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "good"))
		return good();
	if (!strcmp(what, "gen") && argc == 4)
		generated(strtoull(argv[2], NULL, 10), atoi(argv[3]), 1);
	else if (!strcmp(what, "run") && argc > 2) {
		for (int i = 2; i < argc; i++) {
			fprintf(stderr, "hostile: %s\n", argv[i]);
			FILE *f = fopen(argv[i], "r");
			if (!f || run(f) || well(argv[i]))
				return 9;
			fclose(f);
		}
	} else if (!strcmp(what, "seeds") && argc == 5) {
		uint64_t first = strtoull(argv[2], NULL, 10), programs = strtoull(argv[3], NULL, 10);
		for (uint64_t k = 0; k < programs; k++) {
			char name[64];
			snprintf(name, sizeof name, "seed %lu", (unsigned long)(first + k));
			fprintf(stderr, "hostile: %s\n", name);
			generated(first + k, atoi(argv[4]), 0);
			if (well(name))
				return 9;
		}
	} else {
		fprintf(stderr, "hostile gen SEED COUNT | run FILE... | seeds FIRST PROGRAMS COUNT | good\n");
		return 2;
	}
	return 0;
}
