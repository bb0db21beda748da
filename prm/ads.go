package prm

// ADS is an address path of a QPC (mlx5_ifc ads). AckTimeout is 4.096 us << n.
type ADS []byte

// ADSSize is its length in bytes.
const ADSSize = 0x2c

func (a ADS) FL() bool                 { return bit(a, 0x00, 31) }
func (a ADS) SetFL(v bool)             { putBit(a, 0x00, 31, v) }
func (a ADS) FreeAR() bool             { return bit(a, 0x00, 30) }
func (a ADS) SetFreeAR(v bool)         { putBit(a, 0x00, 30, v) }
func (a ADS) PKeyIndex() uint32        { return bits(a, 0x00, 15, 0) }
func (a ADS) SetPKeyIndex(v uint32)    { put(a, 0x00, 15, 0, v) }
func (a ADS) PlaneIndex() uint32       { return bits(a, 0x04, 31, 24) }
func (a ADS) SetPlaneIndex(v uint32)   { put(a, 0x04, 31, 24, v) }
func (a ADS) GRH() bool                { return bit(a, 0x04, 23) }
func (a ADS) SetGRH(v bool)            { putBit(a, 0x04, 23, v) }
func (a ADS) MLID() uint32             { return bits(a, 0x04, 22, 16) }
func (a ADS) SetMLID(v uint32)         { put(a, 0x04, 22, 16, v) }
func (a ADS) RLID() uint32             { return bits(a, 0x04, 15, 0) }
func (a ADS) SetRLID(v uint32)         { put(a, 0x04, 15, 0, v) }
func (a ADS) AckTimeout() uint32       { return bits(a, 0x08, 31, 27) }
func (a ADS) SetAckTimeout(v uint32)   { put(a, 0x08, 31, 27, v) }
func (a ADS) SrcAddrIndex() uint32     { return bits(a, 0x08, 23, 16) }
func (a ADS) SetSrcAddrIndex(v uint32) { put(a, 0x08, 23, 16, v) }
func (a ADS) StatRate() uint32         { return bits(a, 0x08, 11, 8) }
func (a ADS) SetStatRate(v uint32)     { put(a, 0x08, 11, 8, v) }
func (a ADS) HopLimit() uint32         { return bits(a, 0x08, 7, 0) }
func (a ADS) SetHopLimit(v uint32)     { put(a, 0x08, 7, 0, v) }
func (a ADS) TClass() uint32           { return bits(a, 0x0c, 27, 20) }
func (a ADS) SetTClass(v uint32)       { put(a, 0x0c, 27, 20, v) }
func (a ADS) FlowLabel() uint32        { return bits(a, 0x0c, 19, 0) }
func (a ADS) SetFlowLabel(v uint32)    { put(a, 0x0c, 19, 0, v) }
func (a ADS) RGID() []byte             { return a[0x10:0x20:0x20] }
func (a ADS) FDSCP() bool              { return bit(a, 0x20, 27) }
func (a ADS) SetFDSCP(v bool)          { putBit(a, 0x20, 27, v) }
func (a ADS) FECN() bool               { return bit(a, 0x20, 26) }
func (a ADS) SetFECN(v bool)           { putBit(a, 0x20, 26, v) }
func (a ADS) FEthPrio() bool           { return bit(a, 0x20, 24) }
func (a ADS) SetFEthPrio(v bool)       { putBit(a, 0x20, 24, v) }
func (a ADS) ECN() uint32              { return bits(a, 0x20, 23, 22) }
func (a ADS) SetECN(v uint32)          { put(a, 0x20, 23, 22, v) }
func (a ADS) DSCP() uint32             { return bits(a, 0x20, 21, 16) }
func (a ADS) SetDSCP(v uint32)         { put(a, 0x20, 21, 16, v) }
func (a ADS) UDPSport() uint32         { return bits(a, 0x20, 15, 0) }
func (a ADS) SetUDPSport(v uint32)     { put(a, 0x20, 15, 0, v) }
func (a ADS) DEICFI() bool             { return bit(a, 0x24, 31) }
func (a ADS) SetDEICFI(v bool)         { putBit(a, 0x24, 31, v) }
func (a ADS) EthPrio() uint32          { return bits(a, 0x24, 30, 28) }
func (a ADS) SetEthPrio(v uint32)      { put(a, 0x24, 30, 28, v) }
func (a ADS) SL() uint32               { return bits(a, 0x24, 27, 24) }
func (a ADS) SetSL(v uint32)           { put(a, 0x24, 27, 24, v) }
func (a ADS) VHCAPortNum() uint32      { return bits(a, 0x24, 23, 16) }
func (a ADS) SetVHCAPortNum(v uint32)  { put(a, 0x24, 23, 16, v) }

// RMAC is the destination MAC, 6 bytes of the view.
func (a ADS) RMAC() []byte { return a[0x26:0x2c:0x2c] }
