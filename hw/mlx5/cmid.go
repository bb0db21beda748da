//go:build hw

package mlx5

/*
#include "verbs.h"
#include "cm.h"
*/
import "C"

import (
	"fmt"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"github.com/rdmasim/rdmasim/verbs"
)

// cmID is rdma_cm_id.
type cmID struct {
	verbs.UnimplementedCMID
	channel *eventChannel
	id      unsafe.Pointer
	user    any
	qp      verbs.QP
	gone    bool
	groups  map[netip.Addr]uintptr
}

func (i *cmID) look() (v C.struct_hw_cm_id) {
	if !i.gone {
		C.hw_cm_look(i.id, &v)
	}
	return v
}

func (i *cmID) Channel() verbs.EventChannel { return i.channel }
func (i *cmID) Context() any                { return i.user }
func (i *cmID) SetContext(v any)            { i.user = v }

func (i *cmID) PortSpace() verbs.PortSpace { v := i.look(); return verbs.PortSpace(v.ps) }
func (i *cmID) Type() verbs.QPType         { v := i.look(); return verbs.QPType(v.qp_type) }
func (i *cmID) Port() int                  { v := i.look(); return int(v.port) }
func (i *cmID) QP() verbs.QP               { return i.qp }
func (i *cmID) LocalAddr() netip.AddrPort  { v := i.look(); return goAddr(&v.src) }
func (i *cmID) PeerAddr() netip.AddrPort   { v := i.look(); return goAddr(&v.dst) }

// Verbs is the library's own context, which is not to be closed.
func (i *cmID) Verbs() verbs.Context {
	v := i.look()
	if v.verbs == nil {
		return nil
	}
	return i.channel.p.cmContext(v.verbs)
}

func (p *process) cmContext(c *C.struct_ibv_context) *context {
	cmObjects.mu.Lock()
	defer cmObjects.mu.Unlock()
	x := cmObjects.contexts[c]
	if x == nil {
		d := &device{p, c.device}
		x = &context{c: c, dev: d, mlx5: bool(C.mlx5dv_is_supported(c.device)), objs: map[unsafe.Pointer]any{}}
		cmObjects.contexts[c] = x
	}
	return x
}

// call makes a call of the library on the id.
func (i *cmID) call(t verbs.Thread, name string, f func() (C.int, error)) error {
	defer enterCall(t, name).leaveCall()
	if i.gone {
		return fmt.Errorf("%s of an id that was destroyed: %w", name, syscall.ENOENT) // as the kernel says; the library would read memory that it has freed
	}
	ret, err := f()
	return failed(name, ret, err)
}

// BindAddr is rdma_bind_addr.
func (i *cmID) BindAddr(t verbs.Thread, addr netip.AddrPort) error {
	a := cAddr(addr)
	return i.call(t, "rdma_bind_addr", func() (C.int, error) {
		ret, err := C.hw_cm_bind(i.id, &a)
		return ret, err
	})
}

// ResolveAddr is rdma_resolve_addr.
func (i *cmID) ResolveAddr(t verbs.Thread, src, dst netip.AddrPort, timeout time.Duration) error {
	s, d := cAddr(src), cAddr(dst)
	return i.call(t, "rdma_resolve_addr", func() (C.int, error) {
		ret, err := C.hw_cm_resolve_addr(i.id, &s, &d, milliseconds(timeout))
		return ret, err
	})
}

// ResolveRoute is rdma_resolve_route. On an id without a device the library would end the process.
func (i *cmID) ResolveRoute(t verbs.Thread, timeout time.Duration) error {
	return i.call(t, "rdma_resolve_route", func() (C.int, error) {
		if v := i.look(); v.verbs == nil {
			return -1, syscall.EINVAL
		}
		ret, err := C.hw_cm_resolve_route(i.id, milliseconds(timeout))
		return ret, err
	})
}

// mostPaths is how many paths an id has at most.
const mostPaths = 2

// QueryPath is what the id's route says.
func (i *cmID) QueryPath(t verbs.Thread) (l []verbs.PathRecord, err error) {
	err = i.call(t, "paths of an id", func() (C.int, error) {
		var p [mostPaths]C.struct_hw_cm_path
		for k := range int(C.hw_cm_paths(i.id, &p[0], mostPaths)) {
			r := &p[k]
			l = append(l, verbs.PathRecord{DGID: *(*verbs.GID)(unsafe.Pointer(&r.dgid)), SGID: *(*verbs.GID)(unsafe.Pointer(&r.sgid)),
				DLID: uint16(r.dlid), SLID: uint16(r.slid), FlowLabel: uint32(r.flow_label), HopLimit: uint8(r.hop_limit),
				TrafficClass: uint8(r.traffic_class), Reversible: r.reversible != 0, NumPath: uint8(r.numb_path), PKey: uint16(r.pkey),
				SL: uint8(r.sl), MTU: verbs.MTU(r.mtu), Rate: uint8(r.rate), Lifetime: uint8(r.lifetime)})
		}
		return 0, nil
	})
	return l, err
}

// CreateQP is rdma_create_qp.
func (i *cmID) CreateQP(t verbs.Thread, domain verbs.PD, a verbs.QPInitAttr) (verbs.QP, error) {
	if a.CompMask != 0 {
		return nil, fmt.Errorf("rdma_create_qp_ex is not used here: %w", syscall.EOPNOTSUPP)
	}
	var p *C.struct_ibv_pd
	if d, ok := domain.(*pd); ok && d != nil {
		p = d.p
	}
	var scq, rcq *C.struct_ibv_cq
	if q := plain(a.SendCQ); q != nil {
		scq = q.c
	}
	if q := plain(a.RecvCQ); q != nil {
		rcq = q.c
	}
	var shared *C.struct_ibv_srq
	if q, ok := a.SRQ.(*srq); ok && q != nil {
		shared = q.s
	}
	typ := a.Type
	if typ == 0 {
		typ = i.Type()
	}
	c := C.struct_ibv_qp_cap{max_send_wr: C.uint32_t(a.Cap.MaxSendWR), max_recv_wr: C.uint32_t(a.Cap.MaxRecvWR),
		max_send_sge: C.uint32_t(a.Cap.MaxSendSGE), max_recv_sge: C.uint32_t(a.Cap.MaxRecvSGE), max_inline_data: C.uint32_t(a.Cap.MaxInline)}
	err := i.call(t, "rdma_create_qp", func() (C.int, error) {
		ret, err := C.hw_cm_create_qp(i.id, p, scq, rcq, shared, &c, C.int(typ), C.int(truth(a.SigAll)))
		return ret, err
	})
	if err != nil {
		return nil, err
	}
	v := i.look()
	x := i.channel.p.cmContext(v.verbs)
	o := &qp{ctx: x, q: v.qp, init: a, caps: goCaps(&c)}
	o.init.Type = typ
	o.sends.watch(x, unsafe.Pointer(o.q))
	o.recvs.watch(x, unsafe.Pointer(o.q))
	i.qp = o
	if x.mlx5 {
		i.qp = &dvQP{qp: o}
	}
	x.enter(unsafe.Pointer(o.q), i.qp)
	return i.qp, nil
}

// DestroyQP is rdma_destroy_qp.
func (i *cmID) DestroyQP(t verbs.Thread) error {
	o := queue(i.qp)
	if o == nil || o.gone {
		return fmt.Errorf("rdma_destroy_qp: the id has none: %w", syscall.EINVAL)
	}
	return i.call(t, "rdma_destroy_qp", func() (C.int, error) {
		C.hw_cm_destroy_qp(i.id)
		o.gone, i.qp = true, nil
		o.ctx.leave(unsafe.Pointer(o.q))
		return 0, nil
	})
}

// InitQPAttr is rdma_init_qp_attr.
func (i *cmID) InitQPAttr(t verbs.Thread, state verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	var a C.struct_ibv_qp_attr
	var mask C.int
	err := i.call(t, "rdma_init_qp_attr", func() (C.int, error) {
		ret, err := C.hw_cm_init_qp_attr(i.id, C.int(state), &a, &mask)
		return ret, err
	})
	if err != nil {
		return verbs.QPAttr{}, 0, err
	}
	return goQPAttr(&a), verbs.QPAttrMask(mask), nil
}

func cConn(p *verbs.ConnParam, c *C.struct_hw_cm_conn) (*C.struct_hw_cm_conn, error) {
	if p == nil {
		return nil, nil
	}
	if len(p.PrivateData) > len(c.private_data)-1 {
		return nil, fmt.Errorf("private data of %d bytes: the library's length has 8 bits: %w", len(p.PrivateData), syscall.EINVAL)
	}
	for k, b := range p.PrivateData {
		c.private_data[k] = C.uint8_t(b)
	}
	c.length, c.responder_resources, c.initiator_depth = C.uint8_t(len(p.PrivateData)), C.uint8_t(p.ResponderResources), C.uint8_t(p.InitiatorDepth)
	c.flow_control, c.retry_count, c.rnr_retry_count = C.uint8_t(truth(p.FlowControl)), C.uint8_t(p.RetryCount), C.uint8_t(p.RNRRetryCount)
	c.srq, c.qp_num = C.uint8_t(truth(p.SRQ)), C.uint32_t(p.QPN)
	return c, nil
}

// Connect is rdma_connect.
func (i *cmID) Connect(t verbs.Thread, p *verbs.ConnParam) error {
	var room C.struct_hw_cm_conn
	c, err := cConn(p, &room)
	if err != nil {
		return fmt.Errorf("rdma_connect: %w", err)
	}
	return i.call(t, "rdma_connect", func() (C.int, error) {
		ret, err := C.hw_cm_connect(i.id, c)
		return ret, err
	})
}

// Accept is rdma_accept.
func (i *cmID) Accept(t verbs.Thread, p *verbs.ConnParam) error {
	var room C.struct_hw_cm_conn
	c, err := cConn(p, &room)
	if err != nil {
		return fmt.Errorf("rdma_accept: %w", err)
	}
	return i.call(t, "rdma_accept", func() (C.int, error) {
		ret, err := C.hw_cm_accept(i.id, c)
		return ret, err
	})
}

// Listen is rdma_listen.
func (i *cmID) Listen(t verbs.Thread, backlog int) error {
	return i.call(t, "rdma_listen", func() (C.int, error) {
		ret, err := C.hw_cm_listen(i.id, C.int(backlog))
		return ret, err
	})
}

// Reject is rdma_reject.
func (i *cmID) Reject(t verbs.Thread, private []byte) error {
	if len(private) > 255 {
		return fmt.Errorf("rdma_reject: private data of %d bytes: %w", len(private), syscall.EINVAL)
	}
	data := append([]byte{}, private...)
	data = append(data, 0) // so that it has an address
	return i.call(t, "rdma_reject", func() (C.int, error) {
		ret, err := C.hw_cm_reject(i.id, unsafe.Pointer(&data[0]), C.uint8_t(len(private)))
		return ret, err
	})
}

// Establish is rdma_establish.
func (i *cmID) Establish(t verbs.Thread) error {
	return i.call(t, "rdma_establish", func() (C.int, error) {
		ret, err := C.hw_cm_establish(i.id)
		return ret, err
	})
}

// Disconnect is rdma_disconnect.
func (i *cmID) Disconnect(t verbs.Thread) error {
	return i.call(t, "rdma_disconnect", func() (C.int, error) {
		ret, err := C.hw_cm_disconnect(i.id)
		return ret, err
	})
}

// Notify is rdma_notify.
func (i *cmID) Notify(t verbs.Thread, ev verbs.EventType) error {
	return i.call(t, "rdma_notify", func() (C.int, error) {
		ret, err := C.hw_cm_notify(i.id, C.int(ev))
		return ret, err
	})
}

// JoinMulticast is rdma_join_multicast_ex.
func (i *cmID) JoinMulticast(t verbs.Thread, group netip.Addr, flags verbs.MulticastFlags, user any) error {
	cmObjects.mu.Lock()
	cmObjects.last++
	key := cmObjects.last
	cmObjects.groups[key] = user
	cmObjects.mu.Unlock()
	a := cAddr(netip.AddrPortFrom(group, 0))
	err := i.call(t, "rdma_join_multicast_ex", func() (C.int, error) {
		ret, err := C.hw_cm_join(i.id, &a, C.uint(flags), C.uintptr_t(key))
		return ret, err
	})
	if err != nil {
		i.forgetGroup(key)
		return err
	}
	if i.groups == nil {
		i.groups = map[netip.Addr]uintptr{}
	}
	i.groups[group] = key
	return nil
}

func (i *cmID) forgetGroup(key uintptr) {
	cmObjects.mu.Lock()
	defer cmObjects.mu.Unlock()
	delete(cmObjects.groups, key)
}

// LeaveMulticast is rdma_leave_multicast.
func (i *cmID) LeaveMulticast(t verbs.Thread, group netip.Addr) error {
	a := cAddr(netip.AddrPortFrom(group, 0))
	err := i.call(t, "rdma_leave_multicast", func() (C.int, error) {
		ret, err := C.hw_cm_leave(i.id, &a)
		return ret, err
	})
	if err == nil {
		i.forgetGroup(i.groups[group])
		delete(i.groups, group)
	}
	return err
}

// Migrate is rdma_migrate_id, which waits for the acknowledgement of events.
func (i *cmID) Migrate(t verbs.Thread, to verbs.EventChannel) error {
	h, ok := to.(*eventChannel)
	if !ok || h == nil {
		return fmt.Errorf("rdma_migrate_id to a %T: %w", to, syscall.EINVAL)
	}
	err := i.call(t, "rdma_migrate_id", func() (C.int, error) {
		ret, err := C.hw_cm_migrate(i.id, h.c)
		return ret, err
	})
	if err == nil {
		i.channel = h
	}
	return err
}

// SetOption is rdma_set_option.
func (i *cmID) SetOption(t verbs.Thread, level verbs.CMOptionLevel, name int, value []byte) error {
	v := append(append([]byte{}, value...), 0) // so that it has an address
	return i.call(t, "rdma_set_option", func() (C.int, error) {
		ret, err := C.hw_cm_set_option(i.id, C.int(level), C.int(name), unsafe.Pointer(&v[0]), C.size_t(len(value)))
		return ret, err
	})
}

// Destroy is rdma_destroy_id, which waits for the acknowledgement of events.
func (i *cmID) Destroy(t verbs.Thread) error {
	err := i.call(t, "rdma_destroy_id", func() (C.int, error) {
		ret, err := C.hw_cm_destroy_id(i.id)
		return ret, err
	})
	if err != nil {
		return err
	}
	i.gone = true
	for _, key := range i.groups {
		i.forgetGroup(key)
	}
	cmObjects.mu.Lock()
	defer cmObjects.mu.Unlock()
	delete(cmObjects.ids, i.id)
	return nil
}
