//go:build linux && amd64

package pci

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
)

// ends are two ends of an Ethernet in UDP datagrams, of addresses of this process.
func ends() [2]*wire.Place {
	pid := os.Getpid()
	a := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(64 + pid>>8%128), byte(pid), 201}), 5001)
	b := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(64 + pid>>8%128), byte(pid), 202}), 5002)
	return [2]*wire.Place{{Kind: wire.KindDgram, Local: a, Remote: b}, {Kind: wire.KindDgram, Local: b, Remote: a}}
}

// TestGuestsOfTwoSessions: on an Ethernet guests of two sessions write to each other's memory, with
// frames lost, and their network interfaces get packets of IP, broadcasts, and frames of a VLAN and
// of RoCE v1; one session has a single function, the other a switch.
func TestGuestsOfTwoSessions(t *testing.T) {
	at := ends()
	var servers [2]*Server
	log := new(said)
	file := filepath.Join(t.TempDir(), "p.pcapng")
	for i := range servers {
		cfg := config(t, 1+i, "connectx-5")
		cfg.Wire, cfg.Logf = at[i], log.logf
		if i == 1 {
			cfg.Pcap = file
			var err error
			if cfg.Faults, err = fault.Parse("f.yaml", []byte("faults:\n- {from: wire, opcode: 8, count: 1, do: drop}\n")); err != nil {
				t.Fatal(err)
			}
		}
		servers[i] = start(t, cfg)
	}
	ids := [2]roce.MAC{servers[0].m.fns[0].hca.Identity().MAC, servers[1].m.fns[1].hca.Identity().MAC}
	if all := []roce.MAC{ids[0], ids[1], servers[1].m.fns[0].hca.Identity().MAC}; all[0] == all[1] || all[1] == all[2] || all[0] == all[2] {
		t.Errorf("addresses of functions: %v", all)
	}
	var qps [2]*guestQP
	for k, path := range []string{servers[0].Sockets()[0], servers[1].Sockets()[1]} {
		g := dial(t, path)
		g.bringUp()
		g.setGID(k)
		qps[k] = g.newQP()
	}
	a, b := qps[0], qps[1]
	a.connect(1, b.n)
	b.connect(0, a.n)
	ra, rb := a.g.newMR(64<<10), b.g.newMR(64<<10)
	fill(a.g.at(ra.pa, 64<<10), 3)
	a.post(prm.WQEOpRDMAWrite, ra, 0, 40000, rb.pa, rb.key)
	if e := a.cq.wait(); e.Opcode() != prm.CQEReq || !bytes.Equal(b.g.at(rb.pa, 40000), a.g.at(ra.pa, 40000)) {
		t.Fatalf("write: %x", []byte(e))
	}
	fill(b.g.at(rb.pa, 64<<10), 4)
	b.post(prm.WQEOpRDMAWrite, rb, 0, 40000, ra.pa, ra.key)
	if e := b.cq.wait(); e.Opcode() != prm.CQEReq || !bytes.Equal(b.g.at(rb.pa, 40000), a.g.at(ra.pa, 40000)) {
		t.Fatalf("write back: %x", []byte(e))
	}
	na, nb := a.g.newNet(0), b.g.newNet(1)
	frame := func(dst roce.MAC, typ uint16) []byte {
		p := datagram(9, bytes.Repeat([]byte{byte(typ>>8) + 1}, 80))
		roce.Ethernet(p).SetDst(dst)
		roce.Ethernet(p).SetType(typ)
		return p
	}
	for _, p := range [][]byte{
		datagram(7, []byte("a packet of IP, longer than what is padded")), frame(roce.MAC{255, 255, 255, 255, 255, 255}, 0x0806), frame(network.Identity(1).MAC, roce.EtherTypeVLAN),
		frame(network.Identity(1).MAC, 0x88b5),
	} {
		na.send(p, 0)
		if got := nb.receive(); !bytes.Equal(got[:12], p[:12]) || !bytes.HasSuffix(got, p[len(p)-14:]) { // a tag may be in the completion
			t.Errorf("% x arrives as % x", p, got)
		}
	}
	a.g.kill()
	b.g.kill()
	for _, s := range servers {
		closed(t, s)
	}
	if !log.has("rule 1 of the faults has acted upon 1 frame") || !log.has(at[0].String()+": ") || log.has("dropped frames") {
		t.Errorf("said: %q", log.lines)
	}
	if all, err := os.ReadFile(file); err != nil || !bytes.Contains(all, []byte("a packet of IP")) {
		t.Errorf("the capture: %v", err)
	}
}

// TestLANErrors: an Ethernet that cannot be opened leaves nothing behind; QEMU's options name its
// other end.
func TestLANErrors(t *testing.T) {
	at := ends()
	cfg := config(t, 1, "connectx-5")
	cfg.Wire = at[0]
	s := start(t, cfg)
	if all := s.QEMUOptions(); !slices.ContainsFunc(all, func(o string) bool {
		return strings.Contains(o, "remote.port=5001") && strings.Contains(o, "local.port=5002")
	}) {
		t.Errorf("%q", all)
	}
	again := config(t, 1, "connectx-5")
	again.Wire = at[0]
	if _, err := Start(t.Context(), again); err == nil || !strings.Contains(err.Error(), "is taken") {
		t.Errorf("%v", err)
	}
	closed(t, s)
	ib := config(t, 1, "connectx-5-ib")
	ib.Wire = at[0]
	if _, err := Start(t.Context(), ib); err == nil || !strings.Contains(err.Error(), "choose a profile without -ib") {
		t.Errorf("%v", err)
	}
	bad := config(t, 1, "connectx-5")
	bad.Wire, bad.Tester = at[0], filepath.Join(t.TempDir(), strings.Repeat("x", 200))
	if _, err := Start(t.Context(), bad); err == nil {
		t.Error("a socket of a tester that cannot be")
	}
	closed(t, start(t, again)) // the Ethernet of the failed start was given back
}
