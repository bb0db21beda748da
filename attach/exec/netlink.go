//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/nldev"
	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/attach/exec/tree"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// A machine without RDMA has no sockets of NETLINK_RDMA. A program that asks for one gets a netlink
// socket of another protocol, NETLINK_USERSOCK, which processes use among themselves. What it then
// sends to the kernel is handed over by the filter and answered from a socket of this process;
// receiving, polling and closing are the kernel's own affair.

// Descriptors of these sockets, by which the filter knows sendmsg on them: it cannot look at a
// message. The numbers end where select(2) and the usual limit of descriptors do.
const (
	firstNetlinkFD = 992
	endNetlinkFD   = 1024
)

const (
	netlinkMark        = 6                // SO_PRIORITY of these sockets, which marks them
	netlinkBuffer      = 4 << 20          // for answers that wait to be read, as far as the machine allows
	netlinkRequest     = 64 << 10         // most bytes of a request
	netlinkKept        = 64 << 20         // bytes of answers that wait for the readers of all sockets, beside those of one request
	netlinkSendTimeout = 5 * time.Second  // for which a reader whose buffer is full is waited for
	netlinkPause       = time.Millisecond // between two tries
	sockaddrSize       = uint32(unix.SizeofSockaddrNetlink)
)

// netlinkRules hand over what a program sends to the kernel by these sockets.
func netlinkRules() []seccomp.Rule {
	return []seccomp.Rule{
		{Nr: unix.SYS_SOCKET, Tests: []seccomp.Test{{Arg: 0, Value: unix.AF_NETLINK}, {Arg: 2, Value: unix.NETLINK_RDMA}}, Ret: seccomp.Notify},
		{Nr: unix.SYS_SENDTO, Tests: []seccomp.Test{
			{Arg: 0, Op: seccomp.AtLeast, Value: firstNetlinkFD}, {Arg: 0, Op: seccomp.Below, Value: endNetlinkFD}}, Ret: seccomp.Notify},
		{Nr: unix.SYS_SENDMSG, Tests: []seccomp.Test{
			{Arg: 0, Op: seccomp.AtLeast, Value: firstNetlinkFD}, {Arg: 0, Op: seccomp.Below, Value: endNetlinkFD}}, Ret: seccomp.Notify},
	}
}

// netlinkServer answers what programs ask by these sockets.
type netlinkServer struct {
	nldev.Server
	socket int

	mu      sync.Mutex
	waiting map[uint32]*netlinkWaiting // answers for which a reader's buffer has no room yet, by its address
	kept    int                        // bytes of them
	closed  bool
}

// netlinkWaiting is what is left of an answer.
type netlinkWaiting struct {
	rest  [][]byte
	sent  int       // bytes of the last try
	since time.Time // of the last datagram that went
}

func newNetlinkServer(s *session) (*netlinkServer, error) {
	n := &netlinkServer{waiting: map[uint32]*netlinkWaiting{}}
	var err error
	if n.socket, err = answering(); err != nil {
		return nil, err
	}
	n.PID = func(p *kernel.Process) int { return s.procs.number(p) }
	n.CM = s.m.cm
	n.CMChardev = tree.ChannelMajor<<8 | tree.ChannelMinor
	for k, d := range s.m.devs { // without a network of its own a port has no interface: none of the host's belongs to it
		x := nldev.Device{
			Name: d.name, Kern: d.kern, Attr: d.attr, Ports: d.ports, Chardev: tree.Major<<8 | uint64(tree.FirstMinor+k), // huge_encode_dev
			ChardevName:  fmt.Sprintf("uverbs%d", k),
			SubnetPrefix: d.subnetPrefix,
		}
		if s.m.ownNetwork {
			i := s.m.ownInterfaces()[k]
			x.NetDevIndex, x.NetDevName = uint32(i.Index), i.Name
		}
		n.Devices = append(n.Devices, x)
	}
	return n, nil
}

// answering is a socket from which answers come.
func answering() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_USERSOCK)
	if err != nil {
		return -1, fmt.Errorf("netlink socket: %w", err)
	}
	if err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("netlink socket: %w", err)
	}
	return fd, nil
}

func (n *netlinkServer) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	_ = unix.Close(n.socket)
}

// number is the number of a process, 0 of one that is not known or has ended.
func (t *processes) number(p *kernel.Process) int {
	for pid, x := range t.byID {
		if x.kern == p && x.mem.Alive() {
			return pid
		}
	}
	return 0
}

// openNetlink answers socket(AF_NETLINK, ..., NETLINK_RDMA): EPROTONOSUPPORT, as from a kernel
// without RDMA, where it cannot be made.
func (n *notifier) openNetlink(x *seccomp.Notif) {
	n.askedForDevices.Store(true)
	at, err := freeNetlinkFD(int(x.PID))
	if err != nil {
		_ = n.l.Fail(x.ID, unix.EPROTONOSUPPORT)
		return
	}
	typ := int(x.Args[1])
	fd, err := unix.Socket(unix.AF_NETLINK, typ|unix.SOCK_CLOEXEC, unix.NETLINK_USERSOCK)
	if err != nil {
		_ = n.l.Fail(x.ID, errno(err))
		return
	}
	defer unix.Close(fd)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, netlinkBuffer)
	if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, netlinkMark); err == nil {
		err = n.l.ReplaceFD(x.ID, fd, at, typ&unix.SOCK_CLOEXEC != 0)
	}
	if err != nil {
		_ = n.l.Fail(x.ID, errno(err))
		return
	}
	_ = n.l.Return(x.ID, int64(at))
}

// freeNetlinkFD is a number that a thread has no descriptor of yet.
func freeNetlinkFD(tid int) (int, error) {
	return freeFD(tid, firstNetlinkFD, endNetlinkFD, 0)
}

// sendNetlink answers sendto and sendmsg: what goes to the kernel by one of these sockets, and
// nothing else.
func (n *notifier) sendNetlink(x *seccomp.Notif) {
	tid := int(x.PID)
	port, ok := netlinkPort(tid, int(int32(x.Args[0])))
	if !ok {
		_ = n.l.Continue(x.ID)
		return
	}
	n.s.eng.do(func() {
		// What a process had that has ended is not listed.
		n.s.files.reap()
		n.s.channels.reap()
		proc, err := n.s.procs.ofThread(tid)
		if err != nil {
			_ = n.l.Fail(x.ID, errno(err))
			return
		}
		r, err := readNetlink(proc, x)
		switch {
		case err != nil:
			_ = n.l.Fail(x.ID, errno(err))
		case r.to != 0:
			_ = n.l.Continue(x.ID)
		case !n.l.Valid(x.ID):
		default:
			if err := n.s.netlink.ask(r.data, port, hasCapability(tid, unix.CAP_NET_ADMIN)); err != nil {
				_ = n.l.Fail(x.ID, errno(err))
				return
			}
			_ = n.l.Done(x.ID, int64(len(r.data)))
		}
	})
}

// ask answers a request: EBUSY while answers to earlier ones of the same socket wait to be read, as
// a kernel answers a second dump, and ENOBUFS while too much waits for the readers of all sockets.
func (n *netlinkServer) ask(request []byte, port uint32, admin bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.waiting[port] != nil:
		return unix.EBUSY
	case n.kept > netlinkKept:
		return unix.ENOBUFS
	}
	w := &netlinkWaiting{rest: n.Answer(request, port, admin), since: time.Now()}
	if n.send(port, w) {
		return nil
	}
	for _, b := range w.rest {
		n.kept += len(b)
	}
	if len(n.waiting) == 0 {
		go n.sendLater()
	}
	n.waiting[port] = w
	return nil
}

// send sends what there is room for, and says whether that was the end.
func (n *netlinkServer) send(port uint32, w *netlinkWaiting) (done bool) {
	to := &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: port}
	for len(w.rest) > 0 {
		err := unix.Sendto(n.socket, w.rest[0], unix.MSG_DONTWAIT, to)
		if errors.Is(err, unix.EAGAIN) {
			return false
		}
		if err != nil {
			return true // the socket is gone
		}
		w.since, w.sent, w.rest = time.Now(), w.sent+len(w.rest[0]), w.rest[1:]
	}
	return true
}

// sendLater sends the rest to readers that take their time, until nothing waits. All share one
// thread, however many they are.
func (n *netlinkServer) sendLater() {
	for {
		time.Sleep(netlinkPause)
		n.mu.Lock()
		for port, w := range n.waiting {
			w.sent = 0
			done := n.send(port, w)
			n.kept -= w.sent
			if done || time.Since(w.since) > netlinkSendTimeout {
				for _, b := range w.rest {
					n.kept -= len(b)
				}
				delete(n.waiting, port)
			}
		}
		done := len(n.waiting) == 0 || n.closed
		n.mu.Unlock()
		if done {
			return
		}
	}
}

// netlinkPort is the address of a thread's socket, if it is one of these.
func netlinkPort(tid, fd int) (port uint32, ok bool) {
	pid, err := threadGroup(tid)
	if err != nil {
		return 0, false
	}
	p, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(p)
	s, err := unix.PidfdGetfd(p, fd, 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(s)
	for option, want := range map[int]int{unix.SO_DOMAIN: unix.AF_NETLINK, unix.SO_PROTOCOL: unix.NETLINK_USERSOCK, unix.SO_PRIORITY: netlinkMark} {
		if v, err := unix.GetsockoptInt(s, unix.SOL_SOCKET, option); err != nil || v != want {
			return 0, false
		}
	}
	for range 2 {
		if a, err := unix.Getsockname(s); err != nil {
			return 0, false
		} else if a, isNetlink := a.(*unix.SockaddrNetlink); isNetlink && a.Pid != 0 {
			return a.Pid, true
		}
		// The kernel would give it an address when it sends.
		if unix.Bind(s, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
			return 0, false
		}
	}
	return 0, false
}

// netlinkSend is what a program sends, and to whom; 0 is the kernel.
type netlinkSend struct {
	to   uint32
	data []byte
}

// readNetlink reads a request from a program's memory: EFAULT, EINVAL or EMSGSIZE where it cannot
// be one.
func readNetlink(p *process, x *seccomp.Notif) (r netlinkSend, err error) {
	h := msghdr{name: x.Args[4], namelen: uint32(x.Args[5])}
	iov := []iovec{{base: x.Args[1], n: x.Args[2]}}
	if x.Nr == unix.SYS_SENDMSG {
		if err := readObject(p, x.Args[1], &h); err != nil {
			return r, err
		}
		if iov, err = readVector(p, &h); err != nil {
			return r, err
		}
	}
	if h.name != 0 && h.namelen >= sockaddrSize {
		var a unix.RawSockaddrNetlink
		if err := readObject(p, h.name, &a); err != nil {
			return r, err
		}
		if a.Family != unix.AF_NETLINK {
			return r, unix.EINVAL
		}
		r.to = a.Pid
	} else if h.name != 0 {
		return r, unix.EINVAL
	}
	for _, v := range iov {
		if v.n > netlinkRequest-uint64(len(r.data)) {
			return r, unix.EMSGSIZE
		}
		part := make([]byte, v.n)
		if err := p.mem.ReadAt(mem.VA(v.base), part); err != nil {
			return r, unix.EFAULT
		}
		r.data = append(r.data, part...)
	}
	return r, nil
}

// iovec and msghdr are the structures of those names, with addresses of another process.
type (
	iovec  struct{ base, n uint64 }
	msghdr struct {
		name        uint64
		namelen     uint32
		iov, iovlen uint64
		_           [3]uint64 // control messages, their length, and flags
	}
)

const maxVector = 1024 // UIO_MAXIOV

// readVector reads the list of parts of a message.
func readVector(p *process, h *msghdr) ([]iovec, error) {
	if h.iovlen > maxVector {
		return nil, unix.EMSGSIZE
	}
	iov := make([]iovec, h.iovlen)
	for i := range iov {
		if err := readObject(p, h.iov+uint64(i)*uint64(unsafe.Sizeof(iov[0])), &iov[i]); err != nil {
			return nil, err
		}
	}
	return iov, nil
}

// readObject reads a structure of the kernel's ABI.
func readObject[T any](p *process, at uint64, v *T) error {
	if p.mem.ReadAt(mem.VA(at), unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))) != nil {
		return unix.EFAULT
	}
	return nil
}
