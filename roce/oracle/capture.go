package oracle

import (
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/roce/pcap"
	"github.com/rdmasim/rdmasim/roce/pcap/link"
)

// Fate is what is known of a frame after it was sent.
type Fate uint8

// Fates.
const (
	Sent      Fate = iota // nothing is known
	Lost                  // it never arrived
	Corrupted             // it arrived with a wrong CRC, which is as good as lost
	Edited                // other bytes arrived
	Late                  // it was delayed: others may have overtaken it
	Twice                 // it arrived twice
	Marked                // it arrived marked "congestion experienced"
)

// arrives says whether the receiver may have seen the frame at all.
func (f Fate) arrives() bool { return f != Lost && f != Corrupted }

// Frame is a captured frame, from the Ethernet header or, of InfiniBand, from the LRH to
// the VCRC.
type Frame struct {
	Number int   // in its file, from 1; of a file that Runs has sorted, in the order of time
	Time   int64 // nanoseconds
	Data   []byte
	Length int // on the wire; more than len(Data) when the capture was cut
	Fate   Fate

	InfiniBand bool
	Untimed    bool // the file has no time for it
	at         place
}

// Capture is what one run put on the wire, in the order of the file or, where Runs has sorted it,
// of time.
type Capture struct {
	Name    string
	Frames  []Frame
	Dropped uint64 // frames that the taps lost, as far as they know
	Read    Reading
}

// Application is the name under which the simulator writes captures.
const Application = "rdmasim"

// Own reports whether a file is a capture of the simulator, and whether it has all packets of it:
// programs that remove packets from a file keep the name of the application that wrote it.
func Own(r *pcap.Reader, packets []pcap.Packet) (own, whole bool) {
	if r.Application != Application {
		return false, false
	}
	n := make([]uint64, len(r.Interfaces))
	for _, p := range packets {
		n[p.Interface]++
	}
	for i, intf := range r.Interfaces {
		if !intf.Counted || intf.Received != n[i]+intf.Dropped {
			return true, false
		}
	}
	return true, true
}

// Runs splits a file into its runs. A file of the simulator may hold several, each with a time of
// its own and with interfaces whose names begin with the run's; any other file is one run. Runs
// sorts frames that are at most 1 ms out of order and, in files of other programs, counts a frame
// that several interfaces saw once. Comments of the simulator tell the fate of frames. The error
// says that no interface has a link type that can be judged.
func Runs(r *pcap.Reader, packets []pcap.Packet) ([]Capture, error) {
	for i, intf := range r.Interfaces {
		if pcap.Framed(intf.LinkType) {
			break
		}
		if i == len(r.Interfaces)-1 {
			return nil, fmt.Errorf("link type %d: only Ethernet (%d), InfiniBand (%d, or ERF, %d), Linux cooked captures (%d, %d) and IP (%d, %d, %d) can be judged",
				intf.LinkType, pcap.LinkTypeEthernet, pcap.LinkTypeInfiniBand, pcap.LinkTypeERF, pcap.LinkTypeSLL, pcap.LinkTypeSLL2,
				pcap.LinkTypeRaw, pcap.LinkTypeIPv4, pcap.LinkTypeIPv6)
		}
	}
	own := r.Application == Application
	var runs []Capture
	index := map[string]int{}
	at := make([]int, len(r.Interfaces)) // run of each interface
	for i, intf := range r.Interfaces {
		name := ""
		if own {
			name, _, _ = cutLast(intf.Name, " ")
		}
		n, ok := index[name]
		if !ok {
			n = len(runs)
			index[name] = n
			runs = append(runs, Capture{Name: name})
		}
		at[i] = n
		runs[n].Dropped += intf.Dropped
	}
	for i := range packets {
		p := &packets[i]
		run := &runs[at[p.Interface]]
		if !pcap.Framed(p.LinkType) {
			run.Read.Unknown++
			continue
		}
		link.Frame(p)
		run.Frames = append(run.Frames, Frame{Number: i + 1, Time: p.Time, Data: p.Data, Length: p.Length, Fate: fate(p.Comment),
			InfiniBand: p.LinkType == pcap.LinkTypeInfiniBand, Untimed: p.Untimed, at: place{uint16(p.Interface), p.Outgoing, p.HostInterface}})
	}
	for i := range runs {
		runs[i].sort()
		if !own { // our own have each frame once, at the port that sends it
			runs[i].countOnce()
		}
	}
	return runs, nil
}

// cutLast splits at the last separator; without one, before is empty.
func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+len(sep):], true
}

// fate reads the comment of a frame.
func fate(comment string) Fate {
	for _, c := range []struct {
		word string
		fate Fate
	}{{"dropped", Lost}, {"truncated", Lost}, {"corrupted", Corrupted}, {"edited", Edited}, {"delayed", Late}, {"duplicated", Twice}, {"marked", Marked}} {
		if strings.Contains(comment, c.word+" ") {
			return c.fate
		}
	}
	return Sent
}
