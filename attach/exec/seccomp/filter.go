//go:build linux && amd64

// Package seccomp lets a supervisor answer chosen system calls of a process tree in
// place of the kernel (seccomp user notification, Linux 5.19 and later). The filter
// is data: a list of rules, compiled to classic BPF.
package seccomp

import "golang.org/x/sys/unix"

// Op compares a masked word with a value.
type Op uint8

// Comparisons.
const (
	Equal Op = iota
	AtLeast
	Below
)

// Test is a condition on 32 bits of an argument. A Mask of 0 means all bits.
type Test struct {
	Arg   int
	High  bool // the upper half of the argument
	Mask  uint32
	Op    Op
	Value uint32
}

// Rule gives the answer to a system call whose arguments pass every test.
type Rule struct {
	Nr    uint32
	I386  bool // a call of the 32-bit kind, which has numbers of its own
	Tests []Test
	Ret   uint32
}

// Notify is the answer that hands the call to the supervisor.
const Notify = unix.SECCOMP_RET_USER_NOTIF

// Errno is the answer that fails the call at once.
func Errno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// Offsets in struct seccomp_data (linux/seccomp.h).
const (
	dataNr   = 0
	dataArch = 4
	dataArgs = 16
	argSize  = 8
	highHalf = 4
)

func stmt(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }

const (
	load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	and   = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	jumpE = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpG = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	ret   = unix.BPF_RET | unix.BPF_K
	// jump32 goes further than the 255 instructions of a condition.
	jump32 = unix.BPF_JMP | unix.BPF_JA
)

// Compile makes the program: the first rule that matches decides; a call that no rule matches,
// and every call of a third architecture, is allowed.
func Compile(rules []Rule) []unix.SockFilter {
	x86, i386 := block(rules, false), block(rules, true)
	p := []unix.SockFilter{
		stmt(load, dataArch),
		{Code: jumpE, Jf: 1, K: unix.AUDIT_ARCH_X86_64},
		stmt(jump32, uint32(2+len(i386))),
		{Code: jumpE, Jt: 1, K: unix.AUDIT_ARCH_I386},
		stmt(ret, unix.SECCOMP_RET_ALLOW),
	}
	return append(append(p, i386...), x86...)
}

// block is the program for the calls of one kind.
func block(rules []Rule, i386 bool) []unix.SockFilter {
	var p []unix.SockFilter
	for _, r := range rules {
		if r.I386 == i386 {
			p = append(p, r.compile()...)
		}
	}
	return append(p, stmt(ret, unix.SECCOMP_RET_ALLOW))
}

// compile is the block of a rule; a test that fails jumps behind it.
func (r *Rule) compile() []unix.SockFilter {
	b := []unix.SockFilter{stmt(load, dataNr), {Code: jumpE, K: r.Nr}}
	fails := []int{1} // jumps that leave when their condition is false
	var leaves []int  // and when it is true
	for _, t := range r.Tests {
		off := uint32(dataArgs + argSize*t.Arg)
		if t.High {
			off += highHalf
		}
		b = append(b, stmt(load, off))
		if t.Mask != 0 {
			b = append(b, stmt(and, t.Mask))
		}
		switch t.Op {
		case Equal:
			fails = append(fails, len(b))
			b = append(b, unix.SockFilter{Code: jumpE, K: t.Value})
		case AtLeast:
			fails = append(fails, len(b))
			b = append(b, unix.SockFilter{Code: jumpG, K: t.Value})
		case Below:
			leaves = append(leaves, len(b))
			b = append(b, unix.SockFilter{Code: jumpG, K: t.Value})
		}
	}
	b = append(b, stmt(ret, r.Ret))
	for _, i := range fails {
		b[i].Jf = uint8(len(b) - i - 1)
	}
	for _, i := range leaves {
		b[i].Jt = uint8(len(b) - i - 1)
	}
	return b
}
