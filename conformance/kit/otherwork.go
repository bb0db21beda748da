package kit

import (
	"strconv"
	"time"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// OtherSRQ is a shared receive queue of the other process.
type OtherSRQ struct {
	Process *OtherProcess
	ID      uint64 // in the other process: argument srq of CreateQP
}

// CreateSRQ creates an SRQ in the process for at least wr receives of sge entries.
func (o *OtherProcess) CreateSRQ(c *spec.C, wr, sge int) *OtherSRQ {
	v := o.Do(c, player.CreateSRQ, Args{"max_wr": uint64(wr), "max_sge": uint64(sge)}, nil).Values
	return &OtherSRQ{o, v["srq"]}
}

// Part is a piece of a buffer of the other process, an SGE there.
type Part struct {
	Of       *OtherBuffer
	Off, Len int
}

// Part returns the n bytes from off as an SGE of the other process.
func (b *OtherBuffer) Part(off, n int) Part { return Part{b, off, n} }

// withParts adds the SGEs to the arguments of a command.
func withParts(args Args, parts []Part) Args {
	for i, p := range parts {
		n := ""
		if i > 0 {
			n = strconv.Itoa(i)
		}
		args["buf"+n], args["off"+n], args["len"+n] = p.Of.ID, uint64(p.Off), uint64(p.Len)
	}
	return args
}

// Recv posts a receive with an SGE for each part.
func (s *OtherSRQ) Recv(c *spec.C, id uint64, parts ...Part) {
	s.Process.Do(c, player.PostSRQ, withParts(Args{"srq": s.ID, "id": id}, parts), nil)
}

// Post posts a send request in the other process with an SGE for each part. ID, opcode, flags,
// immediate, remote address, key and atomic operands are those of wr; its SGEs, which belong to
// this process, are ignored.
func (q *OtherQP) Post(c *spec.C, wr verbs.SendWR, parts ...Part) {
	q.Process.Do(c, player.PostSend, withParts(Args{"qp": q.ID, "id": wr.ID, "opcode": uint64(wr.Opcode), "flags": uint64(wr.Flags), "imm": uint64(wr.Imm),
		"remote": wr.RemoteAddr, "rkey": uint64(wr.RKey), "compare": wr.CompareAdd, "swap": wr.Swap}, parts), nil)
}

// Completions has the process poll for n completions and fails the case unless they come within
// CompletionTimeout.
func (o *OtherProcess) Completions(c *spec.C, n int) []verbs.WC {
	wc := o.CompletionsWithin(c, n, CompletionTimeout)
	if len(wc) < n {
		c.Failf("poll in the other process: want completions: %d, got %d in %v", n, len(wc), CompletionTimeout)
	}
	return wc
}

// CompletionsWithin has the process poll for up to n completions within d, and returns them.
func (o *OtherProcess) CompletionsWithin(c *spec.C, n int, d time.Duration) []verbs.WC {
	v := o.Do(c, player.Wait, Args{"n": uint64(n), "timeout": uint64(d)}, nil).Values
	wc := make([]verbs.WC, v["n"])
	for i := range wc {
		at := func(name string) uint64 { return v[name+strconv.Itoa(i)] }
		wc[i] = verbs.WC{ID: at("id"), Status: verbs.WCStatus(at("status")), Opcode: verbs.WCOpcode(at("opcode")), VendorErr: uint32(at("vendor")),
			ByteLen: uint32(at("len")), Imm: uint32(at("imm")), QPN: uint32(at("qpn")), SrcQP: uint32(at("src")), Flags: verbs.WCFlags(at("flags")),
			PKeyIndex: uint16(at("pkey")), SLID: uint16(at("slid")), SL: uint8(at("sl")), DLIDPathBits: uint8(at("path"))}
	}
	return wc
}
