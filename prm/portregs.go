package prm

// Register is the number of a register of ACCESS_REG (driver.h, MLX5_REG_*).
type Register uint32

// Registers.
const (
	RegROCEAccl       Register = 0x402c // mstflint, register_access_table.adb
	RegPMTU           Register = 0x5003
	RegPTYS           Register = 0x5004
	RegPAOS           Register = 0x5006
	RegPFCC           Register = 0x5007
	RegPPCNT          Register = 0x5008
	RegPVLC           Register = 0x500f
	RegNodeDesc       Register = 0x6001
	RegHostEndianness Register = 0x7004
)

// Sizes of registers that are no more than bytes: a text, and byte 0 (struct
// mlx5_reg_host_endianness).
const (
	NodeDescSize       = 0x40
	HostEndiannessSize = 0x10
)

// Values of byte 0 of RegHostEndianness (main.c, MLX5_SET_HOST_ENDIANNESS).
const (
	HostLittleEndian = 0
	HostBigEndian    = 0x80
)

// op_mods of ACCESS_REG.
const (
	AccessRegWrite = 0
	AccessRegRead  = 1
)

// Bits of PTYSReg.ProtoMask (port.h, MLX5_PTYS_*).
const (
	PTYSInfiniBand = 1 << 0
	PTYSEthernet   = 1 << 2
)

// Bits of the IBLinkWidth fields of PTYSReg (port.h, MLX5_PTYS_WIDTH_*). Those of IBProto are the
// codes of speeds in PortInfo.
const (
	PTYSWidth1X  = 1 << 0
	PTYSWidth2X  = 1 << 1
	PTYSWidth4X  = 1 << 2
	PTYSWidth8X  = 1 << 3
	PTYSWidth12X = 1 << 4
)

// Bits of the EthProto fields of PTYSReg (port.h, enum mlx5e_link_mode), of the copper cable where
// there are several, and of its ExtEthProto fields (enum mlx5e_ext_link_mode).
const (
	PTYS1GBaseKX   = 1 << 1
	PTYS40GBaseCR4 = 1 << 6
	PTYS56GBaseR4  = 1 << 8
	PTYS10GBaseCR  = 1 << 12
	PTYS100GCR4    = 1 << 20
	PTYS25GBaseCR  = 1 << 27
	PTYS50GBaseCR2 = 1 << 30

	PTYSExt200GCR4 = 1 << 12
	PTYSExt400GCR8 = 1 << 15
)

// PTYSDirectAttach is the PTYSReg.ConnectorType of a copper cable (port.h, MLX5E_PORT_DA).
const PTYSDirectAttach = 7

// Values of PAOSReg.AdminStatus and OperStatus (driver.h, enum mlx5_port_status).
const (
	PortUp   = 1
	PortDown = 2
)

// Groups of PPCNTReg.Grp (device.h, MLX5_*_COUNTERS_GROUP).
const (
	PPCNT8023       = 0x00
	PPCNTRFC2863    = 0x01
	PPCNTRFC2819    = 0x02
	PPCNTRFC3635    = 0x03
	PPCNTExtended   = 0x05
	PPCNTPriority   = 0x10
	PPCNTTC         = 0x11
	PPCNTPhysical   = 0x12
	PPCNTInfiniBand = 0x20
)

// PortCounter names a 64-bit counter of a group by its offset behind the first two words of PPCNT.
type PortCounter int

// Counters, by the structure of their group in mlx5_ifc.h.
const (
	PC8023TxFrames  PortCounter = 0x00 // eth_802_3_cntrs_grp_data_layout
	PC8023RxFrames  PortCounter = 0x08
	PC8023TxOctets  PortCounter = 0x20
	PC8023RxOctets  PortCounter = 0x28
	PC2863RxOctets  PortCounter = 0x00 // eth_2863_cntrs_grp_data_layout
	PC2863RxUnicast PortCounter = 0x08
	PC2863TxOctets  PortCounter = 0x28
	PC2863TxUnicast PortCounter = 0x30
	PC2819Octets    PortCounter = 0x08 // eth_2819_cntrs_grp_data_layout
	PC2819Packets   PortCounter = 0x10
	PCPriorityRxOct PortCounter = 0x00 // eth_per_prio_grp_data_layout
	PCPriorityRxFrm PortCounter = 0x20
	PCPriorityTxOct PortCounter = 0x28
	PCPriorityTxFrm PortCounter = 0x48
)

// PortCounterNames are the members of mlx5_ifc.h, without their suffix _high.
var PortCounterNames = [...]struct {
	Counter      PortCounter
	Struct, Name string
}{
	{PC8023TxFrames, "eth_802_3_cntrs_grp_data_layout", "a_frames_transmitted_ok"},
	{PC8023RxFrames, "eth_802_3_cntrs_grp_data_layout", "a_frames_received_ok"},
	{PC8023TxOctets, "eth_802_3_cntrs_grp_data_layout", "a_octets_transmitted_ok"},
	{PC8023RxOctets, "eth_802_3_cntrs_grp_data_layout", "a_octets_received_ok"},
	{PC2863RxOctets, "eth_2863_cntrs_grp_data_layout", "if_in_octets"},
	{PC2863RxUnicast, "eth_2863_cntrs_grp_data_layout", "if_in_ucast_pkts"},
	{PC2863TxOctets, "eth_2863_cntrs_grp_data_layout", "if_out_octets"},
	{PC2863TxUnicast, "eth_2863_cntrs_grp_data_layout", "if_out_ucast_pkts"},
	{PC2819Octets, "eth_2819_cntrs_grp_data_layout", "ether_stats_octets"},
	{PC2819Packets, "eth_2819_cntrs_grp_data_layout", "ether_stats_pkts"},
	{PCPriorityRxOct, "eth_per_prio_grp_data_layout", "rx_octets"},
	{PCPriorityRxFrm, "eth_per_prio_grp_data_layout", "rx_frames"},
	{PCPriorityTxOct, "eth_per_prio_grp_data_layout", "tx_octets"},
	{PCPriorityTxFrm, "eth_per_prio_grp_data_layout", "tx_frames"},
}

// Counter is a counter of the group that the register holds.
func (p PPCNTReg) Counter(c PortCounter) uint64 { return be64(p, 8+int(c)) }

// SetCounter sets a counter of the group that the register holds.
func (p PPCNTReg) SetCounter(c PortCounter, v uint64) { putBE64(p, 8+int(c), v) }
