package prm

// NICVportContext is nic_vport_context of mlx5_ifc, without the address list.
type NICVportContext []byte

// NICVportContextSize is its length in bytes.
const NICVportContextSize = 0x100

func (c NICVportContext) MinWQEInlineMode() uint32         { return bits(c, 0x00, 26, 24) }
func (c NICVportContext) SetMinWQEInlineMode(v uint32)     { put(c, 0x00, 26, 24, v) }
func (c NICVportContext) DisableMCLocalLB() bool           { return bit(c, 0x00, 2) }
func (c NICVportContext) SetDisableMCLocalLB(v bool)       { putBit(c, 0x00, 2, v) }
func (c NICVportContext) DisableUCLocalLB() bool           { return bit(c, 0x00, 1) }
func (c NICVportContext) SetDisableUCLocalLB(v bool)       { putBit(c, 0x00, 1, v) }
func (c NICVportContext) RoCEEn() bool                     { return bit(c, 0x00, 0) }
func (c NICVportContext) SetRoCEEn(v bool)                 { putBit(c, 0x00, 0, v) }
func (c NICVportContext) ArmChangeEvent() bool             { return bit(c, 0x04, 31) }
func (c NICVportContext) SetArmChangeEvent(v bool)         { putBit(c, 0x04, 31, v) }
func (c NICVportContext) EventOnMTU() bool                 { return bit(c, 0x04, 4) }
func (c NICVportContext) SetEventOnMTU(v bool)             { putBit(c, 0x04, 4, v) }
func (c NICVportContext) EventOnPromiscChange() bool       { return bit(c, 0x04, 3) }
func (c NICVportContext) SetEventOnPromiscChange(v bool)   { putBit(c, 0x04, 3, v) }
func (c NICVportContext) EventOnVlanChange() bool          { return bit(c, 0x04, 2) }
func (c NICVportContext) SetEventOnVlanChange(v bool)      { putBit(c, 0x04, 2, v) }
func (c NICVportContext) EventOnMCAddressChange() bool     { return bit(c, 0x04, 1) }
func (c NICVportContext) SetEventOnMCAddressChange(v bool) { putBit(c, 0x04, 1, v) }
func (c NICVportContext) EventOnUCAddressChange() bool     { return bit(c, 0x04, 0) }
func (c NICVportContext) SetEventOnUCAddressChange(v bool) { putBit(c, 0x04, 0, v) }
func (c NICVportContext) VHCAIDType() bool                 { return bit(c, 0x08, 31) }
func (c NICVportContext) SetVHCAIDType(v bool)             { putBit(c, 0x08, 31, v) }
func (c NICVportContext) AffiliationCriteria() uint32      { return bits(c, 0x08, 19, 16) }
func (c NICVportContext) SetAffiliationCriteria(v uint32)  { put(c, 0x08, 19, 16, v) }
func (c NICVportContext) AffiliatedVHCAID() uint32         { return bits(c, 0x08, 15, 0) }
func (c NICVportContext) SetAffiliatedVHCAID(v uint32)     { put(c, 0x08, 15, 0, v) }
func (c NICVportContext) SdGroup() uint32                  { return bits(c, 0x20, 30, 28) }
func (c NICVportContext) SetSdGroup(v uint32)              { put(c, 0x20, 30, 28, v) }
func (c NICVportContext) MTU() uint32                      { return bits(c, 0x24, 15, 0) }
func (c NICVportContext) SetMTU(v uint32)                  { put(c, 0x24, 15, 0, v) }
func (c NICVportContext) SystemImageGUID() uint64          { return be64(c, 0x28) }
func (c NICVportContext) SetSystemImageGUID(v uint64)      { putBE64(c, 0x28, v) }
func (c NICVportContext) PortGUID() uint64                 { return be64(c, 0x30) }
func (c NICVportContext) SetPortGUID(v uint64)             { putBE64(c, 0x30, v) }
func (c NICVportContext) NodeGUID() uint64                 { return be64(c, 0x38) }
func (c NICVportContext) SetNodeGUID(v uint64)             { putBE64(c, 0x38, v) }
func (c NICVportContext) QKeyViolationCounter() uint32     { return bits(c, 0x68, 31, 16) }
func (c NICVportContext) SetQKeyViolationCounter(v uint32) { put(c, 0x68, 31, 16, v) }
func (c NICVportContext) PromiscUC() bool                  { return bit(c, 0xf0, 31) }
func (c NICVportContext) SetPromiscUC(v bool)              { putBit(c, 0xf0, 31, v) }
func (c NICVportContext) PromiscMC() bool                  { return bit(c, 0xf0, 30) }
func (c NICVportContext) SetPromiscMC(v bool)              { putBit(c, 0xf0, 30, v) }
func (c NICVportContext) PromiscAll() bool                 { return bit(c, 0xf0, 29) }
func (c NICVportContext) SetPromiscAll(v bool)             { putBit(c, 0xf0, 29, v) }
func (c NICVportContext) AllowedListType() uint32          { return bits(c, 0xf0, 26, 24) }
func (c NICVportContext) SetAllowedListType(v uint32)      { put(c, 0xf0, 26, 24, v) }
func (c NICVportContext) AllowedListSize() uint32          { return bits(c, 0xf0, 11, 0) }
func (c NICVportContext) SetAllowedListSize(v uint32)      { put(c, 0xf0, 11, 0, v) }

// PermanentAddress is the MAC, 6 bytes of the view.
func (c NICVportContext) PermanentAddress() []byte { return c[0xf6:0xfc:0xfc] }

// RoCEAddr is roce_addr_layout of mlx5_ifc: an entry of the GID table.
type RoCEAddr []byte

// RoCEAddrSize is its length in bytes.
const RoCEAddrSize = 0x20

func (a RoCEAddr) SourceL3() []byte        { return a[0x0:0x10:0x10] }
func (a RoCEAddr) VlanValid() bool         { return bit(a, 0x10, 28) }
func (a RoCEAddr) SetVlanValid(v bool)     { putBit(a, 0x10, 28, v) }
func (a RoCEAddr) VlanID() uint32          { return bits(a, 0x10, 27, 16) }
func (a RoCEAddr) SetVlanID(v uint32)      { put(a, 0x10, 27, 16, v) }
func (a RoCEAddr) RoCEL3Type() uint32      { return bits(a, 0x18, 11, 8) }
func (a RoCEAddr) SetRoCEL3Type(v uint32)  { put(a, 0x18, 11, 8, v) }
func (a RoCEAddr) RoCEVersion() uint32     { return bits(a, 0x18, 7, 0) }
func (a RoCEAddr) SetRoCEVersion(v uint32) { put(a, 0x18, 7, 0, v) }

// MAC is the source MAC, 6 bytes of the view.
func (a RoCEAddr) MAC() []byte { return a[0x12:0x18:0x18] }
