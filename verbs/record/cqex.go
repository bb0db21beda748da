package record

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.CQEx = (*cq)(nil)

// ex is the inner CQ where it is an extended one.
func (q *cq) ex() verbs.CQEx {
	x, _ := q.CQ.(verbs.CQEx)
	return x
}

func (q *cq) StartPoll(t verbs.Thread, compMask uint32) error {
	x := q.ex()
	if x == nil {
		return fmt.Errorf("extended polling on this target: %w", syscall.EOPNOTSUPP)
	}
	return q.polled(t, "start_poll", x.StartPoll(innerThread(t), compMask))
}

func (q *cq) NextPoll(t verbs.Thread) error {
	return q.polled(t, "next_poll", q.ex().NextPoll(innerThread(t)))
}

// polled records what was found. How often a program looks in vain is its own affair.
func (q *cq) polled(t verbs.Thread, name string, err error) error {
	switch verbs.ErrnoOf(err) {
	case 0:
		q.r.add(t, name, nil, nil, list(q.ex().WRID(), q.ex().Status())...)
	case syscall.ENOENT:
	default:
		q.r.add(t, name, nil, err)
	}
	return err
}

func (q *cq) EndPoll(t verbs.Thread)     { q.ex().EndPoll(innerThread(t)) }
func (q *cq) WRID() uint64               { return q.ex().WRID() }
func (q *cq) Status() verbs.WCStatus     { return q.ex().Status() }
func (q *cq) ReadOpcode() verbs.WCOpcode { return q.ex().ReadOpcode() }
func (q *cq) ReadVendorErr() uint32      { return q.ex().ReadVendorErr() }
func (q *cq) ReadWCFlags() verbs.WCFlags { return q.ex().ReadWCFlags() }
func (q *cq) ReadByteLen() uint32        { return q.ex().ReadByteLen() }
func (q *cq) ReadImmData() uint32        { return q.ex().ReadImmData() }
func (q *cq) ReadQPNum() uint32          { return q.ex().ReadQPNum() }
func (q *cq) ReadSrcQP() uint32          { return q.ex().ReadSrcQP() }
func (q *cq) ReadSLID() uint32           { return q.ex().ReadSLID() }
func (q *cq) ReadSL() uint8              { return q.ex().ReadSL() }
func (q *cq) ReadDLIDPathBits() uint8    { return q.ex().ReadDLIDPathBits() }
func (q *cq) ReadCompletionTS() uint64   { return q.ex().ReadCompletionTS() }
