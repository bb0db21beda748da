package testbed

import (
	"bytes"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/roce/pcap"
	"github.com/rdmasim/rdmasim/verbs"
)

// TestVendorOfOptions: the answer to a request has the vendor that the request has, none for a
// client of another vendor's or of a QP that the library does not know, and a client takes no
// answer of another vendor (librdmacm, ucma_copy_ece_param_to_kern_rep, ucma_process_conn_resp).
func TestVendorOfOptions(t *testing.T) {
	for name, c := range map[string]struct {
		external bool // the client's QP is not the library's
		faults   string
		asked    uint32
		answered uint32
		outcome  verbs.CMEventType
	}{
		"both have libmlx5":    {asked: 0x15b3, answered: 0x15b3, outcome: verbs.CMEstablished},
		"the client has no QP": {external: true, outcome: verbs.CMConnectResponse},
		"a REP of another vendor": { // the capture has it as it was sent
			faults: "faults: [{do: edit, from: host1/mlx5_0, opcode: 100, count: 1, edits: [{offset: 63, value: 22}]}]", asked: 0x15b3, answered: 0x15b3, outcome: verbs.CMConnectError},
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			cfg := config(t)
			cfg.Pcap = &file
			if c.faults != "" {
				var err error
				if cfg.Faults, err = fault.Parse("f.yaml", []byte(c.faults)); err != nil {
					t.Fatal(err)
				}
			}
			run(t, cfg, func(x *rig) { x.askForOptions(t, c.external, c.outcome) })
			_, frames, err := pcap.Read(&file)
			if err != nil {
				t.Fatal(err)
			}
			vendors := map[uint16]uint32{}
			for _, f := range frames {
				pk, err := roce.Parse(f.Data)
				if err != nil || pk.BTH().DestQP() != 1 {
					continue
				}
				switch m := mad.MAD(pk.Payload()); m.Attribute() {
				case mad.AttrREQ:
					vendors[mad.AttrREQ] = mad.REQ(m.Body()).Vendor()
				case mad.AttrREP:
					vendors[mad.AttrREP] = mad.REP(m.Body()).Vendor()
				}
			}
			if vendors[mad.AttrREQ] != c.asked || vendors[mad.AttrREP] != c.answered {
				t.Errorf("vendors of REQ and REP: %#x", vendors)
			}
		})
	}
}

// askForOptions is a connection up to the client's event.
func (x *rig) askForOptions(t *testing.T, external bool, outcome verbs.CMEventType) {
	sp, err := x.bed.Hosts()[1].NewProcess(x.t, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(cmServer, 7174)
	listening := false
	sp.Start(x.t, "server", 0, func(th verbs.Thread) {
		s := newCMEnd(t, th)
		l := s.id(verbs.PortSpaceTCP)
		s.ok("bind", l.BindAddr(th, at))
		s.ok("listen", l.Listen(th, 0))
		listening = true
		ev := s.expect(verbs.CMConnectRequest, 0)
		s.qp(ev.ID)
		s.ok("accept", ev.ID.Accept(th, &verbs.ConnParam{ResponderResources: 1, InitiatorDepth: 1}))
	})
	for !listening {
		x.t.Sleep(time.Microsecond)
	}
	c := newCMEnd(t, x.t)
	id := c.resolve(verbs.PortSpaceTCP, at)
	p := &verbs.ConnParam{ResponderResources: 1, InitiatorDepth: 1, RetryCount: 7, RNRRetryCount: 7}
	if external {
		p.QPN = 7
	} else {
		c.qp(id)
	}
	c.ok("connect", id.Connect(x.t, p))
	status := 0
	if outcome == verbs.CMConnectError {
		status = -int(syscall.EINVAL)
	}
	c.expect(outcome, status)
	if outcome == verbs.CMConnectError && id.QP().State() != verbs.QPSErr {
		t.Errorf("the client's QP is in %v", id.QP().State())
	}
}
