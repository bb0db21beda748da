package mad

import "github.com/rdmasim/rdmasim/roce"

// The communication manager's class (include/rdma/ibta_vol1_c12.h of Linux). Its messages go one way, with method Send.
const (
	ClassCM   = 0x07
	CMVersion = 2
	Send      = 0x03
)

// Messages of the communication manager, by attribute.
const (
	AttrREQ     = 0x0010
	AttrMRA     = 0x0011
	AttrREJ     = 0x0012
	AttrREP     = 0x0013
	AttrRTU     = 0x0014
	AttrDREQ    = 0x0015
	AttrDREP    = 0x0016
	AttrSIDRReq = 0x0017
	AttrSIDRRep = 0x0018
	AttrLAP     = 0x0019
	AttrAPR     = 0x001a
)

// BodySize is what is behind the header that all classes have.
const BodySize = Size - 24

// Body is what is behind the header: a message of the communication manager.
func (m MAD) Body() []byte { return m[24:Size] }

func get24(b []byte) uint32    { return be.Uint32(b) >> 8 }
func put24(b []byte, v uint32) { b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v) }

// CM is what all messages but those of SIDR begin with: the communication IDs of sender and receiver. Of SIDR and of REQ only the first counts.
type CM []byte

func (c CM) Local() uint32      { return be.Uint32(c) }
func (c CM) Remote() uint32     { return be.Uint32(c[4:]) }
func (c CM) SetLocal(v uint32)  { be.PutUint32(c, v) }
func (c CM) SetRemote(v uint32) { be.PutUint32(c[4:], v) }

// Transport types of a REQ.
const (
	TransportRC       = 0
	TransportUC       = 1
	TransportExtended = 3

	ExtendedXRC = 1 // extended transport type
)

// REQ asks for a connection. Its options of enhanced connection establishment are the vendor here, and the header's modifier.
type REQ []byte

func (r REQ) Local() uint32                 { return be.Uint32(r) }
func (r REQ) Vendor() uint32                { return get24(r[5:]) }
func (r REQ) ServiceID() uint64             { return be.Uint64(r[8:]) }
func (r REQ) CAGUID() uint64                { return be.Uint64(r[16:]) }
func (r REQ) QKey() uint32                  { return be.Uint32(r[28:]) }
func (r REQ) QPN() uint32                   { return get24(r[32:]) }
func (r REQ) ResponderResources() uint8     { return r[35] }
func (r REQ) InitiatorDepth() uint8         { return r[39] }
func (r REQ) RemoteTimeout() uint8          { return bits(r[43], 3, 5) }
func (r REQ) Transport() uint8              { return bits(r[43], 1, 2) }
func (r REQ) FlowControl() bool             { return r[43]&1 != 0 }
func (r REQ) PSN() uint32                   { return get24(r[44:]) }
func (r REQ) LocalTimeout() uint8           { return bits(r[47], 3, 5) }
func (r REQ) RetryCount() uint8             { return bits(r[47], 0, 3) }
func (r REQ) PKey() uint16                  { return be.Uint16(r[48:]) }
func (r REQ) MTU() uint8                    { return bits(r[50], 4, 4) }
func (r REQ) RNRRetryCount() uint8          { return bits(r[50], 0, 3) }
func (r REQ) MaxCMRetries() uint8           { return bits(r[51], 4, 4) }
func (r REQ) SRQ() bool                     { return r[51]&8 != 0 }
func (r REQ) Extended() uint8               { return bits(r[51], 0, 3) }
func (r REQ) Primary() CMPath               { return CMPath(r[52:96]) }
func (r REQ) Alternate() CMPath             { return CMPath(r[96:140]) }
func (r REQ) PrivateData() []byte           { return r[140:BodySize] }
func (r REQ) SetLocal(v uint32)             { be.PutUint32(r, v) }
func (r REQ) SetVendor(v uint32)            { put24(r[5:], v) }
func (r REQ) SetServiceID(v uint64)         { be.PutUint64(r[8:], v) }
func (r REQ) SetCAGUID(v uint64)            { be.PutUint64(r[16:], v) }
func (r REQ) SetQKey(v uint32)              { be.PutUint32(r[28:], v) }
func (r REQ) SetQPN(v uint32)               { put24(r[32:], v) }
func (r REQ) SetResponderResources(v uint8) { r[35] = v }
func (r REQ) SetInitiatorDepth(v uint8)     { r[39] = v }
func (r REQ) SetRemoteTimeout(v uint8)      { setBits(&r[43], 3, 5, v) }
func (r REQ) SetTransport(v uint8)          { setBits(&r[43], 1, 2, v) }
func (r REQ) SetFlowControl(v bool)         { setBits(&r[43], 0, 1, b2u(v)) }
func (r REQ) SetPSN(v uint32)               { put24(r[44:], v) }
func (r REQ) SetLocalTimeout(v uint8)       { setBits(&r[47], 3, 5, v) }
func (r REQ) SetRetryCount(v uint8)         { setBits(&r[47], 0, 3, v) }
func (r REQ) SetPKey(v uint16)              { be.PutUint16(r[48:], v) }
func (r REQ) SetMTU(v uint8)                { setBits(&r[50], 4, 4, v) }
func (r REQ) SetRNRRetryCount(v uint8)      { setBits(&r[50], 0, 3, v) }
func (r REQ) SetMaxCMRetries(v uint8)       { setBits(&r[51], 4, 4, v) }
func (r REQ) SetSRQ(v bool)                 { setBits(&r[51], 3, 1, b2u(v)) }
func (r REQ) SetExtended(v uint8)           { setBits(&r[51], 0, 3, v) }

// CMPath is a path of a REQ, 44 bytes.
type CMPath []byte

func (p CMPath) LocalLID() uint16     { return be.Uint16(p) }
func (p CMPath) RemoteLID() uint16    { return be.Uint16(p[2:]) }
func (p CMPath) LocalGID() roce.GID   { return gid(p[4:]) }
func (p CMPath) RemoteGID() roce.GID  { return gid(p[20:]) }
func (p CMPath) FlowLabel() uint32    { return be.Uint32(p[36:]) >> 12 }
func (p CMPath) Rate() uint8          { return bits(p[39], 0, 6) }
func (p CMPath) TrafficClass() uint8  { return p[40] }
func (p CMPath) HopLimit() uint8      { return p[41] }
func (p CMPath) SL() uint8            { return bits(p[42], 4, 4) }
func (p CMPath) SubnetLocal() bool    { return p[42]&8 != 0 }
func (p CMPath) ACKTimeout() uint8    { return bits(p[43], 3, 5) }
func (p CMPath) SetLocalLID(v uint16) { be.PutUint16(p, v) }

func (p CMPath) SetRemoteLID(v uint16)   { be.PutUint16(p[2:], v) }
func (p CMPath) SetLocalGID(v roce.GID)  { copy(p[4:20], v[:]) }
func (p CMPath) SetRemoteGID(v roce.GID) { copy(p[20:36], v[:]) }
func (p CMPath) SetFlowLabel(v uint32)   { be.PutUint32(p[36:], v<<12|be.Uint32(p[36:])&0xfff) }
func (p CMPath) SetRate(v uint8)         { setBits(&p[39], 0, 6, v) }
func (p CMPath) SetTrafficClass(v uint8) { p[40] = v }
func (p CMPath) SetHopLimit(v uint8)     { p[41] = v }
func (p CMPath) SetSL(v uint8)           { setBits(&p[42], 4, 4, v) }
func (p CMPath) SetSubnetLocal(v bool)   { setBits(&p[42], 3, 1, b2u(v)) }
func (p CMPath) SetACKTimeout(v uint8)   { setBits(&p[43], 3, 5, v) }

// REP answers a REQ.
type REP []byte

func (r REP) QPN() uint32                   { return get24(r[12:]) }
func (r REP) Vendor() uint32                { return uint32(r[15])<<16 | uint32(r[19])<<8 | uint32(r[23]) }
func (r REP) EECN() uint32                  { return get24(r[16:]) }
func (r REP) PSN() uint32                   { return get24(r[20:]) }
func (r REP) ResponderResources() uint8     { return r[24] }
func (r REP) InitiatorDepth() uint8         { return r[25] }
func (r REP) ACKDelay() uint8               { return bits(r[26], 3, 5) }
func (r REP) FlowControl() bool             { return r[26]&1 != 0 }
func (r REP) RNRRetryCount() uint8          { return bits(r[27], 5, 3) }
func (r REP) SRQ() bool                     { return r[27]&16 != 0 }
func (r REP) CAGUID() uint64                { return be.Uint64(r[28:]) }
func (r REP) PrivateData() []byte           { return r[36:BodySize] }
func (r REP) SetQPN(v uint32)               { put24(r[12:], v) }
func (r REP) SetVendor(v uint32)            { r[15], r[19], r[23] = byte(v>>16), byte(v>>8), byte(v) }
func (r REP) SetEECN(v uint32)              { put24(r[16:], v) }
func (r REP) SetPSN(v uint32)               { put24(r[20:], v) }
func (r REP) SetResponderResources(v uint8) { r[24] = v }
func (r REP) SetInitiatorDepth(v uint8)     { r[25] = v }
func (r REP) SetACKDelay(v uint8)           { setBits(&r[26], 3, 5, v) }
func (r REP) SetFlowControl(v bool)         { setBits(&r[26], 0, 1, b2u(v)) }
func (r REP) SetRNRRetryCount(v uint8)      { setBits(&r[27], 5, 3, v) }
func (r REP) SetSRQ(v bool)                 { setBits(&r[27], 4, 1, b2u(v)) }
func (r REP) SetCAGUID(v uint64)            { be.PutUint64(r[28:], v) }

// RTU says that the sender is ready. DREP has the same form.
type RTU []byte

func (r RTU) PrivateData() []byte { return r[8:BodySize] }

// DREQ asks for the end of a connection.
type DREQ []byte

func (d DREQ) QPN() uint32         { return get24(d[8:]) }
func (d DREQ) PrivateData() []byte { return d[12:BodySize] }
func (d DREQ) SetQPN(v uint32)     { put24(d[8:], v) }

// What a MRA or a REJ is about.
const (
	AboutREQ   = 0
	AboutREP   = 1
	AboutOther = 2
)

// MRA says that the answer takes longer.
type MRA []byte

func (m MRA) About() uint8              { return bits(m[8], 6, 2) }
func (m MRA) ServiceTimeout() uint8     { return bits(m[9], 3, 5) }
func (m MRA) PrivateData() []byte       { return m[10:BodySize] }
func (m MRA) SetAbout(v uint8)          { setBits(&m[8], 6, 2, v) }
func (m MRA) SetServiceTimeout(v uint8) { setBits(&m[9], 3, 5, v) }

// Reasons of a REJ.
const (
	RejTimeout           = 4
	RejInvalidServiceID  = 8
	RejStale             = 10
	RejInvalidGID        = 12
	RejInvalidAltGID     = 19
	RejDuplicateCommID   = 30
	RejConsumerDefined   = 28
	RejVendorUnsupported = 35
)

// REJ refuses.
type REJ []byte

func (r REJ) About() uint8          { return bits(r[8], 6, 2) }
func (r REJ) Reason() uint16        { return be.Uint16(r[10:]) }
func (r REJ) PrivateData() []byte   { return r[84:BodySize] }
func (r REJ) SetAbout(v uint8)      { setBits(&r[8], 6, 2, v) }
func (r REJ) SetInfoLength(v uint8) { setBits(&r[9], 1, 7, v) }
func (r REJ) SetReason(v uint16)    { be.PutUint16(r[10:], v) }

// SetInfoGUID writes a GUID, or the first half of a GID, into the additional information.
func (r REJ) SetInfoGUID(v uint64) { be.PutUint64(r[12:], v) }

// InfoGUID is the GUID in the additional information.
func (r REJ) InfoGUID() uint64 { return be.Uint64(r[12:]) }

// SIDRReq asks for the QP of a service of datagrams.
type SIDRReq []byte

func (s SIDRReq) RequestID() uint32     { return be.Uint32(s) }
func (s SIDRReq) PKey() uint16          { return be.Uint16(s[4:]) }
func (s SIDRReq) ServiceID() uint64     { return be.Uint64(s[8:]) }
func (s SIDRReq) PrivateData() []byte   { return s[16:BodySize] }
func (s SIDRReq) SetRequestID(v uint32) { be.PutUint32(s, v) }
func (s SIDRReq) SetPKey(v uint16)      { be.PutUint16(s[4:], v) }
func (s SIDRReq) SetServiceID(v uint64) { be.PutUint64(s[8:], v) }

// Status of a SIDRRep.
const (
	SIDRSuccess     = 0
	SIDRUnsupported = 1
	SIDRReject      = 2
	SIDRNoQP        = 3
)

// SIDRRep answers a SIDRReq.
type SIDRRep []byte

func (s SIDRRep) RequestID() uint32     { return be.Uint32(s) }
func (s SIDRRep) Status() uint8         { return s[4] }
func (s SIDRRep) Vendor() uint32        { return uint32(be.Uint16(s[6:]))<<8 | uint32(s[11]) }
func (s SIDRRep) QPN() uint32           { return get24(s[8:]) }
func (s SIDRRep) QKey() uint32          { return be.Uint32(s[20:]) }
func (s SIDRRep) PrivateData() []byte   { return s[96:BodySize] }
func (s SIDRRep) SetRequestID(v uint32) { be.PutUint32(s, v) }
func (s SIDRRep) SetStatus(v uint8)     { s[4] = v }
func (s SIDRRep) SetVendor(v uint32)    { be.PutUint16(s[6:], uint16(v>>8)); s[11] = byte(v) }
func (s SIDRRep) SetQPN(v uint32)       { put24(s[8:], v) }
func (s SIDRRep) SetServiceID(v uint64) { be.PutUint64(s[12:], v) }
func (s SIDRRep) SetQKey(v uint32)      { be.PutUint32(s[20:], v) }

// IPHeader is what rdma_cm puts before a user's data in a REQ and a SIDRReq, for services of IP (struct cma_hdr; IBTA annex A11).
type IPHeader []byte

// IPHeaderSize is its length.
const IPHeaderSize = 36

func (h IPHeader) Version() uint8       { return h[0] }
func (h IPHeader) IPVersion() uint8     { return bits(h[1], 4, 4) }
func (h IPHeader) SrcPort() uint16      { return be.Uint16(h[2:]) }
func (h IPHeader) Src() roce.GID        { return gid(h[4:]) }
func (h IPHeader) Dst() roce.GID        { return gid(h[20:]) }
func (h IPHeader) SetIPVersion(v uint8) { setBits(&h[1], 4, 4, v) }
func (h IPHeader) SetSrcPort(v uint16)  { be.PutUint16(h[2:], v) }

// SetSrc writes an address: of IPv4 in the last four bytes, behind zeros.
func (h IPHeader) SetSrc(v roce.GID) { copy(h[4:20], v[:]) }

// SetDst is as SetSrc.
func (h IPHeader) SetDst(v roce.GID) { copy(h[20:36], v[:]) }
