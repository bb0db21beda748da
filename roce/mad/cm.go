package mad

import "github.com/rdmasim/rdmasim/roce"

// The communication manager's class (include/rdma/ibta_vol1_c12.h of Linux). Its messages go one
// way, with method Send.
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

// BodySize is the number of bytes behind the header that all classes have.
const BodySize = Size - 24

// Body returns the bytes behind the header: the message, if the class is ClassCM.
func (m MAD) Body() []byte { return m[24:Size] }

func get24(b []byte) uint32    { return be.Uint32(b) >> 8 }
func put24(b []byte, v uint32) { b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v) }

// CM is the beginning of every message but those of SIDR: the communication IDs of sender and
// receiver. A REQ has only the first.
type CM []byte

// Local returns the communication ID of the sender: 32 bits at byte 0.
func (c CM) Local() uint32 { return be.Uint32(c) }

// Remote returns the communication ID of the receiver: 32 bits at byte 4.
func (c CM) Remote() uint32 { return be.Uint32(c[4:]) }

// SetLocal sets the communication ID of the sender.
func (c CM) SetLocal(v uint32) { be.PutUint32(c, v) }

// SetRemote sets the communication ID of the receiver.
func (c CM) SetRemote(v uint32) { be.PutUint32(c[4:], v) }

// Transport types of a REQ.
const (
	TransportRC       = 0
	TransportUC       = 1
	TransportExtended = 3

	ExtendedXRC = 1 // extended transport type
)

// REQ asks for a connection. Its options of enhanced connection establishment (ECE) are in Vendor
// and in the modifier of the MAD.
type REQ []byte

// Local returns the communication ID of the sender: 32 bits at byte 0.
func (r REQ) Local() uint32 { return be.Uint32(r) }

// Vendor returns the vendor ID of ECE: 24 bits at byte 5.
func (r REQ) Vendor() uint32 { return get24(r[5:]) }

// ServiceID returns the service ID: 64 bits at byte 8.
func (r REQ) ServiceID() uint64 { return be.Uint64(r[8:]) }

// CAGUID returns the GUID of the sender's channel adapter: 64 bits at byte 16.
func (r REQ) CAGUID() uint64 { return be.Uint64(r[16:]) }

// QKey returns the Q_Key of the sender: 32 bits at byte 28.
func (r REQ) QKey() uint32 { return be.Uint32(r[28:]) }

// QPN returns the QPN of the sender: 24 bits at byte 32.
func (r REQ) QPN() uint32 { return get24(r[32:]) }

// ResponderResources returns how many READs and atomics the sender answers at a time: byte 35.
func (r REQ) ResponderResources() uint8 { return r[35] }

// InitiatorDepth returns how many READs and atomics the sender has outstanding at most: byte 39.
func (r REQ) InitiatorDepth() uint8 { return r[39] }

// RemoteTimeout returns in what time the receiver shall answer, as t of 4.096 us * 2^t: bits 7:3 of
// byte 43.
func (r REQ) RemoteTimeout() uint8 { return bits(r[43], 3, 5) }

// Transport returns the transport type, TransportRC and the like: bits 2:1 of byte 43.
func (r REQ) Transport() uint8 { return bits(r[43], 1, 2) }

// FlowControl reports whether the sender has end-to-end flow control: bit 0 of byte 43.
func (r REQ) FlowControl() bool { return r[43]&1 != 0 }

// PSN returns the first PSN of the sender's requests: 24 bits at byte 44.
func (r REQ) PSN() uint32 { return get24(r[44:]) }

// LocalTimeout returns in what time the sender answers, as t of 4.096 us * 2^t: bits 7:3 of byte
// 47.
func (r REQ) LocalTimeout() uint8 { return bits(r[47], 3, 5) }

// RetryCount returns how often the receiver's QP shall retry a request: bits 2:0 of byte 47.
func (r REQ) RetryCount() uint8 { return bits(r[47], 0, 3) }

// PKey returns the partition key: 16 bits at byte 48.
func (r REQ) PKey() uint16 { return be.Uint16(r[48:]) }

// MTU returns the code of the path MTU: bits 7:4 of byte 50.
func (r REQ) MTU() uint8 { return bits(r[50], 4, 4) }

// RNRRetryCount returns how often the receiver's QP shall retry after RNR NAKs: bits 2:0 of byte
// 50.
func (r REQ) RNRRetryCount() uint8 { return bits(r[50], 0, 3) }

// MaxCMRetries returns how often each message is sent again at most: bits 7:4 of byte 51.
func (r REQ) MaxCMRetries() uint8 { return bits(r[51], 4, 4) }

// SRQ reports whether the sender's QP has an SRQ: bit 3 of byte 51.
func (r REQ) SRQ() bool { return r[51]&8 != 0 }

// Extended returns the extended transport type, such as ExtendedXRC: bits 2:0 of byte 51.
func (r REQ) Extended() uint8 { return bits(r[51], 0, 3) }

// Primary returns the primary path: bytes 52 to 95.
func (r REQ) Primary() CMPath { return CMPath(r[52:96]) }

// Alternate returns the alternate path: bytes 96 to 139.
func (r REQ) Alternate() CMPath { return CMPath(r[96:140]) }

// PrivateData returns the private data: the bytes from 140 on.
func (r REQ) PrivateData() []byte { return r[140:BodySize] }

// SetLocal sets the communication ID of the sender.
func (r REQ) SetLocal(v uint32) { be.PutUint32(r, v) }

// SetVendor sets the vendor ID of ECE.
func (r REQ) SetVendor(v uint32) { put24(r[5:], v) }

// SetServiceID sets the service ID.
func (r REQ) SetServiceID(v uint64) { be.PutUint64(r[8:], v) }

// SetCAGUID sets the GUID of the sender's channel adapter.
func (r REQ) SetCAGUID(v uint64) { be.PutUint64(r[16:], v) }

// SetQKey sets the Q_Key of the sender.
func (r REQ) SetQKey(v uint32) { be.PutUint32(r[28:], v) }

// SetQPN sets the QPN of the sender.
func (r REQ) SetQPN(v uint32) { put24(r[32:], v) }

// SetResponderResources sets how many READs and atomics the sender answers at a time.
func (r REQ) SetResponderResources(v uint8) { r[35] = v }

// SetInitiatorDepth sets how many READs and atomics the sender has outstanding at most.
func (r REQ) SetInitiatorDepth(v uint8) { r[39] = v }

// SetRemoteTimeout sets the code t of the time in which the receiver shall answer.
func (r REQ) SetRemoteTimeout(v uint8) { setBits(&r[43], 3, 5, v) }

// SetTransport sets the transport type.
func (r REQ) SetTransport(v uint8) { setBits(&r[43], 1, 2, v) }

// SetFlowControl sets whether the sender has end-to-end flow control.
func (r REQ) SetFlowControl(v bool) { setBits(&r[43], 0, 1, b2u(v)) }

// SetPSN sets the first PSN of the sender's requests.
func (r REQ) SetPSN(v uint32) { put24(r[44:], v) }

// SetLocalTimeout sets the code t of the time in which the sender answers.
func (r REQ) SetLocalTimeout(v uint8) { setBits(&r[47], 3, 5, v) }

// SetRetryCount sets how often the receiver's QP shall retry a request.
func (r REQ) SetRetryCount(v uint8) { setBits(&r[47], 0, 3, v) }

// SetPKey sets the partition key.
func (r REQ) SetPKey(v uint16) { be.PutUint16(r[48:], v) }

// SetMTU sets the code of the path MTU.
func (r REQ) SetMTU(v uint8) { setBits(&r[50], 4, 4, v) }

// SetRNRRetryCount sets how often the receiver's QP shall retry after RNR NAKs.
func (r REQ) SetRNRRetryCount(v uint8) { setBits(&r[50], 0, 3, v) }

// SetMaxCMRetries sets how often each message is sent again at most.
func (r REQ) SetMaxCMRetries(v uint8) { setBits(&r[51], 4, 4, v) }

// SetSRQ sets whether the sender's QP has an SRQ.
func (r REQ) SetSRQ(v bool) { setBits(&r[51], 3, 1, b2u(v)) }

// SetExtended sets the extended transport type, such as ExtendedXRC.
func (r REQ) SetExtended(v uint8) { setBits(&r[51], 0, 3, v) }

// CMPath is the primary or the alternate path of a REQ, 44 bytes.
type CMPath []byte

// LocalLID returns the local LID: 16 bits at byte 0.
func (p CMPath) LocalLID() uint16 { return be.Uint16(p) }

// RemoteLID returns the remote LID: 16 bits at byte 2.
func (p CMPath) RemoteLID() uint16 { return be.Uint16(p[2:]) }

// LocalGID returns the local GID: 16 bytes from byte 4 on.
func (p CMPath) LocalGID() roce.GID { return gid(p[4:]) }

// RemoteGID returns the remote GID: 16 bytes from byte 20 on.
func (p CMPath) RemoteGID() roce.GID { return gid(p[20:]) }

// FlowLabel returns the flow label: bits 31:12 of the word at byte 36.
func (p CMPath) FlowLabel() uint32 { return be.Uint32(p[36:]) >> 12 }

// Rate returns the code of the rate: bits 5:0 of byte 39.
func (p CMPath) Rate() uint8 { return bits(p[39], 0, 6) }

// TrafficClass returns the traffic class: byte 40.
func (p CMPath) TrafficClass() uint8 { return p[40] }

// HopLimit returns the hop limit: byte 41.
func (p CMPath) HopLimit() uint8 { return p[41] }

// SL returns the service level: bits 7:4 of byte 42.
func (p CMPath) SL() uint8 { return bits(p[42], 4, 4) }

// SubnetLocal reports whether the path stays in the subnet: bit 3 of byte 42.
func (p CMPath) SubnetLocal() bool { return p[42]&8 != 0 }

// ACKTimeout returns the local ACK timeout, as t of 4.096 us * 2^t: bits 7:3 of byte 43.
func (p CMPath) ACKTimeout() uint8 { return bits(p[43], 3, 5) }

// SetLocalLID sets the local LID.
func (p CMPath) SetLocalLID(v uint16) { be.PutUint16(p, v) }

// SetRemoteLID sets the remote LID.
func (p CMPath) SetRemoteLID(v uint16) { be.PutUint16(p[2:], v) }

// SetLocalGID sets the local GID.
func (p CMPath) SetLocalGID(v roce.GID) { copy(p[4:20], v[:]) }

// SetRemoteGID sets the remote GID.
func (p CMPath) SetRemoteGID(v roce.GID) { copy(p[20:36], v[:]) }

// SetFlowLabel sets the flow label.
func (p CMPath) SetFlowLabel(v uint32) { be.PutUint32(p[36:], v<<12|be.Uint32(p[36:])&0xfff) }

// SetRate sets the code of the rate.
func (p CMPath) SetRate(v uint8) { setBits(&p[39], 0, 6, v) }

// SetTrafficClass sets the traffic class.
func (p CMPath) SetTrafficClass(v uint8) { p[40] = v }

// SetHopLimit sets the hop limit.
func (p CMPath) SetHopLimit(v uint8) { p[41] = v }

// SetSL sets the service level.
func (p CMPath) SetSL(v uint8) { setBits(&p[42], 4, 4, v) }

// SetSubnetLocal sets whether the path stays in the subnet.
func (p CMPath) SetSubnetLocal(v bool) { setBits(&p[42], 3, 1, b2u(v)) }

// SetACKTimeout sets the code t of the local ACK timeout.
func (p CMPath) SetACKTimeout(v uint8) { setBits(&p[43], 3, 5, v) }

// REP accepts a REQ.
type REP []byte

// QPN returns the QPN of the sender, unless it is an XRC target (see EECN): 24 bits at byte 12.
func (r REP) QPN() uint32 { return get24(r[12:]) }

// Vendor returns the vendor ID of ECE: bytes 15, 19 and 23.
func (r REP) Vendor() uint32 { return uint32(r[15])<<16 | uint32(r[19])<<8 | uint32(r[23]) }

// EECN returns the EE context number, which is the QPN of an XRC target: 24 bits at byte 16.
func (r REP) EECN() uint32 { return get24(r[16:]) }

// PSN returns the first PSN of the sender's requests: 24 bits at byte 20.
func (r REP) PSN() uint32 { return get24(r[20:]) }

// ResponderResources returns how many READs and atomics the sender answers at a time: byte 24.
func (r REP) ResponderResources() uint8 { return r[24] }

// InitiatorDepth returns how many READs and atomics the sender has outstanding at most: byte 25.
func (r REP) InitiatorDepth() uint8 { return r[25] }

// ACKDelay returns the target ACK delay, as t of 4.096 us * 2^t: bits 7:3 of byte 26.
func (r REP) ACKDelay() uint8 { return bits(r[26], 3, 5) }

// FlowControl reports whether the sender has end-to-end flow control: bit 0 of byte 26.
func (r REP) FlowControl() bool { return r[26]&1 != 0 }

// RNRRetryCount returns how often the receiver's QP shall retry after RNR NAKs: bits 7:5 of byte
// 27.
func (r REP) RNRRetryCount() uint8 { return bits(r[27], 5, 3) }

// SRQ reports whether the sender's QP has an SRQ: bit 4 of byte 27.
func (r REP) SRQ() bool { return r[27]&16 != 0 }

// CAGUID returns the GUID of the sender's channel adapter: 64 bits at byte 28.
func (r REP) CAGUID() uint64 { return be.Uint64(r[28:]) }

// PrivateData returns the private data: the bytes from 36 on.
func (r REP) PrivateData() []byte { return r[36:BodySize] }

// SetQPN sets the QPN of the sender.
func (r REP) SetQPN(v uint32) { put24(r[12:], v) }

// SetVendor sets the vendor ID of ECE.
func (r REP) SetVendor(v uint32) { r[15], r[19], r[23] = byte(v>>16), byte(v>>8), byte(v) }

// SetEECN sets the EE context number, which is the QPN of an XRC target.
func (r REP) SetEECN(v uint32) { put24(r[16:], v) }

// SetPSN sets the first PSN of the sender's requests.
func (r REP) SetPSN(v uint32) { put24(r[20:], v) }

// SetResponderResources sets how many READs and atomics the sender answers at a time.
func (r REP) SetResponderResources(v uint8) { r[24] = v }

// SetInitiatorDepth sets how many READs and atomics the sender has outstanding at most.
func (r REP) SetInitiatorDepth(v uint8) { r[25] = v }

// SetACKDelay sets the code t of the target ACK delay.
func (r REP) SetACKDelay(v uint8) { setBits(&r[26], 3, 5, v) }

// SetFlowControl sets whether the sender has end-to-end flow control.
func (r REP) SetFlowControl(v bool) { setBits(&r[26], 0, 1, b2u(v)) }

// SetRNRRetryCount sets how often the receiver's QP shall retry after RNR NAKs.
func (r REP) SetRNRRetryCount(v uint8) { setBits(&r[27], 5, 3, v) }

// SetSRQ sets whether the sender's QP has an SRQ.
func (r REP) SetSRQ(v bool) { setBits(&r[27], 4, 1, b2u(v)) }

// SetCAGUID sets the GUID of the sender's channel adapter.
func (r REP) SetCAGUID(v uint64) { be.PutUint64(r[28:], v) }

// RTU says that the sender is ready to use the connection. A DREP has the same layout.
type RTU []byte

// PrivateData returns the private data: the bytes from 8 on.
func (r RTU) PrivateData() []byte { return r[8:BodySize] }

// DREQ asks for the end of a connection.
type DREQ []byte

// QPN returns the QPN of the receiver: 24 bits at byte 8.
func (d DREQ) QPN() uint32 { return get24(d[8:]) }

// PrivateData returns the private data: the bytes from 12 on.
func (d DREQ) PrivateData() []byte { return d[12:BodySize] }

// SetQPN sets the QPN of the receiver.
func (d DREQ) SetQPN(v uint32) { put24(d[8:], v) }

// What a MRA or a REJ is about.
const (
	AboutREQ   = 0
	AboutREP   = 1
	AboutOther = 2
)

// MRA acknowledges a message whose answer takes longer.
type MRA []byte

// About returns the kind of message that is acknowledged, AboutREQ and the like: bits 7:6 of byte
// 8.
func (m MRA) About() uint8 { return bits(m[8], 6, 2) }

// ServiceTimeout returns in what time the answer follows, as t of 4.096 us * 2^t: bits 7:3 of byte
// 9.
func (m MRA) ServiceTimeout() uint8 { return bits(m[9], 3, 5) }

// PrivateData returns the private data: the bytes from 10 on.
func (m MRA) PrivateData() []byte { return m[10:BodySize] }

// SetAbout sets the kind of message that is acknowledged, AboutREQ and the like.
func (m MRA) SetAbout(v uint8) { setBits(&m[8], 6, 2, v) }

// SetServiceTimeout sets the code t of the time in which the answer follows.
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

// REJ refuses a REQ or a REP, or gives up a connection that is being made.
type REJ []byte

// About returns the kind of message that is rejected, AboutREQ and the like: bits 7:6 of byte 8.
func (r REJ) About() uint8 { return bits(r[8], 6, 2) }

// Reason returns the reason, RejTimeout and the like: 16 bits at byte 10.
func (r REJ) Reason() uint16 { return be.Uint16(r[10:]) }

// PrivateData returns the private data: the bytes from 84 on.
func (r REJ) PrivateData() []byte { return r[84:BodySize] }

// SetAbout sets the kind of message that is rejected, AboutREQ and the like.
func (r REJ) SetAbout(v uint8) { setBits(&r[8], 6, 2, v) }

// SetInfoLength sets the length of the additional information in bytes.
func (r REJ) SetInfoLength(v uint8) { setBits(&r[9], 1, 7, v) }

// SetReason sets the reason, RejTimeout and the like.
func (r REJ) SetReason(v uint16) { be.PutUint16(r[10:], v) }

// SetInfoGUID writes a GUID, or the first half of a GID, into the additional information.
func (r REJ) SetInfoGUID(v uint64) { be.PutUint64(r[12:], v) }

// InfoGUID returns the GUID in the additional information: 64 bits at byte 12.
func (r REJ) InfoGUID() uint64 { return be.Uint64(r[12:]) }

// SIDRReq asks for the QP of a datagram service.
type SIDRReq []byte

// RequestID returns the request ID: 32 bits at byte 0.
func (s SIDRReq) RequestID() uint32 { return be.Uint32(s) }

// PKey returns the partition key: 16 bits at byte 4.
func (s SIDRReq) PKey() uint16 { return be.Uint16(s[4:]) }

// ServiceID returns the service ID: 64 bits at byte 8.
func (s SIDRReq) ServiceID() uint64 { return be.Uint64(s[8:]) }

// PrivateData returns the private data: the bytes from 16 on.
func (s SIDRReq) PrivateData() []byte { return s[16:BodySize] }

// SetRequestID sets the request ID.
func (s SIDRReq) SetRequestID(v uint32) { be.PutUint32(s, v) }

// SetPKey sets the partition key.
func (s SIDRReq) SetPKey(v uint16) { be.PutUint16(s[4:], v) }

// SetServiceID sets the service ID.
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

// RequestID returns the request ID: 32 bits at byte 0.
func (s SIDRRep) RequestID() uint32 { return be.Uint32(s) }

// Status returns the status, SIDRSuccess and the like: byte 4.
func (s SIDRRep) Status() uint8 { return s[4] }

// Vendor returns the vendor ID of ECE: 16 bits at byte 6 and, as the lowest 8, byte 11.
func (s SIDRRep) Vendor() uint32 { return uint32(be.Uint16(s[6:]))<<8 | uint32(s[11]) }

// QPN returns the QPN of the service: 24 bits at byte 8.
func (s SIDRRep) QPN() uint32 { return get24(s[8:]) }

// QKey returns the Q_Key of the service: 32 bits at byte 20.
func (s SIDRRep) QKey() uint32 { return be.Uint32(s[20:]) }

// PrivateData returns the private data: the bytes from 96 on.
func (s SIDRRep) PrivateData() []byte { return s[96:BodySize] }

// SetRequestID sets the request ID.
func (s SIDRRep) SetRequestID(v uint32) { be.PutUint32(s, v) }

// SetStatus sets the status, SIDRSuccess and the like.
func (s SIDRRep) SetStatus(v uint8) { s[4] = v }

// SetVendor sets the vendor ID of ECE.
func (s SIDRRep) SetVendor(v uint32) { be.PutUint16(s[6:], uint16(v>>8)); s[11] = byte(v) }

// SetQPN sets the QPN of the service.
func (s SIDRRep) SetQPN(v uint32) { put24(s[8:], v) }

// SetServiceID sets the service ID.
func (s SIDRRep) SetServiceID(v uint64) { be.PutUint64(s[12:], v) }

// SetQKey sets the Q_Key of the service.
func (s SIDRRep) SetQKey(v uint32) { be.PutUint32(s[20:], v) }

// IPHeader is what rdma_cm puts before the user's data in a REQ and a SIDRReq of an IP service
// (struct cma_hdr; IBTA annex A11).
type IPHeader []byte

// IPHeaderSize is the length of an IPHeader in bytes.
const IPHeaderSize = 36

// Version returns the version: byte 0.
func (h IPHeader) Version() uint8 { return h[0] }

// IPVersion returns the IP version: bits 7:4 of byte 1.
func (h IPHeader) IPVersion() uint8 { return bits(h[1], 4, 4) }

// SrcPort returns the source port: 16 bits at byte 2.
func (h IPHeader) SrcPort() uint16 { return be.Uint16(h[2:]) }

// Src returns the source address, an IPv4 address behind 12 zero bytes: 16 bytes from byte 4 on.
func (h IPHeader) Src() roce.GID { return gid(h[4:]) }

// Dst returns the destination address in the form of Src: 16 bytes from byte 20 on.
func (h IPHeader) Dst() roce.GID { return gid(h[20:]) }

// SetIPVersion sets the IP version.
func (h IPHeader) SetIPVersion(v uint8) { setBits(&h[1], 4, 4, v) }

// SetSrcPort sets the source port.
func (h IPHeader) SetSrcPort(v uint16) { be.PutUint16(h[2:], v) }

// SetSrc sets the source address; v has an IPv4 address in its last four bytes, behind zeros.
func (h IPHeader) SetSrc(v roce.GID) { copy(h[4:20], v[:]) }

// SetDst sets the destination address; v has the form that SetSrc takes.
func (h IPHeader) SetDst(v roce.GID) { copy(h[20:36], v[:]) }
