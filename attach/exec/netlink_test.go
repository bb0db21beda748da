//go:build linux && amd64

package exec

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/uapi"
)

// TestRDMATool has iproute2's rdma show devices, links, objects and statistics while a program has
// some.
func TestRDMATool(t *testing.T) {
	needs(t, "rdma", "ibv_rc_pingpong")
	each(t, func(t *testing.T, u user) {
		out, status := u.session(t, "-devices", "2", "--", "bash", "-c", `ibv_rc_pingpong -g 0 -o -P >/dev/null & server=$!
			for i in $(seq 3000); do rdma res show qp | grep -q INIT && break; sleep 0.1; done
			echo "server $server"; rdma dev; rdma link; rdma system; rdma res; rdma res show qp; rdma res show mr; rdma res show cq; rdma res show pd; rdma res show ctx
			rdma -dd res show mr mrn 0; rdma statistic show mr; rdma statistic show link mlx5_1/1
			rdma dev set mlx5_0 name other || echo "refused"
			kill $server`)
		server, _, _ := strings.Cut(out[strings.Index(out, "server ")+len("server "):], "\n")
		owner := fmt.Sprintf("pid %s comm ibv_rc_pingpong", server)
		for _, want := range []string{
			"0: mlx5_0: node_type ca fw ", "1: mlx5_1: node_type ca fw ", "link mlx5_0/1 state ACTIVE physical_state LINK_UP", "netns shared copy-on-fork on",
			"0: mlx5_0: pd 1 cq 1 qp 1 cm_id 0 mr 1 ctx 1 srq 0", "1: mlx5_1: pd 0 cq 0 qp 0 cm_id 0 mr 0 ctx 0 srq 0",
			"type RC state INIT rq-psn 0 sq-psn 0 path-mig-state MIGRATED pdn 0 " + owner, "mrlen 4096 pdn 0 " + owner,
			"cqn 0 cqe 511 users 2 adaptive-moderation off ctxn", "pdn 0 users 2 ctxn", owner + " drv_odp explicit",
			"mrn 0 page_faults 0 page_invalidations 0 page_prefetch 1", "link mlx5_1/1 rx_write_requests 0 rx_read_requests 0", "refused",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q", want)
			}
		}
		for line := range strings.Lines(out) { // without a network of its own no interface belongs to an adapter
			if strings.HasPrefix(line, "link ") && strings.Contains(line, "netdev") {
				t.Errorf("an interface that is not the adapter's: %s", line)
			}
		}
		if hasKeys := strings.Contains(out, " rkey 0x"); hasKeys != (u.id == 0) {
			t.Errorf("keys are shown: %v", hasKeys)
		}
		if status != 0 && status != 128+int(unix.SIGTERM) || t.Failed() {
			t.Errorf("status %d:\n%s", status, out)
		}
	})
}

// TestNetlinkSocketsOfAProcess has one process open more sockets than there are numbers for: the
// last ones are refused as by a kernel without RDMA, those before work, and other netlink sockets
// are as they were.
func TestNetlinkSocketsOfAProcess(t *testing.T) {
	needs(t, "gcc")
	u := users()[0]
	out, status := u.session(t, "--", compile(t, "netlink"))
	if want := fmt.Sprintf("%d sockets, then Protocol not supported\n", endNetlinkFD-firstNetlinkFD); status != 0 || !strings.Contains(out, want) {
		t.Errorf("status %d, no %q:\n%s", status, want, out)
	}
}

// TestLinksNameNoInterfaceOfTheHost has the ports of adapters without a network of their own name
// no interface, whatever the host has.
func TestLinksNameNoInterfaceOfTheHost(t *testing.T) {
	_, n, _ := netlinkRig(t)
	for _, d := range n.Devices {
		if d.NetDevName != "" || d.NetDevIndex != 0 {
			t.Errorf("%s names interface %d, %q", d.Name, d.NetDevIndex, d.NetDevName)
		}
	}
}

// netlinkRig is a machine of two adapters, and what answers for them.
func netlinkRig(t testing.TB) (*machine, *netlinkServer, *kernel.Process) {
	p, err := profile.Load(profile.Default)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMachine(&Config{Profile: p, Devices: 2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{m: m, procs: newProcesses(m, &Config{})}
	for _, d := range m.devs {
		if _, err := m.describe(d, hostFiles()); err != nil {
			t.Fatal(err)
		}
	}
	n, err := newNetlinkServer(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.close()
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
	n.PID = func(*kernel.Process) int { return 77 }
	return m, n, &kernel.Process{Name: "test", Space: mem.NewSpace(m.mem), IPCLock: true}
}

// ask makes a request; its attributes are numbers.
func ask(cmd int, flags uint16, attrs map[uint16]uint32) []byte {
	var w uapi.NetlinkWriter
	w.Begin(uapi.NetlinkHeader{Type: uapi.NetlinkType(cmd), Flags: flags | uapi.NetlinkRequest, Seq: 5})
	w.Nest(0, func() {}) // padding, as libraries may send
	for a, v := range attrs {
		w.U32(a, v)
	}
	return w.B
}

// outcome is the errno of an answer, and how many objects it holds.
func outcome(t testing.TB, out [][]byte) (errno, objects int) {
	errno = -1
	for i, b := range out {
		if len(b) > 4096 {
			t.Errorf("datagram %d has %d bytes", i, len(b))
		}
		for h, payload := range uapi.NetlinkMessages(b) {
			if h.Seq != 5 || h.PID != 99 {
				t.Errorf("an answer for request %d of %d", h.Seq, h.PID)
			}
			if h.Type < uapi.NetlinkMinType {
				a, _ := uapi.ParseNetlinkAttrs(append([]byte{8, 0, 1, 0}, payload[:4]...))
				v, _ := a.U32(1)
				errno = int(-int32(v))
				continue
			}
			a, ok := uapi.ParseNetlinkAttrs(payload)
			if !ok {
				t.Fatalf("attributes that do not fit: %x", payload)
			}
			for _, table := range []uint16{uapi.NLAttrPD, uapi.NLAttrMR, uapi.NLAttrQP, uapi.NLAttrCQ, uapi.NLAttrCtx, uapi.NLAttrSRQ} {
				for entries := a[table]; len(entries) > 0; objects++ {
					n := (int(entries[0]) | int(entries[1])<<8 + 3) &^ 3
					entries = entries[min(n, len(entries)):]
				}
			}
		}
	}
	return errno, objects
}

// TestNetlinkAnswers asks for what there is, what there is not, and what nobody may.
func TestNetlinkAnswers(t *testing.T) {
	const many = 300
	m, s, p := netlinkRig(t)
	u, _, err := m.devs[0].kern.AllocUcontext(kernel.Caller{}, p, kernel.UcontextReq{TotalBFRegs: 16, LowLatBFRegs: 4})
	if err != nil {
		t.Fatal(err)
	}
	for range many {
		if _, _, err := u.AllocPD(kernel.Caller{}); err != nil {
			t.Fatal(err)
		}
	}
	const dump, ack = uapi.NetlinkDump, uapi.NetlinkAck
	dev := func(n uint32) map[uint16]uint32 { return map[uint16]uint32{uapi.NLAttrDevIndex: n} }
	with := func(a map[uint16]uint32, k uint16, v uint32) map[uint16]uint32 { a[k] = v; return a }
	for _, c := range []struct {
		what           string
		cmd            int
		flags          uint16
		attrs          map[uint16]uint32
		admin          bool
		errno, objects int
	}{
		{"all PDs", uapi.NLDevResPDGet, dump, dev(0), false, 0, many},
		{"those of the other device", uapi.NLDevResPDGet, dump, dev(1), false, 0, 0},
		{"of a device that there is not", uapi.NLDevResPDGet, dump, dev(2), false, 22, 0},
		{"of a device with a huge number", uapi.NLDevResPDGet, dump, dev(1 << 31), false, 22, 0},
		{"of no device", uapi.NLDevResPDGet, dump, nil, false, 22, 0},
		{"the last PD", uapi.NLDevResPDGet, ack, with(dev(0), uapi.NLAttrPDN, many-1), false, 0, 0},
		{"one behind the last", uapi.NLDevResPDGet, ack, with(dev(0), uapi.NLAttrPDN, many), false, 2, 0},
		{"a PD of a port", uapi.NLDevResPDGet, ack, with(with(dev(0), uapi.NLAttrPDN, 1), uapi.NLAttrPortIndex, 1), false, 22, 0},
		{"a QP without a port", uapi.NLDevResQPGet, ack, with(dev(0), uapi.NLAttrLQPN, 1), false, 22, 0},
		{"port 2 of 1", uapi.NLDevPortGet, ack, with(dev(0), uapi.NLAttrPortIndex, 2), false, 22, 0},
		{"port 0", uapi.NLDevPortGet, ack, with(dev(0), uapi.NLAttrPortIndex, 0), false, 22, 0},
		{"port 1", uapi.NLDevPortGet, ack, with(dev(0), uapi.NLAttrPortIndex, 1), false, 0, 0},
		{"connections", uapi.NLDevResCMIDGet, dump, dev(0), false, 0, 0},
		{"a dump of what has none", uapi.NLDevSysGet, dump, nil, false, 22, 0},
		{"an unknown command", 999, ack, nil, true, 22, 0},
		{"a change by anybody", uapi.NLDevSysSet, ack, nil, false, 1, 0},
		{"a change by root", uapi.NLDevSysSet, ack, nil, true, 95, 0},
		{"statistics of QPs", uapi.NLDevStatGet, dump, with(dev(0), uapi.NLAttrStatRes, uapi.NLAttrQP), false, 0, 0},
		{"statistics of PDs", uapi.NLDevStatGet, dump, with(dev(0), uapi.NLAttrStatRes, uapi.NLAttrPD), false, 22, 0},
		{"the device file of a port", uapi.NLDevGetChardev, ack, with(dev(0), uapi.NLAttrPortIndex, 1), false, 22, 0},
	} {
		errno, objects := outcome(t, s.Answer(ask(c.cmd, c.flags, c.attrs), 99, c.admin))
		if errno != c.errno || objects != c.objects {
			t.Errorf("%s: errno %d and %d objects, want %d and %d", c.what, errno, objects, c.errno, c.objects)
		}
	}
	if out := s.Answer(ask(uapi.NLDevSysGet, 0, nil), 99, false); len(out) != 1 {
		t.Errorf("%d datagrams for a request without an acknowledgement", len(out))
	}
	u.Close(kernel.Caller{})
	if _, n := outcome(t, s.Answer(ask(uapi.NLDevResPDGet, uapi.NetlinkDump, dev(0)), 99, false)); n != 0 {
		t.Errorf("%d PDs of a context that is closed", n)
	}
}

// FuzzNetlink: whatever a program sends, the answers are messages, and of a size that a reader has
// room for.
func FuzzNetlink(f *testing.F) {
	m, s, p := netlinkRig(f)
	u, _, err := m.devs[0].kern.AllocUcontext(kernel.Caller{}, p, kernel.UcontextReq{TotalBFRegs: 16, LowLatBFRegs: 4})
	if err != nil {
		f.Fatal(err)
	}
	if _, _, err := u.AllocPD(kernel.Caller{}); err != nil {
		f.Fatal(err)
	}
	for cmd := range 25 {
		f.Add(ask(cmd, uapi.NetlinkDump, map[uint16]uint32{uapi.NLAttrDevIndex: 0}), true)
		f.Add(ask(cmd, uapi.NetlinkAck, map[uint16]uint32{uapi.NLAttrDevIndex: 1, uapi.NLAttrPortIndex: 1}), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, admin bool) {
		for _, out := range s.Answer(b, 99, admin) {
			n := 0
			for h := range uapi.NetlinkMessages(out) {
				n += int(h.Len)
			}
			if n != len(out) {
				t.Errorf("%d of %d bytes are messages", n, len(out))
			}
		}
	})
}

// TestNetlinkAnswersThatNobodyReads has a program ask and never read: that takes no threads and no
// descriptors of the session, the program is told, and what it reads later is whole. Dumps in one
// datagram are as a kernel has them: one at a time.
func TestNetlinkAnswersThatNobodyReads(t *testing.T) {
	_, s, _ := netlinkRig(t)
	reader, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_USERSOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(reader)
	if err := unix.Bind(reader, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptTimeval(reader, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60}); err != nil {
		t.Fatal(err)
	}
	a, err := unix.Getsockname(reader)
	if err != nil {
		t.Fatal(err)
	}
	port := a.(*unix.SockaddrNetlink).Pid
	descriptors := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	const requests = 3000
	request := ask(uapi.NLDevGet, uapi.NetlinkDump, nil)
	files, routines := descriptors(), runtime.NumGoroutine()
	answered, refused := 0, 0
	for range requests {
		switch err := s.ask(request, port, false); {
		case err == nil:
			answered++
		case errors.Is(err, unix.EBUSY):
			refused++
		default:
			t.Fatal(err)
		}
	}
	if n, m := descriptors()-files, runtime.NumGoroutine()-routines; n > 2 || m > 2 {
		t.Errorf("%d descriptors and %d goroutines for answers that nobody reads", n, m)
	}
	if refused == 0 {
		t.Errorf("%d requests without a reader, none refused", requests)
	}
	b, done := make([]byte, 8192), 0
	for done < answered {
		n, _, err := unix.Recvfrom(reader, b, 0)
		if err != nil {
			t.Fatalf("%d of %d dumps are whole: %v", done, answered, err)
		}
		for h := range uapi.NetlinkMessages(b[:n]) {
			if h.Type == unix.NLMSG_DONE {
				done++
			}
		}
	}
	two := append(bytes.Clone(request), request...)
	var errnos []int
	for _, out := range s.Answer(two, 99, false) {
		if errno, _ := outcome(t, [][]byte{out}); errno >= 0 {
			errnos = append(errnos, errno)
		}
	}
	if !slices.Equal(errnos, []int{0, int(unix.EBUSY)}) && !slices.Equal(errnos, []int{int(unix.EBUSY), 0}) {
		t.Errorf("two dumps in one datagram end with %v", errnos)
	}
}
