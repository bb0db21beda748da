package uapi

// ExQueryDevice is the request of the extended QUERY_DEVICE (struct ib_uverbs_ex_query_device).
type ExQueryDevice []byte

// ExQueryDeviceSize is the size of the structure.
const ExQueryDeviceSize = 8

func (e ExQueryDevice) CompMask() uint32     { return le.Uint32(e[0:]) }
func (e ExQueryDevice) SetCompMask(v uint32) { le.PutUint32(e[0:], v) }
func (e ExQueryDevice) Reserved() uint32     { return le.Uint32(e[4:]) }
func (e ExQueryDevice) SetReserved(v uint32) { le.PutUint32(e[4:], v) }

// QueryDeviceResp is the answer to QUERY_DEVICE. The two GUIDs are in network order (struct ib_uverbs_query_device_resp).
type QueryDeviceResp []byte

// QueryDeviceRespSize is the size of the structure.
const QueryDeviceRespSize = 176

func (q QueryDeviceResp) FWVer() uint64                     { return le.Uint64(q[0:]) }
func (q QueryDeviceResp) SetFWVer(v uint64)                 { le.PutUint64(q[0:], v) }
func (q QueryDeviceResp) NodeGUID() uint64                  { return be.Uint64(q[8:]) }
func (q QueryDeviceResp) SetNodeGUID(v uint64)              { be.PutUint64(q[8:], v) }
func (q QueryDeviceResp) SysImageGUID() uint64              { return be.Uint64(q[16:]) }
func (q QueryDeviceResp) SetSysImageGUID(v uint64)          { be.PutUint64(q[16:], v) }
func (q QueryDeviceResp) MaxMRSize() uint64                 { return le.Uint64(q[24:]) }
func (q QueryDeviceResp) SetMaxMRSize(v uint64)             { le.PutUint64(q[24:], v) }
func (q QueryDeviceResp) PageSizeCap() uint64               { return le.Uint64(q[32:]) }
func (q QueryDeviceResp) SetPageSizeCap(v uint64)           { le.PutUint64(q[32:], v) }
func (q QueryDeviceResp) VendorID() uint32                  { return le.Uint32(q[40:]) }
func (q QueryDeviceResp) SetVendorID(v uint32)              { le.PutUint32(q[40:], v) }
func (q QueryDeviceResp) VendorPartID() uint32              { return le.Uint32(q[44:]) }
func (q QueryDeviceResp) SetVendorPartID(v uint32)          { le.PutUint32(q[44:], v) }
func (q QueryDeviceResp) HWVer() uint32                     { return le.Uint32(q[48:]) }
func (q QueryDeviceResp) SetHWVer(v uint32)                 { le.PutUint32(q[48:], v) }
func (q QueryDeviceResp) MaxQP() uint32                     { return le.Uint32(q[52:]) }
func (q QueryDeviceResp) SetMaxQP(v uint32)                 { le.PutUint32(q[52:], v) }
func (q QueryDeviceResp) MaxQPWR() uint32                   { return le.Uint32(q[56:]) }
func (q QueryDeviceResp) SetMaxQPWR(v uint32)               { le.PutUint32(q[56:], v) }
func (q QueryDeviceResp) DeviceCapFlags() uint32            { return le.Uint32(q[60:]) }
func (q QueryDeviceResp) SetDeviceCapFlags(v uint32)        { le.PutUint32(q[60:], v) }
func (q QueryDeviceResp) MaxSGE() uint32                    { return le.Uint32(q[64:]) }
func (q QueryDeviceResp) SetMaxSGE(v uint32)                { le.PutUint32(q[64:], v) }
func (q QueryDeviceResp) MaxSGERd() uint32                  { return le.Uint32(q[68:]) }
func (q QueryDeviceResp) SetMaxSGERd(v uint32)              { le.PutUint32(q[68:], v) }
func (q QueryDeviceResp) MaxCQ() uint32                     { return le.Uint32(q[72:]) }
func (q QueryDeviceResp) SetMaxCQ(v uint32)                 { le.PutUint32(q[72:], v) }
func (q QueryDeviceResp) MaxCQE() uint32                    { return le.Uint32(q[76:]) }
func (q QueryDeviceResp) SetMaxCQE(v uint32)                { le.PutUint32(q[76:], v) }
func (q QueryDeviceResp) MaxMR() uint32                     { return le.Uint32(q[80:]) }
func (q QueryDeviceResp) SetMaxMR(v uint32)                 { le.PutUint32(q[80:], v) }
func (q QueryDeviceResp) MaxPD() uint32                     { return le.Uint32(q[84:]) }
func (q QueryDeviceResp) SetMaxPD(v uint32)                 { le.PutUint32(q[84:], v) }
func (q QueryDeviceResp) MaxQPRdAtom() uint32               { return le.Uint32(q[88:]) }
func (q QueryDeviceResp) SetMaxQPRdAtom(v uint32)           { le.PutUint32(q[88:], v) }
func (q QueryDeviceResp) MaxResRdAtom() uint32              { return le.Uint32(q[96:]) }
func (q QueryDeviceResp) SetMaxResRdAtom(v uint32)          { le.PutUint32(q[96:], v) }
func (q QueryDeviceResp) MaxQPInitRdAtom() uint32           { return le.Uint32(q[100:]) }
func (q QueryDeviceResp) SetMaxQPInitRdAtom(v uint32)       { le.PutUint32(q[100:], v) }
func (q QueryDeviceResp) AtomicCap() uint32                 { return le.Uint32(q[108:]) }
func (q QueryDeviceResp) SetAtomicCap(v uint32)             { le.PutUint32(q[108:], v) }
func (q QueryDeviceResp) MaxMW() uint32                     { return le.Uint32(q[120:]) }
func (q QueryDeviceResp) SetMaxMW(v uint32)                 { le.PutUint32(q[120:], v) }
func (q QueryDeviceResp) MaxMcastGrp() uint32               { return le.Uint32(q[132:]) }
func (q QueryDeviceResp) SetMaxMcastGrp(v uint32)           { le.PutUint32(q[132:], v) }
func (q QueryDeviceResp) MaxMcastQPAttach() uint32          { return le.Uint32(q[136:]) }
func (q QueryDeviceResp) SetMaxMcastQPAttach(v uint32)      { le.PutUint32(q[136:], v) }
func (q QueryDeviceResp) MaxTotalMcastQPAttach() uint32     { return le.Uint32(q[140:]) }
func (q QueryDeviceResp) SetMaxTotalMcastQPAttach(v uint32) { le.PutUint32(q[140:], v) }
func (q QueryDeviceResp) MaxAH() uint32                     { return le.Uint32(q[144:]) }
func (q QueryDeviceResp) SetMaxAH(v uint32)                 { le.PutUint32(q[144:], v) }
func (q QueryDeviceResp) MaxSRQ() uint32                    { return le.Uint32(q[156:]) }
func (q QueryDeviceResp) SetMaxSRQ(v uint32)                { le.PutUint32(q[156:], v) }
func (q QueryDeviceResp) MaxSRQWR() uint32                  { return le.Uint32(q[160:]) }
func (q QueryDeviceResp) SetMaxSRQWR(v uint32)              { le.PutUint32(q[160:], v) }
func (q QueryDeviceResp) MaxSRQSGE() uint32                 { return le.Uint32(q[164:]) }
func (q QueryDeviceResp) SetMaxSRQSGE(v uint32)             { le.PutUint32(q[164:], v) }
func (q QueryDeviceResp) MaxPKeys() uint16                  { return le.Uint16(q[168:]) }
func (q QueryDeviceResp) SetMaxPKeys(v uint16)              { le.PutUint16(q[168:], v) }
func (q QueryDeviceResp) LocalCAAckDelay() uint8            { return q[170] }
func (q QueryDeviceResp) SetLocalCAAckDelay(v uint8)        { q[170] = v }
func (q QueryDeviceResp) PhysPortCnt() uint8                { return q[171] }
func (q QueryDeviceResp) SetPhysPortCnt(v uint8)            { q[171] = v }

// ExQueryDeviceResp is the answer to the extended QUERY_DEVICE (struct ib_uverbs_ex_query_device_resp).
type ExQueryDeviceResp []byte

// ExQueryDeviceRespSize is the size of the structure.
const ExQueryDeviceRespSize = 304

func (e ExQueryDeviceResp) Base() QueryDeviceResp {
	return QueryDeviceResp(e[0 : 0+QueryDeviceRespSize])
}
func (e ExQueryDeviceResp) CompMask() uint32             { return le.Uint32(e[176:]) }
func (e ExQueryDeviceResp) SetCompMask(v uint32)         { le.PutUint32(e[176:], v) }
func (e ExQueryDeviceResp) ResponseLength() uint32       { return le.Uint32(e[180:]) }
func (e ExQueryDeviceResp) SetResponseLength(v uint32)   { le.PutUint32(e[180:], v) }
func (e ExQueryDeviceResp) ODPGeneralCaps() uint64       { return le.Uint64(e[184:]) }
func (e ExQueryDeviceResp) SetODPGeneralCaps(v uint64)   { le.PutUint64(e[184:], v) }
func (e ExQueryDeviceResp) RCODPCaps() uint32            { return le.Uint32(e[192:]) }
func (e ExQueryDeviceResp) SetRCODPCaps(v uint32)        { le.PutUint32(e[192:], v) }
func (e ExQueryDeviceResp) UCODPCaps() uint32            { return le.Uint32(e[196:]) }
func (e ExQueryDeviceResp) SetUCODPCaps(v uint32)        { le.PutUint32(e[196:], v) }
func (e ExQueryDeviceResp) UDODPCaps() uint32            { return le.Uint32(e[200:]) }
func (e ExQueryDeviceResp) SetUDODPCaps(v uint32)        { le.PutUint32(e[200:], v) }
func (e ExQueryDeviceResp) TimestampMask() uint64        { return le.Uint64(e[208:]) }
func (e ExQueryDeviceResp) SetTimestampMask(v uint64)    { le.PutUint64(e[208:], v) }
func (e ExQueryDeviceResp) HCACoreClock() uint64         { return le.Uint64(e[216:]) }
func (e ExQueryDeviceResp) SetHCACoreClock(v uint64)     { le.PutUint64(e[216:], v) }
func (e ExQueryDeviceResp) DeviceCapFlagsEx() uint64     { return le.Uint64(e[224:]) }
func (e ExQueryDeviceResp) SetDeviceCapFlagsEx(v uint64) { le.PutUint64(e[224:], v) }
func (e ExQueryDeviceResp) MaxCQCount() uint16           { return le.Uint16(e[280:]) }
func (e ExQueryDeviceResp) SetMaxCQCount(v uint16)       { le.PutUint16(e[280:], v) }
func (e ExQueryDeviceResp) MaxCQPeriod() uint16          { return le.Uint16(e[282:]) }
func (e ExQueryDeviceResp) SetMaxCQPeriod(v uint16)      { le.PutUint16(e[282:], v) }
func (e ExQueryDeviceResp) MaxDMSize() uint64            { return le.Uint64(e[288:]) }
func (e ExQueryDeviceResp) SetMaxDMSize(v uint64)        { le.PutUint64(e[288:], v) }
func (e ExQueryDeviceResp) XRCODPCaps() uint32           { return le.Uint32(e[296:]) }
func (e ExQueryDeviceResp) SetXRCODPCaps(v uint32)       { le.PutUint32(e[296:], v) }

// QueryPort is the request of the command QUERY_PORT (struct ib_uverbs_query_port).
type QueryPort []byte

// QueryPortSize is the size of the structure.
const QueryPortSize = 16

func (q QueryPort) PortNum() uint8     { return q[8] }
func (q QueryPort) SetPortNum(v uint8) { q[8] = v }

// QueryPortResp is the answer to the command QUERY_PORT (struct ib_uverbs_query_port_resp).
type QueryPortResp []byte

// QueryPortRespSize is the size of the structure.
const QueryPortRespSize = 40

func (q QueryPortResp) PortCapFlags() uint32     { return le.Uint32(q[0:]) }
func (q QueryPortResp) SetPortCapFlags(v uint32) { le.PutUint32(q[0:], v) }
func (q QueryPortResp) MaxMsgSize() uint32       { return le.Uint32(q[4:]) }
func (q QueryPortResp) SetMaxMsgSize(v uint32)   { le.PutUint32(q[4:], v) }
func (q QueryPortResp) BadPKeyCntr() uint32      { return le.Uint32(q[8:]) }
func (q QueryPortResp) SetBadPKeyCntr(v uint32)  { le.PutUint32(q[8:], v) }
func (q QueryPortResp) QKeyViolCntr() uint32     { return le.Uint32(q[12:]) }
func (q QueryPortResp) SetQKeyViolCntr(v uint32) { le.PutUint32(q[12:], v) }
func (q QueryPortResp) GIDTblLen() uint32        { return le.Uint32(q[16:]) }
func (q QueryPortResp) SetGIDTblLen(v uint32)    { le.PutUint32(q[16:], v) }
func (q QueryPortResp) PKeyTblLen() uint16       { return le.Uint16(q[20:]) }
func (q QueryPortResp) SetPKeyTblLen(v uint16)   { le.PutUint16(q[20:], v) }
func (q QueryPortResp) LID() uint16              { return le.Uint16(q[22:]) }
func (q QueryPortResp) SetLID(v uint16)          { le.PutUint16(q[22:], v) }
func (q QueryPortResp) SMLID() uint16            { return le.Uint16(q[24:]) }
func (q QueryPortResp) SetSMLID(v uint16)        { le.PutUint16(q[24:], v) }
func (q QueryPortResp) State() uint8             { return q[26] }
func (q QueryPortResp) SetState(v uint8)         { q[26] = v }
func (q QueryPortResp) MaxMTU() uint8            { return q[27] }
func (q QueryPortResp) SetMaxMTU(v uint8)        { q[27] = v }
func (q QueryPortResp) ActiveMTU() uint8         { return q[28] }
func (q QueryPortResp) SetActiveMTU(v uint8)     { q[28] = v }
func (q QueryPortResp) LMC() uint8               { return q[29] }
func (q QueryPortResp) SetLMC(v uint8)           { q[29] = v }
func (q QueryPortResp) MaxVLNum() uint8          { return q[30] }
func (q QueryPortResp) SetMaxVLNum(v uint8)      { q[30] = v }
func (q QueryPortResp) SMSL() uint8              { return q[31] }
func (q QueryPortResp) SetSMSL(v uint8)          { q[31] = v }
func (q QueryPortResp) SubnetTimeout() uint8     { return q[32] }
func (q QueryPortResp) SetSubnetTimeout(v uint8) { q[32] = v }
func (q QueryPortResp) InitTypeReply() uint8     { return q[33] }
func (q QueryPortResp) SetInitTypeReply(v uint8) { q[33] = v }
func (q QueryPortResp) ActiveWidth() uint8       { return q[34] }
func (q QueryPortResp) SetActiveWidth(v uint8)   { q[34] = v }
func (q QueryPortResp) ActiveSpeed() uint8       { return q[35] }
func (q QueryPortResp) SetActiveSpeed(v uint8)   { q[35] = v }
func (q QueryPortResp) PhysState() uint8         { return q[36] }
func (q QueryPortResp) SetPhysState(v uint8)     { q[36] = v }
func (q QueryPortResp) LinkLayer() uint8         { return q[37] }
func (q QueryPortResp) SetLinkLayer(v uint8)     { q[37] = v }
func (q QueryPortResp) Flags() uint8             { return q[38] }
func (q QueryPortResp) SetFlags(v uint8)         { q[38] = v }

// QueryPortRespEx is the answer to the method QUERY_PORT (struct ib_uverbs_query_port_resp_ex).
type QueryPortRespEx []byte

// QueryPortRespExSize is the size of the structure.
const QueryPortRespExSize = 48

func (q QueryPortRespEx) Legacy() QueryPortResp     { return QueryPortResp(q[0 : 0+QueryPortRespSize]) }
func (q QueryPortRespEx) PortCapFlags2() uint16     { return le.Uint16(q[40:]) }
func (q QueryPortRespEx) SetPortCapFlags2(v uint16) { le.PutUint16(q[40:], v) }

// GIDEntry is an entry of the GID table (struct ib_uverbs_gid_entry).
type GIDEntry []byte

// GIDEntrySize is the size of the structure.
const GIDEntrySize = 32

func (g GIDEntry) GID() []byte               { return g[0:16] }
func (g GIDEntry) Index() uint32             { return le.Uint32(g[16:]) }
func (g GIDEntry) SetIndex(v uint32)         { le.PutUint32(g[16:], v) }
func (g GIDEntry) Port() uint32              { return le.Uint32(g[20:]) }
func (g GIDEntry) SetPort(v uint32)          { le.PutUint32(g[20:], v) }
func (g GIDEntry) Type() uint32              { return le.Uint32(g[24:]) }
func (g GIDEntry) SetType(v uint32)          { le.PutUint32(g[24:], v) }
func (g GIDEntry) NetdevIfindex() uint32     { return le.Uint32(g[28:]) }
func (g GIDEntry) SetNetdevIfindex(v uint32) { le.PutUint32(g[28:], v) }
