//go:build linux && amd64

package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// run interprets the subset of classic BPF that Compile emits over a seccomp_data.
func run(t *testing.T, p []unix.SockFilter, nr, arch uint32, args [6]uint64) uint32 {
	t.Helper()
	word := func(off uint32) uint32 {
		switch {
		case off == 0:
			return nr
		case off == 4:
			return arch
		case off >= 16 && off < 64 && off%4 == 0:
			return uint32(args[(off-16)/8] >> (8 * (off % 8)))
		}
		t.Fatalf("load at %d", off)
		return 0
	}
	var acc uint32
	for pc := 0; pc < len(p); pc++ {
		i := p[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(i.Jt)
			} else {
				pc += int(i.Jf)
			}
		}
		switch i.Code {
		case load:
			acc = word(i.K)
		case and:
			acc &= i.K
		case jumpE:
			jump(acc == i.K)
		case jumpG:
			jump(acc >= i.K)
		case jump32:
			pc += int(i.K)
		case ret:
			return i.K
		default:
			t.Fatalf("instruction %d: code %#x", pc, i.Code)
		}
	}
	t.Fatal("the program has no end")
	return 0
}

func TestFirstRuleThatFitsDecides(t *testing.T) {
	p := Compile([]Rule{
		{Nr: 16, Tests: []Test{{Arg: 1, Value: 0xc0181b01}}, Ret: Notify},
		{Nr: 41, Tests: []Test{{Arg: 0, Value: 16}, {Arg: 2, Value: 20}}, Ret: Errno(unix.EPROTONOSUPPORT)},
		{Nr: 9, Tests: []Test{{Arg: 3, Mask: 0xf, Value: 1}, {Arg: 5, High: true, Value: 0}, {Arg: 5, Op: AtLeast, Value: 0x100000}, {Arg: 5, Op: Below, Value: 0x200000}}, Ret: Notify},
		{Nr: 257, Ret: Notify},
		{Nr: 374, I386: true, Tests: []Test{{Arg: 0, Mask: 1, Value: 0}}, Ret: Errno(unix.EPERM)},
	})
	const allow, amd64, i386 = unix.SECCOMP_RET_ALLOW, unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_I386
	for _, c := range []struct {
		what     string
		nr, arch uint32
		args     [6]uint64
		want     uint32
	}{
		{"RDMA ioctl", 16, amd64, [6]uint64{3, 0xc0181b01}, Notify},
		{"upper half of an ioctl number is ignored, as the kernel does", 16, amd64, [6]uint64{3, 0xffffffff_c0181b01}, Notify},
		{"other ioctl", 16, amd64, [6]uint64{3, 0x5401}, allow},
		{"foreign architecture", 16, i386, [6]uint64{3, 0xc0181b01}, allow},
		{"number of a rule for 64-bit calls", 257, i386, [6]uint64{}, allow},
		{"rule for 32-bit calls", 374, i386, [6]uint64{}, Errno(unix.EPERM)},
		{"its test", 374, i386, [6]uint64{1}, allow},
		{"its number in a 64-bit call", 374, amd64, [6]uint64{}, allow},
		{"third architecture", 374, unix.AUDIT_ARCH_ARM, [6]uint64{}, allow},
		{"RDMA netlink", 41, amd64, [6]uint64{16, 3, 20}, Errno(unix.EPROTONOSUPPORT)},
		{"route netlink", 41, amd64, [6]uint64{16, 3, 0}, allow},
		{"socket of another family", 41, amd64, [6]uint64{2, 1, 20}, allow},
		{"mmap in the window", 9, amd64, [6]uint64{0, 4096, 3, 0x11, 4, 0x100000}, Notify},
		{"its last page", 9, amd64, [6]uint64{0, 4096, 3, 1, 4, 0x1ff000}, Notify},
		{"below it", 9, amd64, [6]uint64{0, 4096, 3, 1, 4, 0xff000}, allow},
		{"above it", 9, amd64, [6]uint64{0, 4096, 3, 1, 4, 0x200000}, allow},
		{"far above it", 9, amd64, [6]uint64{0, 4096, 3, 1, 4, 0x1_00100000}, allow},
		{"private mmap", 9, amd64, [6]uint64{0, 4096, 3, 2, 4, 0x100000}, allow},
		{"rule without a test", 257, amd64, [6]uint64{}, Notify},
		{"no rule", 0, amd64, [6]uint64{0xc0181b01, 0xc0181b01}, allow},
	} {
		if got := run(t, p, c.nr, c.arch, c.args); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.what, got, c.want)
		}
	}
}
