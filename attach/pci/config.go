//go:build linux && amd64

package pci

import (
	"math/bits"

	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/uapi"
)

// configSize is that of the configuration space of PCI Express, in bytes.
const configSize = 4096

// Where capabilities are, as in public listings of cards of this family.
const (
	atExpress = 0x60
	atMSIX    = atExpress + uapi.PCIExpressCapSize
)

// Where BAR 0 has the table and the pending bits of MSI-X. sim/hca gives out no register page below
// 4.
const (
	msixTable    = 0x2000
	msixPending  = 0x3000
	firstUARPage = 0x4000
	maxVectors   = (msixPending - msixTable) / 16
)

// Numbers of configuration space.
const (
	vendorMellanox = 0x15b3
	subsystem      = 0x0007
	classEthernet  = 0x0200
	classIB        = 0x0207
)

// configSpace is the configuration space of a function. A write changes the bits that mask has set.
type configSpace struct {
	b, mask [configSize]byte
	reset   [configSize]byte // b after a reset
}

// identity of a function in its configuration space.
type identity struct {
	device   uint16
	revision uint8
	ib       bool
	bar      uint64 // size of BAR 0, a power of two
	vectors  int
	payload  int // largest payload of a TLP (MPS), in bytes
	link     ExpressLink
}

// ExpressLink is a link of PCI Express: the code of its speed (3 is 8 GT/s), and its lanes.
type ExpressLink struct{ Speed, Lanes int }

// LinkOf is the link of a function whose TLPs can use a bandwidth, in bit/s: the oldest with 8 or
// 16 lanes that carries it, with 128 bits in 130, from PCI Express 3.0 on, as all parts of mlx5
// have. Speed and lanes themselves are no values of a profile.
func LinkOf(bandwidth uint64) ExpressLink {
	for l := (ExpressLink{Speed: 3}); ; l.Speed++ {
		for l.Lanes = 8; l.Lanes <= 16; l.Lanes *= 2 {
			if bandwidth <= uint64(l.GT())*uint64(l.Lanes)*1e9/130*128 || l.Speed == lastSpeed && l.Lanes == 16 {
				return l
			}
		}
	}
}

// lastSpeed is that of PCI Express 6.0.
const lastSpeed = 6

// GT is the speed in GT/s.
func (l ExpressLink) GT() int { return 1 << l.Speed }

// ConfigSpace is the configuration space of a device of a resolved profile with BAR 0 at an
// address, as a driver has set it up, up to its last capability.
func ConfigSpace(p *profile.Profile, bar0, size uint64) []byte {
	s := newConfigSpace(identity{
		device: p.Kernel.PCIDevice, revision: p.Kernel.PCIRevision, ib: p.Link.InfiniBand, bar: size,
		vectors: min(p.HCA.Vectors, maxVectors), payload: p.PCIe.MPS, link: LinkOf(p.PCIe.Bandwidth),
	})
	h := uapi.PCIHeader(s.b[:])
	h.SetCommand(uapi.PCICommandMemory | uapi.PCICommandMaster)
	h.SetBAR0(h.BAR0() | uint32(bar0))
	h.SetBAR1(uint32(bar0 >> 32))
	m := uapi.PCIMSIXCap(s.b[atMSIX:])
	m.SetControl(m.Control() | uapi.PCIMSIXEnable)
	return s.b[:atMSIX+uapi.PCIMSIXCapSize]
}

func newConfigSpace(id identity) *configSpace {
	s := new(configSpace)
	h := uapi.PCIHeader(s.b[:])
	h.SetVendorID(vendorMellanox)
	h.SetDeviceID(id.device)
	h.SetStatus(uapi.PCIStatusCapabilities)
	h.SetRevision(id.revision)
	h.SetClass(classEthernet)
	if id.ib {
		h.SetClass(classIB)
	}
	h.SetBAR0(uapi.PCIBARMemory64 | uapi.PCIBARPrefetch)
	h.SetSubsystemVendorID(vendorMellanox)
	h.SetSubsystemID(subsystem)
	h.SetCapabilities(atExpress)
	x := uapi.PCIExpressCap(s.b[atExpress:])
	x.SetID(uapi.PCICapExpress)
	x.SetNext(atMSIX)
	x.SetFlags(uapi.PCIExpressVersion2) // of an endpoint, type 0
	x.SetDeviceCap(uint32(bits.Len(uint(id.payload))-8) | uapi.PCIExpressRoleBased | uapi.PCIExpressFLR)
	link := uint16(id.link.Speed | id.link.Lanes<<4)
	x.SetLinkCap(uint32(link))
	x.SetLinkStatus(link)
	x.SetLinkCap2(1<<(id.link.Speed+1) - 2)
	x.SetLinkControl2(uint16(id.link.Speed))
	m := uapi.PCIMSIXCap(s.b[atMSIX:])
	m.SetID(uapi.PCICapMSIX)
	m.SetControl(uint16(id.vectors - 1))
	m.SetTable(msixTable)
	m.SetPBA(msixPending)
	s.reset = s.b
	s.allow(id.bar)
	return s
}

// allow sets which bits software may change.
func (s *configSpace) allow(bar uint64) {
	h := uapi.PCIHeader(s.mask[:])
	h.SetCommand(uapi.PCICommandMemory | uapi.PCICommandMaster | uapi.PCICommandParity | uapi.PCICommandSERR | uapi.PCICommandINTxDisable)
	h.SetBAR0(uint32(-bar))
	h.SetBAR1(uint32(-bar >> 32))
	h.SetInterruptLine(0xff)
	x := uapi.PCIExpressCap(s.mask[atExpress:])
	x.SetDeviceControl(0x7fff &^ uapi.PCIExpressDoFLR)
	x.SetLinkControl(0x01f3)
	x.SetDeviceControl2(0x7fff)
	m := uapi.PCIMSIXCap(s.mask[atMSIX:])
	m.SetControl(uapi.PCIMSIXEnable | uapi.PCIMSIXMaskAll)
}

// busMaster reports whether the function may read and write memory.
func (s *configSpace) busMaster() bool {
	return uapi.PCIHeader(s.b[:]).Command()&uapi.PCICommandMaster != 0
}

// write stores p at a place of the space, which is inside, and reports whether that begins a
// function-level reset.
func (s *configSpace) write(off uint64, p []byte) (reset bool) {
	var asked [configSize]byte
	copy(asked[off:], p)
	for i := off; i < off+uint64(len(p)); i++ {
		s.b[i] = s.b[i]&^s.mask[i] | asked[i]&s.mask[i]
	}
	return uapi.PCIExpressCap(asked[atExpress:]).DeviceControl()&uapi.PCIExpressDoFLR != 0
}
