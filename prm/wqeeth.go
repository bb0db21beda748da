package prm

import "errors"

// ErrWQEForm is what is wrong with a WQE of an SQ that is no packet.
var ErrWQEForm = errors.New("packet WQE: its segments do not fit its DS count")

// Bits of EthSegment.CSFlags (qp.h, MLX5_ETH_WQE_*).
const (
	EthL3Checksum = 1 << 6
	EthL4Checksum = 1 << 7
)

// StartPadding marks the length of a data segment in an RQ: the device may write bytes in front of
// the packet there (en.h, MLX5_HW_START_PADDING).
const StartPadding = 1 << 31

// inlineHeaderAt is where the inline headers of a packet begin in its EthSegment.
const inlineHeaderAt = 14

// PacketWQE is a parsed WQE of an SQ that sends an Ethernet packet. Its views lie in the bytes it
// was parsed from.
type PacketWQE struct {
	Ctrl    CtrlSegment
	Eth     EthSegment
	Headers []byte // the packet's first bytes, as far as they are in the WQE
	Bytes   uint64 // of all data segments
	data    []byte
}

// ParsePacketWQE lays w over the WQE at the beginning of b, whose opcode is WQEOpSend or WQEOpTSO.
// The whole WQE must be in b, unwrapped. It allocates nothing and walks the data segments once, so
// that iteration cannot fail afterwards. Addresses, keys, and whether the bytes are a packet, are
// not checked.
func ParsePacketWQE(b []byte, w *PacketWQE) error {
	*w = PacketWQE{}
	if len(b) < CtrlSegmentSize {
		return ErrWQETruncated
	}
	w.Ctrl = CtrlSegment(b[:CtrlSegmentSize:CtrlSegmentSize])
	end := w.Ctrl.DS() * DSSize
	switch {
	case len(b) < end:
		return ErrWQETruncated
	case w.Ctrl.Opcode() != WQEOpSend && w.Ctrl.Opcode() != WQEOpTSO:
		return ErrWQEOpcode
	case end < CtrlSegmentSize+EthSegmentSize:
		return ErrWQEForm
	}
	eth := b[CtrlSegmentSize:end]
	w.Eth = EthSegment(eth[:EthSegmentSize:EthSegmentSize])
	n := int(w.Eth.InlineSize())
	at := max(EthSegmentSize, (inlineHeaderAt+n+DSSize-1)&^(DSSize-1))
	if at > len(eth) {
		return ErrWQEForm
	}
	w.Headers, w.data = eth[inlineHeaderAt:inlineHeaderAt+n:inlineHeaderAt+n], eth[at:]
	for i := 0; i < len(w.data); {
		s, next, err := packetSegment(w.data, i)
		if err != nil {
			return err
		}
		w.Bytes += uint64(s.Len)
		i = next
	}
	return nil
}

// Data is the data segment at a place, 0 for the first, and the place of the next one. It reports
// false behind the last.
func (w *PacketWQE) Data(at int) (s SGE, next int, ok bool) {
	if at >= len(w.data) {
		return s, at, false
	}
	s, next, _ = packetSegment(w.data, at)
	return s, next, true
}

// packetSegment is the data segment at a place of b, of which whole units are left.
func packetSegment(b []byte, at int) (s SGE, next int, err error) {
	if seg := InlineSegment(b[at:]); seg.Inline() {
		n := seg.Len()
		if n > len(b)-at-InlineHeaderSize {
			return s, 0, ErrWQEInline
		}
		return SGE{Inline: seg.Data(), Len: uint32(n)}, at + InlineSize(n), nil
	}
	d := DataSegment(b[at : at+DSSize])
	return SGE{Addr: d.Addr(), LKey: d.LKey(), Len: d.ByteCount()}, at + DSSize, nil
}
