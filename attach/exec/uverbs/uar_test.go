//go:build linux

package uverbs

import (
	"errors"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
)

// A thread domain of the static generation: the library maps a page and names its
// register; whether the mmap is seen or not.
func TestDynamicBFRegs(t *testing.T) {
	x := newRig(t, newMachine(t))
	if resp := x.open(); resp.NumDynBFRegs() != 1024 {
		t.Fatalf("%d dynamic bfregs", resp.NumDynBFRegs())
	}
	pd, cq := x.pd(), x.cq(-1, 1)
	make1 := func(index uint32) *QP {
		c, _, rsp := x.qpCall(pd, cq, func(d uapi.MLX5CreateQP) {
			d.SetFlags(uapi.QPFlagBFRegIndex)
			d.SetBFRegIndex(index)
		})
		x.do("QP_CREATE", c)
		qpn, _ := rsp()
		return x.pages.qps[qpn]
	}
	if e := x.file.Mmap(uapi.MmapPage(uapi.MmapAllocWC, 2)); e != 0 {
		t.Fatal(e)
	}
	a, b, c := make1(4), make1(5), make1(600)
	if a.UAROff != b.UAROff || a.BFReg != 0 || b.BFReg != 1 || c.UAROff == a.UAROff {
		t.Errorf("%+v, %+v, %+v", a, b, c)
	}
	if m := x.pages.uars[uapi.MmapPage(uapi.MmapAllocWC, 300)]; m == nil || m.Off != c.UAROff {
		t.Errorf("page of bfreg 600: %+v", m)
	}
	bad, _, _ := x.qpCall(pd, cq, func(d uapi.MLX5CreateQP) { d.SetFlags(uapi.QPFlagBFRegIndex); d.SetBFRegIndex(5000) })
	x.refuse("bfreg 5000", bad, syscall.EINVAL)
	for page, want := range map[uint64]syscall.Errno{0: 0, 7: 0, 8: syscall.EINVAL, 0x203: 0, 0x10c: syscall.EINVAL, 0x500: 0, 0x501: syscall.EINVAL, 0x700: 0, 0x701: syscall.EOPNOTSUPP, 0x602: 0, 1 << 50: syscall.EINVAL} {
		if e := x.file.Mmap(page); e != want {
			t.Errorf("mmap of page %#x: %v, want %v", page, e, want)
		}
	}
	x.file.Close()
	if x.pages.left() != "" {
		t.Errorf("%s are left", x.pages.left())
	}
}

func TestUARObjects(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.file.DynamicUARs = true
	x.open()
	c, page := x.uarCall()
	x.do("UAR_OBJ_ALLOC", c)
	if len(x.pages.uars) != 1 || page() == 0 {
		t.Fatalf("%d pages, UAR %d", len(x.pages.uars), page())
	}
	for p := range x.pages.uars {
		if e := x.file.Mmap(p); e != 0 {
			t.Error(e)
		}
	}
	x.do("UAR_OBJ_DESTROY", client.New(x.proc, uapi.ObjectUAR, uapi.UARDestroy).Object(uapi.UARDestroyHandle, c.Result(uapi.UARAllocHandle)))
	if len(x.pages.uars) != 0 {
		t.Error("the page is still there")
	}
	x.pages.fail = errors.New("no room")
	c, _ = x.uarCall()
	x.refuse("a page that the session cannot map", c, syscall.ENOMEM)
	y := newRig(t, x.machine)
	y.open()
	c, _ = y.uarCall()
	y.refuse("UAR object for a library of the old generation", c, syscall.EOPNOTSUPP)
}

// What cannot be answered is undone.
