//go:build hw

// mlx5 direct verbs, as far as Go cannot reach them by itself: inline functions, unions, and what headers older than the
// library that runs do not declare.
#ifndef RDMASIM_HW_DIRECT_H
#define RDMASIM_HW_DIRECT_H

#include "verbs.h"

// hw_dv_context is struct mlx5dv_context of rdma-core 61, whatever the installed header has: it only grows at its end.
struct hw_dv_context {
	uint8_t version;
	uint64_t flags;
	uint64_t comp_mask;
	struct mlx5dv_cqe_comp_caps cqe_comp_caps;
	struct mlx5dv_sw_parsing_caps sw_parsing_caps;
	struct mlx5dv_striding_rq_caps striding_rq_caps;
	uint32_t tunnel_offloads_caps;
	uint32_t max_dynamic_bfregs;
	uint64_t max_clock_info_update_nsec;
	uint32_t flow_action_flags;
	uint32_t dc_odp_caps;
	void *hca_core_clock;
	uint8_t num_lag_ports;
	struct mlx5dv_sig_caps sig_caps;
	struct mlx5dv_dci_streams_caps dci_streams_caps;
	size_t max_wr_memcpy_length;
	struct mlx5dv_crypto_caps crypto_caps;
	uint64_t max_dc_rd_atom;
	uint64_t max_dc_init_rd_atom;
	struct { uint32_t value, mask; } reg_c0;
	struct { uint32_t max_rc, max_xrc, max_dct, max_ud, max_uc; } ooo_recv_wrs_caps;
	uint8_t later[256]; // of libraries to come
};

// hw_dv_qp_attr is struct mlx5dv_qp_init_attr with its union side by side.
struct hw_dv_qp_attr {
	uint64_t comp_mask, send_ops_flags, access_key;
	uint32_t create_flags, dc_type;
	uint8_t log_concurrent, log_errored;
};

int hw_dv_query(struct ibv_context *ctx, struct hw_dv_context *out, uint64_t mask);
struct ibv_qp *hw_dv_create_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr, const struct hw_dv_qp_attr *dv);
uint64_t hw_dv_ts_to_ns(const struct mlx5dv_clock_info *c, uint64_t ticks);
struct mlx5dv_mkey *hw_dv_create_mkey(struct ibv_pd *pd, uint32_t flags, uint16_t entries);

// hw_dv_reg_dmabuf is mlx5dv_reg_dmabuf_mr, of rdma-core 54 and later: ENOSYS with *missing set where the library has none.
struct ibv_mr *hw_dv_reg_dmabuf(struct ibv_pd *pd, uint64_t offset, uint64_t length, uint64_t iova, int fd, int access, int flags, int *missing);

void *hw_map_page(int fd, uint64_t offset, uint64_t length);
int hw_unmap_page(void *at, uint64_t length);

// hw_dv_load and hw_dv_store access n bytes, 1, 2, 4 or 8, at once.
void hw_dv_load(const void *from, void *to, int n);
void hw_dv_store(void *to, const void *from, int n);

void hw_wr_dc_addr(struct ibv_qp_ex *q, struct ibv_ah *ah, uint32_t dctn, uint64_t key);
void hw_wr_dc_addr_stream(struct ibv_qp_ex *q, struct ibv_ah *ah, uint32_t dctn, uint64_t key, uint16_t stream);
void hw_wr_mr_list(struct ibv_qp_ex *q, struct mlx5dv_mkey *mkey, uint32_t access, uint16_t n, struct ibv_sge *sges);
void hw_wr_mr_interleaved(struct ibv_qp_ex *q, struct mlx5dv_mkey *mkey, uint32_t access, uint32_t repeat, uint16_t n, struct mlx5dv_mr_interleaved *pieces);
void hw_wr_memcpy(struct ibv_qp_ex *q, uint32_t dest_lkey, uint64_t dest, uint32_t src_lkey, uint64_t src, uint64_t length);
void hw_wr_raw_wqe(struct ibv_qp_ex *q, const void *wqe);

#endif
