package uapi

// VFIOUserCommand is a command of the vfio-user protocol.
type VFIOUserCommand uint16

// Commands of a client (docs/interop/vfio-user.rst of QEMU).
const (
	VFIOUserVersionCmd       VFIOUserCommand = 1
	VFIOUserDMAMapCmd        VFIOUserCommand = 2
	VFIOUserDMAUnmapCmd      VFIOUserCommand = 3
	VFIOUserGetInfoCmd       VFIOUserCommand = 4
	VFIOUserGetRegionInfoCmd VFIOUserCommand = 5
	VFIOUserGetIRQInfoCmd    VFIOUserCommand = 7
	VFIOUserSetIRQsCmd       VFIOUserCommand = 8
	VFIOUserRegionReadCmd    VFIOUserCommand = 9
	VFIOUserRegionWriteCmd   VFIOUserCommand = 10
	VFIOUserResetCmd         VFIOUserCommand = 13
)

// Bits of the flags of a header.
const (
	VFIOUserTypeMask = 0xf
	VFIOUserRequest  = 0
	VFIOUserReply    = 1
	VFIOUserNoReply  = 1 << 4
	VFIOUserError    = 1 << 5
)

// Flags, indexes and sizes of linux/vfio.h.
const (
	VFIODeviceFlagReset = 1 << 0
	VFIODeviceFlagPCI   = 1 << 1

	VFIORegionFlagRead  = 1 << 0
	VFIORegionFlagWrite = 1 << 1
	VFIORegionBAR0      = 0
	VFIORegionConfig    = 7
	VFIORegions         = 9

	VFIOIRQFlagEventFD = 1 << 0
	VFIOIRQMSIX        = 2
	VFIOIRQErr         = 3
	VFIOIRQs           = 5

	VFIOIRQDataNone      = 1 << 0
	VFIOIRQDataBool      = 1 << 1
	VFIOIRQDataEventFD   = 1 << 2
	VFIOIRQActionMask    = 1 << 3
	VFIOIRQActionUnmask  = 1 << 4
	VFIOIRQActionTrigger = 1 << 5

	VFIODMARead     = 1 << 0
	VFIODMAWrite    = 1 << 1
	VFIODMAUnmapAll = 1 << 1
)

// Bits of configuration space (linux/pci_regs.h).
const (
	PCICommandMemory      = 1 << 1
	PCICommandMaster      = 1 << 2
	PCICommandParity      = 1 << 6
	PCICommandSERR        = 1 << 8
	PCICommandINTxDisable = 1 << 10
	PCIStatusCapabilities = 1 << 4
	PCIBARMemory64        = 1 << 2
	PCIBARPrefetch        = 1 << 3

	PCICapExpress = 0x10
	PCICapMSIX    = 0x11

	PCIExpressVersion2  = 2
	PCIExpressRoleBased = 1 << 15
	PCIExpressFLR       = 1 << 28
	PCIExpressDoFLR     = 1 << 15

	PCIMSIXEnable  = 1 << 15
	PCIMSIXMaskAll = 1 << 14
)

// Vectors returns the number of vectors that the table of the capability has.
func (c PCIMSIXCap) Vectors() int { return int(c.Control()&0x7ff) + 1 }
