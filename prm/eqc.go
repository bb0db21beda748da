package prm

// EQC is the event-queue context (mlx5_ifc eqc).
type EQC []byte

// EQCSize is its length in bytes.
const EQCSize = 0x40

func (c EQC) Status() uint32              { return bits(c, 0x00, 31, 28) }
func (c EQC) SetStatus(v uint32)          { put(c, 0x00, 31, 28, v) }
func (c EQC) EC() bool                    { return bit(c, 0x00, 18) }
func (c EQC) SetEC(v bool)                { putBit(c, 0x00, 18, v) }
func (c EQC) OI() bool                    { return bit(c, 0x00, 17) }
func (c EQC) SetOI(v bool)                { putBit(c, 0x00, 17, v) }
func (c EQC) ST() uint32                  { return bits(c, 0x00, 11, 8) }
func (c EQC) SetST(v uint32)              { put(c, 0x00, 11, 8, v) }
func (c EQC) PageOffset() uint32          { return bits(c, 0x08, 11, 6) }
func (c EQC) SetPageOffset(v uint32)      { put(c, 0x08, 11, 6, v) }
func (c EQC) LogEQSize() uint32           { return bits(c, 0x0c, 28, 24) }
func (c EQC) SetLogEQSize(v uint32)       { put(c, 0x0c, 28, 24, v) }
func (c EQC) UARPage() uint32             { return bits(c, 0x0c, 23, 0) }
func (c EQC) SetUARPage(v uint32)         { put(c, 0x0c, 23, 0, v) }
func (c EQC) Intr() uint32                { return bits(c, 0x14, 11, 0) }
func (c EQC) SetIntr(v uint32)            { put(c, 0x14, 11, 0, v) }
func (c EQC) LogPageSize() uint32         { return bits(c, 0x18, 28, 24) }
func (c EQC) SetLogPageSize(v uint32)     { put(c, 0x18, 28, 24, v) }
func (c EQC) ConsumerCounter() uint32     { return bits(c, 0x28, 23, 0) }
func (c EQC) SetConsumerCounter(v uint32) { put(c, 0x28, 23, 0, v) }
func (c EQC) ProducerCounter() uint32     { return bits(c, 0x2c, 23, 0) }
func (c EQC) SetProducerCounter(v uint32) { put(c, 0x2c, 23, 0, v) }
