package profile

import (
	"errors"
	"fmt"

	"github.com/rdmasim/rdmasim/sim/hca"
)

// ethernetOnly are the values that have no effect on InfiniBand, for which section ib has
// its own.
var ethernetOnly = []string{
	"hca.wire_rate", "hca.wire_overhead", "hca.roce_adder", "link.bandwidth", "link.pfc", "link.preamble", "link.fcs", "link.gap", "link.min_frame",
	"kernel.link_width", "kernel.link_speed", "kernel.net_mtu", "switch.buffer", "congestion.dcqcn",
}

// checkLinkLayer refuses an override that the link layer does not use: a sweep over it
// would show nothing.
func (p *Profile) checkLinkLayer() error {
	if p.HCA.LinkLayer != hca.InfiniBand {
		return nil
	}
	var errs []error
	for _, key := range ethernetOnly {
		if p.origins[key].source == Override {
			errs = append(errs, fmt.Errorf("%s has an effect on Ethernet only, and hca.link_layer is infiniband: set the values of section ib instead", key))
		}
	}
	return errors.Join(errs...)
}

// Resolved is the profile with the values that depend on its link layer filled in: on
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
