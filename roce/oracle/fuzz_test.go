package oracle_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/rdmasim/rdmasim/roce/oracle"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// Any file is read and judged, or an error says why not.
func FuzzFile(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, name := range []string{"7.2/send_only", "7.2/drop_ack", "7.2/cm_rping", "7.2/uc_write"} {
		shots := recordings(f)[name]
		shots = shots[:min(len(shots), 4)]
		for i, l := range links {
			f.Add(containers[i%len(containers)].of(show(shots, l)))
			f.Add(containers[5].of(snapped(show(seenTwice(r, shots), l), 60+r.IntN(60))))
		}
		f.Add(zipped(containers[5].of(shots)))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		c, packets, err := pcap.Read(bytes.NewReader(file))
		var broken *pcap.BrokenError
		if err != nil && !errors.As(err, &broken) && !errors.Is(err, pcap.ErrNotCapture) {
			t.Fatalf("%T: %v", err, err)
		}
		if c == nil {
			return
		}
		runs, err := oracle.Runs(c, packets)
		if err != nil {
			return
		}
		for _, c := range runs {
			oracle.Judge(c, oracle.Options{})
			oracle.Judge(c, oracle.Options{Complete: true, Delivered: true, MTU: 1024})
		}
	})
}
