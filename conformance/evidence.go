package conformance

import (
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce/ladder"
	"github.com/rdmasim/rdmasim/roce/pcap"
	"github.com/rdmasim/rdmasim/verbs"
)

// How many frames before and after the failed check a record keeps.
const (
	framesBefore = 24
	framesAfter  = 8
)

// mostEvidence bounds the frames in the capture of a case that failed, in bytes: the last are kept.
const mostEvidence = 8 << 20

// attempt is one run of a case, with what a report of its failure needs.
type attempt struct {
	report.Case
	kept     []verbs.WireFrame // by the case, or by its testbed
	by       string            // whose rules act on them
	exact    bool              // the target's clock is virtual: another run of the case does the same
	opened   bool              // the body ran
	took     time.Duration     // of the machine's clock
	failedAt time.Duration     // of the testbed's clock
}

// addFrames adds the frames around the failure of a case to its record, and leaves all of them in
// the file that Evidence names. On a target with exact times the case runs once more for it, with a
// capture; elsewhere the frames are those that the case has recorded itself. What cannot be
// captured is left out: the record of the failure says the rest.
func (r *Runner) addFrames(a *attempt, e Entry, c spec.Case) {
	if r.Evidence == nil || !a.opened || a.Outcome != report.Fail && a.Outcome != report.Integrity {
		return
	}
	path := r.Evidence(e.ID)
	if path == "" {
		return
	}
	var err error
	switch {
	case a.exact:
		quiet := *r
		quiet.failed = nil // it has been told of this failure
		again := quiet.once(e, c, path)
		if !sameRecord(a.Case, again.Case) {
			err = errors.New("the second run differs")
		}
	case len(a.kept) > 0:
		err = writeFrames(path, e.ID, a.kept, a.by)
	default:
		return
	}
	if a.exact {
		a.FailedNs = a.failedAt.Nanoseconds()
	}
	if err == nil {
		err = readFrames(&a.Case, path)
	}
	if err != nil {
		_ = os.Remove(path)
	}
}

// writeFrames writes recorded frames as a capture. by says whose rules have acted on them.
func writeFrames(path, id string, frames []verbs.WireFrame, by string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w, err := pcap.NewWriter(f, "conform")
	if err != nil {
		return err
	}
	link := uint16(pcap.LinkTypeEthernet)
	if frames[0].InfiniBand {
		link = pcap.LinkTypeInfiniBand
	}
	at, err := w.AddInterfaceOf(id+" tap", link)
	for i := 0; err == nil && i < len(frames); i++ {
		comment := ""
		if frames[i].Acted != verbs.WirePass {
			comment, _ = verbs.Words(frames[i].Acted)
			comment += " by " + by
		}
		err = w.Write(at, max(frames[i].At.Nanoseconds(), 0), frames[i].Data, comment)
	}
	if err != nil {
		return err
	}
	return w.Close()
}

// readFrames puts the frames of a capture that are around the failure into the record.
func readFrames(c *report.Case, path string) error {
	var nodes ladder.Nodes
	before, all := 0, 0
	leftOut, err := eachFrame(path, func(p *pcap.Packet, port string) {
		from, _, ok := ladder.Addresses(p.Data, p.LinkType == pcap.LinkTypeInfiniBand)
		if !ok {
			return
		}
		if port = strings.TrimPrefix(port, c.ID+" "); port != "tap" {
			nodes.Name(from, port)
		}
		if all++; c.FailedNs == 0 || p.Time <= c.FailedNs { // without one, the case failed behind its last frame
			before++
		}
	})
	if err != nil {
		return err
	}
	first, last := max(before-framesBefore, 0), min(before+framesAfter, all)
	n := 0
	_, err = eachFrame(path, func(p *pcap.Packet, _ string) {
		ib := p.LinkType == pcap.LinkTypeInfiniBand
		if _, _, ok := ladder.Addresses(p.Data, ib); !ok {
			return
		}
		if n++; n <= first || n > last {
			return
		}
		if row, ok := ladder.RowOf(&nodes, p.Time, p.Data, ib, p.Comment); ok {
			c.Frames = append(c.Frames, report.Frame(row))
		}
	})
	c.FramesBefore, c.FramesAfter = first+int(leftOut), all-last
	return err
}

// eachFrame reads a capture, each frame with the name of its interface, and returns how many frames
// it leaves out.
func eachFrame(path string, f func(p *pcap.Packet, port string)) (leftOut uint64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	r, err := pcap.NewReader(file)
	if err != nil {
		return 0, err
	}
	for {
		p, err := r.Next()
		if err == io.EOF {
			for _, i := range r.Interfaces {
				leftOut += i.Dropped
			}
			return leftOut, nil
		}
		if err != nil {
			return 0, err
		}
		f(&p, r.Interfaces[p.Interface].Name)
	}
}
