package studies

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// fate is how a client goes.
type fate uint8

const (
	bothSides fate = iota // it tells the server
	oneSide               // it does not
	crashes
)

// checkLongServer refuses shares of more than all clients.
func (x *xrcRun) checkLongServer() error {
	if both, one := x.Int("both_percent"), x.Int("one_side_percent"); both+one > 100 {
		return experiment.Usagef("both_percent=%d and one_side_percent=%d are more than all clients: give shares that add up to 100 or less, those left crash", both, one)
	}
	return nil
}

// longServer is, for each design, a server on host 0 whose clients on host 1 come and go.
func (x *xrcRun) longServer() error {
	var rows []table.Row
	for i := range x.designs {
		d := &x.designs[i]
		if err := x.Next("long-server: design " + d.letter); err != nil {
			return err
		}
		y := &year{x: x, d: d, limit: 1 << x.Profile.HCA.LogMaxQP}
		err := x.under(d, "long-server", y.run)
		if err == nil {
			rows = append(rows, y.row)
			x.Emit(y.row)
		}
		for _, r := range y.days { // as far as an interrupted run has come
			x.Emit(r)
		}
		if err != nil {
			return err
		}
	}
	x.concludeLongServer(rows)
	return nil
}

// year is the server's time under one design. A day is one of a schedule: each connection is made
// by calls that go all their way through driver and device, and the simulator's clock, which ends
// after 106 days, counts only what they take.
type year struct {
	x     *xrcRun
	d     *xrcDesign
	b     *bed
	limit int // QPs of the device

	accepts, works *workload.Member // the server's processes, host 0
	domain         [2]verbs.XRCD    // of the two
	steady         *workload.Member // the process of the clients that do not crash, host 1
	doomed         *workload.Member // the process of those that crash on a day
	links          []meeting        // of the day

	connects, refused int
	clientRefused     int    // clients whose own device has no more QPs
	notTold           uint64 // clients of which the server does not hear that they have gone
	refusedErrno      string
	fullDay           int
	days              []table.Row
	row               table.Row
}

// meeting is a connection: a target QP on each side, which receives what the other side sends.
type meeting struct {
	fate         fate
	accept, work workload.XRCTarget // of the server's processes
	client       workload.XRCTarget
	domain       verbs.XRCD // the client's own
	made         bool       // the client's device has not refused it
	up           bool       // the server's has not
}

// samples is how many points of time a year has in the results.
const samples = 24

func (y *year) run(t verbs.Thread, b *bed) error {
	y.b = b
	if err := y.open(t); err != nil {
		return err
	}
	days, restart := y.x.Int("days"), y.x.Int("restart_days")
	rng := sim.NewRand(y.x.Seed, "xrc long-server")
	y.links = make([]meeting, y.x.Int("clients"))
	every := max(1, days/samples)
	y.sample(0)
	for day := 1; day <= days; day++ {
		if err := y.x.Ctx.Err(); err != nil {
			return experiment.ErrInterrupted
		}
		for i := range y.links {
			y.links[i] = meeting{fate: y.draw(rng)}
		}
		if err := y.connect(t, day); err != nil {
			return fmt.Errorf("day %d: %w", day, err)
		}
		if err := y.part(t); err != nil {
			return fmt.Errorf("day %d: %w", day, err)
		}
		if day%every == 0 || day == days {
			y.sample(day)
		}
		if restart > 0 && day%restart == 0 && day < days {
			if err := y.restart(t); err != nil {
				return fmt.Errorf("day %d: the server starts again: %w", day, err)
			}
		}
	}
	return y.end(t, days)
}

func (y *year) draw(rng *sim.Rand) fate {
	both, one := y.x.Int("both_percent"), y.x.Int("one_side_percent")
	switch n := rng.Intn(100); {
	case n < both:
		return bothSides
	case n < both+one:
		return oneSide
	}
	return crashes
}

// member starts a process on a host.
func (y *year) member(t verbs.Thread, host int) (*workload.Member, error) {
	return workload.OpenMember(t, y.b.TB.Hosts()[host], y.d.calls)
}

// open starts the server and the process of the clients that do not crash.
func (y *year) open(t verbs.Thread) (err error) {
	if err := y.serve(t); err != nil {
		return err
	}
	y.steady, err = y.member(t, 1)
	return err
}

// serve starts the server, whose two processes share a domain.
func (y *year) serve(t verbs.Thread) (err error) {
	for i, m := range []**workload.Member{&y.accepts, &y.works} {
		if *m, err = y.member(t, 0); err != nil {
			return err
		}
		err = (*m).Do(t, "open", func(t verbs.Thread) (err error) {
			y.domain[i], err = (*m).OpenDomain(t, domainFile, syscall.O_CREAT)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// restart ends the server's processes, one after the other, and starts them again.
func (y *year) restart(t verbs.Thread) error {
	y.kill(t, y.accepts, y.works)
	return y.serve(t)
}

func (y *year) kill(t verbs.Thread, members ...*workload.Member) {
	for _, m := range members {
		m.Proc.Kill(t)
	}
	t.Sleep(cleanUp)
}

// shares says whether a second process becomes a user of a target QP by a call, and ends whether a
// call gives it back.
func (y *year) shares() bool {
	return y.d.calls == workload.XRCShared || y.d.calls == workload.XRCRegistered
}
func (y *year) ends() bool { return y.d.calls != workload.XRCAllocated }

// clientOf is the process of a client.
func (y *year) clientOf(k *meeting) *workload.Member {
	if k.fate == crashes {
		return y.doomed
	}
	return y.steady
}

// connect makes the connections of a day: each client makes its target QP, in a domain of its own,
// the server makes one for the client, and its other process becomes a user of that.
func (y *year) connect(t verbs.Thread, day int) (err error) {
	y.connects += len(y.links)
	if y.doomed, err = y.member(t, 1); err != nil {
		return err
	}
	err = y.each(t, "connect", y.clientOf, func(t verbs.Thread, m *workload.Member, k *meeting) (err error) {
		if k.domain, err = m.OpenDomain(t, "", 0); err != nil {
			return err
		}
		k.client, err = m.Listen(t, k.domain, y.accepts, initiatorOf(day))
		if full(err) {
			y.clientRefused++
			return k.domain.Close(t)
		}
		k.made = err == nil
		return err
	})
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	err = y.accepts.Do(t, "accept", func(t verbs.Thread) error {
		for i := range y.links {
			if k := &y.links[i]; k.made {
				if err := y.accept(t, k, day); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil || !y.shares() {
		return err
	}
	return y.works.Do(t, "join", func(t verbs.Thread) (err error) {
		for i := range y.links {
			if k := &y.links[i]; k.up && err == nil {
				k.work, err = y.works.Join(t, y.domain[1], k.accept.QPN)
			}
		}
		return err
	})
}

// initiatorOf is the number that the initiator of the other side is said to have. Initiators are
// left out: they are their process's in every design, and end with it.
func initiatorOf(day int) uint32 { return 0x800000 + uint32(day) }

// accept makes the server's target QP for a client, unless the device has no more.
func (y *year) accept(t verbs.Thread, k *meeting, day int) (err error) {
	k.accept, err = y.accepts.Listen(t, y.domain[0], y.clientOf(k), initiatorOf(day))
	switch {
	case full(err):
		if y.refused == 0 {
			y.fullDay, y.refusedErrno = day, errno(err)
		}
		y.refused++
		return nil
	case err != nil:
		return fmt.Errorf("server: %w", err)
	}
	k.up = true
	if k.fate != bothSides {
		y.notTold++
	}
	return nil
}

// full says whether a call has failed because the device has no more QPs.
func full(err error) bool { return verbs.ErrnoOf(err) == syscall.ENOMEM }

// part ends the connections of a day.
func (y *year) part(t verbs.Thread) error {
	err := y.each(t, "disconnect", y.clientOf, func(t verbs.Thread, m *workload.Member, k *meeting) error {
		if k.fate == crashes || !k.made {
			return nil
		}
		if y.ends() {
			if err := m.Leave(t, k.client); err != nil {
				return err
			}
		}
		return k.domain.Close(t)
	})
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	y.doomed.Proc.Kill(t)
	if !y.ends() {
		return nil
	}
	told := func(m *workload.Member, target func(k *meeting) workload.XRCTarget) error {
		return m.Do(t, "disconnected", func(t verbs.Thread) error {
			for i := range y.links {
				if k := &y.links[i]; k.up && k.fate == bothSides {
					if err := m.Leave(t, target(k)); err != nil {
						return fmt.Errorf("server: %w", err)
					}
				}
			}
			return nil
		})
	}
	if y.shares() {
		if err := told(y.works, func(k *meeting) workload.XRCTarget { return k.work }); err != nil {
			return err
		}
	}
	return told(y.accepts, func(k *meeting) workload.XRCTarget { return k.accept })
}

// each runs f for each link, in a thread of the process that of names.
func (y *year) each(t verbs.Thread, name string, of func(k *meeting) *workload.Member, f func(t verbs.Thread, m *workload.Member, k *meeting) error) error {
	for _, m := range []*workload.Member{y.steady, y.doomed} {
		err := m.Do(t, name, func(t verbs.Thread) error {
			for i := range y.links {
				if k := &y.links[i]; of(k) == m {
					if err := f(t, m, k); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sample is a row of what lives at the end of a day.
func (y *year) sample(day int) {
	var r table.Row
	server, clients := y.b.objects(0), y.b.objects(1)
	bytes := y.x.qpBytes(server["qp"])
	r.Set("row", "long-server-day").Set("scenario", "long-server").Set("design", y.d.letter).Set("series", y.d.series()).Set("day", day)
	r.Set("connects", y.connects).Set("refused", y.refused).Set("qps_alive", server["qp"]).Set("domains_alive", server["xrcd"])
	r.Set("client_qps_alive", clients["qp"]).Set("client_domains_alive", clients["xrcd"]).Set("bytes", bytes).Set("mib", mib(bytes))
	y.days = append(y.days, r)
}

// end ends the server and the clients, and counts what is left.
func (y *year) end(t verbs.Thread, days int) error {
	last := y.days[len(y.days)-1]
	r := &y.row
	r.Set("row", "long-server").Set("scenario", "long-server").Set("design", y.d.letter).Set("kernel", y.d.kernel).Set("day", days)
	r.Set("connects", y.connects).Set("refused", y.refused).Set("not_told", y.notTold).Set("client_refused", y.clientRefused).Set("commands", y.b.commands())
	if y.refused > 0 {
		r.Set("refused_errno", y.refusedErrno)
	}
	for _, key := range []string{"qps_alive", "domains_alive", "client_qps_alive", "client_domains_alive", "bytes", "mib"} {
		r.Set(key, last.Get(key))
	}
	y.forecast(days, last.Get("qps_alive").(uint64))
	y.kill(t, y.accepts, y.works, y.steady)
	y.sample(days + 1) // the day after the last
	for host, keys := range [][2]string{{"after_qps", "after_domains"}, {"after_client_qps", "after_client_domains"}} {
		left := y.b.objects(host)
		r.Set(keys[0], left["qp"]).Set(keys[1], left["xrcd"])
		if err := left.audit(); err != nil {
			return err
		}
	}
	return nil
}

// forecast says on which day the device has no more QPs: the day on which it was, or the one on
// which it will be if the server goes on as it did.
func (y *year) forecast(days int, alive uint64) {
	switch {
	case y.refused > 0:
		y.row.Set("full_day", y.fullDay).Set("full_how", "run")
	case alive > 0 && y.x.Int("restart_days") == 0:
		left := max(0, y.limit-reservedQPs-len(y.links)) // for clients of which the server was not told, on a day on which all others come
		y.row.Set("full_day", left*days/int(alive)+2).Set("full_how", "computed")
	}
}
