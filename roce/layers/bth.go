package layers

import (
	"fmt"

	"github.com/google/gopacket"
	gplayers "github.com/google/gopacket/layers"

	"github.com/rdmasim/rdmasim/roce"
)

// BTH is the transport part of a packet. Contents are the BTH and the extended
// headers, Payload is the payload without pad; both are parts of the packet's
// bytes. Of the extended headers those count that the opcode has
// (Opcode.Info().Headers).
type BTH struct {
	gplayers.BaseLayer
	Opcode    roce.Opcode
	Solicited bool
	MigReq    bool
	PadCount  uint8
	Version   uint8
	PKey      uint16
	FECN      bool
	BECN      bool
	Reserved6 uint8
	DestQP    uint32
	AckReq    bool
	Reserved7 uint8
	PSN       uint32

	EEContext      uint32 // RDETH
	DETH           DETH
	SRQN           uint32 // XRCETH
	DCETH          DCETH
	Flush          Flush // FETH
	RETH           RETH
	AtomicETH      AtomicETH
	AETH           AETH
	AtomicOriginal uint64 // AtomicAckETH
	Immediate      uint32 // ImmDt
	InvalidateRKey uint32 // IETH

	// HasICRC is false when the capture was cut before it.
	HasICRC bool
	ICRC    uint32
}

// DETH is the datagram header.
type DETH struct{ QKey, SrcQP uint32 }

// DCETH is the header of the assumed form of DC.
type DCETH struct {
	AccessKey         uint64
	SrcQP, Connection uint32
}

// RETH is the RDMA header.
type RETH struct {
	VA           uint64
	RKey, Length uint32
}

// AtomicETH is the atomic header.
type AtomicETH struct {
	VA               uint64
	RKey             uint32
	SwapAdd, Compare uint64
}

// AETH is the acknowledge header.
type AETH struct {
	Syndrome roce.Syndrome
	MSN      uint32
}

// Flush is the FLUSH header.
type Flush struct{ Selectivity, Placement uint8 }

var _ interface {
	gopacket.DecodingLayer
	gopacket.SerializableLayer
} = (*BTH)(nil)

// LayerType is LayerTypeBTH.
func (b *BTH) LayerType() gopacket.LayerType { return LayerTypeBTH }

// CanDecode is LayerTypeBTH.
func (b *BTH) CanDecode() gopacket.LayerClass { return LayerTypeBTH }

// NextLayerType is the payload, or nothing.
func (b *BTH) NextLayerType() gopacket.LayerType {
	if len(b.Payload) == 0 {
		return gopacket.LayerTypeZero
	}
	return gopacket.LayerTypePayload
}

func decodeBTH(data []byte, p gopacket.PacketBuilder) error {
	b := new(BTH)
	if err := b.DecodeFromBytes(data, p); err != nil {
		return err
	}
	p.AddLayer(b)
	if next := b.NextLayerType(); next != gopacket.LayerTypeZero {
		return p.NextDecoder(next)
	}
	return nil
}

// DecodeFromBytes decodes BTH through ICRC. Cut captures lose the ICRC and part of
// the payload; only a packet that ends in its headers is an error. A packet with a
// reserved opcode has no extended headers.
func (b *BTH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if len(data) < roce.BTHSize {
		df.SetTruncated()
		return fmt.Errorf("BTH of %d bytes, needs %d", len(data), roce.BTHSize)
	}
	h := roce.BTH(data[:roce.BTHSize])
	*b = BTH{
		Opcode: h.Opcode(), Solicited: h.Solicited(), MigReq: h.MigReq(), PadCount: uint8(h.PadCount()), Version: h.Version(),
		PKey: h.PKey(), FECN: h.FECN(), BECN: h.BECN(), Reserved6: h.Reserved6(), DestQP: h.DestQP(),
		AckReq: h.AckReq(), Reserved7: h.Reserved7(), PSN: h.PSN(),
	}
	info := b.Opcode.Info()
	end := roce.BTHSize + int(info.HeaderLen)
	if len(data) < end {
		df.SetTruncated()
		return fmt.Errorf("%v of %d bytes, its headers need %d", b.Opcode, len(data), end)
	}
	b.getExtended(info, data[roce.BTHSize:end])
	b.Contents = data[:end]
	rest := data[end:]
	if len(rest) < int(b.PadCount)+roce.ICRCSize {
		df.SetTruncated()
		b.Payload = rest
		return nil
	}
	tail := len(rest) - roce.ICRCSize
	b.HasICRC, b.ICRC = true, roce.GetICRC(rest[tail:])
	b.Payload = rest[:tail-int(b.PadCount)]
	return nil
}

func (b *BTH) getExtended(info *roce.OpInfo, ext []byte) {
	for h, left := roce.Headers(1), info.Headers; left != 0; h <<= 1 {
		if left&h == 0 {
			continue
		}
		left &^= h
		x := ext[info.Offset(h):]
		switch h {
		case roce.HasRDETH:
			b.EEContext = roce.RDETH(x).EEContext()
		case roce.HasDETH:
			b.DETH = DETH{roce.DETH(x).QKey(), roce.DETH(x).SrcQP()}
		case roce.HasXRCETH:
			b.SRQN = roce.XRCETH(x).SRQN()
		case roce.HasDCETH:
			v := roce.DCETH(x)
			b.DCETH = DCETH{v.AccessKey(), v.SrcQP(), v.Connection()}
		case roce.HasFETH:
			b.Flush = Flush{roce.FETH(x).Selectivity(), roce.FETH(x).Placement()}
		case roce.HasRETH:
			v := roce.RETH(x)
			b.RETH = RETH{v.VA(), v.RKey(), v.Length()}
		case roce.HasAtomicETH:
			v := roce.AtomicETH(x)
			b.AtomicETH = AtomicETH{v.VA(), v.RKey(), v.SwapAdd(), v.Compare()}
		case roce.HasAETH:
			b.AETH = AETH{roce.AETH(x).Syndrome(), roce.AETH(x).MSN()}
		case roce.HasAtomicAckETH:
			b.AtomicOriginal = roce.AtomicAckETH(x).Original()
		case roce.HasImmDt:
			b.Immediate = roce.ImmDt(x).Value()
		case roce.HasIETH:
			b.InvalidateRKey = roce.IETH(x).RKey()
		}
	}
}

// SerializeTo puts BTH and extended headers before what is in the buffer, which is
// the payload, and pad and ICRC behind it. With FixLengths the pad count follows
// the payload. The ICRC written is that of the field: the IP or GRH layer in front
// computes the right one, since it alone sees all the bytes.
func (b *BTH) SerializeTo(buf gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if opts.FixLengths {
		b.PadCount = uint8(roce.PadCount(len(buf.Bytes())))
	}
	tail, err := buf.AppendBytes(int(b.PadCount&3) + roce.ICRCSize)
	if err != nil {
		return err
	}
	clear(tail)
	roce.PutICRC(tail[b.PadCount&3:], b.ICRC)
	info := b.Opcode.Info()
	head, err := buf.PrependBytes(roce.BTHSize + int(info.HeaderLen))
	if err != nil {
		return err
	}
	clear(head)
	b.putBase(roce.BTH(head))
	b.putExtended(info, head[roce.BTHSize:])
	return nil
}

func (b *BTH) putBase(h roce.BTH) {
	h.SetOpcode(b.Opcode)
	h.SetSolicited(b.Solicited)
	h.SetMigReq(b.MigReq)
	h.SetPadCount(int(b.PadCount))
	h.SetVersion(b.Version)
	h.SetPKey(b.PKey)
	h.SetFECN(b.FECN)
	h.SetBECN(b.BECN)
	h.SetReserved6(b.Reserved6)
	h.SetDestQP(b.DestQP)
	h.SetAckReq(b.AckReq)
	h.SetReserved7(b.Reserved7)
	h.SetPSN(b.PSN)
}

func (b *BTH) putExtended(info *roce.OpInfo, ext []byte) {
	for h, left := roce.Headers(1), info.Headers; left != 0; h <<= 1 {
		if left&h == 0 {
			continue
		}
		left &^= h
		x := ext[info.Offset(h):]
		switch h {
		case roce.HasRDETH:
			roce.RDETH(x).SetEEContext(b.EEContext)
		case roce.HasDETH:
			roce.DETH(x).SetQKey(b.DETH.QKey)
			roce.DETH(x).SetSrcQP(b.DETH.SrcQP)
		case roce.HasXRCETH:
			roce.XRCETH(x).SetSRQN(b.SRQN)
		case roce.HasDCETH:
			roce.DCETH(x).SetAccessKey(b.DCETH.AccessKey)
			roce.DCETH(x).SetSrcQP(b.DCETH.SrcQP)
			roce.DCETH(x).SetConnection(b.DCETH.Connection)
		case roce.HasFETH:
			roce.FETH(x).SetSelectivity(b.Flush.Selectivity)
			roce.FETH(x).SetPlacement(b.Flush.Placement)
		case roce.HasRETH:
			roce.RETH(x).SetVA(b.RETH.VA)
			roce.RETH(x).SetRKey(b.RETH.RKey)
			roce.RETH(x).SetLength(b.RETH.Length)
		case roce.HasAtomicETH:
			roce.AtomicETH(x).SetVA(b.AtomicETH.VA)
			roce.AtomicETH(x).SetRKey(b.AtomicETH.RKey)
			roce.AtomicETH(x).SetSwapAdd(b.AtomicETH.SwapAdd)
			roce.AtomicETH(x).SetCompare(b.AtomicETH.Compare)
		case roce.HasAETH:
			roce.AETH(x).SetSyndrome(b.AETH.Syndrome)
			roce.AETH(x).SetMSN(b.AETH.MSN)
		case roce.HasAtomicAckETH:
			roce.AtomicAckETH(x).SetOriginal(b.AtomicOriginal)
		case roce.HasImmDt:
			roce.ImmDt(x).SetValue(b.Immediate)
		case roce.HasIETH:
			roce.IETH(x).SetRKey(b.InvalidateRKey)
		}
	}
}
