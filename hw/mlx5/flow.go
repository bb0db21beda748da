//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// flow is a rule that steers packets.
type flow struct {
	verbs.UnimplementedFlow
	f *C.struct_ibv_flow
}

// mostSpecs is how many specs are handed to the library, which has a place on its stack for each.
const mostSpecs = 64

// CreateFlow is ibv_create_flow.
func (q *qp) CreateFlow(t verbs.Thread, a verbs.FlowAttr) (verbs.Flow, error) {
	defer enterCall(t, "ibv_create_flow").leaveCall()
	switch {
	case q.gone:
		return nil, errGone
	case len(a.Specs) > mostSpecs:
		return nil, fmt.Errorf("ibv_create_flow with %d specs is not handed to the library: %w", len(a.Specs), syscall.EINVAL)
	}
	attr := C.struct_ibv_flow_attr{priority: C.uint16_t(a.Priority), num_of_specs: C.uint8_t(len(a.Specs)),
		port: C.uint8_t(a.Port), flags: C.uint32_t(a.Flags)}
	C.hw_flow_type(&attr, C.uint32_t(a.Type))
	specs := make([]C.struct_hw_flow_spec, len(a.Specs)+1)
	for i := range a.Specs {
		s := &a.Specs[i]
		specs[i].tag, specs[i].val, specs[i].mask = C.uint32_t(s.Tag), cFilter(&s.Val), cFilter(&s.Mask)
		specs[i]._type = C.uint32_t(s.Type)
	}
	f, err := C.hw_create_flow(q.q, &attr, &specs[0])
	if f == nil {
		return nil, null("ibv_create_flow", err)
	}
	return &flow{f: f}, nil
}

func cFilter(f *verbs.FlowFilter) C.struct_hw_flow_filter {
	c := C.struct_hw_flow_filter{ether_type: C.uint16_t(f.EtherType), vlan_tag: C.uint16_t(f.VLANTag), proto: C.uint8_t(f.Proto), tos: C.uint8_t(f.TOS),
		ttl: C.uint8_t(f.TTL), ip_flags: C.uint8_t(f.IPFlags), flow_label: C.uint32_t(f.FlowLabel), src_port: C.uint16_t(f.SrcPort), dst_port: C.uint16_t(f.DstPort)}
	for i := range f.DstMAC {
		c.dst_mac[i], c.src_mac[i] = C.uint8_t(f.DstMAC[i]), C.uint8_t(f.SrcMAC[i])
	}
	for i := range f.SrcIP {
		c.src_ip[i], c.dst_ip[i] = C.uint8_t(f.SrcIP[i]), C.uint8_t(f.DstIP[i])
	}
	return c
}

// Destroy is ibv_destroy_flow.
func (f *flow) Destroy(t verbs.Thread) error {
	defer enterCall(t, "ibv_destroy_flow").leaveCall()
	if f.f == nil {
		return fmt.Errorf("a flow that was destroyed: %w", syscall.EFAULT)
	}
	ret, err := C.ibv_destroy_flow(f.f)
	if ret == 0 {
		f.f = nil
	}
	return failed("ibv_destroy_flow", ret, err)
}
