package prm

// MKC is the memory-key context (mlx5_ifc mkc). A, RW, RR, LW and LR are the
// rights: remote atomic, remote write, remote read, local write, local read.
type MKC []byte

// MKCSize is its length in bytes.
const MKCSize = 0x40

func (c MKC) Free() bool                             { return bit(c, 0x00, 30) }
func (c MKC) SetFree(v bool)                         { putBit(c, 0x00, 30, v) }
func (c MKC) RelaxedOrderingWrite() bool             { return bit(c, 0x00, 18) }
func (c MKC) SetRelaxedOrderingWrite(v bool)         { putBit(c, 0x00, 18, v) }
func (c MKC) SmallFenceOnRdmaReadResponse() bool     { return bit(c, 0x00, 16) }
func (c MKC) SetSmallFenceOnRdmaReadResponse(v bool) { putBit(c, 0x00, 16, v) }
func (c MKC) UMREn() bool                            { return bit(c, 0x00, 15) }
func (c MKC) SetUMREn(v bool)                        { putBit(c, 0x00, 15, v) }
func (c MKC) A() bool                                { return bit(c, 0x00, 14) }
func (c MKC) SetA(v bool)                            { putBit(c, 0x00, 14, v) }
func (c MKC) RW() bool                               { return bit(c, 0x00, 13) }
func (c MKC) SetRW(v bool)                           { putBit(c, 0x00, 13, v) }
func (c MKC) RR() bool                               { return bit(c, 0x00, 12) }
func (c MKC) SetRR(v bool)                           { putBit(c, 0x00, 12, v) }
func (c MKC) LW() bool                               { return bit(c, 0x00, 11) }
func (c MKC) SetLW(v bool)                           { putBit(c, 0x00, 11, v) }
func (c MKC) LR() bool                               { return bit(c, 0x00, 10) }
func (c MKC) SetLR(v bool)                           { putBit(c, 0x00, 10, v) }
func (c MKC) MaTranslationMode() uint32              { return bits(c, 0x00, 5, 4) }
func (c MKC) SetMaTranslationMode(v uint32)          { put(c, 0x00, 5, 4, v) }
func (c MKC) QPN() uint32                            { return bits(c, 0x04, 31, 8) }
func (c MKC) SetQPN(v uint32)                        { put(c, 0x04, 31, 8, v) }
func (c MKC) MKey70() uint32                         { return bits(c, 0x04, 7, 0) }
func (c MKC) SetMKey70(v uint32)                     { put(c, 0x04, 7, 0, v) }
func (c MKC) Length64() bool                         { return bit(c, 0x0c, 31) }
func (c MKC) SetLength64(v bool)                     { putBit(c, 0x0c, 31, v) }
func (c MKC) BSFEn() bool                            { return bit(c, 0x0c, 30) }
func (c MKC) SetBSFEn(v bool)                        { putBit(c, 0x0c, 30, v) }
func (c MKC) SyncUMR() bool                          { return bit(c, 0x0c, 29) }
func (c MKC) SetSyncUMR(v bool)                      { putBit(c, 0x0c, 29, v) }
func (c MKC) ExpectedSigErrCount() bool              { return bit(c, 0x0c, 26) }
func (c MKC) SetExpectedSigErrCount(v bool)          { putBit(c, 0x0c, 26, v) }
func (c MKC) EnRInval() bool                         { return bit(c, 0x0c, 24) }
func (c MKC) SetEnRInval(v bool)                     { putBit(c, 0x0c, 24, v) }
func (c MKC) PD() uint32                             { return bits(c, 0x0c, 23, 0) }
func (c MKC) SetPD(v uint32)                         { put(c, 0x0c, 23, 0, v) }
func (c MKC) StartAddr() uint64                      { return be64(c, 0x10) }
func (c MKC) SetStartAddr(v uint64)                  { putBE64(c, 0x10, v) }
func (c MKC) Len() uint64                            { return be64(c, 0x18) }
func (c MKC) SetLen(v uint64)                        { putBE64(c, 0x18, v) }
func (c MKC) BSFOctwordSize() uint32                 { return be32(c, 0x20) }
func (c MKC) SetBSFOctwordSize(v uint32)             { putBE32(c, 0x20, v) }
func (c MKC) CrossingTargetVHCAID() uint32           { return bits(c, 0x30, 31, 16) }
func (c MKC) SetCrossingTargetVHCAID(v uint32)       { put(c, 0x30, 31, 16, v) }
func (c MKC) TranslationsOctwordSize() uint32        { return be32(c, 0x34) }
func (c MKC) SetTranslationsOctwordSize(v uint32)    { putBE32(c, 0x34, v) }
func (c MKC) RelaxedOrderingRead() bool              { return bit(c, 0x38, 6) }
func (c MKC) SetRelaxedOrderingRead(v bool)          { putBit(c, 0x38, 6, v) }
func (c MKC) LogPageSize() uint32                    { return bits(c, 0x38, 5, 0) }
func (c MKC) SetLogPageSize(v uint32)                { put(c, 0x38, 5, 0, v) }

// AccessMode is the kind of translation, MKeyModePA and so on; its bits lie apart.
func (c MKC) AccessMode() uint32 { return bits(c, 0x00, 28, 26)<<2 | bits(c, 0x00, 9, 8) }

// SetAccessMode sets it.
func (c MKC) SetAccessMode(v uint32) {
	put(c, 0x00, 28, 26, v>>2)
	put(c, 0x00, 9, 8, v&3)
}
