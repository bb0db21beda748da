package uapi

// AllocPDResp is the answer to ALLOC_PD (struct ib_uverbs_alloc_pd_resp).
type AllocPDResp []byte

// AllocPDRespSize is the size of the structure.
const AllocPDRespSize = 4

func (a AllocPDResp) PDHandle() uint32     { return le.Uint32(a[0:]) }
func (a AllocPDResp) SetPDHandle(v uint32) { le.PutUint32(a[0:], v) }

// RegMR is the request of REG_MR (struct ib_uverbs_reg_mr).
type RegMR []byte

// RegMRSize is the size of the structure.
const RegMRSize = 40

func (r RegMR) Start() uint64           { return le.Uint64(r[8:]) }
func (r RegMR) SetStart(v uint64)       { le.PutUint64(r[8:], v) }
func (r RegMR) Length() uint64          { return le.Uint64(r[16:]) }
func (r RegMR) SetLength(v uint64)      { le.PutUint64(r[16:], v) }
func (r RegMR) HCAVA() uint64           { return le.Uint64(r[24:]) }
func (r RegMR) SetHCAVA(v uint64)       { le.PutUint64(r[24:], v) }
func (r RegMR) PDHandle() uint32        { return le.Uint32(r[32:]) }
func (r RegMR) SetPDHandle(v uint32)    { le.PutUint32(r[32:], v) }
func (r RegMR) AccessFlags() uint32     { return le.Uint32(r[36:]) }
func (r RegMR) SetAccessFlags(v uint32) { le.PutUint32(r[36:], v) }

// RegMRResp is the answer to REG_MR (struct ib_uverbs_reg_mr_resp).
type RegMRResp []byte

// RegMRRespSize is the size of the structure.
const RegMRRespSize = 12

func (r RegMRResp) MRHandle() uint32     { return le.Uint32(r[0:]) }
func (r RegMRResp) SetMRHandle(v uint32) { le.PutUint32(r[0:], v) }
func (r RegMRResp) LKey() uint32         { return le.Uint32(r[4:]) }
func (r RegMRResp) SetLKey(v uint32)     { le.PutUint32(r[4:], v) }
func (r RegMRResp) RKey() uint32         { return le.Uint32(r[8:]) }
func (r RegMRResp) SetRKey(v uint32)     { le.PutUint32(r[8:], v) }

// CreateCompChannelResp is the answer to CREATE_COMP_CHANNEL (struct ib_uverbs_create_comp_channel_resp).
type CreateCompChannelResp []byte

// CreateCompChannelRespSize is the size of the structure.
const CreateCompChannelRespSize = 4

func (c CreateCompChannelResp) FD() uint32     { return le.Uint32(c[0:]) }
func (c CreateCompChannelResp) SetFD(v uint32) { le.PutUint32(c[0:], v) }

// DestroyCQResp says how many events the program has read (struct ib_uverbs_destroy_cq_resp).
type DestroyCQResp []byte

// DestroyCQRespSize is the size of the structure.
const DestroyCQRespSize = 8

func (d DestroyCQResp) CompEventsReported() uint32      { return le.Uint32(d[0:]) }
func (d DestroyCQResp) SetCompEventsReported(v uint32)  { le.PutUint32(d[0:], v) }
func (d DestroyCQResp) AsyncEventsReported() uint32     { return le.Uint32(d[4:]) }
func (d DestroyCQResp) SetAsyncEventsReported(v uint32) { le.PutUint32(d[4:], v) }

// DestroyQPResp says how many events the program has read (struct ib_uverbs_destroy_qp_resp).
type DestroyQPResp []byte

// DestroyQPRespSize is the size of the structure.
const DestroyQPRespSize = 4

func (d DestroyQPResp) EventsReported() uint32     { return le.Uint32(d[0:]) }
func (d DestroyQPResp) SetEventsReported(v uint32) { le.PutUint32(d[0:], v) }

// CompEvent is what a completion channel delivers (struct ib_uverbs_comp_event_desc).
type CompEvent []byte

// CompEventSize is the size of the structure.
const CompEventSize = 8

func (c CompEvent) CQHandle() uint64     { return le.Uint64(c[0:]) }
func (c CompEvent) SetCQHandle(v uint64) { le.PutUint64(c[0:], v) }

// AsyncEvent is what an async file delivers (struct ib_uverbs_async_event_desc).
type AsyncEvent []byte

// AsyncEventSize is the size of the structure.
const AsyncEventSize = 16

func (a AsyncEvent) Element() uint64       { return le.Uint64(a[0:]) }
func (a AsyncEvent) SetElement(v uint64)   { le.PutUint64(a[0:], v) }
func (a AsyncEvent) EventType() uint32     { return le.Uint32(a[8:]) }
func (a AsyncEvent) SetEventType(v uint32) { le.PutUint32(a[8:], v) }

// AllocMW is the request of ALLOC_MW (struct ib_uverbs_alloc_mw).
type AllocMW []byte

// AllocMWSize is the size of the structure.
const AllocMWSize = 16

func (a AllocMW) PDHandle() uint32     { return le.Uint32(a[8:]) }
func (a AllocMW) SetPDHandle(v uint32) { le.PutUint32(a[8:], v) }
func (a AllocMW) MWType() uint8        { return a[12] }
func (a AllocMW) SetMWType(v uint8)    { a[12] = v }

// AllocMWResp is the answer to ALLOC_MW (struct ib_uverbs_alloc_mw_resp).
type AllocMWResp []byte

// AllocMWRespSize is the size of the structure.
const AllocMWRespSize = 8

func (a AllocMWResp) MWHandle() uint32     { return le.Uint32(a[0:]) }
func (a AllocMWResp) SetMWHandle(v uint32) { le.PutUint32(a[0:], v) }
func (a AllocMWResp) RKey() uint32         { return le.Uint32(a[4:]) }
func (a AllocMWResp) SetRKey(v uint32)     { le.PutUint32(a[4:], v) }

// MLX5AllocMW is the driver data of ALLOC_MW; libmlx5 sends none (struct mlx5_ib_alloc_mw).
type MLX5AllocMW []byte

// MLX5AllocMWSize is the size of the structure.
const MLX5AllocMWSize = 8

func (m MLX5AllocMW) CompMask() uint32      { return le.Uint32(m[0:]) }
func (m MLX5AllocMW) SetCompMask(v uint32)  { le.PutUint32(m[0:], v) }
func (m MLX5AllocMW) NumKLMs() uint8        { return m[4] }
func (m MLX5AllocMW) SetNumKLMs(v uint8)    { m[4] = v }
func (m MLX5AllocMW) Reserved1() uint8      { return m[5] }
func (m MLX5AllocMW) SetReserved1(v uint8)  { m[5] = v }
func (m MLX5AllocMW) Reserved2() uint16     { return le.Uint16(m[6:]) }
func (m MLX5AllocMW) SetReserved2(v uint16) { le.PutUint16(m[6:], v) }

// ReregMR is the request of REREG_MR (struct ib_uverbs_rereg_mr).
type ReregMR []byte

// ReregMRSize is the size of the structure.
const ReregMRSize = 48

func (r ReregMR) MRHandle() uint32        { return le.Uint32(r[8:]) }
func (r ReregMR) SetMRHandle(v uint32)    { le.PutUint32(r[8:], v) }
func (r ReregMR) Flags() uint32           { return le.Uint32(r[12:]) }
func (r ReregMR) SetFlags(v uint32)       { le.PutUint32(r[12:], v) }
func (r ReregMR) Start() uint64           { return le.Uint64(r[16:]) }
func (r ReregMR) SetStart(v uint64)       { le.PutUint64(r[16:], v) }
func (r ReregMR) Length() uint64          { return le.Uint64(r[24:]) }
func (r ReregMR) SetLength(v uint64)      { le.PutUint64(r[24:], v) }
func (r ReregMR) HCAVA() uint64           { return le.Uint64(r[32:]) }
func (r ReregMR) SetHCAVA(v uint64)       { le.PutUint64(r[32:], v) }
func (r ReregMR) PDHandle() uint32        { return le.Uint32(r[40:]) }
func (r ReregMR) SetPDHandle(v uint32)    { le.PutUint32(r[40:], v) }
func (r ReregMR) AccessFlags() uint32     { return le.Uint32(r[44:]) }
func (r ReregMR) SetAccessFlags(v uint32) { le.PutUint32(r[44:], v) }

// ReregMRResp is the answer to REREG_MR (struct ib_uverbs_rereg_mr_resp).
type ReregMRResp []byte

// ReregMRRespSize is the size of the structure.
const ReregMRRespSize = 8

func (r ReregMRResp) LKey() uint32     { return le.Uint32(r[0:]) }
func (r ReregMRResp) SetLKey(v uint32) { le.PutUint32(r[0:], v) }
func (r ReregMRResp) RKey() uint32     { return le.Uint32(r[4:]) }
func (r ReregMRResp) SetRKey(v uint32) { le.PutUint32(r[4:], v) }

// ResizeCQ is the request of RESIZE_CQ (struct ib_uverbs_resize_cq).
type ResizeCQ []byte

// ResizeCQSize is the size of the structure.
const ResizeCQSize = 16

func (r ResizeCQ) CQHandle() uint32     { return le.Uint32(r[8:]) }
func (r ResizeCQ) SetCQHandle(v uint32) { le.PutUint32(r[8:], v) }
func (r ResizeCQ) CQE() uint32          { return le.Uint32(r[12:]) }
func (r ResizeCQ) SetCQE(v uint32)      { le.PutUint32(r[12:], v) }

// ResizeCQResp is the answer to RESIZE_CQ (struct ib_uverbs_resize_cq_resp).
type ResizeCQResp []byte

// ResizeCQRespSize is the size of the structure.
const ResizeCQRespSize = 8

func (r ResizeCQResp) CQE() uint32     { return le.Uint32(r[0:]) }
func (r ResizeCQResp) SetCQE(v uint32) { le.PutUint32(r[0:], v) }

// MLX5ResizeCQ is the driver data of RESIZE_CQ: the new ring (struct mlx5_ib_resize_cq).
type MLX5ResizeCQ []byte

// MLX5ResizeCQSize is the size of the structure.
const MLX5ResizeCQSize = 16

func (m MLX5ResizeCQ) BufAddr() uint64       { return le.Uint64(m[0:]) }
func (m MLX5ResizeCQ) SetBufAddr(v uint64)   { le.PutUint64(m[0:], v) }
func (m MLX5ResizeCQ) CQESize() uint16       { return le.Uint16(m[8:]) }
func (m MLX5ResizeCQ) SetCQESize(v uint16)   { le.PutUint16(m[8:], v) }
func (m MLX5ResizeCQ) Reserved0() uint16     { return le.Uint16(m[10:]) }
func (m MLX5ResizeCQ) SetReserved0(v uint16) { le.PutUint16(m[10:], v) }
func (m MLX5ResizeCQ) Reserved1() uint32     { return le.Uint32(m[12:]) }
func (m MLX5ResizeCQ) SetReserved1(v uint32) { le.PutUint32(m[12:], v) }

// ExModifyCQ is the request of the extended MODIFY_CQ (struct ib_uverbs_ex_modify_cq).
type ExModifyCQ []byte

// ExModifyCQSize is the size of the structure.
const ExModifyCQSize = 16

func (e ExModifyCQ) CQHandle() uint32     { return le.Uint32(e[0:]) }
func (e ExModifyCQ) SetCQHandle(v uint32) { le.PutUint32(e[0:], v) }
func (e ExModifyCQ) AttrMask() uint32     { return le.Uint32(e[4:]) }
func (e ExModifyCQ) SetAttrMask(v uint32) { le.PutUint32(e[4:], v) }
func (e ExModifyCQ) CQCount() uint16      { return le.Uint16(e[8:]) }
func (e ExModifyCQ) SetCQCount(v uint16)  { le.PutUint16(e[8:], v) }
func (e ExModifyCQ) CQPeriod() uint16     { return le.Uint16(e[10:]) }
func (e ExModifyCQ) SetCQPeriod(v uint16) { le.PutUint16(e[10:], v) }
func (e ExModifyCQ) Reserved() uint32     { return le.Uint32(e[12:]) }
func (e ExModifyCQ) SetReserved(v uint32) { le.PutUint32(e[12:], v) }
