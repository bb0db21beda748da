package profile

import (
	"strings"
	"testing"
)

// A device refuses a link layer that it does not have, with an error at the position of the
// value.
func TestLinkLayerThatTheDeviceLacks(t *testing.T) {
	for _, c := range []struct{ profile, layer, want string }{
		{"connect-ib", "ethernet", "hca.link_layer: hca.link_layer is ethernet, which the device does not have: its port is infiniband only"},
		{"connectx-6dx", "infiniband", "hca.link_layer is infiniband, which the device does not have: its port is ethernet only"},
		{"connectx-4lx", "infiniband", "its port is ethernet only"},
	} {
		p := load(t, c.profile)
		if err := p.Set("hca.link_layer", c.layer); err != nil {
			t.Fatal(err)
		}
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s on %s: %v", c.profile, c.layer, err)
		}
	}
	_, err := Parse("mine.yaml", []byte("name: mine\ntitle: Mine\nextends: connect-ib\nhca:\n  link_layer: {value: ethernet, source: assumed, reason: test}\n"))
	if err == nil || !strings.Contains(err.Error(), "mine.yaml:5:") || !strings.Contains(err.Error(), "infiniband only") {
		t.Errorf("a file: %v", err)
	}
	for _, name := range []string{"connectx-4", "connectx-5"} {
		p := load(t, name)
		if err := p.Set("hca.link_layer", "infiniband"); err != nil || p.Validate() != nil {
			t.Errorf("%s cannot be of InfiniBand: %v, %v", name, err, p.Validate())
		}
	}
}

func TestResolved(t *testing.T) {
	if p := load(t, "connectx-5"); p.Resolved() != p {
		t.Error("an Ethernet profile is changed")
	}
	p := load(t, "connect-ib")
	q := p.Resolved()
	if !q.Link.InfiniBand || q.HCA.WireRate != 54545454545 || q.HCA.WireOverhead != p.Link.IB.Delimiters+2 || q.Kernel.LinkSpeed != 16 || q.Kernel.LinkWidth != 2 {
		t.Errorf("%+v", q.HCA)
	}
	if p.Link.InfiniBand || p.Hash() != load(t, "connect-ib").Hash() {
		t.Error("the profile itself was changed")
	}
}

// A value that has an effect on Ethernet only cannot be set on InfiniBand.
func TestOverridesOfTheOtherLinkLayer(t *testing.T) {
	p := load(t, "connect-ib")
	if err := p.Set("link.bandwidth", "200Gbps"); err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "link.bandwidth has an effect on Ethernet only") {
		t.Errorf("link.bandwidth on InfiniBand: %v", err)
	}
	p = load(t, "connect-ib")
	if err := p.Assign("ib.speed=hdr"); err != nil || p.Validate() != nil || p.Resolved().HCA.WireRate != 200_000_000_000 {
		t.Errorf("ib.speed=hdr: %v, %d bit/s", err, p.Resolved().HCA.WireRate)
	}
	if err := p.Assign("ib.speed=ndr"); err == nil {
		t.Error("a speed that is not in the table passes")
	}
}
