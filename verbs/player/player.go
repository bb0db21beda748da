// Package player is the fixed set of commands that a case gives to another process,
// and the agent that carries them out there. The same agent runs in a
// simulated process, in this one, and in a real agent process: commands and replies
// hold plain values only (numbers, bytes, names), never closures or pointers.
//
// An agent owns one context, one CQ and any number of PDs, buffers with their
// memory region, and QPs, which it names by small numbers counted from 1.
package player

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Commands. Args that are not given are 0.
const (
	// Open opens the first device and makes PD 1 and the CQ. Args: cqe (0: 1024), ipv4 (the
	// address whose GID connections use; 0: any), ipv6
	// (connections use an IPv6 address).
	// Values: gid_index, lid (0 on Ethernet). Data: the GID of the entry that connections use.
	Open = "open"
	// Close destroys what is left and closes the context.
	Close = "close"
	// AllocPD: values: pd.
	AllocPD = "pd"
	// Drop gives up the privileges of verbs.Dropper, before open or after. Args: memlock (bytes).
	Drop = "drop"
	// RegBuffer maps and registers memory. Args: len, access, pd (0: PD 1), lazy (1: memory that
	// nobody has touched), memory (a verbs.MemoryKind, registered by a DMA-BUF). Values: buf, addr,
	// lkey, rkey; of lazy memory also resident, its pages in memory then.
	RegBuffer = "buffer"
	// DeregBuffer deregisters the memory region of buf and leaves the memory.
	DeregBuffer = "dereg"
	// RegDmabuf registers len bytes of the DMA-BUF that process pid has open as fd, from byte off
	// on. Args: pid, fd, off, len, iova, access. Values: buf (to be deregistered only), lkey, rkey.
	RegDmabuf = "dmabuf"
	// ReadBuffer: args buf, off, len; the reply's Data.
	ReadBuffer = "read"
	// WriteBuffer: args buf, off; Data.
	WriteBuffer = "write"
	// CreateQP makes an RC QP. Args: send_wr, recv_wr, send_sge, recv_sge, inline, sig_all, pd, srq
	// (0: a receive queue of its own). Values: qp, qpn, max_inline, bf_page, bf_offset, bf_size.
	CreateQP = "qp"
	// Connect takes a QP from RESET to the state "to" (0: RTS). Data: the peer's GID. Args: qp, to,
	// dest_qpn, dlid (of a peer on InfiniBand), rq_psn, sq_psn, mtu, access, timeout, retry, rnr,
	// rnr_timer, rd, dest_rd, with 0 as it stands except mtu (1024) and access (all).
	Connect = "connect"
	// SetState modifies qp to state with the state attribute alone.
	SetState = "state"
	// QueryQP: args qp. Values: state, sq_psn, rq_psn.
	QueryQP = "query"
	// DestroyQP: args qp.
	DestroyQP = "destroy"
	// PostSend: args qp, id, opcode, flags, buf, off, len, remote, rkey, imm, compare, swap, srqn
	// (of an XRC peer), count (0: 1; ids count up, and off by step), one call for each. buf 0: no
	// SGE; buf1, off1, len1 and so on are further SGEs, for receives too.
	PostSend = "send"
	// PostRecv: args qp, id, buf, off, len, count.
	PostRecv = "recv"
	// Wait polls until n completions or timeout nanoseconds. Values: n and for completion i: id<i>,
	// status<i>, opcode<i>, len<i>, qpn<i>, vendor<i>, flags<i>, imm<i>, src<i> (QP), slid<i>,
	// sl<i>, pkey<i> (index), path<i> (bits).
	Wait = "wait"
	// Race starts threads that all post count signalled sends of buf to qp at once,
	// which a thread domain forbids. Args: qp, threads, count, buf, len.
	Race = "race"
	// OneOfEach makes an object of every kind that the device has and leaves them to the end of
	// the process. Values: 1 for each kind: channel, cq, srq, rc, uc, ud, mr, mw, ah, td, ...
	OneOfEach = "one-of-each"
	// AllocTDQP is CreateQP on a parent domain with a new thread domain.
	AllocTDQP = "tdqp"
)

// Agent carries out commands, all in one thread of its process.
type Agent struct {
	ctx      verbs.Context
	cq       verbs.CQ
	port     uint8
	gid      verbs.GIDEntry
	ib       bool // the port's link layer
	lid      uint16
	pds      []verbs.PD
	bufs     []buffer
	qps      []verbs.QP
	wc       []verbs.WC
	clean    []func(t verbs.Thread)
	xrcds    []verbs.XRCD
	srqs     []verbs.SRQ
	handlers map[string]handler

	cmChannels []verbs.EventChannel
	cmIDs      []verbs.CMID // nil: destroyed
}

// handler carries out one command.
type handler func(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error

type buffer struct {
	mem verbs.Buffer
	mr  verbs.MR
}

// NewAgent makes an agent with nothing open.
func NewAgent() *Agent {
	a := &Agent{}
	a.handlers = map[string]handler{
		Open: a.open, Close: a.close, Drop: drop, AllocPD: a.allocPD, RegBuffer: a.regBuffer, DeregBuffer: a.deregBuffer, RegDmabuf: a.regDmabuf,
		ReadBuffer: a.readBuffer, WriteBuffer: a.writeBuffer, CreateQP: a.createQP, AllocTDQP: a.createTDQP,
		Connect: a.connect, SetState: a.setState, QueryQP: a.queryQP, DestroyQP: a.destroyQP,
		PostSend: a.postSend, PostRecv: a.postRecv, Wait: a.wait, Race: a.race, OneOfEach: a.oneOfEach, CreateFlow: a.createFlow,
	}
	maps.Copy(a.handlers, a.xrcHandlers())
	maps.Copy(a.handlers, a.cmHandlers())
	return a
}

// Do carries out one command. A refused call is in the reply's Errno and Text.
func (a *Agent) Do(t verbs.Thread, c verbs.PlayerCommand) verbs.PlayerReply {
	r := verbs.PlayerReply{Values: map[string]uint64{}}
	h, ok := a.handlers[c.Op]
	var err error
	switch {
	case !ok:
		err = fmt.Errorf("player: no command %q: %w", c.Op, syscall.ENOSYS)
	case a.ctx == nil && c.Op != Open && c.Op != Drop:
		err = fmt.Errorf("player: %s before open: %w", c.Op, syscall.EBADF)
	default:
		err = h(t, c, &r)
	}
	if err != nil {
		r.Errno, r.Text = int(verbs.ErrnoOf(err)), err.Error()
	}
	return r
}

func (a *Agent) open(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	if a.ctx != nil {
		return fmt.Errorf("player: open twice: %w", syscall.EBUSY)
	}
	devs, err := t.Process().Devices(t)
	if err != nil {
		return err
	}
	if len(devs) == 0 {
		return fmt.Errorf("player: no device: %w", syscall.ENODEV)
	}
	ctx, err := devs[0].Open(t)
	if err != nil {
		return err
	}
	a.port = 1
	if p, ok := ctx.(verbs.Preferrer); ok {
		if port, _ := p.Preferred(); port > 0 {
			a.port = uint8(port)
		}
	}
	choose := PickGID
	switch {
	case c.Args["ipv6"] != 0:
		choose = PickIPv6
	case c.Args["ipv4"] != 0:
		choose = PickIPv4(uint32(c.Args["ipv4"]))
	}
	if a.gid, err = choose(t, ctx, uint32(a.port)); err != nil {
		return err
	}
	lid, err := LID(t, ctx, a.gid)
	if err != nil {
		return err
	}
	a.ib, a.lid = lid != 0, lid
	pd, err := ctx.AllocPD(t)
	if err != nil {
		return err
	}
	cqe := cmp.Or(int(c.Args["cqe"]), 1024)
	if a.cq, err = ctx.CreateCQ(t, verbs.CQAttr{CQE: cqe}); err != nil {
		return err
	}
	a.ctx, a.pds = ctx, []verbs.PD{pd}
	r.Values["gid_index"], r.Values["lid"] = uint64(a.gid.Index), uint64(lid)
	r.Data = a.gid.GID[:]
	return nil
}

func (a *Agent) close(t verbs.Thread, _ verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	for _, q := range a.qps {
		if q != nil {
			if err := q.Destroy(t); err != nil {
				return err
			}
		}
	}
	for _, s := range a.srqs {
		if s != nil {
			if err := s.Destroy(t); err != nil {
				return err
			}
		}
	}
	for _, x := range a.xrcds {
		if x != nil {
			if err := x.Close(t); err != nil {
				return err
			}
		}
	}
	for i := len(a.clean) - 1; i >= 0; i-- {
		a.clean[i](t)
	}
	for _, b := range a.bufs {
		if b.mr != nil {
			if err := b.mr.Dereg(t); err != nil {
				return err
			}
		}
	}
	if err := a.cq.Destroy(t); err != nil {
		return err
	}
	for _, pd := range a.pds {
		if err := pd.Dealloc(t); err != nil {
			return err
		}
	}
	ctx := a.ctx
	handlers := a.handlers
	*a = Agent{handlers: handlers}
	return ctx.Close(t)
}

func drop(t verbs.Thread, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	p, ok := t.Process().(verbs.Dropper)
	if !ok {
		return fmt.Errorf("player: the processes of this target cannot give up privileges: %w", syscall.EOPNOTSUPP)
	}
	return p.DropRights(t, c.Args["memlock"])
}

func (a *Agent) allocPD(t verbs.Thread, _ verbs.PlayerCommand, r *verbs.PlayerReply) error {
	pd, err := a.ctx.AllocPD(t)
	if err != nil {
		return err
	}
	a.pds = append(a.pds, pd)
	r.Values["pd"] = uint64(len(a.pds))
	return nil
}

func (a *Agent) pd(c verbs.PlayerCommand) (verbs.PD, error) {
	n := cmp.Or(c.Args["pd"], 1)
	return pick(a.pds, n, "pd")
}

// pick is the object with a number that the agent gave out.
func pick[T any](list []T, n uint64, kind string) (v T, err error) {
	if n == 0 || n > uint64(len(list)) {
		return v, fmt.Errorf("player: no %s %d: %w", kind, n, syscall.ENOENT)
	}
	return list[n-1], nil
}

func (a *Agent) regBuffer(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	pd, err := a.pd(c)
	if err != nil {
		return err
	}
	mem, mr, err := registered(t, pd, c)
	if err != nil {
		return err
	}
	a.bufs = append(a.bufs, buffer{mem, mr})
	r.Values["buf"] = uint64(len(a.bufs))
	r.Values["addr"] = mem.Addr()
	r.Values["lkey"], r.Values["rkey"] = uint64(mr.LKey()), uint64(mr.RKey())
	if p, ok := mem.(verbs.PagedBuffer); ok && c.Args["lazy"] != 0 {
		pages, err := p.Resident(t, 0, mem.Len())
		if err != nil {
			return err
		}
		for _, present := range pages {
			if present {
				r.Values["resident"]++
			}
		}
	}
	return nil
}

// registered allocates and registers memory of the kind that was asked for.
func registered(t verbs.Thread, pd verbs.PD, c verbs.PlayerCommand) (b verbs.Buffer, mr verbs.MR, err error) {
	access := verbs.AccessFlags(c.Args["access"])
	if kind := verbs.MemoryKind(c.Args["memory"]); kind != verbs.MemoryHost {
		return exported(t, pd, kind, c.Args["len"], access)
	}
	if b, err = t.Process().Map(t, c.Args["len"], verbs.MapOptions{Lazy: c.Args["lazy"] != 0}); err != nil {
		return nil, nil, err
	}
	if mr, err = pd.RegMR(t, b.Addr(), b.Len(), access); err != nil {
		return nil, nil, errors.Join(err, b.Unmap(t))
	}
	return b, mr, nil
}

// exported is registered of memory that its driver exports. The region keeps the memory, so that
// the descriptor is closed.
func exported(t verbs.Thread, pd verbs.PD, kind verbs.MemoryKind, n uint64, access verbs.AccessFlags) (b verbs.Buffer, mr verbs.MR, err error) {
	o, ok := t.Process().(verbs.MemoryOpener)
	if !ok {
		return nil, nil, fmt.Errorf("player: memory of kind %v on this target: %w", kind, syscall.EOPNOTSUPP)
	}
	m, err := o.OpenMemory(t, kind, verbs.MemoryOptions{})
	if err != nil {
		return nil, nil, err
	}
	if b, err = m.Alloc(t, n, 0); err != nil {
		return nil, nil, err
	}
	d, err := m.Export(t, b, 0, n)
	if err != nil {
		return nil, nil, errors.Join(err, b.Unmap(t))
	}
	if mr, err = pd.RegDmabufMR(t, d.Offset, n, b.Addr(), d.FD, access); err != nil {
		return nil, nil, errors.Join(err, o.CloseFD(t, d.FD), b.Unmap(t))
	}
	return b, mr, o.CloseFD(t, d.FD)
}

func (a *Agent) deregBuffer(t verbs.Thread, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	b, err := pick(a.bufs, c.Args["buf"], "buffer")
	if err != nil {
		return err
	}
	if b.mr == nil {
		return fmt.Errorf("player: buffer has no region: %w", syscall.EINVAL)
	}
	a.bufs[c.Args["buf"]-1].mr = nil
	return b.mr.Dereg(t)
}

// buffer is the buffer of a number. ENOENT: none, or a region of another process's memory.
func (a *Agent) buffer(n uint64) (buffer, error) {
	b, err := pick(a.bufs, n, "buffer")
	if err == nil && b.mem == nil {
		err = fmt.Errorf("player: buffer %d is memory of another process: %w", n, syscall.ENOENT)
	}
	return b, err
}

func (a *Agent) readBuffer(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	b, err := a.buffer(c.Args["buf"])
	if err != nil {
		return err
	}
	r.Data = make([]byte, c.Args["len"])
	_, err = b.mem.ReadAt(t, r.Data, int64(c.Args["off"]))
	return err
}

func (a *Agent) writeBuffer(t verbs.Thread, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	b, err := a.buffer(c.Args["buf"])
	if err != nil {
		return err
	}
	_, err = b.mem.WriteAt(t, c.Data, int64(c.Args["off"]))
	return err
}

func (a *Agent) wait(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	want := int(c.Args["n"])
	if cap(a.wc) < want {
		a.wc = make([]verbs.WC, want)
	}
	wc := a.wc[:want]
	got := 0
	end := t.Now() + time.Duration(c.Args["timeout"])
	for got < want {
		n, err := a.cq.PollWait(t, wc[got:], end-t.Now())
		if err != nil {
			return err
		}
		got += n
		if n == 0 {
			break
		}
	}
	r.Values["n"] = uint64(got)
	for i, w := range wc[:got] {
		r.Values[fmt.Sprintf("id%d", i)] = w.ID
		r.Values[fmt.Sprintf("status%d", i)] = uint64(w.Status)
		r.Values[fmt.Sprintf("opcode%d", i)] = uint64(w.Opcode)
		r.Values[fmt.Sprintf("len%d", i)] = uint64(w.ByteLen)
		r.Values[fmt.Sprintf("qpn%d", i)] = uint64(w.QPN)
		r.Values[fmt.Sprintf("flags%d", i)] = uint64(w.Flags)
		if w.Flags != 0 {
			r.Values[fmt.Sprintf("imm%d", i)] = uint64(w.Imm)
		}
		for name, v := range map[string]uint64{"vendor": uint64(w.VendorErr), "src": uint64(w.SrcQP), "slid": uint64(w.SLID), "sl": uint64(w.SL),
			"pkey": uint64(w.PKeyIndex), "path": uint64(w.DLIDPathBits)} {
			if v != 0 {
				r.Values[fmt.Sprintf("%s%d", name, i)] = v
			}
		}
	}
	return nil
}
