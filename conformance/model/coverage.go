package model

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/verbs"
)

// Op is an operation of the coverage table.
type Op uint8

// Operations.
const (
	OpSend Op = iota
	OpWrite
	OpRead
	OpAtomic
	OpPostRecv
	OpPoll
	OpArm
	OpEvent
	OpResize
	OpModerate
	OpTransition
	OpModify
	OpQuery
	OpDestroy
	OpLimit
	OpDereg
	OpRereg
	OpBind
	OpAdvise
	OpEvict
	OpGroup
	opCount
)

var opNames = [opCount]string{"send", "write", "read", "atomic", "post_recv", "poll", "arm", "event", "resize", "moderate", "transition",
	"modify", "query", "destroy", "limit", "dereg", "rereg", "bind", "advise",
	"evict", "group"}

// String returns the name in the table.
func (o Op) String() string { return opNames[o] }

func opOf(op verbs.WROpcode) Op {
	switch {
	case op == verbs.WRBindMW || op == verbs.WRLocalInv:
		return OpBind
	case op == verbs.WRRDMAWrite || op == verbs.WRRDMAWriteImm:
		return OpWrite
	case op == verbs.WRRDMARead:
		return OpRead
	case atomic(op):
		return OpAtomic
	}
	return OpSend
}

// Rows of the table: states of queue pairs, CQs, SRQs and regions.
const (
	qpRows  = 4 * 4 * 8
	cqRows  = 3 * 2 * 3
	srqRows = 2 * 2 * 2
	mrRows  = 6
	rows    = qpRows + cqRows + srqRows + mrRows
)

// Coverage counts which operations met which states.
type Coverage [rows][opCount]uint32

func (c *Coverage) add(row int, op Op) { c[row][op]++ }

// Add adds the counts of another table, and returns how many cells were zero here and not there.
func (c *Coverage) Add(o *Coverage) (fresh int) {
	for i := range o {
		for j, n := range o[i] {
			if n > 0 && c[i][j] == 0 {
				fresh++
			}
			c[i][j] += n
		}
	}
	return fresh
}

// MarshalText returns row, operation and count of each cell that is not zero.
func (c *Coverage) MarshalText() ([]byte, error) {
	var b []byte
	for i := range c {
		for j, n := range c[i] {
			if n > 0 {
				b = fmt.Appendf(b, "%d %d %d ", i, j, n)
			}
		}
	}
	return b, nil
}

// UnmarshalText reads the form of MarshalText.
func (c *Coverage) UnmarshalText(text []byte) error {
	var l []uint32
	for _, f := range strings.Fields(string(text)) {
		n, err := strconv.ParseUint(f, 10, 32)
		if err != nil {
			return fmt.Errorf("coverage: %w", err)
		}
		l = append(l, uint32(n))
	}
	for ; len(l) >= 3; l = l[3:] {
		if l[0] >= rows || l[1] >= uint32(opCount) {
			return fmt.Errorf("coverage: no cell %d, %d", l[0], l[1])
		}
		c[l[0]][l[1]] = l[2]
	}
	return nil
}

// Reached returns how many of the possible cells are not zero, and how many are possible.
func (c *Coverage) Reached() (n, of int) {
	for i := range c {
		for j := range c[i] {
			if possible(i, Op(j)) {
				of++
				if c[i][j] > 0 {
					n++
				}
			}
		}
	}
	return n, of
}

// Missing reports whether some state has met none of the operations ops that are possible in it.
func (c *Coverage) Missing(ops ...Op) bool {
	for i := range c {
		for _, o := range ops {
			if c[i][o] == 0 && possible(i, o) {
				return true
			}
		}
	}
	return false
}

// possible reports whether an operation is of the kind of object that a row is of, and its type has
// it.
func possible(row int, op Op) bool {
	switch {
	case row < qpRows:
		reliable := row/32 == 0 || row/32 == 3
		switch op {
		case OpPostRecv:
			return row/32 < 3
		case OpSend, OpTransition, OpModify, OpQuery, OpDestroy:
			return true
		case OpWrite:
			return row/32 != 2
		case OpRead, OpAtomic:
			return reliable
		case OpBind:
			return row/32 == 0
		case OpGroup:
			return row/32 == 2
		}
		return false
	case row < qpRows+cqRows:
		return op == OpPoll && (row-qpRows)%3 > 0 || op == OpArm || op == OpEvent || op == OpResize || op == OpModerate || op == OpDestroy
	case row < qpRows+cqRows+srqRows:
		return op == OpPostRecv || op == OpLimit || op == OpQuery
	}
	row -= rows - mrRows
	return row < 2 && (op == OpDereg || op == OpRereg) || row >= 3 && row < 5 && (op == OpDereg || op == OpAdvise || op == OpEvict)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// state is the row of the queue pair.
func (q *QP) state() int {
	t, s := 0, 0
	switch q.Type {
	case verbs.QPTUC:
		t = 1
	case verbs.QPTUD:
		t = 2
	case verbs.QPTXRCSend, verbs.QPTXRCRecv:
		t = 3
	}
	switch q.State {
	case verbs.QPSRTS, verbs.QPSRTR:
		s = 1
	case verbs.QPSSQD, verbs.QPSSQE:
		s = 2
	case verbs.QPSErr:
		s = 3
	}
	return ((t*4+s)*2+bit(len(q.sendDone.entries)+len(q.recvDone.entries) > 0))*4 + bit(q.wrapped())*2 + bit(q.Peer != nil && q.Peer.State == verbs.QPSErr)
}

// wrapped reports whether one of the rings has been used more than once.
func (q *QP) wrapped() bool { return q.posted > int(q.Cap.MaxSendWR) || q.taken > int(q.Cap.MaxRecvWR) }

func (c *CQ) state() int {
	_, n := c.Waiting()
	fill := bit(n > 0) + bit(n >= c.Cap)
	return qpRows + (int(c.may)*2+bit(c.added > c.Cap))*3 + fill
}

func (s *SRQ) state() int {
	return qpRows + cqRows + bit(s.limit != 0)*4 + bit(s.taken > s.Cap)*2 + bit(len(s.list) > 0)
}

func (m *MR) state() int {
	row := rows - mrRows + bit(m.Paged)*3
	if !m.Alive {
		return row + 2
	}
	return row + bit(m.changed)
}

// rowName says what a row is.
func rowName(row int) string {
	switch {
	case row < qpRows:
		text := []string{"RC", "UC", "UD", "XRC"}[row/32] + " " + []string{"RESET", "RTS", "SQD/SQE", "ERR"}[row/8%4]
		for i, word := range []string{"unpolled", "wrapped", "peer in ERR"} {
			if row>>(2-i)&1 != 0 {
				text += ", " + word
			}
		}
		return text
	case row < qpRows+cqRows:
		row -= qpRows
		return "CQ " + []string{"empty", "partly polled", "full"}[row%3] + []string{"", ", wrapped"}[row/3%2] + []string{"", ", armed for solicited", ", armed"}[row/6]
	case row < qpRows+cqRows+srqRows:
		row -= qpRows + cqRows
		return "SRQ " + []string{"empty", "filled"}[row&1] + []string{"", ", wrapped"}[row>>1&1] + []string{"", ", limit armed"}[row>>2]
	}
	return []string{"MR", "MR changed", "MR ended", "MR on demand", "MR on demand, pages gone", "MR on demand, ended"}[row-(rows-mrRows)]
}

// String returns the table: a line for each state that an operation met, with the operations and
// their counts, and then what was not reached.
func (c *Coverage) String() string {
	var b strings.Builder
	n, of := c.Reached()
	fmt.Fprintf(&b, "%d of %d pairs of state and operation were reached\n", n, of)
	for i := range c {
		var met, missed []string
		for j, n := range c[i] {
			switch {
			case n > 0:
				met = append(met, fmt.Sprintf("%s %d", Op(j), n))
			case possible(i, Op(j)):
				missed = append(missed, Op(j).String())
			}
		}
		if len(met) == 0 {
			met = []string{"-"}
		}
		line := fmt.Sprintf("%-40s %s", rowName(i), strings.Join(met, ", "))
		if len(missed) > 0 {
			line += "; not: " + strings.Join(missed, ", ")
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
