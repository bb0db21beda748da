package mad_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// recorded are the messages of the connection that rping makes and ends on Soft-RoCE of Linux 7.2.
func recorded(t testing.TB) []mad.MAD {
	t.Helper()
	f, err := os.Open("../../fixtures/captures/rxe/7.2/cm_rping.pcap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, packets, err := pcap.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []mad.MAD
	for _, x := range packets {
		p, err := roce.Parse(x.Data)
		if err != nil || p.BTH().DestQP() != roce.GSIQPN {
			continue
		}
		m, err := mad.Parse(p.Payload())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// TestRecordedConnection: the recorded messages say what Linux puts into them.
func TestRecordedConnection(t *testing.T) {
	all := recorded(t)
	if len(all) < 3 || all[0].Attribute() != mad.AttrREQ || all[1].Attribute() != mad.AttrREP || all[2].Attribute() != mad.AttrRTU {
		t.Fatalf("%d messages", len(all))
	}
	r := mad.REQ(all[0].Body())
	h := mad.IPHeader(r.PrivateData())
	if r.ServiceID() != 0x0106_1c06 || r.PSN() != 0xc22bb8 || r.RemoteTimeout() != 20 || r.LocalTimeout() != 20 || r.MaxCMRetries() != 15 ||
		r.PKey() != 0xffff || r.Primary().ACKTimeout() != 17 || r.Primary().HopLimit() != 64 || r.Primary().FlowLabel() != 0xb2887 ||
		r.Primary().LocalLID() != 0xffff || r.Transport() != mad.TransportRC {
		t.Errorf("REQ % x", []byte(r))
	}
	if h.Version() != 0 || h.IPVersion() != 4 || h.Src() != (roce.GID{12: h.Src()[12], 13: h.Src()[13], 14: h.Src()[14], 15: h.Src()[15]}) ||
		(uint32(h.SrcPort())*31+7174)&0xfffff != r.Primary().FlowLabel() {
		t.Errorf("header % x", []byte(h))
	}
	p, rtu := mad.REP(all[1].Body()), mad.CM(all[2].Body())
	if c := mad.CM(p); c.Remote() != r.Local() || rtu.Local() != r.Local() || rtu.Remote() != c.Local() || p.PSN() != 0xdd9216 {
		t.Errorf("REP % x, RTU % x", []byte(p), []byte(rtu))
	}
	if all[0].TID() != all[1].TID() || all[0].Class() != mad.ClassCM || all[0].ClassVersion() != mad.CMVersion || all[0].Method() != mad.Send {
		t.Error("headers")
	}
}

// TestREQIsWrittenAsRecorded: a REQ that is written field by field is the recorded one, bit by bit.
func TestREQIsWrittenAsRecorded(t *testing.T) {
	want := mad.REQ(recorded(t)[0].Body())
	b := make([]byte, mad.BodySize)
	copyREQ(b, want)
	if !bytes.Equal(b, want) {
		t.Errorf("\n% x, want\n% x", b, []byte(want))
	}
	rep := mad.REP(recorded(t)[1].Body())
	b = make([]byte, mad.BodySize)
	copyREP(b, rep)
	if !bytes.Equal(b, rep) {
		t.Errorf("\n% x, want\n% x", b, []byte(rep))
	}
}

func copyREQ(to, from mad.REQ) {
	to.SetLocal(from.Local())
	to.SetVendor(from.Vendor())
	to.SetServiceID(from.ServiceID())
	to.SetCAGUID(from.CAGUID())
	to.SetQPN(from.QPN())
	to.SetResponderResources(from.ResponderResources())
	to.SetInitiatorDepth(from.InitiatorDepth())
	to.SetRemoteTimeout(from.RemoteTimeout())
	to.SetTransport(from.Transport())
	to.SetFlowControl(from.FlowControl())
	to.SetPSN(from.PSN())
	to.SetLocalTimeout(from.LocalTimeout())
	to.SetRetryCount(from.RetryCount())
	to.SetPKey(from.PKey())
	to.SetMTU(from.MTU())
	to.SetRNRRetryCount(from.RNRRetryCount())
	to.SetMaxCMRetries(from.MaxCMRetries())
	to.SetSRQ(from.SRQ())
	to.SetExtended(from.Extended())
	p, q := to.Primary(), from.Primary()
	p.SetLocalLID(q.LocalLID())
	p.SetRemoteLID(q.RemoteLID())
	p.SetLocalGID(q.LocalGID())
	p.SetRemoteGID(q.RemoteGID())
	p.SetFlowLabel(q.FlowLabel())
	p.SetRate(q.Rate())
	p.SetTrafficClass(q.TrafficClass())
	p.SetHopLimit(q.HopLimit())
	p.SetSL(q.SL())
	p.SetSubnetLocal(q.SubnetLocal())
	p.SetACKTimeout(q.ACKTimeout())
	copy(to.PrivateData(), from.PrivateData())
}

func copyREP(to, from mad.REP) {
	mad.CM(to).SetLocal(mad.CM(from).Local())
	mad.CM(to).SetRemote(mad.CM(from).Remote())
	to.SetQPN(from.QPN())
	to.SetVendor(from.Vendor())
	to.SetEECN(from.EECN())
	to.SetPSN(from.PSN())
	to.SetResponderResources(from.ResponderResources())
	to.SetInitiatorDepth(from.InitiatorDepth())
	to.SetACKDelay(from.ACKDelay())
	to.SetFlowControl(from.FlowControl())
	to.SetRNRRetryCount(from.RNRRetryCount())
	to.SetSRQ(from.SRQ())
	to.SetCAGUID(from.CAGUID())
	copy(to.PrivateData(), from.PrivateData())
}

// FuzzCM: what the views read of any bytes they write back to the same places.
func FuzzCM(f *testing.F) {
	for _, m := range recorded(f) {
		f.Add([]byte(m.Body()))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != mad.BodySize {
			return
		}
		was := bytes.Clone(b)
		copyREQ(b, bytes.Clone(b))
		copyREP(b, bytes.Clone(b))
		m, j, s, q, d := mad.MRA(b), mad.REJ(b), mad.SIDRRep(b), mad.SIDRReq(b), mad.DREQ(b)
		m.SetAbout(m.About())
		m.SetServiceTimeout(m.ServiceTimeout())
		j.SetAbout(j.About())
		j.SetReason(j.Reason())
		j.SetInfoGUID(j.InfoGUID())
		d.SetQPN(d.QPN())
		s.SetRequestID(s.RequestID())
		s.SetStatus(s.Status())
		s.SetVendor(s.Vendor())
		s.SetQPN(s.QPN())
		s.SetQKey(s.QKey())
		q.SetPKey(q.PKey())
		q.SetServiceID(q.ServiceID())
		h := mad.IPHeader(b)
		h.SetIPVersion(h.IPVersion())
		h.SetSrcPort(h.SrcPort())
		h.SetSrc(h.Src())
		h.SetDst(h.Dst())
		if !bytes.Equal(was, b) {
			t.Fatal("what was read is written elsewhere")
		}
		if n := len(mad.RTU(b).PrivateData()) + len(m.PrivateData()) + len(j.PrivateData()) + len(d.PrivateData()) + len(q.PrivateData()) + len(s.PrivateData()); n == 0 {
			t.Fatal("no private data")
		}
	})
}
