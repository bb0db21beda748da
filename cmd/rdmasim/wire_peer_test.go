package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// networkArg makes the test program a shell with the script behind it, in a network of its own
// whose loopback interface has the addresses of two ends.
const networkArg = "network"

const wireServer, wireClient = "10.77.0.1", "10.77.0.2"

func inNetwork(script string) int {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	for _, a := range []string{wireServer, wireClient} {
		if err == nil {
			err = netlink.AddrAdd(lo, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(a).To4(), Mask: net.CIDRMask(32, 32)}})
		}
	}
	if err == nil {
		err = unix.Exec("/bin/sh", []string{"sh", "-c", script}, os.Environ())
	}
	fmt.Println(err)
	return 1
}

// network runs a script in a network of its own.
func network(t *testing.T, script string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := osexec.Command(self, networkArg, script)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		c.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		c.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
	}
	out, err := c.CombinedOutput()
	if errors.Is(err, syscall.EPERM) && os.Getenv(needRDMA) == "" {
		t.Skip("needs a kernel that lets users make network namespaces")
	}
	return string(out), err
}

const needRDMA = "RDMASIM_NEED_RDMA"

// needsPrograms skips a test where programs of Debian are missing that make test installs.
func needsPrograms(t *testing.T, programs ...string) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("needs Linux on x86-64, for exec")
	}
	for _, p := range programs {
		if _, err := osexec.LookPath(p); err != nil && os.Getenv(needRDMA) != "" {
			t.Fatalf("%s is set, and %s is not installed", needRDMA, p)
		} else if err != nil {
			t.Skipf("needs %s", p)
		}
	}
	if os.Getenv(needRDMA) == "" {
		t.Skipf("needs a machine that lets programs be supervised, and %s=1, as make test sets it", needRDMA)
	}
}

// ends is a script that runs a server and a client, which comes when the server listens, and again
// if it came too early.
func ends(server, client string) string {
	return fmt.Sprintf(`exec 3>&1
{ %s; } >&3 2>&3 & s=$!
i=0
until grep -q ':4853 0*:0000 0A' /proc/net/tcp || [ $i -gt %d ]; do i=$((i+1)); kill -0 $s || exit 9; sleep 0.02; done
i=0
until { %s; }; do
	kill -0 $s || exit 8
	i=$((i+1)); [ $i -lt 100 ] || { kill $s; exit 7; }
	sleep 0.2
done
wait $s || exit 6`, server, map[bool]int{true: 1, false: 3000}[strings.Contains(server, "-R") || strings.Contains(server, "rping")], client)
}

// How rping is told which end it is.
const rpingServer, rpingClient = "-s -a " + wireServer, "-c -a "

// wireCase is a program, whose ends are rdmasim wire and Debian's below rdmasim exec --wire.
type wireCase struct {
	program string
	flags   string // of rdmasim wire
	want    string // in the output
}

// noRoom is what an end says that was too slow for its peer.
var noRoom = regexp.MustCompile(`dropped datagrams: \d+ for which the socket had no room \(net\.core\.rmem_max\)\n`)

// TestWirePeers: foreign programs complete with rdmasim wire in both roles, with loss too; the
// pingpongs check every byte.
func TestWirePeers(t *testing.T) {
	needsPrograms(t, "ib_write_bw", "ib_send_lat", "ibv_rc_pingpong", "rping")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []wireCase{
		{"ib_write_bw -F -s 65536 -n 100", "--loss 1%", "fault 1 (drop) has acted upon "},
		{"ibv_rc_pingpong -g 0 -c -s 20000 -n 50", "--loss 1%", "fault 1 (drop) has acted upon "},
		{"ib_send_lat -F -n 100", "--counters", "tx_packets_phy"},
		{"ib_write_bw -F -R -q 2 -n 50", "", ", queue pair 0x"},
		{"ib_read_bw -F -s 65536 -n 50", "", ", path MTU 4096"},
		{"ib_atomic_bw -F -n 100", "", "the peer was perftest"},
		{"ib_write_lat -F -n 50", "--set hca.log_max_qp=12", "the peer was perftest"},
		{"ib_send_bw -F -b -c UD -s 1000 -n 50", "--allow 10.77.0.0/16", "the peer was perftest"},
		{"ibv_uc_pingpong -g 0 -c -n 50", "", "the peer was ibv_uc_pingpong at 10.77.0."},
		{"ibv_ud_pingpong -g 0 -e -n 50", "", "the peer was ibv_ud_pingpong at 10.77.0."},
		{"rping -V -v -C 10", "--loss 1%", "ping data: rdma-ping-9: JKLMN"},
	} {
		if testing.Short() && i > 1 {
			break
		}
		for _, role := range []string{"server", "client"} {
			t.Run(c.program+"/"+role, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "wire.pcapng")
				ours := func(flags string) string {
					return fmt.Sprintf("%s %s wire %s %s --pcap %s -- %s", commands.Quoted(self), mainArg, flags, c.flags, commands.Quoted(file), c.program)
				}
				theirs := func(address, asServer, asClient string) string {
					if !strings.HasPrefix(c.program, "rping") {
						asServer, asClient = strings.TrimPrefix(asServer, rpingServer), strings.TrimPrefix(asClient, rpingClient)
					}
					return fmt.Sprintf("%s %s exec --wire udp:%s -- %s %s%s", commands.Quoted(self), mainArg, address, c.program, asServer, asClient)
				}
				script := ends(ours("--serve udp:"+wireServer), theirs(wireClient, "", rpingClient+wireServer))
				if role == "client" {
					script = ends(theirs(wireServer, rpingServer, ""), ours("--to "+wireServer+" --source udp:"+wireClient))
				}
				var out string
				bad := func() bool {
					out, err = network(t, script)
					return err != nil || !strings.Contains(out, c.want) || i < 2 && strings.Contains(out, "upon 0 of") || strings.Contains(noRoom.ReplaceAllString(out, ""), "dropped datagrams")
				}
				// An ACK may be lost whose sender has ended, and rping's main thread closes the
				// channel on which its other thread waits.
				for try := 1; bad(); try++ {
					if try == 4 || !strings.Contains(c.flags, "--loss") && !strings.HasPrefix(c.program, "rping") {
						t.Fatalf("%v, want %q:\n%s", err, c.want, out)
					}
				}
				if i == 0 {
					checkWireCapture(t, file)
				}
			})
		}
	}
}

// checkWireCapture wants the frames of both directions, as they are on the wire.
func checkWireCapture(t *testing.T, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, frames, err := pcap.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	from := map[string]int{}
	for _, p := range frames {
		pk, err := roce.Parse(p.Data)
		if err != nil || !pk.ICRCOK() || pk.UDP().SrcPort() != roce.UDPPort {
			t.Fatalf("%x: %v", p.Data, err)
		}
		from[netip.AddrFrom4(pk.IPv4().Src()).String()]++
	}
	if from[wireServer] < 100 || from[wireClient] < 1600 || len(from) != 2 {
		t.Errorf("frames by source: %v", from)
	}
}

// TestWireSeesWrongBytes: a byte that changes on the way, with an ICRC that is right, does not pass
// for one that was sent.
func TestWireSeesWrongBytes(t *testing.T) {
	needsPrograms(t, "ibv_rc_pingpong")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "faults.yaml")
	const faults = "faults: [{do: edit, from: wire/mlx5_0, direction: requests, message: 7, edits: [{offset: 100, value: 66}]}]\n"
	if err := os.WriteFile(file, []byte(faults), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := network(t, ends(fmt.Sprintf("%s %s wire --serve udp:%s --fault %s --program ibv_rc_pingpong -- -n 20; [ $? = 1 ]", commands.Quoted(self), mainArg, wireServer, commands.Quoted(file)),
		fmt.Sprintf("%s %s exec --wire udp:%s -- ibv_rc_pingpong -g 0 -n 20 %s", commands.Quoted(self), mainArg, wireClient, wireServer)))
	if want := "the bytes that came last differ from those that came first: byte 88 is 0x42 and was 0x7b"; err != nil || !strings.Contains(out, want) {
		t.Errorf("%v, want %q:\n%s", err, want, out)
	}
}

// lone is address n of this process among those of the loopback interface, so that tests that run
// side by side have their own.
func lone(n int) string {
	pid := os.Getpid()
	return netip.AddrFrom4([4]byte{127, byte(1 + pid>>8%60), byte(pid), byte(1 + n)}).String()
}

// serving runs rdmasim wire as a server, and talk as its client, which may interrupt it.
func serving(t *testing.T, address string, args []string, talk func(c net.Conn, interrupt func())) (int, string) {
	t.Helper()
	type end struct {
		status int
		out    string
	}
	ended := make(chan end, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		var out bytes.Buffer
		status := program.Execute(ctx, append([]string{"wire", "--serve", "udp:" + address}, args...), &out, &out)
		ended <- end{status, out.String()}
	}()
	for {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(address, "18515"), time.Minute)
		if err != nil {
			select {
			case e := <-ended:
				return e.status, e.out
			case <-time.After(5 * time.Millisecond):
				continue
			}
		}
		talk(c, cancel)
		e := <-ended
		_ = c.Close()
		return e.status, e.out
	}
}

// TestWireStrangeClients: a client that is not one of the program's is told from one, and the user
// is told what to do.
func TestWireStrangeClients(t *testing.T) {
	say := func(text string) func(net.Conn, func()) {
		return func(c net.Conn, _ func()) { _, _ = c.Write([]byte(text)) }
	}
	leave := func(c net.Conn, _ func()) { _ = c.Close() }
	interrupt := func(_ net.Conn, interrupt func()) { interrupt() }
	version := func(v string) func(net.Conn, func()) { return say(v + strings.Repeat("\x00", 16-len(v))) }
	pingpong := []string{"--program", "ibv_rc_pingpong"}[:2:2]
	for i, x := range []struct {
		args   []string
		talk   func(net.Conn, func())
		status int
		want   string
	}{
		{nil, say("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), exitFailure, "which is not a version of perftest: another program answers at this port"},
		{nil, version("4.5"), exitFailure, "the peer has version 4.5, and versions before 5.70 exchange other messages"},
		{nil, leave, exitFailure, "the peer has closed the connection"},
		{pingpong, say(strings.Repeat("x", 52)), exitFailure, "not LID:QPN:PSN:GID in 52 bytes: another program answers at this port"},
		{pingpong, say("0000:000041:b7a95e:" + strings.Repeat("0", 32) + "\x00"), exitFailure, "start it with -g and the index of a RoCE v2 GID"},
		{append(pingpong, "--allow", "127.0.0.0/8"), say("0000:000041:b7a95e:" + strings.Repeat("0", 20) + "ffffc0000209\x00"), exitFailure, "the peer's address ::ffff:192.0.2.9 must be reachable"},
		{pingpong, leave, exitFailure, "the peer has closed the connection before it said its address"},
		{nil, interrupt, exitInterrupted, "interrupted"},
		{pingpong, interrupt, exitInterrupted, "interrupted"},
	} {
		if status, out := serving(t, lone(i), x.args, x.talk); status != x.status || !strings.Contains(out, x.want) || strings.Contains(out, "goroutine") {
			t.Errorf("%d: status %d, want %d with %q:\n%s", i, status, x.status, x.want, out)
		}
	}
}

// TestWireRpingIsInterrupted: a server that waits for its first client ends when it is asked to.
func TestWireRpingIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = r.Read(make([]byte, 1)) // when it waits
		cancel()
	}()
	var errs bytes.Buffer
	if status := program.Execute(ctx, []string{"wire", "--serve", "udp:" + lone(25), "--", "rping"}, w, &errs); status != exitInterrupted {
		t.Errorf("status %d: %s", status, &errs)
	}
}

// TestWireTakesAllowedClients: who is left out by --allow is not talked to, by TCP either.
func TestWireTakesAllowedClients(t *testing.T) {
	status, out := serving(t, lone(20), []string{"--allow", "192.0.2.0/24"}, func(c net.Conn, end func()) {
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Error("the server talks to a stranger")
		}
		end()
	})
	if status != exitInterrupted || !strings.Contains(out, "has connected, and --allow leaves it out") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

// TestWireUsage: mistakes are named with what to do, before anything is opened.
func TestWireUsage(t *testing.T) {
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(lone(30)), roce.UDPPort)))
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	tcp, err := net.Listen("tcp", net.JoinHostPort(lone(31), "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	port := strconv.Itoa(tcp.Addr().(*net.TCPAddr).Port)
	serve := "udp:" + lone(32)
	for _, x := range []struct {
		args   []string
		status int
		want   string
	}{
		{nil, exitUsage, "--serve udp:ADDRESS waits for a client, --to HOST is one"},
		{[]string{"--serve", serve, "--to", "127.0.0.1"}, exitUsage, "an end is a server or a client"},
		{[]string{"--serve", lone(32)}, exitUsage, "udp:ADDRESS is needed"},
		{[]string{"--serve", "udp:192.0.2.201"}, exitUsage, "192.0.2.201 is no address of this machine"},
		{[]string{"--serve", "udp:" + lone(30)}, exitUsage, "is taken by another session or program"},
		{[]string{"--serve", "udp:" + lone(31), "--port", port}, exitUsage, "choose another with --port, for both ends"},
		{[]string{"--serve", serve, "--port", "70000"}, exitUsage, "a TCP port from 1 to 65535"},
		{[]string{"--serve", serve, "--source", serve}, exitUsage, "--source is about --to"},
		{[]string{"--serve", serve, "--program", "ucmatose"}, exitUsage, `"ucmatose" is not one of ib_send_bw`},
		{[]string{"--serve", serve, "--", "rping", "-s"}, exitUsage, "--serve and --to say which end it is"},
		{[]string{"--serve", serve, "--", "rping", "-S", "5"}, exitUsage, "-S 5: a size from 26 to 65535"},
		{[]string{"--serve", serve, "--program", "ib_write_bx"}, exitUsage, `did you mean "ib_write_bw"?`},
		{[]string{"--serve", serve, "--program", "ib_read_bw", "--", "ib_write_bw"}, exitUsage, "name the program once"},
		{[]string{"--serve", serve, "--", "ib_write_bw", "192.0.2.1"}, exitUsage, "takes no host; --to 192.0.2.1 is a client"},
		{[]string{"--serve", serve, "--", "-s", "0"}, exitUsage, "Message Size should be between"},
		{[]string{"--serve", serve, "--", "--use_cuda=0"}, exitUsage, "has no GPU"},
		{[]string{"--serve", serve, "--", "ibv_rc_pingpong", "-z"}, exitUsage, "unknown shorthand flag"},
		{[]string{"--serve", serve, "--", "ibv_rc_pingpong", "-g", "3"}, exitUsage, "this end has GID 0 alone"},
		{[]string{"--serve", serve, "--", "ibv_rc_pingpong", "-s", "0"}, exitUsage, "-s 0: a size from 1"},
		{[]string{"--serve", serve, "--profile", "connectx-5-ib"}, exitUsage, "choose a profile without -ib"},
		{[]string{"--serve", serve, "--set", "hca.no_such=1"}, exitUsage, "hca.no_such"},
		{[]string{"--serve", serve, "--allow", "x"}, exitUsage, "a network such as 192.0.2.0/24 is needed"},
		{[]string{"--serve", serve, "--loss", "1"}, exitUsage, "a share from 0.0001% to 100% is needed"},
		{[]string{"--serve", serve, "--pcap", "/absent/x"}, exitUsage, "--pcap"},
		{[]string{"--serve", serve, "--pcap-limit", "1MiB"}, exitUsage, "--pcap-limit is about --pcap"},
		{[]string{"--to", lone(33), "--port", port}, exitFailure, "start the server first, and give the same -p to both"},
		{[]string{"--to", lone(33), "--port", port, "--", "ibv_rc_pingpong"}, exitFailure, "connection refused"},
		{[]string{"--to", "127.0.0.1"}, exitUsage, "is this machine's own address 127.0.0.1: give another"},
		{[]string{"--serve", serve, "--", "ib_write_bw", "--help"}, 0, "Usage"},
		{[]string{"--serve", serve, "--", "ibv_rc_pingpong", "--help"}, 0, "--rx-depth"},
	} {
		if status, out := rdmasim(t, append([]string{"wire"}, x.args...)...); status != x.status || !strings.Contains(out, x.want) {
			t.Errorf("%v: status %d, want %d with %q:\n%s", x.args, status, x.status, x.want, out)
		}
	}
}
