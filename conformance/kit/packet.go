package kit

import (
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/verbs"
)

// TypeExperimental is the EtherType for experiments (IEEE 802, 9.2.4), which no program of a
// machine waits for.
const TypeExperimental = 0x88b5

// LeastPacket is the length of the shortest packet that is not padded.
const LeastPacket = ether.MinFrame

// RawOptions returns the options of a raw packet QP with room for 32 requests of 4 SGEs on either
// queue.
func RawOptions() Options {
	o := DefaultFor(verbs.QPTRawPacket)
	o.Cap = verbs.QPCap{MaxSendWR: 32, MaxRecvWR: 32, MaxSendSGE: 4, MaxRecvSGE: 4}
	return o
}

// NewRaw creates a raw packet QP with RawOptions and takes it to RTS.
func (e *Env) NewRaw(c *spec.C) *QP {
	q := e.CreateQP(c, RawOptions())
	q.BringUp(c, Peer{}, verbs.QPSRTS)
	return q
}

// PortMAC returns the Ethernet address of the port, from the GID that the kernel makes of it (RFC
// 4291, appendix A).
func (e *Env) PortMAC(c *spec.C) (mac [6]byte) {
	var tab [256]verbs.GIDEntry
	n, err := e.Ctx.QueryGIDTable(c.T, tab[:], 0)
	ok(c, "query_gid_table", err)
	for _, g := range tab[:n] {
		if x := g.GID; g.Port == uint32(e.Port) && x[0] == 0xfe && x[1] == 0x80 && x[11] == 0xff && x[12] == 0xfe {
			copy(mac[:3], x[8:11])
			copy(mac[3:], x[13:])
			mac[0] ^= 2
			return mac
		}
	}
	c.Errorf("port %d has no GID that is made of its Ethernet address (fe80::...ff:fe...)", e.Port)
	return mac
}

// NewFlow creates a rule that leads to the QP, which is destroyed when the case ends.
func (q *QP) NewFlow(c *spec.C, a verbs.FlowAttr) (destroy func(c *spec.C)) {
	if a.Port == 0 {
		a.Port = q.Env.Port
	}
	f, err := q.CreateFlow(c.T, a)
	ok(c, "create_flow", err)
	return DestroyOnce(c, "destroy_flow", f.Destroy)
}

// FlowOf returns a normal rule of the given specs.
func FlowOf(specs ...verbs.FlowSpec) verbs.FlowAttr { return verbs.FlowAttr{Specs: specs} }

// EthFlow returns a spec of packets of an EtherType.
func EthFlow(etherType uint16) verbs.FlowSpec {
	return verbs.FlowSpec{Type: verbs.FlowSpecEth, Val: verbs.FlowFilter{EtherType: etherType}, Mask: verbs.FlowFilter{EtherType: 0xffff}}
}
