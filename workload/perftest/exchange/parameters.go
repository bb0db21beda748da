package exchange

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

// Parameters are what versions from 6.28 on compare (struct perftest_parameters_negotiate of a
// build with mlx5dv, on a 64-bit machine). The numbers are those of perftest's enumerations.
type Parameters struct {
	Method, Connection, Verb, Test, Atomic, Type, Format          int
	Size, Iters                                                   uint64
	AES, QPs, Duration, CM, WriteImm, NoReorder, Signature, Valid int
	Device                                                        verbs.DeviceAttr
	DVMask                                                        uint64
}

// Offsets in the message; the device's attributes are struct ibv_device_attr in the order of the
// host's bytes.
const (
	sizeAt   = 32
	itersAt  = 40
	moreAt   = 48
	deviceAt = 80
	guidAt   = deviceAt + 64
	wordsAt  = guidAt + 32
	lastAt   = wordsAt + 32*4
	maskAt   = 312
)

func (p *Parameters) first() []*int {
	return []*int{&p.Method, &p.Connection, &p.Verb, &p.Test, &p.Atomic, &p.Type, &p.Format}
}

func (p *Parameters) more() []*int {
	return []*int{&p.AES, &p.QPs, &p.Duration, &p.CM, &p.WriteImm, &p.NoReorder, &p.Signature, &p.Valid}
}

// words are the fields of 4 bytes of ibv_device_attr, in order; nil where there is none in
// verbs.DeviceAttr.
func words(d *verbs.DeviceAttr) []*int {
	return []*int{nil, nil, nil, &d.MaxQP, &d.MaxQPWR, nil, &d.MaxSGE, &d.MaxSGERd, &d.MaxCQ, &d.MaxCQE, &d.MaxMR, &d.MaxPD, &d.MaxQPRdAtom, nil,
		&d.MaxResRdAtom, &d.MaxQPInitRdAtom, nil, nil, nil, nil, &d.MaxMW, nil, nil, &d.MaxMcastGrp, &d.MaxMcastQPAttach, &d.MaxTotalMcastQPAttach, &d.MaxAH, nil, nil, &d.MaxSRQ, &d.MaxSRQWR, &d.MaxSRQSGE}
}

// unsigned are those among the words that are not signed, by their place.
func unsigned(d *verbs.DeviceAttr) map[int]*uint32 {
	return map[int]*uint32{0: &d.VendorID, 1: &d.VendorPartID, 2: &d.HWVer, 5: &d.DeviceCapFlags, 17: (*uint32)(&d.Atomic)}
}

// Encode is the message.
func (p *Parameters) Encode() []byte {
	b := make([]byte, ParametersSize)
	be, host := binary.BigEndian, binary.NativeEndian
	for i, v := range p.first() {
		be.PutUint32(b[4*i:], uint32(*v))
	}
	be.PutUint64(b[sizeAt:], p.Size)
	be.PutUint64(b[itersAt:], p.Iters)
	for i, v := range p.more() {
		be.PutUint32(b[moreAt+4*i:], uint32(*v))
	}
	d := &p.Device
	copy(b[deviceAt:guidAt-1], d.FWVer)
	be.PutUint64(b[guidAt:], d.NodeGUID)
	be.PutUint64(b[guidAt+8:], d.SysImageGUID)
	host.PutUint64(b[guidAt+16:], d.MaxMRSize)
	host.PutUint64(b[guidAt+24:], d.PageSizeCap)
	for i, v := range words(d) {
		if v != nil {
			host.PutUint32(b[wordsAt+4*i:], uint32(*v))
		}
	}
	for i, v := range unsigned(d) {
		host.PutUint32(b[wordsAt+4*i:], *v)
	}
	host.PutUint16(b[lastAt:], d.MaxPKeys)
	b[lastAt+2], b[lastAt+3] = d.LocalCAAckDelay, d.PhysPortCnt
	be.PutUint64(b[maskAt:], p.DVMask)
	return b
}

// DecodeParameters reads the message, in either length.
func DecodeParameters(b []byte) (*Parameters, error) {
	if len(b) != ParametersSize && len(b) != PlainParametersSize {
		return nil, fmt.Errorf("the peer's parameters have %d bytes instead of %d or, without mlx5dv, %d", len(b), ParametersSize, PlainParametersSize)
	}
	p := &Parameters{}
	be, host := binary.BigEndian, binary.NativeEndian
	for i, v := range p.first() {
		*v = int(int32(be.Uint32(b[4*i:])))
	}
	p.Size, p.Iters = be.Uint64(b[sizeAt:]), be.Uint64(b[itersAt:])
	for i, v := range p.more() {
		*v = int(int32(be.Uint32(b[moreAt+4*i:])))
	}
	d := &p.Device
	for i, c := range b[deviceAt:guidAt] {
		if c == 0 {
			d.FWVer = string(b[deviceAt : deviceAt+i])
			break
		}
	}
	d.NodeGUID, d.SysImageGUID = be.Uint64(b[guidAt:]), be.Uint64(b[guidAt+8:])
	d.MaxMRSize, d.PageSizeCap = host.Uint64(b[guidAt+16:]), host.Uint64(b[guidAt+24:])
	for i, v := range words(d) {
		if v != nil {
			*v = int(int32(host.Uint32(b[wordsAt+4*i:])))
		}
	}
	for i, v := range unsigned(d) {
		*v = host.Uint32(b[wordsAt+4*i:])
	}
	d.MaxPKeys, d.LocalCAAckDelay, d.PhysPortCnt = host.Uint16(b[lastAt:]), b[lastAt+2], b[lastAt+3]
	if len(b) == ParametersSize {
		p.DVMask = be.Uint64(b[maskAt:])
	}
	return p, p.known()
}

// known reports a number that no enumeration has: the message is none of parameters.
func (p *Parameters) known() error {
	most := []int{2, 6, 5, 3, 1, 1, 1}
	for i, v := range p.first() {
		if *v < 0 || *v > most[i] {
			return fmt.Errorf("the peer's parameters are not those of a known version: %s is %d", Names[i], *v)
		}
	}
	return nil
}

// Names are what perftest calls the numbers that it compares, in the order in which it does.
var Names = []string{"test_method", "connection_type", "verb", "tst", "atomicType", "test_type", "report_fmt", "size", "iters", "aes_xts", "num_of_qps", "duration",
	"use_rdma_cm", "use_write_with_imm", "no_enhanced_reorder", "sig_offload", "data_validation"}

var onOff = []string{"OFF", "ON"}

// values are the words of a number's values, where it has words.
var values = [][]string{
	{"RUN_REGULAR", "RUN_ALL", "RUN_INFINITELY"}, {"RC", "UC", "UD", "RawEth", "XRC", "DC", "SRD"}, {"SEND", "SEND_IMM", "WRITE", "WRITE_IMM", "READ", "ATOMIC"},
	{"LAT", "BW", "LAT_BY_BW", "FS_RATE"}, {"CMP_AND_SWAP", "FETCH_AND_ADD"}, {"ITERATIONS", "DURATION"}, {"GBS", "MBS"}, nil, nil,
	onOff, nil, nil, onOff, onOff, onOff, onOff, onOff,
}

func (p *Parameters) compared() (all []uint64) {
	for _, v := range p.first() {
		all = append(all, uint64(*v))
	}
	all = append(all, p.Size, p.Iters)
	for _, v := range p.more() {
		all = append(all, uint64(*v))
	}
	return all
}

// Mismatch is a parameter in which the ends differ, in perftest's words.
type Mismatch struct{ Name, Local, Remote string }

// String returns the text form.
func (m Mismatch) String() string {
	return fmt.Sprintf("%s mismatch: local=%s, remote=%s", m.Name, m.Local, m.Remote)
}

// Compare lists what differs, in the order in which perftest compares, which ends at the first.
func (p *Parameters) Compare(peer *Parameters) (all []Mismatch) {
	a, b := p.compared(), peer.compared()
	for i := range a {
		if a[i] != b[i] {
			all = append(all, Mismatch{Names[i], word(i, a[i]), word(i, b[i])})
		}
	}
	return all
}

func word(i int, v uint64) string {
	if w := values[i]; v < uint64(len(w)) {
		return w[v]
	}
	return fmt.Sprint(int64(v))
}
