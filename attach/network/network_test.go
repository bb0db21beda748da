package network

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/profile"
)

func made(t *testing.T, name string, n int, join func(*sim.Engine, *profile.Profile, []*hca.Device) *Network) (*sim.Engine, *Network, []*hca.Device) {
	t.Helper()
	p, err := profile.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	p = p.Resolved()
	e := sim.New(sim.Options{})
	var devices []*hca.Device
	for k := range n {
		l := pcie.NewLink(e, mem.New(1<<20), p.PCIe)
		devices = append(devices, hca.New(e, "mlx5_"+string(rune('0'+k)), l, p.HCA, Identity(k)))
	}
	return e, join(e, p, devices), devices
}

// TestSubnet: the subnet manager gives each port an address of its own.
func TestSubnet(t *testing.T) {
	for n := 1; n <= 3; n++ {
		_, w, devices := made(t, "connectx-5-ib", n, New)
		for k, d := range devices {
			if i := d.PortInfo(); !w.InfiniBand() || i.LID != uint16(k+1) || n > 1 && i.State != roce.PortActive {
				t.Errorf("port %d of %d: %+v", k, n, i)
			}
		}
	}
}

// TestManagedSubnet: beside the devices, however many, there is the subnet manager with an address
// of its own.
func TestManagedSubnet(t *testing.T) {
	for n := 1; n <= 3; n++ {
		_, w, devices := made(t, "connectx-5-ib", n, NewManaged)
		for k, d := range devices {
			if i := d.PortInfo(); i.LID != uint16(k+1) || i.SMLID != uint16(n+1) || i.State != roce.PortActive {
				t.Errorf("port %d of %d: %+v", k, n, i)
			}
			w.Forget(d)
		}
		if i := w.admin.PortInfo(); i.LID != uint16(n+1) || i.State != roce.PortActive {
			t.Errorf("the manager's port: %+v", i)
		}
	}
	_, w, devices := made(t, "connectx-5", 2, NewManaged)
	if w.InfiniBand() || w.admin != nil {
		t.Error("a subnet manager on Ethernet")
	}
	w.Forget(devices[0])
}

// TestPlan: links go down and come back, and what is not here is refused.
func TestPlan(t *testing.T) {
	parse := func(text string) *fault.Plan {
		p, err := fault.Parse("f.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	e, w, devices := made(t, "connectx-5-ib", 2, New)
	if err := w.Plan(parse("links:\n- {port: mlx5_0, at: 1ms, to: down}\n")); err != nil {
		t.Fatal(err)
	}
	if err := e.Run(2 * sim.Millisecond); err != nil || devices[0].PortInfo().State != roce.PortDown {
		t.Errorf("%v, %+v", err, devices[0].PortInfo())
	}
	for text, say := range map[string]string{
		"links:\n- {port: mlx5_7, at: 1ms, to: down}\n":            "mlx5_7",
		"faults:\n- {from: host0/mlx5_0, do: drop}\n":              "there are mlx5_0, mlx5_1",
		"events:\n- {at: 1ms, do: remove, device: host0/mlx5_0}\n": "device",
	} {
		if err := w.Plan(parse(text)); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestCapture: an empty capture is a whole file.
func TestCapture(t *testing.T) {
	e, w, _ := made(t, "connectx-5", 2, New)
	var b bytes.Buffer
	if err := w.Capture(&b, 0); err != nil {
		t.Fatal(err)
	}
	e.Close()
	if err := w.Close(); err != nil || w.Captured() != (Captured{}) {
		t.Errorf("%v, %+v", err, w.Captured())
	}
	if b.Len() == 0 {
		t.Error("no file")
	}
}
