//go:build linux && amd64

package exec

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// networkArg makes the test binary two sessions, of a server and of a client, in a network
// namespace whose loopback interface has the addresses of both: the flags and the program of each,
// as words with spaces between.
const networkArg = "exec-network"

// Addresses of the sessions.
const (
	server4, client4 = "10.77.0.1", "10.77.0.2"
	server6, client6 = "fd77::1", "fd77::2"
)

// testNetwork is the process in the namespace.
func testNetwork(args []string) int {
	err := twoSessions(args[0], args[1], args[2], args[3])
	switch {
	case errors.Is(err, errNoIPv6):
		fmt.Println(err)
		return statusNoIPv6
	case err != nil:
		fmt.Println(err)
		return 1
	}
	return 0
}

// errNoIPv6 is a kernel that gives an interface no address of IPv6.
var errNoIPv6 = errors.New("needs IPv6, of which this kernel gives an interface no address")

const statusNoIPv6 = 77

func twoSessions(serverFlags, server, clientFlags, client string) error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	for _, a := range []string{server4 + "/32", client4 + "/32", server6 + "/128", client6 + "/128"} {
		var addr *netlink.Addr
		if err == nil {
			addr, err = netlink.ParseAddr(a)
		}
		if err == nil && addr.IP.To4() == nil {
			addr.Flags = unix.IFA_F_NODAD // otherwise the kernel lets nobody bind to it before a work item has run
		}
		if err == nil {
			err = netlink.AddrAdd(lo, addr)
		}
		if err != nil && addr != nil && addr.IP.To4() == nil {
			if strings.Contains(serverFlags+clientFlags, server6) {
				return fmt.Errorf("%w: %w", errNoIPv6, err)
			}
			err = nil
		}
	}
	if err != nil {
		return err
	}
	session := func(flags, program string) *osexec.Cmd {
		mustForce([]string{program})
		args := append([]string{runArg}, strings.Fields(flags)...)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], spaceInside, " ")
		}
		args = append(args, "--")
		c := osexec.Command("/proc/self/exe", append(args, strings.Fields(program)...)...)
		c.Dir = "/"
		return c
	}
	var out bytes.Buffer
	s := session(serverFlags, server)
	s.Stdout, s.Stderr = &out, &out
	if err := s.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	// A client that comes before its server ends at once, and is started again. If one fails that
	// met the server, its output tells why, and not that of the next, which finds none.
	var met []byte
	for begin := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		b, err := session(clientFlags, client).CombinedOutput()
		switch {
		case err != nil && met != nil:
			b = met
		case err != nil && !bytes.Contains(b, []byte("connect to")):
			met = b
		}
		select {
		case status := <-ended:
			if err != nil || status != nil {
				return fmt.Errorf("the client: %w\n%s\nthe server: %w\n%s", err, b, status, out.Bytes())
			}
			fmt.Printf("client:\n%s\nserver:\n%s\n", b, out.Bytes())
			return nil
		default:
		}
		if err == nil {
			err = <-ended
			fmt.Printf("client:\n%s\nserver:\n%s\n", b, out.Bytes())
			return err
		}
		if time.Since(begin) > soon {
			_ = s.Process.Kill()
			return fmt.Errorf("the client: %w\n%s\nthe server: %w\n%s", err, b, <-ended, out.Bytes())
		}
	}
}

// spaceInside stands for a space inside one of the flags, which spaces separate.
const spaceInside = "\x1f"

// noRoom is what a session says that was too slow for its peer.
var noRoom = regexp.MustCompile(`dropped datagrams: \d+ for which the socket had no room \(net\.core\.rmem_max\)\n`)

// sessionsOnWire runs a server and a client in sessions of their own, and wants both to succeed.
func (u user) sessionsOnWire(t *testing.T, serverFlags, server, clientFlags, client string) string {
	t.Helper()
	c := osexec.Command("/proc/self/exe", networkArg, serverFlags, server, clientFlags, client)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		ownNetworkAttr(c.SysProcAttr)
	}
	out, err := c.CombinedOutput()
	if errors.Is(err, syscall.EPERM) && os.Getenv(needEnv) == "" {
		t.Skip("needs a kernel that lets users make network namespaces")
	}
	if c.ProcessState != nil && c.ProcessState.ExitCode() == statusNoIPv6 {
		t.Skip(strings.TrimSpace(string(out)))
	}
	if err != nil {
		t.Fatalf("%s | %s: %v\n%s", server, client, err, out)
	}
	return string(out)
}

// TestSessionsOnAWire: programs of two sessions, each with a socket of its own, connect by
// addresses and move right bytes.
func TestSessionsOnAWire(t *testing.T) {
	canListen(t)
	needs(t, "ibv_rc_pingpong", "ib_write_bw", "ib_send_lat", "rping", "ucmatose", "udaddy")
	u := users()[0]
	for i, x := range []struct{ server, client string }{
		{"ibv_rc_pingpong -g 0 -c -e -n 50", "ibv_rc_pingpong -g 0 -c -e -n 50 " + server4},
		{"ib_write_bw -F -s 65536 -n 100", "ib_write_bw -F -s 65536 -n 100 " + server4},
		{"rping -s -a " + server4 + " -V -C 10", "rping -c -a " + server4 + " -V -C 10"},
		{"ib_send_lat -F -e -n 50", "ib_send_lat -F -e -n 50 " + server4},
		{"ucmatose -b " + server4, "ucmatose -s " + server4},
		{"udaddy", "udaddy -s " + server4},
		{"ibv_ud_pingpong -g 0 -e -n 50", "ibv_ud_pingpong -g 0 -e -n 50 " + server4},
		{"ib_read_bw -F -s 65536 -n 100", "ib_read_bw -F -s 65536 -n 100 " + server4},
		{"ib_atomic_bw -F -n 100", "ib_atomic_bw -F -n 100 " + server4},
	} {
		if testing.Short() && i > 2 {
			break
		}
		t.Run(x.server, func(t *testing.T) {
			out := u.sessionsOnWire(t, "-v -wire "+server4, x.server, "-v -wire "+client4+" -allow 10.77.0.0/16", x.client)
			if strings.Contains(noRoom.ReplaceAllString(out, ""), "dropped datagrams") || !strings.Contains(out, "udp:"+client4+" sent") {
				t.Error(out)
			}
		})
	}
}

// Ethernets of two sessions, in UDP datagrams.
const (
	serverLAN = "dgram:5001-5002@"
	clientLAN = "dgram:5002-5001@"
)

// TestSessionsOnAnEthernet: the same by frames of an Ethernet, on which sessions ask for each
// other; by IPv6 and with loss, too.
func TestSessionsOnAnEthernet(t *testing.T) {
	canListen(t)
	needs(t, "ibv_rc_pingpong", "ib_write_bw", "rping", "ibv_ud_pingpong")
	u := users()[0]
	const server, client, server6, client6 = "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2" // which this machine does not have
	for i, x := range []struct{ serverFlags, server, clientFlags, client string }{
		{serverLAN + server, "ibv_rc_pingpong -g 0 -c -e -n 50", clientLAN + client + " -loss 10000", "ibv_rc_pingpong -g 0 -c -e -n 50 " + server4},
		{serverLAN + server, "rping -s -a " + server + " -V -C 10", clientLAN + client + " -allow 192.0.2.0/24", "rping -c -a " + server + " -V -C 10"},
		{serverLAN + server6, "rping -s -a " + server6 + " -V -C 10", clientLAN + client6, "rping -c -a " + server6 + " -V -C 10"},
		{serverLAN + server + " -mtu 4200", "ib_write_bw -F -s 65536 -n 100", clientLAN + client + " -mtu 4200", "ib_write_bw -F -s 65536 -n 100 " + server4},
		{serverLAN + server, "ibv_ud_pingpong -g 0 -e -s 1000 -n 50", clientLAN + client, "ibv_ud_pingpong -g 0 -e -s 1000 -n 50 " + server4},
	} {
		if testing.Short() && i > 1 {
			break
		}
		t.Run(x.server, func(t *testing.T) {
			out := u.sessionsOnWire(t, "-v -wire "+x.serverFlags, x.server, "-v -wire "+x.clientFlags, x.client)
			if strings.Contains(out, "dropped frames") || !strings.Contains(out, "dgram:127.0.0.1:5002-127.0.0.1:5001 sent") ||
				strings.Contains(x.server, "bw") && !strings.Contains(out, "Mtu             : 4096[B]") {
				t.Error(out)
			}
		})
	}
}

// TestIPv6SessionsOnAWire: the same by IPv6.
func TestIPv6SessionsOnAWire(t *testing.T) {
	if testing.Short() {
		t.Skip("TestSessionsOnAWire runs the same by IPv4")
	}
	canListen(t)
	needs(t, "ibv_rc_pingpong", "rping")
	u := users()[0]
	for _, x := range []struct{ server, client string }{
		{"ibv_rc_pingpong -g 0 -c -e -n 50", "ibv_rc_pingpong -g 0 -c -e -n 50 " + server4}, // which connects by TCP over IPv4
		{"rping -s -a " + server6 + " -V -C 10", "rping -c -a " + server6 + " -V -C 10"},
	} {
		u.sessionsOnWire(t, "-wire "+server6, x.server, "-wire "+client6, x.client)
	}
}

// TestLossOnAWire: what one session loses of what it sends and receives is sent again; its capture
// has the frames of both directions, as they are on the wire.
func TestLossOnAWire(t *testing.T) {
	canListen(t)
	needs(t, "ibv_rc_pingpong")
	u := users()[0]
	file := filepath.Join(shared(t), "wire.pcapng")
	program := "ibv_rc_pingpong -g 0 -c -e -n 100"
	// The last frames are not lost: whoever waits for an ACK of a program that has ended fails.
	flags := strings.ReplaceAll("-fault\nfaults: [{do: drop, per_million: 20000, count: 700}]\n-pcap\n"+file, " ", spaceInside)
	out := u.sessionsOnWire(t, "-wire "+server4, program, flags+" -wire "+client4, program+" "+server4)
	if !strings.Contains(out, "fault 1 (drop) has acted upon") || strings.Contains(out, "acted upon 0 of") {
		t.Error(out)
	}
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
		if err != nil || !pk.ICRCOK() || pk.UDP().SrcPort() != roce.UDPPort || pk.IPv4().ID() >= 64 {
			t.Fatalf("%x: %v", p.Data, err)
		}
		from[netip.AddrFrom4(pk.IPv4().Src()).String()]++
	}
	if from[client4] < 400 || from[server4] < 400 || len(from) != 2 {
		t.Errorf("frames by source: %v", from)
	}
}

// TestStrangersOnAWire: who is not allowed reaches nobody, and is counted.
func TestStrangersOnAWire(t *testing.T) {
	canListen(t)
	needs(t, "ibv_rc_pingpong")
	u := users()[0]
	out, status := u.session(t, "-wire", "127.9.9.9", "-allow", "127.9.9.0/25", "--", "sh", "-c", "echo x >/dev/udp/127.9.9.9/4791 2>/dev/null; ibv_devinfo -v")
	if status != 0 || !strings.Contains(out, "::ffff:127.9.9.9, RoCE v2") || strings.Contains(out, "fe80") || strings.Contains(out, "GID[  1]") {
		t.Errorf("status %d:\n%s", status, out)
	}
	for want, args := range map[string][]string{
		"is no address of this machine":     {"-wire", "192.0.2.201"},
		"--devices is 2":                    {"-wire", "127.9.9.9", "-devices", "2"},
		"given twice":                       {"-wire", "127.9.9.9,127.9.9.9", "-devices", "2"},
		"choose a profile":                  {"-wire", "127.9.9.9", "-profile", "connectx-5-ib"},
		"reach no peer":                     {"-wire", "127.9.9.9", "-own-network"},
		"--allow names peers of --wire":     {"-allow", "127.9.9.9"},
		"this machine has no interface abs": {"-wire", "tap:absent0@192.0.2.1"},
		"is taken by another session or pr": {"-wire", "127.9.9.8"},
	} {
		if strings.Contains(want, "taken") {
			hold, err := netipListen("127.9.9.8")
			if err != nil {
				t.Fatal(err)
			}
			defer hold()
		}
		out, status := u.session(t, append(args, "--", "true")...)
		if status != 125 || !strings.Contains(out, want) {
			t.Errorf("%v: status %d, want %q:\n%s", args, status, want, out)
		}
	}
}

// netipListen holds port 4791 of an address.
func netipListen(addr string) (release func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return func() { _ = unix.Close(fd) }, unix.Bind(fd, &unix.SockaddrInet4{Port: roce.UDPPort, Addr: netip.MustParseAddr(addr).As4()})
}
