//go:build hw

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "cm.h"

#if __has_include(<rdma/rdma_cma.h>)

#include <rdma/rdma_cma.h>

// The functions of the library, each with the type of its declaration.
#define FUNCTIONS(f) \
	f(rdma_create_event_channel) f(rdma_destroy_event_channel) f(rdma_create_id) f(rdma_destroy_id) f(rdma_bind_addr) f(rdma_resolve_addr) \
	f(rdma_resolve_route) f(rdma_create_qp) f(rdma_destroy_qp) f(rdma_init_qp_attr) f(rdma_connect) f(rdma_accept) f(rdma_reject) f(rdma_establish) \
	f(rdma_listen) f(rdma_disconnect) f(rdma_notify) f(rdma_join_multicast_ex) f(rdma_leave_multicast) f(rdma_migrate_id) f(rdma_set_option) \
	f(rdma_get_cm_event) f(rdma_ack_cm_event)

static struct {
#define FIELD(name) __typeof__(&name) name;
	FUNCTIONS(FIELD)
} lib;

static const char *missing;

static void load(void)
{
	void *l = dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!l) {
		missing = "librdmacm.so.1 is not installed (Debian: librdmacm1)";
		return;
	}
#define FIND(name) if (!(lib.name = (__typeof__(&name))dlsym(l, #name))) missing = "librdmacm.so.1 has no " #name ": it is older than rdma-core 26";
	FUNCTIONS(FIND)
}

const char *hw_cm_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return missing;
}

static void take_addr(struct hw_cm_addr *to, const struct sockaddr *from)
{
	const struct sockaddr_in *v4 = (const void *)from;
	const struct sockaddr_in6 *v6 = (const void *)from;

	if (from->sa_family == AF_INET) {
		to->size = 4;
		to->port = ntohs(v4->sin_port);
		memcpy(to->ip, &v4->sin_addr, 4);
	} else if (from->sa_family == AF_INET6) {
		to->size = 16;
		to->port = ntohs(v6->sin6_port);
		to->scope = v6->sin6_scope_id;
		memcpy(to->ip, &v6->sin6_addr, 16);
	}
}

// give_addr makes an address of the library's in room, NULL: none.
static struct sockaddr *give_addr(const struct hw_cm_addr *a, struct sockaddr_in6 *room)
{
	struct sockaddr_in *v4 = (void *)room;

	memset(room, 0, sizeof(*room));
	if (a->size == 4) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(a->port);
		memcpy(&v4->sin_addr, a->ip, 4);
	} else if (a->size == 16) {
		room->sin6_family = AF_INET6;
		room->sin6_port = htons(a->port);
		room->sin6_scope_id = a->scope;
		memcpy(&room->sin6_addr, a->ip, 16);
	} else {
		return NULL;
	}
	return (struct sockaddr *)room;
}

// some_addr is an address where the library must have one: of no family, if there is none.
static struct sockaddr *some_addr(const struct hw_cm_addr *a, struct sockaddr_in6 *room)
{
	give_addr(a, room);
	return (struct sockaddr *)room;
}

void *hw_cm_create_channel(void) { return lib.rdma_create_event_channel(); }
int hw_cm_channel_fd(void *channel) { return ((struct rdma_event_channel *)channel)->fd; }
void hw_cm_destroy_channel(void *channel) { lib.rdma_destroy_event_channel(channel); }

int hw_cm_create_id(void *channel, void **id, int ps)
{
	struct rdma_cm_id *made = NULL;
	int ret = lib.rdma_create_id(channel, &made, NULL, ps);

	*id = made;
	return ret;
}

int hw_cm_destroy_id(void *id) { return lib.rdma_destroy_id(id); }

void hw_cm_look(void *p, struct hw_cm_id *v)
{
	struct rdma_cm_id *id = p;

	*v = (struct hw_cm_id){.verbs = id->verbs, .qp = id->qp, .pd = id->pd, .send_cq = id->send_cq, .recv_cq = id->recv_cq,
		.port = id->port_num, .ps = id->ps, .qp_type = id->qp_type};
	take_addr(&v->src, &id->route.addr.src_addr);
	take_addr(&v->dst, &id->route.addr.dst_addr);
}

int hw_cm_bind(void *id, struct hw_cm_addr *a)
{
	struct sockaddr_in6 room;

	return lib.rdma_bind_addr(id, some_addr(a, &room));
}

int hw_cm_resolve_addr(void *id, struct hw_cm_addr *src, struct hw_cm_addr *dst, int ms)
{
	struct sockaddr_in6 from, to;

	return lib.rdma_resolve_addr(id, give_addr(src, &from), some_addr(dst, &to), ms);
}

int hw_cm_resolve_route(void *id, int ms) { return lib.rdma_resolve_route(id, ms); }

int hw_cm_paths(void *p, struct hw_cm_path *out, int room)
{
	struct rdma_cm_id *id = p;
	int n = id->route.num_paths < room ? id->route.num_paths : room;

	for (int i = 0; i < n; i++) {
		struct ibv_sa_path_rec *r = &id->route.path_rec[i];

		out[i] = (struct hw_cm_path){.flow_label = be32toh(r->flow_label), .dlid = be16toh(r->dlid), .slid = be16toh(r->slid),
			.pkey = be16toh(r->pkey), .hop_limit = r->hop_limit, .traffic_class = r->traffic_class, .reversible = r->reversible != 0,
			.numb_path = r->numb_path, .sl = r->sl, .mtu = r->mtu, .rate = r->rate, .lifetime = r->packet_life_time};
		memcpy(out[i].dgid, &r->dgid, 16);
		memcpy(out[i].sgid, &r->sgid, 16);
	}
	return n;
}

int hw_cm_create_qp(void *id, struct ibv_pd *pd, struct ibv_cq *scq, struct ibv_cq *rcq, struct ibv_srq *srq, struct ibv_qp_cap *cap, int type, int sig_all)
{
	struct ibv_qp_init_attr a = {.send_cq = scq, .recv_cq = rcq, .srq = srq, .cap = *cap, .qp_type = type, .sq_sig_all = sig_all};
	int ret = lib.rdma_create_qp(id, pd, &a);

	*cap = a.cap;
	return ret;
}

void hw_cm_destroy_qp(void *id) { lib.rdma_destroy_qp(id); }

int hw_cm_init_qp_attr(void *id, int state, struct ibv_qp_attr *attr, int *mask)
{
	attr->qp_state = state;
	return lib.rdma_init_qp_attr(id, attr, mask);
}

static struct rdma_conn_param *param(const struct hw_cm_conn *p, struct rdma_conn_param *c)
{
	if (!p)
		return NULL;
	*c = (struct rdma_conn_param){.private_data = p->length ? p->private_data : NULL, .private_data_len = p->length,
		.responder_resources = p->responder_resources, .initiator_depth = p->initiator_depth, .flow_control = p->flow_control,
		.retry_count = p->retry_count, .rnr_retry_count = p->rnr_retry_count, .srq = p->srq, .qp_num = p->qp_num};
	return c;
}

int hw_cm_connect(void *id, const struct hw_cm_conn *p)
{
	struct rdma_conn_param c;

	return lib.rdma_connect(id, param(p, &c));
}

int hw_cm_accept(void *id, const struct hw_cm_conn *p)
{
	struct rdma_conn_param c;

	return lib.rdma_accept(id, param(p, &c));
}

int hw_cm_reject(void *id, const void *data, uint8_t length) { return lib.rdma_reject(id, data, length); }
int hw_cm_establish(void *id) { return lib.rdma_establish(id); }
int hw_cm_listen(void *id, int backlog) { return lib.rdma_listen(id, backlog); }
int hw_cm_disconnect(void *id) { return lib.rdma_disconnect(id); }
int hw_cm_notify(void *id, int event) { return lib.rdma_notify(id, event); }

int hw_cm_join(void *id, struct hw_cm_addr *group, unsigned flags, uintptr_t context)
{
	struct sockaddr_in6 room;
	struct rdma_cm_join_mc_attr_ex a = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS, .join_flags = flags,
		.addr = some_addr(group, &room)};

	return lib.rdma_join_multicast_ex(id, &a, (void *)context);
}

int hw_cm_leave(void *id, struct hw_cm_addr *group)
{
	struct sockaddr_in6 room;

	return lib.rdma_leave_multicast(id, some_addr(group, &room));
}

int hw_cm_migrate(void *id, void *channel) { return lib.rdma_migrate_id(id, channel); }

int hw_cm_set_option(void *id, int level, int name, void *value, size_t length)
{
	return lib.rdma_set_option(id, level, name, value, length);
}

int hw_cm_get_event(void *channel, struct hw_cm_event *e)
{
	struct rdma_cm_event *v;
	const void *data;

	if (lib.rdma_get_cm_event(channel, &v))
		return -1;
	memset(e, 0, sizeof(*e));
	e->event = v;
	e->id = v->id;
	e->listen_id = v->listen_id;
	e->type = v->event;
	e->status = v->status;
	if (v->event == RDMA_CM_EVENT_MULTICAST_JOIN || v->event == RDMA_CM_EVENT_MULTICAST_ERROR) {
		e->multicast = (uintptr_t)v->param.ud.private_data;
		data = NULL;
	} else if (v->id->qp_type == IBV_QPT_UD) {
		e->conn.length = v->param.ud.private_data_len;
		data = v->param.ud.private_data;
	} else {
		struct rdma_conn_param *c = &v->param.conn;

		e->conn = (struct hw_cm_conn){.length = c->private_data_len, .responder_resources = c->responder_resources,
			.initiator_depth = c->initiator_depth, .flow_control = c->flow_control, .retry_count = c->retry_count,
			.rnr_retry_count = c->rnr_retry_count, .srq = c->srq, .qp_num = c->qp_num};
		data = c->private_data;
	}
	if (v->id->qp_type == IBV_QPT_UD) {
		e->ah = v->param.ud.ah_attr;
		e->conn.qp_num = v->param.ud.qp_num;
		e->qkey = v->param.ud.qkey;
	}
	if (data)
		memcpy(e->conn.private_data, data, e->conn.length);
	else
		e->conn.length = 0;
	return 0;
}

int hw_cm_ack_event(void *event) { return lib.rdma_ack_cm_event(event); }

#else

const char *hw_cm_load(void) { return "conform-hw was built without the header rdma/rdma_cma.h (Debian: librdmacm-dev)"; }

#define NONE { errno = ENOSYS; return -1; }
void *hw_cm_create_channel(void) { return NULL; }
int hw_cm_channel_fd(void *c) NONE
void hw_cm_destroy_channel(void *c) {}
int hw_cm_create_id(void *c, void **id, int ps) NONE
int hw_cm_destroy_id(void *id) NONE
void hw_cm_look(void *id, struct hw_cm_id *v) { memset(v, 0, sizeof(*v)); }
int hw_cm_bind(void *id, struct hw_cm_addr *a) NONE
int hw_cm_resolve_addr(void *id, struct hw_cm_addr *s, struct hw_cm_addr *d, int ms) NONE
int hw_cm_resolve_route(void *id, int ms) NONE
int hw_cm_paths(void *id, struct hw_cm_path *p, int room) { return 0; }
int hw_cm_create_qp(void *id, struct ibv_pd *pd, struct ibv_cq *s, struct ibv_cq *r, struct ibv_srq *q, struct ibv_qp_cap *c, int t, int a) NONE
void hw_cm_destroy_qp(void *id) {}
int hw_cm_init_qp_attr(void *id, int state, struct ibv_qp_attr *a, int *mask) NONE
int hw_cm_connect(void *id, const struct hw_cm_conn *p) NONE
int hw_cm_accept(void *id, const struct hw_cm_conn *p) NONE
int hw_cm_reject(void *id, const void *d, uint8_t n) NONE
int hw_cm_establish(void *id) NONE
int hw_cm_listen(void *id, int backlog) NONE
int hw_cm_disconnect(void *id) NONE
int hw_cm_notify(void *id, int event) NONE
int hw_cm_join(void *id, struct hw_cm_addr *g, unsigned flags, uintptr_t context) NONE
int hw_cm_leave(void *id, struct hw_cm_addr *g) NONE
int hw_cm_migrate(void *id, void *c) NONE
int hw_cm_set_option(void *id, int level, int name, void *v, size_t n) NONE
int hw_cm_get_event(void *c, struct hw_cm_event *e) NONE
int hw_cm_ack_event(void *e) NONE

#endif
