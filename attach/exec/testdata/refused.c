// Asks twice for a raw packet queue pair, which is refused on InfiniBand, and to ordinary users anyway (CAP_NET_RAW).
#include <errno.h>
#include <infiniband/verbs.h>
#include <unistd.h>

int main(void) {
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (!ctx)
		return 1;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	if (!pd || !cq)
		return 2;
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RAW_PACKET, .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
		if (ibv_create_qp(pd, &attr) || errno != (geteuid() ? EPERM : EOPNOTSUPP))
			return 3;
	}
	return 0;
}
