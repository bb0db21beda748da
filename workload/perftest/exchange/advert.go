package exchange

import (
	"encoding/binary"
	"fmt"
)

// AdvertSize is how many bytes an Advert has.
const AdvertSize = 16

// Advert is what an end of rping tells the other of its memory (struct rping_rdma_info,
// librdmacm/examples/rping.c of rdma-core).
type Advert struct {
	Addr       uint64
	RKey, Size uint32
}

// Encode is the message.
func (a *Advert) Encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, AdvertSize), a.Addr)
	b = binary.BigEndian.AppendUint32(b, a.RKey)
	return binary.BigEndian.AppendUint32(b, a.Size)
}

// DecodeAdvert reads the message, of memory of at most so many bytes.
func DecodeAdvert(b []byte, most uint32) (a Advert, err error) {
	if len(b) != AdvertSize {
		return a, fmt.Errorf("the peer's message has %d bytes instead of %d: its program is not rping", len(b), AdvertSize)
	}
	a = Advert{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])}
	if a.Size == 0 || a.Size > most {
		return Advert{}, fmt.Errorf("the peer's memory has %d bytes, where 1 to %d can be: its program is not rping", a.Size, most)
	}
	return a, nil
}
