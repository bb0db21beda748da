package prm

// CreateMKeyIn is the in mailbox of CREATE_MKEY (0x200).
type CreateMKeyIn []byte

func (m CreateMKeyIn) PGAccess() bool                            { return bit(m, 0x0c, 31) }
func (m CreateMKeyIn) SetPGAccess(v bool)                        { putBit(m, 0x0c, 31, v) }
func (m CreateMKeyIn) MKeyUmemValid() bool                       { return bit(m, 0x0c, 30) }
func (m CreateMKeyIn) SetMKeyUmemValid(v bool)                   { putBit(m, 0x0c, 30, v) }
func (m CreateMKeyIn) DataDirect() bool                          { return bit(m, 0x0c, 29) }
func (m CreateMKeyIn) SetDataDirect(v bool)                      { putBit(m, 0x0c, 29, v) }
func (m CreateMKeyIn) MKC() MKC                                  { return MKC(m[0x10:0x50:0x50]) }
func (m CreateMKeyIn) TranslationsOctwordActualSize() uint32     { return be32(m, 0x60) }
func (m CreateMKeyIn) SetTranslationsOctwordActualSize(v uint32) { putBE32(m, 0x60, v) }
func (m CreateMKeyIn) Entries() []byte                           { return m[0x110:] }

// CreateMKeyOut is the out mailbox of CREATE_MKEY.
type CreateMKeyOut []byte

func (m CreateMKeyOut) MKeyIndex() uint32     { return bits(m, 0x08, 23, 0) }
func (m CreateMKeyOut) SetMKeyIndex(v uint32) { put(m, 0x08, 23, 0, v) }

// Lengths in bytes, lists not included.
const (
	CreateMKeyInSize  = 0x110
	CreateMKeyOutSize = 0x10
)

// QueryMKeyIn is the in mailbox of QUERY_MKEY (0x201).
type QueryMKeyIn []byte

func (m QueryMKeyIn) MKeyIndex() uint32     { return bits(m, 0x08, 23, 0) }
func (m QueryMKeyIn) SetMKeyIndex(v uint32) { put(m, 0x08, 23, 0, v) }
func (m QueryMKeyIn) PGAccess() bool        { return bit(m, 0x0c, 31) }
func (m QueryMKeyIn) SetPGAccess(v bool)    { putBit(m, 0x0c, 31, v) }

// QueryMKeyOut is the out mailbox of QUERY_MKEY.
type QueryMKeyOut []byte

func (m QueryMKeyOut) MKC() MKC          { return MKC(m[0x10:0x50:0x50]) }
func (m QueryMKeyOut) Entries01() []byte { return m[0x110:0x120:0x120] }
func (m QueryMKeyOut) Entries23() []byte { return m[0x120:0x130:0x130] }

// Lengths in bytes, lists not included.
const (
	QueryMKeyInSize  = 0x10
	QueryMKeyOutSize = 0x130
)

// DestroyMKeyIn is the in mailbox of DESTROY_MKEY (0x202).
type DestroyMKeyIn []byte

func (m DestroyMKeyIn) MKeyIndex() uint32     { return bits(m, 0x08, 23, 0) }
func (m DestroyMKeyIn) SetMKeyIndex(v uint32) { put(m, 0x08, 23, 0, v) }

// DestroyMKeyOut is the out mailbox of DESTROY_MKEY.
type DestroyMKeyOut []byte

// Lengths in bytes, lists not included.
const (
	DestroyMKeyInSize  = 0x10
	DestroyMKeyOutSize = 0x10
)

// QuerySpecialContextsIn is the in mailbox of QUERY_SPECIAL_CONTEXTS (0x203).
type QuerySpecialContextsIn []byte

// QuerySpecialContextsOut is the out mailbox of QUERY_SPECIAL_CONTEXTS.
type QuerySpecialContextsOut []byte

func (m QuerySpecialContextsOut) DumpFillMKey() uint32                 { return be32(m, 0x08) }
func (m QuerySpecialContextsOut) SetDumpFillMKey(v uint32)             { putBE32(m, 0x08, v) }
func (m QuerySpecialContextsOut) ResdLKey() uint32                     { return be32(m, 0x0c) }
func (m QuerySpecialContextsOut) SetResdLKey(v uint32)                 { putBE32(m, 0x0c, v) }
func (m QuerySpecialContextsOut) NullMKey() uint32                     { return be32(m, 0x10) }
func (m QuerySpecialContextsOut) SetNullMKey(v uint32)                 { putBE32(m, 0x10, v) }
func (m QuerySpecialContextsOut) TerminateScatterListMKey() uint32     { return be32(m, 0x14) }
func (m QuerySpecialContextsOut) SetTerminateScatterListMKey(v uint32) { putBE32(m, 0x14, v) }
func (m QuerySpecialContextsOut) RepeatedMKey() uint32                 { return be32(m, 0x18) }
func (m QuerySpecialContextsOut) SetRepeatedMKey(v uint32)             { putBE32(m, 0x18, v) }

// Lengths in bytes, lists not included.
const (
	QuerySpecialContextsInSize  = 0x10
	QuerySpecialContextsOutSize = 0x20
)

// ChangeMKeyIn is the in mailbox of CHANGE_MKEY, a command of our own: the segments of a UMR
// work request without entries.
type ChangeMKeyIn []byte

func (m ChangeMKeyIn) MKey() uint32        { return be32(m, 0x08) }
func (m ChangeMKeyIn) SetMKey(v uint32)    { putBE32(m, 0x08, v) }
func (m ChangeMKeyIn) UMR() UMRCtrlSegment { return UMRCtrlSegment(m[0x10:0x40:0x40]) }
func (m ChangeMKeyIn) MKC() MKC            { return MKC(m[0x40:0x80:0x80]) }

// Lengths in bytes.
const (
	ChangeMKeyInSize  = 0x80
	ChangeMKeyOutSize = 0x10
)
