//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// createRSSQP is QP_CREATE of a QP that receives by a table of WQs. Its number is 0, and it rings
// nothing.
func (f *File) createRSSQP(c Caller, k *uapi.Call) error {
	if typ := k.Value(uapi.QPCreateType); typ != uint64(verbs.QPTRawPacket) {
		return fmt.Errorf("QP_CREATE of type %d with an indirection table: %w", typ, syscall.EOPNOTSUPP)
	}
	if k.Has(uapi.QPCreateSRQ) || k.Has(uapi.QPCreateSendCQ) || k.Has(uapi.QPCreateRecvCQ) {
		return fmt.Errorf("QP_CREATE with an indirection table and queues of its own: %w", syscall.EINVAL)
	}
	if flags, err := k.Flags32(uapi.QPCreateFlags, 0); err != nil || flags != 0 {
		return errors.Join(err, syscall.EINVAL)
	}
	b, err := k.InExact(uapi.AttrUHWIn, 0, uapi.MLX5CreateQPRSSSize)
	if err != nil {
		return err
	}
	d := uapi.MLX5CreateQPRSS(b)
	if d.CompMask() != 0 || d.Flags() != 0 {
		return fmt.Errorf("QP_CREATE with an indirection table: comp_mask %#x, flags %#x: %w", d.CompMask(), d.Flags(), syscall.EOPNOTSUPP)
	}
	pd, _ := k.Handle(uapi.QPCreatePD)
	table, _ := k.Handle(uapi.QPCreateIndTable)
	r := kernel.RSSReq{PD: kernelHandle(pd), Table: kernelHandle(table), Toeplitz: d.Function() == uapi.RSSToeplitz, Fields: d.Fields()}
	r.Key = d.Key()[:min(int(d.KeyLen()), len(d.Key()))]
	async, err := f.asyncOf(c, k, uapi.QPCreateEventFD)
	if err != nil {
		return err
	}
	q := &qp{target: true}
	q.UserHandle = k.Value(uapi.QPCreateUserHandle)
	q.cookie = f.own(&owner{q.UserHandle, async})
	r.Cookie = q.cookie
	h, tirn, err := f.u.CreateRSSQP(noCaller, r)
	if err != nil {
		delete(f.owners, q.cookie)
		return err
	}
	q.h = h
	resp := kernel.QPResp{Packets: kernel.PacketNumbers{TIRN: tirn}}
	if err := f.answerQP(k, q, &resp); err != nil {
		delete(f.owners, q.cookie)
		return undo(err, func() error { _, err := f.u.DestroyQP(noCaller, h); return err })
	}
	f.qps[uint32(h)] = q
	return nil
}

// createWQ is WQ_CREATE.
func (f *File) createWQ(k *uapi.Call) error {
	if t := k.Value(uapi.WQCreateType); t != uapi.WQTypeRQ {
		return fmt.Errorf("WQ_CREATE of type %d: %w", t, syscall.EINVAL)
	}
	b, err := k.InExact(uapi.AttrUHWIn, 0, uapi.MLX5CreateWQSize)
	if err != nil {
		return err
	}
	d := uapi.MLX5CreateWQ(b)
	if d.CompMask() != 0 || d.Flags() != 0 {
		return fmt.Errorf("WQ_CREATE: comp_mask %#x (receives of several strides), flags %#x: %w", d.CompMask(), d.Flags(), syscall.EOPNOTSUPP)
	}
	pd, _ := k.Handle(uapi.WQCreatePD)
	cq, _ := k.Handle(uapi.WQCreateCQ)
	flags, err := k.Flags32(uapi.WQCreateFlags, ^uint32(0))
	if err != nil {
		return err
	}
	r := kernel.WQReq{
		PD: kernelHandle(pd), CQ: kernelHandle(cq), MaxWR: uint32(k.Value(uapi.WQCreateMaxWR)), MaxSGE: uint32(k.Value(uapi.WQCreateMaxSGE)),
		Count: d.RQWQECount(), Shift: d.RQWQEShift(), BufAddr: d.BufAddr(), DBAddr: d.DBAddr(), UIDX: d.UserIndex(), Flags: flags,
	}
	h, wqn, err := f.u.CreateWQ(noCaller, r)
	if err != nil {
		return err
	}
	var drv [8]byte // response_length and nothing else
	drv[0] = byte(len(drv))
	err = errors.Join(k.Out32(uapi.WQCreateRspMaxWR, r.MaxWR), k.Out32(uapi.WQCreateRspMaxSGE, r.MaxSGE), k.Out32(uapi.WQCreateRspNum, wqn),
		k.Out(uapi.AttrUHWOut, drv[:min(len(drv), k.Len(uapi.AttrUHWOut))]), k.SetNew(uapi.WQCreateHandle, uint64(h)))
	return undo(err, func() error { return f.u.DestroyWQ(noCaller, h) })
}

// destroyWQ is WQ_DESTROY; a WQ has no events.
func (f *File) destroyWQ(k *uapi.Call) error {
	h, _ := k.Handle(uapi.WQDestroyHandle)
	if err := f.u.DestroyWQ(noCaller, kernelHandle(h)); err != nil {
		return err
	}
	return k.Out32(uapi.WQDestroyRsp, 0)
}

// modifyWQ is EX_MODIFY_WQ.
func (f *File) modifyWQ(w *uapi.Write) error {
	b, err := w.Request(uapi.ExModifyWQSize)
	if err != nil {
		return err
	}
	r := uapi.ExModifyWQ(b)
	const known = uapi.ModifyWQState | uapi.ModifyWQCurState | uapi.ModifyWQFlags
	mask := r.AttrMask()
	switch {
	case mask == 0 || mask&^known != 0:
		return fmt.Errorf("%s: attribute mask %#x: %w", w.Name, mask, syscall.EINVAL)
	case mask&uapi.ModifyWQFlags != 0 && r.FlagsMask() != 0:
		return fmt.Errorf("%s: flags %#x: %w: %w", w.Name, r.FlagsMask(), errNotModelled, syscall.EOPNOTSUPP)
	case mask&uapi.ModifyWQState == 0:
		return nil
	}
	var current *kernel.WQState
	if s := kernel.WQState(r.CurState()); mask&uapi.ModifyWQCurState != 0 {
		current = &s
	}
	return f.u.ModifyWQ(noCaller, kernelHandle(r.WQHandle()), kernel.WQState(r.State()), current)
}

// createWQTable is EX_CREATE_RWQ_IND_TBL.
func (f *File) createWQTable(w *uapi.Write) error {
	const mostLog = 13 // IB_USER_VERBS_MAX_LOG_IND_TBL_SIZE
	b, err := w.Request(w.Len())
	if err != nil {
		return err
	}
	r := uapi.ExCreateRWQIndTbl(b)
	if r.CompMask() != 0 || r.LogSize() > mostLog || len(b) < uapi.ExCreateRWQIndTblSize+4<<r.LogSize() {
		return fmt.Errorf("%s of 2^%d WQs in %d bytes, comp_mask %#x: %w", w.Name, r.LogSize(), len(b), r.CompMask(), syscall.EINVAL)
	}
	wqs := make([]kernel.Handle, 1<<r.LogSize())
	for i, h := range uapi.Handles(b[uapi.ExCreateRWQIndTblSize:], len(wqs)) {
		wqs[i] = kernelHandle(h)
	}
	h, num, err := f.u.CreateWQTable(noCaller, wqs)
	if err != nil {
		return err
	}
	a := uapi.ExCreateRWQIndTblResp(make([]byte, uapi.ExCreateRWQIndTblRespSize))
	a.SetResponseLength(uint32(w.Room(len(a))))
	a.SetHandle(uint32(h))
	a.SetNumber(num)
	return undo(w.Respond(a), func() error { return f.u.DestroyWQTable(noCaller, h) })
}

// createFlow is EX_CREATE_FLOW.
func (f *File) createFlow(w *uapi.Write) error {
	const mostSpecs = 10 // IB_FLOW_SPEC_SUPPORT_LAYERS
	b, err := w.Request(w.Len())
	if err != nil {
		return err
	}
	r := uapi.CreateFlow(b)
	specs := b[uapi.CreateFlowSize:]
	if r.CompMask() != 0 || r.Specs() > mostSpecs || int(r.Size()) > len(specs) {
		return fmt.Errorf("%s with %d specs of %d bytes in %d, comp_mask %#x: %w", w.Name, r.Specs(), r.Size(), len(specs), r.CompMask(), syscall.EINVAL)
	}
	req := kernel.FlowReq{QP: kernelHandle(r.QPHandle()), Type: r.Type(), Priority: r.Priority(), Port: r.Port(), Flags: r.Flags()}
	specs = specs[:r.Size()]
	for range r.Specs() {
		if len(specs) < uapi.FlowSpecHeaderSize {
			return fmt.Errorf("%s: %d bytes of a spec: %w", w.Name, len(specs), syscall.EINVAL)
		}
		h := uapi.FlowSpecHeader(specs[:uapi.FlowSpecHeaderSize])
		n := int(h.Size())
		if n < uapi.FlowSpecHeaderSize || n > len(specs) || h.Reserved() != 0 {
			return fmt.Errorf("%s: spec of %d bytes: %w", w.Name, n, syscall.EINVAL)
		}
		body := specs[uapi.FlowSpecHeaderSize:n]
		s := kernel.FlowSpec{Type: h.Type(), Val: body}
		if h.Type() == kernel.FlowSpecTag && len(body) >= 4 {
			s.Tag = uapi.Handles(body, 1)[0]
		}
		if h.Type() < kernel.FlowSpecTag {
			s.Val, s.Mask = body[:len(body)/2], body[len(body)/2:]
		}
		req.Specs = append(req.Specs, s)
		specs = specs[n:]
	}
	if len(specs) > 0 {
		return fmt.Errorf("%s: %d bytes behind the specs: %w", w.Name, len(specs), syscall.EINVAL)
	}
	h, err := f.u.CreateFlow(noCaller, req)
	if err != nil {
		return err
	}
	a := uapi.CreateFlowResp(make([]byte, uapi.CreateFlowRespSize))
	a.SetFlowHandle(uint32(h))
	return undo(w.Respond(a), func() error { return f.u.DestroyFlow(noCaller, h) })
}

// createMatcher is FLOW_MATCHER_CREATE of received packets, or of those that are sent. Flags are an
// older way to ask for these (mlx5_ib_matcher_ns).
func (f *File) createMatcher(k *uapi.Call) error {
	const receive, send = 0, 1 // MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_RX, _NIC_TX
	table, flags := k.Value(uapi.MatcherCreateTable), k.Value(uapi.MatcherCreateFlags)
	switch {
	case k.Has(uapi.MatcherCreateTable) && k.Has(uapi.MatcherCreateFlags), flags&^uapi.FlowEgress != 0:
		return fmt.Errorf("FLOW_MATCHER_CREATE of table %d, flags %#x: %w", table, flags, syscall.EINVAL)
	case flags != 0:
		table = send
	case table != receive && table != send:
		return fmt.Errorf("FLOW_MATCHER_CREATE of table %d: %w: %w", table, errNotModelled, syscall.EOPNOTSUPP)
	}
	mask, err := k.In(uapi.MatcherCreateMask, k.Len(uapi.MatcherCreateMask))
	if err != nil {
		return err
	}
	h, err := f.u.CreateFlowMatcher(noCaller, table == send, uint16(k.Value(uapi.MatcherCreateType)), uint8(k.Value(uapi.MatcherCreateCriteria)), mask)
	if err != nil {
		return err
	}
	return undo(k.SetNew(uapi.MatcherCreateHandle, uint64(h)), func() error { return f.u.DestroyFlowMatcher(noCaller, h) })
}

// handles is an attribute that is an array of handles.
func handles(k *uapi.Call, id uint16) (list []kernel.Handle, err error) {
	if !k.Has(id) {
		return nil, nil
	}
	n := k.Len(id)
	if n%4 != 0 || n > 4*uapi.FlowMaxActions {
		return nil, fmt.Errorf("attribute %#x: %d bytes of handles: %w", id, n, syscall.EINVAL)
	}
	b, err := k.In(id, n)
	if err != nil {
		return nil, err
	}
	for _, h := range uapi.Handles(b, n/4) {
		list = append(list, kernelHandle(h))
	}
	return list, nil
}

// createMatchedFlow is the driver's CREATE_FLOW.
func (f *File) createMatchedFlow(k *uapi.Call) error {
	flags := k.Value(uapi.FlowCreateFlags)
	drop := flags&uapi.FlowCreateDrop != 0
	switch {
	case flags&uapi.FlowCreateDefaultMiss != 0:
		return fmt.Errorf("MLX5_CREATE_FLOW to the default: %w: %w", errNotModelled, syscall.EOPNOTSUPP)
	case flags&^uapi.FlowCreateDrop != 0, drop && (k.Has(uapi.FlowCreateQP) || k.Has(uapi.FlowCreateDEVX)), k.Has(uapi.FlowCreateQP) && k.Has(uapi.FlowCreateDEVX):
		return fmt.Errorf("MLX5_CREATE_FLOW with flags %#x, QP %v, object %v: %w", flags, k.Has(uapi.FlowCreateQP), k.Has(uapi.FlowCreateDEVX), syscall.EINVAL)
	}
	value, err := k.In(uapi.FlowCreateValue, k.Len(uapi.FlowCreateValue))
	if err != nil {
		return err
	}
	if len(value) > uapi.MatchParamsSize {
		return fmt.Errorf("MLX5_CREATE_FLOW with a value of %d bytes: %w", len(value), syscall.EINVAL)
	}
	r := kernel.MatchedFlow{Value: value, Drop: drop, Tag: uint32(k.Value(uapi.FlowCreateTag))}
	for _, o := range [...]struct {
		id uint16
		h  *kernel.Handle
	}{{uapi.FlowCreateMatcher, &r.Matcher}, {uapi.FlowCreateQP, &r.QP}, {uapi.FlowCreateDEVX, &r.Object}} {
		if h, ok := k.Handle(o.id); ok {
			*o.h = kernelHandle(h)
		}
	}
	if r.Counters, err = handles(k, uapi.FlowCreateCounters); err != nil {
		return err
	}
	if r.Actions, err = handles(k, uapi.FlowCreateActions); err != nil {
		return err
	}
	// An offset counts in an object of several counters, of which there are none.
	offsets, err := handles(k, uapi.FlowCreateOffset)
	if err != nil {
		return err
	}
	if len(offsets) > len(r.Counters) || slices.ContainsFunc(offsets, func(n kernel.Handle) bool { return n != 0 }) {
		return fmt.Errorf("MLX5_CREATE_FLOW with counters at %v: %w", offsets, syscall.EINVAL)
	}
	h, err := f.u.CreateMatchedFlow(noCaller, r)
	if err != nil {
		return err
	}
	return undo(k.SetNew(uapi.FlowCreateHandle, uint64(h)), func() error { return f.u.DestroyFlow(noCaller, h) })
}

// createModifyHeader is FLOW_ACTION_CREATE_MODIFY_HEADER.
func (f *File) createModifyHeader(k *uapi.Call) error {
	changes, err := k.In(uapi.ModifyHeaderActions, k.Len(uapi.ModifyHeaderActions))
	if err != nil {
		return err
	}
	h, err := f.u.CreateModifyHeader(noCaller, k.Value(uapi.ModifyHeaderTable), changes)
	if err != nil {
		return err
	}
	return undo(k.SetNew(uapi.ModifyHeaderHandle, uint64(h)), func() error { return f.u.DestroyFlowAction(noCaller, h) })
}

// createPacketReformat is FLOW_ACTION_CREATE_PACKET_REFORMAT.
func (f *File) createPacketReformat(k *uapi.Call) (err error) {
	var headers []byte
	if k.Has(uapi.ReformatData) {
		if headers, err = k.In(uapi.ReformatData, k.Len(uapi.ReformatData)); err != nil {
			return err
		}
	}
	h, err := f.u.CreatePacketReformat(noCaller, k.Value(uapi.ReformatType), k.Value(uapi.ReformatTable), headers)
	if err != nil {
		return err
	}
	return undo(k.SetNew(uapi.ReformatHandle, uint64(h)), func() error { return f.u.DestroyFlowAction(noCaller, h) })
}

// fillPackets is what QUERY_DEVICE says of raw packets and RSS.
func (f *File) fillPackets(r uapi.ExQueryDeviceResp, d uapi.MLX5QueryDeviceResp) {
	const (
		raw          = 1 << uint(verbs.QPTRawPacket)
		cvlanStrip   = 1 << 0 // IB_RAW_PACKET_CAP_*
		scatterFCS   = 1 << 1
		checksums    = 1 << 2
		rssAllFields = 0xff
	)
	p := f.u.Packets()
	if p.MaxWQ == 0 {
		return
	}
	r.SetRSSQPTs(raw)
	r.SetMaxRWQTables(p.MaxTables)
	r.SetMaxRWQTableSize(p.MaxTableSize)
	r.SetMaxWQTypeRQ(p.MaxWQ)
	caps := uint32(0)
	if p.StripsVLAN {
		caps |= cvlanStrip
	}
	if p.FCS {
		caps |= scatterFCS
	}
	if p.Checksums {
		caps |= checksums
	}
	r.SetRawPacketCaps(caps)
	if d != nil {
		d.SetMaxTSO(p.MaxLSO)
		d.SetTSOQPTs(raw)
		d.SetRSSFields(rssAllFields)
		d.SetRSSFunction(uapi.RSSToeplitz)
	}
}
