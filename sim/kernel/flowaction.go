package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
)

// flowAction is what rules have done with packets (mlx5_ib_flow_action of type UNSPECIFIED): header
// changes, a tunnel that begins, or one that ends.
type flowAction struct {
	kind            uint32
	rewrite, tunnel uint32 // by number; neither: a tunnel ends
	refs            int
}

func (a *flowAction) destroy(k *call) error {
	if a.refs > 0 {
		return fmt.Errorf("%d flows: %w", a.refs, syscall.EBUSY)
	}
	switch {
	case a.rewrite != 0:
		in := prm.NewIn(prm.OpDeallocModifyHeader, 0)
		prm.DeallocModifyHeaderIn(in).SetID(a.rewrite)
		return k.destroy(in)
	case a.tunnel != 0:
		in := prm.NewIn(prm.OpDeallocPacketReformat, 0)
		prm.DeallocPacketReformatIn(in).SetID(a.tunnel)
		return k.destroy(in)
	}
	return nil
}

// join has packets of a rule so treated (parse_flow_flow_action). EINVAL: the rule does that
// already.
func (a *flowAction) join(to *flowActs, kind uint32) error {
	twice := a.rewrite != 0 && to.rewrite != 0 || a.tunnel != 0 && to.tunnel != 0 || a.rewrite|a.tunnel == 0 && to.decap
	if twice || a.kind != kind {
		return fmt.Errorf("an action twice, or of another kind of tables: %w", syscall.EINVAL)
	}
	switch {
	case a.rewrite != 0:
		to.rewrite = a.rewrite
	case a.tunnel != 0:
		to.tunnel = a.tunnel
	default:
		to.decap = true
	}
	return nil
}

// steeringKind is the kind of tables of a type of programs (enum mlx5_ib_uapi_flow_table_type).
func (u *Ucontext) steeringKind(table uint64) (kind uint32, err error) {
	const receive, send = 0, 1
	switch {
	case table == receive:
		return prm.FlowTableNICReceive, nil
	case table == send && u.dev.caps.steering.sends:
		return prm.FlowTableNICTransmit, nil
	}
	return 0, fmt.Errorf("flow tables of type %d: %w", table, syscall.EOPNOTSUPP)
}

// CreateModifyHeader is MLX5_IB_METHOD_FLOW_ACTION_CREATE_MODIFY_HEADER; changes has the device's
// form (prm.HeaderChanges). EOPNOTSUPP: more changes than the device can do, or none; EINVAL: a
// change that it does not know.
func (u *Ucontext) CreateModifyHeader(c Caller, table uint64, changes []byte) (h Handle, err error) {
	err = u.do(c, func(k *call) error {
		kind, err := u.steeringKind(table)
		if err != nil {
			return err
		}
		n := prm.HeaderChanges(changes).Count()
		if n == 0 || uint32(n) > u.dev.caps.steering.maxChanges {
			return fmt.Errorf("%d header changes: %w", n, syscall.EOPNOTSUPP)
		}
		in, out := prm.NewIn(prm.OpAllocModifyHeader, n*prm.HeaderChangeSize), prm.NewOut(prm.OpAllocModifyHeader, 0)
		m := prm.AllocModifyHeaderIn(in)
		m.SetTableType(kind)
		m.SetNumber(uint32(n))
		copy(m.Actions(), changes)
		if err := k.exec(in, out); err != nil {
			return fmt.Errorf("header changes: %w", err)
		}
		h = u.objs.add(&flowAction{kind: kind, rewrite: prm.AllocModifyHeaderOut(out).ID()})
		return nil
	})
	return h, err
}

// Types of reformats (enum mlx5_ib_uapi_flow_action_packet_reformat_type).
const (
	reformatL2TunnelToL2 = 0
	reformatL2ToL2Tunnel = 1
)

// CreatePacketReformat is MLX5_IB_METHOD_FLOW_ACTION_CREATE_PACKET_REFORMAT; headers are those that
// a tunnel puts in front. EOPNOTSUPP: tunnels other than those of layer 2, or a kind of table that
// does not allow them (mlx5_ib_flow_action_packet_reformat_valid).
func (u *Ucontext) CreatePacketReformat(c Caller, typ, table uint64, headers []byte) (h Handle, err error) {
	err = u.do(c, func(k *call) error {
		kind, err := u.steeringKind(table)
		if err != nil {
			return err
		}
		begins := typ == reformatL2ToL2Tunnel && kind == prm.FlowTableNICTransmit
		if !begins && (typ != reformatL2TunnelToL2 || kind != prm.FlowTableNICReceive) || !u.dev.caps.steering.reformat {
			return fmt.Errorf("reformat of type %d with tables of type %d: %w", typ, table, syscall.EOPNOTSUPP)
		}
		a := &flowAction{kind: kind}
		if begins {
			if len(headers) == 0 || uint32(len(headers)) > u.dev.caps.steering.maxHeaders {
				return fmt.Errorf("a tunnel with %d bytes of headers: %w", len(headers), syscall.EINVAL)
			}
			in, out := prm.NewIn(prm.OpAllocPacketReformat, len(headers)), prm.NewOut(prm.OpAllocPacketReformat, 0)
			m := prm.AllocPacketReformatIn(in)
			m.SetType(prm.ReformatL2ToL2Tunnel)
			m.SetDataSize(uint32(len(headers)))
			copy(m.Data(), headers)
			if err := k.exec(in, out); err != nil {
				return fmt.Errorf("a tunnel: %w", err)
			}
			a.tunnel = prm.AllocPacketReformatOut(out).ID()
		}
		h = u.objs.add(a)
		return nil
	})
	return h, err
}

// DestroyFlowAction is FLOW_ACTION_DESTROY: EBUSY while a flow has it.
func (u *Ucontext) DestroyFlowAction(c Caller, h Handle) error {
	return destroyByHandle[*flowAction](u, c, h, "flow action")
}
