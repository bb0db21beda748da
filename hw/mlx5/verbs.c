//go:build hw

#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "verbs.h"

static int grow(void **p, int have, int want, size_t size)
{
	void *q;

	if (want <= have)
		return 0;
	q = realloc(*p, size * want);
	if (!q)
		return ENOMEM;
	*p = q;
	return 0;
}

// Room for each kind; it never shrinks.
int hw_reserve(struct hw_scratch *s, int sends, int recvs, int sges, int wcs)
{
	if (grow((void **)&s->send, s->sends, sends, sizeof(*s->send)) ||
	    grow((void **)&s->send_wr, s->sends, sends, sizeof(*s->send_wr)) ||
	    grow((void **)&s->recv, s->recvs, recvs, sizeof(*s->recv)) ||
	    grow((void **)&s->recv_wr, s->recvs, recvs, sizeof(*s->recv_wr)) ||
	    grow((void **)&s->sge, s->sges, sges, sizeof(*s->sge)) ||
	    grow((void **)&s->wc, s->wcs, wcs, sizeof(*s->wc)) ||
	    grow((void **)&s->out, s->wcs, wcs, sizeof(*s->out)))
		return ENOMEM;
#define MORE(have, want) do { if ((want) > (have)) (have) = (want); } while (0)
	MORE(s->sends, sends);
	MORE(s->recvs, recvs);
	MORE(s->sges, sges);
	MORE(s->wcs, wcs);
	return 0;
}

void hw_release(struct hw_scratch *s)
{
	free(s->send);
	free(s->send_wr);
	free(s->recv);
	free(s->recv_wr);
	free(s->sge);
	free(s->wc);
	free(s->out);
	free(s);
}

static int is_inv(uint32_t opcode)
{
	return opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_SEND_WITH_INV;
}

static void fill(struct ibv_send_wr *d, const struct hw_send *w, int ud)
{
	memset(d, 0, sizeof(*d));
	d->wr_id = w->id;
	d->num_sge = w->nsge;
	d->opcode = w->opcode;
	d->send_flags = w->flags;
	if (is_inv(w->opcode))
		d->invalidate_rkey = w->imm;
	else
		d->imm_data = htobe32(w->imm);
	if (w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		d->wr.atomic.remote_addr = w->remote;
		d->wr.atomic.rkey = w->rkey;
		d->wr.atomic.compare_add = w->compare;
		d->wr.atomic.swap = w->swap;
	} else if (ud) {
		d->wr.ud.ah = w->ah;
		d->wr.ud.remote_qpn = w->remote_qpn;
		d->wr.ud.remote_qkey = w->remote_qkey;
	} else {
		d->wr.rdma.remote_addr = w->remote;
		d->wr.rdma.rkey = w->rkey;
	}
	if (w->opcode == IBV_WR_BIND_MW) {
		d->bind_mw.mw = w->mw;
		d->bind_mw.rkey = w->bind_rkey;
		d->bind_mw.bind_info.mr = w->bind_mr;
		d->bind_mw.bind_info.addr = w->bind_addr;
		d->bind_mw.bind_info.length = w->bind_length;
		d->bind_mw.bind_info.mw_access_flags = w->bind_access;
	}
}

int hw_post_send(struct ibv_qp *qp, struct hw_scratch *s, int n, int *bad, struct hw_locks *l)
{
	struct ibv_send_wr *first = NULL;
	struct ibv_sge *sge = s->sge;
	int i, ret;

	for (i = 0; i < n; i++) {
		struct ibv_send_wr *d = &s->send_wr[i];

		fill(d, &s->send[i], qp->qp_type == IBV_QPT_UD);
		d->qp_type.xrc.remote_srqn = s->send[i].xrc_srqn;
		d->sg_list = d->num_sge ? sge : NULL;
		sge += d->num_sge;
		d->next = i + 1 < n ? d + 1 : NULL;
	}
	hw_locks_begin(l, qp);
	ret = ibv_post_send(qp, s->send_wr, &first);
	hw_locks_end(l);
	*bad = ret && first ? (int)(first - s->send_wr) : ret ? 0 : n;
	return ret;
}

int hw_post_recv(struct ibv_qp *qp, struct ibv_srq *srq, struct hw_scratch *s, int n, int *bad, struct hw_locks *l)
{
	struct ibv_recv_wr *first = NULL;
	struct ibv_sge *sge = s->sge;
	int i, ret;

	for (i = 0; i < n; i++) {
		struct ibv_recv_wr *d = &s->recv_wr[i];

		d->wr_id = s->recv[i].id;
		d->num_sge = s->recv[i].nsge;
		d->sg_list = d->num_sge ? sge : NULL;
		sge += d->num_sge;
		d->next = i + 1 < n ? d + 1 : NULL;
	}
	hw_locks_begin(l, srq ? (void *)srq : (void *)qp);
	if (srq)
		ret = ibv_post_srq_recv(srq, s->recv_wr, &first);
	else
		ret = ibv_post_recv(qp, s->recv_wr, &first);
	hw_locks_end(l);
	*bad = ret && first ? (int)(first - s->recv_wr) : ret ? 0 : n;
	return ret;
}

// A failed completion keeps only what the interface defines for it.
static void resolve(struct hw_wc *o, const struct ibv_wc *w)
{
	memset(o, 0, sizeof(*o));
	o->id = w->wr_id;
	o->status = w->status;
	o->vendor_err = w->vendor_err;
	o->qpn = w->qp_num;
	if (w->status != IBV_WC_SUCCESS)
		return;
	o->opcode = w->opcode;
	o->byte_len = w->byte_len;
	o->src_qp = w->src_qp;
	o->flags = w->wc_flags;
	o->pkey_index = w->pkey_index;
	o->slid = w->slid;
	o->sl = w->sl;
	o->path_bits = w->dlid_path_bits;
	if (w->wc_flags & IBV_WC_WITH_IMM)
		o->imm = be32toh(w->imm_data);
	else if (w->wc_flags & IBV_WC_WITH_INV)
		o->imm = w->invalidated_rkey;
}

int hw_poll(struct ibv_cq *cq, struct hw_scratch *s, int n, struct hw_locks *l)
{
	int i, got;

	hw_locks_begin(l, cq);
	got = ibv_poll_cq(cq, n, s->wc);
	hw_locks_end(l);
	for (i = 0; i < got; i++)
		resolve(&s->out[i], &s->wc[i]);
	return got;
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

// A poller spins, then gives its CPU away, then sleeps a little: the device may need
// that very CPU.
int hw_poll_wait(struct ibv_cq *cq, struct hw_scratch *s, int n, int64_t nanoseconds, struct hw_locks *l)
{
	const int spins = 200, yields = 2000;
	const struct timespec nap = { .tv_nsec = 20000 };
	int64_t end = now() + nanoseconds;
	int i, got;

	for (i = 0;; i++) {
		got = hw_poll(cq, s, n, l);
		if (got)
			return got;
		if (now() >= end)
			return 0;
		if (i > yields)
			nanosleep(&nap, NULL);
		else if (i > spins)
			sched_yield();
	}
}

static __thread volatile sig_atomic_t interrupted;

static void note(int sig)
{
	(void)sig;
	interrupted = 1;
}

// The handler that verbs.Thread.Interrupt stands for: no SA_RESTART.
void hw_signals(void)
{
	struct sigaction a = { .sa_handler = note, .sa_flags = SA_ONSTACK };

	sigaction(SIGUSR2, &a, NULL);
}

int hw_interrupt(int pid, int tid)
{
	return syscall(SYS_tgkill, pid, tid, SIGUSR2) ? errno : 0;
}

// The child of a program with threads may only do what is safe in a signal handler.
int hw_fork(void *p, size_t n, int value, int ready, int end, int parent_end)
{
	int pid = fork();
	char word = 0;

	if (pid)
		return pid;
	close(parent_end);
	memset(p, value, n);
	if (write(ready, &word, 1) != 1)
		_exit(1);
	while (read(end, &word, 1) < 0 && errno == EINTR)
		;
	memset(p, value, n);
	_exit(0);
}

// Other signals (Go's own) do not end the wait.
int hw_wait(int fd, int64_t nanoseconds)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int64_t end = now() + nanoseconds;

	interrupted = 0;
	for (;;) {
		int64_t left = end - now();
		struct timespec t;
		int n;

		if (left < 0)
			left = 0;
		t.tv_sec = left / 1000000000;
		t.tv_nsec = left % 1000000000;
		n = ppoll(&p, 1, &t, NULL);
		if (n > 0)
			return 0;
		if (n == 0)
			return EAGAIN;
		if (errno != EINTR)
			return errno;
		if (interrupted)
			return EINTR;
	}
}

int hw_query_port(struct ibv_context *ctx, int port, struct ibv_port_attr *attr)
{
	return ibv_query_port(ctx, port, attr);
}

int hw_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index, struct ibv_gid_entry *e, uint32_t flags)
{
	return ibv_query_gid_ex(ctx, port, index, e, flags);
}

long hw_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *e, size_t n, uint32_t flags)
{
	return ibv_query_gid_table(ctx, e, n, flags);
}

struct ibv_mr *hw_reg_mr(struct ibv_pd *pd, uint64_t addr, uint64_t length, unsigned access)
{
	return ibv_reg_mr(pd, (void *)(uintptr_t)addr, length, access);
}

struct ibv_mr *hw_reg_mr_iova(struct ibv_pd *pd, uint64_t addr, uint64_t length, uint64_t iova, unsigned access)
{
	return ibv_reg_mr_iova(pd, (void *)(uintptr_t)addr, length, iova, access);
}

int hw_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, uint64_t addr, uint64_t length, int access)
{
	return ibv_rereg_mr(mr, flags, pd, (void *)(uintptr_t)addr, length, access);
}

int hw_advise_mr(struct ibv_pd *pd, uint32_t advice, uint32_t flags, struct ibv_sge *ranges, uint32_t n)
{
	return ibv_advise_mr(pd, advice, flags, ranges, n);
}

int hw_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, const struct hw_send *b)
{
	struct ibv_mw_bind m = { .wr_id = b->id, .send_flags = b->flags,
		.bind_info = { .mr = b->bind_mr, .addr = b->bind_addr, .length = b->bind_length,
			       .mw_access_flags = b->bind_access } };

	return ibv_bind_mw(qp, mw, &m);
}

extern void *hwAlloc(void *pd, size_t size, size_t alignment, uint64_t resource);
extern void hwFree(void *pd, void *ptr, uint64_t resource);

static void *custom_alloc(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t resource)
{
	(void)context;
	return hwAlloc(pd, size, alignment, resource);
}

static void custom_free(struct ibv_pd *pd, void *context, void *ptr, uint64_t resource)
{
	(void)context;
	hwFree(pd, ptr, resource);
}

struct ibv_pd *hw_parent_domain(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_td *td, uint32_t mask,
				int has_alloc, int has_free, int given)
{
	struct ibv_parent_domain_init_attr a = { .pd = pd, .td = td, .comp_mask = mask,
		.alloc = has_alloc ? custom_alloc : NULL, .free = has_free ? custom_free : NULL,
		.pd_context = given ? &custom_alloc : NULL };

	return ibv_alloc_parent_domain(ctx, &a);
}

void *hw_async_element(const struct ibv_async_event *ev, int *port)
{
	*port = 0;
	switch (ev->event_type) {
	case IBV_EVENT_CQ_ERR:
		return ev->element.cq;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return ev->element.qp;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return ev->element.srq;
	default:
		*port = ev->element.port_num;
		return NULL;
	}
}

void hw_ack_async(int type, void *element, int port)
{
	struct ibv_async_event ev = { .event_type = type };

	if (element)
		ev.element.qp = element; // the pointers of the union share their place
	else
		ev.element.port_num = port;
	ibv_ack_async_event(&ev);
}

int hw_init_ah(struct ibv_context *ctx, uint8_t port, const struct hw_wc *w, const void *grh, struct ibv_ah_attr *attr)
{
	struct ibv_grh g;
	struct ibv_wc wc = { .wr_id = w->id, .status = w->status, .opcode = w->opcode, .byte_len = w->byte_len,
		.qp_num = w->qpn, .src_qp = w->src_qp, .wc_flags = w->flags, .pkey_index = w->pkey_index,
		.slid = w->slid, .sl = w->sl, .dlid_path_bits = w->path_bits };

	memcpy(&g, grh, sizeof(g));
	return ibv_init_ah_from_wc(ctx, port, &wc, &g, attr);
}

uint64_t hw_cqex_read(struct ibv_cq_ex *cq, int what)
{
	switch (what) {
	case HW_WRID:
		return cq->wr_id;
	case HW_STATUS:
		return cq->status;
	case HW_OPCODE:
		return ibv_wc_read_opcode(cq);
	case HW_VENDOR:
		return ibv_wc_read_vendor_err(cq);
	case HW_FLAGS:
		return ibv_wc_read_wc_flags(cq);
	case HW_LEN:
		return ibv_wc_read_byte_len(cq);
	case HW_IMM:
		return be32toh(ibv_wc_read_imm_data(cq));
	case HW_QPN:
		return ibv_wc_read_qp_num(cq);
	case HW_SRCQP:
		return ibv_wc_read_src_qp(cq);
	case HW_SLID:
		return ibv_wc_read_slid(cq);
	case HW_SL:
		return ibv_wc_read_sl(cq);
	case HW_PATH:
		return ibv_wc_read_dlid_path_bits(cq);
	case HW_TS:
		return ibv_wc_read_completion_ts(cq);
	}
	return 0;
}

int hw_cqex_start(struct ibv_cq_ex *cq, uint32_t mask, struct hw_locks *l)
{
	struct ibv_poll_cq_attr a = { .comp_mask = mask };
	int ret;

	hw_locks_begin(l, cq);
	ret = ibv_start_poll(cq, &a);
	hw_locks_end(l);
	return ret;
}

void hw_wr_send_imm(struct ibv_qp_ex *q, uint32_t imm)
{
	ibv_wr_send_imm(q, htobe32(imm));
}

void hw_wr_write_imm(struct ibv_qp_ex *q, uint32_t rkey, uint64_t remote, uint32_t imm)
{
	ibv_wr_rdma_write_imm(q, rkey, remote, htobe32(imm));
}

void hw_wr_bind_mw(struct ibv_qp_ex *q, const struct hw_send *b)
{
	struct ibv_mw_bind_info i = { .mr = b->bind_mr, .addr = b->bind_addr, .length = b->bind_length,
		.mw_access_flags = b->bind_access };

	ibv_wr_bind_mw(q, b->mw, b->bind_rkey, &i);
}

void hw_wr_inline(struct ibv_qp_ex *q, uint64_t addr, uint32_t length)
{
	ibv_wr_set_inline_data(q, (void *)(uintptr_t)addr, length);
}

void hw_wr_inline_list(struct ibv_qp_ex *q, int n, const struct ibv_sge *bufs)
{
	struct ibv_data_buf list[64];
	int i;

	if (n > 64)
		n = 64;
	for (i = 0; i < n; i++) {
		list[i].addr = (void *)(uintptr_t)bufs[i].addr;
		list[i].length = bufs[i].length;
	}
	ibv_wr_set_inline_data_list(q, n, list);
}

struct ibv_cq_ex *hw_dv_create_cq(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr, int size, int pad, int format)
{
	struct mlx5dv_cq_init_attr dv = { 0 };

	if (size) {
		dv.comp_mask |= MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
		dv.cqe_size = size;
	}
	if (pad) {
		dv.comp_mask |= MLX5DV_CQ_INIT_ATTR_MASK_FLAGS;
		dv.flags |= MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD;
	}
	if (format) {
		dv.comp_mask |= MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE;
		dv.cqe_comp_res_format = format;
	}
	return mlx5dv_create_cq(ctx, attr, &dv);
}

int hw_dv_qp(struct ibv_qp *qp, struct mlx5dv_qp *out)
{
	struct mlx5dv_obj o = { .qp = { .in = qp, .out = out } };

	memset(out, 0, sizeof(*out));
	out->comp_mask = MLX5DV_QP_MASK_UAR_MMAP_OFFSET;
	return mlx5dv_init_obj(&o, MLX5DV_OBJ_QP);
}

uint32_t hw_dv_dynamic_bfregs(struct ibv_context *ctx)
{
	struct mlx5dv_context c = { .comp_mask = MLX5DV_CONTEXT_MASK_DYN_BFREGS };

	if (mlx5dv_query_device(ctx, &c) || !(c.comp_mask & MLX5DV_CONTEXT_MASK_DYN_BFREGS))
		return 0;
	return c.max_dynamic_bfregs;
}

void hw_dv_cqe_comp(struct ibv_context *ctx, struct mlx5dv_cqe_comp_caps *out)
{
	struct mlx5dv_context c = { .comp_mask = MLX5DV_CONTEXT_MASK_CQE_COMPRESION };

	memset(out, 0, sizeof(*out));
	if (!mlx5dv_query_device(ctx, &c) && c.comp_mask & MLX5DV_CONTEXT_MASK_CQE_COMPRESION)
		*out = c.cqe_comp_caps;
}

uint32_t hw_be32(const uint32_t *p)
{
	return be32toh(*(volatile const uint32_t *)p);
}

void hw_set_be32(uint32_t *p, uint32_t v)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint32_t *)p = htobe32(v);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void hw_store_be64(void *reg, uint64_t v)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)reg = htobe64(v);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

uint64_t hw_be64(uint64_t v)
{
	return be64toh(v);
}
