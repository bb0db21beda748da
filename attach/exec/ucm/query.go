//go:build linux

package ucm

import (
	"errors"
	"syscall"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim/kernel/cm"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// Options of QUERY.
const (
	queryAddr = iota
	queryPath
	queryGID
)

// Offsets up to which an answer has to have room, from before it grew.
const (
	queryAddrLeast  = uapi.CMQueryAddrRespSize - 8
	queryRouteLeast = uapi.CMQueryRouteRespSize - 8
	eventLeast      = uapi.CMEventSize - 12
)

// pathFlags are those of a path that serves both ways: IB_PATH_GMP, PRIMARY, BIDIRECTIONAL.
const pathFlags = 0x2b

func (k *command) query() error {
	b, err := k.read(uapi.CMQuerySize)
	if err != nil {
		return err
	}
	in := uapi.CMQuery(b)
	switch in.Option() {
	case queryAddr:
		return k.queryAddr(in)
	case queryPath:
		return k.queryPath(in)
	case queryGID:
		return k.queryGID(in)
	}
	return k.errorf(syscall.ENOSYS, "option %d", in.Option())
}

// device fills in what an answer says of the device: nothing where there is none.
func (f *File) device(out uapi.CMQueryAddrResp, a *cm.Addr) {
	if a.Device == nil {
		return
	}
	out.SetNodeGUID(a.NodeGUID)
	out.SetPort(a.Port)
	out.SetPKey(a.PKey)
	out.SetDevice(uint32(f.index(a.Device)))
}

func (k *command) queryAddr(in uapi.CMQuery) error {
	if err := k.room(queryAddrLeast); err != nil {
		return err
	}
	a, err := k.f.cm.QueryAddr(noCaller, in.ID())
	if err != nil {
		return err
	}
	out := uapi.CMQueryAddrResp(make([]byte, uapi.CMQueryAddrRespSize))
	k.f.device(out, &a)
	out.SetSrcSize(uint16(PutAddress(out.Src(), a.Src)))
	out.SetDstSize(uint16(PutAddress(out.Dst(), a.Dst)))
	return k.answer(in.Response(), out)
}

func (k *command) queryGID(in uapi.CMQuery) error {
	if err := k.room(queryAddrLeast); err != nil {
		return err
	}
	g, err := k.f.cm.QueryGID(noCaller, in.ID())
	if err != nil {
		return err
	}
	out := uapi.CMQueryAddrResp(make([]byte, uapi.CMQueryAddrRespSize))
	k.f.device(out, &g.Addr)
	out.SetSrcSize(uapi.SockaddrIBSize)
	out.SetDstSize(uapi.SockaddrIBSize)
	putGID(out.Src(), g.SGID, g.PKey, g.SrcSID)
	putGID(out.Dst(), g.DGID, g.PKey, g.DstSID)
	return k.answer(in.Response(), out)
}

func (k *command) queryPath(in uapi.CMQuery) error {
	if err := k.room(uapi.CMQueryPathRespSize); err != nil {
		return err
	}
	paths, err := k.f.cm.QueryPath(noCaller, in.ID())
	if err != nil {
		return err
	}
	out := make([]byte, uapi.CMQueryPathRespSize)
	uapi.CMQueryPathResp(out).SetPaths(uint32(len(paths)))
	for i := range paths {
		if len(out)+uapi.CMPathSize > k.out {
			break
		}
		p := uapi.CMPath(make([]byte, uapi.CMPathSize))
		p.SetFlags(pathFlags)
		packPath(p.Record(), &paths[i])
		out = append(out, p...)
	}
	return k.answer(in.Response(), out)
}

// packPath is a path as the subnet administrator has it.
func packPath(b []byte, p *verbs.PathRecord) {
	r := mad.PathRecord(b)
	r.SetDGID(roce.GID(p.DGID))
	r.SetSGID(roce.GID(p.SGID))
	r.SetDLID(p.DLID)
	r.SetSLID(p.SLID)
	r.SetFlowLabel(p.FlowLabel)
	r.SetHopLimit(p.HopLimit)
	r.SetTrafficClass(p.TrafficClass)
	r.SetReversible(p.Reversible)
	r.SetNumber(p.NumPath)
	r.SetPKey(p.PKey)
	r.SetSL(p.SL)
	r.SetMTU(mad.Exactly, uint8(p.MTU))
	r.SetRate(mad.Exactly, p.Rate)
	r.SetLifetime(mad.Exactly, p.Lifetime)
}

func (k *command) queryRoute() error {
	if err := k.room(queryRouteLeast); err != nil {
		return err
	}
	b, err := k.read(uapi.CMQuerySize)
	if err != nil {
		return err
	}
	in := uapi.CMQuery(b)
	g, err := k.f.cm.QueryGID(noCaller, in.ID())
	if err != nil {
		return err
	}
	out := uapi.CMQueryRouteResp(make([]byte, uapi.CMQueryRouteRespSize))
	PutAddress(out.Src(), g.Src)
	PutAddress(out.Dst(), g.Dst)
	if g.Device != nil {
		out.SetNodeGUID(g.NodeGUID)
		out.SetPort(g.Port)
		out.SetDevice(uint32(k.f.index(g.Device)))
		if err := k.route(out, in.ID(), &g); err != nil {
			return err
		}
	}
	return k.answer(in.Response(), out)
}

// route fills in the paths. Where there is none yet the first still names the ends.
func (k *command) route(out uapi.CMQueryRouteResp, id uint32, g *cm.GIDs) error {
	paths, err := k.f.cm.QueryPath(noCaller, id)
	if err != nil && !errors.Is(err, syscall.ENODEV) {
		return err
	}
	out.SetNumPaths(uint32(len(paths)))
	if len(paths) == 0 {
		p := uapi.CMUserPath(out.Paths())
		copy(p.DGID(), g.DGID[:])
		copy(p.SGID(), g.SGID[:])
		p.SetPKey(g.PKey)
	}
	for i := range paths {
		if at := i * uapi.CMUserPathSize; at+uapi.CMUserPathSize <= len(out.Paths()) {
			userPath(out.Paths()[at:at+uapi.CMUserPathSize], &paths[i])
		}
	}
	return nil
}

// userPath is ib_copy_path_rec_to_user.
func userPath(b []byte, r *verbs.PathRecord) {
	p := uapi.CMUserPath(b)
	copy(p.DGID(), r.DGID[:])
	copy(p.SGID(), r.SGID[:])
	p.SetDLID(r.DLID)
	p.SetSLID(r.SLID)
	p.SetFlowLabel(r.FlowLabel)
	if r.Reversible {
		p.SetReversible(1)
	}
	p.SetMTU(uint32(r.MTU))
	p.SetPKey(r.PKey)
	p.SetHopLimit(r.HopLimit)
	p.SetTrafficClass(r.TrafficClass)
	p.SetNumbPath(r.NumPath)
	p.SetSL(r.SL)
	p.SetMTUSelector(uint8(mad.Exactly))
	p.SetRateSelector(uint8(mad.Exactly))
	p.SetRate(r.Rate)
	p.SetLifetimeSelector(uint8(mad.Exactly))
	p.SetLifetime(r.Lifetime)
}

func (k *command) initQPAttr() error {
	if err := k.room(uapi.CMQPAttrSize); err != nil {
		return err
	}
	b, err := k.read(uapi.CMInitQPAttrSize)
	if err != nil {
		return err
	}
	in := uapi.CMInitQPAttr(b)
	if in.QPState() > uint32(verbs.QPSErr) {
		return k.errorf(syscall.EINVAL, "state %d", in.QPState())
	}
	a, mask, err := k.f.cm.InitQPAttr(noCaller, in.ID(), verbs.QPState(in.QPState()))
	if err != nil {
		return err
	}
	out := uapi.CMQPAttr(make([]byte, uapi.CMQPAttrSize))
	putQPAttr(out, &a, mask)
	return k.answer(in.Response(), out)
}

// putQPAttr is ib_copy_qp_attr_to_user.
func putQPAttr(out uapi.CMQPAttr, a *verbs.QPAttr, mask verbs.QPAttrMask) {
	out.SetMask(uint32(mask))
	out.SetQPState(uint32(a.State))
	out.SetCurQPState(uint32(a.CurState))
	out.SetPathMTU(uint32(a.PathMTU))
	out.SetPathMigState(uint32(a.PathMigState))
	out.SetQKey(a.QKey)
	out.SetRQPSN(a.RQPSN)
	out.SetSQPSN(a.SQPSN)
	out.SetDestQPN(a.DestQPN)
	out.SetAccessFlags(uint32(a.Access))
	putAH(out.AH(), &a.AH)
	putAH(out.AltAH(), &a.AltAH)
	out.SetMaxSendWR(a.Cap.MaxSendWR)
	out.SetMaxRecvWR(a.Cap.MaxRecvWR)
	out.SetMaxSendSGE(a.Cap.MaxSendSGE)
	out.SetMaxRecvSGE(a.Cap.MaxRecvSGE)
	out.SetMaxInlineData(a.Cap.MaxInline)
	out.SetPKeyIndex(a.PKeyIndex)
	out.SetAltPKeyIndex(a.AltPKeyIndex)
	out.SetSQDAsyncNotify(flag(a.EnSQDAsyncNotify))
	out.SetSQDraining(flag(a.SQDraining))
	out.SetMaxRDAtomic(a.MaxRdAtomic)
	out.SetMaxDestRDAtomic(a.MaxDestRdAtomic)
	out.SetMinRNRTimer(a.MinRNRTimer)
	out.SetPort(a.Port)
	out.SetTimeout(a.Timeout)
	out.SetRetryCnt(a.RetryCnt)
	out.SetRNRRetry(a.RNRRetry)
	out.SetAltPort(a.AltPort)
	out.SetAltTimeout(a.AltTimeout)
}

func flag(v bool) uint8 {
	if v {
		return 1
	}
	return 0
}

// putAH is ib_copy_ah_attr_to_user. The Ethernet address is not in it: who uses it finds that by
// the GIDs.
func putAH(b []byte, a *verbs.AHAttr) {
	h := uapi.AHAttr(b)
	copy(h.DGID(), a.GRH.DGID[:])
	h.SetFlowLabel(a.GRH.FlowLabel)
	h.SetSGIDIndex(a.GRH.SGIDIndex)
	h.SetHopLimit(a.GRH.HopLimit)
	h.SetTrafficClass(a.GRH.TrafficClass)
	h.SetDLID(a.DLID)
	h.SetSL(a.SL)
	h.SetSrcPathBits(a.SrcPathBits)
	h.SetStaticRate(a.StaticRate)
	h.SetIsGlobal(flag(a.IsGlobal))
	h.SetPort(a.Port)
}
