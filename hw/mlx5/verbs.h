//go:build hw

// What Go cannot reach by itself: macros, inline unions, and the data path without a
// crossing for every scatter entry. Layouts are the installed headers'.
#ifndef RDMASIM_HW_VERBS_H
#define RDMASIM_HW_VERBS_H

#include <stdint.h>
#include <infiniband/verbs.h>
#include <infiniband/mlx5dv.h>

// hw_send is a send request with its unions side by side.
struct hw_send {
	uint64_t id, remote, compare, swap;
	uint32_t opcode, flags, imm, rkey;
	uint32_t nsge, remote_qpn, remote_qkey, bind_rkey;
	struct ibv_ah *ah;
	struct ibv_mw *mw;
	struct ibv_mr *bind_mr;
	uint64_t bind_addr, bind_length;
	uint32_t bind_access, xrc_srqn;
};

// hw_recv is a receive request.
struct hw_recv {
	uint64_t id;
	uint32_t nsge;
};

// hw_wc is a completion with its union resolved, in host order.
struct hw_wc {
	uint64_t id;
	uint32_t status, opcode, vendor_err, byte_len, imm, qpn, src_qp, flags;
	uint16_t pkey_index, slid;
	uint8_t sl, path_bits;
};

// hw_scratch is a thread's room for requests and completions.
struct hw_scratch {
	struct hw_send *send;
	struct ibv_send_wr *send_wr;
	struct hw_recv *recv;
	struct ibv_recv_wr *recv_wr;
	struct ibv_sge *sge;
	struct ibv_wc *wc;
	struct hw_wc *out;
	int sends, recvs, sges, wcs;
};

// hw_locks counts the locks that the library takes in calls on an object: those inside the object's block of
// memory, of size bytes, and others. With size 0 nothing is counted.
struct hw_locks {
	uint64_t own, other, waits;
	size_t size;
};

size_t hw_object_size(void *object);
void hw_locks_begin(const struct hw_locks *l, const void *object);
void hw_locks_end(struct hw_locks *l);

int hw_reserve(struct hw_scratch *s, int sends, int recvs, int sges, int wcs);
void hw_release(struct hw_scratch *s);
int hw_post_send(struct ibv_qp *qp, struct hw_scratch *s, int n, int *bad, struct hw_locks *l);
int hw_post_recv(struct ibv_qp *qp, struct ibv_srq *srq, struct hw_scratch *s, int n, int *bad, struct hw_locks *l);
int hw_cqex_start(struct ibv_cq_ex *cq, uint32_t mask, struct hw_locks *l);
int hw_poll(struct ibv_cq *cq, struct hw_scratch *s, int n, struct hw_locks *l);
int hw_poll_wait(struct ibv_cq *cq, struct hw_scratch *s, int n, int64_t nanoseconds, struct hw_locks *l);

// hw_wait waits until fd can be read: 0, or EAGAIN when the time is over, EINTR after
// a signal of hw_interrupt, or poll's errno.
int hw_wait(int fd, int64_t nanoseconds);
void hw_signals(void);
int hw_interrupt(int pid, int tid);

// hw_fork forks a child that writes value over n bytes at p and a byte to the fd ready, and
// again over p when end has no writer any more, of which it has parent_end itself.
int hw_fork(void *p, size_t n, int value, int ready, int end, int parent_end);

// hw_find is a function of the libraries that older ones do not have, or NULL.
void *hw_find(const char *name);

// hw_late_*: calls by what hw_find has found.
int hw_late_dm_export(void *f, struct ibv_dm *dm);
void *hw_late_alloc_buf(void *f, struct ibv_pd *pd, size_t size, void **buf);
void hw_late_free_buf(void *f, void *buf);
struct ibv_mr *hw_late_reg_buf_mr(void *f, struct ibv_pd *pd, void *buf, void *addr, size_t length, int access);
int hw_late_export_buf(void *f, void *buf);

int hw_query_port(struct ibv_context *ctx, int port, struct ibv_port_attr *attr);
int hw_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index, struct ibv_gid_entry *e, uint32_t flags);
long hw_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *e, size_t n, uint32_t flags);
struct ibv_mr *hw_reg_mr(struct ibv_pd *pd, uint64_t addr, uint64_t length, unsigned access);
struct ibv_mr *hw_reg_mr_iova(struct ibv_pd *pd, uint64_t addr, uint64_t length, uint64_t iova, unsigned access);
int hw_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, uint64_t addr, uint64_t length, int access);
int hw_advise_mr(struct ibv_pd *pd, uint32_t advice, uint32_t flags, struct ibv_sge *ranges, uint32_t n);

// hw_flow_filter is the filters of all types of specs side by side, numbers in host order.
struct hw_flow_filter {
	uint8_t dst_mac[6], src_mac[6];
	uint8_t src_ip[16], dst_ip[16];
	uint16_t ether_type, vlan_tag, src_port, dst_port;
	uint8_t proto, tos, ttl, ip_flags;
	uint32_t flow_label;
};

struct hw_flow_spec {
	struct hw_flow_filter val, mask;
	uint32_t type, tag;
};

void hw_flow_type(struct ibv_flow_attr *attr, uint32_t type);
struct ibv_flow *hw_create_flow(struct ibv_qp *qp, const struct ibv_flow_attr *attr, const struct hw_flow_spec *specs);
int hw_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, const struct hw_send *b);
struct ibv_pd *hw_parent_domain(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_td *td, uint32_t mask,
				int custom_alloc, int custom_free, int given);
void hw_ack_async(int type, void *element, int port);
void *hw_async_element(const struct ibv_async_event *ev, int *port);
int hw_init_ah(struct ibv_context *ctx, uint8_t port, const struct hw_wc *w, const void *grh, struct ibv_ah_attr *attr);

// hw_cqex_read reads a field of the current completion of an extended CQ.
enum { HW_WRID, HW_STATUS, HW_OPCODE, HW_VENDOR, HW_FLAGS, HW_LEN, HW_IMM, HW_QPN, HW_SRCQP, HW_SLID, HW_SL, HW_PATH, HW_TS };
uint64_t hw_cqex_read(struct ibv_cq_ex *cq, int what);

void hw_wr_send_imm(struct ibv_qp_ex *q, uint32_t imm);
void hw_wr_write_imm(struct ibv_qp_ex *q, uint32_t rkey, uint64_t remote, uint32_t imm);
void hw_wr_bind_mw(struct ibv_qp_ex *q, const struct hw_send *b);
void hw_wr_inline(struct ibv_qp_ex *q, uint64_t addr, uint32_t length);
void hw_wr_inline_list(struct ibv_qp_ex *q, int n, const struct ibv_sge *bufs);

struct ibv_cq_ex *hw_dv_create_cq(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr, int size, int pad, int format);
int hw_dv_qp(struct ibv_qp *qp, struct mlx5dv_qp *out);
uint32_t hw_dv_dynamic_bfregs(struct ibv_context *ctx);
void hw_dv_cqe_comp(struct ibv_context *ctx, struct mlx5dv_cqe_comp_caps *out);
uint32_t hw_be32(const uint32_t *p);
void hw_set_be32(uint32_t *p, uint32_t v);
void hw_store_be64(void *reg, uint64_t v);
uint64_t hw_be64(uint64_t v);

#endif
