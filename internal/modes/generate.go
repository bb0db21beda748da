package modes

import (
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/verbs"
)

// Generator is the version of Generate: a seed means another program when it changes.
const Generator = 3

// start is the virtual time at which the threads begin; all is set up by then.
const start = 20 * sim.Millisecond

const (
	bufferSize = 64 << 10 // of an endpoint; the upper half takes receives
	recvSize   = 2048
	recvBase   = bufferSize / 2
	hotWords   = recvBase - 4096
)

// draw makes the choices of one program.
type draw struct{ *sim.Rand }

func (d draw) chance(percent int) bool { return d.Intn(100) < percent }

func pick[T any](d draw, from ...T) T { return from[d.Intn(len(from))] }

// Generate is the program of a seed.
func Generate(seed uint64) *Program {
	d := draw{sim.NewRand(seed, fmt.Sprint("modes ", Generator))}
	p := &Program{
		Seed: seed, Profile: pick(d, "connectx-5", "connectx-5", "connectx-5", "connectx-4lx", "connectx-4", "connectx-5-ib", "connectx-4-ib", "connect-ib", "connectx-6dx", "thunderx2", "generic-roce"),
		Hosts: 2, Cores: 4, NoTap: d.chance(50), Switched: d.chance(25), Tail: int64(pick(d, 0, 50, 20_000, 1_000_000)),
	}
	if d.chance(15) {
		p.Hosts, p.Switched = 3, true
	}
	d.parameters(p)
	if d.chance(40) {
		d.grid(p)
	}
	for h := range p.Hosts {
		for range 1 + d.Intn(2) {
			p.Procs = append(p.Procs, d.process(h))
		}
	}
	for range 1 + d.Intn(5) {
		p.Conns = append(p.Conns, d.conn(p))
	}
	storm := d.chance(15)
	if storm {
		d.storm(p)
	}
	d.threads(p, storm)
	p.Faults = d.faults(p)
	return p
}

// parameters makes caches small, delays round and mechanisms meet.
func (d draw) parameters(p *Program) {
	set := func(percent int, key string, values ...string) {
		if d.chance(percent) {
			p.Set = append(p.Set, key+"="+pick(d, values...))
		}
	}
	set(30, "uar.bf_conflict", "none", "serialize", "refetch")
	set(20, "uar.bf_conflict_cost", "10ns", "50ns", "100ns")
	set(20, "hca.qpc_cache", "1", "2", "4")
	set(20, "hca.mpt_cache", "1", "2", "4")
	set(20, "hca.mtt_cache", "1", "4")
	set(20, "hca.pus", "1", "2", "4")
	set(15, "hca.tx_buffer", "4KiB", "16KiB")
	set(10, "hca.wqe_buffer", "32", "128")
	set(10, "hca.ack_delay", "100ns", "1us")
	set(10, "hca.selective_repeat", "true")
	set(10, "hca.roce_adp_retrans_en", "false")
	set(10, "hca.ack_timeout_floor", "0ps", "30us")
	set(8, "hca.credits", "true")
	set(8, "hca.rnr_stall", "5us")
	set(10, "hca.rnr_damming", "true")
	set(8, "hca.wqe_cache", "4")
	set(10, "hca.recv_cache", "1", "2")
	set(10, "hca.atomic_slots", "1", "4")
	set(10, "pcie.posted_credits", "2", "8")
	set(10, "pcie.reads_in_flight", "1", "4")
	set(15, "pcie.posted_latency", "100ns", "150ns")
	set(10, "cpu.wc_buffers", "0", "1", "4")
	set(10, "provider.bf_lines", "1", "2")
	set(10, "hca.cqe_comp_aggressive", "true")
	set(8, "kernel.generation", "static")
	set(8, "provider.generation", "static")
	set(8, "kernel.mkey_cache", "fifo", "none")
	if !strings.Contains(p.Profile, "ib") {
		set(6, "link.pfc", "true")
		set(6, "congestion.dcqcn", "true")
	} else {
		set(15, "ib.credits", "80", "160")
		set(15, "ib.vls", "1")
	}
}

// grid makes all durations whole nanoseconds, or nearly so, so that much happens at the same
// instant.
func (d draw) grid(p *Program) {
	p.Set = append(p.Set, "hca.read_interval=16ns", "cpu.wc_line=16ns", "pcie.bandwidth="+pick(d, "8Gbps", "16Gbps", "64Gbps"))
	if !strings.Contains(p.Profile, "ib") {
		rate := pick(d, "8Gbps", "16Gbps", "80Gbps")
		p.Set = append(p.Set, "link.bandwidth="+rate, "hca.wire_rate="+rate)
	}
}

func (d draw) process(host int) Process {
	p := Process{Host: host, OneCQ: d.chance(30), OneSRQ: d.chance(20), Env: map[string]string{}}
	env := func(percent int, key string, values ...string) {
		if d.chance(percent) {
			p.Env[key] = pick(d, values...)
		}
	}
	env(8, "MLX5_SHUT_UP_BF", "1")
	env(10, "MLX5_POST_SEND_PREFER_BF", "0", "1")
	env(10, "MLX5_SINGLE_THREADED", "1")
	env(15, "MLX5_TOTAL_UUARS", "8", "16")
	env(10, "MLX5_CQE_SIZE", "128")
	env(10, "MLX5_SCATTER_TO_CQE", "0")
	return p
}

func (d draw) conn(p *Program) Conn {
	c := Conn{
		Type: pick(d, verbs.QPTRC, verbs.QPTRC, verbs.QPTRC, verbs.QPTRC, verbs.QPTUC, verbs.QPTUD),
		MTU:  pick(d, verbs.MTU256, verbs.MTU1024, verbs.MTU1024, verbs.MTU4096),
		Send: pick(d, uint32(4), 16, 16, 64), Recv: pick(d, uint32(4), 16, 32), CQE: pick(d, 15, 63, 255), Inline: pick(d, uint32(0), 28, 64, 188),
		Posted: pick(d, 0, 4, 16, 16), TD: d.chance(15), SigAll: d.chance(10), Channel: d.chance(25), Window: d.chance(15),
		Timeout: pick(d, uint8(1), 5, 8, 10), Retry: pick(d, uint8(0), 2, 7), RNR: pick(d, uint8(0), 1, 3, 7), RNRTimer: pick(d, uint8(1), 4, 8), Reads: pick(d, uint8(1), 2, 8, 16),
	}
	// Mostly between hosts; between processes or inside one as well.
	for c.Procs = [2]int{d.Intn(len(p.Procs)), d.Intn(len(p.Procs))}; p.Procs[c.Procs[0]].Host == p.Procs[c.Procs[1]].Host && d.chance(85); {
		c.Procs = [2]int{d.Intn(len(p.Procs)), d.Intn(len(p.Procs))}
	}
	return c
}

// storm makes the connections such that several threads of a process push WQEs into the
// registers of few pages.
func (d draw) storm(p *Program) {
	p.Set = append(p.Set, "uar.bf_conflict=serialize")
	for len(p.Conns) < 4 {
		p.Conns = append(p.Conns, p.Conns[0])
	}
	for i := range p.Conns {
		c := &p.Conns[i]
		c.Type, c.TD, c.Send, c.Inline = verbs.QPTRC, false, 64, 64
		c.Procs = [2]int{0, len(p.Procs) - 1}
	}
	p.Procs[0].Env = nil
}

// endpoints lists those of a process.
func (p *Program) endpoints(proc int) (eps []int) {
	for i, c := range p.Conns {
		for side, q := range c.Procs {
			if q == proc {
				eps = append(eps, 2*i+side)
			}
		}
	}
	return eps
}

func (p *Program) conn(ep int) *Conn { return &p.Conns[ep/2] }

// flavour is what a thread is like.
type flavour struct {
	rough  bool // it also breaks things
	stream bool // it posts without a pause
	hot    bool // requests are small and about the same few words
	storm  bool // nearly all are small inline writes
}

func (d draw) threads(p *Program, storm bool) {
	hot := d.chance(30)
	for proc := range p.Procs {
		eps := p.endpoints(proc)
		if len(eps) == 0 {
			continue
		}
		n := 1 + d.Intn(3)
		if storm {
			n = 4
		}
		for k := range n {
			// What lies on a thread domain belongs to one thread.
			var mine []int
			for _, ep := range eps {
				if (!p.conn(ep).TD && p.Procs[proc].Env["MLX5_SINGLE_THREADED"] == "") || ep%n == k {
					mine = append(mine, ep)
				}
			}
			if len(mine) == 0 || k > 0 && p.Procs[proc].Env["MLX5_SINGLE_THREADED"] != "" {
				continue
			}
			t := Thread{Proc: proc, Core: d.Intn(p.Cores+1) - 1}
			f := flavour{rough: d.chance(25), stream: storm || d.chance(25), hot: hot && !storm, storm: storm}
			for range 4 + d.Intn(24) {
				t.Ops = append(t.Ops, d.op(p, pick(d, mine...), f))
			}
			p.Threads = append(p.Threads, t)
		}
	}
}

// op draws a step with an endpoint.
func (d draw) op(p *Program, ep int, f flavour) Op {
	o := Op{EP: ep}
	switch x := d.Intn(100); {
	case x < 45:
		return d.post(p, ep, f)
	case x < 53:
		o.Do, o.N = "recv", 1+d.Intn(8)
	case x < 65:
		o.Do, o.N = "poll", 1+d.Intn(16)
	case x < 75:
		o.Do, o.N, o.Ns = "wait", 1+d.Intn(8), int64(pick(d, 1000, 5000, 20_000, 100_000))
	case x < 80:
		o.Do, o.Ns = "sleep", int64(pick(d, 0, 1, 10, 100, 500, 1000, 3000, 10_000))+int64(d.Intn(3))
	case x < 83:
		o.Do, o.Ns = "work", int64(1+d.Intn(2000))
	case x < 86:
		o.Do, o.Ns, o.N = "event", int64(pick(d, 1000, 10_000, 50_000)), d.Intn(2)
	case x < 90:
		o.Do, o.Off, o.Len = "look", d.Intn(bufferSize-64), 64
		if f.hot {
			o.Off = hotWords
		}
	case x < 92:
		o.Do, o.Off, o.Len = "store", d.Intn(recvBase-64), 1+d.Intn(64)
	case x < 93:
		o.Do, o.Len = "region", 1+d.Intn(bufferSize)
	case x < 94:
		o.Do = "query"
	case x < 95:
		o.Do = "counters"
	case x < 96:
		o.Do, o.N = "resize", pick(d, 7, 31, 255)
	case x < 97:
		o.Do, o.N, o.Ns = "moderate", 1+d.Intn(4), int64(1000*d.Intn(5))
	case !f.rough:
		o.Do, o.N = "poll", 4
	default:
		switch o.Do = pick(d, "error", "reset", "destroy", "reconnect", "close", "beside", "beside", "kill"); o.Do {
		case "beside":
			o.N, o.Len, o.Ns = d.Intn(p.Cores), d.Intn(16), int64(pick(d, 50, 700, 1000, 4000))
		case "kill":
			o.N = d.Intn(len(p.Procs))
		}
	}
	return o
}

// post draws send requests.
func (d draw) post(p *Program, ep int, f flavour) Op {
	c := p.conn(ep)
	peer := p.conn(ep).Procs[1-ep%2]
	o := Op{Do: "post", EP: ep, N: pick(d, 1, 1, 1, 2, 4, 8), Len: pick(d, 0, 1, 2, 8, 8, 16, 28, 64, 100, 256, 1024, 1025, 4096, 9000, 20_000)}
	if f.hot {
		o.Len = pick(d, 8, 8, 16, 24)
	}
	o.To = pick(d, p.endpoints(peer)...)
	if f.hot {
		o.To = p.endpoints(peer)[0]
	}
	o.Off = 8 * d.Intn(max(1, (recvBase-o.Len)/8))
	if f.hot {
		o.Off = hotWords + 8*d.Intn(3)
	}
	ops := []verbs.WROpcode{verbs.WRSend, verbs.WRSendImm}
	switch c.Type {
	case verbs.QPTUC:
		ops = append(ops, verbs.WRRDMAWrite, verbs.WRRDMAWrite, verbs.WRRDMAWriteImm)
	case verbs.QPTUD:
		o.To, o.Len = ep^1, min(o.Len, c.MTU.Bytes())
	case verbs.QPTRC:
		ops = append(ops, verbs.WRRDMAWrite, verbs.WRRDMAWrite, verbs.WRRDMAWrite, verbs.WRRDMAWriteImm, verbs.WRRDMARead, verbs.WRRDMARead,
			verbs.WRAtomicFetchAdd, verbs.WRAtomicFetchAdd, verbs.WRAtomicCmpSwp)
		if c.Window {
			ops = append(ops, verbs.WRBindMW, verbs.WRLocalInv, verbs.WRSendInv)
		}
	}
	o.Opcode = pick(d, ops...)
	switch o.Opcode {
	case verbs.WRAtomicFetchAdd, verbs.WRAtomicCmpSwp:
		o.Len = 8
		if !f.hot {
			o.Off = 8 * d.Intn(4)
		}
	case verbs.WRRDMARead:
	default:
		if c.Inline > 0 && o.Len <= int(c.Inline) && d.chance(60) && !f.hot { // of a page that a core reads writes are not put off
			o.Flags |= verbs.SendInline
		}
	}
	if d.chance(60) {
		o.Flags |= verbs.SendSignaled
	}
	if d.chance(8) {
		o.Flags |= verbs.SendFence
	}
	if d.chance(15) {
		o.Flags |= verbs.SendSolicited
	}
	if f.storm && d.chance(85) {
		o.Opcode, o.Flags, o.Len = verbs.WRRDMAWrite, o.Flags&verbs.SendSignaled|verbs.SendInline, pick(d, 8, 8, 60)
	}
	if f.stream {
		o.Do, o.N = "stream", pick(d, 4, 16, 48)
		o.Len = min(o.Len, 256)
	}
	if f.rough && d.chance(8) {
		o.Bad = pick(d, "lkey", "rkey", "range", "window")
	}
	return o
}

// faults draws a file of faults.
func (d draw) faults(p *Program) string {
	var b strings.Builder
	if d.chance(20) {
		b.WriteString("faults:\n")
		for range 1 + d.Intn(2) {
			f := fmt.Sprintf("{do: %s", pick(d, "drop", "corrupt", "corrupt-fcs", "delay", "duplicate", "reorder", "mark"))
			if strings.Contains(f, "delay") {
				f += fmt.Sprintf(", delay: %dns", pick(d, 100, 2000, 20_000))
			}
			f += fmt.Sprintf(", per_million: %d}", pick(d, 20_000, 100_000, 400_000))
			b.WriteString("  - " + f + "\n")
		}
	}
	at := func() string { return fmt.Sprintf("%dns", int64(start/sim.Nanosecond)+int64(d.Intn(40_000))) }
	port := func() string { return fmt.Sprintf("host%d/mlx5_0", d.Intn(p.Hosts)) }
	if d.chance(10) {
		port := port()
		from := int64(start/sim.Nanosecond) + int64(d.Intn(30_000))
		fmt.Fprintf(&b, "links:\n  - {port: %s, at: %dns, to: down}\n  - {port: %s, at: %dns, to: up}\n", port, from, port, from+int64(pick(d, 1, 100, 5000, 50_000)))
	}
	if d.chance(8) {
		b.WriteString("events:\n")
		switch d.Intn(3) {
		case 0:
			fmt.Fprintf(&b, "  - {at: %s, do: remove, device: %s}\n", at(), port())
		default:
			proc := d.Intn(len(p.Procs))
			if proc > 0 { // the first looks after the others
				fmt.Fprintf(&b, "  - {at: %s, do: kill, process: %s}\n", at(), p.name(proc))
			} else {
				fmt.Fprintf(&b, "  - {at: %s, do: remap, process: %s, region: 1}\n", at(), p.name(proc))
			}
		}
	}
	return b.String()
}

// name is that of a process in the testbed: they are numbered in the order of their start.
func (p *Program) name(proc int) string {
	return fmt.Sprintf("host%d/p%d", p.Procs[proc].Host, proc+1)
}
