package testbed

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// hand moves another process: an agent in its own thread there, which waits for
// commands. One command is under way at a time.
type hand struct {
	tb    *Testbed
	proc  *process
	agent *provider.Thread

	cmd    *verbs.PlayerCommand // under way
	reply  verbs.PlayerReply
	caller *provider.Thread // who waits for it
}

// Player starts a process with an agent on a host.
func (tb *Testbed) Player(t verbs.Thread, hostIndex int, env map[string]string) (verbs.Player, error) {
	provider.Of(t).P.Sync()
	if hostIndex < 0 || hostIndex >= len(tb.hosts) {
		return nil, fmt.Errorf("player on host %d of %d: %w", hostIndex, len(tb.hosts), syscall.EINVAL)
	}
	h := tb.hosts[hostIndex]
	w := &hand{tb: tb, proc: h.newProcess(env)}
	w.agent = w.proc.start("player", h.core(), w.serve)
	w.agent.P.SetDaemon()
	w.proc.onDeath = append(w.proc.onDeath, func(at sim.Time) {
		if w.caller != nil {
			w.caller.Wake(at + tb.cfg.OutOfBand)
		}
	})
	return w, nil
}

// serve is the agent's thread.
func (w *hand) serve(t verbs.Thread) {
	agent := player.NewAgent()
	th := t.(*provider.Thread)
	for {
		for w.cmd == nil {
			th.ParkUntil("a command", sim.Never)
		}
		r := agent.Do(t, *w.cmd)
		th.P.Sync()
		w.cmd, w.reply = nil, r
		w.caller.Wake(th.P.Now() + w.tb.cfg.OutOfBand)
	}
}

// Do runs one command in the other process.
func (w *hand) Do(t verbs.Thread, cmd verbs.PlayerCommand) (verbs.PlayerReply, error) {
	th := provider.Of(t)
	th.P.Sync()
	if w.caller != nil {
		return verbs.PlayerReply{}, fmt.Errorf("player: two commands at once: %w", syscall.EBUSY)
	}
	if w.proc.dead {
		return verbs.PlayerReply{Text: w.proc.obituary}, verbs.ErrProcessDied
	}
	th.P.Sleep(w.tb.cfg.OutOfBand)
	w.cmd, w.caller = &cmd, th
	w.agent.Wake(th.P.Now())
	for w.cmd != nil && !w.proc.dead {
		th.ParkUntil("the answer of a player to "+cmd.Op, sim.Never)
	}
	w.caller = nil
	if w.cmd != nil {
		w.cmd = nil
		return verbs.PlayerReply{Text: w.proc.obituary}, verbs.ErrProcessDied
	}
	return w.reply, nil
}

// Kill ends the other process.
func (w *hand) Kill(t verbs.Thread) { w.proc.Kill(t) }
