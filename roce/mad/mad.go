// Package mad has management datagrams as byte views: the header that all have, those of subnet
// administration and of its transfers in segments (RMPP), and the attributes that hosts ask a
// subnet administrator for. The layouts are those of the Linux kernel (include/rdma/ib_mad.h,
// ib_sa.h and the tables of core/sa_query.c) and of rdma-core (libibumad/umad_sa.h, umad_types.h).
package mad

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var be = binary.BigEndian

// Size is the length of every general management packet in bytes.
const Size = 256

// QKey is the Q_Key of QP1.
const QKey = 0x8001_0000

// Management classes and versions.
const (
	BaseVersion    = 1
	ClassSubnAdm   = 0x03
	SubnAdmVersion = 2
)

// Methods. Response is the bit that an answer has.
const (
	Get       = 0x01
	Set       = 0x02
	GetTable  = 0x12
	Delete    = 0x15
	GetResp   = 0x81
	TableResp = 0x92
	DelResp   = 0x95
	Response  = 0x80
)

// Attributes of subnet administration.
const (
	AttrClassPortInfo    = 0x0001
	AttrInformInfo       = 0x0003
	AttrNodeRecord       = 0x0011
	AttrPortInfoRecord   = 0x0012
	AttrSwitchInfoRecord = 0x0014
	AttrLFTRecord        = 0x0015
	AttrSMInfoRecord     = 0x0018
	AttrLinkRecord       = 0x0020
	AttrGUIDInfoRecord   = 0x0030
	AttrPKeyTableRecord  = 0x0033
	AttrPathRecord       = 0x0035
	AttrMCMemberRecord   = 0x0038
)

// Status of an answer: those of every class, and those of subnet administration.
const (
	StatusOK               = 0
	StatusBadVersion       = 1 << 2
	StatusNoMethod         = 2 << 2 // the method is not supported
	StatusNoAttribute      = 3 << 2 // the method is not supported for this attribute
	StatusNoResources      = 0x0100
	StatusRequestInvalid   = 0x0200
	StatusNoRecords        = 0x0300
	StatusInvalidGID       = 0x0500
	StatusTooFewComponents = 0x0600
)

// MAD is a general management packet, 256 bytes.
type MAD []byte

// ErrMalformed is wrapped by the errors of Parse.
var ErrMalformed = errors.New("mad: malformed")

// Parse returns b as a MAD if its size and its base version are right. Its errors wrap
// ErrMalformed.
func Parse(b []byte) (MAD, error) {
	switch {
	case len(b) != Size:
		return nil, fmt.Errorf("%w: %d bytes, not %d", ErrMalformed, len(b), Size)
	case b[0] != BaseVersion:
		return nil, fmt.Errorf("%w: base version %d, not %d", ErrMalformed, b[0], BaseVersion)
	}
	return MAD(b), nil
}

// Class returns the management class, such as ClassSubnAdm: byte 1.
func (m MAD) Class() uint8 { return m[1] }

// ClassVersion returns the class version: byte 2.
func (m MAD) ClassVersion() uint8 { return m[2] }

// Method returns the method, such as Get: byte 3.
func (m MAD) Method() uint8 { return m[3] }

// Status returns the status of an answer, StatusOK and the like: 16 bits at byte 4.
func (m MAD) Status() uint16 { return be.Uint16(m[4:]) }

// TID returns the transaction ID: 64 bits at byte 8.
func (m MAD) TID() uint64 { return be.Uint64(m[8:]) }

// Attribute returns the attribute ID: 16 bits at byte 16.
func (m MAD) Attribute() uint16 { return be.Uint16(m[16:]) }

// Modifier returns the attribute modifier: 32 bits at byte 20.
func (m MAD) Modifier() uint32 { return be.Uint32(m[20:]) }

// SetBaseVersion sets the base version.
func (m MAD) SetBaseVersion(v uint8) { m[0] = v }

// SetClass sets the management class.
func (m MAD) SetClass(v uint8) { m[1] = v }

// SetClassVersion sets the class version.
func (m MAD) SetClassVersion(v uint8) { m[2] = v }

// SetMethod sets the method.
func (m MAD) SetMethod(v uint8) { m[3] = v }

// SetStatus sets the status of an answer.
func (m MAD) SetStatus(v uint16) { be.PutUint16(m[4:], v) }

// SetTID sets the transaction ID.
func (m MAD) SetTID(v uint64) { be.PutUint64(m[8:], v) }

// SetAttribute sets the attribute ID.
func (m MAD) SetAttribute(v uint16) { be.PutUint16(m[16:], v) }

// SetModifier sets the attribute modifier.
func (m MAD) SetModifier(v uint32) { be.PutUint32(m[20:], v) }

// RMPP returns the header of a transfer in segments, which ClassSubnAdm and some other classes
// have.
func (m MAD) RMPP() RMPP { return RMPP(m[24:36]) }

// RMPP is the header of a transfer in segments, 12 bytes.
type RMPP []byte

// RMPPVersion is the only version of RMPP.
const RMPPVersion = 1

// Types of a segment.
const (
	RMPPData  = 1
	RMPPAck   = 2
	RMPPStop  = 3
	RMPPAbort = 4
)

// Flags of a segment.
const (
	RMPPActive = 1 << iota
	RMPPFirst
	RMPPLast
)

// Version returns the version: byte 0.
func (h RMPP) Version() uint8 { return h[0] }

// Type returns the type of the segment, RMPPData and the like: byte 1.
func (h RMPP) Type() uint8 { return h[1] }

// Flags returns the flags, RMPPActive and the like: bits 2:0 of byte 2.
func (h RMPP) Flags() uint8 { return h[2] & 7 }

// Segment returns the number of the segment: 32 bits at byte 4.
func (h RMPP) Segment() uint32 { return be.Uint32(h[4:]) }

// Window returns the last segment that may be sent, in an acknowledgement: 32 bits at byte 8.
func (h RMPP) Window() uint32 { return be.Uint32(h[8:]) }

// Payload returns the length of the payload in bytes, in data: 32 bits at byte 8.
func (h RMPP) Payload() uint32 { return be.Uint32(h[8:]) }

// SetVersion sets the version.
func (h RMPP) SetVersion(v uint8) { h[0] = v }

// SetType sets the type of the segment, RMPPData and the like.
func (h RMPP) SetType(v uint8) { h[1] = v }

// SetFlags sets the flags, and the response time to the code for "not given".
func (h RMPP) SetFlags(v uint8) { h[2] = 31<<3 | v&7 }

// SetSegment sets the number of the segment.
func (h RMPP) SetSegment(v uint32) { be.PutUint32(h[4:], v) }

// SetPayload sets the length of the payload in bytes, in data.
func (h RMPP) SetPayload(v uint32) { be.PutUint32(h[8:], v) }

// SetWindow sets the last segment that may be sent, in an acknowledgement.
func (h RMPP) SetWindow(v uint32) { be.PutUint32(h[8:], v) }

// SAHeaderSize is the header of subnet administration, which each segment has; SADataSize is what
// is behind it.
const (
	SAHeaderSize = 20
	SADataSize   = Size - 56
)

// AttributeOffset returns the distance between records of a table, in units of 8 bytes: 16 bits at
// byte 44.
func (m MAD) AttributeOffset() uint16 { return be.Uint16(m[44:]) }

// SetAttributeOffset sets the distance between records of a table, in units of 8 bytes.
func (m MAD) SetAttributeOffset(v uint16) { be.PutUint16(m[44:], v) }

// Components returns the component mask, a bit for each part of the attribute that the request
// gives: 64 bits at byte
// 48.
func (m MAD) Components() uint64 { return be.Uint64(m[48:]) }

// SetComponents sets the component mask.
func (m MAD) SetComponents(v uint64) { be.PutUint64(m[48:], v) }

// Data returns the attribute, or the segment's part of a table.
func (m MAD) Data() []byte { return m[56:Size] }
