// Moves data from a thread whose process has lost its main thread.
#include "toself.h"
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char *mem;
static pthread_t leader;

static void *move(void *unused) {
	pthread_join(leader, NULL); // the kernel ends the thread only after this returns
	char state[200] = "";
	do {
		FILE *f = fopen("/proc/self/stat", "r");
		must(f && fgets(state, sizeof state, f), "stat");
		fclose(f);
	} while (!strstr(state, ") Z"));
	for (int i = 1; i <= 5; i++) {
		memset(mem, i, 4096);
		struct ibv_sge sge = {(uintptr_t)mem, 4096, mr->lkey};
		struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {(uintptr_t)mem + 4096, mr->rkey}};
		struct ibv_wc wc;
		must(!ibv_post_send(qp, &wr, &bad), "post_send");
		while (!ibv_poll_cq(cq, 1, &wc))
			;
		must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
		must(!memcmp(mem, mem + 4096, 4096), "the completion is good, and the bytes are not there");
	}
	must(ibv_reg_mr(pd, mem + 8192, 4096, IBV_ACCESS_LOCAL_WRITE) != NULL, "reg_mr");
	must(ibv_create_cq(ctx, 64, NULL, NULL, 0) != NULL, "create_cq");
	printf("moved\n");
	exit(0);
}

int main(void) {
	struct ibv_device **list = ibv_get_device_list(NULL);
	must(list && list[0] && (ctx = ibv_open_device(list[0])), "open_device");
	must((pd = ibv_alloc_pd(ctx)) && (cq = ibv_create_cq(ctx, 16, NULL, NULL, 0)), "PD and CQ");
	mem = aligned_alloc(4096, 3 * 4096);
	mr = ibv_reg_mr(pd, mem, 2 * 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	must(mr && (qp = ibv_create_qp(pd, &attr)), "MR and QP");
	connect_to_itself();
	pthread_t thread;
	leader = pthread_self();
	must(!pthread_create(&thread, NULL, move, NULL), "thread");
	pthread_exit(NULL);
}
