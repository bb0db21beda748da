//go:build linux && amd64

package pci

import (
	"math/bits"

	"github.com/rdmasim/rdmasim/uapi"
)

// configSize is that of the configuration space of PCI Express, in bytes.
const configSize = 4096

// Where capabilities are, as in public listings of cards of this family.
const (
	atExpress = 0x60
	atMSIX    = atExpress + uapi.PCIExpressCapSize
)

// Where BAR 0 has the table and the pending bits of MSI-X. sim/hca gives out no register page below 4.
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

	linkSpeed8GT = 3 // PCI Express 3.0
	linkWidth    = 16
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
	x.SetLinkCap(linkSpeed8GT | linkWidth<<4)
	x.SetLinkStatus(linkSpeed8GT | linkWidth<<4)
	x.SetLinkCap2(1<<(linkSpeed8GT+1) - 2)
	x.SetLinkControl2(linkSpeed8GT)
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

// write stores p at a place of the space, which is inside, and reports whether that begins a function-level reset.
func (s *configSpace) write(off uint64, p []byte) (reset bool) {
	var asked [configSize]byte
	copy(asked[off:], p)
	for i := off; i < off+uint64(len(p)); i++ {
		s.b[i] = s.b[i]&^s.mask[i] | asked[i]&s.mask[i]
	}
	return uapi.PCIExpressCap(asked[atExpress:]).DeviceControl()&uapi.PCIExpressDoFLR != 0
}
