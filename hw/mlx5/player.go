//go:build hw

package mlx5

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/rdmasim/rdmasim/hw/agent"
	"github.com/rdmasim/rdmasim/internal/cli/workers"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// PlayerArg is the argument with which this program is started as a player.
const PlayerArg = "player"

// start is the first message to a player.
type start struct {
	Nodes []Node
	Node  int
	// Memory are the events about the player's memory, in its own time.
	Memory []fault.Event `json:",omitempty"`
	// Folder is where processes open files.
	Folder string `json:",omitempty"`
}

// maxReply is how long a reply of a player may be, in bytes: enough for the contents of a buffer of
// 32 MiB, more than any case reads. A player on another machine is whatever its agent makes of it,
// and so may not fill this one's memory.
const maxReply = 64 << 20

// mostText is how much of what a player printed that has died is kept, in bytes: it begins with the
// fatal error.
const mostText = 4096

// playerProcess is another process, on this machine or, through an agent, on another one.
type playerProcess struct {
	name   string // as in files of faults
	in     io.Writer
	out    *bufio.Reader
	mu     sync.Mutex // one command at a time
	stderr *workers.Head
	kill   func() // ends the process
	clean  func() // waits until it has ended
	waited sync.Once
}

// Player starts this program again, with the node of the host as its first device; on the
// machine of an agent, the agent's.
func (tb *Testbed) Player(t verbs.Thread, hostIndex int, env map[string]string) (verbs.Player, error) {
	defer enterCall(t, "start of a player").leaveCall()
	if tb.setup.far != nil && hostIndex == len(tb.hosts)-1 {
		return tb.beginFar(env)
	}
	return tb.startPlayer(hostIndex, env)
}

// beginFar starts a process at the far end.
func (tb *Testbed) beginFar(env map[string]string) (verbs.Player, error) {
	p, err := tb.setup.far.Begin(env)
	if err != nil {
		return nil, fmt.Errorf("start a player: %w", err)
	}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.far = append(tb.far, p)
	return p, nil
}

func (tb *Testbed) startPlayer(hostIndex int, env map[string]string) (*playerProcess, error) {
	if hostIndex < 0 || hostIndex >= len(tb.hosts) {
		return nil, fmt.Errorf("player on host %d of %d: %w", hostIndex, len(tb.hosts), syscall.EINVAL)
	}
	what, begin := start{Nodes: tb.setup.nodes, Node: hostIndex}, (*playerProcess).startHere
	if n := tb.setup.nodes[hostIndex]; n.agent != "" {
		what = start{Nodes: []Node{n}}
		begin = func(h *playerProcess, env map[string]string) error { return h.startThere(n.agent, tb.setup.key, env) }
	}
	tb.mu.Lock()
	h := &playerProcess{stderr: workers.NewHead(0), name: processName(hostIndex, len(tb.players)+2)} // the case's own process is the first
	tb.mu.Unlock()
	what.Memory = tb.memoryOf(h.name)
	var err error
	if what.Folder, err = tb.files(); err != nil {
		return nil, fmt.Errorf("start a player: %w", err)
	}
	if err := begin(h, env); err != nil {
		return nil, fmt.Errorf("start a player: %w", err)
	}
	if err := json.NewEncoder(h.in).Encode(what); err != nil {
		h.end()
		return nil, fmt.Errorf("start a player: %w", err)
	}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.players = append(tb.players, h)
	return h, nil
}

// startHere starts the process on this machine.
func (h *playerProcess) startHere(env map[string]string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, PlayerArg)
	cmd.Env = os.Environ()
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p, err := workers.Start(cmd, h.stderr, false)
	if err != nil {
		return err
	}
	h.in, h.out, h.kill = p.In, bufio.NewReader(out), p.Kill
	h.clean = func() {
		_ = p.In.Close()
		_ = p.Wait()
	}
	return nil
}

// startThere makes an agent start it.
func (h *playerProcess) startThere(address string, key *agent.Key, env map[string]string) error {
	c, err := agent.Dial(address, key, env)
	if err != nil {
		return err
	}
	h.in, h.out = c, bufio.NewReader(c)
	h.kill = func() {}
	h.clean = func() { _ = c.End() }
	return nil
}

// Do runs one command in the other process.
func (h *playerProcess) Do(t verbs.Thread, cmd verbs.PlayerCommand) (verbs.PlayerReply, error) {
	defer enterCall(t, "the answer of a player to "+cmd.Op).leaveCall()
	return h.do(cmd)
}

func (h *playerProcess) do(cmd verbs.PlayerCommand) (verbs.PlayerReply, error) {
	if !h.mu.TryLock() {
		return verbs.PlayerReply{}, fmt.Errorf("player: two commands at once: %w", syscall.EBUSY)
	}
	defer h.mu.Unlock()
	if err := json.NewEncoder(h.in).Encode(cmd); err != nil {
		return h.died()
	}
	r, err := workers.Next[verbs.PlayerReply](h.out, maxReply)
	if err != nil {
		h.kill() // it may live, if its reply was none
		return h.died()
	}
	return r, nil
}

func (h *playerProcess) died() (verbs.PlayerReply, error) {
	h.wait()
	text := h.stderr.Text()
	return verbs.PlayerReply{Text: text[:min(len(text), mostText)]}, verbs.ErrProcessDied
}

// Kill ends the other process with SIGKILL and returns when the kernel has cleaned up
// behind it.
func (h *playerProcess) Kill(t verbs.Thread) {
	defer enterCall(t, "the end of a killed player").leaveCall()
	h.end()
}

func (h *playerProcess) end() {
	h.kill()
	h.wait()
}

func (h *playerProcess) wait() { h.waited.Do(h.clean) }

// Play is a player's main: it carries out the commands that come from in until in ends,
// which also ends a player that is inside a call.
func Play(in io.Reader, out io.Writer) error {
	dec := json.NewDecoder(in)
	var s start
	if err := dec.Decode(&s); err != nil {
		return fmt.Errorf("player: %w", err)
	}
	if s.Node < 0 || s.Node >= len(s.Nodes) {
		return errors.New("player: no such node")
	}
	cmds := make(chan verbs.PlayerCommand)
	go func() {
		for {
			var c verbs.PlayerCommand
			if dec.Decode(&c) != nil {
				os.Exit(0)
			}
			cmds <- c
		}
	}()
	tb := New(&Setup{nodes: s.Nodes})
	tb.folder = s.Folder
	for _, e := range s.Memory {
		tb.own(e)
	}
	p := &process{bed: tb, host: tb.hosts[s.Node]}
	enc := json.NewEncoder(out)
	t := p.start("player", -1, func(t verbs.Thread) {
		a := player.NewAgent()
		for c := range cmds {
			if enc.Encode(a.Do(t, c)) != nil {
				return
			}
		}
	})
	<-t.done
	return nil
}
