package uapi_test

import (
	"bytes"
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
)

func wantErrno(t *testing.T, what string, err error, want syscall.Errno) {
	t.Helper()
	if want == 0 && err != nil || want != 0 && !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// cqCreate is a whole CQ_CREATE.
func cqCreate(m *client.Fake) *client.Call {
	c := client.New(m, uapi.ObjectCQ, uapi.CQCreate).New(uapi.CQCreateHandle).Value(uapi.CQCreateCQE, 4, 63).
		Value(uapi.CQCreateUserHandle, 8, 0x1122334455667788).Value(uapi.CQCreateVector, 4, 2).Value(uapi.CQCreateFlags, 4, 2).
		Object(uapi.CQCreateChannel, 9).In(uapi.AttrUHWIn, bytes.Repeat([]byte{7}, uapi.MLX5CreateCQSize))
	c.Out(uapi.CQCreateRspCQE, 4)
	c.Out(uapi.AttrUHWOut, uapi.MLX5CreateCQRespSize+8)
	return c
}

func TestDecode(t *testing.T) {
	m := &client.Fake{}
	c := cqCreate(m)
	k, err := uapi.Decode(m, c.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if k.Method.Name != "CQ_CREATE" || k.Value(uapi.CQCreateCQE) != 63 || k.Value(uapi.CQCreateUserHandle) != 0x1122334455667788 || k.Value(uapi.CQCreateVector) != 2 {
		t.Errorf("%s: %d entries, handle %#x, vector %d", k.Method.Name, k.Value(uapi.CQCreateCQE), k.Value(uapi.CQCreateUserHandle), k.Value(uapi.CQCreateVector))
	}
	if fd, ok := k.FD(uapi.CQCreateChannel); fd != 9 || !ok {
		t.Errorf("channel %d, %v", fd, ok)
	}
	if _, ok := k.FD(uapi.CQCreateEventFD); ok || k.Has(uapi.CQCreateEventFD) {
		t.Error("an attribute that was not given")
	}
	if f, err := k.Flags32(uapi.CQCreateFlags, 3); f != 2 || err != nil {
		t.Errorf("flags %#x, %v", f, err)
	}
	_, err = k.Flags32(uapi.CQCreateFlags, 1)
	wantErrno(t, "flags", err, syscall.EINVAL)
	b, err := k.In(uapi.AttrUHWIn, uapi.MLX5CreateCQSize+4)
	if err != nil || !bytes.Equal(b, append(bytes.Repeat([]byte{7}, uapi.MLX5CreateCQSize), 0, 0, 0, 0)) {
		t.Errorf("driver data %x, %v", b, err)
	}
	if len(m.Writes) != 0 {
		t.Errorf("decoding wrote %x", m.Writes)
	}
}

func TestAnswers(t *testing.T) {
	m := &client.Fake{}
	c := client.New(m, uapi.ObjectCQ, uapi.CQCreate).New(uapi.CQCreateHandle).Value(uapi.CQCreateCQE, 4, 63).
		Value(uapi.CQCreateUserHandle, 8, 1).Value(uapi.CQCreateVector, 4, 2)
	cqe := c.Out(uapi.CQCreateRspCQE, 4)
	uhw := c.Out(uapi.AttrUHWOut, 12)
	copy(uhw, "............")
	k, err := uapi.Decode(m, c.Addr())
	if err != nil {
		t.Fatal(err)
	}
	wantErrno(t, "number", k.Out32(uapi.CQCreateRspCQE, 0xabcd), 0)
	wantErrno(t, "part", k.Out(uapi.AttrUHWOut, []byte("abc")), 0)
	if string(uhw) != "abc........." {
		t.Errorf("Out wrote %q", uhw)
	}
	wantErrno(t, "structure", k.OutStruct(uapi.AttrUHWOut, []byte("defg")), 0)
	if !bytes.Equal(uhw, []byte("defg\x00\x00\x00\x00\x00\x00\x00\x00")) {
		t.Errorf("OutStruct wrote %q", uhw)
	}
	wantErrno(t, "long", k.Out(uapi.AttrUHWOut, []byte("0123456789abcdef")), 0)
	if string(uhw) != "0123456789ab" || !bytes.Equal(cqe, []byte{0xcd, 0xab, 0, 0}) {
		t.Errorf("%q, %x", uhw, cqe)
	}
	wantErrno(t, "handle", k.SetNew(uapi.CQCreateHandle, 77), 0)
	if c.Result(uapi.CQCreateHandle) != 77 || !c.Filled(uapi.AttrUHWOut) || c.Filled(uapi.CQCreateHandle) {
		t.Error("handle or flags are not where the program looks")
	}
}

func TestRefusals(t *testing.T) {
	for _, x := range []struct {
		what   string
		change func(c *client.Call)
		want   syscall.Errno
	}{
		{"nothing", func(*client.Call) {}, 0},
		{"unknown method", func(c *client.Call) { c.Header().SetMethodID(9) }, syscall.EPROTONOSUPPORT},
		{"unknown object", func(c *client.Call) { c.Header().SetObjectID(99) }, syscall.EPROTONOSUPPORT},
		{"reserved field", func(c *client.Call) { c.Header().SetReserved1(1) }, syscall.EPROTONOSUPPORT},
		{"another driver", func(c *client.Call) { c.Header().SetDriverID(2) }, syscall.EINVAL},
		{"length", func(c *client.Call) { c.Header().SetLength(c.Header().Length() - 1) }, syscall.EINVAL},
		{"more than a page", func(c *client.Call) { c.Header().SetNumAttrs(300); c.Header().SetLength(24 + 300*16) }, syscall.EINVAL},
		{"unknown mandatory attribute", func(c *client.Call) { c.Value(77, 8, 0) }, syscall.EPROTONOSUPPORT},
		{"unknown attribute", func(c *client.Call) { c.Value(77, 8, 0); c.Attr(77).SetFlags(0) }, 0},
		{"twice", func(c *client.Call) { c.Value(uapi.CQCreateVector, 4, 0) }, syscall.EINVAL},
		{"missing", func(c *client.Call) { c.Attr(uapi.CQCreateVector).SetID(77); c.Attr(uapi.CQCreateVector).SetFlags(0) }, syscall.EINVAL},
		{"short value", func(c *client.Call) { c.Attr(uapi.CQCreateVector).SetLen(2) }, syscall.EINVAL},
		{"long value", func(c *client.Call) { c.Attr(uapi.CQCreateVector).SetLen(8) }, syscall.EINVAL},
		{"object with a length", func(c *client.Call) { c.Attr(uapi.CQCreateHandle).SetLen(4) }, syscall.EINVAL},
		{"reserved byte", func(c *client.Call) { c.Attr(uapi.CQCreateCQE).SetElem(1) }, syscall.EINVAL},
	} {
		m := &client.Fake{}
		c := cqCreate(m)
		x.change(c)
		_, err := uapi.Decode(m, c.Addr())
		wantErrno(t, x.what, err, x.want)
	}
	m := &client.Fake{}
	_, err := uapi.Decode(m, 0x1000)
	wantErrno(t, "no memory", err, syscall.EFAULT)
}

// A structure that grew may have zeroes in what an old kernel does not know.
func TestTrailingZeroes(t *testing.T) {
	call := func(extra byte) (*client.Fake, *client.Call) {
		m := &client.Fake{}
		c := client.New(m, uapi.ObjectQP, uapi.QPCreate).New(uapi.QPCreateHandle).Value(uapi.QPCreateUserHandle, 8, 0).
			In(uapi.QPCreateCap, append(make([]byte, uapi.QPCapSize+3), extra)).Value(uapi.QPCreateType, 8, 2)
		c.Out(uapi.QPCreateRspCap, uapi.QPCapSize)
		c.Out(uapi.QPCreateRspQPN, 4)
		return m, c
	}
	m, c := call(0)
	_, err := uapi.Decode(m, c.Addr())
	wantErrno(t, "zeroes", err, 0)
	m, c = call(1)
	_, err = uapi.Decode(m, c.Addr())
	wantErrno(t, "more", err, syscall.EOPNOTSUPP)
}

func TestWriteCommands(t *testing.T) {
	m := &client.Fake{}
	decode := func(c *client.Call) *uapi.Call {
		t.Helper()
		k, err := uapi.Decode(m, c.Addr())
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	probe := client.New(m, uapi.ObjectDevice, uapi.DeviceInvokeWrite).Value(uapi.InvokeWriteCmd, 8, uapi.CmdQueryDevice)
	_, err := decode(probe).WriteCall()
	wantErrno(t, "the library's probe", err, syscall.ENOSPC)
	_, err = decode(client.NewWrite(m, uapi.CmdCreateFlow, make([]byte, 64))).WriteCall()
	wantErrno(t, "unknown command", err, syscall.EOPNOTSUPP)
	_, err = decode(client.NewWrite(m, 1<<20, make([]byte, 64))).WriteCall()
	wantErrno(t, "unknown bits", err, syscall.EINVAL)

	req := uapi.RegMR(make([]byte, uapi.RegMRSize+8))
	req.SetStart(0x1000)
	req.SetLength(4096)
	c := client.NewWrite(m, uapi.CmdRegMR, req)
	room := c.Out(uapi.InvokeWriteCoreOut, uapi.RegMRRespSize+4)
	copy(room[uapi.RegMRRespSize:], "junk")
	w, err := decode(c).WriteCall()
	if err != nil || w.Name != "REG_MR" {
		t.Fatal(w, err)
	}
	b, err := w.Request(uapi.RegMRSize)
	if err != nil || uapi.RegMR(b).Start() != 0x1000 || uapi.RegMR(b).Length() != 4096 {
		t.Errorf("%x, %v", b, err)
	}
	rsp := uapi.RegMRResp(make([]byte, uapi.RegMRRespSize))
	rsp.SetLKey(5)
	wantErrno(t, "respond", w.Respond(rsp), 0)
	if uapi.RegMRResp(room).LKey() != 5 || !bytes.Equal(room[uapi.RegMRRespSize:], make([]byte, 4)) {
		t.Errorf("answer %x", room)
	}
	req[uapi.RegMRSize] = 1
	c = client.NewWrite(m, uapi.CmdRegMR, req)
	c.Out(uapi.InvokeWriteCoreOut, uapi.RegMRRespSize)
	if w, err = decode(c).WriteCall(); err != nil {
		t.Fatal(err)
	}
	_, err = w.Request(uapi.RegMRSize)
	wantErrno(t, "a longer request that is not zero", err, syscall.EOPNOTSUPP)
}

func TestMmapPage(t *testing.T) {
	for _, x := range []struct {
		cmd, arg uint32
		page     uint64
	}{{uapi.MmapRegular, 7, 7}, {uapi.MmapAllocWC, 3, 0x603}, {uapi.MmapAllocWC, 0x1ff, 0x106ff}, {uapi.MmapContiguous, 12, 0x10c}} {
		if got := uapi.MmapPage(x.cmd, x.arg); got != x.page {
			t.Errorf("command %d, argument %#x: page %#x, want %#x", x.cmd, x.arg, got, x.page)
		}
		if cmd, arg := uapi.MmapCommand(x.page); cmd != x.cmd || arg != x.arg {
			t.Errorf("page %#x: command %d, argument %#x", x.page, cmd, arg)
		}
	}
}

// The table is one that Decode can work with.
func TestMethodsAreDistinct(t *testing.T) {
	seen := map[[2]uint16]bool{}
	for _, m := range uapi.Methods() {
		if k := [2]uint16{m.Object, m.ID}; seen[k] || m.Name == "" {
			t.Errorf("%s: method %x twice or without name", m.Name, k)
		} else {
			seen[k] = true
		}
		ids := map[uint16]bool{}
		for _, s := range m.Attrs {
			if ids[s.ID] || s.Kind == 0 || s.Min > s.Max {
				t.Errorf("%s: attribute %+v", m.Name, s)
			}
			ids[s.ID] = true
		}
	}
}

// box is the memory of a hostile program: all of it can be read, and its bytes come
// from the fuzzer, repeated.
type box struct {
	b      []byte
	at     uint64
	writes [][2]uint64
}

func (x *box) Read(addr uint64, p []byte) error {
	for i := range p {
		p[i] = 0
		if off := addr + uint64(i) - x.at; off < uint64(len(x.b)) {
			p[i] = x.b[off]
		}
	}
	return nil
}

func (x *box) Write(addr uint64, p []byte) error {
	x.writes = append(x.writes, [2]uint64{addr, addr + uint64(len(p))})
	return nil
}

// FuzzDecode feeds calls of any bytes. Nothing is written but what the attributes
// name: the room of an answer, the flags and the data of an attribute.
func FuzzDecode(f *testing.F) {
	m := &client.Fake{}
	for _, k := range uapi.Commands() {
		c := client.NewWrite(m, k.Cmd, make([]byte, k.Req))
		c.Out(uapi.InvokeWriteCoreOut, k.Resp)
		b := make([]byte, c.Header().Length())
		if err := m.Read(c.Addr(), b); err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	srq := client.New(m, uapi.ObjectSRQ, uapi.SRQCreate).New(uapi.SRQCreateHandle).Object(uapi.SRQCreatePD, 1).
		Value(uapi.SRQCreateType, 8, 0).Value(uapi.SRQCreateUserHandle, 8, 1).Value(uapi.SRQCreateMaxWR, 4, 15).
		Value(uapi.SRQCreateMaxSGE, 4, 1).Value(uapi.SRQCreateLimit, 4, 0)
	srq.Out(uapi.SRQCreateRspMaxWR, 4)
	srq.Out(uapi.SRQCreateRspMaxSGE, 4)
	for _, c := range []*client.Call{cqCreate(m), srq, client.NewWrite(m, uapi.CmdRegMR, make([]byte, 40)),
		client.New(m, uapi.ObjectDevice, uapi.DeviceQueryPort).Value(uapi.QueryPortNum, 8, 1)} {
		b := make([]byte, c.Header().Length())
		if err := m.Read(c.Addr(), b); err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const base = 0x10000
		x := &box{b: b, at: base}
		k, err := uapi.Decode(x, base)
		if len(x.writes) != 0 {
			t.Fatalf("decoding wrote %x", x.writes)
		}
		if err != nil {
			return
		}
		var named [][2]uint64
		for at := uapi.HeaderSize; at < int(uapi.Header(b).Length()); at += uapi.AttrSize {
			var buf [uapi.AttrSize]byte
			copy(buf[:], b[min(at, len(b)):])
			a := uapi.Attr(buf[:])
			named = append(named, [2]uint64{base + uint64(at) + 4, base + uint64(at) + 6},
				[2]uint64{base + uint64(at) + 8, base + uint64(at) + 16}, [2]uint64{a.Data(), a.Data() + uint64(a.Len())})
		}
		exercise(k)
		for _, w := range x.writes {
			if !slices.ContainsFunc(named, func(n [2]uint64) bool { return w[0] >= n[0] && w[0] <= n[1] && w[1]-w[0] <= n[1]-w[0] }) {
				t.Fatalf("%x written, the program named %x", w, named)
			}
		}
	})
}

// exercise uses every attribute in every way; what is refused is refused.
func exercise(k *uapi.Call) {
	for _, s := range k.Method.Attrs {
		k.Len(s.ID)
		k.Value(s.ID)
		_, _ = k.Flags32(s.ID, 7)
		switch s.Kind {
		case uapi.PtrIn:
			_, _ = k.In(s.ID, 100)
			_, _ = k.InExact(s.ID, 8, 56)
		case uapi.PtrOut:
			_ = k.Out(s.ID, make([]byte, 300))
			_ = k.OutStruct(s.ID, make([]byte, 10))
		case uapi.ObjectIn, uapi.FDIn:
			k.Handle(s.ID)
			k.FD(s.ID)
		default:
			_ = k.SetNew(s.ID, 1)
		}
	}
	if k.Method.Object == uapi.ObjectDevice && k.Method.ID == uapi.DeviceInvokeWrite {
		if w, err := k.WriteCall(); err == nil {
			_, _ = w.Request(16)
			_, _ = w.Handle()
			_ = w.Respond(make([]byte, 200))
			w.Room(100)
		}
	}
}
