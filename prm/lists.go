package prm

// PAS is a list of DMA addresses of pages.
type PAS []byte

// Count is how many whole addresses the list has room for.
func (l PAS) Count() int { return len(l) / 8 }

// At returns entry i.
func (l PAS) At(i int) uint64 { return be64(l, 8*i) }

// Set sets entry i.
func (l PAS) Set(i int, pa uint64) { putBE64(l, 8*i, pa) }

// MTT is a list of translation entries: page addresses with rights in their low bits.
type MTT []byte

// Rights in an MTT entry (device.h, MLX5_EN_RD, MLX5_EN_WR).
const (
	MTTRead  = 1
	MTTWrite = 2
)

// Count is how many whole entries there are.
func (l MTT) Count() int { return len(l) / 8 }

// Addr is the page address of entry i; 0 with no rights means not present.
func (l MTT) Addr(i int) uint64 { return be64(l, 8*i) &^ 0xff }

// Rights are MTTRead and MTTWrite of entry i.
func (l MTT) Rights(i int) uint64 { return be64(l, 8*i) & (MTTRead | MTTWrite) }

// Set writes entry i.
func (l MTT) Set(i int, addr, rights uint64) { putBE64(l, 8*i, addr|rights) }

// EventBitmask is word i of the events that the EQ takes, from bit 0 up.
func (c CreateEQIn) EventBitmask(i int) uint64 { return be64(c, 0x58+8*i) }

// SetEventBitmask sets the events that the queue gets, a bit for each type.
func (c CreateEQIn) SetEventBitmask(i int, v uint64) { putBE64(c, 0x58+8*i, v) }

// EventBitmask is word i of the events that the EQ takes, from bit 0 up.
func (q QueryEQOut) EventBitmask(i int) uint64 { return be64(q, 0x58+8*i) }

// SetEventBitmask sets the events that the queue gets, a bit for each type.
func (q QueryEQOut) SetEventBitmask(i int, v uint64) { putBE64(q, 0x58+8*i, v) }

// PAS is the list of the ring's pages, as far as the mailbox has room for it.
func (q QueryQPOut) PAS() PAS { return PAS(q[min(0x110, len(q)):]) }

// KLM is entry i of a key that leads to others, 16 bytes of the view. The mailbox has room for two,
// and for as many more as it was made for.
func (q QueryMKeyOut) KLM(i int) KLM {
	return KLM(q[0x110+KLMSize*i : 0x110+KLMSize*(i+1) : 0x110+KLMSize*(i+1)])
}

// AllVportEntries as an index asks for a whole table.
const AllVportEntries = 0xffff

// Room is how many entries the mailbox holds.
func (q QueryHCAVportGIDOut) Room() int { return (len(q) - QueryHCAVportGIDOutSize) / 16 }

// GID is entry i of the answer, 16 bytes of the view.
func (q QueryHCAVportGIDOut) GID(i int) []byte { return q[0x10+16*i : 0x20+16*i : 0x20+16*i] }

// Room is how many entries the mailbox holds.
func (q QueryHCAVportPKeyOut) Room() int { return (len(q) - QueryHCAVportPKeyOutSize) / 4 }

// PKey returns entry i of the P_Key table.
func (q QueryHCAVportPKeyOut) PKey(i int) uint16 { return uint16(bits(q, 0x10+4*i, 15, 0)) }

// SetPKey sets entry i of the P_Key table.
func (q QueryHCAVportPKeyOut) SetPKey(i int, v uint16) { put(q, 0x10+4*i, 15, 0, uint32(v)) }

// VportList is the list of addresses of a kind (VportListUC and so on) in NICVportContext, of 8
// bytes each: the last 6 of them are a MAC address, or the low 12 bits of the first word a VLAN.
type VportList []byte

// Count is how many whole entries there are.
func (l VportList) Count() int { return len(l) / 8 }

// MAC is the address of entry i, 6 bytes of the view.
func (l VportList) MAC(i int) []byte { return l[8*i+2 : 8*i+8 : 8*i+8] }
