//go:build hw

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "direct.h"

int hw_dv_query(struct ibv_context *ctx, struct hw_dv_context *out, uint64_t mask)
{
	memset(out, 0, sizeof(*out));
	out->comp_mask = mask;
	return mlx5dv_query_device(ctx, (struct mlx5dv_context *)out);
}

struct ibv_qp *hw_dv_create_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr, const struct hw_dv_qp_attr *dv)
{
	struct mlx5dv_qp_init_attr a = { .comp_mask = dv->comp_mask, .create_flags = dv->create_flags, .send_ops_flags = dv->send_ops_flags };

	a.dc_init_attr.dc_type = dv->dc_type;
	if (dv->dc_type == MLX5DV_DCTYPE_DCT) {
		a.dc_init_attr.dct_access_key = dv->access_key;
	} else {
		a.dc_init_attr.dci_streams.log_num_concurent = dv->log_concurrent;
		a.dc_init_attr.dci_streams.log_num_errored = dv->log_errored;
	}
	return mlx5dv_create_qp(ctx, attr, &a);
}

uint64_t hw_dv_ts_to_ns(const struct mlx5dv_clock_info *c, uint64_t ticks)
{
	struct mlx5dv_clock_info i = *c;

	return mlx5dv_ts_to_ns(&i, ticks);
}

struct mlx5dv_mkey *hw_dv_create_mkey(struct ibv_pd *pd, uint32_t flags, uint16_t entries)
{
	struct mlx5dv_mkey_init_attr a = { .pd = pd, .create_flags = flags, .max_entries = entries };

	return mlx5dv_create_mkey(&a);
}

struct ibv_mr *hw_dv_reg_dmabuf(struct ibv_pd *pd, uint64_t offset, uint64_t length, uint64_t iova, int fd, int access, int flags, int *missing)
{
	typedef struct ibv_mr *reg(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int, int);
	reg *f = (reg *)dlsym(RTLD_DEFAULT, "mlx5dv_reg_dmabuf_mr");

	*missing = !f;
	if (!f) {
		errno = ENOSYS;
		return NULL;
	}
	return f(pd, offset, length, iova, fd, access, flags);
}

void *hw_map_page(int fd, uint64_t offset, uint64_t length)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

	return p == MAP_FAILED ? NULL : p;
}

int hw_unmap_page(void *at, uint64_t length)
{
	return munmap(at, length);
}

void hw_dv_load(const void *from, void *to, int n)
{
	union { uint8_t b; uint16_t h; uint32_t w; uint64_t d; } v;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	switch (n) {
	case 1: v.b = *(volatile const uint8_t *)from; break;
	case 2: v.h = *(volatile const uint16_t *)from; break;
	case 4: v.w = *(volatile const uint32_t *)from; break;
	default: v.d = *(volatile const uint64_t *)from; break;
	}
	memcpy(to, &v, n);
}

void hw_dv_store(void *to, const void *from, int n)
{
	union { uint8_t b; uint16_t h; uint32_t w; uint64_t d; } v;

	memcpy(&v, from, n);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	switch (n) {
	case 1: *(volatile uint8_t *)to = v.b; break;
	case 2: *(volatile uint16_t *)to = v.h; break;
	case 4: *(volatile uint32_t *)to = v.w; break;
	default: *(volatile uint64_t *)to = v.d; break;
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static struct mlx5dv_qp_ex *dv(struct ibv_qp_ex *q)
{
	return mlx5dv_qp_ex_from_ibv_qp_ex(q);
}

void hw_wr_dc_addr(struct ibv_qp_ex *q, struct ibv_ah *ah, uint32_t dctn, uint64_t key)
{
	mlx5dv_wr_set_dc_addr(dv(q), ah, dctn, key);
}

void hw_wr_dc_addr_stream(struct ibv_qp_ex *q, struct ibv_ah *ah, uint32_t dctn, uint64_t key, uint16_t stream)
{
	mlx5dv_wr_set_dc_addr_stream(dv(q), ah, dctn, key, stream);
}

void hw_wr_mr_list(struct ibv_qp_ex *q, struct mlx5dv_mkey *mkey, uint32_t access, uint16_t n, struct ibv_sge *sges)
{
	mlx5dv_wr_mr_list(dv(q), mkey, access, n, sges);
}

void hw_wr_mr_interleaved(struct ibv_qp_ex *q, struct mlx5dv_mkey *mkey, uint32_t access, uint32_t repeat, uint16_t n, struct mlx5dv_mr_interleaved *pieces)
{
	mlx5dv_wr_mr_interleaved(dv(q), mkey, access, repeat, n, pieces);
}

void hw_wr_memcpy(struct ibv_qp_ex *q, uint32_t dest_lkey, uint64_t dest, uint32_t src_lkey, uint64_t src, uint64_t length)
{
	mlx5dv_wr_memcpy(dv(q), dest_lkey, dest, src_lkey, src, length);
}

void hw_wr_raw_wqe(struct ibv_qp_ex *q, const void *wqe)
{
	mlx5dv_wr_raw_wqe(dv(q), wqe);
}
