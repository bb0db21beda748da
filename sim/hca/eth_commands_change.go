package hca

import (
	"bytes"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// rewritable is where a field of a header change lies (dr_ste_v0_action_modify_field_arr of
// rdma-core), by number, for packets of which version of IP and protocol; 0: of any.
var rewritable = map[uint32]struct {
	field          ether.Field
	first, bits    uint8
	version, proto uint8
}{
	0x01: {ether.FieldSMAC, 16, 32, 0, 0}, 0x02: {ether.FieldSMAC, 0, 16, 0, 0}, 0x03: {ether.FieldL2, 32, 16, 0, 0}, 0x04: {ether.FieldDMAC, 16, 32, 0, 0}, 0x05: {ether.FieldDMAC, 0, 16, 0, 0},
	0x06: {ether.FieldIP1, 0, 6, 0, 0}, 0x07: {ether.FieldPorts, 48, 9, 0, ether.ProtoTCP}, 0x08: {ether.FieldPorts, 0, 16, 0, ether.ProtoTCP}, 0x09: {ether.FieldPorts, 16, 16, 0, ether.ProtoTCP},
	0x0a: {ether.FieldIP1, 8, 8, 4, 0}, 0x0b: {ether.FieldPorts, 0, 16, 0, roce.ProtoUDP}, 0x0c: {ether.FieldPorts, 16, 16, 0, roce.ProtoUDP},
	0x0d: {ether.FieldIP3, 32, 32, 6, 0}, 0x0e: {ether.FieldIP3, 0, 32, 6, 0}, 0x0f: {ether.FieldIP4, 32, 32, 6, 0}, 0x10: {ether.FieldIP4, 0, 32, 6, 0},
	0x11: {ether.FieldIP0, 32, 32, 6, 0}, 0x12: {ether.FieldIP0, 0, 32, 6, 0}, 0x13: {ether.FieldIP2, 32, 32, 6, 0}, 0x14: {ether.FieldIP2, 0, 32, 6, 0},
	0x15: {ether.FieldIP0, 0, 32, 4, 0}, 0x16: {ether.FieldIP0, 32, 32, 4, 0}, 0x17: {ether.FieldL2, 0, 12, 0, 0}, 0x47: {ether.FieldIP1, 8, 8, 6, 0},
	0x59: {ether.FieldTCP, 32, 32, 0, ether.ProtoTCP}, 0x5b: {ether.FieldTCP, 0, 32, 0, ether.ProtoTCP},
}

// changeOf is a header change of a context. ok is false for one that this device does not know, or
// of bits that a field has not.
func changeOf(l prm.HeaderChanges, i int) (x headerChange, ok bool) {
	c, y := l.At(i), l.Copy(i)
	n, number, offset := uint8(c.Length()), c.Field(), uint8(c.Offset())
	if n == 0 {
		n = 32
	}
	switch c.Type() {
	case prm.HeaderSet:
		x.data = c.Data()
	case prm.HeaderAdd:
		x.op, x.data = changeAdd, c.Data()
	case prm.HeaderCopied:
		src, known := rewritable[number]
		if !known || offset+n > src.bits {
			return x, false
		}
		x.op, x.from, x.lift = changeCopy, headerField(src.field), src.first+offset
		number, offset = y.DstField(), uint8(y.DstOffset())
	default:
		return x, false
	}
	to, known := rewritable[number]
	if x.op == changeAdd {
		n, offset = to.bits, 0
	}
	x.field, x.shift, x.bits, x.onlyV, x.proto = headerField(to.field), to.first+offset, n, to.version, to.proto
	return x, known && offset+n <= to.bits
}

func cmdAllocModifyHeader(d *Device, in, out []byte) prm.Status {
	m, s := prm.AllocModifyHeaderIn(in), &d.nic.steering
	l, n := m.Actions(), int(m.Number())
	if !d.p.SWSteering || !d.hasTables(m.TableType()) || n == 0 || n > maxRewrite || n > l.Count() {
		return prm.StatusBadParam
	}
	x := &headerRewrite{kind: m.TableType()}
	for i := range n {
		c, ok := changeOf(l, i)
		if !ok {
			return prm.StatusBadParam
		}
		x.changes = append(x.changes, c)
	}
	id, ok := s.rewriteNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	s.rewrites = put(s.rewrites, id, x)
	prm.AllocModifyHeaderOut(out).SetID(id)
	return prm.StatusOK
}

func cmdDeallocModifyHeader(d *Device, in, _ []byte) prm.Status {
	n, s := prm.DeallocModifyHeaderIn(in).ID(), &d.nic.steering
	x := numbered(s.rewrites, n)
	if x == nil {
		return prm.StatusBadResState
	}
	return destroyed(s.rewrites, n, x.users, &s.rewriteNums)
}

// cmdAllocPacketReformat takes the headers of a tunnel. Others than those of layer 2 are not
// modelled and refused.
func cmdAllocPacketReformat(d *Device, in, out []byte) prm.Status {
	m, s := prm.AllocPacketReformatIn(in), &d.nic.steering
	n, b := int(m.DataSize()), m.Data()
	if !d.p.SWSteering || m.Type() != prm.ReformatL2ToL2Tunnel || n < roce.EthernetSize || n > maxTunnelHeaders || n > len(b) {
		return prm.StatusBadParam
	}
	id, ok := s.tunnelNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	s.tunnels = put(s.tunnels, id, &packetReformat{headers: bytes.Clone(b[:n])})
	prm.AllocPacketReformatOut(out).SetID(id)
	return prm.StatusOK
}

func cmdDeallocPacketReformat(d *Device, in, _ []byte) prm.Status {
	n, s := prm.DeallocPacketReformatIn(in).ID(), &d.nic.steering
	x := numbered(s.tunnels, n)
	if x == nil {
		return prm.StatusBadResState
	}
	return destroyed(s.tunnels, n, x.users, &s.tunnelNums)
}

// cmdSyncSteering waits until no packet is where entries were before. Here none stays at one.
func cmdSyncSteering(d *Device, _, _ []byte) prm.Status {
	if !d.p.SWSteering {
		return prm.StatusBadOp
	}
	return prm.StatusOK
}

// createSteeringObject is CREATE_GENERAL_OBJECT of what flow steering by programs has.
func (d *Device) createSteeringObject(m prm.CreateGeneralObjectIn, out []byte) prm.Status {
	o := prm.CreateGeneralObjectOut(out)
	if m.ObjType() == prm.ObjTypeSWICM {
		if len(m.Object()) < prm.SWICMSize {
			return prm.StatusBadInpLen
		}
		x := prm.SWICM(m.Object()[:prm.SWICMSize])
		id, st := d.memory.icm.alloc(x.StartAddr(), x.LogSize())
		o.SetObjID(id)
		return st
	}
	if len(m.Object()) < prm.FlowSamplerSize {
		return prm.StatusBadInpLen
	}
	return d.createSampler(prm.FlowSampler(m.Object()[:prm.FlowSamplerSize]), o)
}

func (d *Device) createSampler(x prm.FlowSampler, o prm.CreateGeneralObjectOut) prm.Status {
	s := &d.nic.steering
	sample, all := s.table(x.SampleTableID()), s.table(x.DefaultTableID())
	switch {
	case x.SampleRatio() == 0 || x.TableType() != prm.FlowTableNICReceive:
		return prm.StatusBadParam
	case sample == nil || all == nil:
		return prm.StatusBadResState
	case sample.kind != x.TableType() || all.kind != x.TableType(),
		!x.IgnoreFlowLevel() && (sample.level <= x.Level() || all.level <= x.Level()):
		return prm.StatusBadParam
	}
	id, ok := s.samplerNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	y := &flowSampler{ratio: x.SampleRatio(), sample: sample, all: all}
	copy(y.ctx[:], x)
	prm.FlowSampler(y.ctx[:]).SetICMAddressRx(icmSamplers + uint64(id)*prm.STESize)
	sample.users++
	all.users++
	s.samplers = put(s.samplers, id, y)
	o.SetObjID(id)
	return prm.StatusOK
}

// destroySteeringObject is DESTROY_GENERAL_OBJECT of them.
func (d *Device) destroySteeringObject(typ, id uint32) prm.Status {
	if typ == prm.ObjTypeSWICM {
		if d.memory.icm.free(id) {
			return prm.StatusOK
		}
		return prm.StatusBadResState
	}
	s := &d.nic.steering
	x := s.sampler(id)
	if x == nil {
		return prm.StatusBadResState
	}
	x.sample.users--
	x.all.users--
	return destroyed(s.samplers, id, 0, &s.samplerNums)
}

// cmdQueryGeneralObject says of a sampler what was given, and where entries find it. Other objects
// have nothing to ask for.
func cmdQueryGeneralObject(d *Device, in, out []byte) prm.Status {
	m := prm.QueryGeneralObjectIn(in)
	if m.ObjType() != prm.ObjTypeFlowSampler {
		return prm.StatusBadParam
	}
	x, o := d.nic.steering.sampler(m.ObjID()), prm.QueryGeneralObjectOut(out)
	switch {
	case x == nil:
		return prm.StatusBadResState
	case len(o.Object()) < len(x.ctx):
		return prm.StatusBadOutpLen
	}
	o.SetObjID(m.ObjID())
	copy(o.Object(), x.ctx[:])
	return prm.StatusOK
}
