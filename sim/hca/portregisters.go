package hca

import (
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
)

// portRegisters are what drivers have written to the registers of ACCESS_REG.
type portRegisters struct {
	nodeDesc   [prm.NodeDescSize]byte
	endianness byte   // of the host, RegHostEndianness
	adminDown  bool   // PAOS: the driver does not want the port; Ethernet only
	adminMTU   uint32 // PMTU, Ethernet only
	vportAdmin uint8  // MODIFY_VPORT_STATE
	events     uint32 // PAOS.E
	protocols  linkProtocols
	lanes      uint32 // PVLC: data lanes that the driver wants

	lists [prm.VportListTypes][]byte // of addresses, from MODIFY_NIC_VPORT_CONTEXT
}

// Frame sizes of an Ethernet port in bytes, headers and FCS included: what Linux makes of an MTU of
// 1500, the state after power-on, and of 9978, the largest that its mlx5 interfaces take.
const (
	ethernetMTU    = 1522
	maxEthernetMTU = 10000
)

// newPortRegisters is the state after power-on.
func newPortRegisters(p *Params) portRegisters {
	r := portRegisters{adminMTU: ethernetMTU, vportAdmin: prm.VportStateUp, protocols: protocolsOf(p), lanes: vlHWCap}
	copy(r.nodeDesc[:], fmt.Sprintf("MT%d Mellanox Technologies", p.VendorPartID))
	return r
}

// logMaxVportList are the longest lists of addresses, those of unicast, of multicast and of VLANs.
// Assumed: they say no more than what a Linux driver may ask for.
var logMaxVportList = [prm.VportListTypes]uint32{7, 11, 12}

// vlHWCap is how many data lanes an InfiniBand port can have: what ports of this family report.
const vlHWCap = 4

// linkProtocols is a link as PTYS has it: words of bits.
type linkProtocols struct{ ext, eth, width, ib uint32 }

// protocolsOf is the link of a device's port: the fastest kind that is not faster than its rate.
func protocolsOf(p *Params) linkProtocols {
	if p.LinkLayer == InfiniBand {
		return ibProtocol(p.WireRate)
	}
	kinds := [...]struct {
		rate uint64
		is   linkProtocols
	}{
		{400e9, linkProtocols{ext: prm.PTYSExt400GCR8}}, {200e9, linkProtocols{ext: prm.PTYSExt200GCR4}},
		{100e9, linkProtocols{eth: prm.PTYS100GCR4}}, {56e9, linkProtocols{eth: prm.PTYS56GBaseR4}},
		{50e9, linkProtocols{eth: prm.PTYS50GBaseCR2}}, {40e9, linkProtocols{eth: prm.PTYS40GBaseCR4}},
		{25e9, linkProtocols{eth: prm.PTYS25GBaseCR}}, {10e9, linkProtocols{eth: prm.PTYS10GBaseCR}},
	}
	for _, k := range kinds {
		if k.rate <= p.WireRate {
			return k.is
		}
	}
	return linkProtocols{eth: prm.PTYS1GBaseKX}
}

// ibProtocol is the InfiniBand link with a data rate: of 4 lanes if they have it, else of the
// number that has, else the fastest of 4 lanes that is not faster.
func ibProtocol(rate uint64) linkProtocols {
	lanes := [...]struct {
		rate uint64 // data of a lane, bits per second (IBTA Vol. 2), times 66
		code uint32 // in PortInfo
	}{
		{50e9 * 66, 64}, {25e9 * 66, 32}, {14_062_500_000 * 64, 16}, {10e9 * 66, 8}, {8e9 * 66, 4}, {4e9 * 66, 2}, {2e9 * 66, 1},
	}
	for _, w := range [...]struct{ n, bit uint32 }{{4, prm.PTYSWidth4X}, {1, prm.PTYSWidth1X}, {12, prm.PTYSWidth12X}, {2, prm.PTYSWidth2X}, {8, prm.PTYSWidth8X}} {
		for _, l := range lanes {
			if uint64(w.n)*l.rate/66 == rate {
				return linkProtocols{width: w.bit, ib: l.code}
			}
		}
	}
	for _, l := range lanes {
		if 4*l.rate/66 <= rate {
			return linkProtocols{width: prm.PTYSWidth4X, ib: l.code}
		}
	}
	return linkProtocols{width: prm.PTYSWidth1X, ib: 1}
}
