package uapi

// QPCap is the size of a QP (struct ib_uverbs_qp_cap).
type QPCap []byte

// QPCapSize is the size of the structure.
const QPCapSize = 20

func (q QPCap) MaxSendWR() uint32         { return le.Uint32(q[0:]) }
func (q QPCap) SetMaxSendWR(v uint32)     { le.PutUint32(q[0:], v) }
func (q QPCap) MaxRecvWR() uint32         { return le.Uint32(q[4:]) }
func (q QPCap) SetMaxRecvWR(v uint32)     { le.PutUint32(q[4:], v) }
func (q QPCap) MaxSendSGE() uint32        { return le.Uint32(q[8:]) }
func (q QPCap) SetMaxSendSGE(v uint32)    { le.PutUint32(q[8:], v) }
func (q QPCap) MaxRecvSGE() uint32        { return le.Uint32(q[12:]) }
func (q QPCap) SetMaxRecvSGE(v uint32)    { le.PutUint32(q[12:], v) }
func (q QPCap) MaxInlineData() uint32     { return le.Uint32(q[16:]) }
func (q QPCap) SetMaxInlineData(v uint32) { le.PutUint32(q[16:], v) }

// QPDest is an address vector (struct ib_uverbs_qp_dest).
type QPDest []byte

// QPDestSize is the size of the structure.
const QPDestSize = 32

func (q QPDest) DGID() []byte            { return q[0:16] }
func (q QPDest) FlowLabel() uint32       { return le.Uint32(q[16:]) }
func (q QPDest) SetFlowLabel(v uint32)   { le.PutUint32(q[16:], v) }
func (q QPDest) DLID() uint16            { return le.Uint16(q[20:]) }
func (q QPDest) SetDLID(v uint16)        { le.PutUint16(q[20:], v) }
func (q QPDest) SGIDIndex() uint8        { return q[24] }
func (q QPDest) SetSGIDIndex(v uint8)    { q[24] = v }
func (q QPDest) HopLimit() uint8         { return q[25] }
func (q QPDest) SetHopLimit(v uint8)     { q[25] = v }
func (q QPDest) TrafficClass() uint8     { return q[26] }
func (q QPDest) SetTrafficClass(v uint8) { q[26] = v }
func (q QPDest) SL() uint8               { return q[27] }
func (q QPDest) SetSL(v uint8)           { q[27] = v }
func (q QPDest) SrcPathBits() uint8      { return q[28] }
func (q QPDest) SetSrcPathBits(v uint8)  { q[28] = v }
func (q QPDest) StaticRate() uint8       { return q[29] }
func (q QPDest) SetStaticRate(v uint8)   { q[29] = v }
func (q QPDest) IsGlobal() uint8         { return q[30] }
func (q QPDest) SetIsGlobal(v uint8)     { q[30] = v }
func (q QPDest) Port() uint8             { return q[31] }
func (q QPDest) SetPort(v uint8)         { q[31] = v }

// QueryQP is the request of QUERY_QP (struct ib_uverbs_query_qp).
type QueryQP []byte

// QueryQPSize is the size of the structure.
const QueryQPSize = 16

func (q QueryQP) QPHandle() uint32     { return le.Uint32(q[8:]) }
func (q QueryQP) SetQPHandle(v uint32) { le.PutUint32(q[8:], v) }
func (q QueryQP) AttrMask() uint32     { return le.Uint32(q[12:]) }
func (q QueryQP) SetAttrMask(v uint32) { le.PutUint32(q[12:], v) }

// QueryQPResp is the answer to QUERY_QP (struct ib_uverbs_query_qp_resp).
type QueryQPResp []byte

// QueryQPRespSize is the size of the structure.
const QueryQPRespSize = 128

func (q QueryQPResp) Dest() QPDest               { return QPDest(q[0 : 0+QPDestSize]) }
func (q QueryQPResp) AltDest() QPDest            { return QPDest(q[32 : 32+QPDestSize]) }
func (q QueryQPResp) MaxSendWR() uint32          { return le.Uint32(q[64:]) }
func (q QueryQPResp) SetMaxSendWR(v uint32)      { le.PutUint32(q[64:], v) }
func (q QueryQPResp) MaxRecvWR() uint32          { return le.Uint32(q[68:]) }
func (q QueryQPResp) SetMaxRecvWR(v uint32)      { le.PutUint32(q[68:], v) }
func (q QueryQPResp) MaxSendSGE() uint32         { return le.Uint32(q[72:]) }
func (q QueryQPResp) SetMaxSendSGE(v uint32)     { le.PutUint32(q[72:], v) }
func (q QueryQPResp) MaxRecvSGE() uint32         { return le.Uint32(q[76:]) }
func (q QueryQPResp) SetMaxRecvSGE(v uint32)     { le.PutUint32(q[76:], v) }
func (q QueryQPResp) MaxInlineData() uint32      { return le.Uint32(q[80:]) }
func (q QueryQPResp) SetMaxInlineData(v uint32)  { le.PutUint32(q[80:], v) }
func (q QueryQPResp) QKey() uint32               { return le.Uint32(q[84:]) }
func (q QueryQPResp) SetQKey(v uint32)           { le.PutUint32(q[84:], v) }
func (q QueryQPResp) RQPSN() uint32              { return le.Uint32(q[88:]) }
func (q QueryQPResp) SetRQPSN(v uint32)          { le.PutUint32(q[88:], v) }
func (q QueryQPResp) SQPSN() uint32              { return le.Uint32(q[92:]) }
func (q QueryQPResp) SetSQPSN(v uint32)          { le.PutUint32(q[92:], v) }
func (q QueryQPResp) DestQPN() uint32            { return le.Uint32(q[96:]) }
func (q QueryQPResp) SetDestQPN(v uint32)        { le.PutUint32(q[96:], v) }
func (q QueryQPResp) AccessFlags() uint32        { return le.Uint32(q[100:]) }
func (q QueryQPResp) SetAccessFlags(v uint32)    { le.PutUint32(q[100:], v) }
func (q QueryQPResp) PKeyIndex() uint16          { return le.Uint16(q[104:]) }
func (q QueryQPResp) SetPKeyIndex(v uint16)      { le.PutUint16(q[104:], v) }
func (q QueryQPResp) AltPKeyIndex() uint16       { return le.Uint16(q[106:]) }
func (q QueryQPResp) SetAltPKeyIndex(v uint16)   { le.PutUint16(q[106:], v) }
func (q QueryQPResp) State() uint8               { return q[108] }
func (q QueryQPResp) SetState(v uint8)           { q[108] = v }
func (q QueryQPResp) CurState() uint8            { return q[109] }
func (q QueryQPResp) SetCurState(v uint8)        { q[109] = v }
func (q QueryQPResp) PathMTU() uint8             { return q[110] }
func (q QueryQPResp) SetPathMTU(v uint8)         { q[110] = v }
func (q QueryQPResp) PathMigState() uint8        { return q[111] }
func (q QueryQPResp) SetPathMigState(v uint8)    { q[111] = v }
func (q QueryQPResp) SQDraining() uint8          { return q[112] }
func (q QueryQPResp) SetSQDraining(v uint8)      { q[112] = v }
func (q QueryQPResp) MaxRdAtomic() uint8         { return q[113] }
func (q QueryQPResp) SetMaxRdAtomic(v uint8)     { q[113] = v }
func (q QueryQPResp) MaxDestRdAtomic() uint8     { return q[114] }
func (q QueryQPResp) SetMaxDestRdAtomic(v uint8) { q[114] = v }
func (q QueryQPResp) MinRNRTimer() uint8         { return q[115] }
func (q QueryQPResp) SetMinRNRTimer(v uint8)     { q[115] = v }
func (q QueryQPResp) Port() uint8                { return q[116] }
func (q QueryQPResp) SetPort(v uint8)            { q[116] = v }
func (q QueryQPResp) Timeout() uint8             { return q[117] }
func (q QueryQPResp) SetTimeout(v uint8)         { q[117] = v }
func (q QueryQPResp) RetryCnt() uint8            { return q[118] }
func (q QueryQPResp) SetRetryCnt(v uint8)        { q[118] = v }
func (q QueryQPResp) RNRRetry() uint8            { return q[119] }
func (q QueryQPResp) SetRNRRetry(v uint8)        { q[119] = v }
func (q QueryQPResp) AltPort() uint8             { return q[120] }
func (q QueryQPResp) SetAltPort(v uint8)         { q[120] = v }
func (q QueryQPResp) AltTimeout() uint8          { return q[121] }
func (q QueryQPResp) SetAltTimeout(v uint8)      { q[121] = v }
func (q QueryQPResp) SQSigAll() uint8            { return q[122] }
func (q QueryQPResp) SetSQSigAll(v uint8)        { q[122] = v }

// ModifyQP is the request of MODIFY_QP (struct ib_uverbs_modify_qp).
type ModifyQP []byte

// ModifyQPSize is the size of the structure.
const ModifyQPSize = 112

func (m ModifyQP) Dest() QPDest                { return QPDest(m[0 : 0+QPDestSize]) }
func (m ModifyQP) AltDest() QPDest             { return QPDest(m[32 : 32+QPDestSize]) }
func (m ModifyQP) QPHandle() uint32            { return le.Uint32(m[64:]) }
func (m ModifyQP) SetQPHandle(v uint32)        { le.PutUint32(m[64:], v) }
func (m ModifyQP) AttrMask() uint32            { return le.Uint32(m[68:]) }
func (m ModifyQP) SetAttrMask(v uint32)        { le.PutUint32(m[68:], v) }
func (m ModifyQP) QKey() uint32                { return le.Uint32(m[72:]) }
func (m ModifyQP) SetQKey(v uint32)            { le.PutUint32(m[72:], v) }
func (m ModifyQP) RQPSN() uint32               { return le.Uint32(m[76:]) }
func (m ModifyQP) SetRQPSN(v uint32)           { le.PutUint32(m[76:], v) }
func (m ModifyQP) SQPSN() uint32               { return le.Uint32(m[80:]) }
func (m ModifyQP) SetSQPSN(v uint32)           { le.PutUint32(m[80:], v) }
func (m ModifyQP) DestQPN() uint32             { return le.Uint32(m[84:]) }
func (m ModifyQP) SetDestQPN(v uint32)         { le.PutUint32(m[84:], v) }
func (m ModifyQP) AccessFlags() uint32         { return le.Uint32(m[88:]) }
func (m ModifyQP) SetAccessFlags(v uint32)     { le.PutUint32(m[88:], v) }
func (m ModifyQP) PKeyIndex() uint16           { return le.Uint16(m[92:]) }
func (m ModifyQP) SetPKeyIndex(v uint16)       { le.PutUint16(m[92:], v) }
func (m ModifyQP) AltPKeyIndex() uint16        { return le.Uint16(m[94:]) }
func (m ModifyQP) SetAltPKeyIndex(v uint16)    { le.PutUint16(m[94:], v) }
func (m ModifyQP) State() uint8                { return m[96] }
func (m ModifyQP) SetState(v uint8)            { m[96] = v }
func (m ModifyQP) CurState() uint8             { return m[97] }
func (m ModifyQP) SetCurState(v uint8)         { m[97] = v }
func (m ModifyQP) PathMTU() uint8              { return m[98] }
func (m ModifyQP) SetPathMTU(v uint8)          { m[98] = v }
func (m ModifyQP) PathMigState() uint8         { return m[99] }
func (m ModifyQP) SetPathMigState(v uint8)     { m[99] = v }
func (m ModifyQP) EnSQDAsyncNotify() uint8     { return m[100] }
func (m ModifyQP) SetEnSQDAsyncNotify(v uint8) { m[100] = v }
func (m ModifyQP) MaxRdAtomic() uint8          { return m[101] }
func (m ModifyQP) SetMaxRdAtomic(v uint8)      { m[101] = v }
func (m ModifyQP) MaxDestRdAtomic() uint8      { return m[102] }
func (m ModifyQP) SetMaxDestRdAtomic(v uint8)  { m[102] = v }
func (m ModifyQP) MinRNRTimer() uint8          { return m[103] }
func (m ModifyQP) SetMinRNRTimer(v uint8)      { m[103] = v }
func (m ModifyQP) Port() uint8                 { return m[104] }
func (m ModifyQP) SetPort(v uint8)             { m[104] = v }
func (m ModifyQP) Timeout() uint8              { return m[105] }
func (m ModifyQP) SetTimeout(v uint8)          { m[105] = v }
func (m ModifyQP) RetryCnt() uint8             { return m[106] }
func (m ModifyQP) SetRetryCnt(v uint8)         { m[106] = v }
func (m ModifyQP) RNRRetry() uint8             { return m[107] }
func (m ModifyQP) SetRNRRetry(v uint8)         { m[107] = v }
func (m ModifyQP) AltPort() uint8              { return m[108] }
func (m ModifyQP) SetAltPort(v uint8)          { m[108] = v }
func (m ModifyQP) AltTimeout() uint8           { return m[109] }
func (m ModifyQP) SetAltTimeout(v uint8)       { m[109] = v }

// ExModifyQP is the request of the extended MODIFY_QP (struct ib_uverbs_ex_modify_qp).
type ExModifyQP []byte

// ExModifyQPSize is the size of the structure.
const ExModifyQPSize = 120

func (e ExModifyQP) Base() ModifyQP        { return ModifyQP(e[0 : 0+ModifyQPSize]) }
func (e ExModifyQP) RateLimit() uint32     { return le.Uint32(e[112:]) }
func (e ExModifyQP) SetRateLimit(v uint32) { le.PutUint32(e[112:], v) }

// ExModifyQPResp is the answer to the extended MODIFY_QP (struct ib_uverbs_ex_modify_qp_resp).
type ExModifyQPResp []byte

// ExModifyQPRespSize is the size of the structure.
const ExModifyQPRespSize = 8

func (e ExModifyQPResp) CompMask() uint32           { return le.Uint32(e[0:]) }
func (e ExModifyQPResp) SetCompMask(v uint32)       { le.PutUint32(e[0:], v) }
func (e ExModifyQPResp) ResponseLength() uint32     { return le.Uint32(e[4:]) }
func (e ExModifyQPResp) SetResponseLength(v uint32) { le.PutUint32(e[4:], v) }
