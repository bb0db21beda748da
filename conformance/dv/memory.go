package dv

import (
	"bytes"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// registerMemory adds the cases of memory on the device.
func registerMemory(s *spec.Suite) {
	s.Case("DV-033", operationAddresses)
	s.Case("DV-034", refusedMemory)
	s.Case("DV-037", allocationSettings)
}

// Operations on device memory (rdma-core tests/test_mlx5_dm_ops.py).
const (
	opIncrement  = 0
	opTestAndSet = 1
)

// allocate takes device memory by direct verbs, and frees it when the case ends.
func allocate(c *spec.C, e *kit.Env, n uint64) (verbs.DirectDM, func(c *spec.C)) {
	m, err := direct(c, e).AllocDirectDM(c.T, verbs.DMAttr{Length: n}, verbs.DirectDMAttr{Type: verbs.DirectDMMemic})
	c.NoErr("alloc_dm", err)
	free := kit.DestroyOnce(c, "free_dm", m.Free)
	d, ok := m.(verbs.DirectDM)
	if !ok {
		c.Errorf("the target's device memory has no operation addresses")
	}
	return d, free
}

// mapOp maps the address of an operation, until the case ends or the function is called.
func mapOp(c *spec.C, m verbs.DirectDM, op uint8) (verbs.OpAddr, func(c *spec.C)) {
	a, err := m.MapOp(c.T, op)
	c.NoErr("dm_map_op_addr", err)
	return a, kit.DestroyOnce(c, "munmap", a.Unmap)
}

func operationAddresses(c *spec.C) {
	const size = 8192 // of more than a page
	e := kit.Open(c)
	m, free := allocate(c, e, size)
	want := make([]byte, size)
	kit.Must(c, "memcpy_to_dm", m.CopyTo(c.T, 0, want))
	inc, unmapInc := mapOp(c, m, opIncrement)
	test, unmapTest := mapOp(c, m, opTestAndSet)
	add := func(at uint64, v byte) {
		kit.Must(c, "write to the increment's address", inc.Store(c.T, at, []byte{v}))
		want[at] += v
	}
	set := func(at uint64) {
		var b [1]byte
		kit.Must(c, "read from the address of test and set", test.Load(c.T, at, b[:]))
		c.Equal("what was there", b[0], want[at])
		want[at] = 1
	}
	contents := func(step string) {
		got := make([]byte, size)
		kit.Must(c, "memcpy_from_dm", m.CopyFrom(c.T, got, 0))
		c.True(step, bytes.Equal(got, want), "the memory holds something else")
	}
	add(0, 1)
	add(0, 1)
	set(0)
	set(0)
	contents("two increments, two tests")
	for i, at := range []uint64{1, 7, 100, 4095, 4096, size - 1} {
		add(at, byte(200+i))
		add(at, 100) // over the end of a byte: its neighbours do not change
		contents("an increment that overflows")
		set(at)
		contents("a test")
	}
	again, unmapAgain := mapOp(c, m, opIncrement)
	kit.Must(c, "write to a second map of the increment's address", again.Store(c.T, 5, []byte{3}))
	want[5] += 3
	contents("an increment by a second map")
	unmapAgain(c)
	add(5, 4)
	contents("an increment by the first")
	unmapInc(c)
	unmapTest(c)
	free(c)
	next, _ := allocate(c, e, size)
	kit.Must(c, "memcpy_to_dm of new memory", next.CopyTo(c.T, 0, want))
}

func refusedMemory(c *spec.C) {
	e := kit.Open(c)
	d := direct(c, e)
	for _, typ := range []uint32{verbs.DirectDMEncapSWICM + 1, 99, 1 << 31} {
		_, err := d.AllocDirectDM(c.T, verbs.DMAttr{Length: 4096}, verbs.DirectDMAttr{Type: typ})
		c.ErrnoIn("memory of a kind that does not exist", err, syscall.EOPNOTSUPP, syscall.EINVAL)
	}
	_, err := d.AllocDirectDM(c.T, verbs.DMAttr{Length: 4096}, verbs.DirectDMAttr{CompMask: 1})
	c.Errno("an unknown bit of the direct mask", err, syscall.EINVAL)
	_, err = d.AllocDirectDM(c.T, verbs.DMAttr{Length: 4096, CompMask: 1}, verbs.DirectDMAttr{})
	c.Errno("an unknown bit of the mask", err, syscall.EINVAL)
	m, _ := allocate(c, e, 4096)
	for _, op := range []uint8{20, 31, 32, 255} {
		_, err := m.MapOp(c.T, op)
		c.ErrnoIn("an operation that does not exist", err, syscall.EOPNOTSUPP, syscall.EINVAL)
	}
}

// allocationSettings runs the same program in processes with other settings of where the library
// takes memory of queues from, and compares what they saw.
func allocationSettings(c *spec.C) {
	e := kit.Open(c)
	want := c.Rand().Bytes(4096)
	var first []string
	for _, kind := range []string{"", "ANON", "all", "PREFER_HUGE", "PREFER_CONTIG", "nonsense"} {
		env := map[string]string{}
		if kind != "" {
			for _, queue := range []string{"QP", "CQ", "SRQ"} {
				env["MLX_"+queue+"_ALLOC_TYPE"] = kind
			}
		}
		seen := transcript(c, e, kit.OpenOtherProcess(c, 0, env), want)
		if first == nil {
			first = seen
		}
		c.Equal("what a process with MLX_*_ALLOC_TYPE="+kind+" saw", seen, first)
	}
}

// transcript has another process make queues, send and receive, and fail, and lists what it saw of
// that.
func transcript(c *spec.C, e *kit.Env, other *kit.OtherProcess, data []byte) (seen []string) {
	note := func(format string, a ...any) { seen = append(seen, fmt.Sprintf(format, a...)) }
	a, b := e.PairWith(c, other, kit.Default())
	note("inline %d", b.Values["max_inline"])
	mem, far := e.Buffer(c, len(data), kit.AllAccess), other.Buffer(c, len(data), kit.AllAccess, 0)
	far.Set(c, 0, data)
	const n = 70 // more than the queue holds at once
	for i := range n {
		off, length := 8*i, 8+i
		b.Post(c, verbs.SendWR{ID: uint64(i), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, RemoteAddr: mem.Addr(off), RKey: mem.MR.RKey()},
			far.Part(off, length))
		for _, wc := range other.Completions(c, 1) {
			note("%d: %v %v", wc.ID, wc.Status, wc.Opcode)
		}
	}
	c.True("bytes that were written", bytes.Equal(mem.Get(c, 0, 8*n), data[:8*n]), "they differ")
	srq := other.CreateSRQ(c, 8, 1)
	srq.Recv(c, 7, far.Part(0, 64))
	b.Post(c, verbs.SendWR{ID: 99, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, RemoteAddr: mem.Addr(0) + 1<<40, RKey: mem.MR.RKey()}, far.Part(0, 8))
	for _, wc := range other.Completions(c, 1) {
		note("%d: %v", wc.ID, wc.Status)
	}
	a.DestroyNow(c)
	return seen
}
