//go:build linux

package wire

import (
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// tapArg has the test binary be a process in a network namespace of its own.
const tapArg = "tap"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == tapArg {
		if err := onTAP(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestTAP: the kernel's own host, on the other side of a TAP interface, finds the adapter by ARP
// and gets its echo; the adapter finds the kernel, and its packets of RoCE reach a socket there.
// Mistakes have their sentences.
func TestTAP(t *testing.T) {
	c := osexec.Command("/proc/self/exe", tapArg)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := c.CombinedOutput()
	var exit *osexec.ExitError
	switch {
	case errors.Is(err, unix.EPERM) || strings.Contains(string(out), errNoTAP.Error()):
		t.Skipf("needs the right to make network namespaces and TAP interfaces: %v %s", err, out)
	case errors.As(err, &exit), err != nil:
		t.Fatalf("%v: %s", err, out)
	}
}

var errNoTAP = errors.New("no TAP interface can be made here")

const tapName = "rdmasim0"

func onTAP() error {
	l := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: tapName}, Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI}
	if err := netlink.LinkAdd(l); err != nil {
		return fmt.Errorf("%w: %w", errNoTAP, err)
	}
	link, err := netlink.LinkByName(tapName)
	if err == nil {
		err = netlink.LinkSetMTU(link, 1400)
	}
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(peerAddress.String() + "/24")
	if err != nil {
		return err
	}
	at := Config{Place: Place{Kind: KindTAP, Name: tapName, Address: ownAddress}}
	var said []string
	at.Say = func(format string, a ...any) { said = append(said, fmt.Sprintf(format, a...)) }
	eth, err := OpenLAN(at)
	if err != nil {
		return err
	}
	if eth.MTU() != 1400 {
		return fmt.Errorf("an MTU of %d", eth.MTU())
	}
	if _, err := OpenLAN(at); err == nil || !strings.Contains(err.Error(), "is taken by another program") {
		return fmt.Errorf("a second one: %w", err)
	}
	eth.queue(newFrame(eth.host.probe()))
	eth.Flush()
	if eth.C.Unreachable != 1 || len(said) != 1 || !strings.Contains(said[0], "`ip link set rdmasim0 up`") {
		return fmt.Errorf("an interface that is down: %q, %+v", said, eth.C)
	}
	if err := errors.Join(netlink.LinkSetUp(link), netlink.AddrAdd(link, a)); err != nil {
		return err
	}
	eth.pool = new(roce.Pool)
	if _, ok := eth.Neighbour(peerAddress); !ok {
		return fmt.Errorf("the kernel does not answer: %q", said)
	}
	if err := pingThrough(eth); err != nil {
		return err
	}
	return rocePackets(eth)
}

// newFrame is a frame with these bytes.
func newFrame(b []byte) *roce.Frame {
	f := new(roce.Pool).GetPlain(len(b))
	copy(f.B, b)
	return f
}

// pingThrough has the kernel send echo requests.
func pingThrough(eth *LAN) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_NONBLOCK, unix.IPPROTO_ICMP)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	m := echo(newHost(peerAddress), ownAddress, 4)[roce.EthernetSize+roce.IPv4Size:]
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrInet4{Addr: ownAddress.As4()}); err != nil {
		return err
	}
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); {
		if awaitFD(eth.FD(), unix.POLLIN, 100*time.Millisecond) {
			eth.park()
		}
		b := make([]byte, 100)
		if n, _, err := unix.Recvfrom(fd, b, 0); err == nil && n == roce.IPv4Size+len(m) && b[roce.IPv4Size] == ether.ICMPEchoReply && b[roce.IPv4Size+5] == 7 {
			return nil
		}
	}
	return errors.New("no answer to an echo request")
}

// rocePackets sends packets to the kernel's host, and those of a socket there to the adapter.
func rocePackets(eth *LAN) error {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: peerAddress.AsSlice(), Port: roce.UDPPort})
	if err != nil {
		return err
	}
	defer c.Close()
	mac, _ := eth.Neighbour(peerAddress)
	t := &testing.T{}
	for _, f := range frames(t, ownAddress, peerAddress, 0, defaultTTL, 100) {
		roce.Ethernet(f.B).SetDst(mac)
		eth.Receive(f)
	}
	eth.Flush()
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	b := make([]byte, 2000)
	if n, from, err := c.ReadFromUDPAddrPort(b); err != nil || n != roce.BTHSize+100+roce.ICRCSize || from.Addr() != ownAddress {
		return fmt.Errorf("%d bytes from %v: %w", n, from, err)
	}
	if _, err := c.WriteToUDP(b[:116], &net.UDPAddr{IP: ownAddress.AsSlice(), Port: roce.UDPPort}); err != nil {
		return err
	}
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until) && len(eth.parked) == 0; {
		if awaitFD(eth.FD(), unix.POLLIN, 100*time.Millisecond) {
			eth.park()
		}
	}
	if len(eth.parked) == 0 {
		return errors.New("no packet of the kernel's host arrives")
	}
	return eth.Close()
}
