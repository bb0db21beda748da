package roce

import "fmt"

// Syndrome is the first byte of an AETH: a type in bits 7:5 and a value.
type Syndrome uint8

// Syndromes.
const (
	SyndromeAck       Syndrome = 0x1F // ACK without a credit count
	SyndromeRNR       Syndrome = 0x20 // plus the timer code
	NAKSequence       Syndrome = 0x60
	NAKInvalidRequest Syndrome = 0x61
	NAKRemoteAccess   Syndrome = 0x62
	NAKRemoteOp       Syndrome = 0x63
	NAKInvalidRD      Syndrome = 0x64
)

// RNRSyndrome returns the RNR NAK with the timer code in the low 5 bits of timer.
func RNRSyndrome(timer uint8) Syndrome { return SyndromeRNR | Syndrome(timer&0x1F) }

// AckSyndrome returns the ACK with a credit code of 0 to 30, or with 31 for no credit count.
func AckSyndrome(credit uint8) Syndrome { return Syndrome(credit & 0x1F) }

// SyndromeType tells acknowledgements, RNR NAKs and NAKs apart.
type SyndromeType uint8

// Syndrome types. A packet with a reserved syndrome is ignored (qib).
const (
	SyndromeTypeAck SyndromeType = iota
	SyndromeTypeRNR
	SyndromeTypeNAK
	SyndromeTypeReserved
)

// Type returns the type of the syndrome; NAK codes above 4 are reserved.
func (s Syndrome) Type() SyndromeType {
	switch s >> 5 {
	case 0:
		return SyndromeTypeAck
	case 1:
		return SyndromeTypeRNR
	case 3:
		if s <= NAKInvalidRD {
			return SyndromeTypeNAK
		}
	}
	return SyndromeTypeReserved
}

// Value returns bits 4:0: the credit code, the RNR timer code or the NAK code.
func (s Syndrome) Value() uint8 { return uint8(s & 0x1F) }

// String returns the type and value in words, such as "RNR NAK timer 12".
func (s Syndrome) String() string {
	switch s.Type() {
	case SyndromeTypeAck:
		if s == SyndromeAck {
			return "ACK"
		}
		return fmt.Sprintf("ACK credits %d", Credits(s.Value()))
	case SyndromeTypeRNR:
		return fmt.Sprintf("RNR NAK timer %d", s.Value())
	case SyndromeTypeNAK:
		return [...]string{"NAK PSN sequence error", "NAK invalid request", "NAK remote access error",
			"NAK remote operational error", "NAK invalid RD request"}[s.Value()]
	}
	return fmt.Sprintf("reserved syndrome 0x%02x", uint8(s))
}

// CreditUnlimited is the credit code of an ACK that sets no limit.
const CreditUnlimited = 0x1F

// Credits returns the number of receive WQEs that a credit code announces, or -1 for
// CreditUnlimited. The counts grow as 2^k and 1.5*2^k.
func Credits(code uint8) int {
	code &= 0x1F
	switch {
	case code == CreditUnlimited:
		return -1
	case code < 3:
		return int(code)
	}
	k := (code - 2) / 2
	n := 2 << k
	if code%2 == 1 {
		n += n / 2
	}
	return n
}

// CreditCode returns the credit code of the largest count that is at most n.
func CreditCode(n int) uint8 {
	best := uint8(0)
	for c := uint8(1); c < CreditUnlimited && Credits(c) <= n; c++ {
		best = c
	}
	return best
}

// rnrTimers in units of 10 us, by code (rdma_verbs enumerations ib_rnr_timeout).
var rnrTimers = [32]int32{
	65536, 1, 2, 3, 4, 6, 8, 12,
	16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072,
	4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// RNRTimer returns the least time in nanoseconds that a requester waits after an RNR NAK with this
// timer code (0 to
// 31).
func RNRTimer(code uint8) int64 { return int64(rnrTimers[code&0x1F]) * 10_000 }

// AckTimeout returns the period T_tr of a QP's timeout attribute in nanoseconds: 4.096 us *
// 2^timeout, or 0 (no timer) for timeout 0. Only the low 5 bits count.
func AckTimeout(timeout uint8) int64 {
	timeout &= 0x1F
	if timeout == 0 {
		return 0
	}
	return 4096 << timeout
}

// AdaptiveLeast is the shortest time in nanoseconds after which a card that retransmits adaptively
// sends an unanswered request again. ConnectX-5 and later do so on RoCE unless it is switched off.
// The least published wait is 4.1 ms (ConnectX-6 Dx: Yu et al., Lumina, SIGCOMM 2023, section 6.3);
// ConnectX-5 and ConnectX-6 waited 8.4 ms and more
// (github.com/unionxic/rdma-fault-characterization, 2026).
const AdaptiveLeast = 4_000_000

// AdaptiveMost is the most adaptive retransmissions without an answer at ACK timeout codes up to
// 20; each code above adds one. 11 at code 20 are published (ConnectX-6). One more, for a schedule
// that begins like that of ConnectX-6 Dx, and the numbers above code 20 are assumed.
const AdaptiveMost = 12

// MTU is the code of a path MTU, 1..5.
type MTU uint8

// MTU codes.
const (
	MTU256 MTU = 1 + iota
	MTU512
	MTU1024
	MTU2048
	MTU4096
)

// Bytes returns the payload size in bytes, or 0 for an undefined code.
func (m MTU) Bytes() int {
	if m < MTU256 || m > MTU4096 {
		return 0
	}
	return 128 << m
}

// MTUFromBytes returns the code of a payload size, or 0 if it has none.
func MTUFromBytes(n int) MTU {
	for m := MTU256; m <= MTU4096; m++ {
		if m.Bytes() == n {
			return m
		}
	}
	return 0
}

// EthernetMTUReserve is what the kernel subtracts from a network device's MTU
// before it looks for the largest path MTU that fits (ib_addr.h, iboe_get_mtu):
// GRH, UDP, BTH, the longest extended header and the ICRC.
const EthernetMTUReserve = 96

// MTUForEthernet returns the active MTU of a RoCE port on a network device with this MTU in bytes,
// or 0 if none fits.
func MTUForEthernet(netdev int) MTU {
	best := MTU(0)
	for m := MTU256; m <= MTU4096; m++ {
		if m.Bytes() <= netdev-EthernetMTUReserve {
			best = m
		}
	}
	return best
}

// MaxMessage is the largest message in bytes.
const MaxMessage = 1 << 31

// PacketsOf returns how many packets carry n bytes at a path MTU of m bytes: at least one.
func PacketsOf(n uint32, m int) uint32 {
	if uint64(n) <= uint64(m) {
		return 1
	}
	return uint32((uint64(n) + uint64(m) - 1) / uint64(m))
}

// PadCount returns the number of bytes that pad n bytes of payload to whole 4-byte words.
func PadCount(n int) int { return -n & 3 }
