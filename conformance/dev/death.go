package dev

import (
	"maps"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// killedOwner kills a process that has an object of every kind that the device has.
func killedOwner(c *spec.C) {
	counter := kit.TestbedAs[verbs.ResourceCounter](c)
	counts := func() map[string]int {
		n, err := counter.ResourceCounts(c.T, 0)
		if err != nil {
			c.Errorf("count the resources: %v", err)
		}
		return n
	}
	before := counts()
	c.True("resources are counted", len(before) > 0, "the machine counts none")
	c.ObservePlatform("counts at rest", before)
	for _, twice := range []string{"killed", "killed again"} {
		o := kit.OpenOtherProcess(c, 0, nil)
		made := o.Do(c, player.OneOfEach, nil, nil).Values
		during := counts()
		grown := 0
		for kind, n := range during {
			if n > before[kind] {
				grown++
			}
		}
		c.True("counted while it lives", grown > 0, "with %v made, %v is counted after %v", made, during, before)
		o.Kill(c)
		after := counts()
		c.True("counts as before when the owner was "+twice, maps.Equal(after, before), "%v, before %v", after, before)
	}
}

// removed takes the first device away under its users.
func removed(c *spec.C) {
	remover := kit.TestbedAs[verbs.DeviceRemover](c)
	e := kit.Open(c)
	cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 16})
	kit.Must(c, "create_cq", err)
	mem := e.Buffer(c, 64, kit.AllAccess)
	o := kit.Default()
	o.Timeout, o.RetryCnt = 10, 3
	a, b := e.RemotePair(c, o)
	far := b.Process.Buffer(c, 64, kit.AllAccess, 0)
	c.Status("write while it is there", a.PostAndPoll(c, far.WriteTo(1, 0, mem.SGE(0, 8))), verbs.WCSuccess)
	idle, err := e.Ctx.Device().Open(c.T)
	kit.Must(c, "open again", err)
	if err := remover.RemoveDevice(c.T, 0, e.Ctx.Device().Name()); err != nil {
		c.Errorf("remove the device: %v", err)
	}
	fatal(c, e.Ctx)
	fatal(c, idle)
	for _, call := range []struct {
		name string
		do   func() error
	}{
		{"query_device", func() error { _, err := e.Ctx.QueryDevice(c.T); return err }},
		{"query_port", func() error { _, err := e.Ctx.QueryPort(c.T, int(e.Port)); return err }},
		{"alloc_pd", func() error { _, err := e.Ctx.AllocPD(c.T); return err }},
		{"create_cq", func() error { _, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 1}); return err }},
		{"reg_mr", func() error { _, err := e.PD.RegMR(c.T, mem.Addr(0), 8, kit.AllAccess); return err }},
		{"modify_qp", func() error { return a.Modify(c.T, &verbs.QPAttr{State: verbs.QPSErr}, verbs.QPMaskState) }},
	} {
		c.ErrnoIn(call.name, call.do(), syscall.EIO, syscall.ENODEV)
	}
	a.Post(c, far.WriteTo(2, 0, mem.SGE(0, 8)))
	kit.ExpectNoCompletion(c, a.SendCQ, kit.QuietPeriod)
	b.Process.Do(c, player.PostSend, kit.Args{"qp": b.ID, "opcode": uint64(verbs.WRRDMAWrite), "flags": uint64(verbs.SendSignaled),
		"buf": far.ID, "len": 8, "remote": mem.Addr(0), "rkey": uint64(mem.MR.RKey())}, nil)
	status := b.Process.AwaitStatuses(c, 1, kit.CompletionTimeout)
	c.Equal("write from the other end", len(status) == 1 && status[0] == verbs.WCRetryExcErr, true)
	c.Observe("destroy_cq", verbs.ErrnoName(verbs.ErrnoOf(cq.Destroy(c.T))))
	left, err := c.Process().Devices(c.T)
	c.NoErr("list devices", err)
	for _, d := range left {
		c.True("the list", d.Name() != e.Ctx.Device().Name(), "%s is listed", d.Name())
	}
	c.Errno("close", idle.Close(c.T), 0) // e's context closes at the end of the case
}

// fatal waits for the event that the device is gone. Others, of its port, may come before.
func fatal(c *spec.C, ctx verbs.Context) {
	for {
		ev, err := ctx.AsyncEvent(c.T, kit.CompletionTimeout)
		c.NoErr("get_async_event", err)
		ctx.AckAsyncEvent(c.T, ev)
		c.Observe("event", ev.Type.String())
		if ev.Type == verbs.EventDeviceFatal {
			return
		}
		c.True("an event before", ev.Type == verbs.EventPortErr || ev.Type == verbs.EventGIDChange, "%v", ev.Type)
	}
}
