package prm

// AtomicCap is the atomic capability page (mlx5_ifc atomic_caps). AtomicOperations:
// bit 0 compare-and-swap, 1 fetch-and-add, 2 and 3 the masked ones; sizes: bit n = 2^n bytes.
type AtomicCap []byte

func (c AtomicCap) AtomicReq8BEndiannessMode() uint32             { return bits(c, 0x08, 31, 30) }
func (c AtomicCap) SetAtomicReq8BEndiannessMode(v uint32)         { put(c, 0x08, 31, 30, v) }
func (c AtomicCap) SupportedAtomicReq8BEndiannessMode1() bool     { return bit(c, 0x08, 25) }
func (c AtomicCap) SetSupportedAtomicReq8BEndiannessMode1(v bool) { putBit(c, 0x08, 25, v) }
func (c AtomicCap) AtomicOperations() uint32                      { return bits(c, 0x10, 15, 0) }
func (c AtomicCap) SetAtomicOperations(v uint32)                  { put(c, 0x10, 15, 0, v) }
func (c AtomicCap) AtomicSizeQP() uint32                          { return bits(c, 0x14, 15, 0) }
func (c AtomicCap) SetAtomicSizeQP(v uint32)                      { put(c, 0x14, 15, 0, v) }
func (c AtomicCap) AtomicSizeDC() uint32                          { return bits(c, 0x18, 15, 0) }
func (c AtomicCap) SetAtomicSizeDC(v uint32)                      { put(c, 0x18, 15, 0, v) }

// RoCECap is the RoCE capability page (mlx5_ifc roce_cap). RoCEVersion: bit 0 v1, bit 2 v2.
type RoCECap []byte

func (c RoCECap) RoCEAPM() bool                    { return bit(c, 0x00, 31) }
func (c RoCECap) SetRoCEAPM(v bool)                { putBit(c, 0x00, 31, v) }
func (c RoCECap) SWRRoCESrcUDPPort() bool          { return bit(c, 0x00, 27) }
func (c RoCECap) SetSWRRoCESrcUDPPort(v bool)      { putBit(c, 0x00, 27, v) }
func (c RoCECap) FLRCQPWhenRoCEDisabled() bool     { return bit(c, 0x00, 26) }
func (c RoCECap) SetFLRCQPWhenRoCEDisabled(v bool) { putBit(c, 0x00, 26, v) }
func (c RoCECap) FLRCQPWhenRoCEEnabled() bool      { return bit(c, 0x00, 25) }
func (c RoCECap) SetFLRCQPWhenRoCEEnabled(v bool)  { putBit(c, 0x00, 25, v) }
func (c RoCECap) RoCECCGeneral() bool              { return bit(c, 0x00, 24) }
func (c RoCECap) SetRoCECCGeneral(v bool)          { putBit(c, 0x00, 24, v) }
func (c RoCECap) QPOooTransmitDefault() bool       { return bit(c, 0x00, 23) }
func (c RoCECap) SetQPOooTransmitDefault(v bool)   { putBit(c, 0x00, 23, v) }
func (c RoCECap) QPTSFormat() uint32               { return bits(c, 0x00, 1, 0) }
func (c RoCECap) SetQPTSFormat(v uint32)           { put(c, 0x00, 1, 0, v) }
func (c RoCECap) L3Type() uint32                   { return bits(c, 0x10, 19, 16) }
func (c RoCECap) SetL3Type(v uint32)               { put(c, 0x10, 19, 16, v) }
func (c RoCECap) RoCEVersion() uint32              { return bits(c, 0x10, 7, 0) }
func (c RoCECap) SetRoCEVersion(v uint32)          { put(c, 0x10, 7, 0, v) }
func (c RoCECap) RRoCEDestUDPPort() uint32         { return bits(c, 0x14, 15, 0) }
func (c RoCECap) SetRRoCEDestUDPPort(v uint32)     { put(c, 0x14, 15, 0, v) }
func (c RoCECap) RRoCEMaxSrcUDPPort() uint32       { return bits(c, 0x18, 31, 16) }
func (c RoCECap) SetRRoCEMaxSrcUDPPort(v uint32)   { put(c, 0x18, 31, 16, v) }
func (c RoCECap) RRoCEMinSrcUDPPort() uint32       { return bits(c, 0x18, 15, 0) }
func (c RoCECap) SetRRoCEMinSrcUDPPort(v uint32)   { put(c, 0x18, 15, 0, v) }
func (c RoCECap) RoCEAddressTableSize() uint32     { return bits(c, 0x1c, 15, 0) }
func (c RoCECap) SetRoCEAddressTableSize(v uint32) { put(c, 0x1c, 15, 0, v) }
