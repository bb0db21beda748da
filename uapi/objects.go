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
