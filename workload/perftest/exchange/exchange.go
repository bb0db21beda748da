// Package exchange has the messages that two ends of a perftest program send each other over TCP
// before and after a test, as bytes: versions, system data, MTU, parameters, addresses and keys,
// and reports. Source: linux-rdma/perftest, src/ perftest_communication.c of 00b55b6 (which says
// that it is version 6.29) and of v4.5-0.17 (6.06). The messages have no length, type or frame:
// each end knows what comes next, and one that expects something else reads garbage. So every
// decoder here checks what can be checked.
package exchange

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/verbs"
)

// Sizes of messages in bytes.
const (
	VersionSize    = 16
	IntSize        = 4 // page size, and cache line size
	MTUSize        = 2
	KeysSize       = 59
	KeysGIDSize    = 108
	ParametersSize = 320
	// PlainParametersSize is that of perftest when it was built without mlx5dv.
	PlainParametersSize = 312
	NumberSize          = 8 // of a report
	Numbers             = 5 // of a report, each a message
)

// Version is what this package speaks, and NegotiatedSince is the first version that compares
// parameters.
const (
	Version         = "6.29"
	NegotiatedSince = 6.28
	oldest          = 5.70
)

// EncodeVersion is the first message.
func EncodeVersion(v string) []byte {
	b := make([]byte, VersionSize)
	copy(b[:VersionSize-1], v)
	return b
}

// DecodeVersion returns the number and its text.
func DecodeVersion(b []byte) (float64, string, error) {
	text, _, _ := bytes.Cut(b, []byte{0})
	n, err := strconv.ParseFloat(string(text), 64)
	if len(b) != VersionSize || err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, "", fmt.Errorf("the peer's first message is %q, which is not a version of perftest: another program answers at this port", clip(b))
	}
	if n < oldest {
		return 0, "", fmt.Errorf("the peer has version %s, and versions before %.2f exchange other messages", text, oldest)
	}
	return n, string(text), nil
}

func clip(b []byte) []byte { return b[:min(len(b), VersionSize)] }

// EncodeInt is a page size or a cache line size.
func EncodeInt(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// The largest pages and cache lines that any processor with Linux has are 1 MiB and 256 bytes. Both
// ends lay out their buffers by what the peer says: a line is never larger than a page, and a page
// takes no memory to speak of.
const (
	MostPage = 1 << 20
	MostLine = 1 << 10
)

// DecodeInt is the size that a message holds, of what, which is at most so large.
func DecodeInt(b []byte, what string, most uint32) (int, error) {
	if len(b) != IntSize {
		return 0, fmt.Errorf("the peer's %s has %d bytes instead of %d", what, len(b), IntSize)
	}
	n := binary.BigEndian.Uint32(b)
	if n == 0 || n > most || n&(n-1) != 0 {
		return 0, fmt.Errorf("the peer's %s is %d, which is not a power of two up to %d: another program answers at this port, or the ends do not agree about the messages", what, n, most)
	}
	return int(n), nil
}

// EncodeMTU is the digit of an MTU.
func EncodeMTU(m verbs.MTU) []byte { return []byte{'0' + byte(m), 0} }

// DecodeMTU is the peer's MTU.
func DecodeMTU(b []byte) (verbs.MTU, error) {
	if len(b) != MTUSize || b[0] <= '0' || verbs.MTU(b[0]-'0').Bytes() == 0 {
		return 0, fmt.Errorf("the peer's MTU is %q, and a digit from 1 to 5 is known", b)
	}
	return verbs.MTU(b[0] - '0'), nil
}

// Keys are the address of a queue pair and what gives access to the memory behind it.
type Keys struct {
	LID      uint16
	OutReads int
	QPN, PSN uint32
	RKey     uint32
	Addr     uint64
	GID      verbs.GID
	SRQN     uint32
}

// Encode is the message; with or without a GID, which the ends must agree about.
func (k *Keys) Encode(gid bool) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%04x:%04x:%06x:%06x:%08x:%016x:", k.LID, k.OutReads, k.QPN, k.PSN, k.RKey, k.Addr)
	if !gid {
		fmt.Fprintf(&b, "%08x", k.SRQN)
	} else {
		for _, x := range k.GID {
			fmt.Fprintf(&b, "%02x:", x)
		}
		fmt.Fprintf(&b, "%08x:", k.SRQN)
	}
	return append([]byte(b.String()), 0)
}

// Size is that of the message with or without a GID.
func Size(gid bool) int {
	if gid {
		return KeysGIDSize
	}
	return KeysSize
}

// DecodeKeys reads the message.
func DecodeKeys(b []byte, gid bool) (k Keys, err error) {
	text, _, _ := bytes.Cut(b, []byte{0})
	fields := strings.Split(strings.TrimSuffix(string(text), ":"), ":")
	want := 7
	if gid {
		want += len(k.GID)
	}
	if len(b) != Size(gid) || len(fields) != want {
		return k, fmt.Errorf("the peer's address is %q, not %d hexadecimal numbers in %d bytes: the ends do not agree whether a GID is used (-x), or how many messages there are", b, want, Size(gid))
	}
	number := func(i, bits int, what string) (n uint64) {
		v, perr := strconv.ParseUint(fields[i], 16, bits)
		if perr != nil && err == nil {
			err = fmt.Errorf("the peer's address: %s %q is not a hexadecimal number of %d bits", what, fields[i], bits)
		}
		return v
	}
	k.LID, k.OutReads = uint16(number(0, 16, "LID")), int(number(1, 16, "outstanding reads"))
	k.QPN, k.PSN = uint32(number(2, 24, "QPN")), uint32(number(3, 24, "PSN"))
	k.RKey, k.Addr = uint32(number(4, 32, "RKey")), number(5, 64, "VAddr")
	if gid {
		for i := range k.GID {
			k.GID[i] = byte(number(6+i, 8, "GID"))
		}
	}
	k.SRQN = uint32(number(want-1, 32, "SRQN"))
	return k, err
}

// Report is the result of a bandwidth test.
type Report struct {
	Size, Iters         uint64
	Peak, Average, Rate float64
}

// Encode is the messages of a report, in order.
func (r *Report) Encode() (out [Numbers][]byte) {
	for i, n := range []uint64{r.Size, r.Iters, math.Float64bits(r.Peak), math.Float64bits(r.Average), math.Float64bits(r.Rate)} {
		out[i] = binary.BigEndian.AppendUint64(nil, n)
	}
	return out
}

// DecodeReport reads the messages of a report. An end that has measured nothing sends what happens
// to lie in its memory: Check tells whether the numbers can be a report.
func DecodeReport(b [Numbers][]byte) (r Report, err error) {
	var n [Numbers]uint64
	for i := range b {
		if len(b[i]) != NumberSize {
			return r, fmt.Errorf("number %d of the peer's report has %d bytes instead of %d", i, len(b[i]), NumberSize)
		}
		n[i] = binary.BigEndian.Uint64(b[i])
	}
	r = Report{Size: n[0], Iters: n[1], Peak: math.Float64frombits(n[2]), Average: math.Float64frombits(n[3]), Rate: math.Float64frombits(n[4])}
	return r, nil
}

// Check reports numbers that no test has as its result.
func (r *Report) Check() error {
	for _, v := range []float64{r.Peak, r.Average, r.Rate} {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || r.Size > 1<<31 {
			return fmt.Errorf("the peer's report has %d messages of %d bytes at %g: the two ends use different formats for the messages of the exchange", r.Iters, r.Size, r.Average)
		}
	}
	return nil
}

// Sizes of Keys where the ends talk by queue pairs of the connection manager (struct
// pingpong_dest), from version MarkersSince on with the address of markers.
const (
	BinarySize        = 56
	BinaryMarkersSize = 64
	MarkersSince      = 6.29
)

// EncodeBinary is the message by a queue pair, for a peer of a version.
func (k *Keys) EncodeBinary(peer float64, gidIndex int) []byte {
	be := binary.BigEndian
	b := make([]byte, 0, BinaryMarkersSize)
	for _, v := range []uint32{uint32(k.LID), uint32(k.OutReads), k.QPN, k.PSN, k.RKey, 0} {
		b = be.AppendUint32(b, v)
	}
	b = be.AppendUint64(b, k.Addr)
	if peer >= MarkersSince {
		b = be.AppendUint64(b, 0)
	}
	b = append(b, k.GID[:]...)
	b = be.AppendUint32(b, k.SRQN)
	return be.AppendUint32(b, uint32(int32(gidIndex)))
}

// DecodeBinary reads the message, in either form.
func DecodeBinary(b []byte) (k Keys, err error) {
	if len(b) != BinarySize && len(b) != BinaryMarkersSize {
		return k, fmt.Errorf("the peer's address has %d bytes, where %d or %d are known: the two ends use different formats for the messages of the exchange", len(b), BinarySize, BinaryMarkersSize)
	}
	be := binary.BigEndian
	lid, reads := be.Uint32(b), be.Uint32(b[4:])
	k.QPN, k.PSN, k.RKey, k.Addr = be.Uint32(b[8:]), be.Uint32(b[12:]), be.Uint32(b[16:]), be.Uint64(b[24:])
	if lid > math.MaxUint16 || reads > math.MaxUint16 || k.QPN >= 1<<24 || k.PSN >= 1<<24 {
		return Keys{}, fmt.Errorf("the peer's address has LID %#x, %d outstanding reads, QPN %#x and PSN %#x, which cannot be: the two ends use different formats for the messages of the exchange", lid, reads, k.QPN, k.PSN)
	}
	k.LID, k.OutReads = uint16(lid), int(reads)
	rest := b[len(b)-24:]
	copy(k.GID[:], rest)
	k.SRQN = be.Uint32(rest[16:])
	return k, nil
}
