//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/rdmasim/rdmasim/hw/agent"
	"github.com/rdmasim/rdmasim/verbs"
)

// Config says which device to test. The zero value leaves the choice, but GIDIndex must
// be -1 for that.
type Config struct {
	Device   string
	Port     int
	GIDIndex int
	// Wire names the interfaces behind the first and the second node ("w0,w1"), through
	// which the link between them can be watched and disturbed; empty: without that.
	Wire string
	// Peer is the address of an agent, whose device is the second node; empty: another
	// device of this machine, if there is one. Key is the file of the key for it.
	Peer, Key string
	// Far makes another kind of second node for the first one's address, in place of Peer; nil:
	// there is none.
	Far func(FarOf) (Far, error)
}

// Node is a device with the port and the GID that connections use.
type Node struct {
	Device   string
	Port     int
	GIDIndex int
	GID      verbs.GID
	GIDType  verbs.GIDType
	Provider string // user-space driver; empty: an agent that does not say
	link     verbs.LinkLayer
	agent    string // address of the agent on whose machine it is; empty: here
}

// Setup is the devices that testbeds use, and what was found out about them.
type Setup struct {
	// Profile names what lies below for policies: hw-rxe.
	Profile  string
	Details  map[string]string
	nodes    []Node
	record   bool       // see Record
	key      *agent.Key // for the agent of the second node
	far      Far        // the second node, or nil
	ops      uint64     // capability bits of the device's operations, which its library may lack
	link     [2]string  // the interfaces behind the nodes
	port     string     // device file of the simulation's wire, in a guest
	subnet   bool       // whose links have a subnet manager
	bench    bool       // and whose devices are in a tester's hands too
	has      []string   // what he says that they have
	emulated bool       // the processor of a guest of rdmasim vm
	caps     map[string]verbs.Capability
}

// Choose opens the devices, picks those of the run and probes what the first can do.
// Its errors say what to do.
func Choose(cfg Config) (*Setup, error) {
	nodes, err := candidates()
	if err != nil {
		return nil, err
	}
	first, err := nodes.choose(cfg)
	if err != nil {
		return nil, err
	}
	s := &Setup{nodes: []Node{first}}
	if s.link, err = parseLink(cfg.Wire); err != nil {
		return nil, err
	}
	switch {
	case cfg.Far != nil:
		return s, errors.Join(s.probeDevice(), s.meet(cfg.Far))
	case cfg.Peer != "":
		err = s.remote(cfg.Peer, cfg.Key)
	default:
		s.chooseSecond(nodes)
	}
	if err != nil {
		return nil, err
	}
	if err := s.findPort(); err != nil {
		return nil, err
	}
	if err := s.probeDevice(); err != nil {
		return nil, err
	}
	return s, nil
}

// ChooseOne picks a device as Choose does, for a program that asks for no capabilities: nothing is
// probed.
func ChooseOne(cfg Config) (*Setup, error) {
	nodes, err := candidates()
	if err != nil {
		return nil, err
	}
	n, err := nodes.choose(cfg)
	if err != nil {
		return nil, err
	}
	return &Setup{nodes: []Node{n}}, nil
}

// chooseSecond takes another device of this machine, of the same link layer, as the other node.
func (s *Setup) chooseSecond(nodes candidateList) {
	for _, c := range nodes {
		if c.name == s.nodes[0].Device || c.err != nil {
			continue
		}
		if n, err := c.node(0, -1); err == nil && n.link == s.nodes[0].link {
			s.nodes = append(s.nodes, n)
			return
		}
	}
}

// isNode reports whether a device is a node of the testbed.
func (s *Setup) isNode(name string) bool {
	return slices.ContainsFunc(s.nodes, func(n Node) bool { return n.Device == name })
}

// Chosen says in one line what the run uses.
func (s *Setup) Chosen() string {
	var parts []string
	for _, n := range s.nodes {
		parts = append(parts, fmt.Sprintf("%s port %d GID %d (%v)", n.Device, n.Port, n.GIDIndex, n.GID))
	}
	return strings.Join(parts, ", second node ")
}

// candidate is a device of the list, with its ports and GIDs.
type candidate struct {
	name  string
	err   error // why it cannot be opened
	ports []verbs.PortAttr
	gids  []verbs.GIDEntry
}

type candidateList []candidate

func candidates() (candidateList, error) {
	all, err := list()
	switch {
	case errors.Is(err, syscall.ENOSYS):
		return nil, errors.New("this machine has no RDMA: the kernel has no uverbs; load it (modprobe ib_uverbs) and a driver (modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0)")
	case err != nil:
		return nil, fmt.Errorf("list the RDMA devices: %w", err)
	case len(all) == 0 && hidden("") != nil:
		return nil, hidden("")
	case len(all) == 0:
		return nil, errors.New("this machine has no RDMA device: load a driver (modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0), or run below rdmasim exec")
	}
	var out candidateList
	for _, d := range all {
		out = append(out, inspect(d))
	}
	slices.SortFunc(out, func(a, b candidate) int { return strings.Compare(a.name, b.name) }) // the list is in no order
	return out, nil
}

// inspect opens a device and reads its ports and GIDs.
func inspect(d *C.struct_ibv_device) candidate {
	c := candidate{name: C.GoString(C.ibv_get_device_name(d))}
	ctx, errno := C.ibv_open_device(d)
	if ctx == nil {
		c.err = unopened(c.name, deviceFiles+C.GoString(&d.dev_name[0]), null("ibv_open_device", errno))
		return c
	}
	defer C.ibv_close_device(ctx)
	attr, err := queryDevice(ctx)
	if err != nil {
		c.err = err
		return c
	}
	for p := 1; p <= int(attr.PhysPortCnt); p++ {
		pa, err := queryPort(ctx, p)
		if err != nil {
			c.err = err
			return c
		}
		c.ports = append(c.ports, pa)
	}
	gids := make([]verbs.GIDEntry, 1024)
	n, err := queryGIDTable(ctx, gids, 0)
	if err != nil {
		c.err = err
		return c
	}
	c.gids = gids[:n]
	return c
}

func (l candidateList) names() string {
	var s []string
	for _, c := range l {
		s = append(s, c.name)
	}
	return strings.Join(s, ", ")
}

// choose is the node that cfg asks for; without a name, the first that can be used.
func (l candidateList) choose(cfg Config) (Node, error) {
	if cfg.Device != "" {
		i := slices.IndexFunc(l, func(c candidate) bool { return c.name == cfg.Device })
		if i < 0 {
			if err := hidden(cfg.Device); err != nil {
				return Node{}, err
			}
			return Node{}, fmt.Errorf("no device %q here; the devices are %s", cfg.Device, l.names())
		}
		return l[i].node(cfg.Port, cfg.GIDIndex)
	}
	var first error
	for _, c := range l {
		n, err := c.node(cfg.Port, cfg.GIDIndex)
		if err == nil {
			return n, nil
		}
		if first == nil {
			first = err
		}
	}
	return Node{}, first
}

// node is the candidate with a port (0: the first active) and a GID (-1: RoCE v2 with
// an IPv4 address if there is one, else any RoCE v2, else index 0).
func (c *candidate) node(port, gid int) (Node, error) {
	if c.err != nil {
		return Node{}, c.err
	}
	if port == 0 {
		port = 1 + slices.IndexFunc(c.ports, func(p verbs.PortAttr) bool { return p.State == verbs.PortActive })
		port = max(port, 1)
	}
	if port < 1 || port > len(c.ports) {
		return Node{}, fmt.Errorf("%s has no port %d; it has %d", c.name, port, len(c.ports))
	}
	p := c.ports[port-1]
	if p.State != verbs.PortActive {
		return Node{}, fmt.Errorf("port %d of %s is not active (state %d): bring its link up (ip link set dev NAME up) or choose another with --device and --port", port, c.name, p.State)
	}
	n := Node{Device: c.name, Port: port, GIDIndex: gid, Provider: providerOf(c.name), link: p.LinkLayer}
	best := -1
	for _, e := range c.gids {
		if int(e.Port) != port {
			continue
		}
		if r := rank(e); gid == int(e.Index) || gid < 0 && r > best {
			best = r
			n.GIDIndex, n.GID, n.GIDType = int(e.Index), e.GID, e.Type
		}
	}
	if best < 0 {
		if gid < 0 {
			return Node{}, fmt.Errorf("port %d of %s has no GID: give its network device an address (ip addr add 10.0.0.1/24 dev NAME)", port, c.name)
		}
		return Node{}, fmt.Errorf("port %d of %s has no GID with index %d; it has %s", port, c.name, gid, c.indices(port))
	}
	return n, nil
}

// rank orders GIDs by how well connections use them.
func rank(e verbs.GIDEntry) int {
	switch {
	case e.Type == verbs.GIDTypeRoCEv2 && isIPv4(e.GID):
		return 3
	case e.Type == verbs.GIDTypeRoCEv2:
		return 2
	case e.Index == 0:
		return 1
	}
	return 0
}

func isIPv4(g verbs.GID) bool {
	return [10]byte(g[:10]) == [10]byte{} && g[10] == 0xff && g[11] == 0xff
}

func (c *candidate) indices(port int) string {
	var s []string
	for _, e := range c.gids {
		if int(e.Port) == port {
			s = append(s, fmt.Sprintf("%d (%v)", e.Index, e.GID))
		}
	}
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}
