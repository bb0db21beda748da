//go:build linux && amd64

package procmem

import (
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
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.pid))
	if err != nil {
		return fmt.Errorf("mappings of process %d: %w", p.pid, err)
	}
	at, end := uint64(va), uint64(va)+n
	for line := range strings.Lines(string(b)) {
		start, stop, rights, ok := mapping(line)
		if !ok || stop <= at {
			continue
		}
		if start > at || rights&prot != prot {
			break
		}
		if at = stop; at >= end {
			return nil
		}
	}
	return fmt.Errorf("memory of process %d at %#x: %w", p.pid, at, unix.EFAULT)
}

// mapping reads a line of maps: "start-stop rwxp ...", the numbers hexadecimal.
func mapping(line string) (start, stop uint64, rights mem.Prot, ok bool) {
	span, rest, _ := strings.Cut(line, " ")
	from, to, _ := strings.Cut(span, "-")
	start, err := strconv.ParseUint(from, 16, 64)
	if err != nil || len(rest) < 2 {
		return 0, 0, 0, false
	}
	if stop, err = strconv.ParseUint(to, 16, 64); err != nil {
		return 0, 0, 0, false
	}
	if rest[0] == 'r' {
		rights |= mem.Read
	}
	if rest[1] == 'w' {
		rights |= mem.Write
	}
	return start, stop, rights, true
}
