// Package roce holds the wire formats of InfiniBand transport over Ethernet
// (RoCEv2, RoCEv1) and of native InfiniBand, as byte views: the headers, the
// opcode table, the codes inside the headers, the two CRCs, and pooled frames
// that are built from a per-QP template and decoded without allocation.
//
// It holds formats and arithmetic only: no state machines, no time, no devices. Package
// roce/oracle judges captures, roce/ladder draws them, and roce/fault scripts faults.
// Layouts follow the headers of the Linux InfiniBand stack (ib_pack.h, ib_hdrs.h,
// the rxe and qib drivers) and are checked against captures of a Soft-RoCE in
// fixtures/captures.
//
// A view is a named byte slice whose getters and setters read and write the
// backing bytes. The length of a view is checked once, where it is made: Parse
// checks a whole frame, and the views that a Packet or a Template hands out have
// their full size. All multi-byte fields are big-endian; the CRCs alone go least
// significant byte first.
package roce

import "encoding/binary"

var be = binary.BigEndian

func get24(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

func put24(b []byte, v uint32) { b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v) }
