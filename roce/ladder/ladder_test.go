package ladder_test

import (
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ladder"
)

func TestDraw(t *testing.T) {
	rows := []ladder.Row{
		{AtNs: 1500, From: "a", To: "long b", Text: "one"},
		{AtNs: 2000, From: "long b", To: "a", Text: "two"},
		{AtNs: 3000, From: "a", To: "long b", Text: "three", Fate: "dropped by rule 1"},
		{AtNs: 4000, From: "long b", To: "a", Text: "four", Fate: "dropped by rule 2"},
		{AtNs: 1_000_001, From: "c", To: "a", Text: "five"},
	}
	want := `       1.500 us  a --> long b  one
       2.000 us  a <-- long b  two
       3.000 us  a -x  long b  three  [dropped by rule 1]
       4.000 us  a  x- long b  four  [dropped by rule 2]
    1000.001 us  c --> a  five`
	if got := strings.Join(ladder.Draw(rows), "\n"); got != want {
		t.Errorf("the ladder is\n%s\nwant\n%s", got, want)
	}
	if got := ladder.Draw(nil); len(got) != 0 {
		t.Errorf("no frames are drawn as %q", got)
	}
}

// What is no frame of RDMA has no row; bytes that anybody could have sent never panic.
func FuzzRowOf(f *testing.F) {
	f.Add(make([]byte, 60), false)
	f.Add(make([]byte, 40), true)
	f.Fuzz(func(t *testing.T, frame []byte, infiniBand bool) {
		var n ladder.Nodes
		row, ok := ladder.RowOf(&n, 1, frame, infiniBand, "")
		if from, to, known := ladder.Addresses(frame, infiniBand); known != ok || ok && (!strings.HasPrefix(row.From, from) || !strings.HasPrefix(row.To, to) || row.Text == "") {
			t.Errorf("row %+v of addresses %q and %q, %v", row, from, to, known)
		}
	})
}

func TestRowSaysWhatTheHeadersSay(t *testing.T) {
	for name, tt := range map[string]struct {
		op   roce.Opcode
		ext  []byte
		want []string
	}{
		"WRITE": {roce.RC.Opcode(roce.OpWriteOnly), []byte{0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0xab, 1, 0, 0, 0, 0},
			[]string{"RC RDMA WRITE Only", "PSN 7", "to QP 0x12", "VA 0x1000", "R_Key 0xab01", "0 bytes", "payload of 0, asks for no ACK"}},
		"datagram": {roce.UDSendOnly, []byte{0x11, 0x11, 0x22, 0x22, 0, 0, 0, 0x41}, []string{"UD SEND Only", "from QP 0x41", "Q_Key 0x11112222", "P_Key 0x7fff"}},
		"NAK":      {roce.RC.Opcode(roce.OpAcknowledge), []byte{0x62, 0, 0, 9}, []string{"RC Acknowledge", "NAK remote access error", "MSN 9"}},
	} {
		frame := packet(t, tt.op, tt.ext)
		var n ladder.Nodes
		n.Name("10.0.0.1", "here")
		n.Name("10.0.0.1", "elsewhere")
		row, ok := ladder.RowOf(&n, 5, frame, false, "dropped")
		if !ok || row.From != "here" || row.To != "10.0.0.2" || row.AtNs != 5 || row.Fate != "dropped" {
			t.Errorf("%s: %v, %+v", name, ok, row)
		}
		for _, w := range tt.want {
			if !strings.Contains(row.Text, w) {
				t.Errorf("%s: no %q in %q", name, w, row.Text)
			}
		}
	}
}

func gid(last byte) roce.GID { return roce.GID{10: 0xff, 11: 0xff, 12: 10, 15: last} }

// packet is a whole frame of an opcode, with PSN 7, from 10.0.0.1 to QP 0x12 of 10.0.0.2.
func packet(t *testing.T, op roce.Opcode, ext []byte) []byte {
	t.Helper()
	path, err := roce.NewTemplate(roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: gid(1), DstGID: gid(2), HopLimit: 64, SrcPort: 0xC000,
		PKey: roce.DefaultPKey, DestQP: 0x12, MigReq: true})
	if err != nil {
		t.Fatal(err)
	}
	var pool roce.Pool
	f := path.New(&pool, op, 7, 0, 0)
	p, err := roce.Parse(f.B)
	if err != nil {
		t.Fatal(err)
	}
	copy(p.Ext(), ext)
	if op == roce.UDSendOnly {
		p.BTH().SetPKey(0x7fff)
	}
	f.FinishICRC()
	return f.B
}
