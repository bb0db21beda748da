//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/tree"
	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/remotewire"
)

// benchArg makes the test binary a program that has the devices of its session in hand while a
// shell runs a script.
const benchArg = "exec-bench"

func testBench(args []string) int {
	if err := bench(args[0]); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func bench(script string) error {
	c, err := net.Dial("unix", os.Getenv(remotewire.SocketEnv))
	if err != nil {
		return err
	}
	w, err := remotewire.New(c, []uint64{network.Identity(0).GUID, network.Identity(1).GUID})
	if err != nil {
		return err
	}
	before, err := w.Counters(0)
	if err := errors.Join(err, w.StartLog()); err != nil {
		return err
	}
	cmd := osexec.Command("sh", "-c", script)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	writes, err := w.StopLog()
	if err != nil {
		return err
	}
	after, err := w.Counters(0)
	if err != nil {
		return err
	}
	rings := 0
	for _, x := range writes {
		if x.Kind != verbs.MMIODoorbell && x.Kind != verbs.MMIOBlueFlame || x.UARPage == 0 || x.Len != len(x.Data) {
			return fmt.Errorf("a write to a register: %+v", x)
		}
		rings++
	}
	fmt.Printf("%d rings, %d packets left\n", rings, after["tx_packets_phy"]-before["tx_packets_phy"])
	clock, err := w.Clock()
	if err != nil || clock <= 0 {
		return fmt.Errorf("the devices worked for %v: %w", clock, err)
	}
	return errors.Join(benchRefusals(w), benchAddresses(w), w.Close())
}

func benchRefusals(w *remotewire.Client) error {
	for what, err := range map[string]error{"tear in the middle of a word": w.Tear(0, 1, 12), "tear fewer than none": w.Tear(0, -1, 8)} {
		if !errors.Is(err, syscall.EINVAL) {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := w.FailNext(0, 0xabcdef, 1, 1); !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("a QP that is not there: %w", err)
	}
	return nil
}

// benchAddresses gives a port an address, which its files show, and takes it away.
func benchAddresses(w *remotewire.Client) error {
	ip := netip.MustParseAddr("10.1.0.99")
	shown := func() bool {
		all, err := osexec.Command("sh", "-c", "cat /sys/class/infiniband/mlx5_0/ports/1/gids/*").Output()
		return err == nil && strings.Contains(string(all), "ffff:0a01:0063")
	}
	was := shown()
	if err := w.Address(0, ip, true); err != nil {
		return err
	}
	if is := shown(); was || !is {
		return fmt.Errorf("the address is in the files before it is added: %v, and afterwards: %v", was, is)
	}
	for what, x := range map[string]struct{ err, want error }{
		"twice": {w.Address(1, ip, true), syscall.EEXIST}, "what was not added": {w.Address(0, netip.MustParseAddr("10.1.0.1"), false), syscall.EADDRNOTAVAIL},
		"no address": {w.Address(0, netip.Addr{}, true), syscall.EINVAL},
	} {
		if !errors.Is(x.err, x.want) {
			return fmt.Errorf("%s: %w", what, x.err)
		}
	}
	return w.Address(0, ip, false)
}

// TestBench: a program of the session sees the register writes and counters of the devices, and
// changes addresses.
func TestBench(t *testing.T) {
	canListen(t)
	needs(t, "ibv_rc_pingpong")
	each(t, func(t *testing.T, u user) {
		p := port(t)
		script := fmt.Sprintf(`ibv_rc_pingpong -g 0 -s 512 -n 10 -d mlx5_0 -p %d & s=$!; %s; ibv_rc_pingpong -g 0 -s 512 -n 10 -d mlx5_1 -p %[1]d 127.0.0.1; wait`, p, listens(p))
		out, status := u.session(t, "-devices", "2", "--", "/proc/self/exe", benchArg, script)
		if status != 0 || !strings.Contains(out, "20 rings, 20 packets left") {
			t.Fatalf("status %d, want 10 messages each way, with an ACK for each:\n%s", status, out)
		}
	})
}

// fstatArg makes the test binary a program that asks for the status of device files, before and
// after the first call.
const fstatArg = "exec-fstat"

func testFstat([]string) int {
	for k := range 2 {
		f, err := os.OpenFile(tree.DevFile(k), os.O_RDWR, 0)
		var st unix.Stat_t
		if err == nil {
			err = unix.Fstat(int(f.Fd()), &st)
		}
		if want := unix.Mkdev(tree.Major, uint32(tree.FirstMinor+k)); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != want {
			fmt.Printf("device file %d: mode %o, number %#x, want %#x: %v\n", k, st.Mode, st.Rdev, want, err)
			return 1
		}
	}
	var st unix.Stat_t
	null, err := os.Open("/dev/null")
	if err == nil {
		err = unix.Fstat(int(null.Fd()), &st)
	}
	if err != nil || st.Rdev != unix.Mkdev(tree.NullMajor, tree.NullMinor) {
		fmt.Printf("the null device: number %#x, %v\n", st.Rdev, err)
		return 1
	}
	return 0
}

// TestStatusOfDeviceFiles: a descriptor of a device file says that it is one, and of which device.
func TestStatusOfDeviceFiles(t *testing.T) {
	each(t, func(t *testing.T, u user) {
		for _, flags := range u.sessions(nil, []string{"-path-calls"}) {
			if out, status := u.session(t, append(flags, "-devices", "2", "--", "/proc/self/exe", fstatArg)...); status != 0 {
				t.Errorf("%v: status %d:\n%s", flags, status, out)
			}
		}
	})
}
