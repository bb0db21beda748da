package uapi

// CreateAH is the request of CREATE_AH (struct ib_uverbs_create_ah).
type CreateAH []byte

// CreateAHSize is the size of the structure.
const CreateAHSize = 56

func (c CreateAH) UserHandle() uint64     { return le.Uint64(c[8:]) }
func (c CreateAH) SetUserHandle(v uint64) { le.PutUint64(c[8:], v) }
func (c CreateAH) PDHandle() uint32       { return le.Uint32(c[16:]) }
func (c CreateAH) SetPDHandle(v uint32)   { le.PutUint32(c[16:], v) }
func (c CreateAH) Attr() AHAttr           { return AHAttr(c[24 : 24+AHAttrSize]) }

// AHAttr is the address in CREATE_AH (struct ib_uverbs_ah_attr).
type AHAttr []byte

// AHAttrSize is the size of the structure.
const AHAttrSize = 32

func (a AHAttr) DGID() []byte            { return a[0:16] }
func (a AHAttr) FlowLabel() uint32       { return le.Uint32(a[16:]) }
func (a AHAttr) SetFlowLabel(v uint32)   { le.PutUint32(a[16:], v) }
func (a AHAttr) SGIDIndex() uint8        { return a[20] }
func (a AHAttr) SetSGIDIndex(v uint8)    { a[20] = v }
func (a AHAttr) HopLimit() uint8         { return a[21] }
func (a AHAttr) SetHopLimit(v uint8)     { a[21] = v }
func (a AHAttr) TrafficClass() uint8     { return a[22] }
func (a AHAttr) SetTrafficClass(v uint8) { a[22] = v }
func (a AHAttr) DLID() uint16            { return le.Uint16(a[24:]) }
func (a AHAttr) SetDLID(v uint16)        { le.PutUint16(a[24:], v) }
func (a AHAttr) SL() uint8               { return a[26] }
func (a AHAttr) SetSL(v uint8)           { a[26] = v }
func (a AHAttr) SrcPathBits() uint8      { return a[27] }
func (a AHAttr) SetSrcPathBits(v uint8)  { a[27] = v }
func (a AHAttr) StaticRate() uint8       { return a[28] }
func (a AHAttr) SetStaticRate(v uint8)   { a[28] = v }
func (a AHAttr) IsGlobal() uint8         { return a[29] }
func (a AHAttr) SetIsGlobal(v uint8)     { a[29] = v }
func (a AHAttr) Port() uint8             { return a[30] }
func (a AHAttr) SetPort(v uint8)         { a[30] = v }

// CreateAHResp is the answer to CREATE_AH (struct ib_uverbs_create_ah_resp).
type CreateAHResp []byte

// CreateAHRespSize is the size of the structure.
const CreateAHRespSize = 4

func (c CreateAHResp) AHHandle() uint32     { return le.Uint32(c[0:]) }
func (c CreateAHResp) SetAHHandle(v uint32) { le.PutUint32(c[0:], v) }

// MLX5CreateAHResp is the driver's answer to CREATE_AH: the Ethernet address (struct mlx5_ib_create_ah_resp).
type MLX5CreateAHResp []byte

// MLX5CreateAHRespSize is the size of the structure.
const MLX5CreateAHRespSize = 16

func (m MLX5CreateAHResp) ResponseLength() uint32     { return le.Uint32(m[0:]) }
func (m MLX5CreateAHResp) SetResponseLength(v uint32) { le.PutUint32(m[0:], v) }
func (m MLX5CreateAHResp) DMAC() []byte               { return m[4:10] }

// AttachMcast is the request of ATTACH_MCAST and of DETACH_MCAST (struct ib_uverbs_attach_mcast).
type AttachMcast []byte

// AttachMcastSize is the size of the structure.
const AttachMcastSize = 24

func (a AttachMcast) GID() []byte          { return a[0:16] }
func (a AttachMcast) QPHandle() uint32     { return le.Uint32(a[16:]) }
func (a AttachMcast) SetQPHandle(v uint32) { le.PutUint32(a[16:], v) }
func (a AttachMcast) MLID() uint16         { return le.Uint16(a[20:]) }
func (a AttachMcast) SetMLID(v uint16)     { le.PutUint16(a[20:], v) }
