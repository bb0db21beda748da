// Reads the clock of the device when it has found a completion, and compares it with the completion's time.
#include "toself.h"
#include <string.h>
#include <unistd.h>

static struct ibv_pd *pd;
static struct ibv_cq_ex *cq;
static struct ibv_mr *mr;
static char *mem;

int main(int argc, char **argv) {
	struct ibv_device **list = ibv_get_device_list(NULL);
	must(list && list[0] && (ctx = ibv_open_device(list[0])) != NULL, "open_device");
	must((pd = ibv_alloc_pd(ctx)) != NULL, "alloc_pd");
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	must((cq = ibv_create_cq_ex(ctx, &attr)) != NULL, "create_cq_ex");
	struct ibv_qp_init_attr init = {.send_cq = ibv_cq_ex_to_cq(cq), .recv_cq = ibv_cq_ex_to_cq(cq), .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	must((qp = ibv_create_qp(pd, &init)) != NULL, "create_qp");
	mem = aligned_alloc(4096, 8192);
	must((mr = ibv_reg_mr(pd, mem, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) != NULL, "reg_mr");
	connect_to_itself();
	int late = 0;
	for (int i = 0; i < atoi(argv[1]); i++) {
		struct ibv_sge sge = {(uintptr_t)mem, 64, mr->lkey};
		struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {(uintptr_t)mem + 4096, mr->rkey}};
		must(!ibv_post_send(qp, &wr, &bad), "post_send");
		struct ibv_poll_cq_attr poll = {0};
		while (ibv_start_poll(cq, &poll))
			;
		struct ibv_values_ex now = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
		must(!ibv_query_rt_values_ex(ctx, &now), "query_rt_values_ex");
		must(cq->status == IBV_WC_SUCCESS, "status");
		late += (uint64_t)now.raw_clock.tv_nsec < ibv_wc_read_completion_ts(cq);
		ibv_end_poll(cq);
	}
	printf("%d late\n", late);
	return 0;
}
