//go:build hw

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

// hw_flow_both copies value and mask of a spec.
#define hw_flow_both(member, type)                                                                                     \
	do {                                                                                                           \
		type(&member.val, &s->val);                                                                            \
		type(&member.mask, &s->mask);                                                                          \
	} while (0)

static void hw_flow_eth(struct ibv_flow_eth_filter *d, const struct hw_flow_filter *f)
{
	memcpy(d->dst_mac, f->dst_mac, sizeof d->dst_mac);
	memcpy(d->src_mac, f->src_mac, sizeof d->src_mac);
	d->ether_type = htons(f->ether_type);
	d->vlan_tag = htons(f->vlan_tag);
}

static void hw_flow_ipv4(struct ibv_flow_ipv4_filter *d, const struct hw_flow_filter *f)
{
	memcpy(&d->src_ip, f->src_ip, sizeof d->src_ip);
	memcpy(&d->dst_ip, f->dst_ip, sizeof d->dst_ip);
}

static void hw_flow_ipv4_ext(struct ibv_flow_ipv4_ext_filter *d, const struct hw_flow_filter *f)
{
	memcpy(&d->src_ip, f->src_ip, sizeof d->src_ip);
	memcpy(&d->dst_ip, f->dst_ip, sizeof d->dst_ip);
	d->proto = f->proto;
	d->tos = f->tos;
	d->ttl = f->ttl;
	d->flags = f->ip_flags;
}

static void hw_flow_ipv6(struct ibv_flow_ipv6_filter *d, const struct hw_flow_filter *f)
{
	memcpy(d->src_ip, f->src_ip, sizeof d->src_ip);
	memcpy(d->dst_ip, f->dst_ip, sizeof d->dst_ip);
	d->flow_label = htonl(f->flow_label);
	d->next_hdr = f->proto;
	d->traffic_class = f->tos;
	d->hop_limit = f->ttl;
}

static void hw_flow_ports(struct ibv_flow_tcp_udp_filter *d, const struct hw_flow_filter *f)
{
	d->dst_port = htons(f->dst_port);
	d->src_port = htons(f->src_port);
}

// hw_flow_spec_put writes a spec to zeroed memory and returns its size, or 0 for a type that the library does not know.
static size_t hw_flow_spec_put(struct ibv_flow_spec *d, const struct hw_flow_spec *s)
{
	d->hdr.type = s->type;
	switch (s->type) {
	case IBV_FLOW_SPEC_ETH:
		hw_flow_both(d->eth, hw_flow_eth);
		return d->hdr.size = sizeof d->eth;
	case IBV_FLOW_SPEC_IPV4:
		hw_flow_both(d->ipv4, hw_flow_ipv4);
		return d->hdr.size = sizeof d->ipv4;
	case IBV_FLOW_SPEC_IPV4_EXT:
		hw_flow_both(d->ipv4_ext, hw_flow_ipv4_ext);
		return d->hdr.size = sizeof d->ipv4_ext;
	case IBV_FLOW_SPEC_IPV6:
		hw_flow_both(d->ipv6, hw_flow_ipv6);
		return d->hdr.size = sizeof d->ipv6;
	case IBV_FLOW_SPEC_TCP:
	case IBV_FLOW_SPEC_UDP:
		hw_flow_both(d->tcp_udp, hw_flow_ports);
		return d->hdr.size = sizeof d->tcp_udp;
	case IBV_FLOW_SPEC_ACTION_TAG:
		d->flow_tag.tag_id = s->tag;
		return d->hdr.size = sizeof d->flow_tag;
	case IBV_FLOW_SPEC_ACTION_DROP:
		return d->hdr.size = sizeof d->drop;
	}
	return 0;
}

void hw_flow_type(struct ibv_flow_attr *attr, uint32_t type) { attr->type = type; }

struct ibv_flow *hw_create_flow(struct ibv_qp *qp, const struct ibv_flow_attr *attr, const struct hw_flow_spec *specs)
{
	size_t size = sizeof *attr;
	char *b = calloc(1, size + attr->num_of_specs * sizeof(struct ibv_flow_spec));
	if (!b)
		return NULL;
	for (int i = 0; i < attr->num_of_specs; i++) {
		size_t n = hw_flow_spec_put((struct ibv_flow_spec *)(b + size), &specs[i]);
		if (!n) {
			free(b);
			errno = EINVAL;
			return NULL;
		}
		size += n;
	}
	memcpy(b, attr, sizeof *attr);
	((struct ibv_flow_attr *)b)->size = size;
	struct ibv_flow *f = ibv_create_flow(qp, (struct ibv_flow_attr *)b);
	int e = errno;
	free(b);
	errno = e;
	return f;
}
