// Package pingpong does what ibv_rc_pingpong, ibv_uc_pingpong and ibv_ud_pingpong of rdma-core do,
// over package verbs: their exchange over TCP, their loop and their output. A real one may be the
// peer. Source: libibverbs/examples of rdma-core.
package pingpong

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// Programs are the names of the programs.
func Programs() []string { return []string{"ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong"} }

// Options are the settings of one end.
type Options struct {
	Type    verbs.QPType
	Client  bool
	Size    int // bytes of a message
	MTU     int // of the path, in bytes
	RxDepth int
	Iters   int
	SL      uint8
	Events  bool
	Check   bool // the program of rdma-core checks the first byte of each page
}

// Default is what a program does without flags.
func Default(program string) (o Options, ok bool) {
	o = Options{Type: verbs.QPTRC, Size: 4096, MTU: 1024, RxDepth: 500, Iters: 1000}
	switch i := slices.Index(Programs(), program); i {
	case 0:
	case 1:
		o.Type = verbs.QPTUC
	case 2:
		o.Type, o.Size = verbs.QPTUD, 1024
	default:
		return o, false
	}
	return o, true
}

// Limits of options.
const (
	mostSize  = 1 << 30
	mostDepth = 1 << 15
)

// Validate reports what is impossible.
func (o *Options) Validate() error {
	switch {
	case o.Size < 1 || o.Size > mostSize:
		return fmt.Errorf("-s %d: a size from 1 to %d bytes is needed", o.Size, mostSize)
	case mtuOf(o.MTU) == 0:
		return fmt.Errorf("-m %d: an MTU of 256, 512, 1024, 2048 or 4096 bytes is needed", o.MTU)
	case o.RxDepth < 1 || o.RxDepth > mostDepth:
		return fmt.Errorf("-r %d: a number of receives from 1 to %d is needed", o.RxDepth, mostDepth)
	case o.Iters < 1:
		return fmt.Errorf("-n %d: a number above 0 is needed", o.Iters)
	case o.SL > 15:
		return fmt.Errorf("-l %d: a service level from 0 to 15 is needed", o.SL)
	}
	return nil
}

func mtuOf(n int) verbs.MTU {
	for m := verbs.MTU256; m <= verbs.MTU4096; m++ {
		if m.Bytes() == n {
			return m
		}
	}
	return 0
}

// Env is what an end has around it.
type Env struct {
	Out io.Writer
	// Connect is the connection to the peer; a server waits for a client.
	Connect func() (io.ReadWriteCloser, error)
	// Random draws packet sequence numbers.
	Random func() uint32
	// Interrupted reports whether the user wants the end; nil: never.
	Interrupted func() bool
}

// Address is what an end says of itself.
type Address struct {
	LID      uint16
	QPN, PSN uint32
	GID      verbs.GID
}

// AddressSize is how many bytes the message with an address has.
const AddressSize = 52

// done is what a client says at the end of the exchange.
const done = "done\x00"

// Encode is the message: numbers in hexadecimal with colons between, and a zero.
func (a *Address) Encode() []byte {
	return fmt.Appendf(nil, "%04x:%06x:%06x:%x\x00", a.LID, a.QPN, a.PSN, a.GID[:])
}

// Decode reads the message.
func Decode(b []byte) (a Address, err error) {
	text, _, _ := bytes.Cut(b, []byte{0})
	bad := func(what string) (Address, error) {
		return Address{}, fmt.Errorf("the peer's first message is %q, %s: another program answers at this port, or one of another version", clip(b), what)
	}
	fields := strings.Split(string(text), ":")
	if len(b) != AddressSize || len(fields) != 4 {
		return bad("not LID:QPN:PSN:GID in 52 bytes")
	}
	var n [3]uint64
	for i, bits := range []int{16, 24, 24} {
		if n[i], err = strconv.ParseUint(fields[i], 16, bits); err != nil {
			return bad(fmt.Sprintf("of which %q is no hexadecimal number of %d bits", fields[i], bits))
		}
	}
	gid, err := hex.DecodeString(fields[3])
	if err != nil || len(gid) != len(a.GID) {
		return bad("whose GID has not 32 hexadecimal digits")
	}
	a.LID, a.QPN, a.PSN = uint16(n[0]), uint32(n[1]), uint32(n[2])
	copy(a.GID[:], gid)
	return a, nil
}

func clip(b []byte) []byte { return b[:min(len(b), AddressSize)] }

// End is one end.
type End struct {
	o   Options
	env *Env

	undo   []func(verbs.Thread) error
	ctx    verbs.Context
	pd     verbs.PD
	ch     verbs.CompChannel
	cq     verbs.CQ
	qp     verbs.QP
	ah     verbs.AH
	buf    verbs.Buffer
	mr     verbs.MR
	gid    verbs.GIDEntry
	remote *Address

	rounds
	first []byte // a server's memory after the first message
}

// rounds are what the loop counts.
type rounds struct {
	sent, received int
	posted         int // receives
	pending        int // what the next send waits for
}

// What a send waits for, which are the IDs of work requests, too.
const (
	recvID = 1
	sendID = 2
)

// New makes an end of valid options.
func New(o Options, env *Env) *End { return &End{o: o, env: env} }

// Peer is what the peer has said of itself, nil before it has.
func (e *End) Peer() *Address { return e.remote }

// Run runs the program in a thread. What it has made is taken back when it returns.
func (e *End) Run(t verbs.Thread) (err error) {
	defer func() {
		for _, f := range slices.Backward(e.undo) {
			if bad := f(t); bad != nil && err == nil {
				err = bad
			}
		}
	}()
	if err := e.build(t); err != nil {
		return err
	}
	if err := e.meet(t); err != nil {
		return err
	}
	return e.play(t)
}

func (e *End) later(f func(verbs.Thread) error) { e.undo = append(e.undo, f) }

// greeting is room for the header of a datagram in front of its bytes.
func (e *End) greeting() uint64 {
	if e.o.Type == verbs.QPTUD {
		return verbs.GRHSize
	}
	return 0
}

// build makes what the program needs of the first device.
func (e *End) build(t verbs.Thread) error {
	devs, err := t.Process().Devices(t)
	if err == nil && len(devs) == 0 {
		err = errors.New("there is none")
	}
	if err != nil {
		return fmt.Errorf("RDMA device: %w", err)
	}
	if e.ctx, err = devs[0].Open(t); err != nil {
		return fmt.Errorf("open %s: %w", devs[0].Name(), err)
	}
	e.later(e.ctx.Close)
	port, err := e.ctx.QueryPort(t, 1)
	if err != nil {
		return fmt.Errorf("port 1: %w", err)
	}
	if most := port.ActiveMTU.Bytes(); e.o.Type == verbs.QPTUD && e.o.Size > most {
		return fmt.Errorf("-s %d: a datagram has at most the port's MTU of %d bytes", e.o.Size, most)
	} else if e.o.Type != verbs.QPTUD && e.o.MTU > most {
		return fmt.Errorf("-m %d: the port's MTU is %d; give that to both ends", e.o.MTU, most)
	}
	table := make([]verbs.GIDEntry, 1)
	if n, err := e.ctx.QueryGIDTable(t, table, 0); err != nil || n == 0 {
		return fmt.Errorf("GID 0: %w", errors.Join(err, syscall.ENOENT))
	}
	e.gid = table[0]
	if e.pd, err = e.ctx.AllocPD(t); err != nil {
		return fmt.Errorf("ibv_alloc_pd: %w", err)
	}
	e.later(e.pd.Dealloc)
	n := uint64(e.o.Size) + e.greeting()
	if e.buf, err = t.Process().Map(t, n, verbs.MapOptions{}); err != nil {
		return fmt.Errorf("%d bytes of memory: %w", n, err)
	}
	e.later(e.buf.Unmap)
	if e.mr, err = e.pd.RegMR(t, e.buf.Addr(), n, verbs.AccessLocalWrite); err != nil {
		return fmt.Errorf("ibv_reg_mr: %w", err)
	}
	e.later(e.mr.Dereg)
	return e.queues(t)
}

// queues makes the queues, and moves the queue pair to INIT.
func (e *End) queues(t verbs.Thread) (err error) {
	if e.o.Events {
		if e.ch, err = e.ctx.CreateCompChannel(t); err != nil {
			return fmt.Errorf("ibv_create_comp_channel: %w", err)
		}
		e.later(e.ch.Destroy)
	}
	if e.cq, err = e.ctx.CreateCQ(t, verbs.CQAttr{CQE: e.o.RxDepth + 1, Channel: e.ch}); err != nil {
		return fmt.Errorf("ibv_create_cq of %d entries: %w", e.o.RxDepth+1, err)
	}
	e.later(e.cq.Destroy)
	if e.qp, err = e.pd.CreateQP(t, verbs.QPInitAttr{Type: e.o.Type, SendCQ: e.cq, RecvCQ: e.cq,
		Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: uint32(e.o.RxDepth), MaxSendSGE: 1, MaxRecvSGE: 1}}); err != nil {
		return fmt.Errorf("ibv_create_qp: %w; try a smaller -r", err)
	}
	e.later(e.qp.Destroy)
	attr := verbs.QPAttr{State: verbs.QPSInit, Port: 1, QKey: qKey}
	mask := verbs.QPMaskState | verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskAccessFlags
	if e.o.Type == verbs.QPTUD {
		mask ^= verbs.QPMaskAccessFlags | verbs.QPMaskQKey
	}
	if err := e.qp.Modify(t, &attr, mask); err != nil {
		return fmt.Errorf("ibv_modify_qp to INIT: %w", err)
	}
	if err := e.receives(t); err != nil {
		return err
	}
	if e.o.Events {
		return e.cq.ReqNotify(t, false)
	}
	return nil
}

// qKey is that of ibv_ud_pingpong.
const qKey = 0x11111111

// receives fills the receive queue up.
func (e *End) receives(t verbs.Thread) error {
	sges := []verbs.SGE{{Addr: e.buf.Addr(), Length: uint32(uint64(e.o.Size) + e.greeting()), LKey: e.mr.LKey()}}
	wrs := make([]verbs.RecvWR, e.o.RxDepth-e.posted)
	for i := range wrs {
		wrs[i] = verbs.RecvWR{ID: recvID, SGEs: sges}
	}
	n, err := e.qp.PostRecv(t, wrs)
	if e.posted += n; err != nil {
		return fmt.Errorf("ibv_post_recv: %w", err)
	}
	return nil
}

func (e *End) send(t verbs.Thread) error {
	wr := verbs.SendWR{ID: sendID, Opcode: verbs.WRSend, Flags: verbs.SendSignaled,
		SGEs: []verbs.SGE{{Addr: e.buf.Addr() + e.greeting(), Length: uint32(e.o.Size), LKey: e.mr.LKey()}}}
	if e.o.Type == verbs.QPTUD {
		wr.AH, wr.RemoteQPN, wr.RemoteQKey = e.ah, e.remote.QPN, qKey
	}
	if _, err := e.qp.PostSend(t, []verbs.SendWR{wr}); err != nil {
		return fmt.Errorf("ibv_post_send: %w", err)
	}
	e.pending = recvID | sendID
	return nil
}

// meet exchanges addresses, and connects the queue pair.
func (e *End) meet(t verbs.Thread) error {
	own := Address{QPN: e.qp.QPN(), PSN: e.env.Random() & 0xffffff, GID: e.gid.GID}
	e.print("local", &own)
	c, err := e.env.Connect()
	if err != nil {
		return err
	}
	defer c.Close()
	if e.o.Client {
		if err := say(c, own.Encode()); err != nil {
			return err
		}
	}
	b := make([]byte, AddressSize)
	if _, err := io.ReadFull(c, b); err != nil {
		return heard("its address", err)
	}
	a, err := Decode(b)
	if err != nil {
		return err
	}
	if a.GID == (verbs.GID{}) {
		return errors.New("the peer has told no GID, which RoCE needs: start it with -g and the index of a RoCE v2 GID (below rdmasim exec: -g 0)")
	}
	e.remote = &a
	if e.o.Client {
		if err := say(c, []byte(done)); err != nil {
			return err
		}
		e.print("remote", &a)
		return e.join(t, &own)
	}
	if err := e.join(t, &own); err != nil {
		return err
	}
	if err := say(c, own.Encode()); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, b[:len(done)]); err != nil {
		return heard("that it is ready", err)
	}
	e.print("remote", &a)
	return nil
}

func say(w io.Writer, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("send %d bytes to the peer: %w", len(b), err)
	}
	return nil
}

func heard(what string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("the peer has closed the connection before it said %s: see its own output for the reason: %w", what, err)
	}
	return fmt.Errorf("the peer's word for %s: %w", what, err)
}

func (e *End) print(which string, a *Address) {
	fmt.Fprintf(e.env.Out, "  %-15s LID 0x%04x, QPN 0x%06x, PSN 0x%06x, GID %v\n", which+" address:", a.LID, a.QPN, a.PSN, a.GID)
}

// join moves the queue pair to RTS.
func (e *End) join(t verbs.Thread, own *Address) error {
	ah := verbs.AHAttr{Port: 1, SL: e.o.SL, DLID: e.remote.LID, IsGlobal: true, GRH: verbs.GRH{DGID: e.remote.GID, SGIDIndex: uint8(e.gid.Index), HopLimit: 64}}
	attr := verbs.QPAttr{State: verbs.QPSRTR, PathMTU: mtuOf(e.o.MTU), DestQPN: e.remote.QPN, RQPSN: e.remote.PSN, MaxDestRdAtomic: 1, MinRNRTimer: 12, AH: ah}
	mask := verbs.QPMaskState
	if e.o.Type != verbs.QPTUD {
		mask |= verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN
	}
	if e.o.Type == verbs.QPTRC {
		mask |= verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
	}
	if err := e.qp.Modify(t, &attr, mask); err != nil {
		return fmt.Errorf("ibv_modify_qp to RTR: %w; the peer's address %v must be reachable from %v", err, e.remote.GID, e.gid.GID)
	}
	attr = verbs.QPAttr{State: verbs.QPSRTS, SQPSN: own.PSN, Timeout: 14, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 1}
	mask = verbs.QPMaskState | verbs.QPMaskSQPSN
	if e.o.Type == verbs.QPTRC {
		mask |= verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic
	}
	err := e.qp.Modify(t, &attr, mask)
	if err != nil {
		return fmt.Errorf("ibv_modify_qp to RTS: %w", err)
	}
	if e.o.Type == verbs.QPTUD {
		if e.ah, err = e.pd.CreateAH(t, ah); err != nil {
			return fmt.Errorf("ibv_create_ah: %w", err)
		}
		e.later(e.ah.Destroy)
	}
	return nil
}
