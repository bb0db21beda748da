package player

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
)

// stub is as much of a process as opening needs; its MRs and QPs come from the
// Unimplemented types.
type (
	stubThread  struct{ verbs.UnimplementedThread }
	stubProcess struct{ verbs.UnimplementedProcess }
	stubDevice  struct{ verbs.UnimplementedDevice }
	stubContext struct{ verbs.UnimplementedContext }
	stubCQ      struct{ verbs.UnimplementedCQ }
	stubPD      struct{ verbs.UnimplementedPD }
)

func (stubThread) Process() verbs.Process { return stubProcess{} }
func (stubProcess) Devices(verbs.Thread) ([]verbs.Device, error) {
	return []verbs.Device{stubDevice{}}, nil
}
func (stubDevice) Open(verbs.Thread) (verbs.Context, error)               { return stubContext{}, nil }
func (stubContext) AllocPD(verbs.Thread) (verbs.PD, error)                { return stubPD{}, nil }
func (stubContext) CreateCQ(verbs.Thread, verbs.CQAttr) (verbs.CQ, error) { return stubCQ{}, nil }
func (stubContext) Close(verbs.Thread) error                              { return nil }
func (stubPD) Dealloc(verbs.Thread) error                                 { return nil }
func (stubCQ) Destroy(verbs.Thread) error                                 { return nil }

// QueryGIDTable has a RoCEv1, a RoCEv2/IPv6 and a RoCEv2/IPv4 entry.
func (stubContext) QueryGIDTable(_ verbs.Thread, e []verbs.GIDEntry, _ uint32) (int, error) {
	v4 := verbs.GID{10: 0xff, 11: 0xff, 12: 10, 15: 1}
	return copy(e, []verbs.GIDEntry{{Index: 0, Port: 1, Type: verbs.GIDTypeRoCEv1}, {Index: 1, Port: 1, Type: verbs.GIDTypeRoCEv2,
		GID: verbs.GID{0: 0xfe, 1: 0x80}}, {Index: 5, Port: 1, Type: verbs.GIDTypeRoCEv2, GID: v4}}), nil
}

func do(t *testing.T, a *Agent, op string, args map[string]uint64, want syscall.Errno) verbs.PlayerReply {
	t.Helper()
	r := a.Do(stubThread{}, verbs.PlayerCommand{Op: op, Args: args})
	if r.Errno != int(want) {
		t.Errorf("%s %v: errno %d (%s), want %d", op, args, r.Errno, r.Text, want)
	}
	return r
}

func TestCommandsBeforeOpen(t *testing.T) {
	a := NewAgent()
	do(t, a, CreateQP, nil, syscall.EBADF)
	do(t, a, "dance", nil, syscall.ENOSYS)
}

func TestOpenPicksIPv4(t *testing.T) {
	a := NewAgent()
	r := do(t, a, Open, nil, 0)
	if r.Values["gid_index"] != 5 || len(r.Data) != 16 || r.Data[12] != 10 {
		t.Errorf("GID index %d, %x", r.Values["gid_index"], r.Data)
	}
	do(t, a, Open, nil, syscall.EBUSY)
}

func TestStrangeNumbersAreRefused(t *testing.T) {
	a := NewAgent()
	do(t, a, Open, nil, 0)
	for _, op := range []string{Connect, SetState, QueryQP, DestroyQP, PostSend, PostRecv, Race} {
		do(t, a, op, map[string]uint64{"qp": 7}, syscall.ENOENT)
	}
	for _, op := range []string{ReadBuffer, WriteBuffer, DeregBuffer} {
		do(t, a, op, map[string]uint64{"buf": 1 << 63}, syscall.ENOENT)
	}
	do(t, a, RegBuffer, map[string]uint64{"pd": 3}, syscall.ENOENT)
}

// What the device refuses comes back as its errno, and closing lets the agent open again.
func TestRefusalAndReopen(t *testing.T) {
	a := NewAgent()
	do(t, a, Open, nil, 0)
	do(t, a, AllocPD, nil, 0)
	do(t, a, CreateQP, map[string]uint64{"pd": 2}, syscall.EOPNOTSUPP)
	do(t, a, Close, nil, 0)
	do(t, a, QueryQP, nil, syscall.EBADF)
	do(t, a, Open, nil, 0)
}

// One of each is made of what the device has.
func TestOneOfEach(t *testing.T) {
	a := NewAgent()
	do(t, a, Open, nil, 0)
	r := do(t, a, OneOfEach, nil, 0)
	if len(r.Values) != 1 || r.Values["cq"] != 1 {
		t.Errorf("made %v", r.Values)
	}
}
