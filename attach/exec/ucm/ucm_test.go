//go:build linux

package ucm

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// nowhere is an address that no program has memory at.
const nowhere = 8

// TestRefusedCommands writes what ucma_write and the commands behind it refuse.
func TestRefusedCommands(t *testing.T) {
	r := newRig(t, newMachine(t))
	defer r.closeAll()
	f, other := r.open(3), r.open(4)
	id := r.create(f, spaceTCP, 1)
	body := func(size int, set func(b []byte)) []byte {
		b := make([]byte, size)
		set(b)
		return b
	}
	for _, c := range []struct {
		what   string
		file   *File
		number uint32
		body   []byte
		out    int
		want   syscall.Errno
	}{
		{"a command beyond the table", f, joinMcast + 1, make([]byte, 24), 4, syscall.EINVAL},
		{"the command without a function", f, getOption, make([]byte, 24), 4, syscall.ENOSYS},
		{"no room for the answer", f, createID, make([]byte, uapi.CMCreateIDSize), 3, syscall.ENOSPC},
		{"an unknown port space", f, createID, make([]byte, uapi.CMCreateIDSize), 4, syscall.EINVAL},
		{"an answer into nowhere", f, createID, body(uapi.CMCreateIDSize, func(b []byte) {
			uapi.CMCreateID(b).SetPortSpace(spaceTCP)
			uapi.CMCreateID(b).SetResponse(nowhere)
		}), 4, syscall.EFAULT},
		{"an unknown id", f, listen, body(uapi.CMListenSize, func(b []byte) { uapi.CMListen(b).SetID(999) }), 0, syscall.ENOENT},
		{"an id of another channel", other, listen, body(uapi.CMListenSize, func(b []byte) { uapi.CMListen(b).SetID(id) }), 0, syscall.EINVAL},
		{"a reserved field", f, bind, body(uapi.CMBindSize, func(b []byte) {
			uapi.CMBind(b).SetReserved(1)
			uapi.CMBind(b).SetAddrSize(uint16(put(uapi.CMBind(b).Addr(), r.m.ip, 1)))
		}), 0, syscall.EINVAL},
		{"an address of the wrong length", f, bind, body(uapi.CMBindSize, func(b []byte) {
			put(uapi.CMBind(b).Addr(), r.m.ip, 0)
			uapi.CMBind(b).SetAddrSize(uapi.SockaddrIn6Size)
		}), 0, syscall.EINVAL},
		{"an address of AF_IB", f, bind, body(uapi.CMBindSize, func(b []byte) {
			putGID(uapi.CMBind(b).Addr(), verbs.GID{}, 0, 0)
			uapi.CMBind(b).SetAddrSize(uapi.SockaddrIBSize)
		}), 0, syscall.EAFNOSUPPORT},
		{"no address", f, resolveIP, make([]byte, uapi.CMResolveIPSize), 0, syscall.EINVAL},
		{"a route before the address", f, resolveRoute, body(uapi.CMResolveRouteSize, func(b []byte) {
			uapi.CMResolveRoute(b).SetID(id)
			uapi.CMResolveRoute(b).SetTimeout(2000)
		}), 0, syscall.EINVAL},
		{"a connection without parameters", f, connect, body(uapi.CMConnectSize, func(b []byte) { uapi.CMConnect(b).SetID(id) }), 0, syscall.EINVAL},
		{"a reason that only the kernel gives", f, reject, body(uapi.CMRejectSize, func(b []byte) { uapi.CMReject(b).SetReason(8) }), 0, syscall.EINVAL},
		{"a state that no QP has", f, initQPAttr, body(uapi.CMInitQPAttrSize, func(b []byte) { uapi.CMInitQPAttr(b).SetQPState(7) }), uapi.CMQPAttrSize, syscall.EINVAL},
		{"an unknown query", f, query, body(uapi.CMQuerySize, func(b []byte) { uapi.CMQuery(b).SetOption(3) }), uapi.CMQueryAddrRespSize, syscall.ENOSYS},
		{"an option's value in nowhere", f, setOption, body(uapi.CMSetOptionSize, func(b []byte) {
			uapi.CMSetOption(b).SetLength(1)
			uapi.CMSetOption(b).SetValue(nowhere)
		}), 0, syscall.EFAULT},
		{"an option of a MiB", f, setOption, body(uapi.CMSetOptionSize, func(b []byte) { uapi.CMSetOption(b).SetLength(1 << 20) }), 0, syscall.EINVAL},
		{"flags of a join", f, joinMcast, body(uapi.CMJoinMcastSize, func(b []byte) {
			uapi.CMJoinMcast(b).SetAddrSize(uint16(put(uapi.CMJoinMcast(b).Addr(), netip.AddrFrom4([4]byte{239, 1, 1, 1}), 0)))
			uapi.CMJoinMcast(b).SetFlags(2)
		}), 4, syscall.EINVAL},
		{"migration from no descriptor", f, migrateID, body(uapi.CMMigrateIDSize, func(b []byte) { uapi.CMMigrateID(b).SetFD(77) }), 4, syscall.ENOENT},
		{"an event with too little room", f, getEvent, make([]byte, uapi.CMGetEventSize), uapi.CMEventSize - 13, syscall.ENOSPC},
	} {
		if e := r.write(c.file, c.number, c.body, c.out); e != c.want {
			t.Errorf("%s: %v, want %v", c.what, e, c.want)
		}
	}
	if len(f.counted) != 1 || r.quota.Take(1<<10-1) != nil {
		t.Errorf("%d objects are counted, want 1", len(f.counted))
	}
}

// TestHeaders writes what is shorter than its header says, or in nowhere.
func TestHeaders(t *testing.T) {
	r := newRig(t, newMachine(t))
	defer r.closeAll()
	f := r.open(3)
	addr, b := r.Alloc(uapi.CMHeaderSize)
	uapi.CMHeader(b).SetIn(1)
	for _, c := range []struct {
		addr, length uint64
		want         syscall.Errno
	}{{addr, uapi.CMHeaderSize - 1, syscall.EINVAL}, {nowhere, 100, syscall.EFAULT}, {addr, uapi.CMHeaderSize, syscall.EINVAL}} {
		if e, _ := f.Write(r, c.addr, c.length); e != c.want {
			t.Errorf("%d bytes at %#x: %v, want %v", c.length, c.addr, e, c.want)
		}
	}
}

// TestQuotaOfIDs makes more ids than a process may have.
func TestQuotaOfIDs(t *testing.T) {
	r := newRig(t, newMachine(t))
	f := r.open(3)
	r.quota.Most = 3
	for range 3 {
		r.create(f, spaceTCP, 1)
	}
	b := make([]byte, uapi.CMCreateIDSize)
	uapi.CMCreateID(b).SetPortSpace(spaceTCP)
	if e := r.write(f, createID, b, 4); e != syscall.ENOMEM {
		t.Errorf("the fourth: %v, want ENOMEM", e)
	}
	r.closeAll()
	if err := r.quota.Take(3); err != nil {
		t.Errorf("after the close: %v", err)
	}
}

// TestEventIntoNowhere has an event taken to where it cannot be written: it stays.
func TestEventIntoNowhere(t *testing.T) {
	r := newRig(t, newMachine(t))
	defer r.closeAll()
	f := r.open(3)
	id := r.create(f, spaceTCP, 42)
	if _, err := r.try(f, getEvent, make([]byte, uapi.CMGetEventSize), uapi.CMEventSize); !errors.Is(err, ErrWait) {
		t.Fatalf("an empty channel: %v, want to wait", err)
	}
	r.resolve(f, id)
	for !f.Readable() {
		if err := r.m.eng.Run(r.m.eng.Next()); err != nil {
			t.Fatal(err)
		}
	}
	b := make([]byte, uapi.CMGetEventSize)
	uapi.CMGetEvent(b).SetResponse(nowhere)
	if e := r.write(f, getEvent, b, uapi.CMEventSize); e != syscall.EFAULT {
		t.Errorf("into nowhere: %v, want EFAULT", e)
	}
	if e := r.event(f); e.UID() != 42 || verbs.CMEventType(e.Event()) != verbs.CMAddrResolved {
		t.Errorf("event %d of %d", e.Event(), e.UID())
	}
}

// resolve asks for the machine's own address.
func (r *rig) resolve(f *File, id uint32) {
	r.Helper()
	r.answered(f, resolveIP, uapi.CMResolveIPSize, 0, func(b []byte, _ uint64) {
		c := uapi.CMResolveIP(b)
		c.SetID(id)
		c.SetTimeout(2000)
		put(c.Dst(), r.m.ip, 7174)
	})
}

// expect takes an event, which must be of a type.
func (r *rig) expect(f *File, want verbs.CMEventType) uapi.CMEvent {
	r.Helper()
	e := r.event(f)
	if got := verbs.CMEventType(e.Event()); got != want || e.Status() != 0 {
		r.Fatalf("event %v, status %d, want %v", got, int32(e.Status()), want)
	}
	return e
}

// TestConnection makes a connection by the bytes of the ABI, in the order of librdmacm.
func TestConnection(t *testing.T) {
	r := newRig(t, newMachine(t))
	server, client, moved := r.open(3), r.open(4), r.open(5)
	l := r.create(server, spaceTCP, 10)
	r.answered(server, bind, uapi.CMBindSize, 0, func(b []byte, _ uint64) {
		uapi.CMBind(b).SetID(l)
		uapi.CMBind(b).SetAddrSize(uint16(put(uapi.CMBind(b).Addr(), netip.IPv4Unspecified(), 7174)))
	})
	r.answered(server, listen, uapi.CMListenSize, 0, func(b []byte, _ uint64) {
		uapi.CMListen(b).SetID(l)
		uapi.CMListen(b).SetBacklog(10)
	})

	c := r.create(client, spaceTCP, 20)
	r.resolve(client, c)
	r.expect(client, verbs.CMAddrResolved)
	a := uapi.CMQueryAddrResp(r.query(client, c, queryAddr, uapi.CMQueryAddrRespSize))
	if a.NodeGUID() != r.m.kern.NodeGUID() || a.Port() != 1 || a.Device() != 7 || a.SrcSize() != uapi.SockaddrInSize || a.DstSize() != uapi.SockaddrInSize {
		t.Errorf("addresses: %x", []byte(a))
	}
	if d := uapi.SockaddrIn(a.Dst()); netip.AddrFrom4([4]byte(d.Addr())) != r.m.ip || d.Port() != 7174 {
		t.Errorf("destination: %x", []byte(d))
	}
	r.answered(client, resolveRoute, uapi.CMResolveRouteSize, 0, func(b []byte, _ uint64) {
		uapi.CMResolveRoute(b).SetID(c)
		uapi.CMResolveRoute(b).SetTimeout(2000)
	})
	r.expect(client, verbs.CMRouteResolved)
	p := r.query(client, c, queryPath, uapi.CMQueryPathRespSize+uapi.CMPathSize)
	if uapi.CMQueryPathResp(p).Paths() != 1 || uapi.CMPath(p[uapi.CMQueryPathRespSize:]).Flags() != pathFlags {
		t.Errorf("paths: %x", p)
	}
	route := uapi.CMQueryRouteResp(r.answered(client, queryRoute, uapi.CMQuerySize, uapi.CMQueryRouteRespSize, func(b []byte, at uint64) {
		uapi.CMQuery(b).SetResponse(at)
		uapi.CMQuery(b).SetID(c)
	}))
	if u := uapi.CMUserPath(route.Paths()); route.NumPaths() != 1 || u.PKey() != 0xffff || u.HopLimit() != 64 {
		t.Errorf("route: %x", []byte(route))
	}

	connectTo(r, client, c, "hello")
	request := r.expect(server, verbs.CMConnectRequest)
	cp := uapi.CMConnParam(request.Param())
	if request.UID() != 10 || string(cp.PrivateData()[:5]) != "hello" || cp.PrivateDataLen() != 56 || cp.QPN() != 0x123 || cp.ResponderResources() != 2 || cp.InitiatorDepth() != 1 {
		t.Errorf("request: uid %d, %x", request.UID(), []byte(cp))
	}
	if n := uapi.CMEventsReported(r.answered(moved, migrateID, uapi.CMMigrateIDSize, 4, func(b []byte, at uint64) {
		uapi.CMMigrateID(b).SetResponse(at)
		uapi.CMMigrateID(b).SetID(request.ID())
		uapi.CMMigrateID(b).SetFD(3)
	})); n.Events() != 0 {
		t.Errorf("%d events at the migration", n.Events())
	}
	r.answered(moved, accept, uapi.CMAcceptSize, 0, func(b []byte, _ uint64) {
		q := uapi.CMAccept(b)
		q.SetID(request.ID())
		q.SetUID(30)
		uapi.CMConnParam(q.Param()).SetValid(1)
		uapi.CMConnParam(q.Param()).SetQPN(0x456)
	})
	response := r.expect(client, verbs.CMConnectResponse)
	if q := uapi.CMConnParam(response.Param()); response.UID() != 20 || q.QPN() != 0x456 {
		t.Errorf("response: %x", []byte(response))
	}
	attr := uapi.CMQPAttr(r.answered(client, initQPAttr, uapi.CMInitQPAttrSize, uapi.CMQPAttrSize, func(b []byte, at uint64) {
		uapi.CMInitQPAttr(b).SetResponse(at)
		uapi.CMInitQPAttr(b).SetID(c)
		uapi.CMInitQPAttr(b).SetQPState(uint32(verbs.QPSRTR))
	}))
	if attr.Mask() != 0x129181 || attr.DestQPN() != 0x456 || uapi.AHAttr(attr.AH()).IsGlobal() != 1 {
		t.Errorf("attributes for RTR: mask %#x, QPN %#x", attr.Mask(), attr.DestQPN())
	}
	r.answered(client, accept, uapi.CMAcceptSize, 0, func(b []byte, _ uint64) { uapi.CMAccept(b).SetID(c) })
	if e := r.expect(moved, verbs.CMEstablished); e.UID() != 30 {
		t.Errorf("established: uid %d, want that of the accept", e.UID())
	}
	r.answered(client, disconnect, uapi.CMDisconnectSize, 0, func(b []byte, _ uint64) { uapi.CMDisconnect(b).SetID(c) })
	r.expect(moved, verbs.CMDisconnected)
	r.destroy(moved, request.ID(), 2)
	r.expect(client, verbs.CMDisconnected)
	r.destroy(server, l, 1)
	r.closeAll()
	if err := r.quota.Take(r.quota.Most); err != nil {
		t.Errorf("objects are left: %v", err)
	}
}

func connectTo(r *rig, f *File, id uint32, data string) {
	r.Helper()
	r.answered(f, connect, uapi.CMConnectSize, 0, func(b []byte, _ uint64) {
		q := uapi.CMConnect(b)
		q.SetID(id)
		p := uapi.CMConnParam(q.Param())
		p.SetValid(1)
		p.SetQPN(0x123)
		p.SetResponderResources(1)
		p.SetInitiatorDepth(2)
		p.SetPrivateDataLen(uint8(copy(p.PrivateData(), data)))
	})
}

func (r *rig) query(f *File, id uint32, option uint32, out int) []byte {
	r.Helper()
	return r.answered(f, query, uapi.CMQuerySize, out, func(b []byte, at uint64) {
		q := uapi.CMQuery(b)
		q.SetResponse(at)
		q.SetID(id)
		q.SetOption(option)
	})
}

// destroy ends an id, of which so many events were taken.
func (r *rig) destroy(f *File, id uint32, events uint32) {
	r.Helper()
	n := uapi.CMEventsReported(r.answered(f, destroyID, uapi.CMDestroyIDSize, 4, func(b []byte, at uint64) {
		uapi.CMDestroyID(b).SetResponse(at)
		uapi.CMDestroyID(b).SetID(id)
	}))
	if n.Events() != events {
		r.Errorf("id %d: %d events, want %d", id, n.Events(), events)
	}
}

// TestAddresses writes and reads any address.
func TestAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address")
		ip := netip.AddrFrom16([16]byte(raw))
		if rapid.Bool().Draw(t, "IPv4") {
			ip = netip.AddrFrom4([4]byte(raw[:4]))
		} else if ip.IsLinkLocalUnicast() && rapid.Bool().Draw(t, "scope") {
			ip = ip.WithZone("3")
		}
		want := netip.AddrPortFrom(ip, rapid.Uint16().Draw(t, "port"))
		b := make([]byte, 128)
		n := PutAddress(b, want)
		got, err := (&command{}).sized(b, n)
		if err != nil || got != want {
			t.Fatalf("%v came back as %v, %v", want, got, err)
		}
	})
}
