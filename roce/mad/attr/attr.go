// Package attr has the fields of attributes of InfiniBand management: where they are, as libibmad
// has them (fields.c).
package attr

// Field is a part of an attribute: Width bits, 1 to 64, that begin at bit Offset. Bit 0 is the
// highest of byte 0.
type Field struct{ Offset, Width uint16 }

// Get returns the value in b. Bits behind the end of b are 0.
func (f Field) Get(b []byte) (v uint64) {
	for i, end := int(f.Offset), int(f.Offset+f.Width); i < end; {
		n := min(8-i&7, end-i) // bits of this byte
		x := byte(0)
		if i>>3 < len(b) {
			x = b[i>>3]
		}
		v = v<<n | uint64(x>>(8-i&7-n)&(1<<n-1))
		i += n
	}
	return v
}

// Set sets the value in b, of which the lowest Width bits are taken. Bits behind the end of b are
// dropped.
func (f Field) Set(b []byte, v uint64) {
	for i, end := int(f.Offset), int(f.Offset+f.Width); i < end; {
		n := min(8-i&7, end-i)
		if i>>3 < len(b) {
			shift := 8 - i&7 - n
			mask := byte(1<<n-1) << shift
			b[i>>3] = b[i>>3]&^mask | byte(v>>(end-i-n))<<shift&mask
		}
		i += n
	}
}

// In is the field in a record that has its attribute behind bytes of its own.
func (f Field) In(bytes int) Field { return Field{f.Offset + uint16(8*bytes), f.Width} }

// Fields of NodeInfo.
var (
	NodeBaseVersion  = Field{0, 8}
	NodeClassVersion = Field{8, 8}
	NodeType         = Field{16, 8}
	NodePorts        = Field{24, 8}
	NodeSystemGUID   = Field{32, 64}
	NodeGUID         = Field{96, 64}
	NodePortGUID     = Field{160, 64}
	NodePartitions   = Field{224, 16}
	NodeDevice       = Field{240, 16}
	NodeRevision     = Field{256, 32}
	NodeLocalPort    = Field{288, 8}
	NodeVendor       = Field{296, 24}
)

// Fields of PortInfo.
var (
	PortMKey           = Field{0, 64}
	PortGIDPrefix      = Field{64, 64}
	PortLID            = Field{128, 16}
	PortSMLID          = Field{144, 16}
	PortCapMask        = Field{160, 32}
	PortDiagCode       = Field{192, 16}
	PortMKeyLease      = Field{208, 16}
	PortLocalPort      = Field{224, 8}
	PortWidthEnabled   = Field{232, 8}
	PortWidthSupported = Field{240, 8}
	PortWidthActive    = Field{248, 8}
	PortSpeedSupported = Field{256, 4}
	PortState          = Field{260, 4}
	PortPhysState      = Field{264, 4}
	PortDownDefault    = Field{268, 4}
	PortProtect        = Field{272, 2}
	PortLMC            = Field{277, 3}
	PortSpeedActive    = Field{280, 4}
	PortSpeedEnabled   = Field{284, 4}
	PortNeighborMTU    = Field{288, 4}
	PortSMSL           = Field{292, 4}
	PortVLCap          = Field{296, 4}
	PortMTUCap         = Field{332, 4}
	PortOperationalVLs = Field{344, 4}
	PortMKeyViolations = Field{352, 16}
	PortPKeyViolations = Field{368, 16}
	PortQKeyViolations = Field{384, 16}
	PortGUIDCap        = Field{400, 8}
	PortReregister     = Field{408, 1}
	PortSubnetTimeout  = Field{411, 5}
	PortResponseTime   = Field{419, 5}
	PortCapMask2       = Field{480, 16}
	PortExtSpeedActive = Field{496, 4}
	PortExtSpeedCap    = Field{500, 4}
	PortExtSpeedOn     = Field{507, 5}
)

// Fields of the vendor's addition to PortInfo. Bit 0 of each is FDR10.
var (
	VendorSpeedSupported = Field{56, 8}
	VendorSpeedEnabled   = Field{88, 8}
	VendorSpeedActive    = Field{120, 8}
)

// Fields of SwitchInfo.
var (
	SwitchLinearCap    = Field{0, 16}
	SwitchRandomCap    = Field{16, 16}
	SwitchMulticastCap = Field{32, 16}
	SwitchLinearTop    = Field{48, 16}
	SwitchDefaultPort  = Field{64, 8}
	SwitchLifetime     = Field{88, 5}
	SwitchStateChange  = Field{93, 1}
	SwitchPartitions   = Field{112, 16}
	SwitchEnhanced0    = Field{132, 1}
	SwitchMulticastTop = Field{144, 16}
)

// Fields of SMInfo.
var (
	SMGUID     = Field{0, 64}
	SMActivity = Field{128, 32}
	SMPriority = Field{160, 4}
	SMState    = Field{164, 4}
)

// SMMaster is the state of the subnet manager that rules.
const SMMaster = 3

// Fields of PortCounters, and of PortCountersExtended: those that end in 64.
var (
	CountersPort       = Field{8, 8}
	CountersSelect     = Field{16, 16}
	CounterSymbol      = Field{32, 16}
	CounterRecovery    = Field{48, 8}
	CounterDowned      = Field{56, 8}
	CounterRcvErrors   = Field{64, 16}
	CounterRemotePhys  = Field{80, 16}
	CounterRelay       = Field{96, 16}
	CounterDiscards    = Field{112, 16}
	CounterXmitData    = Field{192, 32}
	CounterRcvData     = Field{224, 32}
	CounterXmitPackets = Field{256, 32}
	CounterRcvPackets  = Field{288, 32}
	CounterXmitWait    = Field{320, 32}

	CounterXmitData64      = Field{64, 64}
	CounterRcvData64       = Field{128, 64}
	CounterXmitPackets64   = Field{192, 64}
	CounterRcvPackets64    = Field{256, 64}
	CounterUnicastXmit64   = Field{320, 64}
	CounterUnicastRcv64    = Field{384, 64}
	CounterMulticastXmit64 = Field{448, 64}
	CounterMulticastRcv64  = Field{512, 64}
	ClassCapMask           = Field{16, 16}
	ClassResponseTime      = Field{59, 5}
)
