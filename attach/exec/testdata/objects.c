/*
 * objects makes and uses on mlx5_0 what the example programs of libibverbs do not:
 * memory windows, regions registered again, resized CQs, moderation, the limit of a
 * shared receive queue, events and their counts, time stamps and the clock. It prints a
 * line for each and ends with status 0 when all is as it should be.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 8192 };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static union ibv_gid gid;
static uint8_t mem[3 * SIZE] __attribute__((aligned(4096)));

#define CHECK(x) do { if (!(x)) { \
	fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #x, errno); exit(1); } } while (0)

static struct ibv_qp *make(struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr a = { .send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 32, .max_recv_wr = srq ? 0 : 32, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_qp *qp = ibv_create_qp(pd, &a);

	CHECK(qp);
	return qp;
}

static void to_rts(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 1, .ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 64 } } };
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		IBV_QP_MAX_QP_RD_ATOMIC));
}

static void join(struct ibv_qp *a, struct ibv_qp *b)
{
	to_rts(a, b->qp_num);
	to_rts(b, a->qp_num);
}

static void post(struct ibv_qp *qp, enum ibv_wr_opcode op, uint64_t id, struct ibv_mr *mr, uint32_t n, uint64_t to, uint32_t rkey)
{
	struct ibv_sge s = { (uintptr_t)mr->addr, n, mr->lkey };
	struct ibv_send_wr w = { .wr_id = id, .sg_list = &s, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { to, rkey } }, *bad;

	CHECK(!ibv_post_send(qp, &w, &bad));
}

static struct ibv_wc next(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		;
	CHECK(n == 1);
	return wc;
}

static void windows(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	struct ibv_mr *src = ibv_reg_mr(pd, mem, SIZE, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *dst = ibv_reg_mr(pd, mem + SIZE, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_qp *a = make(cq, NULL), *b = make(cq, NULL);
	struct ibv_mw *one = ibv_alloc_mw(pd, IBV_MW_TYPE_1), *two = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info at = { dst, (uintptr_t)dst->addr + 64, 64, IBV_ACCESS_REMOTE_WRITE };
	struct ibv_mw_bind bind = { .wr_id = 1, .send_flags = IBV_SEND_SIGNALED, .bind_info = at };
	struct ibv_send_wr w = { .wr_id = 2, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED }, *bad;

	CHECK(cq && src && dst && one && two);
	join(a, b);
	CHECK(!ibv_bind_mw(b, one, &bind) && next(cq).status == IBV_WC_SUCCESS);
	w.bind_mw.mw = two;
	w.bind_mw.rkey = ibv_inc_rkey(two->rkey);
	w.bind_mw.bind_info = at;
	CHECK(!ibv_post_send(b, &w, &bad) && next(cq).status == IBV_WC_SUCCESS);
	for (int i = 0; i < 2; i++) {
		memset(mem, 0x50 + i, SIZE);
		post(a, IBV_WR_RDMA_WRITE, 3, src, 64, at.addr, i ? w.bind_mw.rkey : one->rkey);
		CHECK(next(cq).status == IBV_WC_SUCCESS && mem[SIZE + 64] == 0x50 + i && mem[SIZE + 127] == 0x50 + i && !mem[SIZE + 128]);
	}
	CHECK(ibv_dereg_mr(dst) == EINVAL); /* windows are bound to it */
	post(a, IBV_WR_RDMA_WRITE, 4, src, 65, at.addr, one->rkey);
	CHECK(next(cq).status == IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_dealloc_mw(one) && !ibv_dealloc_mw(two));
	CHECK(!ibv_dereg_mr(dst) && !ibv_dereg_mr(src) && !ibv_destroy_cq(cq));
	puts("windows");
}

static void again(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	struct ibv_pd *other = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = ibv_reg_mr(other, mem, SIZE, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp *a = make(cq, NULL), *b = make(cq, NULL);

	CHECK(cq && other && mr);
	join(a, b);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_TRANSLATION, pd,
		mem + SIZE, 2 * SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	CHECK(!ibv_dealloc_pd(other) && mr->addr == mem + SIZE && mr->length == 2 * SIZE);
	memset(mem, 0, sizeof mem);
	memset(mem + SIZE, 0x61, 64);
	post(a, IBV_WR_RDMA_WRITE, 1, mr, 64, (uintptr_t)mem + 2 * SIZE, mr->rkey);
	CHECK(next(cq).status == IBV_WC_SUCCESS && mem[2 * SIZE] == 0x61 && mem[2 * SIZE + 63] == 0x61);
	CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq));
	puts("regions again");
}

static void resized(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 63, NULL, NULL, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, sizeof mem, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_qp *a = make(cq, NULL), *b = make(cq, NULL);
	struct ibv_modify_cq_attr m = { .attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { 4, 16 } };
	uint64_t posted = 0, polled = 0;
	int size = 63;

	CHECK(cq && mr);
	join(a, b);
	CHECK(!ibv_modify_cq(cq, &m));
	m.attr_mask = 2;
	CHECK(ibv_modify_cq(cq, &m));
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 10; i++)
			post(a, IBV_WR_RDMA_WRITE, posted++, mr, 8, (uintptr_t)mem + SIZE, mr->rkey);
		for (int i = 0; i < round % 10; i++)
			CHECK(next(cq).wr_id == polled++);
		size = size == 63 ? 255 : 63; /* with completions in it, or on their way */
		CHECK(!ibv_resize_cq(cq, size) && cq->cqe == size);
		while (polled < posted) {
			struct ibv_wc wc = next(cq);

			CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == polled++);
		}
	}
	CHECK(ibv_resize_cq(cq, 1 << 25));
	CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq));
	puts("resized CQs");
}

/* async waits for an event, up to a second. */
static struct ibv_async_event async(void)
{
	struct pollfd p = { ctx->async_fd, POLLIN, 0 };
	struct ibv_async_event e;

	CHECK(poll(&p, 1, 60000) == 1 && !ibv_get_async_event(ctx, &e));
	return e;
}

static void limits(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, sizeof mem, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_srq_init_attr si = { .attr = { .max_wr = 32, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &si);
	struct ibv_qp *a = make(cq, NULL), *b = make(cq, srq);
	struct ibv_sge s = { (uintptr_t)mem + SIZE, 64, mr->lkey };
	struct ibv_recv_wr r = { .wr_id = 100, .sg_list = &s, .num_sge = 1 }, *bad;
	struct ibv_srq_attr la = { .srq_limit = 5 };
	struct ibv_async_event e;
	int got = 0;

	CHECK(cq && mr && srq);
	join(a, b);
	for (int i = 0; i < 8; i++)
		CHECK(!ibv_post_srq_recv(srq, &r, &bad));
	CHECK(!ibv_modify_srq(srq, &la, IBV_SRQ_LIMIT));
	CHECK(!ibv_query_srq(srq, &la) && la.srq_limit == 5 && la.max_wr >= 32);
	for (int i = 0; i < 4; i++)
		post(a, IBV_WR_SEND, i, mr, 64, 0, 0);
	for (int i = 0; i < 8; i++)
		got += next(cq).wr_id == 100;
	CHECK(got == 4);
	e = async();
	CHECK(e.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && e.element.srq == srq);
	ibv_ack_async_event(&e);
	CHECK(!ibv_query_srq(srq, &la) && la.srq_limit == 0);
	CHECK(ibv_destroy_srq(srq) == EBUSY);
	/* A write without rights is an event of the responder. */
	post(a, IBV_WR_RDMA_WRITE, 9, mr, 8, (uintptr_t)mem, mr->rkey);
	CHECK(next(cq).status == IBV_WC_REM_ACCESS_ERR);
	e = async();
	CHECK(e.event_type == IBV_EVENT_QP_ACCESS_ERR && e.element.qp == b);
	ibv_ack_async_event(&e);
	CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b)); /* waits for what was read and not acknowledged */
	CHECK(!ibv_destroy_srq(srq) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq));
	puts("limits and asynchronous events");
}

static uint64_t clock_now(void)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	CHECK(!ibv_query_rt_values_ex(ctx, &v) && v.comp_mask & IBV_VALUES_MASK_RAW_CLOCK);
	return v.raw_clock.tv_nsec;
}

static void clocks(void)
{
	struct ibv_cq_init_attr_ex ca = { .cqe = 64, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &ca);
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, sizeof mem, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_qp *a = make(ibv_cq_ex_to_cq(cq), NULL), *b = make(ibv_cq_ex_to_cq(cq), NULL);
	struct ibv_poll_cq_attr pa = { 0 };
	struct ibv_device_attr_ex d;
	struct mlx5dv_clock_info ci;
	struct timespec nap = { 0, 1000 * 1000 };
	uint64_t before, after, ts, ns;

	CHECK(cq && mr && !ibv_query_device_ex(ctx, NULL, &d) && d.hca_core_clock && d.completion_timestamp_mask);
	join(a, b);
	for (int i = 0; i < 20; i++) {
		before = clock_now();
		post(a, IBV_WR_RDMA_WRITE, i, mr, 64, (uintptr_t)mem + SIZE, mr->rkey);
		while (ibv_start_poll(cq, &pa) == ENOENT)
			;
		ts = ibv_wc_read_completion_ts(cq);
		ibv_end_poll(cq);
		/* The clock is shown at each look of the simulator: it may be that much behind. */
		while ((after = clock_now()) < ts)
			;
		CHECK(before < ts);
	}
	CHECK(!mlx5dv_get_clock_info(ctx, &ci));
	ns = mlx5dv_ts_to_ns(&ci, after);
	/* An idle device's clock goes on. */
	while (mlx5dv_ts_to_ns(&ci, after = clock_now()) < ns + 5 * 1000 * 1000)
		nanosleep(&nap, NULL);
	CHECK(llabs((long long)(mlx5dv_ts_to_ns(&ci, after) / 1000000000 - time(NULL))) < 3600);
	CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	puts("clocks");
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list && list[0] && (ctx = ibv_open_device(list[0])) && (pd = ibv_alloc_pd(ctx)) && !ibv_query_gid(ctx, 1, 0, &gid));
	windows();
	again();
	resized();
	limits();
	clocks();
	CHECK(!ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
	return 0;
}
