package profile

import (
	"errors"
	"fmt"

	"github.com/rdmasim/rdmasim/sim/hca"
)

// ofEthernet are the values that do not count on InfiniBand, where section ib has their
// like.
var ofEthernet = []string{
	"hca.wire_rate", "hca.wire_overhead", "hca.roce_adder", "link.bandwidth", "link.pfc", "link.preamble", "link.fcs", "link.gap", "link.min_frame",
	"kernel.link_width", "kernel.link_speed", "kernel.net_mtu", "switch.buffer", "congestion.dcqcn",
}

// checkLinkLayer refuses to set what the link layer has no use for: a sweep over it
// would show nothing.
func (p *Profile) checkLinkLayer() error {
	if p.HCA.LinkLayer != hca.InfiniBand {
		return nil
	}
	var errs []error
	for _, key := range ofEthernet {
		if p.origins[key].source == Override {
			errs = append(errs, fmt.Errorf("%s is of Ethernet, and hca.link_layer is infiniband: section ib has the values of that link", key))
		}
	}
	return errors.Join(errs...)
}

// Resolved is the profile with the values that its link layer decides in their places: on
// InfiniBand the rate and the bytes around a packet come from section ib.
func (p *Profile) Resolved() *Profile {
	if p.HCA.LinkLayer != hca.InfiniBand {
		return p
	}
	c := p.Clone()
	ib := &c.Link.IB
	c.Link.InfiniBand = true
	c.HCA.WireRate, c.HCA.WireOverhead, c.HCA.RoCEAdder = ib.Rate(), ib.Overhead(), 0
	c.Kernel.LinkWidth, c.Kernel.LinkSpeed = ib.WidthCode(), ib.SpeedCode()
	return c
}
