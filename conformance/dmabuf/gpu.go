package dmabuf

import (
	"slices"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func gpuToGPU(c *spec.C) {
	const n = 100_000
	e := kit.Open(c)
	q, far := e.RemotePair(c, kit.Default())
	here := e.Exported(c, verbs.MemoryGPU, n, kit.AllAccess)
	there := far.Process.ExportedBuffer(c, verbs.MemoryGPU, n, kit.AllAccess)
	old, sent := c.Rand().Bytes(n), here.FillRandom(c)
	there.Set(c, 0, old)
	c.Status("WRITE from GPU to GPU", q.PostAndPoll(c, there.WriteTo(1, 1000, here.SGE(500, 50_000))), verbs.WCSuccess)
	copy(old[1000:], sent[500:50_500])
	c.Equal("bytes written", there.Get(c, 0, n), old)
	c.Status("READ from GPU to GPU", q.PostAndPoll(c, there.ReadFrom(2, 0, here.All())), verbs.WCSuccess)
	here.ExpectContents(c, "bytes read", old)
	far.Recv(c, there, 1)
	sent = here.FillRandom(c)
	c.Status("SEND from GPU to GPU", q.PostAndPoll(c, kit.Send(3, here.All())), verbs.WCSuccess)
	c.Equal("receive", far.Process.AwaitStatuses(c, 1, kit.CompletionTimeout), []verbs.WCStatus{verbs.WCSuccess})
	c.Equal("bytes received", there.Get(c, 0, n), sent)
	if !c.Has("atomic") {
		return
	}
	// The old value comes into memory of the host, which a library may copy out of a completion.
	result := e.Buffer(c, 8, kit.AllAccess)
	there.SetWord(c, 64, 1<<40)
	c.Status("FETCH_ADD on a GPU", q.PostAndPoll(c, there.FetchAdd(4, 64, 5, result.All())), verbs.WCSuccess)
	c.Equal("value before", result.Word(c, 0), uint64(1)<<40)
	c.Status("CMP_SWAP on a GPU", q.PostAndPoll(c, there.CmpSwap(5, 64, 1<<40+5, 77, result.All())), verbs.WCSuccess)
	c.Equal("value after", kit.HostWord(there.Get(c, 64, 8)), uint64(77))
}

func mixedGather(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	x := p.Exported(c, verbs.MemoryGPU, 3*page, kit.AllAccess)
	host, dst := p.Buffer(c, 2*page, kit.AllAccess), p.Buffer(c, 4*page, kit.AllAccess)
	of, own := x.FillRandom(c), host.FillRandom(c)
	dst.FillByte(c, 0)
	list := []verbs.SGE{x.SGE(100, message), host.SGE(7, 1001), x.SGE(2*page, message)}
	want := slices.Concat(of[100:100+message], own[7:1008], of[2*page:2*page+message])
	c.Status("WRITE from GPU, host and GPU", p.A.PostAndPoll(c, kit.Write(1, dst, 0, list...)), verbs.WCSuccess)
	dst.ExpectContents(c, "bytes gathered", want)
	back := dst.FillRandom(c)
	c.Status("READ into GPU, host and GPU", p.A.PostAndPoll(c, kit.Read(2, dst, 0, list...)), verbs.WCSuccess)
	copy(of[100:100+message], back)
	copy(own[7:1008], back[message:])
	copy(of[2*page:2*page+message], back[message+1001:])
	x.ExpectContents(c, "bytes scattered to the GPU", of)
	host.ExpectContents(c, "bytes scattered to the host", own)
}

// movedMemory has the exporter move the memory while a region is on it, and while requests are on
// their way to it.
func movedMemory(c *spec.C) {
	const n = 16 * page
	p := kit.NewPair(c, kit.Default())
	x := p.Exported(c, verbs.MemoryGPU, n, kit.AllAccess)
	buf := p.Buffer(c, n, kit.AllAccess)
	// What is freed now is what a device that still knew the old place would write to.
	move := func() {
		m, ok := x.Mem.(verbs.Migrator)
		if !ok {
			c.Errorf("the exporter's memory cannot be moved")
		}
		c.NoErr("move", m.Migrate(c.T))
	}
	for i := range 3 {
		want := x.FillRandom(c)
		move()
		x.ExpectContents(c, "bytes that have moved", want)
		c.Status("READ after the move", p.A.PostAndPoll(c, kit.Read(1, x.Buffer, 0, buf.All())), verbs.WCSuccess)
		buf.ExpectContents(c, "bytes read", want)
		move()
		sent := buf.FillRandom(c)
		c.Status("WRITE after the move", p.A.PostAndPoll(c, kit.Write(2, x.Buffer, 0, buf.All())), verbs.WCSuccess)
		x.ExpectContents(c, "bytes written", sent)
		move()
		c.Status("WRITE from the memory after the move", p.A.PostAndPoll(c, kit.Write(3, buf, 0, x.SGE(i*page, message))), verbs.WCSuccess)
		buf.ExpectContents(c, "bytes gathered", slices.Concat(sent[i*page:i*page+message], sent[message:]))
	}
}
