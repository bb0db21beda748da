//go:build hw

package mlx5

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/rdmasim/rdmasim/hw/agent"
	"github.com/rdmasim/rdmasim/verbs"
)

// offered is how an agent describes its device.
type offered struct {
	Node
	Link verbs.LinkLayer
}

// remote asks an agent for its device, which becomes the second node.
func (s *Setup) remote(address, keyFile string) error {
	if keyFile != "" {
		var err error
		if s.key, err = agent.ReadKey(keyFile); err != nil {
			return err
		}
	}
	c, err := agent.Dial(address, s.key, nil)
	if err != nil {
		return err
	}
	var o offered
	err = json.Unmarshal(c.Node, &o)
	if err := errors.Join(err, c.End()); err != nil {
		return fmt.Errorf("agent %s: %w", address, err)
	}
	if o.Link != s.nodes[0].link {
		return fmt.Errorf("the device of agent %s has another link layer than %s", address, s.nodes[0].Device)
	}
	o.agent, o.link = address, o.Link
	s.nodes = append(s.nodes, o.Node)
	return nil
}

// Agent is an agent that offers the device of cfg, and what it offers in one line.
func Agent(cfg Config, log func(string, ...any)) (*agent.Server, string, error) {
	all, err := candidates()
	if err != nil {
		return nil, "", err
	}
	n, err := all.choose(cfg)
	if err != nil {
		return nil, "", err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	text, err := json.Marshal(offered{n, n.link})
	if err != nil {
		return nil, "", err
	}
	return &agent.Server{Node: text, Log: log, Player: func() *exec.Cmd {
		cmd := exec.Command(self, PlayerArg)
		cmd.Env, cmd.Stderr = os.Environ(), os.Stderr
		return cmd
	}}, (&Setup{nodes: []Node{n}}).Chosen(), nil
}
