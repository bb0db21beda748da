//go:build linux && amd64

package exec

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// walkArg makes the test binary walk to a device by folders that it has open.
const walkArg = "exec-walk"

const function = "/sys/devices/pci0001:01/0001:01:00.0"

// walk prints what it finds, or the first error.
func walk() int {
	fd := unix.AT_FDCWD
	for _, name := range []string{"/", "sys", "class", "infiniband"} {
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			fmt.Println(name, err)
			return 1
		}
		fd = next
	}
	list, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	names, err2 := os.NewFile(uintptr(list), "list").Readdirnames(-1)
	fmt.Println("entries", names, err, err2)
	b := make([]byte, 256)
	n, err := unix.Readlinkat(fd, "mlx5_0", b)
	fmt.Println("link", string(b[:max(n, 0)]), err)
	var st unix.Stat_t
	err = unix.Fstatat(fd, "mlx5_0", &st, unix.AT_SYMLINK_NOFOLLOW)
	fmt.Println("is a link", st.Mode&unix.S_IFMT == unix.S_IFLNK, err)
	for _, name := range []string{"mlx5_0/device/vendor", "mlx5_0/../../vendor", "mlx5_0/device/subsystem/devices/0001:01:00.0/vendor", "mlx5_0/ports/1/counters/link_downed"} {
		file, err := unix.Openat(fd, name, unix.O_RDONLY, 0)
		if err == nil {
			n, err = unix.Read(file, b)
		}
		fmt.Println(name, strings.TrimSpace(string(b[:max(n, 0)])), err)
	}
	at, err := filepath.EvalSymlinks("/sys/bus/pci/devices/0001:01:00.0/driver/0001:01:00.0/infiniband_verbs/uverbs0/device/../0001:01:00.0/net/sim0")
	fmt.Println(at, err)
	_, err = os.Open(function + "/vendor/..")
	fmt.Println(err)
	return 0
}

// TestFunctionOfADevice: programs come from the class to the PCI function by any kind of path, as
// root, who has mounts, and as others, for whom path calls are answered.
func TestFunctionOfADevice(t *testing.T) {
	canListen(t)
	if used, _ := filepath.Glob("/sys/devices/pci0001:*"); used != nil {
		t.Skip("needs a machine that has no PCI functions of domain 1, the simulated devices' if it is free")
	}
	want := `entries [mlx5_0] <nil> <nil>
link ../../devices/pci0001:01/0001:01:00.0/infiniband/mlx5_0 <nil>
is a link true <nil>
mlx5_0/device/vendor 0x15b3 <nil>
mlx5_0/../../vendor 0x15b3 <nil>
mlx5_0/device/subsystem/devices/0001:01:00.0/vendor 0x15b3 <nil>
mlx5_0/ports/1/counters/link_downed 0 <nil>
` + function + `/net/sim0 <nil>
open ` + function + `/vendor/..: not a directory
`
	each(t, func(t *testing.T, u user) {
		for _, flags := range u.sessions([]string{"--"}, []string{"-path-calls", "--"}) {
			if out, status := u.session(t, append(flags, "/proc/self/exe", walkArg)...); status != 0 || !strings.HasPrefix(out, want) {
				t.Errorf("%v: status %d, want\n%s\ngot\n%s", flags, status, want, out)
			}
		}
	})
}

// TestHostBesideTheFunctions: programs see the machine's own PCI functions and devices as before.
func TestHostBesideTheFunctions(t *testing.T) {
	canListen(t)
	ls := []string{"sh", "-c", "ls /sys/devices /sys/bus/pci/devices /sys/bus/pci/drivers; cat /sys/devices/system/cpu/online"}
	own := regexp.MustCompile(`(?m)^(pci0001:0.|0001:0.:00.0|mlx5_core)\n`)
	host, err := osexec.Command(ls[0], ls[1:]...).Output()
	if err != nil {
		t.Skip("needs a machine with PCI: ", err)
	}
	outside := string(host)
	for _, flag := range []string{"-no-odp", "-path-calls"} {
		out, status := users()[0].session(t, append([]string{flag, "-devices", "2", "--"}, ls...)...)
		out, _, _ = strings.Cut(out, " made no RDMA call")
		if inside := own.ReplaceAllString(out, ""); status != 0 || !strings.HasPrefix(inside, outside) {
			t.Errorf("%s: status %d, inside\n%s\noutside\n%s", flag, status, inside, outside)
		}
		if flag != "-path-calls" && users()[0].id == 0 && len(own.FindAllString(out, -1)) != 5 {
			t.Errorf("%s: want two bridges, two functions and a driver of ours:\n%s", flag, out)
		}
	}
}

// TestTrafficCounters: the counters of ports count what has passed the cable, once the programs
// have ended.
func TestTrafficCounters(t *testing.T) {
	canListen(t)
	needs(t, "ib_write_lat")
	p := port(t)
	out, status := users()[0].session(t, "-devices", "2", "--", "sh", "-c", fmt.Sprintf(`ib_write_lat -F -x 0 -n 20 -d mlx5_0 -p %d >/dev/null & s=$!; %s
		ib_write_lat -F -x 0 -n 20 -d mlx5_1 -p %[1]d 127.0.0.1 >/dev/null; wait $s
		for c in packets data; do echo $c $(cat /sys/class/infiniband/mlx5_[01]/ports/1/counters/port_*_$c); done`, p, listens(p)))
	m := regexp.MustCompile(`(?m)^packets (\d+) (\d+) (\d+) (\d+)\ndata (\d+) (\d+) (\d+) (\d+)$`).FindStringSubmatch(out)
	if status != 0 || m == nil {
		t.Fatalf("status %d:\n%s", status, out)
	}
	// Of each device: received, sent.
	if m[1] != m[4] || m[2] != m[3] || m[5] != m[8] || m[6] != m[7] || len(m[2]) < 2 || len(m[6]) < 3 {
		t.Errorf("received and sent by two devices: %v", m[1:])
	}
}

func TestMaskOfProcessors(t *testing.T) {
	for list, want := range map[string]string{
		"0": "1", "0-1": "3", "0-3,8": "10f", "0-35": "f,ffffffff", "32": "1,00000000", "64-127": "ffffffff,ffffffff,00000000,00000000",
		"": "", "1-0": "", "-1": "", "x": "", "0-99999999": "",
	} {
		if got, ok := cpuMask(list); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v; want %q", list, got, ok, want)
		}
	}
}
