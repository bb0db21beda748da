package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// Datagram is a management datagram that arrived at QP0 or QP1. Its bytes are valid until the call
// returns.
type Datagram struct {
	Data   []byte // gsiPayload bytes
	GRH    []byte // the routing header as a receive has it: 40 bytes; of IPv4 in the last 20. nil on InfiniBand: there was none
	SLID   uint16
	Bits   uint8 // of the path, in the destination's LID
	SL     uint8
	SrcQPN uint32
}

// GSI is QP1 of a device's port (the general services interface) or QP0 (subnet management), as
// ib_mad makes them: a QP of that type with its own CQ, and receives that are posted again once
// they are consumed.
type GSI struct {
	d           *Device
	number      uint32
	receive     []func(*Datagram)
	driverQueue           // the ring has the receives first
	ports       *sim.Rand // of datagrams without a flow label
	buffers     mem.PA    // of receives, then of sends
	rq, sq      uint16    // receives and basic blocks of sends posted
	out         int       // sends under way
	pending     []gsiOut  // sends that did not fit

	buf [gsiBuffer]byte
	C   GSICounters
}

// GSICounters count datagrams.
type GSICounters struct {
	Sent, Received uint64
	Failed         uint64 // that completed in error
}

// gsiOut is a datagram on its way to the ring.
type gsiOut struct {
	av   [prm.AVSegmentSize]byte
	data [gsiPayload]byte
}

// Sizes. The numbers of receives and of sends are a half and a quarter of those of ib_mad
// (IB_MAD_QP_RECV_SIZE 512, IB_MAD_QP_SEND_SIZE
// 128), which no testbed of this size needs.
const (
	gsiQKey       = 0x8001_0000
	gsiPayload    = 256
	gsiGRH        = 40
	gsiBuffer     = 512
	logGSIRecvs   = 8
	logGSISends   = 5
	gsiSendBlocks = 2
	logGSICQ      = 9
	gsiRing       = prm.DataSegmentSize<<logGSIRecvs + gsiSendBlocks*prm.WQEBBSize<<logGSISends
	gsiBuffers    = gsiBuffer<<logGSIRecvs + gsiPayload<<logGSISends
)

// OpenGSI creates QP1 of the device's port, if it does not exist yet, and passes arriving datagrams
// to receive, in the engine's thread; earlier receivers get them too. ENODEV: the device was
// removed.
func (d *Device) OpenGSI(receive func(*Datagram)) (*GSI, error) {
	return d.openSpecial(gsiNumber, receive)
}

// OpenSMI does for QP0 what OpenGSI does for QP1. EOPNOTSUPP: the port is not InfiniBand.
func (d *Device) OpenSMI(receive func(*Datagram)) (*GSI, error) {
	if !d.caps.ib {
		return nil, fmt.Errorf("%s: QP0 of a port of Ethernet: %w", d.name, syscall.EOPNOTSUPP)
	}
	return d.openSpecial(0, receive)
}

func (d *Device) openSpecial(number uint32, receive func(*Datagram)) (*GSI, error) {
	if d.removed {
		return nil, fmt.Errorf("%s: QP%d of a device that was removed: %w", d.name, number, syscall.ENODEV)
	}
	if g := d.special[number]; g != nil {
		g.receive = append(g.receive, receive)
		return g, nil
	}
	g := &GSI{d: d, number: number, receive: []func(*Datagram){receive}, driverQueue: driverQueue{logCQ: logGSICQ}, ports: d.eng.Rand("kernel/gsi/" + d.name)}
	k := &call{d: d}
	for _, step := range []func(*call) error{g.allocate, g.makeKey, g.makeCQ, g.makeQP, g.start} {
		if err := step(k); err != nil {
			return nil, fmt.Errorf("%s: QP%d: %w", d.name, number, err)
		}
	}
	d.special[number] = g
	d.cqs[g.cqn] = (*gsiTarget)(g)
	for range 1 << logGSIRecvs {
		g.postReceive()
	}
	g.writeRecord()
	g.arm(d)
	return g, nil
}

func (g *GSI) allocate(k *call) error {
	return g.driverQueue.allocate(k, append(g.memory(gsiRing), driverMemory{&g.buffers, gsiBuffers}))
}

func (g *GSI) makeQP(k *call) error {
	return g.driverQueue.makeQP(k, g.service(), gsiRing, func(c prm.QPC) {
		c.SetPD(k.d.pdn)
		c.SetLogRQSize(logGSIRecvs)
		c.SetLogRQStride(0)
		c.SetLogSQSize(logGSISends + 1) // of two basic blocks each
	})
}

func (g *GSI) start(k *call) error { return g.driverQueue.start(k, g.service(), g.qkey()) }

func (g *GSI) service() uint32 {
	if g.number == 0 {
		return prm.STQP0
	}
	return prm.STQP1
}

func (g *GSI) qkey() uint32 {
	if g.number == 0 {
		return 0
	}
	return gsiQKey
}

// postReceive makes the next receive; the record comes later.
func (g *GSI) postReceive() {
	i := mem.PA(g.rq & (1<<logGSIRecvs - 1))
	var seg [prm.DataSegmentSize]byte
	prm.DataSegment(seg[:]).Set(gsiBuffer, g.lkey, uint64(g.buffers+i*gsiBuffer))
	g.d.mem.Write(g.ring+i*prm.DataSegmentSize, seg[:])
	g.rq++
}

func (g *GSI) writeRecord() {
	var rec [prm.DBRecSize]byte
	r := prm.QPDBRec(rec[:])
	r.SetRecv(g.rq)
	r.SetSend(g.sq)
	g.d.mem.Write(g.record, rec[:])
}

// Send sends a datagram of 256 bytes to the QP of the same number at an address; it copies the
// bytes. Errors are those of an address handle: EINVAL, ENODATA, ETIMEDOUT. Nothing reports whether
// the datagram arrives.
func (g *GSI) Send(a *verbs.AHAttr, data []byte) error {
	d := g.d
	if d.removed {
		return errRemoved
	}
	var o gsiOut
	if err := g.address(prm.AVSegment(o.av[:]), a); err != nil {
		return fmt.Errorf("datagram to QP%d: %w", g.number, err)
	}
	copy(o.data[:], data)
	if g.out == 1<<logGSISends {
		g.pending = append(g.pending, o)
		return nil
	}
	g.post(&o)
	return nil
}

// address fills an address vector (mlx5_ib_create_ah).
func (g *GSI) address(av prm.AVSegment, a *verbs.AHAttr) error {
	d := g.d
	src, err := d.checkAH(a)
	if err != nil {
		return err
	}
	av.SetExtended(true)
	av.SetQKey(g.qkey())
	av.SetDestQPN(g.number)
	if a.IsGlobal {
		av.SetTClass(a.GRH.TrafficClass)
		av.SetHopLimit(a.GRH.HopLimit)
		av.SetSGIDIndex(uint32(a.GRH.SGIDIndex))
		av.SetFlowLabel(a.GRH.FlowLabel & 0xfffff)
		copy(av.RGID(), a.GRH.DGID[:])
	}
	if d.caps.ib {
		av.SetFLMLID(a.SrcPathBits & 0x7f)
		av.SetRLID(a.DLID)
		av.SetStatRateSL(a.SL & 0xf)
		av.SetGRHPresent(a.IsGlobal)
		return nil
	}
	mac, hops, err := (&call{d: d}).resolve(src, a.GRH.DGID)
	if err != nil {
		return err
	}
	if hops != 0 {
		av.SetHopLimit(hops)
	}
	if src.typ == verbs.GIDTypeRoCEv2 {
		av.SetRLID(g.sourcePort(a.GRH.FlowLabel))
	}
	av.SetStatRateSL(a.SL & 7 << 1)
	copy(av.RMAC(), mac[:])
	return nil
}

// gsiNumber is the number of QP1.
const gsiNumber = 1

// sourcePort is mlx5_ah_get_udp_sport.
func (g *GSI) sourcePort(label uint32) uint16 {
	if label &= 0xfffff; label != 0 {
		return udpSport(label, 0, 0)
	}
	const first, n = 0xc000, 0x4000
	return uint16(first + g.ports.Intn(n))
}

// post puts a datagram into the ring and rings.
func (g *GSI) post(o *gsiOut) {
	d := g.d
	slot := int(g.sq/gsiSendBlocks) & (1<<logGSISends - 1)
	data := g.buffers + gsiBuffer<<logGSIRecvs + mem.PA(slot*gsiPayload)
	d.mem.Write(data, o.data[:])
	const n = prm.CtrlSegmentSize + prm.AVSegmentSize + prm.DataSegmentSize
	var b [gsiSendBlocks * prm.WQEBBSize]byte
	prm.CtrlSegment(b[:]).Set(prm.WQEOpSend, 0, g.sq, g.qpn, n/prm.DSSize, prm.CtrlCQUpdate, 0)
	copy(b[prm.CtrlSegmentSize:], o.av[:])
	prm.DataSegment(b[n-prm.DataSegmentSize:n]).Set(gsiPayload, g.lkey, uint64(data))
	d.mem.Write(g.ring+prm.DataSegmentSize<<logGSIRecvs+mem.PA(slot*gsiSendBlocks*prm.WQEBBSize), b[:])
	g.sq += gsiSendBlocks
	g.out++
	g.C.Sent++
	g.writeRecord()
	d.link.PostNow(uint64(d.uar)*prm.UARPageSize+prm.UARBFOffset, b[:prm.DoorbellSize])
}

// gsiTarget takes the completions of QP1.
type gsiTarget GSI

func (t *gsiTarget) event(e prm.EQE) bool {
	g := (*GSI)(t)
	if e.Type() != prm.EventComp {
		return false
	}
	d := g.d
	for !d.removed {
		c, ok := g.next(d)
		if !ok {
			break
		}
		g.completed(c)
	}
	for len(g.pending) > 0 && g.out < 1<<logGSISends {
		g.post(&g.pending[0])
		g.pending = g.pending[1:]
	}
	if !d.removed {
		g.arm(d)
	}
	return true
}

// completed takes one completion.
func (g *GSI) completed(c prm.CQE64) {
	op := c.Opcode()
	if !op.Responder() {
		g.out--
		if op != prm.CQEReq {
			g.C.Failed++
		}
		return
	}
	at := g.buffers + mem.PA(c.WQECounter()&(1<<logGSIRecvs-1))*gsiBuffer
	ok := op == prm.CQERespSend && c.ByteCnt() == gsiGRH+gsiPayload
	if ok {
		g.d.mem.Read(at, g.buf[:])
	}
	g.postReceive()
	g.writeRecord()
	if !ok {
		g.C.Failed++
		return
	}
	g.C.Received++
	m := Datagram{Data: g.buf[gsiGRH : gsiGRH+gsiPayload], SLID: c.SLID(), SL: uint8(c.SL()), Bits: c.MLPath(), SrcQPN: c.RQPN()}
	if !g.d.caps.ib || c.GRH() != 0 {
		m.GRH = g.buf[:gsiGRH]
	}
	for _, receive := range g.receive {
		receive(&m)
	}
}

// ProcessMAD passes a datagram of 256 bytes to the agents of the device's port and returns their
// answer (MAD_IFC). EINVAL: they do not answer it.
func (d *Device) ProcessMAD(data []byte) (answer []byte, err error) {
	in, out := prm.NewIn(prm.OpMADIFC, 0), prm.NewOut(prm.OpMADIFC, 0)
	prm.MADIFCIn(in).SetPort(1)
	copy(prm.MADIFCIn(in).MAD(), data)
	err = (&call{d: d}).exec(in, out)
	return prm.MADIFCOut(out).MAD(), err
}

// SetNodeDescription sets node_desc, as writing the sysfs file does (mlx5_ib_modify_device).
func (d *Device) SetNodeDescription(text string) error {
	in, out := prm.NewIn(prm.OpAccessReg, prm.NodeDescSize), prm.NewOut(prm.OpAccessReg, prm.NodeDescSize)
	prm.CmdIn(in).SetOpMod(prm.AccessRegWrite)
	m := prm.AccessRegIn(in)
	m.SetRegisterID(prm.RegNodeDesc)
	copy(m.Data(), text)
	return (&call{d: d}).exec(in, out)
}
