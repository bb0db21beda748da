//go:build hw

package mlx5

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// bed is a testbed of which no device is opened.
func bed() *Testbed {
	return New(&Setup{Profile: "hw-none", nodes: []Node{{Device: "none0", Port: 1}}})
}

func run(t *testing.T, body func(verbs.Thread)) {
	t.Helper()
	tb := bed()
	if err := tb.Run(10*time.Second, body); err != nil {
		t.Fatal(err)
	}
	if err := tb.Close(); err != nil || tb.NeedsRestart() {
		t.Fatalf("close: %v, needs restart %t", err, tb.NeedsRestart())
	}
}

func TestErrnos(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want syscall.Errno
	}{
		{failed("f", 0, syscall.EIO), 0},
		{failed("f", 22, syscall.EIO), syscall.EINVAL},
		{failed("f", -95, syscall.EIO), syscall.EOPNOTSUPP},
		{failed("f", -1, syscall.EBUSY), syscall.EBUSY},
		{failed("f", -1, nil), ^syscall.Errno(0)},
		{null("f", syscall.ENOMEM), syscall.ENOMEM},
		{null("f", nil), ^syscall.Errno(0)},
	} {
		if got := verbs.ErrnoOf(tc.err); got != tc.want {
			t.Errorf("%v: errno %d, want %d", tc.err, got, tc.want)
		}
	}
}

func TestMemory(t *testing.T) {
	run(t, func(th verbs.Thread) {
		p := th.Process()
		b, err := p.Map(th, 5000, verbs.MapOptions{Offset: 100})
		if err != nil {
			t.Fatal(err)
		}
		page := uint64(p.Host().PageSize())
		if b.Addr()%page != 100 || b.Len() != 5000 {
			t.Errorf("mapped %d bytes at %#x", b.Len(), b.Addr())
		}
		got := make([]byte, 3)
		_, werr := b.WriteAt(th, []byte("abc"), 4997)
		_, rerr := b.ReadAt(th, got, 4997)
		if werr != nil || rerr != nil || string(got) != "abc" {
			t.Errorf("read %q: %v, %v", got, werr, rerr)
		}
		if _, err := b.WriteAt(th, got, 4998); verbs.ErrnoOf(err) != syscall.EFAULT {
			t.Errorf("write over the end: %v", err)
		}
		ro, err := p.Map(th, 10, verbs.MapOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ro.WriteAt(th, got, 0); verbs.ErrnoOf(err) != syscall.EFAULT {
			t.Errorf("write to read-only memory: %v", err)
		}
		if err := errors.Join(b.Unmap(th), ro.Unmap(th)); err != nil {
			t.Error(err)
		}
		if _, err := b.ReadAt(th, got, 0); verbs.ErrnoOf(err) != syscall.EFAULT {
			t.Errorf("read after unmap: %v", err)
		}
	})
}

func TestThreads(t *testing.T) {
	run(t, func(th verbs.Thread) {
		n := 0
		var wrong any
		o := th.Process().Start(th, "other", 3, func(o verbs.Thread) {
			n++
			defer func() { wrong = recover() }()
			th.Sleep(0)
		})
		th.Join(o)
		if err, ok := wrong.(error); n != 1 || !ok || !errors.Is(err, ErrWrongThread) {
			t.Errorf("body ran %d times; a call with another's thread: %v", n, wrong)
		}
		if err := th.Interrupt(o); verbs.ErrnoOf(err) != syscall.ESRCH {
			t.Errorf("signal to a thread that has ended: %v", err)
		}
	})
}

// TestHang: a body that does not come back ends at the deadline, the error names the
// call, and the process needs a restart.
func TestHang(t *testing.T) {
	tb, free := bed(), make(chan struct{})
	defer close(free)
	err := tb.Run(50*time.Millisecond, func(th verbs.Thread) {
		defer enterCall(th, "ibv_destroy_cq").leaveCall()
		<-free
	})
	if !errors.Is(err, ErrDeadline) || !strings.Contains(err.Error(), "thread main is in ibv_destroy_cq") {
		t.Errorf("error %v", err)
	}
	if !tb.NeedsRestart() {
		t.Error("the process needs no restart")
	}
}

func TestPanicSurfaces(t *testing.T) {
	tb := bed()
	defer func() {
		if v, ok := recover().(string); !ok || !strings.Contains(v, "thread worker: oops") || !tb.NeedsRestart() {
			t.Errorf("panic %v, needs restart %t", v, tb.NeedsRestart())
		}
	}()
	_ = tb.Run(time.Second, func(th verbs.Thread) {
		th.Join(th.Process().Start(th, "worker", -1, func(verbs.Thread) { panic("oops") }))
	})
	t.Error("Run returned")
}

func active(idx uint32, typ verbs.GIDType, last byte) verbs.GIDEntry {
	g := verbs.GID{10: 0xff, 11: 0xff, 15: last}
	return verbs.GIDEntry{GID: g, Index: idx, Port: 1, Type: typ}
}

func TestChoosesActivePortWithRoutableGID(t *testing.T) {
	up := []verbs.PortAttr{{State: verbs.PortActive, LinkLayer: verbs.LinkEthernet}}
	down := []verbs.PortAttr{{State: verbs.PortDown}}
	l := candidateList{
		{name: "down0", ports: down},
		{name: "shut0", err: syscall.EACCES},
		{name: "bare0", ports: up},
		{name: "rxe0", ports: up, gids: []verbs.GIDEntry{
			{GID: verbs.GID{0: 0xfe, 1: 0x80, 15: 1}, Port: 1, Type: verbs.GIDTypeRoCEv2}, active(1, verbs.GIDTypeRoCEv1, 1), active(2, verbs.GIDTypeRoCEv2, 1)}},
	}
	n, err := l.choose(Config{GIDIndex: -1})
	if err != nil || n.Device != "rxe0" || n.Port != 1 || n.GIDIndex != 2 {
		t.Errorf("chose %+v, %v", n, err)
	}
	if n, err := l.choose(Config{Device: "rxe0", GIDIndex: 0}); err != nil || n.GIDIndex != 0 || n.GIDType != verbs.GIDTypeRoCEv2 {
		t.Errorf("GID 0: %+v, %v", n, err)
	}
	for want, cfg := range map[string]Config{
		"no device \"mlx5_7\"":     {Device: "mlx5_7", GIDIndex: -1},
		"is not active":            {Device: "down0", GIDIndex: -1},
		"permission denied":        {Device: "shut0", GIDIndex: -1},
		"has no GID: give":         {Device: "bare0", GIDIndex: -1},
		"has no port 2":            {Device: "rxe0", Port: 2, GIDIndex: -1},
		"no GID with index 9; it ": {Device: "rxe0", GIDIndex: 9},
	} {
		if _, err := l.choose(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one with %q", cfg, err, want)
		}
	}
}

// TestOpenErrorComesFromDeviceFile: what the device file says counts, not the errno of the
// library's last try.
func TestOpenErrorComesFromDeviceFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "uverbs0")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unopened("rxe0", file, syscall.EIO); err != syscall.EIO {
		t.Errorf("a file that can be opened: %v", err)
	}
	if os.Geteuid() == 0 {
		return // no mode keeps root out
	}
	if err := os.Chmod(file, 0); err != nil {
		t.Fatal(err)
	}
	if err := unopened("rxe0", file, syscall.EIO); !errors.Is(err, syscall.EACCES) || !strings.Contains(err.Error(), "no permission on "+file) {
		t.Errorf("no permission: %v", err)
	}
}

func TestLibraryVersion(t *testing.T) {
	for file, want := range map[string]string{"libibverbs.so.1.14.44.0": "44.0", "libibverbs.so.1.15.61.2": "61.2", "libmlx5.so.1": "", "libibverbs.so.1": ""} {
		if got, _ := rdmaCore(file, "libibverbs.so"); got != want {
			t.Errorf("%s: version %q, want %q", file, got, want)
		}
	}
}

// The version is that of the provider which is mapped, also where libibverbs is of another build.
func TestMappedLibraries(t *testing.T) {
	const verbs = "7f0000000000-7f0000001000 r--p 00000000 fe:00 1   /opt/rdma/lib/libibverbs.so.1.14.56.1\n"
	const old = "7f0000002000-7f0000003000 r-xp 00000000 fe:00 2   /usr/lib/libmlx5.so.1.24.44.0\n"
	const own = "7f0000004000-7f0000005000 r-xp 00000000 fe:00 3   /opt/rdma/lib/libmlx5.so.1.25.56.1\n"
	const copied = "7f0000004000-7f0000005000 r-xp 00000000 fe:00 5   /opt/own/libmlx5.so.1\n"
	const rxe = "7f0000006000-7f0000007000 r-xp 00000000 fe:00 4   /opt/my libs/librxe-rdmav34.so\n"
	for _, tt := range []struct{ maps, provider, core, libraries string }{
		{verbs + old + old, "mlx5", "44.0", "/opt/rdma/lib/libibverbs.so.1.14.56.1 /usr/lib/libmlx5.so.1.24.44.0"},
		{verbs + own, "mlx5", "56.1", "/opt/rdma/lib/libibverbs.so.1.14.56.1 /opt/rdma/lib/libmlx5.so.1.25.56.1"},
		{verbs + own + old, "mlx5", "unknown (libmlx5 44.0 and 56.1 are mapped)",
			"/opt/rdma/lib/libibverbs.so.1.14.56.1 /opt/rdma/lib/libmlx5.so.1.25.56.1 /usr/lib/libmlx5.so.1.24.44.0"},
		{verbs + old + rxe, "rxe", "56.1", "/opt/my libs/librxe-rdmav34.so /opt/rdma/lib/libibverbs.so.1.14.56.1"},
		{verbs + copied, "mlx5", "unknown (libmlx5.so.1 has no version in its name)", "/opt/own/libmlx5.so.1 /opt/rdma/lib/libibverbs.so.1.14.56.1"},
		{verbs + own + copied, "mlx5", "unknown (libmlx5 56.1 and one without a version in its name are mapped)",
			"/opt/own/libmlx5.so.1 /opt/rdma/lib/libibverbs.so.1.14.56.1 /opt/rdma/lib/libmlx5.so.1.25.56.1"},
		{verbs + old + strings.ReplaceAll(rxe, "rxe", "mlx5"), "mlx5", "unknown (libmlx5 44.0 and one without a version in its name are mapped)",
			"/opt/my libs/libmlx5-rdmav34.so /opt/rdma/lib/libibverbs.so.1.14.56.1 /usr/lib/libmlx5.so.1.24.44.0"},
		{"", "mlx5", "unknown", ""},
	} {
		if m := mappedIn(tt.maps, tt.provider); m.core != tt.core || strings.Join(m.libraries, " ") != tt.libraries {
			t.Errorf("mapped %+v, want %s of %s", m, tt.core, tt.libraries)
		}
	}
}

// A provider that RDMAV_DRIVERS names and that is not mapped is not what the run would test. It may
// be a link to one that is.
func TestUnusedProviderIsRefused(t *testing.T) {
	dir := t.TempDir()
	for name, to := range map[string]string{"libmlx5-rdmav34.so": dir + "/libmlx5.so.1.25.56.1", "libmlx5.so.1.25.56.1": ""} {
		err := os.WriteFile(filepath.Join(dir, name), nil, 0o600)
		if to != "" {
			err = errors.Join(os.Remove(filepath.Join(dir, name)), os.Symlink(to, filepath.Join(dir, name)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	own := []string{dir + "/libmlx5.so.1.25.56.1"}
	t.Chdir(dir)
	for _, tt := range []struct {
		drivers string
		mapped  []string
		refused bool
	}{
		{dir + "/libmlx5", []string{"/usr/lib/libmlx5.so.1.24.44.0"}, true},
		{"rxe;" + dir + "/libmlx5", nil, true},
		{dir + "/libmlx5", own, false},
		{"/opt/none/libmlx5", own, true},
		{"/opt/none/libmlx5-rdmav34.so", own, true}, // the whole name, to which libibverbs adds -rdmav34.so
		{"/opt/none/libmlx5-mine", own, true},
		{"mlx5:/opt/librxe", nil, false},
		{"./libmlx5", []string{"/usr/lib/libmlx5.so.1.24.44.0"}, true},
		{"../libmlx5:./libmlx5", own, true},
		{"rxe:./libmlx5", own, false},
		{"libmlx5:mlx5", nil, false},
		{"", nil, false},
	} {
		if err := unusedProvider(tt.drivers, "mlx5", tt.mapped); (err != nil) != tt.refused || err != nil && !strings.Contains(err.Error(), "LD_LIBRARY_PATH") {
			t.Errorf("RDMAV_DRIVERS=%s with %v: %v", tt.drivers, tt.mapped, err)
		}
	}
}

func TestGuestIsKnownByTheProcessor(t *testing.T) {
	if !hypervisor("processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\n") || hypervisor("flags\t\t: fpu vmx\nbugs\t\t: hypervisor\n") {
		t.Error("a flag of the processor says whether the machine is virtual")
	}
}

// TestPlay: a player answers commands, and says what it cannot do without a device.
func TestPlay(t *testing.T) {
	in, feed := io.Pipe()
	answers, out := io.Pipe()
	go func() { _ = Play(in, out) }()
	go func() {
		_, _ = io.WriteString(feed, `{"Nodes":[{"Device":"none0","Port":1}],"Node":0}{"Op":"pd"}`)
	}()
	p := make([]byte, 4096)
	n, err := answers.Read(p)
	if err != nil || !strings.Contains(string(p[:n]), "before open") {
		t.Errorf("answer %q, %v", p[:n], err)
	}
}

func TestCapabilityIsUnknownUntilProbed(t *testing.T) {
	s := &Setup{caps: map[string]verbs.Capability{"td": verbs.Present}}
	for token, want := range map[string]verbs.Capability{"td": verbs.Present, "mmio log": verbs.Absent, "something new": verbs.Unknown} {
		if got := s.capability(token); got != want {
			t.Errorf("%s: %d, want %d", token, got, want)
		}
	}
	if answer(syscall.EOPNOTSUPP) != verbs.Absent || answer(nil) != verbs.Present || answer(syscall.ENOMEM) != verbs.Unknown {
		t.Error("a probe's answers")
	}
}

// No device is taken away here, which the capability, the call and a file of faults say.
func TestNoHotunplug(t *testing.T) {
	tb := bed()
	if got := tb.Capability("hotunplug"); got != verbs.Absent {
		t.Errorf("hotunplug: %v", got)
	}
	err := tb.RemoveDevice(nil, 0, "none0")
	if !errors.Is(err, syscall.EOPNOTSUPP) || !strings.Contains(err.Error(), "disassociate_ucontext") {
		t.Errorf("%v", err)
	}
}

func TestCopiesOnFork(t *testing.T) {
	for release, want := range map[string]verbs.Capability{"5.11.0-1": verbs.Absent, "5.12.0": verbs.Present, "6.1.0-23-amd64": verbs.Present,
		"4.18.0": verbs.Absent, "": verbs.Unknown} {
		if got := copiesOnFork(release); got != want {
			t.Errorf("%q: %v, want %v", release, got, want)
		}
	}
}

// A forked child writes to its own memory.
func TestFork(t *testing.T) {
	run(t, func(vt verbs.Thread) {
		p := vt.Process().(*process)
		b, err := p.Map(vt, 4096, verbs.MapOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		old := []byte("parent")
		if _, err := b.WriteAt(vt, old, 7); err != nil {
			t.Error(err)
		}
		for range 3 {
			end, err := p.Fork(vt, b, 0xee)
			if err != nil {
				t.Error(err)
				return
			}
			if err := end(vt); err != nil {
				t.Error(err)
			}
		}
		got := make([]byte, len(old))
		if _, err := b.ReadAt(vt, got, 7); err != nil || string(got) != string(old) {
			t.Errorf("%q, %v", got, err)
		}
		if err := b.(verbs.Remapper).Remap(vt); err != nil {
			t.Error(err)
		}
		if _, err := b.ReadAt(vt, got, 7); err != nil || string(got) != "\x00\x00\x00\x00\x00\x00" {
			t.Errorf("fresh memory holds %q, %v", got, err)
		}
		if err := b.Unmap(vt); err != nil {
			t.Error(err)
		}
		if _, err := b.ReadAt(vt, got, 7); !errors.Is(err, syscall.EFAULT) {
			t.Errorf("memory that is gone: %v", err)
		}
	})
}

func TestPCIFunction(t *testing.T) {
	sys := t.TempDir()
	for link, to := range map[string]string{
		"mlx5_0/device": "devices/pci0000:00/0000:00:02.0/0000:07:00.1",
		"mlx5_1/device": "devices/pci0000:00/0000:07:00.0/mlx5_core.sf.2",
		"rxe0/device":   "devices/pci0000:00/0000:00:03.0",
		"siw0/device":   "devices/virtual/net/lo",
	} {
		err := os.MkdirAll(filepath.Join(sys, to), 0o700)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(sys, link)), 0o700)
		}
		if err == nil {
			err = os.Symlink(filepath.Join(sys, to), filepath.Join(sys, link))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(sys, "rxe0/parent"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for device, want := range map[string]string{"mlx5_0": "0000:07:00.1", "mlx5_1": "0000:07:00.0", "rxe0": "", "siw0": "", "none": ""} {
		if got := pciFunction(filepath.Join(sys, device)); got != want {
			t.Errorf("%s: %q, want %q", device, got, want)
		}
	}
}

// TestSimulatedBoard: the identity of the board says that the adapter is simulated.
func TestSimulatedBoard(t *testing.T) {
	for board, want := range map[string]bool{"SIM0000000001\n": true, "MT_0000000012\n": false, "": false} {
		dir := t.TempDir()
		if board != "" {
			if err := os.WriteFile(filepath.Join(dir, "board_id"), []byte(board), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := simulated(dir); got != want {
			t.Errorf("%q: %v", board, got)
		}
	}
}

// A namespace that lacks the interface of the device has nothing to be a member of a group on.
func TestJoinWithoutTheInterface(t *testing.T) {
	if fd, err := join(verbs.GID{10: 0xFF, 11: 0xFF, 12: 239, 13: 7, 14: 7, 15: 1}, 1<<30); fd != -1 || err != nil {
		t.Errorf("descriptor %d, %v; want -1, <nil>", fd, err)
	}
}
