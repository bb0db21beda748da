//go:build hw

// librdmacm, loaded when it is first used: a machine without it has no connection manager, and everything else. The header is needed
// where this is built; without it there is none either. Ids, channels and events are opaque here, and structures have no pointers
// to memory of Go.
#ifndef RDMASIM_HW_CM_H
#define RDMASIM_HW_CM_H

#include <stdint.h>
#include <netinet/in.h>
#include <infiniband/verbs.h>

// hw_cm_addr is an address of 4 or 16 bytes, 0: none, and a port in host order.
struct hw_cm_addr {
	uint8_t ip[16];
	uint32_t size, scope;
	uint16_t port;
};

// hw_cm_conn are the parameters of a connection, with the private data in place.
struct hw_cm_conn {
	uint8_t private_data[256];
	uint8_t length, responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count, srq;
	uint32_t qp_num;
};

// hw_cm_id is what a program sees of an id.
struct hw_cm_id {
	struct ibv_context *verbs;
	struct ibv_qp *qp;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	int port, ps, qp_type;
	struct hw_cm_addr src, dst;
};

// hw_cm_path is a path record in host order.
struct hw_cm_path {
	uint8_t dgid[16], sgid[16];
	uint32_t flow_label;
	uint16_t dlid, slid, pkey;
	uint8_t hop_limit, traffic_class, reversible, numb_path, sl, mtu, rate, lifetime;
};

// hw_cm_event is an event; event is to be acknowledged.
struct hw_cm_event {
	void *event, *id, *listen_id;
	int type, status;
	struct hw_cm_conn conn;
	struct ibv_ah_attr ah;
	uint32_t qkey;
	uintptr_t multicast;
};

// hw_cm_load loads the library: 0, or why there is none.
const char *hw_cm_load(void);

void *hw_cm_create_channel(void);
int hw_cm_channel_fd(void *channel);
void hw_cm_destroy_channel(void *channel);
int hw_cm_create_id(void *channel, void **id, int ps);
int hw_cm_destroy_id(void *id);
void hw_cm_look(void *id, struct hw_cm_id *v);
int hw_cm_bind(void *id, struct hw_cm_addr *a);
int hw_cm_resolve_addr(void *id, struct hw_cm_addr *src, struct hw_cm_addr *dst, int ms);
int hw_cm_resolve_route(void *id, int ms);
int hw_cm_paths(void *id, struct hw_cm_path *p, int room);
int hw_cm_create_qp(void *id, struct ibv_pd *pd, struct ibv_cq *scq, struct ibv_cq *rcq, struct ibv_srq *srq, struct ibv_qp_cap *cap, int type, int sig_all);
void hw_cm_destroy_qp(void *id);
int hw_cm_init_qp_attr(void *id, int state, struct ibv_qp_attr *attr, int *mask);
int hw_cm_connect(void *id, const struct hw_cm_conn *p);
int hw_cm_accept(void *id, const struct hw_cm_conn *p);
int hw_cm_reject(void *id, const void *data, uint8_t length);
int hw_cm_establish(void *id);
int hw_cm_listen(void *id, int backlog);
int hw_cm_disconnect(void *id);
int hw_cm_notify(void *id, int event);
int hw_cm_join(void *id, struct hw_cm_addr *group, unsigned flags, uintptr_t context);
int hw_cm_leave(void *id, struct hw_cm_addr *group);
int hw_cm_migrate(void *id, void *channel);
int hw_cm_set_option(void *id, int level, int name, void *value, size_t length);
int hw_cm_get_event(void *channel, struct hw_cm_event *e);
int hw_cm_ack_event(void *event);

#endif
