package random

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/model"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/verbs"
)

// Programs of RAND-016, and of a full run.
const (
	flowPrograms     = 40
	fullFlowPrograms = 200
	flowShrinks      = 400 // programs that are tried to make one that fails smaller
	maxUnderWay      = 8   // packets
)

// steeredFlows runs programs of rules and packets that the model judges.
func steeredFlows(c *spec.C) {
	recorded := c.Scale(flowPrograms, fullFlowPrograms)
	want := recorded
	if c.Has(spec.ExactTime) {
		want *= timesExact
	}
	x := &flowSession{tags: c.Has("dv")}
	steps := 0
	for n := range want {
		p := drawFlows(uint64(n))
		if v := x.run(c, &p); v != nil {
			p, v = x.shrink(c, p, v)
			c.Violates(v.Rule, v.Got, v.Want, "program %d, %s\n%s", n+1, v, p.String())
			continue
		}
		if n < recorded {
			c.ObservePlatform(fmt.Sprintf("program %d", n+1), x.hash())
			steps += len(p.Steps)
		}
	}
	c.Observe("programs", recorded)
	c.Observe("steps", steps)
}

// flowSession runs programs one after the other.
type flowSession struct {
	s    *kit.Steered // nil: to be made
	tags bool
	said []string
	// Of the program that runs.
	rules   []liveFlow
	model   model.Steering
	packets []ether.Packet
	sent    [][]byte
	serial  uint32
}

// liveFlow is a rule that is there.
type liveFlow struct {
	flow  verbs.Flow
	model *model.SteeringRule
}

// hash is a hash of what the last program has shown.
func (x *flowSession) hash() string {
	h := sha256.Sum256([]byte(strings.Join(x.said, "\n")))
	return hex.EncodeToString(h[:4])
}

// run runs a program, and returns what the model does not allow.
func (x *flowSession) run(c *spec.C, p *FlowProgram) *Violation {
	if x.s == nil {
		x.s = kit.NewSteered(c, flowQPs)
	}
	x.model, x.rules, x.packets, x.sent, x.said, x.serial = model.Steering{}, nil, nil, nil, nil, 0
	var err error
	at := 0
	for at < len(p.Steps) && err == nil {
		err = x.step(c, &p.Steps[at])
		at++
	}
	if err == nil {
		at++
		err = x.settle(c)
	}
	for _, r := range slices.Backward(x.rules) {
		if e := r.flow.Destroy(c.T); err == nil {
			err = x.model.Destroy(r.model, e)
		}
	}
	if err == nil {
		return nil
	}
	x.s.Close(c) // since receives may be gone
	x.s = nil
	var v *model.Violation
	if !errors.As(err, &v) {
		v = &model.Violation{Rule: &model.Rule{Text: "a packet that is sent arrives", Source: "man:ibv_create_flow.3"}, Want: "the packet behind all others", Got: err.Error()}
	}
	what := "the end"
	if at <= len(p.Steps) {
		what = p.Steps[at-1].String()
	}
	return &Violation{Step: at, What: what, Want: v.Want, Got: v.Got, Rule: v.Rule.Text, Source: v.Rule.Source}
}

func (x *flowSession) step(c *spec.C, s *FlowStep) error {
	if s.Kind != FlowSend || len(x.sent) == maxUnderWay {
		if err := x.settle(c); err != nil {
			return err
		}
	}
	switch s.Kind {
	case FlowCreate:
		a := s.at(x.s.MAC)
		to := x.s.To[s.QP]
		a.Port = to.Env.Port
		f, err := to.CreateFlow(c.T, a)
		x.said = append(x.said, "create: "+errnoName(err))
		r, wrong := x.model.Create(s.QP, &a, err)
		if err == nil {
			x.rules = append(x.rules, liveFlow{f, r})
		}
		return wrong
	case FlowDestroy:
		if len(x.rules) == 0 {
			return nil
		}
		n := s.N % len(x.rules)
		r := x.rules[n]
		x.rules = slices.Delete(x.rules, n, n+1)
		return x.model.Destroy(r.model, r.flow.Destroy(c.T))
	}
	p := s.Packet
	p.DstMAC = placed(p.DstMAC, x.s.MAC)
	x.serial++
	payload := make([]byte, s.Length)
	spec.NewRand(uint64(x.serial)).Fill(payload)
	x.packets, x.sent = append(x.packets, p), append(x.sent, p.Build(payload))
	return nil
}

// settle sends what is to be sent, and judges where it arrives.
func (x *flowSession) settle(c *spec.C) error {
	if len(x.sent) == 0 {
		return nil
	}
	x.s.Send(c, x.sent...)
	got, whole := x.s.Arrived(c)
	arrivals := make([][]model.Arrival, len(x.sent))
	for qp, l := range got {
		for _, r := range l {
			i := slices.IndexFunc(x.sent, func(b []byte) bool { return bytes.Equal(b, r.Bytes) })
			if i < 0 {
				return fmt.Errorf("at queue pair %d %v of %d bytes that nobody sent", qp, r.WC.Status, len(r.Bytes))
			}
			k := slices.IndexFunc(arrivals[i], func(a model.Arrival) bool { return a.QP == qp })
			if k < 0 {
				k = len(arrivals[i])
				arrivals[i] = append(arrivals[i], model.Arrival{QP: qp, Whole: r.WC.ByteLen == uint32(len(x.sent[i])), Tag: r.WC.QPN, Flags: r.WC.Flags})
			}
			arrivals[i][k].Times++
		}
	}
	if !whole {
		return errors.New("it has not come to all queue pairs")
	}
	for i := range x.packets {
		x.said = append(x.said, fmt.Sprint(arrivals[i]))
		if err := x.model.Delivered(&x.packets[i], arrivals[i], x.tags); err != nil {
			return err
		}
	}
	x.packets, x.sent = nil, nil
	return nil
}

// shrink makes a program that violates a rule smaller, as long as a smaller one violates it too.
func (x *flowSession) shrink(c *spec.C, p FlowProgram, v *Violation) (FlowProgram, *Violation) {
	for i, tried := 0, 0; tried < flowShrinks; {
		l := FlowProgram{slices.Clone(p.Steps)}
		for k := range l.Steps {
			l.Steps[k].Rule.Specs = slices.Clone(l.Steps[k].Rule.Specs)
		}
		if n := i; !edit(reflect.ValueOf(&l).Elem(), &n) {
			break
		}
		if l.Valid() != nil {
			i++
			continue
		}
		tried++
		if w := x.run(c, &l); w != nil && w.Rule == v.Rule {
			p, v = l, w
			continue
		}
		i++
	}
	return p, v
}
