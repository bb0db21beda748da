package network

import (
	"errors"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/verbs"
)

// TestTesterUndoes: what was changed of links, subnet and rules is undone, and the plan of faults
// stays.
func TestTesterUndoes(t *testing.T) {
	t.Run("cable", func(t *testing.T) { testUndo(t, New) })
	t.Run("switch", func(t *testing.T) { testUndo(t, NewManaged) })
}

func testUndo(t *testing.T, join func(*sim.Engine, *profile.Profile, []*hca.Device) *Network) {
	e, n, devs := made(t, "connectx-5-ib", 2, join)
	plan, err := fault.Parse("f.yaml", []byte("faults:\n- {opcode: 8, do: drop}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Plan(plan); err != nil {
		t.Fatal(err)
	}
	x := n.NewTester()
	ports, subnet := x.Reset()
	if len(ports) != 2 || ports[1] != Identity(1).GUID || !subnet {
		t.Fatalf("%#x, %v", ports, subnet)
	}
	err = errors.Join(x.ConfigureSubnet(verbs.SubnetConfig{FirstLID: 0x40, GIDPrefix: 9, PKeys: []uint16{1}, Reregister: true}),
		x.Inject(verbs.WireRule{Action: verbs.WireDrop}), x.SetLink(ports[0], false))
	x.StartTap()
	if i := devs[0].PortInfo(); err != nil || i.State != roce.PortDown || i.LID != 0x40 || n.faults.script.Len() != 2 {
		t.Errorf("%v, %+v, %d rules", err, i, n.faults.script.Len())
	}
	x.Reset()
	if err := e.Run(sim.Second); err != nil {
		t.Fatal(err)
	}
	for k, d := range devs {
		if i := d.PortInfo(); i.State != roce.PortActive || i.LID != uint16(k+1) || i.GIDPrefix != roce.DefaultGIDPrefix {
			t.Errorf("port %d: %+v", k, i)
		}
	}
	if n.faults.script.Len() != 1 {
		t.Errorf("%d rules", n.faults.script.Len())
	}
	if _, err := x.StopTap(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a recording that was undone: %v", err)
	}
}

// TestTesterLimits: what a guest asks for cannot take the memory or the time of the session.
func TestTesterLimits(t *testing.T) {
	_, n, _ := made(t, "connectx-5", 2, New)
	x := n.NewTester()
	for name, r := range map[string]verbs.WireRule{
		"a delay until the end of time": {Action: verbs.WireDelay, Delay: 1<<63 - 1},
		"no action":                     {Action: 200},
		"an edit of nothing":            {Action: verbs.WireEdit},
	} {
		if err := x.Inject(r); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range maxRules + 1 {
		if err := x.Inject(verbs.WireRule{Action: verbs.WireDrop}); (err == nil) != (i < maxRules) || err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("rule %d: %v", i, err)
		}
	}
	if err := x.SetLink(5, true); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("no such device: %v", err)
	}
	if err := x.ConfigureSubnet(verbs.SubnetConfig{}); !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Errorf("no subnet manager: %v", err)
	}
}

// TestSoftwareDevices: an RDMA device in software on a network interface has a GUID that the kernel
// makes of the interface's MAC. A tester has its link, too. InfiniBand has no such devices.
func TestSoftwareDevices(t *testing.T) {
	_, n, _ := made(t, "connectx-5", 2, New)
	x := n.NewTester()
	const soft = 0x0002_c9ff_fe00_0102
	ports, _ := x.Reset()
	if len(ports) != 4 || ports[2] != Identity(1).GUID || ports[3] != soft {
		t.Fatalf("%#x", ports)
	}
	if err := x.SetLink(soft, false); err != nil || n.ports[1].link.Up() {
		t.Errorf("%v, up %v", err, n.ports[1].link.Up())
	}
	if x.Reset(); !n.ports[1].link.Up() {
		t.Error("down after Reset")
	}
	if err := x.SetLink(0, false); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("GUID 0: %v", err)
	}
}
