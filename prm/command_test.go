package prm

import (
	"errors"
	"syscall"
	"testing"
)

func TestCommandTable(t *testing.T) {
	for i, c := range commands {
		if i > 0 && c.op <= commands[i-1].op {
			t.Errorf("%s is out of order", c.name)
		}
		if got := c.op.info(); got == nil || got.name != c.name || c.op.String() != c.name {
			t.Errorf("looking up %#x does not find %s", uint16(c.op), c.name)
		}
		in, out := NewIn(c.op, 0), NewOut(c.op, 0)
		if op, s := CheckCommand(in, out); op != c.op || s != StatusOK {
			t.Errorf("%s: %v %v", c.name, op, s)
		}
		if _, s := CheckCommand(in[:len(in)-1], out); s != StatusBadInpLen {
			t.Errorf("%s, in one byte short: %v", c.name, s)
		}
		if _, s := CheckCommand(in, out[:len(out)-1]); s != StatusBadOutpLen {
			t.Errorf("%s, out one byte short: %v", c.name, s)
		}
	}
	in := make([]byte, CmdInSize)
	CmdIn(in).SetOpcode(0xfff)
	if op, s := CheckCommand(in, make([]byte, CmdOutSize)); s != StatusBadOp || op.String() != "Opcode(0xfff)" {
		t.Errorf("unknown opcode: %v %v", op, s)
	}
}

func TestFail(t *testing.T) {
	for n := range 20 {
		out := make([]byte, n)
		for i := range out {
			out[i] = 0xff
		}
		Fail(out, StatusBadParam, 0x3bf6f)
		if n >= 8 {
			if o := CmdOut(out); o.Status() != StatusBadParam || o.Syndrome() != 0x3bf6f {
				t.Errorf("%d bytes: % x", n, out)
			}
		}
		for i := 8; i < n; i++ {
			if out[i] != 0 {
				t.Errorf("byte %d is not cleared", i)
			}
		}
	}
	out := make([]byte, 16)
	Fail(out, StatusLimErr, 0x19c6d6)
	err := CmdOut(out).Err(OpCreateQP)
	if !errors.Is(err, syscall.ENOMEM) || err.Error() != "CREATE_QP: status LIM_ERR (0x08), syndrome 0x19c6d6: cannot allocate memory" {
		t.Errorf("%v", err)
	}
	clear(out)
	if err := CmdOut(out).Err(OpCreateQP); err != nil {
		t.Error(err)
	}
}

// The errnos of mlx5_core's cmd_status_to_err.
func TestStatusErrno(t *testing.T) {
	want := map[Status]syscall.Errno{
		0x00: 0, 0x01: syscall.EIO, 0x02: syscall.EINVAL, 0x03: syscall.EINVAL, 0x04: syscall.EIO, 0x05: syscall.EINVAL,
		0x06: syscall.EBUSY, 0x07: syscall.EAGAIN, 0x08: syscall.ENOMEM, 0x09: syscall.EINVAL, 0x0a: syscall.EINVAL, 0x0f: syscall.EAGAIN,
		0x10: syscall.EINVAL, 0x30: syscall.EINVAL, 0x40: syscall.EINVAL, 0x50: syscall.EIO, 0x51: syscall.EIO,
	}
	for s := range 256 {
		errno, ok := want[Status(s)]
		if !ok {
			errno = syscall.EIO
		}
		if got := Status(s).Errno(); got != errno {
			t.Errorf("%v: %v, want %v", Status(s), got, errno)
		}
	}
}

func FuzzCommand(f *testing.F) {
	for _, c := range commands {
		f.Add(NewIn(c.op, 8), 0x10)
	}
	f.Add([]byte{}, 0)
	f.Add([]byte{5, 0}, 3)
	f.Fuzz(func(t *testing.T, in []byte, outLen int) {
		if outLen < 0 || outLen > 1<<16 {
			return
		}
		out := make([]byte, outLen)
		op, s := CheckCommand(in, out)
		if s != StatusOK {
			Fail(out, s, 1)
			return
		}
		switch op { // the views with lists must hold for any length that passed
		case OpCreateQP:
			m := CreateQPIn(in)
			touchPAS(m.PAS())
			_, _ = m.QPC().PrimaryPath().RMAC(), m.QPC().SWRQCounter()
		case OpCreateCQ:
			touchPAS(CreateCQIn(in).PAS())
		case OpCreateEQ:
			touchPAS(CreateEQIn(in).PAS())
		case OpCreateMKey:
			m := MTT(CreateMKeyIn(in).Entries())
			for i := range m.Count() {
				_ = m.Addr(i)
			}
		case OpManagePages:
			touchPAS(ManagePagesIn(in).PAS())
		case OpQueryHCACap:
			_ = HCACap(QueryHCACapOut(out).Capability()).UctxCap()
		}
		_ = CmdOut(out).Err(op)
	})
}

func touchPAS(l PAS) {
	for i := range l.Count() {
		_ = l.At(i)
	}
}
