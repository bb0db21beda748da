//go:build linux && amd64

package procmem

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// Probe reports EFAULT when part of [va, va+n) is not mapped with the rights of prot.
// It looks at the mappings and touches no page.
func (p *Process) Probe(va mem.VA, n uint64, prot mem.Prot) error {
	at, end := va, va+mem.VA(n)
	ok := false
	err := p.MappingsFrom(at, func(m *Mapping) bool {
		if m.Start > at || m.Rights&prot != prot {
			return false
		}
		if m.Shared {
			p.noteAlias(m.Start, m.End)
		}
		at = m.End
		ok = at >= end
		return !ok
	})
	if err == nil && !ok {
		err = fmt.Errorf("memory of process %d at %#x: %w", p.pid, uint64(at), unix.EFAULT)
	}
	return err
}

// span is a range of addresses.
type span struct{ start, end mem.VA }

// noteAlias notes that other mappings, of this process or another, may show the memory too:
// accesses to it are not joined.
func (p *Process) noteAlias(start, end mem.VA) {
	for i := range p.aliases {
		if x := &p.aliases[i]; x.start < end && start < x.end {
			x.start, x.end = min(x.start, start), max(x.end, end)
			return
		}
	}
	p.aliases = append(p.aliases, span{start, end})
}

// aliased reports whether other mappings may show [addr, addr+n) too.
func (p *Process) aliased(addr mem.VA, n int) bool {
	for i := range p.aliases {
		if x := &p.aliases[i]; addr < x.end && x.start < addr+mem.VA(n) {
			return true
		}
	}
	return false
}

// Mapping is a part of a process's memory.
type Mapping struct {
	Start, End mem.VA
	Rights     mem.Prot
	Shared     bool   // MAP_SHARED
	Offset     uint64 // in the file that is mapped there
	Dev, Inode uint64 // its name, 0 without a file
	Shift      uint8  // log2 of the size of its huge pages, as far as the kernel tells it; 0: it has none
}

// MappingsFrom calls f for every mapping that ends above va in order of addresses, until it returns
// false. It asks for each, which costs the same however many there are, or where the kernel cannot
// tell reads of all.
func (p *Process) MappingsFrom(va mem.VA, f func(*Mapping) bool) error {
	at, going := va, true
	if err := p.query(func(ask func(mem.VA, *Mapping) error) error {
		var m Mapping
		for going {
			if err := ask(at, &m); err != nil {
				return err
			}
			at, going = m.End, f(&m)
		}
		return nil
	}); err == nil {
		return nil
	}
	behind := func(m *Mapping) bool { return m.End <= at || f(m) }
	if !p.once {
		return p.Mappings(behind)
	}
	var err error
	if p.text == nil {
		p.text, err = p.read()
	}
	if err == nil {
		parseAll(p.text, behind)
	}
	return err
}

// Once lets what MappingsFrom has to read of all mappings be read once, until end is called. It is
// for the time of one call of the program: what its threads map or unmap meanwhile they do at the
// same time as the call.
func (p *Process) Once() (end func()) {
	p.once, p.text = true, nil
	return func() { p.once, p.text = false, nil }
}

// Mappings calls f for every mapping in order of addresses, until it returns false.
func (p *Process) Mappings(f func(*Mapping) bool) error {
	b, err := p.read()
	if err == nil {
		parseAll(b, f)
	}
	return err
}

// read is the text of all mappings.
func (p *Process) read() ([]byte, error) {
	b, err := p.maps()
	if len(b) == 0 && p.nextThread() {
		b, err = p.maps()
	}
	if err != nil {
		return nil, fmt.Errorf("mappings of process %d: %w", p.pid, err)
	}
	return b, nil
}

func (p *Process) maps() ([]byte, error) { return readFile(fmt.Sprintf("/proc/%d/maps", p.tid)) }

// readFile is a variable for tests, which count what is read.
var readFile = os.ReadFile

func parseAll(text []byte, f func(*Mapping) bool) {
	var m Mapping
	for line := range strings.Lines(string(text)) {
		if m.parse(line) && !f(&m) {
			return
		}
	}
}

// parse reads a line of maps: "start-end rwxp offset major:minor inode ...", all
// numbers but the inode hexadecimal.
func (m *Mapping) parse(line string) bool {
	span, rest, _ := strings.Cut(line, " ")
	from, to, _ := strings.Cut(span, "-")
	start, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	rights, rest, _ := strings.Cut(rest, " ")
	off, rest, _ := strings.Cut(rest, " ")
	dev, rest, _ := strings.Cut(rest, " ")
	ino, _, _ := strings.Cut(strings.TrimRight(rest, "\n"), " ")
	major, minor, _ := strings.Cut(dev, ":")
	offset, err3 := strconv.ParseUint(off, 16, 64)
	maj, err4 := strconv.ParseUint(major, 16, 32)
	mnr, err5 := strconv.ParseUint(minor, 16, 32)
	inode, err6 := strconv.ParseUint(ino, 10, 64)
	if errors.Join(err1, err2, err3, err4, err5, err6) != nil || len(rights) < 4 {
		return false
	}
	*m = Mapping{Start: mem.VA(start), End: mem.VA(end), Offset: offset, Dev: unix.Mkdev(uint32(maj), uint32(mnr)), Inode: inode, Shared: rights[3] == 's'}
	if rights[0] == 'r' {
		m.Rights |= mem.Read
	}
	if rights[1] == 'w' {
		m.Rights |= mem.Write
	}
	return true
}
