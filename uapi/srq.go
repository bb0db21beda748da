package uapi

// CreateSRQ is the request of CREATE_SRQ (struct ib_uverbs_create_srq).
type CreateSRQ []byte

// CreateSRQSize is the size of the structure.
const CreateSRQSize = 32

func (c CreateSRQ) UserHandle() uint64     { return le.Uint64(c[8:]) }
func (c CreateSRQ) SetUserHandle(v uint64) { le.PutUint64(c[8:], v) }
func (c CreateSRQ) PDHandle() uint32       { return le.Uint32(c[16:]) }
func (c CreateSRQ) SetPDHandle(v uint32)   { le.PutUint32(c[16:], v) }
func (c CreateSRQ) MaxWR() uint32          { return le.Uint32(c[20:]) }
func (c CreateSRQ) SetMaxWR(v uint32)      { le.PutUint32(c[20:], v) }
func (c CreateSRQ) MaxSGE() uint32         { return le.Uint32(c[24:]) }
func (c CreateSRQ) SetMaxSGE(v uint32)     { le.PutUint32(c[24:], v) }
func (c CreateSRQ) SRQLimit() uint32       { return le.Uint32(c[28:]) }
func (c CreateSRQ) SetSRQLimit(v uint32)   { le.PutUint32(c[28:], v) }

// CreateSRQResp is the answer to CREATE_SRQ (struct ib_uverbs_create_srq_resp).
type CreateSRQResp []byte

// CreateSRQRespSize is the size of the structure.
const CreateSRQRespSize = 16

func (c CreateSRQResp) SRQHandle() uint32     { return le.Uint32(c[0:]) }
func (c CreateSRQResp) SetSRQHandle(v uint32) { le.PutUint32(c[0:], v) }
func (c CreateSRQResp) MaxWR() uint32         { return le.Uint32(c[4:]) }
func (c CreateSRQResp) SetMaxWR(v uint32)     { le.PutUint32(c[4:], v) }
func (c CreateSRQResp) MaxSGE() uint32        { return le.Uint32(c[8:]) }
func (c CreateSRQResp) SetMaxSGE(v uint32)    { le.PutUint32(c[8:], v) }
func (c CreateSRQResp) SRQN() uint32          { return le.Uint32(c[12:]) }
func (c CreateSRQResp) SetSRQN(v uint32)      { le.PutUint32(c[12:], v) }

// ModifySRQ is the request of MODIFY_SRQ (struct ib_uverbs_modify_srq).
type ModifySRQ []byte

// ModifySRQSize is the size of the structure.
const ModifySRQSize = 16

func (m ModifySRQ) SRQHandle() uint32     { return le.Uint32(m[0:]) }
func (m ModifySRQ) SetSRQHandle(v uint32) { le.PutUint32(m[0:], v) }
func (m ModifySRQ) AttrMask() uint32      { return le.Uint32(m[4:]) }
func (m ModifySRQ) SetAttrMask(v uint32)  { le.PutUint32(m[4:], v) }
func (m ModifySRQ) MaxWR() uint32         { return le.Uint32(m[8:]) }
func (m ModifySRQ) SetMaxWR(v uint32)     { le.PutUint32(m[8:], v) }
func (m ModifySRQ) SRQLimit() uint32      { return le.Uint32(m[12:]) }
func (m ModifySRQ) SetSRQLimit(v uint32)  { le.PutUint32(m[12:], v) }

// QuerySRQ is the request of QUERY_SRQ (struct ib_uverbs_query_srq).
type QuerySRQ []byte

// QuerySRQSize is the size of the structure.
const QuerySRQSize = 16

func (q QuerySRQ) SRQHandle() uint32     { return le.Uint32(q[8:]) }
func (q QuerySRQ) SetSRQHandle(v uint32) { le.PutUint32(q[8:], v) }

// QuerySRQResp is the answer to QUERY_SRQ (struct ib_uverbs_query_srq_resp).
type QuerySRQResp []byte

// QuerySRQRespSize is the size of the structure.
const QuerySRQRespSize = 16

func (q QuerySRQResp) MaxWR() uint32        { return le.Uint32(q[0:]) }
func (q QuerySRQResp) SetMaxWR(v uint32)    { le.PutUint32(q[0:], v) }
func (q QuerySRQResp) MaxSGE() uint32       { return le.Uint32(q[4:]) }
func (q QuerySRQResp) SetMaxSGE(v uint32)   { le.PutUint32(q[4:], v) }
func (q QuerySRQResp) SRQLimit() uint32     { return le.Uint32(q[8:]) }
func (q QuerySRQResp) SetSRQLimit(v uint32) { le.PutUint32(q[8:], v) }

// DestroySRQ is the request of DESTROY_SRQ (struct ib_uverbs_destroy_srq).
type DestroySRQ []byte

// DestroySRQSize is the size of the structure.
const DestroySRQSize = 16

func (d DestroySRQ) SRQHandle() uint32     { return le.Uint32(d[8:]) }
func (d DestroySRQ) SetSRQHandle(v uint32) { le.PutUint32(d[8:], v) }

// DestroySRQResp says how many events the program has read (struct ib_uverbs_destroy_srq_resp).
type DestroySRQResp []byte

// DestroySRQRespSize is the size of the structure.
const DestroySRQRespSize = 4

func (d DestroySRQResp) EventsReported() uint32     { return le.Uint32(d[0:]) }
func (d DestroySRQResp) SetEventsReported(v uint32) { le.PutUint32(d[0:], v) }

// MLX5CreateSRQ is the driver data of the creation of an SRQ (struct mlx5_ib_create_srq).
type MLX5CreateSRQ []byte

// MLX5CreateSRQSize is the size of the structure.
const MLX5CreateSRQSize = 32

func (m MLX5CreateSRQ) BufAddr() uint64       { return le.Uint64(m[0:]) }
func (m MLX5CreateSRQ) SetBufAddr(v uint64)   { le.PutUint64(m[0:], v) }
func (m MLX5CreateSRQ) DBAddr() uint64        { return le.Uint64(m[8:]) }
func (m MLX5CreateSRQ) SetDBAddr(v uint64)    { le.PutUint64(m[8:], v) }
func (m MLX5CreateSRQ) Flags() uint32         { return le.Uint32(m[16:]) }
func (m MLX5CreateSRQ) SetFlags(v uint32)     { le.PutUint32(m[16:], v) }
func (m MLX5CreateSRQ) Reserved0() uint32     { return le.Uint32(m[20:]) }
func (m MLX5CreateSRQ) SetReserved0(v uint32) { le.PutUint32(m[20:], v) }
func (m MLX5CreateSRQ) UIDX() uint32          { return le.Uint32(m[24:]) }
func (m MLX5CreateSRQ) SetUIDX(v uint32)      { le.PutUint32(m[24:], v) }
func (m MLX5CreateSRQ) Reserved1() uint32     { return le.Uint32(m[28:]) }
func (m MLX5CreateSRQ) SetReserved1(v uint32) { le.PutUint32(m[28:], v) }

// MLX5CreateSRQResp is the driver's answer to the creation of an SRQ (struct mlx5_ib_create_srq_resp).
type MLX5CreateSRQResp []byte

// MLX5CreateSRQRespSize is the size of the structure.
const MLX5CreateSRQRespSize = 8

func (m MLX5CreateSRQResp) SRQN() uint32     { return le.Uint32(m[0:]) }
func (m MLX5CreateSRQResp) SetSRQN(v uint32) { le.PutUint32(m[0:], v) }
