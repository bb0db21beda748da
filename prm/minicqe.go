package prm

import "bytes"

// A session of compressed CQEs takes as many entries of the ring as it has completions. The first
// is the title: the CQE64 of the first completion with format compressed, the number of
// completions in byte_cnt, and the owner bit of its place. Entry 1 holds the mini CQEs of
// completions 0 to 7, entry 8 those of 8 to 15, entry 16 those of 16 to 23, and so on; the
// other entries are not written, and arrays have no owner bit: the title is written last
// (basic layout: drivers/net/ethernet/mellanox/mlx5/core/en_rx.c, mlx5e_decompress_cqes_start and
// _cont).

// Sizes of mini CQEs.
const (
	MiniCQEArray = CQE64Size / MiniCQESize // in an entry of the ring
)

// Formats of a responder's mini CQEs, as the field mini_cqe_res_format of the CQC has them
// (MLX5_CQE_RES_FORMAT_* of mlx5_ib.h).
const (
	MiniCQEHash            = 0
	MiniCQECsum            = 1
	MiniCQECsumStrideIndex = 3
)

// LayoutBasic is the value of cqe_compression_layout that is described here.
const LayoutBasic = 0

// MiniCQEPlace is the entry of a session, counted from the title, that holds the mini CQE
// of completion i.
func MiniCQEPlace(i uint32) uint32 { return max(1, i&^(MiniCQEArray-1)) }

// Compressible reports whether an entry may be part of a session: it is no error and
// carries no data.
func (c CQE64) Compressible() bool {
	return c.Opcode() <= CQERespSendInv && c.Format() == CQEFormatPlain
}

// Joins reports whether c may be completion i of the session that begins with first, an entry as
// it would be written alone: nothing but what a mini CQE carries, and the time stamp, which is
// lost, differs. A responder's WQE counters go up by one unless the format carries them.
func (c CQE64) Joins(first CQE64, i, format uint32) bool {
	if !c.Compressible() || c[63]>>1 != first[63]>>1 || c[62] != first[62] {
		return false
	}
	if c.Opcode() == CQEReq {
		return bytes.Equal(c[:44], first[:44]) && bytes.Equal(c[57:60], first[57:60])
	}
	own := [2]int{20, 22} // check_sum
	if format == MiniCQEHash {
		own = [2]int{12, 16} // rss_hash_result
	}
	return bytes.Equal(c[:own[0]], first[:own[0]]) && bytes.Equal(c[own[1]:44], first[own[1]:44]) && bytes.Equal(c[56:60], first[56:60]) &&
		(format == MiniCQECsumStrideIndex || c.WQECounter() == first.WQECounter()+uint16(i))
}

// Set stores in m what c does not share with the title.
func (m MiniCQE) Set(c CQE64, format uint32) {
	clear(m[:4])
	m.SetByteCnt(c.ByteCnt())
	switch {
	case c.Opcode() == CQEReq:
		m.SetWQECounter(c.WQECounter())
		m.SetSOp(c.SOp())
	case format == MiniCQEHash:
		m.SetRxHash(be32(c, 12))
	default:
		m.SetChecksum(be16(c, 20))
		if format == MiniCQECsumStrideIndex {
			m.SetStrideIndex(c.WQECounter())
		}
	}
}

// restore turns c, a copy of the title, into the completion of m; counter is the WQE counter of a
// responder's completion.
func (m MiniCQE) restore(c CQE64, counter uint16, format uint32) {
	c.SetByteCnt(m.ByteCnt())
	switch {
	case c.Opcode() == CQEReq:
		c.SetWQECounter(m.WQECounter())
		c.SetSOp(m.SOp())
		return
	case format == MiniCQEHash:
		putBE32(c, 12, m.RxHash())
	default:
		putBE16(c, 20, m.Checksum())
		if format == MiniCQECsumStrideIndex {
			counter = m.StrideIndex()
		}
	}
	c.SetWQECounter(counter)
}

// ExpandCQEs writes the completions of a session over the entries that it takes: plain ones, owned
// by software. The title is entry ci (not reduced) of a ring of n entries, which at gives. It
// reports how many there are; false: no session has as many as the title says, and nothing is
// changed.
func ExpandCQEs(at func(i uint32) CQE64, ci, n, format uint32) (count uint32, ok bool) {
	var title, minis [CQE64Size]byte
	copy(title[:], at(ci))
	t := CQE64(title[:])
	if count = t.ByteCnt(); count < 2 || count > n {
		return 0, false
	}
	for i := range count {
		if i%MiniCQEArray == 0 {
			copy(minis[:], at(ci+MiniCQEPlace(i)))
		}
		c := at(ci + i)
		copy(c, t)
		MiniCQE(minis[i%MiniCQEArray*MiniCQESize:]).restore(c, t.WQECounter()+uint16(i), format)
		c.SetOpOwn(t.Opcode(), CQEFormatPlain, t.SE(), CQEOwner(ci+i, n))
	}
	return count, true
}
