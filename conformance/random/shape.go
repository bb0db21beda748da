package random

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/verbs"
)

// Bounds of what objects are made of.
const (
	maxSGEs      = 16
	pagedRetries = 7 // a page that is absent takes some, and those for want of receives have no end: a program waits for none
	tooMany      = 254
	mostReads    = 255
)

// sges is how many pieces a request may have.
func (p *Program) sges() int {
	if p.SGEs > 0 {
		return p.SGEs
	}
	return maxPieces
}

// paged reports whether a region is on demand.
func (p *Program) paged() bool {
	for i := range p.Regions {
		if p.Regions[i].Paged {
			return true
		}
	}
	return false
}

// validShapes says what is wrong with the regions and with how objects are made.
func (p *Program) validShapes() error {
	for _, r := range p.Regions {
		if r.Size <= 0 || r.Size > regionSize || r.Off < 0 || r.Off+r.Size > memorySize || r.Place < 0 || r.Place >= places {
			return fmt.Errorf("a region of %d bytes from byte %d on, place %d: 1 to %d bytes in memory of %d, place 0 to %d", r.Size, r.Off, r.Place, regionSize, memorySize, places-1)
		}
	}
	for _, r := range p.Regions {
		if r.Big && (!r.Paged || r.Place != PlaceOwn) {
			return errors.New("a region of more than 4 GiB is on demand, at its own addresses")
		}
	}
	if p.paged() && (p.UC || p.UD || len(p.Faults) > 0 || p.RNRRetry != pagedRetries || p.Retries != pagedRetries) {
		return fmt.Errorf("regions on demand are of RC without faults, with %d retries of both kinds", pagedRetries)
	}
	if p.Group && !p.UD {
		return errors.New("a multicast group is of UD")
	}
	if p.SGEs < 0 || p.SGEs > maxSGEs || p.PSN > 1<<24-1 || p.Flow > 1<<20-1 || p.SL > 7 {
		return fmt.Errorf("%d pieces, PSN %#x, flow label %#x, service level %d: at most %d, and 24, 20 and 3 bits", p.SGEs, p.PSN, p.Flow, p.SL, maxSGEs)
	}
	if !p.CQ.Extended && (p.CQ.Wide || p.CQ.Compressed != 0) || p.CQ.Compressed > 4 {
		return errors.New("entries of 128 bytes and compressed ones (format 1, 2 or 4) are of an extended CQ")
	}
	if p.CQ.Wide && p.SigAll { // libmlx5 (44) takes what a READ returns in the completion from the wrong place then
		return errors.New("entries of 128 bytes for queue pairs with sq_sig_all")
	}
	return nil
}

// fields are what the program reads of a completion.
const fields = verbs.WCExByteLen | verbs.WCExImm | verbs.WCExQPNum | verbs.WCExSrcQP

// cqAttr is how a CQ is made.
func (r *run) cqAttr(n int) verbs.CQAttr {
	a := verbs.CQAttr{CQE: n, Channel: r.ch, Ex: r.p.CQ.Extended, CQECompression: r.p.CQ.Compressed}
	if a.Ex {
		a.WCFlags = fields
	}
	if r.p.CQ.Wide {
		a.CQESize = 128
	}
	return a
}

// domain is the program's thread domain.
func (r *run) domain() *kit.TD {
	if r.td == nil {
		r.td = r.env.AllocTD(r.c)
	}
	return r.td
}

// tooManyReads asks for one outstanding READ more than the device has.
func (r *run) tooManyReads(i, k int, a verbs.QPAttr) {
	mask := kit.MaskFor(r.qps[k].Opt.Type, a.State)
	switch {
	case mask&verbs.QPMaskMaxDestRdAtomic != 0 && r.most.MaxQPRdAtom < 255:
		a.MaxDestRdAtomic = uint8(r.most.MaxQPRdAtom + 1)
	case mask&verbs.QPMaskMaxQPRdAtomic != 0 && r.most.MaxQPInitRdAtom < 255:
		a.MaxRdAtomic = uint8(r.most.MaxQPInitRdAtom + 1)
	default:
		return
	}
	r.modify(i, k, &a, mask)
}

// wait polls a CQ for completions until there is one or the time is over.
func (r *run) wait(n int, wc []verbs.WC, until time.Duration) (int, error) {
	ex, extended := r.cqs[n].(verbs.CQEx)
	if !extended || !r.p.CQ.Extended {
		return r.cqs[n].PollWait(r.c.T, wc, until)
	}
	for slept, pause := time.Duration(0), 4*time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		got, err := r.pollExtended(ex, wc)
		if got > 0 || err != nil || slept >= until {
			return got, err
		}
		r.c.T.Sleep(pause)
		slept += pause
	}
}

// pollOnce polls a CQ once.
func (r *run) pollOnce(n int, wc []verbs.WC) (int, error) {
	if ex, extended := r.cqs[n].(verbs.CQEx); extended && r.p.CQ.Extended {
		return r.pollExtended(ex, wc)
	}
	return r.cqs[n].Poll(r.c.T, wc)
}

// pollExtended is a poll by ibv_start_poll and ibv_next_poll.
func (r *run) pollExtended(cq verbs.CQEx, wc []verbs.WC) (n int, err error) {
	if err = cq.StartPoll(r.c.T, 0); errors.Is(err, syscall.ENOENT) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	for {
		w := &wc[n]
		*w = verbs.WC{ID: cq.WRID(), Status: cq.Status(), QPN: cq.ReadQPNum()}
		if w.Status == verbs.WCSuccess {
			w.Opcode, w.Flags, w.ByteLen, w.SrcQP = cq.ReadOpcode(), cq.ReadWCFlags(), cq.ReadByteLen(), cq.ReadSrcQP()
			if w.Flags&(verbs.WCWithImm|verbs.WCWithInv) != 0 {
				w.Imm = cq.ReadImmData()
			}
		}
		if n++; n == len(wc) {
			break
		}
		if err = cq.NextPoll(r.c.T); errors.Is(err, syscall.ENOENT) {
			err = nil
			break
		} else if err != nil {
			break
		}
	}
	cq.EndPoll(r.c.T)
	return n, err
}

// Values of what objects are made of, the usual first.
var (
	pieceCounts = []int{0, 1, 2, 3, 5, 8, 15, 16}
	psns        = []uint32{0, 1<<24 - 1, 1<<24 - 2, 1<<24 - 9, 1<<24 - 0x1001, 1<<24 - 0x1008, 1<<23 - 1, 1 << 23, 1}
	readCounts  = []uint8{0, 1, 2, 3, 4, 7, mostReads, tooMany}
	regionSizes = []int{regionSize, regionSize - 1, kit.Page, kit.Page + 1, kit.Page - 1, 1, 8, 64, 100, 2048}
	regionOffs  = []int{0, 1, 8, 63, 64, 2048, kit.Page - 8, kit.Page - 1}
	flows       = []uint32{0, 1, 0xff, 0x100, 0x10000, 0xfffff, 0x80000}
)

// shape draws what the objects of a program are made of.
func (d *Draw) shape(r source, p *Program) {
	has := d.has
	p.SGEs, p.PSN, p.RdAtomic = mostly(r, pieceCounts), mostly(r, psns), mostly(r, readCounts)
	if p.Flow = mostly(r, flows); r.oneIn(4) {
		p.SL = uint8(r.IntN(8))
	}
	p.CQ.Extended = has.CQEx && r.oneIn(4)
	if p.CQ.Extended && has.Direct {
		if p.CQ.Wide = !p.SigAll && r.oneIn(2); has.Compress && r.oneIn(2) {
			p.CQ.Compressed = pick(r, []uint8{verbs.CQECompHash, verbs.CQECompCsum})
		}
	}
	p.Group = has.Mcast && p.UD && r.oneIn(2)
	p.Domain = has.TD && r.oneIn(4)
	paged := has.ODP && !p.UC && !p.UD && !p.XRC && len(p.Faults) == 0 && r.oneIn(6)
	p.Regions = list(r.between(1, maxRegions), func() Region {
		x := Region{Size: mostly(r, regionSizes), Access: mostly(r, accesses), Off: mostly(r, regionOffs)}
		if paged && r.oneIn(2) {
			x.Paged, x.Big = true, r.oneIn(32)
			x.Access &^= verbs.AccessMWBind
		} else if r.oneIn(6) {
			x.Place = r.between(1, places-1)
		}
		return x
	})
	if p.paged() {
		p.RNRRetry, p.Retries = pagedRetries, pagedRetries
	}
}

// ofRegion draws a step of a region.
func ofRegion(r source, p *Program, s *Step) {
	s.Region, s.Side = r.IntN(len(p.Regions)), 0
	x := Piece{Region: s.Region, Len: mostly(r, regionSizes), Off: mostly(r, regionOffs)}
	switch s.Kind {
	case StepReg:
		s.Access, s.Pieces, s.Region = mostly(r, accesses), []Piece{x}, 0
		if r.oneIn(4) {
			s.N = r.between(1, places-1)
		}
	case StepRereg:
		switch r.IntN(4) {
		case 0:
			s.Pieces = []Piece{x}
		case 1:
			s.N, s.All = 1, r.oneIn(2)
		default:
			s.Access = mostly(r, accesses)
		}
	case StepEvict:
		s.N = r.IntN(4)
	case StepAdvise:
		x = piece(r, p)
		x.WrongKey = false
		s.Pieces, s.N, s.Region = []Piece{x}, r.IntN(2), 0
	}
}
