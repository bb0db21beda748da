package kit

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// OtherProcess is another process, on this host or another, that carries out commands of package
// player.
type OtherProcess struct {
	p        verbs.Player
	answered bool // a command
	Addr
}

// Args are the numeric arguments of a player command, by name.
type Args = map[string]uint64

// RemoteHost returns the number of the last host, which is the other end in a case that needs two
// nodes.
func RemoteHost(c *spec.C) int { return len(c.TB.Hosts()) - 1 }

// StartOtherProcess starts a process on a host with the given environment. It has nothing open.
func StartOtherProcess(c *spec.C, host int, env map[string]string) *OtherProcess {
	p, err := c.TB.Player(c.T, host, env)
	if err != nil {
		c.Errorf("start another process: %v", err)
	}
	return &OtherProcess{p: p}
}

// OpenOtherProcess starts a process on a host with the given environment and opens the device in
// it.
func OpenOtherProcess(c *spec.C, host int, env map[string]string) *OtherProcess {
	return openOtherProcess(c, host, env, nil)
}

// OpenIPv6 is Open for connections by the GID of an IPv6 address.
func OpenIPv6(c *spec.C) *Env {
	e := Open(c)
	gid, err := player.PickIPv6(c.T, e.Ctx, uint32(e.Port))
	ok(c, "choose a GID", err)
	e.GID, e.LocalAddr = gid, Addr{GID: gid.GID}
	return e
}

// OpenIPv4 is Open for connections by the GID of an IPv4 address.
func OpenIPv4(c *spec.C, ip netip.Addr) *Env {
	e := Open(c)
	gid, err := player.PickIPv4(ipv4Number(ip))(c.T, e.Ctx, uint32(e.Port))
	ok(c, "choose a GID", err)
	e.GID, e.LocalAddr = gid, Addr{GID: gid.GID}
	return e
}

// OpenOtherProcessIPv4 is OpenOtherProcess for connections by the GID of an IPv4 address.
func OpenOtherProcessIPv4(c *spec.C, host int, ip netip.Addr) *OtherProcess {
	return openOtherProcess(c, host, nil, Args{"ipv4": uint64(ipv4Number(ip))})
}

// ipv4Number is an IPv4 address as a number, its first byte the most significant one.
func ipv4Number(ip netip.Addr) uint32 {
	b := ip.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// OpenOtherProcessIPv6 is OpenOtherProcess for connections by the GID of an IPv6 address.
func OpenOtherProcessIPv6(c *spec.C, host int) *OtherProcess {
	return openOtherProcess(c, host, nil, Args{"ipv6": 1})
}

func openOtherProcess(c *spec.C, host int, env map[string]string, args Args) *OtherProcess {
	o := StartOtherProcess(c, host, env)
	r := o.Do(c, player.Open, args, nil)
	copy(o.GID[:], r.Data)
	o.LID = uint16(r.Values["lid"])
	return o
}

// Do runs a command in the process and fails the case unless it succeeds.
func (o *OtherProcess) Do(c *spec.C, op string, args Args, data []byte) verbs.PlayerReply {
	r, err := o.Try(c, op, args, data)
	if err != nil || r.Errno != 0 {
		c.Failf("%s in the other process: %s (errno %d, %v)", op, r.Text, r.Errno, err)
	}
	return r
}

// Try runs a command in the process, which may refuse it with an errno in the reply. The error is
// ErrProcessDied if the process did not survive the command. A process that dies before its first
// answer could not start, which says nothing about the device: the case ends without a verdict.
func (o *OtherProcess) Try(c *spec.C, op string, args Args, data []byte) (verbs.PlayerReply, error) {
	r, err := o.p.Do(c.T, verbs.PlayerCommand{Op: op, Args: args, Data: data})
	if errors.Is(err, verbs.ErrProcessDied) && !o.answered {
		c.Errorf("the other process ended before it answered its first command (%s): %s", op, r.Text)
	}
	o.answered = o.answered || err == nil
	return r, err
}

// DoErr runs a command as Try does and returns the errno of the reply as an error. It fails the
// case if the process dies.
func (o *OtherProcess) DoErr(c *spec.C, op string, args Args, data []byte) (verbs.PlayerReply, error) {
	r, err := o.Try(c, op, args, data)
	ok(c, op+" in the other process", err)
	if r.Errno != 0 {
		return r, fmt.Errorf("%s: %w", r.Text, syscall.Errno(r.Errno))
	}
	return r, nil
}

// OpenUnprivileged is OpenOtherProcess on the first host, in a process that then gives up
// CAP_NET_RAW and CAP_IPC_LOCK and may lock only memlock bytes of memory.
func OpenUnprivileged(c *spec.C, memlock uint64) *OtherProcess {
	o := openOtherProcess(c, 0, nil, Args{"cqe": 16})
	o.Do(c, player.Drop, Args{"memlock": memlock}, nil)
	return o
}

// Kill ends the process as SIGKILL does.
func (o *OtherProcess) Kill(c *spec.C) { o.p.Kill(c.T) }

// OtherQP is a queue pair of the other process.
type OtherQP struct {
	Process *OtherProcess
	ID      uint64 // in the other process
	QPN     uint32
	Values  Args
}

// CreateQP creates a queue pair in the process; op is player.CreateQP or player.AllocTDQP.
func (o *OtherProcess) CreateQP(c *spec.C, op string, args Args) *OtherQP {
	v := o.Do(c, op, args, nil).Values
	return &OtherQP{o, v["qp"], uint32(v["qpn"]), v}
}

// Connect takes the QP to a state, usually RTS, with the attributes of opt and peer as its peer.
func (q *OtherQP) Connect(c *spec.C, peer Peer, opt Options, to verbs.QPState) {
	q.Process.Do(c, player.Connect, Args{"qp": q.ID, "to": uint64(to), "dest_qpn": uint64(peer.QPN), "dlid": uint64(peer.LID), "rq_psn": uint64(peer.PSN),
		"sq_psn": uint64(opt.PSN), "mtu": uint64(opt.MTU), "access": uint64(opt.Access), "timeout": uint64(opt.Timeout),
		"retry": uint64(opt.RetryCnt), "rnr": uint64(opt.RNRRetry), "rnr_timer": uint64(opt.MinRNRTimer),
		"rd": uint64(opt.RdAtomic), "dest_rd": uint64(opt.RdAtomic), "type": uint64(opt.Type), "qkey": QKey}, peer.GID[:])
}

// Peer returns the QP as the other end needs to know it; its requests begin at psn.
func (q *OtherQP) Peer(psn uint32) Peer { return Peer{q.QPN, q.Process.Addr, psn} }

// OtherBuffer is registered memory of the other process. Offsets are in bytes.
type OtherBuffer struct {
	Process *OtherProcess
	ID      uint64
	Addr    uint64
	RKey    uint32
	Len     int
}

// Buffer maps and registers n bytes in the process; pd 0 is its first PD.
func (o *OtherProcess) Buffer(c *spec.C, n int, access verbs.AccessFlags, pd uint64) *OtherBuffer {
	return o.buffer(c, n, Args{"len": uint64(n), "access": uint64(access), "pd": pd})
}

func (o *OtherProcess) buffer(c *spec.C, n int, a Args) *OtherBuffer {
	v := o.Do(c, player.RegBuffer, a, nil).Values
	return &OtherBuffer{o, v["buf"], v["addr"], uint32(v["rkey"]), n}
}

// PagedBuffer maps n bytes in the process and registers them for on-demand paging; a page is
// allocated when it is first touched.
func (o *OtherProcess) PagedBuffer(c *spec.C, n int, access verbs.AccessFlags) *OtherBuffer {
	return o.buffer(c, n, Args{"len": uint64(n), "access": uint64(access | verbs.AccessOnDemand), "lazy": 1})
}

// Get returns the n bytes at off.
func (b *OtherBuffer) Get(c *spec.C, off, n int) []byte {
	return b.Process.Do(c, player.ReadBuffer, Args{"buf": b.ID, "off": uint64(off), "len": uint64(n)}, nil).Data
}

// Set writes p at off.
func (b *OtherBuffer) Set(c *spec.C, off int, p []byte) {
	b.Process.Do(c, player.WriteBuffer, Args{"buf": b.ID, "off": uint64(off)}, p)
}

// WriteTo returns a signalled RDMA write to off in the buffer.
func (b *OtherBuffer) WriteTo(id uint64, off int, sges ...verbs.SGE) verbs.SendWR {
	return verbs.SendWR{ID: id, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: sges,
		RemoteAddr: b.Addr + uint64(off), RKey: b.RKey}
}

// AwaitStatuses has the process poll for n completions, at most for timeout, and returns the
// statuses that came.
func (o *OtherProcess) AwaitStatuses(c *spec.C, n int, timeout time.Duration) []verbs.WCStatus {
	v := o.Do(c, player.Wait, Args{"n": uint64(n), "timeout": uint64(timeout)}, nil).Values
	st := make([]verbs.WCStatus, v["n"])
	for i := range st {
		st[i] = verbs.WCStatus(v["status"+strconv.Itoa(i)])
	}
	return st
}

// Recv posts n receives, each of the whole buffer b.
func (q *OtherQP) Recv(c *spec.C, b *OtherBuffer, n int) {
	q.Process.Do(c, player.PostRecv, Args{"qp": q.ID, "buf": b.ID, "len": uint64(b.Len), "count": uint64(n)}, nil)
}

// ReadFrom returns a signalled RDMA read from off in the buffer.
func (b *OtherBuffer) ReadFrom(id uint64, off int, sges ...verbs.SGE) verbs.SendWR {
	w := b.WriteTo(id, off, sges...)
	w.Opcode = verbs.WRRDMARead
	return w
}

// FetchAdd returns a signalled fetch-and-add on the word at off.
func (b *OtherBuffer) FetchAdd(id uint64, off int, add uint64, sges ...verbs.SGE) verbs.SendWR {
	w := b.WriteTo(id, off, sges...)
	w.Opcode, w.CompareAdd = verbs.WRAtomicFetchAdd, add
	return w
}

// CmpSwap returns a signalled compare-and-swap on the word at off.
func (b *OtherBuffer) CmpSwap(id uint64, off int, compare, swap uint64, sges ...verbs.SGE) verbs.SendWR {
	w := b.WriteTo(id, off, sges...)
	w.Opcode, w.CompareAdd, w.Swap = verbs.WRAtomicCmpSwp, compare, swap
	return w
}

// SetWord writes v to the 8 bytes at off in the host's byte order.
func (b *OtherBuffer) SetWord(c *spec.C, off int, v uint64) { b.Set(c, off, HostWordBytes(v)) }

// ConnectOtherQPs connects two queue pairs of other processes to each other.
func ConnectOtherQPs(c *spec.C, a, b *OtherQP, o Options) {
	back := o
	back.PSN = o.NthPSN(0x1000)
	b.Connect(c, a.Peer(o.PSN), back, verbs.QPSRTS)
	a.Connect(c, b.Peer(back.PSN), o, verbs.QPSRTS)
}

// RemotePair creates a QP in this process and one in a process on RemoteHost, and connects them.
func (e *Env) RemotePair(c *spec.C, o Options) (*QP, *OtherQP) {
	return e.PairWith(c, OpenOtherProcess(c, RemoteHost(c), nil), o)
}

// WithLongTimeout returns options for a connection whose packets are counted. Where time is not
// exact, a response may take longer than the usual timeout of 67 ms, so the timeout becomes 1.07 s.
func WithLongTimeout(c *spec.C, o Options) Options {
	if !c.Has(ExactTime) {
		o.Timeout = 18
	}
	return o
}

// PairWith creates a QP in this process and one in another, and connects them.
func (e *Env) PairWith(c *spec.C, other *OtherProcess, o Options) (*QP, *OtherQP) {
	return e.PairWithModified(c, other, o, func(*verbs.QPAttr) {})
}

// PairWithModified is PairWith with change applied to the attributes of this process's QP before
// each step.
func (e *Env) PairWithModified(c *spec.C, other *OtherProcess, o Options, change func(a *verbs.QPAttr)) (*QP, *OtherQP) {
	a := e.CreateQP(c, o)
	b := other.CreateQP(c, player.CreateQP, Args{"type": uint64(o.Type)})
	back := o
	back.PSN = o.NthPSN(0x1000)
	b.Connect(c, a.Peer(), back, verbs.QPSRTS)
	for s := verbs.QPSInit; s <= verbs.QPSRTS; s++ {
		attr := a.AttrFor(b.Peer(back.PSN))
		attr.State = s
		change(&attr)
		ok(c, "modify_qp to "+s.String(), a.Modify(c.T, &attr, MaskFor(o.Type, s)))
	}
	return a, b
}
