package prm

// CQC is the completion-queue context (mlx5_ifc cqc). CQESz: 0 = 64, 1 = 128,
// 2 = 128 padded.
type CQC []byte

// CQCSize is its length in bytes.
const CQCSize = 0x40

func (c CQC) Status() uint32                   { return bits(c, 0x00, 31, 28) }
func (c CQC) SetStatus(v uint32)               { put(c, 0x00, 31, 28, v) }
func (c CQC) DBRUmemValid() bool               { return bit(c, 0x00, 25) }
func (c CQC) SetDBRUmemValid(v bool)           { putBit(c, 0x00, 25, v) }
func (c CQC) APUCQ() bool                      { return bit(c, 0x00, 24) }
func (c CQC) SetAPUCQ(v bool)                  { putBit(c, 0x00, 24, v) }
func (c CQC) CQESz() uint32                    { return bits(c, 0x00, 23, 21) }
func (c CQC) SetCQESz(v uint32)                { put(c, 0x00, 23, 21, v) }
func (c CQC) CC() bool                         { return bit(c, 0x00, 20) }
func (c CQC) SetCC(v bool)                     { putBit(c, 0x00, 20, v) }
func (c CQC) ScqeBreakModerationEn() bool      { return bit(c, 0x00, 18) }
func (c CQC) SetScqeBreakModerationEn(v bool)  { putBit(c, 0x00, 18, v) }
func (c CQC) OI() bool                         { return bit(c, 0x00, 17) }
func (c CQC) SetOI(v bool)                     { putBit(c, 0x00, 17, v) }
func (c CQC) CQPeriodMode() uint32             { return bits(c, 0x00, 16, 15) }
func (c CQC) SetCQPeriodMode(v uint32)         { put(c, 0x00, 16, 15, v) }
func (c CQC) CQECompEn() bool                  { return bit(c, 0x00, 14) }
func (c CQC) SetCQECompEn(v bool)              { putBit(c, 0x00, 14, v) }
func (c CQC) MiniCQEResFormat() uint32         { return bits(c, 0x00, 13, 12) }
func (c CQC) SetMiniCQEResFormat(v uint32)     { put(c, 0x00, 13, 12, v) }
func (c CQC) ST() uint32                       { return bits(c, 0x00, 11, 8) }
func (c CQC) SetST(v uint32)                   { put(c, 0x00, 11, 8, v) }
func (c CQC) CQECompressionLayout() uint32     { return bits(c, 0x00, 1, 0) }
func (c CQC) SetCQECompressionLayout(v uint32) { put(c, 0x00, 1, 0, v) }
func (c CQC) PageOffset() uint32               { return bits(c, 0x08, 11, 6) }
func (c CQC) SetPageOffset(v uint32)           { put(c, 0x08, 11, 6, v) }
func (c CQC) LogCQSize() uint32                { return bits(c, 0x0c, 28, 24) }
func (c CQC) SetLogCQSize(v uint32)            { put(c, 0x0c, 28, 24, v) }
func (c CQC) UARPage() uint32                  { return bits(c, 0x0c, 23, 0) }
func (c CQC) SetUARPage(v uint32)              { put(c, 0x0c, 23, 0, v) }
func (c CQC) CQPeriod() uint32                 { return bits(c, 0x10, 27, 16) }
func (c CQC) SetCQPeriod(v uint32)             { put(c, 0x10, 27, 16, v) }
func (c CQC) CQMaxCount() uint32               { return bits(c, 0x10, 15, 0) }
func (c CQC) SetCQMaxCount(v uint32)           { put(c, 0x10, 15, 0, v) }
func (c CQC) EQN() uint32                      { return be32(c, 0x14) }
func (c CQC) SetEQN(v uint32)                  { putBE32(c, 0x14, v) }
func (c CQC) LogPageSize() uint32              { return bits(c, 0x18, 28, 24) }
func (c CQC) SetLogPageSize(v uint32)          { put(c, 0x18, 28, 24, v) }
func (c CQC) LastNotifiedIndex() uint32        { return bits(c, 0x20, 23, 0) }
func (c CQC) SetLastNotifiedIndex(v uint32)    { put(c, 0x20, 23, 0, v) }
func (c CQC) LastSolicitIndex() uint32         { return bits(c, 0x24, 23, 0) }
func (c CQC) SetLastSolicitIndex(v uint32)     { put(c, 0x24, 23, 0, v) }
func (c CQC) ConsumerCounter() uint32          { return bits(c, 0x28, 23, 0) }
func (c CQC) SetConsumerCounter(v uint32)      { put(c, 0x28, 23, 0, v) }
func (c CQC) ProducerCounter() uint32          { return bits(c, 0x2c, 23, 0) }
func (c CQC) SetProducerCounter(v uint32)      { put(c, 0x2c, 23, 0, v) }
func (c CQC) DBRAddr() uint64                  { return be64(c, 0x38) }
func (c CQC) SetDBRAddr(v uint64)              { putBE64(c, 0x38, v) }
