package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// AH is an address handle: the address vector that goes into requests, and on Ethernet
// the kernel's object, which exists for the Ethernet address that it resolved.
type AH struct {
	verbs.UnimplementedAH
	ctx *Context
	h   kernel.Handle
	ib  bool // InfiniBand: the kernel has no object
	av  [prm.AVSegmentSize]byte
}

// Source ports of RoCE v2 datagrams without a flow label.
const (
	sportMin = 0xc000
	sportMax = 0xffff
)

// createIBAH is ibv_create_ah on an InfiniBand port: all that goes into a request is in
// the attributes.
func (c *Context) createIBAH(a *verbs.AHAttr) *AH {
	x := &AH{ctx: c, ib: true}
	av := prm.AVSegment(x.av[:])
	av.SetExtended(true)
	av.SetFLMLID(a.SrcPathBits & 0x7f)
	av.SetRLID(a.DLID)
	av.SetStatRateSL(a.StaticRate<<4 | a.SL&0xf)
	if a.IsGlobal {
		av.SetGRHPresent(true)
		setRoute(av, &a.GRH)
	}
	return x
}

// setRoute is the part of an address vector that a global route decides.
func setRoute(av prm.AVSegment, g *verbs.GRH) {
	av.SetTClass(g.TrafficClass)
	av.SetHopLimit(g.HopLimit)
	av.SetSGIDIndex(uint32(g.SGIDIndex))
	av.SetFlowLabel(g.FlowLabel & 0xfffff)
	copy(av.RGID(), g.DGID[:])
}

// CreateAH is ibv_create_ah.
func (p *PD) CreateAH(vt verbs.Thread, a verbs.AHAttr) (_ verbs.AH, err error) {
	defer Of(vt).answers(&err)
	c := p.ctx
	t := c.enter(vt)
	if a.Port < 1 || int(a.Port) > int(c.resp.NumPorts) {
		return nil, fmt.Errorf("create_ah: port %d: %w", a.Port, syscall.EINVAL)
	}
	if c.dev.kernel.LinkLayer() == verbs.LinkInfiniBand {
		return c.createIBAH(&a), nil
	}
	if !a.IsGlobal {
		return nil, fmt.Errorf("create_ah: no global route on Ethernet: %w", syscall.EINVAL)
	}
	e, err := c.u.QueryGIDEntry(t.caller, int(a.Port), int(a.GRH.SGIDIndex))
	if err != nil {
		return nil, fmt.Errorf("create_ah: %w", err)
	}
	h, dmac, err := c.u.CreateAH(t.caller, p.h, a)
	if err != nil {
		return nil, fmt.Errorf("create_ah: %w", err)
	}
	x := &AH{ctx: c, h: h}
	av := prm.AVSegment(x.av[:])
	if e.Type == verbs.GIDTypeRoCEv2 {
		av.SetRLID(c.sourcePort(t, a.GRH.FlowLabel))
	}
	av.SetExtended(true)
	av.SetStatRateSL(a.StaticRate<<4 | a.SL&7<<1)
	setRoute(av, &a.GRH)
	copy(av.RMAC(), dmac[:])
	return x, nil
}

// sourcePort is mlx5_ah_set_udp_sport: by the flow label, or else any port of the range
// (rand), so that the datagrams of several handles take several ways.
func (c *Context) sourcePort(t *Thread, label uint32) uint16 {
	if label &= 0xfffff; label != 0 {
		return roce.UDPSourcePort(label)
	}
	if c.ports == nil {
		c.ports = sim.NewRand(t.P.Engine().Seed(), "provider/ah/"+c.proc.K.Name)
	}
	return uint16(sportMin + c.ports.Intn(sportMax+1-sportMin))
}

// Destroy is ibv_destroy_ah.
func (a *AH) Destroy(vt verbs.Thread) error {
	t := a.ctx.enter(vt)
	if a.ib {
		return nil
	}
	if err := a.ctx.u.DestroyAH(t.caller, a.h); err != nil {
		return fmt.Errorf("destroy_ah: %w", err)
	}
	return nil
}

// InitAHFromWC is ibv_init_ah_from_wc: on Ethernet the version and the
// checksum of the header show whether it is IPv6 (or a GRH) or IPv4.
func (c *Context) InitAHFromWC(vt verbs.Thread, port int, wc *verbs.WC, grh []byte) (_ verbs.AHAttr, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	a := verbs.AHAttr{DLID: wc.SLID, SL: wc.SL, SrcPathBits: wc.DLIDPathBits, Port: uint8(port)}
	if wc.Flags&verbs.WCGRH == 0 {
		return a, nil
	}
	if len(grh) < roce.GRHSize {
		return a, fmt.Errorf("init_ah_from_wc: %d B of routing header: %w", len(grh), syscall.EINVAL)
	}
	typ, own := verbs.GIDTypeRoCEv2, roce.GID{}
	a.IsGlobal = true
	if c.dev.kernel.LinkLayer() == verbs.LinkInfiniBand {
		return c.replyIB(t, port, a, grh)
	}
	v4, v6 := roce.IPv4(grh[roce.GRHSize-roce.IPv4Size:roce.GRHSize]), roce.GRH(grh[:roce.GRHSize])
	if v4.Version() == 4 && v4.HeaderLen() == roce.IPv4Size && v4.ChecksumOK() {
		own = roce.GIDFromIPv4(v4.Dst())
		a.GRH = verbs.GRH{DGID: verbs.GID(roce.GIDFromIPv4(v4.Src())), HopLimit: v4.TTL(), TrafficClass: v4.TOS()}
	} else if v6.Version() == 6 {
		if v6.NextHeader() == roce.ProtoIBA {
			typ = verbs.GIDTypeRoCEv1
		}
		own = v6.Dst()
		a.GRH = verbs.GRH{DGID: verbs.GID(v6.Src()), HopLimit: v6.HopLimit(), TrafficClass: v6.TrafficClass(), FlowLabel: v6.FlowLabel()}
	} else {
		return a, fmt.Errorf("init_ah_from_wc: the header is neither IPv4 nor IPv6: %w", syscall.EPROTONOSUPPORT)
	}
	i, err := c.gidIndex(t, port, verbs.GID(own), typ)
	a.GRH.SGIDIndex = uint8(i)
	return a, err
}

// replyIB is the InfiniBand half of ibv_init_ah_from_wc: the way back of a GRH.
func (c *Context) replyIB(t *Thread, port int, a verbs.AHAttr, grh []byte) (verbs.AHAttr, error) {
	h := roce.GRH(grh[:roce.GRHSize])
	a.GRH = verbs.GRH{DGID: verbs.GID(h.Src()), HopLimit: 0xff, TrafficClass: h.TrafficClass(), FlowLabel: h.FlowLabel()}
	i, err := c.gidIndex(t, port, verbs.GID(h.Dst()), verbs.GIDTypeIB)
	a.GRH.SGIDIndex = uint8(i)
	return a, err
}

// gidIndex is ibv_find_gid_index.
func (c *Context) gidIndex(t *Thread, port int, g verbs.GID, typ verbs.GIDType) (int, error) {
	pa, err := c.u.QueryPort(t.caller, port)
	if err != nil {
		return 0, err
	}
	for i := range pa.GIDTblLen {
		e, err := c.u.QueryGIDEntry(t.caller, port, i)
		if err == nil && e.GID == g && e.Type == typ {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%v is not in the table of port %d: %w", g, port, syscall.EINVAL)
}

// datagramSeg writes the address vector of a request (set_datagram_seg). The segment
// lies in the WQE's first basic block.
func (q *QP) datagramSeg(t *Thread, s *posting, w *verbs.SendWR) {
	h, ok := w.AH.(*AH)
	if !ok || h == nil {
		panic(Abort{fmt.Sprintf("segmentation fault: %q posts a datagram without an address handle", t.name)})
	}
	pos := (s.ctrl + s.ds*segSize) & q.sq.mask
	av := prm.AVSegment(q.ring.at(q.sq.off + pos)[:prm.AVSegmentSize])
	copy(av, h.av[:])
	av.SetQKey(w.RemoteQKey)
	av.SetDestQPN(w.RemoteQPN)
	s.ds += prm.AVSegmentSize / segSize
}
