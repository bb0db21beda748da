package player

import "github.com/rdmasim/rdmasim/verbs"

// CreateFlow creates a rule of packets of an EtherType, which lives until the end of the process.
// Args: qp, type, priority, ether_type, drop.
const CreateFlow = "flow"

func (a *Agent) createFlow(t verbs.Thread, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	qp, err := pick(a.qps, c.Args["qp"], "qp")
	if err != nil {
		return err
	}
	s := []verbs.FlowSpec{{Type: verbs.FlowSpecEth, Val: verbs.FlowFilter{EtherType: uint16(c.Args["ether_type"])}, Mask: verbs.FlowFilter{EtherType: 0xffff}}}
	if c.Args["drop"] != 0 {
		s = append(s, verbs.FlowSpec{Type: verbs.FlowSpecDrop})
	}
	_, err = qp.CreateFlow(t, verbs.FlowAttr{Type: verbs.FlowType(c.Args["type"]), Priority: uint16(c.Args["priority"]), Port: a.port, Specs: s})
	return err
}
